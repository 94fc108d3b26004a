//! A journal that remembers whether it failed.

use async_trait::async_trait;
use rondo_core::Journal;
use rondo_core::ports::{Append, AppendError, Fence, Seq, WrappedJournal, settled};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A journal that remembers whether it failed, for the exit code.
pub struct WatchedJournal {
    inner: Arc<dyn Journal>,
    failed: AtomicBool,
}

impl WatchedJournal {
    pub fn new(inner: Arc<dyn Journal>) -> Self {
        Self {
            inner,
            failed: AtomicBool::new(false),
        }
    }

    /// Returns whether something was not recorded.
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl WrappedJournal for WatchedJournal {
    fn inner(&self) -> &dyn Journal {
        &*self.inner
    }

    async fn append_around(&self, fence: &Fence, append: Append) -> Result<Seq, AppendError> {
        // What is dropped on its way counts as failed.
        self.failed.store(true, Ordering::Relaxed);
        let appended = self.inner.append(fence, append).await;
        let appended = settled(self.inner.as_ref(), appended).await?;
        self.failed.store(false, Ordering::Relaxed);
        Ok(appended)
    }
}
