//! The streaming engine as a library: an agent loop that a program builds, runs, cancels and
//! continues.
//!
//! # Layout
//! - [`AgentLoop`] with [`AgentConfig`], a [`ProviderAdapter`] and [`ToolRegistry`] gives an [`AgentLoopResult`].
//! - [`StreamAccumulator`] folds [`LlmEvent`]s into an [`AccumulatedTurn`].
//! - [`ToolExecutor`] runs calls without a model, [`validate_tool_args`] checks their arguments.
//! - [`FaeLlmError`]: the error that is reported instead of a result.
//!
//! # Decisions where the design is silent
//! - A failed request is a result with [`StopReason::Error`] and all turns so far; `Err` means that
//!   the loop was not used as it must be.
//! - A reply that asks for more calls than it may has none of them run.
//! - `request_timeout_secs` covers the whole of a reply, not its opening alone; a stream that
//!   stalls ends after a minute at the latest.
//! - A call ends at its limit or its cancel, within 100 ms, also if its tool ignores its token; what
//!   the tool returns later is dropped. Only a tool that blocks the one thread of a runtime delays
//!   the end, which is an error then, too.
//! - Calls count by presence: they are run whatever finish reason a reply names.
//! - A result carries the messages of its run, so a continuation loses neither what the user said
//!   nor what a provider wants back.
//!
//! # A run and its continuation
//! ```
//! use rondo::design::stream::{AgentConfig, AgentLoop, StopReason, ToolRegistry};
//! use std::sync::Arc;
//! # use rondo::types::{FinishReason, ModelEvent, Origin};
//! # use rondo::{Model, ModelInfo, ModelRequest, ModelStream};
//! # struct Counts;
//! # impl Model for Counts {
//! #     fn info(&self) -> ModelInfo {
//! #         let origin = Origin { dialect: "none".into(), provider: "docs".into(), model: "counts".into() };
//! #         ModelInfo { origin, streaming: true, price: None, context_tokens: None }
//! #     }
//! #     fn stream(&self, request: Arc<ModelRequest>) -> ModelStream {
//! #         let text = format!("I have read {} messages.", request.messages.len());
//! #         let events = [
//! #             ModelEvent::TextDelta { candidate: 0, text },
//! #             ModelEvent::Finished { candidate: 0, reason: FinishReason::Stop, raw: "stop".into() },
//! #         ];
//! #         Box::pin(futures_util::stream::iter(events.into_iter().map(Ok)))
//! #     }
//! # }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! # let provider = Arc::new(Counts);
//! // `provider` is any `ProviderAdapter`, as each `rondo::Model` is: an `HttpModel`, in a program.
//! let config = AgentConfig::default().with_max_turns(5);
//! let agent = AgentLoop::new(config, provider, ToolRegistry::new());
//!
//! let first = agent.run("Hello.").await?;
//! assert_eq!(first.stop_reason, StopReason::Complete);
//! assert_eq!(first.final_text, "I have read 1 messages.");
//!
//! let second = agent.run_continuation(&first, "And now?").await?;
//! assert_eq!(second.final_text, "I have read 3 messages.");
//! # Ok(())
//! # })
//! # }
//! ```

mod accumulator;
mod agent_loop;
mod error;
mod executor;
mod provider;
mod registry;
mod turns;
mod types;

pub use accumulator::{LlmEvent, StreamAccumulator};
pub use agent_loop::{AgentLoop, build_messages_from_result};
pub use error::FaeLlmError;
pub use executor::{ToolExecutor, validate_tool_args};
pub use provider::{LlmEventStream, ProviderAdapter};
pub use registry::ToolRegistry;
pub use rondo_types::{FinishReason, Message, ToolSpec as ToolDefinition, Usage as TokenUsage};
pub use types::{
    AccumulatedToolCall, AccumulatedTurn, AgentConfig, AgentLoopResult, ExecutedToolCall,
    StopReason, ToolResult, ToolTiming, TurnResult,
};
