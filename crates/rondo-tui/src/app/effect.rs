//! What the screen wants done: it does nothing itself.

use super::pane_complete::PaneWord;
use crate::prompt::run_mode::RunMode;
use crate::prompt::slash::Command;
use rondo_core::session::{Delivery, TicketId};
use rondo_runtime::granting::PolicyChange;
use rondo_runtime::service::Cell;
use rondo_types::{Answer, Grant, SessionId};
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
    /// Show, for the question of this hash, the change of the user's rules that a grant makes.
    ShowRule(String, Grant),
    /// Write that change, and answer.
    WriteRule(PolicyChange, Answer),
    /// Run a person's own cell; the agent reads what a command printed where it is shared.
    Own { cell: Cell, is_shared: bool },
    /// Start the shell, and show what its terminal gets.
    OpenShell,
    /// Find the names that a word of the pane's prompt may become.
    CompleteInPane(PaneWord),
    /// Type bytes into the shell's terminal.
    Type(Vec<u8>),
    /// Start the live Python session.
    OpenPython,
    /// Type bytes for the Python cell that runs.
    TypePython(Vec<u8>),
    /// Carry out a slash command.
    Command { command: Command, rest: String },
    /// Do what a slash command says that the user added.
    Added { name: String, rest: String },
    /// Put a text on the clipboard.
    Copy(String),
    /// Attach the image that is on the clipboard.
    PasteImage,
    /// Attach the image in a file, or take what was pasted for a text where there is none.
    PastePath { path: PathBuf, text: String },
    /// Show a text in the pager.
    Page(String),
    /// Edit the draft elsewhere.
    Edit(String),
    /// List the models that can be chosen.
    Models,
    /// What runs without asking from now on.
    RunMode(RunMode),
    /// Go on with a copy of another session.
    ForkOf(String),
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
    /// End.
    Quit,
}

impl Effect {
    /// Carries out a slash command without an argument.
    pub(crate) fn command(command: Command) -> Self {
        let rest = String::new();
        Self::Command { command, rest }
    }
}
