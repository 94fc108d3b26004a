//! The events of a turn, as listeners and `stream-json` get them.

use crate::{
    CallId, ErrorClass, Finding, InDoubtDecision, Limits, SessionId, StopReason, TimeMs,
    ToolErrorCode, TurnId, Usage,
};
use serde::de::Error as _;
use serde::ser::{Error as _, SerializeMap};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

/// The version of the event stream. Within a version, changes only add.
pub const EVENT_SCHEMA_VERSION: u32 = 1;

/// One event of a turn: the same for a library listener, `stream-json` and every other host.
///
/// Serialises as one flat object: `type`, `session`, `turn`, `seq`, `at_ms`, then the body's fields.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnEvent {
    /// The session.
    pub session: SessionId,
    /// The turn.
    pub turn: TurnId,
    /// Dense within the turn, from 0.
    pub seq: u64,
    /// When it happened.
    pub at: TimeMs,
    /// What happened.
    pub body: EventBody,
}

/// What happened.
///
/// The first event of a turn is [`EventBody::Init`] and the last, whatever happened, is
/// [`EventBody::Result`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum EventBody {
    /// The turn begins.
    Init(Box<InitEvent>),
    /// A model request is about to be sent.
    StepStarted {
        /// From 1.
        step: u32,
    },
    /// The request waits, since as many as may be are under way at its provider.
    RequestQueued,
    /// Text of the answer.
    TextDelta {
        /// What to append.
        text: String,
    },
    /// Text of the reasoning.
    ReasoningDelta {
        /// What to append.
        text: String,
    },
    /// The model asked for a call.
    ToolCallPending {
        /// The call.
        id: CallId,
        /// The tool.
        name: String,
        /// The arguments, or the raw text where it is not JSON.
        arguments: Value,
    },
    /// The arguments were repaired before the call was checked.
    ArgumentsRepaired {
        /// The call.
        id: CallId,
        /// One line for each change.
        diff: Vec<String>,
    },
    /// Somebody must allow the call.
    ApprovalRequested {
        /// The call.
        id: CallId,
        /// What is asked.
        prompt: String,
    },
    /// The question was answered.
    ApprovalResolved {
        /// The call.
        id: CallId,
        /// Whether it may run.
        approved: bool,
        /// Why not, or by whom.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// What the arguments were changed to, if they were.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arguments: Option<Value>,
    },
    /// The call runs.
    ToolCallStarted {
        /// The call.
        id: CallId,
    },
    /// Output of a running call, as it comes, for people; not what the model reads.
    ToolOutputDelta {
        /// The call.
        id: CallId,
        /// What to append.
        text: String,
    },
    /// The call has its result.
    ToolCallFinished {
        /// The call.
        id: CallId,
        /// Whether it succeeded.
        ok: bool,
        /// The error's code.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<ToolErrorCode>,
        /// What the model reads.
        result: Value,
        /// Whether the middle of the output was left out.
        truncated: bool,
        /// The file that holds the whole output.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        spill: Option<String>,
        /// How long it ran.
        duration_ms: u64,
    },
    /// A failed request is sent again after a wait.
    RetryScheduled {
        /// What failed.
        class: ErrorClass,
        /// The HTTP status, if one was received.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status: Option<u16>,
        /// From 1.
        attempt: u32,
        /// The wait.
        delay_ms: u64,
    },
    /// A request failed for good, and the next model of the list goes on from here.
    ModelFallback {
        /// The model that failed, `provider/model`.
        from: String,
        /// The model that is asked now, and for the rest of the turn.
        to: String,
        /// What failed.
        class: ErrorClass,
        /// How it failed.
        message: String,
    },
    /// A reply could not be used.
    ReplyRejected {
        /// What was wrong.
        reason: String,
    },
    /// A steering message entered the conversation.
    Steered {
        /// The message.
        text: String,
    },
    /// The turn goes on after a crash; the events before it were told by another process.
    Resumed {
        /// The step under way.
        step: u32,
        /// How long nobody worked on it. The turn's time leaves it out.
        downtime_ms: u64,
    },
    /// A call was started before a crash and its end was not recorded.
    ToolCallInDoubt {
        /// The call.
        id: CallId,
        /// The tool.
        name: String,
        /// What is done about it.
        decision: InDoubtDecision,
        /// Whether it still runs and is waited for, where it would be run again otherwise.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        still_running: bool,
    },
    /// Older messages are being summed up, since the next request would hardly fit the model.
    CompactionStarted {
        /// Messages that the summary will stand for.
        messages: u32,
        /// What the next request would have had, in tokens; an estimate.
        tokens: u64,
    },
    /// Older messages made room for new ones.
    Compacted {
        /// Messages that were replaced or shortened.
        replaced: u32,
        /// How.
        #[serde(default)]
        how: CompactionKind,
        /// Who wrote the summary, `provider/model`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// Why there is no summary.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Token counts of the step.
    Usage {
        /// Prompt tokens, cached ones included.
        input: u64,
        /// Generated tokens, reasoning included.
        output: u64,
        /// Generated tokens that were reasoning.
        reasoning: u64,
        /// Prompt tokens read from the provider's cache.
        cache_read: u64,
        /// Prompt tokens written to the provider's cache.
        cache_write: u64,
        /// Money of the step, where the price is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost_usd: Option<f64>,
    },
    /// The step is over.
    StepFinished {
        /// From 1.
        step: u32,
        /// Why the model ended its reply; absent when there was none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        finish_reason: Option<String>,
        /// The provider's id of its last reply, if it told one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        response_id: Option<String>,
        /// The model that answered, as the provider calls it, if it told one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        response_model: Option<String>,
    },
    /// The listener was too slow and deltas were dropped; nothing else ever is.
    DeltasDropped {
        /// How many.
        count: u64,
    },
    /// The turn is over.
    Result(Box<ResultEvent>),
}

impl EventBody {
    /// Builds the token counts of a step, with its money in dollars where the price is known.
    #[must_use]
    pub fn of_usage(usage: Usage, cost_usd: Option<f64>) -> Self {
        let Usage {
            input,
            output,
            reasoning,
            cache_read,
            cache_write,
        } = usage;
        Self::Usage {
            input,
            output,
            reasoning,
            cache_read,
            cache_write,
            cost_usd,
        }
    }

    /// Returns the token counts of a step, if that is what happened.
    #[must_use]
    pub fn usage(&self) -> Option<Usage> {
        match *self {
            Self::Usage {
                input,
                output,
                reasoning,
                cache_read,
                cache_write,
                ..
            } => Some(Usage {
                input,
                output,
                reasoning,
                cache_read,
                cache_write,
            }),
            _ => None,
        }
    }
}

/// How older messages made room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CompactionKind {
    /// A summary stands in their place.
    #[default]
    Summarised,
    /// They were left out.
    Dropped,
    /// Their tool results were shortened.
    Cut,
}

/// The first event of a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InitEvent {
    /// [`EVENT_SCHEMA_VERSION`].
    pub schema_version: u32,
    /// `provider/model`.
    pub model: String,
    /// The models that follow it when its requests fail, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallbacks: Vec<String>,
    /// The profile's name.
    pub profile: String,
    /// The limits in force.
    pub limits: Limits,
    /// Names of the tools on offer.
    pub tools: Vec<String>,
}

/// The last event of a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResultEvent {
    /// The answer.
    pub text: String,
    /// Why the turn ended.
    pub stop_reason: StopReason,
    /// Who was asked last, `provider/model`; absent where nobody was going to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Whether the answer is less than what the model would have given.
    pub degraded: bool,
    /// What was found.
    pub findings: Vec<Finding>,
    /// Tokens of the turn.
    pub usage: crate::Usage,
    /// Money of the turn, where the price is known.
    pub cost_usd: Option<f64>,
    /// Model requests made.
    pub steps: u32,
    /// Tool calls run.
    pub tool_calls: u32,
    /// Wall time.
    pub elapsed_ms: u64,
    /// What failed, when something did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<crate::ModelError>,
    /// The exit code, where the host is a process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
}

impl ResultEvent {
    /// Builds the event from an outcome, without an exit code.
    #[must_use]
    pub fn from_outcome(outcome: &crate::Outcome) -> Self {
        Self {
            text: outcome.text.clone(),
            stop_reason: outcome.stop_reason,
            model: outcome.model.clone(),
            degraded: outcome.degraded,
            findings: outcome.findings.clone(),
            usage: outcome.usage,
            cost_usd: outcome.cost.map(crate::NanoUsd::usd),
            steps: outcome.steps,
            tool_calls: outcome.tool_calls,
            elapsed_ms: outcome.elapsed_ms,
            error: outcome.error.clone(),
            exit_code: None,
        }
    }
}

/// Why a JSON object is no turn event.
#[derive(Debug, thiserror::Error)]
#[error("not a turn event: {0}")]
pub struct EventDecodeError(#[from] serde_json::Error);

const HEADER: [&str; 4] = ["session", "turn", "seq", "at_ms"];

impl Serialize for TurnEvent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Value::Object(body) = serde_json::to_value(&self.body).map_err(S::Error::custom)?
        else {
            return Err(S::Error::custom("an event body is an object"));
        };
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", body.get("type").unwrap_or(&Value::Null))?;
        map.serialize_entry("session", &self.session)?;
        map.serialize_entry("turn", &self.turn)?;
        map.serialize_entry("seq", &self.seq)?;
        map.serialize_entry("at_ms", &self.at)?;
        for (key, value) in body.iter().filter(|(key, _)| *key != "type") {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for TurnEvent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Header {
            session: SessionId,
            turn: TurnId,
            seq: u64,
            at_ms: TimeMs,
        }
        let (header, body): (Map<String, Value>, Map<String, Value>) =
            Map::deserialize(deserializer)?
                .into_iter()
                .partition(|(key, _)| HEADER.contains(&key.as_str()));
        let header: Header =
            serde_json::from_value(Value::Object(header)).map_err(D::Error::custom)?;
        let body = serde_json::from_value(Value::Object(body)).map_err(D::Error::custom)?;
        Ok(Self {
            session: header.session,
            turn: header.turn,
            seq: header.seq,
            at: header.at_ms,
            body,
        })
    }
}

impl TurnEvent {
    /// Parses one line of a `stream-json` stream.
    ///
    /// # Errors
    /// When the line is not JSON or not an event of this schema version.
    pub fn from_json(line: &str) -> Result<Self, EventDecodeError> {
        Ok(serde_json::from_str(line)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_flat_and_come_back() {
        let event = TurnEvent {
            session: SessionId::new("s"),
            turn: TurnId::new("t"),
            seq: 7,
            at: TimeMs(1234),
            body: EventBody::ToolCallFinished {
                id: CallId::new("c"),
                ok: false,
                code: Some(ToolErrorCode::Timeout),
                result: Value::String("late".into()),
                truncated: false,
                spill: None,
                duration_ms: 5,
            },
        };
        let line = serde_json::to_string(&event).unwrap();
        assert_eq!(
            line,
            r#"{"type":"tool_call_finished","session":"s","turn":"t","seq":7,"at_ms":1234,"id":"c","ok":false,"code":"timeout","result":"late","truncated":false,"duration_ms":5}"#
        );
        assert_eq!(TurnEvent::from_json(&line).unwrap(), event);
    }
}
