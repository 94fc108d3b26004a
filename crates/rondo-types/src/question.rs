//! The questions that a turn puts to a person, and their answers.

use crate::{AskReason, CallId, Grant, SessionId, TimeMs, TurnId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;

/// Names a question within its session: for one about a call, the call's id. A question that is asked again
/// keeps its name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct QuestionId(pub String);

impl QuestionId {
    /// Returns the name of the question about a call.
    #[must_use]
    pub fn of_call(call: &CallId) -> Self {
        Self(call.as_str().to_owned())
    }
}

/// Subject of a question besides its words, for frontends. It comes from the records of the turn and is not
/// stored with the question.
#[derive(Debug, Clone, PartialEq)]
pub struct QuestionSubject {
    /// The session that asks.
    pub session: SessionId,
    /// The turn that asks.
    pub turn: TurnId,
    /// The step that asks, from 1; 0 before the first.
    pub step: u32,
    /// The place of the record that holds the question, from 1; 0 if none does.
    pub record: u64,
    /// The tool of the call; empty if the question is about no call.
    pub tool: String,
    /// The arguments of the call; null if it is about none.
    pub arguments: Value,
}

impl Default for QuestionSubject {
    fn default() -> Self {
        Self {
            session: SessionId::new(""),
            turn: TurnId::new(""),
            step: 0,
            record: 0,
            tool: String::new(),
            arguments: Value::Null,
        }
    }
}

impl Question {
    /// Returns the question as a turn asks it whose call started the session that asks: under a name of its own there,
    /// and with the same hash.
    #[must_use]
    pub fn of_child(self, child: &SessionId, call: &CallId) -> Self {
        Self {
            id: QuestionId(format!("{child}:{}", self.id)),
            call: Some(call.clone()),
            child: Some(child.clone()),
            ..self
        }
    }
}

impl fmt::Display for QuestionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Question that a turn asks a person. Two questions are equal if they would be stored equally.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Question {
    /// Id of the question.
    pub id: QuestionId,
    /// The call that it is about, if it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
    /// The session that asks, if that is not the turn's own: one that the call started, and that waits for the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child: Option<SessionId>,
    /// Kind of answer that it takes.
    pub kind: QuestionKind,
    /// Words of the question, for a person.
    pub prompt: String,
    /// SHA-256 of everything that an answer agrees to, in hex. An answer names it, so that it does not count for a
    /// question that has changed since it was read.
    pub hash: String,
    /// When it expires and counts as denied; `None` never expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<TimeMs>,
    /// Grants that a yes can also give, the narrowest first; see [`Answer::remember`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub offers: Vec<Grant>,
    /// Why it is asked, if it is about a call. It is not part of the hash.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<AskReason>,
    /// Subject of the question.
    #[serde(skip)]
    pub subject: QuestionSubject,
}

impl PartialEq for Question {
    fn eq(&self, other: &Self) -> bool {
        let Self {
            id,
            call,
            child,
            kind,
            prompt,
            hash,
            expires,
            offers,
            reasons,
            subject: _,
        } = self;
        (
            id, call, child, kind, prompt, hash, expires, offers, reasons,
        ) == (
            &other.id,
            &other.call,
            &other.child,
            &other.kind,
            &other.prompt,
            &other.hash,
            &other.expires,
            &other.offers,
            &other.reasons,
        )
    }
}

impl Question {
    /// Returns a question that never expires and offers nothing. A question about a call, or of a running one, names the
    /// call.
    #[must_use]
    pub fn new(
        (id, kind): (QuestionId, QuestionKind),
        call: Option<CallId>,
        prompt: String,
        hash: String,
        subject: QuestionSubject,
    ) -> Self {
        Self {
            id,
            call,
            child: None,
            kind,
            prompt,
            hash,
            expires: None,
            offers: Vec::new(),
            reasons: Vec::new(),
            subject,
        }
    }

    /// Returns whether it asks if a call may run, or run again.
    #[must_use]
    pub fn is_about_call(&self) -> bool {
        matches!(self.kind, QuestionKind::Approval | QuestionKind::Repeat)
    }

    /// Returns whether a running call asks it: the turn cannot be parked for it, and it has no answer once the call ends.
    #[must_use]
    pub fn is_of_running_call(&self) -> bool {
        matches!(
            self.kind,
            QuestionKind::Permission | QuestionKind::Input { .. }
        )
    }

    /// Returns someone's answer to it, as it is now.
    #[must_use]
    pub fn answered(&self, actor: &str, value: AnswerValue) -> Answer {
        Answer {
            question: self.id.clone(),
            hash: self.hash.clone(),
            actor: actor.to_owned(),
            value,
            remember: None,
        }
    }
}

/// Kind of answer that a question takes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum QuestionKind {
    /// Permission to run a call.
    Approval,
    /// Permission to run a call again that a crash cut off.
    Repeat,
    /// Permission for a running call to do something.
    Permission,
    /// A value for a running call that fits this JSON Schema.
    Input {
        /// The schema.
        schema: Value,
    },
    /// Permission to exceed a budget.
    Budget,
    /// Permission to use something of a folder: its settings, the servers of its project, or what a sandboxed command
    /// left changed in it.
    Trust,
}

/// An answer to a [`Question`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// The question.
    pub question: QuestionId,
    /// The question's hash, as the one who answers read it.
    pub hash: String,
    /// Author of the answer: a user's name, or what expired.
    pub actor: String,
    /// The answer.
    pub value: AnswerValue,
    /// With a yes: which of the question's [`offers`](Question::offers) is allowed without asking for the rest of the
    /// session. Anything else is dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remember: Option<Grant>,
}

/// The answer to a [`Question`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum AnswerValue {
    /// Yes.
    Approve,
    /// No; the model reads why.
    Deny {
        /// Reason that the model reads.
        reason: String,
    },
    /// A value: the arguments to run a call with, a call's result, or what was asked for.
    Value {
        /// The value.
        value: Value,
        /// Parts of a call's proposal that the value leaves out, in words for the model; at most 16 KiB of them are
        /// read. `None` if the value is the user's own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        left_out: Option<String>,
    },
}

impl AnswerValue {
    /// The reason of a no for which the user gave none.
    pub const NO: &str = "the user said no";

    /// Returns a no without a reason of the user's own.
    #[must_use]
    pub fn no() -> Self {
        Self::deny(Self::NO)
    }

    /// Returns a no, and why.
    #[must_use]
    pub fn deny(reason: impl Into<String>) -> Self {
        Self::Deny {
            reason: reason.into(),
        }
    }

    /// Returns the user's own value.
    #[must_use]
    pub fn value(value: Value) -> Self {
        Self::Value {
            value,
            left_out: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_without_reasons_is_read_and_written_as_earlier_versions_did() {
        let recorded =
            r#"{"id":"c","call":"c","kind":{"kind":"approval"},"prompt":"run it?","hash":"h"}"#;
        let mut question: Question = serde_json::from_str(recorded).unwrap();
        assert_eq!(question.reasons, []);
        assert_eq!(serde_json::to_string(&question).unwrap(), recorded);

        question.reasons = vec![AskReason::OutsideText];
        let written = serde_json::to_string(&question).unwrap();
        assert!(
            written.ends_with(r#","reasons":["outside_text"]}"#),
            "{written}"
        );
        assert_eq!(
            serde_json::from_str::<Question>(&written).unwrap(),
            question
        );
    }
}
