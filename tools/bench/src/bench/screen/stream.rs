//! A server whose answers come delta by delta, as those of models do.

use anyhow::Result;
use rondo_tool_support::http::{self, Message};
use serde_json::json;
use std::io::{BufReader, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

/// Deltas of an answer.
pub(super) const DELTAS: usize = 300;
/// The time between two of them.
const BETWEEN: Duration = Duration::from_millis(30);
/// Connections that are taken.
const CONNECTIONS_MAX: usize = 16;
/// Words of the answer, in turns.
const WORDS: [&str; 6] = [" the", " quick", " brown", " fox", " jumps", " over"];

/// Serves for as long as the process lives, and returns where.
pub(super) fn serve() -> Result<String> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for stream in listener.incoming().take(CONNECTIONS_MAX).flatten() {
            // A client that hangs up is its own business.
            thread::spawn(move || drop(answer(stream)));
        }
    });
    Ok(format!("http://{address}/v1"))
}

fn answer(mut stream: TcpStream) -> Result<()> {
    http::prepare(&stream)?;
    let mut requests = BufReader::new(stream.try_clone()?);
    if let Some(Message { .. }) = http::read_message(&mut requests)? {
        let head =
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        stream.write_all(head.as_bytes())?;
        for word in WORDS.iter().cycle().take(DELTAS - 1) {
            stream.write_all(chunk(word, None).as_bytes())?;
            thread::sleep(BETWEEN);
        }
        stream.write_all(chunk(" finished", Some("stop")).as_bytes())?;
        stream.write_all(b"data: [DONE]\n\n")?;
    }
    Ok(())
}

fn chunk(text: &str, reason: Option<&str>) -> String {
    let choice = json!([{"index": 0, "delta": {"content": text}, "finish_reason": reason}]);
    let chunk = json!({"id": "bench", "object": "chat.completion.chunk", "model": "bench", "choices": choice});
    format!("data: {chunk}\n\n")
}
