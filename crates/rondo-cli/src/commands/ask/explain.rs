//! Messages on standard error about the end of a turn.

use crate::error::CliError;
use crate::exit::{Exit, ExitFacts};
use crate::output::Output;
use crate::render::DeniedCall;
use rondo_runtime::spec::TurnSpec;
use rondo_runtime::view::{Failure, stopped_by};
use rondo_tui::call_line;
use rondo_types::{AskReason, Outcome, ResultEvent, StopReason};

/// Columns of a call that a hint names.
const CALL_COLUMNS_MAX: usize = 120;

/// Something that standard error says of how a turn ended.
#[derive(Debug)]
pub(crate) enum EndMessage {
    Error(CliError),
    Note(String),
    Hint(String),
}

impl EndMessage {
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
    circumstances: ExitFacts,
    denied: &[DeniedCall],
    spec: &TurnSpec,
) -> Vec<EndMessage> {
    let mut said = Vec::new();
    match &outcome.error {
        error
            if outcome.stop_reason == StopReason::Cancelled
                && (error.is_none() || outcome.answered) =>
        {
            said.push(EndMessage::Note("the turn was stopped".to_owned()));
        }
        _ if !outcome.answered => {
            let result = ResultEvent::from_outcome(outcome);
            let Failure { message, hint } = Failure::of(&result, Some(spec.asked(outcome)));
            let error = CliError::new(exit, message);
            said.push(EndMessage::Error(match hint {
                Some(hint) => error.hint(hint),
                None => error,
            }));
        }
        _ if outcome.degraded => said.push(EndMessage::Note(format!(
            "the answer is incomplete: {}",
            match outcome.stop_reason {
                StopReason::Complete => "it was cut short",
                reason => stopped_by(reason),
            }
        ))),
        _ => {}
    }
    if circumstances.journal_failed {
        said.push(EndMessage::Hint(
            "`rondo resume` continues the turn once the journal is writable; `--ephemeral` runs without a journal".to_owned(),
        ));
    }
    if let Some(call) = denied.first() {
        said.push(EndMessage::Hint(needed_approval(call, denied.len() - 1)));
    }
    said
}

fn needed_approval(call: &DeniedCall, more: usize) -> String {
    let more = match more {
        0 => String::new(),
        1 => " and another call".to_owned(),
        more => format!(" and {more} more calls"),
    };
    let line = call_line(&call.tool, &call.arguments, CALL_COLUMNS_MAX);
    let (what, way) = hint(&call.reasons);
    format!("`{line}`{more} {what} and there was no terminal to ask on; {way}")
}

/// The reasons for which it is not enough to allow a tool, the most urgent first.
const SETTLED_FIRST: [AskReason; 7] = [
    AskReason::UnreviewedFolder,
    AskReason::UncheckedFolder,
    AskReason::UnhiddenFiles,
    AskReason::OutsideSandbox,
    AskReason::OutsideText,
    AskReason::Rule,
    AskReason::ProtectedFile,
];

/// Returns the missing permission of a call that was asked about for these reasons, and a hint for the user.
fn hint(reasons: &[AskReason]) -> (&'static str, &'static str) {
    match SETTLED_FIRST.iter().find(|it| reasons.contains(it)) {
        Some(AskReason::UnreviewedFolder) => (
            "needed approval, since this folder must be reviewed first,",
            "`rondo doctor --review` shows what changed, and `rondo doctor --review --accept` accepts it",
        ),
        Some(AskReason::UncheckedFolder | AskReason::UnhiddenFiles) => (
            "needed approval, since the sandbox cannot check or hide everything below the working directories,",
            "`rondo doctor` names what it cannot check, `--approval park` lets you answer later with `rondo answer`, and `--yolo` allows everything",
        ),
        Some(AskReason::OutsideSandbox) => (
            "asked to run outside the sandbox, which always needs approval,",
            "`--approval park` lets you answer later with `rondo answer`",
        ),
        Some(AskReason::OutsideText) => (
            "needed approval, since the conversation contains text from outside,",
            "`--approval park` lets you answer later with `rondo answer`, and `--yolo` allows everything",
        ),
        Some(AskReason::Rule) => (
            "needed approval, since a rule asks about it,",
            "`--approval park` lets you answer later with `rondo answer`, and `rondo policy list` shows the rules",
        ),
        Some(AskReason::ProtectedFile) => (
            "needed approval, since the sandbox protects that file,",
            "`--approval park` lets you answer later with `rondo answer`",
        ),
        Some(AskReason::NotAllowed) | None => (
            "needed approval",
            "allow it with `--allowed-tools 'exec(COMMAND *)'` or `--allowed-tools TOOL`, or everything with `--yolo`",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rondo_types::CallId;
    use serde_json::json;

    fn said(reasons: &[AskReason]) -> String {
        let call = DeniedCall {
            id: CallId::new("c"),
            tool: "exec".to_owned(),
            // The words are those of a hint, and of the gate.
            arguments: json!({ "command": "echo text from outside was read", "outside_sandbox": true }),
            reasons: reasons.to_vec(),
        };
        let text = needed_approval(&call, 0);
        let (_, text) = text.split_once("` ").unwrap();
        text.to_owned()
    }

    #[test]
    fn the_hint_goes_by_the_reasons_and_not_by_the_words_of_the_call() {
        let allow = "needed approval and there was no terminal to ask on; allow it with `--allowed-tools 'exec(COMMAND *)'` or `--allowed-tools TOOL`, or everything with `--yolo`";
        assert_eq!(said(&[AskReason::NotAllowed]), allow);
        assert_eq!(said(&[]), allow);
        assert_eq!(
            said(&[AskReason::Rule]),
            "needed approval, since a rule asks about it, and there was no terminal to ask on; `--approval park` lets you answer later with `rondo answer`, and `rondo policy list` shows the rules"
        );
    }

    #[test]
    fn the_reason_that_is_to_be_settled_first_is_in_the_hint() {
        let first = [AskReason::OutsideSandbox, AskReason::NotAllowed];
        assert!(said(&first).starts_with("asked to run outside the sandbox, "));
        let first = [AskReason::OutsideText, AskReason::UnreviewedFolder];
        assert!(said(&first).contains("`rondo doctor --review --accept`"));
    }
}
