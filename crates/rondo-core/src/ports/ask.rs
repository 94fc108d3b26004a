//! Questions that a running call puts to a person.

use super::gate::{Approval, ApprovalReply, ApprovalRequest, Approver, Terms};
use crate::shown;
use futures_util::future::BoxFuture;
use rondo_schema::Validator;
use rondo_types::{AnswerValue, CallId, SessionId, ToolKind, TurnId};
use serde_json::Value;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Questions that one call may ask.
pub const QUESTIONS_MAX: usize = 32;
/// Bytes of a question's words, and of its schema as JSON.
pub const QUESTION_BYTES_MAX: usize = 16 << 10;

/// What a running call asks a person.
#[derive(Debug, Clone, PartialEq)]
pub enum CallQuestion {
    /// Whether it may do something.
    Approval {
        /// The question.
        prompt: String,
    },
    /// A value.
    Input {
        /// The question.
        prompt: String,
        /// The JSON Schema of the value.
        schema: Value,
    },
}

impl CallQuestion {
    /// Returns its words.
    #[must_use]
    pub fn prompt(&self) -> &str {
        match self {
            Self::Approval { prompt } | Self::Input { prompt, .. } => prompt,
        }
    }

    pub(crate) fn with_prompt(self, change: impl FnOnce(String) -> String) -> Self {
        match self {
            Self::Approval { prompt } => Self::Approval {
                prompt: change(prompt),
            },
            Self::Input { prompt, schema } => Self::Input {
                prompt: change(prompt),
                schema,
            },
        }
    }
}

/// A question of a running call on its way to a person. The words are the tool's, and may come from outside.
#[derive(Debug, Clone)]
pub struct CallQuestionRequest {
    /// The session that the call belongs to.
    pub session: SessionId,
    /// The turn.
    pub turn: TurnId,
    /// The step whose reply asked for the call, from 1.
    pub step: u32,
    /// The call.
    pub call_id: CallId,
    /// The tool.
    pub tool: String,
    /// What its calls do.
    pub kind: ToolKind,
    /// The call's arguments.
    pub arguments: Value,
    /// What is asked.
    pub question: CallQuestion,
}

impl CallQuestionRequest {
    /// Returns the question in the form of one about the call itself, which is what most approvers can show.
    #[must_use]
    pub fn as_approval(&self) -> ApprovalRequest {
        let tool = shown::line(&self.tool);
        let words: Vec<String> = self.question.prompt().lines().map(shown::line).collect();
        ApprovalRequest {
            session: self.session.clone(),
            turn: self.turn.clone(),
            step: self.step,
            call_id: self.call_id.clone(),
            tool: self.tool.clone(),
            kind: self.kind,
            arguments: self.arguments.clone(),
            prompt: format!("`{tool}` is running and asks:\n{}", words.join("\n")),
            can_edit: false,
            terms: Terms::default(),
        }
    }
}

/// Asks an approver that knows only questions about calls: whether something may be done, and no values.
pub(super) async fn as_approval<A: Approver + ?Sized>(
    approver: &A,
    request: &CallQuestionRequest,
) -> AnswerValue {
    let deny = |reason: &str| AnswerValue::Deny {
        reason: reason.to_owned(),
    };
    if let CallQuestion::Input { .. } = request.question {
        return deny("nobody here can be asked for a value");
    }
    match approver.ask(&request.as_approval()).await {
        ApprovalReply::Now(Approval::Approved) => AnswerValue::Approve,
        ApprovalReply::Now(Approval::Denied { reason }) => AnswerValue::Deny { reason },
        ApprovalReply::Now(Approval::Edited { .. }) => deny("it was answered with a value"),
        ApprovalReply::Given { .. } | ApprovalReply::Later { .. } => {
            deny("nobody can answer while the call runs")
        }
    }
}

/// Why a question of a running call has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAnswered {
    /// The user said no, or there is no user to ask.
    #[error("{reason}")]
    Denied {
        /// Why.
        reason: String,
    },
    /// The call must end.
    #[error("the call must end, so the answer is not waited for")]
    Cancelled,
    /// The call asked too much.
    #[error("a call may ask {QUESTIONS_MAX} questions of {QUESTION_BYTES_MAX} bytes each")]
    TooMuch,
    /// The schema of the value cannot be used.
    #[error("the schema of the value cannot be used: {0}")]
    Schema(String),
    /// The value does not fit the schema.
    #[error("the answer does not fit: {0}")]
    DoesNotFit(String),
}

type Put =
    dyn Fn(CallQuestion) -> BoxFuture<'static, Result<AnswerValue, NotAnswered>> + Send + Sync;

/// Puts the questions of one running call to the turn's approver. Clones share the bound on questions.
#[derive(Clone)]
pub struct Asker {
    put: Arc<Put>,
    asked: Arc<AtomicUsize>,
}

impl Asker {
    /// Wraps what puts a question. It must end once the call must end.
    pub fn new(
        put: impl Fn(CallQuestion) -> BoxFuture<'static, Result<AnswerValue, NotAnswered>>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        Self {
            put: Arc::new(put),
            asked: Arc::default(),
        }
    }

    /// Returns one that refuses every question, for hosts without a user to ask.
    #[must_use]
    pub fn nobody() -> Self {
        Self::new(|_| {
            let reason = "there is nobody to ask".to_owned();
            Box::pin(std::future::ready(Err(NotAnswered::Denied { reason })))
        })
    }

    /// Asks whether something may be done, and waits for the answer.
    ///
    /// # Errors
    /// When the answer is no, or there is none.
    ///
    /// # Cancel safety
    /// Cancel safe: the question is withdrawn.
    pub async fn approval(&self, prompt: impl Into<String>) -> Result<(), NotAnswered> {
        let prompt = prompt.into();
        match self.answer(CallQuestion::Approval { prompt }).await? {
            AnswerValue::Approve => Ok(()),
            AnswerValue::Deny { reason } => Err(NotAnswered::Denied { reason }),
            AnswerValue::Value { .. } => Err(NotAnswered::Denied {
                reason: "it was answered with a value".to_owned(),
            }),
        }
    }

    /// Asks for a value that fits a JSON Schema, and waits for it.
    ///
    /// # Errors
    /// When there is no answer, or it does not fit.
    ///
    /// # Cancel safety
    /// Cancel safe: the question is withdrawn.
    pub async fn input(
        &self,
        prompt: impl Into<String>,
        schema: Value,
    ) -> Result<Value, NotAnswered> {
        let validator = Validator::new(&schema);
        let validator = validator.map_err(|err| NotAnswered::Schema(err.to_string()))?;
        let prompt = prompt.into();
        match self.answer(CallQuestion::Input { prompt, schema }).await? {
            AnswerValue::Value { value, .. } => match validator.check(&value) {
                Ok(()) => Ok(value),
                Err(violations) => Err(NotAnswered::DoesNotFit(
                    violations
                        .iter()
                        .map(|it| it.what.as_str())
                        .collect::<Vec<_>>()
                        .join("; "),
                )),
            },
            AnswerValue::Deny { reason } => Err(NotAnswered::Denied { reason }),
            AnswerValue::Approve => Err(NotAnswered::DoesNotFit(
                "it is a yes where a value was asked for".to_owned(),
            )),
        }
    }

    async fn answer(&self, question: CallQuestion) -> Result<AnswerValue, NotAnswered> {
        let schema_bytes = match &question {
            CallQuestion::Approval { .. } => 0,
            CallQuestion::Input { schema, .. } => schema.to_string().len(),
        };
        let is_too_long = question.prompt().len().max(schema_bytes) > QUESTION_BYTES_MAX;
        if is_too_long || self.asked.fetch_add(1, Ordering::Relaxed) >= QUESTIONS_MAX {
            return Err(NotAnswered::TooMuch);
        }
        (self.put)(question).await
    }

    /// Returns the same one, which changes the words of each question first.
    pub(crate) fn worded(self, change: impl Fn(String) -> String + Send + Sync + 'static) -> Self {
        let put = self.put;
        Self {
            put: Arc::new(move |question| put(question.with_prompt(&change))),
            asked: self.asked,
        }
    }
}

impl fmt::Debug for Asker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Asker")
    }
}
