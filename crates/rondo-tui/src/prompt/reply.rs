//! The reply to a slash command that both prompts carry out alike.

use rondo_runtime::service::SessionHandle;
use rondo_runtime::settings::Settings;
use rondo_types::Part;

/// The session at a prompt, for a command.
#[derive(Debug, Clone)]
pub struct CommandContext {
    /// The settings in force.
    pub settings: Settings,
    /// The session.
    pub session: SessionHandle,
    /// Columns of the prompt.
    pub columns: usize,
}

/// The reply to a command.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// The text that the prompt shows.
    pub shown: Shown,
    /// The change that the prompt makes.
    pub change: Option<Change>,
}

impl Reply {
    /// Replies with a sentence, or lines of them.
    pub fn words(text: impl Into<String>) -> Self {
        Self {
            shown: Shown::Words(text.into()),
            change: None,
        }
    }

    /// Has the prompt make a change.
    #[must_use]
    pub fn with(self, change: Change) -> Self {
        Self {
            change: Some(change),
            ..self
        }
    }
}

/// A text for the prompt, without a line end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shown {
    /// Sentences, which may be wrapped.
    Words(String),
    /// Lines that are made for the prompt's width.
    Lines(String),
    /// A text of many lines, which the full screen shows in the pager.
    Pages(String),
    /// The traceback of a Python exception.
    Traceback(String),
}

/// A change of what holds at the prompt.
#[derive(Debug, Clone, PartialEq)]
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
        /// Its content.
        part: Part,
    },
}
