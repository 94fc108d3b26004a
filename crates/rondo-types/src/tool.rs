//! Tool specifications and the outcomes of tool calls.

use crate::time::optional_duration_ms;
use crate::{Commit, ContentBlock, JobId, Limits, Media, NanoUsd, SessionId, ToolKind};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;
use std::time::Duration;

/// The specification of a tool: what the model reads, and what the engine needs to run it.
///
/// Its default has no name and is as careful as can be: calls have effects, run alone, and never run again after a
/// crash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// The name the model calls it by. Every provider accepts `[A-Za-z_][A-Za-z0-9_-]{0,63}`.
    pub name: String,
    /// Description of the tool, written for the model.
    pub description: String,
    /// The JSON Schema (draft 2020-12) of its arguments, an object schema.
    pub parameters: Value,
    /// Effects outside the conversation.
    pub effects: Effects,
    /// Permission to run beside other calls of the same step.
    pub concurrency: Concurrency,
    /// Treatment, after a crash, of a call whose start was recorded and whose end was not.
    pub recovery: Recovery,
    /// Set if repeating a call with the same result is expected, as with a tool that polls a
    /// state. The profile's [`LoopGuard`](crate::LoopGuard) does not count such calls; the other
    /// limits apply.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub polls: bool,
    /// Kind of its calls. Hosts show calls and the gate judges them by this, never by the name. No model reads it.
    #[serde(default, skip_serializing_if = "ToolKind::is_other")]
    pub kind: ToolKind,
    /// Further facts about its effects. No model reads them.
    #[serde(default, skip_serializing_if = "ToolHints::is_empty")]
    pub hints: ToolHints,
    /// The longest time that one call may run; it can only shorten
    /// [`Limits::tool_timeout`](crate::Limits::tool_timeout) and the turn's own time.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        rename = "timeout_ms",
        with = "optional_duration_ms"
    )]
    pub timeout: Option<Duration>,
    /// Set if its calls run turns of their own, as a subagent's do:
    /// [`Limits::tool_timeout`](crate::Limits::tool_timeout)
    /// does not bound them then, but the turn's own time and [`RemainingLimits`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub runs_turns: bool,
}

impl Default for ToolSpec {
    fn default() -> Self {
        Self {
            name: String::new(),
            description: String::new(),
            parameters: serde_json::json!({"type": "object"}),
            effects: Effects::Writes,
            concurrency: Concurrency::Undeclared,
            recovery: Recovery::AtMostOnce,
            polls: false,
            kind: ToolKind::Other,
            hints: ToolHints::default(),
            timeout: None,
            runs_turns: false,
        }
    }
}

impl ToolSpec {
    /// Returns the defaults of a tool that only looks at what is there, so that its calls may run beside each other and
    /// again.
    #[must_use]
    pub fn read_only(kind: ToolKind) -> Self {
        Self {
            effects: Effects::ReadOnly,
            concurrency: Concurrency::Shared,
            recovery: Recovery::ReadOnly,
            kind,
            hints: ToolHints::looks_only(),
            ..Self::default()
        }
    }
}

/// What is known of the effects of a tool's calls; nothing is promised where a hint is absent. A hint is a statement of
/// the tool's author, so it may make a host more careful and never less.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct ToolHints {
    /// `true` if a call may remove or overwrite something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destructive: Option<bool>,
    /// `true` if a second call with the same arguments changes nothing more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotent: Option<bool>,
    /// `true` if a call may reach the outside of this machine, such as the web.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_world: Option<bool>,
}

impl ToolHints {
    /// Says all three, in the order of the fields: `destructive`, `idempotent`, `open_world`.
    #[must_use]
    pub fn new(destructive: bool, idempotent: bool, open_world: bool) -> Self {
        Self {
            destructive: Some(destructive),
            idempotent: Some(idempotent),
            open_world: Some(open_world),
        }
    }

    /// The hints of a tool that changes nothing and stays on this machine.
    #[must_use]
    pub fn looks_only() -> Self {
        Self::new(false, true, false)
    }

    /// Returns whether nothing is said.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Effects of a tool outside the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effects {
    /// It changes nothing.
    ReadOnly,
    /// It may change something.
    Writes,
}

/// Concurrency of a tool with other calls of the same step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Concurrency {
    /// May run beside other shared calls.
    Shared,
    /// A barrier: runs alone, after all calls before it and before all calls after it.
    Exclusive,
    /// The tool does not say. A turn treats it like [`Self::Exclusive`], except if its design runs such calls
    /// side by side.
    Undeclared,
}

/// Action of a resumed turn for a call whose start was recorded and whose end was not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Recovery {
    /// Run it again. The gate judges the call again, so the user may be asked.
    ReadOnly,
    /// Run it again with the same idempotency key, by which the tool recognizes it. The gate judges
    /// the call again.
    Idempotent,
    /// Ask the tool how it ended. A call that was not done, or still runs, runs again or is
    /// continued; one that the tool does not know fails with code `in_doubt`.
    Checkable,
    /// Never run it again. It fails with code `in_doubt`, which the model reads.
    AtMostOnce,
    /// Ask the user whether to run it again.
    Confirm,
}

/// Decision of a resumed turn about a call whose start was recorded and whose end was not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InDoubtDecision {
    /// It had ended, and the tool returned its outcome.
    Done,
    /// It runs again, or continues, with the same idempotency key.
    Retry,
    /// The user is asked whether to run it again.
    Ask,
    /// It fails with code `in_doubt`, which the model reads.
    Fail,
}

/// Why a tool call failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolErrorCode {
    /// The arguments are not JSON, or do not fit the schema.
    InvalidArgs,
    /// No tool has that name.
    UnknownTool,
    /// User code in the Python session raised.
    PythonException,
    /// The tool ran and failed.
    Failed,
    /// The tool ran longer than its timeout.
    Timeout,
    /// The turn was cancelled while the tool ran.
    Cancelled,
    /// The gate or the user denied the call.
    Denied,
    /// The call was not run: a limit was reached, the turn was cancelled first, or it was ignored.
    NotRun,
    /// The call was started, and how it ended is not known.
    InDoubt,
    /// The runtime itself failed.
    Internal,
}

impl ToolErrorCode {
    /// Returns the name of the code in results and events.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InvalidArgs => "invalid_args",
            Self::UnknownTool => "unknown_tool",
            Self::PythonException => "python_exception",
            Self::Failed => "failed",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
            Self::Denied => "denied",
            Self::NotRun => "not_run",
            Self::InDoubt => "in_doubt",
            Self::Internal => "internal",
        }
    }
}

impl fmt::Display for ToolErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How a tool call ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum ToolOutcome {
    /// It succeeded.
    Ok(ToolOutput),
    /// It failed, or was not run.
    Error(ToolError),
}

impl ToolOutcome {
    /// Builds a successful text outcome.
    pub fn text(text: impl Into<String>) -> Self {
        Self::json(Value::String(text.into()))
    }

    /// Builds a successful JSON outcome.
    #[must_use]
    pub fn json(value: Value) -> Self {
        Self::Ok(ToolOutput {
            value,
            ..ToolOutput::default()
        })
    }

    /// Builds a failed outcome without details.
    pub fn error(code: ToolErrorCode, message: impl Into<String>) -> Self {
        Self::Error(ToolError {
            code,
            message: message.into(),
            details: Value::Null,
            used: None,
        })
    }

    /// Returns whether the call succeeded.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        matches!(self, Self::Ok(_))
    }

    /// Returns the usage of the turns that the call started.
    #[must_use]
    pub fn used(&self) -> Option<Spend> {
        match self {
            Self::Ok(output) => output.used.as_deref().copied(),
            Self::Error(error) => error.used.as_deref().copied(),
        }
    }

    /// Returns the error's code, if it failed.
    #[must_use]
    pub fn code(&self) -> Option<ToolErrorCode> {
        match self {
            Self::Ok(_) => None,
            Self::Error(error) => Some(error.code),
        }
    }
}

/// The output of a tool call.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ToolOutput {
    /// The result: a string is text, anything else is JSON. Bounded by the tool.
    pub value: Value,
    /// Images, files and further texts, in the order in which they follow `value`; [`Self::within_bounds`]. `media`
    /// in records, which held nothing else at first.
    #[serde(default, skip_serializing_if = "Vec::is_empty", rename = "media")]
    pub blocks: Vec<ContentBlock>,
    /// `true` if the middle of the output was left out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// The path of the file that has the whole output, which the model can read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spill: Option<String>,
    /// The files that the call changed, at most [`Self::CHANGES_MAX`]; no model reads this.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<ChangedFile>,
    /// The session that the call started or asked, as a parent does with a child.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child: Option<SessionId>,
    /// The job that the call started and that continues after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<JobId>,
    /// Set if it holds text from outside, such as a web page, a server's reply or another repository: text that the
    /// user did not write and did not choose to trust. A tool that cannot know says nothing. Always set for tools of
    /// the kind [`ToolKind::Fetch`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub from_outside: bool,
    /// Use by the turns that the call started; it counts against the limits of the turn that made the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<Box<Spend>>,
    /// The session's to-do list from now on, if the call changed it; at most [`TodoItem::COUNT_MAX`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub todo: Option<Vec<TodoItem>>,
    /// Effects that become durable in the same transaction as the record of this output. Not part of the record.
    #[serde(skip)]
    pub effects: Box<Commit>,
}

impl ToolOutput {
    /// The bound on [`Self::changes`].
    pub const CHANGES_MAX: usize = 1000;

    /// Leaves out what no record can hold: changes and blocks beyond their bounds, media of more than
    /// [`Media::BYTES_MAX`] together, and a child's id that no session could have. The model reads of blocks and media
    /// what was left out.
    #[must_use]
    pub fn within_bounds(mut self) -> Self {
        self.changes.truncate(Self::CHANGES_MAX);
        if let Some(todo) = &mut self.todo {
            TodoItem::bound(todo);
        }
        self.bound_blocks();
        self.child = self
            .child
            .filter(|child| SessionId::parse(child.as_str()).is_ok());
        self
    }

    fn bound_blocks(&mut self) {
        let beyond = self.blocks.len().saturating_sub(ContentBlock::COUNT_MAX);
        if beyond > 0 {
            self.blocks.truncate(ContentBlock::COUNT_MAX);
            let note = format!("[{beyond} more blocks left out]");
            self.blocks.push(ContentBlock::text(note));
        }
        let mut room = Media::BYTES_MAX;
        for block in &mut self.blocks {
            let ContentBlock::Media(media) = block else {
                continue;
            };
            match room.checked_sub(media.size().unwrap_or_default()) {
                Some(left) => room = left,
                None => {
                    let note = format!("[{} left out: too large]", media.described());
                    *block = ContentBlock::text(note);
                }
            }
        }
    }
}

/// How far a running call is.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ToolProgress {
    /// How much is done, in the unit of `total`; a fraction if there is no total.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done: Option<f64>,
    /// How much there is to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<f64>,
    /// Current activity, at most [`Self::MESSAGE_BYTES_MAX`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl ToolProgress {
    /// The bound on [`Self::message`], in bytes; the rest is cut off.
    pub const MESSAGE_BYTES_MAX: usize = 1024;

    /// Describes the current work of the call.
    pub fn message(message: impl Into<String>) -> Self {
        Self {
            message: Some(message.into()),
            ..Self::default()
        }
    }

    /// Leaves out numbers that JSON cannot hold, and cuts the message.
    #[must_use]
    pub fn within_bounds(mut self) -> Self {
        self.done = self.done.filter(|it| it.is_finite());
        self.total = self.total.filter(|it| it.is_finite());
        if let Some(message) = &mut self.message {
            message.truncate(message.floor_char_boundary(Self::MESSAGE_BYTES_MAX));
        }
        self
    }
}

/// Rest of a turn's limits for a turn that one of its calls starts; `None` is unlimited. Carved out of what is left
/// to the parent beyond its own next request and its last one, in equal parts for the calls that run at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RemainingLimits {
    /// Model requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<u32>,
    /// Tool calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<u32>,
    /// Tokens, prompt and generated together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Money.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        rename = "cost_nanousd"
    )]
    pub cost: Option<NanoUsd>,
    /// Time.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        rename = "time_ms",
        with = "optional_duration_ms"
    )]
    pub time: Option<Duration>,
}

impl RemainingLimits {
    /// Returns the limits, none of them beyond this allowance. A turn has at least one step, so a caller looks at
    /// [`Self::is_spent`] first.
    #[must_use]
    pub fn applied_to(self, mut limits: Limits) -> Limits {
        fn least<T: Ord>(limit: Option<T>, left: Option<T>) -> Option<T> {
            match (limit, left) {
                (Some(limit), Some(left)) => Some(limit.min(left)),
                (limit, left) => limit.or(left),
            }
        }
        let steps = self.steps.unwrap_or(u32::MAX).max(1);
        limits.max_steps = limits.max_steps.min(steps);
        limits.max_tool_calls = least(limits.max_tool_calls, self.calls);
        limits.max_tokens_total = least(limits.max_tokens_total, self.tokens);
        limits.max_cost = least(limits.max_cost, self.cost);
        limits.turn_timeout = least(limits.turn_timeout, self.time);
        limits
    }

    /// Returns whether there is nothing left for any request.
    #[must_use]
    pub fn is_spent(&self) -> bool {
        self.steps == Some(0)
            || self.tokens == Some(0)
            || self.cost == Some(NanoUsd(0))
            || self.time == Some(Duration::ZERO)
    }
}

/// Use by the turns that a call started, including the turns that these started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Spend {
    /// Model requests.
    pub steps: u32,
    /// Tool calls.
    pub calls: u32,
    /// Tokens, prompt and generated together.
    pub tokens: u64,
    /// Money; absent if a price is not known.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        rename = "cost_nanousd"
    )]
    pub cost: Option<NanoUsd>,
}

impl Spend {
    /// Returns both together. The cost is that of what has a known price.
    #[must_use]
    pub fn plus(self, more: Self) -> Self {
        let cost = match (self.cost, more.cost) {
            (Some(one), Some(two)) => Some(NanoUsd(one.0.saturating_add(two.0))),
            (one, two) => one.or(two),
        };
        Self {
            steps: self.steps.saturating_add(more.steps),
            calls: self.calls.saturating_add(more.calls),
            tokens: self.tokens.saturating_add(more.tokens),
            cost,
        }
    }

    /// Returns whether nothing was used.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// An item of a session's to-do list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TodoItem {
    /// Task to do, at most [`Self::TEXT_BYTES_MAX`].
    pub text: String,
    /// How far it is.
    #[serde(default)]
    pub status: TodoStatus,
}

impl TodoItem {
    /// Items of a list.
    pub const COUNT_MAX: usize = 64;
    /// Bytes of one item.
    pub const TEXT_BYTES_MAX: usize = 512;

    /// Leaves out items beyond the bound, and cuts long ones.
    fn bound(items: &mut Vec<Self>) {
        items.truncate(Self::COUNT_MAX);
        for item in items {
            let end = item.text.floor_char_boundary(Self::TEXT_BYTES_MAX);
            item.text.truncate(end);
        }
    }
}

/// How far an item of a to-do list is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TodoStatus {
    /// It is still to be done.
    #[default]
    Pending,
    /// It is being worked on.
    InProgress,
    /// It is done.
    Done,
}

/// A file that a call changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedFile {
    /// The file, relative to the working directory or absolute.
    pub path: String,
    /// Version before the call.
    pub before: FileVersion,
    /// Version after it.
    pub after: FileVersion,
}

/// Content of a file at some time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileVersion {
    /// It did not exist.
    Absent,
    /// The SHA-256 of its content, in hex.
    Sha256(String),
    /// It existed, but was too large or could not be read.
    Unknown,
}

/// The error of a tool call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolError {
    /// The kind of failure.
    pub code: ToolErrorCode,
    /// Message for the model and the user.
    pub message: String,
    /// Further details: an object, or null. Includes the output that was produced before a timeout.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub details: Value,
    /// Use by the turns that the call started; as [`ToolOutput::used`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<Box<Spend>>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_spec_from_before_kinds_is_read_and_written_as_it_was() {
        let old = r#"{"name":"t","description":"","parameters":{"type":"object"},"effects":"writes","concurrency":"exclusive","recovery":"at_most_once"}"#;
        let spec: ToolSpec = serde_json::from_str(old).unwrap();
        let name = "t".to_owned();
        assert_eq!(
            spec,
            ToolSpec {
                name,
                concurrency: Concurrency::Exclusive,
                ..ToolSpec::default()
            }
        );
        assert_eq!(serde_json::to_string(&spec).unwrap(), old);
    }

    #[test]
    fn kind_hints_and_timeout_are_kept_and_a_kind_of_a_later_version_is_other() {
        let spec = ToolSpec {
            kind: ToolKind::Fetch,
            hints: ToolHints::new(false, true, true),
            timeout: Some(Duration::from_millis(1500)),
            ..ToolSpec::default()
        };
        let mut json = serde_json::to_value(&spec).unwrap();
        assert_eq!(
            (&json["kind"], &json["timeout_ms"]),
            (&json!("fetch"), &json!(1500))
        );
        let read: ToolSpec = serde_json::from_value(json.clone()).unwrap();
        assert_eq!(read, spec);
        json["kind"] = json!("teleport");
        let read: ToolSpec = serde_json::from_value(json).unwrap();
        assert_eq!(read.kind, ToolKind::Other);
    }

    #[test]
    fn an_output_without_marks_is_written_as_before_and_effects_never_are() {
        let plain = ToolOutcome::text("x");
        let json = r#"{"status":"ok","value":"x"}"#;
        assert_eq!(serde_json::to_string(&plain).unwrap(), json);
        let effects = Box::new(Commit::of(crate::MailId(3)));
        let output = ToolOutput {
            value: json!("x"),
            effects,
            ..ToolOutput::default()
        };
        let told = ToolOutcome::Ok(output);
        assert_eq!(serde_json::to_string(&told).unwrap(), json);
        assert_eq!(serde_json::from_str::<ToolOutcome>(json).unwrap(), plain);
    }

    #[test]
    fn the_marks_of_an_output_come_back() {
        let output = ToolOutput {
            value: json!(1),
            changes: vec![ChangedFile {
                path: "a".to_owned(),
                before: FileVersion::Absent,
                after: FileVersion::Sha256("00".to_owned()),
            }],
            child: Some(SessionId::new("s-child")),
            job: Some(JobId::new("j")),
            from_outside: true,
            ..ToolOutput::default()
        };
        let json = serde_json::to_value(&output).unwrap();
        let expected = json!({
            "value": 1,
            "changes": [{"path": "a", "before": "absent", "after": {"sha256": "00"}}],
            "child": "s-child",
            "job": "j",
            "from_outside": true,
        });
        assert_eq!(json, expected);
        assert_eq!(serde_json::from_value::<ToolOutput>(json).unwrap(), output);
    }

    #[test]
    fn what_no_record_can_hold_is_left_out() {
        let change = ChangedFile {
            path: "a".to_owned(),
            before: FileVersion::Unknown,
            after: FileVersion::Absent,
        };
        let output = ToolOutput {
            changes: vec![change; ToolOutput::CHANGES_MAX + 1],
            child: Some(SessionId::new("../x")),
            ..ToolOutput::default()
        };
        let bounded = output.within_bounds();
        assert_eq!(bounded.changes.len(), ToolOutput::CHANGES_MAX);
        assert_eq!(bounded.child, None);
    }

    #[test]
    fn an_output_holds_no_more_blocks_and_media_than_its_bounds() {
        let image = |bytes: usize| Media {
            kind: crate::MediaKind::Image,
            mime: "image/png".to_owned(),
            name: None,
            source: crate::MediaSource::Base64("A".repeat(bytes / 3 * 4)),
        };
        let large = image(Media::BYTES_MAX / 2 - 60);
        let output = ToolOutput {
            blocks: vec![large.clone().into(), large.into(), image(30).into()],
            ..ToolOutput::default()
        };
        let output = output.within_bounds();
        let kept = ContentBlock::media_of(&output.blocks);
        assert_eq!(kept.count(), 3);
        let output = ToolOutput {
            blocks: vec![image(Media::BYTES_MAX + 3).into(), image(30).into()],
            ..ToolOutput::default()
        };
        let [note, ContentBlock::Media(_)] = &output.within_bounds().blocks[..] else {
            panic!("the second is kept");
        };
        let text = "[image (image/png, 20971521 bytes) left out: too large]";
        assert_eq!(*note, ContentBlock::text(text));
        let many = vec![ContentBlock::text("a"); ContentBlock::COUNT_MAX + 5];
        let output = ToolOutput {
            blocks: many,
            ..ToolOutput::default()
        };
        let last = output.within_bounds().blocks.pop();
        assert_eq!(last, Some(ContentBlock::text("[5 more blocks left out]")));
    }

    #[test]
    fn blocks_are_written_so_that_media_are_read_as_ever() {
        let old = r#"{"value":"","media":[{"kind":"image","mime":"image/png","source":{"type":"base64","value":"QQ=="}}]}"#;
        let mut output: ToolOutput = serde_json::from_str(old).unwrap();
        assert_eq!(serde_json::to_string(&output).unwrap(), old);
        output.blocks.push(ContentBlock::text("more"));
        let json = serde_json::to_value(&output).unwrap();
        assert_eq!(json["media"][1], json!({ "text": "more" }));
        assert_eq!(serde_json::from_value::<ToolOutput>(json).unwrap(), output);
    }
}
