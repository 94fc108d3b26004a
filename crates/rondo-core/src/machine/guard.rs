//! Detects calls that are repeated without progress.

use rondo_types::{LoopGuard, ToolError, ToolOutcome, ToolOutput};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Notices calls that are repeated without progress.
///
/// Progress is a call, or a result of it, that this turn has not seen. Only the same call with the
/// same result counts against the model, and any progress starts the count again: judging by
/// repetition alone stops people's polling loops.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Guard {
    /// Fingerprints of call and result, with how often each came without progress since.
    seen: BTreeMap<u64, u32>,
    /// Set if one of them came again since. State that was stored without this may have such.
    #[serde(default = "yes")]
    has_repeated: bool,
    withheld: BTreeSet<String>,
    pending: Measure,
}

/// Measure against the latest repetition, mildest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Measure {
    #[default]
    None,
    Nudge,
    Withhold,
    Stop,
}

impl Guard {
    /// Remembers one result. One that is known counts, unless its tool `polls`.
    pub(super) fn note(
        &mut self,
        limits: LoopGuard,
        tool: &str,
        polls: bool,
        arguments: &str,
        outcome: &ToolOutcome,
    ) {
        let print = fingerprint(tool, arguments, outcome);
        if !self.seen.contains_key(&print) {
            if std::mem::take(&mut self.has_repeated) {
                self.seen.values_mut().for_each(|count| *count = 0);
            }
            self.withheld.clear();
            self.seen.insert(print, 0);
            return;
        }
        if polls {
            return;
        }
        let count = self.seen.entry(print).or_default();
        *count += 1;
        self.has_repeated = true;
        let reached = |threshold: u32| threshold > 0 && *count >= threshold;
        let measure = if reached(limits.stop_after) {
            Measure::Stop
        } else if reached(limits.withhold_after) {
            self.withheld.insert(tool.to_owned());
            Measure::Withhold
        } else if reached(limits.nudge_after) {
            Measure::Nudge
        } else {
            Measure::None
        };
        self.pending = self.pending.max(measure);
    }

    /// Remembers that the model called a tool which is no longer offered.
    pub(super) fn insist(&mut self) {
        self.pending = Measure::Stop;
    }

    /// Takes the strongest measure since the last time.
    pub(super) fn take(&mut self) -> Measure {
        std::mem::take(&mut self.pending)
    }

    /// Returns whether a tool is no longer offered.
    pub(super) fn withholds(&self, tool: &str) -> bool {
        self.withheld.contains(tool)
    }

    /// Returns whether any tool is no longer offered.
    pub(super) fn withholds_any(&self) -> bool {
        !self.withheld.is_empty()
    }
}

fn yes() -> bool {
    true
}

/// Returns the part of an outcome that the model reads: the rest is not progress.
fn read_of(outcome: &ToolOutcome) -> ToolOutcome {
    match outcome {
        ToolOutcome::Ok(output) => ToolOutcome::Ok(ToolOutput {
            changes: Vec::new(),
            child: None,
            job: None,
            from_outside: false,
            used: None,
            todo: None,
            ..output.clone()
        }),
        ToolOutcome::Error(error) => ToolOutcome::Error(ToolError {
            used: None,
            ..error.clone()
        }),
    }
}

/// FNV-1a: stable between versions and machines, unlike the standard library's hasher, since the
/// machine's state is stored.
fn fingerprint(tool: &str, arguments: &str, outcome: &ToolOutcome) -> u64 {
    let outcome = serde_json::to_string(&read_of(outcome)).unwrap_or_default();
    [tool, "\0", arguments, "\0", &outcome]
        .iter()
        .flat_map(|piece| piece.bytes())
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        })
}

/// The bound on the question that a nudge repeats, in characters.
const QUESTION_CHARS_MAX: usize = 500;

/// The text that the model reads at [`Measure::Nudge`] and [`Measure::Withhold`]. Small models lose the question under the results
/// of their calls, so it is said again.
pub(super) fn nudge_text(question: &str) -> String {
    let question: String = question.trim().chars().take(QUESTION_CHARS_MAX).collect();
    format!(
        "You made that call before, and its result is the same: do not make it again. With the \
         results above, answer now: {question}"
    )
}
