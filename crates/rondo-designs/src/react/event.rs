//! The events of an agent.

use crate::run::text_of;
use rondo_types::{EventBody, StopReason};
use rondo_wire::output_text;
use serde::{Deserialize, Serialize};

/// Event of an agent's run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentEvent {
    /// Text of the model before a call.
    Thought(String),
    /// The model calls a tool.
    ToolCall {
        /// The tool.
        name: String,
        /// Its arguments: JSON, or what the model wrote instead.
        args: String,
    },
    /// Result of a call for the model: its output, or the reason of its absence.
    ToolOutput(String),
    /// The run ended without an answer; what was found until then is part of the text. The last
    /// event.
    Error(String),
    /// The answer, or the generic sentence at the limit. The last event.
    FinalResponse(String),
}

/// Reads the design's events out of a turn's.
#[derive(Debug, Default)]
pub struct EventReader {
    /// The text of the step so far.
    said: String,
}

impl EventReader {
    /// Returns the meaning of an event of the turn, in order. The last event of a run is sent by
    /// [`last`](Self::last).
    pub fn read(&mut self, event: EventBody) -> Vec<AgentEvent> {
        match event {
            EventBody::StepStarted { .. } => self.said.clear(),
            EventBody::TextDelta { text } => self.said.push_str(&text),
            EventBody::ToolCallPending {
                name, arguments, ..
            } => {
                let thought = std::mem::take(&mut self.said).trim().to_owned();
                let thought = Some(thought).filter(|thought| !thought.is_empty());
                let args = text_of(arguments);
                let call = AgentEvent::ToolCall { name, args };
                return thought
                    .map(AgentEvent::Thought)
                    .into_iter()
                    .chain([call])
                    .collect();
            }
            EventBody::ToolCallFinished { result, .. } => {
                return vec![AgentEvent::ToolOutput(output_text(&result))];
            }
            _ => {}
        }
        Vec::new()
    }

    /// Returns the last event of a run that ended so.
    #[must_use]
    pub fn last(stop_reason: StopReason, text: String) -> AgentEvent {
        match stop_reason {
            StopReason::Complete | StopReason::MaxSteps => AgentEvent::FinalResponse(text),
            _ => AgentEvent::Error(text),
        }
    }
}
