//! The loop of the design: context, model, tools, reply.

use super::blacklist::Blacklist;
use super::chat_hub::ChatHub;
use super::context::{Context, ContextBuilder, SevenLayers};
use super::error::AgentError;
use super::provider::{LlmProvider, ProviderModel};
use super::session::{Session, SessionManager};
use super::translate;
use super::types::{InboundMessage, LlmMessage, LlmResponse, LlmToolCall, OutboundMessage};
use super::{ToolRegistry, turns::Turns};
use crate::recital::Recital;
use crate::run::{AllowAll, Run};
use rondo_core::{Gate, Model, Tool, Toolbox, profile as profiles};
use rondo_types::{Message, Overflow, Profile, Role, Transcript};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The most requests to the model for one message.
pub const MAX_ITERATIONS: u32 = 200;

/// The most calls of one reply that run at the same time: as many as a reply may have.
const CALLS_AT_ONCE_MAX: u32 = 256;

/// Builds the tools that belong to the chat of a message.
type ChatTools = Arc<dyn Fn(&InboundMessage) -> Vec<Arc<dyn Tool>> + Send + Sync>;

/// Answers the messages of all chats: each with its own session, its own order, and no wait for another.
#[derive(Clone)]
pub struct AgentLoop {
    chat_hub: Arc<ChatHub>,
    llm_provider: Arc<dyn LlmProvider>,
    tool_registry: Arc<ToolRegistry>,
    max_iterations: u32,
    model: String,
    tool_timeout: Option<Duration>,
    context_builder: Arc<dyn ContextBuilder>,
    session_manager: SessionManager,
    chat_tools: ChatTools,
    gate: Arc<dyn Gate>,
    has_blacklist: bool,
    turns: Turns,
}

/// How the loop ended for one message.
#[derive(Debug, Clone)]
pub struct AgentLoopEnd {
    /// The answer; if the model gave none, what the tools found until then.
    pub text: String,
    /// How many requests it took.
    pub iterations: u32,
    /// Why there is no answer of the model; `None` if there is one.
    pub error: Option<AgentError>,
    transcript: Transcript,
}

impl AgentLoopEnd {
    /// Returns the messages of the session with those of this run.
    #[must_use]
    pub fn messages(&self) -> Vec<LlmMessage> {
        translate::llm_messages(&self.transcript)
    }
}

impl AgentLoop {
    /// Takes the queues and a provider, whose default model is asked.
    #[must_use]
    pub fn new(chat_hub: Arc<ChatHub>, llm_provider: Arc<dyn LlmProvider>) -> Self {
        let model = llm_provider.default_model().to_owned();
        Self::with_model(chat_hub, llm_provider, model)
    }

    /// Takes the queues, a provider, and the model that is asked.
    #[must_use]
    pub fn with_model(
        chat_hub: Arc<ChatHub>,
        llm_provider: Arc<dyn LlmProvider>,
        model: impl Into<String>,
    ) -> Self {
        Self {
            chat_hub,
            llm_provider,
            tool_registry: Arc::default(),
            max_iterations: MAX_ITERATIONS,
            model: model.into(),
            tool_timeout: None,
            context_builder: Arc::new(SevenLayers::new()),
            session_manager: SessionManager::new(),
            chat_tools: Arc::new(|_| Vec::new()),
            gate: Arc::new(AllowAll),
            has_blacklist: true,
            turns: Turns::default(),
        }
    }

    /// Sets the tools of all chats.
    #[must_use]
    pub fn with_tools(mut self, tools: impl Into<Arc<ToolRegistry>>) -> Self {
        self.tool_registry = tools.into();
        self
    }

    /// Adds tools that belong to the chat of each message, such as one that sends to it.
    #[must_use]
    pub fn with_chat_tools<F>(mut self, tools: F) -> Self
    where
        F: Fn(&InboundMessage) -> Vec<Arc<dyn Tool>> + Send + Sync + 'static,
    {
        self.chat_tools = Arc::new(tools);
        self
    }

    /// Sets what builds contexts; of history and message alone, otherwise.
    #[must_use]
    pub fn with_context_builder(mut self, builder: impl ContextBuilder + 'static) -> Self {
        self.context_builder = Arc::new(builder);
        self
    }

    /// Sets where sessions are kept; in memory, otherwise.
    #[must_use]
    pub fn with_session_manager(mut self, sessions: SessionManager) -> Self {
        self.session_manager = sessions;
        self
    }

    /// Sets how many requests a message may cost, at least 1.
    #[must_use]
    pub fn with_max_iterations(mut self, max_iterations: u32) -> Self {
        self.max_iterations = max_iterations;
        self
    }

    /// Sets how long a call may run; 30 seconds, otherwise.
    #[must_use]
    pub fn with_tool_timeout(mut self, timeout: Duration) -> Self {
        self.tool_timeout = Some(timeout);
        self
    }

    /// Lets tools run the programs of the blacklist: `rm`, `sudo` and others, which are refused otherwise, whichever
    /// tool runs them.
    #[must_use]
    pub fn without_blacklist(mut self) -> Self {
        self.has_blacklist = false;
        self
    }

    /// Adds a gate for calls that the blacklist does not refuse; without one, each of them runs.
    #[must_use]
    pub fn with_gate(mut self, gate: Arc<dyn Gate>) -> Self {
        self.gate = gate;
        self
    }

    /// Returns the queues.
    #[must_use]
    pub fn chat_hub(&self) -> &Arc<ChatHub> {
        &self.chat_hub
    }

    /// Returns the manager of the sessions.
    #[must_use]
    pub fn session_manager(&self) -> &SessionManager {
        &self.session_manager
    }

    /// Answers one message and keeps its session. Messages of one chat are answered one after the other.
    ///
    /// At the limit of iterations the answer is the notice and what the tools found until then. Whatever else goes
    /// wrong, the session keeps what was done.
    ///
    /// # Errors
    /// When the model gave no answer, the message is empty, or the session cannot be kept. [`AgentError::reply`] is what
    /// the chat is told.
    ///
    /// # Cancel safety
    /// Dropping the future ends the turn at once, and the session stays as it was before.
    pub async fn process_message(
        &self,
        message: &InboundMessage,
    ) -> Result<OutboundMessage, AgentError> {
        self.process(message, &CancellationToken::new()).await
    }

    pub(super) async fn process(
        &self,
        message: &InboundMessage,
        cancel: &CancellationToken,
    ) -> Result<OutboundMessage, AgentError> {
        let session_id = message.session_id();
        let _turn = self.turns.begin(&session_id).await;
        let mut session = self.load(message, session_id).await?;
        let context = self.context_builder.build(&session, message).await?;
        let end = self.run_until(message, context, cancel).await?;
        tracing::info!(
            iteration = end.iterations,
            chat_id = message.chat_id,
            channel = message.channel,
            "agent loop ended"
        );
        session.take(end.transcript);
        self.save_session(session).await?;
        match end.error {
            None => Ok(message.reply(end.text)),
            Some(AgentError::MaxIterationsReached { text, .. }) => Ok(message.reply(text)),
            Some(error) => Err(error),
        }
    }

    /// Asks the model, runs the calls it wants, and continues until it answers or a limit is met.
    ///
    /// # Errors
    /// When the loop cannot run at all. How it ended otherwise is part of its end.
    ///
    /// # Cancel safety
    /// Dropping the future ends the request or the calls under way.
    pub async fn run_agent_loop(
        &self,
        message: &InboundMessage,
        context: Context,
    ) -> Result<AgentLoopEnd, AgentError> {
        let never = CancellationToken::new();
        self.run_until(message, context, &never).await
    }

    async fn run_until(
        &self,
        message: &InboundMessage,
        context: Context,
        cancel: &CancellationToken,
    ) -> Result<AgentLoopEnd, AgentError> {
        let tools = self.toolbox(Some(message))?;
        let run = self.run_of(context, self.profile()?, tools)?;
        let outcome = run.finish(cancel, |_| ()).await;
        Ok(AgentLoopEnd {
            error: AgentError::of(&outcome, self.max_iterations),
            text: outcome.text,
            iterations: outcome.steps,
            transcript: outcome.transcript,
        })
    }

    /// Sends one request of a context, with up to three retries after 1, 2 and 4 seconds if the failure may pass.
    /// The calls that the model wants are returned and not run.
    ///
    /// # Errors
    /// When there is no usable reply.
    ///
    /// # Cancel safety
    /// Dropping the future ends the request.
    pub async fn call_llm_with_retry(&self, context: Context) -> Result<LlmResponse, AgentError> {
        let mut profile = self.profile()?;
        profile.limits.max_steps = 1;
        profile.limits.max_tool_calls_per_step = Some(0);
        profile.limits.overflow = Overflow::Stop;
        let before = context.history.len();
        let run = self.run_of(context, profile, self.toolbox(None)?)?;
        let outcome = run.finish(&CancellationToken::new(), |_| ()).await;
        // The history may have become shorter, so the reply is looked for from the end.
        let mut replies = outcome.transcript.iter().rev();
        let reply = replies.find(|message| message.role == Role::Assistant);
        let is_new = outcome.transcript.len() > before + 1;
        match reply.filter(|_| is_new) {
            Some(reply) => Ok(LlmResponse {
                usage: Some(outcome.usage),
                ..translate::response_of(reply)
            }),
            None => Err(AgentError::of(&outcome, 1).unwrap_or(AgentError::Cancelled)),
        }
    }

    /// Runs calls, as far as they may at the same time, and returns a result for each in the order of the calls. What
    /// fails is a result that says so.
    ///
    /// # Cancel safety
    /// Dropping the future ends the calls without waiting for them.
    pub async fn execute_tools(&self, calls: &[LlmToolCall]) -> Vec<LlmMessage> {
        let run = self.recital(calls);
        let results = match run {
            Ok(run) => run.finish(&CancellationToken::new(), |_| ()).await,
            Err(error) => return failures(calls, &error.to_string()),
        };
        let messages = results.transcript.iter();
        let results: Vec<_> = messages.flat_map(|it| it.results()).collect();
        match results.len() == calls.len() {
            // Calls that share an id are distinguished by their place.
            true => results
                .into_iter()
                .zip(calls)
                .map(|(result, call)| LlmMessage {
                    tool_call_id: Some(call.id.clone()),
                    ..translate::llm_result(result)
                })
                .collect(),
            false => failures(calls, "it was not run"),
        }
    }

    /// Runs one call, as [`Self::execute_tools`] does.
    ///
    /// # Cancel safety
    /// As [`Self::execute_tools`].
    pub async fn execute_single_tool(&self, call: &LlmToolCall) -> LlmMessage {
        let results = self.execute_tools(std::slice::from_ref(call)).await;
        let result = results.into_iter().next();
        result.unwrap_or_else(|| LlmMessage::tool_result(call.id.clone(), "it was not run"))
    }

    /// Keeps a session.
    ///
    /// # Errors
    /// When its file cannot be written.
    ///
    /// # Cancel safety
    /// Not cancel safe: it may or may not be kept.
    pub async fn save_session(&self, session: Session) -> Result<(), AgentError> {
        let sessions = self.session_manager.clone();
        let saved = tokio::task::spawn_blocking(move || sessions.save(session)).await;
        saved.unwrap_or_else(|error| Err(AgentError::Config(error.to_string())))
    }

    async fn load(&self, message: &InboundMessage, id: String) -> Result<Session, AgentError> {
        let sessions = self.session_manager.clone();
        let (channel, chat) = (message.channel.clone(), message.chat_id.clone());
        let load = move || sessions.get_or_new(&id, &channel, &chat);
        let loaded = tokio::task::spawn_blocking(load).await;
        loaded.unwrap_or_else(|error| Err(AgentError::Config(error.to_string())))
    }

    fn recital(&self, calls: &[LlmToolCall]) -> Result<Run, AgentError> {
        let mut profile = self.profile()?;
        profile.limits.max_steps = 1;
        let calls = calls.iter().cloned().map(translate::recited).collect();
        Ok(Run {
            model: Arc::new(Recital { calls }),
            tools: self.toolbox(None)?,
            gate: self.judges(&profile)?,
            profile,
            system: Vec::new(),
            history: Transcript::new(),
            input: Message::synthetic_user("Run these calls."),
        })
    }

    fn run_of(
        &self,
        context: Context,
        profile: Profile,
        tools: Toolbox,
    ) -> Result<Run, AgentError> {
        if self.max_iterations == 0 {
            let message = "`max_iterations` must be at least 1".to_owned();
            return Err(AgentError::Config(message));
        }
        Ok(Run {
            model: self.asked(),
            tools,
            gate: self.judges(&profile)?,
            profile,
            system: context.system,
            history: context.history,
            input: context.message,
        })
    }

    /// Returns the gate for calls: the blacklist, then the program's gate.
    fn judges(&self, profile: &Profile) -> Result<Arc<dyn Gate>, AgentError> {
        let gate = Arc::clone(&self.gate);
        if !self.has_blacklist {
            return Ok(gate);
        }
        let gate = Blacklist::before(gate, &profile.rule_sets, &profile.name);
        Ok(Arc::new(gate.map_err(AgentError::Config)?))
    }

    fn asked(&self) -> Arc<dyn Model> {
        let model = self.llm_provider.model(&self.model);
        model.unwrap_or_else(|| {
            Arc::new(ProviderModel {
                provider: Arc::clone(&self.llm_provider),
                name: self.model.clone(),
            })
        })
    }

    fn toolbox(&self, message: Option<&InboundMessage>) -> Result<Toolbox, AgentError> {
        let mut registry = ToolRegistry::clone(&self.tool_registry);
        for tool in message.map(|it| (self.chat_tools)(it)).unwrap_or_default() {
            registry.register(tool);
        }
        let toolbox = registry.toolbox(true);
        toolbox.map_err(|error| AgentError::Config(error.to_string()))
    }

    fn profile(&self) -> Result<Profile, AgentError> {
        let profile = profiles::builtin("hub");
        let mut profile = profile.map_err(|error| AgentError::Config(error.to_string()))?;
        profile.limits.max_steps = self.max_iterations;
        profile.limits.max_parallel = CALLS_AT_ONCE_MAX;
        if let Some(timeout) = self.tool_timeout {
            profile.limits.tool_timeout = Some(timeout);
        }
        Ok(profile)
    }
}

fn failures(calls: &[LlmToolCall], why: &str) -> Vec<LlmMessage> {
    let failure = |call: &LlmToolCall| LlmMessage::tool_result(call.id.clone(), why);
    calls.iter().map(failure).collect()
}

impl fmt::Debug for AgentLoop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentLoop")
            .field("model", &self.model)
            .field("tool_registry", &self.tool_registry)
            .field("max_iterations", &self.max_iterations)
            .finish_non_exhaustive()
    }
}
