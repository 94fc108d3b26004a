//! The limit: posts growing histories and drains the replies, with no agent in between.

use super::process;
use anyhow::{Context, Result, anyhow, bail};
use rondo_tool_support::http;
use serde_json::{Value, json};
use std::io::{BufReader, Write};
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Connections of the raw client that holds many conversations.
const CONNECTIONS: u32 = 8;

/// Holds one conversation over one connection; `tool` stands for what a call costs. Returns the
/// processor time from the first reply to the last request.
pub(crate) fn converse(
    address: SocketAddr,
    turns: u32,
    mut tool: impl FnMut() -> Result<()>,
) -> Result<Option<Duration>> {
    let mut stream = http::connect(&address.to_string())?;
    let mut replies = BufReader::new(stream.try_clone()?);
    // The bodies are made beforehand: the raw client is charged for sending only.
    let bodies: Vec<Vec<u8>> = (0..=turns).map(|turn| request(turns, turn)).collect();
    let last = bodies.len() - 1;
    let (mut begun, mut used) = (None, None);
    for (turn, body) in bodies.iter().enumerate() {
        stream.write_all(body)?;
        used = process::own_thread_cpu();
        http::read_message(&mut replies)?.context("the server hung up")?;
        begun = begun.or_else(process::own_thread_cpu);
        if turn < last {
            tool()?;
        }
    }
    Ok(used
        .zip(begun)
        .map(|(used, begun)| used.saturating_sub(begun)))
}

/// Holds many conversations over a few connections, each on a thread of its own.
pub(crate) fn crowd(address: SocketAddr, count: u32, turns: u32) -> Result<Duration> {
    let bodies: Vec<Vec<u8>> = (0..=turns).map(|turn| request(turns, turn)).collect();
    let share = count / CONNECTIONS;
    let started = Instant::now();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..CONNECTIONS)
            .map(|_| scope.spawn(|| repeat(address, &bodies, share)))
            .collect();
        threads.into_iter().try_for_each(|thread| {
            let ended = thread.join();
            ended.unwrap_or_else(|_| Err(anyhow!("a raw client panicked")))
        })
    })?;
    Ok(started.elapsed())
}

fn repeat(address: SocketAddr, bodies: &[Vec<u8>], count: u32) -> Result<()> {
    let mut stream = http::connect(&address.to_string())?;
    let mut replies = BufReader::new(stream.try_clone()?);
    for body in (0..count).flat_map(|_| bodies) {
        stream.write_all(body)?;
        http::read_message(&mut replies)?.context("the server hung up")?;
    }
    Ok(())
}

/// Runs the cheapest command there is in a plain shell, without a PTY.
pub(crate) fn run_true() -> Result<()> {
    let output = Command::new("bash")
        .args(["-c", "true"])
        .stdin(Stdio::null())
        .output()
        .context("failed to start bash")?;
    if !output.status.success() {
        bail!("`true` failed");
    }
    Ok(())
}

fn request(turns: u32, turn: u32) -> Vec<u8> {
    let body = body(turns, turn).to_string();
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    (head + &body).into_bytes()
}

fn body(turns: u32, turn: u32) -> Value {
    let mut messages = vec![
        json!({"role": "system", "content": "You are a helpful assistant."}),
        json!({"role": "user", "content": "go"}),
    ];
    for call in 0..turn {
        let id = format!("call_{call}");
        let arguments = format!("{{\"path\":\"{call}.txt\"}}");
        messages.push(json!({"role": "assistant", "content": null, "tool_calls": [
            {"id": id, "type": "function",
             "function": {"name": "read_file", "arguments": arguments}}]}));
        messages.push(json!({"role": "tool", "tool_call_id": id, "content": "note\n"}));
    }
    json!({"model": format!("bench-read-{turns}"), "stream": true, "messages": messages,
           "tools": [{"type": "function", "function": {"name": "read_file"}}]})
}
