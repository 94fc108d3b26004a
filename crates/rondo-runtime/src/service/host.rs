//! What a host brings to the turns of its sessions.

use crate::error::{Result, SetupError};
use crate::settings::Settings;
use crate::turn::{Turn, TurnBuilder};
use async_trait::async_trait;
use rondo_core::{TurnEnd, TurnHandle};
use rondo_types::{Message, Question, SessionId, TimeMs};
use std::sync::Arc;

/// A turn that is about to begin, or to go on.
pub struct AskedTurn<'a> {
    /// Its session.
    pub session: &'a SessionId,
    /// The key of the message that begins it, and who submitted that; none where the turn goes on that was parked or cut
    /// off.
    pub begins: Option<(&'a str, &'a str)>,
    /// Whether that is the host's own message, which is in no mailbox.
    pub is_of_host: bool,
    /// What is in force in the session.
    pub settings: &'a Settings,
    /// When the session began.
    pub began: TimeMs,
    /// What was said before, in order.
    pub history: &'a [Arc<Message>],
}

/// What a host brings to the turns of its sessions.
#[async_trait]
pub trait SessionHost: Send + Sync + 'static {
    /// Adds what the host brings to a turn, or takes from it. The approver is that of the setting `approval`; with `ask`, the
    /// turn is parked and anyone who listens may answer.
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

    /// Returns what is in force in a session for its next turn or cell, if the host decides that itself, such as in the
    /// directory of its shell. Otherwise the settings of the session's directory are read.
    fn settings(&self, session: &SessionId) -> Option<Settings> {
        let _ = session;
        None
    }

    /// Returns whether turns may begin or go on in a session now. If not, its messages stay in the mailbox, and a turn that
    /// was cut off stays so, until the session is looked at again.
    fn lets_begin(&self, session: &SessionId) -> bool {
        let _ = session;
        true
    }

    /// Returns whether a parked turn goes on at once and asks its questions again, such as of a person at the host's
    /// terminal. Otherwise it waits for their answers.
    fn asks_again(&self, session: &SessionId) -> bool {
        let _ = session;
        false
    }

    /// Is told of a turn that is built and about to run, and of what stops it.
    fn begins(&self, turn: &Turn, handle: &TurnHandle) {
        let _ = (turn, handle);
    }

    /// Is told how a turn ended, that it was parked, or why it could not be carried on. Its last event was sent before.
    fn ended(&self, session: &SessionId, end: &Result<TurnEnd>) {
        let _ = (session, end);
    }

    /// Is told that a session could not be taken, or its turn not begun. `key` names the message of that turn, where it is
    /// known.
    fn failed(&self, session: &SessionId, key: Option<&str>, error: &SetupError) {
        let _ = (session, key, error);
    }
}

/// A host that brings nothing of its own.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoHost;

impl SessionHost for NoHost {}
