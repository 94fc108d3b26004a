//! A session that one process writes.

use crate::commit_thread::{self, FIRST_EPOCH, QueuedAppend, to_u64};
use crate::error::JournalError;
use crate::import;
use crate::lock::SessionLock;
use crate::read;
use crate::store::Store;
use async_trait::async_trait;
use rondo_core::Journal;
use rondo_core::ports::{Append, AppendError, Fence, Head, Seq};
use rondo_core::session_store::{NewSession, StoreError, check_id};
use rondo_types::{SessionId, TimeMs};
use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;

/// Characters of an id that an error repeats.
const SHOWN_ID_CHARS: usize = 128;

/// A session that this process may append to, until this is dropped.
///
/// Held twice over: by a lock of the kernel, which no crash leaves behind, and by an epoch in the
/// file, which refuses a writer that lost the session without noticing.
#[derive(Debug)]
pub struct OwnedSession {
    store: Store,
    fence: Fence,
    at: AtomicU64,
    lost: CancellationToken,
    /// Set if the session's row is made with its first records.
    new: Option<Arc<NewSession>>,
    _lock: SessionLock,
}

impl Store {
    /// Begins a session and owns it. It is there for others from its first records on, with which
    /// it shares a commit; one that never gets any leaves nothing behind.
    ///
    /// # Errors
    /// When there is one of that id, or another process just begins it, or the disk fails.
    pub fn begin(&self, new: NewSession) -> Result<OwnedSession, JournalError> {
        let lock = self.lock(checked(&new.id)?)?;
        if read::exists(&self.reader(), &new.id)? {
            let name = new.id.clone();
            self.writer()
                .run(move |connection| import::discard_unfinished(connection, &name))?;
        }
        if read::exists(&self.reader(), &new.id)? {
            return Err(JournalError::Store(StoreError::Exists { session: new.id }));
        }
        let fence = Fence {
            session: new.id.clone(),
            epoch: FIRST_EPOCH,
        };
        Ok(self.owned(fence, Seq(0), Some(new), lock))
    }

    /// Begins a session, empty as it is, and owns it.
    ///
    /// # Errors
    /// As [`Store::begin`].
    pub fn create(&self, session: &SessionId, at: TimeMs) -> Result<OwnedSession, JournalError> {
        let owned = self.begin(NewSession::new(session.clone(), at))?;
        if let Some(new) = owned.new.clone() {
            self.writer().run(move |connection| {
                commit_thread::begin(connection, &new, &[])?;
                Ok(())
            })?;
        }
        Ok(owned)
    }

    /// Takes ownership of an existing session that no process owns.
    ///
    /// Does not wait for the disk. All processes see at once who owns the session, and the loss of power, which alone
    /// could take that back, leaves no owner: the first append that returns makes the epoch durable with its records.
    ///
    /// # Errors
    /// When another process owns it, when it does not exist, or when the disk fails.
    pub fn own(&self, session: &SessionId) -> Result<OwnedSession, JournalError> {
        let lock = self.lock(checked(session)?)?;
        let name = session.clone();
        let (fence, head) = self
            .writer()
            .run_unsynced(move |connection| take(connection, &name))?;
        Ok(self.owned(fence, head, None, lock))
    }

    fn owned(
        &self,
        fence: Fence,
        head: Seq,
        new: Option<NewSession>,
        lock: SessionLock,
    ) -> OwnedSession {
        OwnedSession {
            store: self.clone(),
            fence,
            at: head.0.into(),
            lost: CancellationToken::new(),
            new: new.map(Arc::new),
            _lock: lock,
        }
    }
}

impl OwnedSession {
    /// Returns the session's id.
    #[must_use]
    pub fn id(&self) -> &SessionId {
        &self.fence.session
    }

    /// Returns the proof of the ownership.
    #[must_use]
    pub fn fence(&self) -> &Fence {
        &self.fence
    }

    /// Returns the journal that the session is part of.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }
}

/// Appends of several sessions that wait at the same time share a commit. After a failed write to
/// the disk nothing is taken any more.
#[async_trait]
impl Journal for OwnedSession {
    fn at(&self) -> Seq {
        Seq(self.at.load(Ordering::Relaxed))
    }

    async fn head(&self) -> Result<Head, AppendError> {
        let (store, session) = (self.store.clone(), self.fence.session.clone());
        let read = spawn_blocking(move || read::head(&store.reader(), &session));
        let read = read.await.map_err(|err| AppendError::Io(err.into()))?;
        let found = read.map_err(|err| AppendError::Io(io::Error::other(err)))?;
        // A session that was begun and has no records has no row either.
        let (head, epoch) = found.unwrap_or((Head::default(), self.fence.epoch));
        if epoch != self.fence.epoch {
            self.lost.cancel();
        }
        Ok(head)
    }

    /// Fires at an append or a reading of the head after the session was taken: only the file knows of that.
    fn lost(&self) -> CancellationToken {
        self.lost.clone()
    }

    fn epoch(&self) -> u64 {
        self.fence.epoch
    }

    async fn append(&self, fence: &Fence, append: Append) -> Result<Seq, AppendError> {
        let commit = &append.commit;
        let acks = !(commit.ack.is_empty() && commit.ack_unedited.is_empty());
        let tell = acks.then(|| self.store.mail_changes().clone());
        let sends = !commit.outbox.is_empty();
        let append = QueuedAppend {
            fence: fence.clone(),
            append,
            new: self.new.clone(),
        };
        let appended = self.store.writer().append(append, tell).await;
        if matches!(appended, Err(AppendError::Fenced { .. })) {
            self.lost.cancel();
        }
        let Head { seq, .. } = appended?;
        if sends {
            self.store.tell_outbox();
        }
        // The writer's thread puts appends in order, and a later one is further on.
        self.at.fetch_max(seq.0, Ordering::Relaxed);
        Ok(seq)
    }
}

/// Refuses ids that no list could show, and no file be named by.
pub(crate) fn checked(session: &SessionId) -> Result<&SessionId, JournalError> {
    check_id(session).map_err(|reason| {
        JournalError::Store(StoreError::BadId {
            id: session.as_str().chars().take(SHOWN_ID_CHARS).collect(),
            reason: reason.to_owned(),
        })
    })?;
    Ok(session)
}

fn take(connection: &mut Connection, session: &SessionId) -> Result<(Fence, Seq), JournalError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let raised = raise(&transaction, session)?;
    let taken = raised.ok_or_else(|| {
        JournalError::Store(StoreError::Unknown {
            session: session.to_string(),
        })
    })?;
    transaction.commit()?;
    Ok(taken)
}

/// Raises the epoch, so that an earlier owner can no longer append; `None` if there is no such session.
fn raise(
    connection: &Connection,
    session: &SessionId,
) -> Result<Option<(Fence, Seq)>, JournalError> {
    let taken: Option<(i64, i64)> = connection
        .prepare_cached(
            "UPDATE sessions SET epoch = epoch + 1
             WHERE name = ?1 AND NOT (epoch = 0 AND head_seq = 0) RETURNING epoch, head_seq",
        )?
        .query_row([session.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    Ok(taken.map(|(epoch, head)| {
        let fence = Fence {
            session: session.clone(),
            epoch: to_u64(epoch),
        };
        (fence, Seq(to_u64(head)))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Durability, Options};

    #[test]
    fn after_a_take_commits_wait_for_the_disk_as_before() {
        for (durability, expected) in [(Durability::Full, 2), (Durability::Normal, 1)] {
            let options = Options {
                durability,
                ..Options::default()
            };
            let dir = tempfile::TempDir::new().unwrap();
            let store = Store::open(dir.path(), options).unwrap();
            drop(store.create(&SessionId::new("a"), TimeMs(1)).unwrap());
            let syncs = store.syncs();
            for taken in ["a", "b"] {
                drop(store.own(&SessionId::new(taken)));
                assert_eq!(store.syncs(), syncs);
            }
            let synchronous = store.writer().run(|connection| {
                let read = |row: &rusqlite::Row<'_>| row.get::<_, i64>(0);
                Ok(connection.pragma_query_value(None, "synchronous", read)?)
            });
            assert_eq!(synchronous.unwrap(), expected);
        }
    }
}
