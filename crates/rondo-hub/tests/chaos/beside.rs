//! What others do with the same chats and the same model, in the same run: a client that only sends the requests, and another
//! gateway.

use crate::load::{self, CALLS, TURNS, status};
use crate::model::{self, Task};
use rondo_testkit::{Gate, Script, Server, Step};
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// How long another gateway may take until it answers, what it has to install included.
const START_MAX: Duration = Duration::from_secs(600);
/// How long it may take until each chat has asked.
const ASKED_MAX: Duration = Duration::from_secs(600);
const TRY_AGAIN: Duration = Duration::from_millis(200);

/// Sends the requests of all chats, each on a connection of its own, and says how many a second that were.
pub(crate) async fn client(chats: usize) {
    let model = Server::start(Script::answering(model::reply)).await;
    let address = model.address();
    let began = Instant::now();
    let mut all = JoinSet::new();
    for chat in 0..chats {
        all.spawn(async move { ask_all(address, chat, chats).await });
    }
    all.join_all().await;
    let requests = (chats * TURNS * (CALLS + 1)) as f64;
    let rate = requests / began.elapsed().as_secs_f64();
    println!("a client that only sends these requests: {rate:.1} a second");
}

async fn ask_all(address: SocketAddr, chat: usize, chats: usize) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let mut messages = Vec::new();
    for turn in 0..TURNS {
        let number = turn * chats + chat;
        messages.push(json!({"role": "user", "content": load::text(turn, number)}));
        for call in 0..=CALLS {
            let body = json!({"stream": true, "messages": messages}).to_string();
            let reply = posted(&mut stream, address, &body, b"\r\n0\r\n\r\n").await;
            messages.extend(answered(call, number));
            assert!(reply.contains("[DONE]"), "{reply}");
        }
    }
}

/// What a turn's conversation has more after a reply.
fn answered(call: usize, number: usize) -> Vec<Value> {
    if call == CALLS {
        return vec![json!({"role": "assistant", "content": model::answer(number)})];
    }
    let id = format!("c{call}");
    let made = json!({"name": "list_files", "arguments": "{\"path\":\".\"}"});
    vec![
        json!({"role": "assistant", "tool_calls": [{"id": id, "type": "function", "function": made}]}),
        json!({"role": "tool", "tool_call_id": id, "content": ""}),
    ]
}

async fn posted(stream: &mut TcpStream, to: SocketAddr, body: &str, end: &[u8]) -> String {
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: {to}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(body.as_bytes()).await.unwrap();
    let (mut reply, mut room) = (Vec::new(), vec![0; 16 << 10]);
    while !reply.ends_with(end) {
        let count = stream.read(&mut room).await.unwrap();
        assert!(count > 0, "{}", String::from_utf8_lossy(&reply));
        reply.extend_from_slice(&room[..count]);
    }
    String::from_utf8(reply).unwrap()
}

/// Has another gateway do the same, and says what it did and what it held. It is started with a directory of its own, the
/// model's address and a port, at which it serves a session for each `session_id`.
pub(crate) async fn peer(program: &Path, chats: usize) {
    let gate = Gate::new();
    let held = gate.clone();
    let script = Script::answering(move |request| {
        let reply = model::reply(request);
        // What sets it up is answered at once.
        match model::asked(&request.json()).contains(" calls ") {
            true => reply.before(Step::Gate(held.clone())),
            false => reply,
        }
    });
    let model = Server::start(script).await;
    let home = tempfile::tempdir().unwrap();
    let port = free_port();
    let mut gateway = Command::new(program)
        .args([home.path().as_os_str(), model.url("/v1").as_ref()])
        .arg(port.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    up(address, &mut gateway).await;
    asked(address, "warm".to_owned(), Task::Plain.said(0)).await;
    let pid = gateway.id().unwrap();
    let idle = status(pid, "VmRSS:");
    let began = Instant::now();
    let mut all = JoinSet::new();
    for chat in 0..chats {
        all.spawn(talk(address, chat, chats));
    }
    let first = timeout(ASKED_MAX, model.request(chats)).await;
    first.expect("each chat asks while all others wait");
    let asking = status(pid, "VmRSS:");
    gate.open();
    let mut waits: Vec<Duration> = all.join_all().await.into_iter().flatten().collect();
    let took = began.elapsed().as_secs_f64();
    let after = status(pid, "VmRSS:");
    gateway.kill().await.unwrap();
    waits.sort();
    let total = chats * TURNS;
    let at = |percent: usize| waits[(waits.len() - 1) * percent / 100].as_secs_f64();
    println!("{}, the same chats:", program.display());
    println!(
        "{total} turns in {took:.1} s: {:.1} turns a second; a turn took {:.2} s (median), {:.2} s (99 %)",
        total as f64 / took,
        at(50),
        at(99)
    );
    println!(
        "memory: {idle} KiB idle, {asking} KiB with a request of each chat under way, {after} KiB after; {:.1} KiB a chat",
        asking.saturating_sub(idle) as f64 / chats as f64
    );
}

/// Says all that one person says, and returns how long each answer took.
async fn talk(address: SocketAddr, chat: usize, chats: usize) -> Vec<Duration> {
    let mut waits = Vec::new();
    for turn in 0..TURNS {
        let number = turn * chats + chat;
        let began = Instant::now();
        let reply = asked(address, format!("p{chat}"), load::text(turn, number)).await;
        waits.push(began.elapsed());
        assert!(reply.contains(&model::answer(number)), "{reply}");
    }
    waits
}

/// Says something in a session, and returns the answer.
async fn asked(address: SocketAddr, session: String, said: String) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let said = json!([{"role": "user", "content": said}]);
    let body = json!({"session_id": session, "messages": said}).to_string();
    posted(&mut stream, address, &body, b"}").await
}

async fn up(address: SocketAddr, gateway: &mut Child) {
    let answering = async {
        while TcpStream::connect(address).await.is_err() {
            assert_eq!(gateway.try_wait().unwrap(), None, "it ended");
            sleep(TRY_AGAIN).await;
        }
    };
    timeout(START_MAX, answering).await.expect("it listens");
}

fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.local_addr().unwrap().port()
}
