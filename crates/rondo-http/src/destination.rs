//! Posts data that is not a model request, such as telemetry.

use crate::address::Address;
use crate::client::{ExchangeError, Response};
use crate::pieces::Pieces;
use crate::{HttpError, Secret, Transport};
use bytes::Bytes;
use hyper::header::{HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use hyper::http::Uri;
use hyper::{Method, Request};
use std::error::Error;
use std::time::Duration;

/// The bound on the part of a response that is read so that its connection can be kept.
const RESPONSE_BYTES_MAX: usize = 64 * 1024;

/// An address to post to, with the headers of each request.
#[derive(Debug, Clone)]
pub struct Destination {
    transport: Transport,
    uri: Uri,
    headers: HeaderMap,
}

/// A server's response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Receipt {
    /// The HTTP status.
    pub status: u16,
    /// `Retry-After`, if it is in seconds.
    pub retry_after: Option<Duration>,
}

/// Why there was no response. The message has no address, since that may hold a secret.
#[derive(Debug, thiserror::Error)]
pub enum PostError {
    /// There is no client for the address.
    #[error(transparent)]
    Setup(#[from] HttpError),
    /// The connection failed.
    #[error("the connection failed")]
    Connection(#[source] Box<dyn Error + Send + Sync>),
}

impl PostError {
    /// Returns whether it is certain that the server has not got the request: no connection to it came about.
    #[must_use]
    pub fn is_unsent(&self) -> bool {
        match self {
            Self::Setup(_) => true,
            Self::Connection(cause) => matches!(
                cause.downcast_ref::<ExchangeError>(),
                Some(ExchangeError::Connect(_) | ExchangeError::NoHost)
            ),
        }
    }
}

impl Destination {
    /// Builds a destination; credentials in the address are ignored.
    ///
    /// # Errors
    /// [`HttpError::BaseUrl`] when `address` is no `http` or `https` address, and
    /// [`HttpError::Header`] when a header cannot be sent; both name the receiver as `name`.
    pub fn new(
        transport: Transport,
        name: &str,
        address: &str,
        headers: &[(String, Secret)],
    ) -> Result<Self, HttpError> {
        let address = Address::parse(address.trim()).ok_or_else(|| HttpError::BaseUrl {
            provider: name.to_owned(),
        })?;
        let mut map = HeaderMap::new();
        for (header, value) in headers {
            let fail = || HttpError::Header {
                provider: name.to_owned(),
                name: header.clone(),
            };
            let key = HeaderName::try_from(header).map_err(|_| fail())?;
            let mut value = HeaderValue::try_from(value.expose()).map_err(|_| fail())?;
            value.set_sensitive(true);
            map.insert(key, value);
        }
        Ok(Self {
            transport,
            uri: address.uri,
            headers: map,
        })
    }

    /// Posts a body. There is no timeout except for connecting, and no retry.
    ///
    /// # Errors
    /// When no response comes; any status is a response.
    ///
    /// # Cancel safety
    /// Dropping the future ends the request; the server may have processed it.
    pub async fn post(&self, body: Bytes) -> Result<Receipt, PostError> {
        let mut request = Request::new(Pieces::from(vec![body]));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = self.headers.clone();
        let client = self.transport.client(&self.uri).await?;
        let response = client.send(request).await.map_err(PostError::Connection)?;
        let receipt = Receipt {
            status: response.status().as_u16(),
            retry_after: retry_after(&response),
        };
        drain(response).await;
        Ok(receipt)
    }
}

fn retry_after(response: &Response) -> Option<Duration> {
    let value = response.headers().get(RETRY_AFTER)?;
    let seconds = value.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}

async fn drain(mut response: Response) {
    let mut left = RESPONSE_BYTES_MAX;
    while let Ok(Some(piece)) = response.chunk().await
        && piece.len() < left
    {
        left -= piece.len();
    }
}
