//! Parts of a turn that the host of a session provides.

use crate::error::{Result, SetupError};
use crate::settings::Settings;
use crate::turn::{Turn, TurnBuilder};
use async_trait::async_trait;
use rondo_core::{TurnEnd, TurnHandle};
use rondo_types::{Message, Question, SessionId, TimeMs};
use std::sync::Arc;

/// A turn that is about to begin, or to continue.
pub struct AskedTurn<'a> {
    /// Session of the turn.
    pub session: &'a SessionId,
    /// The key of the message that begins it, and who submitted that; `None` if the turn continues that was parked or cut
    /// off.
    pub begins: Option<(&'a str, &'a str)>,
    /// Set for the host's own message, which is in no mailbox.
    pub is_of_host: bool,
    /// Effective settings of the session.
    pub settings: &'a Settings,
    /// When the session began.
    pub began: TimeMs,
    /// Earlier messages, in order.
    pub history: &'a [Arc<Message>],
}

/// Host of sessions, which provides parts of their turns.
#[async_trait]
pub trait SessionHost: Send + Sync + 'static {
    /// Adds or removes parts of a turn for the host. The approver is that of the setting `approval`; with `ask`, the
    /// turn is parked and any listener may answer.
    ///
    /// # Errors
    /// When the turn is not to begin, or not now: the message stays in its mailbox, unless the host took it back.
    async fn turn(&self, turn: &AskedTurn<'_>, builder: &mut TurnBuilder) -> Result<()> {
        let _ = (turn, builder);
        Ok(())
    }

    /// Puts a question about the session's folder to a person elsewhere. It is called before each turn until the question is
    /// answered. The turn waits only for those who attend, and the answer holds from the next one on.
    ///
    /// # Errors
    /// When the turn is not to begin now.
    async fn ask_about_folder(&self, turn: &AskedTurn<'_>, question: &Question) -> Result<()> {
        let _ = (turn, question);
        Ok(())
    }

    /// Returns the settings in force in a session for its next turn or cell, if the host decides that itself, such as
    /// in the directory of its shell. Otherwise the settings of the session's directory are read.
    fn settings(&self, session: &SessionId) -> Option<Settings> {
        let _ = session;
        None
    }

    /// Returns whether turns may begin or continue in a session now. If not, its messages stay in the mailbox, and a turn that
    /// was cut off stays so, until the session is looked at again.
    fn lets_begin(&self, session: &SessionId) -> bool {
        let _ = session;
        true
    }

    /// Returns whether a parked turn continues at once and asks its questions again, such as of a person at the host's
    /// terminal. Otherwise it waits for their answers.
    fn asks_again(&self, session: &SessionId) -> bool {
        let _ = session;
        false
    }

    /// Receives a turn that is built and about to run, with its stop handle.
    fn begins(&self, turn: &Turn, handle: &TurnHandle) {
        let _ = (turn, handle);
    }

    /// Is told how a turn ended, that it was parked, or why it could not be resumed. Its last event was sent before.
    fn ended(&self, session: &SessionId, end: &Result<TurnEnd>) {
        let _ = (session, end);
    }

    /// Is told that a session could not be taken, or its turn not begun. `key` names the message of that turn, if it is
    /// known.
    fn failed(&self, session: &SessionId, key: Option<&str>, error: &SetupError) {
        let _ = (session, key, error);
    }
}

/// A host that brings nothing of its own.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoHost;

impl SessionHost for NoHost {}
