//! What happens after a crash, after a failure, and from time to time: sessions that were cut off go on, those that could
//! not begin are tried again, and what ends the hub each time is put aside.

use crate::host;
use crate::hub::Core;
use crate::outgoing;
use crate::questions;
use rondo_core::clock::Clock;
use rondo_core::ports::{HostCommit, HostRow, MailboxError};
use rondo_runtime::error::{Result, SetupError, SetupErrorKind};
use rondo_types::SessionId;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

/// The table of the processes that ended while they worked on a session, since it last answered.
pub(crate) const CRASHES: &str = "crashes";
/// Processes that a session may have ended: after so many, what it works on is put aside.
pub(crate) const CRASHES_MAX: u32 = 3;
/// How long one session that is suspected is waited for before the next one goes on.
const SUSPECT_TIMEOUT: Duration = Duration::from_mins(5);
/// The pause before what could not begin is tried again; it doubles with each time.
const RETRY: Duration = Duration::from_secs(1);
/// The longest such pause.
const RETRY_MAX: Duration = Duration::from_mins(1);
/// How often questions are looked at that may have expired.
const EXPIRY_LOOK: Duration = Duration::from_secs(30);

/// Sessions that are to be tried again, and turns that wait for the end of the process.
#[derive(Default)]
pub(crate) struct Retries {
    due: Mutex<BTreeMap<SessionId, Retry>>,
    changed: Notify,
    held: AtomicUsize,
}

#[derive(Clone, Copy)]
struct Retry {
    at: Option<Instant>,
    pause: Duration,
}

impl Retries {
    fn due(&self) -> MutexGuard<'_, BTreeMap<SessionId, Retry>> {
        self.due.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has a session be tried again after a pause, which doubles with each time.
    pub(crate) fn later(&self, session: &SessionId) {
        let mut due = self.due();
        let retry = due.entry(session.clone()).or_insert(Retry {
            at: None,
            pause: RETRY,
        });
        retry.at = Some(Instant::now() + retry.pause);
        retry.pause = (retry.pause * 2).min(RETRY_MAX);
        drop(due);
        self.changed.notify_one();
    }

    /// Takes it that a session's turn began.
    pub(crate) fn began(&self, session: &SessionId) {
        self.due().remove(session);
    }

    fn next(&self) -> Option<Instant> {
        self.due().values().filter_map(|it| it.at).min()
    }

    fn take_due(&self) -> Vec<SessionId> {
        let now = Instant::now();
        let mut due = self.due();
        let ready = due.iter_mut();
        let ready = ready.filter(|(_, retry)| retry.at.is_some_and(|at| at <= now));
        let ready = ready.map(|(session, retry)| {
            retry.at = None;
            session.clone()
        });
        ready.collect()
    }

    /// Notes that a turn waits for the end of the process.
    pub(crate) fn hold(&self) {
        self.held.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns how many turns wait for the end of the process.
    pub(crate) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }
}

impl Core {
    /// Has everything go on that the last process left. Sessions that were worked on when more than one process ended are
    /// suspected of it, and go on one at a time, so that the one that does it is told from the others.
    pub(crate) async fn recover(self: &Arc<Self>) -> Result<()> {
        let mut suspects = Vec::new();
        let mut first = Vec::new();
        for session in self.service.unfinished().await? {
            let chat = self.chats.of_session(&session).await.map_err(unreadable)?;
            if chat.is_none() {
                // It is another host's.
                continue;
            }
            match self.crashes(&session).await.map_err(unreadable)? {
                0 => first.push(session),
                crashes => suspects.push((session, crashes)),
            }
        }
        let commit = HostCommit {
            rows: first.iter().map(|it| crashed(it, 1)).collect(),
            ..HostCommit::default()
        };
        self.store.commit(commit).await.map_err(unreadable)?;
        let (count, suspected) = (first.len(), suspects.len());
        for session in first {
            self.session(&session).resume();
        }
        if count + suspected > 0 {
            tracing::info!(sessions = count, suspected, "sessions go on");
        }
        if suspected > 0 {
            let core = Arc::clone(self);
            tokio::spawn(async move { core.clear(suspects).await });
        }
        Ok(())
    }

    pub(crate) async fn crashes(&self, session: &SessionId) -> Result<u32, MailboxError> {
        let row = self.store.row(CRASHES, session.as_str()).await?;
        Ok(row.and_then(|it| it.parse().ok()).unwrap_or(0))
    }

    async fn clear(&self, suspects: Vec<(SessionId, u32)>) {
        for (session, crashes) in suspects {
            if self.drain.is_cancelled() {
                return;
            }
            if let Err(error) = self.clear_one(&session, crashes + 1).await {
                tracing::error!(%error, session = session.as_str(), "a session does not go on");
            }
        }
    }

    async fn clear_one(&self, session: &SessionId, crashes: u32) -> Result<(), MailboxError> {
        let mut commit = HostCommit {
            rows: vec![crashed(session, crashes)],
            ..HostCommit::default()
        };
        if crashes >= CRASHES_MAX {
            self.put_aside(session, crashes, &mut commit).await?;
        }
        self.store.commit(commit).await?;
        let handle = self.session(session);
        handle.resume();
        let _ = timeout(SUSPECT_TIMEOUT, handle.at_rest()).await;
        Ok(())
    }

    /// Puts aside what a session works on: its turn is stopped as soon as it goes on, or its message taken back, where
    /// that had begun no turn.
    async fn put_aside(
        &self,
        session: &SessionId,
        crashes: u32,
        commit: &mut HostCommit,
    ) -> Result<(), MailboxError> {
        self.metrics.quarantined();
        let has_turn = host::begun(&*self.store, session).await?.is_some();
        if !has_turn && let Some(key) = self.session(session).first_waiting().await {
            commit.withdrawn.push((session.clone(), key));
            // What comes after it is given a chance of its own.
            commit.rows = vec![HostRow::removed(CRASHES, session.as_str())];
        }
        if let Some(chat) = self.chats.of_session(session).await? {
            let now = Clock::system().now().0;
            let key = format!("quarantine:{session}:{crashes}:{now}");
            let text = "What you asked ended the gateway three times, so it was put aside. Ask in other words, or begin anew with /new.";
            commit.outbox.push(outgoing::notice(key, &chat.key, text));
        }
        Ok(())
    }

    /// Tries sessions again and has questions expire, until `stop` fires.
    pub(crate) async fn keep_going(&self, stop: &CancellationToken) {
        let mut look = Instant::now();
        loop {
            for session in self.retries.take_due() {
                self.session(&session).resume();
            }
            if look <= Instant::now() {
                look = Instant::now() + EXPIRY_LOOK;
                self.expire().await;
            }
            let next = self.retries.next().map_or(look, |it| it.min(look));
            tokio::select! {
                () = sleep_until(next) => {}
                () = self.retries.changed.notified() => {}
                () = stop.cancelled() => return,
            }
        }
    }

    async fn expire(&self) {
        let now = Clock::system().now();
        match questions::expired(&*self.store, now).await {
            Ok(sessions) => {
                for session in sessions {
                    self.session(&session).resume();
                }
            }
            Err(error) => tracing::warn!(%error, "questions could not be looked at"),
        }
    }
}

fn crashed(session: &SessionId, crashes: u32) -> HostRow {
    HostRow::set(CRASHES, session.as_str(), crashes.to_string())
}

fn unreadable(error: MailboxError) -> SetupError {
    let context = "failed to read what the hub notes";
    SetupError::because(SetupErrorKind::Other, context, error)
}
