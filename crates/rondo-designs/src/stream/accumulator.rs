//! Assembles a reply from the design's events.

use super::types::{AccumulatedToolCall, AccumulatedTurn};
use super::{FaeLlmError, FinishReason, TokenUsage};
use rondo_core::accumulator::Accumulator;
use rondo_types::{Candidate, ModelEvent, ToolCall};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// One event of a reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum LlmEvent {
    /// Text of the answer.
    TextDelta {
        /// Text to append.
        text: String,
    },
    /// Text of the reasoning.
    ThinkingDelta {
        /// Text to append.
        text: String,
    },
    /// A call begins.
    ToolCallStart {
        /// The provider's id, unique in the reply.
        call_id: String,
        /// The tool.
        function_name: String,
    },
    /// Arguments of a call.
    ToolCallArgsDelta {
        /// Which call.
        call_id: String,
        /// Part of the JSON text to append.
        args_fragment: String,
    },
    /// A call is whole.
    ToolCallEnd {
        /// Which call.
        call_id: String,
    },
    /// The token counts so far.
    Usage(TokenUsage),
    /// The reply is over.
    StreamEnd {
        /// Reason of the end.
        finish_reason: FinishReason,
    },
    /// The stream broke.
    StreamError {
        /// Description of the failure.
        error: String,
    },
}

/// Folds the events of one reply, one at a time; calls may be interleaved.
///
/// ```
/// use rondo::design::stream::{LlmEvent, StreamAccumulator};
///
/// let mut reply = StreamAccumulator::new();
/// for text in ["Hel", "lo"] {
///     reply.push(LlmEvent::TextDelta { text: text.to_owned() })?;
/// }
/// assert_eq!(reply.finish().text, "Hello");
/// # Ok::<(), rondo::design::stream::FaeLlmError>(())
/// ```
#[derive(Debug, Default)]
pub struct StreamAccumulator {
    reply: Accumulator,
    /// Our key of each call.
    calls: HashMap<String, u32>,
}

impl StreamAccumulator {
    /// Starts an empty reply.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next event; events of calls that never began are ignored.
    ///
    /// # Errors
    /// [`FaeLlmError::StreamError`] at a [`LlmEvent::StreamError`], and if the reply is larger
    /// than any provider's. What came before stays.
    pub fn push(&mut self, event: LlmEvent) -> Result<(), FaeLlmError> {
        self.fold(event).map(drop)
    }

    /// Takes the next event, and returns it in the loop's words if it is one of the reply.
    pub(super) fn fold(&mut self, event: LlmEvent) -> Result<Option<ModelEvent>, FaeLlmError> {
        let Some(event) = self.translate(event)? else {
            return Ok(None);
        };
        let pushed = self.reply.push(event.clone());
        pushed.map_err(|error| FaeLlmError::StreamError(error.to_string()))?;
        Ok(Some(event))
    }

    /// Ends the reply.
    #[must_use]
    pub fn finish(self) -> AccumulatedTurn {
        let candidate = self.reply.finish().candidates.into_iter().next();
        let candidate = candidate.unwrap_or_default();
        AccumulatedTurn {
            text: candidate.text(),
            thinking: candidate.reasoning(),
            tool_calls: whole_calls(&candidate),
            finish_reason: candidate.finish_reason.unwrap_or(FinishReason::Other),
        }
    }

    fn translate(&mut self, event: LlmEvent) -> Result<Option<ModelEvent>, FaeLlmError> {
        let candidate = 0;
        Ok(match event {
            LlmEvent::TextDelta { text } => Some(ModelEvent::TextDelta { candidate, text }),
            LlmEvent::ThinkingDelta { text } => {
                Some(ModelEvent::ReasoningDelta { candidate, text })
            }
            LlmEvent::ToolCallStart {
                call_id,
                function_name: name,
            } => {
                let next = u32::try_from(self.calls.len()).unwrap_or(u32::MAX);
                let call = *self.calls.entry(call_id.clone()).or_insert(next);
                let wire_id = Some(call_id);
                Some(ModelEvent::ToolCallStarted {
                    candidate,
                    call,
                    wire_id,
                    name,
                })
            }
            LlmEvent::ToolCallArgsDelta {
                call_id,
                args_fragment: arguments,
            } => {
                let known = self.calls.get(&call_id);
                known.map(|&call| ModelEvent::ToolCallDelta { call, arguments })
            }
            LlmEvent::ToolCallEnd { call_id } => {
                let opaque = None;
                let known = self.calls.get(&call_id);
                known.map(|&call| ModelEvent::ToolCallFinished { call, opaque })
            }
            LlmEvent::Usage(usage) => Some(ModelEvent::Usage(usage)),
            LlmEvent::StreamEnd {
                finish_reason: reason,
            } => Some(ModelEvent::Finished {
                candidate,
                reason,
                raw: reason.as_str().to_owned(),
            }),
            LlmEvent::StreamError { error } => return Err(FaeLlmError::StreamError(error)),
        })
    }
}

fn whole_calls(candidate: &Candidate) -> Vec<AccumulatedToolCall> {
    let whole = candidate.tool_calls().filter(|call| call.complete);
    whole.cloned().map(accumulated).collect()
}

fn accumulated(call: ToolCall) -> AccumulatedToolCall {
    AccumulatedToolCall {
        call_id: call.wire_id.unwrap_or_else(|| call.id.to_string()),
        function_name: call.name,
        arguments_json: call.arguments,
    }
}
