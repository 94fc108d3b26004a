//! A session's journal that completes appends even when their turn is dropped, and knows what the turn has recorded.

use async_trait::async_trait;
use rondo_core::Journal;
use rondo_core::ports::{Append, AppendError, Fence, Record, RecordBody, Seq, WrappedJournal};
use std::io;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, MutexGuard, PoisonError};
use tokio::sync::Mutex;

/// A session's journal that completes an append even when its turn is dropped. Otherwise the append
/// could still take effect while the next turn starts, which would not expect its records.
///
/// It keeps the records of the turn that runs, so that a turn that is dropped or parked is not lost.
pub(crate) struct Ledger {
    journal: Arc<dyn Journal>,
    appending: Arc<Mutex<()>>,
    turn: Arc<std::sync::Mutex<Vec<Record>>>,
    is_left: AtomicBool,
}

impl Ledger {
    pub(crate) fn new(journal: Arc<dyn Journal>) -> Self {
        Self {
            journal,
            appending: Arc::default(),
            turn: Arc::default(),
            is_left: AtomicBool::new(false),
        }
    }

    /// Marks the turn as unfinished and run by no process.
    pub(crate) fn leave_turn(&self) {
        self.is_left.store(true, Ordering::Release);
    }

    /// Returns whether the turn was left and is not over.
    pub(crate) fn has_left_turn(&self) -> bool {
        self.is_left.load(Ordering::Acquire) && !turn(&self.turn).is_empty()
    }

    /// Takes the records of the turn that was left; `None` if it was not, or was over by then.
    pub(crate) fn take_left_turn(&self) -> Option<Vec<Record>> {
        let is_left = self.is_left.swap(false, Ordering::AcqRel);
        let records = std::mem::take(&mut *turn(&self.turn));
        (is_left && !records.is_empty()).then_some(records)
    }

    /// Adds the usage in the records of a resumed turn.
    pub(crate) fn resume_turn(&self, records: &[Record]) {
        *turn(&self.turn) = records.to_vec();
    }

    /// Waits for the append that a dropped turn left running.
    pub(crate) async fn settled(&self) {
        drop(self.appending.lock().await);
    }
}

#[async_trait]
impl WrappedJournal for Ledger {
    fn inner(&self) -> &dyn Journal {
        &*self.journal
    }

    async fn append_around(&self, fence: &Fence, append: Append) -> Result<Seq, AppendError> {
        let place = Arc::clone(&self.appending).lock_owned().await;
        let (journal, fence) = (Arc::clone(&self.journal), fence.clone());
        let records = Arc::clone(&self.turn);
        let append = tokio::spawn(async move {
            let kept = journal.keeps_records().then(|| append.batch.clone());
            let appended = journal.append(&fence, append).await;
            if appended.is_ok() {
                note(&records, kept.unwrap_or_default());
            }
            // Released before the lock, so that a caller that waits for the lock can reopen the session.
            drop(journal);
            drop(place);
            appended
        });
        match append.await {
            Ok(appended) => appended,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => resume_unwind(panic),
                Err(_) => Err(AppendError::Io(io::Error::other(
                    "the runtime was shut down",
                ))),
            },
        }
    }
}

/// Adds records to those of the turn that runs.
fn note(records: &std::sync::Mutex<Vec<Record>>, batch: Vec<Record>) {
    let mut kept = turn(records);
    for record in batch {
        match &record.body {
            RecordBody::Final { .. } => kept.clear(),
            RecordBody::TurnStarted { .. } => *kept = vec![record],
            _ if record.body.is_of_turn() && !kept.is_empty() => kept.push(record),
            _ => {}
        }
    }
}

fn turn(records: &std::sync::Mutex<Vec<Record>>) -> MutexGuard<'_, Vec<Record>> {
    records.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rondo_core::ports::NoJournal;

    #[test]
    fn a_journal_that_keeps_no_records_keeps_none_in_here() {
        let ledger = Ledger::new(Arc::new(NoJournal::default()));
        assert!(!ledger.keeps_records());
    }
}
