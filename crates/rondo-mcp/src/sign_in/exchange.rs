//! Requests to authorisation servers, over the connections that all requests of Rondo share.

use bytes::Bytes;
use hyper::http::{Request, Response, Uri};
use rmcp::transport::auth::{
    OAuthHttpClient, OAuthHttpClientError, OAuthHttpClientFuture, OAuthHttpRequest,
};
use rondo_http::{RawRequest, Transport};
use std::net::IpAddr;
use std::time::Duration;

/// The bound on a reply, in bytes.
const REPLY_BYTES_MAX: usize = 1 << 20;
/// How long one request may take.
const REQUEST_MAX: Duration = Duration::from_secs(30);

/// Sends what the state machine asks for. Redirects are replies: none is followed with a code or a token in hand.
pub(super) struct Exchange(pub(super) Transport);

impl OAuthHttpClient for Exchange {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(async move {
            let sent = tokio::time::timeout(REQUEST_MAX, self.send(request.request)).await;
            sent.map_err(|_| "it did not answer in time")?
        })
    }
}

impl Exchange {
    async fn send(
        &self,
        request: Request<Vec<u8>>,
    ) -> Result<Response<Vec<u8>>, OAuthHttpClientError> {
        let (head, body) = request.into_parts();
        if !is_safe(&head.uri) {
            let host = head.uri.host().unwrap_or_default();
            let host = rondo_core::shown::line(host);
            return Err(format!("`{host}` is asked for a token without https").into());
        }
        let request = RawRequest {
            method: head.method,
            url: head.uri.to_string(),
            headers: head.headers,
            body: Bytes::from(body),
        };
        let mut response = self.0.send(request).await?;
        let mut reply = Response::builder().status(response.status());
        if let Some(headers) = reply.headers_mut() {
            headers.clone_from(response.headers());
        }
        let mut body = Vec::new();
        while let Some(piece) = response.chunk().await? {
            if body.len() + piece.len() > REPLY_BYTES_MAX {
                return Err(format!("its reply has more than {REPLY_BYTES_MAX} bytes").into());
            }
            body.extend_from_slice(&piece);
        }
        Ok(reply.body(body)?)
    }
}

/// Returns whether what is sent to an address stays between the two: it is https, or this machine.
pub(super) fn is_safe(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default();
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
    let is_here =
        host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|it| it.is_loopback());
    match uri.scheme_str() {
        Some("https") => !host.is_empty(),
        Some("http") => is_here,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_asked_for_over_https_or_on_this_machine() {
        for (uri, expected) in [
            ("https://auth.example.com/token", true),
            ("http://auth.example.com/token", false),
            ("http://localhost:8080/token", true),
            ("http://127.0.0.1/token", true),
            ("http://[::1]:9/token", true),
            ("http://127.0.0.1.example.com/token", false),
            ("http://10.0.0.1/token", false),
            ("/token", false),
        ] {
            assert_eq!(is_safe(&uri.parse().unwrap()), expected, "{uri}");
        }
    }
}
