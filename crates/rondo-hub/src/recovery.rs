//! Recovery after a crash, after a failure, and from time to time: sessions that were cut off continue, those that
//! could not begin are tried again, and messages that crash the hub each time are quarantined.

use crate::host;
use crate::hub::Core;
use crate::outgoing;
use crate::questions;
use crate::suspects::{self, SUSPECTS, Suspicion};
use rondo_core::clock::Clock;
use rondo_core::ports::{HostCommit, MailboxError, OPEN_ROWS_MAX};
use rondo_runtime::error::{Result, SetupError, SetupErrorKind};
use rondo_types::SessionId;
use std::collections::{BTreeMap, BTreeSet};
use std::iter::successors;
use std::mem::take;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

/// For how long others wait while those that are suspected are tried. From then on these continue one at a time among the
/// others.
const TRIAL_MAX: Duration = Duration::from_secs(30);
/// How long nothing runs before a session is tried for the last time: if the process ends meanwhile, that session does
/// not end it.
const QUIET: Duration = Duration::from_secs(1);
/// How long one session that is suspected is waited for before the next one continues.
const SUSPECT_TIMEOUT: Duration = Duration::from_mins(5);
/// How often it is looked at whether it got further.
const SUSPECT_LOOK: Duration = Duration::from_millis(50);
/// The pause before what could not begin is tried again; it doubles with each time.
const RETRY: Duration = Duration::from_secs(1);
/// The longest such pause.
const RETRY_MAX: Duration = Duration::from_mins(1);
/// How often questions are looked at that may have expired, or that other processes may have answered.
const EXPIRY_LOOK: Duration = Duration::from_secs(30);
/// Sessions that are at stake at once.
const AT_STAKE_MAX: usize = 100_000;

/// Sessions to try again, and turns that wait for the end of the process.
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

    /// Tries a session again after a pause, which doubles with each time, and returns the pause.
    pub(crate) fn later(&self, session: &SessionId) -> Duration {
        let mut due = self.due();
        let retry = due.entry(session.clone()).or_insert(Retry {
            at: None,
            pause: RETRY,
        });
        let pause = retry.pause;
        retry.at = Some(Instant::now() + pause);
        retry.pause = (pause * 2).min(RETRY_MAX);
        drop(due);
        self.changed.notify_one();
        pause
    }

    /// Records that a session's turn began.
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

    /// Records that a turn waits for the end of the process.
    pub(crate) fn hold(&self) {
        self.held.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns how many turns wait for the end of the process.
    pub(crate) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }
}

/// A session that the last process left.
struct LeftoverSession {
    session: SessionId,
    known: Suspicion,
    has_turn: bool,
}

/// Returns the session that belongs to a chat, by which this one was started.
fn root(session: &SessionId) -> SessionId {
    let above = successors(Some(session.clone()), SessionId::parent);
    above.last().unwrap_or_else(|| session.clone())
}

impl Core {
    /// Continues every session that the last process left. Sessions that ended several processes are quarantined; those
    /// that may have are tried one at a time before the others continue.
    pub(crate) async fn recover(self: &Arc<Self>) -> Result<()> {
        let left = self.all_left().await?;
        self.forget_placeholders(&left).await.map_err(unreadable)?;
        let (mut suspects, others): (Vec<_>, Vec<_>) =
            left.into_iter().partition(|it| it.known.is_suspect());
        // The most innocent are tried first: they have their answers before the one that ends the process.
        suspects.sort_by_key(|it| it.known.weight());
        // Before anything else can take these up: their senders are told of it together with that.
        for culprit in suspects.iter().filter(|it| it.known.is_enough()) {
            self.put_aside(culprit).await.map_err(unreadable)?;
        }
        if suspects.len() + others.len() > 0 {
            let suspected = suspects.len();
            tracing::info!(sessions = others.len(), suspected, "sessions go on");
        }
        if suspects.is_empty() {
            return self.take_up(&others).await.map_err(unreadable);
        }
        self.trial.admit_none();
        let core = Arc::clone(self);
        tokio::spawn(async move { core.try_all(suspects, others).await });
        Ok(())
    }

    /// Returns the turns that the last process left, and records the suspicion that its end gives.
    async fn all_left(&self) -> Result<Vec<LeftoverSession>> {
        let mut known = self.suspicions().await.map_err(unreadable)?;
        let mut left = Vec::new();
        for session in self.service.unfinished().await? {
            let chat = self.chats.of_session(&session).await.map_err(unreadable)?;
            // Others are another host's.
            if chat.is_some() {
                let known = known.remove(&session).unwrap_or_default();
                left.push(self.left(session, known).await.map_err(unreadable)?);
            }
        }
        let noted = left.iter().map(|it| it.known.row(&it.session));
        let gone = known.keys().map(suspects::cleared);
        let commit = HostCommit {
            rows: noted.chain(gone).collect(),
            ..HostCommit::default()
        };
        self.store.commit(commit).await.map_err(unreadable)?;
        Ok(left)
    }

    /// Forgets the drafts of turns that are over and whose finals were sent.
    async fn forget_placeholders(&self, left: &[LeftoverSession]) -> Result<(), MailboxError> {
        let unsent = self.outbox.unsent().await?;
        if unsent.len() >= OPEN_ROWS_MAX {
            // Which of them are to come is not known.
            return Ok(());
        }
        let unsent = unsent.into_iter().map(|it| it.entry.session);
        let to_come = left.iter().map(|it| it.session.clone()).chain(unsent);
        self.shown.forget_all_but(&to_come.collect()).await
    }

    /// Continues sessions that are not under suspicion.
    async fn take_up(&self, all: &[LeftoverSession]) -> Result<(), MailboxError> {
        let taken_up = all.iter();
        let taken_up = taken_up.map(|it| it.known.as_taken_up().row(&it.session));
        let commit = HostCommit {
            rows: taken_up.collect(),
            ..HostCommit::default()
        };
        self.store.commit(commit).await?;
        for left in all {
            self.session(&left.session).resume();
        }
        Ok(())
    }

    /// Returns the suspicions about sessions after the end of the last process.
    async fn suspicions(&self) -> Result<BTreeMap<SessionId, Suspicion>, MailboxError> {
        let rows = self.store.rows(SUSPECTS, "", AT_STAKE_MAX).await?;
        let rows = rows.into_iter();
        let known = rows.map(|(session, row)| (SessionId::new(session), Suspicion::of_row(&row)));
        let known = known.collect::<Vec<_>>();
        let at_stake = known.iter().filter(|(_, it)| it.is_at_stake());
        // Sessions that a session started are at stake together with it.
        let roots: BTreeSet<SessionId> = at_stake.map(|(session, _)| root(session)).collect();
        let was_alone = roots.len() == 1;
        let after = known.into_iter();
        Ok(after
            .map(|(session, it)| (session, it.after_end(was_alone)))
            .collect())
    }

    async fn left(
        &self,
        session: SessionId,
        known: Suspicion,
    ) -> Result<LeftoverSession, MailboxError> {
        let has_turn = host::begun(&*self.store, &session).await?.is_some();
        Ok(LeftoverSession {
            session,
            known,
            has_turn,
        })
    }

    pub(crate) async fn suspicion(&self, session: &SessionId) -> Result<Suspicion, MailboxError> {
        let row = self.store.row(SUSPECTS, session.as_str()).await?;
        Ok(row.map_or_else(Suspicion::default, |it| Suspicion::of_row(&it)))
    }

    /// Tries sessions one at a time, while all others wait for as long as that may take.
    async fn try_all(&self, suspects: Vec<LeftoverSession>, mut others: Vec<LeftoverSession>) {
        let alone_until = Instant::now() + TRIAL_MAX;
        for suspect in suspects {
            if self.drain.is_cancelled() {
                return;
            }
            if Instant::now() >= alone_until {
                self.end_trial(&mut others).await;
            }
            let tried = self.try_one(&suspect, alone_until).await;
            if let Err(error) = tried {
                let session = suspect.session.as_str();
                tracing::error!(%error, session, "a session does not go on");
            }
        }
        self.end_trial(&mut others).await;
    }

    async fn end_trial(&self, others: &mut Vec<LeftoverSession>) {
        self.trial.admit_all();
        if let Err(error) = self.take_up(&take(others)).await {
            tracing::error!(%error, "sessions do not go on");
        }
    }

    async fn try_one(
        &self,
        suspect: &LeftoverSession,
        alone_until: Instant,
    ) -> Result<(), MailboxError> {
        let session = &suspect.session;
        let is_alone = Instant::now() < alone_until;
        if is_alone && suspect.known.is_last_try() {
            self.trial.admit_none();
            sleep(QUIET).await;
        }
        if !suspect.known.is_enough() {
            let commit = HostCommit {
                rows: vec![suspect.known.as_taken_up().row(session)],
                ..HostCommit::default()
            };
            self.store.commit(commit).await?;
        }
        if is_alone {
            self.trial.admit_only(session);
        }
        let handle = self.session(session);
        handle.resume();
        let until = match is_alone {
            true => alone_until,
            false => Instant::now() + SUSPECT_TIMEOUT,
        };
        tokio::select! {
            () = handle.at_rest() => {}
            cleared = self.comes_further(session) => cleared?,
            () = sleep_until(until) => {}
        }
        Ok(())
    }

    /// Waits until a session got past what it was at when processes ended.
    async fn comes_further(&self, session: &SessionId) -> Result<(), MailboxError> {
        loop {
            // It may be at its next request already, which counts from none.
            if self.suspicion(session).await?.weight() == (0, 0) {
                return Ok(());
            }
            sleep(SUSPECT_LOOK).await;
        }
    }

    /// Clears all suspicions: this process ends because it was told to.
    pub(crate) async fn suspect_nobody(&self) -> Result<(), MailboxError> {
        let rows = self.store.rows(SUSPECTS, "", AT_STAKE_MAX).await?;
        let rows = rows.into_iter().map(|(session, _)| SessionId::new(session));
        let commit = HostCommit {
            rows: rows.map(|it| suspects::cleared(&it)).collect(),
            ..HostCommit::default()
        };
        self.store.commit(commit).await?;
        Ok(())
    }

    /// Puts aside what a session works on: its turn is stopped as soon as it continues, or its message taken back, where
    /// that had begun no turn.
    async fn put_aside(&self, left: &LeftoverSession) -> Result<(), MailboxError> {
        let mut commit = HostCommit::default();
        self.metrics.quarantined();
        let session = &left.session;
        let mut key = host::begun(&*self.store, session).await?.map(|it| it.key);
        if !left.has_turn {
            key = self.session(session).first_waiting().await;
            commit
                .withdrawn
                .extend(key.clone().map(|it| (session.clone(), it)));
            // The next message is given a chance of its own.
            commit.rows.push(suspects::cleared(session));
        }
        if let Some(chat) = self.chats.of_session(session).await? {
            let key = format!("quarantine:{session}:{}", key.unwrap_or_default());
            let text = "Your message repeatedly crashed the gateway, so it was quarantined. Rephrase it, or start a new conversation with /new.";
            commit.outbox.push(outgoing::notice(key, &chat.key, text));
        }
        self.store.commit(commit).await?;
        Ok(())
    }

    /// Tries sessions again and has questions expire, until `stop` fires.
    pub(crate) async fn keep_going(self: &Arc<Self>, stop: &CancellationToken) {
        let mut look = Instant::now();
        loop {
            for session in self.retries.take_due() {
                self.session(&session).resume();
            }
            if look <= Instant::now() {
                look = Instant::now() + EXPIRY_LOOK;
                self.expire().await;
                self.look_elsewhere().await;
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
