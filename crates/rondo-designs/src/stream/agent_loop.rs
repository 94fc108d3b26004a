//! The loop of the design: asks, runs calls, and continues within its limits.

use super::executor::profile;
use super::provider::{ProviderAdapter, ProviderModel};
use super::turns::{Turns, messages_of_turns};
use super::types::{AgentConfig, AgentLoopResult};
use super::{FaeLlmError, Message, ToolRegistry};
use crate::run::{AllowAll, Run, transcript};
use rondo_core::{Gate, Model};
use rondo_types::{Profile, Role, Transcript};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Asks a model, runs the tools it calls, and continues until it answers or a limit is met.
///
/// It keeps nothing of a run: each one gets its messages and returns them with its result. Runs
/// may overlap.
pub struct AgentLoop {
    config: AgentConfig,
    provider: Arc<dyn ProviderAdapter>,
    tool_registry: ToolRegistry,
    gate: Arc<dyn Gate>,
    /// Token that ends the current runs; replaced when it has fired.
    running: Mutex<CancellationToken>,
}

impl AgentLoop {
    /// Takes limits, a provider and tools. Every call runs that fits its tool's schema; see
    /// [`Self::with_gate`].
    #[must_use]
    pub fn new(
        config: AgentConfig,
        provider: Arc<dyn ProviderAdapter>,
        tool_registry: ToolRegistry,
    ) -> Self {
        Self {
            config,
            provider,
            tool_registry,
            gate: Arc::new(AllowAll),
            running: Mutex::default(),
        }
    }

    /// Adds a gate that judges each call before it runs.
    #[must_use]
    pub fn with_gate(mut self, gate: Arc<dyn Gate>) -> Self {
        self.gate = gate;
        self
    }

    /// Runs one input of the user in a conversation of its own.
    ///
    /// # Errors
    /// [`FaeLlmError::ConfigError`] if the loop cannot run at all. Whatever happens in a run is
    /// part of its result.
    ///
    /// # Cancel safety
    /// Dropping the future ends the run without a result; use [`Self::cancel`].
    pub async fn run(&self, user_message: &str) -> Result<AgentLoopResult, FaeLlmError> {
        self.run_from(Transcript::new(), Message::user(user_message))
            .await
    }

    /// Runs from given messages, of which the last is the user's.
    ///
    /// # Errors
    /// As [`Self::run`], and [`FaeLlmError::RequestError`] if the last message is not the user's.
    /// Calls that have no result in the messages get one that says so.
    ///
    /// # Cancel safety
    /// As [`Self::run`].
    pub async fn run_with_messages(
        &self,
        mut messages: Vec<Message>,
    ) -> Result<AgentLoopResult, FaeLlmError> {
        match messages.pop() {
            Some(last) if last.role == Role::User => {
                self.run_from(transcript(messages), last).await
            }
            _ => Err(FaeLlmError::RequestError(
                "the last message must be one of the user".to_owned(),
            )),
        }
    }

    /// Continues after a finished run, with all its messages and tool results. The result holds
    /// the turns of this run alone, and the messages of both. A result without messages, as one that
    /// a program built, is continued from its turns.
    ///
    /// # Errors
    /// As [`Self::run`].
    ///
    /// # Cancel safety
    /// As [`Self::run`].
    pub async fn run_continuation(
        &self,
        previous: &AgentLoopResult,
        user_message: &str,
    ) -> Result<AgentLoopResult, FaeLlmError> {
        let history = build_messages_from_result(previous);
        self.run_from(transcript(history), Message::user(user_message))
            .await
    }

    /// Stops the runs under way: each ends its request or its calls, gives every call a result,
    /// and returns [`StopReason::Cancelled`](super::StopReason::Cancelled) within 100 ms, whatever
    /// its tools do. Later runs are not touched.
    pub fn cancel(&self) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *running).cancel();
    }

    async fn run_from(
        &self,
        history: Transcript,
        input: Message,
    ) -> Result<AgentLoopResult, FaeLlmError> {
        let cancel = self.running();
        let run = Run {
            model: self.model(),
            tools: self.tool_registry.toolbox(false)?,
            gate: Arc::clone(&self.gate),
            profile: self.profile()?,
            system: self.config.system_prompt.clone().into_iter().collect(),
            history,
            input,
        };
        let mut turns = Turns::default();
        let outcome = run.finish(&cancel, |event| turns.take(event)).await;
        let turns = turns.finish(&outcome.transcript);
        Ok(AgentLoopResult::new(outcome, turns))
    }

    fn model(&self) -> Arc<dyn Model> {
        let model = Arc::clone(&self.provider).into_model();
        model.unwrap_or_else(|| Arc::new(ProviderModel(Arc::clone(&self.provider))))
    }

    fn running(&self) -> CancellationToken {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.clone()
    }

    fn profile(&self) -> Result<Profile, FaeLlmError> {
        if self.config.max_turns == 0 {
            let message = "`max_turns` must be at least 1".to_owned();
            return Err(FaeLlmError::ConfigError(message));
        }
        let request = Duration::from_secs(self.config.request_timeout_secs);
        let mut profile = profile()?;
        let limits = &mut profile.limits;
        limits.max_steps = self.config.max_turns;
        limits.max_tool_calls_per_step = Some(self.config.max_tool_calls_per_turn);
        limits.step_timeout = Some(request);
        limits.first_byte_timeout = Some(request);
        limits.tool_timeout = Some(Duration::from_secs(self.config.tool_timeout_secs));
        Ok(profile)
    }
}

impl fmt::Debug for AgentLoop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentLoop")
            .field("config", &self.config)
            .field("model", &self.model().info().origin)
            .field("tool_registry", &self.tool_registry)
            .finish_non_exhaustive()
    }
}

/// Returns the messages of a run, tool results and what a provider wants back included: what
/// [`AgentLoop::run_with_messages`] takes, once a message of the user is added.
///
/// Of a result without messages they are built from its turns: what the model said, its calls, and
/// their results. The user's message is not part of turns, so the first message is the model's.
#[must_use]
pub fn build_messages_from_result(result: &AgentLoopResult) -> Vec<Message> {
    match result.messages.is_empty() {
        true => messages_of_turns(result),
        false => result.messages.clone(),
    }
}
