//! The turns of a run, read from its events.

use super::types::{AgentLoopResult, ExecutedToolCall, ToolResult, TurnResult};
use crate::run::text_of;
use rondo_types::{
    CallId, EventBody, FinishReason, Message, Part, ToolCall, ToolContent, ToolErrorCode,
    ToolResult as Returned, Transcript,
};
use serde_json::Value;
use std::collections::{HashMap, HashSet};

/// Gathers what each step brought.
#[derive(Debug, Default)]
pub(super) struct Turns {
    turns: Vec<TurnResult>,
}

impl Turns {
    pub(super) fn take(&mut self, event: EventBody) {
        if let EventBody::StepStarted { .. } = event {
            self.turns.push(TurnResult {
                text: String::new(),
                tool_calls: Vec::new(),
                finish_reason: FinishReason::Error,
                usage: None,
            });
        }
        if let Some(turn) = self.turns.last_mut() {
            add(turn, event);
        }
    }

    /// Returns the turns, with the provider's ids of the calls.
    pub(super) fn finish(mut self, transcript: &Transcript) -> Vec<TurnResult> {
        let calls = transcript.iter().flat_map(|message| message.tool_calls());
        let wire_ids: HashMap<&str, &String> = calls
            .filter_map(|call| Some((call.id.as_str(), call.wire_id.as_ref()?)))
            .collect();
        for call in self.turns.iter_mut().flat_map(|turn| &mut turn.tool_calls) {
            if let Some(id) = wire_ids.get(call.call_id.as_str()) {
                call.call_id = (*id).clone();
            }
        }
        self.turns
    }
}

/// Returns the messages of the turns of a result, as a provider reads them.
pub(super) fn messages_of_turns(result: &AgentLoopResult) -> Vec<Message> {
    let mut used = HashSet::new();
    let turns = (1..).zip(&result.turns);
    let messages = turns.flat_map(|(step, turn)| messages_of_turn(step, turn, &mut used));
    let mut messages: Vec<Message> = messages.collect();
    if messages.is_empty() && !result.final_text.is_empty() {
        messages.push(Message::assistant(result.final_text.clone()));
    }
    messages
}

/// Returns the messages of a turn. A call keeps its id unless it has none or an earlier call `used` it.
fn messages_of_turn<'r>(
    step: u32,
    turn: &'r TurnResult,
    used: &mut HashSet<&'r str>,
) -> Vec<Message> {
    let mut said = Message::assistant("");
    said.parts = Some(&turn.text)
        .filter(|text| !text.is_empty())
        .map(Part::text)
        .into_iter()
        .collect();
    let mut results = Vec::new();
    for (index, call) in (0..).zip(&turn.tool_calls) {
        let is_own = !call.call_id.is_empty() && used.insert(&call.call_id);
        let id = match is_own {
            true => CallId::new(call.call_id.clone()),
            false => CallId::generated(1, step, index),
        };
        let wire_id = is_own.then(|| call.call_id.clone());
        said.parts.push(Part::ToolCall(ToolCall {
            id: id.clone(),
            wire_id: wire_id.clone(),
            name: call.function_name.clone(),
            arguments: text_of(call.arguments.clone()),
            complete: true,
            opaque: None,
        }));
        results.push(Returned {
            call_id: id,
            wire_id,
            name: call.function_name.clone(),
            error: call.result.error.filter(|_| !call.result.success),
            content: ToolContent::Text(call.result.content.clone()),
            blocks: Vec::new(),
            synthetic: false,
        });
    }
    let mut messages = Vec::new();
    if !said.parts.is_empty() {
        messages.push(said);
    }
    if !results.is_empty() {
        messages.push(Message::tool_results(results));
    }
    messages
}

fn add(turn: &mut TurnResult, event: EventBody) {
    let usage = event.usage();
    match event {
        EventBody::TextDelta { text } => turn.text.push_str(&text),
        EventBody::ToolCallPending {
            id,
            name,
            arguments,
        } => turn.tool_calls.push(pending(&id, name, arguments)),
        EventBody::ToolCallFinished {
            id,
            ok,
            code,
            result,
            duration_ms,
            ..
        } => {
            let mut calls = turn.tool_calls.iter_mut();
            if let Some(call) = calls.find(|call| call.call_id == id.as_str()) {
                call.duration_ms = duration_ms;
                call.result = ToolResult {
                    success: ok,
                    content: text_of(result),
                    error: code,
                };
            }
        }
        EventBody::Usage { .. } => {
            // Counts come with a reply; why it ended is said later, or not at all.
            turn.finish_reason = FinishReason::Other;
            *turn.usage.get_or_insert_default() += usage.unwrap_or_default();
        }
        EventBody::StepFinished {
            finish_reason: Some(reason),
            ..
        } => {
            let known = serde_json::from_value(Value::String(reason));
            turn.finish_reason = known.unwrap_or(FinishReason::Other);
        }
        _ => {}
    }
}

/// Every call gets its end; until then it says that it has none.
fn pending(id: &CallId, name: String, arguments: Value) -> ExecutedToolCall {
    ExecutedToolCall {
        call_id: id.to_string(),
        function_name: name,
        arguments,
        result: ToolResult {
            success: false,
            content: String::new(),
            error: Some(ToolErrorCode::NotRun),
        },
        duration_ms: 0,
    }
}
