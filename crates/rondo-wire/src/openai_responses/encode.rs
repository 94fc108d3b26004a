//! Encodes requests as the body of `POST /responses`.

use super::OpenAiResponses;
use crate::EncodedPrefix;
use crate::encoder::{self, Rules, address, effort_text};
use crate::json::{Fields, Json, merge, raw_if_object, set};
use crate::lowering::{Lowering, LoweringCause, closes_only, is_own, results};
use crate::strict::sent;
use crate::{Encoded, Target};
use bytes::Bytes;
use rondo_types::{
    ContentBlock, Media, MediaKind, MediaSource, Message, ModelRequest, Opaque, Origin, Part, Role,
    ToolCall, ToolChoice, ToolContent, ToolResult, ToolSpec,
};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// The name that the response schema gets on the wire.
const SCHEMA_NAME: &str = "answer";

/// Value of `include` that is needed if nothing is stored.
const SEALED_REASONING: &str = "reasoning.encrypted_content";

/// Families that do not reason, and refuse to be asked for sealed reasoning.
const UNREASONING: [&str; 3] = ["gpt-3.5", "gpt-4", "chatgpt-4"];

/// Names are `^[A-Za-z0-9_-]{1,64}$`, https://platform.openai.com/docs/api-reference/responses/create;
/// longer ids are refused with "maximum length 64".
impl Rules for OpenAiResponses {}

/// Encodes a request as the body of `POST /responses`.
pub(super) fn encode(
    prefix: &mut EncodedPrefix,
    request: &ModelRequest,
    target: &Target,
) -> Encoded<Vec<Bytes>> {
    let from = prefix.resume(request, target);
    let mut encoder = Encoder::resumed(prefix.mark(), target);
    encoder.input(request, from, prefix);
    let mut body: Fields<'_> = vec![(Cow::Borrowed("model"), Json::str(&request.model))];
    if !request.system.is_empty() {
        let system = request.system.join("\n\n");
        set(&mut body, "instructions", Json::str(system));
    }
    set(&mut body, "input", Json::List(Vec::new()));
    tools(&mut body, request, target);
    encoder.sampling(&mut body, request);
    if let Some(schema) = &request.response_schema {
        set(&mut body, "text", text_format(schema, &target.origin));
    }
    set(&mut body, "store", Json::Bool(false));
    if !UNREASONING.iter().any(|it| request.model.starts_with(it)) {
        let include = Json::List(vec![Json::str(SEALED_REASONING)]);
        set(&mut body, "include", include);
    }
    if target.streaming {
        set(&mut body, "stream", Json::Bool(true));
    }
    merge(&mut body, &target.extra_body);
    Encoded {
        path: "/responses".to_owned(),
        body: prefix.body(&body, "input", &[], &[]),
        notes: encoder.notes.into_list(),
    }
}

type Encoder<'a> = encoder::Encoder<'a, OpenAiResponses>;

/// Content of an item of the provider's own, to see whether it still matches the transcript.
#[derive(Deserialize)]
struct ItemContent {
    #[serde(default)]
    content: Vec<ShownPiece>,
}

#[derive(Deserialize)]
struct ItemKind {
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Deserialize)]
struct ShownPiece {
    #[serde(default)]
    text: String,
    #[serde(default)]
    refusal: String,
}

impl<'a> Encoder<'a> {
    fn input(&mut self, request: &'a ModelRequest, from: usize, prefix: &mut EncodedPrefix) {
        let mut list = Vec::new();
        for (index, message) in request.messages.iter().enumerate().skip(from) {
            self.notes.enter(Some(index));
            let before = list.len();
            match message.role {
                Role::User => list.extend(self.user(message)),
                Role::Assistant => self.assistant(message, &mut list),
                Role::Tool => {
                    for (index, result) in results(message) {
                        self.notes.enter_part(Some(index));
                        list.push(self.result(result));
                    }
                }
            }
            self.notes.enter_part(None);
            if list.len() == before {
                self.notes.add(Lowering::MessageDropped);
            }
        }
        self.notes.enter(None);
        prefix.settle_all(request, from, &list, self.own, &self.notes);
    }

    fn user(&mut self, message: &'a Message) -> Option<Json<'a>> {
        let content: Vec<_> = message
            .parts
            .iter()
            .enumerate()
            .filter_map(|(index, part)| match part {
                Part::Text(text) if !text.text.is_empty() => {
                    Some(text_part("input_text", &text.text))
                }
                Part::Media(media) => {
                    self.notes.enter_part(Some(index));
                    Some(self.media(media))
                }
                _ => None,
            })
            .collect();
        (!content.is_empty()).then(|| message_json("user", content))
    }

    fn assistant(&mut self, message: &'a Message, list: &mut Vec<Json<'a>>) {
        self.own = is_own(message, &self.target.origin);
        // Text and refusal of one message item are parts of their own, and the last is sealed.
        let mut group: Vec<&'a str> = Vec::new();
        let before = list.len();
        let mut thoughts = Vec::new();
        for (index, part) in message.parts.iter().enumerate() {
            self.notes.enter_part(Some(index));
            match part {
                Part::Text(text) => self.spoken(&text.text, text.opaque.as_ref(), &mut group, list),
                Part::Refusal(text) => {
                    self.notes_refusal(text.opaque.as_ref());
                    self.spoken(&text.text, text.opaque.as_ref(), &mut group, list);
                }
                other => {
                    flush(&mut group, list);
                    let item = self.item(other, message);
                    thoughts.extend(
                        item.as_ref()
                            .filter(|item| is_reasoning(item))
                            .map(|_| index),
                    );
                    list.extend(item);
                }
            }
        }
        flush(&mut group, list);
        // Reasoning of a reply that was cut has no item behind it, and is refused without one.
        while list.len() > before && list.last().is_some_and(is_reasoning) {
            list.pop();
            let cause = LoweringCause::Unanswered;
            self.notes.enter_part(thoughts.pop());
            self.notes.add_for(Lowering::ReasoningDropped, cause);
        }
    }

    fn notes_refusal(&mut self, opaque: Option<&Opaque>) {
        if !opaque.is_some_and(|opaque| self.is_own(opaque)) {
            self.notes.add(Lowering::RefusalAsText);
        }
    }

    fn spoken(
        &mut self,
        text: &'a str,
        opaque: Option<&'a Opaque>,
        group: &mut Vec<&'a str>,
        list: &mut Vec<Json<'a>>,
    ) {
        if !text.is_empty() {
            group.push(text);
        }
        let opaque = opaque.filter(|opaque| !closes_only(opaque));
        let Some(item) = opaque.and_then(|opaque| self.own_item(opaque)) else {
            return;
        };
        if says(item, group) {
            group.clear();
            list.push(Json::Raw(item));
        } else {
            flush(group, list);
            let cause = LoweringCause::Outdated;
            self.notes.add_for(Lowering::OpaqueDropped, cause);
        }
    }

    fn item(&mut self, part: &'a Part, message: &Message) -> Option<Json<'a>> {
        match part {
            Part::Reasoning(reasoning) => {
                let own = reasoning.opaque.as_ref().filter(|it| self.is_own(it));
                let item = own.and_then(|opaque| raw_if_object(&opaque.json));
                if item.is_none() {
                    let origin = message.origin.as_ref();
                    self.drop_reasoning(origin, origin == Some(&self.target.origin));
                }
                item.map(Json::Raw)
            }
            Part::ToolCall(call) => Some(self.call(call)),
            Part::Opaque(opaque) => self.own_item(opaque).map(Json::Raw),
            Part::Media(_) => {
                self.notes.add(Lowering::MediaDropped);
                None
            }
            Part::Text(_) | Part::Refusal(_) | Part::ToolResult(_) => None,
        }
    }

    fn call(&mut self, call: &'a ToolCall) -> Json<'a> {
        let is_object = raw_if_object(&call.arguments).is_some();
        let item = call
            .opaque
            .as_ref()
            .and_then(|opaque| self.own_item(opaque));
        // Without its id it could not be told from another call of the same id.
        if let Some(item) = item.filter(|_| call.wire_id.is_some() && is_object) {
            return Json::Raw(item);
        }
        let arguments = self.arguments(call).map_or("{}", |_| &call.arguments);
        let name = self.name(&call.name);
        let id = self.id(call.wire_id.as_deref(), call.id.as_str());
        Json::object([
            ("type", Json::str("function_call")),
            ("call_id", Json::Str(id)),
            ("name", Json::Str(name)),
            ("arguments", Json::str(arguments)),
        ])
    }

    fn media(&mut self, media: &'a Media) -> Json<'a> {
        if let Some(text) = self.notes.not_sent(media, &self.target.quirks) {
            return text_part("input_text", text);
        }
        media_part(media)
            .unwrap_or_else(|| text_part("input_text", self.notes.media_as_text(media)))
    }

    fn block(&mut self, block: &'a ContentBlock) -> Json<'a> {
        match block {
            ContentBlock::Text { text } => text_part("input_text", text),
            ContentBlock::Media(media) => self.media(media),
        }
    }

    fn result(&mut self, result: &'a ToolResult) -> Json<'a> {
        let id = self.id(result.wire_id.as_deref(), result.call_id.as_str());
        let text: Cow<'a, str> = match &result.content {
            ToolContent::Text(text) => Cow::Borrowed(text),
            ToolContent::Json(value) => Cow::Owned(value.to_string()),
        };
        let output = if result.blocks.is_empty() {
            Json::Str(text)
        } else {
            let text = (!text.is_empty()).then(|| text_part("input_text", text));
            let blocks = result.blocks.iter().map(|block| self.block(block));
            Json::List(text.into_iter().chain(blocks).collect())
        };
        Json::object([
            ("type", Json::str("function_call_output")),
            ("call_id", Json::Str(id)),
            ("output", output),
        ])
    }

    /// Items are tied to each other by their ids and to their model by what is sealed in them, so
    /// another model gets none of them.
    fn own_item(&mut self, opaque: &'a Opaque) -> Option<&'a RawValue> {
        let item = raw_if_object(&opaque.json).filter(|_| self.is_own(opaque));
        if item.is_none() {
            self.drop_opaque(opaque, LoweringCause::NotAnObject);
        }
        item
    }

    fn sampling(&mut self, body: &mut Fields<'a>, request: &'a ModelRequest) {
        if let Some(temperature) = self.temperature(request) {
            set(body, "temperature", Json::Float(temperature));
        }
        if let Some(max) = request.sampling.max_output_tokens {
            set(body, "max_output_tokens", Json::Int(u64::from(max)));
        }
        if let Some(effort) = request.sampling.effort {
            let effort = Json::object([("effort", Json::str(effort_text(effort)))]);
            set(body, "reasoning", effort);
        }
    }
}

/// The protocol takes no sound.
fn media_part(media: &Media) -> Option<Json<'_>> {
    let address = Json::Str(address(media));
    let part = match (media.kind, &media.source) {
        (MediaKind::Image, _) => {
            Json::object([("type", Json::str("input_image")), ("image_url", address)])
        }
        (MediaKind::File, MediaSource::Url(_)) => {
            Json::object([("type", Json::str("input_file")), ("file_url", address)])
        }
        (MediaKind::File, MediaSource::Base64(_)) => {
            let name = media.name.as_deref().unwrap_or("file");
            Json::object([
                ("type", Json::str("input_file")),
                ("filename", Json::str(name)),
                ("file_data", address),
            ])
        }
        (MediaKind::Audio, _) => return None,
    };
    Some(part)
}

/// Returns whether an item says what is in the transcript.
fn says(item: &RawValue, group: &[&str]) -> bool {
    let Ok(shown) = serde_json::from_str::<ItemContent>(item.get()) else {
        // An item without content to compare is a reasoning or an unknown item.
        return group.is_empty();
    };
    let shown = shown
        .content
        .iter()
        .flat_map(|piece| [piece.text.as_str(), piece.refusal.as_str()]);
    shown.collect::<String>() == group.concat()
}

fn is_reasoning(item: &Json<'_>) -> bool {
    let Json::Raw(raw) = item else { return false };
    let shown = serde_json::from_str::<ItemKind>(raw.get());
    shown.is_ok_and(|item| item.kind == "reasoning")
}

fn flush<'a>(group: &mut Vec<&'a str>, list: &mut Vec<Json<'a>>) {
    if !group.is_empty() {
        let text = text_part("output_text", group.concat());
        group.clear();
        list.push(message_json("assistant", vec![text]));
    }
}

fn message_json<'a>(role: &'a str, content: Vec<Json<'a>>) -> Json<'a> {
    Json::object([
        ("type", Json::str("message")),
        ("role", Json::str(role)),
        ("content", Json::List(content)),
    ])
}

fn text_part<'a>(kind: &'a str, text: impl Into<Cow<'a, str>>) -> Json<'a> {
    Json::object([("type", Json::str(kind)), ("text", Json::str(text))])
}

fn tools<'a>(body: &mut Fields<'a>, request: &'a ModelRequest, target: &Target) {
    let mut list: Vec<Json<'a>> = request.tools.iter().map(tool).collect();
    if target.web_search && (!list.is_empty() || request.tool_choice == ToolChoice::Auto) {
        // Source: https://platform.openai.com/docs/guides/tools-web-search, read 2026-11.
        list.push(Json::object([("type", Json::str("web_search"))]));
    }
    if list.is_empty() {
        return;
    }
    set(body, "tools", Json::List(list));
    if request.tool_choice == ToolChoice::None {
        set(body, "tool_choice", Json::str("none"));
    }
    if let Some(parallel) = target.quirks.parallel_tool_calls {
        set(body, "parallel_tool_calls", Json::Bool(parallel));
    }
}

/// Strict is the default here, and refuses schemas with optional properties.
fn tool(spec: &ToolSpec) -> Json<'_> {
    Json::object([
        ("type", Json::str("function")),
        ("name", Json::str(&spec.name)),
        ("description", Json::str(&spec.description)),
        ("parameters", Json::Value(&spec.parameters)),
        ("strict", Json::Bool(false)),
    ])
}

fn text_format<'a>(schema: &'a Value, origin: &Origin) -> Json<'a> {
    let (schema, strict) = sent(schema, origin);
    let format = Json::object([
        ("type", Json::str("json_schema")),
        ("name", Json::str(SCHEMA_NAME)),
        ("schema", schema),
        ("strict", Json::Bool(strict)),
    ]);
    Json::object([("format", format)])
}
