//! Assembles the events of a reply.
//!
//! Events of several candidates and calls may be interleaved. A call whose end did not arrive keeps
//! [`ToolCall::complete`]` == false` and never runs.

use rondo_types::{
    CallId, Candidate, ErrorClass, ModelError, ModelEvent, Opaque, Part, ReasoningPart, Reply,
    ResponseName, TextPart, ToolCall,
};
use std::collections::{BTreeMap, HashMap};

/// The bounds on one reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplyBounds {
    /// Text, reasoning, arguments and opaque data together, in bytes.
    pub bytes_max: usize,
    /// Text, reasoning and arguments, in bytes: lower, since several copies exist while a reply is judged,
    /// recorded and shown.
    pub text_bytes_max: usize,
    /// Candidates.
    pub candidates_max: usize,
    /// Tool calls over all candidates; further ones are left out of the reply.
    pub calls_max: usize,
    /// Parts over all candidates.
    pub parts_max: usize,
}

impl Default for ReplyBounds {
    /// Returns 16 MiB (a large image), of which 4 MiB may be text (one million tokens), 16
    /// candidates, 1,024 calls and 16,384 parts: far above what any provider sends, and small
    /// enough to keep.
    fn default() -> Self {
        Self {
            bytes_max: 16 << 20,
            text_bytes_max: 4 << 20,
            candidates_max: 16,
            calls_max: 1024,
            parts_max: 16_384,
        }
    }
}

/// Assembles a [`Reply`] from [`ModelEvent`]s.
#[derive(Debug, Default)]
pub struct Accumulator {
    bounds: ReplyBounds,
    /// Each apart: a map has room for eleven from its first on.
    candidates: BTreeMap<u32, Box<Building>>,
    /// Place of each call: its candidate and the index of its part.
    calls: HashMap<u32, (u32, usize)>,
    bytes: usize,
    text_bytes: usize,
    parts: usize,
    usage: Option<rondo_types::Usage>,
    prompt_blocked: Option<String>,
    response: ResponseName,
}

#[derive(Debug, Default)]
struct Building {
    candidate: Candidate,
    /// The kind of the last part, while more text may be appended to it.
    open: Option<TextKind>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TextKind {
    Text,
    Reasoning,
    Refusal,
}

/// The candidate that is shown as it comes.
const SHOWN_CANDIDATE: u32 = 0;

impl Accumulator {
    /// Starts an empty reply.
    #[must_use]
    pub fn new(bounds: ReplyBounds) -> Self {
        Self {
            bounds,
            ..Self::default()
        }
    }

    /// Takes the next event.
    ///
    /// Events about calls that never started are ignored.
    ///
    /// # Errors
    /// `too_large` when a bound is exceeded; the reply must then be discarded.
    pub fn push(&mut self, event: ModelEvent) -> Result<(), ModelError> {
        match event {
            ModelEvent::Queued | ModelEvent::Sent | ModelEvent::KeptAlive => Ok(()),
            ModelEvent::ResponseNamed(name) => self.name_response(name),
            ModelEvent::TextDelta { candidate, text } => {
                self.append(candidate, TextKind::Text, text)
            }
            ModelEvent::ReasoningDelta { candidate, text } => {
                self.append(candidate, TextKind::Reasoning, text)
            }
            ModelEvent::RefusalDelta { candidate, text } => {
                self.append(candidate, TextKind::Refusal, text)
            }
            ModelEvent::ToolCallStarted {
                candidate,
                call,
                wire_id,
                name,
            } => self.start_call(candidate, call, wire_id, name),
            ModelEvent::ToolCallNamed {
                call,
                wire_id,
                name,
            } => {
                self.name_call(call, wire_id, name);
                Ok(())
            }
            ModelEvent::ToolCallDelta { call, arguments } => {
                self.grow_text(arguments.len())?;
                if let Some(call) = self.call_mut(call) {
                    call.arguments.push_str(&arguments);
                }
                Ok(())
            }
            ModelEvent::ToolCallFinished { call, opaque } => self.finish_call(call, opaque),
            ModelEvent::PartClosed { candidate, opaque } => self.seal(candidate, opaque),
            ModelEvent::OpaquePart { candidate, opaque } => {
                self.grow(opaque.json.len())?;
                self.push_part(candidate, Part::Opaque(opaque), None)
            }
            ModelEvent::Usage(usage) => {
                self.usage = Some(usage);
                Ok(())
            }
            ModelEvent::Finished {
                candidate,
                reason,
                raw,
            } => {
                self.grow(raw.len())?;
                let building = self.candidate(candidate)?;
                building.candidate.finish_reason = Some(reason);
                building.candidate.raw_finish_reasons.push(raw);
                Ok(())
            }
            ModelEvent::PromptBlocked { reason } => {
                self.prompt_blocked = Some(reason);
                Ok(())
            }
        }
    }

    /// Returns the text of the first candidate so far, without ending the reply.
    #[must_use]
    pub fn text_so_far(&self) -> String {
        self.candidates
            .values()
            .next()
            .map(|it| it.candidate.text())
            .unwrap_or_default()
    }

    /// Returns the parts so far of the candidate that is streamed to listeners, without ending the reply.
    #[must_use]
    pub fn parts_so_far(&self) -> &[Part] {
        let shown = self.candidates.get(&SHOWN_CANDIDATE);
        shown.map_or(&[], |it| &it.candidate.parts)
    }

    /// Ends the reply.
    #[must_use]
    pub fn finish(self) -> Reply {
        Reply {
            candidates: self
                .candidates
                .into_values()
                .map(|it| compact(it.candidate))
                .collect(),
            usage: self.usage,
            prompt_blocked: self.prompt_blocked,
            response: self.response,
        }
    }

    fn name_response(&mut self, name: ResponseName) -> Result<(), ModelError> {
        let told = [&name.id, &name.model].into_iter().flatten();
        self.grow(told.map(String::len).sum())?;
        self.response.learn(name);
        Ok(())
    }

    fn append(&mut self, candidate: u32, kind: TextKind, text: String) -> Result<(), ModelError> {
        self.grow_text(text.len())?;
        let building = self.candidate(candidate)?;
        if building.open == Some(kind)
            && let Some(
                Part::Text(TextPart { text: have, .. })
                | Part::Refusal(TextPart { text: have, .. })
                | Part::Reasoning(ReasoningPart { text: have, .. }),
            ) = building.candidate.parts.last_mut()
        {
            have.push_str(&text);
            return Ok(());
        }
        let part = match kind {
            TextKind::Text => Part::Text(TextPart { text, opaque: None }),
            TextKind::Reasoning => Part::Reasoning(ReasoningPart { text, opaque: None }),
            TextKind::Refusal => Part::Refusal(TextPart { text, opaque: None }),
        };
        self.push_part(candidate, part, Some(kind))
    }

    fn start_call(
        &mut self,
        candidate: u32,
        call: u32,
        wire_id: Option<String>,
        name: String,
    ) -> Result<(), ModelError> {
        if self.calls.contains_key(&call) {
            return Ok(());
        }
        // Far fewer are run, and those come first: the rest is not worth the reply.
        if self.calls.len() >= self.bounds.calls_max {
            return Ok(());
        }
        self.grow(name.len() + wire_id.as_ref().map_or(0, String::len))?;
        let wire_id = wire_id.filter(|id| self.is_new_wire_id(id));
        let index = self.candidate(candidate)?.candidate.parts.len();
        let part = Part::ToolCall(ToolCall {
            id: CallId::generated(0, 0, call),
            wire_id,
            name,
            arguments: String::new(),
            complete: false,
            opaque: None,
        });
        self.push_part(candidate, part, None)?;
        self.calls.insert(call, (candidate, index));
        Ok(())
    }

    fn name_call(&mut self, call: u32, wire_id: Option<String>, name: Option<String>) {
        let wire_id = wire_id.filter(|id| self.is_new_wire_id(id));
        let Some(call) = self.call_mut(call) else {
            return;
        };
        if wire_id.is_some() {
            call.wire_id = wire_id;
        }
        if let Some(name) = name {
            call.name = name;
        }
    }

    fn finish_call(&mut self, call: u32, opaque: Option<Opaque>) -> Result<(), ModelError> {
        self.grow(opaque.as_ref().map_or(0, |it| it.json.len()))?;
        if let Some(call) = self.call_mut(call) {
            call.complete = true;
            call.opaque = opaque;
        }
        Ok(())
    }

    fn seal(&mut self, candidate: u32, sealed: Opaque) -> Result<(), ModelError> {
        self.grow(sealed.json.len())?;
        let building = self.candidate(candidate)?;
        if building.open.take().is_some()
            && let Some(
                Part::Text(TextPart { opaque, .. })
                | Part::Refusal(TextPart { opaque, .. })
                | Part::Reasoning(ReasoningPart { opaque, .. }),
            ) = building.candidate.parts.last_mut()
        {
            *opaque = Some(sealed);
            return Ok(());
        }
        let part = Part::Text(TextPart {
            text: String::new(),
            opaque: Some(sealed),
        });
        self.push_part(candidate, part, None)
    }

    fn push_part(
        &mut self,
        candidate: u32,
        part: Part,
        open: Option<TextKind>,
    ) -> Result<(), ModelError> {
        if self.parts >= self.bounds.parts_max {
            return Err(too_large("parts", self.bounds.parts_max));
        }
        self.parts += 1;
        let building = self.candidate(candidate)?;
        building.candidate.parts.push(part);
        building.open = open;
        Ok(())
    }

    fn candidate(&mut self, candidate: u32) -> Result<&mut Building, ModelError> {
        if !self.candidates.contains_key(&candidate)
            && self.candidates.len() >= self.bounds.candidates_max
        {
            return Err(too_large("candidates", self.bounds.candidates_max));
        }
        Ok(self.candidates.entry(candidate).or_default())
    }

    fn call_mut(&mut self, call: u32) -> Option<&mut ToolCall> {
        let (candidate, index) = self.calls.get(&call)?;
        match self
            .candidates
            .get_mut(candidate)?
            .candidate
            .parts
            .get_mut(*index)?
        {
            Part::ToolCall(call) => Some(call),
            _ => None,
        }
    }

    /// Two calls with one id cannot both be answered by it; the second goes by ours.
    fn is_new_wire_id(&self, wire_id: &str) -> bool {
        !wire_id.is_empty()
            && !self.candidates.values().any(|building| {
                building
                    .candidate
                    .tool_calls()
                    .any(|call| call.wire_id.as_deref() == Some(wire_id))
            })
    }

    fn grow_text(&mut self, bytes: usize) -> Result<(), ModelError> {
        self.text_bytes = self.text_bytes.saturating_add(bytes);
        if self.text_bytes > self.bounds.text_bytes_max {
            return Err(too_large("bytes of text", self.bounds.text_bytes_max));
        }
        self.grow(bytes)
    }

    fn grow(&mut self, bytes: usize) -> Result<(), ModelError> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > self.bounds.bytes_max {
            return Err(too_large("bytes", self.bounds.bytes_max));
        }
        Ok(())
    }
}

fn too_large(what: &str, max: usize) -> ModelError {
    ModelError::new(
        ErrorClass::TooLarge,
        format!("the reply has more than {max} {what}"),
    )
}

/// Frees spare capacity, since the parts are kept for the length of the session.
fn compact(mut candidate: Candidate) -> Candidate {
    candidate.parts.shrink_to_fit();
    candidate
}

#[cfg(test)]
mod tests;
