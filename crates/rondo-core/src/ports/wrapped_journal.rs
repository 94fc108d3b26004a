//! Journals around another one.

use super::journal::{Append, AppendError, Fence, Head, Journal, Seq};
use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

/// A journal around another one, which differs in how it appends: otherwise it is the inner one, what is added to
/// [`Journal`] later included.
#[async_trait]
pub trait WrappedJournal: Send + Sync {
    /// Returns the inner one.
    fn inner(&self) -> &dyn Journal;

    /// Appends in place of [`Journal::append`].
    ///
    /// # Errors
    /// As [`Journal::append`].
    ///
    /// # Cancel safety
    /// As [`Journal::append`].
    async fn append_around(&self, fence: &Fence, append: Append) -> Result<Seq, AppendError>;
}

#[async_trait]
impl<W: WrappedJournal> Journal for W {
    fn at(&self) -> Seq {
        self.inner().at()
    }

    async fn head(&self) -> Result<Head, AppendError> {
        self.inner().head().await
    }

    fn lost(&self) -> CancellationToken {
        self.inner().lost()
    }

    fn epoch(&self) -> u64 {
        self.inner().epoch()
    }

    fn keeps_records(&self) -> bool {
        self.inner().keeps_records()
    }

    async fn append(&self, fence: &Fence, append: Append) -> Result<Seq, AppendError> {
        self.append_around(fence, append).await
    }
}
