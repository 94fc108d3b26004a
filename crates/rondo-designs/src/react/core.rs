//! The agent of the design.

use super::client::LlmClient;
use super::context::TerminalContext;
use super::event::{AgentEvent, EventReader};
use super::tool::{Tool, native};
use crate::run::{AllowAll, Run};
use rondo_core::redact::Secrets;
use rondo_core::{Gate, Toolbox, profile as profiles};
use rondo_policy::CommandEnvironment;
use rondo_types::{Message, Transcript};
use std::fmt;
use std::sync::Arc;
use tokio::sync::mpsc::{self, Receiver, Sender};

/// Events that wait in the channel of [`Agent::run`].
pub const EVENTS_WAITING_MAX: usize = 64;

/// Thinks, acts and observes until it can answer.
///
/// Nothing is kept between runs; a run continues when the agent is dropped or gets more tools.
pub struct Agent {
    client: Arc<LlmClient>,
    tools: Vec<Arc<dyn Tool>>,
    max_iterations: usize,
    gate: Arc<dyn Gate>,
    secrets: Secrets,
}

impl Agent {
    /// The default of [`Self::with_max_iterations`].
    pub const MAX_ITERATIONS: usize = 10;

    /// Builds a core on a model. Without [`Self::with_gate`], every call that fits its tool's schema runs.
    #[must_use]
    pub fn new(client: Arc<LlmClient>) -> Self {
        Self {
            client,
            tools: Vec::new(),
            max_iterations: Self::MAX_ITERATIONS,
            gate: Arc::new(AllowAll),
            secrets: secrets_from_env(),
        }
    }

    /// Sets how many requests a run may make, at least 1.
    #[must_use]
    pub fn with_max_iterations(mut self, max_iterations: usize) -> Self {
        self.max_iterations = max_iterations;
        self
    }

    /// Adds a gate that judges each call before it runs.
    #[must_use]
    pub fn with_gate(mut self, gate: Arc<dyn Gate>) -> Self {
        self.gate = gate;
        self
    }

    /// Adds values that are redacted from the terminal's context and from what tools return. The values of the process's
    /// variables that hold a key, by their names, always are.
    #[must_use]
    pub fn with_secrets(mut self, secrets: impl IntoIterator<Item = String>) -> Self {
        self.secrets = self.secrets.with(secrets);
        self
    }

    /// Adds a tool; one of the same name is replaced, in its place.
    pub fn register_tool(&mut self, tool: Box<dyn Tool>) {
        let tool: Arc<dyn Tool> = Arc::from(tool);
        let known = self.tools.iter_mut();
        match known.into_iter().find(|known| known.name() == tool.name()) {
            Some(known) => *known = tool,
            None => self.tools.push(tool),
        }
    }

    /// Begins a run and returns what it reports. The run is a task of its own, in the tokio runtime
    /// of the caller.
    ///
    /// A slow receiver does not hold up the run; dropping it cancels the run.
    ///
    /// # Cancel safety
    /// Does not wait for anything.
    pub async fn run(&self, user_prompt: &str, context: &TerminalContext) -> Receiver<AgentEvent> {
        let (events, receiver) = mpsc::channel(EVENTS_WAITING_MAX);
        let run = self.prepare(user_prompt, context);
        tokio::spawn(async move {
            match run {
                Ok(run) => report(run, events).await,
                // The channel is new and empty, so there is room.
                Err(message) => drop(events.try_send(AgentEvent::Error(message))),
            }
        });
        receiver
    }

    fn prepare(&self, user_prompt: &str, context: &TerminalContext) -> Result<Run, String> {
        if self.max_iterations == 0 {
            return Err("`max_iterations` must be at least 1".to_owned());
        }
        let tools = self.tools.iter().map(native);
        let mut profile = profiles::builtin("react").map_err(|error| error.to_string())?;
        profile.limits.max_steps = u32::try_from(self.max_iterations).unwrap_or(u32::MAX);
        let prompt = profile.system_prompt.clone();
        // A program takes the context from a terminal, and a key may be on its screen.
        let facts = context.facts().map(|it| self.secrets.text(it));
        let screens = self.secrets.text(context.screens());
        Ok(Run {
            model: self.client.model(),
            tools: Toolbox::new(tools)
                .map_err(|error| error.to_string())?
                .redacted(&self.secrets),
            gate: Arc::clone(&self.gate),
            system: prompt.into_iter().chain(facts).collect(),
            profile,
            history: Transcript::new(),
            input: Message::user(format!("{screens}{user_prompt}")),
        })
    }
}

/// Returns the values of the process's variables that hold a key.
fn secrets_from_env() -> Secrets {
    let rules = CommandEnvironment {
        // These are withheld for their effect on programs and hold no keys.
        withheld: Vec::new(),
        ..CommandEnvironment::default()
    };
    let variables = std::env::vars_os();
    let variables = variables
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let keys = variables.filter(|(name, value)| rules.is_withheld_with(name, value));
    Secrets::new(keys.map(|(_, value)| value))
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tools: Vec<&str> = self.tools.iter().map(|tool| tool.name()).collect();
        f.debug_struct("Agent")
            .field("client", &self.client)
            .field("tools", &tools)
            .field("max_iterations", &self.max_iterations)
            .finish_non_exhaustive()
    }
}

/// Runs the turn and sends what it means here, at the receiver's pace.
async fn report(run: Run, events: Sender<AgentEvent>) {
    let (turn, mut listener) = run.begin(events.closed());
    let listen = async {
        let mut reader = EventReader::default();
        while let Some(event) = listener.next().await {
            for event in reader.read(event.body) {
                // If the receiver is gone, the turn ends by `closed`.
                let _ = events.send(event).await;
            }
        }
    };
    let (outcome, ()) = tokio::join!(turn, listen);
    let _ = events
        .send(EventReader::last(outcome.stop_reason, outcome.text))
        .await;
}
