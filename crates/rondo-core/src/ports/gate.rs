//! The ports to permission: the gate that judges a call, and the approver that asks a person.

use super::ask::CallQuestionRequest;
use super::budget::BudgetQuestion;
use async_trait::async_trait;
use data_encoding::HEXLOWER;
use rondo_types::{
    Answer, AnswerValue, CallId, Grant, MailId, Question, QuestionId, QuestionKind, SessionId,
    TimeMs, ToolKind, ToolSpec, TurnId,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::sync::Arc;

/// Decides on each call before it runs.
#[async_trait]
pub trait Gate: Send + Sync {
    /// Judges one call, whose arguments already fit the schema.
    async fn check(&self, request: &GateRequest) -> Verdict;

    /// Returns what an approval of the call agrees to besides its words, and what of it can be remembered. Asked right
    /// before a person is, and again after a yes, which does not count where the hash is another one by then.
    async fn terms(&self, _request: &GateRequest) -> Terms {
        Terms::default()
    }

    /// Takes what the user allows from now on: one of the offers of the call's [`terms`](Self::terms).
    fn remember(&self, _grant: &Grant) {}
}

/// What an approval of a call agrees to besides its words.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Terms {
    /// SHA-256, in hex, of the circumstances of the call, such as its directory, variables and files; empty where the
    /// gate knows of none.
    pub hash: String,
    /// What a yes can also let run from then on, the narrowest first.
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
    /// The call.
    pub call_id: CallId,
    /// The tool.
    pub spec: Arc<ToolSpec>,
    /// The arguments as they would be run.
    pub arguments: Value,
    /// Whether the conversation holds text from outside, which may have made the model ask for the call.
    pub has_outside_text: bool,
}

/// What the gate says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    /// Run it.
    Allow,
    /// Do not run it; the model reads why.
    Deny {
        /// Why.
        reason: String,
    },
    /// A person must say.
    Ask {
        /// What they are asked.
        prompt: String,
    },
}

/// Puts a question to a person.
#[async_trait]
pub trait Approver: Send + Sync {
    /// Asks about one call.
    ///
    /// # Cancel safety
    /// Dropped when the turn is cancelled or its deadline comes; the call is then denied.
    async fn ask(&self, request: &ApprovalRequest) -> ApprovalReply;

    /// Asks whether a turn may go on though a budget is spent; [`Approval::Approved`] lets it, for as long as its own
    /// limits do, and every other answer ends it. By default it cannot be allowed.
    ///
    /// # Cancel safety
    /// As [`Self::ask`].
    async fn ask_budget(&self, _question: &BudgetQuestion) -> ApprovalReply {
        let reason = "nobody can allow more".to_owned();
        Approval::Denied { reason }.into()
    }

    /// Puts a question that a running call asks, and waits for the answer: the turn is not parked for it. One question
    /// of a turn is asked at a time.
    ///
    /// By default, whether something may be done is asked like [`Self::ask`], and a value is refused.
    ///
    /// # Cancel safety
    /// Dropped when the call must end; it then has no answer.
    async fn ask_within(&self, request: &CallQuestionRequest) -> AnswerValue {
        super::ask::as_approval(self, request).await
    }
}

/// What an approver says to a question.
#[derive(Debug, Clone, PartialEq)]
pub enum ApprovalReply {
    /// The answer.
    Now(Approval),
    /// An answer that was given elsewhere, to the question with its hash; it is recorded with the name of who
    /// gave it.
    Given {
        /// The answer.
        answer: Answer,
        /// The row of the mailbox that it waited in, which is done with that record.
        mail: Option<MailId>,
    },
    /// There will be an answer later. The turn is parked as soon as nothing else of it runs: what it asks is
    /// recorded, and nothing is held until it is resumed. Where a turn keeps no records, the call is denied.
    Later {
        /// When the question expires; `None` never.
        expires: Option<TimeMs>,
    },
}

impl From<Approval> for ApprovalReply {
    fn from(approval: Approval) -> Self {
        Self::Now(approval)
    }
}

/// A question about one call.
#[derive(Debug, Clone)]
pub struct ApprovalRequest {
    /// The session that it belongs to.
    pub session: SessionId,
    /// The turn.
    pub turn: TurnId,
    /// The step whose reply asked for it, from 1.
    pub step: u32,
    /// The call.
    pub call_id: CallId,
    /// The tool.
    pub tool: String,
    /// What its calls do.
    pub kind: ToolKind,
    /// The arguments.
    pub arguments: Value,
    /// The question.
    pub prompt: String,
    /// Whether [`Approval::Edited`] is an answer to it. A call that was cut off and may run again does
    /// so as it was, or not at all.
    pub can_edit: bool,
    /// What an approval agrees to besides these words, and what can be remembered of it.
    pub terms: Terms,
}

impl ApprovalRequest {
    /// Returns the question in the form in which it is recorded.
    #[must_use]
    pub fn question(&self, expires: Option<TimeMs>) -> Question {
        let kind = match self.can_edit {
            true => QuestionKind::Approval,
            false => QuestionKind::Repeat,
        };
        Question {
            id: QuestionId::of_call(&self.call_id),
            call: Some(self.call_id.clone()),
            child: None,
            kind,
            prompt: self.prompt.clone(),
            hash: self.hash(),
            expires,
            offers: self.terms.offers.clone(),
        }
    }

    /// Returns SHA-256, in hex, of everything that an answer agrees to: the call with its tool and arguments,
    /// what is asked, whether the call may have been done before, and its [`Terms`].
    #[must_use]
    pub fn hash(&self) -> String {
        let Self {
            session,
            turn,
            call_id,
            tool,
            arguments,
            prompt,
            can_edit,
            terms,
            step: _,
            kind: _,
        } = self;
        let call = (session, turn, call_id, tool, arguments, prompt, can_edit);
        let call = (call, &terms.hash, &terms.offers);
        // Plain data with string keys can always be written.
        let json = serde_json::to_vec(&call).unwrap_or_default();
        HEXLOWER.encode(&Sha256::digest(json))
    }
}

/// A person's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "approval", rename_all = "snake_case")]
pub enum Approval {
    /// Run it.
    Approved,
    /// Do not run it; the model reads why.
    Denied {
        /// Why.
        reason: String,
    },
    /// Run it with these arguments instead. The gate is asked whether it denies them, and the model
    /// reads of them with the call's result.
    Edited {
        /// All arguments, as the tool takes them.
        arguments: Value,
        /// What they leave out of what the call proposed, in words for the model, which reads these in place of
        /// the arguments. `None` where the arguments are the user's own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        left_out: Option<String>,
    },
}

/// Why a call that was cut off is not run with other arguments.
const NOT_EDITABLE: &str = "a call that was cut off runs again as it was, or not at all";

impl Approval {
    /// Returns an approval with the user's own arguments.
    #[must_use]
    pub fn edited(arguments: Value) -> Self {
        Self::Edited {
            arguments,
            left_out: None,
        }
    }

    /// Returns what an answer says about a call: a value is the arguments to run it with.
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
