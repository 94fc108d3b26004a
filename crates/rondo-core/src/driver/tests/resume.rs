//! A turn is cut off at every point there is, continues from its records, and ends as it would have.

use super::fakes::{AllowAll, AskAlways, Beat, ScriptedModel, answer, calls, lines};
use crate::driver::{ResumeError, TurnEnd, TurnSetup, control, resume_turn, run_turn};
use crate::events;
use crate::history::History;
use crate::joined::joined;
use crate::ports::{
    Amount, Append, AppendError, Approver, Budgets, CallDecision, Fence, FinishedCall, Gate,
    GateRequest, Head, Interceptor, InterruptedCall, Journal, MemoryBudget, MemoryJournal, Model,
    ModelStream, QuestionReply, Reconciled, Record, RecordBody, ReservationRequest, Reserved,
    ResultDecision, Seq, StepContext, StepDecision, Tool, ToolInvocation,
};
use crate::profile;
use crate::redrive::RedriveError;
use crate::replay::{Changes, replay};
use crate::toolbox::Toolbox;
use async_trait::async_trait;
use rondo_types::{
    Concurrency, Effects, EventBody, InDoubtDecision, Message, ModelInfo, ModelRequest, Outcome,
    Question, Recovery, SessionId, StopReason, ToolContent, ToolOutcome, ToolSpec, Transcript,
    TurnEvent, TurnId,
};
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Point at which the process dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Death {
    Never,
    BeforeCommit(usize),
    AfterCommit(usize),
    /// In the n-th tool call, before or after its effect.
    BeforeEffect(usize),
    AfterEffect(usize),
}

/// State that outlives a process: the journal, and the effects of its tools by key.
#[derive(Default)]
struct World {
    records: Mutex<Vec<Record>>,
    effects: Mutex<HashMap<String, usize>>,
    requests: Mutex<usize>,
    /// Set if every call needs approval, and is answered by another process while the turn is parked.
    parks: bool,
    /// Budget of its requests.
    budget: MemoryBudget,
    /// Set if an interceptor changes every call, result and step.
    intercepts: bool,
    /// The hashes of the questions that were answered with yes.
    approved: Mutex<HashSet<String>>,
}

/// Hands over the answers that other processes gave; the others come later.
struct Desk(Arc<World>);

#[async_trait]
impl Approver for Desk {
    async fn ask(&self, question: &Question) -> QuestionReply {
        if !self.0.approved.lock().unwrap().contains(&question.hash) {
            return QuestionReply::Later { expires: None };
        }
        QuestionReply::approved(question, "someone")
    }
}

/// State of one process.
struct Process {
    world: Arc<World>,
    death: Death,
    appends: Mutex<usize>,
    calls: Mutex<usize>,
    died: Notify,
}

impl Process {
    /// Says so, and does nothing more.
    async fn die(&self) {
        self.died.notify_one();
        std::future::pending().await
    }
}

fn next(counter: &Mutex<usize>) -> usize {
    let mut counter = counter.lock().unwrap();
    *counter += 1;
    *counter - 1
}

struct Durable(Arc<Process>);

#[async_trait]
impl Journal for Durable {
    fn at(&self) -> Seq {
        Seq(self.0.world.records.lock().unwrap().len() as u64)
    }

    async fn head(&self) -> Result<Head, AppendError> {
        let records = self.0.world.records.lock().unwrap().clone();
        MemoryJournal::with_records(records).head().await
    }

    fn lost(&self) -> CancellationToken {
        CancellationToken::new()
    }

    async fn append(&self, _: &Fence, append: Append) -> Result<Seq, AppendError> {
        let n = next(&self.0.appends);
        if self.0.death == Death::BeforeCommit(n) {
            self.0.die().await;
        }
        assert_eq!(self.at(), append.expected);
        self.0.world.records.lock().unwrap().extend(append.batch);
        if self.0.death == Death::AfterCommit(n) {
            self.0.die().await;
        }
        Ok(self.at())
    }
}

struct Worker {
    name: &'static str,
    recovery: Recovery,
    process: Arc<Process>,
}

#[async_trait]
impl Tool for Worker {
    fn spec(&self) -> ToolSpec {
        let reads = self.recovery == Recovery::ReadOnly;
        ToolSpec {
            name: self.name.into(),
            description: String::new(),
            parameters: json!({"type": "object"}),
            effects: if reads {
                Effects::ReadOnly
            } else {
                Effects::Writes
            },
            concurrency: if reads {
                Concurrency::Shared
            } else {
                Concurrency::Exclusive
            },
            recovery: self.recovery,
            ..ToolSpec::default()
        }
    }

    async fn call(&self, invocation: ToolInvocation) -> ToolOutcome {
        let n = next(&self.process.calls);
        if self.process.death == Death::BeforeEffect(n) {
            self.process.die().await;
        }
        if self.process.world.intercepts {
            assert_eq!(invocation.arguments.get("by"), Some(&json!("hook")));
        }
        let key = invocation.idempotency_key;
        let effects = &self.process.world.effects;
        *effects.lock().unwrap().entry(key).or_default() += 1;
        if self.process.death == Death::AfterEffect(n) {
            self.process.die().await;
        }
        ToolOutcome::text(format!("{} did", self.name))
    }

    async fn evidence(&self, _: &Value) -> Option<Value> {
        Some(json!({"before": self.name}))
    }

    async fn reconcile(&self, call: &InterruptedCall) -> Reconciled {
        assert_eq!(call.evidence, Some(json!({"before": self.name})));
        let effects = self.process.world.effects.lock().unwrap();
        match effects.get(&call.idempotency_key) {
            Some(_) => Reconciled::Done(ToolOutcome::text(format!("{} did", self.name))),
            None => Reconciled::NotDone,
        }
    }
}

/// Pays for requests, each of which is reserved for once and sent once it is.
struct Purse(Arc<World>);

#[async_trait]
impl Budgets for Purse {
    async fn reserve(&self, request: &ReservationRequest) -> Reserved {
        let records = self.0.records.lock().unwrap().clone();
        let is_that =
            |it: &Record| matches!(&it.body, RecordBody::Reserved(it) if it.id == request.id);
        assert!(!records.iter().any(is_that), "it is reserved twice");
        self.0.budget.reserve(request).await
    }

    async fn settle(&self, session: &SessionId, id: &str, used: Amount) {
        self.0.budget.settle(session, id, used).await;
    }
}

/// Changes everything that it sees, and is never asked for what is recorded.
struct Hook(Arc<World>);

impl Hook {
    fn check(&self, is_that: impl Fn(&Record) -> bool) {
        let records = self.0.records.lock().unwrap();
        assert!(!records.iter().any(is_that), "it is asked twice");
    }
}

#[async_trait]
impl Interceptor for Hook {
    fn name(&self) -> &str {
        "hook"
    }

    async fn turn_start(&self, _: &StepContext) -> StepDecision {
        self.check(|it| matches!(it.body, RecordBody::ModelRequested { .. }));
        StepDecision::Add {
            text: "be brief".to_owned(),
        }
    }

    async fn step_start(&self, step: &StepContext) -> StepDecision {
        self.check(|it| {
            let is_asked = matches!(it.body, RecordBody::ModelRequested { .. });
            is_asked && it.step >= step.step
        });
        StepDecision::Add {
            text: format!("step {}", step.step),
        }
    }

    async fn before_tool(&self, call: &GateRequest) -> CallDecision {
        self.check(|it| match &it.body {
            RecordBody::Intercepted(what) => what.judged_call() == Some(&call.call_id),
            RecordBody::GateJudged { call_id, .. } => *call_id == call.call_id,
            _ => false,
        });
        let mut arguments = call.arguments.clone();
        arguments["by"] = json!("hook");
        CallDecision::Rewrite { arguments }
    }

    async fn after_tool(&self, call: &FinishedCall) -> ResultDecision {
        self.check(|it| matches!(&it.body, RecordBody::ToolFinished { call_id, .. } if *call_id == call.call_id));
        ResultDecision::Rewrite {
            text: format!("{} was seen", call.tool),
        }
    }
}

/// Replies by how many replies there were, so that it need not remember.
struct Stateless {
    script: Vec<Vec<Beat>>,
    process: Arc<Process>,
}

impl Model for Stateless {
    fn info(&self) -> ModelInfo {
        ScriptedModel::new("m", vec![], &Arc::default()).info()
    }

    fn stream(&self, request: Arc<ModelRequest>) -> ModelStream {
        next(&self.process.world.requests);
        let replies = request.messages.iter().filter(|it| it.origin.is_some());
        let beats = self.script.get(replies.count()).cloned();
        let journal = Arc::new(MemoryJournal::with_records(
            self.process.world.records.lock().unwrap().clone(),
        ));
        let script = vec![beats.unwrap_or_else(|| answer("too many"))];
        ScriptedModel::new("m", script, &journal).stream(request)
    }
}

const TOOLS: [(&str, Recovery); 5] = [
    ("look", Recovery::ReadOnly),
    ("list", Recovery::ReadOnly),
    ("send", Recovery::AtMostOnce),
    ("put", Recovery::Idempotent),
    ("edit", Recovery::Checkable),
];

fn script() -> Vec<Vec<Beat>> {
    vec![
        calls(&[("look", "{}"), ("list", "{}")]),
        calls(&[("send", "{}")]),
        calls(&[("put", "{}"), ("edit", "{}"), ("look", "{\"n\":1}")]),
        answer("done"),
    ]
}

fn setup(process: &Arc<Process>) -> TurnSetup {
    let tools = TOOLS.map(|(name, recovery)| {
        let process = Arc::clone(process);
        let tool = Worker {
            name,
            recovery,
            process,
        };
        Arc::new(tool) as Arc<dyn Tool>
    });
    let parks = process.world.parks;
    let gate: Arc<dyn Gate> = match parks {
        true => Arc::new(AskAlways),
        false => Arc::new(AllowAll),
    };
    TurnSetup {
        tools: Toolbox::new(tools).unwrap(),
        gate,
        approver: Arc::new(Desk(Arc::clone(&process.world))),
        journal: Arc::new(Durable(Arc::clone(process))),
        budgets: vec![Arc::new(Purse(Arc::clone(&process.world)))],
        interceptors: match process.world.intercepts {
            true => vec![Arc::new(Hook(Arc::clone(&process.world)))],
            false => vec![],
        },
        ..TurnSetup::new(
            SessionId::new("s"),
            TurnId::new("t"),
            Arc::new(Stateless {
                script: script(),
                process: Arc::clone(process),
            }),
            profile::builtin("default").unwrap().into(),
        )
    }
}

/// Traces of a life besides the world.
struct Life {
    /// None if the process died.
    end: Option<TurnEnd>,
    /// Events of the life.
    events: Vec<TurnEvent>,
    /// Points at which it could have died.
    points: usize,
}

/// Lives until the turn ends or the process dies; then nothing of it is left.
async fn live(world: &Arc<World>, death: Death) -> Life {
    let process = Arc::new(Process {
        world: Arc::clone(world),
        death,
        appends: Mutex::default(),
        calls: Mutex::default(),
        died: Notify::new(),
    });
    let setup = setup(&process);
    let (tx, mut rx) = events::channel(setup.session.clone(), setup.turn.clone());
    let (_handle, turn_control) = control();
    let mut told = Vec::new();
    let records = world.records.lock().unwrap().clone();
    let turn = async {
        if records.is_empty() {
            let message = Message::user("q");
            run_turn(setup, Transcript::new(), message, tx, turn_control).await
        } else {
            resume_turn(setup, Transcript::new(), &records, tx, turn_control)
                .await
                .unwrap()
        }
    };
    let listen = async {
        while let Some(event) = rx.next().await {
            told.push(event);
        }
    };
    let end = tokio::select! {
        (end, ()) = async { tokio::join!(turn, listen) } => Some(end),
        () = process.died.notified() => None,
    };
    let calls = *process.calls.lock().unwrap();
    let appends = *process.appends.lock().unwrap();
    Life {
        end,
        events: told,
        points: calls.max(appends),
    }
}

impl Life {
    fn outcome(&self) -> Option<Outcome> {
        self.end.clone()?.outcome()
    }
}

fn is_over(world: &World) -> bool {
    let records = world.records.lock().unwrap();
    records
        .iter()
        .any(|it| matches!(it.body, RecordBody::Final { .. }))
}

/// Invariants of a world whose turn is over, however often its process died.
fn check(world: &World, outcome: &Outcome, deaths: &[Death]) {
    assert_eq!(outcome.text, "done", "{deaths:?}");
    assert_eq!(outcome.stop_reason, StopReason::Complete, "{deaths:?}");
    assert!(crate::pairing::is_paired(&outcome.transcript), "{deaths:?}");
    let records = world.records.lock().unwrap();
    let mut ended = HashMap::new();
    let mut names = HashMap::new();
    for record in records.iter() {
        match &record.body {
            RecordBody::ToolStarted {
                call_id,
                name,
                idempotency_key,
                ..
            } => {
                names.insert(call_id.clone(), (name.clone(), idempotency_key.clone()));
            }
            RecordBody::ToolFinished { call_id, .. } => {
                *ended.entry(call_id.clone()).or_insert(0) += 1;
            }
            _ => {}
        }
    }
    assert_eq!(names.len(), 6, "{deaths:?}");
    let (used, committed) = (world.budget.used(), world.budget.committed());
    assert_eq!(used, committed, "{deaths:?}");
    assert!(ended.values().all(|count| *count == 1), "{deaths:?}");
    let effects = world.effects.lock().unwrap();
    for (name, key) in names.values() {
        let count = effects.get(key).copied().unwrap_or(0);
        let (least, most) = match name.as_str() {
            "send" => (0, 1),
            "edit" => (1, 1),
            _ => (1, 1 + deaths.len()),
        };
        assert!(
            (least..=most).contains(&count),
            "{name} {count}: {deaths:?}"
        );
    }
}

/// Lives through one death after another, then to the end.
async fn live_through(deaths: &[Death]) {
    live_through_in(Arc::default(), deaths).await;
}

async fn live_through_in(world: Arc<World>, deaths: &[Death]) {
    for death in deaths {
        if !is_over(&world) {
            live(&world, *death).await;
        }
    }
    // Nothing was begun before the first commit: then it is the first turn that runs.
    if is_over(&world) {
        check_replayed(&world, None, deaths);
        return;
    }
    let last = live(&world, Death::Never).await;
    check(&world, &last.outcome().unwrap(), deaths);
    check_replayed(&world, Some(last), deaths);
}

/// Does the same with a turn that is parked for each call, and answered by another process. Returns the number of
/// lives and of points at which they could have died.
async fn live_through_questions(deaths: &[Death]) -> (usize, usize) {
    live_through_questions_in(false, deaths).await
}

async fn live_through_questions_in(intercepts: bool, deaths: &[Death]) -> (usize, usize) {
    let world = Arc::new(World {
        parks: true,
        intercepts,
        ..World::default()
    });
    let (mut lives, mut points) = (0, 0);
    loop {
        let death = deaths.get(lives).copied().unwrap_or(Death::Never);
        let life = live(&world, death).await;
        lives += 1;
        points = points.max(life.points);
        match &life.end {
            _ if is_over(&world) => {
                let is_told = matches!(life.end, Some(TurnEnd::Done(_)));
                if let Some(outcome) = life.outcome() {
                    check(&world, &outcome, deaths);
                }
                check_replayed(&world, is_told.then_some(life), deaths);
                return (lives, points);
            }
            Some(TurnEnd::Done(outcome)) => panic!("{outcome:?} is not recorded: {deaths:?}"),
            Some(TurnEnd::Parked(parked)) => {
                let hashes = parked.questions.iter().map(|it| it.hash.clone());
                world.approved.lock().unwrap().extend(hashes);
                let last = life.events.last().map(|it| it.body.clone());
                let questions = parked.questions.clone();
                assert_eq!(last, Some(EventBody::Parked { questions }));
            }
            None => {}
        }
        assert!(lives < 40, "{deaths:?}");
    }
}

/// A replay of what all lives recorded differs in nothing, and tells what the last one told, byte
/// for byte. What a process told that died may be less than it recorded.
fn check_replayed(world: &World, last: Option<Life>, deaths: &[Death]) {
    let records = world.records.lock().unwrap().clone();
    let again = replay(&SessionId::new("s"), &records, &Changes::default()).unwrap();
    let [turn] = &again.turns[..] else {
        panic!("{deaths:?}: {again:?}")
    };
    assert_eq!(turn.differences, [], "{deaths:?}");
    let resumed = |it: &&Record| matches!(it.body, RecordBody::Resumed { .. });
    let lives = 1 + records.iter().filter(resumed).count();
    assert_eq!(turn.streams.len(), lives, "{deaths:?}");
    if let Some(last) = last {
        assert_eq!(turn.outcome, last.outcome(), "{deaths:?}");
        let stream = turn.streams.last().unwrap();
        assert_eq!(lines(stream), lines(&joined(last.events)), "{deaths:?}");
    }
}

fn deaths(points: usize) -> Vec<Death> {
    (0..points)
        .flat_map(|n| {
            [
                Death::BeforeCommit(n),
                Death::AfterCommit(n),
                Death::BeforeEffect(n),
                Death::AfterEffect(n),
            ]
        })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_turn_cut_off_anywhere_goes_on_and_ends_and_replays_as_it_would_have() {
    let world = Arc::new(World::default());
    let life = live(&world, Death::Never).await;
    check(&world, &life.outcome().unwrap(), &[]);
    let points = life.points;
    assert!(points >= 10, "{points}");
    check_replayed(&world, Some(life), &[]);
    for death in deaths(points) {
        live_through(&[death]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_parked_turn_that_is_cut_off_anywhere_does_each_call_once() {
    let (lives, points) = live_through_questions(&[]).await;
    // The calls of a reply that may run side by side are asked about together.
    assert_eq!(lives, 6);
    assert!(points >= 3, "{points}");
    for place in 0..lives {
        for death in deaths(points) {
            let mut deaths = vec![Death::Never; place];
            deaths.push(death);
            live_through_questions(&deaths).await;
        }
    }
    for first in deaths(points) {
        for second in deaths(points) {
            live_through_questions(&[first, second, first, second]).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_turn_cut_off_twice_goes_on_and_replays_all_the_same() {
    for first in deaths(10) {
        for second in deaths(10) {
            live_through(&[first, second]).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_turn_whose_calls_are_intercepted_is_cut_off_anywhere_and_does_each_as_it_was_rewritten()
{
    let world = || {
        Arc::new(World {
            intercepts: true,
            ..World::default()
        })
    };
    let whole = world();
    let life = live(&whole, Death::Never).await;
    let outcome = life.outcome().unwrap();
    check(&whole, &outcome, &[]);
    let records = whole.records.lock().unwrap().clone();
    assert_eq!(History::of(&records).transcript(), outcome.transcript);
    let results = outcome.transcript.iter().flat_map(|it| it.results());
    for result in results {
        let ToolContent::Text(text) = &result.content else {
            panic!("{result:?}")
        };
        assert!(text.starts_with("[hook changed the arguments"), "{text}");
        assert!(text.ends_with(" was seen"), "{text}");
    }
    let points = life.points;
    check_replayed(&whole, Some(life), &[]);
    for first in deaths(points) {
        live_through_in(world(), &[first]).await;
    }
    for first in deaths(5) {
        for second in deaths(5) {
            live_through_in(world(), &[first, second]).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_parked_turn_whose_calls_are_intercepted_asks_about_each_once() {
    let (lives, points) = live_through_questions_in(true, &[]).await;
    assert_eq!(lives, 6);
    for place in 0..lives {
        for death in deaths(points) {
            let mut deaths = vec![Death::Never; place];
            deaths.push(death);
            live_through_questions_in(true, &deaths).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_recorded_reply_is_not_asked_for_again() {
    // The second commit is the one with the first reply.
    for (death, requests) in [
        (Death::AfterCommit(0), 4),
        (Death::BeforeCommit(1), 5),
        (Death::AfterCommit(1), 4),
    ] {
        let world = Arc::new(World::default());
        live(&world, death).await;
        live(&world, Death::Never).await;
        assert_eq!(*world.requests.lock().unwrap(), requests, "{death:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_decided_about_a_cut_off_call_is_recorded_by_its_class() {
    let expected = [
        (0, InDoubtDecision::Retry),
        (2, InDoubtDecision::Fail),
        (3, InDoubtDecision::Retry),
        (4, InDoubtDecision::Done),
    ];
    for (n, decision) in expected {
        let world = Arc::new(World::default());
        live(&world, Death::AfterEffect(n)).await;
        live(&world, Death::Never).await;
        let records = world.records.lock().unwrap();
        let decided: Vec<_> = records
            .iter()
            .filter_map(|it| match it.body {
                RecordBody::ToolInDoubt { decision, .. } => Some(decision),
                _ => None,
            })
            .collect();
        assert!(decided.contains(&decision), "{n}: {decided:?}");
    }
}

/// Goes on with records, and returns why that is refused.
async fn refused(world: &Arc<World>, records: &[Record]) -> ResumeError {
    let process = Arc::new(Process {
        world: Arc::clone(world),
        death: Death::Never,
        appends: Mutex::default(),
        calls: Mutex::default(),
        died: Notify::new(),
    });
    let setup = setup(&process);
    let (tx, _rx) = events::channel(setup.session.clone(), setup.turn.clone());
    let (_handle, control) = control();
    let resumed = resume_turn(setup, Transcript::new(), records, tx, control).await;
    resumed.unwrap_err()
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_is_over_or_was_never_begun_does_not_go_on() {
    let world = Arc::new(World::default());
    live(&world, Death::Never).await;
    let records = world.records.lock().unwrap().clone();
    for (records, error) in [
        (&records[..], ResumeError::Finished),
        (&records[..1], ResumeError::Redrive(RedriveError::NoMessage)),
    ] {
        assert_eq!(refused(&world, records).await, error);
    }
}

#[tokio::test(start_paused = true)]
async fn records_of_another_kind_of_turn_are_refused() {
    let world = Arc::new(World::default());
    live(&world, Death::Never).await;
    let mut records = world.records.lock().unwrap().clone();
    records.retain(|it| {
        !matches!(
            it.body,
            RecordBody::GateJudged { .. } | RecordBody::Final { .. }
        )
    });
    *world.records.lock().unwrap() = records.clone();
    let error = refused(&world, &records).await;
    assert!(matches!(
        error,
        ResumeError::Redrive(RedriveError::Diverged { .. })
    ));
}
