//! Changes that a host makes durable together with a turn's records, such as the reply that is sent.

use async_trait::async_trait;
use rondo_core::Journal;
use rondo_core::ports::{Append, AppendError, Fence, Record, RecordBody, Seq, WrappedJournal};
use rondo_types::Commit;
use std::sync::Arc;

/// Source of the changes that become durable together with records of a turn.
#[async_trait]
pub trait CommitSource: Send + Sync {
    /// Adds to what is committed with these records. Called once for each batch, before it is appended; called again for
    /// records that a failed append did not make durable.
    fn add(&self, batch: &[Record], commit: &mut Commit);

    /// Awaited once it is durable that a model is asked, before it is: a turn that does not get any further continues from
    /// there in the next process, and loses nothing.
    async fn before_request(&self) {}
}

/// A journal whose appends carry what a [`CommitSource`] adds.
pub(crate) struct SendingJournal {
    inner: Arc<dyn Journal>,
    source: Arc<dyn CommitSource>,
}

impl SendingJournal {
    pub(crate) fn new(inner: Arc<dyn Journal>, source: Arc<dyn CommitSource>) -> Self {
        Self { inner, source }
    }
}

#[async_trait]
impl WrappedJournal for SendingJournal {
    fn inner(&self) -> &dyn Journal {
        &*self.inner
    }

    async fn append_around(&self, fence: &Fence, append: Append) -> Result<Seq, AppendError> {
        let mut append = append;
        self.source.add(&append.batch, &mut append.commit);
        let asks = append.batch.iter().any(is_request);
        let appended = self.inner.append(fence, append).await;
        if asks {
            self.source.before_request().await;
        }
        appended
    }
}

fn is_request(record: &Record) -> bool {
    matches!(record.body, RecordBody::ModelRequested { .. })
}
