//! Result of a turn for a script: its answer, its messages, and its usage.

use rondo_runtime::script::{RecordedCall, ScriptAgent};
use rondo_runtime::{SetupError, SetupErrorKind};
use rondo_types::{ErrorClass, Message, Outcome, Role, SessionId, StopReason, Transcript};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Returns whether a turn was stopped or failed, so that it says nothing.
pub(crate) fn is_void(outcome: &Outcome) -> bool {
    !outcome.answered
        && matches!(
            outcome.stop_reason,
            StopReason::Cancelled | StopReason::Error
        )
}

/// Returns why a turn that is void is.
pub(crate) fn failure(outcome: &Outcome, agent: &str) -> Option<SetupError> {
    if !is_void(outcome) {
        return None;
    }
    let (kind, why) = match &outcome.error {
        Some(error) => (kind_of(error.class), error.message.clone()),
        None => (SetupErrorKind::Other, "it was stopped".to_owned()),
    };
    Some(SetupError::new(
        kind,
        format!("`{agent}` has no answer: {why}"),
    ))
}

fn kind_of(class: ErrorClass) -> SetupErrorKind {
    match class {
        ErrorClass::Auth => SetupErrorKind::Auth,
        _ => SetupErrorKind::Other,
    }
}

/// Returns a turn as a script gets it. `known` is how many messages of the transcript it has had before.
pub(crate) fn value(
    outcome: &Outcome,
    agent: &ScriptAgent,
    session: &SessionId,
    turn: u32,
    known: usize,
    calls: &[RecordedCall],
) -> Value {
    let usage = &outcome.usage;
    let cost = outcome.cost.map(rondo_types::NanoUsd::usd);
    let data = agent
        .schema
        .as_ref()
        .and_then(|_| serde_json::from_str::<Value>(&outcome.text).ok());
    let calls = calls
        .iter()
        .map(|it| json!({ "tool": it.tool, "arguments": it.arguments, "key": it.key }));
    json!({
        "text": outcome.text,
        "data": data,
        "stop_reason": outcome.stop_reason.as_str(),
        "answered": outcome.answered,
        "degraded": outcome.degraded,
        "model": outcome.model,
        "usage": {
            "input": usage.input,
            "output": usage.output,
            "cache_read": usage.cache_read,
            "total": usage.total(),
        },
        "cost": cost,
        "steps": outcome.steps,
        "tool_calls": outcome.tool_calls,
        "session": session.as_str(),
        "turn": turn,
        "known": outcome.transcript.len(),
        "new_messages": messages(&outcome.transcript, known),
        "calls": calls.collect::<Vec<_>>(),
    })
}

/// Returns the calls of the script's own tools in a turn.
pub(crate) fn calls(answer: &Value) -> Vec<RecordedCall> {
    let calls = answer.get("calls").and_then(Value::as_array);
    let calls = calls.into_iter().flatten().filter_map(|it| {
        Some(RecordedCall {
            tool: it.get("tool")?.as_str()?.to_owned(),
            arguments: it.get("arguments")?.clone(),
            key: it.get("key")?.as_str()?.to_owned(),
        })
    });
    calls.collect()
}

/// Returns the messages from a place on: those of the user and of the model as one each, and one for each result.
fn messages(transcript: &Transcript, from: usize) -> Vec<Value> {
    let new = transcript.get(from..).unwrap_or(transcript);
    new.iter().flat_map(|it| message(it)).collect()
}

fn message(message: &Message) -> Vec<Value> {
    let results = message.results().map(|result| {
        json!({
            "role": "tool",
            "tool_call_id": result.call_id.as_str(),
            "name": result.name,
            "content": result.to_text(),
        })
    });
    let mut all: Vec<Value> = results.collect();
    let text = message.text();
    let calls = message.tool_calls().map(
        |call| json!({ "id": call.id.as_str(), "name": call.name, "arguments": call.arguments }),
    );
    let calls: Vec<Value> = calls.collect();
    if all.is_empty() || !text.is_empty() || !calls.is_empty() {
        let mut fields = Map::new();
        let role = match message.role {
            Role::Assistant => "assistant",
            _ => "user",
        };
        fields.insert("role".to_owned(), role.into());
        fields.insert("content".to_owned(), text.into());
        if !calls.is_empty() {
            fields.insert("tool_calls".to_owned(), calls.into());
        }
        all.push(Value::Object(fields));
    }
    all
}

/// Returns a message without its calls, for another agent; `None` if nothing else is in it.
pub(crate) fn spoken(message: &Value) -> Option<Arc<Message>> {
    let text = message.get("content")?.as_str()?;
    if text.is_empty() {
        return None;
    }
    match message.get("role")?.as_str()? {
        "user" => Some(Arc::new(Message::user(text))),
        "assistant" => Some(Arc::new(Message::assistant(text))),
        _ => None,
    }
}
