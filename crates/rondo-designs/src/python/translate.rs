//! Converts between the design's types and Rondo's.

use super::types::{
    AssistantCandidate, AssistantInput, AssistantMessage, AssistantOutput, AssistantPart,
    AssistantRole, FunctionDeclaration, ToolCallingMode,
};
use rondo_types::{
    CallId, Candidate, FinishReason, Message, ModelEvent, ModelRequest, Opaque, Origin, Part,
    Reply, Role, ToolCall, ToolContent, ToolResult, ToolSpec,
};
use rondo_wire::{Bounds, Target};
use serde_json::{Value, json};

/// Reason of a filter's block if the provider gave none.
const BLOCKED: &str = "SAFETY";

/// Origin of parts of a provider of this design.
pub(super) fn origin() -> Origin {
    Origin {
        dialect: "assistant".to_owned(),
        provider: "assistant".to_owned(),
        model: "assistant".to_owned(),
    }
}

pub(super) fn input(request: &ModelRequest) -> AssistantInput {
    let system = request.system.join("\n\n");
    let messages = request.messages.iter();
    AssistantInput {
        system_instruction: Some(system).filter(|system| !system.is_empty()),
        messages: messages.map(|message| assistant_message(message)).collect(),
        tools: request.tools.iter().map(declaration).collect(),
        tool_calling_mode: ToolCallingMode::Auto,
    }
}

fn declaration(spec: &ToolSpec) -> FunctionDeclaration {
    FunctionDeclaration {
        name: spec.name.clone(),
        description: spec.description.clone(),
        parameters_json_schema: spec.parameters.clone(),
    }
}

/// Reasoning, media and opaque parts have no place in the design's messages.
pub(super) fn assistant_message(message: &Message) -> AssistantMessage {
    AssistantMessage {
        role: match message.role {
            Role::User => AssistantRole::User,
            Role::Assistant => AssistantRole::Model,
            Role::Tool => AssistantRole::Tool,
        },
        parts: message.parts.iter().filter_map(assistant_part).collect(),
    }
}

fn assistant_part(part: &Part) -> Option<AssistantPart> {
    match part {
        Part::Text(text) | Part::Refusal(text) => Some(AssistantPart::Text(text.text.clone())),
        Part::ToolCall(call) => Some(AssistantPart::FunctionCall {
            id: call.wire_id.clone(),
            name: call.name.clone(),
            args_json: serde_json::from_str(&call.arguments)
                .unwrap_or_else(|_| Value::String(call.arguments.clone())),
        }),
        Part::ToolResult(result) => Some(AssistantPart::FunctionResponse {
            id: result.wire_id.clone(),
            name: result.name.clone(),
            response_json: match &result.content {
                ToolContent::Json(value) => value.clone(),
                ToolContent::Text(text) => json!({ "result": text }),
            },
        }),
        Part::Reasoning(_) | Part::Media(_) | Part::Opaque(_) => None,
    }
}

pub(super) fn candidate(candidate: &Candidate) -> AssistantCandidate {
    AssistantCandidate {
        message: AssistantMessage {
            role: AssistantRole::Model,
            parts: candidate.parts.iter().filter_map(assistant_part).collect(),
        },
        finish_reason: candidate.raw_finish_reasons.last().cloned(),
        safety_blocked: candidate.finish_reason == Some(FinishReason::ContentFilter),
    }
}

/// A blocked prompt has no candidates; the design's mark for it is on one.
pub(super) fn output(reply: &Reply) -> AssistantOutput {
    let blocked = reply
        .prompt_blocked
        .as_ref()
        .map(|reason| AssistantCandidate {
            message: AssistantMessage {
                role: AssistantRole::Model,
                parts: Vec::new(),
            },
            finish_reason: Some(reason.clone()),
            safety_blocked: true,
        });
    AssistantOutput {
        candidates: reply
            .candidates
            .iter()
            .map(candidate)
            .chain(blocked)
            .collect(),
    }
}

/// Returns a provider's reply as the events of one.
pub(super) fn events(output: AssistantOutput) -> Vec<ModelEvent> {
    let mut events = Vec::new();
    let mut calls = 0;
    for (candidate, said) in (0..).zip(output.candidates) {
        let parts = said.message.parts.into_iter();
        parts.for_each(|part| part_events(candidate, part, &mut calls, &mut events));
        let raw = match said.finish_reason {
            _ if said.safety_blocked => BLOCKED.to_owned(),
            Some(raw) => raw,
            None => continue,
        };
        let reason = finish_reason(&raw);
        events.push(ModelEvent::Finished {
            candidate,
            reason,
            raw,
        });
    }
    events
}

fn part_events(candidate: u32, part: AssistantPart, calls: &mut u32, out: &mut Vec<ModelEvent>) {
    match part {
        AssistantPart::Text(text) => {
            out.push(ModelEvent::TextDelta { candidate, text });
            // Text that follows is a part of its own, and goes back as one.
            out.push(ModelEvent::PartClosed {
                candidate,
                opaque: Opaque {
                    origin: origin(),
                    json: "null".to_owned(),
                },
            });
        }
        AssistantPart::FunctionCall {
            id: wire_id,
            name,
            args_json,
        } => {
            let call = *calls;
            *calls += 1;
            out.push(ModelEvent::ToolCallStarted {
                candidate,
                call,
                wire_id,
                name,
            });
            out.push(ModelEvent::ToolCallDelta {
                call,
                arguments: args_json.to_string(),
            });
            out.push(ModelEvent::ToolCallFinished { call, opaque: None });
        }
        // A model returns none.
        AssistantPart::FunctionResponse { .. } => {}
    }
}

/// Asks the dialect whose words these are.
fn finish_reason(raw: &str) -> FinishReason {
    let body = json!({"candidates": [{"finishReason": raw}]}).to_string();
    let mut events = Vec::new();
    if let Some(gemini) = rondo_wire::dialect("gemini") {
        let mut decoder = gemini.decoder(&Target::new(origin()), Bounds::default());
        let read = decoder.push(body.as_bytes(), &mut events);
        let _ = read.and_then(|()| decoder.finish(&mut events));
    }
    let mut reasons = events.into_iter().filter_map(|event| match event {
        ModelEvent::Finished { reason, .. } => Some(reason),
        _ => None,
    });
    reasons.next().unwrap_or(FinishReason::Other)
}

pub(super) fn specs(tools: Vec<FunctionDeclaration>) -> Vec<ToolSpec> {
    use rondo_types::{Concurrency, Effects, Recovery};
    let spec = |tool: FunctionDeclaration| ToolSpec {
        name: tool.name,
        description: tool.description,
        parameters: tool.parameters_json_schema,
        effects: Effects::Writes,
        concurrency: Concurrency::Exclusive,
        recovery: Recovery::AtMostOnce,
        ..ToolSpec::default()
    };
    tools.into_iter().map(spec).collect()
}

/// Returns a message of the design as ours. Calls are named by their place, which their responses,
/// in the same order, must match.
pub(super) fn message(said: AssistantMessage, place: u32) -> Message {
    let mut message = Message::assistant("");
    message.role = match said.role {
        AssistantRole::User => Role::User,
        AssistantRole::Model => Role::Assistant,
        AssistantRole::Tool => Role::Tool,
    };
    // Responses are right behind the message that asked.
    let asked_at = match said.role {
        AssistantRole::Tool => place.saturating_sub(1),
        AssistantRole::User | AssistantRole::Model => place,
    };
    let mut index = 0;
    let mut next_id = || {
        index += 1;
        CallId::generated(0, asked_at, index - 1)
    };
    let parts = said.parts.into_iter();
    message.parts = parts.map(|part| our_part(part, &mut next_id)).collect();
    message
}

fn our_part(part: AssistantPart, next_id: &mut impl FnMut() -> CallId) -> Part {
    match part {
        AssistantPart::Text(text) => Part::text(text),
        AssistantPart::FunctionCall {
            id,
            name,
            args_json,
        } => Part::ToolCall(ToolCall {
            id: next_id(),
            wire_id: id,
            name,
            arguments: args_json.to_string(),
            complete: true,
            opaque: None,
        }),
        AssistantPart::FunctionResponse {
            id,
            name,
            response_json,
        } => Part::ToolResult(ToolResult {
            call_id: next_id(),
            wire_id: id,
            name,
            error: None,
            content: ToolContent::Json(response_json),
            blocks: Vec::new(),
            synthetic: false,
        }),
    }
}

/// Names the calls of a message by its place.
pub(super) fn name_calls(message: &mut Message, place: u32) {
    let calls = message.parts.iter_mut().filter_map(|part| match part {
        Part::ToolCall(call) => Some(call),
        _ => None,
    });
    for (index, call) in (0..).zip(calls) {
        call.id = CallId::generated(0, place, index);
    }
}
