//! Encodes requests as the body of `POST /v1/messages`.

use super::cache;
use super::messages::{Conversation, Turn, text_block};
use super::structured;
use super::thinking::{self, Thinking, is_thinking};
use crate::encoder::{Encoder, effort_text};
use crate::json::{Fields, Json, merge, set};
use crate::lowering::{Lowering, Notes};
use crate::{Encoded, EncodedPrefix, Target};
use bytes::Bytes;
use rondo_types::{Message, ModelRequest, Part, Role, ToolChoice, ToolSpec};
use std::borrow::Cow;

/// The bound on the output if none is given, since the provider requires one. Thinking comes on
/// top of it.
const OUTPUT_TOKENS_DEFAULT: u32 = 8192;

/// The highest temperature that the provider takes.
const TEMPERATURE_MAX: f64 = 1.0;

/// The bound on searches that the provider makes in one reply.
const SEARCHES_MAX: u64 = 5;

/// Description of a tool that only the history names.
const GONE: &str = "Not available any more.";

/// Encodes a request as the body of `POST /v1/messages`.
pub(super) fn encode(
    prefix: &mut EncodedPrefix,
    request: &ModelRequest,
    target: &Target,
) -> Encoded<Vec<Bytes>> {
    let mut conversation = Conversation::of(prefix, request, target);
    let choice = tool_choice(request, &conversation);
    let mut tools = tools(request, &mut conversation);
    if target.web_search && (!tools.is_empty() || request.tool_choice == ToolChoice::Auto) {
        tools.push(search_tool());
    }
    let Conversation {
        encoder: Encoder { mut notes, .. },
        mut turns,
        ..
    } = conversation;
    let mut system: Vec<_> = request
        .system
        .iter()
        .filter(|text| !text.trim().is_empty())
        .map(text_block)
        .collect();
    cache::mark(&mut tools, &mut system, &mut turns);

    let mut body: Fields<'_> = vec![(Cow::Borrowed("model"), Json::str(&request.model))];
    sampling(&mut body, request, target, &mut notes);
    if !tools.is_empty() {
        set(&mut body, "tools", Json::List(tools));
    }
    if let Some(choice) = choice {
        let choice = Json::object([("type", Json::str(choice))]);
        set(&mut body, "tool_choice", choice);
    }
    if !system.is_empty() {
        set(&mut body, "system", Json::List(system));
    }
    let messages: Vec<_> = turns.into_iter().map(Turn::into_json).collect();
    set(&mut body, "messages", Json::List(Vec::new()));
    if target.streaming {
        set(&mut body, "stream", Json::Bool(true));
    }
    merge(&mut body, &target.extra_body);
    Encoded {
        path: "/v1/messages".to_owned(),
        body: prefix.body(&body, "messages", &[], &messages),
        notes: notes.into_list(),
    }
}

/// A history with calls is refused if no tools are declared.
fn tools<'a>(request: &'a ModelRequest, conversation: &mut Conversation<'a>) -> Vec<Json<'a>> {
    if !request.tools.is_empty() || conversation.tools.is_empty() {
        return request.tools.iter().map(tool).collect();
    }
    conversation.encoder.notes.add(Lowering::ToolsDeclared);
    let names = std::mem::take(&mut conversation.tools);
    names.into_iter().map(gone_tool).collect()
}

fn tool_choice(request: &ModelRequest, conversation: &Conversation<'_>) -> Option<&'static str> {
    if request.tools.is_empty() {
        return (!conversation.tools.is_empty()).then_some("none");
    }
    match request.tool_choice {
        ToolChoice::Auto => None,
        ToolChoice::None => Some("none"),
    }
}

fn tool(spec: &ToolSpec) -> Json<'_> {
    Json::object([
        ("name", Json::str(&spec.name)),
        ("description", Json::str(&spec.description)),
        ("input_schema", Json::Value(&spec.parameters)),
    ])
}

/// Source: https://docs.claude.com/en/docs/agents-and-tools/tool-use/web-search-tool, read 2026-11.
fn search_tool<'a>() -> Json<'a> {
    Json::object([
        ("type", Json::str("web_search_20250305")),
        ("name", Json::str("web_search")),
        ("max_uses", Json::Int(SEARCHES_MAX)),
    ])
}

fn gone_tool(name: Cow<'_, str>) -> Json<'_> {
    let schema = Json::object([("type", Json::str("object"))]);
    Json::object([
        ("name", Json::Str(name)),
        ("description", Json::str(GONE)),
        ("input_schema", schema),
    ])
}

fn sampling<'a>(
    body: &mut Fields<'a>,
    request: &'a ModelRequest,
    target: &Target,
    notes: &mut Notes,
) {
    let thinking = thinking_of(request, target, notes);
    let max = request.sampling.max_output_tokens.unwrap_or_else(|| {
        notes.add(Lowering::OutputBoundAdded);
        OUTPUT_TOKENS_DEFAULT + thinking.room()
    });
    set(body, "max_tokens", Json::Int(u64::from(max)));
    match thinking {
        Thinking::Off => {}
        Thinking::Budget(tokens) => {
            let thinking = Json::object([
                ("type", Json::str("enabled")),
                ("budget_tokens", Json::Int(u64::from(tokens))),
            ]);
            set(body, "thinking", thinking);
        }
        Thinking::Adaptive(_) => {
            let thinking = Json::object([("type", Json::str("adaptive"))]);
            set(body, "thinking", thinking);
        }
    }
    output_config(body, request, thinking, notes);
    let Some(temperature) = request.sampling.temperature else {
        return;
    };
    // A model that thinks takes no temperature.
    let refused = target.quirks.omit_temperature || thinking != Thinking::Off;
    if refused || !temperature.is_finite() || temperature > TEMPERATURE_MAX {
        notes.add(Lowering::SamplingDropped);
    }
    if !refused && temperature.is_finite() {
        let temperature = temperature.min(TEMPERATURE_MAX);
        set(body, "temperature", Json::Float(temperature));
    }
}

/// The effort and the form of the answer,
/// https://platform.claude.com/docs/en/build-with-claude/structured-outputs.
fn output_config<'a>(
    body: &mut Fields<'a>,
    request: &'a ModelRequest,
    thinking: Thinking,
    notes: &mut Notes,
) {
    let mut config: Fields<'a> = Vec::new();
    if let Thinking::Adaptive(effort) = thinking {
        set(&mut config, "effort", Json::str(effort_text(effort)));
    }
    match &request.response_schema {
        Some(schema) if structured::takes(&request.model, schema) => {
            let kind = ("type", Json::str("json_schema"));
            let format = Json::object([kind, ("schema", Json::Value(schema))]);
            set(&mut config, "format", format);
        }
        Some(_) => notes.add(Lowering::SchemaDropped),
        None => {}
    }
    if !config.is_empty() {
        set(body, "output_config", Json::Object(config));
    }
}

fn thinking_of(request: &ModelRequest, target: &Target, notes: &mut Notes) -> Thinking {
    let Some(effort) = request.sampling.effort else {
        return Thinking::Off;
    };
    let mut thinking = thinking::of_model(&request.model, effort);
    if let Some(max) = request.sampling.max_output_tokens {
        thinking = thinking.within(max);
    }
    if matches!(thinking, Thinking::Budget(_)) && is_begun_without_thinking(request, target) {
        thinking = Thinking::Off;
    }
    if thinking == Thinking::Off {
        notes.add(Lowering::SamplingDropped);
    }
    thinking
}

/// Returns whether the calls that are being answered were made without thinking, here or elsewhere:
/// thinking cannot be switched on before they are answered.
fn is_begun_without_thinking(request: &ModelRequest, target: &Target) -> bool {
    let mut latest = request.messages.iter().rev();
    let Some(message) = latest.find(|message| message.role != Role::Tool) else {
        return false;
    };
    message.role == Role::Assistant
        && message.tool_calls().next().is_some()
        && !thought(message, target)
}

fn thought(message: &Message, target: &Target) -> bool {
    let opaque = match message.parts.first() {
        Some(Part::Reasoning(reasoning)) => reasoning.opaque.as_ref(),
        Some(Part::Opaque(opaque)) => Some(opaque).filter(|it| is_thinking(&it.json)),
        _ => None,
    };
    opaque.is_some_and(|opaque| opaque.origin == target.origin)
}
