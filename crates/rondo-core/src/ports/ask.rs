//! Questions that a running call puts to a person.

use super::gate::agreed_hash;
use crate::shown;
use futures_util::future::BoxFuture;
use rondo_schema::Validator;
use rondo_types::{AnswerValue, CallId, Question, QuestionId, QuestionKind, QuestionSubject};
use serde_json::Value;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Questions that one call may ask.
pub const QUESTIONS_MAX: usize = 32;
/// Bytes of a question's words, and of its schema as JSON.
pub const QUESTION_BYTES_MAX: usize = 16 << 10;

/// Returns the question of a running call in the form for a person. The words are the tool's, and may come from
/// outside.
/// `number` counts the questions of the call, from 1.
pub(crate) fn question_of_running_call(
    subject: QuestionSubject,
    call_id: &CallId,
    number: usize,
    kind: QuestionKind,
    prompt: &str,
) -> Question {
    let words: Vec<String> = prompt.lines().map(shown::line).collect();
    let tool = shown::line(&subject.tool);
    let prompt = format!("`{tool}` is running and asks:\n{}", words.join("\n"));
    let id = QuestionId(format!("{call_id}/{number}"));
    let hash = agreed_hash(&(&subject.session, &subject.turn, &id, &kind, &prompt));
    Question::new((id, kind), Some(call_id.clone()), prompt, hash, subject)
}

/// Why a question of a running call has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAnswered {
    /// The user said no, or there is no user to ask.
    #[error("{reason}")]
    Denied {
        /// Reason of the denial.
        reason: String,
    },
    /// The call must end.
    #[error("the call must end and cannot wait for the answer")]
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

/// Puts a question by its number, what kind of answer it takes, and its words.
type AskFn = dyn Fn(usize, QuestionKind, String) -> BoxFuture<'static, Result<AnswerValue, NotAnswered>>
    + Send
    + Sync;

/// Puts the questions of one running call to the turn's approver. Clones share the bound on questions.
#[derive(Clone)]
pub struct Asker {
    put: Arc<AskFn>,
    asked: Arc<AtomicUsize>,
}

impl Asker {
    /// Wraps what puts a question by its number within the call, from 1, what kind of answer it takes, and its words. It
    /// must end once the call must end.
    pub fn new(
        put: impl Fn(
            usize,
            QuestionKind,
            String,
        ) -> BoxFuture<'static, Result<AnswerValue, NotAnswered>>
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
        Self::new(|_, _, _| {
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
        match self.answer(QuestionKind::Permission, prompt.into()).await? {
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
        let kind = QuestionKind::Input { schema };
        match self.answer(kind, prompt.into()).await? {
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
                "it is a yes, but a value was requested".to_owned(),
            )),
        }
    }

    async fn answer(&self, kind: QuestionKind, prompt: String) -> Result<AnswerValue, NotAnswered> {
        let schema_bytes = match &kind {
            QuestionKind::Input { schema } => schema.to_string().len(),
            _ => 0,
        };
        let is_too_long = prompt.len().max(schema_bytes) > QUESTION_BYTES_MAX;
        if is_too_long {
            return Err(NotAnswered::TooMuch);
        }
        let before = self.asked.fetch_add(1, Ordering::Relaxed);
        if before >= QUESTIONS_MAX {
            return Err(NotAnswered::TooMuch);
        }
        (self.put)(before + 1, kind, prompt).await
    }

    /// Returns the same one, which changes the words of each question first.
    pub(crate) fn worded(self, change: impl Fn(String) -> String + Send + Sync + 'static) -> Self {
        let put = self.put;
        Self {
            put: Arc::new(move |number, kind, prompt| put(number, kind, change(prompt))),
            asked: self.asked,
        }
    }
}

impl fmt::Debug for Asker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Asker")
    }
}
