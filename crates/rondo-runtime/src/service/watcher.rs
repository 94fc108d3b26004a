//! Sees what other processes do with the sessions of a service: what they submit, what they record, and when they
//! let go. One task for all sessions.

use super::Shared;
use super::entry::Entry;
use super::unix::Changes;
use rondo_core::clock::Clock;
use rondo_core::storage::Store;
use rondo_types::{SessionId, TimeMs};
use std::collections::HashSet;
use std::future::pending;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::spawn_blocking;
use tokio::time::sleep;
use tokio_util::sync::{CancellationToken, DropGuard};

/// The time between two looks whether the journal changed at least; if the system tells of no changes, how often it
/// is looked.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(100);
/// After this time, what could not be done is tried again.
const RETRY_EVERY: Duration = Duration::from_secs(1);

/// Watches until what is returned is dropped.
pub(super) fn start(shared: &Arc<Shared>) -> DropGuard {
    let end = CancellationToken::new();
    let watcher = Watcher {
        shared: Arc::downgrade(shared),
        again: Arc::clone(&shared.look_again),
        version: 0,
        tried: Clock::system().now(),
    };
    let until = end.clone();
    tokio::spawn(async move {
        tokio::select! {
            () = until.cancelled() => {}
            () = watcher.watch() => {}
        }
    });
    end.drop_guard()
}

struct Watcher {
    shared: Weak<Shared>,
    /// Told if this process has something to look after.
    again: Arc<Notify>,
    /// The journal's version that was seen last.
    version: u64,
    /// When what could not be done was tried last.
    tried: TimeMs,
}

/// How it is known that another process may have written.
pub(crate) enum ChangeNotice {
    /// The system tells.
    Told(Changes),
    /// No notifications.
    None,
    /// There is nothing to tell: the journal is in memory.
    Never,
}

impl ChangeNotice {
    pub(crate) fn of(store: &Store) -> Self {
        if store.is_in_memory() {
            return Self::Never;
        }
        let path = store.path();
        let changes = path
            .as_deref()
            .and_then(|it| it.parent())
            .zip(store.locks());
        match changes.map(|(journal, locks)| Changes::of(journal, &locks)) {
            Some(Ok(changes)) => Self::Told(changes),
            Some(Err(_)) | None => Self::None,
        }
    }

    /// Waits until there may be something new.
    pub(crate) async fn next(&mut self) {
        match self {
            Self::Told(changes) => {
                if changes.next().await.is_err() {
                    *self = Self::None;
                }
            }
            Self::None => {}
            Self::Never => pending().await,
        }
    }
}

impl Watcher {
    async fn watch(mut self) {
        let mut is_news = true;
        // Most processes for one question end before. The first look sees what changed until then.
        sleep(LOOK_EVERY).await;
        let store = self.shared.upgrade().map(|it| it.store.clone());
        let Some(mut changes) = store.map(|it| ChangeNotice::of(&it)) else {
            return;
        };
        while let Some(shared) = self.shared.upgrade() {
            let wait = self.look(shared, is_news).await;
            sleep(LOOK_EVERY).await;
            is_news = tokio::select! {
                () = changes.next() => true,
                () = self.again.notified() => true,
                () = until(wait) => false,
            };
        }
    }

    /// Looks, and returns the time until there is work that no change announces.
    async fn look(&mut self, shared: Arc<Shared>, is_news: bool) -> Option<Duration> {
        let entries = shared.in_use();
        let now = Clock::system().now();
        let mut next_due = None;
        for entry in &entries {
            let mut work = entry.work();
            if work.due.is_some_and(|due| due <= now) {
                work.due = None;
                drop(work);
                entry.ask(|work| work.resume = true);
            } else if let Some(due) = work.due {
                next_due = Some(next_due.map_or(due, |it: TimeMs| it.min(due)));
            }
        }
        let store = shared.store.clone();
        let version = spawn_blocking(move || store.version()).await;
        let version = version.ok().and_then(Result::ok).unwrap_or(self.version);
        let has_changed = std::mem::replace(&mut self.version, version) != version;
        let retries = entries.iter().any(|it| it.work().retry);
        let is_retry = retries && now.since(self.tried) >= RETRY_EVERY;
        if is_retry {
            self.tried = now;
        }
        if (has_changed || is_retry) && !shared.reads_only {
            let (waiting, is_whole) = waiting(&shared).await;
            if is_whole {
                forget_retries(&entries, &waiting);
            }
            see_mail(&entries, &waiting, is_retry).await;
        }
        see_rest(&entries).await;
        if has_changed {
            see_records(entries).await;
        }
        let due_in = next_due.map(|it| it.since(now));
        let retry_in = retries.then_some(RETRY_EVERY);
        // The system reports a write a moment before what was written can be read, and that the file of a lock was closed a
        // moment before it frees the lock.
        let again_in = is_news.then_some(Duration::ZERO);
        due_in.into_iter().chain(retry_in).chain(again_in).min()
    }
}

async fn until(wait: Option<Duration>) {
    match wait {
        Some(wait) => sleep(wait).await,
        None => pending().await,
    }
}

/// Returns the sessions in which something waits, and whether all of them are known.
async fn waiting(shared: &Shared) -> (HashSet<SessionId>, bool) {
    let memory = shared.memory().as_ref().map(|it| it.store.clone());
    let (mut all, mut is_whole) = (HashSet::new(), true);
    for store in memory.iter().chain([&shared.store]) {
        match store.waiting().await {
            Ok(waiting) => all.extend(waiting),
            Err(_) => is_whole = false,
        }
    }
    (all, is_whole)
}

/// Stops trying again if nothing waits any more: another process has carried it out.
fn forget_retries(entries: &[Arc<Entry>], waiting: &HashSet<SessionId>) {
    let done = entries.iter().filter(|it| !waiting.contains(&it.id));
    done.for_each(|it| it.work().retry = false);
}

/// Makes actors look at what others submitted.
async fn see_mail(entries: &[Arc<Entry>], waiting: &HashSet<SessionId>, is_retry: bool) {
    for entry in entries.iter().filter(|it| waiting.contains(&it.id)) {
        let is_tried_again = is_retry && entry.work().retry;
        let newest = match is_tried_again {
            true => None,
            false => entry.store().newest(&entry.id).await.ok().flatten(),
        };
        let is_new = newest.is_some_and(|it| it > entry.work().seen);
        if is_tried_again || is_new {
            entry.ask(|work| work.look = true);
        }
    }
}

/// Wakes the callers that wait until no process works on a session, if none does.
async fn see_rest(entries: &[Arc<Entry>]) {
    let awaited = entries.iter().filter(|it| it.is_rest_awaited());
    let awaited: Vec<_> = awaited.cloned().collect();
    if awaited.is_empty() {
        return;
    }
    let seen = spawn_blocking(move || {
        let at_rest = awaited.iter().filter(|it| !it.store().is_in_use(&it.id));
        at_rest.for_each(|it| it.changed());
    });
    let _ = seen.await;
}

/// Wakes the listeners of sessions in which other processes recorded something.
async fn see_records(entries: Vec<Arc<Entry>>) {
    let seen = spawn_blocking(move || entries.iter().for_each(|it| it.see_records()));
    let _ = seen.await;
}
