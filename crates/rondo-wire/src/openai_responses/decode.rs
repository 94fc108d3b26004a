//! Decodes the events of a response, or a whole response.

use super::delta_text::DeltaText;
use super::event::{Event, Item, Response, ResponseNames, WireUsage, message_text, pieces};
use crate::body::{
    PayloadDecoder, damaged, malformed, number_of, provider_data, state_of, unreadable,
};
use crate::errors;
use crate::json::{Count, Text, json_text, nonempty};
use crate::naming::Naming;
use crate::scan::JsonScan;
use crate::{Bounds, Target};
use rondo_types::{ErrorClass, FinishReason, ModelError, ModelEvent, Origin, Usage};
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// The only candidate that the protocol knows.
const CANDIDATE: u32 = 0;

/// Output items of one reply; calls have a bound of their own.
const ITEMS_MAX: usize = 4096;

/// Reads the events of a response, or a whole response.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ResponsesPayloadDecoder {
    origin: Origin,
    calls_max: usize,
    items: BTreeMap<u32, ItemState>,
    calls: Vec<Call>,
    /// The item whose text or reasoning the latest part is.
    open: Option<u32>,
    /// Text and refusals of all items, in the order they came.
    text_so_far: DeltaText,
    usage: Option<Usage>,
    naming: Naming,
    /// Set once the response has ended; `true` if its calls may run.
    end: Option<bool>,
    any: bool,
}

#[derive(Debug, Clone, Default, PartialEq)]
struct ItemState {
    /// Its call's place in the list of calls.
    call: Option<usize>,
    has_text: bool,
    has_arguments: bool,
    /// Text and refusals that came.
    text_so_far: DeltaText,
    /// The content part of the latest delta, and the text of it that came.
    part: (u32, DeltaText),
    done: bool,
}

#[derive(Debug, Clone, Default, PartialEq)]
struct Call {
    named: bool,
    arguments: String,
    /// The item to return, once it came whole.
    item: Option<String>,
}

impl ResponsesPayloadDecoder {
    pub(crate) fn new(target: &Target, bounds: Bounds) -> Self {
        Self {
            origin: target.origin.clone(),
            calls_max: bounds.open_calls_max,
            items: BTreeMap::new(),
            calls: Vec::new(),
            open: None,
            text_so_far: DeltaText::default(),
            usage: None,
            naming: Naming::default(),
            end: None,
            any: false,
        }
    }

    fn take_delta(
        &mut self,
        Plain {
            index,
            part,
            delta_kind,
        }: Plain,
        text: Option<&str>,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let Some(delta_kind) = delta_kind else {
            return self.add_arguments(index, text, out);
        };
        if let Some(text) = text.filter(|_| delta_kind != DeltaKind::Reasoning) {
            let latest = &mut self.item(index)?.part;
            if latest.0 != part {
                *latest = (part, DeltaText::default());
            }
            latest.1.add(text);
        }
        self.push_text(index, delta_kind, text, out)
    }

    /// Takes the whole text of a content part, of which the deltas may have had all or nothing.
    fn settle_part(
        &mut self,
        plain: Plain,
        whole: Option<&str>,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let Some(whole) = whole else { return Ok(()) };
        let state = self.item(plain.index)?;
        if state.done || (state.has_text && state.part.0 != plain.part) {
            return Ok(());
        }
        let Some(rest) = state.part.1.rest_of(whole) else {
            return Err(contradicted());
        };
        self.take_delta(plain, Some(rest).filter(|it| !it.is_empty()), out)
    }

    fn event(
        &mut self,
        kind: &str,
        event: &Event<'_>,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let index = event.output_index.and_then(Count::index).unwrap_or(0);
        if let Some(delta_kind) = delta_of(kind) {
            let delta = nonempty(event.delta.as_ref());
            return self.take_delta(event.plain(delta_kind), delta, out);
        }
        match kind {
            "response.output_text.done" => {
                let whole = nonempty(event.text.as_ref());
                self.settle_part(event.plain(Some(DeltaKind::Text)), whole, out)
            }
            "response.refusal.done" => {
                let whole = nonempty(event.refusal.as_ref());
                self.settle_part(event.plain(Some(DeltaKind::Refusal)), whole, out)
            }
            "response.created" | "response.in_progress" => {
                self.name(event.response, out);
                Ok(())
            }
            "response.output_item.added" => self.added(index, event.item, out),
            "response.output_item.done" => match event.item {
                Some(item) => self.done(index, item, out),
                None => Ok(()),
            },
            "response.reasoning_summary_part.added" => {
                let first = event.summary_index.unwrap_or_default().0 == 0;
                let has_text = self.item(index)?.has_text;
                let blank = Some("\n\n").filter(|_| has_text && !first);
                self.push_text(index, DeltaKind::Reasoning, blank, out)
            }
            "response.function_call_arguments.done" => {
                self.settle(index, nonempty(event.arguments.as_ref()), out)
            }
            "response.completed"
            | "response.incomplete"
            | "response.failed"
            | "response.cancelled" => match event.response {
                Some(response) => self.take_end(kind, response, out),
                None => self.take_bare_end(kind, out),
            },
            _ => Ok(()),
        }
    }

    fn name(&mut self, response: Option<&RawValue>, out: &mut Vec<ModelEvent>) {
        let response =
            response.and_then(|raw| serde_json::from_str::<ResponseNames<'_>>(raw.get()).ok());
        if let Some(ResponseNames { id, model }) = response {
            self.naming.take(id.as_ref(), model.as_ref(), out);
        }
    }

    fn item(&mut self, index: u32) -> Result<&mut ItemState, ModelError> {
        state_of(&mut self.items, index, ITEMS_MAX, "items")
    }

    fn push_text(
        &mut self,
        index: u32,
        delta_kind: DeltaKind,
        text: Option<&str>,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let Some(text) = text else { return Ok(()) };
        let item = self.item(index)?;
        item.has_text = true;
        if delta_kind != DeltaKind::Reasoning {
            item.text_so_far.add(text);
            self.text_so_far.add(text);
        }
        self.open = Some(index);
        let (candidate, text) = (CANDIDATE, text.to_owned());
        out.push(match delta_kind {
            DeltaKind::Text => ModelEvent::TextDelta { candidate, text },
            DeltaKind::Refusal => ModelEvent::RefusalDelta { candidate, text },
            DeltaKind::Reasoning => ModelEvent::ReasoningDelta { candidate, text },
        });
        Ok(())
    }

    fn added(
        &mut self,
        index: u32,
        raw: Option<&RawValue>,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        match raw.and_then(|raw| serde_json::from_str::<Item<'_>>(raw.get()).ok()) {
            Some(item) if is_call(&item) => self.start(index, &item, out).map(drop),
            _ => self.item(index).map(drop),
        }
    }

    /// Returns whether a call of this item is one beyond the bound, which is left out.
    fn is_dropped(&self, index: u32) -> bool {
        let known = self.items.get(&index).and_then(|item| item.call);
        known.is_none() && self.calls.len() >= self.calls_max
    }

    /// Starts the call of an item, once, unless there are as many as may be.
    fn start(
        &mut self,
        index: u32,
        item: &Item<'_>,
        out: &mut Vec<ModelEvent>,
    ) -> Result<Option<usize>, ModelError> {
        if self.is_dropped(index) {
            return Ok(None);
        }
        if let Some(call) = self.item(index)?.call {
            return Ok(Some(call));
        }
        let call = self.calls.len();
        let name = text_of(item.name.as_ref());
        self.calls.push(Call {
            named: !name.is_empty(),
            ..Call::default()
        });
        self.item(index)?.call = Some(call);
        self.open = None;
        out.push(ModelEvent::ToolCallStarted {
            candidate: CANDIDATE,
            call: number_of(call),
            wire_id: nonempty(item.call_id.as_ref()).map(str::to_owned),
            name,
        });
        Ok(Some(call))
    }

    fn add_arguments(
        &mut self,
        index: u32,
        piece: Option<&str>,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        if self.is_dropped(index) {
            return Ok(());
        }
        let item = self.item(index)?;
        item.has_arguments |= piece.is_some();
        let number = item.call;
        let call = number.and_then(|number| self.calls.get_mut(number));
        if let (Some(number), Some(call), Some(piece)) = (number, call, piece) {
            call.arguments.push_str(piece);
            out.push(ModelEvent::ToolCallDelta {
                call: number_of(number),
                arguments: piece.to_owned(),
            });
        }
        Ok(())
    }

    /// Hands out what the deltas left out of the whole arguments, which some servers send at once.
    fn settle(
        &mut self,
        index: u32,
        whole: Option<&str>,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let call = self.items.get(&index).and_then(|item| item.call);
        let sent = call.and_then(|call| self.calls.get(call));
        let rest = sent.and_then(|call| whole?.strip_prefix(call.arguments.as_str()));
        let rest = rest.filter(|rest| !rest.is_empty()).map(str::to_owned);
        self.add_arguments(index, rest.as_deref(), out)
    }

    fn done(
        &mut self,
        index: u32,
        raw: &RawValue,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let item = serde_json::from_str::<Item<'_>>(raw.get()).ok();
        if item.as_ref().is_some_and(is_call) && self.is_dropped(index) {
            return Ok(());
        }
        let state = self.item(index)?;
        if std::mem::replace(&mut state.done, true) {
            return Ok(());
        }
        let has_text = state.has_text;
        let Some(item) = item else { return Ok(()) };
        match nonempty(item.kind.as_ref()) {
            Some("function_call") => return self.call_done(index, raw, &item, out),
            Some("message") if !has_text => self.push_content(index, &item, out)?,
            Some("message") => self.settle_content(index, &item, out)?,
            Some("reasoning") if !has_text => self.push_reasoning(index, &item, out)?,
            _ => {}
        }
        let sealed = self.open.take() == Some(index);
        let opaque = provider_data(&self.origin, raw.get().to_owned());
        if !sealed && has_text && nonempty(item.kind.as_ref()) == Some("message") {
            return Ok(());
        }
        out.push(if sealed {
            ModelEvent::PartClosed {
                candidate: CANDIDATE,
                opaque,
            }
        } else {
            ModelEvent::OpaquePart {
                candidate: CANDIDATE,
                opaque,
            }
        });
        Ok(())
    }

    fn push_content(
        &mut self,
        index: u32,
        item: &Item<'_>,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        for piece in pieces(item.content) {
            let text = nonempty(piece.text.as_ref());
            self.push_text(index, DeltaKind::Text, text, out)?;
            let refusal = nonempty(piece.refusal.as_ref());
            self.push_text(index, DeltaKind::Refusal, refusal, out)?;
        }
        Ok(())
    }

    /// Hands out what the deltas left out of a message's whole text.
    fn settle_content(
        &mut self,
        index: u32,
        item: &Item<'_>,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let whole = message_text(item);
        if whole.is_empty() {
            return Ok(());
        }
        let rest = self.item(index)?.text_so_far.rest_of(&whole);
        let rest = rest.ok_or_else(contradicted)?;
        let rest = Some(rest).filter(|rest| !rest.is_empty());
        self.push_text(index, DeltaKind::Text, rest, out)
    }

    fn push_reasoning(
        &mut self,
        index: u32,
        item: &Item<'_>,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let mut between = None;
        for piece in pieces(item.summary).iter().chain(&pieces(item.content)) {
            if let Some(text) = nonempty(piece.text.as_ref()) {
                self.push_text(index, DeltaKind::Reasoning, between, out)?;
                self.push_text(index, DeltaKind::Reasoning, Some(text), out)?;
                between = Some("\n\n");
            }
        }
        Ok(())
    }

    fn call_done(
        &mut self,
        index: u32,
        raw: &RawValue,
        item: &Item<'_>,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let Some(number) = self.start(index, item, out)? else {
            return Ok(());
        };
        let whole = json_text(item.arguments);
        self.settle(index, Some(&whole), out)?;
        let Some(call) = self.calls.get_mut(number) else {
            return Ok(());
        };
        let name = nonempty(item.name.as_ref()).filter(|_| !call.named);
        if let Some(name) = name {
            call.named = true;
            out.push(ModelEvent::ToolCallNamed {
                call: number_of(number),
                wire_id: nonempty(item.call_id.as_ref()).map(str::to_owned),
                name: Some(name.to_owned()),
            });
        }
        if whole.is_empty() && call.arguments.is_empty() {
            call.arguments.push_str("{}");
            out.push(ModelEvent::ToolCallDelta {
                call: number_of(number),
                arguments: call.arguments.clone(),
            });
        }
        // Pieces that do not make up the whole would run with arguments that the model did not write.
        let as_sent = whole.is_empty() || whole == call.arguments;
        let cut = nonempty(item.status.as_ref()) == Some("incomplete");
        if as_sent && call.named && !cut && !is_open(&call.arguments) {
            call.item = Some(raw.get().to_owned());
        }
        Ok(())
    }

    /// Takes the end of a response that the event does not repeat, as some servers send it. The earlier parts must be
    /// whole.
    fn take_bare_end(&mut self, kind: &str, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        let is_whole = |item: &ItemState| item.done || (item.has_text && item.call.is_none());
        let has_come = !self.items.is_empty() && self.items.values().all(is_whole);
        if kind != "response.completed" || !has_come {
            return Err(malformed("its last event has no response"));
        }
        let reason = match self.calls.is_empty() {
            true => FinishReason::Stop,
            false => FinishReason::ToolCalls,
        };
        self.end = Some(true);
        out.push(ModelEvent::Finished {
            candidate: CANDIDATE,
            reason,
            raw: "completed".to_owned(),
        });
        Ok(())
    }

    fn take_end(
        &mut self,
        kind: &str,
        raw: &RawValue,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let Ok(response) = serde_json::from_str::<Response<'_>>(raw.get()) else {
            return Err(malformed("its last event does not fit"));
        };
        let (id, model) = (response.id.as_ref(), response.model.as_ref());
        self.naming.take(id, model, out);
        self.report_usage(response.usage, out);
        let status = kind.strip_prefix("response.").unwrap_or(kind);
        let details = response.incomplete_details.and_then(|it| it.reason);
        // The response's own status is worth more than the name of its event.
        let inside = nonempty(response.status.as_ref());
        let inside = inside.filter(|it| matches!(*it, "failed" | "incomplete" | "cancelled"));
        let status = match inside {
            Some(inside) if status == "completed" => inside,
            _ if status == "completed" && details.is_some() => "incomplete",
            _ => status,
        };
        let taken = self.take_items(response.output.as_deref().unwrap_or_default(), out);
        let (reason, raw) = match status {
            "completed" if self.calls.is_empty() => (FinishReason::Stop, status),
            "completed" => (FinishReason::ToolCalls, status),
            "incomplete" => match details.as_deref() {
                Some("max_output_tokens") => (FinishReason::Length, "max_output_tokens"),
                Some("content_filter") => (FinishReason::ContentFilter, "content_filter"),
                other => (FinishReason::Other, other.unwrap_or(status)),
            },
            _ => return Err(failed(status, response.error)),
        };
        taken?;
        self.end = Some(status == "completed");
        out.push(ModelEvent::Finished {
            candidate: CANDIDATE,
            reason,
            raw: raw.to_owned(),
        });
        Ok(())
    }

    /// Takes the items that the last event repeats; a server without events of their own sends them
    /// here. Their text must equal that of the events before.
    fn take_items(
        &mut self,
        items: &[&RawValue],
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let messages = items.iter().filter_map(|raw| {
            let item: Item<'_> = serde_json::from_str(raw.get()).ok()?;
            is_message(&item).then(|| message_text(&item))
        });
        let whole: String = messages.collect();
        let has_whole = self.text_so_far.rest_of(&whole) == Some("");
        let done = self.items.values().filter(|item| item.done).count();
        if done < items.len() {
            for (index, raw) in items.iter().enumerate() {
                let index = number_of(index);
                let item = serde_json::from_str::<Item<'_>>(raw.get());
                // Its place in the list may be another than that of its events.
                let elsewhere = has_whole && !whole.is_empty() && !self.item(index)?.has_text;
                if !(elsewhere && item.as_ref().is_ok_and(is_message)) {
                    self.done(index, raw, out)?;
                }
            }
        }
        if !whole.is_empty() && self.text_so_far.rest_of(&whole) != Some("") {
            return Err(contradicted());
        }
        Ok(())
    }

    fn report_usage(&mut self, usage: Option<WireUsage>, out: &mut Vec<ModelEvent>) {
        // Counts of nothing are counts that were not made.
        let usage = usage.map(WireUsage::counts);
        if let Some(usage) = usage.filter(|usage| *usage != Usage::default()) {
            self.usage = Some(usage);
            out.push(ModelEvent::Usage(usage));
        }
    }

    fn document(&mut self, json: &str, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        let response: Option<Response<'_>> = serde_json::from_str(json).ok();
        let status = response
            .as_ref()
            .and_then(|it| nonempty(it.status.as_ref()));
        match (status, serde_json::from_str(json)) {
            (Some(status), Ok(raw)) => self.take_end(status, raw, out),
            _ => Ok(()),
        }
    }
}

impl PayloadDecoder for ResponsesPayloadDecoder {
    fn read_object(
        &mut self,
        name: &str,
        json: &str,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let event: Event<'_> =
            serde_json::from_str(json).map_err(|error| unreadable(self, name, json, &error))?;
        let kind = nonempty(event.kind.as_ref());
        if kind == Some("error") || name == "error" {
            return Err(errors::of_text(json));
        }
        match kind {
            Some(kind) => {
                self.any |= kind.starts_with("response.");
                self.event(kind, &event, out)
            }
            None if nonempty(event.object.as_ref()) == Some("response") => {
                self.any = true;
                self.document(json, out)
            }
            None if event.error.is_some_and(|error| error.get() != "null") => {
                Err(errors::of_text(json))
            }
            None => Ok(()),
        }
    }

    fn has_read_any(&self) -> bool {
        self.any
    }

    fn may_end(&self) -> bool {
        self.end.is_some()
    }

    fn ended(&self) -> bool {
        self.end.is_some()
    }

    fn done_may_end(&self) -> bool {
        self.may_end()
    }

    fn document_may_end(&self) -> bool {
        self.may_end()
    }

    fn complete(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        let calls = std::mem::take(&mut self.calls);
        if self.end != Some(true) {
            return Ok(());
        }
        if self
            .items
            .values()
            .any(|it| it.has_arguments && it.call.is_none())
        {
            return Err(damaged("the beginning of one of its tool calls"));
        }
        for (number, call) in calls.into_iter().enumerate() {
            if let Some(item) = call.item {
                out.push(ModelEvent::ToolCallFinished {
                    call: number_of(number),
                    opaque: Some(provider_data(&self.origin, item)),
                });
            }
        }
        Ok(())
    }

    fn reported_usage(&self) -> Option<Usage> {
        self.usage
    }
}

/// A delta without its text: which item, content part and kind of content it continues.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Plain {
    index: u32,
    /// Its content part.
    part: u32,
    /// Absent for the arguments of a call.
    delta_kind: Option<DeltaKind>,
}

/// The kind of text that a delta continues.
#[derive(Debug, Clone, Copy, PartialEq)]
enum DeltaKind {
    Text,
    Refusal,
    Reasoning,
}

impl Event<'_> {
    /// Returns the part to which its text belongs.
    fn plain(&self, delta_kind: Option<DeltaKind>) -> Plain {
        Plain {
            index: self.output_index.and_then(Count::index).unwrap_or(0),
            part: self.content_index.and_then(Count::index).unwrap_or(0),
            delta_kind,
        }
    }
}

/// Returns the kind of an event's delta, if it is one.
fn delta_of(kind: &str) -> Option<Option<DeltaKind>> {
    Some(match kind {
        "response.output_text.delta" => Some(DeltaKind::Text),
        "response.refusal.delta" => Some(DeltaKind::Refusal),
        "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
            Some(DeltaKind::Reasoning)
        }
        "response.function_call_arguments.delta" => None,
        _ => return None,
    })
}

fn is_call(item: &Item<'_>) -> bool {
    nonempty(item.kind.as_ref()) == Some("function_call")
}

fn is_message(item: &Item<'_>) -> bool {
    nonempty(item.kind.as_ref()) == Some("message")
}

fn contradicted() -> ModelError {
    damaged("its full text differs from the streamed pieces")
}

/// Returns whether JSON text stops inside a string or an object.
fn is_open(arguments: &str) -> bool {
    let mut scan = JsonScan::default();
    scan.feed(arguments.as_bytes());
    scan.open()
}

fn text_of(text: Option<&Text<'_>>) -> String {
    nonempty(text).unwrap_or_default().to_owned()
}

fn failed(status: &str, error: Option<&RawValue>) -> ModelError {
    match error.map(RawValue::get) {
        Some(error) if error != "null" => errors::of_text(error),
        _ => ModelError::new(
            ErrorClass::Server,
            format!(
                "the provider ended the response as `{status}`",
                status = crate::failure::clip(status)
            ),
        ),
    }
}
