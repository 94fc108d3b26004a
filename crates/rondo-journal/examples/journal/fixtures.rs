//! The sessions that every later version must read: `fixtures/journal`.

mod amended;
mod cut_off;
mod ended;
mod equipped;
mod folder;
mod parked;
mod room;
mod ruled;

use crate::Failure;
use crate::sessions::store;
use crate::stage::{Beat, Play, Played, dot, origin, play};
use async_trait::async_trait;
use rondo_core::Journal;
use rondo_core::ports::{Append, AppendError, Fence, Record, RecordBody, Seq, WrappedJournal};
use rondo_journal::{Durability, NewSession, OwnedSession, Store};
use rondo_types::{
    CallId, Media, MediaKind, Message, Part, SessionId, TimeMs, ToolCall, ToolContent,
    ToolErrorCode, ToolResult, Transcript,
};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::BufReader;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;

/// When the sessions began. Each turn begins an hour after the one before.
const BEGAN: TimeMs = TimeMs(1_795_000_000_000);
const HOUR_MS: u64 = 3_600_000;
/// Downtime of a turn that continues.
const DOWNTIME_MS: u64 = 60_000;

/// Writes a store with one session of each kind, and each of them exported, and returns their turns
/// and messages. `cells` are exported
/// sessions that the prompt wrote, which join them under their files' names.
pub(crate) async fn write(dir: &Path, cells: &[&str]) -> Result<Value, Failure> {
    let store = store(&dir.join("store"), Durability::Full)?;
    ended::write(&store).await?;
    room::write(&store).await?;
    cut_off::write(&store).await?;
    for file in cells {
        let id = Path::new(file).file_stem().and_then(|it| it.to_str());
        let id = SessionId::new(id.ok_or("the file has no name")?);
        store.import(&mut BufReader::new(File::open(file)?), Some(&id))?;
    }
    export(store, dir)
}

/// Does the same with sessions of parked turns.
pub(crate) async fn write_parked(dir: &Path) -> Result<Value, Failure> {
    let store = store(&dir.join("store"), Durability::Full)?;
    parked::write(&store).await?;
    export(store, dir)
}

/// Does the same with sessions that interceptors changed and budgets paid for.
pub(crate) async fn write_amended(dir: &Path) -> Result<Value, Failure> {
    let store = store(&dir.join("store"), Durability::Full)?;
    amended::write(&store).await?;
    export(store, dir)
}

/// Does the same with a session whose tools changed.
pub(crate) async fn write_equipped(dir: &Path) -> Result<Value, Failure> {
    let store = store(&dir.join("store"), Durability::Full)?;
    equipped::write(&store).await?;
    export(store, dir)
}

/// Does the same with a session whose profile names sets of rules.
pub(crate) async fn write_ruled(dir: &Path) -> Result<Value, Failure> {
    let store = store(&dir.join("store"), Durability::Full)?;
    ruled::write(&store).await?;
    export(store, dir)
}

/// Does the same with a session that asked about its folder.
pub(crate) async fn write_folder(dir: &Path) -> Result<Value, Failure> {
    let store = store(&dir.join("store"), Durability::Full)?;
    folder::write(&store).await?;
    export(store, dir)
}

fn export(store: Store, dir: &Path) -> Result<Value, Failure> {
    let kept = dir.join("store");
    let sessions = store.sessions(usize::MAX)?;
    let mut written = Vec::new();
    for info in &sessions {
        let messages = store.history(&info.id)?.transcript().len();
        written.push(json!([info.id, info.turns, messages]));
        let mut file = File::create(dir.join(format!("{}.jsonl", info.id)))?;
        store.export(&info.id, &mut file)?;
    }
    store.vacuum()?;
    drop(store);
    fs::rename(kept.join("journal.db"), dir.join("journal.db"))?;
    fs::remove_dir_all(kept)?;
    Ok(json!({ "sessions": written }))
}

/// Plays the turns of a new session, each with what was said before it.
async fn session(store: &Store, name: &str, turns: Vec<Play>) -> Result<(), Failure> {
    let session = Arc::new(store.begin(NewSession {
        id: SessionId::new(name),
        at: BEGAN,
        title: format!("The session {name}"),
        // If there is one, a session continues only there.
        directory: match name {
            "plain" => "/home/me/notes".to_owned(),
            _ => String::new(),
        },
    })?);
    for turn in turns {
        next_turn(store, &session, turn).await?;
    }
    Ok(())
}

/// Plays one more turn.
async fn next_turn(
    store: &Store,
    session: &Arc<OwnedSession>,
    mut turn: Play,
) -> Result<(), Failure> {
    if session.at() > Seq(0) {
        turn.history = store.history(session.id())?.transcript();
    }
    let journal = Dated::new(session, turn.number);
    play(Arc::new(journal), session.id(), turn, None).await?;
    Ok(())
}

/// Plays on behind a session that another process left.
async fn later(store: &Store, name: &str, turn: Play) -> Result<(), Failure> {
    let session = Arc::new(store.own(&SessionId::new(name))?);
    next_turn(store, &session, turn).await
}

/// Carries on the turn that a session's process left.
async fn carry_on(
    store: &Store,
    name: &str,
    replies: Vec<Vec<Beat>>,
    hangs: bool,
) -> Result<Played, Failure> {
    let session = Arc::new(store.own(&SessionId::new(name))?);
    let history = store.history(session.id())?;
    let open = history.open_turn().ok_or("no turn is open")?;
    let mut records = store.load(session.id())?;
    let before = usize::try_from(open.first.0 - 1)?;
    let records = records.split_off(before);
    let mut turn = Play::new(open.number, replies);
    turn.history = history.before_open_turn();
    turn.hangs = hangs;
    let journal = Dated::resuming(&session);
    play(Arc::new(journal), session.id(), turn, Some(&records)).await
}

/// Continues elsewhere from the first record of a kind.
fn fork(store: &Store, parent: &str, kind: &str, name: &str) -> Result<(), Failure> {
    let parent = SessionId::new(parent);
    let entries = store.read_all(&parent)?;
    let at = entries.iter().find(|it| it.kind() == kind);
    let at = at.ok_or("there is no such record")?.seq;
    store.fork(&parent, at, &SessionId::new(name), BEGAN)?;
    Ok(())
}

/// A session whose records have the same times whenever they are written.
struct Dated {
    session: Arc<OwnedSession>,
    begins: TimeMs,
    /// When the turn really began; it continues from its records if it is resumed.
    began: OnceLock<TimeMs>,
}

impl Dated {
    fn new(session: &Arc<OwnedSession>, turn: u32) -> Self {
        Self {
            session: Arc::clone(session),
            begins: TimeMs(BEGAN.0 + u64::from(turn) * HOUR_MS),
            began: OnceLock::new(),
        }
    }

    fn resuming(session: &Arc<OwnedSession>) -> Self {
        Self {
            session: Arc::clone(session),
            begins: BEGAN,
            began: OnceLock::from(BEGAN),
        }
    }

    fn dated(&self, mut record: Record) -> Record {
        let began = *self.began.get_or_init(|| record.at_ms);
        record.at_ms = TimeMs(record.at_ms.0 - began.0 + self.begins.0);
        if let RecordBody::Resumed { downtime_ms } = &mut record.body {
            *downtime_ms = DOWNTIME_MS;
        }
        record
    }
}

#[async_trait]
impl WrappedJournal for Dated {
    fn inner(&self) -> &dyn Journal {
        &*self.session
    }

    /// On a thread of its own, for which the clock of the turns stands still.
    async fn append_around(&self, fence: &Fence, append: Append) -> Result<Seq, AppendError> {
        let batch = append.batch.into_iter().map(|it| self.dated(it)).collect();
        let append = Append { batch, ..append };
        let (session, fence) = (Arc::clone(&self.session), fence.clone());
        let runtime = Handle::current();
        let appended = spawn_blocking(move || runtime.block_on(session.append(&fence, append)));
        appended
            .await
            .unwrap_or_else(|lost| Err(AppendError::Io(std::io::Error::other(lost))))
    }
}

/// Messages from before the first record.
fn brought() -> Transcript {
    let call = |index: u32| ToolCall {
        id: CallId::generated(1, 9, index),
        wire_id: Some(format!("w{index}")),
        name: "look".to_owned(),
        arguments: "{}".to_owned(),
        complete: true,
        opaque: None,
    };
    let called = Message {
        parts: vec![Part::ToolCall(call(0)), Part::ToolCall(call(1))],
        origin: Some(origin("m")),
        ..Message::assistant("")
    };
    let result = |index: u32, content| ToolResult {
        call_id: CallId::generated(1, 9, index),
        wire_id: Some(format!("w{index}")),
        name: "look".to_owned(),
        error: None,
        content,
        blocks: Vec::new(),
        synthetic: false,
    };
    let mut seen = result(0, ToolContent::Json(json!({ "seen": 1 })));
    let dot = Media {
        kind: MediaKind::Image,
        mime: "image/gif".to_owned(),
        name: None,
        source: dot(),
    };
    seen.blocks.push(dot.into());
    let mut unseen = result(1, ToolContent::Text("it was not run".to_owned()));
    unseen.error = Some(ToolErrorCode::NotRun);
    unseen.synthetic = true;
    let paused = Message {
        paused: true,
        origin: Some(origin("m")),
        ..Message::assistant("That we ")
    };
    [
        Message::user("What did we say?"),
        called,
        Message::tool_results(vec![seen, unseen]),
        paused,
        Message::synthetic_user("Go on."),
        Message::assistant("go on."),
    ]
    .map(Arc::new)
    .to_vec()
}
