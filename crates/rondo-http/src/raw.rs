//! One request that is not to a model, and its response piece by piece, for protocols of their own.

use crate::address::Address;
use crate::client::Response;
use crate::destination::PostError;
use crate::pieces::Pieces;
use crate::{HttpError, Transport};
use bytes::Bytes;
use hyper::header::HeaderMap;
use hyper::{Method, Request, StatusCode};

/// A request of any kind.
#[derive(Debug, Clone)]
pub struct RawRequest {
    /// The method.
    pub method: Method,
    /// The address; credentials in it are not sent.
    pub url: String,
    /// The headers.
    pub headers: HeaderMap,
    /// The body; nothing for none.
    pub body: Bytes,
}

/// A response whose body is still to be read. Dropping it ends it.
#[derive(Debug)]
pub struct RawResponse(Response);

impl Transport {
    /// Sends a request and returns its response once its head is there. There is no timeout except for connecting, no
    /// retry, and redirects are responses.
    ///
    /// # Errors
    /// When the address is neither `http` nor `https`, or no response comes; any status is a response.
    ///
    /// # Cancel safety
    /// Dropping the future ends the request; the server may have processed it.
    pub async fn send(&self, request: RawRequest) -> Result<RawResponse, PostError> {
        let address = Address::parse(request.url.trim()).ok_or_else(|| HttpError::BaseUrl {
            provider: "the request".to_owned(),
        })?;
        let pieces = match request.body.is_empty() {
            true => Vec::new(),
            false => vec![request.body],
        };
        let mut sent = Request::new(Pieces::from(pieces));
        *sent.method_mut() = request.method;
        *sent.uri_mut() = address.uri;
        *sent.headers_mut() = request.headers;
        let client = self.client(sent.uri()).await?;
        let response = client.send(sent).await.map_err(PostError::Connection)?;
        Ok(RawResponse(response))
    }
}

impl RawResponse {
    /// Returns the status.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.0.status()
    }

    /// Returns the headers.
    #[must_use]
    pub fn headers(&self) -> &HeaderMap {
        self.0.headers()
    }

    /// Returns the next piece of the body; `None` at its end.
    ///
    /// # Errors
    /// When the connection fails.
    ///
    /// # Cancel safety
    /// Nothing is lost when it is dropped.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, PostError> {
        self.0.chunk().await.map_err(PostError::Connection)
    }
}
