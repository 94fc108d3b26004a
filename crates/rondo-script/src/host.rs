//! The port of a script to who runs it: its streams, its user, and the gate of its agents.

use async_trait::async_trait;
use rondo_core::{Approver, Gate};
use rondo_runtime::error::Result;
use rondo_types::TurnEvent;
use std::io;
use std::sync::Arc;

/// Input that a script reads from standard input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StdinRead {
    /// All that is left.
    All,
    /// A line, without its end.
    Line,
    /// A line, with its end.
    WholeLine,
}

/// Question of a script to its user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserQuestion {
    /// The question.
    pub text: String,
    /// Permitted answers; any answer if empty.
    pub choices: Vec<String>,
    /// The answer if nothing is typed, or there is no user.
    pub default: Option<String>,
}

/// Host of a script.
#[async_trait]
pub trait ScriptHost: Send + Sync {
    /// Writes to standard output.
    ///
    /// # Errors
    /// When it takes nothing any more; the script ends then.
    fn stdout(&self, bytes: &[u8]) -> io::Result<()>;

    /// Writes to standard error.
    fn stderr(&self, bytes: &[u8]);

    /// Reads standard input; `None` at its end.
    ///
    /// # Errors
    /// When it cannot be read, or is longer than `bytes_max`.
    ///
    /// # Cancel safety
    /// Not cancel safe: what was read may be lost.
    async fn stdin(&self, what: StdinRead, bytes_max: usize) -> io::Result<Option<Vec<u8>>>;

    /// Asks the user.
    ///
    /// # Errors
    /// Says why there is no answer.
    ///
    /// # Cancel safety
    /// Cancel safe: the question is withdrawn.
    async fn ask(&self, question: &UserQuestion) -> Result<String, String>;

    /// Returns the approver for calls of a model that the gate asks about.
    fn approver(&self) -> Arc<dyn Approver>;

    /// Returns the gate of an agent's turns, in place of the one of the settings.
    fn gate(&self) -> Option<Arc<dyn Gate>> {
        None
    }

    /// Receives the events of an agent's turn. Must not block.
    fn event(&self, agent: &str, event: &TurnEvent);
}
