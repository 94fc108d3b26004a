//! Live updates between processes. The process that runs a turn serves the turn's events on a socket; a service with
//! listeners of that session in another process reads them there until the turn ends or is parked, which it reads in the
//! records. Records stay what counts: without a connection, listeners get each step once it is recorded.

use super::Shared;
use super::actor::Actor;
use super::cursor::{Cursor, CursorPosition};
use super::entry::Entry;
use super::handle::SessionHandle;
use super::update::UpdateBody;
use crate::scratch;
use rondo_core::storage::Store;
use rondo_types::{EventBody, Message, SessionId, TurnEvent, TurnId};
use serde::Deserialize;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};

/// Processes that may read the events of one session at a time.
const READERS_MAX: usize = 32;
/// Bytes of a cursor with its line end.
const CURSOR_BYTES_MAX: u64 = 256;
/// Bytes of one event with its line end; a reader that is sent more waits for the record.
const EVENT_BYTES_MAX: u64 = 16 << 20;
/// How long a peer may take to send its cursor, or to take one event.
const PEER_TIMEOUT: Duration = Duration::from_secs(5);
/// Sockets of killed processes that are looked for at a time.
const STALE_MAX: usize = 256;

/// One line of the protocol: an [`Update`](super::Update) of the turn.
#[derive(Deserialize)]
struct LiveUpdate {
    cursor: Cursor,
    #[serde(flatten)]
    body: LiveBody,
}

/// The updates that are sent; the names are those of [`UpdateBody`].
#[derive(Deserialize)]
#[serde(tag = "update", rename_all = "snake_case")]
enum LiveBody {
    Asked { turn: TurnId, message: Arc<Message> },
    Turn { event: Box<TurnEvent> },
}

/// Serves the events of a session's turns to other processes, until this is dropped.
pub(super) struct LiveServer {
    path: PathBuf,
    _serving: DropGuard,
}

impl LiveServer {
    /// Starts to serve. To be called by the process that owns the session.
    ///
    /// # Errors
    /// When the socket cannot be made, such as because its path is too long.
    pub(super) fn start(entry: &Arc<Entry>, dir: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        if scratch::is_due(dir) {
            remove_stale(dir, entry.store());
        }
        let path = socket(dir, entry.id());
        // The session's last owner may have been killed.
        let _ = fs::remove_file(&path);
        let listener = UnixListener::bind(&path)?;
        let end = CancellationToken::new();
        let served = serve(listener, Arc::clone(entry));
        tokio::spawn(end.clone().run_until_cancelled_owned(served));
        Ok(Self {
            path,
            _serving: end.drop_guard(),
        })
    }
}

impl Drop for LiveServer {
    fn drop(&mut self) {
        // A socket that stays refuses connections.
        let _ = fs::remove_file(&self.path);
    }
}

impl Actor {
    /// Serves the events of its turns to other processes. If that fails, these get them once they are recorded.
    pub(super) fn serve_live(&mut self) {
        let entry = &self.entry;
        if let Some(dir) = &entry.service.live
            && self.live.is_none()
            && !entry.store().is_in_memory()
        {
            self.live = LiveServer::start(entry, dir).ok();
        }
    }
}

fn socket(dir: &Path, session: &SessionId) -> PathBuf {
    dir.join(session.as_str())
}

/// Removes the sockets of processes that were killed: no process works on their sessions.
fn remove_stale(dir: &Path, store: &Store) {
    let Ok(entries) = fs::read_dir(dir) else {
        return;
    };
    for entry in entries.take(STALE_MAX).flatten() {
        let session = entry.file_name().into_string().ok();
        let session = session.and_then(|it| SessionId::parse(&it).ok());
        if session.is_some_and(|it| !store.is_in_use(&it)) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

async fn serve(listener: UnixListener, entry: Arc<Entry>) {
    let mut readers = JoinSet::new();
    // An error is one of this process, such as too many open files: others wait for the records.
    while let Ok((stream, _)) = listener.accept().await {
        while readers.try_join_next().is_some() {}
        if readers.len() < READERS_MAX {
            readers.spawn(send_events(stream, Arc::clone(&entry)));
        }
    }
}

/// Sends the events after the cursor that the peer names, until one of the two is gone.
async fn send_events(stream: UnixStream, entry: Arc<Entry>) -> io::Result<()> {
    let (read, mut write) = stream.into_split();
    let mut line = String::new();
    let mut read = BufReader::new(read.take(CURSOR_BYTES_MAX));
    timeout(PEER_TIMEOUT, read.read_line(&mut line)).await??;
    let cursor = line.trim_end().parse().map_err(io::Error::other)?;
    let mut events = SessionHandle::new(entry).subscribe(cursor);
    // A peer sends nothing more: what is read is its end.
    let mut rest = [0];
    loop {
        let update = tokio::select! {
            update = events.next() => update.map_err(io::Error::other)?,
            _ = read.read(&mut rest) => return Ok(()),
        };
        match &update.body {
            // The record of the end says more than the event, such as the exit code. The peer connects again once it has read it.
            UpdateBody::Turn { event } if is_end(&event.body) => return Ok(()),
            UpdateBody::Asked { .. } | UpdateBody::Turn { .. } => {}
            // The peer has read records of a turn that was lost here; it reads on in the records.
            UpdateBody::Reset => return Ok(()),
            UpdateBody::Session { .. }
            | UpdateBody::Cell { .. }
            | UpdateBody::Failed { .. }
            | UpdateBody::Missed { .. } => continue,
        }
        let mut line = serde_json::to_vec(&update)?;
        line.push(b'\n');
        timeout(PEER_TIMEOUT, write.write_all(&line)).await??;
    }
}

/// Returns whether a run of a turn is over with this event.
fn is_end(body: &EventBody) -> bool {
    matches!(body, EventBody::Result(_) | EventBody::Parked { .. })
}

impl Shared {
    /// Reads the events of a turn that another process runs, for the listeners of a session here that have read all of
    /// its records. Nothing happens if no process serves them.
    pub(super) fn read_live(&self, entry: &Arc<Entry>) {
        let Some(dir) = &self.live else {
            return;
        };
        if entry.is_running() {
            return;
        }
        let mut reading = entry.live();
        if reading.as_ref().is_some_and(|it| !it.is_finished()) {
            return;
        }
        let (path, entry) = (socket(dir, entry.id()), Arc::downgrade(entry));
        let read = async move {
            let Some(cursor) = entry.upgrade().map(|it| it.live_cursor()) else {
                return;
            };
            let Ok(mut events) = LiveEvents::connect(&path, cursor).await else {
                return;
            };
            while let Ok(Some((place, body))) = events.next().await {
                let Some(entry) = entry.upgrade() else { return };
                if !entry.tell_live(place, body) {
                    return;
                }
            }
        };
        *reading = Some(tokio::spawn(read).abort_handle());
    }
}

/// The events that another process sends.
struct LiveEvents {
    stream: BufReader<UnixStream>,
    line: Vec<u8>,
}

impl LiveEvents {
    async fn connect(path: &Path, cursor: Cursor) -> io::Result<Self> {
        let mut stream = UnixStream::connect(path).await?;
        let line = format!("{cursor}\n");
        stream.write_all(line.as_bytes()).await?;
        Ok(Self {
            stream: BufReader::new(stream),
            line: Vec::new(),
        })
    }

    async fn next(&mut self) -> io::Result<Option<(CursorPosition, UpdateBody)>> {
        self.line.clear();
        let mut bounded = (&mut self.stream).take(EVENT_BYTES_MAX);
        bounded.read_until(b'\n', &mut self.line).await?;
        if self.line.is_empty() {
            return Ok(None);
        }
        let LiveUpdate { cursor, body } = serde_json::from_slice(&self.line)?;
        let body = match body {
            LiveBody::Asked { turn, message } => UpdateBody::Asked { turn, message },
            LiveBody::Turn { event } => UpdateBody::Turn { event },
        };
        Ok(Some((cursor.place, body)))
    }
}
