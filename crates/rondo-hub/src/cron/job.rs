//! A job, and how its runs went.

use super::schedule::Schedule;
use crate::channel::ChatKey;
use crate::chats;
use data_encoding::HEXLOWER;
use rondo_core::ports::{HostRow, HostStore, MailboxError};
use rondo_types::{StopReason, TimeMs};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// The table of jobs, by their ids.
pub(crate) const JOBS: &str = "cron";
/// The table of how their runs went, by their ids.
pub(crate) const RUNS: &str = "cron_run";
/// Jobs that there may be.
pub const JOBS_MAX: usize = 500;
/// The bound on a job's prompt, in bytes.
pub const PROMPT_BYTES_MAX: usize = 8 << 10;
/// Runs in a row that may fail before a job is paused.
pub const FAILURES_MAX: u32 = 5;
/// How late a run of [`MissedRuns::Once`] may be, in minutes, if the job does not say: six hours.
pub const GRACE_MINUTES: u32 = 6 * 60;
/// Prefix of the keys of mail of jobs.
const KEY: &str = "cron:";
/// Digits of a job's id.
const ID_DIGITS: usize = 8;

/// Scheduled job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// Id of the job.
    pub id: String,
    /// Prompt for the agent.
    pub prompt: String,
    /// Times of the runs.
    pub schedule: Schedule,
    /// Chat of the job; it never changes.
    pub chat: ChatKey,
    /// Creator of the job, as `channel:id`.
    pub actor: String,
    /// Set if the conversation in which it was made held text from outside.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub from_outside: bool,
    /// When it was made.
    pub created: TimeMs,
    /// When it runs next; `None` if that is never.
    pub next: Option<TimeMs>,
    /// Treatment of a run that was missed because the hub did not run.
    pub missed: MissedRuns,
    /// How late a run may be, in minutes, so that it still counts.
    pub grace_minutes: u32,
    /// Tokens that its runs may use on a day in UTC; a day on which they have used as many sees no further run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_per_day: Option<u64>,
    /// Why it does not run; `None` if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<String>,
}

/// Treatment of a missed run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MissedRuns {
    /// Skips it.
    Skip,
    /// It runs late, within its grace: once, however many were missed.
    #[default]
    Once,
}

impl Job {
    /// Returns the id of the job that a call makes: the same call makes the same one.
    #[must_use]
    pub fn id_of(call: &str) -> String {
        let mut id = HEXLOWER.encode(&Sha256::digest(call.as_bytes()));
        id.truncate(ID_DIGITS);
        id
    }

    /// Returns the key of a run, by which it is submitted once.
    pub(crate) fn key(&self, instant: TimeMs) -> String {
        format!("{KEY}{}:{}", self.id, instant.0)
    }

    /// Returns the row that holds it.
    pub(crate) fn row(&self) -> HostRow {
        HostRow::set(
            JOBS,
            &self.id,
            serde_json::to_string(self).unwrap_or_default(),
        )
    }
}

/// Returns the job of a run, by the key of its mail.
pub(crate) fn job_of_key(key: &str) -> Option<&str> {
    key.strip_prefix(KEY)?.split(':').next()
}

/// How the runs of a job went.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RunHistory {
    /// The instant of the latest run.
    pub latest: TimeMs,
    /// Set once that has ended.
    pub is_over: bool,
    /// Runs in a row that failed.
    pub failures: u32,
    /// The day in UTC that `tokens` are of, as days since 1970.
    #[serde(default)]
    pub day: u64,
    /// Tokens that runs have used on that day.
    #[serde(default)]
    pub tokens: u64,
}

impl RunHistory {
    /// Reads them; none if it never ran.
    ///
    /// # Errors
    /// When the storage fails.
    pub async fn of(store: &dyn HostStore, job: &str) -> Result<Option<Self>, MailboxError> {
        chats::read(store, RUNS, job).await
    }

    /// Returns the tokens that were used on the day of `now`.
    #[must_use]
    pub fn tokens_on(&self, now: TimeMs) -> u64 {
        match self.day == day(now) {
            true => self.tokens,
            false => 0,
        }
    }

    /// Returns them with a run that begins.
    #[must_use]
    pub fn begun(&self, instant: TimeMs) -> Self {
        Self {
            latest: instant,
            is_over: false,
            ..self.clone()
        }
    }

    /// Returns them with a run that ended so.
    #[must_use]
    pub fn ended(&self, stop: StopReason, tokens: u64, now: TimeMs) -> Self {
        Self {
            is_over: true,
            failures: match stop {
                StopReason::Complete => 0,
                // A person who stops it has not found it broken.
                StopReason::Cancelled => self.failures,
                _ => self.failures.saturating_add(1),
            },
            day: day(now),
            tokens: self.tokens_on(now).saturating_add(tokens),
            ..self.clone()
        }
    }

    pub(crate) fn row(&self, table: &str, id: &str) -> HostRow {
        HostRow::set(table, id, serde_json::to_string(self).unwrap_or_default())
    }
}

fn day(time: TimeMs) -> u64 {
    time.0 / (24 * 60 * 60 * 1000)
}

/// Returns all jobs that can be read, by their ids.
///
/// # Errors
/// When the storage fails.
pub async fn all(store: &dyn HostStore) -> Result<Vec<Job>, MailboxError> {
    let rows = store.rows(JOBS, "", JOBS_MAX).await?;
    let jobs = rows.into_iter().filter_map(|(id, json)| {
        let job = serde_json::from_str(&json);
        let problem = |error: &serde_json::Error| {
            tracing::error!(job = id, %error, "a job cannot be read and does not run");
        };
        job.inspect_err(problem).ok()
    });
    Ok(jobs.collect())
}
