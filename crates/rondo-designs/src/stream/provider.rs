//! The provider of the design, and models of this crate as one.

use super::accumulator::{LlmEvent, StreamAccumulator};
use super::{FaeLlmError, FinishReason, Message, ToolDefinition};
use async_trait::async_trait;
use futures_util::stream::{self, BoxStream};
use futures_util::{StreamExt as _, TryStreamExt as _};
use rondo_core::{Model, ModelStream};
use rondo_types::{
    ErrorClass, ModelError, ModelEvent, ModelInfo, ModelRequest, Origin, Sampling, ToolChoice,
};
use std::collections::HashMap;
use std::sync::Arc;

/// The events of one reply.
pub type LlmEventStream = BoxStream<'static, LlmEvent>;

/// Sends one request and streams its reply; it decides nothing.
///
/// Every model of this crate is one, such as `HttpModel`.
///
/// ```
/// use rondo::async_trait;
/// use rondo::design::stream::{
///     FaeLlmError, FinishReason, LlmEvent, LlmEventStream, Message, ProviderAdapter, ToolDefinition,
/// };
///
/// /// Says how many messages it was sent.
/// struct Counts;
///
/// #[async_trait]
/// impl ProviderAdapter for Counts {
///     async fn send(
///         &self,
///         _system_prompt: Option<&str>,
///         messages: &[Message],
///         _tools: &[ToolDefinition],
///     ) -> Result<LlmEventStream, FaeLlmError> {
///         let text = format!("{} messages", messages.len());
///         let events = [
///             LlmEvent::TextDelta { text },
///             LlmEvent::StreamEnd { finish_reason: FinishReason::Stop },
///         ];
///         Ok(Box::pin(futures_util::stream::iter(events)))
///     }
/// }
/// ```
#[async_trait]
pub trait ProviderAdapter: Send + Sync {
    /// Sends one request. The loop folds the events by [`StreamAccumulator`], and keeps the time of the whole reply.
    ///
    /// # Errors
    /// When there is no reply. The message is part of the result, so it must not hold keys.
    ///
    /// # Cancel safety
    /// Dropped when the request's time is over, or the run is cancelled; so is the stream.
    async fn send(
        &self,
        system_prompt: Option<&str>,
        messages: &[Message],
        tools: &[ToolDefinition],
    ) -> Result<LlmEventStream, FaeLlmError>;

    /// Returns the model of this crate behind it, if there is one. A run then asks that, so that what a provider wants
    /// back unchanged is kept, for which the design's events have no place.
    fn into_model(self: Arc<Self>) -> Option<Arc<dyn Model>> {
        None
    }
}

#[async_trait]
impl<M: Model + 'static> ProviderAdapter for M {
    async fn send(
        &self,
        system_prompt: Option<&str>,
        messages: &[Message],
        tools: &[ToolDefinition],
    ) -> Result<LlmEventStream, FaeLlmError> {
        let request = ModelRequest {
            model: self.info().origin.model,
            system: Vec::from_iter(system_prompt.map(str::to_owned)).into(),
            messages: messages.iter().cloned().map(Arc::new).collect(),
            tools: Arc::new(tools.to_vec()),
            tool_choice: ToolChoice::Auto,
            sampling: Sampling::default(),
            response_schema: None,
        };
        let mut calls = HashMap::new();
        let events = self.stream(Arc::new(request));
        let events = events.filter_map(move |event| {
            let event = match event {
                Ok(event) => told(event, &mut calls),
                Err(error) => Some(LlmEvent::StreamError {
                    error: error.to_string(),
                }),
            };
            std::future::ready(event)
        });
        Ok(Box::pin(events))
    }

    fn into_model(self: Arc<Self>) -> Option<Arc<dyn Model>> {
        Some(self)
    }
}

/// Returns an event of a model in the design's words, if it has any for it. Of several candidates the first counts.
fn told(event: ModelEvent, calls: &mut HashMap<u32, String>) -> Option<LlmEvent> {
    Some(match event {
        ModelEvent::TextDelta { candidate: 0, text } => LlmEvent::TextDelta { text },
        ModelEvent::ReasoningDelta { candidate: 0, text } => LlmEvent::ThinkingDelta { text },
        ModelEvent::ToolCallStarted {
            candidate: 0,
            call,
            wire_id,
            name: function_name,
        } => {
            let call_id = wire_id.unwrap_or_else(|| format!("call_{call}"));
            calls.insert(call, call_id.clone());
            LlmEvent::ToolCallStart {
                call_id,
                function_name,
            }
        }
        ModelEvent::ToolCallDelta {
            call,
            arguments: args_fragment,
        } => LlmEvent::ToolCallArgsDelta {
            call_id: calls.get(&call)?.clone(),
            args_fragment,
        },
        ModelEvent::ToolCallFinished { call, .. } => LlmEvent::ToolCallEnd {
            call_id: calls.remove(&call)?,
        },
        ModelEvent::Usage(usage) => LlmEvent::Usage(usage),
        ModelEvent::Finished {
            candidate: 0,
            reason: finish_reason,
            ..
        } => LlmEvent::StreamEnd { finish_reason },
        ModelEvent::PromptBlocked { .. } => LlmEvent::StreamEnd {
            finish_reason: FinishReason::ContentFilter,
        },
        _ => return None,
    })
}

/// A provider of the design as a model of ours: the accumulator folds its events, and they feed the loop.
pub(super) struct ProviderModel(pub(super) Arc<dyn ProviderAdapter>);

impl Model for ProviderModel {
    fn info(&self) -> ModelInfo {
        let provider = || "provider".to_owned();
        ModelInfo {
            origin: Origin {
                dialect: provider(),
                provider: provider(),
                model: provider(),
            },
            streaming: true,
            price: None,
            context_tokens: None,
        }
    }

    fn stream(&self, request: Arc<ModelRequest>) -> ModelStream {
        let provider = Arc::clone(&self.0);
        let opened = async move {
            let system = request.system.join("\n\n");
            let system = Some(system.as_str()).filter(|text| !text.is_empty());
            let messages = request.messages.iter().map(|it| Message::clone(it));
            let messages: Vec<Message> = messages.collect();
            let sent = provider.send(system, &messages, &request.tools).await;
            let mut reply = StreamAccumulator::new();
            let events = sent
                .map_err(|error| model_error(&error))?
                .map(move |event| {
                    let folded = reply.fold(event);
                    folded.map_err(|error| model_error(&error)).transpose()
                });
            Ok(events.filter_map(std::future::ready))
        };
        Box::pin(stream::once(opened).try_flatten())
    }
}

/// Error of a provider, in the loop's terms.
fn model_error(error: &FaeLlmError) -> ModelError {
    let class = match error {
        FaeLlmError::TimeoutError(_) => ErrorClass::FirstByteTimeout,
        FaeLlmError::ConfigError(_) | FaeLlmError::RequestError(_) => ErrorClass::BadRequest,
        FaeLlmError::Cancelled(_) => ErrorClass::Cancelled,
        _ => ErrorClass::Server,
    };
    ModelError::new(class, error.to_string())
}
