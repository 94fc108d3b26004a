//! The model of the ReAct design.

use rondo_core::Model;
use rondo_http::HttpError;
use rondo_http::{Endpoint, HttpModel, ModelCard};
use std::fmt;
use std::sync::Arc;

/// A model that gets whole conversations, and calls tools by tags in its text.
#[derive(Clone)]
pub struct LlmClient {
    model: Arc<dyn Model>,
}

impl LlmClient {
    /// Takes a model that reads the tags already.
    #[must_use]
    pub fn new(model: Arc<dyn Model>) -> Self {
        Self { model }
    }

    /// Speaks to a provider, without its own function calling, whatever its dialect.
    ///
    /// ```
    /// use rondo::design::react::LlmClient;
    /// use rondo::{Endpoint, ModelCard};
    ///
    /// let endpoint = Endpoint::new("localhost", "openai-chat", "http://127.0.0.1:8080/v1");
    /// let client = LlmClient::http(&endpoint, ModelCard::new("small"))?;
    /// # let _ = client;
    /// # Ok::<(), rondo::rondo_http::HttpError>(())
    /// ```
    ///
    /// # Errors
    /// When the address or a header of the endpoint cannot be used, or no dialect has its name.
    pub fn http(endpoint: &Endpoint, card: ModelCard) -> Result<Self, HttpError> {
        let mut endpoint = endpoint.clone();
        if let Some(pair) = rondo_wire::react_over(&endpoint.dialect) {
            pair.clone_into(&mut endpoint.dialect);
        }
        Ok(Self::new(Arc::new(HttpModel::new(&endpoint, card)?)))
    }

    pub(super) fn model(&self) -> Arc<dyn Model> {
        Arc::clone(&self.model)
    }
}

impl fmt::Debug for LlmClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LlmClient")
            .field(&self.model.info().origin)
            .finish()
    }
}
