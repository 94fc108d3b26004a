//! The tool `save_memory`.

use super::{SAVE_MEMORY, failed};
use crate::memories::{Memories, NewMemory, Saved, call_mark};
use crate::notes::MEMORY_BYTES_MAX;
use crate::origin::{Author, Origin};
use crate::scope::Scope;
use async_trait::async_trait;
use rondo_core::clock::Clock;
use rondo_core::ports::{InterruptedCall, Reconciled, Tool, ToolInvocation};
use rondo_types::{
    Concurrency, Effects, Recovery, ToolErrorCode, ToolHints, ToolKind, ToolOutcome, ToolOutput,
    ToolSpec,
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::fmt;
use std::sync::Arc;

/// Tells whether the conversation has read text from outside, such as a web page.
#[derive(Clone)]
pub struct Outside(Arc<dyn Fn() -> bool + Send + Sync>);

impl Outside {
    /// Wraps a function that tells it at the time of a call.
    pub fn new(has_read: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(has_read))
    }

    /// For conversations that cannot have read any.
    #[must_use]
    pub fn never() -> Self {
        Self::new(|| false)
    }
}

impl fmt::Debug for Outside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Outside")
    }
}

/// Saves a memory: `save_memory {text, scope?}`.
///
/// The result is an object: `id`, `scope`, `file`, and `status`, which is `saved`, or `known` if a memory says the
/// same. A call that was cut off is found by its key, which is beside the memory.
#[derive(Debug, Clone)]
pub struct SaveMemory {
    memories: Memories,
    outside: Outside,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Args {
    text: String,
    scope: Option<Scope>,
}

impl SaveMemory {
    /// Builds the tool over memories.
    #[must_use]
    pub fn new(memories: Memories, outside: Outside) -> Self {
        Self { memories, outside }
    }
}

#[async_trait]
impl Tool for SaveMemory {
    fn spec(&self) -> ToolSpec {
        let scopes: Vec<&str> = self.memories.scopes().map(Scope::as_str).collect();
        ToolSpec {
            name: SAVE_MEMORY.to_owned(),
            description: "Remembers a fact for later sessions: what the user asks to remember, a \
                          preference, a decision and why. One whole fact a call; no secrets."
                .to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "text": {"type": "string", "description": format!("At most {MEMORY_BYTES_MAX} bytes.")},
                    "scope": {
                        "type": "string",
                        "enum": scopes,
                        "description": "user (default): everywhere; project: here, in its files; chat: this conversation."
                    }
                },
                "required": ["text"]
            }),
            effects: Effects::Writes,
            concurrency: Concurrency::Exclusive,
            recovery: Recovery::Checkable,
            kind: ToolKind::Edit,
            hints: ToolHints::new(false, true, false),
            ..ToolSpec::default()
        }
    }

    async fn call(&self, invocation: ToolInvocation) -> ToolOutcome {
        let args: Args = match serde_json::from_value(invocation.arguments) {
            Ok(args) => args,
            Err(err) => return ToolOutcome::error(ToolErrorCode::InvalidArgs, err.to_string()),
        };
        if invocation.cancel.is_cancelled() {
            return ToolOutcome::error(
                ToolErrorCode::Cancelled,
                "the call was ended before it began",
            );
        }
        let new = NewMemory {
            text: args.text,
            scope: args.scope.unwrap_or(Scope::User),
            origin: Origin {
                session: Some(invocation.session.to_string()),
                turn: Some(invocation.turn.to_string()),
                call: Some(call_mark(&invocation.idempotency_key)),
                from_outside: (self.outside.0)(),
                ..Origin::new(Author::Model, Clock::system().now())
            },
        };
        // Once it has begun it ends, so that a call that was cancelled has either saved or not.
        match self.memories.blocking(move |it| it.save(&new)).await {
            Ok(saved) => told(saved),
            Err(err) => failed(&err),
        }
    }

    async fn evidence(&self, _arguments: &Value) -> Option<Value> {
        // The file itself says which call wrote a memory.
        None
    }

    async fn reconcile(&self, call: &InterruptedCall) -> Reconciled {
        let Ok(args) = serde_json::from_value::<Args>(call.arguments.clone()) else {
            // Such arguments are refused, so the call had no effect.
            return Reconciled::NotDone;
        };
        let mark = call_mark(&call.idempotency_key);
        let scope = args.scope.unwrap_or(Scope::User);
        match self
            .memories
            .blocking(move |it| it.saved_by(scope, &mark))
            .await
        {
            Ok(Some(saved)) => Reconciled::Done(told(saved)),
            Ok(None) => Reconciled::NotDone,
            Err(_) => Reconciled::Unknown,
        }
    }
}

fn told(saved: Saved) -> ToolOutcome {
    let Saved {
        memory,
        path,
        is_new,
        change,
    } = saved;
    ToolOutcome::Ok(ToolOutput {
        value: json!({
            "status": if is_new { "saved" } else { "known" },
            "id": memory.id,
            "scope": memory.scope,
            "file": path.display().to_string(),
        }),
        changes: change.into_iter().collect(),
        ..ToolOutput::default()
    })
}
