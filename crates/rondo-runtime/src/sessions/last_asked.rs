//! The models of the latest turn of a session.

use crate::error::Result;
use rondo_core::ports::{Entry, RecordBody, Seq};
use rondo_core::session_store::SessionInfo;
use rondo_core::storage::Store;

/// Records that are held at a time.
const PAGE_RECORDS: usize = 256;
/// The kind of a turn's first record.
const TURN_STARTED: &str = "turn_started";

/// The models that the latest turn of a session was started with.
#[derive(Debug, PartialEq, Eq)]
pub struct LatestModels {
    /// Their names as `provider/model`, in order; never empty.
    pub models: Vec<String>,
    /// Their addresses, in the same order, as far as recorded; empty for a model that ran in the process.
    pub addresses: Vec<String>,
    /// Set if the session was imported from a file, whose author is unknown.
    pub is_imported: bool,
}

impl LatestModels {
    /// Finds it by reading the session backwards; `None` if no turn has started, or an older version recorded
    /// no models.
    ///
    /// # Errors
    /// When the records cannot be read.
    pub fn last(store: &Store, info: &SessionInfo) -> Result<Option<Self>> {
        let mut end = info.head.0;
        while end > 0 {
            let first = end.saturating_sub(PAGE_RECORDS as u64) + 1;
            let count = usize::try_from(end + 1 - first).unwrap_or(PAGE_RECORDS);
            let page = store.read(&info.id, Seq(first), count)?;
            let began = page.into_iter().rfind(|it| it.kind() == TURN_STARTED);
            if let Some(began) = began {
                return Ok(Self::of(began, info.imported));
            }
            end = first - 1;
        }
        Ok(None)
    }

    fn of(began: Entry, is_imported: bool) -> Option<Self> {
        match began.into_record()?.body {
            RecordBody::TurnStarted {
                models, addresses, ..
            } if !models.is_empty() => Some(Self {
                models,
                addresses,
                is_imported,
            }),
            _ => None,
        }
    }
}
