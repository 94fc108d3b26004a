//! Arguments of a call of the tool.

use rondo_types::{NanoUsd, RemainingLimits};
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;

/// Bytes of a task.
pub(super) const TASK_BYTES_MAX: usize = 64 << 10;
/// Names of tools in a call.
const TOOLS_MAX: usize = 128;

/// The arguments of a call.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Task {
    /// Task to do.
    pub(super) task: String,
    /// The name of an agent file.
    #[serde(default)]
    pub(super) agent: Option<String>,
    /// The names of the only tools that the child gets.
    #[serde(default)]
    pub(super) tools: Option<Vec<String>>,
    #[serde(default)]
    budget: Budget,
}

/// Budget of the child, within what is left to its parent.
#[derive(Debug, Clone, Copy, PartialEq, Default, Deserialize)]
#[serde(default)]
struct Budget {
    steps: Option<u32>,
    tokens: Option<u64>,
    usd: Option<f64>,
    seconds: Option<f64>,
}

impl Task {
    /// Reads the arguments of a call, which fit [`schema`].
    ///
    /// # Errors
    /// When the arguments are invalid, with the reason for the model.
    pub(super) fn read(arguments: &Value) -> Result<Self, String> {
        let mut task = serde_json::from_value::<Self>(arguments.clone())
            .map_err(|err| format!("the arguments cannot be read: {err}"))?;
        task.agent = task.agent.filter(|it| !it.trim().is_empty());
        if task.task.trim().is_empty() {
            return Err("the task is empty".to_owned());
        }
        if task.task.len() > TASK_BYTES_MAX {
            return Err(format!("the task is longer than {TASK_BYTES_MAX} bytes"));
        }
        if task.tools.as_ref().is_some_and(|it| it.len() > TOOLS_MAX) {
            return Err(format!("more than {TOOLS_MAX} tools are named"));
        }
        let is_amount = |it: Option<f64>| it.is_none_or(|it| it.is_finite() && it >= 0.0);
        if !is_amount(task.budget.usd) || !is_amount(task.budget.seconds) {
            return Err("a budget is a number from 0 on".to_owned());
        }
        Ok(task)
    }

    /// Returns the child's part of an allowance.
    pub(super) fn within(&self, left: RemainingLimits) -> RemainingLimits {
        let Budget {
            steps,
            tokens,
            usd,
            seconds,
        } = self.budget;
        RemainingLimits {
            steps: least(left.steps, steps),
            calls: left.calls,
            tokens: least(left.tokens, tokens),
            cost: least(left.cost, usd.map(NanoUsd::from_usd)),
            time: least(
                left.time,
                seconds.and_then(|it| Duration::try_from_secs_f64(it).ok()),
            ),
        }
    }
}

fn least<T: Ord>(left: Option<T>, wanted: Option<T>) -> Option<T> {
    match (left, wanted) {
        (Some(left), Some(wanted)) => Some(left.min(wanted)),
        (left, wanted) => left.or(wanted),
    }
}

/// Returns the JSON Schema of the arguments.
pub(super) fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "task": {
                "type": "string",
                "description": "With all it needs to know: it does not see this conversation.",
            },
            "agent": {"type": "string", "description": "An agent's name."},
            "tools": {
                "type": "array",
                "items": {"type": "string"},
                "description": "The only ones of your tools that it gets.",
            },
            "budget": {
                "type": "object",
                "properties": {
                    "steps": {"type": "integer"},
                    "tokens": {"type": "integer"},
                    "usd": {"type": "number"},
                    "seconds": {"type": "number"},
                },
            },
        },
        "required": ["task"],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_narrows_what_is_left_and_widens_nothing() {
        let left = RemainingLimits {
            steps: Some(10),
            calls: Some(5),
            tokens: None,
            cost: Some(NanoUsd(1_000)),
            time: Some(Duration::from_secs(60)),
        };
        let within = |budget: Value| {
            let arguments = json!({"task": "t", "budget": budget});
            Task::read(&arguments).unwrap().within(left)
        };
        assert_eq!(within(json!({})), left);
        let wide = json!({"steps": 11, "usd": 1.0, "seconds": 61});
        assert_eq!(within(wide), left);
        let narrow = json!({"steps": 9, "tokens": 100, "usd": 0.0, "seconds": 0.5});
        let expected = RemainingLimits {
            steps: Some(9),
            calls: Some(5),
            tokens: Some(100),
            cost: Some(NanoUsd(0)),
            time: Some(Duration::from_millis(500)),
        };
        assert_eq!(within(narrow), expected);
    }

    #[test]
    fn a_task_is_bounded_and_says_something() {
        let read = |task: String| Task::read(&json!({"task": task})).is_ok();
        for (bytes, is_fine) in [
            (TASK_BYTES_MAX - 1, true),
            (TASK_BYTES_MAX, true),
            (TASK_BYTES_MAX + 1, false),
        ] {
            assert_eq!(read("x".repeat(bytes)), is_fine, "{bytes}");
        }
        assert!(!read(" \n".to_owned()));
        for bad in [json!({"usd": -1}), json!({"seconds": -0.5})] {
            assert!(Task::read(&json!({"task": "t", "budget": bad})).is_err());
        }
        let tools = |count: usize| json!({"task": "t", "tools": vec!["x"; count]});
        for (count, is_fine) in [
            (TOOLS_MAX - 1, true),
            (TOOLS_MAX, true),
            (TOOLS_MAX + 1, false),
        ] {
            assert_eq!(Task::read(&tools(count)).is_ok(), is_fine, "{count}");
        }
    }
}
