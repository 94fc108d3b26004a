//! Decodes chunks, and whole replies, into events.

use super::calls::Calls;
use super::chunk::{CallDelta, Choice, Chunk, Content, Delta, Pieces, ReasoningDetail, WireUsage};
use super::details::Details;
use super::lenient::{HeldText, find_call};
use crate::body::{PayloadDecoder, damaged, finished, provider_data, state_of, unreadable};
use crate::errors;
use crate::json::{Count, Text, nonempty};
use crate::naming::Naming;
use crate::{Bounds, Target};
use rondo_types::{FinishReason, ModelError, ModelEvent, Origin, ToolSpec, Usage};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Reads chunks, and whole replies, which have the same shape but for one name.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ChatPayloadDecoder {
    origin: Origin,
    candidates_max: usize,
    /// Each apart: a map has room for eleven from its first on.
    candidates: BTreeMap<u32, Box<CandidateState>>,
    calls: Calls,
    usage: Option<Usage>,
    naming: Naming,
    any: bool,
    /// The tools to look for in text, if the quirk is on.
    tools: Option<Arc<Vec<ToolSpec>>>,
    /// Set if the request offered tools. Without them, some servers still say `tool_calls`.
    offered: bool,
}

#[derive(Debug, Clone, Default, PartialEq)]
struct CandidateState {
    finish: Option<FinishReason>,
    /// Set if it has text, reasoning, a refusal or a call.
    has_content: bool,
    details: Details,
    text: HeldText,
}

impl ChatPayloadDecoder {
    pub(crate) fn new(target: &Target, bounds: Bounds) -> Self {
        Self {
            origin: target.origin.clone(),
            candidates_max: bounds.candidates_max,
            candidates: BTreeMap::new(),
            calls: Calls::new(bounds.open_calls_max, Arc::clone(&target.tools)),
            usage: None,
            naming: Naming::default(),
            any: false,
            tools: target
                .quirks
                .lenient_tool_calls
                .then(|| Arc::clone(&target.tools)),
            offered: !target.tools.is_empty(),
        }
    }

    fn choice(
        &mut self,
        position: usize,
        choice: Choice<'_>,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let position = u32::try_from(position).unwrap_or(u32::MAX);
        let candidate = choice.index.and_then(Count::index).unwrap_or(position);
        let has_content = self.candidate(candidate)?.has_content;
        let delta = match (choice.delta, choice.message) {
            // Perplexity sends both: whole replies have an empty delta, chunks the message so far.
            (Some(delta), Some(message)) if delta.is_empty() && !has_content => {
                Some(numbered(*message))
            }
            (None, Some(message)) => Some(numbered(*message)),
            (delta, _) => delta,
        };
        if let Some(delta) = delta {
            self.candidate(candidate)?.has_content |= !delta.is_empty();
            self.delta(candidate, delta, out)?;
        }
        if let Some(raw) = nonempty(choice.finish_reason.as_ref()) {
            let reason = finish_reason(raw);
            let state = self.candidate(candidate)?;
            finished(&mut state.finish, candidate, reason, raw, out);
        }
        self.report_usage(choice.usage, out);
        Ok(())
    }

    fn delta(
        &mut self,
        candidate: u32,
        delta: Delta<'_>,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        self.reasoning(candidate, &delta, out)?;
        if let Some(content) = &delta.content {
            self.content(candidate, content, out)?;
        }
        if let Some(text) = nonempty(delta.refusal.as_ref()) {
            let text = text.to_owned();
            out.push(ModelEvent::RefusalDelta { candidate, text });
        }
        let calls = delta.tool_calls.unwrap_or_default();
        let old_form = delta.function_call.filter(|_| calls.is_empty());
        let legacy = old_form.map(|function| CallDelta {
            index: Some(0),
            function: Some(*function),
            ..CallDelta::default()
        });
        for call in calls.into_iter().chain(legacy) {
            self.release_text(candidate, out)?;
            self.calls.delta(candidate, call, out);
        }
        Ok(())
    }

    /// Several servers repeat one text in two fields, so only the first that has any counts.
    fn reasoning(
        &mut self,
        candidate: u32,
        delta: &Delta<'_>,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let details = delta.reasoning_details.as_deref().unwrap_or_default();
        let text = nonempty(delta.reasoning_content.as_ref())
            .or_else(|| nonempty(delta.reasoning.as_ref()))
            .map_or_else(|| text_of_details(details), str::to_owned);
        push_reasoning(candidate, text, out);
        if !details.is_empty() {
            let kept = &mut self.candidate(candidate)?.details;
            details.iter().for_each(|detail| kept.push(detail.get()));
        }
        Ok(())
    }

    fn content(
        &mut self,
        candidate: u32,
        content: &Content<'_>,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        match &content.pieces {
            Pieces::None => Ok(()),
            Pieces::Text(text) => self.text(candidate, text, out),
            Pieces::List(pieces) => {
                for piece in pieces {
                    if let Some(thinking) = &piece.thinking {
                        push_reasoning(candidate, text_of(thinking), out);
                    }
                    if let Some(Text(text)) = &piece.text {
                        self.text(candidate, text, out)?;
                    }
                }
                Ok(())
            }
        }
    }

    fn text(
        &mut self,
        candidate: u32,
        text: &str,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let text = if self.tools.is_some() {
            self.candidate(candidate)?.text.push(text)
        } else {
            text.to_owned()
        };
        push_text(candidate, text, out);
        Ok(())
    }

    fn release_text(
        &mut self,
        candidate: u32,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        if self.tools.is_some() {
            let text = self.candidate(candidate)?.text.release();
            push_text(candidate, text, out);
        }
        Ok(())
    }

    fn report_usage(&mut self, usage: Option<Box<WireUsage>>, out: &mut Vec<ModelEvent>) {
        let Some(usage) = usage.filter(|usage| usage.reported() != Usage::default()) else {
            return;
        };
        self.usage = Some(usage.reported());
        out.push(ModelEvent::Usage(usage.ours()));
    }

    fn candidate(&mut self, candidate: u32) -> Result<&mut CandidateState, ModelError> {
        let states = &mut self.candidates;
        let state = state_of(states, candidate, self.candidates_max, "candidates")?;
        Ok(state)
    }

    /// Hands out held text: as a call, if it is one and no native call came, else as text.
    fn settle_text(
        &mut self,
        candidate: u32,
        state: &mut CandidateState,
        out: &mut Vec<ModelEvent>,
    ) {
        let held = state.text.release();
        let usable = state.finish.is_none_or(FinishReason::is_acceptable);
        let call = self
            .tools
            .as_ref()
            .filter(|_| usable && !self.calls.any_of(candidate))
            .and_then(|tools| find_call(&held, tools));
        let taken =
            call.is_some_and(|call| self.calls.whole(candidate, &call.name, call.arguments, out));
        if !taken {
            push_text(candidate, held, out);
        }
    }
}

impl PayloadDecoder for ChatPayloadDecoder {
    fn read_object(
        &mut self,
        event: &str,
        json: &str,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let chunk: Chunk<'_> =
            serde_json::from_str(json).map_err(|error| unreadable(self, event, json, &error))?;
        self.any |= chunk.choices.is_some();
        if chunk.choices.is_some() {
            self.naming
                .take(chunk.id.as_ref(), chunk.model.as_ref(), out);
        }
        for (position, choice) in chunk.choices.into_iter().flatten().enumerate() {
            self.choice(position, choice, out)?;
        }
        let groq_error = chunk.x_groq.and_then(|it| {
            self.report_usage(it.usage, out);
            it.error.filter(|error| !error.is_empty())
        });
        self.report_usage(chunk.usage, out);
        let failed = chunk.error.is_some_and(says_something)
            || event == "error"
            || nonempty(chunk.object.as_ref()) == Some("error");
        if failed {
            return Err(errors::of_text(json));
        }
        groq_error.map_or(Ok(()), |error| Err(errors::of_text(&error)))
    }

    fn has_read_any(&self) -> bool {
        self.any
    }

    fn may_end(&self) -> bool {
        !self.candidates.is_empty() && self.candidates.values().all(|it| it.finish.is_some())
    }

    fn complete(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        let mut announced = false;
        for (candidate, mut state) in std::mem::take(&mut self.candidates) {
            self.settle_text(candidate, &mut state, out);
            announced |= state.finish == Some(FinishReason::ToolCalls);
            self.calls
                .finish(candidate, state.finish, &self.origin, out);
            let details = state.details.finish();
            if !details.is_empty() {
                let json = format!("{{\"reasoning_details\":[{}]}}", details.join(","));
                let opaque = provider_data(&self.origin, json);
                out.push(ModelEvent::OpaquePart { candidate, opaque });
            }
        }
        if announced && self.offered && self.calls.is_empty() {
            return Err(damaged("it ends with a tool call, and none came"));
        }
        Ok(())
    }

    fn reported_usage(&self) -> Option<Usage> {
        self.usage
    }
}

/// The calls of a whole message are told apart by their places: ids may be repeated or missing.
fn numbered(mut message: Delta<'_>) -> Delta<'_> {
    let calls = message.tool_calls.iter_mut().flatten();
    for (place, call) in (0_u32..).zip(calls) {
        call.index = Some(place);
    }
    message
}

fn push_text(candidate: u32, text: String, out: &mut Vec<ModelEvent>) {
    if !text.is_empty() {
        out.push(ModelEvent::TextDelta { candidate, text });
    }
}

fn push_reasoning(candidate: u32, text: String, out: &mut Vec<ModelEvent>) {
    if !text.is_empty() {
        out.push(ModelEvent::ReasoningDelta { candidate, text });
    }
}

fn text_of_details(details: &[&RawValue]) -> String {
    let text = |detail: &&RawValue| -> Option<String> {
        let detail: ReasoningDetail<'_> = serde_json::from_str(detail.get()).ok()?;
        detail.text.or(detail.summary).map(|it| it.0.into_owned())
    };
    details.iter().filter_map(text).collect()
}

fn text_of(content: &Content<'_>) -> String {
    match &content.pieces {
        Pieces::None => String::new(),
        Pieces::Text(text) => text.to_string(),
        Pieces::List(pieces) => pieces
            .iter()
            .filter_map(|piece| piece.text.as_ref())
            .map(|text| text.0.as_ref())
            .collect(),
    }
}

fn says_something(error: &RawValue) -> bool {
    !matches!(error.get(), "{}" | "\"\"" | "false")
}

/// OpenAI's reasons, and Mistral's `model_length` and `error`.
fn finish_reason(raw: &str) -> FinishReason {
    match raw {
        "stop" => FinishReason::Stop,
        "length" | "model_length" => FinishReason::Length,
        "tool_calls" | "function_call" => FinishReason::ToolCalls,
        "content_filter" => FinishReason::ContentFilter,
        "error" => FinishReason::Error,
        "refusal" => FinishReason::Refusal,
        _ => FinishReason::Other,
    }
}
