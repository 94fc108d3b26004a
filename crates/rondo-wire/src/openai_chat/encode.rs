//! Encodes requests as the body of `POST /chat/completions`.

use super::OpenAiChat;
use crate::EncodedPrefix;
use crate::encoded_prefix::EncoderMark;
use crate::encoder::{self, Rules, address, effort_text};
use crate::ids::{IdRule, nine_chars};
use crate::json::{Fields, Json, merge, raw_object, set};
use crate::lowering::{Lowering, LoweringCause, closes_only, is_own, results};
use crate::strict::sent;
use crate::{Encoded, Quirks, Target};
use bytes::Bytes;
use rondo_types::{
    Media, MediaKind, MediaSource, Message, ModelRequest, Opaque, Origin, Part, Role, ToolCall,
    ToolChoice, ToolContent, ToolResult, ToolSpec,
};
use serde_json::Value;
use std::borrow::Cow;

/// The name that the response schema gets on the wire.
const SCHEMA_NAME: &str = "answer";

/// Names are `^[A-Za-z0-9_-]{1,64}$`, https://platform.openai.com/docs/api-reference/chat/create.
impl Rules for OpenAiChat {
    /// Longer ids were refused with "maximum length 40", and later with 64.
    const IDS: IdRule = IdRule { chars_max: 40 };
}

/// Encodes a request as the body of `POST /chat/completions`.
pub(super) fn encode(
    prefix: &mut EncodedPrefix,
    request: &ModelRequest,
    target: &Target,
) -> Encoded<Vec<Bytes>> {
    let from = prefix.resume(request, target);
    let mut encoder = Encoder::resumed(prefix.mark(), target);
    let latest = encoder.messages(request, from, prefix);
    let mut body: Fields<'_> = vec![
        (Cow::Borrowed("model"), Json::str(&request.model)),
        (Cow::Borrowed("messages"), Json::List(latest)),
    ];
    tools(&mut body, request, &target.quirks);
    encoder.sampling(&mut body, request);
    if target.web_search {
        encoder.notes.add(Lowering::SearchDropped);
    }
    if let Some(schema) = &request.response_schema {
        set(
            &mut body,
            "response_format",
            response_format(schema, &target.origin),
        );
    }
    if target.streaming {
        set(&mut body, "stream", Json::Bool(true));
        if !target.quirks.omit_stream_usage {
            let options = Json::object([("include_usage", Json::Bool(true))]);
            set(&mut body, "stream_options", options);
        }
    }
    merge(&mut body, &target.extra_body);
    Encoded {
        path: "/chat/completions".to_owned(),
        body: prefix.body(&body, "messages", system(request).as_slice(), &[]),
        notes: encoder.notes.into_list(),
    }
}

type Encoder<'a> = encoder::Encoder<'a, OpenAiChat>;

impl<'a> Encoder<'a> {
    /// Adds the messages that stay the same whatever comes after them to `prefix`, and returns those behind them.
    fn messages(
        &mut self,
        request: &'a ModelRequest,
        from: usize,
        prefix: &mut EncodedPrefix,
    ) -> Vec<Json<'a>> {
        let mut list = Messages::default();
        let mut settled = (from, 0, self.notes.len(), self.own);
        for (index, message) in request.messages.iter().enumerate().skip(from) {
            self.notes.enter(Some(index));
            match message.role {
                Role::User => list.say(self.user(message)),
                Role::Assistant => list.add(self.assistant(message)),
                Role::Tool => self.results(message, &mut list),
            }
            if list.said.is_none() {
                settled = (index + 1, list.list.len(), self.notes.len(), self.own);
            }
        }
        self.notes.enter(None);
        let (end, elements, notes, own) = settled;
        let mark = EncoderMark {
            own,
            notes: self.notes.first(notes),
            ..EncoderMark::default()
        };
        let mut all = list.take();
        let latest = all.split_off(elements.min(all.len()));
        let messages = request.messages.get(from..end).unwrap_or_default();
        prefix.settle(messages, &all, mark);
        latest
    }

    /// Returns the content of a user message.
    fn user(&mut self, message: &'a Message) -> Option<Json<'a>> {
        if message
            .parts
            .iter()
            .any(|part| matches!(part, Part::Media(_)))
        {
            let mut parts = Vec::with_capacity(message.parts.len());
            for (index, part) in message.parts.iter().enumerate() {
                self.notes.enter_part(Some(index));
                parts.extend(self.user_part(part));
            }
            self.notes.enter_part(None);
            if parts.is_empty() {
                self.notes.add(Lowering::MessageDropped);
                return None;
            }
            return Some(Json::List(parts));
        }
        let text = self.text(message);
        if text.is_empty() {
            self.notes.add(Lowering::MessageDropped);
            return None;
        }
        Some(Json::Str(text))
    }

    fn user_part(&mut self, part: &'a Part) -> Option<Json<'a>> {
        match part {
            Part::Text(text) => (!text.text.is_empty()).then(|| text_part(&text.text)),
            Part::Media(media) => Some(self.media(media)),
            Part::Refusal(_)
            | Part::Reasoning(_)
            | Part::ToolCall(_)
            | Part::ToolResult(_)
            | Part::Opaque(_) => None,
        }
    }

    fn media(&mut self, media: &'a Media) -> Json<'a> {
        if let Some(text) = self.notes.not_sent(media, &self.target.quirks) {
            return text_part(text);
        }
        match (media.kind, &media.source) {
            (MediaKind::Image, _) => {
                let url = Json::object([("url", Json::Str(address(media)))]);
                Json::object([("type", Json::str("image_url")), ("image_url", url)])
            }
            (MediaKind::File, MediaSource::Base64(_)) => {
                let name = media.name.as_deref().unwrap_or("file");
                let file = Json::object([
                    ("filename", Json::str(name)),
                    ("file_data", Json::Str(address(media))),
                ]);
                Json::object([("type", Json::str("file")), ("file", file)])
            }
            (MediaKind::Audio, MediaSource::Base64(data)) if audio_format(media).is_some() => {
                let audio = Json::object([
                    ("data", Json::str(data)),
                    ("format", Json::str(audio_format(media).unwrap_or_default())),
                ]);
                Json::object([("type", Json::str("input_audio")), ("input_audio", audio)])
            }
            (MediaKind::Audio, _) | (MediaKind::File, MediaSource::Url(_)) => {
                text_part(self.notes.media_as_text(media))
            }
        }
    }

    /// Joins what is text in a message; a refusal has no place in a request, but was said.
    fn text(&mut self, message: &'a Message) -> Cow<'a, str> {
        let mut text = Cow::Borrowed("");
        for (index, part) in message.parts.iter().enumerate() {
            self.notes.enter_part(Some(index));
            match part {
                Part::Text(more) => {
                    text += more.text.as_str();
                    self.note_attached(more.opaque.as_ref());
                }
                Part::Refusal(more) => {
                    self.notes.add(Lowering::RefusalAsText);
                    text += more.text.as_str();
                    self.note_attached(more.opaque.as_ref());
                }
                Part::Media(_) => self.notes.add(Lowering::MediaDropped),
                Part::Reasoning(_) | Part::ToolCall(_) | Part::ToolResult(_) | Part::Opaque(_) => {}
            }
        }
        self.notes.enter_part(None);
        text
    }

    /// Data attached to a text has no place in a message whose texts are joined.
    fn note_attached(&mut self, opaque: Option<&Opaque>) {
        if let Some(opaque) = opaque.filter(|opaque| !closes_only(opaque)) {
            self.drop_opaque(opaque, LoweringCause::NoPlace);
        }
    }

    fn assistant(&mut self, message: &'a Message) -> Option<Json<'a>> {
        self.own = is_own(message, &self.target.origin);
        let text = self.text(message);
        let calls = self.calls(message);
        let empty = text.is_empty();
        let content = match (empty, self.target.quirks.empty_content_instead_of_null) {
            (true, false) => Json::Null,
            _ => Json::Str(text),
        };
        let mut fields: Fields<'a> = vec![
            (Cow::Borrowed("role"), Json::str("assistant")),
            (Cow::Borrowed("content"), content),
        ];
        self.reasoning(&mut fields, message, !calls.is_empty());
        self.opaque_parts(&mut fields, message);
        if empty && calls.is_empty() {
            self.note_dropped(message);
            return None;
        }
        if !calls.is_empty() {
            set(&mut fields, "tool_calls", Json::List(calls));
        }
        Some(Json::Object(fields))
    }

    /// A message of provider data alone is refused, and the data with it.
    fn note_dropped(&mut self, message: &Message) {
        for (index, part) in message.parts.iter().enumerate() {
            if matches!(part, Part::Opaque(opaque) if self.is_own(opaque)) {
                self.notes.enter_part(Some(index));
                let cause = LoweringCause::NothingLeft;
                self.notes.add_for(Lowering::OpaqueDropped, cause);
            }
        }
        self.notes.enter_part(None);
        self.notes.add(Lowering::MessageDropped);
    }

    fn calls(&mut self, message: &'a Message) -> Vec<Json<'a>> {
        let mut calls = Vec::new();
        for (index, part) in message.parts.iter().enumerate() {
            if let Part::ToolCall(call) = part {
                self.notes.enter_part(Some(index));
                calls.push(self.call(call));
            }
        }
        self.notes.enter_part(None);
        calls
    }

    fn reasoning(&mut self, fields: &mut Fields<'a>, message: &'a Message, calls: bool) {
        let field = self.target.quirks.echo_reasoning.as_ref();
        let field = field.filter(|_| calls);
        let mut text = Cow::Borrowed("");
        for (index, part) in message.parts.iter().enumerate() {
            let Part::Reasoning(reasoning) = part else {
                continue;
            };
            self.notes.enter_part(Some(index));
            if self.own && field.is_some() {
                text += reasoning.text.as_str();
            } else {
                self.drop_reasoning(message.origin.as_ref(), self.own);
            }
        }
        self.notes.enter_part(None);
        // Required beside calls even when it is empty.
        if let Some(field) = field {
            set(fields, field.as_str(), Json::Str(text));
        }
    }

    fn opaque_parts(&mut self, fields: &mut Fields<'a>, message: &'a Message) {
        for (index, part) in message.parts.iter().enumerate() {
            if let Part::Opaque(opaque) = part {
                self.notes.enter_part(Some(index));
                self.add_opaque(fields, opaque);
            }
        }
        self.notes.enter_part(None);
    }

    fn add_opaque(&mut self, fields: &mut Fields<'a>, opaque: &'a Opaque) {
        match raw_object(&opaque.json).filter(|_| self.is_own(opaque)) {
            None => self.drop_opaque(opaque, LoweringCause::NotAnObject),
            Some(more) => {
                for (key, value) in more.0 {
                    set(fields, key, Json::Raw(value));
                }
            }
        }
    }

    fn call(&mut self, call: &'a ToolCall) -> Json<'a> {
        // Chat templates of several servers parse the arguments of the history.
        let arguments = self.arguments(call).map_or("{}", |_| &call.arguments);
        let function = Json::object([
            ("name", Json::Str(self.name(&call.name))),
            ("arguments", Json::str(arguments)),
        ]);
        let id = self.call_id(call.wire_id.as_deref(), call.id.as_str());
        let mut fields: Fields<'a> = vec![
            (Cow::Borrowed("id"), Json::Str(id)),
            (Cow::Borrowed("type"), Json::str("function")),
            (Cow::Borrowed("function"), function),
        ];
        if let Some(opaque) = &call.opaque {
            self.add_opaque(&mut fields, opaque);
        }
        Json::Object(fields)
    }

    fn call_id(&mut self, wire_id: Option<&'a str>, ours: &'a str) -> Cow<'a, str> {
        if !self.target.quirks.nine_char_ids {
            return self.id(wire_id, ours);
        }
        let own = wire_id.filter(|id| self.own && !id.is_empty());
        let id = own.unwrap_or(ours);
        let made = nine_chars(id);
        if made != id {
            self.notes.add(Lowering::IdReplaced);
        }
        made
    }

    fn results(&mut self, message: &'a Message, list: &mut Messages<'a>) {
        for (index, result) in results(message) {
            self.notes.enter_part(Some(index));
            list.add(Some(self.result(result)));
        }
        // Only behind the last result, since all results must follow the calls directly.
        for (index, result) in
            results(message).filter(|(_, result)| result.media().next().is_some())
        {
            self.notes.enter_part(Some(index));
            list.say(self.media_of_result(result));
        }
        self.notes.enter_part(None);
    }

    fn result(&mut self, result: &'a ToolResult) -> Json<'a> {
        let id = self.call_id(result.wire_id.as_deref(), result.call_id.as_str());
        let content = match &result.content {
            ToolContent::Text(text) if result.blocks.is_empty() => Json::str(text),
            ToolContent::Text(_) | ToolContent::Json(_) => Json::str(result.to_text()),
        };
        Json::object([
            ("role", Json::str("tool")),
            ("tool_call_id", Json::Str(id)),
            ("content", content),
        ])
    }

    fn media_of_result(&mut self, result: &'a ToolResult) -> Option<Json<'a>> {
        let media = result.media().map(|media| self.media(media));
        let media: Vec<_> = media.collect();
        if media.is_empty() {
            return None;
        }
        self.notes.add(Lowering::MediaMoved);
        let mut parts = vec![text_part(format!("Returned by tool `{}`:", result.name))];
        parts.extend(media);
        Some(Json::List(parts))
    }

    fn sampling(&mut self, body: &mut Fields<'a>, request: &'a ModelRequest) {
        if let Some(temperature) = self.temperature(request) {
            set(body, "temperature", Json::Float(temperature));
        }
        if let Some(max) = request.sampling.max_output_tokens {
            let field = self.target.quirks.max_tokens_field.as_str();
            set(body, field, Json::Int(u64::from(max)));
        }
        if let Some(effort) = request.sampling.effort {
            set(body, "reasoning_effort", Json::str(effort_text(effort)));
        }
    }
}

/// The messages of a request, in which no two of the user follow one another: chat templates that want roles to alternate
/// refuse them. Texts are joined by an empty line; if either message has an image or a file, their parts become one list.
#[derive(Default)]
struct Messages<'a> {
    list: Vec<Json<'a>>,
    /// The content of the user's message at the end.
    said: Option<Json<'a>>,
}

impl<'a> Messages<'a> {
    /// Adds content of the user, to the message before it if that is the user's too.
    fn say(&mut self, content: Option<Json<'a>>) {
        let Some(content) = content else { return };
        self.said = Some(match (self.said.take(), content) {
            (None, content) => content,
            (Some(Json::Str(before)), Json::Str(text)) => {
                Json::Str(Cow::Owned(format!("{before}\n\n{text}")))
            }
            (Some(before), content) => {
                let mut parts = content_parts(before);
                parts.extend(content_parts(content));
                Json::List(parts)
            }
        });
    }

    /// Adds a message that is not the user's.
    fn add(&mut self, message: Option<Json<'a>>) {
        if let Some(message) = message {
            self.end_user();
            self.list.push(message);
        }
    }

    fn end_user(&mut self) {
        let said = self.said.take();
        self.list.extend(said.map(|it| message_json("user", it)));
    }

    /// Takes all messages out.
    fn take(&mut self) -> Vec<Json<'a>> {
        self.end_user();
        std::mem::take(&mut self.list)
    }
}

fn content_parts(content: Json<'_>) -> Vec<Json<'_>> {
    match content {
        Json::List(parts) => parts,
        Json::Str(text) => vec![text_part(text)],
        other => vec![other],
    }
}

fn system(request: &ModelRequest) -> Option<Json<'_>> {
    let text = || Json::str(request.system.join("\n\n"));
    (!request.system.is_empty()).then(|| message_json("system", text()))
}

fn tools<'a>(body: &mut Fields<'a>, request: &'a ModelRequest, quirks: &Quirks) {
    if request.tools.is_empty() {
        return;
    }
    set(
        body,
        "tools",
        Json::List(request.tools.iter().map(tool).collect()),
    );
    // `auto` is the default, and some servers know no other value.
    if request.tool_choice == ToolChoice::None {
        set(body, "tool_choice", Json::str("none"));
    }
    if let Some(parallel) = quirks.parallel_tool_calls {
        set(body, "parallel_tool_calls", Json::Bool(parallel));
    }
}

fn tool(spec: &ToolSpec) -> Json<'_> {
    let function = Json::object([
        ("name", Json::str(&spec.name)),
        ("description", Json::str(&spec.description)),
        ("parameters", Json::Value(&spec.parameters)),
    ]);
    Json::object([("type", Json::str("function")), ("function", function)])
}

fn response_format<'a>(schema: &'a Value, origin: &Origin) -> Json<'a> {
    let (schema, strict) = sent(schema, origin);
    let format = Json::object([
        ("name", Json::str(SCHEMA_NAME)),
        ("schema", schema),
        ("strict", Json::Bool(strict)),
    ]);
    Json::object([("type", Json::str("json_schema")), ("json_schema", format)])
}

fn message_json<'a>(role: &'a str, content: Json<'a>) -> Json<'a> {
    Json::object([("role", Json::str(role)), ("content", content)])
}

fn text_part<'a>(text: impl Into<Cow<'a, str>>) -> Json<'a> {
    Json::object([("type", Json::str("text")), ("text", Json::str(text))])
}

/// The formats that the protocol names.
fn audio_format(media: &Media) -> Option<&'static str> {
    match media.mime.as_str() {
        "audio/wav" | "audio/x-wav" | "audio/wave" => Some("wav"),
        "audio/mpeg" | "audio/mp3" => Some("mp3"),
        _ => None,
    }
}
