//! A journal that remembers whether it failed.

use async_trait::async_trait;
use rondo_core::Journal;
use rondo_core::ports::{AppendError, Commit, Fence, Record, Seq};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A journal that remembers whether it failed, for the exit code.
pub struct Watched {
    inner: Arc<dyn Journal>,
    failed: AtomicBool,
}

impl Watched {
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
impl Journal for Watched {
    fn head(&self) -> Seq {
        self.inner.head()
    }

    fn epoch(&self) -> u64 {
        self.inner.epoch()
    }

    async fn append(
        &self,
        fence: &Fence,
        expected: Seq,
        batch: Vec<Record>,
        commit: Commit,
    ) -> Result<Seq, AppendError> {
        // What is dropped on its way counts as failed.
        self.failed.store(true, Ordering::Relaxed);
        let appended = self.inner.append(fence, expected, batch, commit).await?;
        self.failed.store(false, Ordering::Relaxed);
        Ok(appended)
    }
}
