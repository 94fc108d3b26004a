//! Sessions that any number of hosts listen to: each is worked on only while something is to be done in it.
//!
//! A [`SessionService`] hands out [`SessionHandle`]s. What is submitted through one is durable before it returns
//! (it is a row of the session's mailbox), and an actor takes it from there: it takes the session, runs its turns,
//! and lets go. Between turns a session has no task, connection or open file, and another process may work on it.
//!
//! # Layout
//! - [`handle`]: what can be done in a session.
//! - [`subscription`]: listening; [`update`]: what a listener receives; [`cursor`]: where to continue.
//! - `actor`: does what the session machine says; `running`: the turn that runs.
//! - `ring`: the latest updates in memory; `records`: all of them from the records.
//! - `watcher`: sees what other processes do.

mod actor;
pub mod cursor;
mod entry;
pub mod handle;
mod records;
mod ring;
mod running;
pub mod subscription;
pub mod update;
mod watcher;

pub use cursor::{BadCursor, Cursor};
pub use handle::{SessionHandle, Ticket};
pub use ring::{RING_BYTES_MAX, RINGS_BYTES_MAX};
pub use subscription::Subscription;
pub use update::{Update, UpdateBody};

use crate::error::{Result, SetupError, SetupErrorKind};
use crate::ids;
use crate::parking;
use crate::runtime::Runtime;
use crate::session::SessionOptions;
use crate::sessions;
use crate::settings::Settings;
use entry::Entry;
use ring::Held;
use rondo_core::clock::Clock;
use rondo_core::{Approver, Tool};
use rondo_journal::Store;
use rondo_types::SessionId;
use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tokio_util::sync::DropGuard;

/// What a host brings to the turns of its sessions.
pub trait SessionHost: Send + Sync + 'static {
    /// Returns who answers what a turn asks. By the setting `approval`, where that is `ask`: the turn is parked, and
    /// anyone who listens may answer.
    fn approver(&self, _session: &SessionId, settings: &Settings) -> Arc<dyn Approver> {
        parking::approver(settings, parking::parking(settings))
    }

    /// Returns tools that the host brings.
    fn tools(&self, _session: &SessionId) -> Vec<Arc<dyn Tool>> {
        Vec::new()
    }
}

/// A host that brings nothing of its own.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoHost;

impl SessionHost for NoHost {}

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
    store: Store,
    /// Tells its cursors from those of other services.
    number: u64,
    held: Arc<Held>,
    /// Those that someone has a handle of, listens to, or that are worked on.
    entries: Mutex<HashMap<SessionId, Weak<Entry>>>,
    /// Whether no further turn is to begin.
    is_closed: AtomicBool,
}

impl Shared {
    fn entries(&self) -> MutexGuard<'_, HashMap<SessionId, Weak<Entry>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the sessions that are in use, and forgets the others.
    fn in_use(&self) -> Vec<Arc<Entry>> {
        let mut entries = self.entries();
        entries.retain(|_, entry| entry.strong_count() > 0);
        entries.values().filter_map(Weak::upgrade).collect()
    }
}

impl SessionService {
    /// Opens the journal of all sessions. To be called within a runtime of tokio.
    ///
    /// # Errors
    /// When the settings make no sense, keep nothing, or the journal cannot be used.
    pub fn open(runtime: Runtime, directory: PathBuf, host: impl SessionHost) -> Result<Self> {
        let settings = runtime.settings(directory)?;
        if settings.values.ephemeral == Some(true) {
            let message = "sessions that outlive their turns must be kept";
            let hint = "take the setting `ephemeral` away";
            return Err(SetupError::new(SetupErrorKind::Usage, message).hint(hint));
        }
        let shared = Arc::new(Shared {
            store: sessions::open(&settings)?,
            runtime,
            host: Arc::new(host),
            number: RandomState::new().hash_one(()),
            held: Arc::default(),
            entries: Mutex::default(),
            is_closed: AtomicBool::default(),
        });
        let watched = watcher::start(&shared);
        Ok(Self {
            shared,
            _watched: Arc::new(watched),
        })
    }

    /// Returns what all sessions share.
    #[must_use]
    pub fn runtime(&self) -> &Runtime {
        &self.shared.runtime
    }

    /// Returns a new session with an id of its own. Nothing of it is stored before its first message.
    #[must_use]
    pub fn new_session(&self, options: SessionOptions) -> SessionHandle {
        let id = ids::new_session(Clock::system().now());
        self.session(id, options)
    }

    /// Returns a session by its full id, whether or not it exists. `options` apply if it does not exist, or if they
    /// name a directory.
    #[must_use]
    pub fn session(&self, id: SessionId, options: SessionOptions) -> SessionHandle {
        let mut entries = self.shared.entries();
        let known = entries.get(&id).and_then(Weak::upgrade);
        let entry = known.unwrap_or_else(|| {
            let entry = Entry::new(Arc::clone(&self.shared), id.clone(), options);
            let entry = Arc::new(entry);
            entries.insert(id, Arc::downgrade(&entry));
            entry
        });
        SessionHandle::new(entry)
    }

    /// Finds a session by its id, a prefix of it, or `latest`.
    ///
    /// # Errors
    /// When none or several match.
    pub fn find(&self, name: &str, options: SessionOptions) -> Result<SessionHandle> {
        let id = sessions::find(&self.shared.store, name)?.id;
        Ok(self.session(id, options))
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
