//! How many bytes a token takes, by what the provider counted: with that a session's layers are fitted.
//!
//! A session keeps the first estimate that is counted. Another one in its middle would cut its layers elsewhere, and what
//! providers have cached of the prompt would be of no use any more.

use crate::chats;
use rondo_context::TokenEstimate;
use rondo_core::compaction::group_bytes;
use rondo_core::ports::{HostRow, HostStore, MailboxError, RecordBody};
use rondo_runtime::context_sizes::tool_bytes;
use rondo_types::{Message, SessionId, Transcript};
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex, PoisonError};

/// The table of the latest counts, by model.
const OF_MODELS: &str = "token_count";
/// The table of the counts that sessions use.
const OF_SESSIONS: &str = "token_count_of_session";

/// A request of so many bytes, and what its provider counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
struct CountedRequest {
    bytes: u64,
    tokens: u64,
}

/// Token counter of a turn, and the corrections that it learns.
pub(crate) struct Calibration {
    session: SessionId,
    model: String,
    counted: CountedRequest,
    /// Set if the session's counter is not stored yet.
    is_new: bool,
    history_bytes: u64,
    /// The bytes of the request that is under way, if all of it is known.
    request: Mutex<Option<u64>>,
}

impl Calibration {
    /// Reads the calibration of a session: its beginning, and the latest count of the model.
    ///
    /// # Errors
    /// When the storage fails.
    pub(crate) async fn of(
        store: &dyn HostStore,
        session: &SessionId,
        model: Option<&str>,
        history: &[Arc<Message>],
    ) -> Result<Self, MailboxError> {
        let model = model.unwrap_or_default().to_owned();
        let own: Option<CountedRequest> = chats::read(store, OF_SESSIONS, session.as_str()).await?;
        let own = own.filter(|it| it.tokens > 0);
        let counted = match own {
            Some(counted) => Some(counted),
            None => chats::read(store, OF_MODELS, &model).await?,
        };
        Ok(Self {
            session: session.clone(),
            model,
            counted: counted.unwrap_or_default(),
            is_new: own.is_none(),
            history_bytes: bytes_of(&history.to_vec()),
            request: Mutex::default(),
        })
    }

    /// Returns the estimate with which the layers of the session are fitted.
    pub(crate) fn estimate(&self) -> TokenEstimate {
        TokenEstimate::calibrated(self.counted.bytes, self.counted.tokens)
    }

    /// Takes a record of the turn, and returns what is noted with it.
    pub(crate) fn take(&self, body: &RecordBody) -> Option<HostRow> {
        let mut request = self.request.lock().unwrap_or_else(PoisonError::into_inner);
        match body {
            RecordBody::TurnStarted { .. } if self.is_new && self.counted.tokens > 0 => {
                Some(row(OF_SESSIONS, self.session.as_str(), self.counted))
            }
            // It is recorded if it is another one than before, such as in the first turn of a session.
            RecordBody::TurnEnvironment { system, tools, .. } => {
                let system: usize = system.iter().map(String::len).sum();
                let bytes = u64::try_from(system + tool_bytes(tools)).unwrap_or(u64::MAX);
                *request = Some(bytes.saturating_add(self.history_bytes));
                None
            }
            RecordBody::UserMessage { message } => {
                let bytes = bytes_of(&vec![Arc::new(message.clone())]);
                *request = request.map(|it| it.saturating_add(bytes));
                None
            }
            RecordBody::ModelRequested { model, .. } => {
                // Another model counts otherwise.
                request.take_if(|_| !self.model.is_empty() && *model != self.model);
                None
            }
            RecordBody::ModelReplied { reply } => {
                let tokens = reply.usage?.input;
                let counted = request
                    .take()
                    .map(|bytes| CountedRequest { bytes, tokens })?;
                (counted != self.counted).then(|| row(OF_MODELS, &self.model, counted))
            }
            _ => None,
        }
    }
}

fn bytes_of(messages: &Transcript) -> u64 {
    group_bytes(messages).iter().sum()
}

fn row(table: &'static str, key: &str, counted: CountedRequest) -> HostRow {
    // A struct of numbers can be written.
    HostRow::set(
        table,
        key,
        serde_json::to_string(&counted).unwrap_or_default(),
    )
}
