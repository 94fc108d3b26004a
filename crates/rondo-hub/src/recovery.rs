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
/// Processes that a request or call may have ended: after so many, what the session works on is put aside.
const CRASHES_MAX: u32 = 3;
/// The table of the processes that took a session up and did not get any further with it.
const STARTS: &str = "starts";
/// After so many of these it is put aside, too: what ends a process need not be a request or a call. It is more, since it
/// says less.
const STARTS_MAX: u32 = 6;
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

/// How many processes ended while a session was where it is now.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Count {
    /// While a request or a call of a tool was under way, which began and never ended.
    crashes: u32,
    /// After they took it up again, whatever they did with it.
    starts: u32,
}

impl Count {
    fn is_suspect(self) -> bool {
        self.crashes > 1 || self.starts > STARTS_MAX / 2
    }

    /// Returns whether the session is taken for what ends them.
    fn is_enough(self) -> bool {
        self.crashes >= CRASHES_MAX || self.starts >= STARTS_MAX
    }

    /// Returns whether that was found before this process took it up, which counted as a start since.
    pub(crate) fn is_put_aside(self) -> bool {
        self.crashes >= CRASHES_MAX || self.starts > STARTS_MAX
    }
}

/// Counts on while a turn runs: one that gets further is not what ends the hub.
#[derive(Default)]
pub(crate) struct Crashes(AtomicU32);

impl Crashes {
    /// Of a turn that goes on.
    pub(crate) fn after(count: Count) -> Self {
        Self(AtomicU32::new(count.crashes))
    }

    /// Returns the row to commit as a request or a call begins: it counts unless the process comes further.
    pub(crate) fn at_stake(&self, session: &SessionId) -> HostRow {
        let crashes = self.0.load(Ordering::Relaxed) + 1;
        HostRow::set(CRASHES, session.as_str(), crashes.to_string())
    }

    /// Returns the rows to commit once it ended.
    pub(crate) fn survived(&self, session: &SessionId) -> [HostRow; 2] {
        self.0.store(0, Ordering::Relaxed);
        none(session)
    }
}

fn none(session: &SessionId) -> [HostRow; 2] {
    [CRASHES, STARTS].map(|table| HostRow::removed(table, session.as_str()))
}

/// A session that the last process left.
struct Left {
    session: SessionId,
    count: Count,
    has_turn: bool,
}

impl Left {
    /// Returns the row to commit before it is taken up.
    fn taken_up(&self) -> HostRow {
        let starts = self.count.starts + 1;
        HostRow::set(STARTS, self.session.as_str(), starts.to_string())
    }
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
        let (suspects, others): (Vec<_>, Vec<_>) =
            left.into_iter().partition(|it| it.count.is_suspect());
        let commit = HostCommit {
            rows: others.iter().map(Left::taken_up).collect(),
            ..HostCommit::default()
        };
        self.store.commit(commit).await.map_err(unreadable)?;
        // Before anything else can take these up: whoever asked is told of it together with that.
        for culprit in suspects.iter().filter(|it| it.count.is_enough()) {
            self.put_aside(culprit).await.map_err(unreadable)?;
        }
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
        let count = self.count(&session).await?;
        Ok(Left {
            session,
            count,
            has_turn,
        })
    }

    pub(crate) async fn count(&self, session: &SessionId) -> Result<Count, MailboxError> {
        Ok(Count {
            crashes: self.counted(CRASHES, session).await?,
            starts: self.counted(STARTS, session).await?,
        })
    }

    async fn counted(&self, table: &str, session: &SessionId) -> Result<u32, MailboxError> {
        let row = self.store.row(table, session.as_str()).await?;
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
        if !suspect.count.is_enough() {
            let commit = HostCommit {
                rows: vec![suspect.taken_up()],
                ..HostCommit::default()
            };
            self.store.commit(commit).await?;
        }
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
        loop {
            let count = self.count(session).await?;
            if count.crashes + count.starts == 0 {
                return Ok(());
            }
            sleep(SUSPECT_LOOK).await;
        }
    }

    /// Forgets all crashes: this process ends because it was told to.
    pub(crate) async fn forget_crashes(&self) -> Result<(), MailboxError> {
        let mut commit = HostCommit::default();
        for table in [CRASHES, STARTS] {
            let rows = self.store.rows(table, "", LEFT_MAX).await?;
            let rows = rows
                .iter()
                .map(|(session, _)| HostRow::removed(table, session));
            commit.rows.extend(rows);
        }
        self.store.commit(commit).await?;
        Ok(())
    }

    /// Puts aside what a session works on: its turn is stopped as soon as it goes on, or its message taken back, where
    /// that had begun no turn.
    async fn put_aside(&self, left: &Left) -> Result<(), MailboxError> {
        let mut commit = HostCommit {
            rows: vec![left.taken_up()],
            ..HostCommit::default()
        };
        self.metrics.quarantined();
        let session = &left.session;
        if !left.has_turn
            && let Some(key) = self.session(session).first_waiting().await
        {
            commit.withdrawn.push((session.clone(), key));
            // What comes after it is given a chance of its own.
            commit.rows = none(session).into();
        }
        if let Some(chat) = self.chats.of_session(session).await? {
            let now = Clock::system().now().0;
            let key = format!("quarantine:{session}:{now}");
            let text = "What you asked ended the gateway again and again, so it was put aside. Ask in other words, or begin anew with /new.";
            commit.outbox.push(outgoing::notice(key, &chat.key, text));
        }
        self.store.commit(commit).await?;
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

fn unreadable(error: MailboxError) -> SetupError {
    let context = "failed to read what the hub notes";
    SetupError::because(SetupErrorKind::Other, context, error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_suspected_and_put_aside_sooner_for_what_began_than_for_being_taken_up() {
        let of = |crashes, starts| Count { crashes, starts };
        for harmless in [of(0, 0), of(1, 1), of(0, STARTS_MAX / 2)] {
            assert!(
                !harmless.is_suspect() && !harmless.is_enough(),
                "{harmless:?}"
            );
        }
        for suspect in [of(CRASHES_MAX - 1, 1), of(0, STARTS_MAX - 1)] {
            assert!(suspect.is_suspect() && !suspect.is_enough(), "{suspect:?}");
        }
        for culprit in [of(CRASHES_MAX, 1), of(0, STARTS_MAX)] {
            assert!(culprit.is_suspect() && culprit.is_enough(), "{culprit:?}");
        }
    }

    #[test]
    fn a_turn_is_stopped_that_was_put_aside_and_not_one_that_is_tried_for_the_last_time() {
        let session = SessionId::new("s");
        let last_try = Left {
            session: session.clone(),
            count: Count {
                crashes: 0,
                starts: STARTS_MAX - 1,
            },
            has_turn: true,
        };
        assert_eq!(
            last_try.taken_up(),
            HostRow::set(STARTS, "s", STARTS_MAX.to_string())
        );
        let seen = |starts| Count { crashes: 0, starts };
        assert!(!seen(STARTS_MAX).is_put_aside());
        assert!(seen(STARTS_MAX + 1).is_put_aside());
    }

    #[test]
    fn what_gets_further_starts_from_none() {
        let session = SessionId::new("s");
        let crashes = Crashes::after(Count {
            crashes: 2,
            starts: 4,
        });
        assert_eq!(
            crashes.at_stake(&session),
            HostRow::set(CRASHES, "s", "3".to_owned())
        );
        assert_eq!(crashes.survived(&session), none(&session));
        assert_eq!(
            crashes.at_stake(&session),
            HostRow::set(CRASHES, "s", "1".to_owned())
        );
    }
}
