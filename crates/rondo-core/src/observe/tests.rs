//! Observers: their observations, and the guarantee that they cannot harm the turn.

use super::{Moment, Observer};
use crate::events;
use crate::machine::Input;
use crate::ports::{
    Approver, Gate, GateRequest, MemoryJournal, Model, ModelStream, QuestionReply, Tool,
    ToolInvocation, Verdict,
};
use crate::{EventSender, Toolbox, TurnSetup, control, profile, resume_turn, run_turn};
use async_trait::async_trait;
use futures_util::stream;
use rondo_types::{
    CallId, Concurrency, Effects, EventBody, FinishReason, Message, ModelEvent, ModelInfo,
    ModelRequest, Origin, Outcome, Question, Recovery, ResultEvent, SessionId, TimeMs, ToolOutcome,
    ToolSpec, Transcript, TurnId,
};
use serde::Serialize;
use serde_json::json;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use tokio::sync::Notify;

/// Writes down the moments.
#[derive(Default)]
struct Notes(Mutex<Vec<String>>);

impl Notes {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl Observer for Notes {
    fn observe(&self, moment: &Moment<'_>) {
        let told = match moment {
            Moment::Begun { .. } => "begun".to_owned(),
            Moment::Event(body) => format!("event {}", kind(body)),
            Moment::Input(input) => format!("input {}", input_kind(input)),
            Moment::Requested { call, .. } => format!("requested {}", call.step),
            Moment::Received(event) => format!("received {}", kind(event)),
            Moment::ToolStarted(call) => format!("started {}", call.name),
            Moment::Parked { .. } => "parked".to_owned(),
            Moment::Ended(_) => "ended".to_owned(),
        };
        self.0.lock().unwrap().push(told);
    }
}

fn kind(tagged: &impl Serialize) -> String {
    let value = serde_json::to_value(tagged).unwrap();
    value["type"].as_str().unwrap().to_owned()
}

fn input_kind(input: &Input) -> &'static str {
    match input {
        Input::Begin { .. } => "begin",
        Input::Reply { .. } => "reply",
        Input::Gate { .. } => "gate",
        Input::ToolFinished { .. } => "tool_finished",
        _ => "other",
    }
}

struct Panicking;

impl Observer for Panicking {
    fn observe(&self, _moment: &Moment<'_>) {
        panic!("the observer panics");
    }
}

/// Model that sends the given events, then answers.
struct Talker(Mutex<VecDeque<Vec<ModelEvent>>>);

impl Talker {
    fn saying(replies: Vec<Vec<ModelEvent>>) -> Arc<Self> {
        Arc::new(Self(Mutex::new(replies.into())))
    }
}

impl Model for Talker {
    fn info(&self) -> ModelInfo {
        ModelInfo {
            origin: Origin {
                dialect: "d".into(),
                provider: "p".into(),
                model: "m".into(),
            },
            streaming: true,
            price: None,
            context_tokens: None,
        }
    }

    fn stream(&self, _request: Arc<ModelRequest>) -> ModelStream {
        let said = self.0.lock().unwrap().pop_front();
        let said = said.unwrap_or_else(|| vec![text("done"), finished(FinishReason::Stop)]);
        Box::pin(stream::iter(said.into_iter().map(Ok)))
    }
}

fn text(text: &str) -> ModelEvent {
    ModelEvent::TextDelta {
        candidate: 0,
        text: text.into(),
    }
}

fn finished(reason: FinishReason) -> ModelEvent {
    ModelEvent::Finished {
        candidate: 0,
        reason,
        raw: reason.as_str().into(),
    }
}

fn a_call() -> Vec<ModelEvent> {
    vec![
        ModelEvent::ToolCallStarted {
            candidate: 0,
            call: 0,
            wire_id: None,
            name: "work".into(),
        },
        ModelEvent::ToolCallFinished {
            call: 0,
            opaque: None,
        },
        finished(FinishReason::ToolCalls),
    ]
}

/// Hangs in its first call if it is told to, and says when.
#[derive(Default)]
struct HangingTool {
    hang: Mutex<bool>,
    hangs: Notify,
}

#[async_trait]
impl Tool for HangingTool {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "work".into(),
            description: String::new(),
            parameters: json!({"type": "object"}),
            effects: Effects::Writes,
            concurrency: Concurrency::Exclusive,
            recovery: Recovery::Confirm,
            ..ToolSpec::default()
        }
    }

    async fn call(&self, _invocation: ToolInvocation) -> ToolOutcome {
        if std::mem::take(&mut *self.hang.lock().unwrap()) {
            self.hangs.notify_one();
            std::future::pending::<()>().await;
        }
        ToolOutcome::text("worked")
    }
}

struct Willing;

#[async_trait]
impl Gate for Willing {
    async fn check(&self, _request: &GateRequest) -> Verdict {
        Verdict::Allow
    }
}

#[async_trait]
impl Approver for Willing {
    async fn ask(&self, question: &Question) -> QuestionReply {
        QuestionReply::approved(question, "ada")
    }
}

fn setup(model: &Arc<Talker>, tool: &Arc<HangingTool>, journal: &Arc<MemoryJournal>) -> TurnSetup {
    TurnSetup {
        tools: Toolbox::new(vec![Arc::clone(tool) as Arc<dyn Tool>]).unwrap(),
        gate: Arc::new(Willing),
        approver: Arc::new(Willing),
        journal: Arc::clone(journal) as _,
        ..TurnSetup::new(
            SessionId::new("s"),
            TurnId::new("t"),
            Arc::clone(model) as Arc<dyn Model>,
            profile::builtin("default").unwrap().into(),
        )
    }
}

/// A sender without a listener.
fn sender() -> EventSender {
    events::channel(SessionId::new("s"), TurnId::new("t")).0
}

async fn run(model: &Arc<Talker>, events: EventSender) -> Outcome {
    let setup = setup(model, &Arc::default(), &Arc::default());
    let (_handle, control) = control();
    run_turn(
        setup,
        Transcript::new(),
        Message::user("q"),
        events,
        control,
    )
    .await
    .outcome()
    .unwrap()
}

/// Observations of a turn with one call, which has no arguments, and an answer.
const ONE_CALL: [&str; 28] = [
    "begun",
    "event init",
    "input begin",
    "event step_started",
    "requested 1",
    "received tool_call_started",
    "received tool_call_finished",
    "received finished",
    "input reply",
    "event usage",
    "event tool_call_pending",
    "event arguments_repaired",
    "input gate",
    "event tool_call_started",
    "started work",
    "input tool_finished",
    "event tool_call_finished",
    "event step_finished",
    "event step_started",
    "requested 2",
    "received text_delta",
    "event text_delta",
    "received finished",
    "input reply",
    "event usage",
    "event step_finished",
    "event result",
    "ended",
];

#[tokio::test]
async fn moments_are_told_in_their_order_though_nobody_listens() {
    let notes = Arc::new(Notes::default());
    let model = Talker::saying(vec![a_call()]);
    run(&model, sender().observed_by(Arc::clone(&notes) as _)).await;
    assert_eq!(notes.take(), ONE_CALL);
}

#[tokio::test]
async fn an_observer_that_panics_harms_neither_the_turn_nor_those_after_it() {
    let notes = Arc::new(Notes::default());
    let model = Talker::saying(vec![a_call()]);
    let events = sender().observed_by(Arc::new(Panicking));
    let outcome = run(&model, events.observed_by(Arc::clone(&notes) as _)).await;
    assert_eq!(outcome.text, "done");
    assert_eq!(notes.take(), ONE_CALL);
}

#[tokio::test]
async fn the_wait_of_a_request_is_told() {
    let notes = Arc::new(Notes::default());
    let model = Talker::saying(vec![vec![
        ModelEvent::Queued,
        ModelEvent::Sent,
        text("done"),
        finished(FinishReason::Stop),
    ]]);
    run(&model, sender().observed_by(Arc::clone(&notes) as _)).await;
    let mut told = notes.take();
    told.retain(|it| it.starts_with("received"));
    let expected = ["queued", "sent", "text_delta", "finished"];
    assert_eq!(told, expected.map(|it| format!("received {it}")));
}

#[tokio::test]
async fn what_abandoned_work_writes_after_the_end_is_not_told() {
    let outcome = run(&Talker::saying(Vec::new()), sender()).await;
    let notes = Arc::new(Notes::default());
    let events = sender().observed_by(Arc::clone(&notes) as _);
    let result = EventBody::Result(Box::new(ResultEvent::from_outcome(&outcome)));
    events.send(TimeMs(0), result);
    let late = EventBody::ToolOutputDelta {
        id: CallId::new("c"),
        text: "late".into(),
    };
    events.send(TimeMs(1), late);
    assert_eq!(notes.take(), ["event result"]);
}

#[tokio::test]
async fn a_call_that_a_person_lets_run_again_is_told_to_start() {
    let (model, tool) = (
        Talker::saying(vec![a_call()]),
        Arc::new(HangingTool::default()),
    );
    *tool.hang.lock().unwrap() = true;
    let journal = Arc::new(MemoryJournal::default());
    let (_handle, first) = control();
    let cut_off = run_turn(
        setup(&model, &tool, &journal),
        Transcript::new(),
        Message::user("q"),
        sender(),
        first,
    );
    tokio::select! {
        _ = cut_off => panic!("the call hangs"),
        () = tool.hangs.notified() => {}
    }
    let notes = Arc::new(Notes::default());
    let (_handle, second) = control();
    let events = sender().observed_by(Arc::clone(&notes) as _);
    let records = journal.records();
    let setup = setup(&model, &tool, &journal);
    let outcome = resume_turn(setup, Transcript::new(), &records, events, second).await;
    assert_eq!(outcome.unwrap().outcome().unwrap().text, "done");
    let told = notes.take();
    let at = |what: &str| told.iter().position(|it| it == what).unwrap();
    assert!(at("event approval_resolved") < at("started work"));
    assert!(at("started work") < at("input tool_finished"));
}
