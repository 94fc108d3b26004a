//! The provider of the design, and models of this crate as one.

use super::ToolDefinition;
use super::translate;
use super::types::{LlmMessage, LlmResponse};
use async_trait::async_trait;
use futures_util::{StreamExt as _, stream};
use rondo_core::accumulator::{Accumulator, ReplyBounds};
use rondo_core::{Model, ModelStream};
use rondo_types::{
    ModelError, ModelEvent, ModelInfo, ModelRequest, Origin, Sampling, ServerAddress, ToolChoice,
};
use std::fmt;
use std::sync::Arc;

/// Transports one request; it decides nothing.
#[async_trait]
pub trait LlmProvider: Send + Sync {
    /// Sends one request and returns the whole reply.
    ///
    /// # Errors
    /// When there is no reply. [`ModelError::retryable`] says whether the loop sends the request again. The message is
    /// shown to the user, so it must not hold keys.
    ///
    /// # Cancel safety
    /// Dropped when the request's time is over, or the turn is stopped.
    async fn chat(
        &self,
        messages: &[LlmMessage],
        tools: &[ToolDefinition],
        model: &str,
    ) -> Result<LlmResponse, ModelError>;

    /// Returns the model that is asked unless another is named.
    fn default_model(&self) -> &str;

    /// Returns the model behind this provider, if it is one of this crate: a turn then runs on it directly, so that
    /// whatever a provider wants back unchanged is kept.
    fn model(&self, name: &str) -> Option<Arc<dyn Model>> {
        let _ = name;
        None
    }
}

/// A model of this crate as a provider of the design.
///
/// ```
/// use rondo::design::hub::{LlmProvider, ModelProvider};
/// use rondo::{Endpoint, HttpModel, ModelCard};
/// use std::sync::Arc;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let endpoint = Endpoint::new("localhost", "openai-chat", "http://127.0.0.1:8080/v1");
/// let model = HttpModel::new(&endpoint, ModelCard::new("small"))?;
/// let provider = ModelProvider::new(Arc::new(model));
/// assert_eq!(provider.default_model(), "small");
/// # Ok(())
/// # }
/// ```
pub struct ModelProvider {
    model: Arc<dyn Model>,
    name: String,
}

impl ModelProvider {
    /// Takes the model.
    #[must_use]
    pub fn new(model: Arc<dyn Model>) -> Self {
        let name = model.info().origin.model;
        Self { model, name }
    }
}

#[async_trait]
impl LlmProvider for ModelProvider {
    async fn chat(
        &self,
        messages: &[LlmMessage],
        tools: &[ToolDefinition],
        model: &str,
    ) -> Result<LlmResponse, ModelError> {
        let (system, messages) = translate::messages(messages, &self.model.info().origin);
        let request = ModelRequest {
            model: model.to_owned(),
            system: system.into(),
            messages,
            tools: Arc::new(tools.to_vec()),
            tool_choice: ToolChoice::Auto,
            sampling: Sampling::default(),
            response_schema: None,
        };
        let mut reply = Accumulator::new(ReplyBounds::default());
        let mut events = self.model.stream(Arc::new(request));
        while let Some(event) = events.next().await {
            reply.push(event?)?;
        }
        Ok(translate::response(&reply.finish()))
    }

    fn default_model(&self) -> &str {
        &self.name
    }

    fn model(&self, name: &str) -> Option<Arc<dyn Model>> {
        let model = Arc::clone(&self.model);
        Some(match name == self.name {
            true => model,
            false => Arc::new(RenamedModel {
                model,
                name: name.to_owned(),
            }),
        })
    }
}

impl fmt::Debug for ModelProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelProvider")
            .field("model", &self.model.info().origin)
            .finish_non_exhaustive()
    }
}

/// The same provider's model of another name.
struct RenamedModel {
    model: Arc<dyn Model>,
    name: String,
}

impl Model for RenamedModel {
    fn info(&self) -> ModelInfo {
        let info = self.model.info();
        ModelInfo {
            origin: Origin {
                model: self.name.clone(),
                ..info.origin
            },
            // The known properties of the other one do not apply here.
            price: None,
            context_tokens: None,
            ..info
        }
    }

    fn server(&self) -> Option<ServerAddress> {
        self.model.server()
    }

    fn base_url(&self) -> Option<String> {
        self.model.base_url()
    }

    fn drops_web_search(&self, has_tools: bool) -> bool {
        self.model.drops_web_search(has_tools)
    }

    fn stream(&self, request: Arc<ModelRequest>) -> ModelStream {
        self.model.stream(request)
    }
}

/// A provider of the design as a model of ours.
pub(super) struct ProviderModel {
    pub(super) provider: Arc<dyn LlmProvider>,
    pub(super) name: String,
}

impl Model for ProviderModel {
    fn info(&self) -> ModelInfo {
        ModelInfo {
            origin: translate::origin(&self.name),
            streaming: false,
            price: None,
            context_tokens: None,
        }
    }

    fn stream(&self, request: Arc<ModelRequest>) -> ModelStream {
        let provider = Arc::clone(&self.provider);
        let events = async move {
            let messages = translate::request_messages(&request);
            let response = provider.chat(&messages, &request.tools, &request.model);
            let events: Vec<Result<ModelEvent, ModelError>> = match response.await {
                Ok(response) => translate::events(response).into_iter().map(Ok).collect(),
                Err(error) => vec![Err(error)],
            };
            stream::iter(events)
        };
        Box::pin(stream::once(events).flatten())
    }
}
