//! Assembles the tool calls of a reply from their deltas.

use super::chunk::CallDelta;
use crate::body::{number_of, provider_data};
use crate::json::{json_text, nonempty};
use crate::scan::JsonScan;
use rondo_types::{FinishReason, ModelEvent, Opaque, Origin, ToolSpec};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Assembles the tool calls of a reply from their deltas.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Calls {
    list: Vec<Call>,
    /// The tools on offer, whose names tell whether one came in pieces.
    tools: Arc<Vec<ToolSpec>>,
    calls_max: usize,
    /// The index of the latest call beyond the bound, by candidate. Pieces of such a call must not reach one that is
    /// kept.
    dropped: BTreeMap<u32, Option<u32>>,
}

#[derive(Debug, Clone, Default, PartialEq)]
struct Call {
    candidate: u32,
    index: Option<u32>,
    id: String,
    name: String,
    /// Arguments not handed out yet: blank, or the beginning of a `null`, which means none.
    held: String,
    any_arguments: bool,
    scan: JsonScan,
    /// Fields of the wire's call that this version does not know, as raw JSON.
    extra: Vec<(String, String)>,
}

impl Calls {
    pub(super) fn new(calls_max: usize, tools: Arc<Vec<ToolSpec>>) -> Self {
        Self {
            list: Vec::new(),
            tools,
            calls_max,
            dropped: BTreeMap::new(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(super) fn any_of(&self, candidate: u32) -> bool {
        self.list.iter().any(|call| call.candidate == candidate)
    }

    /// Takes one delta.
    pub(super) fn delta(
        &mut self,
        candidate: u32,
        delta: CallDelta<'_>,
        out: &mut Vec<ModelEvent>,
    ) {
        let function = delta.function.unwrap_or_default();
        let arguments = json_text(function.arguments);
        let id = nonempty(delta.id.as_ref());
        let name = nonempty(function.name.as_ref());
        let silent = arguments.is_empty() && delta.extra.is_empty();
        if self.is_of_dropped(candidate, delta.index, id) {
            return;
        }
        let key = match self.find(candidate, delta.index, id, name, !arguments.is_empty()) {
            Some(key) => Some(key),
            None if id.is_none() && name.is_none() && silent => return,
            None => self.start(candidate, delta.index, id, name, out),
        };
        let Some((key, call)) = key.and_then(|key| Some((key, self.list.get_mut(key)?))) else {
            return;
        };
        let number = number_of(key);
        call.index = call.index.or(delta.index);
        let known = |name: &str| self.tools.iter().any(|tool| tool.name.starts_with(name));
        let name = name.and_then(|name| call.new_name(name, known));
        call.identify(number, id, name.as_deref(), out);
        call.keep_extra(delta.extra);
        call.add_arguments(number, arguments, out);
    }

    /// Adds a call that came as a whole, and returns whether there was room for it.
    pub(super) fn whole(
        &mut self,
        candidate: u32,
        name: &str,
        arguments: &str,
        out: &mut Vec<ModelEvent>,
    ) -> bool {
        let key = self.start(candidate, None, None, Some(name), out);
        let call = key.and_then(|key| Some((key, self.list.get_mut(key)?)));
        let Some((key, call)) = call else {
            return false;
        };
        call.add_arguments(number_of(key), Cow::Borrowed(arguments), out);
        true
    }

    /// Ends the calls of a candidate that ended well, for `reason` if it gave one.
    pub(super) fn finish(
        &mut self,
        candidate: u32,
        reason: Option<FinishReason>,
        origin: &Origin,
        out: &mut Vec<ModelEvent>,
    ) {
        let mine = |(_, call): &(usize, &mut Call)| call.candidate == candidate;
        for (key, call) in self.list.iter_mut().enumerate().filter(mine) {
            call.finish(number_of(key), reason, origin, out);
        }
    }

    /// Finds the call that a delta continues. Servers leave out or repeat each of index, id and
    /// name, so none of them alone decides.
    fn find(
        &self,
        candidate: u32,
        index: Option<u32>,
        id: Option<&str>,
        name: Option<&str>,
        has_arguments: bool,
    ) -> Option<usize> {
        let of_candidate = |call: &Call| call.candidate == candidate;
        let by_id = |id: &str| {
            self.list
                .iter()
                .rposition(|call| of_candidate(call) && call.id == id)
        };
        if index.is_some() {
            let same_index = |call: &Call| of_candidate(call) && call.index == index;
            let Some(key) = self.list.iter().rposition(same_index) else {
                // The index may come late.
                let without = |call: &Call| of_candidate(call) && call.index.is_none();
                return match id {
                    Some(id) => self.list.iter().rposition(|it| without(it) && it.id == id),
                    None if name.is_some() => None,
                    None => self.list.iter().rposition(without),
                };
            };
            let call = self.list.get(key)?;
            return match id {
                Some(id) if !call.id.is_empty() && call.id != id => by_id(id),
                None if name.is_some() && has_arguments && call.is_whole() => None,
                _ => Some(key),
            };
        }
        if let Some(id) = id {
            return by_id(id);
        }
        let last = self.list.iter().rposition(of_candidate)?;
        let unnamed = self.list.get(last)?.name.is_empty();
        (name.is_none() || unnamed).then_some(last)
    }

    /// Returns whether a delta belongs to a call beyond the bound.
    fn is_of_dropped(&self, candidate: u32, index: Option<u32>, id: Option<&str>) -> bool {
        let Some(dropped) = self.dropped.get(&candidate) else {
            return false;
        };
        let mut kept = self.list.iter().filter(|call| call.candidate == candidate);
        match (id, index) {
            (Some(id), _) => !kept.any(|call| call.id == id),
            (None, None) => true,
            (None, index) => *dropped == index || !kept.any(|call| call.index == index),
        }
    }

    /// Starts a call, unless there are as many as may be.
    fn start(
        &mut self,
        candidate: u32,
        index: Option<u32>,
        id: Option<&str>,
        name: Option<&str>,
        out: &mut Vec<ModelEvent>,
    ) -> Option<usize> {
        let key = self.list.len();
        if key >= self.calls_max {
            self.dropped.insert(candidate, index);
            return None;
        }
        let call = Call {
            candidate,
            index,
            id: id.unwrap_or_default().to_owned(),
            name: name.unwrap_or_default().to_owned(),
            ..Call::default()
        };
        out.push(ModelEvent::ToolCallStarted {
            candidate,
            call: number_of(key),
            wire_id: id.map(str::to_owned),
            name: call.name.clone(),
        });
        self.list.push(call);
        Some(key)
    }
}

impl Call {
    /// Returns the name that a piece of it leads to, if it is another one than before. A few servers send names in pieces,
    /// more repeat them: only what then begins the name of a tool is put together.
    fn new_name<'n>(&self, piece: &'n str, known: impl Fn(&str) -> bool) -> Option<Cow<'n, str>> {
        if self.name.is_empty() {
            return Some(Cow::Borrowed(piece));
        }
        if self.any_arguments || self.name == piece {
            return None;
        }
        let whole = match piece.starts_with(&self.name) {
            true => piece.to_owned(),
            false => format!("{}{piece}", self.name),
        };
        known(&whole).then_some(Cow::Owned(whole))
    }

    /// Takes an id or a name that came late. An id that is known already is never overwritten.
    fn identify(
        &mut self,
        number: u32,
        id: Option<&str>,
        name: Option<&str>,
        out: &mut Vec<ModelEvent>,
    ) {
        let wire_id = id.filter(|_| self.id.is_empty()).map(str::to_owned);
        let name = name.map(str::to_owned);
        if wire_id.is_none() && name.is_none() {
            return;
        }
        self.id = wire_id.clone().unwrap_or(std::mem::take(&mut self.id));
        self.name = name.clone().unwrap_or(std::mem::take(&mut self.name));
        out.push(ModelEvent::ToolCallNamed {
            call: number,
            wire_id,
            name,
        });
    }

    fn keep_extra(&mut self, extra: Vec<(Cow<'_, str>, &RawValue)>) {
        for (key, value) in extra {
            if value.get() == "null" {
                continue;
            }
            let value = value.get().to_owned();
            match self.extra.iter_mut().find(|(have, _)| *have == key) {
                Some((_, slot)) => *slot = value,
                None => self.extra.push((key.into_owned(), value)),
            }
        }
    }

    fn add_arguments(&mut self, number: u32, piece: Cow<'_, str>, out: &mut Vec<ModelEvent>) {
        if piece.is_empty() {
            return;
        }
        let arguments = if self.any_arguments {
            piece.into_owned()
        } else {
            self.held.push_str(&piece);
            if "null".starts_with(self.held.trim()) {
                return;
            }
            std::mem::take(&mut self.held)
        };
        self.any_arguments = true;
        if !self.scan.closed() {
            self.scan.feed(arguments.as_bytes());
        }
        out.push(ModelEvent::ToolCallDelta {
            call: number,
            arguments,
        });
    }

    fn is_whole(&self) -> bool {
        !self.name.is_empty() && self.scan.closed()
    }

    fn finish(
        &mut self,
        number: u32,
        reason: Option<FinishReason>,
        origin: &Origin,
        out: &mut Vec<ModelEvent>,
    ) {
        let cut = reason == Some(FinishReason::Length);
        let refused = reason.is_some_and(|reason| !reason.is_acceptable());
        let complete = !refused && !self.name.is_empty() && self.arguments_end(cut);
        if !self.any_arguments {
            self.hand_out_held(number, complete, out);
        }
        if complete {
            out.push(ModelEvent::ToolCallFinished {
                call: number,
                opaque: self.opaque(origin),
            });
        }
    }

    /// Returns whether the arguments are whole. A cut reply must show it by closed brackets; one
    /// that was not cut may hold broken JSON, which is for the repair to judge.
    fn arguments_end(&self, cut: bool) -> bool {
        match (self.any_arguments, cut) {
            (true, true) => self.scan.closed(),
            (true, false) => !self.scan.open(),
            (false, true) => false,
            (false, false) => matches!(self.held.trim(), "" | "null"),
        }
    }

    /// No arguments are an empty object: several servers send `""` or `null` for them.
    fn hand_out_held(&mut self, number: u32, complete: bool, out: &mut Vec<ModelEvent>) {
        let arguments = if complete {
            "{}".to_owned()
        } else {
            std::mem::take(&mut self.held)
        };
        if !arguments.is_empty() {
            out.push(ModelEvent::ToolCallDelta {
                call: number,
                arguments,
            });
        }
    }

    fn opaque(&self, origin: &Origin) -> Option<Opaque> {
        if self.extra.is_empty() {
            return None;
        }
        let field = |(key, value): &(String, String)| {
            format!("{}:{value}", serde_json::Value::from(key.as_str()))
        };
        let fields: Vec<String> = self.extra.iter().map(field).collect();
        Some(provider_data(origin, format!("{{{}}}", fields.join(","))))
    }
}
