//! Sessions that are stored: in a journal, or by any other engine behind the port.

use crate::cut_off::CutOff;
use crate::{Agent, Session, ids};
use rondo_core::Journal;
use rondo_core::clock::Clock;
use rondo_core::ports::Entry;
use rondo_core::session_store::{NewSession, SessionStore, StoreError};
use rondo_types::SessionId;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;

/// How often a session that this process has is looked at again, since it may have been dropped: for half a second.
const LET_GO_LOOKS_MAX: u32 = 250;
/// The time between two of these looks.
const LET_GO_LOOK_EVERY: Duration = Duration::from_millis(2);

/// Why a session cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The store cannot open the session: it is in use or damaged, or the storage failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is no current tokio runtime, or it was shut down.
    #[error("the session was opened outside a tokio runtime")]
    NoRuntime,
}

impl Agent {
    /// Opens a stored conversation, or creates it when the store has none of that name. The store is usually a journal
    /// (`Store` of the crate `rondo-journal`). An existing conversation may have been created by this program, another one or the
    /// command line.
    ///
    /// Every effect of a turn is recorded before it happens. This process owns the session until
    /// the session, its clones and its runs are dropped. Other processes see a new session from its
    /// first turn on. If its last turn was interrupted, [`Session::resume`] continues it. Lists of
    /// sessions show the beginning of its first message and the directory of the agent's built-in
    /// tools.
    ///
    /// # Errors
    /// When another process owns the session, its name is empty, is longer than 128 bytes or has
    /// control characters, its records are damaged, the storage fails, or there is no tokio runtime.
    ///
    /// # Cancel safety
    /// Cancel safe: a session that is being opened is released a moment later.
    pub async fn open_session(
        &self,
        store: &(impl SessionStore + Clone + 'static),
        id: impl Into<String>,
    ) -> Result<Session, OpenError> {
        self.open(store, SessionId::new(id)).await
    }

    /// Creates a stored conversation with a generated name. Names sort by the time of creation.
    ///
    /// # Errors
    /// When the storage fails, or there is no tokio runtime.
    ///
    /// # Cancel safety
    /// Cancel safe: a session without a turn is not stored.
    pub async fn begin_session(
        &self,
        store: &(impl SessionStore + Clone + 'static),
    ) -> Result<Session, OpenError> {
        self.open(store, ids::new_session()).await
    }

    async fn open(
        &self,
        store: &(impl SessionStore + Clone + 'static),
        id: SessionId,
    ) -> Result<Session, OpenError> {
        let runtime = Handle::try_current().map_err(|_| OpenError::NoRuntime)?;
        let directory = self.parts.directory.as_deref();
        let new = NewSession {
            directory: directory.map_or_else(String::new, |it| it.display().to_string()),
            ..NewSession::new(id.clone(), Clock::system().now())
        };
        let store = store.clone();
        let session = Session::new(self.clone(), id);
        let opening = runtime.spawn_blocking(move || opened(session, &store, new));
        match opening.await {
            Ok(opened) => Ok(opened?),
            Err(error) => match error.try_into_panic() {
                Ok(panic) => resume_unwind(panic),
                Err(_) => Err(OpenError::NoRuntime),
            },
        }
    }
}

/// Takes a session. One that this process has may have been dropped right before, and its turn's task lets go of it a moment
/// later.
fn take(store: &dyn SessionStore, id: &SessionId) -> Result<Arc<dyn Journal>, StoreError> {
    for _ in 0..LET_GO_LOOKS_MAX {
        match store.take(id) {
            Err(StoreError::InUse { pid, .. }) if pid == Some(std::process::id()) => {
                std::thread::sleep(LET_GO_LOOK_EVERY);
            }
            taken => return taken,
        }
    }
    store.take(id)
}

fn opened(
    session: Session,
    store: &dyn SessionStore,
    new: NewSession,
) -> Result<Session, StoreError> {
    let id = new.id.clone();
    let journal = match take(store, &id) {
        Err(StoreError::Unknown { .. }) => return Ok(session.with_journal(store.begin(new)?)),
        taken => taken?,
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
    Ok(session.with_journal(journal).recorded(&history, cut_off))
}
