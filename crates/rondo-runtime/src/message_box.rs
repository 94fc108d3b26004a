//! Where messages to a session wait until a turn takes them.

use crate::error::Result;
use crate::{ids, parking};
use rondo_core::clock::Clock;
use rondo_core::ports::{MailBody, NewMail};
use rondo_core::session::Delivery;
use rondo_core::storage::Store;
use rondo_types::{MailId, Message, SessionId};

/// The mailbox of a session that is kept.
#[derive(Clone)]
pub struct MessageBox {
    pub(crate) store: Store,
    pub(crate) session: SessionId,
    /// The user who submits.
    pub(crate) actor: String,
}

impl MessageBox {
    /// Submits a message, and returns its row. Once this returns, no crash loses it.
    ///
    /// # Errors
    /// When too much waits in the session, or the journal cannot be written.
    ///
    /// # Cancel safety
    /// Not cancel safe: the message may or may not be submitted.
    pub async fn submit(&self, message: Message, delivery: Delivery) -> Result<MailId> {
        let at_ms = Clock::system().now();
        let mail = NewMail {
            session: self.session.clone(),
            key: ids::new_key("message", at_ms),
            actor: self.actor.clone(),
            at_ms,
            body: MailBody::Message { message, delivery },
        };
        let pushed = self.store.push(mail).await;
        pushed.map(|it| it.id()).map_err(parking::unkept)
    }
}
