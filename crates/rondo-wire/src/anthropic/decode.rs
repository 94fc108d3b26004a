//! Decodes the events of a message, or a whole message.

use super::blocks::{Block, OpaqueBlock, extra_fields, grow_extra};
use super::event::{Delta, Event, RawDelta, WireMessage, WireUsage};
use crate::body::{
    PayloadDecoder, damaged, finished, malformed, number_of, provider_data, too_many, unreadable,
};
use crate::errors;
use crate::json::{Count, RawObject, Text, nonempty, raw_object};
use crate::naming::Naming;
use crate::scan::JsonScan;
use crate::{Bounds, Target};
use rondo_types::{FinishReason, ModelError, ModelEvent, Origin, Usage};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// The only candidate that the protocol knows.
const CANDIDATE: u32 = 0;

/// Blocks that are open at one time; the provider sends one after the other.
const OPEN_BLOCKS_MAX: usize = 256;

/// Blocks of one message.
const BLOCKS_MAX: usize = 16_384;

/// Reads the events of a message, or a whole message.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AnthropicPayloadDecoder {
    origin: Origin,
    calls_max: usize,
    /// The id of the message that began.
    id: Option<String>,
    blocks: BTreeMap<u32, Block>,
    /// The blocks that began, open or not.
    begun: BTreeSet<u32>,
    calls: Vec<Call>,
    /// Set if the request offered tools.
    offered: bool,
    /// Set if a block was kept unchanged; it may be a call of the provider's own.
    has_opaque_block: bool,
    /// The block whose text or thinking the latest part is.
    open: Option<u32>,
    /// Set if the latest part is a text that the next one must not be joined to.
    closed_text: bool,
    usage: Option<WireUsage>,
    naming: Naming,
    finish: Option<FinishReason>,
    stopped: bool,
    any: bool,
}

#[derive(Debug, Clone, Default, PartialEq)]
struct Call {
    wire_id: Option<String>,
    named: bool,
    /// The arguments that its beginning brought, for a block without deltas.
    input: String,
    any_arguments: bool,
    scan: JsonScan,
    extra: Option<String>,
    stopped: bool,
}

impl AnthropicPayloadDecoder {
    pub(crate) fn new(target: &Target, bounds: Bounds) -> Self {
        Self {
            origin: target.origin.clone(),
            calls_max: bounds.open_calls_max,
            id: None,
            blocks: BTreeMap::new(),
            begun: BTreeSet::new(),
            calls: Vec::new(),
            offered: !target.tools.is_empty(),
            has_opaque_block: false,
            open: None,
            closed_text: false,
            usage: None,
            naming: Naming::default(),
            finish: None,
            stopped: false,
            any: false,
        }
    }

    fn event(
        &mut self,
        kind: &str,
        event: &Event<'_>,
        delta: Option<Delta<'_>>,
        json: &str,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let index = event.index.and_then(Count::index).unwrap_or(0);
        match kind {
            "message_start" => self.begin(event.message, out),
            "content_block_start" => match event.content_block {
                Some(block) => self.start(index, block, out),
                None => Ok(()),
            },
            "content_block_delta" => {
                if let Some(delta) = delta {
                    self.check_begun(index)?;
                    self.delta(index, &delta, json, out);
                }
                Ok(())
            }
            "content_block_stop" => {
                self.check_begun(index)?;
                self.stop(index, out);
                Ok(())
            }
            "message_delta" => {
                let reason = delta.as_ref().and_then(|it| it.stop_reason.as_ref());
                self.finish(reason, out);
                self.report_usage(event.usage, out);
                Ok(())
            }
            "message_stop" => {
                self.stopped = true;
                Ok(())
            }
            "message" => self.document(json, out),
            // An unknown type of event: the API adds new ones, and asks clients to skip them.
            _ => Ok(()),
        }
    }

    /// Fails when what a block is was lost: the rest of it cannot be understood, and without it the
    /// reply says something else.
    fn check_begun(&self, index: u32) -> Result<(), ModelError> {
        if self.begun.contains(&index) {
            return Ok(());
        }
        Err(damaged("the beginning of one of its content blocks"))
    }

    fn begin(
        &mut self,
        raw: Option<&RawValue>,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let message: Option<WireMessage<'_>> =
            raw.and_then(|raw| serde_json::from_str(raw.get()).ok());
        let Some(message) = message else {
            return Err(malformed("its first event has no message"));
        };
        let id = nonempty(message.id.as_ref()).unwrap_or_default().to_owned();
        match &self.id {
            None => self.id = Some(id),
            Some(open) if *open == id => return Ok(()),
            Some(_) => return Err(malformed("a second message begins inside of the first")),
        }
        self.whole(message, out)
    }

    /// Takes a message as it begins, of which little or all may be there.
    fn whole(
        &mut self,
        message: WireMessage<'_>,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let (id, model) = (message.id.as_ref(), message.model.as_ref());
        self.naming.take(id, model, out);
        self.whole_blocks(message.content, out)?;
        self.finish(message.stop_reason.as_ref(), out);
        self.report_usage(message.usage, out);
        Ok(())
    }

    fn document(&mut self, json: &str, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        let Ok(message) = serde_json::from_str::<WireMessage<'_>>(json) else {
            return Err(malformed("the message does not fit"));
        };
        self.whole(message, out)?;
        self.stopped = self.finish.is_some();
        Ok(())
    }

    fn whole_blocks(
        &mut self,
        content: Option<Vec<&RawValue>>,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        for block in content.into_iter().flatten() {
            self.start(0, block, out)?;
            self.stop(0, out);
        }
        Ok(())
    }

    fn start(
        &mut self,
        index: u32,
        raw: &RawValue,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        if self.begun.insert(index) && self.begun.len() > BLOCKS_MAX {
            return Err(too_many("blocks", BLOCKS_MAX));
        }
        let RawObject(fields) = raw_object(raw.get()).unwrap_or_default();
        let field = |name: &str| fields.iter().find(|(key, _)| key == name).map(|it| it.1);
        let text = |name: &str| owned(field(name));
        let block = match text("type").as_str() {
            "text" => {
                self.seal_text(out);
                Block::Text(extra_fields(raw, &["type", "text"]))
            }
            "thinking" => Block::Thinking(extra_fields(raw, &["type", "thinking"])),
            "tool_use" => {
                let input = field("input").map_or("", RawValue::get);
                self.start_call(&text("id"), text("name"), input, raw, out)
            }
            _ => {
                self.has_opaque_block = true;
                Block::Opaque(OpaqueBlock::Whole(raw.get().to_owned()))
            }
        };
        if matches!(block, Block::Ignored) {
            self.blocks.remove(&index);
            return Ok(());
        }
        if self.blocks.len() >= OPEN_BLOCKS_MAX && !self.blocks.contains_key(&index) {
            return Err(too_many("open blocks", OPEN_BLOCKS_MAX));
        }
        let text = match &block {
            Block::Text(_) => Some((text("text"), false)),
            Block::Thinking(_) => Some((text("thinking"), true)),
            _ => None,
        };
        self.blocks.insert(index, block);
        if let Some((text, thinking)) = text {
            self.push_text(index, text, thinking, out);
        }
        Ok(())
    }

    fn start_call(
        &mut self,
        id: &str,
        name: String,
        input: &str,
        raw: &RawValue,
        out: &mut Vec<ModelEvent>,
    ) -> Block {
        let wire_id = (!id.is_empty()).then(|| id.to_owned());
        let known = |call: &Call| wire_id.is_some() && call.wire_id == wire_id;
        if self.calls.iter().any(known) {
            return Block::Ignored;
        }
        let number = self.calls.len();
        if number >= self.calls_max {
            return Block::Ignored;
        }
        let extra = extra_fields(raw, &["type", "id", "name", "input"]);
        self.calls.push(Call {
            wire_id: wire_id.clone(),
            named: !name.is_empty(),
            input: if input == "null" { "" } else { input }.to_owned(),
            extra: (!extra.is_empty()).then(|| Value::Object(extra).to_string()),
            ..Call::default()
        });
        self.open = None;
        self.closed_text = false;
        out.push(ModelEvent::ToolCallStarted {
            candidate: CANDIDATE,
            call: number_of(number),
            wire_id,
            name,
        });
        Block::Call(number)
    }

    fn delta(&mut self, index: u32, delta: &Delta<'_>, event: &str, out: &mut Vec<ModelEvent>) {
        let thinking = match self.blocks.get_mut(&index) {
            Some(Block::Opaque(block)) => {
                return raw_delta(event).map_or((), |raw| block.grow(raw));
            }
            Some(Block::Call(number)) => {
                let number = *number;
                return self.add_arguments(number, owned(delta.partial_json), out);
            }
            Some(Block::Text(extra)) => {
                grow_unless_text(extra, delta, event);
                false
            }
            Some(Block::Thinking(extra)) => {
                grow_unless_text(extra, delta, event);
                true
            }
            Some(Block::Ignored) | None => return,
        };
        let text = if thinking { delta.thinking } else { delta.text };
        self.push_text(index, owned(text), thinking, out);
    }

    fn push_text(&mut self, index: u32, text: String, thinking: bool, out: &mut Vec<ModelEvent>) {
        if text.is_empty() {
            return;
        }
        self.open = Some(index);
        self.closed_text = false;
        let candidate = CANDIDATE;
        out.push(if thinking {
            ModelEvent::ReasoningDelta { candidate, text }
        } else {
            ModelEvent::TextDelta { candidate, text }
        });
    }

    fn add_arguments(&mut self, number: usize, piece: String, out: &mut Vec<ModelEvent>) {
        let Some(call) = self.calls.get_mut(number) else {
            return;
        };
        if piece.is_empty() {
            return;
        }
        call.any_arguments = true;
        if !call.scan.closed() {
            call.scan.feed(piece.as_bytes());
        }
        out.push(ModelEvent::ToolCallDelta {
            call: number_of(number),
            arguments: piece,
        });
    }

    fn stop(&mut self, index: u32, out: &mut Vec<ModelEvent>) {
        let is_open = self.open == Some(index);
        match self.blocks.remove(&index) {
            Some(Block::Text(extra)) if is_open => {
                self.open = None;
                self.closed_text = extra.is_empty();
                if !extra.is_empty() {
                    self.seal(Value::Object(extra).to_string(), out);
                }
            }
            Some(Block::Thinking(extra)) => {
                self.open = None;
                self.closed_text = false;
                self.stop_thinking(is_open, extra, out);
            }
            Some(Block::Call(number)) => self.stop_call(number, out),
            Some(Block::Opaque(block)) => {
                self.open = None;
                self.closed_text = false;
                let opaque = provider_data(&self.origin, block.into_json());
                out.push(ModelEvent::OpaquePart {
                    candidate: CANDIDATE,
                    opaque,
                });
            }
            Some(Block::Text(_) | Block::Ignored) | None => {}
        }
    }

    /// Thinking that shows no text is kept as a block of its own.
    fn stop_thinking(&mut self, shown: bool, extra: Map<String, Value>, out: &mut Vec<ModelEvent>) {
        if shown {
            return self.seal(Value::Object(extra).to_string(), out);
        }
        if extra.is_empty() {
            return;
        }
        let mut fields = Map::new();
        fields.insert("type".to_owned(), Value::from("thinking"));
        fields.insert("thinking".to_owned(), Value::from(""));
        fields.extend(extra);
        let opaque = provider_data(&self.origin, Value::Object(fields).to_string());
        out.push(ModelEvent::OpaquePart {
            candidate: CANDIDATE,
            opaque,
        });
    }

    fn stop_call(&mut self, number: usize, out: &mut Vec<ModelEvent>) {
        let Some(call) = self.calls.get_mut(number) else {
            return;
        };
        call.stopped = true;
        if !call.any_arguments {
            let input = std::mem::take(&mut call.input);
            let input = if input.is_empty() {
                "{}".to_owned()
            } else {
                input
            };
            self.add_arguments(number, input, out);
        }
    }

    /// Keeps two texts that follow each other apart, as they came.
    fn seal_text(&mut self, out: &mut Vec<ModelEvent>) {
        if std::mem::take(&mut self.closed_text) {
            self.seal("{}".to_owned(), out);
        }
    }

    fn seal(&self, json: String, out: &mut Vec<ModelEvent>) {
        out.push(ModelEvent::PartClosed {
            candidate: CANDIDATE,
            opaque: provider_data(&self.origin, json),
        });
    }

    fn finish(&mut self, reason: Option<&Text<'_>>, out: &mut Vec<ModelEvent>) {
        if let Some(raw) = nonempty(reason) {
            let reason = finish_reason(raw);
            finished(&mut self.finish, CANDIDATE, reason, raw, out);
        }
    }

    fn report_usage(&mut self, usage: Option<WireUsage>, out: &mut Vec<ModelEvent>) {
        if let Some(later) = usage {
            let usage = self.usage.get_or_insert_default();
            usage.replace_by(later);
            // Counts of nothing are counts that were not made.
            if usage.reported() != Usage::default() {
                out.push(ModelEvent::Usage(usage.ours()));
            }
        }
    }
}

impl PayloadDecoder for AnthropicPayloadDecoder {
    fn read_object(
        &mut self,
        name: &str,
        json: &str,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let mut event: Event<'_> =
            serde_json::from_str(json).map_err(|error| unreadable(self, name, json, &error))?;
        let delta = event.delta.take();
        let kind = nonempty(event.kind.as_ref());
        let has_error = event.error.is_some_and(|error| error.get() != "null");
        if kind == Some("error") || name == "error" || (kind.is_none() && has_error) {
            return Err(errors::of_text(json));
        }
        let Some(kind) = kind else { return Ok(()) };
        self.any |= kind.starts_with("message") || kind.starts_with("content_block");
        self.event(kind, &event, delta, json, out)
    }

    fn has_read_any(&self) -> bool {
        self.any
    }

    /// The stop reason comes behind all content, so that the last event adds nothing to it.
    fn may_end(&self) -> bool {
        self.stopped || self.finish.is_some()
    }

    fn ended(&self) -> bool {
        self.stopped
    }

    /// Gateways put `[DONE]` in the place of the last event.
    fn done_may_end(&self) -> bool {
        self.stopped || self.finish.is_some()
    }

    fn document_may_end(&self) -> bool {
        self.stopped
    }

    fn complete(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        let calls = std::mem::take(&mut self.calls);
        let Some(finish) = self.finish else {
            return Err(damaged("it ends without a stop reason"));
        };
        let none_came = calls.is_empty() && !self.has_opaque_block;
        if finish == FinishReason::ToolCalls && self.offered && none_came {
            return Err(damaged("it ends with a tool call, and none came"));
        }
        if !may_run(finish) {
            return Ok(());
        }
        for (number, call) in calls.into_iter().enumerate() {
            if call.stopped && call.named && !call.scan.open() {
                let opaque = call.extra.map(|json| provider_data(&self.origin, json));
                let call = number_of(number);
                out.push(ModelEvent::ToolCallFinished { call, opaque });
            }
        }
        Ok(())
    }

    fn reported_usage(&self) -> Option<Usage> {
        self.usage.map(WireUsage::reported)
    }
}

/// Returns whether calls of a message that ended so may run: not when it was cut, refused or
/// paused, whatever their arguments look like.
fn may_run(reason: FinishReason) -> bool {
    matches!(reason, FinishReason::Stop | FinishReason::ToolCalls)
}

/// `stop_reason`, https://docs.claude.com/en/api/messages.
fn finish_reason(raw: &str) -> FinishReason {
    match raw {
        "end_turn" | "stop_sequence" => FinishReason::Stop,
        "tool_use" => FinishReason::ToolCalls,
        "max_tokens" | "model_context_window_exceeded" => FinishReason::Length,
        "pause_turn" => FinishReason::Paused,
        "refusal" => FinishReason::Refusal,
        _ => FinishReason::Other,
    }
}

fn grow_unless_text(extra: &mut Map<String, Value>, delta: &Delta<'_>, event: &str) {
    let kind = nonempty(delta.kind.as_ref()).unwrap_or_default();
    if matches!(kind, "text_delta" | "thinking_delta") {
        return;
    }
    if let Some(raw) = raw_delta(event) {
        grow_extra(extra, raw);
    }
}

fn owned(raw: Option<&RawValue>) -> String {
    let text: Option<Text<'_>> = raw.and_then(|raw| serde_json::from_str(raw.get()).ok());
    text.unwrap_or_default().0.into_owned()
}

/// Returns the delta of an event as it came.
fn raw_delta(event: &str) -> Option<&RawValue> {
    let event: RawDelta<'_> = serde_json::from_str(event).ok()?;
    event.delta
}
