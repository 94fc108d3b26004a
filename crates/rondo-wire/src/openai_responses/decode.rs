use super::event::{Event, Item, Named, Response, argument_text, pieces};
use crate::body::{Payloads, malformed, unreadable};
use crate::errors;
use crate::json::{Count, Text, nonempty};
use crate::naming::Naming;
use crate::scan::JsonScan;
use crate::template::{Again, Template};
use crate::{Bounds, Target};
use rondo_types::{ErrorClass, FinishReason, ModelError, ModelEvent, Opaque, Origin, Usage};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The only candidate that the protocol knows.
const CANDIDATE: u32 = 0;

/// Output items of one reply; calls have a bound of their own.
const ITEMS_MAX: usize = 4096;

/// Reads the events of a response, or a whole response.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ResponsesPayloads {
    origin: Origin,
    calls_max: usize,
    items: BTreeMap<u32, ItemState>,
    calls: Vec<Call>,
    /// The item whose text or reasoning the latest part is.
    open: Option<u32>,
    usage: Option<Usage>,
    naming: Naming,
    template: Template<Plain>,
    /// Whether the response came to its end, and whether its calls may run.
    end: Option<bool>,
    any: bool,
}

#[derive(Debug, Clone, Default, PartialEq)]
struct ItemState {
    /// Its call's place in the list of calls.
    call: Option<usize>,
    spoke: bool,
    done: bool,
}

#[derive(Debug, Clone, Default, PartialEq)]
struct Call {
    named: bool,
    arguments: String,
    /// The item to return, once it came whole.
    item: Option<String>,
}

impl ResponsesPayloads {
    pub(crate) fn new(target: &Target, bounds: Bounds) -> Self {
        Self {
            origin: target.origin.clone(),
            calls_max: bounds.open_calls_max,
            items: BTreeMap::new(),
            calls: Vec::new(),
            open: None,
            usage: None,
            naming: Naming::default(),
            template: Template::default(),
            end: None,
            any: false,
        }
    }

    /// Learns an event that is nothing but a delta.
    fn learn(&mut self, kind: &str, event: &Event<'_>, json: &str) {
        let (Some(voice), Some(text)) = (delta_of(kind), nonempty(event.delta.as_ref())) else {
            return;
        };
        let index = event.output_index.and_then(Count::index).unwrap_or(0);
        let unread = [event.sequence_number, event.obfuscation];
        let unread = unread.map(|raw| raw.map(RawValue::get));
        self.template
            .learn(json, Plain { index, voice }, text, &unread, &[]);
    }

    /// Says again what a delta said, with another text.
    fn again(
        &mut self,
        again: Again<'_, Plain>,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let Again { delta, text, .. } = again;
        self.take_delta(delta, Some(text), out)
    }

    fn take_delta(
        &mut self,
        Plain { index, voice }: Plain,
        text: Option<Cow<'_, str>>,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        match voice {
            None => self.argue(index, text, out),
            Some(voice) => self.say(index, voice, text, out),
        }
    }

    fn event(
        &mut self,
        kind: &str,
        event: &Event<'_>,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let index = event.output_index.and_then(Count::index).unwrap_or(0);
        if let Some(voice) = delta_of(kind) {
            let delta = nonempty(event.delta.as_ref()).map(Cow::Borrowed);
            return self.take_delta(Plain { index, voice }, delta, out);
        }
        match kind {
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
                let spoke = self.item(index)?.spoke;
                let blank = Some(Cow::Borrowed("\n\n")).filter(|_| spoke && !first);
                self.say(index, Voice::Reasoning, blank, out)
            }
            "response.function_call_arguments.done" => {
                self.settle(index, nonempty(event.arguments.as_ref()), out)
            }
            "response.completed"
            | "response.incomplete"
            | "response.failed"
            | "response.cancelled" => match event.response {
                Some(response) => self.take_end(kind, response, out),
                None => Err(malformed("its last event has no response")),
            },
            _ => Ok(()),
        }
    }

    fn name(&mut self, response: Option<&RawValue>, out: &mut Vec<ModelEvent>) {
        let response = response.and_then(|raw| serde_json::from_str::<Named<'_>>(raw.get()).ok());
        if let Some(Named { id, model }) = response {
            self.naming.take(id.as_ref(), model.as_ref(), out);
        }
    }

    fn item(&mut self, index: u32) -> Result<&mut ItemState, ModelError> {
        if !self.items.contains_key(&index) && self.items.len() >= ITEMS_MAX {
            return Err(too_many("items", ITEMS_MAX));
        }
        Ok(self.items.entry(index).or_default())
    }

    fn say(
        &mut self,
        index: u32,
        voice: Voice,
        text: Option<Cow<'_, str>>,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let Some(text) = text else { return Ok(()) };
        self.item(index)?.spoke = true;
        self.open = Some(index);
        let (candidate, text) = (CANDIDATE, text.into_owned());
        out.push(match voice {
            Voice::Text => ModelEvent::TextDelta { candidate, text },
            Voice::Refusal => ModelEvent::RefusalDelta { candidate, text },
            Voice::Reasoning => ModelEvent::ReasoningDelta { candidate, text },
        });
        Ok(())
    }

    fn added(
        &mut self,
        index: u32,
        raw: Option<&RawValue>,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        self.item(index)?;
        match raw.and_then(|raw| serde_json::from_str::<Item<'_>>(raw.get()).ok()) {
            Some(item) if is_call(&item) => self.start(index, &item, out).map(drop),
            _ => Ok(()),
        }
    }

    /// Starts the call of an item, once.
    fn start(
        &mut self,
        index: u32,
        item: &Item<'_>,
        out: &mut Vec<ModelEvent>,
    ) -> Result<usize, ModelError> {
        if let Some(call) = self.item(index)?.call {
            return Ok(call);
        }
        let call = self.calls.len();
        if call >= self.calls_max {
            return Err(too_many("tool calls", self.calls_max));
        }
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
        Ok(call)
    }

    fn argue(
        &mut self,
        index: u32,
        piece: Option<Cow<'_, str>>,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let number = self.item(index)?.call;
        let call = number.and_then(|number| self.calls.get_mut(number));
        if let (Some(number), Some(call), Some(piece)) = (number, call, piece) {
            call.arguments.push_str(&piece);
            out.push(ModelEvent::ToolCallDelta {
                call: number_of(number),
                arguments: piece.into_owned(),
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
        let call = self.item(index)?.call;
        let sent = call.and_then(|call| self.calls.get(call));
        let rest = sent.and_then(|call| whole?.strip_prefix(call.arguments.as_str()));
        let rest = rest.filter(|rest| !rest.is_empty()).map(str::to_owned);
        self.argue(index, rest.map(Cow::Owned), out)
    }

    fn done(
        &mut self,
        index: u32,
        raw: &RawValue,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let state = self.item(index)?;
        if std::mem::replace(&mut state.done, true) {
            return Ok(());
        }
        let spoke = state.spoke;
        let Ok(item) = serde_json::from_str::<Item<'_>>(raw.get()) else {
            return Ok(());
        };
        match nonempty(item.kind.as_ref()) {
            Some("function_call") => return self.call_done(index, raw, &item, out),
            Some("message") if !spoke => self.say_content(index, &item, out)?,
            Some("reasoning") if !spoke => self.say_reasoning(index, &item, out)?,
            _ => {}
        }
        let sealed = self.open.take() == Some(index);
        let opaque = self.opaque(raw.get().to_owned());
        if !sealed && spoke && nonempty(item.kind.as_ref()) == Some("message") {
            return Ok(());
        }
        out.push(if sealed {
            ModelEvent::PartSealed {
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

    fn say_content(
        &mut self,
        index: u32,
        item: &Item<'_>,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        for piece in pieces(item.content) {
            let text = nonempty(piece.text.as_ref()).map(Cow::Borrowed);
            self.say(index, Voice::Text, text, out)?;
            let refusal = nonempty(piece.refusal.as_ref()).map(Cow::Borrowed);
            self.say(index, Voice::Refusal, refusal, out)?;
        }
        Ok(())
    }

    fn say_reasoning(
        &mut self,
        index: u32,
        item: &Item<'_>,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let mut between = None;
        for piece in pieces(item.summary).iter().chain(&pieces(item.content)) {
            if let Some(text) = nonempty(piece.text.as_ref()) {
                self.say(index, Voice::Reasoning, between.map(Cow::Borrowed), out)?;
                self.say(index, Voice::Reasoning, Some(Cow::Borrowed(text)), out)?;
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
        let number = self.start(index, item, out)?;
        let whole = argument_text(item.arguments);
        self.settle(index, nonempty(Some(&Text(whole.as_str().into()))), out)?;
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
        // Pieces that do not make up the whole would run with arguments that nobody wrote.
        let as_sent = whole.is_empty() || whole == call.arguments;
        let cut = nonempty(item.status.as_ref()) == Some("incomplete");
        if as_sent && call.named && !cut && !is_open(&call.arguments) {
            call.item = Some(raw.get().to_owned());
        }
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
        // The last event repeats the items; a server without events of their own sends them here.
        let items = response.output.as_deref().unwrap_or_default();
        let done = self.items.values().filter(|item| item.done).count();
        if done < items.len() {
            for (index, item) in items.iter().enumerate() {
                self.done(number_of(index), item, out)?;
            }
        }
        if let Some(usage) = response.usage {
            self.usage = Some(usage.counts());
            out.push(ModelEvent::Usage(usage.counts()));
        }
        let status = kind.strip_prefix("response.").unwrap_or(kind);
        let details = response.incomplete_details.and_then(|it| it.reason);
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
        self.end = Some(status == "completed");
        out.push(ModelEvent::Finished {
            candidate: CANDIDATE,
            reason,
            raw: raw.to_owned(),
        });
        Ok(())
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

    fn opaque(&self, json: String) -> Opaque {
        Opaque {
            origin: self.origin.clone(),
            json,
        }
    }
}

impl Payloads for ResponsesPayloads {
    fn object(
        &mut self,
        name: &str,
        json: &str,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        if name != "error"
            && let Some(again) = self.template.read(json)
        {
            return self.again(again, out);
        }
        let event: Event<'_> =
            serde_json::from_str(json).map_err(|error| unreadable(self, name, json, &error))?;
        let kind = nonempty(event.kind.as_ref());
        if kind == Some("error") || name == "error" {
            return Err(errors::of_text(json));
        }
        match kind {
            Some(kind) => {
                self.any |= kind.starts_with("response.");
                self.learn(kind, &event, json);
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

    fn failure(&self, text: &str) -> ModelError {
        errors::of_text(text)
    }

    fn any(&self) -> bool {
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

    fn complete(&mut self, out: &mut Vec<ModelEvent>) {
        let calls = std::mem::take(&mut self.calls);
        if self.end != Some(true) {
            return;
        }
        for (number, call) in calls.into_iter().enumerate() {
            if let Some(item) = call.item {
                out.push(ModelEvent::ToolCallFinished {
                    call: number_of(number),
                    opaque: Some(self.opaque(item)),
                });
            }
        }
    }

    fn reported_usage(&self) -> Option<Usage> {
        self.usage
    }

    #[cfg(test)]
    fn forget(&mut self) {
        self.template.forget();
    }
}

/// What a delta says, but for its text.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Plain {
    /// Its item.
    index: u32,
    /// Absent for the arguments of a call.
    voice: Option<Voice>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Voice {
    Text,
    Refusal,
    Reasoning,
}

/// Returns what an event is a delta of, if it is one.
fn delta_of(kind: &str) -> Option<Option<Voice>> {
    Some(match kind {
        "response.output_text.delta" => Some(Voice::Text),
        "response.refusal.delta" => Some(Voice::Refusal),
        "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
            Some(Voice::Reasoning)
        }
        "response.function_call_arguments.delta" => None,
        _ => return None,
    })
}

fn is_call(item: &Item<'_>) -> bool {
    nonempty(item.kind.as_ref()) == Some("function_call")
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

fn too_many(what: &str, max: usize) -> ModelError {
    ModelError::new(
        ErrorClass::TooLarge,
        format!("the response has more than {max} {what}"),
    )
}

/// Items and calls are bounded far below `u32::MAX`.
fn number_of(key: usize) -> u32 {
    u32::try_from(key).unwrap_or(u32::MAX)
}
