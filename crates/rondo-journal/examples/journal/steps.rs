//! What journaling adds to a step of one call, under the driver itself.

use crate::Failure;
use crate::sessions::store;
use async_trait::async_trait;
use futures_util::stream;
use rondo_core::ports::NoJournal;
use rondo_core::{
    Approval, ApprovalRequest, Approver, Gate, GateRequest, Journal, Model, ModelStream, Tool,
    ToolInvocation, Toolbox, TurnSetup, Verdict, control, events, profile, run_turn,
};
use rondo_journal::Durability;
use rondo_types::{
    Concurrency, Effects, FinishReason, Message, ModelEvent, ModelInfo, ModelRequest, Origin,
    Outcome, Recovery, SessionId, TimeMs, ToolOutcome, ToolSpec, TurnId,
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
        session: session.clone(),
        turn: TurnId::new("t"),
        turn_number: 1,
        model: Arc::new(Caller),
        fallbacks: Vec::new(),
        tools: Toolbox::new([Arc::new(Noop) as Arc<dyn Tool>])?,
        gate: Arc::new(Everything),
        approver: Arc::new(Everything),
        journal,
        profile: Arc::new(profile::builtin("default")?),
        system: Vec::new(),
        response_schema: None,
        seed: 1,
    };
    let (events, mut listener) = events::channel(session.clone(), TurnId::new("t"));
    let (_handle, control) = control();
    let started = Instant::now();
    let turn = run_turn(setup, Vec::new(), Message::user("go"), events, control);
    let listen = async { while listener.next().await.is_some() {} };
    let (outcome, ()): (Outcome, ()) = tokio::join!(turn, listen);
    if outcome.tool_calls != STEPS {
        return Err(format!("{} calls: {:?}", outcome.tool_calls, outcome.error).into());
    }
    Ok(started.elapsed().as_secs_f64() * 1e3 / f64::from(STEPS))
}

/// Calls as many times as there are steps, then answers; by the length of the conversation.
struct Caller;

impl Model for Caller {
    fn info(&self) -> ModelInfo {
        ModelInfo {
            origin: Origin {
                dialect: "none".to_owned(),
                provider: "p".to_owned(),
                model: "m".to_owned(),
            },
            streaming: true,
            price: None,
            context_tokens: None,
        }
    }

    fn stream(&self, request: Arc<ModelRequest>) -> ModelStream {
        let step = request.messages.len() / 2;
        let finished = |reason: FinishReason| ModelEvent::Finished {
            candidate: 0,
            reason,
            raw: reason.as_str().to_owned(),
        };
        let events = if step < usize::try_from(STEPS).unwrap_or(usize::MAX) {
            vec![
                ModelEvent::ToolCallStarted {
                    candidate: 0,
                    call: 0,
                    wire_id: None,
                    name: "noop".to_owned(),
                },
                ModelEvent::ToolCallDelta {
                    call: 0,
                    arguments: format!(r#"{{"n":{step}}}"#),
                },
                ModelEvent::ToolCallFinished {
                    call: 0,
                    opaque: None,
                },
                finished(FinishReason::ToolCalls),
            ]
        } else {
            let text = "done".to_owned();
            vec![
                ModelEvent::TextDelta { candidate: 0, text },
                finished(FinishReason::Stop),
            ]
        };
        Box::pin(stream::iter(events.into_iter().map(Ok)))
    }
}

struct Noop;

#[async_trait]
impl Tool for Noop {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "noop".to_owned(),
            description: String::new(),
            parameters: json!({ "type": "object" }),
            effects: Effects::ReadOnly,
            concurrency: Concurrency::Shared,
            recovery: Recovery::ReadOnly,
        }
    }

    async fn call(&self, invocation: ToolInvocation) -> ToolOutcome {
        ToolOutcome::text(invocation.arguments.to_string())
    }
}

struct Everything;

#[async_trait]
impl Gate for Everything {
    async fn check(&self, _request: &GateRequest) -> Verdict {
        Verdict::Allow
    }
}

#[async_trait]
impl Approver for Everything {
    async fn ask(&self, _request: &ApprovalRequest) -> Approval {
        Approval::Approved
    }
}
