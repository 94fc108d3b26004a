//! Answers that are values of a type.

use crate::error::TurnError;
use crate::schema::AnswerSchema;
use rondo_core::catalog::AnswerCheck;
use rondo_types::{Outcome, StopReason};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt;
use std::sync::Arc;

/// An answer that is a value.
#[derive(Debug, Clone)]
pub struct Typed<T> {
    /// The value.
    pub value: T,
    /// The turn it came of; its text is the JSON that the value was read from.
    pub outcome: Outcome,
}

/// Why there is no value.
///
/// Its debug form leaves the messages of the turn out, as that of [`TurnError`] does.
#[derive(thiserror::Error)]
pub enum TypedError {
    /// The turn failed.
    #[error(transparent)]
    Turn(#[from] TurnError),
    /// The turn ended without an answer that fits: at a limit, by a cancel, by a refusal, or because
    /// the model went on giving others.
    #[error("the turn ended without an answer of that type: {}", .outcome.stop_reason)]
    NoAnswer {
        /// What there is of the turn.
        outcome: Box<Outcome>,
    },
    /// The answer fits the type's schema, but the type's own reading refuses it: by
    /// `serde(try_from)`, say. Answers of that kind are sent back with what it says; this is the last
    /// one, which a limit let stand.
    #[error("the answer could not be read")]
    Unreadable {
        /// What it says.
        #[source]
        source: serde_json::Error,
        /// What there is of the turn.
        outcome: Box<Outcome>,
    },
}

impl TypedError {
    /// Returns what there is of the turn; `None` where no runtime ran it.
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

/// What a typed answer must fit.
pub(crate) struct Expected {
    pub(crate) schema: Value,
    /// The type's own reading, which may refuse more than its schema says.
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

/// Reads the value out of the turn's answer. An answer out of the reserve is one too, where it fits.
pub(crate) fn decoded<T: DeserializeOwned>(
    answer: &AnswerSchema,
    ended: Result<Outcome, TurnError>,
) -> Result<Typed<T>, TypedError> {
    let outcome = ended?;
    match read_as(answer, &outcome.text) {
        Ok(value) if outcome.answered => Ok(Typed { value, outcome }),
        Err(source) if outcome.stop_reason == StopReason::Complete => Err(TypedError::Unreadable {
            source,
            outcome: Box::new(outcome),
        }),
        _ => Err(TypedError::NoAnswer {
            outcome: Box::new(outcome),
        }),
    }
}
