//! What a client does with the same chats and the same model, in the same run, that only sends the requests.

use crate::load::{self, CALLS, TURNS};
use crate::model;
use rondo_testkit::{Script, Server};
use serde_json::{Value, json};
use std::time::Instant;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

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
            let reply = posted(&mut stream, &body).await;
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

/// Sends a request, and reads the reply to its end.
pub(crate) async fn posted(stream: &mut TcpStream, body: &str) -> String {
    let to = stream.peer_addr().unwrap();
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: {to}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + body).as_bytes()).await.unwrap();
    let (mut reply, mut room) = (Vec::new(), vec![0; 16 << 10]);
    while !reply.ends_with(b"\r\n0\r\n\r\n") {
        let count = stream.read(&mut room).await.unwrap();
        assert!(count > 0, "{}", String::from_utf8_lossy(&reply));
        reply.extend_from_slice(&room[..count]);
    }
    String::from_utf8(reply).unwrap()
}
