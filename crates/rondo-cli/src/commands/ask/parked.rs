//! Messages about a turn that waits for answers.

use crate::error::CliError;
use crate::exit::Exit;
use rondo_core::clock::Clock;
use rondo_runtime::sanitize;
use rondo_types::units::{counted, rough};
use rondo_types::{Question, SessionId, TimeMs};
use std::fmt::Write as _;

/// Returns questions as a list: each with its name, what it asks and when it expires.
pub(crate) fn listed(questions: &[Question]) -> String {
    let mut list = String::new();
    for question in questions {
        let prompt = sanitize::plain(&question.prompt);
        let prompt = prompt.replace('\n', "\n    ");
        let expires = question
            .expires
            .map_or_else(String::new, |at| format!(" (expires in {})", left(at)));
        let _ = write!(list, "\n  {}{expires}\n    {prompt}", question.id);
    }
    list
}

/// Returns the error of a command that can do no more until a session's questions are answered.
pub(super) fn waits(session: &SessionId, questions: &[Question], is_queued: bool) -> CliError {
    let queued = match is_queued {
        true => ", and your message was queued until then",
        false => "",
    };
    let message = format!(
        "session `{session}` is waiting for {}{queued}",
        answers(questions)
    );
    CliError::new(Exit::Parked, format!("{message}:{}", listed(questions)))
        .hint(how_to_answer(session, questions))
}

/// Describes the questions that a turn waits for.
pub(crate) fn waiting(questions: &[Question]) -> String {
    format!("waits for {}:{}", answers(questions), listed(questions))
}

/// Returns how the questions are answered.
pub(crate) fn how_to_answer(session: &SessionId, questions: &[Question]) -> String {
    let question = match questions {
        [_] => String::new(),
        _ => " QUESTION".to_owned(),
    };
    format!(
        "`rondo answer {session}{question} y` allows it, `... n` denies it, and the turn continues"
    )
}

/// Returns how many answers are missing.
pub(crate) fn answers(questions: &[Question]) -> String {
    match questions.len() {
        1 => "an answer".to_owned(),
        count => counted(count, "answer"),
    }
}

/// Returns how much time is left.
fn left(until: TimeMs) -> String {
    rough(until.since(Clock::system().now()).as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rondo_types::{QuestionId, QuestionKind};

    #[test]
    fn a_question_is_listed_with_its_name_and_what_it_asks() {
        let question = Question {
            id: QuestionId("r00100100".to_owned()),
            call: None,
            child: None,
            kind: QuestionKind::Approval,
            prompt: "`exec` wants to run `touch`\n\u{1b}[2Jtouch a".to_owned(),
            hash: String::new(),
            expires: Some(TimeMs(Clock::system().now().0 + 3 * 86_400_000 + 60_000)),
            offers: Vec::new(),
            reasons: Vec::new(),
            subject: rondo_types::QuestionSubject::default(),
        };
        let expected =
            "\n  r00100100 (expires in 3 d)\n    `exec` wants to run `touch`\n    touch a";
        assert_eq!(listed(&[question]), expected);
    }
}
