//! A profile: a named set of limits, dialect, tools and rendering.

use crate::time::duration_ms;
use crate::{Limits, Sampling};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// A named set of limits, dialect, tools and rendering. A caller may override any field.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// The name that selects the profile.
    pub name: String,
    /// Purpose of the profile, in one sentence.
    pub description: String,
    /// The wire dialect to use; absent means the provider's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dialect: Option<String>,
    /// Asks for streamed replies.
    pub streaming: bool,
    /// The system prompt, if the profile has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// Adds the environment (operating system, date, directory) to the system prompt,
    /// together with the instruction files of the user and of the repository.
    #[serde(default, skip_serializing_if = "is_off")]
    pub context: bool,
    /// Shows the model, before its first step, the files of the working directory and what a search for the
    /// question's words finds in them; after a search by the model that finds nothing, also which of its words do
    /// occur. For small models.
    #[serde(default, skip_serializing_if = "is_off")]
    pub look_first: bool,
    /// Adds the context of the user's terminal at that moment to each question: the directory, the operating
    /// system, the shell, the state of git, the latest commands of the user and the text on the screen.
    #[serde(default, skip_serializing_if = "is_off")]
    pub terminal_context: bool,
    /// Names of the tools on offer.
    pub tools: Vec<String>,
    /// Limits the tool `exec` to a command and nothing else.
    #[serde(default, skip_serializing_if = "is_off")]
    pub exec_command_only: bool,
    /// Tools, or patterns of calls such as `exec(git status *)`, that run without approval.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed_tools: Vec<String>,
    /// Names of rule sets that restrict calls; a layer of settings only adds to them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rule_sets: Vec<String>,
    /// Programs that may not run, even when another rule allows them; a layer of settings only adds to them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forbidden_programs: Vec<String>,
    /// How tool results are rendered for the model.
    pub results: ResultRendering,
    /// How a reply without text and calls is treated.
    pub empty_reply: EmptyReply,
    /// The limits of a turn.
    pub limits: Limits,
    /// When repeated calls without progress are stopped.
    pub loop_guard: LoopGuard,
    /// When older messages are summarized, shortened or dropped to make room for new ones.
    #[serde(default)]
    pub compaction: CompactionPolicy,
    /// Sampling parameters of the profile's requests.
    #[serde(default)]
    pub sampling: Sampling,
    /// The texts for corrections and early stops.
    pub texts: StopTexts,
}

/// How tool results are rendered for the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResultRendering {
    /// `{"ok":true,"result":..}` or `{"ok":false,"error":{code,message,details}}`, with the four
    /// error codes of the `python` profile.
    Envelope,
    /// The output unchanged; an error as one line of text.
    Plain,
}

/// How a reply without text and calls is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EmptyReply {
    /// As unusable: a corrective request follows, within [`Limits::invalid_retries`].
    Invalid,
    /// As a complete answer with no text.
    Complete,
}

/// When a call that is repeated with the same result is stopped.
///
/// Each threshold counts the repetitions of one call with one result; 0 disables it. A call with
/// new arguments or with a new result is progress and resets the counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoopGuard {
    /// Repetitions after which a message asks the model to stop repeating.
    pub nudge_after: u32,
    /// Repetitions after which the tool is no longer offered, until there is progress again.
    pub withhold_after: u32,
    /// Repetitions after which the turn is stopped.
    pub stop_after: u32,
}

/// When older messages are summarized, shortened or dropped to make room for new ones.
///
/// Shares are in percent of the *room*: the model's context minus what its reply may take. When the
/// context size is not known, it is estimated after the provider rejects a request as too long.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CompactionPolicy {
    /// The share of the room that a request may fill before older messages are summarized. 0
    /// disables this, even after a request was rejected as too long.
    pub at_percent: u32,
    /// The share of the room that the latest messages keep when older ones are summarized.
    pub keep_percent: u32,
    /// The bound on generated tokens of a summary; 0 drops older messages without a summary.
    pub summary_tokens: u32,
    /// How long a summary may take; never more than half of the time left in the turn.
    #[serde(rename = "timeout_ms", with = "duration_ms")]
    pub timeout: Duration,
    /// The most messages of the history that a turn starts with; older ones are left out. Absent
    /// means all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_messages: Option<u32>,
    /// How many messages stay when there are more than `max_messages`. Fewer than that drop older ones in blocks, so
    /// that the beginning of requests stays equal for several turns and prompt caches live. If it is set, a single
    /// exchange that is longer keeps its question and its latest steps. Absent means `max_messages`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_messages: Option<u32>,
    /// Set if the turn only summarizes the conversation, its own message included.
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
            keep_messages: None,
            only: false,
        }
    }
}

/// Texts for corrections and early stops. `{limit}` stands for the limit that was reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StopTexts {
    /// The first line of an answer that the runtime builds.
    pub stopped: String,
    /// The heading of the list of findings.
    pub findings: String,
    /// The corrective user message after an unusable reply; `{problem}` stands for what was wrong.
    pub corrective: String,
    /// The user message of the last request, which has no tools.
    pub finalise: String,
    /// Replacements for the default text of `{limit}`, by stop reason
    /// ([`StopReason::as_str`](crate::StopReason::as_str)).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<String, String>,
}
