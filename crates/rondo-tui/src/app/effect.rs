//! What the screen wants done: it does nothing itself.

use rondo_core::session::{Delivery, TicketId};
use rondo_types::Answer;

/// Something to do.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Effect {
    /// Say something to the session.
    Submit { text: String, delivery: Delivery },
    /// Take a message that waits back.
    Withdraw(TicketId),
    /// Stop what runs.
    Cancel,
    /// Answer a question.
    Answer(Answer),
    /// Put a text on the clipboard.
    Copy(String),
    /// Show a text in the pager.
    Page(String),
    /// Edit the draft elsewhere.
    Edit(String),
    /// Stop the process.
    Suspend,
    /// Draw everything anew.
    Redraw,
    /// End.
    Quit,
}
