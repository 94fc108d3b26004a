//! `rondo profiles`: lists the profiles, and shows the values of one with their sources.

use super::report::write_failed;
use crate::cli::{ProfilesArgs, ProfilesCommand};
use crate::error::Result;
use crate::exit::Exit;
use crate::output::Output;
use rondo_core::profile::ResolvedProfile;
use rondo_runtime::profiles;
use rondo_runtime::settings::Settings;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use toml::Value;

/// Runs the command.
pub(super) fn run(args: &ProfilesArgs, settings: &Settings, output: &Output) -> Result<Exit> {
    let text = match &args.command {
        ProfilesCommand::List => list(settings)?,
        ProfilesCommand::Show { name } => show(&profiles::resolve(settings, name)?),
    };
    output.words(&text).map_err(write_failed)?;
    Ok(Exit::Answer)
}

fn list(settings: &Settings) -> Result<String> {
    let names = profiles::names(settings);
    let width = names.iter().map(String::len).max().unwrap_or(0);
    let mut text = String::new();
    for name in &names {
        let profile = profiles::resolve(settings, name)?.profile;
        let _ = writeln!(text, "{name:width$}  {}", profile.description);
    }
    Ok(text)
}

/// Returns TOML in which every value is followed by the layer that set it.
fn show(resolved: &ResolvedProfile) -> String {
    let mut lines = BTreeMap::new();
    if let Ok(Value::Table(table)) = Value::try_from(&resolved.profile) {
        flatten(&table, "", &mut lines);
    }
    let width = lines
        .iter()
        .map(|(key, value)| key.len() + value.len() + 3)
        .filter(|width| *width <= VALUE_COLUMNS)
        .max()
        .unwrap_or(0);
    let mut text = String::new();
    for (key, value) in &lines {
        let source = resolved.sources.get(key).map_or("default", String::as_str);
        let assignment = format!("{key} = {value}");
        let _ = writeln!(text, "{assignment:width$}  # {source}");
    }
    text
}

/// Columns up to which the sources are aligned; prompts are longer.
const VALUE_COLUMNS: usize = 60;

fn flatten(table: &toml::Table, prefix: &str, lines: &mut BTreeMap<String, String>) {
    for (key, value) in table {
        let path = if prefix.is_empty() {
            key.clone()
        } else {
            format!("{prefix}.{key}")
        };
        match value {
            Value::Table(table) => flatten(table, &path, lines),
            Value::String(text) => {
                // On one line, so that a line is a value and its layer.
                let quoted = serde_json::Value::String(text.clone()).to_string();
                lines.insert(path, quoted);
            }
            other => {
                lines.insert(path, other.to_string());
            }
        }
    }
}
