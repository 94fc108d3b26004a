//! The events while a message is answered.

use crate::run::text_of;
use rondo_types::{CallId, EventBody};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::HashMap;

/// Event while a message is answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct StreamEvent {
    /// Kind of event.
    #[serde(rename = "Type")]
    pub kind: StreamEventType,
    /// Text to append, of `content`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub content: String,
    /// The call, of `tool_start` and `tool_end`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<StreamTool>,
}

/// Kinds of [`StreamEvent`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StreamEventType {
    /// Text of the model.
    Content,
    /// A call begins to run.
    ToolStart,
    /// A call has its result; one that is not run has this event alone.
    ToolEnd,
}

/// A call in a [`StreamEvent`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct StreamTool {
    /// The tool.
    pub name: String,
    /// Its arguments: an object, or the text if the model wrote none.
    pub arguments: Value,
    /// Result for the model; empty until the end.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub result: String,
}

/// Reads the design's events out of ours.
#[derive(Debug, Default)]
pub(super) struct Reader {
    pending: HashMap<CallId, StreamTool>,
}

impl Reader {
    pub(super) fn read(&mut self, event: EventBody) -> Option<StreamEvent> {
        match event {
            EventBody::TextDelta { text } => Some(StreamEvent {
                kind: StreamEventType::Content,
                content: text,
                tool: None,
            }),
            EventBody::ToolCallPending {
                id,
                name,
                arguments,
            } => {
                let result = String::new();
                let tool = StreamTool {
                    name,
                    arguments,
                    result,
                };
                self.pending.insert(id, tool);
                None
            }
            EventBody::ToolCallStarted { id } => {
                let tool = self.pending.get(&id)?.clone();
                Some(of_tool(StreamEventType::ToolStart, tool))
            }
            EventBody::ToolCallFinished { id, result, .. } => {
                let mut tool = self.pending.remove(&id)?;
                tool.result = text_of(result);
                Some(of_tool(StreamEventType::ToolEnd, tool))
            }
            _ => None,
        }
    }
}

fn of_tool(kind: StreamEventType, tool: StreamTool) -> StreamEvent {
    StreamEvent {
        kind,
        content: String::new(),
        tool: Some(tool),
    }
}
