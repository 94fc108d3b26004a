//! Interface between an engine and the checks.

use async_trait::async_trait;
use rondo_core::Journal;
use rondo_core::ports::{Entry, HostStore, Mailbox, Outbox, Record, Seq};
use rondo_core::session_store::{NewSession, SessionStore, StoreError};
use rondo_core::storage::Store;
use rondo_types::{SessionId, TimeMs};
use std::sync::Arc;

/// A store of an engine's, empty when it is made. Its functions may panic: that fails the check.
#[async_trait]
pub trait Engine: Send + Sync {
    /// Returns the store as another process would open it, if the engine can be opened by another process.
    fn store(&self) -> Store;

    /// Takes a session from an owner that may still be there: what happens if it lost its lease, or if its lock is not
    /// seen. `None` if the engine cannot be brought there.
    async fn take_over(&self, session: &SessionId) -> Option<Arc<dyn Journal>>;

    /// Begins a session whose journal has no room left for a record, if the engine can be brought there.
    async fn full(&self, session: &SessionId) -> Option<Arc<dyn Journal>> {
        let _ = session;
        None
    }

    /// Opens the same store again, after all else that it handed out is gone; `None` if nothing outlives that.
    async fn opened_again(self: Box<Self>) -> Option<Box<dyn Engine>>;

    /// Returns the store's sessions.
    fn sessions(&self) -> Arc<dyn SessionStore> {
        self.store()
    }

    /// Returns the mailbox whose rows the sessions' journals acknowledge.
    fn mailbox(&self) -> Arc<dyn Mailbox> {
        self.store()
    }

    /// Returns the outbox that the sessions' journals add to.
    fn outbox(&self) -> Arc<dyn Outbox> {
        self.store()
    }

    /// Returns the store for the rows that hosts write, and for the commits of several at once.
    fn host_store(&self) -> Arc<dyn HostStore> {
        self.store()
    }

    /// Begins a session that has no records, and owns it.
    async fn begin(&self, session: &SessionId) -> Arc<dyn Journal> {
        let new = NewSession::new(session.clone(), TimeMs(1));
        self.sessions().begin(new).unwrap()
    }

    /// Reads the records, as another process would.
    async fn recorded(&self, session: &SessionId) -> Vec<Record> {
        match self.store().read(session, Seq(1), usize::MAX) {
            Ok(entries) => entries.into_iter().filter_map(Entry::into_record).collect(),
            // A session that has no records yet is not there for others.
            Err(StoreError::Unknown { .. }) => Vec::new(),
            Err(err) => panic!("{err}"),
        }
    }
}
