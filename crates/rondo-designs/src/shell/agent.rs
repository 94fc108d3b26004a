//! The agent of the design: a model with a prompt, tools and a bound.

use super::events::{Reader, StreamEvent};
use super::messages::{ChatMessage, MessageError, chat_messages, transcript};
use crate::run::{AllowAll, Run};
use rondo_core::ports::OutputSink;
use rondo_core::{Gate, Model, Tool, Toolbox, profile as profiles};
use rondo_exec::{ExecOptions, ExecTool};
use rondo_types::{EventBody, Message, Outcome, StopReason, ToolSpec, Transcript, Usage};
use std::fmt;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// A model with a prompt, tools and a bound.
#[derive(Clone)]
pub struct Agent {
    name: String,
    model: Arc<dyn Model>,
    system_prompt: Option<String>,
    tools: Vec<Arc<dyn Tool>>,
    max_iterations: u32,
    gate: Arc<dyn Gate>,
    output: OutputSink,
}

impl Agent {
    /// The default of [`Self::with_max_iterations`].
    pub const MAX_ITERATIONS: u32 = 10;

    /// Builds an agent without prompt and tools.
    #[must_use]
    pub fn new(name: impl Into<String>, model: Arc<dyn Model>) -> Self {
        Self {
            name: name.into(),
            model,
            system_prompt: None,
            tools: Vec::new(),
            max_iterations: Self::MAX_ITERATIONS,
            gate: Arc::new(AllowAll),
            output: OutputSink::discard(),
        }
    }

    /// Builds the agent `default`: the prompt of gsh, and `exec` with a command as its only argument.
    ///
    /// [`Self::with_output`] shows what commands write while they run.
    ///
    /// # Errors
    /// [`ShellError::Config`] when the built-in profile cannot be read.
    pub fn gsh(model: Arc<dyn Model>, options: ExecOptions) -> Result<Self, ShellError> {
        let profile = profiles::builtin("shell");
        let profile = profile.map_err(|error| ShellError::Config(error.to_string()))?;
        let mut agent = Self::new("default", model).with_tool(ExecTool::exec_command_only(options));
        agent.system_prompt = profile.system_prompt;
        Ok(agent)
    }

    /// Sets the prompt.
    #[must_use]
    pub fn with_system_prompt(mut self, system_prompt: impl Into<String>) -> Self {
        self.system_prompt = Some(system_prompt.into());
        self
    }

    /// Adds a tool.
    #[must_use]
    pub fn with_tool(mut self, tool: impl Tool + 'static) -> Self {
        self.tools.push(Arc::new(tool));
        self
    }

    /// Sets how many requests a message may cost, at least 1.
    #[must_use]
    pub fn with_max_iterations(mut self, max_iterations: u32) -> Self {
        self.max_iterations = max_iterations;
        self
    }

    /// Adds a gate that judges each call before it runs; without one, every call runs.
    #[must_use]
    pub fn with_gate(mut self, gate: Arc<dyn Gate>) -> Self {
        self.gate = gate;
        self
    }

    /// Hands over the output of commands as it comes, such as to the terminal; the model reads it with the result.
    ///
    /// ```
    /// use rondo::OutputSink;
    /// use std::io::Write as _;
    ///
    /// let terminal = OutputSink::new(|text| {
    ///     let mut out = std::io::stdout();
    ///     // A terminal that is gone is no reason to end the command.
    ///     let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    /// });
    /// # let _ = terminal;
    /// ```
    #[must_use]
    pub fn with_output(mut self, output: OutputSink) -> Self {
        self.output = output;
        self
    }

    /// Returns its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns its prompt.
    #[must_use]
    pub fn system_prompt(&self) -> Option<&str> {
        self.system_prompt.as_deref()
    }

    fn run(&self, history: Transcript, text: &str) -> Result<Run, ShellError> {
        let config = |error: &dyn fmt::Display| ShellError::Config(error.to_string());
        if self.max_iterations == 0 {
            return Err(config(&"`max_iterations` must be at least 1"));
        }
        let mut profile = profiles::builtin("shell").map_err(|error| config(&error))?;
        profile.limits.max_steps = self.max_iterations;
        let tools = self.tools.iter().cloned();
        Ok(Run {
            model: Arc::clone(&self.model),
            tools: Toolbox::new(tools).map_err(|error| config(&error))?,
            gate: Arc::clone(&self.gate),
            system: self.system_prompt.clone().into_iter().collect(),
            profile,
            history,
            input: Message::user(text),
        })
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tools: Vec<String> = self.tools.iter().map(|tool| tool.spec().name).collect();
        f.debug_struct("Agent")
            .field("name", &self.name)
            .field("model", &self.model.info().origin)
            .field("tools", &tools)
            .field("max_iterations", &self.max_iterations)
            .finish_non_exhaustive()
    }
}

/// An agent and the conversation with it so far.
///
/// It keeps more than [`Self::messages`] shows: what a provider wants back unchanged goes back.
#[derive(Debug, Clone)]
pub struct State {
    agent: Agent,
    conversation: Transcript,
    usage: Usage,
}

impl State {
    /// Begins an empty conversation.
    #[must_use]
    pub fn new(agent: Agent) -> Self {
        Self {
            agent,
            conversation: Transcript::new(),
            usage: Usage::default(),
        }
    }

    /// Takes up a conversation that was kept as messages.
    ///
    /// # Errors
    /// When a result answers no call.
    pub fn from_messages(agent: Agent, messages: Vec<ChatMessage>) -> Result<Self, MessageError> {
        Ok(Self {
            conversation: transcript(messages, &agent.model.info().origin)?,
            ..Self::new(agent)
        })
    }

    /// Returns the conversation, without the system prompt.
    #[must_use]
    pub fn messages(&self) -> Vec<ChatMessage> {
        chat_messages(&self.conversation)
    }

    /// Returns the specifications of the tools that the model reads.
    #[must_use]
    pub fn tools(&self) -> Vec<ToolSpec> {
        self.agent.tools.iter().map(|tool| tool.spec()).collect()
    }

    /// Returns the tokens that the conversation cost so far.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// Forgets the conversation.
    pub fn clear(&mut self) {
        self.conversation.clear();
    }

    /// Says something to the agent and returns its answer, once no call is left.
    ///
    /// Whatever is returned, the conversation has all that was done. Cancelling ends what runs and
    /// gives every call a result.
    ///
    /// # Errors
    /// [`ShellError::MaxIterations`] at the limit, and the rest of [`ShellError`].
    ///
    /// # Cancel safety
    /// Dropping the future leaves the conversation as it was before; use the token.
    pub async fn send_message(
        &mut self,
        cancel: &CancellationToken,
        message: &str,
        mut on_event: impl FnMut(StreamEvent) + Send,
    ) -> Result<String, ShellError> {
        let run = self.agent.run(self.conversation.clone(), message)?;
        let mut reader = Reader::default();
        let output = self.agent.output.clone();
        let show = |event| {
            if let EventBody::ToolOutputDelta { text, .. } = &event {
                output.push(text.clone());
            }
            if let Some(event) = reader.read(event) {
                on_event(event);
            }
        };
        let outcome = run.finish(cancel, show).await;
        self.usage += outcome.usage;
        self.conversation.clone_from(&outcome.transcript);
        self.ended(outcome)
    }

    fn ended(&self, outcome: Outcome) -> Result<String, ShellError> {
        match outcome.stop_reason {
            StopReason::Complete => Ok(outcome.text),
            StopReason::MaxSteps => Err(ShellError::MaxIterations {
                max: self.agent.max_iterations,
                text: outcome.text,
            }),
            StopReason::Cancelled => Err(ShellError::Cancelled),
            _ => Err(ShellError::Provider(outcome.text)),
        }
    }
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ShellError {
    /// The agent cannot run at all.
    #[error("the agent cannot run: {0}")]
    Config(String),
    /// The model still wanted calls at the limit.
    #[error("the agent reached its limit of {max} iterations")]
    MaxIterations {
        /// The limit.
        max: u32,
        /// Output of the calls until then.
        text: String,
    },
    /// The run was cancelled.
    #[error("the agent was cancelled")]
    Cancelled,
    /// A request failed, took too long, or its reply cannot be used.
    #[error("{0}")]
    Provider(String),
    /// A command has no exit code.
    #[error("{0}")]
    Exec(String),
}
