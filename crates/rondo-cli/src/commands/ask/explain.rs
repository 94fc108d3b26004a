//! What standard error says of how a turn ended.

use crate::error::CliError;
use crate::exit::{Circumstances, Exit};
use crate::output::Output;
use crate::render::{DeniedCall, tool_line};
use rondo_policy::OUTSIDE_SANDBOX;
use rondo_runtime::plan::TurnPlan;
use rondo_runtime::target::ModelTarget;
use rondo_types::{ErrorClass, ModelError, Outcome, StopReason};

/// Columns of a call that a hint names.
const CALL_COLUMNS_MAX: usize = 120;

/// Something that standard error says of how a turn ended.
#[derive(Debug)]
pub(crate) enum Said {
    Error(CliError),
    Note(String),
    Hint(String),
}

impl Said {
    /// Prints it.
    pub(crate) fn print(&self, output: &Output) {
        match self {
            Self::Error(error) => output.error(error),
            Self::Note(text) => output.note(text),
            Self::Hint(text) => output.hint(text),
        }
    }
}

/// Returns why there is no answer, or why it is less than it could be.
pub(crate) fn explain(
    outcome: &Outcome,
    exit: Exit,
    circumstances: Circumstances,
    denied: &[DeniedCall],
    plan: &TurnPlan,
) -> Vec<Said> {
    let mut said = Vec::new();
    match &outcome.error {
        Some(error) if !outcome.answered => {
            said.push(Said::Error(failure(error, exit, plan.asked(outcome))));
        }
        _ if outcome.stop_reason == StopReason::Cancelled => {
            said.push(Said::Note("the turn was stopped".to_owned()));
        }
        _ if !outcome.answered => {
            let error = CliError::new(
                exit,
                format_args!("there is no answer: {}", stopped_by(outcome.stop_reason)),
            );
            said.push(Said::Error(match limit_flag(outcome.stop_reason) {
                Some(flag) => error.hint(format!("raise the limit with `{flag}`")),
                None => error,
            }));
        }
        _ if outcome.degraded => said.push(Said::Note(format!(
            "the answer is incomplete: {}",
            match outcome.stop_reason {
                StopReason::Complete => "it was cut short",
                reason => stopped_by(reason),
            }
        ))),
        _ => {}
    }
    if circumstances.journal_failed {
        said.push(Said::Hint(
            "`rondo resume` carries the turn on once the journal can be written; `--ephemeral` does without one".to_owned(),
        ));
    }
    if let Some(call) = denied.first() {
        said.push(Said::Hint(needed_approval(call, denied.len() - 1)));
    }
    said
}

fn needed_approval(call: &DeniedCall, more: usize) -> String {
    let more = match more {
        0 => String::new(),
        1 => " and another call".to_owned(),
        more => format!(" and {more} more calls"),
    };
    if call.is_for_review {
        return format!(
            "`{}`{more} needed approval, since this folder must be reviewed first, and there was no terminal to ask on; `rondo doctor --review` shows what changed, and `rondo doctor --review --accept` accepts it",
            tool_line(&call.tool, &call.arguments, CALL_COLUMNS_MAX)
        );
    }
    if call.is_for_unchecked {
        return format!(
            "`{}`{more} needed approval, since the sandbox cannot check or hide everything below the working directories, and there was no terminal to ask on; `rondo doctor` names what it cannot check, `--approval park` lets you answer later with `rondo answer`, and `--yolo` allows everything",
            tool_line(&call.tool, &call.arguments, CALL_COLUMNS_MAX)
        );
    }
    if call.is_for_outside_text {
        return format!(
            "`{}`{more} needed approval, since text from outside was read before, and there was no terminal to ask on; `--approval park` lets you answer later with `rondo answer`, and `--yolo` allows everything",
            tool_line(&call.tool, &call.arguments, CALL_COLUMNS_MAX)
        );
    }
    if call.arguments.get(OUTSIDE_SANDBOX) == Some(&true.into()) {
        return format!(
            "`{}`{more} asked to run outside of the sandbox, which a person decides each time, and there was no terminal to ask on; `--approval park` lets you answer later with `rondo answer`",
            tool_line(&call.tool, &call.arguments, CALL_COLUMNS_MAX)
        );
    }
    format!(
        "`{}`{more} needed approval and there was no terminal to ask on; allow it with `--allowed-tools 'exec(COMMAND *)'` or `--allowed-tools TOOL`, or everything with `--yolo`",
        tool_line(&call.tool, &call.arguments, CALL_COLUMNS_MAX)
    )
}

fn failure(error: &ModelError, exit: Exit, target: &ModelTarget) -> CliError {
    let shown = CliError::new(exit, error);
    match error.class {
        ErrorClass::Auth => match target.key_variables().first() {
            Some(variable) => shown.hint(format!("check the key in `{variable}`")),
            None => shown,
        },
        ErrorClass::Network => shown.hint(format!(
            "is a server listening at `{}`? `rondo doctor --probe -m {}` looks closer",
            target.shown_url(),
            target.full_name()
        )),
        ErrorClass::NotFound => shown.hint(format!(
            "check the model's name `{}` and the address `{}`",
            target.model,
            target.shown_url()
        )),
        ErrorClass::Unsupported => {
            let variable = target.provider.model_env.as_deref();
            let also = variable.map_or(String::new(), |name| format!(", or set `{name}`"));
            shown.hint(format!(
                "choose a model that can, with `-m provider/model`{also}"
            ))
        }
        ErrorClass::Quota => shown.hint("check the account's plan and billing at the provider"),
        ErrorClass::ContextTooLong => {
            shown.hint("ask with less text, or choose a model with a larger context")
        }
        _ => shown,
    }
}

pub(crate) fn stopped_by(reason: StopReason) -> &'static str {
    match reason {
        StopReason::Complete => "the model gave none",
        StopReason::MaxSteps => "the limit on steps was reached",
        StopReason::MaxToolCalls => "the limit on tool calls was reached",
        StopReason::MaxTokens => "the limit on tokens was reached",
        StopReason::MaxCost => "the limit on money was reached",
        StopReason::BudgetSpent => "a budget is spent",
        StopReason::StepTimeout => "a step took too long",
        StopReason::Deadline => "the deadline came",
        StopReason::InvalidResponse => "the model's replies could not be used",
        StopReason::NoProgress => "the model went in circles",
        StopReason::Refused => "the model or its provider refused",
        StopReason::Intercepted => "an interceptor stopped the turn",
        StopReason::Cancelled => "the turn was stopped",
        StopReason::Error => "a request failed",
    }
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
