//! Titles, times and ends of a recorded session in words.

use super::Story;
use rondo_runtime::calendar;
use rondo_runtime::sanitize::cell;
use rondo_runtime::view::{StepView, TurnView};
use rondo_runtime::words::failed_call;
use rondo_types::units::{counted, dollars, tokens, took};
use rondo_types::{Question, Usage};

/// Replacement of a cell's result if its end is not recorded.
pub(super) const NO_END: &str = "[its end is not recorded]";

/// Returns a session's name for people. Its title may be from a file of anyone.
pub(super) fn title(story: &Story) -> String {
    match story.title.is_empty() {
        true => story.session.clone(),
        false => cell(&story.title),
    }
}

/// Says in a line what a turn took.
pub(super) fn of_turn(turn: &TurnView) -> String {
    let mut words = vec![
        calendar::utc_text(turn.began_ms),
        format!("profile {}", turn.profile),
        took(turn.took_ms),
    ];
    let is_told = turn.usage != Usage::default();
    words.extend(is_told.then(|| tokens(turn.usage)));
    words.extend(turn.cost_usd.map(dollars));
    words.join(", ")
}

/// Says in a line what a step took.
pub(super) fn of_step(step: &StepView) -> String {
    let mut words = vec![step.model.clone()];
    words.extend(step.replied_after_ms.map(took));
    words.extend(step.usage.map(tokens));
    words.extend(step.cost_usd.map(dollars));
    if step.requests > 1 {
        words.push(counted(step.requests, "request"));
    }
    words.join(", ")
}

/// Says how a turn ended, if the answer does not.
pub(super) fn ending(turn: &TurnView) -> Option<String> {
    let Some(ending) = &turn.ending else {
        return Some(match turn.waits_for.as_slice() {
            [] => "The turn was cut off.".to_owned(),
            questions => waiting(questions),
        });
    };
    let is_plain = ending.stop_reason == rondo_types::StopReason::Complete && !ending.degraded;
    let less = match ending.degraded {
        true => "; the answer is less than it could be",
        false => "",
    };
    (!is_plain).then(|| format!("The turn ended with `{}`{less}.", ending.stop_reason))
}

/// Describes the questions that a turn waits for, each by its name, which `rondo answer` takes.
fn waiting(questions: &[Question]) -> String {
    let names: Vec<String> = questions.iter().map(|it| format!("`{}`", it.id)).collect();
    format!("The turn waits for an answer to {}.", names.join(", "))
}

/// Says how a call ended, with the time that it took; `failure` is how it failed.
pub(super) fn of_result(failure: Option<&str>, took_ms: u64) -> String {
    match failure {
        None => format!("returned after {}", took(took_ms)),
        Some("failed") => format!("failed after {}", took(took_ms)),
        Some("not_run") => "was not run".to_owned(),
        Some(failure) => {
            format!("failed ({}) after {}", failed_call(failure), took(took_ms))
        }
    }
}
