//! A scripted server of chat completions that notes when things happen.

use super::process;
use anyhow::{Context, Result, bail};
use rondo_tool_support::http::{self, Message};
use serde_json::{Value, json};
use std::io::{BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Connections that one server takes before it stops listening.
const CONNECTIONS_MAX: usize = 100_000;

/// One request and its response.
#[derive(Debug)]
pub(crate) struct Exchange {
    /// When the request's first byte was there.
    pub(crate) arrived: Instant,
    /// When the response was about to be written: later would race with a fast client.
    pub(crate) answered: Instant,
    /// The peak resident size of the watched process at that time, if the system tells.
    pub(crate) peak_kib: Option<u64>,
    /// Part of it that was its own then, and not its program's file.
    pub(crate) own_kib: Option<u64>,
    /// The processor time of that process by then.
    pub(crate) cpu: Option<Duration>,
}

/// A server on a free loopback port, for as long as the process lives.
pub(crate) struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    exchanges: Mutex<Vec<Exchange>>,
    watched: AtomicU32,
}

impl Server {
    /// Starts a server.
    pub(crate) fn start() -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::default());
        let for_listener = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming().take(CONNECTIONS_MAX).flatten() {
                let shared = Arc::clone(&for_listener);
                // A client that hangs up is its own business: its exchanges will be missed.
                thread::spawn(move || drop(serve(stream, &shared)));
            }
        });
        Ok(Self { address, shared })
    }

    /// Returns the server's address.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Notes the memory and the processor time of this process with each request; 0 for none.
    pub(crate) fn watch(&self, pid: u32) {
        self.shared.watched.store(pid, Ordering::Relaxed);
    }

    /// Takes the exchanges since the last time.
    pub(crate) fn take_exchanges(&self) -> Vec<Exchange> {
        let mut exchanges = self
            .shared
            .exchanges
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut exchanges)
    }

    /// Takes the exchanges, if they are so many conversations of so many calls.
    pub(crate) fn take_exchanges_of(
        &self,
        what: &str,
        conversations: u32,
        turns: u32,
    ) -> Result<Vec<Exchange>> {
        let exchanges = self.take_exchanges();
        let expected = usize::try_from(conversations * (turns + 1))?;
        if exchanges.len() != expected {
            let made = exchanges.len();
            bail!("`{what}` made {made} requests instead of {expected}");
        }
        Ok(exchanges)
    }
}

fn serve(mut stream: TcpStream, shared: &Shared) -> Result<()> {
    http::prepare(&stream)?;
    let mut requests = BufReader::new(stream.try_clone()?);
    while let Some(Message { body, arrived }) = http::read_message(&mut requests)? {
        let request: Value = serde_json::from_slice(&body).context("a request is not JSON")?;
        let response = respond(&request);
        // Noted before it is written, so that the client cannot end with an exchange missed.
        shared.note(arrived);
        stream.write_all(&response)?;
    }
    Ok(())
}

impl Shared {
    fn note(&self, arrived: Instant) {
        let watched = self.watched.load(Ordering::Relaxed);
        let watched = Some(watched).filter(|pid| *pid != 0);
        let peak_kib = watched.and_then(process::peak_kib);
        let own_kib = watched.and_then(process::own_kib);
        let cpu = watched.and_then(process::cpu);
        let mut exchanges = self
            .exchanges
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        exchanges.push(Exchange {
            arrived,
            answered: Instant::now(),
            peak_kib,
            own_kib,
            cpu,
        });
    }
}

/// The script: the model's name ends in `SCENARIO-TURNS`, and the turn is the number of results.
fn respond(request: &Value) -> Vec<u8> {
    let model = request.get("model").and_then(Value::as_str).unwrap_or("");
    let mut words = model.rsplit('-');
    let turns = words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
    let scenario = words.next().unwrap_or_default();
    let turn = results(request);
    let message = if turn < turns {
        call(scenario, turn)
    } else {
        json!({"role": "assistant", "content": "done"})
    };
    let is_streamed = request.get("stream") == Some(&Value::Bool(true));
    let (kind, body) = if is_streamed {
        ("text/event-stream", events(&message))
    } else {
        ("application/json", whole(&message))
    };
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    (head + &body).into_bytes()
}

fn results(request: &Value) -> usize {
    let messages = request.get("messages").and_then(Value::as_array);
    messages.map_or(0, |messages| {
        messages
            .iter()
            .filter(|message| message.get("role").and_then(Value::as_str) == Some("tool"))
            .count()
    })
}

/// Each call has arguments of its own: repeating one is what a loop guard is there to stop.
fn call(scenario: &str, turn: usize) -> Value {
    let (tool, arguments) = match scenario {
        "exec" => ("exec", json!({"command": format!("true {turn}")})),
        "noop" => ("noop", json!({"n": turn})),
        _ => ("read_file", json!({"path": format!("{turn}.txt")})),
    };
    json!({"role": "assistant", "content": null, "tool_calls": [
        {"index": 0, "id": format!("call_{turn}"), "type": "function",
         "function": {"name": tool, "arguments": arguments.to_string()}}]})
}

fn finish_reason(message: &Value) -> &'static str {
    if message.get("tool_calls").is_some() {
        "tool_calls"
    } else {
        "stop"
    }
}

fn usage() -> Value {
    json!({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15})
}

fn whole(message: &Value) -> String {
    let reason = finish_reason(message);
    json!({"id": "bench", "object": "chat.completion", "model": "bench", "usage": usage(),
           "choices": [{"index": 0, "message": message, "finish_reason": reason}]})
    .to_string()
}

fn events(message: &Value) -> String {
    let reason = finish_reason(message);
    let chunk = |choices: Value, usage: Value| {
        let chunk = json!({"id": "bench", "object": "chat.completion.chunk", "model": "bench",
                           "choices": choices, "usage": usage});
        format!("data: {chunk}\n\n")
    };
    let delta = json!([{"index": 0, "delta": message, "finish_reason": null}]);
    let end = json!([{"index": 0, "delta": {}, "finish_reason": reason}]);
    [
        chunk(delta, Value::Null),
        chunk(end, Value::Null),
        chunk(json!([]), usage()),
        "data: [DONE]\n\n".to_owned(),
    ]
    .concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of(request: &Value) -> String {
        String::from_utf8(respond(request)).unwrap()
    }

    #[test]
    fn calls_come_first_and_then_the_answer() {
        let ask = |results: usize| {
            let messages = vec![json!({"role": "tool"}); results];
            text_of(&json!({"model": "bench-exec-1", "messages": messages}))
        };
        assert!(ask(0).contains(r#"true 0"#));
        assert!(ask(1).contains(r#""content":"done""#));
    }

    #[test]
    fn a_streamed_reply_ends_as_its_protocol_ends() {
        let reply = text_of(&json!({"model": "bench-text-0", "stream": true}));
        assert!(reply.contains("text/event-stream") && reply.ends_with("data: [DONE]\n\n"));
    }
}
