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
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

/// The table of the processes that ended while a session was at the same request or tool call.
pub(crate) const CRASHES: &str = "crashes";
/// Processes that a session may have ended: after so many, what it works on is put aside.
pub(crate) const CRASHES_MAX: u32 = 3;
/// How long one session that is suspected is waited for before the next one goes on.
const SUSPECT_TIMEOUT: Duration = Duration::from_mins(5);
/// How often it is looked at whether it got further.
const SUSPECT_LOOK: Duration = Duration::from_millis(50);
/// The pause before what could not begin is tried again; it doubles with each time.
const RETRY: Duration = Duration::from_secs(1);
/// The longest such pause.
const RETRY_MAX: Duration = Duration::from_mins(1);
/// How often questions are looked at that may have expired.
const EXPIRY_LOOK: Duration = Duration::from_secs(30);
/// Sessions whose crashes are forgotten as a process ends.
const LEFT_MAX: usize = 100_000;

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

/// How many processes ended while a turn was where it is now. What is counted is a request or a call of a tool that
/// began and never ended, so a turn that gets further is not what ends the hub.
#[derive(Default)]
pub(crate) struct Crashes(AtomicU32);

impl Crashes {
    /// Of a turn that goes on after so many.
    pub(crate) fn after(count: u32) -> Self {
        Self(AtomicU32::new(count))
    }

    /// Returns the row to commit as a request or a call begins: it counts unless the process comes further.
    pub(crate) fn at_stake(&self, session: &SessionId) -> HostRow {
        crashed(session, self.0.load(Ordering::Relaxed) + 1)
    }

    /// Returns the row to commit once it ended.
    pub(crate) fn survived(&self, session: &SessionId) -> HostRow {
        self.0.store(0, Ordering::Relaxed);
        HostRow::removed(CRASHES, session.as_str())
    }
}

/// A session that the last process left.
struct Left {
    session: SessionId,
    crashes: u32,
    has_turn: bool,
}

impl Core {
    /// Has everything go on that the last process left. Sessions that were worked on when more than one process ended are
    /// suspected of it, and go on one at a time, so that the one that does it is told from the others.
    pub(crate) async fn recover(self: &Arc<Self>) -> Result<()> {
        let mut left = Vec::new();
        for session in self.service.unfinished().await? {
            let chat = self.chats.of_session(&session).await.map_err(unreadable)?;
            // Others are another host's.
            if chat.is_some() {
                left.push(self.left(session).await.map_err(unreadable)?);
            }
        }
        let (suspects, others): (Vec<_>, Vec<_>) = left.into_iter().partition(|it| it.crashes > 1);
        let commit = HostCommit {
            rows: others.iter().filter_map(Left::at_stake).collect(),
            ..HostCommit::default()
        };
        self.store.commit(commit).await.map_err(unreadable)?;
        if suspects.len() + others.len() > 0 {
            let suspected = suspects.len();
            tracing::info!(sessions = others.len(), suspected, "sessions go on");
        }
        for left in others {
            self.session(&left.session).resume();
        }
        let core = Arc::clone(self);
        tokio::spawn(async move { core.clear(suspects).await });
        Ok(())
    }

    async fn left(&self, session: SessionId) -> Result<Left, MailboxError> {
        let has_turn = host::begun(&*self.store, &session).await?.is_some();
        let crashes = self.crashes(&session).await?;
        Ok(Left {
            session,
            crashes,
            has_turn,
        })
    }

    pub(crate) async fn crashes(&self, session: &SessionId) -> Result<u32, MailboxError> {
        let row = self.store.row(CRASHES, session.as_str()).await?;
        Ok(row.and_then(|it| it.parse().ok()).unwrap_or(0))
    }

    async fn clear(&self, suspects: Vec<Left>) {
        for suspect in suspects {
            if self.drain.is_cancelled() {
                return;
            }
            if let Err(error) = self.clear_one(&suspect).await {
                let session = suspect.session.as_str();
                tracing::error!(%error, session, "a session does not go on");
            }
        }
    }

    async fn clear_one(&self, suspect: &Left) -> Result<(), MailboxError> {
        let mut commit = HostCommit {
            rows: suspect.at_stake().into_iter().collect(),
            ..HostCommit::default()
        };
        if suspect.crashes >= CRASHES_MAX {
            self.put_aside(suspect, &mut commit).await?;
        }
        self.store.commit(commit).await?;
        let handle = self.session(&suspect.session);
        handle.resume();
        tokio::select! {
            () = handle.at_rest() => {}
            cleared = self.comes_further(&suspect.session) => cleared?,
            () = sleep(SUSPECT_TIMEOUT) => {}
        }
        Ok(())
    }

    /// Waits until a session got past what it was at when processes ended.
    async fn comes_further(&self, session: &SessionId) -> Result<(), MailboxError> {
        while self.crashes(session).await? > 0 {
            sleep(SUSPECT_LOOK).await;
        }
        Ok(())
    }

    /// Forgets all crashes: this process ends because it was told to.
    pub(crate) async fn forget_crashes(&self) -> Result<(), MailboxError> {
        let rows = self.store.rows(CRASHES, "", LEFT_MAX).await?;
        let rows = rows
            .iter()
            .map(|(session, _)| HostRow::removed(CRASHES, session));
        let commit = HostCommit {
            rows: rows.collect(),
            ..HostCommit::default()
        };
        self.store.commit(commit).await?;
        Ok(())
    }

    /// Puts aside what a session works on: its turn is stopped as soon as it goes on, or its message taken back, where
    /// that had begun no turn.
    async fn put_aside(&self, left: &Left, commit: &mut HostCommit) -> Result<(), MailboxError> {
        self.metrics.quarantined();
        let (session, crashes) = (&left.session, left.crashes);
        if !left.has_turn
            && let Some(key) = self.session(session).first_waiting().await
        {
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

impl Left {
    /// Returns the row to commit before a message is taken up whose turn did not begin: no record of a turn says so.
    fn at_stake(&self) -> Option<HostRow> {
        (!self.has_turn).then(|| crashed(&self.session, self.crashes + 1))
    }
}

fn crashed(session: &SessionId, crashes: u32) -> HostRow {
    HostRow::set(CRASHES, session.as_str(), crashes.to_string())
}

fn unreadable(error: MailboxError) -> SetupError {
    let context = "failed to read what the hub notes";
    SetupError::because(SetupErrorKind::Other, context, error)
}
