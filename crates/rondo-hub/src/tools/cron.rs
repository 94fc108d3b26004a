//! The tool `cron`: scheduled jobs.

use super::{Failure, Scope, arguments, failed, invalid, outcome};
use crate::cron::job::{
    self, GRACE_MINUTES, JOBS, JOBS_MAX, Job, MissedRuns, PROMPT_BYTES_MAX, RUNS, RunHistory,
};
use crate::cron::schedule::{Schedule, shown};
use crate::users::Role;
use async_trait::async_trait;
use rondo_core::clock::Clock;
use rondo_core::ports::HostRow;
use rondo_core::{Tool, ToolInvocation};
use rondo_types::{Commit, Concurrency, Recovery, TimeMs, ToolOutcome, ToolOutput, ToolSpec};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

/// The longest lateness that a run may have, in minutes: a week.
const GRACE_MINUTES_MAX: u32 = 7 * 24 * 60;

/// Jobs of a member at the most, and how often one may run.
const MEMBER_JOBS_MAX: usize = 20;
const MEMBER_MINUTES_MIN: u32 = 15;

/// Sets up, lists, pauses and removes scheduled jobs.
pub(super) struct Cron(pub(super) Arc<Scope>);

#[derive(Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
enum Args {
    Add(Box<New>),
    List,
    Remove { id: String },
    Pause { id: String },
    Resume { id: String },
}

#[derive(Deserialize)]
struct New {
    #[serde(default)]
    prompt: String,
    at: Option<String>,
    every_minutes: Option<u32>,
    cron: Option<String>,
    zone: Option<String>,
    missed: Option<MissedRuns>,
    grace_minutes: Option<u32>,
    tokens_per_day: Option<u64>,
}

#[async_trait]
impl Tool for Cron {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "cron".to_owned(),
            description: "Scheduled jobs: run a prompt later or repeatedly, in this chat. `add` takes a `prompt` \
                          and one of `at`, `every_minutes` and `cron`; `list`, and `remove`, `pause` and `resume` by `id`."
                .to_owned(),
            parameters: parameters(),
            concurrency: Concurrency::Exclusive,
            recovery: Recovery::Idempotent,
            ..ToolSpec::default()
        }
    }

    async fn call(&self, invocation: ToolInvocation) -> ToolOutcome {
        outcome(self.change(invocation).await)
    }
}

fn parameters() -> Value {
    json!({
        "type": "object",
        "properties": {
            "action": {"type": "string", "enum": ["add", "list", "remove", "pause", "resume"]},
            "prompt": {"type": "string", "description": "What to do, with everything needed to do it."},
            "at": {"type": "string", "description": "Once: `2026-03-01T09:00:00+01:00`, or `2026-03-01T09:00` with `zone`."},
            "every_minutes": {"type": "integer", "minimum": 2, "description": "Run every this many minutes from now on."},
            "cron": {"type": "string", "description": "Minute, hour, day of the month, month, day of the week, such as `0 9 * * MON-FRI`; needs `zone`."},
            "zone": {"type": "string", "description": "The IANA name of the time zone, such as `Europe/Berlin`."},
            "missed": {"type": "string", "enum": ["once", "skip"], "description": "How to handle a missed run: `once` (run it late) or `skip`."},
            "grace_minutes": {"type": "integer", "minimum": 1, "description": "How many minutes late it may run; default 360."},
            "tokens_per_day": {"type": "integer", "minimum": 1, "description": "Tokens per day; once they are used, it does not run again that day."},
            "id": {"type": "string", "description": "For `remove`, `pause` and `resume`."},
        },
        "required": ["action"],
    })
}

impl Cron {
    async fn change(&self, invocation: ToolInvocation) -> Result<ToolOutcome, Failure> {
        let args: Args = arguments(invocation.arguments)?;
        let now = Clock::system().now();
        match args {
            Args::Add(new) => self.add(*new, &invocation.idempotency_key, now).await,
            Args::List => self.list(now).await,
            Args::Remove { id } => {
                let job = self.job(&id).await?;
                let rows = vec![
                    HostRow::removed(JOBS, &job.id),
                    HostRow::removed(RUNS, &job.id),
                ];
                Ok(done(format!("`{id}` is removed."), rows))
            }
            Args::Pause { id } => {
                let mut job = self.job(&id).await?;
                job.paused = Some("it was paused in the chat".to_owned());
                Ok(done(format!("`{id}` is paused."), vec![job.row()]))
            }
            Args::Resume { id } => self.resume(&id, now).await,
        }
    }

    async fn add(&self, new: New, call: &str, now: TimeMs) -> Result<ToolOutcome, Failure> {
        if new.prompt.trim().is_empty() || new.prompt.len() > PROMPT_BYTES_MAX {
            return Err(invalid(format!(
                "a `prompt` has 1 to {PROMPT_BYTES_MAX} bytes"
            )));
        }
        let grace_minutes = new.grace_minutes.unwrap_or(GRACE_MINUTES);
        if !(1..=GRACE_MINUTES_MAX).contains(&grace_minutes) {
            return Err(invalid(format!(
                "`grace_minutes` is from 1 to {GRACE_MINUTES_MAX}"
            )));
        }
        let schedule = schedule(&new, now).map_err(invalid)?;
        let next = schedule.next_after(now, now).map_err(invalid)?;
        let core = self.0.core()?;
        let jobs = job::all(&*core.store).await.map_err(failed)?;
        let (of_all, own) = (jobs.len(), self.own(jobs).len());
        let is_owner = self.0.actor.role == Role::Owner;
        if of_all >= JOBS_MAX || (!is_owner && own >= MEMBER_JOBS_MAX) {
            let count = of_all.min(if is_owner { JOBS_MAX } else { own });
            return Err(failed(format!(
                "there are {count} jobs already; remove some"
            )));
        }
        if !is_owner && new.every_minutes.is_some_and(|it| it < MEMBER_MINUTES_MIN) {
            return Err(invalid(format!(
                "a member's job runs every {MEMBER_MINUTES_MIN} minutes at most"
            )));
        }
        let job = Job {
            id: Job::id_of(call),
            prompt: new.prompt,
            schedule,
            chat: self.0.chat.key.clone(),
            actor: self.0.actor.id.clone(),
            from_outside: self.0.has_outside_text(&core).await?,
            created: now,
            next,
            missed: new.missed.unwrap_or_default(),
            grace_minutes,
            tokens_per_day: new.tokens_per_day,
            paused: None,
        };
        let next = next.map_or_else(|| "never".to_owned(), shown);
        let text = format!(
            "`{}` runs {}, next at {next}.",
            job.id,
            job.schedule.in_words()
        );
        Ok(done(text, vec![job.row()]))
    }

    async fn list(&self, now: TimeMs) -> Result<ToolOutcome, Failure> {
        let core = self.0.core()?;
        let mut listed = Vec::new();
        for job in self.own(job::all(&*core.store).await.map_err(failed)?) {
            let runs = RunHistory::of(&*core.store, &job.id)
                .await
                .map_err(failed)?;
            listed.push(json!({
                "id": job.id,
                "prompt": job.prompt,
                "when": job.schedule.in_words(),
                "next": job.next.map(shown),
                "paused": job.paused,
                "failures": runs.as_ref().map_or(0, |it| it.failures),
                "tokens_today": runs.map_or(0, |it| it.tokens_on(now)),
            }));
        }
        Ok(ToolOutcome::json(
            json!({"jobs": listed, "now": shown(now)}),
        ))
    }

    async fn resume(&self, id: &str, now: TimeMs) -> Result<ToolOutcome, Failure> {
        let mut job = self.job(id).await?;
        job.paused = None;
        job.next = job.schedule.next_after(job.created, now).map_err(failed)?;
        if job.next.is_none() {
            return Err(failed("its time is past: add it again"));
        }
        let core = self.0.core()?;
        let runs = RunHistory::of(&*core.store, id).await.map_err(failed)?;
        // It gets as many tries as one that is new.
        let runs = RunHistory {
            failures: 0,
            ..runs.unwrap_or_default()
        };
        let next = job.next.map_or_else(String::new, shown);
        let rows = vec![job.row(), runs.row(RUNS, id)];
        Ok(done(format!("`{id}` runs again, next at {next}."), rows))
    }

    /// Returns a job of this chat.
    async fn job(&self, id: &str) -> Result<Job, Failure> {
        let core = self.0.core()?;
        let jobs = job::all(&*core.store).await.map_err(failed)?;
        let job = self.own(jobs).into_iter().find(|job| job.id == id);
        job.ok_or_else(|| failed(format!("this chat has no job `{id}`")))
    }

    fn own(&self, mut jobs: Vec<Job>) -> Vec<Job> {
        jobs.retain(|job| job.chat == self.0.chat.key);
        jobs
    }
}

fn schedule(new: &New, now: TimeMs) -> Result<Schedule, String> {
    let zone = new.zone.as_deref();
    match (&new.at, new.every_minutes, &new.cron) {
        (Some(at), None, None) => Schedule::once(at, zone, now),
        (None, Some(minutes), None) => Schedule::every(minutes),
        (None, None, Some(expression)) => Schedule::cron(expression, zone, now),
        _ => Err("give one of `at`, `every_minutes` and `cron`".to_owned()),
    }
}

/// A change that is committed with the result of its call.
fn done(text: String, rows: Vec<HostRow>) -> ToolOutcome {
    ToolOutcome::Ok(ToolOutput {
        value: Value::String(text),
        effects: Box::new(Commit {
            rows,
            ..Commit::default()
        }),
        ..ToolOutput::default()
    })
}
