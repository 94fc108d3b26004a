//! Requests to authorisation servers, over the connections that all requests of Rondo share.

use bytes::Bytes;
use hyper::http::{Request, Response};
use rmcp::transport::auth::{
    OAuthHttpClient, OAuthHttpClientError, OAuthHttpClientFuture, OAuthHttpRequest,
};
use rondo_http::{RawRequest, Transport, not_public};
use std::time::Duration;
use url::{Host, Url};

/// The bound on a reply, in bytes.
const REPLY_BYTES_MAX: usize = 1 << 20;
/// How long one request may take.
const REQUEST_MAX: Duration = Duration::from_secs(30);

/// Sends what the state machine asks for. Redirects are replies: none is followed with a code or a token in hand.
pub(super) struct Exchange {
    transport: Transport,
    /// The address of the server that the user signs in to.
    server: Option<Url>,
}

impl OAuthHttpClient for Exchange {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(async move {
            let sent = tokio::time::timeout(REQUEST_MAX, self.send(request.request)).await;
            sent.map_err(|_| "it did not answer in time")?
        })
    }
}

impl Exchange {
    pub(super) fn new(transport: Transport, server: &str) -> Self {
        let server = Url::parse(server).ok();
        Self { transport, server }
    }

    /// Checks an address of a login, whichever document it is from. What is sent to it stays between the two, and a server
    /// that is elsewhere names nothing of this machine or of a private network. Other names may lead there, but then the
    /// host has to have a certificate for that name before anything is sent to it.
    ///
    /// # Errors
    /// Says what is wrong with it.
    pub(super) fn check(&self, address: &str) -> Result<(), String> {
        let url = Url::parse(address).map_err(|_| "an address of its login cannot be read")?;
        let host = url.host().ok_or("an address of its login has no host")?;
        let server = self.server.as_ref().and_then(Url::host);
        let shown = rondo_core::shown::line(&host.to_string());
        let are_here = is_here(&host) && server.as_ref().is_some_and(is_here);
        if is_local(&host) && server.as_ref() != Some(&host) && !are_here {
            return Err(format!(
                "`{shown}` is not asked on behalf of a server that is elsewhere"
            ));
        }
        match url.scheme() {
            "https" => Ok(()),
            "http" if is_here(&host) => Ok(()),
            _ => Err(format!("`{shown}` is not reached over https")),
        }
    }

    async fn send(
        &self,
        request: Request<Vec<u8>>,
    ) -> Result<Response<Vec<u8>>, OAuthHttpClientError> {
        let (head, body) = request.into_parts();
        let url = head.uri.to_string();
        self.check(&url)?;
        let request = RawRequest {
            method: head.method,
            url,
            headers: head.headers,
            body: Bytes::from(body),
        };
        let mut response = self.transport.send(request).await?;
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

/// Returns whether a host is this machine by its name.
fn is_here(host: &Host<&str>) -> bool {
    match host {
        Host::Domain(name) => {
            let name = name.trim_end_matches('.');
            name == "localhost" || name.ends_with(".localhost")
        }
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => address.is_loopback(),
    }
}

/// Returns whether a host is this machine or not public by its name.
fn is_local(host: &Host<&str>) -> bool {
    is_here(host)
        || match host {
            Host::Domain(_) => false,
            Host::Ipv4(address) => not_public((*address).into()).is_some(),
            Host::Ipv6(address) => not_public((*address).into()).is_some(),
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exchange(server: &str) -> Exchange {
        let transport = Transport::new(rondo_http::Network::default()).unwrap();
        Exchange::new(transport, server)
    }

    #[test]
    fn addresses_of_a_login_are_https_or_of_this_machine_as_the_server_is() {
        let remote = "https://mcp.example.com/mcp";
        let here = "http://127.0.0.1:8080/mcp";
        let private = "https://10.0.0.1/mcp";
        for (server, uri, expected) in [
            (remote, "https://auth.example.com/token", true),
            (remote, "http://auth.example.com/token", false),
            (remote, "http://localhost:8080/token", false),
            (remote, "https://localhost:8080/token", false),
            (remote, "https://a.localhost./token", false),
            (remote, "http://127.0.0.1/token", false),
            (remote, "https://127.0.0.1/token", false),
            (remote, "https://2130706433/token", false),
            (remote, "https://[::1]:9/token", false),
            (remote, "https://[::ffff:127.0.0.1]/token", false),
            (remote, "https://10.0.0.1/token", false),
            (remote, "https://169.254.169.254/token", false),
            (remote, "https://127.0.0.1.example.com/token", true),
            (here, "http://localhost:8080/token", true),
            (here, "http://[::1]:9/token", true),
            (here, "http://127.0.0.1/token", true),
            (here, "https://auth.example.com/token", true),
            (here, "http://auth.example.com/token", false),
            (here, "https://169.254.169.254/token", false),
            (private, "https://10.0.0.1:8443/token", true),
            (private, "https://10.0.0.2/token", false),
            (private, "http://127.0.0.1/token", false),
            (remote, "/token", false),
        ] {
            let is_allowed = exchange(server).check(uri).is_ok();
            assert_eq!(is_allowed, expected, "{server} {uri}");
        }
    }

    #[tokio::test]
    async fn a_remote_server_has_nothing_sent_to_this_machine() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let uri = format!("http://{}/register", listener.local_addr().unwrap());
        let request = Request::post(uri).body(b"{}".to_vec()).unwrap();
        let exchange = exchange("https://mcp.example.com/mcp");
        let sent = tokio::select! {
            biased;
            _ = listener.accept() => panic!("it was connected to"),
            sent = exchange.send(request) => sent,
        };
        let why = sent.unwrap_err().to_string();
        assert_eq!(
            why,
            "`127.0.0.1` is not asked on behalf of a server that is elsewhere"
        );
    }
}
