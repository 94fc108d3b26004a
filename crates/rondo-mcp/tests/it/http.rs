//! Servers at addresses, over a real socket.

use crate::scripted::*;
use rondo_mcp::config::{Origin, Placeholders, Server, WrittenServer};
use rondo_mcp::{Era, Servers};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// A request: its method, headers in lower case, and message.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) head: String,
    pub(crate) message: Value,
}

/// Answers each request with what the function returns: status, headers and body.
type Answer = fn(&Request) -> (u16, &'static str, String);

async fn listen(answer: Answer) -> (String, Arc<Mutex<Vec<Request>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/mcp", listener.local_addr().unwrap());
    let requests = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&requests);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, answer, Arc::clone(&seen)));
        }
    });
    (address, requests)
}

async fn serve(mut stream: TcpStream, answer: Answer, seen: Arc<Mutex<Vec<Request>>>) {
    while let Some(request) = read(&mut stream).await {
        seen.lock().unwrap().push(request.clone());
        let (status, headers, body) = answer(&request);
        let mut response = format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\n", body.len());
        for header in headers.split('|').filter(|it| !it.is_empty()) {
            let _ = write!(response, "{header}\r\n");
        }
        let response = format!("{response}\r\n{body}");
        if stream.write_all(response.as_bytes()).await.is_err() {
            return;
        }
    }
}

pub(crate) async fn read(stream: &mut TcpStream) -> Option<Request> {
    let mut bytes = Vec::new();
    let head_end = loop {
        let mut piece = [0; 4096];
        let count = stream.read(&mut piece).await.ok().filter(|it| *it > 0)?;
        bytes.extend_from_slice(&piece[..count]);
        if let Some(at) = bytes.windows(4).position(|it| it == b"\r\n\r\n") {
            break at + 4;
        }
    };
    let head = String::from_utf8_lossy(&bytes[..head_end]).to_lowercase();
    let length = head
        .lines()
        .find_map(|it| it.strip_prefix("content-length: "));
    let length: usize = length.map_or(0, |it| it.trim().parse().unwrap());
    while bytes.len() < head_end + length {
        let mut piece = [0; 4096];
        let count = stream.read(&mut piece).await.ok().filter(|it| *it > 0)?;
        bytes.extend_from_slice(&piece[..count]);
    }
    Some(Request {
        method: head.split(' ').next().unwrap().to_owned(),
        message: serde_json::from_slice(&bytes[head_end..]).unwrap_or_default(),
        head,
    })
}

pub(crate) fn at(address: &str) -> Server {
    let written = WrittenServer {
        url: Some(address.to_owned()),
        headers: [("X-Key".to_owned(), "s3cret-value".to_owned())].into(),
        ..WrittenServer::default()
    };
    let none = |_: &str| None;
    written
        .server("s", Origin::User, Placeholders::None, &none, &"/".into())
        .unwrap()
}

async fn started(address: &str) -> Servers {
    let (options, _) = options(&Scripts::default(), vec![at(address)]);
    Servers::start(options)
}

fn result(request: &Request, result: impl Into<Value>) -> String {
    let result: Value = result.into();
    json!({"jsonrpc": "2.0", "id": request.message["id"], "result": result}).to_string()
}

const JSON: &str = "Content-Type: application/json";
const EVENTS: &str = "Content-Type: text/event-stream";

/// A server of the older lifecycle, with a session, which answers calls as a stream of events.
pub(crate) fn old(request: &Request) -> (u16, &'static str, String) {
    let capabilities = json!({"tools": {}});
    match request.message["method"].as_str().unwrap_or_default() {
        "server/discover" => (
            400,
            "Content-Type: text/plain",
            "No valid session".to_owned(),
        ),
        "initialize" => {
            let began = json!({"protocolVersion": "2025-06-18", "capabilities": capabilities, "serverInfo": {"name": "x", "version": "1"}});
            (
                200,
                "Content-Type: application/json|Mcp-Session-Id: abc",
                result(request, began),
            )
        }
        "notifications/initialized" => (202, "", String::new()),
        "tools/list" => (200, JSON, result(request, json!({"tools": [tool("t")]}))),
        "tools/call" => {
            let answer = result(request, text_result("by events"));
            (
                200,
                EVENTS,
                format!(": a comment\r\nevent: message\r\ndata: {answer}\r\n\r\n"),
            )
        }
        _ => (405, "", String::new()),
    }
}

#[tokio::test]
async fn a_server_of_the_older_lifecycle_is_spoken_to_within_its_session() {
    let (address, requests) = listen(old).await;
    let servers = started(&address).await;
    let report = servers.report("s").await.unwrap();
    assert_eq!((report.failure, report.era), (None, Some(Era::Initialize)));
    assert_eq!(
        text(&call(&source(&servers), "mcp__s__t").await),
        "by events"
    );
    servers.close().await;
    let requests = requests.lock().unwrap().clone();
    let called = requests
        .iter()
        .find(|it| it.message["method"] == "tools/call")
        .unwrap();
    assert!(
        called.head.contains("mcp-session-id: abc"),
        "{}",
        called.head
    );
    assert!(
        called.head.contains("x-key: s3cret-value"),
        "{}",
        called.head
    );
    assert!(
        called.head.contains("mcp-protocol-version: 2025-06-18"),
        "{}",
        called.head
    );
    assert!(
        requests.iter().any(|it| it.method == "delete"),
        "its session is ended"
    );
}

fn new(request: &Request) -> (u16, &'static str, String) {
    match request.message["method"].as_str().unwrap_or_default() {
        "server/discover" => {
            let found = json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "ttlMs": 0, "cacheScope": "private"});
            (200, JSON, result(request, found))
        }
        "tools/list" => {
            let listed = json!({"resultType": "complete", "tools": [tool("t")], "ttlMs": 0, "cacheScope": "private"});
            (200, JSON, result(request, listed))
        }
        "tools/call" => (200, JSON, result(request, text_result("new"))),
        _ => (404, "", String::new()),
    }
}

#[tokio::test]
async fn a_server_of_the_newer_lifecycle_is_told_method_and_name_in_headers() {
    let (address, requests) = listen(new).await;
    let servers = started(&address).await;
    assert_eq!(servers.report("s").await.unwrap().era, Some(Era::Discover));
    assert_eq!(text(&call(&source(&servers), "mcp__s__t").await), "new");
    let requests = requests.lock().unwrap().clone();
    let called = requests
        .iter()
        .find(|it| it.message["method"] == "tools/call")
        .unwrap();
    for header in [
        "mcp-method: tools/call",
        "mcp-name: t",
        "mcp-protocol-version: 2026-07-28",
    ] {
        assert!(called.head.contains(header), "{}", called.head);
    }
    assert!(
        !requests
            .iter()
            .any(|it| it.message["method"] == "initialize")
    );
}

#[tokio::test]
async fn what_a_server_refuses_is_said_without_the_key() {
    let refused: [(Answer, &str); 4] = [
        (
            |_| (401, "WWW-Authenticate: Bearer realm=x", String::new()),
            "it asks for authorisation",
        ),
        (
            |_| (503, "Content-Type: text/html", "<h1>busy</h1>".to_owned()),
            "503",
        ),
        (
            |_| (200, "Content-Type: text/html", "<h1>hello</h1>".to_owned()),
            "text/html",
        ),
        (
            |_| (302, "Location: http://127.0.0.1:1/", String::new()),
            "302",
        ),
    ];
    for (answer, expected) in refused {
        let (address, _) = listen(answer).await;
        let servers = started(&address).await;
        let why = servers.report("s").await.unwrap().failure.unwrap();
        assert!(why.contains(expected), "{why}");
        assert!(!why.contains("s3cret"), "{why}");
    }
    let servers = started("http://127.0.0.1:1/mcp").await;
    let why = servers.report("s").await.unwrap().failure.unwrap();
    assert!(why.contains("the connection failed"), "{why}");
}

#[tokio::test]
async fn an_answer_that_is_not_the_protocols_ends_the_call_alone() {
    let broken: [Answer; 3] = [
        |request| match request.message["method"] == "tools/call" {
            true => (200, JSON, "{\"not\": \"a message\"}".to_owned()),
            false => new(request),
        },
        |request| match request.message["method"] == "tools/call" {
            true => (200, EVENTS, "data: {]\n\n".to_owned()),
            false => new(request),
        },
        |request| match request.message["method"] == "tools/call" {
            true => (500, JSON, "oops".to_owned()),
            false => new(request),
        },
    ];
    for answer in broken {
        let (address, _) = listen(answer).await;
        let servers = started(&address).await;
        servers.report("s").await.unwrap();
        let outcome = call(&source(&servers), "mcp__s__t").await;
        assert!(!outcome.is_ok(), "{outcome:?}");
    }
}

/// Forgets its session before the first call, and says so with 400.
fn forgetful(request: &Request) -> (u16, &'static str, String) {
    static INITIALISED: AtomicU32 = AtomicU32::new(0);
    match request.message["method"].as_str().unwrap_or_default() {
        "initialize" => {
            INITIALISED.fetch_add(1, Ordering::Relaxed);
            old(request)
        }
        "tools/call" if INITIALISED.load(Ordering::Relaxed) < 2 => (
            400,
            JSON,
            json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32000, "message": "Bad Request: No valid session ID provided"}})
                .to_string(),
        ),
        _ => old(request),
    }
}

#[tokio::test]
async fn a_server_that_forgot_its_session_and_says_400_is_begun_with_anew() {
    let (address, requests) = listen(forgetful).await;
    let servers = started(&address).await;
    assert_eq!(servers.report("s").await.unwrap().failure, None);
    let outcome = call(&source(&servers), "mcp__s__t").await;
    assert_eq!(text(&outcome), "by events");
    let requests = requests.lock().unwrap().clone();
    let begun = requests
        .iter()
        .filter(|it| it.message["method"] == "initialize");
    assert_eq!(begun.count(), 2);
}

#[tokio::test]
async fn a_server_that_refuses_to_be_told_that_it_is_initialised_goes_on() {
    let (address, _) = listen(|request| match request.message["method"].as_str() {
        Some("notifications/initialized") => (400, JSON, "{}".to_owned()),
        _ => old(request),
    })
    .await;
    let servers = started(&address).await;
    assert_eq!(servers.report("s").await.unwrap().failure, None);
    assert_eq!(
        text(&call(&source(&servers), "mcp__s__t").await),
        "by events"
    );
}

#[tokio::test]
async fn a_redirect_within_the_host_is_followed_and_another_is_named() {
    let (address, requests) = listen(|request| match request.head.contains(" /mcp/ ") {
        true => new(request),
        false => (307, "Location: /mcp/", String::new()),
    })
    .await;
    let servers = started(&address).await;
    assert_eq!(servers.report("s").await.unwrap().failure, None);
    assert_eq!(text(&call(&source(&servers), "mcp__s__t").await), "new");
    let requests = requests.lock().unwrap().clone();
    let followed = requests.iter().filter(|it| it.head.contains(" /mcp/ "));
    assert!(
        followed
            .clone()
            .all(|it| it.head.contains("x-key: s3cret-value"))
    );
    assert!(followed.count() >= 3);

    let elsewhere: [Answer; 2] = [
        |_| {
            (
                307,
                "Location: http://localhost:1/mcp?key=s3cret",
                String::new(),
            )
        },
        |_| {
            (
                301,
                "Location: http://localhost:1/mcp?key=s3cret",
                String::new(),
            )
        },
    ];
    for answer in elsewhere {
        let (address, _) = listen(answer).await;
        let servers = started(&address).await;
        let why = servers.report("s").await.unwrap().failure.unwrap();
        assert!(
            why.contains("it has moved to `http://localhost:1/mcp`; set that as its `url`"),
            "{why}"
        );
    }
    let (address, _) = listen(|_| (307, "Location: /mcp", String::new())).await;
    let servers = started(&address).await;
    let why = servers.report("s").await.unwrap().failure.unwrap();
    assert!(why.contains("it redirects more than 3 times"), "{why}");
}

#[tokio::test]
async fn what_goes_wrong_with_a_request_is_said_in_plain_words() {
    let broken: [(Answer, &str); 3] = [
        (
            |request| match request.message["method"] == "tools/call" {
                true => (200, "Content-Type: text/html", "<h1>hello</h1>".to_owned()),
                false => new(request),
            },
            "it answered with `text/html` and not with JSON",
        ),
        (
            |request| match request.message["method"] == "tools/call" {
                true => (503, "Content-Type: text/html", "busy".to_owned()),
                false => new(request),
            },
            "it answered with the HTTP status 503",
        ),
        (
            |request| match request.message["method"] == "tools/call" {
                true => (200, JSON, "{\"not\": \"a message\"}".to_owned()),
                false => new(request),
            },
            "its answer is not a message of the protocol",
        ),
    ];
    for (answer, expected) in broken {
        let (address, _) = listen(answer).await;
        let servers = started(&address).await;
        servers.report("s").await.unwrap();
        let said = text(&call(&source(&servers), "mcp__s__t").await);
        assert!(said.contains(expected), "{said}");
        for rust in ["Transport", "Client error", "Some(", "rmcp"] {
            assert!(!said.contains(rust), "{said}");
        }
    }
}

#[tokio::test]
async fn a_block_of_an_unknown_kind_costs_no_more_than_itself() {
    let (address, _) = listen(|request| match request.message["method"] == "tools/call" {
        true => {
            let content =
                json!([{"type": "text", "text": "words"}, {"type": "hologram", "shape": "cube"}]);
            (
                200,
                JSON,
                result(
                    request,
                    json!({"resultType": "complete", "content": content}),
                ),
            )
        }
        false => new(request),
    })
    .await;
    let servers = started(&address).await;
    servers.report("s").await.unwrap();
    let said = text(&call(&source(&servers), "mcp__s__t").await);
    assert!(
        said.contains("words") && said.contains("hologram"),
        "{said}"
    );
}
