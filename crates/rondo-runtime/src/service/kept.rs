//! The sessions that are kept: listing, naming, copying and removing them.

use super::handle::SessionHandle;
use super::{SessionService, off_thread};
use crate::error::{Result, SetupError, SetupErrorKind};
use crate::session::SessionOptions;
use crate::sessions;
use rondo_core::ports::Seq;
use rondo_core::session_store::{SessionInfo, StoreError};
use rondo_core::storage::Store;
use rondo_types::{Message, Role, SessionId};

/// Sessions that are looked through for words.
const SEARCHED_MAX: usize = 500;
/// Bytes of an excerpt around what was found.
const EXCERPT_BYTES: usize = 80;

/// A session that is kept.
#[derive(Debug, Clone)]
pub struct KeptSession {
    /// Its entry in the list.
    pub info: SessionInfo,
    /// Excerpt with a match, if words were searched for.
    pub excerpt: Option<String>,
}

impl SessionService {
    /// Returns the sessions that were written last, the latest first. If `words` are not empty, those whose title,
    /// directory or messages hold them in whatever case, of the latest 500; of messages, those that a person or the
    /// model wrote.
    ///
    /// # Errors
    /// When the journal cannot be read.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn list(&self, words: &str, limit: usize) -> Result<Vec<KeptSession>> {
        let (store, words) = (self.shared.store.clone(), words.to_lowercase());
        off_thread(move || {
            let all = store.sessions(if words.is_empty() {
                limit
            } else {
                SEARCHED_MAX
            })?;
            let mut found = Vec::new();
            for info in all {
                let excerpt = match words.is_empty() {
                    true => None,
                    false => match look(&store, &info, &words)? {
                        Some(excerpt) => Some(excerpt),
                        None => continue,
                    },
                };
                found.push(KeptSession { info, excerpt });
                if found.len() >= limit {
                    break;
                }
            }
            Ok(found)
        })
        .await
    }

    /// Returns the last messages of a session as text, with their speakers, for a preview. Synthetic messages and
    /// results of tools are left out.
    ///
    /// # Errors
    /// When there is no such session, or its records cannot be read.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn preview(&self, session: &SessionId, messages: usize) -> Result<Vec<Message>> {
        let (store, session) = (self.shared.store.clone(), session.clone());
        off_thread(move || {
            let history = store.history(&session)?;
            let said = history.transcript().into_iter();
            let said = said.filter(|it| {
                it.role != Role::Tool && !it.synthetic && !it.text().trim().is_empty()
            });
            let said: Vec<Message> = said.map(|it| Message::clone(&it)).collect();
            let from = said.len().saturating_sub(messages);
            Ok(said.into_iter().skip(from).collect())
        })
        .await
    }

    /// Gives a session another title.
    ///
    /// # Errors
    /// When there is no such session, or the journal cannot be written.
    ///
    /// # Cancel safety
    /// Not cancel safe: it may or may not have the title.
    pub async fn rename(&self, session: &SessionId, title: &str) -> Result<()> {
        let (store, session, title) =
            (self.shared.store.clone(), session.clone(), title.to_owned());
        off_thread(move || store.set_title(&session, &title).map_err(sessions::failed)).await
    }

    /// Removes a session with all that is recorded of it, for good.
    ///
    /// # Errors
    /// When a process works on it, or others are forks of it.
    ///
    /// # Cancel safety
    /// Not cancel safe: it may or may not be removed.
    pub async fn remove(&self, session: &SessionId) -> Result<()> {
        let (store, id) = (self.shared.store.clone(), session.clone());
        off_thread(move || store.remove(&id).map_err(sessions::failed)).await?;
        self.shared.checkpoints.forget(session);
        Ok(())
    }
}

impl SessionHandle {
    /// Copies the session as it is recorded now, and returns the copy.
    ///
    /// # Errors
    /// When nothing is recorded of it, or the disk fails.
    ///
    /// # Cancel safety
    /// Not cancel safe: the copy may or may not be there.
    pub async fn fork(&self) -> Result<Self> {
        self.copy(|store, id| match store.session(id) {
            Ok(info) => Ok(info.head),
            Err(StoreError::Unknown { .. }) => {
                let message = "there is no message yet";
                Err(SetupError::new(SetupErrorKind::NoSession, message))
            }
            Err(error) => Err(sessions::failed(error)),
        })
        .await
    }

    /// Copies the session up to the record before its latest turn, and returns the copy; none if that was its first
    /// turn, so that nothing would be left.
    ///
    /// # Errors
    /// When no turn is recorded, or the disk fails.
    ///
    /// # Cancel safety
    /// Not cancel safe: the copy may or may not be there.
    pub async fn before_latest_turn(&self) -> Result<Option<Self>> {
        let (store, id) = (self.entry.store().clone(), self.id().clone());
        let none = || SetupError::new(SetupErrorKind::NoSession, "no question was asked yet");
        let before = off_thread(move || sessions::before_latest_turn(&store, &id)).await?;
        match before.ok_or_else(none)? {
            Seq(0) => Ok(None),
            at => self.copy(move |_, _| Ok(at)).await.map(Some),
        }
    }

    async fn copy(
        &self,
        at: impl FnOnce(&Store, &SessionId) -> Result<Seq> + Send + 'static,
    ) -> Result<Self> {
        let (store, id) = (self.entry.store().clone(), self.id().clone());
        let copied = off_thread(move || {
            let at = at(&store, &id)?;
            sessions::fork(&store, &id, at)
        });
        let copied = copied.await?.id;
        let service = &self.entry.service;
        if service.store_of(self.id()).is_in_memory()
            && let Some(memory) = &mut *service.memory()
        {
            memory.ids.insert(copied.clone());
        }
        let options: SessionOptions = self.entry.options.clone();
        Ok(service.handle(copied, options))
    }
}

/// Returns the text around words in a session: in its title, its directory or its messages.
fn look(store: &Store, info: &SessionInfo, words: &str) -> Result<Option<String>> {
    if let Some(found) = excerpt(&info.title, words).or_else(|| excerpt(&info.directory, words)) {
        return Ok(Some(found));
    }
    // One that cannot be read holds nothing that could be shown.
    let Ok(history) = store.history(&info.id) else {
        return Ok(None);
    };
    let messages = history.transcript();
    let mut found = messages
        .iter()
        .rev()
        .filter(|it| !it.synthetic)
        .filter_map(|it| excerpt(&it.text(), words));
    Ok(found.next())
}

fn excerpt(text: &str, words: &str) -> Option<String> {
    let lower = text.to_lowercase();
    let at = lower.find(words)?;
    // Lowercase letters may take other bytes.
    let from = text.floor_char_boundary(at.saturating_sub(EXCERPT_BYTES / 2).min(text.len()));
    let to = text.floor_char_boundary((from + EXCERPT_BYTES).min(text.len()));
    text.get(from..to).map(str::to_owned)
}
