//! The tool `search_memory`.

use super::{SEARCH_MEMORY, failed};
use crate::memories::Memories;
use crate::search::RESULTS_MAX;
use crate::shown::as_data;
use async_trait::async_trait;
use rondo_core::ports::{Tool, ToolInvocation};
use rondo_types::{ToolErrorCode, ToolKind, ToolOutcome, ToolOutput, ToolSpec};
use serde::Deserialize;
use serde_json::json;
use std::fmt::Write as _;

/// How many memories a call returns that does not say.
const LIMIT: usize = 5;

/// Searches memories: `search_memory {query, limit?}`.
///
/// The result is text: each memory in an element of its own, with where it came from. It counts as text from outside if
/// one of the memories does.
#[derive(Debug, Clone)]
pub struct SearchMemory {
    memories: Memories,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Args {
    query: String,
    /// Models write `5.0` too.
    limit: Option<f64>,
}

impl SearchMemory {
    /// Builds the tool over memories.
    #[must_use]
    pub fn new(memories: Memories) -> Self {
        Self { memories }
    }
}

#[async_trait]
impl Tool for SearchMemory {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: SEARCH_MEMORY.to_owned(),
            description: "Searches memories of earlier sessions. Try it before you ask the user."
                .to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "query": {"type": "string"},
                    "limit": {"type": "number", "description": format!("At most {RESULTS_MAX}; default {LIMIT}.")}
                },
                "required": ["query"]
            }),
            ..ToolSpec::read_only(ToolKind::Search)
        }
    }

    async fn call(&self, invocation: ToolInvocation) -> ToolOutcome {
        let args: Args = match serde_json::from_value(invocation.arguments) {
            Ok(args) => args,
            Err(err) => return ToolOutcome::error(ToolErrorCode::InvalidArgs, err.to_string()),
        };
        let found = tokio::select! {
            found = self.memories.search(&args.query, limit(args.limit)) => found,
            () = invocation.cancel.cancelled() => {
                return ToolOutcome::error(ToolErrorCode::Cancelled, "the search was ended");
            }
        };
        let found = match found {
            Ok(found) => found,
            Err(err) => return failed(&err),
        };
        let memories: Vec<_> = found.hits.iter().map(|hit| &hit.memory).collect();
        let mut text = as_data(&memories);
        for note in &found.notes {
            let _ = write!(text, "\n[{note}]");
        }
        ToolOutcome::Ok(ToolOutput {
            value: text.into(),
            from_outside: memories.iter().any(|it| it.origin.from_outside),
            ..ToolOutput::default()
        })
    }
}

/// A number that is none means the default, as do zero and less: small models fill in every argument.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is between 1 and the bound"
)]
fn limit(asked: Option<f64>) -> usize {
    match asked {
        Some(asked) if asked >= 1.0 => asked.min(RESULTS_MAX as f64) as usize,
        _ => LIMIT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_held_within_its_bounds() {
        let max = RESULTS_MAX as f64;
        let cases = [
            (None, LIMIT),
            (Some(0.0), LIMIT),
            (Some(-3.0), LIMIT),
            (Some(f64::NAN), LIMIT),
            (Some(1.0), 1),
            (Some(2.9), 2),
            (Some(max - 1.0), RESULTS_MAX - 1),
            (Some(max), RESULTS_MAX),
            (Some(max + 1.0), RESULTS_MAX),
            (Some(f64::INFINITY), RESULTS_MAX),
        ];
        for (asked, expected) in cases {
            assert_eq!(limit(asked), expected, "{asked:?}");
        }
    }
}
