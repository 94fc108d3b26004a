//! Runs many turns at once against an OpenAI-compatible server, for measurements.
//!
//! `conversations MODEL COUNT` asks the server at `FAKELLM_URL` COUNT times at once, with one tool
//! `noop(n: integer)` that returns `ok`, and prints how many turns ended in `done` and how long all
//! took together.
#![expect(clippy::print_stdout, reason = "what it measures is its output")]

use rondo::types::{Concurrency, Effects, Recovery};
use rondo::{
    Approval, ApprovalRequest, Approver, Gate, GateRequest, Message, Model, NoJournal, Outcome,
    Profile, SessionId, Tool, ToolInvocation, ToolOutcome, ToolSpec, Toolbox, TurnId, TurnSetup,
    Verdict, async_trait, control, events, profiles, run_turn,
};
use rondo_http::{Endpoint, HttpModel, ModelCard, Network, RequestLimit, Transport};
use serde_json::json;
use std::num::NonZeroUsize;
use std::sync::Arc;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Requests under way at once, whatever the number of conversations; the others wait their turn.
const REQUESTS_MAX: NonZeroUsize = NonZeroUsize::MIN.saturating_add(255);

type Failure = Box<dyn std::error::Error>;

struct Noop;

#[async_trait]
impl Tool for Noop {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "noop".to_owned(),
            description: "Does nothing.".to_owned(),
            parameters: json!({
                "type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"],
            }),
            effects: Effects::ReadOnly,
            concurrency: Concurrency::Shared,
            recovery: Recovery::ReadOnly,
            polls: false,
        }
    }

    async fn call(&self, _invocation: ToolInvocation) -> ToolOutcome {
        ToolOutcome::text("ok")
    }
}

struct AllowAll;

#[async_trait]
impl Gate for AllowAll {
    async fn check(&self, _request: &GateRequest) -> Verdict {
        Verdict::Allow
    }
}

#[async_trait]
impl Approver for AllowAll {
    async fn ask(&self, _request: &ApprovalRequest) -> Approval {
        Approval::Approved
    }
}

fn main() -> Result<(), Failure> {
    let mut args = std::env::args().skip(1);
    let name = args.next().ok_or("usage: conversations MODEL COUNT")?;
    let count: usize = args
        .next()
        .ok_or("usage: conversations MODEL COUNT")?
        .parse()?;
    let url = std::env::var("FAKELLM_URL")?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(converse(&name, count, &url))
}

async fn converse(name: &str, count: usize, url: &str) -> Result<(), Failure> {
    let endpoint = Endpoint::new("openai", "openai-chat", format!("{url}/v1"));
    let transport = Transport::new(Network::default())?;
    let model = HttpModel::with_transport(transport, &endpoint, ModelCard::new(name))?;
    let model = model.with_request_limit(RequestLimit::new(REQUESTS_MAX));
    let model: Arc<dyn Model> = Arc::new(model);
    let mut profile = profiles::builtin("default")?;
    profile.limits.max_steps = 1000;
    let profile = Arc::new(profile);
    let tools = Toolbox::new([Arc::new(Noop) as Arc<dyn Tool>])?;
    let started = Instant::now();
    let mut turns = JoinSet::new();
    for index in 0..count {
        turns.spawn(one_turn(
            index,
            Arc::clone(&model),
            tools.clone(),
            Arc::clone(&profile),
        ));
    }
    let mut ok = 0;
    while let Some(outcome) = turns.join_next().await {
        ok += usize::from(outcome?.text.trim() == "done");
    }
    let wall_s = started.elapsed().as_secs_f64();
    println!("{}", json!({"ok": ok, "wall_s": wall_s}));
    Ok(())
}

async fn one_turn(
    index: usize,
    model: Arc<dyn Model>,
    tools: Toolbox,
    profile: Arc<Profile>,
) -> Outcome {
    let setup = TurnSetup {
        session: SessionId::new(format!("s{index}")),
        turn: TurnId::new(format!("t{index}")),
        turn_number: 1,
        model,
        fallbacks: Vec::new(),
        tools,
        gate: Arc::new(AllowAll),
        approver: Arc::new(AllowAll),
        journal: Arc::new(NoJournal::default()),
        profile,
        system: Vec::new(),
        response_schema: None,
        answer_check: None,
        seed: 1,
    };
    let (sender, listener) = events::channel(setup.session.clone(), setup.turn.clone());
    drop(listener);
    let (_handle, control) = control();
    run_turn(setup, Vec::new(), Message::user("go"), sender, control).await
}
