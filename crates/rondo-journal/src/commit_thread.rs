//! The one thread that writes: whatever waits when it is free goes into one commit.

use crate::blob;
use crate::error::JournalError;
use crate::journal_file::JournalFile;
use crate::mailbox;
use crate::outbox;
use crate::sessions::soon;
use crate::turn_count::TurnCount;
use rondo_core::ports::{Append, AppendError, ChainHash, Entry, Fence, Head, Record, Seq};
use rondo_core::session_store::NewSession;
use rusqlite::{Connection, ErrorCode, OptionalExtension as _, TransactionBehavior, ffi};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::{self, JoinHandle};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot, watch};

/// Appends that may wait for the writer; who comes later waits before it is taken.
const APPENDS_MAX: usize = 4096;
/// Tasks that may wait besides.
const TASKS_MAX: usize = 64;
/// The epoch of a session's first owner.
pub(crate) const FIRST_EPOCH: u64 = 1;
/// Rows that one commit holds before those that still wait are left for the next.
const COMMIT_ROWS_MAX: usize = 8192;

/// Work on the connection, or on the reason why there is none.
type Work = Box<dyn FnOnce(Result<&mut Connection, JournalError>) + Send>;

/// Something that is done between two commits.
struct Task {
    /// Set if its own commit must survive the loss of power.
    is_durable: bool,
    work: Work,
}

enum Job {
    Write(Box<dyn Write>),
    Task(Task),
}

/// Something that is written in one transaction with others.
trait Write: Send {
    /// How many rows it is about.
    fn rows(&self) -> usize;
    /// Writes it, or fails and takes the whole transaction with it.
    fn write(&mut self, connection: &Connection) -> Result<(), JournalError>;
    /// Answers the caller that waits, after the transaction.
    fn answer(self: Box<Self>, committed: Result<(), Failure>);
}

/// Why a transaction was not made.
#[derive(Debug, Clone)]
pub(crate) enum Failure {
    /// The disk is full.
    Full,
    /// The writer ended before.
    Closed,
    /// A journal that is only read.
    ReadOnly(PathBuf),
    /// The commit was sent, and its outcome is not known.
    Unknown(String),
    /// Anything else.
    Failed(String),
}

impl From<Failure> for io::Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Full => Self::from(io::ErrorKind::StorageFull),
            Failure::Closed => Self::other(JournalError::Closed),
            Failure::ReadOnly(path) => Self::other(JournalError::ReadOnly { path }),
            Failure::Unknown(reason) | Failure::Failed(reason) => Self::other(reason),
        }
    }
}

/// A write whose transaction was not made, or may not have been.
#[derive(Debug)]
pub(crate) struct FailedWrite<T> {
    /// Cause of the failure.
    pub(crate) failure: Failure,
    /// Result, if it was made after all.
    pub(crate) written: Option<T>,
}

impl<T> From<Failure> for FailedWrite<T> {
    fn from(failure: Failure) -> Self {
        Self {
            failure,
            written: None,
        }
    }
}

impl From<FailedWrite<Appended>> for AppendError {
    fn from(unwritten: FailedWrite<Appended>) -> Self {
        match (unwritten.failure, unwritten.written) {
            // A refused write is not there in either case.
            (Failure::Unknown(_), Some(Err(refused))) => refused,
            (Failure::Unknown(reason), Some(Ok(head))) => Self::Unknown {
                head,
                source: io::Error::other(reason),
            },
            (Failure::Full, _) => Self::Full,
            (failure, _) => Self::Io(failure.into()),
        }
    }
}

/// New head of the session after an append, or the reason of the refusal.
type Appended = Result<Head, AppendError>;

struct Queued<T, F> {
    rows: usize,
    work: Option<F>,
    written: Option<T>,
    /// Told of the commit.
    tell: Option<watch::Sender<u64>>,
    reply: oneshot::Sender<Result<T, FailedWrite<T>>>,
    /// Frees the place in the queue.
    _place: OwnedSemaphorePermit,
}

impl<T, F> Write for Queued<T, F>
where
    T: Send,
    F: FnOnce(&Connection) -> Result<T, JournalError> + Send,
{
    fn rows(&self) -> usize {
        self.rows
    }

    fn write(&mut self, connection: &Connection) -> Result<(), JournalError> {
        if let Some(work) = self.work.take() {
            self.written = Some(work(connection)?);
        }
        Ok(())
    }

    fn answer(self: Box<Self>, committed: Result<(), Failure>) {
        if let (Ok(()), Some(tell)) = (&committed, self.tell) {
            tell.send_modify(|it| *it = it.wrapping_add(1));
        }
        let answer = match (committed, self.written) {
            (Ok(()), Some(written)) => Ok(written),
            (Ok(()), None) => Err(Failure::Closed.into()),
            (Err(failure), written) => Err(FailedWrite { failure, written }),
        };
        // The caller may have been cancelled; the written records are there all the same.
        let _ = self.reply.send(answer);
    }
}

/// Hands work to the writer's thread, which ends after its last handle is gone.
#[derive(Debug)]
pub(crate) struct CommitThread {
    jobs: Option<SyncSender<Job>>,
    places: Arc<Semaphore>,
    thread: Option<JoinHandle<()>>,
    syncs: Arc<AtomicU64>,
    /// The journal, if it is only read: then there is no thread.
    read_only: Option<PathBuf>,
}

pub(crate) fn start(connection: Connection, file: JournalFile) -> io::Result<CommitThread> {
    let (jobs, waiting) = sync_channel(APPENDS_MAX + TASKS_MAX);
    let syncs = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&syncs);
    let thread = thread::Builder::new()
        .name("rondo-journal".to_owned())
        .spawn(move || Thread::new(connection, file, waiting, counted).run())?;
    Ok(CommitThread {
        jobs: Some(jobs),
        places: Arc::new(Semaphore::new(APPENDS_MAX)),
        thread: Some(thread),
        syncs,
        read_only: None,
    })
}

impl CommitThread {
    /// Refuses all writes to a journal that is only read.
    pub(crate) fn refusing(path: PathBuf) -> Self {
        Self {
            jobs: None,
            places: Arc::new(Semaphore::new(APPENDS_MAX)),
            thread: None,
            syncs: Arc::default(),
            read_only: Some(path),
        }
    }

    fn refused(&self) -> Failure {
        match &self.read_only {
            Some(path) => Failure::ReadOnly(path.clone()),
            None => Failure::Closed,
        }
    }

    /// How often a group waited for the disk, or a task may have.
    pub(crate) fn syncs(&self) -> u64 {
        self.syncs.load(Ordering::Relaxed)
    }

    /// Appends a batch and returns after its commit.
    pub(crate) async fn append(
        &self,
        append: QueuedAppend,
        tell: Option<watch::Sender<u64>>,
    ) -> Appended {
        let commit = &append.append.commit;
        let acks = commit.ack.len() + commit.ack_unedited.len();
        let beside = acks + commit.outbox.len() + commit.rows.len();
        let rows = append.append.batch.len() + beside;
        self.write(rows, tell, move |connection| append.write(connection))
            .await?
    }

    /// Writes something in one transaction with all that waits besides, and returns after the commit. `work` is
    /// about so many rows; if it fails, so do all the others. `tell` receives the outcome.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        rows: usize,
        tell: Option<watch::Sender<u64>>,
        work: impl FnOnce(&Connection) -> Result<T, JournalError> + Send + 'static,
    ) -> Result<T, FailedWrite<T>> {
        let place = Arc::clone(&self.places).acquire_owned().await;
        let (reply, answer) = oneshot::channel();
        let job = Job::Write(Box::new(Queued {
            rows,
            work: Some(work),
            written: None,
            tell,
            reply,
            _place: place.map_err(|_| Failure::Closed)?,
        }));
        let jobs = self.jobs.as_ref().ok_or_else(|| self.refused())?;
        jobs.send(job).map_err(|_| Failure::Closed)?;
        answer.await.unwrap_or_else(|_| Err(Failure::Closed.into()))
    }

    /// Runs a task on the writer's connection between two commits, and waits for it.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        task: impl FnOnce(&mut Connection) -> Result<T, JournalError> + Send + 'static,
    ) -> Result<T, JournalError> {
        self.run_as(true, task)
    }

    /// Runs a task as [`CommitThread::run`] does. All processes see at once what it commits; the loss of power may take
    /// it back.
    pub(crate) fn run_unsynced<T: Send + 'static>(
        &self,
        task: impl FnOnce(&mut Connection) -> Result<T, JournalError> + Send + 'static,
    ) -> Result<T, JournalError> {
        self.run_as(false, task)
    }

    fn run_as<T: Send + 'static>(
        &self,
        is_durable: bool,
        task: impl FnOnce(&mut Connection) -> Result<T, JournalError> + Send + 'static,
    ) -> Result<T, JournalError> {
        let (reply, answer) = sync_channel(1);
        let task = Task {
            is_durable,
            work: Box::new(move |connection| {
                // The receiver is gone when the sending fails.
                let _ = reply.send(connection.and_then(task));
            }),
        };
        let refused = || match &self.read_only {
            Some(path) => JournalError::ReadOnly { path: path.clone() },
            None => JournalError::Closed,
        };
        let jobs = self.jobs.as_ref().ok_or_else(refused)?;
        jobs.send(Job::Task(task))
            .map_err(|_| JournalError::Closed)?;
        answer.recv().map_err(|_| JournalError::Closed)?
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

struct Thread {
    connection: Connection,
    file: JournalFile,
    waiting: Receiver<Job>,
    /// Set by a failed sync: what the kernel dropped then, it will not say again, so nothing that
    /// follows may count as durable.
    is_broken: bool,
    syncs: Arc<AtomicU64>,
}

impl Thread {
    fn new(
        connection: Connection,
        file: JournalFile,
        waiting: Receiver<Job>,
        syncs: Arc<AtomicU64>,
    ) -> Self {
        Self {
            connection,
            file,
            waiting,
            is_broken: false,
            syncs,
        }
    }

    fn run(mut self) {
        while let Ok(job) = self.waiting.recv() {
            match job {
                Job::Task(task) => self.task(task),
                Job::Write(first) => {
                    let (group, task) = self.gather(first);
                    self.commit(group);
                    if let Some(task) = task {
                        self.task(task);
                    }
                }
            }
        }
    }

    /// Takes the writes that wait already, without waiting for more.
    fn gather(&self, first: Box<dyn Write>) -> (Vec<Box<dyn Write>>, Option<Task>) {
        let mut rows = first.rows();
        let mut group = vec![first];
        while rows < COMMIT_ROWS_MAX {
            match self.waiting.try_recv() {
                Ok(Job::Write(next)) => {
                    rows += next.rows();
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
            return (task.work)(Err(JournalError::Closed));
        }
        if task.is_durable {
            self.syncs.fetch_add(1, Ordering::Relaxed);
            return (task.work)(Ok(&mut self.connection));
        }
        match self.synchronous("NORMAL") {
            Ok(before) => {
                (task.work)(Ok(&mut self.connection));
                // If this fails, later commits would not wait for the disk.
                self.is_broken |= self.synchronous(&before).is_err();
            }
            Err(error) => (task.work)(Err(error)),
        }
    }

    /// Sets how commits wait for the disk, and returns how they did before.
    fn synchronous(&mut self, level: &str) -> Result<String, JournalError> {
        let read = |row: &rusqlite::Row<'_>| row.get::<_, i64>(0);
        let before = self
            .connection
            .pragma_query_value(None, "synchronous", read)?;
        self.connection.pragma_update(None, "synchronous", level)?;
        Ok(before.to_string())
    }

    fn commit(&mut self, mut group: Vec<Box<dyn Write>>) {
        let committed = self.try_commit(&mut group);
        for write in group {
            write.answer(committed.clone());
        }
    }

    fn try_commit(&mut self, group: &mut [Box<dyn Write>]) -> Result<(), Failure> {
        if self.is_broken {
            return Err(Failure::Closed);
        }
        if let Err(lost) = self.file.check() {
            self.is_broken |= lost.is_gone;
            return Err(Failure::Failed(lost.reason));
        }
        // A statement that failed may have left its transaction open.
        if !self.connection.is_autocommit() {
            let _ = self.connection.execute_batch("ROLLBACK");
        }
        self.syncs.fetch_add(1, Ordering::Relaxed);
        write(&mut self.connection, group)
            .inspect_err(|failed| {
                self.is_broken |= is_fatal(&failed.error);
            })
            .map_err(|failed| {
                let reason = failed.error.to_string();
                match is_full(&failed.error) {
                    true => Failure::Full,
                    // A full disk takes no commit; of what else fails then, a part may be on the disk.
                    false if failed.at_commit => Failure::Unknown(reason),
                    false => Failure::Failed(reason),
                }
            })
    }
}

/// Why a group was not written.
struct GroupFailure {
    error: JournalError,
    /// Set if everything was written but the commit.
    at_commit: bool,
}

impl<E: Into<JournalError>> From<E> for GroupFailure {
    fn from(error: E) -> Self {
        Self {
            error: error.into(),
            at_commit: false,
        }
    }
}

/// Writes a group in one transaction. A refused write leaves the others alone.
fn write(connection: &mut Connection, group: &mut [Box<dyn Write>]) -> Result<(), GroupFailure> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for one in group {
        one.write(&transaction)?;
    }
    transaction.commit().map_err(|error| GroupFailure {
        error: error.into(),
        at_commit: true,
    })
}

/// What one append is about.
pub(crate) struct QueuedAppend {
    pub(crate) fence: Fence,
    pub(crate) append: Append,
    /// The session itself, where it is begun with its first records.
    pub(crate) new: Option<Arc<NewSession>>,
}

impl QueuedAppend {
    /// Is refused (inner error) before anything is written, or written whole.
    fn write(&self, connection: &Connection) -> Result<Appended, JournalError> {
        let (fence, append) = (&self.fence, &self.append);
        let expected = append.expected;
        if let Some(new) = &self.new
            && expected == Seq(0)
        {
            begin(connection, new, &append.batch)?;
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
        for record in &append.batch {
            tally.note(&record.body);
            let entry = Entry::following(last, fence.epoch, record)
                .map_err(|error| JournalError::from(to_sql(error)))?;
            insert(connection, head.id, &entry)?;
            last = (entry.seq, entry.hash);
            at = entry.at.0;
        }
        if !append.batch.is_empty() {
            advance(connection, head.id, last, at)?;
        }
        if tally != head.tally {
            set_tally(connection, head.id, tally)?;
        }
        let (ack, unedited) = (&append.commit.ack, &append.commit.ack_unedited);
        mailbox::acknowledge(connection, &fence.session, ack, unedited)?;
        outbox::add(connection, &append.commit.outbox, &append.commit.rows)?;
        let (seq, hash) = last;
        Ok(Ok(Head { seq, hash }))
    }
}

struct SessionHead {
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
) -> Result<bool, JournalError> {
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
            new.shown_title(first),
            &new.directory,
        ))?;
    Ok(inserted > 0)
}

/// Keeps what a list says of a session's turns.
pub(crate) fn set_tally(
    connection: &Connection,
    session: i64,
    tally: TurnCount,
) -> Result<(), JournalError> {
    connection
        .prepare_cached("UPDATE sessions SET turns = ?2, open = ?3 WHERE id = ?1")?
        .execute((session, tally.turns, tally.open))?;
    Ok(())
}

/// Records that the records after a session's last one are lost.
pub(crate) fn mark_lost(connection: &Connection, session: i64) -> Result<(), JournalError> {
    let mark = "UPDATE sessions SET lost_after = head_seq WHERE id = ?1";
    connection.execute(mark, [session])?;
    Ok(())
}

/// Returns the head of a session; none when its writer is not its owner any more.
fn head(connection: &Connection, fence: &Fence) -> Result<Option<SessionHead>, JournalError> {
    Ok(connection
        .prepare_cached(
            "SELECT id, head_seq, head_hash, turns, open FROM sessions
             WHERE name = ?1 AND epoch = ?2",
        )?
        .query_row((fence.session.as_str(), to_i64(fence.epoch)), |row| {
            Ok(SessionHead {
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

/// Writes one entry's row, and its body if that is too large for one.
pub(crate) fn insert(
    connection: &Connection,
    session: i64,
    entry: &Entry,
) -> Result<(), JournalError> {
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
) -> Result<(), JournalError> {
    connection
        .prepare_cached(
            "UPDATE sessions SET head_seq = ?2, head_hash = ?3, updated_ms = CASE
             WHEN updated_ms > ?5 THEN ?4 ELSE MAX(updated_ms, ?4) END WHERE id = ?1",
        )?
        .execute((session, to_i64(seq.0), hash.0, to_i64(at_ms), soon()))?;
    Ok(())
}

/// SQLite's integers are signed; a value that does not fit counts as endless.
pub(crate) fn to_i64(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

pub(crate) fn to_u64(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

fn to_sql(error: serde_json::Error) -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure(Box::new(error))
}

fn code(error: &JournalError) -> Option<ErrorCode> {
    match error {
        JournalError::Database(error) => error.sqlite_error_code(),
        _ => None,
    }
}

/// `true` if the disk is full.
pub(crate) fn is_full(error: &JournalError) -> bool {
    code(error) == Some(ErrorCode::DiskFull)
}

/// `true` if nothing that follows may count as durable: the kernel drops data that it could not write to the disk, and
/// does not report it again. After any other error the next write tries again.
fn is_fatal(error: &JournalError) -> bool {
    let JournalError::Database(rusqlite::Error::SqliteFailure(error, _)) = error else {
        return false;
    };
    matches!(
        error.extended_code,
        ffi::SQLITE_IOERR_FSYNC | ffi::SQLITE_IOERR_DIR_FSYNC
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Options, Store};
    use rondo_types::{SessionId, TimeMs};

    async fn fail(store: &Store, code: i32) {
        let failed = store.writer().write(1, None, move |_| {
            let error = ffi::Error::new(code);
            Err::<(), _>(rusqlite::Error::SqliteFailure(error, None).into())
        });
        assert!(failed.await.is_err());
    }

    #[tokio::test]
    async fn after_an_error_of_the_disk_the_next_write_tries_again_but_not_after_a_failed_sync() {
        let dir = tempfile::TempDir::new().unwrap();
        let store = Store::open(dir.path(), Options::default()).unwrap();
        let create = |name: &str| store.create(&SessionId::new(name), TimeMs(1)).map(drop);
        for (number, code) in [
            ffi::SQLITE_IOERR_WRITE,
            ffi::SQLITE_IOERR_READ,
            ffi::SQLITE_IOERR_SHMMAP,
            ffi::SQLITE_IOERR_LOCK,
            ffi::SQLITE_FULL,
            ffi::SQLITE_CORRUPT,
            ffi::SQLITE_NOMEM,
        ]
        .into_iter()
        .enumerate()
        {
            fail(&store, code).await;
            create(&format!("s{number}")).unwrap();
        }
        fail(&store, ffi::SQLITE_IOERR_FSYNC).await;
        assert!(matches!(create("t"), Err(JournalError::Closed)));
    }
}
