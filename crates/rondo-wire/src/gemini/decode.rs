//! Decodes `GenerateContentResponse`s into events.

use super::chunk::{
    Chunk, PartialCall, UsageMetadata, WireCall, WireCandidate, WirePart, read_part,
};
use super::errors;
use super::partial::{OpenCall, may_be_whole};
use crate::body::{PayloadDecoder, finished, incomplete, provider_data, state_of, unreadable};
use crate::json::{Count, nonempty};
use crate::naming::Naming;
use crate::{Bounds, Target};
use rondo_types::{FinishReason, ModelError, ModelEvent, Origin, Usage};
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// Seals a part that carries nothing, so that a signed part behind it stays its own.
const EMPTY_SEAL: &str = "{}";

/// The provider's `finishMessage` for a reply with calls.
const CALLS_MADE: &str = "generated function call";

/// Reads `GenerateContentResponse`s.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct GeminiPayloadDecoder {
    origin: Origin,
    bounds: Bounds,
    candidates: BTreeMap<u32, CandidateState>,
    calls: u32,
    usage: Option<Usage>,
    naming: Naming,
    blocked: bool,
    any: bool,
}

#[derive(Debug, Clone, Default, PartialEq)]
struct CandidateState {
    finish: Option<FinishReason>,
    /// Set if the latest part is text or a thought that more may be appended to.
    open: bool,
    /// The call whose pieces come.
    open_call: Option<OpenCall>,
    /// Calls that are whole, with the parts to return.
    calls: Vec<(u32, Option<String>)>,
    called: bool,
    /// Set if the provider's finish message said that the model made calls.
    announced: bool,
    /// Set if a part came of work on the provider's side, after which a reply may continue although
    /// it gave its reason.
    worked: bool,
}

impl GeminiPayloadDecoder {
    pub(crate) fn new(target: &Target, bounds: Bounds) -> Self {
        Self {
            origin: target.origin.clone(),
            bounds,
            candidates: BTreeMap::new(),
            calls: 0,
            usage: None,
            naming: Naming::default(),
            blocked: false,
            any: false,
        }
    }

    fn take_candidate(
        &mut self,
        position: usize,
        wire: WireCandidate<'_>,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let position = u32::try_from(position).unwrap_or(u32::MAX);
        let candidate = wire.index.and_then(Count::index).unwrap_or(position);
        self.candidate(candidate)?;
        let parts = wire.content.and_then(|content| content.parts);
        for part in parts.into_iter().flatten() {
            self.part(candidate, part, out)?;
        }
        if let Some(raw) = nonempty(wire.finish_reason.as_ref()) {
            let reason = finish_reason(raw);
            let state = self.candidate(candidate)?;
            finished(&mut state.finish, candidate, reason, raw, out);
        }
        let message = nonempty(wire.finish_message.as_ref()).unwrap_or_default();
        self.candidate(candidate)?.announced |= message.contains(CALLS_MADE);
        Ok(())
    }

    fn part(
        &mut self,
        candidate: u32,
        raw: &RawValue,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        match read_part(raw) {
            WirePart::Text {
                text,
                thought,
                opaque,
            } => self.text(candidate, text.0.into_owned(), thought, opaque, out),
            WirePart::Call { call, is_opaque } => {
                let opaque = is_opaque.then(|| raw.get().to_owned());
                self.call(candidate, &call, opaque, out)
            }
            WirePart::PartialCall(call) => self.piece(candidate, &call, out),
            WirePart::Other => {
                let state = self.candidate(candidate)?;
                (state.open, state.worked) = (false, true);
                let opaque = provider_data(&self.origin, raw.get().to_owned());
                out.push(ModelEvent::OpaquePart { candidate, opaque });
                Ok(())
            }
        }
    }

    fn text(
        &mut self,
        candidate: u32,
        text: String,
        thought: bool,
        opaque: Option<String>,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let sealed = opaque.map(|fields| seal_of(&fields, thought && text.is_empty()));
        let was_open = self.candidate(candidate)?.open;
        if sealed.is_some() && was_open {
            let opaque = provider_data(&self.origin, EMPTY_SEAL.to_owned());
            out.push(ModelEvent::PartClosed { candidate, opaque });
        }
        let open = !text.is_empty() || was_open;
        if !text.is_empty() {
            out.push(if thought {
                ModelEvent::ReasoningDelta { candidate, text }
            } else {
                ModelEvent::TextDelta { candidate, text }
            });
        }
        self.candidate(candidate)?.open = open && sealed.is_none();
        if let Some(json) = sealed {
            let opaque = provider_data(&self.origin, json);
            out.push(ModelEvent::PartClosed { candidate, opaque });
        }
        Ok(())
    }

    fn call(
        &mut self,
        candidate: u32,
        call: &WireCall<'_>,
        opaque: Option<String>,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        if let Some(open) = self.candidate(candidate)?.open_call.take() {
            self.assembled(candidate, open, false, out)?;
        }
        let id = nonempty(call.id.as_ref()).map(str::to_owned);
        let name = call.name.0.clone().into_owned();
        let Some(number) = self.start(candidate, id, name, out)? else {
            return Ok(());
        };
        out.push(ModelEvent::ToolCallDelta {
            call: number,
            arguments: call.args.map_or("{}", RawValue::get).to_owned(),
        });
        self.candidate(candidate)?.calls.push((number, opaque));
        Ok(())
    }

    /// Takes a piece of a call. One that names no call and continues none is dropped.
    fn piece(
        &mut self,
        candidate: u32,
        piece: &PartialCall<'_>,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let open = self.candidate(candidate)?.open_call.take();
        let mut open = match open {
            Some(open) if open.is_continued_by(piece) => open,
            other => {
                if let Some(open) = other {
                    self.assembled(candidate, open, false, out)?;
                }
                let Some(name) = piece.name() else {
                    return Ok(());
                };
                let id = piece.id().map(str::to_owned);
                let number = self.start(candidate, id, name.to_owned(), out)?;
                OpenCall::new(number, piece, self.bounds.event_bytes_max)
            }
        };
        open.take(piece);
        if !piece.will_continue {
            return self.assembled(candidate, open, true, out);
        }
        // A silence would look like a provider that stopped.
        out.extend(open.number.map(|call| ModelEvent::ToolCallDelta {
            call,
            arguments: String::new(),
        }));
        self.candidate(candidate)?.open_call = Some(open);
        Ok(())
    }

    /// Ends a call that came in pieces.
    fn assembled(
        &mut self,
        candidate: u32,
        open: OpenCall,
        is_closed: bool,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        if let Some(it) = open.assembled(is_closed) {
            out.push(ModelEvent::ToolCallDelta {
                call: it.number,
                arguments: it.arguments,
            });
            self.candidate(candidate)?.calls.push((it.number, it.part));
        }
        Ok(())
    }

    /// Starts a call, unless there are as many as may be.
    fn start(
        &mut self,
        candidate: u32,
        wire_id: Option<String>,
        name: String,
        out: &mut Vec<ModelEvent>,
    ) -> Result<Option<u32>, ModelError> {
        let call = self.calls;
        let max = self.bounds.open_calls_max;
        let state = self.candidate(candidate)?;
        (state.open, state.called) = (false, true);
        if usize::try_from(call).unwrap_or(usize::MAX) >= max {
            return Ok(None);
        }
        self.calls = self.calls.saturating_add(1);
        out.push(ModelEvent::ToolCallStarted {
            candidate,
            call,
            wire_id,
            name,
        });
        Ok(Some(call))
    }

    fn candidate(&mut self, candidate: u32) -> Result<&mut CandidateState, ModelError> {
        let max = self.bounds.candidates_max;
        state_of(&mut self.candidates, candidate, max, "candidates")
    }

    fn report_usage(&mut self, usage: Option<UsageMetadata>, out: &mut Vec<ModelEvent>) {
        // Vertex sends chunks with nothing but a kind of traffic.
        if let Some(usage) = usage.filter(|usage| usage.reported() != Usage::default()) {
            self.usage = Some(usage.reported());
            out.push(ModelEvent::Usage(usage.ours()));
        }
    }
}

impl PayloadDecoder for GeminiPayloadDecoder {
    fn read_object(
        &mut self,
        event: &str,
        json: &str,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let chunk: Chunk<'_> =
            serde_json::from_str(json).map_err(|error| unreadable(self, event, json, &error))?;
        self.any |= chunk.candidates.is_some()
            || chunk.prompt_feedback.is_some()
            || chunk.usage_metadata.is_some();
        let (id, model) = (chunk.response_id.as_ref(), chunk.model_version.as_ref());
        self.naming.take(id, model, out);
        for (position, candidate) in chunk.candidates.into_iter().flatten().enumerate() {
            self.take_candidate(position, candidate, out)?;
        }
        let reason = chunk.prompt_feedback.and_then(|it| it.block_reason);
        if let Some(reason) = nonempty(reason.as_ref()).filter(|_| !self.blocked) {
            self.blocked = true;
            out.push(ModelEvent::PromptBlocked {
                reason: reason.to_owned(),
            });
        }
        self.report_usage(chunk.usage_metadata, out);
        if chunk.error.is_some() || event == "error" {
            return Err(errors::of_text(json));
        }
        Ok(())
    }

    fn read_failure(&self, text: &str) -> ModelError {
        errors::of_text(text)
    }

    fn has_read_any(&self) -> bool {
        self.any
    }

    /// Gemini names a reason in every reply that is whole, or says why the prompt was blocked.
    fn document_may_end(&self) -> bool {
        self.may_end()
    }

    fn may_end(&self) -> bool {
        let all_finished = self.candidates.values().all(|it| it.finish.is_some());
        self.blocked || (!self.candidates.is_empty() && all_finished)
    }

    fn is_whole(&self) -> bool {
        self.may_end() && !self.candidates.values().any(|it| it.worked)
    }

    /// The provider names a reason in each whole reply, so one without is malformed, like one that is no JSON.
    fn unfinished(&self, how: &str) -> ModelError {
        incomplete(&format!("it ended early: {how}"))
    }

    fn complete(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        let mut lost = false;
        let unclosed = |(candidate, state): (&u32, &mut CandidateState)| {
            let open = state.open_call.take()?;
            may_be_whole(state.finish).then_some((*candidate, open))
        };
        let unclosed: Vec<_> = self.candidates.iter_mut().filter_map(unclosed).collect();
        for (candidate, open) in unclosed {
            self.assembled(candidate, open, false, out)?;
        }
        for state in std::mem::take(&mut self.candidates).into_values() {
            if state.finish.is_some_and(|reason| !reason.is_acceptable()) {
                continue;
            }
            lost |= state.announced && !state.called;
            for (call, part) in state.calls {
                let opaque = part.map(|json| provider_data(&self.origin, json));
                out.push(ModelEvent::ToolCallFinished { call, opaque });
            }
        }
        if lost {
            return Err(incomplete("it ends with a tool call, and none came"));
        }
        Ok(())
    }

    fn reported_usage(&self) -> Option<Usage> {
        self.usage
    }
}

/// Returns the seal of a part. An empty thought must say that it is one: without text there is no
/// part that shows it.
fn seal_of(fields: &str, empty_thought: bool) -> String {
    if empty_thought {
        format!("{{\"thought\":true,{fields}}}")
    } else {
        format!("{{{fields}}}")
    }
}

/// `finishReason`, https://ai.google.dev/api/generate-content#FinishReason. A reply with calls ends
/// with `STOP`.
fn finish_reason(raw: &str) -> FinishReason {
    match raw {
        "STOP" => FinishReason::Stop,
        "MAX_TOKENS" => FinishReason::Length,
        "SAFETY"
        | "RECITATION"
        | "LANGUAGE"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION"
        | "MODEL_ARMOR" => FinishReason::ContentFilter,
        "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" | "MALFORMED_RESPONSE" => {
            FinishReason::MalformedCall
        }
        "TOO_MANY_TOOL_CALLS" | "MISSING_THOUGHT_SIGNATURE" => FinishReason::Error,
        _ => FinishReason::Other,
    }
}
