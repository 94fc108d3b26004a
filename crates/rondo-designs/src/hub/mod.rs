//! A chat gateway's agent: receives, builds the context, asks the model, runs tools, replies.
//!
//! # Layout
//! - [`ChatHub`]: the queues between channels and the loop, of [`InboundMessage`]s and [`OutboundMessage`]s.
//! - [`AgentLoop`]: the loop. [`AgentLoop::run`] serves all chats, [`AgentLoop::process_message`] answers one message.
//! - [`ContextBuilder`] builds the context of a message: [`SevenLayers`] from the files of a workspace, or one of the
//!   program's own.
//! - [`SessionManager`], [`Session`]: fifty messages of each chat, in memory or in files.
//! - [`LlmProvider`] and its `Llm…` types: the model. [`ModelProvider`] makes any model of this crate one.
//! - [`AgentError`]: why a message has no answer.
//!
//! # Decisions where the design is silent
//! - At the limit of iterations the chat gets the notice *and* what the tools found, as an answer; any other failure is
//!   an [`AgentError`], and [`AgentLoop::run`] tells the chat.
//! - Fifty messages bound what is kept between turns, not a turn: they go in whole groups, so that no call is parted from
//!   its result. Of one turn that is longer, the question and its latest steps stay.
//! - Calls of one reply run at the same time, and results keep the order of the calls. A tool that declares itself
//!   [`Exclusive`](rondo_types::Concurrency::Exclusive) runs alone, as those that run commands or write files do.
//! - A call ends at its limit, within 100 ms, also if its tool ignores its token; a later result is dropped.
//! - A full queue makes the channel wait; no message is dropped for another.
//! - `MEMORY.md` is a layer of every session. Once a program names the owner's sessions
//!   ([`SevenLayers::with_owner_session`]) it is shown there alone, as `USER.md` always is.
//! - The blacklist of the design (`rm`, `sudo` and others) holds for every tool that runs commands, beside any gate
//!   ([`AgentLoop::without_blacklist`]).
//! - A gateway that survives crashes is `rondo serve`; here what is in the queues is lost with the process.
//!
//! # A gateway
//! ```
//! use rondo::async_trait;
//! use rondo::design::hub::{
//!     AgentLoop, ChatHub, InboundMessage, LlmMessage, LlmProvider, LlmResponse, ProviderError, ToolDefinition,
//! }; use rondo::CancellationToken;
//! use std::sync::Arc;
//!
//! /// Repeats what it is told.
//! struct Echo;
//!
//! #[async_trait]
//! impl LlmProvider for Echo {
//!     async fn chat(
//!         &self,
//!         messages: &[LlmMessage],
//!         _tools: &[ToolDefinition],
//!         _model: &str,
//!     ) -> Result<LlmResponse, ProviderError> {
//!         let last = messages.last().map(|message| message.content.as_str());
//!         Ok(LlmResponse::text(format!("You said: {}", last.unwrap_or_default())))
//!     }
//!
//!     fn default_model(&self) -> &str {
//!         "echo"
//!     }
//! }
//!
//! # fn main() {
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! let hub = Arc::new(ChatHub::new());
//! let agent = AgentLoop::new(Arc::clone(&hub), Arc::new(Echo));
//! let shutdown = CancellationToken::new();
//! let channel = async {
//!     hub.receive(InboundMessage::new("terminal", "1", "Hello.")).await;
//!     let answer = hub.next_outbound().await.unwrap();
//!     shutdown.cancel();
//!     answer
//! };
//! let (answer, ()) = tokio::join!(channel, agent.run(&shutdown));
//! assert_eq!((answer.chat_id.as_str(), answer.content.as_str()), ("1", "You said: Hello."));
//! # })
//! # }
//! ```

mod agent_loop;
mod blacklist;
mod chat_hub;
mod context;
mod error;
mod gateway;
mod provider;
mod session;
mod translate;
mod turns;
mod types;

pub use crate::stream::{ToolDefinition, ToolRegistry};
pub use agent_loop::{AgentLoop, AgentLoopEnd, MAX_ITERATIONS};
pub use chat_hub::{ChatHub, QUEUE_MESSAGES_MAX};
pub use context::{Context, ContextBuilder, SevenLayers};
pub use error::AgentError;
pub use gateway::CHAT_MESSAGES_MAX;
pub use provider::{LlmProvider, ModelProvider};
pub use rondo_types::ModelError as ProviderError;
pub use session::{SESSION_MESSAGES_MAX, Session, SessionManager};
pub use types::{
    InboundMessage, LlmMessage, LlmResponse, LlmRole, LlmToolCall, OUTBOUND_CHARS_MAX,
    OutboundMessage,
};
