//! A proxy for commands in a sandbox: it reaches public hosts that are allowed by name, and nothing else.
//!
//! A command has a network of its own, with nothing in it but a listener that the command's starter put there and passed
//! on over a socket of this process. A client names the host it wants, as to any HTTP proxy. The name is
//! checked, then each address that it resolves to, then the one that was connected to, as for pages.

use crate::dial::{addresses, connect};
use crate::net::{Net, SystemNet};
use crate::target::Target;
use crate::unix::received_listener;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};

/// The ports that are reached: those of web servers.
const PORTS: [u16; 2] = [443, 80];
/// Commands that are served at once.
const COMMANDS_MAX: usize = 64;
/// Connections of one command that are open at once.
const CONNECTIONS_MAX: usize = 64;
/// The bound on the head of a request, in bytes.
const HEAD_BYTES_MAX: usize = 32 << 10;
/// How long a request may take to come in.
const HEAD_MAX: Duration = Duration::from_secs(30);
/// How long connecting may take, resolving included.
const DIAL_MAX: Duration = Duration::from_secs(30);

/// Which hosts are allowed, by their names in lower case.
pub type AllowsHost = dyn Fn(&str) -> bool + Send + Sync;

/// A proxy that serves commands until it is dropped.
pub struct HostProxy {
    socket: PathBuf,
    state: Arc<State>,
    _directory: Directory,
    _stop: DropGuard,
}

struct State {
    allows: Box<AllowsHost>,
    net: Arc<dyn Net>,
    ports: Vec<u16>,
    /// Connections that came about.
    reached: AtomicU64,
}

/// Removed when it is dropped.
struct Directory(PathBuf);

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A request, as far as the proxy reads it.
struct Head {
    target: Target,
    /// Request to send in its place; `None` for a tunnel.
    forwarded: Option<Vec<u8>>,
}

/// Why a request is refused: the status, and a sentence for the command's output.
type Refused = (&'static str, String);

impl HostProxy {
    /// Listens in a new directory, which only the user can enter, on the current Tokio runtime.
    ///
    /// # Errors
    /// When the directory or the socket cannot be made.
    pub fn start(directory: PathBuf, allows: Box<AllowsHost>) -> io::Result<Self> {
        Self::start_with(directory, allows, Arc::new(SystemNet), PORTS.to_vec())
    }

    /// As [`Self::start`], with names and connections by other means, and other ports.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn start_with(
        directory: PathBuf,
        allows: Box<AllowsHost>,
        net: Arc<dyn Net>,
        ports: Vec<u16>,
    ) -> io::Result<Self> {
        std::fs::DirBuilder::new().mode(0o700).create(&directory)?;
        let directory = Directory(directory);
        let socket = directory.0.join("proxy");
        let listener = UnixListener::bind(&socket)?;
        let state = Arc::new(State {
            allows,
            net,
            ports,
            reached: AtomicU64::new(0),
        });
        let stop = CancellationToken::new();
        let (serving, stopped) = (Arc::clone(&state), stop.clone());
        tokio::spawn(async move {
            tokio::select! {
                () = stopped.cancelled() => {}
                () = serve(&listener, &serving) => {}
            }
        });
        Ok(Self {
            socket,
            state,
            _directory: directory,
            _stop: stop.drop_guard(),
        })
    }

    /// Returns the socket that listeners are passed over.
    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Returns how many connections came about so far: what a command printed may be text from outside if it grew.
    #[must_use]
    pub fn reached(&self) -> u64 {
        self.state.reached.load(Ordering::Relaxed)
    }
}

async fn serve(listener: &UnixListener, state: &Arc<State>) {
    let mut commands = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept(), if commands.len() < COMMANDS_MAX => {
                match accepted {
                    Ok((stream, _)) => drop(commands.spawn(serve_command(stream, Arc::clone(state)))),
                    Err(err) => {
                        tracing::warn!(%err, "the proxy of commands cannot go on");
                        return;
                    }
                }
            }
            Some(_) = commands.join_next() => {}
        }
    }
}

/// Serves the listener of one command until the process that started it has ended.
async fn serve_command(mut starter: UnixStream, state: Arc<State>) {
    let received = timeout(HEAD_MAX, received_listener(&starter)).await;
    let listener = received.ok().and_then(Result::ok);
    let Some(listener) = listener.and_then(|it| TcpListener::from_std(it).ok()) else {
        return;
    };
    let mut connections = JoinSet::new();
    let mut nothing = [0; 1];
    loop {
        tokio::select! {
            // It says nothing: this is its end.
            _ = starter.read(&mut nothing) => return,
            accepted = listener.accept(), if connections.len() < CONNECTIONS_MAX => {
                let Ok((stream, _)) = accepted else { return };
                connections.spawn(pass(stream, Arc::clone(&state)));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Passes one connection on, or says why not.
async fn pass(mut client: TcpStream, state: Arc<State>) {
    let head = match timeout(HEAD_MAX, read_head(&mut client)).await {
        Ok(Ok(head)) => head,
        _ => return,
    };
    let opened = match state.open(&head).await {
        Ok(opened) => opened,
        Err((status, why)) => {
            let body = format!("{why}\n");
            let reply = format!(
                "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n\
                 Connection: close\r\n\r\n{body}",
                body.len()
            );
            let _ = client.write_all(reply.as_bytes()).await;
            let _ = client.shutdown().await;
            return;
        }
    };
    let (mut server, forwarded, rest) = opened;
    let begun = match &forwarded {
        Some(request) => server.write_all(request).await,
        None => {
            client
                .write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")
                .await
        }
    };
    // The bytes behind the head are the command's already.
    if begun.is_ok() && server.write_all(&rest).await.is_ok() {
        let _ = copy_bidirectional(&mut client, &mut server).await;
    }
}

/// Reads up to the empty line, and maybe beyond it.
async fn read_head(client: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    while end_of_head(&head).is_none() {
        if head.len() >= HEAD_BYTES_MAX || client.read_buf(&mut head).await? == 0 {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
    Ok(head)
}

fn end_of_head(bytes: &[u8]) -> Option<usize> {
    let at = bytes.windows(4).position(|it| it == b"\r\n\r\n")?;
    Some(at + 4)
}

impl State {
    /// Connects to what a request asks for. Returns what is sent on in its place, and what followed its head.
    async fn open(&self, bytes: &[u8]) -> Result<(TcpStream, Option<Vec<u8>>, Vec<u8>), Refused> {
        let end = end_of_head(bytes).unwrap_or(bytes.len());
        let (head, rest) = bytes.split_at_checked(end).unwrap_or((bytes, &[]));
        let Head { target, forwarded } = read(head)?;
        let host = &target.host;
        if target.literal.is_some() || !(self.allows)(host) {
            let why = format!("rondo: no rule lets commands reach `{host}`");
            return Err(("403 Forbidden", why));
        }
        if !self.ports.contains(&target.port) {
            let why = format!("rondo: the port {} of `{host}` is not reached", target.port);
            return Err(("403 Forbidden", why));
        }
        let dialling = async {
            let addresses = addresses(&target, &*self.net).await?;
            connect(&target, &addresses, &*self.net).await
        };
        let stream = match timeout(DIAL_MAX, dialling).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(err)) => return Err(("502 Bad Gateway", format!("rondo: {err}"))),
            Err(_) => {
                let why = format!("rondo: `{host}` did not answer in time");
                return Err(("504 Gateway Timeout", why));
            }
        };
        self.reached.fetch_add(1, Ordering::Relaxed);
        Ok((stream, forwarded, rest.to_vec()))
    }
}

/// Reads the head of a request: `CONNECT host:port`, or any other method with a whole `http` address.
fn read(head: &[u8]) -> Result<Head, Refused> {
    let wrong = || {
        (
            "400 Bad Request",
            "rondo: this is not a request to a proxy".to_owned(),
        )
    };
    let text = std::str::from_utf8(head).map_err(|_| wrong())?;
    let (first, fields) = text.split_once("\r\n").ok_or_else(wrong)?;
    let mut words = first.split(' ');
    let (Some(method), Some(asked), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(wrong());
    };
    let is_tunnel = method == "CONNECT";
    let address = match is_tunnel {
        true if asked.contains(['/', '@', '?', '#', '\\']) => return Err(wrong()),
        true => format!("https://{asked}/"),
        false => asked.to_owned(),
    };
    let parsed = Target::parse(&address, &[]);
    let target = parsed.map_err(|err| ("403 Forbidden", format!("rondo: {err}")))?;
    if is_tunnel {
        return Ok(Head {
            target,
            forwarded: None,
        });
    }
    if target.url.scheme() != "http" {
        return Err(wrong());
    }
    let forwarded = forwarded(method, version, fields, &target);
    Ok(Head {
        target,
        forwarded: Some(forwarded.into_bytes()),
    })
}

/// Writes the request as the server itself is asked: for a path, of the host that was checked, and once, since the next
/// request may be for another host.
fn forwarded(method: &str, version: &str, fields: &str, target: &Target) -> String {
    let url = &target.url;
    let query = url.query().map_or_else(String::new, |it| format!("?{it}"));
    let port = url.port().map_or_else(String::new, |it| format!(":{it}"));
    let mut request = format!(
        "{method} {}{query} {version}\r\nHost: {}{port}\r\nConnection: close\r\n",
        url.path(),
        target.host
    );
    let own = ["host", "connection", "proxy-connection", "keep-alive"];
    for field in fields.split("\r\n").filter(|it| !it.is_empty()) {
        let name = field.split(':').next().unwrap_or_default();
        let name = name.trim().to_ascii_lowercase();
        if !own.contains(&&*name) && !name.starts_with("proxy-auth") {
            request.push_str(field);
            request.push_str("\r\n");
        }
    }
    request.push_str("\r\n");
    request
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(head: &str) -> Result<(String, u16, Option<String>), &'static str> {
        let read = read(format!("{head}\r\n\r\n").as_bytes()).map_err(|it| it.0)?;
        let forwarded = read.forwarded.map(|it| String::from_utf8(it).unwrap());
        Ok((read.target.host, read.target.port, forwarded))
    }

    #[test]
    fn a_request_names_one_host_and_is_sent_on_for_that() {
        let tunnel = asked("CONNECT Docs.RS:443 HTTP/1.1\r\nHost: other.example:443");
        assert_eq!(tunnel, Ok(("docs.rs".to_owned(), 443, None)));
        let (host, port, forwarded) =
            asked("GET http://docs.rs/a?b=c HTTP/1.1\r\nHost: evil.example\r\nProxy-Authorization: x\r\nAccept: */*\r\nConnection: keep-alive").unwrap();
        assert_eq!((host.as_str(), port), ("docs.rs", 80));
        assert_eq!(
            forwarded.unwrap(),
            "GET /a?b=c HTTP/1.1\r\nHost: docs.rs\r\nConnection: close\r\nAccept: */*\r\n\r\n"
        );
    }

    #[test]
    fn what_is_no_request_to_a_proxy_or_not_public_is_refused() {
        for (head, status) in [
            ("GET / HTTP/1.1", "403 Forbidden"),
            ("CONNECT docs.rs:443", "400 Bad Request"),
            ("CONNECT user@docs.rs:443 HTTP/1.1", "400 Bad Request"),
            ("CONNECT docs.rs:443/x HTTP/1.1", "400 Bad Request"),
            ("CONNECT 127.0.0.1:443 HTTP/1.1", "403 Forbidden"),
            ("CONNECT [::1]:443 HTTP/1.1", "403 Forbidden"),
            ("CONNECT localhost:443 HTTP/1.1", "403 Forbidden"),
            (
                "GET http://169.254.169.254/latest HTTP/1.1",
                "403 Forbidden",
            ),
            ("GET http://0x7f000001/ HTTP/1.1", "403 Forbidden"),
            ("GET https://docs.rs/ HTTP/1.1", "400 Bad Request"),
            ("GET ftp://docs.rs/ HTTP/1.1", "403 Forbidden"),
        ] {
            assert_eq!(asked(head).err(), Some(status), "{head}");
        }
    }
}
