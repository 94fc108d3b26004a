//! The sessions that every later version must read: `fixtures/journal`.

use crate::Failure;
use crate::sessions::{append, store};
use crate::turns::{Goal, Scene, cut_off_turn, turn};
use rondo_core::Journal as _;
use rondo_core::ports::{CellEnding, Record, RecordBody};
use rondo_journal::{Durability, NewSession, OwnedSession, Store};
use rondo_types::{SessionId, TimeMs, Transcript, TurnId};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

/// When the sessions began.
const BEGAN: TimeMs = TimeMs(1_795_000_000_000);
/// Turns after which the long session must have been compacted.
const TURNS_MAX: u32 = 12;
/// Results of a line.
const SHORT: Scene = Scene {
    context_tokens: None,
    result_bytes: 40,
};
/// Results that have a place of their own beside the records, in a small context.
const LONG: Scene = Scene {
    context_tokens: Some(24_000),
    result_bytes: 20_000,
};

/// Writes a store with one session of each kind, and each of them exported.
pub(crate) async fn write(dir: &Path) -> Result<Value, Failure> {
    let kept = dir.join("store");
    let store = store(&kept, Durability::Full)?;
    plain(&store).await?;
    resumed(&store).await?;
    forked(&store).await?;
    compacted(&store).await?;
    celled(&store).await?;
    let sessions = store.sessions(usize::MAX)?;
    for info in &sessions {
        let mut file = File::create(dir.join(format!("{}.jsonl", info.id)))?;
        store.export(&info.id, &mut file)?;
    }
    store.vacuum()?;
    drop(store);
    fs::rename(kept.join("journal.db"), dir.join("journal.db"))?;
    fs::remove_dir_all(kept)?;
    Ok(json!({ "sessions": sessions.len() }))
}

fn create(store: &Store, name: &str) -> Result<Arc<OwnedSession>, Failure> {
    Ok(Arc::new(store.create(&SessionId::new(name), BEGAN)?))
}

async fn plain(store: &Store) -> Result<(), Failure> {
    let session = Arc::new(store.begin(NewSession {
        id: SessionId::new("plain"),
        at: BEGAN,
        title: "Question 1?".to_owned(),
        directory: "/home/me/notes".to_owned(),
    })?);
    let mut history = Transcript::new();
    for number in 1..=2 {
        history = turn(SHORT, &session, Goal::Ask(number, history))
            .await?
            .transcript;
    }
    Ok(())
}

async fn resumed(store: &Store) -> Result<(), Failure> {
    let session = create(store, "resumed")?;
    cut_off_turn(SHORT, &session, 1).await?;
    let name = session.id().clone();
    drop(session);
    let session = Arc::new(store.own(&name)?);
    let records = store.load(&name)?;
    let goal = Goal::CarryOn(1, Transcript::new(), &records);
    let history = turn(SHORT, &session, goal).await?.transcript;
    turn(SHORT, &session, Goal::Ask(2, history)).await?;
    Ok(())
}

/// Shares the first turn of the plain one.
async fn forked(store: &Store) -> Result<(), Failure> {
    let (parent, name) = (SessionId::new("plain"), SessionId::new("forked"));
    let entries = store.read_all(&parent)?;
    let end = entries.iter().find(|entry| entry.kind() == "final");
    let end = end.ok_or("the turn did not end")?.seq;
    store.fork(&parent, end, &name, BEGAN)?;
    let session = Arc::new(store.own(&name)?);
    let history = store.history(&name)?.transcript();
    turn(SHORT, &session, Goal::Ask(2, history)).await?;
    Ok(())
}

async fn compacted(store: &Store) -> Result<(), Failure> {
    let session = create(store, "compacted")?;
    let mut history = Transcript::new();
    for number in 1..=TURNS_MAX {
        history = turn(LONG, &session, Goal::Ask(number, history))
            .await?
            .transcript;
        let records = store.load(session.id())?;
        let is_change = |it: &RecordBody| matches!(it, RecordBody::Compacted(_));
        let last = records.iter().filter(|it| is_change(&it.body));
        if last.count() > 0 {
            turn(LONG, &session, Goal::Ask(number + 1, history)).await?;
            return Ok(());
        }
    }
    Err("the session was not compacted".into())
}

/// Turns, and a person's cells before, between and behind them; the end of the last is not recorded.
async fn celled(store: &Store) -> Result<(), Failure> {
    let session = create(store, "celled")?;
    let returned = CellEnding::Returned { value_repr: None };
    cell(&session, "x = 6", Some(returned)).await?;
    let goal = Goal::Ask(1, Transcript::new());
    let history = turn(SHORT, &session, goal).await?.transcript;
    let raised = CellEnding::Raised {
        exc_type: "ZeroDivisionError".to_owned(),
        message: "division by zero".to_owned(),
    };
    cell(&session, "x / 0", Some(raised)).await?;
    turn(SHORT, &session, Goal::Ask(2, history)).await?;
    cell(&session, "x * 7", None).await
}

async fn cell(
    session: &OwnedSession,
    code: &str,
    ending: Option<CellEnding>,
) -> Result<(), Failure> {
    let started = RecordBody::CellStarted {
        code: code.to_owned(),
        changed: None,
    };
    let finished = ending.map(|ending| RecordBody::CellFinished {
        ending,
        stdout: String::new(),
        stderr: String::new(),
        duration_ms: 1,
        is_restarted: false,
        has_read_input: false,
    });
    for body in std::iter::once(started).chain(finished) {
        let record = Record {
            turn: TurnId::new(""),
            step: 0,
            at_ms: BEGAN,
            body,
        };
        append(session, session.head(), vec![record]).await?;
    }
    Ok(())
}
