//! Calls that start a session of their own: its questions park the turn, and its answers continue both.

use super::fakes::{Act, AllowAll, AskAlways, Beat, Bench, answer, calls};
use super::journal::kinds;
use crate::driver::{TurnEnd, control, resume_turn, run_turn};
use crate::events;
use crate::ports::{
    Append, AppendError, Approver, CallEnd, Fence, InterruptedCall, Journal, MemoryJournal,
    QuestionReply, Reconciled, Record, RecordBody, Seq, Tool, ToolInvocation, WrappedJournal,
};
use crate::replay::{Changes, replay};
use async_trait::async_trait;
use rondo_types::{
    CallId, Concurrency, Message, Outcome, Question, QuestionId, QuestionKind, Recovery, SessionId,
    StopReason, ToolContent, ToolErrorCode, ToolOutcome, ToolSpec, Transcript, TurnId,
};
use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Notify;

/// State that outlives a process: both journals, answers, and effects of the child.
#[derive(Default)]
struct World {
    parent: Arc<MemoryJournal>,
    child: Arc<MemoryJournal>,
    approved: Mutex<HashSet<String>>,
    effects: Mutex<usize>,
    /// Set if the parent's tool can reconcile its calls.
    is_uncheckable: bool,
}

/// One process, which dies at an append.
struct Process {
    world: Arc<World>,
    /// The append, and whether it dies before it.
    death: Option<(usize, bool)>,
    appends: Mutex<usize>,
    died: Notify,
}

impl Process {
    async fn die(&self) {
        self.died.notify_one();
        std::future::pending().await
    }
}

/// One of the journals, until its process dies.
struct Mortal {
    journal: Arc<MemoryJournal>,
    process: Arc<Process>,
}

#[async_trait]
impl WrappedJournal for Mortal {
    fn inner(&self) -> &dyn Journal {
        &*self.journal
    }

    async fn append_around(&self, fence: &Fence, append: Append) -> Result<Seq, AppendError> {
        let n = {
            let mut appends = self.process.appends.lock().unwrap();
            *appends += 1;
            *appends - 1
        };
        if self.process.death == Some((n, true)) {
            self.process.die().await;
        }
        let appended = self.journal.append(fence, append).await;
        if self.process.death == Some((n, false)) {
            self.process.die().await;
        }
        appended
    }
}

/// Approves what was answered with yes; the rest comes later.
struct Desk(Arc<World>);

#[async_trait]
impl Approver for Desk {
    async fn ask(&self, question: &Question) -> QuestionReply {
        let approved = self.0.approved.lock().unwrap();
        match approved.contains(&question.hash) {
            true => QuestionReply::approved(question, "ada"),
            false => QuestionReply::Later { expires: None },
        }
    }
}

/// Tool of the child.
struct Put(Arc<World>);

#[async_trait]
impl Tool for Put {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "put".to_owned(),
            recovery: Recovery::AtMostOnce,
            concurrency: Concurrency::Exclusive,
            ..ToolSpec::default()
        }
    }

    async fn call(&self, _: ToolInvocation) -> ToolOutcome {
        *self.0.effects.lock().unwrap() += 1;
        ToolOutcome::text("put")
    }
}

/// Asks a session of its own.
struct Delegate(Arc<Process>);

#[async_trait]
impl Tool for Delegate {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "delegate".to_owned(),
            recovery: match self.0.world.is_uncheckable {
                true => Recovery::AtMostOnce,
                false => Recovery::Checkable,
            },
            concurrency: Concurrency::Shared,
            ..ToolSpec::default()
        }
    }

    async fn call(&self, _: ToolInvocation) -> ToolOutcome {
        panic!("it is run")
    }

    async fn run(&self, _: ToolInvocation) -> CallEnd {
        let script = vec![calls(&[("put", "{}")]), answer("the child is done")];
        let mut bench = bench(&self.0, &self.0.world.child, script);
        bench.tools.push(Arc::new(Put(Arc::clone(&self.0.world))));
        bench.gate = Arc::new(AskAlways);
        bench.approver = Arc::new(Desk(Arc::clone(&self.0.world)));
        match turn(bench, "c").await {
            TurnEnd::Done(outcome) => CallEnd::Done(ToolOutcome::text(outcome.text)),
            TurnEnd::Parked(parked) => CallEnd::Waiting {
                child: SessionId::new("c"),
                questions: parked.questions,
            },
        }
    }

    async fn reconcile(&self, _: &InterruptedCall) -> Reconciled {
        let records = self.0.world.child.records();
        match records.last().map(|it| &it.body) {
            None => Reconciled::NotDone,
            Some(RecordBody::Final { text, .. }) => Reconciled::Done(ToolOutcome::text(text)),
            Some(_) => Reconciled::Running,
        }
    }
}

/// A turn that continues from what its journal holds.
fn bench(process: &Arc<Process>, journal: &Arc<MemoryJournal>, script: Vec<Vec<Beat>>) -> Bench {
    let records = journal.records();
    let is_reply = |it: &&Record| matches!(it.body, RecordBody::ModelReplied { .. });
    let replies = records.iter().filter(is_reply).count();
    let mut bench = Bench::new("default", script.into_iter().skip(replies).collect());
    bench.model.journal = Arc::clone(journal);
    bench.records = Arc::clone(journal);
    bench.journal = Arc::new(Mortal {
        journal: Arc::clone(journal),
        process: Arc::clone(process),
    });
    bench
}

async fn turn(bench: Bench, session: &str) -> TurnEnd {
    let records = bench.records.records();
    let (mut setup, _) = bench.setup();
    setup.session = SessionId::new(session);
    let (sender, _listener) = events::channel(setup.session.clone(), TurnId::new("t"));
    let (_handle, turn_control) = control();
    match records.is_empty() {
        true => {
            let message = Message::user("q");
            run_turn(setup, Transcript::new(), message, sender, turn_control).await
        }
        false => resume_turn(setup, Transcript::new(), &records, sender, turn_control)
            .await
            .unwrap(),
    }
}

fn parent(process: &Arc<Process>) -> Bench {
    let script = vec![calls(&[("delegate", "{}")]), answer("done")];
    let mut bench = bench(process, &process.world.parent, script);
    bench.tools.push(Arc::new(Delegate(Arc::clone(process))));
    bench.gate = Arc::new(AllowAll);
    bench
}

fn process(world: &Arc<World>, death: Option<(usize, bool)>) -> Arc<Process> {
    Arc::new(Process {
        world: Arc::clone(world),
        death,
        appends: Mutex::default(),
        died: Notify::new(),
    })
}

/// Lives until the parent's turn is over or parked, or the process dies.
async fn live(world: &Arc<World>, death: Option<(usize, bool)>) -> (Option<TurnEnd>, usize) {
    let process = process(world, death);
    let end = tokio::select! {
        end = turn(parent(&process), "s") => Some(end),
        () = process.died.notified() => None,
    };
    let appends = *process.appends.lock().unwrap();
    (end, appends)
}

fn is_over(journal: &MemoryJournal) -> bool {
    let records = journal.records();
    matches!(
        records.last().map(|it| &it.body),
        Some(RecordBody::Final { .. })
    )
}

fn approve(world: &World, questions: &[Question]) {
    let hashes = questions.iter().map(|it| it.hash.clone());
    world.approved.lock().unwrap().extend(hashes);
}

fn result(outcome: &Outcome) -> (Option<ToolErrorCode>, String) {
    let mut results = outcome.transcript.iter().flat_map(|it| it.results());
    let result = results.next().unwrap();
    let ToolContent::Text(text) = &result.content else {
        panic!("{result:?}")
    };
    (result.error, text.clone())
}

#[tokio::test(start_paused = true)]
async fn a_parked_child_parks_its_parent_and_its_answer_carries_on_both() {
    let world = Arc::new(World::default());
    let (end, _) = live(&world, None).await;
    let Some(TurnEnd::Parked(parked)) = end else {
        panic!("{end:?}")
    };
    let [question] = &parked.questions[..] else {
        panic!("{parked:?}")
    };
    let expected = Question {
        id: QuestionId("c:r00100100".to_owned()),
        call: Some(CallId::generated(1, 1, 0)),
        child: Some(SessionId::new("c")),
        kind: QuestionKind::Approval,
        prompt: "run it?".to_owned(),
        hash: question.hash.clone(),
        expires: None,
        offers: Vec::new(),
        reasons: vec![rondo_types::AskReason::NotAllowed],
        subject: rondo_types::QuestionSubject::default(),
    };
    assert_eq!(*question, expected);
    for journal in [&world.parent, &world.child] {
        assert_eq!(kinds(&journal.records()).last(), Some(&"parked"));
    }
    assert_eq!(*world.effects.lock().unwrap(), 0);

    approve(&world, &parked.questions);
    let (end, _) = live(&world, None).await;
    let outcome = end.unwrap().outcome().unwrap();
    assert_eq!(outcome.text, "done");
    assert_eq!(result(&outcome), (None, "the child is done".to_owned()));
    assert_eq!(*world.effects.lock().unwrap(), 1);
    assert!(is_over(&world.child));
}

#[tokio::test(start_paused = true)]
async fn a_child_that_ended_elsewhere_gives_its_parent_the_result() {
    let world = Arc::new(World::default());
    let (end, _) = live(&world, None).await;
    let Some(TurnEnd::Parked(parked)) = end else {
        panic!("{end:?}")
    };
    approve(&world, &parked.questions);
    // Another process answers the child alone.
    let child = Delegate(process(&world, None));
    let script = vec![calls(&[("put", "{}")]), answer("the child is done")];
    let mut alone = bench(&child.0, &world.child, script);
    alone.tools.push(Arc::new(Put(Arc::clone(&world))));
    alone.gate = Arc::new(AskAlways);
    alone.approver = Arc::new(Desk(Arc::clone(&world)));
    assert!(matches!(turn(alone, "c").await, TurnEnd::Done(_)));
    let (end, _) = live(&world, None).await;
    let outcome = end.unwrap().outcome().unwrap();
    assert_eq!(result(&outcome), (None, "the child is done".to_owned()));
    assert_eq!(*world.effects.lock().unwrap(), 1);
}

/// Lives through deaths, answers what is asked, and returns at how many appends a life could have ended.
async fn live_through(deaths: &[Option<(usize, bool)>]) -> usize {
    let world = Arc::new(World::default());
    let (mut lives, mut points) = (0, 0);
    while !is_over(&world.parent) {
        let death = deaths.get(lives).copied().flatten();
        let (end, appends) = live(&world, death).await;
        points = points.max(appends);
        lives += 1;
        if let Some(TurnEnd::Parked(parked)) = end {
            approve(&world, &parked.questions);
        }
        assert!(lives < 12, "{deaths:?}");
    }
    assert!(*world.effects.lock().unwrap() <= 1, "{deaths:?}");
    for (journal, name) in [(&world.parent, "s"), (&world.child, "c")] {
        let records = journal.records();
        let kinds = kinds(&records);
        let ends = kinds.iter().filter(|it| **it == "tool_finished").count();
        assert_eq!(ends, 1, "{deaths:?}: {kinds:?}");
        let again = replay(&SessionId::new(name), &records, &Changes::default());
        assert_eq!(again.unwrap().turns[0].differences, [], "{deaths:?}");
    }
    points
}

#[tokio::test(start_paused = true)]
async fn parent_and_child_are_cut_off_anywhere_and_do_each_thing_once() {
    let points = live_through(&[]).await;
    assert!(points >= 4, "{points}");
    let deaths: Vec<_> = (0..points)
        .flat_map(|n| [Some((n, true)), Some((n, false))])
        .collect();
    for first in &deaths {
        live_through(&[*first]).await;
        live_through(&[None, *first]).await;
        for second in &deaths {
            live_through(&[*first, *second]).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_waits_only_where_its_tool_knows_what_becomes_of_it() {
    let uncheckable = Arc::new(World {
        is_uncheckable: true,
        ..World::default()
    });
    let (end, _) = live(&uncheckable, None).await;
    let (code, text) = result(&end.unwrap().outcome().unwrap());
    assert_eq!(code, Some(ToolErrorCode::Failed));
    assert!(text.contains("does not say what becomes"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn stopping_a_turn_that_waits_for_a_child_ends_the_call() {
    let world = Arc::new(World::default());
    let asked = calls(&[("delegate", "{}"), ("look", "{}")]);
    let mut bench =
        Bench::new("default", vec![asked]).tool("look", true, &[Act::SleepThenReturn(5_000)]);
    let tool = Delegate(process(&world, None));
    bench.tools.push(Arc::new(tool));
    let (ran, _) = bench.run_cancelled(Duration::from_secs(1)).await;
    assert_eq!(ran.outcome.stop_reason, StopReason::Cancelled);
    assert_eq!(result(&ran.outcome).0, Some(ToolErrorCode::Cancelled));
    assert_eq!(kinds(&world.child.records()).last(), Some(&"parked"));
}
