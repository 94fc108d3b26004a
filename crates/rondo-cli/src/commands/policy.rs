//! `rondo policy`: shows the rules of calls, and what they say about a command.

use super::ask::working_directory;
use super::report::{current_dir, write_failed};
use crate::cli::{PolicyArgs, PolicyCommand};
use crate::error::Result;
use crate::exit::Exit;
use crate::output::Output;
use rondo_core::shown;
use rondo_policy::Judged;
use rondo_policy::rules::{Decision, GrantSpec, Rule};
use rondo_runtime::Layer;
use rondo_runtime::env::Env;
use rondo_runtime::policy;
use rondo_runtime::profiles;
use rondo_runtime::sandboxed::{self, UNDO};
use rondo_runtime::settings::Settings;
use rondo_runtime::user_file::UserFile;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::Path;

/// Source of the denials that are part of the program.
const BUILT_IN: &str = "built in";
/// The widest column of commands, in characters.
const COLUMN_MAX: usize = 40;

/// Runs the command.
pub(super) fn run(args: &PolicyArgs, env: Env, output: &Output) -> Result<Exit> {
    let settings = Settings::load(env, current_dir()?, Layer::default(), output)?;
    let (text, is_json) = match &args.command {
        PolicyCommand::Check {
            line,
            profile,
            json,
        } => {
            let judged = policy::explain(&settings, profile.as_deref(), line)?;
            match json {
                true => (checked_json(&judged), true),
                false => (checked(&judged), false),
            }
        }
        PolicyCommand::List { profile, json } => {
            let rows = in_force(&settings, profile.as_deref())?;
            match json {
                true => (listed_json(&rows), true),
                false => (listed(&rows), false),
            }
        }
        PolicyCommand::Sandbox { list: true, .. } => {
            let folders = settings.values.sandboxed_folders.iter().flatten();
            let lines = folders.map(|it| format!("{}\n", it.display()));
            (lines.collect(), false)
        }
        PolicyCommand::Sandbox {
            directory, revoke, ..
        } => {
            let directory = working_directory(directory.as_deref())?;
            let text = match revoke {
                true => ask_again(&directory, &settings)?,
                false => sandbox(&directory, &settings)?,
            };
            (text, false)
        }
    };
    let written = match is_json {
        true => output.json(&text),
        false => output.stdout(&text),
    };
    written.map_err(write_failed)?;
    Ok(Exit::Answer)
}

/// Runs commands in a folder in the sandbox without a question from now on.
fn sandbox(directory: &Path, settings: &Settings) -> Result<String> {
    let folder = sandboxed::folder(directory, settings)?;
    let mut file = UserFile::read(&settings.paths)?;
    if !file.sandbox(&folder)? {
        return Ok(format!(
            "commands in `{}` run in the sandbox without a question already\n",
            folder.display()
        ));
    }
    file.save()?;
    Ok(format!(
        "commands in `{}` run in the sandbox without a question from now on; `{UNDO}` there undoes it\n",
        folder.display()
    ))
}

/// Asks about commands in a folder again: it and the folders above it are removed from the user's settings.
fn ask_again(directory: &Path, settings: &Settings) -> Result<String> {
    let folders = settings.values.sandboxed_folders.as_deref();
    let covering = sandboxed::covering(folders.unwrap_or_default(), directory);
    if covering.is_empty() {
        let mode = settings.source_of("approval");
        let by = mode.map_or(String::new(), |it| format!("; `approval` is set by {it}"));
        return Ok(format!(
            "nothing to undo: you have not chosen the sandbox for commands in `{}`{by}\n",
            directory.display()
        ));
    }
    let mut file = UserFile::read(&settings.paths)?;
    let mut text = String::new();
    for folder in &covering {
        file.unsandbox(folder)?;
        let _ = writeln!(
            text,
            "commands in `{}` need approval again",
            folder.display()
        );
    }
    file.save()?;
    Ok(text)
}

/// A line for each simple command, and one for the whole if that says more.
fn checked(judged: &[Judged]) -> String {
    let Some((whole, each)) = judged.split_last() else {
        return String::new();
    };
    let is_same = |one: &Judged| one.basis == whole.basis && one.reason == whole.reason;
    let says_more = !matches!(each, [one] if is_same(one));
    let label = "all of it".to_owned();
    let rows = each.iter().map(|it| (shown::line(&it.command), it));
    let rows = rows.chain(says_more.then_some((label, whole)));
    let rows: Vec<(String, &Judged)> = rows.collect();
    let width = rows.iter().map(|(name, _)| name.chars().count()).max();
    let width = width.unwrap_or(0).min(COLUMN_MAX);
    let mut text = String::new();
    for (name, it) in rows {
        let (decision, rule) = (it.decision.to_string(), shown::line(&it.basis.to_string()));
        let reason = shown::line(&it.reason);
        let _ = writeln!(text, "{decision:5}  {name:width$}  {rule}: {reason}");
    }
    text
}

fn checked_json(judged: &[Judged]) -> String {
    let as_json = |it: &Judged| {
        json!({
            "command": it.command,
            "decision": it.decision,
            "rule": it.basis.to_string(),
            "reason": it.reason,
        })
    };
    let (whole, each) = match judged.split_last() {
        Some((whole, each)) => (as_json(whole), each.iter().map(as_json).collect()),
        None => (Value::Null, Vec::new()),
    };
    format!("{:#}\n", json!({"command": whole, "each": each}))
}

/// A line of the list, and the same as data.
struct Row {
    decision: Decision,
    subject: String,
    origin: String,
    data: Value,
}

impl Row {
    fn new(decision: Decision, subject: &str, origin: &str, data: Value) -> Self {
        let mut row = Self {
            decision,
            subject: shown::line(subject),
            origin: shown::line(origin),
            data,
        };
        if let Some(fields) = row.data.as_object_mut() {
            fields.insert("decision".to_owned(), json!(decision));
            fields.insert("origin".to_owned(), json!(origin));
        }
        row
    }
}

/// Returns the rules in force and their origins: those of the files and of the profile, the user's permanent
/// permissions, the settings and the denials that are built in.
fn in_force(settings: &Settings, profile: Option<&str>) -> Result<Vec<Row>> {
    let profile = profile.unwrap_or(settings.profile_name());
    let profile = profiles::resolve(settings, profile)?.profile;
    let rules = policy::under(&profile, settings)?;
    let own = rules.rules().iter().map(row_of);
    let grants = rules.grants().iter().map(|grant| {
        let data = json!({"grant": GrantSpec::of(grant)});
        Row::new(
            Decision::Allow,
            &grant.to_string(),
            "you, permanently",
            data,
        )
    });
    let values = &settings.values;
    let tools = |list: &Option<Vec<String>>, decision, name: &'static str| -> Vec<Row> {
        let origin = settings.source_of(name).unwrap_or(name);
        let patterns = list.iter().flatten();
        let row = |it: &String| Row::new(decision, it, origin, json!({"pattern": it}));
        patterns.map(row).collect()
    };
    let allowed = tools(&values.allowed_tools, Decision::Allow, "allowed_tools");
    let denied = tools(&values.disallowed_tools, Decision::Deny, "disallowed_tools");
    let built_in = rules.denials().map(|denial| {
        let data = json!({"id": denial.id, "message": denial.what});
        Row {
            origin: format!("{BUILT_IN}: {}", denial.what),
            ..Row::new(Decision::Deny, denial.id, BUILT_IN, data)
        }
    });
    let folders = values.sandboxed_folders.iter().flatten();
    let folders = folders.map(|folder| {
        let subject = format!("commands in {}, in the sandbox", folder.display());
        let data = json!({"sandboxed_folder": folder});
        Row::new(Decision::Allow, &subject, "you, permanently", data)
    });
    let grants = grants.chain(folders);
    let rows = own.chain(grants).chain(allowed).chain(denied);
    Ok(rows.chain(built_in).collect())
}

fn row_of(rule: &Rule) -> Row {
    let mut data = json!(rule.spec());
    if let (Some(fields), Some(set)) = (data.as_object_mut(), rule.set()) {
        fields.insert("rule_set".to_owned(), json!(set));
    }
    Row::new(rule.spec().decision, &rule.subject(), rule.origin(), data)
}

fn listed(rows: &[Row]) -> String {
    let width = rows.iter().map(|row| row.subject.chars().count()).max();
    let width = width.unwrap_or(0).min(COLUMN_MAX);
    let mut text = String::new();
    for row in rows {
        let (decision, subject, origin) = (row.decision.to_string(), &row.subject, &row.origin);
        let _ = writeln!(text, "{decision:5}  {subject:width$}  # {origin}");
    }
    text
}

fn listed_json(rows: &[Row]) -> String {
    let all: Vec<&Value> = rows.iter().map(|row| &row.data).collect();
    format!("{:#}\n", json!(all))
}
