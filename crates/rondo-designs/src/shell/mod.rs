//! A shell's agent: `exec` on a terminal, a conversation in the shape of OpenAI's messages, and a
//! loop that streams.
//!
//! # Layout
//! - [`Agent`], [`State`] and [`State::send_message`]: the loop.
//! - [`ChatMessage`]: the message on the wire and in files, both ways.
//! - [`execute_command`], [`ExecResult`], [`exec_tool_definition`]: the tool `exec`.
//! - [`StreamEvent`]: the progress that is shown meanwhile.
//!
//! # Decisions where the design is silent
//! - Ten requests bound a message. At the limit, as after any failure or cancel, the conversation
//!   keeps all that was done, every call with its result, **and** there is an error.
//! - Live output of a command goes to [`State::send_message`]'s events only as its result; a
//!   program that shows it takes [`execute_command`], or a [`Gate`](rondo_core::Gate) and our own events.
//! - A command's leftovers are ended with it, so that none holds up its terminal.
//!
//! # A message
//! ```
//! use rondo::design::shell::{Agent, ChatMessage, State, StreamEventType};
//! use std::sync::Arc;
//! use rondo::CancellationToken;
//! # use rondo::types::{FinishReason, ModelEvent, Origin};
//! # use rondo::{Model, ModelInfo, ModelRequest, ModelStream};
//! # struct Scripted;
//! # impl Model for Scripted {
//! #     fn info(&self) -> ModelInfo {
//! #         let origin = Origin { dialect: "none".into(), provider: "docs".into(), model: "one".into() };
//! #         ModelInfo { origin, streaming: true, price: None, context_tokens: None }
//! #     }
//! #     fn stream(&self, _: Arc<ModelRequest>) -> ModelStream {
//! #         let events = [
//! #             ModelEvent::TextDelta { candidate: 0, text: "Hello.".into() },
//! #             ModelEvent::Finished { candidate: 0, reason: FinishReason::Stop, raw: String::new() },
//! #         ];
//! #         Box::pin(futures_util::stream::iter(events.into_iter().map(Ok)))
//! #     }
//! # }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! # let model = Arc::new(Scripted);
//! // `model` is any `rondo::Model`; `Agent::gsh(model, exec_options)` has `exec` as well.
//! let mut state = State::new(Agent::new("default", model));
//! let mut shown = String::new();
//! let answer = state.send_message(&CancellationToken::new(), "Hi", |event| {
//!     if event.kind == StreamEventType::Content {
//!         shown.push_str(&event.content);
//!     }
//! }).await?;
//! assert_eq!((answer.as_str(), shown.as_str()), ("Hello.", "Hello."));
//! assert_eq!(state.messages(), [ChatMessage::user("Hi"), ChatMessage::assistant("Hello.")]);
//! # Ok(())
//! # })
//! # }
//! ```

mod agent;
mod events;
mod exec;
mod messages;

pub use agent::{Agent, ShellError, State};
pub use events::{StreamEvent, StreamEventType, StreamTool};
pub use exec::{ExecResult, exec_tool_definition, execute_command};
pub use messages::{ChatMessage, ChatRole, FunctionCall, MessageError, ToolCall};
