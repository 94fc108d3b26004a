//! Whole turns under the driver, with a model and a tool that only this program has.

use crate::Failure;
use crate::fakes::{self, Everything, calls, replied, says};
use async_trait::async_trait;
use rondo_core::{
    Journal, Model, ModelStream, Tool, ToolInvocation, Toolbox, TurnSetup, control, events,
    profile, run_turn,
};
use rondo_journal::OwnedSession;
use rondo_types::{
    Message, ModelInfo, ModelRequest, Outcome, Role, ToolOutcome, ToolSpec, Transcript, TurnId,
};
use std::sync::Arc;

/// Properties that the turns of a session share.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scene {
    /// Context length of the model.
    pub(crate) context_tokens: Option<u64>,
    /// Bytes of each result.
    pub(crate) result_bytes: usize,
}

/// Runs a turn of a message, which the model answers after a call.
pub(crate) async fn turn(
    scene: Scene,
    session: &Arc<OwnedSession>,
    number: u32,
    history: Transcript,
) -> Result<Outcome, Failure> {
    let setup = setup(scene, session, number)?;
    let (events, mut listener) = events::channel(setup.session.clone(), setup.turn.clone());
    let (_handle, control) = control();
    let turn = run_turn(setup, history, question(number), events, control);
    let listen = async { while listener.next().await.is_some() {} };
    let (end, ()) = tokio::join!(turn, listen);
    Ok(end.outcome().ok_or("the turn was parked")?)
}

fn question(number: u32) -> Message {
    Message::user(format!("Question {number}?"))
}

fn setup(scene: Scene, session: &Arc<OwnedSession>, number: u32) -> Result<TurnSetup, Failure> {
    Ok(TurnSetup {
        turn_number: number,
        tools: Toolbox::new([Arc::new(Look(scene)) as Arc<dyn Tool>])?,
        gate: Arc::new(Everything),
        approver: Arc::new(Everything),
        journal: Arc::clone(session) as Arc<dyn Journal>,
        system: vec!["Be brief.".to_owned()].into(),
        ..TurnSetup::new(
            session.id().clone(),
            TurnId::new(format!("t-{number}")),
            Arc::new(Caller(scene)),
            Arc::new(profile::builtin("default")?),
        )
    })
}

/// Looks once after each question, then answers; sums up if it is offered no tools.
struct Caller(Scene);

impl Model for Caller {
    fn info(&self) -> ModelInfo {
        fakes::info(self.0.context_tokens)
    }

    fn stream(&self, request: Arc<ModelRequest>) -> ModelStream {
        let is_asked = request
            .messages
            .last()
            .is_some_and(|it| it.role == Role::User);
        let looks = |n: usize| calls("look", Some(format!("w{n}")), n);
        replied(match (request.tools.is_empty(), is_asked) {
            (true, _) => says("A summary of what was said before."),
            (false, true) => looks(request.messages.len()),
            (false, false) => says("That is the answer."),
        })
    }
}

struct Look(Scene);

#[async_trait]
impl Tool for Look {
    fn spec(&self) -> ToolSpec {
        fakes::tool("look", "Looks.")
    }

    async fn call(&self, invocation: ToolInvocation) -> ToolOutcome {
        let turn = invocation.turn;
        ToolOutcome::text(format!(
            "{turn} {}",
            "seen ".repeat(self.0.result_bytes / 5)
        ))
    }
}
