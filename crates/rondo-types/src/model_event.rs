//! The events of a model's reply, the same for every dialect.

use crate::{FinishReason, Opaque, ResponseName, Usage};
use serde::{Deserialize, Serialize};

/// One event of a model's reply, in the order it arrived, the same for every dialect.
///
/// A reply that is not streamed gives the same events, all at once. Candidates have the provider's
/// numbers, from 0. Pings and comments give no events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ModelEvent {
    /// The request waits for a free place at its provider; nothing has been sent. Only the turn's
    /// deadline bounds this wait. Always the first event, and absent when there is no wait.
    Queued,
    /// The wait is over and the request is sent; its timers start now.
    Sent,
    /// The provider sent something that says nothing, such as a comment that keeps the connection open. It is not content,
    /// but shows that the reply continues.
    KeptAlive,
    /// The provider's id of the response, or the model that answers, became known. A field that is
    /// absent did not come with this event. It is not content, so it does not end the wait for the
    /// first content.
    ResponseNamed(ResponseName),
    /// Text of the answer.
    TextDelta {
        /// Which candidate.
        candidate: u32,
        /// Text to append.
        text: String,
    },
    /// Text of the reasoning.
    ReasoningDelta {
        /// Which candidate.
        candidate: u32,
        /// Text to append.
        text: String,
    },
    /// Text of a refusal in the provider's own field.
    RefusalDelta {
        /// Which candidate.
        candidate: u32,
        /// Text to append.
        text: String,
    },
    /// A tool call begins.
    ToolCallStarted {
        /// Which candidate.
        candidate: u32,
        /// The decoder's own key of the call, unique in the reply over all candidates.
        call: u32,
        /// The provider's id, if it sent one.
        wire_id: Option<String>,
        /// The tool's name; may be empty until [`ModelEvent::ToolCallNamed`].
        name: String,
    },
    /// The id or name of a call arrived after the call began.
    ToolCallNamed {
        /// The decoder's key of the call.
        call: u32,
        /// The provider's id, if this event brings it.
        wire_id: Option<String>,
        /// The tool's name, if this event brings it.
        name: Option<String>,
    },
    /// Arguments of a tool call.
    ToolCallDelta {
        /// The decoder's key of the call.
        call: u32,
        /// Part of the JSON text to append.
        arguments: String,
    },
    /// A tool call is complete. A call without this event is incomplete and is not run.
    ToolCallFinished {
        /// The decoder's key of the call.
        call: u32,
        /// Provider data to return with the call.
        opaque: Option<Opaque>,
    },
    /// Provider data of the candidate's latest text or reasoning part. It closes the part: text that
    /// follows starts a new one. When no part is open, it creates an empty text part.
    #[serde(rename = "part_sealed")]
    PartClosed {
        /// Which candidate.
        candidate: u32,
        /// The data.
        opaque: Opaque,
    },
    /// A part that Rondo does not interpret; it keeps its position among the parts.
    OpaquePart {
        /// Which candidate.
        candidate: u32,
        /// The part.
        opaque: Opaque,
    },
    /// Token counts so far; replaces earlier counts.
    Usage(Usage),
    /// The provider sent a finish reason. More text, or another reason, may still follow.
    Finished {
        /// Which candidate.
        candidate: u32,
        /// The reason, the same for every provider.
        reason: FinishReason,
        /// The reason as the provider wrote it.
        raw: String,
    },
    /// The provider blocked the prompt, so the reply has no candidate.
    PromptBlocked {
        /// The provider's reason.
        reason: String,
    },
}
