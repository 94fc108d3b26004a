//! Cost of journaling for a step of one call, under the driver itself.

use crate::Failure;
use crate::fakes::{self, Everything, calls, replied, says};
use crate::sessions::store;
use async_trait::async_trait;
use rondo_core::ports::NoJournal;
use rondo_core::{
    Journal, Model, ModelStream, Tool, ToolInvocation, Toolbox, TurnSetup, control, events,
    profile, run_turn,
};
use rondo_journal::Durability;
use rondo_types::{
    Message, ModelInfo, ModelRequest, SessionId, TimeMs, ToolOutcome, ToolSpec, TurnId,
};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Steps with a call; the answer is one more.
const STEPS: u32 = 200;

pub(crate) async fn measure(dir: &Path) -> Result<Value, Failure> {
    let dir = dir.join("steps");
    let session = SessionId::new("steps");
    let owned = store(&dir, Durability::Full)?.create(&session, TimeMs(1))?;
    let kept = step_ms(Arc::new(owned), &session).await?;
    let bare = step_ms(Arc::new(NoJournal::default()), &session).await?;
    std::fs::remove_dir_all(dir)?;
    Ok(json!({ "kept_ms": kept, "bare_ms": bare }))
}

async fn step_ms(journal: Arc<dyn Journal>, session: &SessionId) -> Result<f64, Failure> {
    let setup = TurnSetup {
        tools: Toolbox::new([Arc::new(Noop) as Arc<dyn Tool>])?,
        gate: Arc::new(Everything),
        approver: Arc::new(Everything),
        journal,
        ..TurnSetup::new(
            session.clone(),
            TurnId::new("t"),
            Arc::new(Caller),
            Arc::new(profile::builtin("default")?),
        )
    };
    let (events, mut listener) = events::channel(session.clone(), TurnId::new("t"));
    let (_handle, control) = control();
    let started = Instant::now();
    let turn = run_turn(setup, Vec::new(), Message::user("go"), events, control);
    let listen = async { while listener.next().await.is_some() {} };
    let (end, ()) = tokio::join!(turn, listen);
    let outcome = end.outcome().ok_or("the turn was parked")?;
    if outcome.tool_calls != STEPS {
        return Err(format!("{} calls: {:?}", outcome.tool_calls, outcome.error).into());
    }
    Ok(started.elapsed().as_secs_f64() * 1e3 / f64::from(STEPS))
}

/// Calls as many times as there are steps, then answers; by the length of the conversation.
struct Caller;

impl Model for Caller {
    fn info(&self) -> ModelInfo {
        fakes::info(None)
    }

    fn stream(&self, request: Arc<ModelRequest>) -> ModelStream {
        let step = request.messages.len() / 2;
        let is_over = step >= usize::try_from(STEPS).unwrap_or(usize::MAX);
        replied(match is_over {
            true => says("done"),
            false => calls("noop", None, step),
        })
    }
}

struct Noop;

#[async_trait]
impl Tool for Noop {
    fn spec(&self) -> ToolSpec {
        fakes::tool("noop", "")
    }

    async fn call(&self, invocation: ToolInvocation) -> ToolOutcome {
        ToolOutcome::text(invocation.arguments.to_string())
    }
}
