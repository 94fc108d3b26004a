//! A model and tools that do as they are told, in virtual time.

use crate::catalog::Catalog;
use crate::clock::Clock;
use crate::driver::{TurnEnd, TurnHandle, TurnSetup, control, resume_turn, run_turn};
use crate::events::{self, EventSender};
use crate::joined::joined;
use crate::machine::TurnConfig;
use crate::ports::{
    Append, Approver, Budgets, Fence, Gate, GateRequest, Interceptor, Journal, MemoryJournal,
    Model, ModelStream, QuestionReply, Record, RecordBody, Seq, Tool, ToolInvocation, ToolSource,
    Verdict,
};
use crate::profile;
use crate::redrive::{RedriveError, RedrivenTurn, redrive};
use crate::replay::{Changes, Replayer, follows_at_once, replay};
use crate::toolbox::Toolbox;
use async_trait::async_trait;
use futures_util::stream;
use rondo_types::{
    AskReason, Concurrency, Effects, ErrorClass, EventBody, FinishReason, Message, ModelError,
    ModelEvent, ModelInfo, ModelRequest, Origin, Outcome, Profile, Question, Recovery, SessionId,
    ToolErrorCode, ToolOutcome, ToolSpec, Transcript, TurnEvent, TurnId,
};
use serde_json::json;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::sleep;

/// One thing that a scripted stream does.
#[derive(Debug, Clone)]
pub(super) enum Beat {
    Event(ModelEvent),
    Sleep(u64),
    Fail(ErrorClass),
    Hang,
    Panic,
    /// Sends the same piece of text without end, never pausing.
    Flood,
}

pub(super) struct ScriptedModel {
    pub(super) name: &'static str,
    pub(super) script: Mutex<VecDeque<Vec<Beat>>>,
    /// Reply when the script is over.
    pub(super) last: Vec<Beat>,
    pub(super) requests: Mutex<Vec<Arc<ModelRequest>>>,
    pub(super) journal: Arc<MemoryJournal>,
    pub(super) streaming: bool,
    pub(super) context_tokens: Option<u64>,
}

impl ScriptedModel {
    pub(super) fn new(
        name: &'static str,
        script: Vec<Vec<Beat>>,
        journal: &Arc<MemoryJournal>,
    ) -> Self {
        Self {
            name,
            script: Mutex::new(script.into()),
            last: answer("end of script"),
            requests: Mutex::default(),
            journal: Arc::clone(journal),
            streaming: true,
            context_tokens: None,
        }
    }
}

impl Model for ScriptedModel {
    fn info(&self) -> ModelInfo {
        ModelInfo {
            origin: Origin {
                dialect: "d".into(),
                provider: "p".into(),
                model: self.name.into(),
            },
            streaming: self.streaming,
            price: None,
            context_tokens: self.context_tokens,
        }
    }

    fn stream(&self, request: Arc<ModelRequest>) -> ModelStream {
        let records = self.journal.records();
        let name = self.info().full_name();
        assert!(
            matches!(
                records.last().map(|it| &it.body),
                Some(RecordBody::ModelRequested { model, .. }) if *model == name
            ),
            "a request goes out only after its record"
        );
        self.requests.lock().unwrap().push(request);
        let beats = self
            .script
            .lock()
            .unwrap()
            .pop_front()
            .unwrap_or_else(|| self.last.clone());
        Box::pin(stream::unfold(
            VecDeque::from(beats),
            |mut beats| async move {
                loop {
                    match beats.pop_front()? {
                        Beat::Event(event) => return Some((Ok(event), beats)),
                        Beat::Sleep(ms) => sleep(Duration::from_millis(ms)).await,
                        Beat::Fail(class) => {
                            let error = ModelError::new(class, "scripted");
                            return Some((Err(error), VecDeque::new()));
                        }
                        Beat::Hang => std::future::pending().await,
                        Beat::Panic => panic!("model panics"),
                        Beat::Flood => {
                            beats.push_front(Beat::Flood);
                            // Real time stands still under a flood that never waits; a timer that is
                            // due at once lets it pass, as a socket would.
                            sleep(Duration::from_micros(1)).await;
                            return Some((Ok(text("flood ")), beats));
                        }
                    }
                }
            },
        ))
    }
}

/// Behavior of a fake tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    Return,
    SleepThenReturn(u64),
    /// Waits for its cancel, then says so.
    UntilCancelled,
    /// Ignores its cancel.
    Stubborn,
    Panic,
}

pub(super) struct FakeTool {
    pub(super) name: &'static str,
    pub(super) acts: Mutex<VecDeque<Act>>,
    pub(super) shared: bool,
    pub(super) journal: Arc<MemoryJournal>,
}

#[async_trait]
impl Tool for FakeTool {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: self.name.into(),
            description: String::new(),
            parameters: json!({"type": "object"}),
            effects: if self.shared {
                Effects::ReadOnly
            } else {
                Effects::Writes
            },
            concurrency: if self.shared {
                Concurrency::Shared
            } else {
                Concurrency::Exclusive
            },
            recovery: Recovery::AtMostOnce,
            ..ToolSpec::default()
        }
    }

    async fn call(&self, invocation: ToolInvocation) -> ToolOutcome {
        let started = self.journal.records().iter().any(|record| {
            matches!(&record.body, RecordBody::ToolStarted { call_id, .. } if *call_id == invocation.call_id)
        });
        assert!(started, "a call runs only after its record");
        let act = self.acts.lock().unwrap().pop_front().unwrap_or(Act::Return);
        match act {
            Act::Return => {}
            Act::SleepThenReturn(ms) => sleep(Duration::from_millis(ms)).await,
            Act::UntilCancelled => {
                invocation.output.push("partial".into());
                invocation.cancel.cancelled().await;
                return ToolOutcome::error(ToolErrorCode::Cancelled, "ended early");
            }
            Act::Stubborn => std::future::pending().await,
            Act::Panic => panic!("tool panics"),
        }
        ToolOutcome::text(format!("{} did {}", self.name, invocation.arguments))
    }
}

pub(super) struct AllowAll;

#[async_trait]
impl Gate for AllowAll {
    async fn check(&self, _request: &GateRequest) -> Verdict {
        Verdict::Allow
    }
}

pub(super) struct AskAlways;

#[async_trait]
impl Gate for AskAlways {
    async fn check(&self, _request: &GateRequest) -> Verdict {
        Verdict::Ask {
            prompt: "run it?".into(),
            reasons: vec![AskReason::NotAllowed],
        }
    }
}

pub(super) struct NobodyThere;

#[async_trait]
impl Approver for NobodyThere {
    async fn ask(&self, _request: &Question) -> QuestionReply {
        std::future::pending().await
    }
}

pub(super) struct Bench {
    pub(super) profile: Profile,
    pub(super) model: ScriptedModel,
    pub(super) fallbacks: Vec<Arc<dyn Model>>,
    pub(super) tools: Vec<Arc<dyn Tool>>,
    pub(super) gate: Arc<dyn Gate>,
    pub(super) approver: Arc<dyn Approver>,
    pub(super) tool_sources: Vec<Arc<dyn ToolSource>>,
    pub(super) interceptors: Vec<Arc<dyn Interceptor>>,
    pub(super) budgets: Vec<Arc<dyn Budgets>>,
    pub(super) system: Vec<String>,
    pub(super) response_schema: Option<serde_json::Value>,
    pub(super) journal: Arc<dyn Journal>,
    pub(super) records: Arc<MemoryJournal>,
}

pub(super) struct Ran {
    pub(super) outcome: Outcome,
    pub(super) events: Vec<TurnEvent>,
    pub(super) took: Duration,
}

impl Bench {
    pub(super) fn new(profile: &str, script: Vec<Vec<Beat>>) -> Self {
        let journal = Arc::new(MemoryJournal::default());
        let model = ScriptedModel::new("m", script, &journal);
        Self {
            profile: profile::builtin(profile).unwrap(),
            model,
            fallbacks: vec![],
            tools: vec![],
            gate: Arc::new(AllowAll),
            approver: Arc::new(NobodyThere),
            tool_sources: Vec::new(),
            interceptors: vec![],
            budgets: vec![],
            system: vec![],
            response_schema: None,
            journal: Arc::clone(&journal) as Arc<dyn Journal>,
            records: journal,
        }
    }

    pub(super) fn tool(mut self, name: &'static str, shared: bool, acts: &[Act]) -> Self {
        self.tools.push(Arc::new(FakeTool {
            name,
            acts: Mutex::new(acts.to_vec().into()),
            shared,
            journal: Arc::clone(&self.records),
        }));
        self
    }

    /// Adds a model that is asked when those before it fail.
    pub(super) fn fallback(mut self, name: &'static str, script: Vec<Vec<Beat>>) -> Self {
        let model = ScriptedModel::new(name, script, &self.records);
        self.fallbacks.push(Arc::new(model));
        self
    }

    pub(super) async fn run(self) -> Ran {
        self.run_with(|_| async {}).await.0
    }

    /// Runs the turn for a listener that shows no text before its end.
    pub(super) async fn run_unseen(self) -> Ran {
        let user = |_| async {};
        self.run_before(user, EventSender::with_unseen_text).await.0
    }

    /// Runs the turn beside `user`, who has its handle.
    pub(super) async fn run_with<F: Future<Output = ()>>(
        self,
        user: impl FnOnce(TurnHandle) -> F,
    ) -> (Ran, Arc<ScriptedModel>) {
        self.run_before(user, |events| events).await
    }

    /// Runs the turn, and cancels it after that time.
    pub(super) async fn run_cancelled(self, after: Duration) -> (Ran, Arc<ScriptedModel>) {
        let cancel = |handle: TurnHandle| async move {
            tokio::time::sleep(after).await;
            handle.cancel();
        };
        self.run_with(cancel).await
    }

    async fn run_before<F: Future<Output = ()>>(
        self,
        user: impl FnOnce(TurnHandle) -> F,
        listener: impl FnOnce(EventSender) -> EventSender,
    ) -> (Ran, Arc<ScriptedModel>) {
        let (handle, turn_control) = control();
        let kept = Arc::clone(&self.records);
        let (setup, model) = self.setup();
        let turn = |events| {
            run_turn(
                setup,
                Transcript::new(),
                Message::user("q"),
                listener(events),
                turn_control,
            )
        };
        let (ran, ()) = tokio::join!(observe(turn), user(handle));
        check_replayed(&kept.records(), &ran.events);
        (ran, model)
    }

    /// Continues a turn from its records.
    pub(super) async fn resume(self, records: Vec<Record>) -> Ran {
        let fence = Fence {
            session: SessionId::new("s"),
            epoch: 0,
        };
        let told = self
            .records
            .append(&fence, Append::new(Seq(0), records.clone()));
        told.await.unwrap();
        let (_handle, turn_control) = control();
        let kept = Arc::clone(&self.records);
        let (setup, _) = self.setup();
        let ran = observe(async |events| {
            let history = Transcript::new();
            resume_turn(setup, history, &records, events, turn_control)
                .await
                .unwrap()
        })
        .await;
        check_replayed(&kept.records(), &ran.events);
        ran
    }

    /// Drives a machine again from records, under what the turn runs with.
    pub(super) fn redrive(&self, records: &[Record]) -> Result<RedrivenTurn, RedriveError> {
        let tools = Toolbox::new(self.tools.clone()).unwrap();
        let config = TurnConfig {
            session: SessionId::new("s"),
            turn: TurnId::new("t"),
            turn_number: 1,
            model: self.model.info(),
            fallbacks: self.fallbacks.iter().map(|model| model.info()).collect(),
            profile: Arc::new(self.profile.clone()),
            system: vec![].into(),
            tools: tools.specs(),
            response_schema: None,
            seed: 1,
        };
        let catalog = Catalog::new(tools.schemas(), None).unwrap();
        redrive(config, &catalog, Transcript::new(), records)
    }

    pub(super) fn setup(self) -> (TurnSetup, Arc<ScriptedModel>) {
        let model = Arc::new(self.model);
        let setup = TurnSetup {
            fallbacks: self.fallbacks,
            tools: Toolbox::new(self.tools).unwrap(),
            gate: self.gate,
            approver: self.approver,
            journal: self.journal,
            system: self.system.into(),
            response_schema: self.response_schema,
            tool_sources: self.tool_sources,
            interceptors: self.interceptors,
            budgets: self.budgets,
            ..TurnSetup::new(
                SessionId::new("s"),
                TurnId::new("t"),
                Arc::clone(&model) as Arc<dyn Model>,
                self.profile.into(),
            )
        };
        (setup, model)
    }
}

/// Whatever a test runs, its records tell the same again: the same bytes, up to where they end.
pub(super) fn check_replayed(records: &[Record], events: &[TurnEvent]) {
    let is_over = matches!(
        records.last().map(|it| &it.body),
        Some(RecordBody::Final { .. })
    );
    if records.is_empty() {
        return;
    }
    let again = replay(&SessionId::new("s"), records, &Changes::default()).unwrap();
    let [turn] = &again.turns[..] else {
        panic!("one turn")
    };
    assert_eq!(turn.differences, []);
    let mut live = lines(&joined(events.to_vec()));
    let told = lines(turn.streams.last().unwrap());
    if !is_over {
        live.truncate(told.len());
    }
    assert_eq!(told, live);
    assert_eq!(followed(records), turn.streams);
}

/// Replays a turn as its records are written, in pieces as small as they can come.
pub(super) fn followed(records: &[Record]) -> Vec<Vec<TurnEvent>> {
    let mut pieces: Vec<Vec<Record>> = Vec::new();
    for (index, record) in records.iter().enumerate() {
        match pieces.last_mut() {
            Some(piece) if index < 3 || follows_at_once(&record.body) => piece.push(record.clone()),
            _ => pieces.push(vec![record.clone()]),
        }
    }
    followed_in(pieces)
}

/// Replays a turn whose records come in these pieces.
pub(super) fn followed_in(pieces: Vec<Vec<Record>>) -> Vec<Vec<TurnEvent>> {
    let replayer = Replayer::new(SessionId::new("s"), Changes::default());
    let mut pieces = pieces.into_iter();
    let mut turn = replayer.follow(pieces.next().unwrap()).unwrap();
    let mut streams: Vec<Vec<TurnEvent>> = Vec::new();
    loop {
        for new in turn.events() {
            streams.resize_with(streams.len().max(new.run + 1), Vec::new);
            streams[new.run].extend(new.events);
        }
        let Some(piece) = pieces.next() else {
            return streams;
        };
        turn.push(piece).unwrap();
    }
}

pub(super) fn lines(events: &[TurnEvent]) -> Vec<String> {
    let lines = events.iter().map(|it| serde_json::to_string(it).unwrap());
    lines.collect()
}

/// Runs a turn to its outcome.
pub(super) async fn observe<F: Future<Output = TurnEnd>>(
    turn: impl FnOnce(EventSender) -> F,
) -> Ran {
    let seen = watch(turn).await;
    let outcome = seen.end.outcome().expect("the turn was parked");
    assert!(crate::pairing::is_paired(&outcome.transcript));
    Ran {
        outcome,
        events: seen.events,
        took: seen.took,
    }
}

/// How a turn ended, with its events.
pub(super) struct Seen {
    pub(super) end: TurnEnd,
    pub(super) events: Vec<TurnEvent>,
    pub(super) took: Duration,
}

/// Runs a turn to its outcome, or until it is parked.
pub(super) async fn watch<F: Future<Output = TurnEnd>>(
    turn: impl FnOnce(EventSender) -> F,
) -> Seen {
    let (tx, mut rx) = events::channel(SessionId::new("s"), TurnId::new("t"));
    let clock = Clock::system();
    let started = clock.now();
    let turn = turn(tx);
    let listen = async {
        let mut events = vec![];
        while let Some(event) = rx.next().await {
            events.push(event);
        }
        events
    };
    let (end, events) = tokio::join!(turn, listen);
    assert!(matches!(
        events.first().map(|it| &it.body),
        Some(EventBody::Init(_))
    ));
    assert!(matches!(
        events.last().map(|it| &it.body),
        Some(EventBody::Result(_) | EventBody::Parked { .. })
    ));
    assert!(
        events
            .iter()
            .enumerate()
            .all(|(at, event)| event.seq == at as u64)
    );
    assert!(events.is_sorted_by_key(|event| event.at));
    Seen {
        end,
        events,
        took: clock.now().since(started),
    }
}

pub(super) fn text(text: &str) -> ModelEvent {
    ModelEvent::TextDelta {
        candidate: 0,
        text: text.into(),
    }
}

pub(super) fn finished(reason: FinishReason) -> Beat {
    Beat::Event(ModelEvent::Finished {
        candidate: 0,
        reason,
        raw: reason.as_str().into(),
    })
}

pub(super) fn answer(words: &str) -> Vec<Beat> {
    vec![Beat::Event(text(words)), finished(FinishReason::Stop)]
}

pub(super) fn calls(calls: &[(&str, &str)]) -> Vec<Beat> {
    let mut beats = vec![];
    for (call, (name, arguments)) in (0_u32..).zip(calls) {
        let name = (*name).to_owned();
        let arguments = (*arguments).to_owned();
        beats.push(ModelEvent::ToolCallStarted {
            candidate: 0,
            call,
            wire_id: None,
            name,
        });
        beats.push(ModelEvent::ToolCallDelta { call, arguments });
        beats.push(ModelEvent::ToolCallFinished { call, opaque: None });
    }
    let mut beats: Vec<Beat> = beats.into_iter().map(Beat::Event).collect();
    beats.push(finished(FinishReason::ToolCalls));
    beats
}
