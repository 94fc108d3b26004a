//! The program that is killed: one turn of one session, begun or resumed.

use crate::points::{MortalJournal, MortalModel, MortalTool, Points};
use crate::tools::Outside;
use async_trait::async_trait;
use rondo_core::clock::Clock;
use rondo_core::ports::{Approver, Gate, GateRequest, QuestionReply, Record, Tool, Verdict};
use rondo_core::{Toolbox, TurnSetup, control, events, profile, resume_turn, run_turn};
use rondo_exec::{ExecOptions, ExecTool, SupervisorCommand};
use rondo_http::{Endpoint, HttpModel, ModelCard};
use rondo_journal::{NewSession, Options, OwnedSession, Store};
use rondo_tools::{Workspace, file_tools};
use rondo_types::{Message, Outcome, Question, Recovery, SessionId, Transcript, TurnId};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The session of every victim.
pub(crate) const SESSION: &str = "crash";
/// Question of a victim's turn.
pub(crate) const QUESTION: &str = "do it";

/// Task of a victim.
#[derive(Debug, Clone)]
pub(crate) struct Order {
    /// Directory of all its files.
    pub(crate) home: PathBuf,
    /// The provider.
    pub(crate) url: String,
    /// The point to die at, from 1; 0 for none.
    pub(crate) kill_at: usize,
}

impl Order {
    pub(crate) fn from_args(args: &[String]) -> Self {
        let [home, url, kill_at] = args else {
            panic!("a victim has three arguments")
        };
        Self {
            home: home.into(),
            url: url.clone(),
            kill_at: kill_at.parse().unwrap(),
        }
    }

    pub(crate) fn args(&self) -> [String; 3] {
        let home = self.home.to_str().unwrap().to_owned();
        [home, self.url.clone(), self.kill_at.to_string()]
    }
}

/// The places of one case.
pub(crate) fn work_dir(home: &Path) -> PathBuf {
    home.join("work")
}

pub(crate) fn store_dir(home: &Path) -> PathBuf {
    home.join("store")
}

pub(crate) fn calls_dir(home: &Path) -> PathBuf {
    home.join("calls")
}

pub(crate) fn points_log(home: &Path) -> PathBuf {
    home.join("points")
}

pub(crate) fn effects(home: &Path) -> PathBuf {
    home.join("effects")
}

/// Runs the turn to its end, or dies.
pub(crate) fn run(order: &Order) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(turn(order));
}

async fn turn(order: &Order) {
    let store = Store::open(&store_dir(&order.home), Options::default()).unwrap();
    let id = SessionId::new(SESSION);
    let (owned, records) = open(&store, &id);
    let setup = setup(order, owned);
    let (events, listener) = events::channel(id, setup.turn.clone());
    // There is no listener, and none is needed.
    drop(listener);
    let (_handle, control) = control();
    let history = Transcript::new();
    let end = if records.is_empty() {
        run_turn(setup, history, Message::user(QUESTION), events, control).await
    } else {
        match resume_turn(setup, history, &records, events, control).await {
            Ok(end) => end,
            // It died after its end was recorded.
            Err(rondo_core::ResumeError::Finished) => return,
            Err(err) => panic!("{err}"),
        }
    };
    let outcome: Outcome = end.outcome().unwrap();
    assert!(outcome.error.is_none(), "{:?}", outcome.error);
}

/// A session that has no record yet never began: its message is sent again.
fn open(store: &Store, id: &SessionId) -> (OwnedSession, Vec<Record>) {
    match store.own(id) {
        Ok(owned) => {
            let entries = store.read_all(id).unwrap();
            let records = entries.into_iter().filter_map(|entry| entry.into_record());
            (owned, records.collect())
        }
        Err(_) => {
            let new = NewSession::new(id.clone(), Clock::system().now());
            (store.begin(new).unwrap(), Vec::new())
        }
    }
}

fn setup(order: &Order, owned: OwnedSession) -> TurnSetup {
    let points = Points::new(&points_log(&order.home), order.kill_at);
    let endpoint = Endpoint::new("local", "openai-chat", order.url.clone());
    let model = MortalModel {
        inner: HttpModel::new(&endpoint, ModelCard::new("m")).unwrap(),
        points: points.clone(),
    };
    TurnSetup {
        tools: tools(&order.home, &points),
        gate: Arc::new(Everything),
        approver: Arc::new(Everything),
        journal: Arc::new(MortalJournal {
            inner: owned,
            points,
        }),
        ..TurnSetup::new(
            SessionId::new(SESSION),
            TurnId::new("t"),
            Arc::new(model),
            profile::builtin("default").unwrap().into(),
        )
    }
}

fn tools(home: &Path, points: &Points) -> Toolbox {
    let directory = work_dir(home);
    let workspace = Arc::new(Workspace::open(&directory).unwrap());
    let supervisor = SupervisorCommand::CurrentExe;
    let mut options = ExecOptions::new(supervisor, directory.clone(), calls_dir(home));
    options.outlive = ExecOptions::OUTLIVE;
    let mut tools = file_tools(&workspace);
    tools.push(Arc::new(ExecTool::exec(options)));
    for (name, recovery) in [
        ("send", Recovery::AtMostOnce),
        ("put", Recovery::Idempotent),
    ] {
        tools.push(Arc::new(Outside {
            name,
            recovery,
            effects: effects(home),
        }));
    }
    let mortal = |inner| {
        let (points, directory) = (points.clone(), directory.clone());
        Arc::new(MortalTool {
            inner,
            points,
            directory,
        }) as Arc<dyn Tool>
    };
    Toolbox::new(tools.into_iter().map(mortal)).unwrap()
}

/// Allows and approves everything.
struct Everything;

#[async_trait]
impl Gate for Everything {
    async fn check(&self, _: &GateRequest) -> Verdict {
        Verdict::Allow
    }
}

#[async_trait]
impl Approver for Everything {
    async fn ask(&self, question: &Question) -> QuestionReply {
        QuestionReply::approved(question, "ada")
    }
}
