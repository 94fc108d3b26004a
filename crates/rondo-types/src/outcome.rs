//! How a turn ended.

use crate::text;
use crate::{
    CallId, FinishReason, Message, ModelError, NanoUsd, Spend, ToolContent, Transcript, Usage,
};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The result of a turn, however it ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// The answer. When the model gave none, the runtime's account of why the turn stopped and what
    /// the tools found.
    pub text: String,
    /// Why the turn ended.
    pub stop_reason: StopReason,
    /// The model that was active last, as `provider/model`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// `true` if the answer is partial: the turn stopped early, or the answer was cut off.
    pub degraded: bool,
    /// `true` if the model wrote the text; otherwise the runtime built it.
    pub answered: bool,
    /// The successful tool results of the turn, shortened.
    pub findings: Vec<Finding>,
    /// Token counts of the turn, over all its requests.
    pub usage: Usage,
    /// Cost of the turn; absent when the price is not known.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        rename = "cost_nanousd"
    )]
    pub cost: Option<NanoUsd>,
    /// Additional use by the turns that its calls started; `None` if there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delegated: Option<Spend>,
    /// Steps taken: model requests, without retries and fallbacks.
    pub steps: u32,
    /// Number of tool calls that were run.
    pub tool_calls: u32,
    /// Wall time of the turn, in milliseconds.
    pub elapsed_ms: u64,
    /// Why the model ended its last reply; absent when the last request failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish_reason: Option<FinishReason>,
    /// The error that ended the turn, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ModelError>,
    /// Steering messages that arrived too late for the model. The caller may send them again.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        rename = "unheard",
        with = "steering"
    )]
    pub undelivered_steering: Vec<Message>,
    /// The session's messages, this turn's included; every call has its result.
    pub transcript: Transcript,
}

impl Outcome {
    /// Returns the usage of the turn, with the turns that its calls started.
    #[must_use]
    pub fn used(&self) -> Spend {
        let own = Spend {
            steps: self.steps,
            calls: self.tool_calls,
            tokens: self.usage.total(),
            cost: self.cost,
        };
        own.plus(self.delegated.unwrap_or_default())
    }

    /// Returns the outcome of a turn that failed before it did anything.
    #[must_use]
    pub fn failed(error: ModelError) -> Self {
        Self {
            text: String::new(),
            stop_reason: StopReason::Error,
            model: None,
            degraded: true,
            answered: false,
            findings: Vec::new(),
            usage: Usage::default(),
            cost: None,
            delegated: None,
            steps: 0,
            tool_calls: 0,
            elapsed_ms: 0,
            finish_reason: None,
            error: Some(error),
            undelivered_steering: Vec::new(),
            transcript: Transcript::new(),
        }
    }
}

/// Why a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The model answered.
    Complete,
    /// The limit on steps was reached.
    MaxSteps,
    /// The limit on tool calls was reached, of the turn or of one reply.
    MaxToolCalls,
    /// The limit on tokens was reached.
    MaxTokens,
    /// The limit on cost was reached.
    MaxCost,
    /// A budget that the turn shares with others is spent.
    BudgetSpent,
    /// A step took too long as a whole, or the provider sent no content for too long.
    StepTimeout,
    /// The turn's deadline was reached.
    Deadline,
    /// The model's replies could not be used.
    InvalidResponse,
    /// The model repeated calls that gave the same results.
    NoProgress,
    /// The model refused, or the provider's filter blocked the prompt or the answer.
    Refused,
    /// An interceptor of the program stopped the turn.
    Intercepted,
    /// The user or the program cancelled the turn.
    Cancelled,
    /// A model request failed for good, or the runtime did.
    Error,
}

impl StopReason {
    /// Returns the name of the reason in events.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::MaxSteps => "max_steps",
            Self::MaxToolCalls => "max_tool_calls",
            Self::MaxTokens => "max_tokens",
            Self::MaxCost => "max_cost",
            Self::BudgetSpent => "budget_spent",
            Self::StepTimeout => "step_timeout",
            Self::Deadline => "deadline",
            Self::InvalidResponse => "invalid_response",
            Self::NoProgress => "no_progress",
            Self::Refused => "refused",
            Self::Intercepted => "intercepted",
            Self::Cancelled => "cancelled",
            Self::Error => "error",
        }
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One successful tool result, shortened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The call it came from.
    pub call_id: CallId,
    /// The tool's name.
    pub tool: String,
    /// The arguments, cut to 200 characters by leaving out their middle.
    pub arguments: String,
    /// The result, cut to 1,000 characters by leaving out its middle.
    pub digest: String,
}

impl Finding {
    /// The bound on [`Finding::arguments`], in characters.
    pub const ARGUMENTS_CHARS_MAX: usize = 200;
    /// The bound on [`Finding::digest`], in characters.
    pub const DIGEST_CHARS_MAX: usize = 1000;

    /// Builds a finding from a call and its result.
    #[must_use]
    pub fn new(call_id: CallId, tool: String, arguments: &str, content: &ToolContent) -> Self {
        Self {
            call_id,
            tool,
            arguments: text::without_middle(arguments, Self::ARGUMENTS_CHARS_MAX),
            digest: text::without_middle(content.to_text().trim(), Self::DIGEST_CHARS_MAX),
        }
    }
}

/// Messages of the user; one of nothing but text is written as a string, which is all that steering was at first.
mod steering {
    use super::Message;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    #[serde(untagged)]
    enum StoredMessage {
        Text(String),
        Message(Box<Message>),
    }

    pub(super) fn serialize<S: Serializer>(messages: &[Message], to: S) -> Result<S::Ok, S::Error> {
        let written = messages.iter().map(|message| {
            let text = message.text();
            match *message == Message::user(&text) {
                true => StoredMessage::Text(text),
                false => StoredMessage::Message(Box::new(message.clone())),
            }
        });
        to.collect_seq(written)
    }

    pub(super) fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<Vec<Message>, D::Error> {
        let written = Vec::<StoredMessage>::deserialize(from)?;
        let messages = written.into_iter().map(|it| match it {
            StoredMessage::Text(text) => Message::user(text),
            StoredMessage::Message(message) => *message,
        });
        Ok(messages.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ErrorClass, Media, MediaKind, MediaSource, Part};

    #[test]
    fn digest_keeps_head_and_tail() {
        let text = format!("{}{}", "a".repeat(2000), "z".repeat(2000));
        let finding = Finding::new(
            CallId::new("c"),
            "exec".into(),
            "{}",
            &ToolContent::Text(text),
        );
        assert_eq!(finding.digest.chars().count(), Finding::DIGEST_CHARS_MAX);
        assert!(finding.digest.starts_with('a') && finding.digest.ends_with('z'));
    }

    #[test]
    fn steering_that_came_too_late_is_read_as_it_was_written_when_it_was_only_text() {
        let mut with_image = Message::user("see");
        with_image.parts.push(Part::Media(Media {
            kind: MediaKind::Image,
            mime: "image/png".to_owned(),
            name: None,
            source: MediaSource::Base64("QUJD".to_owned()),
        }));
        let mut outcome = Outcome::failed(ModelError::new(ErrorClass::Server, "it broke"));
        outcome.undelivered_steering = vec![Message::user("and this"), with_image];
        let json = serde_json::to_value(&outcome).unwrap();
        assert_eq!(json["unheard"][0], "and this");
        assert_eq!(serde_json::from_value::<Outcome>(json).unwrap(), outcome);
    }
}
