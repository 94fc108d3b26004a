//! Tools from functions over the program's own types.
//!
//! The schema of the arguments is derived from their type, so the model, the validation and the
//! function always agree.

mod context;
mod failure;

#[cfg(test)]
mod tests;

pub use context::ToolContext;

use crate::schema;
use async_trait::async_trait;
use failure::{BoxError, described, ended_early};
use futures_util::future::BoxFuture;
use rondo_core::{Tool, ToolInvocation};
use rondo_types::{
    Concurrency, Effects, Recovery, ToolErrorCode, ToolHints, ToolKind, ToolOutcome, ToolSpec,
};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

type ToolFn = dyn Fn(ToolInvocation) -> BoxFuture<'static, ToolOutcome> + Send + Sync;

/// A tool that calls a function; built by [`tool`].
pub struct FnTool {
    spec: ToolSpec,
    work: Box<ToolFn>,
}

/// The arguments of a tool that takes none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
pub struct NoArgs {}

/// Builds a tool from a function.
///
/// - `name` is what the model calls it by: `[A-Za-z_][A-Za-z0-9_-]{0,63}`.
/// - `description` tells the model what it does and when to use it; the documentation comments of
///   the fields of `A` describe the arguments.
/// - `A` is a struct with named fields ([`NoArgs`] for a tool without arguments). Its JSON Schema is
///   sent with inlined subschemas; only recursive types keep references.
/// - The model reads the output: as text if it serializes to a string, as JSON otherwise, with the
///   middle cut out past 256 KiB.
/// - An error becomes a result with code `failed`, with the message and its causes, which the model
///   reads; the turn continues. So do wrong arguments (`invalid_args`) and panics (`internal`).
///
/// By default a tool counts as one with effects, runs alone, and is never run again after a crash.
/// [`FnTool::read_only`] and the other methods of [`FnTool`] change that.
///
/// # Cancel safety
/// When a call is cancelled or its time is up, its future is dropped at its current await point. A
/// call that took [`ToolContext::cancellation`] has the profile's `cancel_grace` to end by itself.
///
/// ```
/// # use schemars::JsonSchema;
/// # use serde::Deserialize;
/// #[derive(Deserialize, JsonSchema)]
/// struct Lookup {
///     /// The city, in English.
///     city: String,
/// }
///
/// let weather = rondo::tool("weather", "Tells the weather.", |args: Lookup, _cx| async move {
///     match args.city.as_str() {
///         "Lisbon" => Ok("sunny"),
///         other => Err(format!("no station in {other}")),
///     }
/// })
/// .read_only();
/// assert_eq!(weather.spec().parameters["properties"]["city"]["description"], "The city, in English.");
/// ```
pub fn tool<A, O, E, F, R>(
    name: impl Into<String>,
    description: impl Into<String>,
    function: F,
) -> FnTool
where
    A: DeserializeOwned + JsonSchema,
    O: Serialize + Send + 'static,
    E: Into<BoxError> + Send + 'static,
    F: Fn(A, ToolContext) -> R + Send + Sync + 'static,
    R: Future<Output = Result<O, E>> + Send + 'static,
{
    let spec = ToolSpec {
        name: name.into(),
        description: description.into(),
        parameters: schema::parameters::<A>(),
        effects: Effects::Writes,
        concurrency: Concurrency::Undeclared,
        recovery: Recovery::AtMostOnce,
        ..ToolSpec::default()
    };
    let work = move |mut call: ToolInvocation| -> BoxFuture<'static, ToolOutcome> {
        let arguments = std::mem::take(&mut call.arguments);
        match serde_json::from_value::<A>(arguments) {
            Ok(arguments) => {
                let context = ToolContext::new(call);
                Box::pin(run(function(arguments, context.clone()), context))
            }
            Err(error) => {
                let outcome = ToolOutcome::error(ToolErrorCode::InvalidArgs, error.to_string());
                Box::pin(std::future::ready(outcome))
            }
        }
    };
    FnTool {
        spec,
        work: Box::new(work),
    }
}

async fn run<O, E, R>(work: R, context: ToolContext) -> ToolOutcome
where
    O: Serialize + Send,
    E: Into<BoxError> + Send,
    R: Future<Output = Result<O, E>>,
{
    let mut work = Box::pin(work);
    let ended = tokio::select! {
        biased;
        ended = &mut work => ended,
        () = context.cancelled() => {
            if !context.is_watched() {
                return ended_early("the call was ended early");
            }
            work.await
        }
    };
    match ended {
        Ok(output) => serde_json::to_value(output).map_or_else(
            |error| ToolOutcome::error(ToolErrorCode::Internal, error.to_string()),
            |value| ToolOutcome::Ok(context.output(value)),
        ),
        Err(error) if context.is_cancelled() => ended_early(described(error)),
        Err(error) => ToolOutcome::error(ToolErrorCode::Failed, described(error)),
    }
}

impl FnTool {
    /// Returns the specification of the tool.
    #[must_use]
    pub fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    /// Declares that the tool changes nothing: calls may run beside others, and run again after a
    /// crash.
    #[must_use]
    pub fn read_only(self) -> Self {
        self.effects(Effects::ReadOnly)
            .concurrency(Concurrency::Shared)
            .recovery(Recovery::ReadOnly)
    }

    /// Sets whether the tool may change anything outside the conversation.
    ///
    /// A tool with effects does not run on arguments whose repair may have changed their meaning.
    #[must_use]
    pub fn effects(mut self, effects: Effects) -> Self {
        self.spec.effects = effects;
        self
    }

    /// Sets whether its calls may run beside others of the same step.
    #[must_use]
    pub fn concurrency(mut self, concurrency: Concurrency) -> Self {
        self.spec.concurrency = concurrency;
        self
    }

    /// Declares that repeated calls with the same result are expected, as when the model polls a
    /// state: the profile's [`LoopGuard`](rondo_types::LoopGuard) does not count them. The limits on
    /// steps, calls and time still apply.
    #[must_use]
    pub fn polls(mut self) -> Self {
        self.spec.polls = true;
        self
    }

    /// Sets the kind of its calls, by which hosts show them and the gate judges them. A tool that runs commands or
    /// changes files is judged like a built-in one ([`ToolKind::changes_machine`]).
    #[must_use]
    pub fn kind(mut self, kind: ToolKind) -> Self {
        self.spec.kind = kind;
        self
    }

    /// Declares further effects of the tool.
    #[must_use]
    pub fn hints(mut self, hints: ToolHints) -> Self {
        self.spec.hints = hints;
        self
    }

    /// Bounds the time of one call. The limits of the turn apply besides.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.spec.timeout = Some(timeout);
        self
    }

    /// Sets what happens after a crash to a call whose end was not recorded.
    #[must_use]
    pub fn recovery(mut self, recovery: Recovery) -> Self {
        self.spec.recovery = recovery;
        self
    }
}

impl fmt::Debug for FnTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FnTool")
            .field("spec", &self.spec)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Tool for FnTool {
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    async fn call(&self, invocation: ToolInvocation) -> ToolOutcome {
        (self.work)(invocation).await
    }
}
