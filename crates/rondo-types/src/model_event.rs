//! The events of a model's reply, the same for every dialect.

use crate::{FinishReason, Opaque, ResponseName, Usage};
use serde::{Deserialize, Serialize};

/// One event of a model's reply, in the order it arrived, the same for every dialect.
///
/// A reply that is not streamed is the same events at once. Candidates are numbered as the provider
/// numbers them, from 0. Pings and comments are no events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ModelEvent {
    /// The request waits until its provider may be asked; nothing was sent. Only the turn's deadline
    /// bounds this wait. Comes before everything else, and only where there is a wait.
    Queued,
    /// The wait is over and the request goes out: its timers begin now.
    Sent,
    /// What the provider calls the response, or who answers, became known; what is absent in it was
    /// not told with this. It says nothing of the answer, so nobody waits less for that.
    ResponseNamed(ResponseName),
    /// Text of the answer.
    TextDelta {
        /// Which candidate.
        candidate: u32,
        /// What to append.
        text: String,
    },
    /// Text of the reasoning.
    ReasoningDelta {
        /// Which candidate.
        candidate: u32,
        /// What to append.
        text: String,
    },
    /// Text of a refusal in the provider's own field.
    RefusalDelta {
        /// Which candidate.
        candidate: u32,
        /// What to append.
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
    /// The id or name of a call came later than its beginning.
    ToolCallNamed {
        /// The decoder's key of the call.
        call: u32,
        /// The provider's id, if it is what came.
        wire_id: Option<String>,
        /// The tool's name, if it is what came.
        name: Option<String>,
    },
    /// Arguments of a tool call.
    ToolCallDelta {
        /// The decoder's key of the call.
        call: u32,
        /// What to append to the JSON text.
        arguments: String,
    },
    /// A tool call is whole. A call that never gets this event is incomplete and is not run.
    ToolCallFinished {
        /// The decoder's key of the call.
        call: u32,
        /// Provider data to return with the call.
        opaque: Option<Opaque>,
    },
    /// Provider data of the candidate's latest text or reasoning part, which it closes: text that
    /// follows begins a new part. With no such part open, it makes an empty text part.
    #[serde(rename = "part_sealed")]
    PartClosed {
        /// Which candidate.
        candidate: u32,
        /// The data.
        opaque: Opaque,
    },
    /// A part that Rondo does not interpret, at this place among the parts.
    OpaquePart {
        /// Which candidate.
        candidate: u32,
        /// The part.
        opaque: Opaque,
    },
    /// Token counts so far; replaces what came before.
    Usage(Usage),
    /// The provider named a finish reason. More text may still follow, and so may another reason.
    Finished {
        /// Which candidate.
        candidate: u32,
        /// What it means.
        reason: FinishReason,
        /// What the provider wrote.
        raw: String,
    },
    /// The provider blocked the prompt; there will be no candidate.
    PromptBlocked {
        /// The provider's reason.
        reason: String,
    },
}
