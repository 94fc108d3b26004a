//! A model behind an HTTP endpoint.

use crate::base_url::BaseUrl;
use crate::conversations::Conversations;
use crate::exchange::{self, Link};
use crate::{Auth, Endpoint, HttpError, ModelCard, RequestLimit, Secret, Transport};
use hyper::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use rondo_core::{Model, ModelStream};
use rondo_types::{ModelInfo, ModelRequest, Origin, Sampling, ServerAddress, ToolChoice, ToolSpec};
use rondo_wire::{Dialect, Lowering, Target};
use std::sync::Arc;

/// A model behind an HTTP endpoint.
///
/// Each request is one exchange, without timeouts except for connecting, without retries and redirects.
/// Requests share the transport's connections. Error messages never contain the endpoint's keys.
#[derive(Debug, Clone)]
pub struct HttpModel {
    info: ModelInfo,
    base_url: String,
    link: Arc<Link>,
    limit: Option<RequestLimit>,
}

impl HttpModel {
    /// Builds a model with connections of its own.
    ///
    /// # Errors
    /// When the endpoint cannot be used: see [`HttpError`].
    pub fn new(endpoint: &Endpoint, card: ModelCard) -> Result<Self, HttpError> {
        let transport = Transport::new(endpoint.network.clone())?;
        Self::with_transport(transport, endpoint, card)
    }

    /// Builds a model that shares connections; the endpoint's `network` is ignored.
    ///
    /// # Errors
    /// When the endpoint cannot be used: see [`HttpError`].
    pub fn with_transport(
        transport: Transport,
        endpoint: &Endpoint,
        card: ModelCard,
    ) -> Result<Self, HttpError> {
        let dialect =
            rondo_wire::dialect(&endpoint.dialect).ok_or_else(|| HttpError::UnknownDialect {
                name: endpoint.dialect.clone(),
            })?;
        let origin = Origin {
            dialect: endpoint.dialect.clone(),
            provider: endpoint.provider.clone(),
            model: card.name,
        };
        let base_url = BaseUrl::parse(&endpoint.base_url, &endpoint.provider, transport.network())?;
        let link = Link {
            headers: headers(endpoint, dialect, &base_url)?,
            secrets: secrets(endpoint, &base_url),
            base_url,
            target: target(endpoint, origin.clone()),
            bounds: endpoint.bounds,
            transport,
            dialect,
            conversations: Conversations::default(),
        };
        let info = ModelInfo {
            origin,
            streaming: endpoint.streaming,
            price: card.price,
            context_tokens: card.context_tokens,
        };
        Ok(Self {
            info,
            base_url: without_credentials(&endpoint.base_url),
            link: Arc::new(link),
            limit: None,
        })
    }

    /// Returns the model with a bound on concurrent requests, shared by all models with the same
    /// [`RequestLimit`].
    ///
    /// A request that has to wait emits [`ModelEvent::Queued`](rondo_types::ModelEvent::Queued); its timers
    /// start when it is sent.
    #[must_use]
    pub fn with_request_limit(mut self, limit: RequestLimit) -> Self {
        self.limit = Some(limit);
        self
    }

    pub(crate) fn link(&self) -> &Arc<Link> {
        &self.link
    }
}

impl Model for HttpModel {
    fn info(&self) -> ModelInfo {
        self.info.clone()
    }

    fn server(&self) -> Option<ServerAddress> {
        self.link.base_url.server()
    }

    fn base_url(&self) -> Option<String> {
        Some(self.base_url.clone())
    }

    fn drops_web_search(&self, has_tools: bool) -> bool {
        // The dialect itself is asked, so that it has one rule about this.
        let tools = has_tools.then(ToolSpec::default);
        let request = ModelRequest {
            model: self.info.origin.model.clone(),
            system: Arc::default(),
            messages: Vec::new(),
            tools: Arc::new(tools.into_iter().collect()),
            tool_choice: ToolChoice::Auto,
            sampling: Sampling::default(),
            response_schema: None,
        };
        let encoded = self.link.dialect.encode(&request, &self.link.target);
        let mut notes = encoded.notes.iter();
        notes.any(|note| note.lowering == Lowering::SearchDropped)
    }

    fn stream(&self, request: Arc<ModelRequest>) -> ModelStream {
        exchange::open(Arc::clone(&self.link), self.limit.clone(), request)
    }
}

/// Returns a URL without its credentials, query and fragment, as it may be shown and recorded.
#[must_use]
pub fn without_credentials(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_owned();
    };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = authority.rsplit('@').next().unwrap_or_default();
    format!("{scheme}://{host}{path}")
}

fn target(endpoint: &Endpoint, origin: Origin) -> Target {
    Target {
        quirks: endpoint.quirks.clone(),
        streaming: endpoint.streaming,
        web_search: endpoint.web_search,
        extra_body: endpoint.extra_body.clone(),
        ..Target::new(origin)
    }
}

fn headers(
    endpoint: &Endpoint,
    dialect: &dyn Dialect,
    base_url: &BaseUrl,
) -> Result<HeaderMap, HttpError> {
    let mut headers = HeaderMap::new();
    for (name, value) in dialect.headers() {
        insert(&mut headers, name, &Secret::new(*value), endpoint)?;
    }
    if let Some(user) = base_url.user() {
        let value = Secret::new(format!("Basic {}", user.expose()));
        insert(&mut headers, AUTHORIZATION.as_str(), &value, endpoint)?;
    }
    let key = match &endpoint.auth {
        Auth::None => None,
        Auth::Key(secret) => Some((dialect.key_header(), secret)),
        Auth::Bearer(secret) => Some((None, secret)),
        Auth::Header { name, secret } => Some((Some(name.as_str()), secret)),
    };
    match key {
        None => {}
        Some((Some(name), secret)) => insert(&mut headers, name, secret, endpoint)?,
        Some((None, secret)) => {
            let value = Secret::new(format!("Bearer {}", secret.expose()));
            insert(&mut headers, AUTHORIZATION.as_str(), &value, endpoint)?;
        }
    }
    for (name, value) in &endpoint.headers {
        insert(&mut headers, name, value, endpoint)?;
    }
    Ok(headers)
}

fn insert(
    headers: &mut HeaderMap,
    name: &str,
    value: &Secret,
    endpoint: &Endpoint,
) -> Result<(), HttpError> {
    let fail = || HttpError::Header {
        provider: endpoint.provider.clone(),
        name: name.to_owned(),
    };
    let key = HeaderName::try_from(name).map_err(|_| fail())?;
    let mut value = HeaderValue::try_from(value.expose()).map_err(|_| fail())?;
    value.set_sensitive(true);
    headers.insert(key, value);
    Ok(())
}

/// Everything that must not show in a message, the longest first, since one may be part of another.
fn secrets(endpoint: &Endpoint, base_url: &BaseUrl) -> Vec<Secret> {
    let key = match &endpoint.auth {
        Auth::None => None,
        Auth::Key(secret) | Auth::Bearer(secret) | Auth::Header { secret, .. } => Some(secret),
    };
    let values = endpoint.headers.iter().map(|(_, value)| value);
    let mut secrets: Vec<Secret> = key.into_iter().chain(values).cloned().collect();
    secrets.extend(base_url.secrets());
    secrets.extend(base_url.user());
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.expose().len()));
    secrets
}
