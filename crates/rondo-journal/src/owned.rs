use crate::entry::ChainHash;
use crate::error::StoreError;
use crate::lock::{self, SessionLock};
use crate::store::Store;
use crate::writer::{to_i64, to_u64};
use rondo_core::ports::{AppendError, Fence, Record, Seq};
use rondo_types::{SessionId, TimeMs};
use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior};

/// Bytes of a session's id.
const ID_BYTES_MAX: usize = 128;

/// A session that this process may append to, until this is dropped.
///
/// Held twice over: by a lock of the kernel, which no crash leaves behind, and by an epoch in the
/// file, which refuses a writer that lost the session without noticing.
#[derive(Debug)]
pub struct OwnedSession {
    store: Store,
    fence: Fence,
    head: Seq,
    _lock: SessionLock,
}

impl Store {
    /// Begins a session and owns it.
    ///
    /// # Errors
    /// When there is one of that id, or another process just begins it, or the disk fails.
    pub fn create(&self, session: &SessionId, at: TimeMs) -> Result<OwnedSession, StoreError> {
        let lock = lock::lock(&self.locks_dir(), &checked(session)?)?;
        let name = session.clone();
        let fence = self
            .writer()
            .run(move |connection| create(connection, &name, at))?;
        Ok(self.owned(fence, Seq(0), lock))
    }

    /// Owns a session that exists, after its owner let it go or ended.
    ///
    /// # Errors
    /// When another process owns it, when there is none of that id, or when the disk fails.
    pub fn own(&self, session: &SessionId) -> Result<OwnedSession, StoreError> {
        let lock = lock::lock(&self.locks_dir(), &checked(session)?)?;
        let name = session.clone();
        let (fence, head) = self
            .writer()
            .run(move |connection| take(connection, &name))?;
        Ok(self.owned(fence, head, lock))
    }

    fn owned(&self, fence: Fence, head: Seq, lock: SessionLock) -> OwnedSession {
        OwnedSession {
            store: self.clone(),
            fence,
            head,
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

    /// Returns what proves the ownership.
    #[must_use]
    pub fn fence(&self) -> &Fence {
        &self.fence
    }

    /// Returns the place of the last record at the time the session was taken.
    #[must_use]
    pub fn head_at_start(&self) -> Seq {
        self.head
    }

    /// Appends records behind `expected`, all or none, and returns the last one's place after the
    /// commit.
    ///
    /// Appends of several sessions that wait at the same time share a commit.
    ///
    /// # Errors
    /// When the session was taken over, when `expected` is not its last record, when the disk is
    /// full or fails. After a failed write to the disk nothing is taken any more.
    ///
    /// # Cancel safety
    /// Not cancel safe: a dropped append may or may not have happened.
    pub async fn append(&self, expected: Seq, batch: Vec<Record>) -> Result<Seq, AppendError> {
        self.store
            .writer()
            .append(&self.fence, expected, batch)
            .await
    }
}

fn checked(session: &SessionId) -> Result<SessionId, StoreError> {
    let id = session.as_str();
    if id.is_empty() || id.len() > ID_BYTES_MAX {
        return Err(StoreError::Unknown {
            session: id.chars().take(ID_BYTES_MAX).collect(),
        });
    }
    Ok(session.clone())
}

fn create(
    connection: &mut Connection,
    session: &SessionId,
    at: TimeMs,
) -> Result<Fence, StoreError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let inserted = transaction.execute(
        "INSERT OR IGNORE INTO sessions (name, created_ms, updated_ms, epoch, head_seq, head_hash)
         VALUES (?1, ?2, ?2, 1, 0, ?3)",
        (session.as_str(), to_i64(at.0), ChainHash::GENESIS.0),
    )?;
    if inserted == 0 {
        return Err(StoreError::Exists {
            session: session.clone(),
        });
    }
    transaction.commit()?;
    Ok(Fence {
        session: session.clone(),
        epoch: 1,
    })
}

/// Raises the epoch, so that an owner of before can no longer append.
fn take(connection: &mut Connection, session: &SessionId) -> Result<(Fence, Seq), StoreError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let taken: Option<(i64, i64)> = transaction
        .query_row(
            "UPDATE sessions SET epoch = epoch + 1 WHERE name = ?1 RETURNING epoch, head_seq",
            [session.as_str()],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .optional()?;
    let Some((epoch, head)) = taken else {
        return Err(StoreError::Unknown {
            session: session.to_string(),
        });
    };
    transaction.commit()?;
    let fence = Fence {
        session: session.clone(),
        epoch: to_u64(epoch),
    };
    Ok((fence, Seq(to_u64(head))))
}
