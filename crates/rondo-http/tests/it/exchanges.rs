//! Requests and replies as bytes, with servers that do what scripted ones do not.

use bytes::Bytes;
use hyper::Method;
use hyper::header::{CONNECTION, HeaderMap, HeaderValue};
use rondo_http::{Network, PostError, RawRequest, Transport};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// A server of which each connection is handed out as it comes.
struct Listener {
    listener: TcpListener,
    address: SocketAddr,
}

impl Listener {
    async fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        Self { listener, address }
    }

    async fn accept(&self) -> TcpStream {
        self.listener.accept().await.unwrap().0
    }

    fn request(&self, method: Method, body: Bytes) -> RawRequest {
        RawRequest {
            method,
            url: format!("http://{}/", self.address),
            headers: HeaderMap::new(),
            body,
        }
    }
}

fn transport() -> Transport {
    Transport::new(Network::default()).unwrap()
}

/// Sends a request, and returns status and body.
async fn send(transport: &Transport, request: RawRequest) -> Result<(u16, String), PostError> {
    let mut response = transport.send(request).await?;
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await? {
        body.extend_from_slice(&piece);
    }
    let status = response.status().as_u16();
    Ok((status, String::from_utf8(body).unwrap()))
}

/// Reads the head of a request.
async fn head(stream: &mut TcpStream) -> String {
    try_head(stream).await.unwrap()
}

/// Reads the head of a request, if one comes.
async fn try_head(stream: &mut TcpStream) -> std::io::Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    Ok(String::from_utf8(head).unwrap())
}

/// Answers a request of no body with these bytes.
async fn answer(stream: &mut TcpStream, bytes: &str) {
    head(stream).await;
    stream.write_all(bytes.as_bytes()).await.unwrap();
}

/// Sends a request that is answered with these bytes, after which the connection ends.
async fn answered(bytes: &str) -> Result<(u16, String), PostError> {
    let listener = Listener::start().await;
    let (transport, request) = (transport(), listener.request(Method::GET, Bytes::new()));
    let server = async {
        let mut stream = listener.accept().await;
        answer(&mut stream, bytes).await;
        stream.shutdown().await.unwrap();
        stream
    };
    let (sent, _stream) = tokio::join!(send(&transport, request), server);
    sent
}

#[tokio::test]
async fn a_request_is_its_head_and_its_body() {
    let listener = Listener::start().await;
    let (transport, request) = (transport(), listener.request(Method::POST, "hello".into()));
    let address = listener.address;
    let server = async {
        let mut stream = listener.accept().await;
        let head = head(&mut stream).await;
        let mut body = [0; 5];
        stream.read_exact(&mut body).await.unwrap();
        stream.write_all(OK.as_bytes()).await.unwrap();
        (head, body)
    };
    let (sent, (head, body)) = tokio::join!(send(&transport, request), server);
    assert_eq!(sent.unwrap(), (200, "ok".to_owned()));
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(
        head,
        format!(
            "POST / HTTP/1.1\r\nhost: {address}\r\nuser-agent: rondo/{version}\r\naccept: */*\r\ncontent-length: 5\r\n\r\n"
        )
    );
    assert_eq!(&body, b"hello");
}

/// Sends a request and returns its head.
async fn head_of(request: impl FnOnce(&Listener) -> RawRequest) -> String {
    let listener = Listener::start().await;
    let (transport, request) = (transport(), request(&listener));
    let server = async {
        let mut stream = listener.accept().await;
        let head = head(&mut stream).await;
        stream.write_all(OK.as_bytes()).await.unwrap();
        head
    };
    let (sent, head) = tokio::join!(send(&transport, request), server);
    assert_eq!(sent.unwrap().0, 200);
    head
}

#[tokio::test]
async fn a_request_says_how_long_its_body_is_whatever_its_caller_says() {
    let head = head_of(|listener| {
        let mut request = listener.request(Method::PUT, Bytes::new());
        for (name, value) in [
            ("content-length", "9"),
            ("transfer-encoding", "gzip"),
            ("host", "h"),
        ] {
            request
                .headers
                .insert(name, HeaderValue::from_static(value));
        }
        request
    })
    .await;
    let mut lines: Vec<&str> = head.trim_end().split("\r\n").skip(1).collect();
    lines.retain(|line| !line.starts_with("user-agent") && !line.starts_with("accept"));
    assert_eq!(lines, ["host: h", "content-length: 0"]);
    let head = head_of(|listener| listener.request(Method::GET, Bytes::new())).await;
    assert!(!head.contains("content-length"), "{head}");
}

#[tokio::test]
async fn bodies_end_as_their_heads_say() {
    for (bytes, expected) in [
        (OK, "ok"),
        (
            "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
            "ok",
        ),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\no\r\n1\r\nk\r\n0\r\n\r\n",
            "ok",
        ),
        ("HTTP/1.1 200 OK\r\n\r\nok", "ok"),
        ("HTTP/1.0 200 OK\r\n\r\nok", "ok"),
        ("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\nno", ""),
    ] {
        assert_eq!(
            answered(bytes).await.unwrap(),
            (200, expected.to_owned()),
            "{bytes}"
        );
    }
}

#[tokio::test]
async fn a_reply_that_ends_too_soon_is_an_error() {
    for bytes in [
        "",
        "HTTP/1.1 200 OK\r\ncontent-le",
        "HTTP/1.1 100 Continue\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nok",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nok\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
        "220 mail.example ESMTP\r\n",
    ] {
        let refused = answered(bytes).await;
        assert!(
            matches!(refused, Err(PostError::Connection(_))),
            "{bytes}: {refused:?}"
        );
    }
}

#[tokio::test]
async fn a_request_without_a_connection_is_unsent_and_one_without_an_answer_may_not_be() {
    let listener = Listener::start().await;
    let request = listener.request(Method::POST, "hello".into());
    drop(listener);
    let refused = send(&transport(), request).await.unwrap_err();
    assert!(refused.is_unsent(), "{refused:?}");
    let lost = answered("").await.unwrap_err();
    assert!(!lost.is_unsent(), "{lost:?}");
}

#[tokio::test]
async fn a_head_without_an_end_is_given_up() {
    let line = format!("x: {}\r\n", "y".repeat(4000));
    let refused = answered(&format!("HTTP/1.1 200 OK\r\n{}", line.repeat(80))).await;
    assert!(
        matches!(refused, Err(PostError::Connection(_))),
        "{refused:?}"
    );
}

#[tokio::test]
async fn a_server_that_answers_before_it_read_the_request_is_heard() {
    let listener = Listener::start().await;
    // More than the system takes of it without a reader.
    let body = Bytes::from(vec![b'x'; 32 << 20]);
    let (transport, request) = (transport(), listener.request(Method::POST, body));
    let server = async {
        let mut stream = listener.accept().await;
        answer(
            &mut stream,
            "HTTP/1.1 413 Too Large\r\ncontent-length: 3\r\n\r\nbig",
        )
        .await;
        stream
    };
    let (sent, mut stream) = tokio::join!(send(&transport, request), server);
    assert_eq!(sent.unwrap(), (413, "big".to_owned()));
    // Half a request is left on it, so nothing else may follow.
    let next = listener.request(Method::GET, Bytes::new());
    let server = async {
        let mut other = listener.accept().await;
        answer(&mut other, OK).await;
    };
    let (sent, ()) = tokio::join!(send(&transport, next), server);
    assert_eq!(sent.unwrap().0, 200);
    let mut rest = vec![0; 1 << 20];
    while stream.read(&mut rest).await.is_ok_and(|read| read > 0) {}
}

#[tokio::test]
async fn a_server_that_answers_before_it_read_the_request_and_closes_is_heard() {
    let listener = Listener::start().await;
    let body = Bytes::from(vec![b'x'; 32 << 20]);
    let (transport, request) = (transport(), listener.request(Method::POST, body));
    let server = async {
        let mut stream = listener.accept().await;
        let refused = "HTTP/1.1 413 Too Large\r\ncontent-length: 3\r\n\r\nbig";
        answer(&mut stream, refused).await;
    };
    let (sent, ()) = tokio::join!(send(&transport, request), server);
    assert_eq!(sent.unwrap(), (413, "big".to_owned()));
}

#[tokio::test]
async fn dropping_a_response_closes_its_connection() {
    let listener = Listener::start().await;
    let (transport, request) = (transport(), listener.request(Method::GET, Bytes::new()));
    let server = async {
        let mut stream = listener.accept().await;
        let begun = "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nok";
        answer(&mut stream, begun).await;
        stream
    };
    let (sent, mut stream) = tokio::join!(transport.send(request), server);
    let mut response = sent.unwrap();
    assert_eq!(response.chunk().await.unwrap().unwrap(), "ok");
    drop(response);
    assert_eq!(stream.read(&mut [0]).await.unwrap(), 0);
}

/// Answers what comes on a connection, with the next answer each time.
async fn serve(mut stream: TcpStream, answers: Arc<Mutex<Vec<&'static str>>>, closes: bool) {
    while try_head(&mut stream).await.is_ok() {
        let next = answers.lock().unwrap().pop().unwrap();
        stream.write_all(next.as_bytes()).await.unwrap();
        if closes {
            stream.shutdown().await.unwrap();
        }
    }
}

/// Sends two requests, of which the first is answered with these bytes. Returns on how many connections they came.
async fn connections_after(first: &'static str, closes: bool) -> usize {
    let get = |listener: &Listener| listener.request(Method::GET, Bytes::new());
    connections_of(get, first, closes).await
}

/// As [`connections_after`], with this request twice.
async fn connections_of(
    request: impl Fn(&Listener) -> RawRequest,
    first: &'static str,
    closes: bool,
) -> usize {
    let listener = Listener::start().await;
    let transport = transport();
    let requests = [0, 1].map(|_| request(&listener));
    let connections = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&connections);
    let mut server = JoinSet::new();
    server.spawn(async move {
        let answers = Arc::new(Mutex::new(vec![OK, first]));
        let mut served = JoinSet::new();
        loop {
            let stream = listener.accept().await;
            counted.fetch_add(1, Ordering::Relaxed);
            served.spawn(serve(stream, Arc::clone(&answers), closes));
        }
    });
    for request in requests {
        assert_eq!(send(&transport, request).await.unwrap().0, 200);
    }
    connections.load(Ordering::Relaxed)
}

#[tokio::test]
async fn a_connection_is_kept_unless_something_is_left_on_it_or_it_ends() {
    assert_eq!(connections_after(OK, false).await, 1);
    let empty = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n";
    assert_eq!(connections_after(empty, false).await, 1);
    let old = "HTTP/1.0 200 OK\r\ncontent-length: 2\r\nconnection: keep-alive\r\n\r\nok";
    assert_eq!(connections_after(old, false).await, 1);
    let head = |listener: &Listener| listener.request(Method::HEAD, Bytes::new());
    let without_body = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n";
    assert_eq!(connections_of(head, without_body, false).await, 1);
    for ends in [
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok",
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\nHTTP",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-length: 2\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        "HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok",
    ] {
        assert_eq!(connections_after(ends, false).await, 2, "{ends}");
    }
    assert_eq!(connections_after(OK, true).await, 2);
    let last = |listener: &Listener| {
        let mut request = listener.request(Method::GET, Bytes::new());
        let close = HeaderValue::from_static("close");
        request.headers.insert(CONNECTION, close);
        request
    };
    assert_eq!(connections_of(last, OK, false).await, 2);
}

#[tokio::test]
async fn a_connection_that_nobody_wants_is_closed_in_time() {
    let listener = Listener::start().await;
    let (transport, request) = (transport(), listener.request(Method::GET, Bytes::new()));
    let server = async {
        let mut stream = listener.accept().await;
        answer(&mut stream, OK).await;
        stream
    };
    let (sent, mut stream) = tokio::join!(send(&transport, request), server);
    assert_eq!(sent.unwrap().0, 200);
    tokio::time::pause();
    let ended = tokio::time::timeout(Duration::from_secs(60), stream.read_u8());
    assert!(ended.await.is_err(), "it is kept for a while");
    let ended = tokio::time::timeout(Duration::from_secs(60), stream.read_u8());
    assert!(ended.await.unwrap().is_err());
}

#[test]
fn connections_of_a_runtime_that_is_gone_are_not_used() {
    let transport = transport();
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
    };
    for _ in 0..2 {
        let runtime = runtime();
        let sent = runtime.block_on(async {
            let listener = Listener::start().await;
            let request = listener.request(Method::GET, Bytes::new());
            let server = async {
                let mut stream = listener.accept().await;
                answer(&mut stream, OK).await;
            };
            tokio::join!(send(&transport, request), server).0
        });
        assert_eq!(sent.unwrap().0, 200);
    }
}
