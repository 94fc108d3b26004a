//! Answers that are deserialized into a type.

use crate::error::TurnError;
use crate::schema::AnswerSchema;
use rondo_core::catalog::AnswerCheck;
use rondo_types::{Outcome, StopReason};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt;
use std::sync::Arc;

/// An answer that was deserialized into a value.
#[derive(Debug, Clone)]
pub struct TypedAnswer<T> {
    /// The value.
    pub value: T,
    /// The outcome of the turn; its text is the JSON that the value was read from.
    pub outcome: Outcome,
}

/// Why a turn gave no value of the type.
///
/// Its `Debug` output omits the turn's messages, as that of [`TurnError`] does.
#[derive(thiserror::Error)]
pub enum TypedError {
    /// The turn failed.
    #[error(transparent)]
    Turn(#[from] TurnError),
    /// The turn ended without an answer that fits: at a limit, by a cancel, by a refusal, or because
    /// the model kept giving answers that do not fit.
    #[error("the turn ended without an answer of that type: {}", .outcome.stop_reason)]
    NoAnswer {
        /// The outcome of the turn.
        outcome: Box<Outcome>,
    },
    /// The answer fits the type's schema, but could not be deserialized, for example because of
    /// `serde(try_from)`. The model is asked to correct such answers; this is the last one, when a
    /// limit allowed no further correction.
    #[error("the answer could not be read")]
    Unreadable {
        /// The error of the deserialisation.
        #[source]
        source: serde_json::Error,
        /// The outcome of the turn.
        outcome: Box<Outcome>,
    },
}

impl TypedError {
    /// Returns the outcome of the turn; `None` when the turn did not run to an outcome.
    #[must_use]
    pub fn outcome(&self) -> Option<&Outcome> {
        match self {
            Self::Turn(error) => error.outcome(),
            Self::NoAnswer { outcome } | Self::Unreadable { outcome, .. } => Some(outcome),
        }
    }
}

impl fmt::Debug for TypedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Turn(error) => error.fmt(f),
            Self::NoAnswer { outcome } => f
                .debug_struct("NoAnswer")
                .field("stop_reason", &outcome.stop_reason)
                .field("text", &outcome.text)
                .finish_non_exhaustive(),
            Self::Unreadable { source, outcome } => f
                .debug_struct("Unreadable")
                .field("source", source)
                .field("text", &outcome.text)
                .finish_non_exhaustive(),
        }
    }
}

/// The schema and the check of a typed answer.
pub(crate) struct Expected {
    pub(crate) schema: Value,
    /// Deserialises the answer, which may reject more than the schema does.
    pub(crate) check: AnswerCheck,
}

impl Expected {
    pub(crate) fn of<T: DeserializeOwned>(answer: &Arc<AnswerSchema>) -> Self {
        let read = Arc::clone(answer);
        let check = AnswerCheck::new(move |text| {
            let read = read_as::<T>(&read, text);
            read.map(drop)
                .map_err(|error| format!("the answer could not be read: {error}"))
        });
        Self {
            schema: answer.schema.clone(),
            check,
        }
    }
}

fn read_as<T: DeserializeOwned>(answer: &AnswerSchema, text: &str) -> serde_json::Result<T> {
    let json = serde_json::from_str::<Value>(text)?;
    serde_json::from_value(answer.unwrap(json))
}

/// Deserialises the turn's answer. The answer to the last, reserved request counts too, if it fits.
pub(crate) fn decoded<T: DeserializeOwned>(
    answer: &AnswerSchema,
    ended: Result<Outcome, TurnError>,
) -> Result<TypedAnswer<T>, TypedError> {
    let outcome = ended?;
    match read_as(answer, &outcome.text) {
        Ok(value) if outcome.answered => Ok(TypedAnswer { value, outcome }),
        Err(source) if outcome.stop_reason == StopReason::Complete => Err(TypedError::Unreadable {
            source,
            outcome: Box::new(outcome),
        }),
        _ => Err(TypedError::NoAnswer {
            outcome: Box::new(outcome),
        }),
    }
}
