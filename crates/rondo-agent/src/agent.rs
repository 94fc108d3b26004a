//! The agent: a model with its tools, rules and limits.

use crate::builder::AgentBuilder;
use crate::error::TurnError;
use crate::parts::Parts;
use crate::run::Run;
use crate::schema::AnswerSchema;
use crate::session::Session;
use crate::typed::{TypedAnswer, TypedError};
use crate::{ids, typed};
use rondo_core::Model;
use rondo_types::{Message, Outcome, SessionId, ToolSpec, Transcript};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use std::fmt;
use std::sync::Arc;

/// A model with its tools, rules and limits. It can run any number of turns, also concurrently.
///
/// Each turn runs on a task of its own in the current tokio runtime. Clones share everything and
/// cost a pointer.
///
/// # Errors
/// The methods that run a turn fail with [`TurnError`]: when a request failed for good, or the
/// runtime did. A turn that reached a limit, was cancelled or was refused is not an error: its
/// [`Outcome::stop_reason`] gives the reason, and its text lists what was found.
///
/// # Cancel safety
/// Dropping the future ends the turn, its request and its calls at once, without an outcome.
#[derive(Clone)]
pub struct Agent {
    pub(crate) parts: Arc<Parts>,
}

impl Agent {
    /// Starts to build an agent.
    pub fn builder(model: impl Model + 'static) -> AgentBuilder {
        AgentBuilder::new(Arc::new(model))
    }

    /// Answers one message.
    ///
    /// # Errors
    /// When the turn failed: see [`Agent`].
    ///
    /// # Cancel safety
    /// Dropping the future ends the turn.
    pub async fn run(&self, message: impl Into<Message>) -> Result<Outcome, TurnError> {
        self.start(message).outcome().await
    }

    /// Answers a message that follows a history.
    ///
    /// Calls in the history that lack a result get one first.
    ///
    /// # Errors
    /// When the turn failed: see [`Agent`].
    ///
    /// # Cancel safety
    /// Dropping the future ends the turn.
    pub async fn run_with_messages(
        &self,
        history: Transcript,
        message: impl Into<Message>,
    ) -> Result<Outcome, TurnError> {
        self.start_with_messages(history, message).outcome().await
    }

    /// Answers a message that follows a finished turn, of this agent or of another.
    ///
    /// # Errors
    /// When the turn failed: see [`Agent`].
    ///
    /// # Cancel safety
    /// Dropping the future ends the turn.
    pub async fn continue_from(
        &self,
        outcome: &Outcome,
        message: impl Into<Message>,
    ) -> Result<Outcome, TurnError> {
        self.run_with_messages(outcome.transcript.clone(), message)
            .await
    }

    /// Answers one message with a value of a type.
    ///
    /// The model is asked for JSON. The answer is checked against the type's schema and then
    /// deserialized; when either fails, the model is asked to correct it, within
    /// [`Limits::invalid_retries`](rondo_types::Limits::invalid_retries). The documentation comments
    /// of the type and of its fields become descriptions in the schema.
    ///
    /// # Errors
    /// When the turn failed, or ended without such a value. The outcome is in the error.
    ///
    /// # Cancel safety
    /// Dropping the future ends the turn.
    pub async fn run_typed<T: DeserializeOwned + JsonSchema>(
        &self,
        message: impl Into<Message>,
    ) -> Result<TypedAnswer<T>, TypedError> {
        let answer = Arc::new(AnswerSchema::of::<T>());
        let expected = Some(typed::Expected::of::<T>(&answer));
        let run = self
            .parts
            .start(Transcript::new(), message.into(), expected);
        typed::decoded(&answer, run.outcome().await)
    }

    /// Starts a turn and returns its handle: a stream of events that also stops and steers it.
    pub fn start(&self, message: impl Into<Message>) -> Run {
        self.start_with_messages(Transcript::new(), message)
    }

    /// Starts a turn on a message that follows a history.
    pub fn start_with_messages(&self, history: Transcript, message: impl Into<Message>) -> Run {
        self.parts.start(history, message.into(), None)
    }

    /// Opens a conversation with a generated name.
    #[must_use]
    pub fn session(&self) -> Session {
        Session::new(self.clone(), ids::new_session())
    }

    /// Opens a conversation with the given name.
    ///
    /// The name is part of every call's idempotency key, so no other conversation should have it.
    #[must_use]
    pub fn session_named(&self, id: impl Into<String>) -> Session {
        Session::new(self.clone(), SessionId::new(id))
    }

    /// Returns the specifications of the tools, in the order in which the model gets them.
    #[must_use]
    pub fn tools(&self) -> Arc<Vec<ToolSpec>> {
        self.parts.tools.specs()
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent")
            .field("model", &self.parts.model.info())
            .field("profile", &self.parts.profile.name)
            .finish_non_exhaustive()
    }
}
