//! Sessions that are kept in a file.

use crate::cut_off::CutOff;
use crate::{Agent, Session, ids};
use rondo_core::clock::Clock;
use rondo_core::history::History;
use rondo_journal::{Entry, NewSession, OwnedSession, Store, StoreError};
use rondo_types::SessionId;
use std::panic::resume_unwind;
use std::sync::Arc;
use tokio::runtime::Handle;

/// Why a session cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The journal could not do it: the session is in use, damaged, or the disk failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// No tokio runtime opens the session: there is none here, or it was shut down.
    #[error("no tokio runtime opens the session")]
    NoRuntime,
}

/// A session as it was found.
struct Opened {
    owned: OwnedSession,
    history: History,
    cut_off: Option<CutOff>,
}

impl Agent {
    /// Opens a conversation that is kept in a journal: a new one where the journal has none of that
    /// name, or else one that this program, another agent or the command line began.
    ///
    /// Each turn is recorded before it happens. It is this process's alone until the session, its
    /// clones and its runs are dropped. A new one is there for others from its first turn on. Where
    /// its last turn was cut off, [`Session::resume`] carries that on. Lists show it by the beginning
    /// of its first message, and by the directory of the agent's built-in tools.
    ///
    /// # Errors
    /// When another process has the session, its name is empty, longer than 128 bytes or has control
    /// characters, its records are damaged, or the disk fails.
    ///
    /// # Cancel safety
    /// Cancel safe: a session that is being opened is let go of again, a moment later.
    pub async fn open_session(
        &self,
        store: &Store,
        id: impl Into<String>,
    ) -> Result<Session, OpenError> {
        self.open(store, SessionId::new(id)).await
    }

    /// Opens a conversation that is kept in a journal, with a name of its own. Names begin with the
    /// time, so that they sort by it.
    ///
    /// # Errors
    /// When the disk fails.
    ///
    /// # Cancel safety
    /// Cancel safe: nothing is kept of a session without a turn.
    pub async fn begin_session(&self, store: &Store) -> Result<Session, OpenError> {
        self.open(store, ids::new_session()).await
    }

    async fn open(&self, store: &Store, id: SessionId) -> Result<Session, OpenError> {
        let runtime = Handle::try_current().map_err(|_| OpenError::NoRuntime)?;
        let directory = self.parts.directory.as_deref();
        let new = NewSession {
            directory: directory.map_or_else(String::new, |it| it.display().to_string()),
            ..NewSession::new(id.clone(), Clock::system().now())
        };
        let store = store.clone();
        let opening = runtime.spawn_blocking(move || opened(&store, new));
        let found = match opening.await {
            Ok(found) => found?,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => resume_unwind(panic),
                Err(_) => return Err(OpenError::NoRuntime),
            },
        };
        Ok(Session::new(self.clone(), id)
            .with_journal(Arc::new(found.owned))
            .recorded(&found.history, found.cut_off))
    }
}

fn opened(store: &Store, new: NewSession) -> Result<Opened, StoreError> {
    let id = new.id.clone();
    let owned = match store.own(&id) {
        Err(StoreError::Unknown { .. }) => {
            return Ok(Opened {
                owned: store.begin(new)?,
                history: History::default(),
                cut_off: None,
            });
        }
        owned => owned?,
    };
    let history = store.history(&id)?;
    let cut_off = match history.open_turn() {
        Some(open) => {
            let entries = store.read(&id, open.first, usize::MAX)?;
            let records = entries.into_iter().filter_map(Entry::into_record);
            let needs_consent = store.session(&id)?.imported;
            Some(CutOff {
                needs_consent,
                ..CutOff::new(&history, open, records.collect())
            })
        }
        None => None,
    };
    Ok(Opened {
        owned,
        history,
        cut_off,
    })
}
