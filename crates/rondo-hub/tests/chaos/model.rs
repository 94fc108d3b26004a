//! A model that does what it is told: `task N calls K` takes K calls, `task N writes` one that is asked about.

use rondo_testkit::{CallScript, Gate, Recorded, ReplyScript, Response, Step, openai};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What it is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Task {
    Plain,
    Calls(usize),
    Writes,
}

impl Task {
    pub(crate) fn said(self, number: usize) -> String {
        match self {
            Self::Plain => format!("task {number} plain"),
            Self::Calls(count) => format!("task {number} calls {count}"),
            Self::Writes => format!("task {number} writes"),
        }
    }
}

/// The answer to a task.
pub(crate) fn answer(number: usize) -> String {
    format!("Answer {number}.")
}

/// Answers a request.
pub(crate) fn reply(request: &Recorded) -> Response {
    let body = request.json();
    let messages = body["messages"].as_array().unwrap();
    let said = messages
        .iter()
        .rposition(|it| it["role"] == "user")
        .unwrap();
    let results = messages[said..]
        .iter()
        .filter(|it| it["role"] == "tool")
        .count();
    let text = text_of(&messages[said]);
    let words: Vec<&str> = text.lines().last().unwrap_or_default().split(' ').collect();
    let number = words.get(1).copied().unwrap_or_default();
    let calls = match words.get(2).copied() {
        Some("calls") => words[3].parse().unwrap(),
        Some("writes") => 1,
        _ => 0_usize,
    };
    let reply = match results < calls {
        true if words[2] == "writes" => {
            let arguments = json!({"path": format!("note{number}"), "content": number});
            ReplyScript::calls([CallScript::new("c", "write_file", &arguments)])
        }
        true => {
            let arguments = json!({"path": "."});
            ReplyScript::calls([CallScript::new(
                &format!("c{results}"),
                "list_files",
                &arguments,
            )])
        }
        false => ReplyScript::text([format!("Answer {number}.")]),
    };
    openai::streamed(&reply.usage(10, 10))
}

/// Returns how often a task's request was made that was made most often.
pub(crate) fn most_tries(requests: &[Recorded], number: usize) -> usize {
    let task = format!("task {number} ");
    let mut by_length = BTreeMap::new();
    for request in requests {
        let body = request.json();
        if asked(&body).contains(&task) {
            let messages = body["messages"].as_array().unwrap().len();
            *by_length.entry(messages).or_insert(0) += 1;
        }
    }
    by_length.into_values().max().unwrap_or(0)
}

/// A reply that never comes.
pub(crate) fn stalled() -> Response {
    Response::sse(Vec::<String>::new()).step(Step::Gate(Gate::new()))
}

/// The last thing that a person said in a request.
pub(crate) fn asked(body: &Value) -> String {
    let messages = body["messages"].as_array().unwrap();
    let said = messages.iter().rev().find(|it| it["role"] == "user");
    text_of(said.unwrap())
}

pub(crate) fn text_of(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|it| it["text"].as_str()).collect(),
        _ => String::new(),
    }
}
