//! Sessions recorded by the library, for the commands that read them.

use crate::harness::TestEnv;
use async_trait::async_trait;
use futures_util::stream;
use rondo_core::Journal as _;
use rondo_core::joined::joined;
use rondo_core::ports::{Append, RecordBody, Seq};
use rondo_core::{
    Approver, Gate, GateRequest, Model, ModelStream, QuestionReply, Toolbox, TurnSetup, Verdict,
    control, events, profile, run_turn,
};
use rondo_journal::{NewSession, Options, Store};
use rondo_tools::Workspace;
use rondo_types::{
    FinishReason, Message, ModelEvent, ModelInfo, ModelRequest, Origin, Question, SessionId,
    TimeMs, Transcript, TurnEvent, TurnId, Usage,
};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// Behavior of the model at one request.
pub(crate) enum Say {
    Text(&'static str),
    /// Reads the file of that name.
    Read(&'static str),
}

struct Scripted(Mutex<VecDeque<Say>>);

impl Model for Scripted {
    fn info(&self) -> ModelInfo {
        ModelInfo {
            origin: Origin {
                dialect: "openai-chat".into(),
                provider: "openai".into(),
                model: "test".into(),
            },
            streaming: true,
            price: None,
            context_tokens: None,
        }
    }

    fn stream(&self, _: Arc<ModelRequest>) -> ModelStream {
        let say = self.0.lock().unwrap().pop_front();
        let mut events = match say.unwrap_or(Say::Text("no more")) {
            Say::Text(text) => pieces(text),
            Say::Read(path) => reads(path),
        };
        events.push(ModelEvent::Usage(Usage {
            input: 12,
            output: 3,
            ..Usage::default()
        }));
        Box::pin(stream::iter(events.into_iter().map(Ok)))
    }
}

fn pieces(text: &str) -> Vec<ModelEvent> {
    let piece = |text: &str| ModelEvent::TextDelta {
        candidate: 0,
        text: text.into(),
    };
    let mut events: Vec<_> = text.split_inclusive(' ').map(piece).collect();
    events.push(finished(FinishReason::Stop));
    events
}

fn reads(path: &str) -> Vec<ModelEvent> {
    let call = 0;
    vec![
        ModelEvent::ToolCallStarted {
            candidate: 0,
            call,
            wire_id: Some("w1".into()),
            name: "read_file".into(),
        },
        ModelEvent::ToolCallDelta {
            call,
            arguments: format!(r#"{{"path":"{path}"}}"#),
        },
        ModelEvent::ToolCallFinished { call, opaque: None },
        finished(FinishReason::ToolCalls),
    ]
}

fn finished(reason: FinishReason) -> ModelEvent {
    ModelEvent::Finished {
        candidate: 0,
        reason,
        raw: reason.as_str().into(),
    }
}

struct Yes;

#[async_trait]
impl Gate for Yes {
    async fn check(&self, _: &GateRequest) -> Verdict {
        Verdict::Allow
    }
}

#[async_trait]
impl Approver for Yes {
    async fn ask(&self, question: &Question) -> QuestionReply {
        QuestionReply::approved(question, "ada")
    }
}

/// Records a session of one turn for each script in the journal that the binary reads, and returns
/// its events, with the deltas joined.
pub(crate) async fn record(
    env: &TestEnv,
    session: &str,
    turns: Vec<(&str, Vec<Say>)>,
) -> Vec<TurnEvent> {
    let store = store(env);
    let id = SessionId::new(session);
    let owned = store.begin(NewSession::new(id.clone(), TimeMs(1))).unwrap();
    let journal = Arc::new(owned);
    let (mut history, mut told) = (Transcript::new(), Vec::new());
    for (number, (said, script)) in (1..).zip(turns) {
        let workspace = Arc::new(Workspace::open(env.project()).unwrap());
        let setup = TurnSetup {
            turn_number: number,
            tools: Toolbox::new(rondo_tools::file_tools(&workspace)).unwrap(),
            gate: Arc::new(Yes),
            approver: Arc::new(Yes),
            journal: Arc::clone(&journal) as _,
            system: vec!["Be brief.".into()].into(),
            ..TurnSetup::new(
                id.clone(),
                TurnId::new(format!("t{number}")),
                Arc::new(Scripted(Mutex::new(script.into()))),
                profile::builtin("default").unwrap().into(),
            )
        };
        let (events_tx, mut events_rx) = events::channel(id.clone(), setup.turn.clone());
        let (_handle, turn_control) = control();
        let before = std::mem::take(&mut history);
        let turn = run_turn(setup, before, Message::user(said), events_tx, turn_control);
        history = turn.await.outcome().unwrap().transcript;
        let mut events = Vec::new();
        while let Some(event) = events_rx.next().await {
            events.push(event);
        }
        told.extend(joined(events));
    }
    told
}

/// Writes the records of a session again, changed, as those of another one.
pub(crate) async fn record_changed(
    env: &TestEnv,
    (from, to): (&str, &str),
    change: impl Fn(&mut RecordBody),
) {
    let store = store(env);
    let mut records = store.load(&SessionId::new(from)).unwrap();
    records.iter_mut().for_each(|it| change(&mut it.body));
    let new = NewSession::new(SessionId::new(to), TimeMs(2));
    let owned = store.begin(new).unwrap();
    let fence = owned.fence().clone();
    owned
        .append(&fence, Append::new(Seq(0), records))
        .await
        .unwrap();
}

/// Writes a recorded session to a file of the project.
pub(crate) fn export(env: &TestEnv, session: &str, name: &str) -> PathBuf {
    let path = env.project().join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut file = std::fs::File::create(&path).unwrap();
    store(env)
        .export(&SessionId::new(session), &mut file)
        .unwrap();
    path
}

fn store(env: &TestEnv) -> Store {
    let dir = env.home().join(".local/share/rondo/sessions");
    Store::open(&dir, Options::default()).unwrap()
}
