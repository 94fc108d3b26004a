//! The models that the latest turn of a session asked.

use crate::error::Result;
use rondo_core::ports::{RecordBody, Seq};
use rondo_journal::{Entry, SessionInfo, Store};

/// Records that are held at a time.
const PAGE_RECORDS: usize = 256;
/// The kind of a turn's first record.
const TURN_STARTED: &str = "turn_started";

/// Whom the latest turn of a session asked.
#[derive(Debug, PartialEq, Eq)]
pub struct LastAsked {
    /// As `provider/model`, in order: never none.
    pub models: Vec<String>,
    /// Their addresses, in the same order, as far as they are recorded; empty for one in this process.
    pub addresses: Vec<String>,
    /// Whether a file told of the session, so that its author is unknown.
    pub is_imported: bool,
}

impl LastAsked {
    /// Looks for it from the session's end on; none where no turn began, or an older version recorded
    /// none.
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
