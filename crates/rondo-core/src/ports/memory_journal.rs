//! Journals in memory, for tests and for sessions that leave nothing behind. They have no mailbox and no outbox: mail,
//! and what is sent, go through an engine, which may be in memory as a whole.

use super::journal::{Append, AppendError, ChainHash, Fence, Head, Journal, Record, Seq};
use async_trait::async_trait;
use sha2::{Digest as _, Sha256};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio_util::sync::CancellationToken;

/// Keeps nothing but the count of what is appended all the same: for turns of which nothing need be left but their outcome.
#[derive(Debug, Default)]
pub struct NoJournal {
    head: AtomicU64,
}

#[async_trait]
impl Journal for NoJournal {
    fn at(&self) -> Seq {
        Seq(self.head.load(Ordering::Relaxed))
    }

    /// The hash is always the first one: there are no records.
    async fn head(&self) -> Result<Head, AppendError> {
        let seq = self.at();
        let hash = ChainHash::GENESIS;
        Ok(Head { seq, hash })
    }

    fn lost(&self) -> CancellationToken {
        CancellationToken::new()
    }

    fn keeps_records(&self) -> bool {
        false
    }

    async fn append(&self, _: &Fence, append: Append) -> Result<Seq, AppendError> {
        let expected = append.expected;
        let new = expected.0.saturating_add(append.batch.len() as u64);
        let order = Ordering::Relaxed;
        match self.head.compare_exchange(expected.0, new, order, order) {
            Ok(_) => Ok(Seq(new)),
            Err(actual) => Err(AppendError::Conflict {
                expected,
                actual: Seq(actual),
            }),
        }
    }
}

/// Keeps the records of one session in memory, for tests and for `--ephemeral` sessions.
///
/// Holds at most [`MemoryJournal::RECORDS_MAX`] records, then refuses as a full disk would.
#[derive(Debug)]
pub struct MemoryJournal {
    shared: Arc<Mutex<Shared>>,
    epoch: u64,
    lost: CancellationToken,
}

#[derive(Debug, Default)]
struct Shared {
    records: Vec<Record>,
    /// The owner's.
    epoch: u64,
    /// Fires when the owner is replaced.
    owner: CancellationToken,
    /// The hash of so many records.
    hashed: (usize, ChainHash),
}

impl MemoryJournal {
    /// The bound on records.
    pub const RECORDS_MAX: usize = 100_000;

    /// Holds records from before.
    #[must_use]
    pub fn with_records(records: Vec<Record>) -> Self {
        let shared = Shared {
            records,
            ..Shared::default()
        };
        Self {
            epoch: shared.epoch,
            lost: shared.owner.clone(),
            shared: Arc::new(Mutex::new(shared)),
        }
    }

    /// Returns a new owner of the same records, as another process would become it. This one can append no more.
    #[must_use]
    pub fn taken_over(&self) -> Self {
        let mut shared = self.shared();
        shared.epoch += 1;
        std::mem::take(&mut shared.owner).cancel();
        Self {
            shared: Arc::clone(&self.shared),
            epoch: shared.epoch,
            lost: shared.owner.clone(),
        }
    }

    /// Returns a copy of all records.
    #[must_use]
    pub fn records(&self) -> Vec<Record> {
        self.shared().records.clone()
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for MemoryJournal {
    fn default() -> Self {
        Self::with_records(Vec::new())
    }
}

impl Shared {
    fn at(&self) -> Seq {
        Seq(u64::try_from(self.records.len()).unwrap_or(u64::MAX))
    }

    /// Continues with the hash from the last record for which it was asked.
    fn head(&mut self) -> Result<Head, serde_json::Error> {
        let (count, mut hash) = self.hashed;
        for record in self.records.iter().skip(count) {
            let mut digest = Sha256::new_with_prefix(hash.0);
            digest.update(serde_json::to_vec(record)?);
            hash = ChainHash(digest.finalize().into());
        }
        self.hashed = (self.records.len(), hash);
        let seq = self.at();
        Ok(Head { seq, hash })
    }
}

#[async_trait]
impl Journal for MemoryJournal {
    fn at(&self) -> Seq {
        self.shared().at()
    }

    async fn head(&self) -> Result<Head, AppendError> {
        let head = self.shared().head();
        head.map_err(|err| AppendError::Io(err.into()))
    }

    fn lost(&self) -> CancellationToken {
        self.lost.clone()
    }

    fn epoch(&self) -> u64 {
        self.epoch
    }

    async fn append(&self, fence: &Fence, append: Append) -> Result<Seq, AppendError> {
        let Append {
            expected, batch, ..
        } = append;
        let mut shared = self.shared();
        if fence.epoch != shared.epoch {
            let session = fence.session.clone();
            return Err(AppendError::Fenced { session });
        }
        let actual = shared.at();
        if actual != expected {
            return Err(AppendError::Conflict { expected, actual });
        }
        if shared.records.len() + batch.len() > Self::RECORDS_MAX {
            return Err(AppendError::Full);
        }
        shared.records.extend(batch);
        Ok(shared.at())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::RecordBody;
    use rondo_types::{SessionId, TimeMs, TurnId};

    #[tokio::test]
    async fn what_keeps_nothing_counts_all_the_same() {
        let journal = NoJournal::default();
        let fence = Fence {
            session: SessionId::new("s"),
            epoch: 0,
        };
        let record = Record {
            turn: TurnId::new("t"),
            step: 0,
            at_ms: TimeMs(1),
            body: RecordBody::Cancelled,
        };
        let batch = vec![record.clone(), record.clone()];
        let at = journal
            .append(&fence, Append::new(Seq(0), batch))
            .await
            .unwrap();
        assert_eq!((at, journal.at()), (Seq(2), Seq(2)));
        let refused = journal
            .append(&fence, Append::new(Seq(1), vec![record]))
            .await;
        assert!(matches!(
            refused,
            Err(AppendError::Conflict { actual: Seq(2), .. })
        ));
    }

    #[tokio::test]
    async fn who_is_replaced_is_told_and_the_hash_covers_all_records() {
        let fence = |journal: &MemoryJournal| Fence {
            session: SessionId::new("s"),
            epoch: journal.epoch(),
        };
        let record = |text: &str| Record {
            turn: TurnId::new(text),
            step: 0,
            at_ms: TimeMs(1),
            body: RecordBody::Cancelled,
        };
        let first = MemoryJournal::default();
        assert_eq!(first.head().await.unwrap(), Head::default());
        let batch = vec![record("a")];
        first
            .append(&fence(&first), Append::new(Seq(0), batch))
            .await
            .unwrap();
        let one = first.head().await.unwrap();
        let (lost, second) = (first.lost(), first.taken_over());
        assert!(lost.is_cancelled() && !second.lost().is_cancelled());
        let batch = vec![record("b")];
        second
            .append(&fence(&second), Append::new(Seq(1), batch))
            .await
            .unwrap();
        let two = second.head().await.unwrap();
        assert_ne!(one.hash, two.hash);
        let of = |records| MemoryJournal::with_records(records);
        let again = of(vec![record("a"), record("b")]);
        assert_eq!(again.head().await.unwrap(), two);
        let other = of(vec![record("x"), record("b")]).head().await.unwrap();
        assert_eq!(other.seq, two.seq);
        assert_ne!(other.hash, two.hash);
    }
}
