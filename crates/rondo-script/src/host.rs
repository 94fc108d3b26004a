//! The port of a script to who runs it: its streams, its user, and the gate of its agents.

use async_trait::async_trait;
use rondo_core::{Approver, Gate};
use rondo_runtime::error::Result;
use rondo_types::TurnEvent;
use std::io;
use std::sync::Arc;

/// What a script reads of standard input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StdinRead {
    /// All that is left.
    All,
    /// A line, without its end.
    Line,
    /// A line, with its end.
    WholeLine,
}

/// What a script asks its user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserQuestion {
    /// The question.
    pub text: String,
    /// What may be answered; anything where it is empty.
    pub choices: Vec<String>,
    /// The answer where nothing is typed, or nobody is there.
    pub default: Option<String>,
}

/// Who runs a script.
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

    /// Returns who answers when the gate asks about a call of a model.
    fn approver(&self) -> Arc<dyn Approver>;

    /// Returns the gate of an agent's turns, in place of the one of the settings.
    fn gate(&self) -> Option<Arc<dyn Gate>> {
        None
    }

    /// Takes what happens in a turn of an agent. Must not block.
    fn event(&self, agent: &str, event: &TurnEvent);
}
