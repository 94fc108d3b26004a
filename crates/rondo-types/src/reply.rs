//! A whole reply, with its finish reason.

use crate::{Message, Part, Role, ToolCall, Usage};
use serde::{Deserialize, Serialize};

/// Why a model ended its reply, the same for every provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// The reply is complete.
    Stop,
    /// The model waits for the results of its tool calls.
    ToolCalls,
    /// The reply reached the limit on output tokens.
    Length,
    /// The provider's content filter cut the reply off.
    ContentFilter,
    /// The provider paused a long reply whose tools run on its side (Anthropic: `pause_turn`). The
    /// model continues when the reply is sent back unchanged.
    Paused,
    /// The model refused.
    Refusal,
    /// The model wrote a tool call that its provider could not parse.
    MalformedCall,
    /// The provider reported a failure as the reason.
    Error,
    /// A reason that this version does not know.
    Other,
}

impl FinishReason {
    /// Returns the name of the reason in events.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::ToolCalls => "tool_calls",
            Self::Length => "length",
            Self::ContentFilter => "content_filter",
            Self::Paused => "paused",
            Self::Refusal => "refusal",
            Self::MalformedCall => "malformed_call",
            Self::Error => "error",
            Self::Other => "other",
        }
    }

    /// Returns whether the content of a reply with this reason may be used.
    #[must_use]
    pub fn is_acceptable(self) -> bool {
        match self {
            Self::Stop
            | Self::ToolCalls
            | Self::Length
            | Self::Paused
            | Self::Refusal
            | Self::Other => true,
            Self::ContentFilter | Self::MalformedCall | Self::Error => false,
        }
    }
}

/// The provider's id of a response and the model that wrote it, for support requests and telemetry.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct ResponseName {
    /// The provider's id of the response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The model that answered, by the provider's name: often a dated version of the requested one,
    /// and behind a router possibly another model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

impl ResponseName {
    /// Returns whether both fields are absent.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        self.id.is_none() && self.model.is_none()
    }

    /// Overwrites the fields that are present in `later`.
    pub fn learn(&mut self, later: Self) {
        self.id = later.id.or(self.id.take());
        self.model = later.model.or(self.model.take());
    }
}

/// A complete model reply.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Reply {
    /// The candidates in the provider's order.
    pub candidates: Vec<Candidate>,
    /// The last token counts, if the provider sent any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Why the provider blocked the prompt, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_blocked: Option<String>,
    /// The provider's id of the response and the model that answered.
    #[serde(default, skip_serializing_if = "ResponseName::is_unknown")]
    pub response: ResponseName,
}

/// One alternative of a reply.
///
/// The calls' [`ToolCall::id`]s are placeholders until the machine assigns them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Candidate {
    /// The parts in order.
    pub parts: Vec<Part>,
    /// The last finish reason, if the provider sent one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish_reason: Option<FinishReason>,
    /// Every finish reason as the provider wrote it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub raw_finish_reasons: Vec<String>,
}

impl Candidate {
    /// Returns all text parts joined.
    #[must_use]
    pub fn text(&self) -> String {
        self.joined(|part| match part {
            Part::Text(text) => Some(&text.text),
            _ => None,
        })
    }

    /// Returns all reasoning joined.
    #[must_use]
    pub fn reasoning(&self) -> String {
        self.joined(|part| match part {
            Part::Reasoning(reasoning) => Some(&reasoning.text),
            _ => None,
        })
    }

    /// Returns all refusal text joined.
    #[must_use]
    pub fn refusal(&self) -> String {
        self.joined(|part| match part {
            Part::Refusal(refusal) => Some(&refusal.text),
            _ => None,
        })
    }

    /// Iterates over the tool calls, in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.parts.iter().filter_map(|part| match part {
            Part::ToolCall(call) => Some(call),
            _ => None,
        })
    }

    /// Turns the candidate into the message that goes into the transcript, unchanged.
    #[must_use]
    pub fn into_message(self, origin: Option<crate::Origin>) -> Message {
        Message {
            role: Role::Assistant,
            parts: self.parts,
            origin,
            synthetic: false,
            paused: self.finish_reason == Some(FinishReason::Paused),
            from_outside: false,
        }
    }

    fn joined(&self, pick: impl Fn(&Part) -> Option<&String>) -> String {
        self.parts
            .iter()
            .filter_map(|part| pick(part).map(String::as_str))
            .collect()
    }
}
