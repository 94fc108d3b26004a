//! `rondo test`: recorded sessions as a regression suite.

mod junit;

use super::replay::{RecordedSession, changes, difference_line, play};
use super::report::{current_dir, write_failed};
use super::script::{changed_script, replayed};
use crate::cli::TestArgs;
use crate::error::{CliError, Result};
use crate::exit::Exit;
use crate::output::Output;
use rondo_core::replay::Changes;
use rondo_runtime::Layer;
use rondo_runtime::env::Env;
use rondo_runtime::settings::Settings;
use rondo_script::Script;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The ending of exported files.
const EXTENSION: &str = "jsonl";
/// Files of one run; more are most likely not what was meant.
const FILES_MAX: usize = 10_000;

/// Changes for all replays.
struct AllChanges {
    of_turns: Changes,
    /// Script in place of each recorded one.
    script: Option<Script>,
}

/// One recorded session, replayed.
struct Case {
    /// The file's name.
    name: String,
    verdict: Verdict,
    took: Duration,
}

enum Verdict {
    /// As it was recorded.
    Same { turns: usize, requests: usize },
    /// A script, which is as it was recorded.
    SameScript { calls: usize },
    /// Not as it was recorded: each difference in a line.
    Changed {
        summary: String,
        differences: Vec<String>,
    },
    /// It cannot be read or replayed.
    Unreadable(String),
}

/// Runs the command.
pub(super) fn run(args: &TestArgs, env: Env, output: &Output) -> Result<Exit> {
    let flags = Layer {
        system_prompt: args.changes.system_prompt.clone(),
        ..Layer::default()
    };
    let settings = Settings::load(env, current_dir()?, flags, output)?;
    let changes = AllChanges {
        of_turns: changes(&args.changes, &settings)?,
        script: changed_script(&args.changes)?,
    };
    let path = settings.directory.join(&args.path);
    let mut cases = Vec::new();
    for file in files(&path)? {
        let case = Case::run(&file, &changes, &settings);
        let line = case.line();
        output.stdout(&line).map_err(write_failed)?;
        cases.push(case);
    }
    output.stdout(&summary(&cases)).map_err(write_failed)?;
    if let Some(report) = &args.junit {
        let report = settings.directory.join(report);
        fs::write(&report, junit::report(&cases)).map_err(|err| {
            let context = format!("failed to write the report `{}`", report.display());
            CliError::caused(Exit::Error, anyhow::Error::new(err).context(context))
        })?;
    }
    Ok(exit(&cases))
}

/// Lists the exported sessions of a directory by name.
fn files(path: &Path) -> Result<Vec<PathBuf>> {
    if path.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let failed = |err: std::io::Error| {
        let context = format!("failed to list `{}`", path.display());
        CliError::caused(Exit::Input, anyhow::Error::new(err).context(context))
    };
    let mut files = Vec::new();
    for entry in fs::read_dir(path).map_err(failed)?.take(FILES_MAX) {
        let file = entry.map_err(failed)?.path();
        if file.extension().is_some_and(|it| it == EXTENSION) && file.is_file() {
            files.push(file);
        }
    }
    if files.is_empty() {
        let message = format_args!("there is no exported session in `{}`", path.display());
        return Err(CliError::new(Exit::Input, message)
            .hint("`rondo session export ID -o NAME.jsonl` writes one"));
    }
    files.sort();
    Ok(files)
}

impl Case {
    fn run(file: &Path, changes: &AllChanges, settings: &Settings) -> Self {
        let name = file.file_name().unwrap_or_default();
        let started = Instant::now();
        let verdict = Tally::of(file, changes, settings)
            .map_or_else(|error| Verdict::Unreadable(error.line()), Tally::verdict);
        Self {
            name: name.to_string_lossy().into_owned(),
            verdict,
            took: started.elapsed(),
        }
    }

    fn line(&self) -> String {
        let name = &self.name;
        match &self.verdict {
            Verdict::Same { turns, requests } => {
                format!("ok       {name}: turns {turns}, requests {requests}\n")
            }
            Verdict::SameScript { calls } => format!("ok       {name}: script, calls {calls}\n"),
            Verdict::Changed { summary, .. } => format!("changed  {name}: {summary}\n"),
            Verdict::Unreadable(why) => format!("failed   {name}: {why}\n"),
        }
    }
}

/// Counts over the turns of a session.
#[derive(Default)]
struct Tally {
    turns: usize,
    requests: usize,
    changed: usize,
    differences: Vec<String>,
    /// Calls, if it is a script's.
    calls: Option<usize>,
}

impl Tally {
    fn of(file: &Path, changes: &AllChanges, settings: &Settings) -> Result<Self> {
        let mut tally = Self::default();
        let recorded = RecordedSession::from_file(file)?;
        if let Some(script) = replayed(recorded.script()?, changes.script.as_ref(), settings)? {
            tally.calls = Some(script.calls);
            tally.differences = script.differences;
            return Ok(tally);
        }
        play(&recorded, &changes.of_turns, |turn, _| {
            tally.turns += 1;
            tally.requests += turn.requests;
            tally.changed += turn.requests_changed();
            let lines = turn.differences.iter().map(difference_line);
            tally.differences.extend(lines);
            Ok(())
        })?;
        Ok(tally)
    }

    fn verdict(self) -> Verdict {
        let (turns, requests) = (self.turns, self.requests);
        let Some(first) = self.differences.first() else {
            return match self.calls {
                Some(calls) => Verdict::SameScript { calls },
                None => Verdict::Same { turns, requests },
            };
        };
        let summary = match self.changed {
            0 => first.clone(),
            changed => format!("{changed} of {requests} requests differ; {first}"),
        };
        Verdict::Changed {
            summary,
            differences: self.differences,
        }
    }
}

fn count(cases: &[Case], is: impl Fn(&Verdict) -> bool) -> usize {
    cases.iter().filter(|case| is(&case.verdict)).count()
}

fn changed(cases: &[Case]) -> usize {
    count(cases, |it| matches!(it, Verdict::Changed { .. }))
}

fn unreadable(cases: &[Case]) -> usize {
    count(cases, |it| matches!(it, Verdict::Unreadable(_)))
}

fn summary(cases: &[Case]) -> String {
    let (changed, unreadable) = (changed(cases), unreadable(cases));
    let same = cases.len() - changed - unreadable;
    let sessions = if cases.len() == 1 {
        "session"
    } else {
        "sessions"
    };
    format!(
        "{} {sessions}: {same} as recorded, {changed} changed, {unreadable} failed\n",
        cases.len()
    )
}

fn exit(cases: &[Case]) -> Exit {
    match (changed(cases), unreadable(cases)) {
        (0, 0) => Exit::Answer,
        (0, _) => Exit::Input,
        _ => Exit::Differs,
    }
}
