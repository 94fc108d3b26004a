//! Attacks that others made on gateways like this one, made on this one.

use crate::http::{LONG, Request};
use crate::world::World;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use rondo_hub::api::{Api, ApiOptions};
use rondo_hub::channel::Channel;
use rondo_hub::users::Role;
use rondo_hub::{Hub, HubConfig};
use rondo_runtime::env::Env;
use rondo_runtime::{Layer, NoNotices, Runtime};
use rondo_testkit::{ReplyScript, openai};
use rustix::process::Resource;
use serde_json::json;
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

#[tokio::test]
async fn a_page_in_a_browser_cannot_drive_the_local_port() {
    let world = World::new([]).await;
    let key = world.user("ada", Role::Owner).await;
    let host = world.address.to_string();
    let own = format!("http://{host}");
    let send = async |headers: &[(&str, &str)]| {
        let mut request = world.request("POST", "/v1/chats/home/messages").key(&key);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        request.json(&json!({ "text": "Hi." })).send().await.status
    };
    for (headers, status) in [
        // Another page, also one of another port of this machine, and one from a file.
        (vec![("Origin", "https://evil.example")], 403),
        (vec![("Origin", "http://127.0.0.1:3000")], 403),
        (vec![("Origin", "null")], 403),
        (vec![("Sec-Fetch-Site", "cross-site")], 403),
        (vec![("Sec-Fetch-Site", "same-site")], 403),
        // A name that was rebound to this address.
        (vec![("Host", "evil.example")], 421),
        (
            vec![("Host", "evil.example"), ("Origin", "http://evil.example")],
            421,
        ),
        (vec![("Host", "127.0.0.1.evil.example")], 421),
        (
            vec![
                ("Host", "hub.example.org"),
                ("Origin", "http://evil.example"),
            ],
            403,
        ),
        (
            vec![
                ("X-Forwarded-Host", "evil.example"),
                ("Origin", "http://evil.example"),
            ],
            403,
        ),
    ] {
        assert_eq!(send(&headers).await, status, "{headers:?}");
    }
    assert_eq!(
        world.get("/v1/chats", &key).await.json()["chats"],
        json!([])
    );
    assert_eq!(send(&[("Origin", &own)]).await, 202);
    world.stop().await;
}

#[tokio::test]
async fn a_form_of_another_page_sends_nothing() {
    let world = World::new([]).await;
    let key = world.user("ada", Role::Owner).await;
    for kind in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/jsonx",
        "",
    ] {
        let request = world.request("POST", "/v1/chats/home/messages").key(&key);
        let sent = request
            .body(kind, br#"{"text": "Hi."}"#.to_vec())
            .send()
            .await;
        assert_eq!(sent.status, 415, "{kind}");
    }
    world.stop().await;
}

#[tokio::test]
async fn a_key_in_an_address_is_none() {
    let world = World::new([]).await;
    let key = world.user("ada", Role::Owner).await;
    for query in ["key", "token", "access_token", "api_key"] {
        let path = format!("/v1/me?{query}={key}");
        assert_eq!(
            world.request("GET", &path).send().await.status,
            401,
            "{query}"
        );
    }
    world.stop().await;
}

#[tokio::test]
async fn a_key_is_taken_from_no_cookie_and_no_other_header() {
    let world = World::new([]).await;
    let key = world.user("ada", Role::Owner).await;
    let basic = data_encoding::BASE64.encode(format!("ada:{key}").as_bytes());
    for (name, value) in [
        ("Cookie", format!("key={key}; token={key}; session={key}")),
        ("X-Api-Key", key.clone()),
        ("Api-Key", key.clone()),
        ("Proxy-Authorization", format!("Bearer {key}")),
        ("Authorization", format!("Basic {basic}")),
        ("Authorization", key.clone()),
    ] {
        let request = world.request("GET", "/v1/me").header(name, &value);
        assert_eq!(request.send().await.status, 401, "{name}");
    }
    world.stop().await;
}

#[tokio::test]
async fn a_forwarded_address_gives_no_further_tries() {
    let world = World::new([]).await;
    let mut refused = 0;
    for number in 0..40 {
        let from = format!("203.0.113.{number}");
        let request = world
            .request("GET", "/v1/me")
            .key(&format!("rondo_guess{number}"))
            .header("X-Forwarded-For", &from)
            .header("X-Real-IP", &from)
            .header("Forwarded", &format!("for={from}"));
        refused += usize::from(request.send().await.status == 429);
    }
    assert_eq!(refused, 10);
    world.stop().await;
}

#[tokio::test]
async fn keys_are_tried_a_bounded_number_of_times_on_loopback_too() {
    let world = World::new([]).await;
    let key = world.user("ada", Role::Owner).await;
    assert_eq!(world.get("/v1/me", &key).await.status, 200);
    let mut statuses = Vec::new();
    for number in 0..40 {
        let response = world.get("/v1/me", &format!("rondo_guess{number}")).await;
        if response.status == 429 {
            assert!(response.header("retry-after").is_some());
        }
        statuses.push(response.status);
    }
    assert_eq!(
        statuses.iter().filter(|it| **it == 401).count(),
        30,
        "{statuses:?}"
    );
    assert_eq!(statuses.iter().filter(|it| **it == 429).count(), 10);
    // The owner of a key is not shut out by a client that guesses keys.
    assert_eq!(world.get("/v1/me", &key).await.status, 200);
    world.stop().await;
}

#[tokio::test]
async fn idle_connections_without_a_key_refuse_nobody() {
    let world = World::new([]).await;
    let key = world.user("ada", Role::Owner).await;
    // One that showed its key holds none of the places of strangers.
    let mut user = TcpStream::connect(world.address).await.unwrap();
    let ask = format!(
        "GET /v1/me HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {key}\r\n\r\n",
        world.address
    );
    ask_once(&mut user, &ask).await;
    let mut strangers = Vec::new();
    for _ in 0..300 {
        let mut stream = TcpStream::connect(world.address).await.unwrap();
        stream.write_all(b"GET /v1/me HTTP/1.1\r\n").await.unwrap();
        strangers.push(stream);
    }
    ask_once(&mut user, &ask).await;
    for _ in 0..10 {
        assert_eq!(world.get("/v1/me", &key).await.status, 200);
    }
    // The oldest gave way.
    let mut byte = [0];
    let read = timeout(LONG, strangers[0].read(&mut byte)).await.unwrap();
    assert!(matches!(read, Ok(0) | Err(_)));
    drop(strangers);
    world.stop().await;
}

#[tokio::test]
async fn a_hundred_clients_at_once_are_all_answered() {
    let world = World::new([]).await;
    let key = world.user("ada", Role::Owner).await;
    let asked = (0..100).map(|_| world.get("/v1/me", &key));
    let answers = futures_util::future::join_all(asked).await;
    let answered = answers.iter().filter(|it| it.status == 200).count();
    assert_eq!(answered, 100);
    world.stop().await;
}

/// Begins a message of a length and sends its first bytes.
async fn unfinished(world: &World, key: &str, length: usize, sent: usize) -> TcpStream {
    let request = world.request("POST", "/v1/chats/home/messages").key(key);
    let request = request
        .header("Content-Type", "application/json")
        .header("Content-Length", &length.to_string());
    let mut stream = request.open().await;
    // The hub may refuse before it has read all of it.
    let _ = stream.write_all(&vec![b' '; sent]).await;
    stream
}

/// Returns the beginning of an answer that must be there.
async fn answer_of(mut stream: TcpStream) -> (String, TcpStream) {
    let mut buffer = [0; 12];
    let read = timeout(LONG, stream.read_exact(&mut buffer)).await.unwrap();
    read.unwrap();
    (String::from_utf8_lossy(&buffer).into_owned(), stream)
}

#[tokio::test]
async fn a_guest_with_many_slow_bodies_leaves_room_for_others() {
    let world = World::new([]).await;
    let guest = world.user("gus", Role::Guest).await;
    let member = world.user("mia", Role::Member).await;
    let owner = world.user("ada", Role::Owner).await;
    // Both ends of each connection are in this process.
    let mut files = rustix::process::getrlimit(Resource::Nofile);
    files.current = files.maximum;
    rustix::process::setrlimit(Resource::Nofile, files).unwrap();
    let mut slow = Vec::new();
    for _ in 0..1_100 {
        slow.push(unfinished(&world, &guest, 1000, 1).await);
    }
    while world.get("/v1/me", &guest).await.status != 503 {}
    for _ in 0..10 {
        assert_eq!(world.get("/v1/me", &guest).await.status, 503);
    }
    assert_eq!(world.get("/v1/me", &member).await.status, 200);
    assert_eq!(world.get("/v1/me", &owner).await.status, 200);
    drop(slow);
    world.stop().await;
}

#[tokio::test]
async fn bodies_that_do_not_end_are_held_up_to_a_bound_for_each_key() {
    const LENGTH: usize = 15 << 20;
    let world = World::new([]).await;
    let guest = world.user("gus", Role::Guest).await;
    let owner = world.user("ada", Role::Owner).await;
    let mut streams = Vec::new();
    for _ in 0..60 {
        streams.push(unfinished(&world, &guest, LENGTH, LENGTH - 1).await);
    }
    // Two of them are within the bound.
    let answers = streams.into_iter().map(answer_of);
    let mut waiting = FuturesUnordered::from_iter(answers);
    let refused: Vec<_> = waiting.by_ref().take(58).collect().await;
    assert!(refused.iter().all(|(answer, _)| answer == "HTTP/1.1 503"));
    let body = json!({ "text": "", "files": [{ "name": "f", "data": "A".repeat(12 << 20) }] });
    let sent = world.post("/v1/chats/home/messages", &owner, &body).await;
    assert_eq!(sent.status, 202, "{}", sent.text());
    drop((refused, waiting));
    world.stop().await;
}

async fn ask_once(stream: &mut TcpStream, request: &str) {
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    let mut buffer = [0; 4096];
    while !answer.contains("\"role\"") {
        let read = timeout(LONG, stream.read(&mut buffer)).await.unwrap();
        let count = read.unwrap();
        assert!(count > 0, "{answer}");
        answer.push_str(std::str::from_utf8(buffer.get(..count).unwrap()).unwrap());
    }
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[tokio::test]
async fn heads_and_bodies_have_bounds() {
    let world = World::new([]).await;
    let key = world.user("ada", Role::Owner).await;
    let long = "x".repeat(64 << 10);
    let request = world.request("GET", "/v1/me").header("X-Long", &long);
    assert!(matches!(request.key(&key).send().await.status, 400 | 431));
    let mut request = world.request("GET", "/v1/me").key(&key);
    for number in 0..100 {
        request = request.header(&format!("X-{number}"), "x");
    }
    assert!(matches!(request.send().await.status, 400 | 431));
    let body = json!({ "text": "x".repeat(17 << 20) });
    let sent = world.post("/v1/chats/home/messages", &key, &body).await;
    assert_eq!(sent.status, 413);
    // Strangers' bodies are not even read.
    let request = world.request("POST", "/v1/chats/home/messages");
    let request = request
        .header("Content-Type", "application/json")
        .header("Content-Length", "1000000000");
    assert_eq!(request.send().await.status, 401);
    world.stop().await;
}

#[tokio::test]
async fn malformed_messages_are_refused_and_say_why() {
    let world = World::new([]).await;
    let key = world.user("ada", Role::Owner).await;
    let post = async |body: serde_json::Value| {
        let sent = world.post("/v1/chats/home/messages", &key, &body).await;
        (sent.status, sent.text())
    };
    for (body, said) in [
        (json!({}), "text"),
        (json!({ "text": "" }), "empty"),
        (json!({ "text": 1 }), "string"),
        (json!({ "text": "x", "role": "owner" }), "unknown field"),
        (
            json!({ "text": "x", "files": [{ "name": "f", "data": "%" }] }),
            "base64",
        ),
        (
            json!({ "text": "x", "files": [{ "name": "", "data": "" }] }),
            "name",
        ),
        (
            json!({ "text": "x", "images": [{ "media_type": "image/svg+xml", "data": "" }] }),
            "variant",
        ),
        (json!([]), "object"),
        (json!(["x", [], []]), "object"),
        (json!({ "text": "x", "files": [["f", ""]] }), "object"),
    ] {
        let (status, text) = post(body.clone()).await;
        assert_eq!(status, 400, "{body}");
        assert!(text.contains(said), "{body}: {text}");
    }
    for chat in [
        "..",
        ".x",
        "a%2Fb",
        "%00",
        "-",
        "a b",
        "%FF",
        &"x".repeat(65),
    ] {
        let path = format!("/v1/chats/{}/messages", chat.replace(' ', "%20"));
        let sent = world.post(&path, &key, &json!({ "text": "x" })).await;
        assert_eq!(sent.status, 400, "{chat}");
    }
    for name in ["", "a b", "ü", &"x".repeat(101)] {
        let request = world.request("POST", "/v1/chats/home/messages").key(&key);
        let request = request.header("Idempotency-Key", name);
        let sent = request.json(&json!({ "text": "x" })).send().await;
        assert_eq!(sent.status, 400, "{name}");
    }
    for query in ["?limit=0", "?limit=101", "?limit=x", "?after=-1"] {
        let got = world
            .get(&format!("/v1/chats/home/messages{query}"), &key)
            .await;
        assert_eq!(got.status, 400, "{query}");
    }
    world.stop().await;
}

#[tokio::test]
async fn a_member_approves_nothing_and_a_guest_has_no_tools_that_write() {
    use rondo_testkit::CallScript;
    let call = |id| CallScript::new(id, "write_file", &json!({"path": "note", "content": "x"}));
    let replies = [
        openai::streamed(&ReplyScript::calls([call("a")]).usage(1, 1)),
        openai::streamed(&ReplyScript::text(["Sorry."]).usage(1, 1)),
    ];
    let world = World::new(replies).await;
    let guest = world.user("guest", Role::Guest).await;
    world.say("home", &guest, "Write it.").await;
    let mut events = world.events("home", &guest, "").await;
    assert_eq!(events.message().await.1["text"], "Sorry.");
    let asked = world.model.requests().remove(0);
    let asked = String::from_utf8_lossy(&asked.body).into_owned();
    assert!(!asked.contains("write_file"), "{asked}");
    let note = world.home.path().join("data/hub/chats/api@guest_home/note");
    assert!(!note.exists());
    let forged = json!({ "token": "x".repeat(22), "answer": "approve" });
    let given = world.post("/v1/chats/home/answers", &guest, &forged).await;
    assert!(matches!(given.status, 202 | 400 | 403), "{}", given.text());
    assert_eq!(world.model.requests().len(), 2);
    world.stop().await;
}

#[tokio::test]
async fn an_address_that_others_reach_is_not_opened_before_someone_has_a_key() {
    let home = tempfile::tempdir().unwrap();
    let env = Env::of(&[("RONDO_HOME", home.path().to_str().unwrap())]);
    let runtime = Runtime::new(env, Layer::default(), Arc::new(NoNotices));
    let api = Api::new(ApiOptions {
        listen: "0.0.0.0:0".parse().unwrap(),
        ..ApiOptions::default()
    });
    let channels = vec![Arc::new(api.clone()) as Arc<dyn Channel>];
    let hub = Hub::open(runtime, &HubConfig::default(), channels).unwrap();
    let refused = api.receive(hub.inbox(), CancellationToken::new()).await;
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("no user has a key"), "{refused}");
}

#[tokio::test]
async fn secrets_reach_no_answer_and_no_row() {
    let world = World::new([]).await;
    let key = world.user("ada", Role::Owner).await;
    let secret = key.strip_prefix("rondo_").unwrap();
    for path in ["/v1/me", "/v1/chats", "/metrics", "/v1/usage", "/nothing"] {
        let text = world.get(path, &key).await.text();
        assert!(!text.contains(secret), "{path}");
    }
    let wrong = Request::new(world.address, "GET", "/v1/me").key(&format!("x{key}"));
    assert!(!wrong.send().await.text().contains(secret));
    let (home, _model) = world.stop().await;
    for file in ["journal.db", "journal.db-wal"] {
        let path = home.path().join("data/sessions").join(file);
        let bytes = std::fs::read(path).unwrap_or_default();
        let is_there = bytes
            .windows(secret.len())
            .any(|it| it == secret.as_bytes());
        assert!(!is_there, "{file}");
    }
}
