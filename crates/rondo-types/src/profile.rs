//! A profile: a named set of limits, dialect, tools and rendering.

use crate::time::duration_ms;
use crate::{Limits, Sampling};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// A named set of limits, dialect, tools and rendering: data, of which a caller overrides any field.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Its name.
    pub name: String,
    /// What it is for, in a sentence.
    pub description: String,
    /// The dialect its design speaks; absent means whatever the provider speaks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dialect: Option<String>,
    /// Whether replies are streamed.
    pub streaming: bool,
    /// The system prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// Whether the system prompt also states the environment (operating system, date, directory) and
    /// holds the instruction files of the user and of the repository.
    #[serde(default, skip_serializing_if = "is_off")]
    pub context: bool,
    /// Names of the tools on offer.
    pub tools: Vec<String>,
    /// Tools, or patterns of calls as `exec(git status *)`, that run without asking, since its design
    /// says so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed_tools: Vec<String>,
    /// Programs that are refused whatever else allows them, since its design says so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forbidden_programs: Vec<String>,
    /// How tool results are shown to the model.
    pub results: ResultRendering,
    /// What a reply without text and calls is.
    pub empty_reply: EmptyReply,
    /// What bounds a turn.
    pub limits: Limits,
    /// When repeated calls without progress are stopped.
    pub loop_guard: LoopGuard,
    /// When older messages make room for new ones.
    #[serde(default)]
    pub compaction: CompactionPolicy,
    /// How to sample.
    #[serde(default)]
    pub sampling: Sampling,
    /// What the answer says when the turn stopped early.
    pub texts: StopTexts,
}

/// How tool results are shown to the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResultRendering {
    /// `{"ok":true,"result":..}` or `{"ok":false,"error":{code,message,details}}`, with the four
    /// codes of the `python` design.
    Envelope,
    /// The output as it is; an error as one line of text.
    Plain,
}

/// What a reply without text and calls is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EmptyReply {
    /// Unusable: it spends one of [`Limits::invalid_retries`].
    Invalid,
    /// A complete, empty answer.
    Complete,
}

/// When the same call with the same result, over and over, is stopped.
///
/// Each number counts results that were already known; 0 switches that measure off. A call with
/// new arguments, or with a new result, is progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoopGuard {
    /// After so many, the model is told.
    pub nudge_after: u32,
    /// After so many, the tool is no longer offered in this turn.
    pub withhold_after: u32,
    /// After so many, the turn is finalised.
    pub stop_after: u32,
}

/// When older messages make room for new ones.
///
/// Shares are in percent of the *room*: the model's context less what its reply may take. Where the
/// context is not known, the provider's refusal of a request that was too long tells of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CompactionPolicy {
    /// The share of the room that a request may fill before older messages are summed up; 0 means
    /// never, also not when a request was refused for its length.
    pub at_percent: u32,
    /// The share of the room that is left to the latest messages then.
    pub keep_percent: u32,
    /// Generated tokens of a summary at most; 0 means that older messages are left out without one.
    pub summary_tokens: u32,
    /// How long a summary may take; never more than half of what is left of the turn.
    #[serde(rename = "timeout_ms", with = "duration_ms")]
    pub timeout: Duration,
    /// Messages of the past that a turn begins with at most; older ones are left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_messages: Option<u32>,
    /// The turn sums up all that was said, its own message included, and does nothing else.
    #[serde(skip_serializing_if = "is_off")]
    pub only: bool,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands fields over by reference"
)]
fn is_off(switch: &bool) -> bool {
    !switch
}

impl Default for CompactionPolicy {
    fn default() -> Self {
        Self {
            at_percent: 80,
            keep_percent: 40,
            summary_tokens: 4096,
            timeout: Duration::from_secs(90),
            max_messages: None,
            only: false,
        }
    }
}

/// What the answer says when the turn stopped early. `{limit}` names what ran out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StopTexts {
    /// First line of an answer built by the runtime.
    pub stopped: String,
    /// Heads the list of findings.
    pub findings: String,
    /// The corrective user message after an unusable reply; `{problem}` says what was wrong.
    pub corrective: String,
    /// The user message of the last, tool-free request; `{limit}` names what ran out.
    pub finalise: String,
    /// What `{limit}` reads for a stop reason, where the design has words of its own; keys are
    /// [`StopReason::as_str`](crate::StopReason::as_str).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<String, String>,
}
