//! A journal that remembers whether it failed.

use async_trait::async_trait;
use rondo_core::Journal;
use rondo_core::ports::{AppendError, Commit, Fence, Head, Record, Seq, settled};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio_util::sync::CancellationToken;

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
    fn at(&self) -> Seq {
        self.inner.at()
    }

    async fn head(&self) -> Result<Head, AppendError> {
        self.inner.head().await
    }

    fn lost(&self) -> CancellationToken {
        self.inner.lost()
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
        let appended = self.inner.append(fence, expected, batch, commit).await;
        let appended = settled(self.inner.as_ref(), appended).await?;
        self.failed.store(false, Ordering::Relaxed);
        Ok(appended)
    }
}
