//! The thinking settings of each model: none, a budget, or an effort.

use rondo_types::Effort;
use serde::Deserialize;

/// Models before thinking.
const UNTHINKING: [&str; 4] = ["claude-3-", "claude-3.", "claude-2", "claude-instant"];

/// Models whose thinking is a number of tokens; later ones decide themselves, by an effort.
const BUDGETED: [&str; 9] = [
    "3-7-",
    "3.7",
    "sonnet-4-0",
    "sonnet-4-2",
    "opus-4-0",
    "opus-4-1",
    "opus-4-2",
    "-4-5",
    "-4.5",
];

/// The least budget that the provider takes.
const BUDGET_MIN: u32 = 1024;

/// How a model is told to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Thinking {
    /// Not at all.
    Off,
    /// With so many tokens, which are part of the output.
    Budget(u32),
    /// As much as it likes, by an effort.
    Adaptive(Effort),
}

/// Suffix of the types of blocks that hold thinking: `thinking` and `redacted_thinking`.
const KIND_SUFFIX: &str = "thinking";

#[derive(Deserialize)]
struct Block {
    #[serde(rename = "type")]
    kind: String,
}

/// Returns whether a block holds thinking, which is sealed for the model that thought it.
pub(super) fn is_thinking(block: &str) -> bool {
    let block = serde_json::from_str::<Block>(block);
    block.is_ok_and(|block| block.kind.ends_with(KIND_SUFFIX))
}

/// Returns how `model` thinks with an effort.
pub(super) fn of_model(model: &str, effort: Effort) -> Thinking {
    let is_in = |list: &[&str]| list.iter().any(|name| model.contains(name));
    if is_in(&BUDGETED) {
        Thinking::Budget(tokens(effort))
    } else if is_in(&UNTHINKING) {
        Thinking::Off
    } else {
        Thinking::Adaptive(effort)
    }
}

impl Thinking {
    /// Returns the number to add to the output bound that leaves room for an answer.
    pub(super) fn room(self) -> u32 {
        match self {
            Self::Off => 0,
            Self::Budget(tokens) => tokens,
            Self::Adaptive(effort) => tokens(effort),
        }
    }

    /// Returns thinking that leaves half of a given output bound to the answer.
    pub(super) fn within(self, max: u32) -> Self {
        match self {
            Self::Budget(tokens) if tokens >= max => {
                let half = max / 2;
                if half < BUDGET_MIN {
                    Self::Off
                } else {
                    Self::Budget(half)
                }
            }
            other => other,
        }
    }
}

fn tokens(effort: Effort) -> u32 {
    match effort {
        Effort::Low => BUDGET_MIN,
        Effort::Medium => 8192,
        Effort::High => 16_384,
    }
}
