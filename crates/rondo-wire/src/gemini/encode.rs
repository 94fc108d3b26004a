//! Encodes requests as the body of `generateContent`.

use super::{Gemini, SIGNATURE};
use crate::encoded_prefix::{EncodedPrefix, EncoderMark};
use crate::encoder::{self, Rules, effort_text};
use crate::json::{Fields, Json, RawObject, merge, raw_if_object, raw_object, set};
use crate::lowering::{Lowering, LoweringCause, closes_only, is_own, is_same_provider, results};
use crate::names::NameRule;
use crate::{Encoded, Target};
use bytes::Bytes;
use rondo_types::{
    Effort, Media, MediaSource, Message, ModelRequest, Opaque, Part, Role, ToolCall, ToolChoice,
    ToolContent, ToolResult, ToolSpec,
};
use serde_json::Value;
use std::borrow::Cow;
use std::fmt::Write as _;

/// The value that stands for the signature of a call from elsewhere.
const SKIP_SIGNATURE: &str = "skip_thought_signature_validator";

/// The model family that counts thinking in tokens; later ones have levels.
const BUDGET_FAMILY: &str = "gemini-2.5";

impl Rules for Gemini {
    /// https://ai.google.dev/api/caching#FunctionDeclaration.
    const NAMES: NameRule = NameRule {
        more_chars: &['.', ':'],
        chars_max: 128,
        starts_with_letter: true,
    };
}

/// Encodes a request as the body of `generateContent`.
pub(super) fn encode(
    prefix: &mut EncodedPrefix,
    request: &ModelRequest,
    target: &Target,
) -> Encoded<Vec<Bytes>> {
    let mut encoder = Encoder::resumed(EncoderMark::default(), target);
    let contents = encoder.contents(request, prefix);
    let mut body: Fields<'_> = vec![(Cow::Borrowed("contents"), Json::List(Vec::new()))];
    if !request.system.is_empty() {
        let parts = Json::List(vec![text_part(request.system.join("\n\n"))]);
        set(
            &mut body,
            "systemInstruction",
            Json::object([("parts", parts)]),
        );
    }
    if !request.tools.is_empty() {
        set(&mut body, "tools", tools(request));
        set(&mut body, "toolConfig", tool_config(request.tool_choice));
    }
    if target.web_search {
        encoder.search(&mut body, request);
    }
    let generation = encoder.generation(request);
    if !generation.is_empty() {
        set(&mut body, "generationConfig", Json::Object(generation));
    }
    merge(&mut body, &target.extra_body);
    Encoded {
        path: path(&request.model, target.streaming),
        body: prefix.body(&body, "contents", &[], &contents),
        notes: encoder.notes.into_list(),
    }
}

type Encoder<'a> = encoder::Encoder<'a, Gemini>;

/// A content being built. Messages of one kind that follow each other share one: a call is refused
/// in a content of the model that is directly behind another of the model.
struct Content<'a> {
    kind: Kind,
    parts: Vec<Json<'a>>,
}

/// Place of a message that began a content of its own after one of the model; nothing is joined to it.
#[derive(Debug, Clone, Copy, Default)]
struct OpenContent {
    message: usize,
    contents: usize,
    own: bool,
    notes: usize,
}

impl OpenContent {
    fn is_behind_model(&self, list: &[Content<'_>]) -> bool {
        let last = self.contents.checked_sub(1).and_then(|last| list.get(last));
        list.len() > self.contents && last.is_some_and(|last| last.kind == Kind::Model)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    User,
    Model,
    Results,
}

impl<'a> Encoder<'a> {
    /// Returns the contents that may yet change; those before them are kept.
    fn contents(&mut self, request: &'a ModelRequest, prefix: &mut EncodedPrefix) -> Vec<Json<'a>> {
        let from = prefix.resume(request, self.target);
        *self = Self::resumed(prefix.mark(), self.target);
        let mut list: Vec<Content<'a>> = Vec::new();
        let mut open = OpenContent::default();
        for (index, message) in request.messages.iter().enumerate().skip(from) {
            self.notes.enter(Some(index));
            let before = OpenContent {
                message: index,
                contents: list.len(),
                own: self.own,
                notes: self.notes.len(),
            };
            match message.role {
                Role::User => self.add(&mut list, Kind::User, |it| it.parts(message)),
                Role::Assistant => self.add(&mut list, Kind::Model, |it| it.model_parts(message)),
                Role::Tool => {
                    self.add(&mut list, Kind::Results, |it| it.results(message));
                    if message.results().any(|it| it.media().next().is_some()) {
                        self.add(&mut list, Kind::User, |it| it.result_media(message));
                    }
                }
            }
            if before.is_behind_model(&list) {
                open = before;
            }
        }
        self.notes.enter(None);
        // The kept part ends with the model, and more of the model is joined to it.
        if from > 0 && list.first().is_some_and(|it| it.kind == Kind::Model) {
            *prefix = EncodedPrefix::default();
            return self.contents(request, prefix);
        }
        self.settle(request, from, prefix, &open, list)
    }

    fn settle(
        &self,
        request: &ModelRequest,
        from: usize,
        prefix: &mut EncodedPrefix,
        open: &OpenContent,
        list: Vec<Content<'a>>,
    ) -> Vec<Json<'a>> {
        let mut list: Vec<_> = list.into_iter().map(Content::into_json).collect();
        if open.contents == 0 {
            return list;
        }
        let tail = list.split_off(open.contents);
        let mark = EncoderMark {
            own: open.own,
            notes: self.notes.first(open.notes),
            ..EncoderMark::default()
        };
        let settled = request.messages.get(from..open.message);
        prefix.settle(settled.unwrap_or_default(), &list, mark);
        tail
    }

    fn add(
        &mut self,
        list: &mut Vec<Content<'a>>,
        kind: Kind,
        parts: impl FnOnce(&mut Self) -> Vec<Json<'a>>,
    ) {
        let parts = parts(self);
        if parts.is_empty() {
            self.notes.add(Lowering::MessageDropped);
            return;
        }
        match list.last_mut() {
            Some(last) if last.kind == kind => last.parts.extend(parts),
            _ => list.push(Content { kind, parts }),
        }
    }

    fn parts(&mut self, message: &'a Message) -> Vec<Json<'a>> {
        let mut parts = Vec::with_capacity(message.parts.len());
        for (index, part) in message.parts.iter().enumerate() {
            self.notes.enter_part(Some(index));
            parts.extend(self.part(part, message));
        }
        self.notes.enter_part(None);
        parts
    }

    fn model_parts(&mut self, message: &'a Message) -> Vec<Json<'a>> {
        self.own = is_own(message, &self.target.origin);
        let mut parts = self.parts(message);
        let skip = self.target.quirks.skip_signature_for_foreign_calls;
        if skip && !self.is_of_model(message) {
            mark_first_call(&mut parts);
        }
        parts
    }

    fn part(&mut self, part: &'a Part, message: &Message) -> Option<Json<'a>> {
        match part {
            Part::Text(text) => self.text(&text.text, text.opaque.as_ref(), false),
            Part::Reasoning(reasoning) if self.is_of_model(message) => {
                self.text(&reasoning.text, reasoning.opaque.as_ref(), true)
            }
            Part::Reasoning(_) => {
                self.drop_reasoning(message.origin.as_ref(), false);
                None
            }
            Part::Refusal(refusal) => {
                self.notes.add(Lowering::RefusalAsText);
                self.text(&refusal.text, None, false)
            }
            Part::ToolCall(call) => Some(self.call(call)),
            Part::ToolResult(result) => Some(self.result(result)),
            Part::Media(media) => Some(self.media(media)),
            Part::Opaque(opaque) => self.opaque_part(opaque),
        }
    }

    /// Builds a text part with the fields that came with it; empty ones only if there are any.
    fn text(
        &mut self,
        text: &'a str,
        opaque: Option<&'a Opaque>,
        thought: bool,
    ) -> Option<Json<'a>> {
        let more = opaque
            .filter(|opaque| !closes_only(opaque))
            .and_then(|opaque| self.own_fields(opaque))
            .unwrap_or_default();
        if text.is_empty() && more.0.is_empty() {
            return None;
        }
        let mut fields: Fields<'a> = vec![(Cow::Borrowed("text"), Json::str(text))];
        if thought {
            set(&mut fields, "thought", Json::Bool(true));
        }
        for (key, value) in more.0 {
            set(&mut fields, key, Json::Raw(value));
        }
        Some(Json::Object(fields))
    }

    fn call(&mut self, call: &'a ToolCall) -> Json<'a> {
        let own = call.opaque.as_ref();
        if let Some(part) = own.and_then(|opaque| self.opaque_part(opaque)) {
            return part;
        }
        let args = self.arguments(call);
        let args = args.map_or(Json::Object(Vec::new()), Json::Raw);
        let mut fields: Fields<'a> = Vec::with_capacity(3);
        set_id(&mut fields, call.wire_id.as_deref(), self.own);
        set(&mut fields, "name", Json::Str(self.name(&call.name)));
        set(&mut fields, "args", args);
        Json::object([("functionCall", Json::Object(fields))])
    }

    fn results(&mut self, message: &'a Message) -> Vec<Json<'a>> {
        let mut parts = Vec::with_capacity(message.parts.len());
        for (index, result) in results(message) {
            self.notes.enter_part(Some(index));
            parts.push(self.result(result));
        }
        self.notes.enter_part(None);
        parts
    }

    fn result(&mut self, result: &'a ToolResult) -> Json<'a> {
        let mut fields: Fields<'a> = Vec::with_capacity(3);
        set_id(&mut fields, result.wire_id.as_deref(), self.own);
        set(&mut fields, "name", Json::Str(self.name(&result.name)));
        set(&mut fields, "response", response(result));
        Json::object([("functionResponse", Json::Object(fields))])
    }

    fn media(&mut self, media: &'a Media) -> Json<'a> {
        match self.notes.not_sent(media, &self.target.quirks) {
            Some(text) => text_part(text),
            None => media_part(media),
        }
    }

    fn result_media(&mut self, message: &'a Message) -> Vec<Json<'a>> {
        let mut parts = Vec::new();
        for (index, result) in results(message).filter(|(_, it)| it.media().next().is_some()) {
            self.notes.enter_part(Some(index));
            self.notes.add(Lowering::MediaMoved);
            parts.push(text_part(format!("Returned by tool `{}`:", result.name)));
            parts.extend(result.media().map(|media| self.media(media)));
        }
        self.notes.enter_part(None);
        parts
    }

    /// Returns a part as it came; for another model of its provider without its signature.
    fn opaque_part(&mut self, opaque: &'a Opaque) -> Option<Json<'a>> {
        if opaque.origin == self.target.origin
            && let Some(part) = raw_if_object(&opaque.json)
        {
            return Some(Json::Raw(part));
        }
        let RawObject(fields) = self.own_fields(opaque)?;
        let fields = fields.into_iter();
        let fields: Fields<'a> = fields.map(|(key, it)| (key, Json::Raw(it))).collect();
        (!fields.is_empty()).then_some(Json::Object(fields))
    }

    /// Returns the fields of opaque JSON if it came from here. A signature is its model's own.
    fn own_fields(&mut self, opaque: &'a Opaque) -> Option<RawObject<'a>> {
        let (origin, target) = (&opaque.origin, &self.target.origin);
        let what = Lowering::OpaqueDropped;
        if !is_same_provider(origin, target) {
            self.notes.add_from(what, Some(origin), target);
            return None;
        }
        let Some(RawObject(mut fields)) = raw_object(&opaque.json) else {
            self.notes.add_for(what, LoweringCause::NotAnObject);
            return None;
        };
        let all = fields.len();
        if origin != target {
            fields.retain(|(key, _)| key != SIGNATURE);
        }
        if fields.len() < all {
            self.notes.add_from(what, Some(origin), target);
        }
        Some(RawObject(fields))
    }

    fn is_of_model(&self, message: &Message) -> bool {
        message.origin.as_ref() == Some(&self.target.origin)
    }

    fn generation(&mut self, request: &'a ModelRequest) -> Fields<'a> {
        let mut fields: Fields<'a> = Vec::new();
        if let Some(temperature) = self.temperature(request) {
            set(&mut fields, "temperature", Json::Float(temperature));
        }
        if let Some(max) = request.sampling.max_output_tokens {
            set(&mut fields, "maxOutputTokens", Json::Int(u64::from(max)));
        }
        if let Some(effort) = request.sampling.effort {
            set(
                &mut fields,
                "thinkingConfig",
                thinking(&request.model, effort),
            );
        }
        match &request.response_schema {
            // A response type beside functions is refused by the 2.5 family.
            Some(_) if !request.tools.is_empty() => self.notes.add(Lowering::SchemaDropped),
            Some(schema) => {
                set(
                    &mut fields,
                    "responseMimeType",
                    Json::str("application/json"),
                );
                set(&mut fields, "responseJsonSchema", Json::Value(schema));
            }
            None => {}
        }
        fields
    }
}

impl<'a> Content<'a> {
    fn into_json(self) -> Json<'a> {
        let role = match self.kind {
            Kind::User | Kind::Results => "user",
            Kind::Model => "model",
        };
        Json::object([("role", Json::str(role)), ("parts", Json::List(self.parts))])
    }
}

fn set_id<'a>(fields: &mut Fields<'a>, wire_id: Option<&'a str>, own: bool) {
    if let Some(id) = wire_id.filter(|id| own && !id.is_empty()) {
        set(fields, "id", Json::str(id));
    }
}

fn mark_first_call(parts: &mut [Json<'_>]) {
    let first = parts.iter_mut().find_map(|part| match part {
        Json::Object(fields) if fields.iter().any(|(key, _)| key == "functionCall") => Some(fields),
        _ => None,
    });
    if let Some(fields) = first {
        set(fields, SIGNATURE, Json::str(SKIP_SIGNATURE));
    }
}

/// `response` must be an object; `output` and `error` are the keys that Gemini knows.
fn response(result: &ToolResult) -> Json<'_> {
    let key = if result.error.is_some() {
        "error"
    } else {
        "output"
    };
    match (&result.content, result.text_of_blocks()) {
        (ToolContent::Json(value @ Value::Object(_)), None) => Json::Value(value),
        (ToolContent::Json(value), None) => Json::object([(key, Json::Value(value))]),
        (ToolContent::Json(value), Some(text)) => {
            Json::object([(key, Json::Value(value)), ("text", Json::str(text))])
        }
        (ToolContent::Text(text), None) => Json::object([(key, Json::str(text))]),
        (ToolContent::Text(_), Some(_)) => Json::object([(key, Json::str(result.to_text()))]),
    }
}

fn media_part(media: &Media) -> Json<'_> {
    let mime = ("mimeType", Json::str(&media.mime));
    match &media.source {
        MediaSource::Base64(data) => {
            let inline = Json::object([mime, ("data", Json::str(data))]);
            Json::object([("inlineData", inline)])
        }
        MediaSource::Url(url) => {
            let file = Json::object([mime, ("fileUri", Json::str(url))]);
            Json::object([("fileData", file)])
        }
    }
}

fn text_part<'a>(text: String) -> Json<'a> {
    Json::object([("text", Json::str(text))])
}

impl Encoder<'_> {
    /// Offers the provider's search, which most models refuse beside functions. Source:
    /// https://ai.google.dev/gemini-api/docs/google-search, read 2026-11.
    fn search(&mut self, body: &mut Fields<'_>, request: &ModelRequest) {
        if !request.tools.is_empty() {
            let cause = LoweringCause::Refused;
            self.notes.add_for(Lowering::SearchDropped, cause);
        } else if request.tool_choice == ToolChoice::Auto {
            let search = Json::object([("google_search", Json::Object(Vec::new()))]);
            set(body, "tools", Json::List(vec![search]));
        }
    }
}

fn tools(request: &ModelRequest) -> Json<'_> {
    let declarations = request.tools.iter().map(declaration).collect();
    Json::List(vec![Json::object([(
        "functionDeclarations",
        Json::List(declarations),
    )])])
}

fn declaration(spec: &ToolSpec) -> Json<'_> {
    let mut fields: Fields<'_> = vec![
        (Cow::Borrowed("name"), Json::str(&spec.name)),
        (Cow::Borrowed("description"), Json::str(&spec.description)),
    ];
    if !takes_none(&spec.parameters) {
        set(
            &mut fields,
            "parametersJsonSchema",
            Json::Value(&spec.parameters),
        );
    }
    Json::Object(fields)
}

/// Returns whether a schema is an object without properties, which some models refuse; to send no
/// schema means the same.
fn takes_none(schema: &Value) -> bool {
    let bare = |(key, value): (&String, &Value)| match key.as_str() {
        "type" | "title" | "description" | "$schema" => true,
        "additionalProperties" => *value == Value::Bool(false),
        "properties" => value.as_object().is_some_and(serde_json::Map::is_empty),
        "required" => value.as_array().is_some_and(Vec::is_empty),
        _ => false,
    };
    schema
        .as_object()
        .is_some_and(|fields| fields.iter().all(bare))
}

fn tool_config<'a>(choice: ToolChoice) -> Json<'a> {
    let mode = match choice {
        ToolChoice::Auto => "AUTO",
        ToolChoice::None => "NONE",
    };
    let config = Json::object([("mode", Json::str(mode))]);
    Json::object([("functionCallingConfig", config)])
}

fn thinking<'a>(model: &str, effort: Effort) -> Json<'a> {
    let budget = match effort {
        Effort::Low => 1024,
        Effort::Medium => 8192,
        Effort::High => 24_576,
    };
    if model.contains(BUDGET_FAMILY) {
        Json::object([("thinkingBudget", Json::Int(budget))])
    } else {
        Json::object([("thinkingLevel", Json::str(effort_text(effort)))])
    }
}

fn path(model: &str, streaming: bool) -> String {
    let name = escaped(model);
    let collection = if model.contains('/') { "" } else { "models/" };
    let method = if streaming {
        "streamGenerateContent?alt=sse"
    } else {
        "generateContent"
    };
    format!("/v1beta/{collection}{name}:{method}")
}

/// Escapes what would end the path; a model name is configuration and may be anything.
fn escaped(model: &str) -> String {
    let mut out = String::with_capacity(model.len());
    for byte in model.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' | b'@' => {
                out.push(char::from(byte));
            }
            _ => {
                // Writing to a string cannot fail.
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}
