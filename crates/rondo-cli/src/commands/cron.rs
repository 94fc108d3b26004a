//! `rondo cron`: the scheduled jobs of chats, also while the gateway runs.

use super::report::{current_dir, write_failed};
use crate::cli::{CronArgs, CronCommand};
use crate::error::{CliError, Result};
use crate::executor;
use crate::exit::Exit;
use crate::output::Output;
use rondo_core::shown;
use rondo_hub::cron::job::{self, Job};
use rondo_hub::cron::schedule::shown as time;
use rondo_runtime::Layer;
use rondo_runtime::env::Env;
use rondo_runtime::sessions;
use rondo_runtime::settings::Settings;
use rondo_types::text::shortened;
use serde_json::json;
use std::fmt::Write as _;

/// Characters of a job's prompt that are listed.
const PROMPT_CHARS_MAX: usize = 60;

/// Runs the command.
///
/// # Errors
/// When the journal cannot be used.
pub(super) fn run(args: &CronArgs, env: Env, output: &Output) -> Result<Exit> {
    let settings = Settings::load(env, current_dir()?, Layer::default(), output)?;
    let store = sessions::open(&settings)?;
    let jobs = executor::of_this_thread()?.block_on(job::all(&*store));
    let jobs = jobs.map_err(|err| CliError::caused(Exit::Journal, err))?;
    match args.command {
        CronCommand::List { json: true } => output.json(&lines(&jobs)),
        CronCommand::List { json: false } => output.words(&list(&jobs)),
    }
    .map_err(write_failed)?;
    Ok(Exit::Answer)
}

fn list(jobs: &[Job]) -> String {
    let mut text = String::new();
    for job in jobs {
        let when = match (&job.paused, job.next) {
            (Some(why), _) => format!("paused: {}", shown::readable_line(why)),
            (None, Some(next)) => format!("next at {}", time(next)),
            (None, None) => "over".to_owned(),
        };
        let chat = format!("{}:{}", job.chat.channel, job.chat.chat_id);
        let _ = writeln!(
            text,
            "{}  {}  {}, {when}: {}",
            job.id,
            shown::readable_line(&chat),
            job.schedule.in_words(),
            shortened(&shown::readable_line(&job.prompt), PROMPT_CHARS_MAX)
        );
    }
    match text.is_empty() {
        true => "no scheduled jobs\n".to_owned(),
        false => text,
    }
}

fn lines(jobs: &[Job]) -> String {
    let lines = jobs.iter().map(|job| {
        let line = json!({
            "id": job.id,
            "channel": job.chat.channel,
            "chat": job.chat.chat_id,
            "by": job.actor,
            "when": job.schedule.in_words(),
            "next": job.next.map(time),
            "paused": job.paused,
            "prompt": job.prompt,
        });
        format!("{line}\n")
    });
    lines.collect()
}
