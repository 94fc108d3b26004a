//! Which models chats have named with `/model`. All sessions of a chat ask them, also after `/new` and a restart.

use crate::chats::first_session;
use rondo_core::ports::{HostRow, HostStore, MailboxError};
use rondo_types::SessionId;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The table of the models of chats, by the first session of each.
const MODELS: &str = "chat_model";
/// Chats that may have named one.
const CHATS_MAX: usize = 10_000;

/// The models of chats.
#[derive(Default)]
pub(crate) struct Models(Mutex<HashMap<SessionId, String>>);

impl Models {
    fn named(&self) -> MutexGuard<'_, HashMap<SessionId, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads what was named before.
    pub(crate) async fn load(&self, store: &dyn HostStore) -> Result<(), MailboxError> {
        let rows = store.rows(MODELS, "", CHATS_MAX).await?.into_iter();
        *self.named() = rows
            .map(|(chat, model)| (SessionId::new(chat), model))
            .collect();
        Ok(())
    }

    /// Returns the model that the chat of a session has named.
    pub(crate) fn of(&self, session: &SessionId) -> Option<String> {
        self.named().get(&first_session(session)).cloned()
    }

    /// Returns what notes the model of a chat; none if too many chats have one.
    pub(crate) fn row(&self, session: &SessionId, model: &str) -> Option<HostRow> {
        let (chat, named) = (first_session(session), self.named());
        let has_room = named.contains_key(&chat) || named.len() < CHATS_MAX;
        has_room.then(|| HostRow::set(MODELS, chat.as_str(), model))
    }

    /// Takes it that this was noted.
    pub(crate) fn set(&self, session: &SessionId, model: String) {
        self.named().insert(first_session(session), model);
    }
}
