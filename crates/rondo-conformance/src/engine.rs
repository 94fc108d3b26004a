//! What an engine hands to the checks.

use async_trait::async_trait;
use rondo_core::Journal;
use rondo_core::ports::{HostStore, Mailbox, Outbox, Record, Seq};
use rondo_core::session_store::{NewSession, SessionStore, SessionStoreError};
use rondo_types::{SessionId, TimeMs};
use std::sync::Arc;

/// A store of an engine's, empty when it is made. Its functions may panic: that fails the check.
#[async_trait]
pub trait Engine: Send + Sync {
    /// Returns the sessions, as another process would open them.
    fn sessions(&self) -> Arc<dyn SessionStore>;

    /// Begins a session that has no records, and owns it.
    async fn begin(&self, session: &SessionId) -> Arc<dyn Journal> {
        let new = NewSession::new(session.clone(), TimeMs(1));
        self.sessions().begin(new).await.unwrap()
    }

    /// Takes a session from an owner that may still be there: what happens where it lost its lease, or where its
    /// lock is not seen.
    async fn take_over(&self, session: &SessionId) -> Arc<dyn Journal>;

    /// Reads what is recorded, as another process would.
    async fn recorded(&self, session: &SessionId) -> Vec<Record> {
        let read = self.sessions().read(session, Seq(1), usize::MAX).await;
        match read {
            Ok(records) => records.into_iter().map(|(_, record)| record).collect(),
            // A session that has no records yet is not there for others.
            Err(SessionStoreError::Unknown { .. }) => Vec::new(),
            Err(err) => panic!("{err}"),
        }
    }

    /// Returns the mailbox whose rows the sessions' journals acknowledge, as another process would open it: changes
    /// need not be told of from one to the next.
    fn mailbox(&self) -> Arc<dyn Mailbox>;

    /// Returns the outbox that the sessions' journals add to.
    fn outbox(&self) -> Arc<dyn Outbox>;

    /// Returns what hosts note, and what they commit at once.
    fn host_store(&self) -> Arc<dyn HostStore>;

    /// Begins a session whose journal has no room left for a record, where the engine can be brought there.
    async fn full(&self, session: &SessionId) -> Option<Arc<dyn Journal>> {
        let _ = session;
        None
    }

    /// Opens the same store again, after all else that it handed out is gone; `None` where nothing outlives that.
    async fn opened_again(self: Box<Self>) -> Option<Box<dyn Engine>>;
}
