//! One bounded question over a live Python session: `run_question`.
//!
//! # Layout
//! - [`run_question`] with [`AgentConfig`] gives an [`AgentAnswer`].
//! - [`LlmProvider`] and its `Assistant…` types: the model. [`ModelProvider`] makes any model of this crate
//!   one.
//! - [`CapabilityProvider`]: the seven functions that inspect the session, with typed results.
//!   [`function_declarations`] describes them to the model; [`LiveSession`] is a real one.
//!
//! # What a provider sends goes back unchanged
//! The design's types have no place for what a provider attaches to its parts, such as a thought
//! signature, without which some models refuse the next request. So it travels beside them: a
//! provider over a model of this crate says so by [`LlmProvider::model`], the question then runs
//! on that model, and its messages are never translated at all. Where [`ModelProvider::complete`]
//! is called by itself, it puts back what belongs to the messages that it has returned lately.
//!
//! # Decisions where the design is silent
//! - A corrective retry is a step.
//! - A failed request gives a degraded answer; `Err` means that nothing could be asked.
//! - Time spent in capabilities is part of the total time.
//! - What was cut at the output limit is an answer, and a degraded one.
//!
//! # A question
//! ```
//! use rondo::async_trait;
//! use rondo::design::python::{
//!     AgentConfig, AssistantInput, AssistantOutput, AssistantPart, AssistantRole,
//!     CapabilityProvider, CapabilityResult, EvalResult, ExceptionInfo, GlobalInfo, LlmProvider,
//!     BoundedDir, BoundedDoc, BoundedRepr, TypeInfo, run_question,
//! };
//! use serde_json::json;
//!
//! /// Calls `eval_expr`, then says what it returned.
//! struct Scripted;
//!
//! #[async_trait]
//! impl LlmProvider for Scripted {
//!     async fn complete(&self, input: AssistantInput) -> anyhow::Result<AssistantOutput> {
//!         let last = input.messages.last().and_then(|message| message.parts.first());
//!         Ok(AssistantOutput::of_parts(vec![match last {
//!             Some(AssistantPart::FunctionResponse { response_json, .. }) => {
//!                 AssistantPart::Text(format!("It is {}.", response_json["result"]["value_repr"]))
//!             }
//!             _ => AssistantPart::FunctionCall {
//!                 id: None,
//!                 name: "eval_expr".to_owned(),
//!                 args_json: json!({"expr": "6 * 7"}),
//!             },
//!         }]))
//!     }
//! }
//!
//! # struct Session;
//! #[async_trait]
//! impl CapabilityProvider for Session {
//!     async fn eval_expr(&self, expr: &str) -> CapabilityResult<EvalResult> {
//! #       assert_eq!(expr, "6 * 7");
//!         // A live session evaluates it.
//!         Ok(EvalResult { value_repr: "42".into(), stdout: String::new(), stderr: String::new() })
//!     }
//!     // ... and six more.
//! #   async fn list_globals(&self) -> CapabilityResult<Vec<GlobalInfo>> { Ok(Vec::new()) }
//! #   async fn get_type(&self, _: &str) -> CapabilityResult<TypeInfo> { unreachable!() }
//! #   async fn get_repr(&self, _: &str) -> CapabilityResult<BoundedRepr> { unreachable!() }
//! #   async fn get_dir(&self, _: &str) -> CapabilityResult<BoundedDir> { unreachable!() }
//! #   async fn get_doc(&self, _: &str) -> CapabilityResult<BoundedDoc> { unreachable!() }
//! #   async fn get_last_exception(&self) -> CapabilityResult<Option<ExceptionInfo>> { Ok(None) }
//! }
//!
//! # fn main() -> anyhow::Result<()> {
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let config = AgentConfig::default();
//! let answer = run_question(&Scripted, &Session, "What is 6 * 7?", &config).await?;
//! assert_eq!(answer.text, "It is \"42\".");
//! assert!(!answer.degraded);
//! # Ok(())
//! # })
//! # }
//! ```

mod adapter;
mod bridge;
mod capabilities;
mod live;
mod question;
mod translate;
mod types;

pub use adapter::ModelProvider;
pub use capabilities::{
    BoundedDir, BoundedDoc, BoundedRepr, CapabilityError, CapabilityProvider, CapabilityResult,
    EvalResult, ExceptionInfo, GlobalInfo, TypeInfo, function_declarations,
};
pub use live::LiveSession;
pub use question::{AgentAnswer, AgentConfig, run_question};
pub use types::{
    AssistantCandidate, AssistantInput, AssistantMessage, AssistantOutput, AssistantPart,
    AssistantRole, FunctionDeclaration, LlmProvider, ToolCallingMode,
};
