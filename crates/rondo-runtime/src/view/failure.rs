//! Why a turn has no answer, and what to do about it.

use crate::target::ModelTarget;
use crate::words;
use rondo_types::units::counted;
use rondo_types::{ErrorClass, ModelError, ResultEvent, StopReason};

/// How the errors of replies begin whose connection was lost.
const CUT_REPLIES: [&str; 2] = [
    "the response ended early",
    "a part of the response was lost",
];

/// Why a turn has no answer, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Description of the failure.
    pub message: String,
    /// Suggestion for the user.
    pub hint: Option<String>,
}

impl Failure {
    /// Explains the end of a turn without an answer. Without the model that was asked, hints that name its key or address
    /// are left out.
    #[must_use]
    pub fn of(result: &ResultEvent, target: Option<&ModelTarget>) -> Self {
        let (reason, work) = (stopped_by(result.stop_reason), work(result));
        let (message, hint) = match &result.error {
            Some(error) if result.stop_reason == StopReason::InvalidResponse => {
                let error = words::refused_answer(&error.to_string());
                let message = format!("there is no answer: {reason}: {error}{work}");
                (message, None)
            }
            Some(error) => (format!("{error}{work}"), hint(error, target)),
            None => {
                let flag = limit_flag(result.stop_reason);
                let hint = flag.map(|flag| format!("raise the limit with `{flag}`"));
                (format!("there is no answer: {reason}{work}"), hint)
            }
        };
        Self { message, hint }
    }
}

/// Describes the work of a turn without an answer; empty for one that has an answer, or made only one request.
fn work(result: &ResultEvent) -> String {
    if !result.findings.is_empty() || result.steps <= 1 {
        return String::new();
    }
    let steps = counted(result.steps, "step");
    match result.tool_calls {
        0 => format!(" ({steps}, no call was run)"),
        1 => format!(" ({steps}, 1 call, which failed)"),
        calls => format!(" ({steps}, {calls} calls, all of which failed)"),
    }
}

/// Returns why a turn stopped.
#[must_use]
pub fn stopped_by(reason: StopReason) -> &'static str {
    match reason {
        StopReason::Complete => "the model gave none",
        StopReason::MaxSteps => "the limit on steps was reached",
        StopReason::MaxToolCalls => "the limit on tool calls was reached",
        StopReason::MaxTokens => "the limit on tokens was reached",
        StopReason::MaxCost => "the limit on money was reached",
        StopReason::BudgetSpent => "a budget is spent",
        StopReason::StepTimeout => "a step took too long",
        StopReason::Deadline => "the deadline passed",
        StopReason::InvalidResponse => "the model's replies could not be used",
        StopReason::NoProgress => "the model went in circles",
        StopReason::Refused => "the model or its provider refused",
        StopReason::Intercepted => "an interceptor stopped the turn",
        StopReason::Cancelled => "the turn was stopped",
        StopReason::Error => "a request failed",
    }
}

/// Returns whether the connection was lost while the reply came: the server is there. The error holds only the words.
fn is_cut_reply(error: &ModelError) -> bool {
    let mut begun = CUT_REPLIES.iter();
    error.class == ErrorClass::Network && begun.any(|words| error.message.starts_with(words))
}

fn hint(error: &ModelError, target: Option<&ModelTarget>) -> Option<String> {
    Some(match (error.class, target) {
        _ if is_cut_reply(error) => {
            "the connection was lost in the middle of the reply; ask again".to_owned()
        }
        (ErrorClass::Quota, _) => "check the account's plan and billing at the provider".to_owned(),
        (ErrorClass::ContextTooLong, _) => {
            "ask with less text, or choose a model with a larger context".to_owned()
        }
        (ErrorClass::Auth, Some(target)) => {
            format!("check the key in `{}`", target.key_variables().first()?)
        }
        (ErrorClass::Network, Some(target)) => format!(
            "is a server listening at `{}`? `rondo doctor --probe -m {}` looks closer",
            target.shown_url(),
            target.full_name()
        ),
        (ErrorClass::NotFound, Some(target)) => format!(
            "check the model's name `{}` and the address `{}`",
            target.model,
            target.shown_url()
        ),
        (ErrorClass::Unsupported, Some(target)) => {
            let variable = target.provider.model_env.as_deref();
            let also = variable.map_or(String::new(), |name| format!(", or set `{name}`"));
            format!("choose a model that can, with `-m provider/model`{also}")
        }
        _ => return None,
    })
}

fn limit_flag(reason: StopReason) -> Option<&'static str> {
    match reason {
        StopReason::MaxSteps => Some("--max-steps"),
        StopReason::MaxToolCalls => Some("--max-tool-calls"),
        StopReason::MaxTokens => Some("--max-tokens-total"),
        StopReason::MaxCost => Some("--max-budget-usd"),
        StopReason::Deadline => Some("--deadline"),
        _ => None,
    }
}
