//! The address, dialect and key of a provider.

use crate::{Network, Secret};
use rondo_types::Price;
use rondo_wire::{Bounds, Quirks};
use serde_json::{Map, Value};
use std::fmt;

/// The address, dialect, key and network settings of a provider.
///
/// Its `Debug` output omits everything that may hold a key, the base URL included.
#[derive(Clone)]
pub struct Endpoint {
    /// The provider's configured name, such as `openrouter`.
    pub provider: String,
    /// The dialect's name, such as `openai-chat`.
    pub dialect: String,
    /// The address as the vendor's own variable has it: with `/v1` for OpenAI-compatible servers,
    /// without a version for Gemini. A query is kept on every request.
    pub base_url: String,
    /// How requests are authenticated.
    pub auth: Auth,
    /// Headers sent with every request; their values may be secrets.
    pub headers: Vec<(String, Secret)>,
    /// Fields merged into every request's body.
    pub extra_body: Map<String, Value>,
    /// How the server differs from its dialect.
    pub quirks: Quirks,
    /// Offer the provider's own search of the web, if its dialect has one. An agent whose requests would leave it out
    /// cannot be built.
    pub web_search: bool,
    /// Request streamed replies.
    pub streaming: bool,
    /// The bounds on replies.
    pub bounds: Bounds,
    /// How connections are made.
    pub network: Network,
}

impl Endpoint {
    /// Builds a streaming endpoint without a key, with default bounds and network.
    pub fn new(
        provider: impl Into<String>,
        dialect: impl Into<String>,
        base_url: impl Into<String>,
    ) -> Self {
        Self {
            provider: provider.into(),
            dialect: dialect.into(),
            base_url: base_url.into(),
            auth: Auth::None,
            headers: Vec::new(),
            extra_body: Map::new(),
            quirks: Quirks::default(),
            web_search: false,
            streaming: true,
            bounds: Bounds::default(),
            network: Network::default(),
        }
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("provider", &self.provider)
            .field("dialect", &self.dialect)
            .field("auth", &self.auth)
            .field("headers", &self.headers)
            .field("quirks", &self.quirks)
            .field("web_search", &self.web_search)
            .field("streaming", &self.streaming)
            .field("bounds", &self.bounds)
            .field("network", &self.network)
            .finish_non_exhaustive()
    }
}

/// How requests are authenticated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Auth {
    /// No authentication, for local servers.
    None,
    /// The key, in the header that the dialect has for it: `Authorization: Bearer KEY`, or one of its
    /// own such as Gemini's `x-goog-api-key`.
    Key(Secret),
    /// `Authorization: Bearer KEY`.
    Bearer(Secret),
    /// A header of the provider's own, with the key by itself.
    Header {
        /// The header.
        name: String,
        /// The key.
        secret: Secret,
    },
}

/// A model's name, price and context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelCard {
    /// Its name at the provider.
    pub name: String,
    /// Price, if known.
    pub price: Option<Price>,
    /// The size of its context in tokens, if known.
    pub context_tokens: Option<u64>,
}

impl ModelCard {
    /// Builds a card with only the name.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            price: None,
            context_tokens: None,
        }
    }
}
