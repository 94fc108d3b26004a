//! HTTP as bytes on a socket, so that tests can send what no client would.

use serde_json::Value;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Timeout that nothing here reaches.
pub(crate) const LONG: Duration = Duration::from_secs(20);

/// A response.
#[derive(Debug, Clone)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Response {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| {
            let body = String::from_utf8_lossy(&self.body);
            panic!("{error}: {body}")
        })
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// A request that is put together as it is written.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) address: SocketAddr,
    head: String,
    has_host: bool,
    body: Vec<u8>,
}

impl Request {
    pub(crate) fn new(address: SocketAddr, method: &str, path: &str) -> Self {
        Self {
            address,
            head: format!("{method} {path} HTTP/1.1\r\n"),
            has_host: false,
            body: Vec::new(),
        }
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.has_host |= name.eq_ignore_ascii_case("host");
        self.head.push_str(&format!("{name}: {value}\r\n"));
        self
    }

    pub(crate) fn key(self, key: &str) -> Self {
        self.header("Authorization", &format!("Bearer {key}"))
    }

    pub(crate) fn json(self, body: &Value) -> Self {
        self.body("application/json", body.to_string().into_bytes())
    }

    pub(crate) fn body(mut self, kind: &str, body: Vec<u8>) -> Self {
        self.body = body;
        let length = self.body.len().to_string();
        self.header("Content-Type", kind)
            .header("Content-Length", &length)
    }

    /// Sends it, and reads the response to its end.
    pub(crate) async fn send(self) -> Response {
        let mut stream = self.header("Connection", "close").open().await;
        let mut bytes = Vec::new();
        let read = timeout(LONG, stream.read_to_end(&mut bytes)).await;
        read.expect("the response ends").unwrap();
        parsed(&bytes)
    }

    /// Sends it, and leaves the response to be read.
    pub(crate) async fn open(self) -> TcpStream {
        let mut request = self;
        if !request.has_host {
            let host = request.address.to_string();
            request = request.header("Host", &host);
        }
        let mut stream = TcpStream::connect(request.address).await.unwrap();
        let mut bytes = format!("{}\r\n", request.head).into_bytes();
        bytes.extend_from_slice(&request.body);
        // The server may refuse before it has read all of it.
        let _ = stream.write_all(&bytes).await;
        stream
    }
}

fn parsed(bytes: &[u8]) -> Response {
    let end = bytes.windows(4).position(|it| it == b"\r\n\r\n");
    let end = end.unwrap_or_else(|| panic!("no head in {:?}", String::from_utf8_lossy(bytes)));
    let head = std::str::from_utf8(bytes.get(..end).unwrap()).unwrap();
    let mut lines = head.split("\r\n");
    let status = lines.next().unwrap().split(' ').nth(1).unwrap();
    let headers: Vec<_> = lines
        .map(|line| {
            let (name, value) = line.split_once(": ").unwrap();
            (name.to_ascii_lowercase(), value.to_owned())
        })
        .collect();
    let raw = bytes.get(end + 4..).unwrap();
    let is_chunked = headers
        .iter()
        .any(|(name, value)| name == "transfer-encoding" && value == "chunked");
    Response {
        status: status.parse().unwrap(),
        body: match is_chunked {
            true => unchunked(raw),
            false => raw.to_vec(),
        },
        headers,
    }
}

fn unchunked(mut raw: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(end) = raw.windows(2).position(|it| it == b"\r\n") {
        let size = std::str::from_utf8(raw.get(..end).unwrap()).unwrap();
        let size = usize::from_str_radix(size, 16).unwrap();
        let from = end + 2;
        body.extend_from_slice(raw.get(from..from + size).unwrap_or_default());
        raw = raw.get(from + size + 2..).unwrap_or_default();
        if size == 0 {
            break;
        }
    }
    body
}

/// Server-sent events as they come.
pub(crate) struct Events {
    stream: TcpStream,
    text: String,
}

impl Events {
    /// Opens a stream, which must be there.
    pub(crate) async fn open(request: Request) -> Self {
        let mut events = Self {
            stream: request.open().await,
            text: String::new(),
        };
        let head = events.up_to("\r\n\r\n").await.expect("a head");
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        let head = head.to_ascii_lowercase();
        for line in [
            "content-type: text/event-stream",
            "cache-control: no-store",
            "x-accel-buffering: no",
        ] {
            assert!(head.contains(line), "{head}");
        }
        events
    }

    /// Returns the next event's id and data; `None` at the end of the stream.
    pub(crate) async fn next(&mut self) -> Option<(String, Value)> {
        loop {
            let event = self.up_to("\n\n").await?;
            let mut id = String::new();
            for line in event.lines() {
                if let Some(found) = line.strip_prefix("id: ") {
                    found.clone_into(&mut id);
                } else if let Some(data) = line.strip_prefix("data: ") {
                    return Some((id, serde_json::from_str(data).unwrap()));
                }
            }
        }
    }

    /// Returns the next message that the chat is sent.
    pub(crate) async fn message(&mut self) -> (String, Value) {
        loop {
            let (id, data) = self.next().await.expect("the stream goes on");
            if data["type"] == "message" {
                return (id, data["message"].clone());
            }
        }
    }

    async fn up_to(&mut self, end: &str) -> Option<String> {
        let mut buffer = [0; 16 << 10];
        loop {
            if let Some(at) = self.text.find(end) {
                let rest = self.text.split_off(at + end.len());
                return Some(std::mem::replace(&mut self.text, rest));
            }
            let read = timeout(LONG, self.stream.read(&mut buffer)).await;
            let count = read.expect("something comes").unwrap_or(0);
            if count == 0 {
                return None;
            }
            self.text
                .push_str(std::str::from_utf8(buffer.get(..count).unwrap()).unwrap());
        }
    }
}
