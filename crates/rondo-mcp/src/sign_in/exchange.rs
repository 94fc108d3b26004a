//! Requests to authorization servers, over the connections that all requests of Rondo share.

use bytes::Bytes;
use hyper::http::{Request, Response};
use rmcp::transport::auth::{
    OAuthHttpClient, OAuthHttpClientError, OAuthHttpClientFuture, OAuthHttpRequest,
};
use rondo_http::{RawRequest, Transport, not_public};
use serde_json::Value;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use url::{Host, Url};

/// The bound on a reply, in bytes.
const REPLY_BYTES_MAX: usize = 1 << 20;
/// How long one request may take.
const REQUEST_MAX: Duration = Duration::from_secs(30);

/// The field of an authorization server's description with the ways in which clients prove who they are.
const METHODS: &str = "token_endpoint_auth_methods_supported";
/// The field of a registration with the way that we choose.
const METHOD: &str = "token_endpoint_auth_method";
/// The ways with a secret, the preferred one first.
const SECRET_METHODS: [&str; 2] = ["client_secret_basic", "client_secret_post"];
/// The field of a reply with the time that a token is valid, in seconds.
const EXPIRES: &str = "expires_in";

/// Sends what the state machine asks for. Redirects are replies: none is followed with a code or a token in hand.
pub(super) struct Exchange {
    transport: Transport,
    /// The address of the server that the user signs in to.
    server: Option<Url>,
    /// How clients have to prove who they are, if the authorization server takes none without a secret.
    secret_method: Mutex<Option<String>>,
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
        Self {
            transport,
            server,
            secret_method: Mutex::default(),
        }
    }

    /// Checks an address of a login, whichever document it is from. Requests to it stay between the two, and a server
    /// that is elsewhere names nothing of this machine or of a private network. Other names may lead there, but then
    /// the host has to have a certificate for that name before anything is sent to it.
    ///
    /// # Errors
    /// When the address must not be used, with the reason.
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
        let body = self.with_secret_method(body);
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
        self.note_secret_method(&body);
        Ok(reply.body(with_number(body))?)
    }

    /// Reads from an authorization server's description whether it takes clients without a secret.
    fn note_secret_method(&self, body: &[u8]) {
        let description: Option<Value> = serde_json::from_slice(body).ok();
        let methods = description
            .as_ref()
            .and_then(|it| it.get(METHODS)?.as_array());
        let Some(methods) = methods else { return };
        let has = |method: &str| methods.iter().any(|it| it == method);
        let method = match has("none") {
            true => None,
            false => SECRET_METHODS.into_iter().find(|method| has(method)),
        };
        *self.secret_method() = method.map(str::to_owned);
    }

    /// Registers us as a client with a secret, if no others are taken.
    fn with_secret_method(&self, body: Vec<u8>) -> Vec<u8> {
        let Some(method) = self.secret_method().clone() else {
            return body;
        };
        match serde_json::from_slice::<Value>(&body) {
            Ok(Value::Object(mut fields)) if fields.get(METHOD).is_some_and(|it| it == "none") => {
                fields.insert(METHOD.to_owned(), Value::String(method));
                Value::Object(fields).to_string().into_bytes()
            }
            _ => body,
        }
    }

    fn secret_method(&self) -> MutexGuard<'_, Option<String>> {
        self.secret_method
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes a number of the time that a token is valid, which some servers write as a string.
fn with_number(body: Vec<u8>) -> Vec<u8> {
    match serde_json::from_slice::<Value>(&body) {
        Ok(Value::Object(mut fields)) => {
            let seconds = fields.get(EXPIRES).and_then(Value::as_str);
            let Some(seconds) = seconds.and_then(|it| it.trim().parse::<u64>().ok()) else {
                return body;
            };
            fields.insert(EXPIRES.to_owned(), Value::from(seconds));
            Value::Object(fields).to_string().into_bytes()
        }
        _ => body,
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

    #[test]
    fn a_server_that_takes_only_clients_with_a_secret_registers_one() {
        let asked = br#"{"client_name":"Rondo","token_endpoint_auth_method":"none"}"#;
        for (methods, expected) in [
            (r#"["client_secret_post"]"#, "client_secret_post"),
            (
                r#"["client_secret_post","client_secret_basic"]"#,
                "client_secret_basic",
            ),
            (r#"["none","client_secret_basic"]"#, "none"),
            (r#"["private_key_jwt"]"#, "none"),
        ] {
            let exchange = exchange("https://mcp.example.com/mcp");
            let description = format!(r#"{{"token_endpoint_auth_methods_supported":{methods}}}"#);
            exchange.note_secret_method(description.as_bytes());
            let sent: Value =
                serde_json::from_slice(&exchange.with_secret_method(asked.to_vec())).unwrap();
            assert_eq!(sent["token_endpoint_auth_method"], expected, "{methods}");
            let code = b"grant_type=authorization_code&code=x".to_vec();
            assert_eq!(exchange.with_secret_method(code.clone()), code);
        }
    }

    #[test]
    fn the_time_that_a_token_is_valid_may_be_a_string() {
        for (reply, expected) in [
            (r#"{"access_token":"t","expires_in":"3600"}"#, 3600),
            (r#"{"access_token":"t","expires_in":60}"#, 60),
        ] {
            let read = with_number(reply.as_bytes().to_vec());
            let read: Value = serde_json::from_slice(&read).unwrap();
            assert_eq!(read["expires_in"], expected);
        }
        for other in ["", "[1]", r#"{"expires_in":"soon"}"#] {
            assert_eq!(with_number(other.as_bytes().to_vec()), other.as_bytes());
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
