//! Tests: tools that change between two steps, cut off anywhere.

use super::fakes::{Beat, Bench, answer, calls, check_replayed, observe};
use super::journal::kinds;
use crate::driver::{control, resume_turn, run_turn};
use crate::ports::{
    Append, Fence, Journal as _, MemoryJournal, Model, ModelStream, Record, RecordBody, Seq, Tool,
    ToolInvocation, ToolScope, ToolSource,
};
use crate::redact::Secrets;
use crate::replay::{Changes, replay};
use crate::toolbox::Toolbox;
use async_trait::async_trait;
use futures_util::stream;
use rondo_types::{
    ErrorClass, EventBody, Message, ModelInfo, ModelRequest, Recovery, SessionId, StopReason,
    ToolErrorCode, ToolOutcome, ToolSpec, Transcript, TurnEvent,
};
use serde_json::json;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// State outside of all processes: the number of calls that ran, and the tools that a server offers by then.
struct World {
    ran: AtomicU64,
    /// Offered tools after so many calls; the last entry stays.
    offers: Vec<Vec<&'static str>>,
}

impl World {
    fn new(offers: &[&[&'static str]]) -> Arc<Self> {
        Arc::new(Self {
            ran: AtomicU64::new(0),
            offers: offers.iter().map(|names| names.to_vec()).collect(),
        })
    }

    fn offered(&self) -> &[&'static str] {
        let ran = usize::try_from(self.ran.load(Ordering::Relaxed)).unwrap();
        let at = ran.min(self.offers.len() - 1);
        &self.offers[at]
    }
}

/// A process's view of the server: its generations begin anywhere.
struct Server {
    world: Arc<World>,
    offset: u64,
}

impl ToolSource for Server {
    fn tools(&self, _: &ToolScope) -> Vec<Arc<dyn Tool>> {
        let names = self.world.offered().iter();
        names.map(|name| tool(name, &self.world)).collect()
    }

    fn generation(&self) -> u64 {
        let offered = self.world.offered();
        let same = self.world.offers.iter().position(|it| it == offered);
        self.offset + same.unwrap() as u64
    }
}

struct Counts {
    name: &'static str,
    world: Arc<World>,
}

fn tool(name: &'static str, world: &Arc<World>) -> Arc<dyn Tool> {
    let world = Arc::clone(world);
    Arc::new(Counts { name, world })
}

#[async_trait]
impl Tool for Counts {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: self.name.to_owned(),
            // Each takes arguments of its own, so that a wrong catalog would refuse them.
            parameters: json!({
                "type": "object",
                "properties": { (self.name): { "type": "integer" } },
                "required": [self.name],
                "additionalProperties": false
            }),
            recovery: Recovery::Idempotent,
            ..ToolSpec::default()
        }
    }

    async fn call(&self, _: ToolInvocation) -> ToolOutcome {
        let ran = self.world.ran.fetch_add(1, Ordering::Relaxed);
        ToolOutcome::text(format!("{} ran as number {ran}", self.name))
    }
}

/// Calls the tool that is offered last until it has so many results, and checks that what it is offered is recorded.
struct Caller {
    info: ModelInfo,
    results: usize,
    journal: Arc<MemoryJournal>,
    requests: Mutex<Vec<Arc<ModelRequest>>>,
}

fn recorded_tools(records: &[Record]) -> Vec<ToolSpec> {
    let tools = records.iter().rev().find_map(|record| match &record.body {
        RecordBody::TurnEnvironment { tools, .. } | RecordBody::ToolsChanged { tools } => {
            Some(tools.as_ref().clone())
        }
        _ => None,
    });
    tools.unwrap()
}

impl Model for Caller {
    fn info(&self) -> ModelInfo {
        self.info.clone()
    }

    fn stream(&self, request: Arc<ModelRequest>) -> ModelStream {
        let results = request.messages.iter().flat_map(|it| it.results()).count();
        let is_over = results >= self.results || request.tools.is_empty();
        let beats = if is_over {
            answer("done")
        } else {
            let offered = recorded_tools(&self.journal.records());
            assert_eq!(*request.tools, offered, "what is offered is recorded first");
            let name = request.tools.last().unwrap().name.clone();
            calls(&[(&name, &json!({ &name: results }).to_string())])
        };
        self.requests.lock().unwrap().push(request);
        let events = beats.into_iter().map(|beat| match beat {
            Beat::Event(event) => Ok(event),
            other => panic!("{other:?}"),
        });
        Box::pin(stream::iter(events.collect::<Vec<_>>()))
    }
}

struct Seen {
    records: Vec<Record>,
    events: Vec<TurnEvent>,
    /// The names of the tools of each request.
    offered: Vec<Vec<String>>,
}

/// Runs a turn, or continues with one from its records, in a process of its own.
async fn process(world: &Arc<World>, results: usize, before: &[Record], offset: u64) -> Seen {
    let mut bench = Bench::new("default", vec![]);
    bench.profile.limits.max_tool_calls = None;
    bench.tools.push(tool("own", world));
    let world = Arc::clone(world);
    bench.tool_sources = vec![Arc::new(Server { world, offset })];
    let journal = Arc::clone(&bench.records);
    let fence = Fence {
        session: SessionId::new("s"),
        epoch: 0,
    };
    let told = journal.append(&fence, Append::new(Seq(0), before.to_vec()));
    told.await.unwrap();
    let (mut setup, scripted) = bench.setup();
    let model = Arc::new(Caller {
        info: scripted.info(),
        results,
        journal: Arc::clone(&journal),
        requests: Mutex::default(),
    });
    setup.model = Arc::clone(&model) as Arc<dyn Model>;
    let (_handle, turn_control) = control();
    let history = Transcript::new();
    let ran = observe(async |events| match before.is_empty() {
        true => run_turn(setup, history, Message::user("q"), events, turn_control).await,
        false => resume_turn(setup, history, before, events, turn_control)
            .await
            .unwrap(),
    })
    .await;
    assert_eq!(ran.outcome.stop_reason, StopReason::Complete);
    let records = journal.records();
    check_replayed(&records, &ran.events);
    let names = |request: &Arc<ModelRequest>| {
        let names = request.tools.iter().map(|it| it.name.clone());
        names.collect()
    };
    let offered = model.requests.lock().unwrap().iter().map(names).collect();
    Seen {
        records,
        events: ran.events,
        offered,
    }
}

fn codes(events: &[TurnEvent]) -> Vec<ToolErrorCode> {
    let codes = events.iter().filter_map(|event| match &event.body {
        EventBody::ToolCallFinished { code, .. } => *code,
        _ => None,
    });
    codes.collect()
}

#[tokio::test(start_paused = true)]
async fn what_a_source_offers_counts_from_the_next_request_on() {
    let world = World::new(&[&[], &["a"], &["a", "b"], &["a", "b"], &[]]);
    let seen = process(&world, 5, &[], 7).await;
    let offered = [
        vec!["own"],
        vec!["own", "a"],
        vec!["own", "a", "b"],
        vec!["own", "a", "b"],
        vec!["own"],
        vec!["own"],
    ];
    assert_eq!(seen.offered, offered);
    assert_eq!(codes(&seen.events), []);
    let told: Vec<_> = seen
        .events
        .iter()
        .filter_map(|event| match &event.body {
            EventBody::ToolsChanged { tools } => Some(tools.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(told, [&offered[1][..], &offered[2], &offered[4]]);
    let kinds = kinds(&seen.records);
    let after = kinds.windows(2).filter(|it| it[0] == "tools_changed");
    assert!(after.clone().all(|it| it[1] == "model_requested"));
    assert_eq!(after.count(), 3);
}

#[tokio::test(start_paused = true)]
async fn whatever_changes_when_and_wherever_it_is_cut_off_a_turn_goes_on_and_replays() {
    const RESULTS: usize = 4;
    for pattern in 0_u32..1 << RESULTS {
        let mut offers: Vec<Vec<&str>> = vec![vec![]];
        for at in 0..RESULTS {
            let before = offers.last().unwrap().clone();
            let next = match (pattern >> at) & 1 == 1 {
                false => before,
                true if before.is_empty() => vec!["a"],
                true if before.len() == 1 => vec!["a", "b"],
                true => vec![],
            };
            offers.push(next);
        }
        let offers: Vec<&[&str]> = offers.iter().map(Vec::as_slice).collect();
        let world = World::new(&offers);
        let whole = process(&world, RESULTS, &[], 0).await;
        let changes = kinds(&whole.records);
        let changes = changes.iter().filter(|it| **it == "tools_changed").count();
        // What changes after the last call is offered, but not called any more.
        assert_eq!(changes, pattern.count_ones() as usize, "{pattern:b}");
        for cut in 3..whole.records.len() - 1 {
            let before = &whole.records[..cut];
            let ended = kinds(before)
                .iter()
                .filter(|it| **it == "tool_finished")
                .count();
            let world = World::new(&offers);
            world.ran.store(ended as u64, Ordering::Relaxed);
            let offset = u64::from(pattern) + cut as u64;
            let seen = process(&world, RESULTS, before, offset).await;
            assert_eq!(codes(&seen.events), [], "{pattern:b} cut at {cut}");
            let last = world.offered().iter().copied();
            let last: Vec<_> = std::iter::once("own").chain(last).collect();
            let offered = recorded_tools(&seen.records);
            let offered: Vec<_> = offered.iter().map(|it| it.name.as_str()).collect();
            assert_eq!(offered, last, "{pattern:b} cut at {cut}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn tools_never_change_within_a_step() {
    /// Offers something new each time it is asked: at the turn's beginning and before each step.
    struct Restless(AtomicU64);
    impl ToolSource for Restless {
        fn tools(&self, _: &ToolScope) -> Vec<Arc<dyn Tool>> {
            let asked = self.0.load(Ordering::Relaxed);
            vec![Arc::new(Says(format!("t{asked}")))]
        }
        fn generation(&self) -> u64 {
            self.0.fetch_add(1, Ordering::Relaxed)
        }
    }
    let fails = || vec![Beat::Fail(ErrorClass::Server)];
    let mut bench = Bench::new(
        "default",
        vec![
            fails(),
            fails(),
            calls(&[("t2", "{}")]),
            fails(),
            answer("done"),
        ],
    );
    bench.tool_sources = vec![Arc::new(Restless(AtomicU64::new(0)))];
    let (_, model) = bench.run_with(|_| async {}).await;
    let requests = model.requests.lock().unwrap();
    let offered: Vec<_> = requests
        .iter()
        .map(|it| it.tools[0].name.as_str())
        .collect();
    assert_eq!(offered, ["t2", "t2", "t2", "t3", "t3"]);
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_goes_on_without_its_source_keeps_what_was_recorded() {
    let world = World::new(&[&[], &["a"]]);
    let whole = process(&world, 2, &[], 0).await;
    let at = kinds(&whole.records);
    let at = at.iter().position(|it| *it == "tools_changed").unwrap() + 2;
    let mut bench = Bench::new(
        "default",
        vec![calls(&[("a", r#"{"a":1}"#)]), answer("done")],
    );
    bench.tools.push(tool("own", &world));
    let records = Arc::clone(&bench.records);
    let ran = bench.resume(whole.records[..at].to_vec()).await;
    // It is offered as recorded; nothing is there any more to run it.
    assert!(!kinds(&records.records()[at..]).contains(&"tools_changed"));
    assert_eq!(codes(&ran.events), [ToolErrorCode::Denied]);
}

#[tokio::test(start_paused = true)]
async fn a_replay_with_other_tools_passes_over_the_changes_of_the_recording() {
    let world = World::new(&[&[], &["a"]]);
    let whole = process(&world, 1, &[], 0).await;
    let tools = Toolbox::new([tool("own", &world), tool("more", &world)]).unwrap();
    let changes = Changes {
        tools: Some(tools.specs()),
        ..Changes::default()
    };
    let again = replay(&SessionId::new("s"), &whole.records, &changes).unwrap();
    let turn = &again.turns[0];
    assert_eq!((turn.requests, turn.requests_changed()), (2, 2));
    assert_eq!(turn.differences.len(), 2, "{:?}", turn.differences);
}

/// Says its secret, and what it is named.
struct Says(String);

#[async_trait]
impl Tool for Says {
    fn spec(&self) -> ToolSpec {
        assert_ne!(self.0, "panics", "no spec");
        ToolSpec {
            name: self.0.clone(),
            ..ToolSpec::default()
        }
    }

    async fn call(&self, _: ToolInvocation) -> ToolOutcome {
        ToolOutcome::text("sk-12345678")
    }
}

struct Offers(Vec<String>);

impl ToolSource for Offers {
    fn tools(&self, _: &ToolScope) -> Vec<Arc<dyn Tool>> {
        assert!(!self.0.is_empty(), "the server is gone");
        let names = self.0.iter().cloned();
        names
            .map(|name| Arc::new(Says(name)) as Arc<dyn Tool>)
            .collect()
    }

    fn generation(&self) -> u64 {
        0
    }
}

#[tokio::test(start_paused = true)]
async fn a_source_adds_to_the_turns_own_tools_and_replaces_none() {
    let many = (0..Toolbox::TOOLS_MAX).map(|at| format!("t{at}"));
    let first = ["own", "panics", "more"].map(str::to_owned).to_vec();
    let sources: [Arc<dyn ToolSource>; 4] = [
        Arc::new(Offers(first)),
        Arc::new(Offers(vec![])),
        Arc::new(Offers(vec!["more".to_owned(), "t0".to_owned()])),
        Arc::new(Offers(many.collect())),
    ];
    let script = vec![
        calls(&[("more", "{}"), ("own", r#"{"own":1}"#)]),
        answer("done"),
    ];
    let mut bench = Bench::new("default", script);
    bench.tool_sources = sources.to_vec();
    let world = World::new(&[&[]]);
    let (mut setup, _) = bench.setup();
    let secrets = Secrets::new(["sk-12345678".to_owned()]);
    setup.tools = Toolbox::new([tool("own", &world)])
        .unwrap()
        .redacted(&secrets);
    let (_handle, turn_control) = control();
    let history = Transcript::new();
    let ran = observe(async |events| {
        run_turn(setup, history, Message::user("q"), events, turn_control).await
    })
    .await;
    let EventBody::Init(init) = &ran.events[0].body else {
        panic!("no init")
    };
    let names: Vec<_> = init.tools.iter().collect();
    assert_eq!(names[..4], ["own", "more", "t0", "t1"]);
    assert_eq!(names.len(), Toolbox::TOOLS_MAX);
    let results = ran.outcome.transcript.iter().flat_map(|it| it.results());
    let results: Vec<_> = results.map(|it| it.content.to_text()).collect();
    assert_eq!(results, ["[redacted]", "own ran as number 0"]);
}
