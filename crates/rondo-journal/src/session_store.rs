//! The sessions of the journal, as the port that hosts use.

use crate::commit_thread::{Failure, is_full};
use crate::error::StoreError;
use crate::owned::{checked, raise};
use crate::store::Store;
use async_trait::async_trait;
use rondo_core::Journal;
use rondo_core::history::History;
use rondo_core::ports::{Record, Seq};
use rondo_core::session_store::{NewSession, SessionInfo, SessionStore, SessionStoreError};
use rondo_types::{SessionId, TimeMs};
use std::io;
use std::sync::Arc;
use tokio::task::spawn_blocking;

#[async_trait]
impl SessionStore for Store {
    async fn begin(&self, new: NewSession) -> Result<Arc<dyn Journal>, SessionStoreError> {
        let owned = self.blocking(|store| store.begin(new)).await?;
        Ok(Arc::new(owned))
    }

    /// Waits for no disk. All processes see at once who owns the session, and the loss of power, which alone could
    /// take that back, leaves no owner: the first append that returns keeps the epoch with its records.
    async fn take(&self, session: &SessionId) -> Result<Arc<dyn Journal>, SessionStoreError> {
        // A lock that is had or not at once: no reason for another thread, which the commit would wait for.
        let lock = self.lock(checked(session)?)?;
        let name = session.clone();
        let raised = self
            .writer()
            .write_unsynced(move |connection| raise(connection, &name));
        let raised = raised.await.map_err(|unwritten| unwritten.failure)?;
        let (fence, head) = raised.ok_or_else(|| SessionStoreError::Unknown {
            session: session.to_string(),
        })?;
        Ok(Arc::new(self.owned(fence, head, None, lock)))
    }

    async fn history(&self, session: &SessionId) -> Result<History, SessionStoreError> {
        let session = session.clone();
        self.blocking(move |store| store.history(&session)).await
    }

    async fn read(
        &self,
        session: &SessionId,
        from: Seq,
        limit: usize,
    ) -> Result<Vec<(Seq, Record)>, SessionStoreError> {
        let session = session.clone();
        let read = self.blocking(move |store| store.read(&session, from, limit));
        let known = |(seq, record): (_, Option<Record>)| record.map(|record| (seq, record));
        let entries = read.await?.into_iter();
        let records = entries.map(|entry| (entry.seq, entry.into_record()));
        Ok(records.filter_map(known).collect())
    }

    async fn list(&self, limit: usize) -> Result<Vec<SessionInfo>, SessionStoreError> {
        self.blocking(move |store| store.sessions(limit)).await
    }

    async fn info(&self, session: &SessionId) -> Result<SessionInfo, SessionStoreError> {
        let session = session.clone();
        self.blocking(move |store| store.session(&session)).await
    }

    async fn rename(&self, session: &SessionId, title: &str) -> Result<(), SessionStoreError> {
        let (session, title) = (session.clone(), title.to_owned());
        self.blocking(move |store| {
            store.session(&session)?;
            store.set_title(&session, &title)
        })
        .await
    }

    async fn fork(
        &self,
        parent: &SessionId,
        at: Seq,
        new: &SessionId,
        now: TimeMs,
    ) -> Result<(), SessionStoreError> {
        let (parent, new) = (parent.clone(), new.clone());
        self.blocking(move |store| store.fork(&parent, at, &new, now))
            .await
    }

    async fn remove(&self, session: &SessionId) -> Result<(), SessionStoreError> {
        let session = session.clone();
        self.blocking(move |store| store.remove(&session)).await
    }

    async fn retain(&self, since: TimeMs) -> Result<Vec<SessionId>, SessionStoreError> {
        self.blocking(move |store| store.prune(since)).await
    }
}

impl Store {
    /// Works on a thread that may block.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, SessionStoreError> {
        let store = self.clone();
        let worked = spawn_blocking(move || work(&store)).await;
        Ok(worked.map_err(|err| SessionStoreError::Storage(err.into()))??)
    }
}

impl From<StoreError> for SessionStoreError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::InUse { session, pid } => Self::InUse { session, pid },
            StoreError::Unknown { session } => Self::Unknown { session },
            StoreError::Exists { session } => Self::Exists { session },
            StoreError::BadId { id, reason } => Self::BadId { id, reason },
            StoreError::HasForks { session, children } => Self::HasForks { session, children },
            StoreError::NoSuchRecord { session, seq, last } => {
                Self::NoSuchRecord { session, seq, last }
            }
            StoreError::Damaged {
                session,
                seq,
                reason,
            } => Self::Damaged {
                session,
                seq,
                reason,
            },
            error if is_full(&error) => Self::Full,
            error => Self::Storage(error.into()),
        }
    }
}

impl From<Failure> for SessionStoreError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Full => Self::Full,
            failure => Self::Storage(io::Error::from(failure).into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Durability, Options};

    #[tokio::test]
    async fn after_a_take_commits_wait_for_the_disk_as_before() {
        for (durability, expected) in [(Durability::Full, 2), (Durability::Normal, 1)] {
            let options = Options {
                durability,
                ..Options::default()
            };
            let dir = tempfile::TempDir::new().unwrap();
            let store = Store::open(dir.path(), options).unwrap();
            let session = SessionId::new("a");
            drop(store.create(&session, TimeMs(1)).unwrap());
            for taken in ["a", "b"] {
                let taken = store.take(&SessionId::new(taken)).await;
                drop(taken);
                let synchronous = store.writer().run(|connection| {
                    let read = |row: &rusqlite::Row<'_>| row.get::<_, i64>(0);
                    Ok(connection.pragma_query_value(None, "synchronous", read)?)
                });
                assert_eq!(synchronous.unwrap(), expected);
            }
        }
    }
}
