//! Text ReAct: a model that writes its calls as tags, one a reply, and an agent that reports on a
//! channel.
//!
//! # Layout
//! - [`core`]: [`Agent`], which runs a prompt.
//! - [`tool`]: the trait [`Tool`].
//! - [`tools`]: [`tools::shell`], the tool `execute_command`; [`tools::memory`], the tool `search_memory`.
//! - [`event`], [`client`], [`context`]: [`AgentEvent`], [`LlmClient`], [`TerminalContext`].
//!
//! # Decisions where the design is silent
//! - The channel holds [`EVENTS_WAITING_MAX`] events. While it is full, events wait in the turn's
//!   own bounded stream, and the run continues; no event of this design is lost.
//! - A dropped receiver cancels the run, which ends what it started.
//! - Every run ends with exactly one [`AgentEvent::FinalResponse`] or [`AgentEvent::Error`], and
//!   the channel closes behind it. At the limit of iterations it is a final response, whose first
//!   line is `I tried but couldn't finish` and which lists what the tools found.
//! - The prompt's tags are text, so any dialect of a provider can carry them.
//!
//! # A run
//! ```
//! use rondo::async_trait;
//! use rondo::design::react::{Agent, AgentEvent, LlmClient, TerminalContext, Tool};
//! use serde_json::{Value, json};
//! use std::sync::Arc;
//! # use rondo::types::{FinishReason, ModelEvent, Origin};
//! # use rondo::{Model, ModelInfo, ModelRequest, ModelStream};
//! # struct Scripted;
//! # impl Model for Scripted {
//! #     fn info(&self) -> ModelInfo {
//! #         let origin = Origin { dialect: "none".into(), provider: "docs".into(), model: "two".into() };
//! #         ModelInfo { origin, streaming: true, price: None, context_tokens: None }
//! #     }
//! #     fn stream(&self, request: Arc<ModelRequest>) -> ModelStream {
//! #         let finished = |reason| ModelEvent::Finished { candidate: 0, reason, raw: String::new() };
//! #         let said = |text: &str| ModelEvent::TextDelta { candidate: 0, text: text.to_owned() };
//! #         let events = if request.messages.len() == 1 {
//! #             vec![
//! #                 said("I need to know the time."),
//! #                 ModelEvent::ToolCallStarted { candidate: 0, call: 0, wire_id: None, name: "clock".into() },
//! #                 ModelEvent::ToolCallDelta { call: 0, arguments: "{}".into() },
//! #                 ModelEvent::ToolCallFinished { call: 0, opaque: None },
//! #                 finished(FinishReason::ToolCalls),
//! #             ]
//! #         } else {
//! #             vec![said("It is noon."), finished(FinishReason::Stop)]
//! #         };
//! #         Box::pin(futures_util::stream::iter(events.into_iter().map(Ok)))
//! #     }
//! # }
//!
//! struct Clock;
//!
//! #[async_trait]
//! impl Tool for Clock {
//!     fn name(&self) -> &str { "clock" }
//!     fn description(&self) -> &str { "Tells the time." }
//!     fn parameters(&self) -> Value { json!({"type": "object", "properties": {}}) }
//!     async fn execute(&self, _: Value) -> anyhow::Result<String> { Ok("12:00".to_owned()) }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! # let client = LlmClient::new(Arc::new(Scripted));
//! // In a program: `LlmClient::http(&endpoint, card)?`.
//! let mut agent = Agent::new(Arc::new(client));
//! agent.register_tool(Box::new(Clock));
//!
//! let mut events = agent.run("What time is it?", &TerminalContext::default()).await;
//! let mut seen = Vec::new();
//! while let Some(event) = events.recv().await {
//!     seen.push(event);
//! }
//! assert_eq!(seen, [
//!     AgentEvent::Thought("I need to know the time.".to_owned()),
//!     AgentEvent::ToolCall { name: "clock".to_owned(), args: "{}".to_owned() },
//!     AgentEvent::ToolOutput("12:00".to_owned()),
//!     AgentEvent::FinalResponse("It is noon.".to_owned()),
//! ]);
//! # Ok(())
//! # })
//! # }
//! ```

pub mod client;
pub mod context;
pub mod core;
pub mod event;
pub mod tool;
pub mod tools;

pub use self::core::{Agent, EVENTS_WAITING_MAX};
pub use client::LlmClient;
pub use context::TerminalContext;
pub use event::{AgentEvent, EventReader};
pub use tool::Tool;
