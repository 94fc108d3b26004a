//! Why a script ended otherwise than by its last line, and why a call failed.

use rondo_runtime::SetupError;
use rondo_types::{Question, SessionId};
use std::io;

/// Why a script did not run to its end.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// It is no Lua.
    #[error("{0}")]
    Syntax(String),
    /// It raised an error that nothing caught.
    #[error("{0}")]
    Raised(String),
    /// A call could not begin: settings, a key, the journal.
    #[error("{message}")]
    Setup {
        /// The line of the script, and why.
        message: String,
        /// Error of the host.
        #[source]
        error: Box<SetupError>,
    },
    /// It was stopped from outside.
    #[error("the script was stopped")]
    Stopped,
    /// Its time is over.
    #[error("the script exceeded its time limit")]
    Deadline,
    /// A turn is waiting for answers.
    #[error("session `{session}` waits for an answer")]
    Parked {
        /// The session of the turn.
        session: SessionId,
        /// Open questions of the session.
        questions: Vec<Question>,
    },
    /// It took another way than its records say.
    #[error("{0}")]
    Diverged(String),
    /// It runs over its records alone, and has come to their end.
    #[error("{0}")]
    RecordsEnd(String),
    /// Standard output takes nothing any more.
    #[error("standard output is closed")]
    Output(#[source] io::Error),
}

/// Reason to end a script at once; it cannot be caught.
#[derive(Debug)]
pub(crate) enum Abort {
    /// It asked for its end.
    Exit(u8),
    /// Something else did.
    Error(ScriptError),
}

/// Why a call has no result.
#[derive(Debug)]
pub(crate) enum CallError {
    /// The script may catch this.
    Failed(String),
    /// It may catch this, which says already where it is from.
    Told(String),
    /// It may catch this. The call did nothing, so a script that failed by it makes it again when it is resumed.
    NotDone(String),
    /// It may catch this, too; the host wants to know more if it does not.
    Setup(SetupError),
    /// The script ends.
    Abort(Abort),
}

impl CallError {
    pub(crate) fn failed(why: impl std::fmt::Display) -> Self {
        Self::Failed(why.to_string())
    }

    /// Returns why the call failed, as a text.
    pub(crate) fn reason(&self) -> String {
        match self {
            Self::Failed(why) | Self::Told(why) | Self::NotDone(why) => why.clone(),
            Self::Setup(error) => error.line(),
            Self::Abort(_) => "it has ended".to_owned(),
        }
    }

    /// The script ends with this.
    pub(crate) fn end(error: ScriptError) -> Self {
        Self::Abort(Abort::Error(error))
    }
}

impl From<SetupError> for CallError {
    fn from(error: SetupError) -> Self {
        Self::Setup(error)
    }
}

impl From<mlua::Error> for CallError {
    fn from(error: mlua::Error) -> Self {
        Self::Failed(message_of(&error))
    }
}

/// Returns the message of an error of Lua, without where Rust and Lua were when it was raised.
pub(crate) fn message_of(error: &mlua::Error) -> String {
    let message = match error {
        mlua::Error::CallbackError { cause, .. } => return message_of(cause),
        mlua::Error::RuntimeError(message) => message.clone(),
        mlua::Error::SyntaxError { message, .. } => message.clone(),
        mlua::Error::WithContext { cause, .. } => return message_of(cause),
        mlua::Error::MemoryError(_) => "the script exceeded its memory limit".to_owned(),
        other => other.to_string(),
    };
    let end = message.find("\nstack traceback:").unwrap_or(message.len());
    message.get(..end).unwrap_or(&message).to_owned()
}
