//! The one thread that writes: whatever waits when it is free goes into one commit.

use crate::blob;
use crate::entry::{ChainHash, Entry};
use crate::error::StoreError;
use crate::journal_file::JournalFile;
use crate::owned::NewSession;
use crate::sessions::soon;
use crate::turn_count::TurnCount;
use rondo_core::ports::{AppendError, Fence, Record, Seq};
use rusqlite::{Connection, ErrorCode, OptionalExtension as _, TransactionBehavior};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::{self, JoinHandle};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

/// Appends that may wait for the writer; who comes later waits before it is taken.
const APPENDS_MAX: usize = 4096;
/// Tasks that may wait besides.
const TASKS_MAX: usize = 64;
/// The epoch of a session's first owner.
pub(crate) const FIRST_EPOCH: u64 = 1;
/// Records that one commit holds before those that still wait are left for the next.
const COMMIT_RECORDS_MAX: usize = 8192;

type Task = Box<dyn FnOnce(Result<&mut Connection, StoreError>) + Send>;

enum Job {
    Append(QueuedAppend),
    Task(Task),
}

struct QueuedAppend {
    append: Append,
    reply: oneshot::Sender<Result<Seq, AppendError>>,
    /// Frees the place in the queue.
    _place: OwnedSemaphorePermit,
}

/// Hands work to the writer's thread, which ends after its last handle is gone.
#[derive(Debug)]
pub(crate) struct CommitThread {
    jobs: Option<SyncSender<Job>>,
    places: Arc<Semaphore>,
    thread: Option<JoinHandle<()>>,
    /// The journal, where it is only read: then there is no thread.
    read_only: Option<PathBuf>,
}

pub(crate) fn start(connection: Connection, file: JournalFile) -> io::Result<CommitThread> {
    let (jobs, waiting) = sync_channel(APPENDS_MAX + TASKS_MAX);
    let thread = thread::Builder::new()
        .name("rondo-journal".to_owned())
        .spawn(move || Thread::new(connection, file, waiting).run())?;
    Ok(CommitThread {
        jobs: Some(jobs),
        places: Arc::new(Semaphore::new(APPENDS_MAX)),
        thread: Some(thread),
        read_only: None,
    })
}

impl CommitThread {
    /// Refuses whatever is to be written to a journal that is only read.
    pub(crate) fn refusing(path: PathBuf) -> Self {
        Self {
            jobs: None,
            places: Arc::new(Semaphore::new(APPENDS_MAX)),
            thread: None,
            read_only: Some(path),
        }
    }

    fn refused(&self) -> StoreError {
        match &self.read_only {
            Some(path) => StoreError::ReadOnly { path: path.clone() },
            None => StoreError::Closed,
        }
    }

    /// Appends a batch and returns after its commit.
    pub(crate) async fn append(
        &self,
        fence: &Fence,
        expected: Seq,
        batch: Vec<Record>,
        new: Option<Arc<NewSession>>,
    ) -> Result<Seq, AppendError> {
        let place = Arc::clone(&self.places).acquire_owned().await;
        let (reply, answer) = oneshot::channel();
        let job = Job::Append(QueuedAppend {
            append: Append {
                fence: fence.clone(),
                expected,
                batch,
                new,
            },
            reply,
            _place: place.map_err(|_| closed())?,
        });
        let refused = || AppendError::Io(io::Error::other(self.refused()));
        let jobs = self.jobs.as_ref().ok_or_else(refused)?;
        jobs.send(job).map_err(|_| closed())?;
        answer.await.unwrap_or_else(|_| Err(closed()))
    }

    /// Runs a task on the writer's connection between two commits, and waits for it.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        task: impl FnOnce(&mut Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, answer) = sync_channel(1);
        let task: Task = Box::new(move |connection| {
            // The receiver is gone when the sending fails.
            let _ = reply.send(connection.and_then(task));
        });
        let jobs = self.jobs.as_ref().ok_or_else(|| self.refused())?;
        jobs.send(Job::Task(task)).map_err(|_| StoreError::Closed)?;
        answer.recv().map_err(|_| StoreError::Closed)?
    }
}

impl Drop for CommitThread {
    /// Waits for the commits under way, so that what follows finds the file at rest.
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // It has told all receivers; none is left.
            let _ = thread.join();
        }
    }
}

fn closed() -> AppendError {
    AppendError::Io(io::Error::other(StoreError::Closed))
}

struct Thread {
    connection: Connection,
    file: JournalFile,
    waiting: Receiver<Job>,
    /// Set by a failed sync: what the kernel dropped then, it will not say again, so nothing that
    /// follows may count as durable.
    is_broken: bool,
}

impl Thread {
    fn new(connection: Connection, file: JournalFile, waiting: Receiver<Job>) -> Self {
        Self {
            connection,
            file,
            waiting,
            is_broken: false,
        }
    }

    fn run(mut self) {
        while let Ok(job) = self.waiting.recv() {
            match job {
                Job::Task(task) => self.task(task),
                Job::Append(first) => {
                    let (group, task) = self.gather(first);
                    self.commit(group);
                    if let Some(task) = task {
                        self.task(task);
                    }
                }
            }
        }
    }

    /// Takes the appends that wait already, without waiting for more.
    fn gather(&self, first: QueuedAppend) -> (Vec<QueuedAppend>, Option<Task>) {
        let mut records = first.append.batch.len();
        let mut group = vec![first];
        while records < COMMIT_RECORDS_MAX {
            match self.waiting.try_recv() {
                Ok(Job::Append(next)) => {
                    records += next.append.batch.len();
                    group.push(next);
                }
                Ok(Job::Task(task)) => return (group, Some(task)),
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => break,
            }
        }
        (group, None)
    }

    fn task(&mut self, task: Task) {
        if self.is_broken {
            return task(Err(StoreError::Closed));
        }
        task(Ok(&mut self.connection));
    }

    fn commit(&mut self, group: Vec<QueuedAppend>) {
        if self.is_broken {
            return group
                .into_iter()
                .for_each(|append| answer(append.reply, Err(closed())));
        }
        if let Err(reason) = self.file.check() {
            self.is_broken = true;
            return group.into_iter().for_each(|append| {
                let error = io::Error::other(reason.clone());
                answer(append.reply, Err(AppendError::Io(error)));
            });
        }
        let (replies, appends): (Vec<_>, Vec<_>) =
            group.into_iter().map(|it| (it.reply, it.append)).unzip();
        match write(&mut self.connection, &appends) {
            Ok(results) => replies
                .into_iter()
                .zip(results)
                .for_each(|(reply, result)| answer(reply, result)),
            Err(error) => {
                self.is_broken = is_fatal(&error);
                let is_full = is_full(&error);
                let text = error.to_string();
                for reply in replies {
                    let error = if is_full {
                        AppendError::Full
                    } else {
                        AppendError::Io(io::Error::other(text.clone()))
                    };
                    answer(reply, Err(error));
                }
            }
        }
    }
}

fn answer(reply: oneshot::Sender<Result<Seq, AppendError>>, result: Result<Seq, AppendError>) {
    // Who asked may have been cancelled; the records are there all the same.
    let _ = reply.send(result);
}

/// What one append is about.
struct Append {
    fence: Fence,
    expected: Seq,
    batch: Vec<Record>,
    /// The session itself, where it is begun with its first records.
    new: Option<Arc<NewSession>>,
}

/// Writes a group in one transaction. A refused append leaves the others alone.
fn write(
    connection: &mut Connection,
    group: &[Append],
) -> Result<Vec<Result<Seq, AppendError>>, StoreError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut results = Vec::with_capacity(group.len());
    for one in group {
        results.push(append(&transaction, one)?);
    }
    transaction.commit()?;
    Ok(results)
}

/// One append: refused (inner error) before anything is written, or written whole.
fn append(connection: &Connection, one: &Append) -> Result<Result<Seq, AppendError>, StoreError> {
    let (fence, expected) = (&one.fence, one.expected);
    if let Some(new) = &one.new
        && expected == Seq(0)
    {
        begin(connection, new, &one.batch)?;
    }
    let Some(head) = head(connection, fence)? else {
        let session = fence.session.clone();
        return Ok(Err(AppendError::Fenced { session }));
    };
    if head.seq != expected {
        let actual = head.seq;
        return Ok(Err(AppendError::Conflict { expected, actual }));
    }
    let mut last = (head.seq, head.hash);
    let (mut at, mut tally) = (0, head.tally);
    for record in &one.batch {
        tally.note(&record.body);
        let entry = Entry::following(last, fence.epoch, record)
            .map_err(|error| StoreError::from(to_sql(error)))?;
        insert(connection, head.id, &entry)?;
        last = (entry.seq, entry.hash);
        at = entry.at.0;
    }
    if !one.batch.is_empty() {
        advance(connection, head.id, last, at)?;
    }
    if tally != head.tally {
        set_tally(connection, head.id, tally)?;
    }
    Ok(Ok(last.0))
}

struct Head {
    id: i64,
    seq: Seq,
    hash: ChainHash,
    tally: TurnCount,
}

/// Makes a session's row, unless it is there. `first` are the records it begins with.
pub(crate) fn begin(
    connection: &Connection,
    new: &NewSession,
    first: &[Record],
) -> Result<bool, StoreError> {
    let inserted = connection
        .prepare_cached(
            "INSERT OR IGNORE INTO sessions
             (name, created_ms, updated_ms, epoch, head_seq, head_hash, title, directory)
             VALUES (?1, ?2, ?2, ?3, 0, ?4, ?5, ?6)",
        )?
        .execute((
            new.id.as_str(),
            to_i64(new.at.0),
            to_i64(FIRST_EPOCH),
            ChainHash::GENESIS.0,
            new.title(first),
            &new.directory,
        ))?;
    Ok(inserted > 0)
}

/// Keeps what a list says of a session's turns.
pub(crate) fn set_tally(
    connection: &Connection,
    session: i64,
    tally: TurnCount,
) -> Result<(), StoreError> {
    connection
        .prepare_cached("UPDATE sessions SET turns = ?2, open = ?3 WHERE id = ?1")?
        .execute((session, tally.turns, tally.open))?;
    Ok(())
}

/// Notes that what came after a session's last record is lost.
pub(crate) fn mark_lost(connection: &Connection, session: i64) -> Result<(), StoreError> {
    let mark = "UPDATE sessions SET lost_after = head_seq WHERE id = ?1";
    connection.execute(mark, [session])?;
    Ok(())
}

/// Returns where a session stands; none when its writer is not its owner any more.
fn head(connection: &Connection, fence: &Fence) -> Result<Option<Head>, StoreError> {
    Ok(connection
        .prepare_cached(
            "SELECT id, head_seq, head_hash, turns, open FROM sessions
             WHERE name = ?1 AND epoch = ?2",
        )?
        .query_row((fence.session.as_str(), to_i64(fence.epoch)), |row| {
            Ok(Head {
                id: row.get(0)?,
                seq: Seq(to_u64(row.get(1)?)),
                hash: ChainHash(row.get(2)?),
                tally: TurnCount {
                    turns: row.get(3)?,
                    open: row.get(4)?,
                },
            })
        })
        .optional()?)
}

/// Writes one entry's row, and its body where that is too large for one.
pub(crate) fn insert(
    connection: &Connection,
    session: i64,
    entry: &Entry,
) -> Result<(), StoreError> {
    let placed = blob::place(connection, &entry.json)?;
    connection
        .prepare_cached(
            "INSERT INTO records (session, seq, version, epoch, turn, step, at_ms, hash, body, blob)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        )?
        .execute((
            session,
            to_i64(entry.seq.0),
            entry.version,
            to_i64(entry.epoch),
            entry.turn.as_str(),
            entry.step,
            to_i64(entry.at.0),
            entry.hash.0,
            placed.body,
            placed.blob,
        ))?;
    Ok(())
}

/// Moves a session's head.
pub(crate) fn advance(
    connection: &Connection,
    session: i64,
    (seq, hash): (Seq, ChainHash),
    at_ms: u64,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "UPDATE sessions SET head_seq = ?2, head_hash = ?3, updated_ms = CASE
             WHEN updated_ms > ?5 THEN ?4 ELSE MAX(updated_ms, ?4) END WHERE id = ?1",
        )?
        .execute((session, to_i64(seq.0), hash.0, to_i64(at_ms), soon()))?;
    Ok(())
}

/// SQLite's integers are signed; what does not fit is as good as endless.
pub(crate) fn to_i64(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

pub(crate) fn to_u64(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

fn to_sql(error: serde_json::Error) -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure(Box::new(error))
}

fn code(error: &StoreError) -> Option<ErrorCode> {
    match error {
        StoreError::Database(error) => error.sqlite_error_code(),
        _ => None,
    }
}

fn is_full(error: &StoreError) -> bool {
    code(error) == Some(ErrorCode::DiskFull)
}

/// Whether the state of the file is unknown after this.
fn is_fatal(error: &StoreError) -> bool {
    matches!(
        code(error),
        Some(
            ErrorCode::SystemIoFailure
                | ErrorCode::DatabaseCorrupt
                | ErrorCode::NotADatabase
                | ErrorCode::OutOfMemory
        )
    )
}
