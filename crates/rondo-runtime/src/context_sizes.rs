//! How much of a model's context the parts of a session's latest request take.

use crate::error::Result;
use crate::sessions;
use rondo_context::TokenEstimate;
use rondo_core::compaction::group_bytes;
use rondo_core::ports::{Entry, RecordBody, Seq};
use rondo_core::session_store::SessionInfo;
use rondo_core::storage::Store;
use rondo_types::{ToolSpec, Usage};
use std::sync::Arc;

/// Records that are read at once.
const PAGE: usize = 512;

/// The sizes of the parts of a session's requests, in bytes of text.
#[derive(Debug, Clone, Default)]
pub struct ContextSizes {
    /// The blocks of the system prompt, in order.
    pub system: Vec<String>,
    /// The tools on offer.
    pub tools: Arc<Vec<ToolSpec>>,
    /// Messages of the history.
    pub messages: usize,
    /// The groups of the history, the oldest first: a user's message with all that follows it.
    pub groups: Vec<u64>,
    /// The provider's counts for the latest request; `None` if there were none.
    pub reported: Option<Usage>,
}

impl ContextSizes {
    /// Reads them from a session's records; `None` if it never asked a model.
    ///
    /// # Errors
    /// When the records cannot be read.
    pub fn of(store: &Store, info: &SessionInfo) -> Result<Option<Self>> {
        let mut sizes = Self::default();
        let mut from = Seq(1);
        loop {
            let page = store.read(&info.id, from, PAGE).map_err(sessions::failed)?;
            let is_last = page.len() < PAGE;
            for record in page.into_iter().filter_map(Entry::into_record) {
                sizes.take(record.body);
            }
            if is_last {
                break;
            }
            from = Seq(from.0 + u64::try_from(PAGE).unwrap_or(u64::MAX));
        }
        let history = store.history(&info.id).map_err(sessions::failed)?;
        let transcript = history.transcript();
        sizes.messages = transcript.len();
        sizes.groups = group_bytes(&transcript);
        let has_asked = !sizes.system.is_empty() || sizes.messages > 0;
        Ok(has_asked.then_some(sizes))
    }

    fn take(&mut self, body: RecordBody) {
        match body {
            RecordBody::TurnEnvironment { system, tools, .. } => {
                self.system = Arc::unwrap_or_clone(system);
                self.tools = tools;
            }
            RecordBody::ModelReplied { reply } => self.reported = reply.usage.or(self.reported),
            _ => {}
        }
    }

    /// Returns the bytes of the tools as the model reads them.
    #[must_use]
    pub fn tool_bytes(&self) -> usize {
        tool_bytes(&self.tools)
    }

    /// Returns the bytes of the history.
    #[must_use]
    pub fn history_bytes(&self) -> usize {
        usize::try_from(self.groups.iter().sum::<u64>()).unwrap_or(usize::MAX)
    }

    /// Returns the bytes of all of it.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let system: usize = self.system.iter().map(String::len).sum();
        system + self.tool_bytes() + self.history_bytes()
    }

    /// Returns how many bytes a token takes, by what the provider counted of the latest request.
    #[must_use]
    pub fn estimate(&self) -> TokenEstimate {
        let bytes = u64::try_from(self.bytes()).unwrap_or(u64::MAX);
        self.reported.map_or_else(TokenEstimate::default, |it| {
            TokenEstimate::calibrated(bytes, it.input)
        })
    }
}

/// Returns the bytes of tools as a model reads them.
#[must_use]
pub fn tool_bytes(tools: &[ToolSpec]) -> usize {
    let bytes = tools
        .iter()
        .map(|it| it.name.len() + it.description.len() + it.parameters.to_string().len());
    bytes.sum()
}
