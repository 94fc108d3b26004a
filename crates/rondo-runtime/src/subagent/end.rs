//! End of a child's turn, as its parent reads it.

use super::relay::ChildSummary;
use rondo_types::{
    NanoUsd, Outcome, SessionId, Spend, StopReason, ToolError, ToolErrorCode, ToolOutcome,
    ToolOutput,
};
use serde_json::{Value, json};

/// Files that the model reads of.
const FILES_SHOWN_MAX: usize = 50;

/// Returns the outcome of the call that started a child whose turn is over. An answer is a success, also if a limit
/// ended the work early, which the result says; what has no answer of a model is a failure.
pub(super) fn outcome(child: &SessionId, outcome: &Outcome, seen: &ChildSummary) -> ToolOutcome {
    let used = outcome.used();
    match outcome.answered
        && outcome.error.is_none()
        && outcome.stop_reason != StopReason::Cancelled
    {
        true => ToolOutcome::Ok(ToolOutput {
            value: succeeded(child, outcome, seen, used),
            child: Some(child.clone()),
            from_outside: seen.from_outside,
            used: Some(Box::new(used)),
            ..ToolOutput::default()
        }),
        false => ToolOutcome::Error(failed(child, outcome, seen, used)),
    }
}

fn succeeded(child: &SessionId, outcome: &Outcome, seen: &ChildSummary, used: Spend) -> Value {
    let mut value = json!({
        "answer": outcome.text,
        "stop_reason": outcome.stop_reason.as_str(),
        "files_changed": files(seen),
        "spent": spent(used),
        "session": child.as_str(),
    });
    if let Some(fields) = value.as_object_mut() {
        if outcome.degraded {
            fields.insert("incomplete".to_owned(), Value::Bool(true));
        }
        if seen.denied > 0 {
            fields.insert("calls_denied".to_owned(), seen.denied.into());
        }
    }
    value
}

fn failed(child: &SessionId, outcome: &Outcome, seen: &ChildSummary, used: Spend) -> ToolError {
    let stop_reason = outcome.stop_reason;
    let why = match &outcome.error {
        Some(error) => format!("{stop_reason}: {}", error.message),
        None => stop_reason.to_string(),
    };
    let mut message = format!("the subagent ended without an answer ({why})");
    if !outcome.text.trim().is_empty() {
        message += &format!("\nWhat it left: {}", outcome.text.trim());
    }
    let files = files(seen);
    if !seen.files.is_empty() {
        message += &format!("\nFiles it changed: {files}");
    }
    message += &format!("\nSpent: {}", spent(used));
    let code = match stop_reason {
        StopReason::Cancelled => ToolErrorCode::Cancelled,
        _ => ToolErrorCode::Failed,
    };
    ToolError {
        code,
        message,
        details: json!({
            "stop_reason": stop_reason.as_str(),
            "partial": outcome.text,
            "files_changed": files,
            "spent": spent(used),
            "session": child.as_str(),
        }),
        used: Some(Box::new(used)),
    }
}

fn files(seen: &ChildSummary) -> Value {
    let shown = seen.files.iter().take(FILES_SHOWN_MAX).cloned();
    let mut shown: Vec<Value> = shown.map(Value::String).collect();
    let more = seen.files.len().saturating_sub(FILES_SHOWN_MAX);
    if more > 0 {
        shown.push(Value::String(format!("and {more} more")));
    }
    Value::Array(shown)
}

fn spent(used: Spend) -> Value {
    json!({
        "steps": used.steps,
        "tool_calls": used.calls,
        "tokens": used.tokens,
        "usd": used.cost.map(NanoUsd::usd),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rondo_types::{ErrorClass, ModelError, Usage};

    fn ended(stop_reason: StopReason, answered: bool) -> Outcome {
        let mut outcome = Outcome::failed(ModelError::new(ErrorClass::Server, "it broke"));
        outcome.error = None;
        outcome.degraded = stop_reason != StopReason::Complete;
        outcome.stop_reason = stop_reason;
        outcome.answered = answered;
        outcome.text = "so far".to_owned();
        outcome.steps = 2;
        outcome.usage = Usage {
            input: 5,
            output: 1,
            ..Usage::default()
        };
        outcome.delegated = Some(Spend {
            steps: 1,
            ..Spend::default()
        });
        outcome
    }

    fn end(it: &Outcome, seen: &ChildSummary) -> ToolOutcome {
        outcome(&SessionId::new("s.r00100100"), it, seen)
    }

    #[test]
    fn an_answer_is_a_success_and_says_whether_it_is_whole() {
        let seen = ChildSummary {
            files: vec!["a".to_owned()],
            from_outside: true,
            denied: 1,
        };
        let ToolOutcome::Ok(output) = end(&ended(StopReason::MaxSteps, true), &seen) else {
            panic!()
        };
        assert_eq!(
            output.value,
            json!({
                "answer": "so far", "stop_reason": "max_steps", "files_changed": ["a"],
                "spent": {"steps": 3, "tool_calls": 0, "tokens": 6, "usd": null},
                "session": "s.r00100100", "incomplete": true, "calls_denied": 1,
            })
        );
        assert!(output.from_outside);
        assert_eq!(output.used.unwrap().steps, 3);
        let whole = end(&ended(StopReason::Complete, true), &ChildSummary::default());
        let ToolOutcome::Ok(output) = whole else {
            panic!()
        };
        assert_eq!(output.value.get("incomplete"), None);
    }

    #[test]
    fn what_has_no_answer_is_a_failure_and_keeps_what_there_is() {
        let mut failed = ended(StopReason::Error, false);
        failed.error = Some(ModelError::new(ErrorClass::Auth, "no such key"));
        let seen = ChildSummary {
            files: vec!["a".to_owned()],
            ..ChildSummary::default()
        };
        let ToolOutcome::Error(error) = end(&failed, &seen) else {
            panic!()
        };
        assert_eq!(error.code, ToolErrorCode::Failed);
        for part in ["no such key", "so far", "[\"a\"]", "\"steps\":3"] {
            assert!(error.message.contains(part), "{}", error.message);
        }
        assert_eq!(error.used.unwrap().tokens, 6);
        // An error after an answer began is one all the same.
        failed.answered = true;
        assert!(!end(&failed, &seen).is_ok());
        let cancelled = end(
            &ended(StopReason::Cancelled, true),
            &ChildSummary::default(),
        );
        assert_eq!(cancelled.code(), Some(ToolErrorCode::Cancelled));
    }

    #[test]
    fn the_model_reads_of_a_bounded_number_of_files() {
        for (count, shown) in [(49, 49), (50, 50), (51, 51), (60, 51)] {
            let seen = ChildSummary {
                files: (0..count).map(|n| n.to_string()).collect(),
                ..ChildSummary::default()
            };
            assert_eq!(files(&seen).as_array().unwrap().len(), shown, "{count}");
        }
    }
}
