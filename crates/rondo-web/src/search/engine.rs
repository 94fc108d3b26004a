//! The engines that are asked, and how.

use crate::WebError;
use crate::target::AllowedHost;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use rondo_http::Secret;
use url::Url;

/// The address of Brave's API. Source: <https://api-dashboard.search.brave.com/app/documentation/web-search>.
pub const BRAVE_URL: &str = "https://api.search.brave.com/res/v1/web/search";
/// The header of its key.
const BRAVE_KEY: HeaderName = HeaderName::from_static("x-subscription-token");

/// A search engine.
#[derive(Debug, Clone)]
pub enum SearchEngine {
    /// Brave's API, which needs a key.
    Brave {
        /// The address; [`BRAVE_URL`] unless there is another one.
        url: String,
        /// The key.
        key: Secret,
    },
    /// An instance of SearXNG whose settings allow the format `json`.
    SearXng {
        /// The address of the instance.
        url: String,
    },
}

/// How an engine is asked for one query.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) url: String,
    pub(super) headers: HeaderMap,
}

impl SearchEngine {
    /// Returns the host of the engine, which the user chose.
    ///
    /// # Errors
    /// When its address is none.
    pub(super) fn host(&self) -> Result<AllowedHost, WebError> {
        let url = self.url()?;
        let host = url.host_str().unwrap_or_default();
        let port = url.port_or_known_default().unwrap_or_default();
        AllowedHost::parse(&format!("{host}:{port}"))
    }

    fn url(&self) -> Result<Url, WebError> {
        let (Self::Brave { url: text, .. } | Self::SearXng { url: text }) = self;
        let wrong = |reason: String| WebError::Url {
            text: text.clone(),
            reason,
        };
        let url = Url::parse(text).map_err(|err| wrong(err.to_string()))?;
        match url.scheme() {
            "http" | "https" => Ok(url),
            _ => Err(wrong("it is neither `http` nor `https`".to_owned())),
        }
    }

    /// Returns how to ask for a query.
    ///
    /// # Errors
    /// When the address or the key cannot be sent.
    pub(super) fn question(&self, query: &str, count: usize) -> Result<Question, WebError> {
        let mut url = self.url()?;
        let mut headers = HeaderMap::new();
        match self {
            Self::Brave { key, .. } => {
                let mut value = HeaderValue::try_from(key.expose()).map_err(|_| WebError::Url {
                    text: url.host_str().unwrap_or_default().to_owned(),
                    reason: "the key has characters that no header may have".to_owned(),
                })?;
                value.set_sensitive(true);
                headers.insert(BRAVE_KEY, value);
                url.query_pairs_mut()
                    .append_pair("q", query)
                    .append_pair("count", &count.to_string());
            }
            Self::SearXng { .. } => {
                let path = url.path().trim_end_matches('/');
                let base = path.strip_suffix("/search").unwrap_or(path);
                let path = format!("{base}/search");
                url.set_path(&path);
                url.query_pairs_mut()
                    .append_pair("q", query)
                    .append_pair("format", "json");
            }
        }
        Ok(Question {
            url: url.into(),
            headers,
        })
    }
}
