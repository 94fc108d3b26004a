//! Sees what other processes do with the sessions of a service: what they submit, what they record, and when they
//! let go. One task for all sessions.

use super::Shared;
use super::entry::Entry;
use rondo_core::clock::Clock;
use rondo_core::ports::Mailbox as _;
use rondo_types::SessionId;
use std::collections::HashSet;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::task::spawn_blocking;
use tokio::time::sleep;
use tokio_util::sync::{CancellationToken, DropGuard};

/// How often it is looked whether the journal changed.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// After so many looks, what could not be done is tried again.
const RETRY_LOOKS: u32 = 10;

/// Watches until what is returned is dropped.
pub(super) fn start(shared: &Arc<Shared>) -> DropGuard {
    let end = CancellationToken::new();
    let watcher = Watcher {
        shared: Arc::downgrade(shared),
        version: 0,
        looks: 0,
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
    /// The journal's version that was seen last.
    version: u64,
    looks: u32,
}

impl Watcher {
    async fn watch(mut self) {
        while let Some(shared) = self.shared.upgrade() {
            self.look(shared).await;
            sleep(LOOK_EVERY).await;
        }
    }

    async fn look(&mut self, shared: Arc<Shared>) {
        self.looks = self.looks.wrapping_add(1);
        let entries = shared.in_use();
        let now = Clock::system().now();
        for entry in &entries {
            let mut work = entry.work();
            if work.due.is_some_and(|due| due <= now) {
                work.due = None;
                drop(work);
                entry.ask(|work| work.resume = true);
            }
        }
        let store = shared.store.clone();
        let version = spawn_blocking(move || store.version()).await;
        let version = version.ok().and_then(Result::ok).unwrap_or(self.version);
        let has_changed = std::mem::replace(&mut self.version, version) != version;
        let is_retry = self.looks.is_multiple_of(RETRY_LOOKS);
        if !has_changed && !is_retry {
            return;
        }
        let is_tried_again = |it: &Arc<Entry>| is_retry && it.work().retry;
        if has_changed || entries.iter().any(is_tried_again) {
            see_mail(&entries, &waiting(&shared).await, is_retry).await;
        }
        if has_changed {
            see_records(entries).await;
        }
    }
}

/// Returns the sessions in which something waits.
async fn waiting(shared: &Shared) -> HashSet<SessionId> {
    let memory = shared.memory().as_ref().map(|it| it.store.clone());
    let mut all = HashSet::new();
    for store in memory.iter().chain([&shared.store]) {
        all.extend(store.waiting().await.unwrap_or_default());
    }
    all
}

/// Has actors look at what others submitted.
async fn see_mail(entries: &[Arc<Entry>], waiting: &HashSet<SessionId>, is_retry: bool) {
    for entry in entries.iter().filter(|it| waiting.contains(&it.id)) {
        let is_tried_again = is_retry && entry.work().retry;
        let newest = match is_tried_again {
            true => None,
            false => entry.store().list(&entry.id).await.ok(),
        };
        let newest = newest.and_then(|rows| rows.last().map(|it| it.id));
        let is_new = newest.is_some_and(|it| it > entry.work().seen);
        if is_tried_again || is_new {
            entry.ask(|work| work.look = true);
        }
    }
}

/// Tells those who listen of what others recorded.
async fn see_records(entries: Vec<Arc<Entry>>) {
    let seen = spawn_blocking(move || {
        for entry in entries {
            if entry.is_running() || !entry.has_listeners() {
                continue;
            }
            let Ok(info) = entry.store().session(&entry.id) else {
                continue;
            };
            let before = std::mem::replace(&mut entry.work().head, info.head);
            if before != info.head {
                entry.ring().forget();
                entry.changed();
            }
        }
    });
    let _ = seen.await;
}
