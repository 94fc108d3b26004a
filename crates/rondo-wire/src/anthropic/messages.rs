//! The conversation as alternating messages of user and assistant.

use super::Anthropic;
use super::server;
use super::thinking::is_thinking;
use crate::Target;
use crate::encoded_prefix::{EncodedPrefix, EncoderMark};
use crate::encoder::{Encoder, Rules};
use crate::json::{Fields, Json, raw_if_object, raw_object, set};
use crate::lowering::{Lowering, LoweringCause, closes_only, is_own, is_same_provider, results};
use rondo_types::{
    ContentBlock, Media, MediaKind, MediaSource, Message, ModelRequest, Opaque, Part,
    ReasoningPart, Role, TextPart, ToolCall, ToolContent, ToolResult,
};
use std::borrow::Cow;
use std::sync::Arc;

/// Text of a user message that the provider demands and the transcript lacks.
const GO_ON: &str = "Continue.";

/// Images that the provider reads, https://docs.claude.com/en/docs/build-with-claude/vision.
const IMAGES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];

/// The one kind of file that the provider reads from bytes or an address.
const PDF: &str = "application/pdf";

/// Names are `^[a-zA-Z0-9_-]{1,64}$`,
/// https://docs.claude.com/en/docs/agents-and-tools/tool-use/implement-tool-use, and ids
/// `^[a-zA-Z0-9_-]+$`.
impl Rules for Anthropic {}

/// A message being built. Results come first in it, whatever the order they were added in.
pub(super) struct Turn<'a> {
    role: Speaker,
    results: Vec<Json<'a>>,
    blocks: Vec<Json<'a>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Speaker {
    User,
    Assistant,
}

/// Beginning of a user message. No later message changes what is before it.
#[derive(Debug, Clone, Copy)]
struct Start {
    message: usize,
    turns: usize,
    own: bool,
    notes: usize,
    tools: usize,
}

/// Builds the messages of a request.
pub(super) struct Conversation<'a> {
    pub(super) encoder: Encoder<'a, Anthropic>,
    pub(super) turns: Vec<Turn<'a>>,
    /// Names of the tools that the history speaks of.
    pub(super) tools: Vec<Cow<'a, str>>,
}

impl<'a> Turn<'a> {
    fn new(role: Speaker) -> Self {
        Self {
            role,
            results: Vec::new(),
            blocks: Vec::new(),
        }
    }

    fn go_on() -> Self {
        let mut turn = Self::new(Speaker::User);
        turn.blocks.push(text_block(GO_ON));
        turn
    }

    pub(super) fn is_user(&self) -> bool {
        self.role == Speaker::User
    }

    /// Returns the blocks that it ends with.
    pub(super) fn last_blocks(&mut self) -> &mut [Json<'a>] {
        if self.blocks.is_empty() {
            &mut self.results
        } else {
            &mut self.blocks
        }
    }

    pub(super) fn into_json(self) -> Json<'a> {
        let role = match self.role {
            Speaker::User => "user",
            Speaker::Assistant => "assistant",
        };
        let mut content = self.results;
        content.extend(self.blocks);
        Json::object([("role", Json::str(role)), ("content", Json::List(content))])
    }
}

impl<'a> Conversation<'a> {
    /// Builds the messages behind those that are kept, and keeps those that are final.
    pub(super) fn of(
        prefix: &mut EncodedPrefix,
        request: &'a ModelRequest,
        target: &'a Target,
    ) -> Self {
        let from = prefix.resume(request, target);
        let mut mark = prefix.mark();
        let (tools, opened) = (std::mem::take(&mut mark.tools), mark.opened);
        let mut conversation = Self {
            encoder: Encoder::resumed(mark, target),
            turns: Vec::new(),
            tools: tools.into_iter().map(Cow::Owned).collect(),
        };
        // The last two, which are marked and so not kept.
        let mut users: [Option<Start>; 2] = [None, None];
        for (index, message) in request.messages.iter().enumerate().skip(from) {
            conversation.encoder.notes.enter(Some(index));
            let start = conversation.start(index);
            match message.role {
                Role::User => conversation.user(message),
                Role::Assistant => {
                    let next = request.messages.get(index + 1).map(AsRef::as_ref);
                    conversation.assistant(message, next);
                }
                Role::Tool => conversation.results(message),
            }
            let began = conversation.turns.get(start.turns);
            if began.is_some_and(Turn::is_user) {
                let [_, last] = users;
                users = [last, Some(start)];
            }
        }
        conversation.encoder.notes.enter(None);
        let opened = match from {
            0 => !conversation.turns.first().is_some_and(Turn::is_user),
            _ => opened,
        };
        let [settled, _] = users;
        let settled = settled.filter(|it| it.turns > 0 && stands(request, it.message));
        if let Some(settled) = settled {
            let messages = request.messages.get(from..settled.message);
            conversation.settle(prefix, messages.unwrap_or_default(), settled, opened);
        }
        let last = request.messages.last();
        let paused = last.is_some_and(|last| conversation.may_go_on(last));
        conversation.begin_with_user(opened, from == 0 && settled.is_none());
        conversation.end_with_user(paused);
        // If the conversation continues from an earlier place, what is kept would bear a mark.
        if from > 0 && conversation.turns.iter().filter(|it| it.is_user()).count() < 2 {
            *prefix = EncodedPrefix::default();
            return Self::of(prefix, request, target);
        }
        conversation
    }

    fn start(&self, message: usize) -> Start {
        Start {
            message,
            turns: self.turns.len(),
            own: self.encoder.own,
            notes: self.encoder.notes.len(),
            tools: self.tools.len(),
        }
    }

    fn settle(
        &mut self,
        prefix: &mut EncodedPrefix,
        messages: &[Arc<Message>],
        at: Start,
        opened: bool,
    ) {
        let tail = self.turns.split_off(at.turns);
        let mut turns = std::mem::replace(&mut self.turns, tail);
        if opened && prefix.bytes() == 0 {
            turns.insert(0, Turn::go_on());
        }
        let turns: Vec<_> = turns.into_iter().map(Turn::into_json).collect();
        let tools = self.tools.iter().take(at.tools);
        let mark = EncoderMark {
            own: at.own,
            notes: self.encoder.notes.first(at.notes),
            tools: tools.map(|name| name.clone().into_owned()).collect(),
            opened,
        };
        prefix.settle(messages, &turns, mark);
    }

    /// `is_whole` is whether nothing is kept, so that what is added to the front is not either.
    fn begin_with_user(&mut self, opened: bool, is_whole: bool) {
        if opened {
            self.encoder.notes.add(Lowering::UserMessageAdded);
        }
        if opened && is_whole {
            self.turns.insert(0, Turn::go_on());
        }
    }

    /// A reply that the provider paused is last as it is: anything behind it would end it.
    fn end_with_user(&mut self, paused: bool) {
        if !paused && !self.turns.last().is_some_and(Turn::is_user) {
            self.encoder.notes.add(Lowering::UserMessageAdded);
            self.turns.push(Turn::go_on());
        }
    }

    fn user_turn(&mut self) -> Option<&mut Turn<'a>> {
        if !self.turns.last().is_some_and(Turn::is_user) {
            self.turns.push(Turn::new(Speaker::User));
        }
        self.turns.last_mut()
    }

    fn add(&mut self, results: Vec<Json<'a>>, blocks: Vec<Json<'a>>) {
        if results.is_empty() && blocks.is_empty() {
            self.encoder.notes.add(Lowering::MessageDropped);
        } else if let Some(turn) = self.user_turn() {
            turn.results.extend(results);
            turn.blocks.extend(blocks);
        }
    }

    fn user(&mut self, message: &'a Message) {
        let mut blocks = Vec::with_capacity(message.parts.len());
        for (index, part) in message.parts.iter().enumerate() {
            self.encoder.notes.enter_part(Some(index));
            match part {
                Part::Text(text) if !text.text.trim().is_empty() => {
                    blocks.push(text_block(&text.text));
                }
                Part::Media(media) => blocks.push(self.media(media)),
                _ => {}
            }
        }
        self.encoder.notes.enter_part(None);
        self.add(Vec::new(), blocks);
    }

    fn assistant(&mut self, message: &'a Message, next: Option<&'a Message>) {
        self.encoder.own = is_own(message, &self.encoder.target.origin);
        let goes_on = match next {
            Some(next) => next.role == Role::Assistant,
            None => self.may_go_on(message),
        };
        let open = if message.paused && !goes_on {
            server::open_calls(&message.parts)
        } else {
            Vec::new()
        };
        let mut turn = Turn::new(Speaker::Assistant);
        for (index, part) in message.parts.iter().enumerate() {
            self.encoder.notes.enter_part(Some(index));
            if open.contains(&index) {
                let cause = LoweringCause::Unanswered;
                self.encoder.notes.add_for(Lowering::OpaqueDropped, cause);
                continue;
            }
            let block = self.block(part, message);
            turn.blocks.extend(block);
        }
        self.encoder.notes.enter_part(None);
        if turn.blocks.is_empty() {
            self.encoder.notes.add(Lowering::MessageDropped);
        } else {
            self.turns.push(turn);
        }
    }

    fn block(&mut self, part: &'a Part, message: &Message) -> Option<Json<'a>> {
        match part {
            Part::Text(text) => self.text(text),
            Part::Refusal(refusal) => {
                self.encoder.notes.add(Lowering::RefusalAsText);
                (!refusal.text.trim().is_empty()).then(|| text_block(&refusal.text))
            }
            Part::Reasoning(reasoning) => self.thinking(reasoning, message),
            Part::ToolCall(call) => Some(self.call(call)),
            Part::Opaque(opaque) => {
                let json = self.own_json(opaque)?;
                raw_if_object(json).map(Json::Raw)
            }
            Part::Media(_) => {
                self.encoder.notes.add(Lowering::MediaDropped);
                None
            }
            Part::ToolResult(_) => None,
        }
    }

    /// A text without anything to see is refused.
    fn text(&mut self, text: &'a TextPart) -> Option<Json<'a>> {
        let extra = text
            .opaque
            .as_ref()
            .filter(|opaque| !closes_only(opaque))
            .and_then(|opaque| self.own_json(opaque));
        if text.text.trim().is_empty() {
            if extra.is_some() {
                let cause = LoweringCause::NothingLeft;
                self.encoder.notes.add_for(Lowering::OpaqueDropped, cause);
            }
            return None;
        }
        let mut fields: Fields<'a> = vec![
            (Cow::Borrowed("type"), Json::str("text")),
            (Cow::Borrowed("text"), Json::str(&text.text)),
        ];
        add_fields(&mut fields, extra);
        Some(Json::Object(fields))
    }

    /// Thinking is taken back only with the signature that it came with, and only by its model.
    fn thinking(&mut self, reasoning: &'a ReasoningPart, message: &Message) -> Option<Json<'a>> {
        let (origin, target) = (message.origin.as_ref(), &self.encoder.target.origin);
        let own = reasoning.opaque.as_ref();
        let own = own.filter(|opaque| opaque.origin == *target);
        let extra = own.and_then(|opaque| raw_object(&opaque.json));
        let signed = |(key, value): &(Cow<'_, str>, &serde_json::value::RawValue)| {
            key == "signature" && !matches!(value.get(), "null" | "\"\"")
        };
        if !extra.is_some_and(|extra| extra.0.iter().any(signed)) {
            self.encoder.drop_reasoning(origin, origin == Some(target));
            return None;
        }
        let mut fields: Fields<'a> = vec![
            (Cow::Borrowed("type"), Json::str("thinking")),
            (Cow::Borrowed("thinking"), Json::str(&reasoning.text)),
        ];
        add_fields(&mut fields, own.map(|opaque| opaque.json.as_str()));
        Some(Json::Object(fields))
    }

    fn call(&mut self, call: &'a ToolCall) -> Json<'a> {
        let input = self.encoder.arguments(call);
        let input = input.map_or(Json::Object(Vec::new()), Json::Raw);
        let name = self.encoder.name(&call.name);
        if !self.tools.contains(&name) {
            self.tools.push(name.clone());
        }
        let id = self.encoder.id(call.wire_id.as_deref(), call.id.as_str());
        let mut fields: Fields<'a> = vec![
            (Cow::Borrowed("type"), Json::str("tool_use")),
            (Cow::Borrowed("id"), Json::Str(id)),
            (Cow::Borrowed("name"), Json::Str(name)),
            (Cow::Borrowed("input"), input),
        ];
        let extra = call.opaque.as_ref();
        add_fields(&mut fields, extra.and_then(|opaque| self.own_json(opaque)));
        Json::Object(fields)
    }

    fn results(&mut self, message: &'a Message) {
        let mut list = Vec::with_capacity(message.parts.len());
        let mut moved = Vec::new();
        for (index, result) in results(message) {
            self.encoder.notes.enter_part(Some(index));
            list.push(self.result(result));
            if is_moved(result) {
                moved.extend(self.moved_media(result));
            }
        }
        self.encoder.notes.enter_part(None);
        self.add(list, moved);
    }

    fn moved_media(&mut self, result: &'a ToolResult) -> Vec<Json<'a>> {
        let media = result.media().map(|media| self.media(media));
        let media: Vec<_> = media.collect();
        if media.is_empty() {
            return media;
        }
        self.encoder.notes.add(Lowering::MediaMoved);
        let intro = text_block(format!("Returned by tool `{}`:", result.name));
        [intro].into_iter().chain(media).collect()
    }

    fn result(&mut self, result: &'a ToolResult) -> Json<'a> {
        let id = self
            .encoder
            .id(result.wire_id.as_deref(), result.call_id.as_str());
        let text: Cow<'a, str> = match &result.content {
            _ if is_moved(result) => Cow::Owned(result.to_text()),
            ToolContent::Text(text) => Cow::Borrowed(text),
            ToolContent::Json(value) => Cow::Owned(value.to_string()),
        };
        let mut fields: Fields<'a> = vec![
            (Cow::Borrowed("type"), Json::str("tool_result")),
            (Cow::Borrowed("tool_use_id"), Json::Str(id)),
        ];
        if !result.blocks.is_empty() && !is_moved(result) {
            let mut blocks = Vec::with_capacity(result.blocks.len() + 1);
            blocks.extend((!text.trim().is_empty()).then(|| text_block(text)));
            for block in &result.blocks {
                match block {
                    // The provider refuses blank texts.
                    ContentBlock::Text { text } if text.trim().is_empty() => {}
                    ContentBlock::Text { text } => blocks.push(text_block(text)),
                    ContentBlock::Media(media) => blocks.push(self.media(media)),
                }
            }
            if !blocks.is_empty() {
                set(&mut fields, "content", Json::List(blocks));
            }
        } else if !text.trim().is_empty() {
            set(&mut fields, "content", Json::Str(text));
        }
        if result.error.is_some() {
            set(&mut fields, "is_error", Json::Bool(true));
        }
        Json::Object(fields)
    }

    fn media(&mut self, media: &'a Media) -> Json<'a> {
        let kind = match (media.kind, &media.source) {
            (MediaKind::Image, MediaSource::Url(_)) => "image",
            (MediaKind::Image, _) if IMAGES.contains(&media.mime.as_str()) => "image",
            (MediaKind::File, _) if media.mime == PDF => "document",
            _ => return text_block(self.encoder.notes.media_as_text(media)),
        };
        if let Some(text) = self
            .encoder
            .notes
            .not_sent(media, &self.encoder.target.quirks)
        {
            return text_block(text);
        }
        let source = match &media.source {
            MediaSource::Base64(data) => Json::object([
                ("type", Json::str("base64")),
                ("media_type", Json::str(&media.mime)),
                ("data", Json::str(data)),
            ]),
            MediaSource::Url(url) => {
                Json::object([("type", Json::str("url")), ("url", Json::str(url))])
            }
        };
        Json::object([("type", Json::str(kind)), ("source", source)])
    }

    /// Returns whether this is the paused reply of this very model, which alone can continue with it.
    fn may_go_on(&self, message: &Message) -> bool {
        message.paused && message.origin.as_ref() == Some(&self.encoder.target.origin)
    }

    /// Returns opaque JSON if it came from here; sealed thinking only if this model sealed it.
    fn own_json(&mut self, opaque: &'a Opaque) -> Option<&'a str> {
        let (origin, target) = (&opaque.origin, &self.encoder.target.origin);
        let is_own = is_same_provider(origin, target);
        if !is_own || (origin != target && is_thinking(&opaque.json)) {
            let what = Lowering::OpaqueDropped;
            self.encoder.notes.add_from(what, Some(origin), target);
            return None;
        }
        if raw_if_object(&opaque.json).is_none() {
            let cause = LoweringCause::NotAnObject;
            self.encoder.notes.add_for(Lowering::OpaqueDropped, cause);
            return None;
        }
        Some(&opaque.json)
    }
}

/// Returns whether what is before a message stays, whatever comes in its place: a paused reply has
/// a call only while it may be answered.
fn stands(request: &ModelRequest, message: usize) -> bool {
    let before = message.checked_sub(1);
    let before = before.and_then(|before| request.messages.get(before));
    !before.is_some_and(|before| before.paused)
}

/// The result of a failed call may hold only text.
fn is_moved(result: &ToolResult) -> bool {
    result.error.is_some() && !result.blocks.is_empty()
}

fn add_fields<'a>(fields: &mut Fields<'a>, json: Option<&'a str>) {
    for (key, value) in json.and_then(raw_object).unwrap_or_default().0 {
        set(fields, key, Json::Raw(value));
    }
}

pub(super) fn text_block<'a>(text: impl Into<Cow<'a, str>>) -> Json<'a> {
    Json::object([("type", Json::str("text")), ("text", Json::str(text))])
}
