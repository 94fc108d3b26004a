//! Looks from time to time which jobs are due, and submits them.

use super::heartbeat;
use super::job::{self, FAILURES_MAX, JOBS, Job, MissedRuns, RUNS, RunHistory};
use super::schedule::shown;
use crate::authorise::{Action, authorise};
use crate::chats::Chat;
use crate::hub::Core;
use crate::outgoing;
use rondo_core::clock::Clock;
use rondo_core::ports::{HostCommit, HostRow, MailBody, MailboxError, NewMail};
use rondo_core::session::Delivery;
use rondo_types::{Message, SessionId, TimeMs};
use std::time::Duration;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// How often it looks.
const LOOK: Duration = Duration::from_secs(10);
/// Runs that are submitted at a look, so that those that were missed do not all begin at once.
const RUNS_PER_LOOK: usize = 5;
/// A run that is later than this was missed.
const ON_TIME: Duration = Duration::from_mins(1);

impl Core {
    /// Submits what is due, until `stop` fires.
    pub(crate) async fn keep_time(&self, stop: &CancellationToken) {
        while !stop.is_cancelled() {
            let now = Clock::system().now();
            if let Err(error) = self.run_due(now).await {
                tracing::error!(%error, "failed to check for due jobs");
            }
            tokio::select! {
                () = sleep(LOOK) => {}
                () = stop.cancelled() => return,
            }
        }
    }

    /// Submits what is due at a time.
    pub(crate) async fn run_due(&self, now: TimeMs) -> Result<(), MailboxError> {
        let mut left = RUNS_PER_LOOK;
        for job in job::all(&*self.store).await? {
            if left == 0 {
                return Ok(());
            }
            if job.paused.is_none() && job.next.is_some_and(|next| next <= now) {
                left -= usize::from(self.run_job(job, now).await?);
            }
        }
        heartbeat::beat(self, now).await
    }

    /// Handles a job that is due. Returns whether it runs.
    async fn run_job(&self, job: Job, now: TimeMs) -> Result<bool, MailboxError> {
        let Some(instant) = job.next else {
            return Ok(false);
        };
        let runs = RunHistory::of(&*self.store, &job.id)
            .await?
            .unwrap_or_default();
        let chat = match self.may_run(&job, &runs).await? {
            Ok(chat) => chat,
            Err(why) => return self.pause(job, why).await.map(|()| false),
        };
        let next = match job.schedule.next_after(job.created, now) {
            Ok(next) => next,
            Err(why) => return self.pause(job, why).await.map(|()| false),
        };
        let after = Job { next, ..job };
        if let Some(why) = not_now(&after, &runs, instant, now) {
            return self.pass_over(&after, instant, &why).await.map(|()| false);
        }
        let session = chat.session();
        let key = after.key(instant);
        let commit = HostCommit {
            event: Some(key.clone()),
            mail: vec![mail(
                &session,
                key,
                &after.actor,
                (prompt(&after, instant), after.from_outside),
                now,
            )],
            rows: vec![kept(&after), runs.begun(instant).row(RUNS, &after.id)],
            ..HostCommit::default()
        };
        let is_first = self.store.commit(commit).await?;
        self.wake(&session);
        Ok(is_first)
    }

    /// Returns the chat that a job runs in, or the reason to pause it.
    async fn may_run(
        &self,
        job: &Job,
        runs: &RunHistory,
    ) -> Result<Result<Chat, String>, MailboxError> {
        let Some(actor) = self.users.actor(&job.actor).await? else {
            return Ok(Err("its creator is no longer a user".to_owned()));
        };
        let Some(chat) = self.chats.find_open(&job.chat).await? else {
            return Ok(Err("its chat is gone".to_owned()));
        };
        if let Err(denied) = authorise(&actor, Action::Schedule, chat.kind) {
            return Ok(Err(format!("{denied}, which its creator no longer is")));
        }
        Ok(match runs.failures >= FAILURES_MAX {
            true => Err(format!("it failed {FAILURES_MAX} times in a row")),
            false => Ok(chat),
        })
    }

    async fn pause(&self, job: Job, why: String) -> Result<(), MailboxError> {
        let text = format!("I paused the scheduled job `{}`: {why}.", job.id);
        let instant = job.next.unwrap_or_default();
        let paused = Job {
            paused: Some(why),
            ..job
        };
        self.note(&paused, instant, text, "paused").await
    }

    /// Moves to the next time, and says so once.
    async fn pass_over(&self, job: &Job, instant: TimeMs, why: &str) -> Result<(), MailboxError> {
        let text = format!(
            "I did not run the scheduled job `{}` of {}: {why}.",
            job.id,
            shown(instant)
        );
        self.note(job, instant, text, "passed").await
    }

    async fn note(
        &self,
        job: &Job,
        instant: TimeMs,
        text: String,
        what: &str,
    ) -> Result<(), MailboxError> {
        let key = format!("{}:{what}", job.key(instant));
        let commit = HostCommit {
            outbox: vec![outgoing::notice(key, &job.chat, text)],
            rows: vec![kept(job)],
            ..HostCommit::default()
        };
        self.store.commit(commit).await.map(drop)
    }
}

/// Returns the row of a job; one that never comes again is removed, unless it is paused.
fn kept(job: &Job) -> HostRow {
    match job.next.is_none() && job.paused.is_none() {
        true => HostRow::removed(JOBS, &job.id),
        false => job.row(),
    }
}

/// Returns why a run is skipped; `None` if it must run.
fn not_now(job: &Job, runs: &RunHistory, instant: TimeMs, now: TimeMs) -> Option<String> {
    let late = now.0.saturating_sub(instant.0);
    let is_missed = u128::from(late) > ON_TIME.as_millis();
    let grace = u64::from(job.grace_minutes) * 60_000;
    if is_missed && (job.missed == MissedRuns::Skip || late > grace) {
        return Some("I was not running at that time".to_owned());
    }
    if !runs.is_over && runs.latest != TimeMs::default() {
        return Some("its previous run has not ended".to_owned());
    }
    let used = runs.tokens_on(now);
    let is_spent = job.tokens_per_day.is_some_and(|most| used >= most);
    is_spent.then(|| format!("it has used its tokens for today ({used})"))
}

fn prompt(job: &Job, instant: TimeMs) -> String {
    let at = rondo_runtime::service::local_time(instant);
    format!(
        "[{at}, scheduled job `{}`, {}]\n{}",
        job.id,
        job.schedule.in_words(),
        job.prompt
    )
}

/// Builds the mail that begins a turn without a message of a user. `from_outside` is whether the conversation that
/// its text comes from holds text from outside.
pub(crate) fn mail(
    session: &SessionId,
    key: String,
    actor: &str,
    (text, from_outside): (String, bool),
    at_ms: TimeMs,
) -> NewMail {
    let mut message = Message::user(text);
    message.from_outside = from_outside;
    NewMail {
        session: session.clone(),
        key,
        actor: actor.to_owned(),
        at_ms,
        body: MailBody::Message {
            message,
            delivery: Delivery::Queue,
        },
    }
}
