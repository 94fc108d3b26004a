//! Reads calls out of the text that the dialect below decodes.

use super::call::TakenCall;
use super::text::AnswerText;
use super::written::SourceText;
use crate::latch::{LatchedReader, Reader};
use crate::{Bounds, Decoder, Target};
use rondo_types::{ErrorClass, FinishReason, ModelError, ModelEvent, Opaque, Origin, Usage};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The keys of calls that are text, apart from those that the dialect below may use.
const KEYS_FROM: u32 = 1 << 31;
/// Bytes that are read behind a call before the rest of the reply is skipped: enough to
/// count the next call, and little of an invented conversation.
const AFTER_BYTES_MAX: usize = 16 << 10;
/// The provider's word for an end that is ours.
const CUT: &str = "cut after the first call";

/// Reads calls from the text that another decoder reads.
///
/// A call begins when its arguments are whole and ends when the reply does. Until then each piece
/// of text that shows nothing gives an empty delta of the call, since a silence would look like a
/// provider that stopped; deltas before a call's beginning are ignored.
pub(crate) type ReactDecoder<D> = LatchedReader<ReactReader<D>>;

/// Reads calls from the text that another decoder reads.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ReactReader<D> {
    base: D,
    /// Events of the dialect below; empty between calls, and kept for its space.
    below: Vec<ModelEvent>,
    candidates: BTreeMap<u32, CandidateText>,
    origin: Origin,
    tools: Arc<[String]>,
    held_bytes_max: usize,
}

#[derive(Debug, Clone, PartialEq)]
struct CandidateText {
    answer: AnswerText,
    finish: Option<FinishReason>,
    begun: bool,
}

impl<D: Decoder> ReactDecoder<D> {
    pub(crate) fn new(base: D, target: &Target, bounds: Bounds) -> Self {
        Self::over(ReactReader {
            base,
            below: Vec::new(),
            candidates: BTreeMap::new(),
            origin: target.origin.clone(),
            tools: target.tools.iter().map(|it| it.name.clone()).collect(),
            held_bytes_max: bounds.event_bytes_max,
        })
    }
}

impl<D: Decoder> ReactReader<D> {
    fn candidate(&mut self, candidate: u32) -> &mut CandidateText {
        let tools = &self.tools;
        self.candidates
            .entry(candidate)
            .or_insert_with(|| CandidateText {
                answer: AnswerText::new(Arc::clone(tools)),
                finish: None,
                begun: false,
            })
    }

    fn translate(
        &mut self,
        events: &mut Vec<ModelEvent>,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        for event in events.drain(..) {
            if self.is_cut() {
                break;
            }
            match event {
                ModelEvent::TextDelta { candidate, text } => self.text(candidate, &text, out)?,
                ModelEvent::Finished {
                    candidate, reason, ..
                } => {
                    self.candidate(candidate).finish = Some(reason);
                    out.push(event);
                }
                event => out.push(event),
            }
        }
        Ok(())
    }

    fn text(
        &mut self,
        candidate: u32,
        text: &str,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let max = self.held_bytes_max;
        let state = self.candidate(candidate);
        let mut shown = String::new();
        state.answer.push(text, &mut shown);
        if state.answer.held_bytes() > max {
            return Err(ModelError::new(
                ErrorClass::TooLarge,
                format!("a tool call has more than {max} bytes"),
            ));
        }
        if shown.is_empty() {
            out.push(ModelEvent::ToolCallDelta {
                call: key(candidate),
                arguments: String::new(),
            });
        } else {
            out.push(ModelEvent::TextDelta {
                candidate,
                text: shown,
            });
        }
        state.begin(candidate, out);
        Ok(())
    }

    fn end_by(
        &mut self,
        end: impl FnOnce(&mut D, &mut Vec<ModelEvent>) -> Result<(), ModelError>,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        if !self.is_cut() {
            let mut events = Vec::new();
            let ended = end(&mut self.base, &mut events);
            self.translate(&mut events, out)?;
            ended?;
        }
        for (candidate, state) in &mut self.candidates {
            state.end(*candidate, &self.origin, out);
        }
        Ok(())
    }

    /// `true` if every candidate has its call and continues for too long.
    fn is_cut(&self) -> bool {
        let long = |it: &CandidateText| it.answer.dropped_bytes() > AFTER_BYTES_MAX;
        !self.candidates.is_empty() && self.candidates.values().all(long)
    }
}

impl<D: Decoder> Reader for ReactReader<D> {
    fn read(&mut self, bytes: &[u8], out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        let mut events = std::mem::take(&mut self.below);
        let read = self.base.push(bytes, &mut events);
        let result = self.translate(&mut events, out).and(read);
        self.below = events;
        // Text after the cut is not looked at, so it cannot fail either.
        if self.is_cut() { Ok(()) } else { result }
    }

    fn end(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        self.end_by(D::finish, out)
    }

    fn is_whole(&self) -> bool {
        self.base.is_whole()
    }

    fn conclude(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        self.end_by(D::conclude, out)
    }

    fn ended(&self) -> bool {
        self.base.ended() || self.is_cut()
    }

    fn reported_usage(&self) -> Option<Usage> {
        self.base.reported_usage()
    }
}

impl CandidateText {
    fn begin(&mut self, candidate: u32, out: &mut Vec<ModelEvent>) {
        let Some(TakenCall {
            name, arguments, ..
        }) = self.answer.call()
        else {
            return;
        };
        if std::mem::replace(&mut self.begun, true) {
            return;
        }
        let call = key(candidate);
        out.push(ModelEvent::ToolCallStarted {
            candidate,
            call,
            wire_id: None,
            name: name.clone(),
        });
        out.push(ModelEvent::ToolCallDelta {
            call,
            arguments: arguments.clone(),
        });
    }

    fn end(&mut self, candidate: u32, origin: &Origin, out: &mut Vec<ModelEvent>) {
        let mut shown = String::new();
        let cut = self.finish == Some(FinishReason::Length);
        self.answer.finish(cut, &mut shown);
        if !shown.is_empty() {
            out.push(ModelEvent::TextDelta {
                candidate,
                text: shown,
            });
        }
        self.begin(candidate, out);
        if let Some(call) = self.answer.call().filter(|call| call.complete) {
            let written = SourceText {
                text: call.written.clone(),
                ignored_calls: self.answer.ignored_calls(),
            };
            out.push(ModelEvent::ToolCallFinished {
                call: key(candidate),
                opaque: Some(Opaque {
                    origin: origin.clone(),
                    json: written.to_json(),
                }),
            });
        }
        if self.finish.is_none() {
            out.push(ModelEvent::Finished {
                candidate,
                reason: FinishReason::Stop,
                raw: CUT.to_owned(),
            });
        }
    }
}

fn key(candidate: u32) -> u32 {
    KEYS_FROM.saturating_add(candidate)
}
