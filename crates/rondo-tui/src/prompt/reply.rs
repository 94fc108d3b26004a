//! The reply to a slash command, which both prompts carry out alike.

use super::mode::Mode;
use rondo_runtime::service::{SessionHandle, SessionService};
use rondo_runtime::settings::Settings;
use rondo_runtime::terminal::TerminalContext;
use rondo_types::Part;

/// The session at a prompt, for a command.
#[derive(Clone)]
pub struct CommandContext {
    /// All sessions.
    pub service: SessionService,
    /// The settings in force.
    pub settings: Settings,
    /// The session.
    pub session: SessionHandle,
    /// Columns of the prompt.
    pub columns: usize,
    /// The prompt itself.
    pub prompt: PromptState,
}

/// The state of a prompt when a command is entered.
#[derive(Debug, Clone, PartialEq)]
pub struct PromptState {
    /// The mode.
    pub mode: Mode,
    /// Set while a turn runs or is prepared.
    pub is_busy: bool,
    /// Set while a command or a cell of the user's own runs.
    pub runs_own: bool,
    /// Set while questions are open.
    pub asks: bool,
    /// Set once the user's shell was started.
    pub has_shell: bool,
    /// The command or cell that failed last.
    pub failed: Option<FailedCell>,
    /// The terminal as far as it is seen at the prompt.
    pub terminal: TerminalContext,
    /// The prompt's keys, for the help.
    pub keys: &'static str,
}

/// A command or cell that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedCell {
    /// Its first line.
    pub line: String,
    /// Its text and what it printed; `None` if the agent has read it already.
    pub details: Option<String>,
}

/// The reply to a command.
#[derive(Debug, Clone)]
pub struct Reply {
    /// The text that the prompt shows.
    pub shown: ReplyText,
    /// The change that the prompt makes.
    pub change: Option<Change>,
}

impl Reply {
    /// Replies with a sentence, or lines of them.
    pub fn words(text: impl Into<String>) -> Self {
        Self {
            shown: ReplyText::Words(text.into()),
            change: None,
        }
    }

    /// Makes a change of the prompt, and says nothing.
    #[must_use]
    pub fn change(change: Change) -> Self {
        Self::words("").with(change)
    }

    /// Makes a change of the prompt.
    #[must_use]
    pub fn with(self, change: Change) -> Self {
        Self {
            change: Some(change),
            ..self
        }
    }
}

/// A text for the prompt, without a line end; an empty one is not shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplyText {
    /// Sentences, which may be wrapped.
    Words(String),
    /// Lines that are made for the prompt's width.
    Lines(String),
    /// A text of many lines, which the full screen shows in the pager.
    Pages(String),
    /// The traceback of a Python exception.
    Traceback(String),
    /// A list that the full screen shows in a panel.
    Panel(Panel, String),
}

/// A panel of the full screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Panel {
    /// The recorded sessions.
    Sessions,
    /// The agent's to-do list.
    Todo,
    /// A text that can be attached to the next question.
    Attach,
}

/// A change of the settings at the prompt.
#[derive(Debug, Clone)]
pub enum Change {
    /// Ask this model from the next turn on.
    Model(String),
    /// Use this profile from the next turn on.
    Profile(String),
    /// Let calls run without asking that one of these patterns matches.
    Allow(Vec<String>),
    /// Send this text with the next question.
    Text(String),
    /// Send this file with the next question.
    File {
        /// Its path, absolute or beneath the working directory.
        path: String,
        /// Attached content.
        part: Part,
    },
    /// Switch to this mode.
    Mode(Mode),
    /// Run this command in the user's shell; the agent does not read what it prints.
    Run(String),
    /// Enter these lines one after the other.
    Enter(Vec<String>),
    /// Ask the agent.
    Ask {
        /// The question.
        text: String,
        /// Sent with it.
        details: Option<String>,
    },
    /// Have the conversation summed up, with an eye on this.
    Compact(String),
    /// Carry on the turn that was cut off, and have the messages asked that wait.
    Resume,
    /// Go on in another session.
    Session {
        /// The session.
        session: SessionHandle,
        /// Origin of the session.
        origin: Origin,
    },
    /// Stop what runs.
    Cancel,
    /// Put this text on the clipboard.
    Copy(String),
    /// Go on at the other prompt: the full screen, or the line prompt.
    OtherPrompt,
    /// Leave.
    Quit,
}

/// Origin of the session that a prompt continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// It is new.
    New,
    /// It was recorded before.
    Recorded,
    /// It is a copy of the session at the prompt.
    Copy,
    /// It is a copy from before the latest turn, or a new session if there was but one turn.
    BeforeTurn,
}
