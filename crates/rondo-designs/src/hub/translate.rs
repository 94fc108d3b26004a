//! Converts between the design's messages and Rondo's.

use super::types::{LlmMessage, LlmResponse, LlmRole, LlmToolCall};
use crate::recital::{RecitedCall, whole};
use rondo_types::{
    CallId, FinishReason, Message, ModelEvent, ModelRequest, Origin, Part, Reply, Role, ToolCall,
    ToolContent, ToolResult, Transcript,
};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;

/// Origin of messages of a provider of this design.
pub(super) fn origin(model: &str) -> Origin {
    Origin {
        dialect: "hub".to_owned(),
        provider: "hub".to_owned(),
        model: model.to_owned(),
    }
}

/// Returns everything that a request says, the system prompt first.
pub(super) fn request_messages(request: &ModelRequest) -> Vec<LlmMessage> {
    let system = request.system.join("\n\n");
    let system = (!system.is_empty()).then(|| LlmMessage::new(LlmRole::System, system));
    let rest = request.messages.iter().flat_map(|it| llm_messages_of(it));
    system.into_iter().chain(rest).collect()
}

/// Returns a conversation in the design's shape: one message for each result.
pub(super) fn llm_messages(transcript: &Transcript) -> Vec<LlmMessage> {
    transcript
        .iter()
        .flat_map(|it| llm_messages_of(it))
        .collect()
}

fn llm_messages_of(message: &Message) -> Vec<LlmMessage> {
    match message.role {
        Role::User => vec![LlmMessage::new(LlmRole::User, message.text())],
        Role::Assistant => vec![LlmMessage {
            tool_calls: message.tool_calls().map(llm_call).collect(),
            ..LlmMessage::new(LlmRole::Assistant, message.text())
        }],
        Role::Tool => message.results().map(llm_result).collect(),
    }
}

fn llm_call(call: &ToolCall) -> LlmToolCall {
    let text = || Value::String(call.arguments.clone());
    LlmToolCall {
        id: id_of(call.wire_id.as_ref(), &call.id),
        name: call.name.clone(),
        arguments: serde_json::from_str(&call.arguments).unwrap_or_else(|_| text()),
    }
}

pub(super) fn llm_result(result: &ToolResult) -> LlmMessage {
    LlmMessage::tool_result(
        id_of(result.wire_id.as_ref(), &result.call_id),
        result.to_text(),
    )
}

fn id_of(wire_id: Option<&String>, ours: &CallId) -> String {
    wire_id.cloned().unwrap_or_else(|| ours.to_string())
}

/// Returns messages of the design as a request has them: the system prompt, and the rest. A result that answers no call
/// is left out, since no provider takes it.
pub(super) fn messages(said: &[LlmMessage], origin: &Origin) -> (Vec<String>, Transcript) {
    let mut system = Vec::new();
    let mut messages = Transcript::new();
    let mut calls: HashMap<&str, (CallId, &str)> = HashMap::new();
    let mut results = Vec::new();
    for (step, message) in (0..).zip(said) {
        if message.role != LlmRole::Tool {
            close(&mut messages, &mut results);
        }
        match message.role {
            LlmRole::System => system.push(message.content.clone()),
            LlmRole::User => messages.push(Arc::new(Message::user(message.content.clone()))),
            LlmRole::Assistant => {
                for (index, call) in (0..).zip(&message.tool_calls) {
                    let id = CallId::generated(0, step, index);
                    calls.insert(&call.id, (id, &call.name));
                }
                messages.push(Arc::new(assistant(message, step, origin)));
            }
            LlmRole::Tool => results.extend(result(message, &mut calls)),
        }
    }
    close(&mut messages, &mut results);
    (system, messages)
}

fn close(messages: &mut Transcript, results: &mut Vec<ToolResult>) {
    if !results.is_empty() {
        messages.push(Arc::new(Message::tool_results(std::mem::take(results))));
    }
}

fn assistant(message: &LlmMessage, step: u32, origin: &Origin) -> Message {
    let text = Some(&message.content).filter(|text| !text.is_empty());
    let calls = (0..).zip(&message.tool_calls).map(|(index, call)| {
        Part::ToolCall(ToolCall {
            id: CallId::generated(0, step, index),
            wire_id: Some(call.id.clone()).filter(|id| !id.is_empty()),
            name: call.name.clone(),
            arguments: crate::run::text_of(call.arguments.clone()),
            complete: true,
            opaque: None,
        })
    });
    let mut said = Message::assistant("");
    said.origin = Some(origin.clone());
    said.parts = text.map(Part::text).into_iter().chain(calls).collect();
    said
}

fn result(message: &LlmMessage, calls: &mut HashMap<&str, (CallId, &str)>) -> Option<ToolResult> {
    let id = message.tool_call_id.as_deref().unwrap_or_default();
    let (call_id, name) = calls.remove(id)?;
    Some(ToolResult {
        call_id,
        wire_id: Some(id.to_owned()).filter(|id| !id.is_empty()),
        name: name.to_owned(),
        error: None,
        content: ToolContent::Text(message.content.clone()),
        blocks: Vec::new(),
        synthetic: false,
    })
}

/// Returns a provider's reply as the events of one.
pub(super) fn events(response: LlmResponse) -> Vec<ModelEvent> {
    let mut events = Vec::new();
    if !response.content.is_empty() {
        events.push(ModelEvent::TextDelta {
            candidate: 0,
            text: response.content,
        });
    }
    let reason = match response.tool_calls.is_empty() {
        true => FinishReason::Stop,
        false => FinishReason::ToolCalls,
    };
    for (key, call) in (0..).zip(response.tool_calls) {
        events.extend(whole(key, &recited(call)));
    }
    events.extend(response.usage.map(ModelEvent::Usage));
    events.push(ModelEvent::Finished {
        candidate: 0,
        reason,
        raw: String::new(),
    });
    events
}

/// Returns a call as a model would send it.
pub(super) fn recited(call: LlmToolCall) -> RecitedCall {
    RecitedCall {
        id: call.id,
        name: call.name,
        arguments: crate::run::text_of(call.arguments),
    }
}

/// Returns the first candidate of a reply in the design's shape.
pub(super) fn response(reply: &Reply) -> LlmResponse {
    let said = reply.candidates.first().cloned();
    let mut response = said.map_or_else(LlmResponse::default, |candidate| {
        response_of(&candidate.into_message(None))
    });
    response.usage = reply.usage;
    response
}

/// Returns a message of the model in the design's shape.
pub(super) fn response_of(message: &Message) -> LlmResponse {
    LlmResponse {
        content: message.text(),
        tool_calls: message.tool_calls().map(llm_call).collect(),
        usage: None,
    }
}
