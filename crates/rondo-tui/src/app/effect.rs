//! What the screen wants done: it does nothing itself.

use super::pane_complete::PaneWord;
use crate::prompt::run_mode::RunMode;
use crate::prompt::slash::SessionCommand;
use rondo_core::session::{Delivery, TicketId};
use rondo_runtime::service::Cell;
use rondo_runtime::terminal::TerminalContext;
use rondo_types::{Answer, SessionId};
use std::path::PathBuf;

/// Something to do.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Effect {
    /// Say something to the session.
    Submit {
        text: String,
        /// What goes along with it, as it was previewed.
        attached: Vec<String>,
        delivery: Delivery,
    },
    /// Take a message that waits back.
    Withdraw(TicketId),
    /// Stop what runs.
    Cancel,
    /// Answer a question.
    Answer(Answer),
    /// Run a person's own cell; the agent reads what a command printed where it is shared.
    Own {
        cell: Cell,
        is_shared: bool,
    },
    /// Start the shell, and show what its terminal gets.
    OpenShell,
    /// Add what is known of the terminal to what is seen of it here, for a preview.
    Terminal(TerminalContext),
    /// Find the names that a word of the pane's prompt may become.
    CompleteInPane(PaneWord),
    /// Type bytes into the shell's terminal.
    Type(Vec<u8>),
    /// Start the live Python session.
    OpenPython,
    /// Type bytes for the Python cell that runs.
    TypePython(Vec<u8>),
    /// Carry out a slash command that both prompts have.
    Command {
        command: SessionCommand,
        rest: String,
    },
    /// Do what a slash command says that the user added.
    Added {
        name: String,
        rest: String,
    },
    /// Put a text on the clipboard.
    Copy(String),
    /// Attach the image that is on the clipboard.
    PasteImage,
    /// Attach the image in a file, or take what was pasted for a text where there is none.
    PastePath {
        path: PathBuf,
        text: String,
    },
    /// Show a text in the pager.
    Page(String),
    /// Edit the draft elsewhere.
    Edit(String),
    /// Sum the conversation up, with an eye on something.
    Compact(String),
    /// List the models that can be chosen.
    Models,
    /// What runs without asking from now on.
    RunMode(RunMode),
    /// Begin a new session.
    New,
    /// Go on with another session.
    Open(String),
    /// Go on with a copy of the session, or of another.
    Fork,
    ForkOf(String),
    /// Go back before the latest turn, whose words are these.
    Undo(String),
    /// Carry on a turn that was cut off.
    Resume,
    /// List the sessions that hold words.
    List(String),
    /// Show the last messages of a session.
    Preview(SessionId),
    /// Give a session another title, and list those that hold words anew.
    Rename {
        id: SessionId,
        text: String,
        words: String,
    },
    /// Remove a session.
    Remove(SessionId),
    /// List the files that `@` may name.
    Files,
    /// Stop the process.
    Suspend,
    /// Draw everything anew.
    Redraw,
    /// Go on at the line prompt.
    Inline,
    /// End.
    Quit,
}
