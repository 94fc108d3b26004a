//! Waits for the browser to come back from an authorisation server, on a port of this machine.

use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
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

/// What an address says that a browser came back to.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct CameBack {
    pub(super) code: Option<String>,
    pub(super) state: Option<String>,
    pub(super) issuer: Option<String>,
    /// Why there is no code.
    pub(super) error: Option<String>,
}

impl Redirect {
    /// Listens on a port; on any that is free where it is 0.
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

    /// Waits for the browser. Requests that do not know `state` are none of it.
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

/// Reads a request and answers it. Returns the address where it is the one that is waited for.
async fn answered(mut stream: TcpStream, base: String, state: String) -> Option<String> {
    let mut head = Vec::new();
    while !head.windows(4).any(|it| it == b"\r\n\r\n") {
        if head.len() >= HEAD_BYTES_MAX {
            return None;
        }
        if stream.read_buf(&mut head).await.ok()? == 0 {
            return None;
        }
    }
    let line = head.split(|it| *it == b'\r').next()?;
    let mut words = std::str::from_utf8(line).ok()?.split(' ');
    let (method, target) = (words.next()?, words.next()?);
    let url = match target.strip_prefix(PATH) {
        Some(rest) if method == "GET" => format!("{base}{rest}"),
        _ => String::new(),
    };
    let is_ours = came_back(&url).is_some_and(|it| it.state.as_deref() == Some(&state));
    let (status, text) = match is_ours {
        true => (
            "200 OK",
            "Go back to the terminal; this page can be closed.\n",
        ),
        false => ("400 Bad Request", "This is not what is waited for.\n"),
    };
    let reply = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n\
         Cache-Control: no-store\r\nConnection: close\r\n\r\n{text}",
        text.len()
    );
    let _ = stream.write_all(reply.as_bytes()).await;
    let _ = stream.shutdown().await;
    is_ours.then_some(url)
}

/// Reads an address that a browser came back to.
pub(super) fn came_back(url: &str) -> Option<CameBack> {
    let url = url::Url::parse(url.trim()).ok()?;
    let mut found = CameBack::default();
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

    async fn get(address: &str, target: &str) -> String {
        let host = address
            .trim_start_matches("http://")
            .split('/')
            .next()
            .unwrap();
        let mut stream = TcpStream::connect(host).await.unwrap();
        let request = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n");
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
            let _idle =
                TcpStream::connect(address.trim_start_matches("http://").trim_end_matches(PATH))
                    .await
                    .unwrap();
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
