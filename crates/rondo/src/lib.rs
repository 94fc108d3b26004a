//! The library of Rondo: turns that end, whatever the model, the network or a tool does.
//!
//! An [`Agent`] is a model with its tools, rules and limits. It takes a message to an [`Outcome`]:
//! the model is asked, the tools it calls are run, their results go back, until there is an answer
//! or a limit is met. An agent with a tool of its own:
//!
//! ```
//! use rondo::{Agent, Endpoint, HttpModel, JsonSchema, ModelCard};
//! use serde::Deserialize;
//!
//! #[derive(Deserialize, JsonSchema)]
//! struct Add {
//!     a: i64,
//!     b: i64,
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! #     tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(ask())
//! # }
//! async fn ask() -> Result<(), Box<dyn std::error::Error>> {
//! #   use rondo_testkit::{CallScript, ReplyScript, Server, openai};
//! #   let call = CallScript::new("c", "add", &serde_json::json!({"a": 17, "b": 25}));
//! #   let replies = [ReplyScript::calls([call]), ReplyScript::text(["It is 42."])];
//! #   let server = Server::start(replies.map(|reply| openai::streamed(&reply))).await;
//! #   let base_url = server.url("/v1");
//!     let endpoint = Endpoint::new("localhost", "openai-chat", base_url);
//!     let add = rondo::tool("add", "Adds two integers.", |args: Add, _cx| async move {
//!         args.a.checked_add(args.b).ok_or("the sum is too large")
//!     });
//!     let agent = Agent::builder(HttpModel::new(&endpoint, ModelCard::new("any"))?)
//!         .tool(add)
//!         .build()?;
//!     let outcome = agent.run("What is 17 plus 25?").await?;
//!     assert_eq!(outcome.text, "It is 42.");
//!     Ok(())
//! }
//! ```
//!
//! # What to use when
//! | to | there is |
//! |---|---|
//! | ask once, or after other messages | [`Agent::run`], [`Agent::run_with_messages`], [`Agent::continue_from`] |
//! | hold a conversation | [`Agent::session`] |
//! | keep one, and continue with it in another process | feature `journal`: `Agent::open_session`, [`Session::resume`] |
//! | watch, stop or steer a turn | [`Agent::start`], which returns a [`Run`] |
//! | get a value instead of text | [`Agent::run_typed`] |
//! | add a function as a tool | [`tool()`] |
//! | add files and commands | [`AgentBuilder::files`], [`AgentBuilder::commands`] |
//! | decide or be asked what may run | [`AgentBuilder::approve_with`], [`approvals`], [`AgentBuilder::gate`] |
//! | change limits | [`AgentBuilder::limits`], [`AgentBuilder::profile`] |
//!
//! `docs/library.md` goes through them, and the crate's `examples` are programs that can be run.
//!
//! # Layout
//! - The root: agents, typed tools, and the vocabulary that a program meets.
//! - [`profiles`], [`tools`], [`rondo_http`]: the built-in profiles, the built-in tools and the gate that
//!   judges their calls, the transport.
//! - [`memory`]: memories across sessions, and the tools over them.
//! - [`design`]: the agent loops of five designs, in their own words.
//! - [`python`](mod@python): a live Python session, and its tools.
//! - [`supervisor`]: the hook that a program needs for commands.
//! - [`types`], [`rondo_core`]: everything else, for those who write hosts.
//!
//! # Beneath
//! An agent fills in a [`TurnSetup`] and hands it to [`run_turn`]. A host that wants to decide every
//! part itself (ids, journal, gate, approver) does the same:
//!
//! ```
//! use rondo::types::{Concurrency, Effects, FinishReason, ModelEvent, Origin, Recovery};
//! use rondo::rondo_core::ports::Commit;
//! use rondo::{
//!     Approver, Gate, GateRequest, MemoryJournal, Message, Model, ModelInfo,
//!     ModelRequest, ModelStream, OutsideText, Question, QuestionReply, SessionId, StopReason, Tool, ToolInvocation,
//!     ToolOutcome, ToolSpec, Toolbox, TurnId, TurnSetup, Verdict, async_trait, control, events,
//!     profiles, run_turn,
//! };
//! use serde_json::json;
//! use std::sync::Arc;
//!
//! struct Add;
//!
//! #[async_trait]
//! impl Tool for Add {
//!     fn spec(&self) -> ToolSpec {
//!         ToolSpec {
//!             name: "add".to_owned(),
//!             description: "Adds two integers.".to_owned(),
//!             parameters: json!({
//!                 "type": "object",
//!                 "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
//!                 "required": ["a", "b"],
//!             }),
//!             effects: Effects::ReadOnly,
//!             concurrency: Concurrency::Shared,
//!             recovery: Recovery::ReadOnly,
//!             ..ToolSpec::default()
//!         }
//!     }
//!
//!     async fn call(&self, call: ToolInvocation) -> ToolOutcome {
//!         // The arguments fit the schema, or the call would not have come here.
//!         let number = |name: &str| call.arguments[name].as_i64().unwrap_or_default();
//!         ToolOutcome::json(json!({"sum": number("a") + number("b")}))
//!     }
//! }
//!
//! # /// Calls `add`, then answers with what it returned.
//! # struct Scripted;
//! #
//! # impl Model for Scripted {
//! #     fn info(&self) -> ModelInfo {
//! #         let origin = Origin { dialect: "none".into(), provider: "script".into(), model: "two".into() };
//! #         ModelInfo { origin, streaming: true, price: None, context_tokens: None }
//! #     }
//! #
//! #     fn stream(&self, request: Arc<ModelRequest>) -> ModelStream {
//! #         let result = request.messages.iter().flat_map(|message| message.results()).next();
//! #         let finished = |reason| ModelEvent::Finished { candidate: 0, reason, raw: String::new() };
//! #         let events = match result {
//! #             None => vec![
//! #                 ModelEvent::ToolCallStarted { candidate: 0, call: 0, wire_id: None, name: "add".into() },
//! #                 ModelEvent::ToolCallDelta { call: 0, arguments: r#"{"a": 17, "b": 25}"#.into() },
//! #                 ModelEvent::ToolCallFinished { call: 0, opaque: None },
//! #                 finished(FinishReason::ToolCalls),
//! #             ],
//! #             Some(result) => vec![
//! #                 ModelEvent::TextDelta { candidate: 0, text: format!("It is {}.", result.content.to_text()) },
//! #                 finished(FinishReason::Stop),
//! #             ],
//! #         };
//! #         Box::pin(futures_util::stream::iter(events.into_iter().map(Ok)))
//! #     }
//! # }
//! #
//! struct AllowAll;
//!
//! #[async_trait]
//! impl Gate for AllowAll {
//!     async fn check(&self, _: &GateRequest) -> Verdict {
//!         Verdict::Allow
//!     }
//! }
//!
//! #[async_trait]
//! impl Approver for AllowAll {
//!     async fn ask(&self, question: &Question) -> QuestionReply {
//!         QuestionReply::approved(question, "program")
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let profile = profiles::builtin("default")?;
//! let system = Vec::from_iter(profile.system_prompt.clone()).into();
//! let (session, turn) = (SessionId::new("docs"), TurnId::new("docs-1"));
//! let setup = TurnSetup {
//!     tools: Toolbox::new([Arc::new(Add) as Arc<dyn Tool>])?,
//!     gate: Arc::new(AllowAll),
//!     approver: Arc::new(AllowAll),
//!     system,
//!     ..TurnSetup::new(session, turn, Arc::new(Scripted), Arc::new(profile))
//! };
//! let (sender, mut listener) = events::channel(setup.session.clone(), setup.turn.clone());
//! let (_handle, control) = control();
//! let question = Message::user("What is 17 plus 25?");
//!
//! let turn = run_turn(setup, Vec::new(), question, sender, control);
//! let watch = async {
//!     let mut seen = 0;
//!     while let Some(_event) = listener.next().await {
//!         seen += 1;
//!     }
//!     seen
//! };
//! let (end, seen) = tokio::join!(turn, watch);
//! // It is parked if the approver answers `QuestionReply::Later`.
//! let outcome = end.outcome().ok_or("the turn waits for an answer")?;
//!
//! assert_eq!(outcome.text, r#"It is {"sum":42}."#);
//! assert_eq!(outcome.stop_reason, StopReason::Complete);
//! assert_eq!((outcome.steps, outcome.tool_calls), (2, 1));
//! assert!(seen > 2);
//! // The next turn takes `outcome.transcript` as its history.
//! assert_eq!(outcome.transcript.len(), 4);
//! # Ok(())
//! # })
//! # }
//! ```
#![warn(missing_docs)]
// The page names what is behind features, and is published with all of them.
#![cfg_attr(
    not(feature = "full"),
    expect(
        rustdoc::broken_intra_doc_links,
        reason = "what is not compiled has no page"
    )
)]

pub use async_trait::async_trait;
pub use rondo_agent::{
    Agent, AgentBuilder, BuildError, FnTool, NoArgs, OpenError, PendingQuestion, PendingQuestions,
    Run, Session, ToolContext, TurnError, TypedAnswer, TypedError, approvals, tool,
};
pub use rondo_core;
pub use rondo_core::events;
pub use rondo_core::ports::{
    Asker, MemoryJournal, NoJournal, NotAnswered, OutputSink, ProgressSink, ToolScope, ToolSource,
};
pub use rondo_core::profile as profiles;
pub use rondo_core::session_store::StoreError;
pub use rondo_core::{
    Approver, EventReceiver, EventSender, Gate, GateRequest, Interceptor, Journal, Model,
    ModelStream, OutsideText, ParkedTurn, QuestionReply, Tool, ToolInvocation, Toolbox,
    ToolboxError, TurnControl, TurnEnd, TurnHandle, TurnSetup, Verdict, control, run_turn,
};
#[cfg(feature = "designs")]
pub use rondo_designs as design;
#[cfg(feature = "exec")]
pub use rondo_exec::supervisor;
#[cfg(feature = "http")]
pub use rondo_http;
#[cfg(feature = "http")]
pub use rondo_http::{Auth, Endpoint, HttpModel, ModelCard, Secret};
#[cfg(feature = "journal")]
pub use rondo_journal as journal;
#[cfg(feature = "memory")]
pub use rondo_memory as memory;
#[cfg(feature = "otel")]
pub use rondo_otel as otel;
#[cfg(feature = "python")]
pub use rondo_python as python;
pub use rondo_types as types;
pub use rondo_types::{
    Answer, AnswerValue, AskReason, CallId, EventBody, Limits, Message, ModelInfo, ModelRequest,
    Outcome, Profile, Question, QuestionKind, RemainingLimits, SessionId, StopReason,
    ToolErrorCode, ToolHints, ToolKind, ToolOutcome, ToolOutput, ToolProgress, ToolSpec,
    Transcript, TurnEvent, TurnId,
};
#[cfg(feature = "http")]
pub use rondo_wire::{Bounds, Quirks};
pub use schemars;
pub use schemars::JsonSchema;
pub use tokio_util::sync::CancellationToken;

/// The built-in tools (commands on a PTY, files and search beneath a directory) and the gate that
/// judges their calls.
#[cfg(any(feature = "exec", feature = "files"))]
pub mod tools {
    #[cfg(feature = "exec")]
    pub use rondo_exec::{ExecOptions, ExecTool, SupervisorCommand};
    pub use rondo_policy::{
        AllowedDirs, GateOptions, PatternError, StandardGate, ToolPatterns, Workdir,
    };
    #[cfg(feature = "files")]
    pub use rondo_tools::{
        EditFile, ListFiles, ReadFile, SearchFiles, Workspace, WorkspaceError, WriteFile,
        file_tools,
    };
}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/library.md")]
struct Guide;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/python.md")]
struct PythonGuide;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/designs.md")]
struct DesignsGuide;
