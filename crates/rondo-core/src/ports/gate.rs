//! The ports to permission: the gate that judges a call, and the approver that asks a person.

use async_trait::async_trait;
use data_encoding::HEXLOWER;
use rondo_types::{
    Answer, AnswerValue, AskReason, CallId, Grant, MailId, Question, QuestionId, QuestionKind,
    QuestionSubject, SessionId, TimeMs, ToolSpec, TurnId,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::sync::Arc;
use tokio::sync::Mutex;

/// Decides on each call before it runs.
#[async_trait]
pub trait Gate: Send + Sync {
    /// Judges one call, whose arguments already fit the schema.
    async fn check(&self, request: &GateRequest) -> Verdict;

    /// Returns the terms of an approval of the call besides its words, and the permissions that it can include. Asked
    /// right before a person is, and again after a yes, which does not count if the hash is another one by then.
    async fn terms(&self, _request: &GateRequest) -> Terms {
        Terms::default()
    }

    /// Remembers a permission of the user: one of the offers of the call's [`terms`](Self::terms).
    fn remember(&self, _grant: &Grant) {}
}

/// Terms of an approval besides the words of the call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Terms {
    /// SHA-256, in hex, of the circumstances of the call, such as its directory, variables and files; empty if the
    /// gate knows of none.
    pub hash: String,
    /// Grants that a yes can also give, the narrowest first.
    pub offers: Vec<Grant>,
}

/// A call that wants to run.
#[derive(Debug, Clone)]
pub struct GateRequest {
    /// The session that it belongs to.
    pub session: SessionId,
    /// The turn.
    pub turn: TurnId,
    /// The step whose reply asked for it, from 1.
    pub step: u32,
    /// Id of the call.
    pub call_id: CallId,
    /// The tool.
    pub spec: Arc<ToolSpec>,
    /// The arguments as they would be run.
    pub arguments: Value,
    /// Set if the conversation has text from outside, which may have made the model ask for the call.
    pub has_outside_text: bool,
}

impl GateRequest {
    /// Returns the request for a call outside of turns.
    #[must_use]
    pub fn new(spec: ToolSpec, arguments: Value) -> Self {
        Self {
            session: SessionId::new("1"),
            turn: TurnId::new("1"),
            step: 1,
            call_id: CallId::generated(0, 0, 0),
            spec: Arc::new(spec),
            arguments,
            has_outside_text: false,
        }
    }
}

/// What the gate says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    /// Run it.
    Allow,
    /// Do not run it; the model reads why.
    Deny {
        /// Reason of the denial.
        reason: String,
    },
    /// A person must say.
    Ask {
        /// Text of the question.
        prompt: String,
        /// Why, which the prompt says in words.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        reasons: Vec<AskReason>,
    },
}

/// Puts questions to a person.
#[async_trait]
pub trait Approver: Send + Sync {
    /// Asks, and waits for the answer. One question of a turn is asked at a time; it is recorded before.
    ///
    /// # Cancel safety
    /// Dropped when the turn is cancelled or the time for the answer is over; the answer is then no.
    async fn ask(&self, question: &Question) -> QuestionReply;
}

/// Reply of an approver to a question.
#[derive(Debug, Clone, PartialEq)]
#[expect(
    clippy::large_enum_variant,
    reason = "one is held at a time, and not for long"
)]
pub enum QuestionReply {
    /// The answer, which is recorded; and the row of the mailbox that it waited in, which is removed with that record.
    Answered(Answer, Option<MailId>),
    /// There will be an answer later. The turn is parked as soon as nothing else of it runs, and nothing is held until
    /// it is resumed. The answer is no if the turn keeps no records, or a running call asks.
    Later {
        /// When the question expires; `None` never.
        expires: Option<TimeMs>,
    },
}

impl QuestionReply {
    /// Returns someone's answer, given in place.
    #[must_use]
    pub fn answered(question: &Question, actor: &str, value: AnswerValue) -> Self {
        Self::Answered(question.answered(actor, value), None)
    }

    /// Returns someone's yes, given in place.
    #[must_use]
    pub fn approved(question: &Question, actor: &str) -> Self {
        Self::answered(question, actor, AnswerValue::Approve)
    }

    /// Returns someone's no, given in place, and why.
    #[must_use]
    pub fn denied(question: &Question, actor: &str, reason: impl Into<String>) -> Self {
        Self::answered(question, actor, AnswerValue::deny(reason))
    }
}

/// Hands questions to an approver one at a time, whichever of its clones is asked.
#[derive(Clone)]
pub struct OneAtATime {
    approver: Arc<dyn Approver>,
    asking: Arc<Mutex<()>>,
}

impl OneAtATime {
    /// Wraps the approver.
    #[must_use]
    pub fn new(approver: Arc<dyn Approver>) -> Self {
        Self {
            approver,
            asking: Arc::default(),
        }
    }
}

#[async_trait]
impl Approver for OneAtATime {
    async fn ask(&self, question: &Question) -> QuestionReply {
        let _turn_to_ask = self.asking.lock().await;
        self.approver.ask(question).await
    }
}

/// Returns a question about a call: whether it may run, or run again. Its hash is SHA-256, in hex, of everything that
/// an answer agrees to: the call with its tool and arguments, the words, whether the call may have been done before,
/// and the [`Terms`]. It has no reasons yet.
#[must_use]
pub fn question_about_call(
    subject: QuestionSubject,
    call_id: &CallId,
    kind: QuestionKind,
    prompt: String,
    terms: &Terms,
) -> Question {
    let QuestionSubject {
        session,
        turn,
        tool,
        arguments,
        ..
    } = &subject;
    let can_edit = kind == QuestionKind::Approval;
    let call = (session, turn, call_id, tool, arguments, &prompt, can_edit);
    let hash = agreed_hash(&(call, &terms.hash, &terms.offers));
    let of_call = (QuestionId::of_call(call_id), kind);
    Question {
        offers: terms.offers.clone(),
        ..Question::new(of_call, Some(call_id.clone()), prompt, hash, subject)
    }
}

/// Returns SHA-256, in hex, of what an answer agrees to.
pub(super) fn agreed_hash(agreed: &impl Serialize) -> String {
    // Plain data with string keys can always be written.
    let json = serde_json::to_vec(agreed).unwrap_or_default();
    HEXLOWER.encode(&Sha256::digest(json))
}

/// A person's answer about a call, as it is recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "approval", rename_all = "snake_case")]
pub enum Approval {
    /// Run it.
    Approved,
    /// Do not run it; the model reads why.
    Denied {
        /// Reason of the denial.
        reason: String,
    },
    /// Run it with these arguments instead. The gate is asked whether it denies them, and the model
    /// reads of them with the call's result.
    Edited {
        /// All arguments, as the tool takes them.
        arguments: Value,
        /// Parts of the proposed call that they leave out, in words for the model, which reads these in place of
        /// the arguments. `None` if the arguments are the user's own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        left_out: Option<String>,
    },
}

/// Why a call that was cut off is not run with other arguments.
const NOT_EDITABLE: &str = "a call that was cut off can only run again unchanged, or not at all";

impl Approval {
    /// Returns an approval with the user's own arguments.
    #[must_use]
    pub fn edited(arguments: Value) -> Self {
        Self::Edited {
            arguments,
            left_out: None,
        }
    }

    /// Returns the decision of an answer about a call: a value is the arguments to run it with.
    #[must_use]
    pub fn of_answer(answer: &AnswerValue) -> Self {
        match answer {
            AnswerValue::Approve => Self::Approved,
            AnswerValue::Deny { reason } => Self::Denied {
                reason: reason.clone(),
            },
            AnswerValue::Value { value, left_out } => Self::Edited {
                arguments: value.clone(),
                left_out: left_out.clone(),
            },
        }
    }

    /// Returns whether a call that was cut off runs again, and if not, why.
    pub(crate) fn of_a_repeat(&self) -> (bool, Option<String>) {
        match self {
            Self::Approved => (true, None),
            Self::Denied { reason } => (false, Some(reason.clone())),
            Self::Edited { .. } => (false, Some(NOT_EDITABLE.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_without_reasons_is_read_and_written_as_earlier_versions_did() {
        let recorded = r#"{"verdict":"ask","prompt":"run it?"}"#;
        let verdict: Verdict = serde_json::from_str(recorded).unwrap();
        let prompt = "run it?".to_owned();
        let reasons = Vec::new();
        assert_eq!(verdict, Verdict::Ask { prompt, reasons });
        assert_eq!(serde_json::to_string(&verdict).unwrap(), recorded);
    }

    #[test]
    fn reasons_are_recorded_by_their_names() {
        let verdict = Verdict::Ask {
            prompt: "run it?".to_owned(),
            reasons: vec![AskReason::OutsideSandbox, AskReason::UnreviewedFolder],
        };
        let recorded = serde_json::to_string(&verdict).unwrap();
        let expected = r#"{"verdict":"ask","prompt":"run it?","reasons":["outside_sandbox","unreviewed_folder"]}"#;
        assert_eq!(recorded, expected);
        assert_eq!(serde_json::from_str::<Verdict>(&recorded).unwrap(), verdict);
    }
}
