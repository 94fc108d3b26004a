//! A model of this crate as a provider of the design.

use super::translate;
use super::types::{AssistantInput, AssistantMessage, AssistantOutput, AssistantRole, LlmProvider};
use async_trait::async_trait;
use futures_util::StreamExt as _;
use rondo_core::Model;
use rondo_core::accumulator::{Accumulator, ReplyBounds};
use rondo_types::ModelRequest;
use rondo_types::{Candidate, Message, ModelError, Reply, Sampling, ToolChoice};
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A model of this crate as a provider of the design: a Gemini endpoint, usually.
///
/// ```
/// use rondo::design::python::ModelProvider;
/// use rondo::{Endpoint, HttpModel, ModelCard};
/// use std::sync::Arc;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut endpoint = Endpoint::new("google", "gemini", "https://generativelanguage.googleapis.com");
/// endpoint.streaming = false;
/// let model = HttpModel::new(&endpoint, ModelCard::new("gemini-2.5-flash"))?;
/// let provider = ModelProvider::new(Arc::new(model));
/// # let _ = provider;
/// # Ok(())
/// # }
/// ```
pub struct ModelProvider {
    model: Arc<dyn Model>,
    /// Latest results, in the original form and in the design's.
    returned: Mutex<VecDeque<RecentReply>>,
}

struct RecentReply {
    shown: AssistantMessage,
    message: Message,
}

/// How many returned messages are remembered by [`ModelProvider::complete`]: more than a question
/// has steps, several times over.
const RETURNED_MAX: usize = 64;

impl ModelProvider {
    /// Takes the model.
    #[must_use]
    pub fn new(model: Arc<dyn Model>) -> Self {
        Self {
            model,
            returned: Mutex::default(),
        }
    }

    fn request(&self, input: AssistantInput) -> ModelRequest {
        ModelRequest {
            model: self.model.info().origin.model,
            system: Vec::from_iter(input.system_instruction).into(),
            messages: self.restored(input.messages),
            tools: Arc::new(translate::specs(input.tools)),
            tool_choice: ToolChoice::Auto,
            sampling: Sampling::default(),
            response_schema: None,
        }
    }

    /// Returns each message as it once came, if it did; as it is written, otherwise.
    ///
    /// Replies may look alike and differ in what is not shown, so the latest of the messages is
    /// taken for the latest of the replies that look so, and so on backwards.
    fn restored(&self, messages: Vec<AssistantMessage>) -> Vec<Arc<Message>> {
        let returned = self.returned();
        let mut unused: Vec<&RecentReply> = returned.iter().collect();
        let placed: Vec<_> = (0..).zip(messages).collect();
        let restored = placed.into_iter().rev().map(|(place, said)| {
            if said.role != AssistantRole::Model {
                return Arc::new(translate::message(said, place));
            }
            let known = unused.iter().rposition(|known| known.shown == said);
            let Some(known) = known.map(|index| unused.remove(index)) else {
                return Arc::new(translate::message(said, place));
            };
            let mut message = known.message.clone();
            translate::name_calls(&mut message, place);
            Arc::new(message)
        });
        let mut restored: Vec<_> = restored.collect();
        restored.reverse();
        restored
    }

    fn remember(&self, candidate: &Candidate) {
        let shown = translate::candidate(candidate).message;
        let origin = self.model.info().origin;
        let message = candidate.clone().into_message(Some(origin));
        let mut returned = self.returned();
        if returned.len() >= RETURNED_MAX {
            returned.pop_front();
        }
        returned.push_back(RecentReply { shown, message });
    }

    fn returned(&self) -> MutexGuard<'_, VecDeque<RecentReply>> {
        let locked = self.returned.lock();
        locked.unwrap_or_else(PoisonError::into_inner)
    }

    async fn reply(&self, request: ModelRequest) -> Result<Reply, ModelError> {
        let mut reply = Accumulator::new(ReplyBounds::default());
        let mut events = self.model.stream(Arc::new(request));
        while let Some(event) = events.next().await {
            reply.push(event?)?;
        }
        Ok(reply.finish())
    }
}

#[async_trait]
impl LlmProvider for ModelProvider {
    async fn complete(&self, input: AssistantInput) -> anyhow::Result<AssistantOutput> {
        let reply = self.reply(self.request(input)).await?;
        reply.candidates.iter().for_each(|it| self.remember(it));
        Ok(translate::output(&reply))
    }

    fn model(&self) -> Option<Arc<dyn Model>> {
        Some(Arc::clone(&self.model))
    }
}

impl fmt::Debug for ModelProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelProvider")
            .field("model", &self.model.info().origin)
            .finish_non_exhaustive()
    }
}
