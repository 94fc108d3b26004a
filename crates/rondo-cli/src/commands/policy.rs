//! `rondo policy`: shows the rules of calls, and what they say about a command.

use super::report::{current_dir, write_failed};
use crate::cli::{PolicyArgs, PolicyCommand};
use crate::error::Result;
use crate::exit::Exit;
use crate::output::Output;
use rondo_core::shown;
use rondo_policy::Judged;
use rondo_policy::rules::Rules;
use rondo_runtime::Layer;
use rondo_runtime::env::Env;
use rondo_runtime::policy;
use rondo_runtime::settings::Settings;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Where the denials come from that are part of the program.
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
        PolicyCommand::List { json: true } => (listed_json(&settings.rules), true),
        PolicyCommand::List { json: false } => (listed(&settings.rules), false),
    };
    let written = match is_json {
        true => output.json(&text),
        false => output.stdout(&text),
    };
    written.map_err(write_failed)?;
    Ok(Exit::Answer)
}

/// A line for each simple command, and one for the whole where that says more.
fn checked(judged: &[Judged]) -> String {
    let Some((whole, each)) = judged.split_last() else {
        return String::new();
    };
    let is_same = |one: &Judged| one.rule == whole.rule && one.reason == whole.reason;
    let says_more = !matches!(each, [one] if is_same(one));
    let label = "all of it".to_owned();
    let rows = each.iter().map(|it| (shown::line(&it.command), it));
    let rows = rows.chain(says_more.then_some((label, whole)));
    let rows: Vec<(String, &Judged)> = rows.collect();
    let width = rows.iter().map(|(name, _)| name.chars().count()).max();
    let width = width.unwrap_or(0).min(COLUMN_MAX);
    let mut text = String::new();
    for (name, it) in rows {
        let (decision, rule) = (it.decision.to_string(), shown::line(&it.rule));
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
            "rule": it.rule,
            "reason": it.reason,
        })
    };
    let (whole, each) = match judged.split_last() {
        Some((whole, each)) => (as_json(whole), each.iter().map(as_json).collect()),
        None => (Value::Null, Vec::new()),
    };
    format!("{:#}\n", json!({"command": whole, "each": each}))
}

fn listed(rules: &Rules) -> String {
    let subjects = rules.rules().iter().map(|it| it.subject().chars().count());
    let ids = rules.denials().map(|it| it.id.len());
    let width = subjects.chain(ids).max().unwrap_or(0).min(COLUMN_MAX);
    let mut text = String::new();
    for rule in rules.rules() {
        let (decision, subject) = (rule.spec().decision.to_string(), rule.subject());
        let origin = shown::line(rule.origin());
        let _ = writeln!(text, "{decision:5}  {subject:width$}  # {origin}");
    }
    for denial in rules.denials() {
        let (id, what) = (denial.id, denial.what);
        let _ = writeln!(text, "deny   {id:width$}  # {BUILT_IN}: {what}");
    }
    text
}

fn listed_json(rules: &Rules) -> String {
    let own = rules.rules().iter().map(|rule| {
        let mut value = json!(rule.spec());
        if let Some(fields) = value.as_object_mut() {
            fields.insert("origin".to_owned(), json!(rule.origin()));
        }
        value
    });
    let built_in = rules.denials().map(|denial| {
        json!({"id": denial.id, "decision": "deny", "message": denial.what, "origin": BUILT_IN})
    });
    let all: Vec<Value> = own.chain(built_in).collect();
    format!("{:#}\n", json!(all))
}
