//! Checks the arguments of calls, and runs calls outside of a loop.

use super::turns::Turns;
use super::types::{AccumulatedToolCall, ExecutedToolCall, ToolTiming};
use super::{FaeLlmError, ToolRegistry};
use crate::recital::{Recital, RecitedCall};
use crate::run::{AllowAll, Run};
use rondo_core::{Gate, profile as profiles};
use rondo_types::{Message, Outcome, Profile, ToolErrorCode, Transcript};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Parses and checks the arguments of a call against its tool's JSON Schema, without any repair.
///
/// A schema without `required` or `properties` constrains nothing by them, and keys that it does
/// not name pass unless it forbids them.
///
/// ```
/// use rondo::design::stream::validate_tool_args;
/// use serde_json::json;
///
/// let schema = json!({"type": "object", "required": ["path"]});
/// assert!(validate_tool_args("read", r#"{"path": "a"}"#, &schema).is_ok());
/// let error = validate_tool_args("read", "{}", &schema).unwrap_err();
/// assert_eq!(error.code(), "tool_validation_error");
/// ```
///
/// # Errors
/// [`FaeLlmError::ToolValidationError`] if the text is not JSON or does not fit,
/// [`FaeLlmError::ConfigError`] if the schema is none.
pub fn validate_tool_args(
    tool_name: &str,
    args_json: &str,
    schema: &Value,
) -> Result<Value, FaeLlmError> {
    Ok(rondo_schema::validate_tool_args(
        tool_name, args_json, schema,
    )?)
}

/// Runs calls that came from a model which the caller asked itself.
///
/// They are run as one reply of a turn, so everything is as in the loop: arguments are repaired
/// if only their notation is wrong and then checked, each call ends at its timeout or when it is
/// cancelled, whatever its tool does, and a panic is an error of that call alone.
pub struct ToolExecutor {
    registry: ToolRegistry,
    timeout: Duration,
    gate: Arc<dyn Gate>,
    timings: Mutex<BTreeMap<String, ToolTiming>>,
}

impl ToolExecutor {
    /// Takes the tools and the seconds that each call may run.
    #[must_use]
    pub fn new(registry: ToolRegistry, tool_timeout_secs: u64) -> Self {
        Self {
            registry,
            timeout: Duration::from_secs(tool_timeout_secs),
            gate: Arc::new(AllowAll),
            timings: Mutex::default(),
        }
    }

    /// Adds a gate that judges each call before it runs.
    #[must_use]
    pub fn with_gate(mut self, gate: Arc<dyn Gate>) -> Self {
        self.gate = gate;
        self
    }

    /// Returns how long the calls of each tool took so far, by its name.
    #[must_use]
    pub fn timings(&self) -> BTreeMap<String, ToolTiming> {
        let timings = self.timings.lock();
        timings.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Runs one call. A tool that ran and failed is a result without success.
    ///
    /// # Errors
    /// When there is no such tool, the arguments do not fit, the call took too long, was denied or
    /// was cancelled.
    ///
    /// # Cancel safety
    /// Dropping the future ends the call without waiting for it; use the token.
    pub async fn execute_tool(
        &self,
        name: &str,
        args_json: &str,
        cancel_token: &CancellationToken,
    ) -> Result<ExecutedToolCall, FaeLlmError> {
        let call = AccumulatedToolCall {
            call_id: "call_0".to_owned(),
            function_name: name.to_owned(),
            arguments_json: args_json.to_owned(),
        };
        let results = self.execute_tools(vec![call], cancel_token).await;
        let unanswered = || Err(FaeLlmError::ToolExecutionError("it was not run".to_owned()));
        results.into_iter().next().unwrap_or_else(unanswered)
    }

    /// Runs calls one after the other, and begins none once the token has fired. Returns a result
    /// for each, in the order of the calls.
    ///
    /// # Cancel safety
    /// As [`Self::execute_tool`].
    pub async fn execute_tools(
        &self,
        calls: Vec<AccumulatedToolCall>,
        cancel_token: &CancellationToken,
    ) -> Vec<Result<ExecutedToolCall, FaeLlmError>> {
        // A reply with a call that has no name is none, but here the other calls are wanted.
        let named: Vec<bool> = calls.iter().map(is_named).collect();
        let calls = calls.into_iter().filter(is_named).collect();
        let mut results = self.execute_named(calls, cancel_token).await.into_iter();
        let mut next = |is_named: bool| {
            let result = if is_named { results.next() } else { None };
            let nameless = || {
                Err(FaeLlmError::ToolNotFound(
                    "the call names no tool".to_owned(),
                ))
            };
            result.unwrap_or_else(nameless)
        };
        named.into_iter().map(&mut next).collect()
    }

    async fn execute_named(
        &self,
        calls: Vec<AccumulatedToolCall>,
        cancel_token: &CancellationToken,
    ) -> Vec<Result<ExecutedToolCall, FaeLlmError>> {
        if calls.is_empty() {
            return Vec::new();
        }
        let count = calls.len();
        match self.run(calls, cancel_token).await {
            Ok((turns, outcome)) => {
                let turns = turns.finish(&outcome.transcript).into_iter();
                let executed: Vec<_> = turns.flat_map(|turn| turn.tool_calls).collect();
                if executed.len() == count {
                    self.note_timings(&executed);
                    return executed.into_iter().map(judged).collect();
                }
                vec![Err(not_run(&outcome)); count]
            }
            Err(error) => vec![Err(error); count],
        }
    }

    /// Notes how long calls took that ran.
    fn note_timings(&self, executed: &[ExecutedToolCall]) {
        let timings = self.timings.lock();
        let mut timings = timings.unwrap_or_else(PoisonError::into_inner);
        for call in executed.iter().filter(|call| has_run(call)) {
            let timing = timings.entry(call.function_name.clone()).or_default();
            timing.note(call.duration_ms);
        }
    }

    async fn run(
        &self,
        calls: Vec<AccumulatedToolCall>,
        cancel_token: &CancellationToken,
    ) -> Result<(Turns, Outcome), FaeLlmError> {
        let mut turns = Turns::default();
        let run = Run {
            model: Arc::new(Recital {
                calls: calls.into_iter().map(recited).collect(),
            }),
            tools: self.registry.toolbox(false)?,
            gate: Arc::clone(&self.gate),
            profile: self.profile()?,
            system: Vec::new(),
            history: Transcript::new(),
            input: Message::synthetic_user("Run these calls."),
        };
        let outcome = run.finish(cancel_token, |event| turns.take(event)).await;
        Ok((turns, outcome))
    }

    /// One step, whose calls are all run.
    fn profile(&self) -> Result<Profile, FaeLlmError> {
        let mut profile = profile()?;
        profile.limits.max_steps = 1;
        profile.limits.max_tool_calls_per_step = None;
        profile.limits.tool_timeout = Some(self.timeout);
        Ok(profile)
    }
}

impl fmt::Debug for ToolExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolExecutor")
            .field("registry", &self.registry)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

pub(super) fn profile() -> Result<Profile, FaeLlmError> {
    profiles::builtin("stream").map_err(|error| FaeLlmError::ConfigError(error.to_string()))
}

fn recited(call: AccumulatedToolCall) -> RecitedCall {
    RecitedCall {
        id: call.call_id,
        name: call.function_name,
        arguments: call.arguments_json,
    }
}

fn is_named(call: &AccumulatedToolCall) -> bool {
    !call.function_name.trim().is_empty()
}

/// Returns whether a call began.
fn has_run(call: &ExecutedToolCall) -> bool {
    use ToolErrorCode::{Denied, InvalidArgs, NotRun, UnknownTool};
    let code = call.result.error;
    !matches!(code, Some(UnknownTool | InvalidArgs | Denied | NotRun))
}

/// Tells a call's own failure, which is a result, from one that the design has an error for.
fn judged(call: ExecutedToolCall) -> Result<ExecutedToolCall, FaeLlmError> {
    let kind = match call.result.error {
        None | Some(ToolErrorCode::Failed | ToolErrorCode::PythonException) => return Ok(call),
        Some(ToolErrorCode::UnknownTool) => FaeLlmError::ToolNotFound,
        Some(ToolErrorCode::InvalidArgs) => FaeLlmError::ToolValidationError,
        Some(ToolErrorCode::Timeout) => FaeLlmError::TimeoutError,
        Some(ToolErrorCode::Cancelled | ToolErrorCode::NotRun) => FaeLlmError::Cancelled,
        Some(ToolErrorCode::Denied | ToolErrorCode::InDoubt | ToolErrorCode::Internal) => {
            FaeLlmError::ToolExecutionError
        }
    };
    Err(kind(call.result.content))
}

fn not_run(outcome: &Outcome) -> FaeLlmError {
    if outcome.stop_reason == rondo_types::StopReason::Cancelled {
        return FaeLlmError::Cancelled("cancelled before any call began".to_owned());
    }
    FaeLlmError::RequestError(match &outcome.error {
        Some(error) => error.to_string(),
        None => outcome.text.clone(),
    })
}
