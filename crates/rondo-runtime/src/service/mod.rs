//! Sessions that any number of hosts listen to: each is worked on only while there is work in it.
//!
//! A [`SessionService`] hands out [`SessionHandle`]s. What is submitted through one is durable before it returns
//! (it is a row of the session's mailbox), and an actor takes it from there: it takes the session, runs its turns,
//! and lets go. Between turns a session has no task, connection or open file, and another process may work on it.
//!
//! # Layout
//! - [`handle`]: the operations of a session.
//! - [`host`]: a host's additions to turns.
//! - [`cells`]: a person's own cells, in what the host lends (`lent`); `attached`: what they printed; `host_cell`: cells that the
//!   host runs itself; `restoring`: running cells again.
//! - [`subscription`]: listening; [`update`]: what a listener receives; [`cursor`]: where to continue.
//! - `actor`: does what the session machine says; `taking`: takes a session for its next turn; `known`: the rows of its mailbox; `running`: the turn that runs.
//! - [`opened`]: works on a session that its host has opened already.
//! - `ring`: the latest updates in memory; `records`: all of them from the records, and `checkpoints` in these; `follower`:
//!   reads what other processes record, once for all listeners; `live`: what they say before it is recorded.
//! - [`kept`]: listing, naming, copying and removing sessions.
//! - `replaced`: the file that a call would replace which waits for an answer.
//! - `watcher`: sees what other processes do; `unix`: news of changed files.
//!
//! # Invariants
//! - A row of the mailbox is removed in the transaction with the records it led to: the first ones of its turn, that of a
//!   steering message, that of an answer. A row that led to nothing is removed by itself. So a message is neither lost nor
//!   used twice.
//! - Every submission is a row first and a wake-up second, so a lost wake-up costs only time, and rows from other processes
//!   are not a special case: one watcher for all sessions sees by SQLite's `data_version` that something changed.
//! - A cursor counts the events of a run with their deltas joined, as a replay tells them. It also holds when the run began,
//!   because a run that recorded nothing is lost with its process and another one takes its number.
//! - The ring holds a session's latest updates without a gap, from the moment the session was taken. A listener first reads the
//!   records to their end and then continues in the ring; it holds only a position there, so it costs the turn nothing.
//!   Updates that are in neither are reported as `missed`. Updates that contradict the records are taken back by `reset`.
//! - A listener in another process reads each record once, for all listeners of the session in that process. Deltas come over
//!   a socket of the process that runs the turn (`live`), until the record of the same events is read. It waits for
//!   changes to the journal's files and for the session's lock, never for a timer.
//!
//! `a_listener_of_a_session_whose_processes_end_at_random_has_what_the_records_say` tests these together.

mod actor;
mod attached;
pub mod cells;
mod checkpoints;
pub mod cursor;
mod entry;
mod folder;
mod follower;
pub mod handle;
pub mod host;
mod host_cell;
pub mod kept;
mod known;
mod lent;
mod live;
pub mod opened;
mod python_terminal;
mod records;
mod replaced;
mod restoring;
mod ring;
mod running;
pub mod subscription;
mod taking;
mod unix;
pub mod update;
mod watcher;

pub use crate::turn::{Answers, ToolFilter};
pub use cells::{CELLS_MAX, Cell, CellEnd, CellEvent};
pub use cursor::{BadCursor, Cursor};
pub use entry::Attendance;
pub use handle::{SessionHandle, Ticket};
pub use host::{AskedTurn, NoHost, SessionHost};
pub use host_cell::HostCell;
pub use kept::KeptSession;
pub use lent::LentPython;
pub use opened::OpenedSession;
pub use python_terminal::{PYTHON_KEYS_MAX, PythonTerminal};
pub use records::TurnEnding;
pub use restoring::SortedCells;
pub use ring::{RING_BYTES_MAX, RINGS_BYTES_MAX};
pub use rondo_tools::{EDIT_FILE, FileBefore, ReplacedFile, WRITE_FILE};
pub use subscription::Subscription;
pub use update::{Update, UpdateBody};
pub(crate) use watcher::{ChangeNotice, LOOK_EVERY};

use crate::error::{Result, SetupError, SetupErrorKind};
use crate::ids;
use crate::parking;
use crate::runtime::Runtime;
use crate::session::{SessionOptions, SessionSource};
use crate::sessions;
use crate::settings::Settings;
use crate::usage::{self, UsageBy, UsageSum};
use checkpoints::Checkpoints;
use entry::Entry;
use lent::Loans;
use ring::RingTotals;
use rondo_core::clock::Clock;
use rondo_core::ports::{HostStore, Outbox};
use rondo_core::session_store::{SessionInfo, StoreError};
use rondo_core::storage::Store;
use rondo_memory::calendar;
use rondo_types::{SessionId, TimeMs};
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher as _, RandomState};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tokio::sync::Notify;
use tokio::task::spawn_blocking;
use tokio_util::sync::DropGuard;

/// The sessions of a host, in one journal. Clones are the same service.
#[derive(Clone)]
pub struct SessionService {
    shared: Arc<Shared>,
    /// Ends the watcher with the last clone.
    _watched: Arc<DropGuard>,
}

struct Shared {
    runtime: Runtime,
    host: Arc<dyn SessionHost>,
    /// The journal of all other sessions.
    store: Store,
    memory: Mutex<Option<InMemory>>,
    /// Tells its cursors from those of other services.
    number: u64,
    held: Arc<RingTotals>,
    /// Those that someone has a handle of, listens to, or that are worked on.
    entries: Mutex<HashMap<SessionId, Weak<Entry>>>,
    /// Set if sessions are only read here: no session is taken, and nothing is submitted.
    reads_only: bool,
    /// Set if no further turn may begin.
    is_closed: AtomicBool,
    /// Resources that the host lends to sessions.
    loans: Loans,
    checkpoints: Checkpoints,
    /// Makes the watcher look although the journal did not change.
    look_again: Arc<Notify>,
    /// The directory of the sockets on which processes serve the events of their turns; `None` if the journal is in memory.
    live: Option<PathBuf>,
}

/// Sessions that are in memory alone, once there are any.
struct InMemory {
    store: Store,
    ids: HashSet<SessionId>,
}

impl Shared {
    fn memory(&self) -> MutexGuard<'_, Option<InMemory>> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn new_memory(&self) -> Result<Store> {
        match self.store.is_in_memory() {
            true => Ok(self.store.clone()),
            false => sessions::in_memory(),
        }
    }

    /// Returns the journal that a session is in.
    fn store_of(&self, session: &SessionId) -> Store {
        let memory = self.memory();
        let memory = memory.as_ref().filter(|it| it.ids.contains(session));
        memory.map_or_else(|| self.store.clone(), |it| it.store.clone())
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<SessionId, Weak<Entry>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes rings drop what they hold, if all together hold too much: those first in which nothing happened
    /// for the longest.
    fn make_room(&self) {
        let mut least = self.held.too_much();
        if least == 0 {
            return;
        }
        let mut entries = self.in_use();
        entries.sort_by_cached_key(|it| it.ring().pushed());
        for entry in entries {
            if least == 0 {
                return;
            }
            let gone = entry.ring().make_room(least);
            least = least.saturating_sub(gone);
        }
    }

    fn handle(self: &Arc<Self>, id: SessionId, options: SessionOptions) -> SessionHandle {
        let mut entries = self.entries();
        let known = entries.get(&id).and_then(Weak::upgrade);
        let entry = known.unwrap_or_else(|| {
            let store = self.store_of(&id);
            let entry = Entry::new(Arc::clone(self), store, id.clone(), options);
            let entry = Arc::new(entry);
            entries.insert(id, Arc::downgrade(&entry));
            entry
        });
        SessionHandle::new(entry)
    }

    /// Returns the sessions that are in use, and forgets the others.
    fn in_use(&self) -> Vec<Arc<Entry>> {
        let mut entries = self.entries();
        entries.retain(|_, entry| entry.strong_count() > 0);
        entries.values().filter_map(Weak::upgrade).collect()
    }
}

impl SessionService {
    /// Opens the journal of all sessions; one in memory if the settings keep nothing (`ephemeral`). To be called
    /// within a runtime of tokio.
    ///
    /// # Errors
    /// When the settings make no sense, or the journal cannot be used.
    pub fn open(runtime: Runtime, directory: PathBuf, host: impl SessionHost) -> Result<Self> {
        let settings = runtime.settings(directory)?;
        Self::of_settings(runtime, &settings, host)
    }

    /// Does the same with settings that the host has read.
    ///
    /// # Errors
    /// When the journal cannot be used.
    pub fn of_settings(
        runtime: Runtime,
        settings: &Settings,
        host: impl SessionHost,
    ) -> Result<Self> {
        let store = match settings.values.ephemeral {
            Some(true) => sessions::in_memory()?,
            _ => sessions::open(settings)?,
        };
        let live = live_dir(settings, &store);
        Ok(Self::start(runtime, Arc::new(host), store, false, live))
    }

    /// Opens the journal of all sessions only to listen to what other processes do in them. This service takes no session,
    /// begins no turn, and refuses messages, answers and cells. To be called within a runtime of tokio.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_to_read(runtime: Runtime, directory: PathBuf) -> Result<Self> {
        let settings = runtime.settings(directory)?;
        let store = sessions::open_to_read(&settings)?;
        let live = live_dir(&settings, &store);
        Ok(Self::start(runtime, Arc::new(NoHost), store, true, live))
    }

    fn start(
        runtime: Runtime,
        host: Arc<dyn SessionHost>,
        store: Store,
        reads_only: bool,
        live: Option<PathBuf>,
    ) -> Self {
        let shared = Arc::new(Shared {
            store,
            memory: Mutex::default(),
            runtime,
            host,
            number: RandomState::new().hash_one(()),
            held: Arc::default(),
            entries: Mutex::default(),
            reads_only,
            is_closed: AtomicBool::default(),
            loans: Loans::default(),
            checkpoints: Checkpoints::default(),
            look_again: Arc::default(),
            live,
        });
        let watched = watcher::start(&shared);
        Self {
            shared,
            _watched: Arc::new(watched),
        }
    }

    /// Returns the runtime that all sessions share.
    #[must_use]
    pub fn runtime(&self) -> &Runtime {
        &self.shared.runtime
    }

    /// Returns the journal of all sessions that are not in memory alone.
    #[must_use]
    pub fn store(&self) -> Store {
        self.shared.store.clone()
    }

    /// Returns what is sent to the outside by the sessions of the journal.
    #[must_use]
    pub fn outbox(&self) -> Arc<dyn Outbox> {
        self.shared.store.clone()
    }

    /// Returns the store of the host's rows beside the sessions of the journal.
    #[must_use]
    pub fn host_store(&self) -> Arc<dyn HostStore> {
        self.shared.store.clone()
    }

    /// Returns the sessions of the journal in which there is something to do: mail waits, or a turn was cut
    /// off; those with parked turns are not among them.
    ///
    /// # Errors
    /// When the journal cannot be read.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn unfinished(&self) -> Result<Vec<SessionId>> {
        let mut all = self.shared.store.waiting().await.map_err(parking::unkept)?;
        let store = self.shared.store.clone();
        let open = off_thread(move || store.cut_off().map_err(sessions::failed)).await?;
        all.extend(open.into_iter().map(|it| it.id));
        all.sort();
        all.dedup();
        Ok(all)
    }

    /// Returns a new session with an id of its own. Nothing of it is stored before its first message.
    #[must_use]
    pub fn new_session(&self, options: SessionOptions) -> SessionHandle {
        let id = ids::new_session(Clock::system().now());
        self.session(id, options)
    }

    /// Returns a new session, which is in memory if the settings keep nothing.
    ///
    /// # Errors
    /// When there is no room for it.
    pub fn begin_session(&self, options: SessionOptions) -> Result<SessionHandle> {
        match self.shared.store.is_in_memory() {
            true => self.new_ephemeral_session(options),
            false => Ok(self.new_session(options)),
        }
    }

    /// Returns a new session that is in memory alone: its mailbox and its records are gone with the service, and no
    /// other process sees it. Otherwise it is like other sessions. All of these together hold about 1 GiB.
    ///
    /// # Errors
    /// When there is no room for it.
    pub fn new_ephemeral_session(&self, options: SessionOptions) -> Result<SessionHandle> {
        let id = ids::new_session(Clock::system().now());
        let mut memory = self.shared.memory();
        let sessions = match memory.take() {
            Some(sessions) => sessions,
            None => InMemory {
                store: self.shared.new_memory()?,
                ids: HashSet::new(),
            },
        };
        memory.insert(sessions).ids.insert(id.clone());
        drop(memory);
        Ok(self.session(id, options))
    }

    /// Removes a session in memory, with all that is in it, for the room that it takes.
    ///
    /// # Errors
    /// When a turn runs in it, or it is not in memory.
    pub async fn forget(&self, session: &SessionId) -> Result<()> {
        let store = self.shared.store_of(session);
        if !store.is_in_memory() {
            let message = format!("session `{session}` is not in memory alone");
            return Err(SetupError::new(SetupErrorKind::Usage, message));
        }
        let (stored, id) = (store.clone(), session.clone());
        match off_thread(move || Ok(stored.remove(&id))).await? {
            Ok(()) => {}
            // Nothing is recorded of it, and no mail of it is removed with its records.
            Err(StoreError::Unknown { .. }) => {
                let discarded = store.discard(session).await;
                discarded.map_err(parking::unkept)?;
            }
            Err(error) => {
                let context = "failed to remove the session";
                let error = SetupError::because(SetupErrorKind::SessionInUse, context, error);
                return Err(error);
            }
        }
        self.shared.checkpoints.forget(session);
        if let Some(memory) = &mut *self.shared.memory() {
            memory.ids.remove(session);
        }
        Ok(())
    }

    /// Returns a session by its full id, whether or not it exists. `options` apply if it does not exist, or if they
    /// name a directory.
    #[must_use]
    pub fn session(&self, id: SessionId, options: SessionOptions) -> SessionHandle {
        self.shared.handle(id, options)
    }

    /// Finds a session by its id, a prefix of it, or `latest`.
    ///
    /// # Errors
    /// When none or several match.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn find(&self, name: &str, options: SessionOptions) -> Result<SessionHandle> {
        let memory = self.shared.memory().as_ref().map(|it| it.store.clone());
        let (store, name) = (self.shared.store.clone(), name.to_owned());
        let found = off_thread(move || match (sessions::find(&store, &name), memory) {
            (Err(error), Some(memory)) if error.kind == SetupErrorKind::NoSession => {
                sessions::find(&memory, &name)
            }
            (found, _) => found,
        });
        Ok(self.session(found.await?.id, options))
    }

    /// Returns the session that is meant: a new one, which is in memory if the settings keep nothing, or one that is
    /// there.
    ///
    /// # Errors
    /// When there is no such session.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn open_session(
        &self,
        source: &SessionSource,
        options: SessionOptions,
    ) -> Result<SessionHandle> {
        match source {
            SessionSource::New => self.begin_session(options),
            SessionSource::Id(name) => self.find(name, options).await,
            SessionSource::Latest => {
                let (store, directory) = (self.shared.store.clone(), options.directory.clone());
                let latest = off_thread(move || sessions::latest(&store, &directory)).await?;
                Ok(self.session(latest.id, options))
            }
        }
    }

    /// Sums up what models used in some of the sessions since a time. It reads all records of those that were used since.
    ///
    /// # Errors
    /// When the journal cannot be read.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn usage(
        &self,
        since: TimeMs,
        is_counted: impl Fn(&SessionId) -> bool + Send + 'static,
    ) -> Result<UsageSum> {
        let store = self.shared.store.clone();
        off_thread(move || {
            let is_counted = |info: &SessionInfo| is_counted(&info.id);
            let sums = usage::usage_of(&store, UsageBy::Session, since, is_counted)?;
            Ok(sums.into_values().fold(UsageSum::default(), UsageSum::plus))
        })
        .await
    }

    /// Returns whether a session holds text from outside, as its records say.
    ///
    /// # Errors
    /// When there is no such session, or the journal cannot be read.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn has_outside_text(&self, session: &SessionId) -> Result<bool> {
        let (store, session) = (self.shared.store.clone(), session.clone());
        off_thread(move || Ok(store.history(&session)?.has_outside_text())).await
    }

    /// Waits until all turns that run are over. No further one begins here; what waits stays in the mailboxes.
    ///
    /// # Cancel safety
    /// Cancel safe: sessions stay closed for new turns.
    pub async fn close(&self) {
        self.shared.is_closed.store(true, Ordering::Relaxed);
        let entries = self.shared.in_use();
        for entry in &entries {
            entry.wake.notify_one();
        }
        for entry in entries {
            entry.is_done().await;
        }
    }
}

/// Returns a time in this machine's zone as a person reads it, such as `Wed 2026-11-25 03:20 +01:00`: for the text above
/// a chat's message and in lists. The date in a prompt is made in `system_prompt.rs`.
#[must_use]
pub fn local_time(at: TimeMs) -> String {
    let time = calendar::local(at);
    time.strftime("%a %Y-%m-%d %H:%M %:z").to_string()
}

fn live_dir(settings: &Settings, store: &Store) -> Option<PathBuf> {
    (!store.is_in_memory()).then(|| settings.paths.live())
}

/// Reads or writes on a thread that may wait for the disk.
async fn off_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let worked = spawn_blocking(work).await;
    let worked = worked.map_err(|err| {
        let context = "the thread that reads the journal failed";
        SetupError::because(SetupErrorKind::Other, context, err)
    });
    worked.flatten()
}
