//! A bound on requests under way: what waits, in which order, and that the wait always ends.

use crate::support::{model, openai, request};
use async_trait::async_trait;
use futures_util::{FutureExt as _, StreamExt as _};
use rondo_core::{
    Approver, Gate as ToolGate, GateRequest, Model, ModelStream, QuestionReply, Tool,
    ToolInvocation, Toolbox, TurnSetup, Verdict, control, events, profile, run_turn,
};
use rondo_http::{HttpModel, RequestLimit};
use rondo_testkit::{CallScript, Gate, ReplyScript, Response, Server, Step, openai as wire};
use rondo_types::{
    Message, ModelEvent, ModelRequest, Outcome, Question, SessionId, StopReason, ToolOutcome,
    ToolSpec, TurnId,
};
use serde_json::{Value, json};
use std::num::NonZeroUsize;
use std::sync::Arc;

fn limit(max: usize) -> RequestLimit {
    RequestLimit::new(NonZeroUsize::new(max).unwrap())
}

/// Answers once the gate is open.
fn held(gate: &Gate) -> Response {
    wire::streamed(&ReplyScript::text(["fine"])).before(Step::Gate(gate.clone()))
}

fn ask(model: &HttpModel, words: &str) -> ModelStream {
    model.stream(Arc::new(ModelRequest {
        messages: vec![Arc::new(Message::user(words))],
        ..request()
    }))
}

async fn first(stream: &mut ModelStream) -> ModelEvent {
    stream.next().await.unwrap().unwrap()
}

async fn rest(stream: ModelStream) -> Vec<ModelEvent> {
    stream.map(Result::unwrap).collect().await
}

/// Returns the text of the request with this number, from 0.
async fn said(server: &Server, index: usize) -> String {
    let body = server.request(index).await.json();
    let messages = body.get("messages").and_then(Value::as_array).unwrap();
    let content = messages.last().and_then(|message| message.get("content"));
    content.and_then(Value::as_str).unwrap().to_owned()
}

#[tokio::test]
async fn no_more_requests_than_the_bound_are_under_way_and_each_has_its_turn() {
    const REQUESTS: usize = 8;
    for max in 1..=3 {
        let gates: Vec<Gate> = (0..REQUESTS).map(|_| Gate::new()).collect();
        let script: Vec<Response> = gates.iter().map(held).collect();
        let server = Server::start(script).await;
        let model = model(&openai(&server)).with_request_limit(limit(max));
        let mut running = Vec::new();
        let mut waiting = Vec::new();
        for index in 0..REQUESTS {
            let mut stream = ask(&model, &index.to_string());
            if index < max {
                running.push(tokio::spawn(rest(stream)));
                server.request(index).await;
            } else {
                assert_eq!(first(&mut stream).await, ModelEvent::Queued);
                // Its place in the queue is taken when it waits.
                assert!(stream.next().now_or_never().is_none());
                waiting.push(stream);
            }
        }
        running.extend(waiting.into_iter().map(|stream| tokio::spawn(rest(stream))));
        for (index, (gate, run)) in gates.iter().zip(running).enumerate() {
            let under_way = (index + max).min(REQUESTS);
            server.request(under_way - 1).await;
            assert_eq!(server.requests().len(), under_way, "{max} at once");
            gate.open();
            let events = run.await.unwrap();
            let waited = events.first() == Some(&ModelEvent::Sent);
            assert_eq!(waited, index >= max);
            assert_eq!(said(&server, index).await, index.to_string());
        }
    }
}

#[tokio::test]
async fn models_that_were_given_the_same_bound_share_it() {
    let gate = Gate::new();
    let server = Server::start([held(&gate)]).await;
    let limit = limit(1);
    let one = model(&openai(&server)).with_request_limit(limit.clone());
    let other = model(&openai(&server)).with_request_limit(limit);
    let running = tokio::spawn(rest(ask(&one, "a")));
    server.request(0).await;
    assert_eq!(first(&mut ask(&other, "b")).await, ModelEvent::Queued);
    gate.open();
    running.await.unwrap();
}

#[tokio::test]
async fn whoever_gives_up_leaves_the_queue_and_frees_what_it_holds() {
    let (held_up, open) = (Gate::new(), Gate::new());
    open.open();
    let server = Server::start([held(&held_up), held(&open)]).await;
    let model = model(&openai(&server)).with_request_limit(limit(1));
    let running = tokio::spawn(rest(ask(&model, "a")));
    server.request(0).await;
    let mut impatient = ask(&model, "b");
    assert_eq!(first(&mut impatient).await, ModelEvent::Queued);
    assert!(impatient.next().now_or_never().is_none());
    let mut patient = ask(&model, "c");
    assert_eq!(first(&mut patient).await, ModelEvent::Queued);
    assert!(patient.next().now_or_never().is_none());
    drop(impatient);
    running.abort();
    assert_eq!(first(&mut patient).await, ModelEvent::Sent);
    rest(patient).await;
    assert_eq!(said(&server, 1).await, "c");
}

#[tokio::test]
async fn a_request_that_fails_frees_its_slot() {
    let refused = wire::error(401, "invalid_request_error", "no");
    let answer = wire::streamed(&ReplyScript::text(["fine"]));
    let server = Server::start([refused, answer]).await;
    let model = model(&openai(&server)).with_request_limit(limit(1));
    let mut stream = ask(&model, "a");
    assert!(stream.next().await.unwrap().is_err());
    let events = rest(ask(&model, "b")).await;
    assert_ne!(events.first(), Some(&ModelEvent::Queued));
}

struct AllowAll;

#[async_trait]
impl ToolGate for AllowAll {
    async fn check(&self, _: &GateRequest) -> Verdict {
        Verdict::Allow
    }
}

#[async_trait]
impl Approver for AllowAll {
    async fn ask(&self, question: &Question) -> QuestionReply {
        QuestionReply::approved(question, "ada")
    }
}

/// Runs a turn of its own, with the same model.
struct Delegate(HttpModel);

#[async_trait]
impl Tool for Delegate {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "delegate".to_owned(),
            parameters: json!({"type": "object"}),
            ..crate::support::tool()
        }
    }

    async fn call(&self, _: ToolInvocation) -> ToolOutcome {
        ToolOutcome::text(turn(&self.0, vec![]).await.text)
    }
}

async fn turn(model: &HttpModel, tools: Vec<Arc<dyn Tool>>) -> Outcome {
    let setup = TurnSetup {
        tools: Toolbox::new(tools).unwrap(),
        gate: Arc::new(AllowAll),
        approver: Arc::new(AllowAll),
        ..TurnSetup::new(
            SessionId::new("s"),
            TurnId::new("t"),
            Arc::new(model.clone()),
            profile::builtin("default").unwrap().into(),
        )
    };
    let (events, _nobody) = events::channel(setup.session.clone(), setup.turn.clone());
    let (_handle, control) = control();
    let turn = run_turn(setup, Vec::new(), Message::user("q"), events, control);
    turn.await.outcome().unwrap()
}

#[tokio::test]
async fn a_turn_within_a_turn_does_not_wait_for_the_outer_one() {
    let call = CallScript::new("c", "delegate", &json!({}));
    let server = Server::start([
        wire::streamed(&ReplyScript::calls([call])),
        wire::streamed(&ReplyScript::text(["inner"])),
        wire::streamed(&ReplyScript::text(["outer"])),
    ])
    .await;
    let model = model(&openai(&server)).with_request_limit(limit(1));
    let outcome = turn(&model, vec![Arc::new(Delegate(model.clone()))]).await;
    assert_eq!(outcome.stop_reason, StopReason::Complete);
    assert_eq!(outcome.text, "outer");
    assert!(said(&server, 2).await.contains("inner"));
}
