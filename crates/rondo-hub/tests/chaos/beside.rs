//! Others that use the same chats and the same model, in the same run: a client that only sends the requests, and
//! another gateway.

use crate::load::{self, CALLS, TURNS, resident_kib};
use crate::model::{self, Task};
use rondo_testkit::{Script, Server};
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

/// How long another gateway may take until it listens, what it has to install included.
const START_MAX: Duration = Duration::from_secs(600);
const TRY_AGAIN: Duration = Duration::from_millis(200);
/// The tool of another gateway that lists a directory.
const PEER_TOOL: &str = "list_dir";

/// Sends the requests of all chats, each on a connection of its own, and says how many a second that were.
pub(crate) async fn client(chats: usize) {
    let model = Server::start(Script::answering(model::reply)).await;
    let address = model.address();
    let began = Instant::now();
    let mut all = JoinSet::new();
    for chat in 0..chats {
        // One after another, since a server only holds so many that it has not accepted yet.
        let stream = TcpStream::connect(address).await.unwrap();
        all.spawn(ask_all(stream, chat, chats));
    }
    all.join_all().await;
    let requests = (chats * TURNS * (CALLS + 1)) as f64;
    let rate = requests / began.elapsed().as_secs_f64();
    println!("a client that only sends these requests: {rate:.1} a second");
}

async fn ask_all(mut stream: TcpStream, chat: usize, chats: usize) {
    let mut messages = Vec::new();
    for turn in 0..TURNS {
        let number = turn * chats + chat;
        messages.push(json!({"role": "user", "content": load::text(turn, number)}));
        for call in 0..=CALLS {
            let body = json!({"stream": true, "messages": messages}).to_string();
            let reply = posted(&mut stream, &body, STREAM_END).await;
            messages.extend(answered(call, number));
            assert!(reply.contains("[DONE]"), "{reply}");
        }
    }
}

/// Messages that a reply adds to a turn's conversation.
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

/// How a reply ends that comes in chunks.
pub(crate) const STREAM_END: &[u8] = b"\r\n0\r\n\r\n";

/// Sends a request, and reads the reply to its end.
pub(crate) async fn posted(stream: &mut TcpStream, body: &str, end: &[u8]) -> String {
    let to = stream.peer_addr().unwrap();
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: {to}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + body).as_bytes()).await.unwrap();
    let (mut reply, mut room) = (Vec::new(), vec![0; 16 << 10]);
    while !reply.ends_with(end) {
        let count = stream.read(&mut room).await.unwrap();
        assert!(count > 0, "{}", String::from_utf8_lossy(&reply));
        reply.extend_from_slice(&room[..count]);
    }
    String::from_utf8(reply).unwrap()
}

/// Makes another gateway do the same, and reports its answers and its memory. It is started with a directory of its
/// own, the model's address and a port, at which it has a session for each `session_id`.
pub(crate) async fn peer(program: &Path, chats: usize) {
    let script = Script::answering(|request| model::reply_by(PEER_TOOL, request));
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
    let idle = resident_kib(pid);
    let began = Instant::now();
    let mut all = JoinSet::new();
    for chat in 0..chats {
        all.spawn(talk(address, chat, chats));
    }
    let mut waits: Vec<Duration> = all.join_all().await.into_iter().flatten().collect();
    let took = began.elapsed().as_secs_f64();
    let after = resident_kib(pid);
    gateway.kill().await.unwrap();
    waits.sort();
    let total = chats * TURNS;
    let at = |percent: usize| waits[(waits.len() - 1) * percent / 100].as_secs_f64();
    println!("{}, with {chats} chats:", program.display());
    println!(
        "{total} turns in {took:.1} s: {:.1} turns a second; a turn took {:.2} s (median), {:.2} s (99 %)",
        total as f64 / took,
        at(50),
        at(99)
    );
    println!("memory: {idle} KiB idle, {after} KiB after");
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
    posted(&mut stream, &body, b"}").await
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
