//! The events of a turn, as listeners and `stream-json` receive them.

use crate::tool_names::ToolNames;
use crate::{
    BlockInfo, CallId, ChangedFile, ErrorClass, Finding, InDoubtDecision, JobId, Limits, MediaInfo,
    Question, QuestionId, SessionId, Spend, StopReason, TimeMs, TodoItem, ToolErrorCode,
    ToolProgress, TurnId, Usage,
};
use serde::de::Error as _;
use serde::ser::{Error as _, SerializeMap};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

/// The version of the event schema. Within a version, fields and events are only added.
pub const EVENT_SCHEMA_VERSION: u32 = 1;

/// One event of a turn, the same for library listeners, `stream-json` and every other host.
///
/// Serializes as one flat object: `type`, `session`, `turn`, `seq`, `at_ms`, then the body's fields.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnEvent {
    /// The session.
    pub session: SessionId,
    /// The turn.
    pub turn: TurnId,
    /// The number of the event in its turn, from 0, without gaps.
    pub seq: u64,
    /// When it happened.
    pub at: TimeMs,
    /// Content of the event.
    pub body: EventBody,
}

/// The type of an event, with its data.
///
/// The first event of a turn is [`EventBody::Init`] and the last, however the turn ends, is
/// [`EventBody::Result`]; if the turn is parked, the last event is [`EventBody::Parked`].
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
    /// The request waits because its provider has reached the limit on concurrent requests.
    RequestQueued,
    /// Text of the answer.
    TextDelta {
        /// Text to append.
        text: String,
    },
    /// Text of the reasoning.
    ReasoningDelta {
        /// Text to append.
        text: String,
    },
    /// The tools on offer changed, from the step under way on.
    ToolsChanged {
        /// The names of all tools on offer.
        tools: Vec<String>,
    },
    /// The model requested a tool call.
    ToolCallPending {
        /// Id of the call.
        id: CallId,
        /// The tool.
        name: String,
        /// The arguments, or a string with the raw text when it is not JSON.
        arguments: Value,
    },
    /// The arguments were repaired before the call was checked.
    ArgumentsRepaired {
        /// Id of the call.
        id: CallId,
        /// The changes, one line each.
        diff: Vec<String>,
    },
    /// An interceptor changed the arguments before the call was judged.
    ToolCallRewritten {
        /// Id of the call.
        id: CallId,
        /// The interceptors that changed them, in order; never empty.
        by: Vec<String>,
        /// The arguments as they are judged, and run if they may.
        arguments: Value,
    },
    /// The call needs approval.
    ApprovalRequested {
        /// Id of the call.
        id: CallId,
        /// The question for the user.
        prompt: String,
    },
    /// The approver answered, or the question ended without an answer.
    ApprovalResolved {
        /// Id of the call.
        id: CallId,
        /// `true` if it may run.
        approved: bool,
        /// Why the call was denied; absent when it was approved.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// The edited arguments; absent when they were not changed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arguments: Option<Value>,
    },
    /// The turn asks a person, and any listener that can may answer. The question is recorded.
    QuestionAsked {
        /// The question.
        question: Box<Question>,
    },
    /// A question was answered. One that ends without an answer is over with its call, or with the turn.
    QuestionAnswered {
        /// The question.
        question: QuestionId,
        /// Author of the answer.
        actor: String,
    },
    /// The call runs.
    ToolCallStarted {
        /// Id of the call.
        id: CallId,
    },
    /// Live output of a running call, for the user. The model reads only the result.
    ToolOutputDelta {
        /// Id of the call.
        id: CallId,
        /// Text to append.
        text: String,
    },
    /// How far a running call is, for the user. A slow listener receives the latest only.
    ToolProgress {
        /// Id of the call.
        id: CallId,
        /// How far it is.
        #[serde(flatten)]
        progress: ToolProgress,
    },
    /// The call ended.
    ToolCallFinished {
        /// Id of the call.
        id: CallId,
        /// `true` if it succeeded.
        ok: bool,
        /// The error's code; absent on success.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<ToolErrorCode>,
        /// Result, as the model reads it.
        result: Value,
        /// Blocks that the model reads after it: images, files and further texts, in order.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        blocks: Vec<BlockInfo>,
        /// `true` if the middle of the output was left out.
        truncated: bool,
        /// The file that holds the whole output.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        spill: Option<String>,
        /// How long it ran, in milliseconds.
        duration_ms: u64,
        /// The files that it changed.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        changes: Vec<ChangedFile>,
        /// The session that it started or asked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        child: Option<SessionId>,
        /// The job that it started.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        job: Option<JobId>,
        /// Set if the result holds text from outside, which the user did not write and did not choose to trust.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        from_outside: bool,
        /// Use by the turns that it started.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        used: Option<Spend>,
    },
    /// The session's to-do list changed, by the call before this event.
    TodoChanged {
        /// The whole list from now on.
        items: Vec<TodoItem>,
    },
    /// Something happened in a session that a running call started; its own stream tells the same. No record of this
    /// session holds it, a replay leaves it out, and a slow listener may miss it. Deltas are not among these, and long
    /// texts are cut.
    ChildEvent {
        /// Id of the call.
        id: CallId,
        /// Event of the child, with its session, turn and number.
        event: Box<TurnEvent>,
    },
    /// A failed request is sent again after a wait.
    RetryScheduled {
        /// The kind of failure.
        class: ErrorClass,
        /// The HTTP status, if one was received.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status: Option<u16>,
        /// From 1.
        attempt: u32,
        /// The wait in milliseconds.
        delay_ms: u64,
    },
    /// A request failed for good, and a fallback model takes over.
    ModelFallback {
        /// The model that failed, `provider/model`.
        from: String,
        /// The model for the rest of the turn, unless it fails too, `provider/model`.
        to: String,
        /// The kind of failure.
        class: ErrorClass,
        /// The error message.
        message: String,
    },
    /// Something that the person has to know and the model does not read, such as a folder that must be reviewed. No
    /// record holds it.
    Warning {
        /// The text.
        text: String,
    },
    /// A reply could not be used.
    ReplyRejected {
        /// Problem with the reply.
        reason: String,
    },
    /// A steering message was added to the conversation.
    Steered {
        /// The text of the message.
        text: String,
        /// The images and files that came with it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        media: Vec<MediaInfo>,
    },
    /// The turn continues after a crash. Another process sent the events before this one.
    Resumed {
        /// The step under way.
        step: u32,
        /// How long the turn was interrupted, in milliseconds. It does not count against the deadline.
        downtime_ms: u64,
    },
    /// A call was started before a crash, and its end was not recorded.
    ToolCallInDoubt {
        /// Id of the call.
        id: CallId,
        /// The tool.
        name: String,
        /// Decision of the resumed turn.
        decision: InDoubtDecision,
        /// Set if the call still runs, so that the turn waits for it and does not run it again.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        still_running: bool,
    },
    /// The model is asked to summarize older messages, because the next request may not fit.
    CompactionStarted {
        /// Messages that the summary will replace.
        messages: u32,
        /// The estimated size of the next request without the summary, in tokens.
        tokens: u64,
    },
    /// Older messages were summarized, dropped or shortened to make room, or lost what the provider refuses to read.
    Compacted {
        /// Messages that were replaced, shortened or looked through.
        replaced: u32,
        /// Method of compaction.
        #[serde(default)]
        how: CompactionKind,
        /// The model that wrote the summary, `provider/model`; absent without a summary.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// Why messages were dropped without a summary, or what the provider said of what it refused; absent otherwise.
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
        /// Cost of the step in US dollars; absent when the price is not known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost_usd: Option<f64>,
    },
    /// The step is over.
    StepFinished {
        /// From 1.
        step: u32,
        /// Why the model ended its reply; absent when there was no reply.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        finish_reason: Option<String>,
        /// The provider's id of the step's last reply, if it sent one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        response_id: Option<String>,
        /// The model that answered, by the provider's name, if it sent one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        response_model: Option<String>,
    },
    /// The listener was too slow, so deltas were dropped. Other events are never dropped.
    DeltasDropped {
        /// Number of dropped deltas.
        count: u64,
    },
    /// The turn waits for answers, and no process works on it: the last event until it is resumed.
    Parked {
        /// Questions that it waits for, in the order in which they were asked; never empty.
        questions: Vec<Question>,
    },
    /// The turn is over.
    Result(Box<ResultEvent>),
}

impl EventBody {
    /// Builds [`EventBody::Usage`] from the token counts of a step and its cost in US dollars.
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

    /// Returns the token counts of [`EventBody::Usage`], and `None` for every other event.
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

/// Method of making room among older messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CompactionKind {
    /// A summary replaced them.
    #[default]
    Summarised,
    /// They were left out.
    Dropped,
    /// Their tool results were shortened.
    Cut,
    /// Their images and files were described in text, since the provider refused them.
    Described,
    /// Content that only its provider can read, such as sealed reasoning, was left out, since it was refused.
    Unsealed,
}

/// The first event of a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InitEvent {
    /// [`EVENT_SCHEMA_VERSION`].
    pub schema_version: u32,
    /// `provider/model`.
    pub model: String,
    /// The fallback models, `provider/model`, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallbacks: Vec<String>,
    /// The profile's name.
    pub profile: String,
    /// The limits in force.
    pub limits: Limits,
    /// The names of the tools that the model may call.
    pub tools: ToolNames,
}

/// The last event of a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResultEvent {
    /// The answer.
    pub text: String,
    /// Why the turn ended.
    pub stop_reason: StopReason,
    /// The model that was active last, `provider/model`; absent when the host had none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// `true` if the answer is partial: the turn stopped early, or the answer was cut off.
    pub degraded: bool,
    /// The successful tool results of the turn, shortened.
    pub findings: Vec<Finding>,
    /// Token counts of the turn, over all its requests.
    pub usage: crate::Usage,
    /// Cost of the turn in US dollars; null when the price is not known.
    pub cost_usd: Option<f64>,
    /// Additional use by the turns that its calls started; `None` if there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delegated: Option<Spend>,
    /// Steps taken: model requests, without retries and fallbacks.
    pub steps: u32,
    /// Number of tool calls that were run.
    pub tool_calls: u32,
    /// Wall time of the turn, in milliseconds.
    pub elapsed_ms: u64,
    /// The error that ended the turn, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<crate::ModelError>,
    /// The exit code of the process; absent when the host is not a command.
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
            delegated: outcome.delegated,
            steps: outcome.steps,
            tool_calls: outcome.tool_calls,
            elapsed_ms: outcome.elapsed_ms,
            error: outcome.error.clone(),
            exit_code: None,
        }
    }
}

/// Why a JSON object is not a turn event.
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
                blocks: vec![],
                truncated: false,
                spill: None,
                duration_ms: 5,
                changes: vec![],
                child: None,
                job: None,
                from_outside: false,
                used: None,
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
