//! Where a provider is, and how to speak to it.

use crate::{Network, Secret};
use rondo_types::Price;
use rondo_wire::{Bounds, Quirks};
use serde_json::{Map, Value};
use std::fmt;

/// Where a provider is and how to speak to it.
///
/// Its debug output leaves out whatever may hold a key, the base URL included.
#[derive(Clone)]
pub struct Endpoint {
    /// The provider's configured name, such as `openrouter`.
    pub provider: String,
    /// The dialect's name, such as `openai-chat`.
    pub dialect: String,
    /// The address as the vendor's own variable has it: with `/v1` for OpenAI-compatible servers,
    /// without a version for Gemini. A query is kept on every request.
    pub base_url: String,
    /// How requests are signed.
    pub auth: Auth,
    /// Headers sent with every request; their values may be secrets.
    pub headers: Vec<(String, Secret)>,
    /// Fields merged into every request's body.
    pub extra_body: Map<String, Value>,
    /// Where the server departs from its dialect.
    pub quirks: Quirks,
    /// Whether replies are asked for as they are generated.
    pub streaming: bool,
    /// The bounds on what is read.
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
            .field("streaming", &self.streaming)
            .field("bounds", &self.bounds)
            .field("network", &self.network)
            .finish_non_exhaustive()
    }
}

/// How requests are signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Auth {
    /// Not at all, as local servers like it.
    None,
    /// `Authorization: Bearer KEY`.
    Bearer(Secret),
    /// A header of the provider's own, such as Gemini's `x-goog-api-key`.
    Header {
        /// The header.
        name: String,
        /// The key.
        secret: Secret,
    },
}

/// What is known of one model at its endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelCard {
    /// Its name at the provider.
    pub name: String,
    /// What it costs, if known.
    pub price: Option<Price>,
    /// How many tokens fit its context, if known.
    pub context_tokens: Option<u64>,
}

impl ModelCard {
    /// Builds a card of which nothing but the name is known.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            price: None,
            context_tokens: None,
        }
    }
}
