//! Waits for the browser to come back from an authorization server, on a port of this machine.

use hyper::body::Incoming;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use std::future::ready;
use std::sync::OnceLock;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// The path that the browser comes back to.
const PATH: &str = "/callback";
/// The bound on the head of a request, in bytes.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// How long a request may take to come in: browsers open connections that they do not use.
const REQUEST_MAX: Duration = Duration::from_secs(10);
/// Connections that are read at once.
const CONNECTIONS_MAX: usize = 16;

/// A port that the browser comes back to.
pub(super) struct Redirect {
    listener: TcpListener,
    address: String,
}

/// Parameters of the address that a browser came back to.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct RedirectQuery {
    pub(super) code: Option<String>,
    pub(super) state: Option<String>,
    pub(super) issuer: Option<String>,
    /// Why there is no code.
    pub(super) error: Option<String>,
}

impl Redirect {
    /// Listens on a port; on any that is free if it is 0.
    pub(super) async fn listen(port: u16) -> Result<Self, String> {
        let listener = TcpListener::bind(("127.0.0.1", port)).await;
        let listener =
            listener.map_err(|err| format!("port {port} cannot be listened on: {err}"))?;
        let port = listener.local_addr().map_err(|err| err.to_string())?.port();
        let address = format!("http://127.0.0.1:{port}{PATH}");
        Ok(Self { listener, address })
    }

    /// Returns the address that the browser is sent to.
    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// Waits for the browser. Requests that do not know `state` are ignored.
    ///
    /// # Cancel safety
    /// Cancel safe: connections are closed.
    pub(super) async fn wait(&self, state: &str) -> Result<String, String> {
        let mut requests = JoinSet::new();
        loop {
            tokio::select! {
                accepted = self.listener.accept(), if requests.len() < CONNECTIONS_MAX => {
                    let (stream, _) = accepted.map_err(|err| err.to_string())?;
                    let (base, state) = (self.address.clone(), state.to_owned());
                    requests.spawn(timeout(REQUEST_MAX, answered(stream, base, state)));
                }
                Some(ended) = requests.join_next() => {
                    if let Ok(Ok(Some(url))) = ended {
                        return Ok(url);
                    }
                }
            }
        }
    }
}

/// Answers the request on a connection. Returns its address if that has the expected state.
async fn answered(stream: TcpStream, base: String, state: String) -> Option<String> {
    let url = OnceLock::new();
    let service = service_fn(|request: Request<Incoming>| {
        let found = address(&request, &base).filter(|url| has_state(url, &state));
        let is_ours = found.is_some_and(|found| url.set(found).is_ok());
        ready(reply(is_ours))
    });
    let mut http = http1::Builder::new();
    http.keep_alive(false).max_buf_size(HEAD_BYTES_MAX);
    // A connection that fails is not the browser's, or the browser's after its request.
    let _ = http.serve_connection(TokioIo::new(stream), service).await;
    url.into_inner()
}

/// Returns the address that a request is for, if it may be the one that the browser comes back to.
fn address(request: &Request<Incoming>, base: &str) -> Option<String> {
    let target = request.uri().path_and_query()?;
    let rest = target.as_str().strip_prefix(PATH)?;
    (*request.method() == Method::GET).then(|| format!("{base}{rest}"))
}

/// Returns whether an address has the expected state.
fn has_state(url: &str, state: &str) -> bool {
    came_back(url).is_some_and(|it| it.state.as_deref() == Some(state))
}

/// Returns the page that the browser shows.
fn reply(is_ours: bool) -> hyper::http::Result<Response<String>> {
    let (status, text) = match is_ours {
        true => (
            StatusCode::OK,
            "Go back to the terminal; this page can be closed.\n",
        ),
        false => (
            StatusCode::BAD_REQUEST,
            "This is not the address that the sign-in leads back to.\n",
        ),
    };
    Response::builder()
        .status(status)
        .header(CONTENT_TYPE, "text/plain; charset=utf-8")
        .header(CACHE_CONTROL, "no-store")
        .body(text.to_owned())
}

/// Reads an address that a browser came back to.
pub(super) fn came_back(url: &str) -> Option<RedirectQuery> {
    let url = url::Url::parse(url.trim()).ok()?;
    let mut found = RedirectQuery::default();
    let mut description = None;
    for (key, value) in url.query_pairs() {
        let field = match &*key {
            "code" => &mut found.code,
            "state" => &mut found.state,
            "iss" => &mut found.issuer,
            "error" => &mut found.error,
            "error_description" => &mut description,
            _ => continue,
        };
        *field = Some(value.into_owned());
    }
    if let (Some(error), Some(description)) = (&mut found.error, description) {
        *error = format!("{error}: {description}");
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    fn host(address: &str) -> &str {
        let host = address.trim_start_matches("http://").split('/').next();
        host.unwrap()
    }

    async fn get(address: &str, target: &str) -> String {
        let host = host(address);
        asked(
            address,
            &format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n"),
        )
        .await
    }

    /// Sends a request, and returns the reply.
    async fn asked(address: &str, request: &str) -> String {
        let mut stream = TcpStream::connect(host(address)).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).await.unwrap();
        reply
    }

    #[tokio::test]
    async fn only_who_knows_the_state_ends_the_wait() {
        let redirect = Redirect::listen(0).await.unwrap();
        let address = redirect.address().to_owned();
        let asking = async {
            let _idle = TcpStream::connect(host(&address)).await.unwrap();
            for target in [
                "/",
                "/favicon.ico",
                "/callback",
                "/callback?code=x&state=other",
            ] {
                assert!(
                    get(&address, target).await.starts_with("HTTP/1.1 400"),
                    "{target}"
                );
            }
            let malformed = asked(&address, "GET /callback?code=x&state=s\r\n\r\n").await;
            assert!(!malformed.starts_with("HTTP/1.1 200"), "{malformed}");
            get(&address, "/callback?code=a%2Fb&state=s").await
        };
        let (url, reply) = tokio::join!(redirect.wait("s"), asking);
        assert!(reply.starts_with("HTTP/1.1 200"), "{reply}");
        let back = came_back(&url.unwrap()).unwrap();
        assert_eq!((back.code.as_deref(), back.error), (Some("a/b"), None));
    }

    #[tokio::test]
    async fn a_port_that_is_taken_is_named() {
        let taken = Redirect::listen(0).await.unwrap();
        let port = taken.listener.local_addr().unwrap().port();
        let err = Redirect::listen(port).await.err().unwrap();
        assert!(err.contains(&port.to_string()), "{err}");
    }

    #[test]
    fn a_refusal_is_read_with_its_reason() {
        let url = "http://127.0.0.1/callback?error=access_denied&error_description=not+now&state=s";
        let back = came_back(url).unwrap();
        assert_eq!(back.error.as_deref(), Some("access_denied: not now"));
        assert_eq!(came_back("no address"), None);
    }
}
