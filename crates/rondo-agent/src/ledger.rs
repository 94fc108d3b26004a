//! A session's journal that completes appends even when their turn is dropped.

use async_trait::async_trait;
use rondo_core::Journal;
use rondo_core::ports::{AppendError, Commit, Fence, Record, Seq, WrappedJournal};
use std::io;
use std::panic::resume_unwind;
use std::sync::Arc;
use tokio::sync::Mutex;

/// A session's journal that completes an append even when its turn is dropped. Otherwise the append
/// could still take effect while the next turn starts, which would not expect its records.
pub(crate) struct Ledger {
    journal: Arc<dyn Journal>,
    appending: Arc<Mutex<()>>,
}

impl Ledger {
    pub(crate) fn new(journal: Arc<dyn Journal>) -> Self {
        Self {
            journal,
            appending: Arc::default(),
        }
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

    async fn append_around(
        &self,
        fence: &Fence,
        expected: Seq,
        batch: Vec<Record>,
        commit: Commit,
    ) -> Result<Seq, AppendError> {
        let place = Arc::clone(&self.appending).lock_owned().await;
        let (journal, fence) = (Arc::clone(&self.journal), fence.clone());
        let append = tokio::spawn(async move {
            let appended = journal.append(&fence, expected, batch, commit).await;
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
