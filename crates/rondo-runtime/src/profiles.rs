//! Applies settings to a profile.

use crate::embedded;
use crate::error::SetupErrorKind;
use crate::error::{Result, SetupError};
use crate::settings::{DEFAULT_PROFILE, Settings, Source};
use crate::table::Layer;
use rondo_core::profile::{self, ResolvedProfile};
use rondo_types::{Effort, NanoUsd, Profile};
use serde_json::Map;
use std::collections::BTreeSet;
use toml::{Table, Value};

/// The key by which a profile of the configuration names the one it is built on.
const EXTENDS: &str = "extends";

/// Resolves a profile with all layers of settings. Tools that the user's profiles refuse stay refused, whatever a
/// project sets.
///
/// # Errors
/// When no profile has that name, or a layer sets an unknown key of a profile.
pub fn resolve(settings: &Settings, name: &str) -> Result<ResolvedProfile> {
    let sources: Vec<&Source> = settings.sources.iter().collect();
    let mut resolved = resolve_from(&sources, name)?;
    let own: Vec<&Source> = sources.into_iter().filter(|it| !it.is_of_project).collect();
    let chosen = displaced(settings, name);
    for name in std::iter::once(name).chain(chosen) {
        if names_from(&own).contains(name) {
            refuse_too(&mut resolved.profile, resolve_from(&own, name)?.profile);
        }
    }
    Ok(resolved)
}

/// Returns the user's profile in whose place a project has put this one: by its name, or by a model that has a profile of
/// its own.
fn displaced<'a>(settings: &'a Settings, name: &str) -> Option<&'a str> {
    let mut highest_first = settings.sources.iter().rev();
    let chooser = highest_first.find(|it| it.layer.profile.is_some());
    let is_displaced = match chooser {
        Some(it) => it.is_of_project && it.layer.profile.as_deref() == Some(name),
        None => {
            let mut projects = settings.sources.iter().filter(|it| it.is_of_project);
            name == embedded::PROFILE && projects.any(|it| it.layer.model.is_some())
        }
    };
    let own = settings.sources.iter().filter(|it| !it.is_of_project);
    let chosen = own.rev().find_map(|it| it.layer.profile.as_deref());
    is_displaced.then(|| chosen.unwrap_or(DEFAULT_PROFILE))
}

/// Makes a profile refuse what another one refuses, besides what it refuses itself.
pub(crate) fn refuse_too(profile: &mut Profile, other: Profile) {
    let add = |list: &mut Vec<String>, more: Vec<String>| {
        for item in more {
            if !list.contains(&item) {
                list.push(item);
            }
        }
    };
    add(&mut profile.rule_sets, other.rule_sets);
    add(&mut profile.forbidden_programs, other.forbidden_programs);
}

fn resolve_from(sources: &[&Source], name: &str) -> Result<ResolvedProfile> {
    let base = base_of(sources, name)?;
    let mut layers = Vec::new();
    for source in sources {
        let mut own = layers_of(source, name, base != name);
        if !source.is_trusted {
            keep_lower(&mut own, &base, &layers)?;
        }
        layers.extend(own);
    }
    profile::resolve(&base, &layers).map_err(|err| SetupError::caused(SetupErrorKind::Config, err))
}

/// Returns the names of all profiles: the built-in ones and those of the configuration.
pub fn names(settings: &Settings) -> BTreeSet<String> {
    let sources: Vec<&Source> = settings.sources.iter().collect();
    names_from(&sources)
}

fn names_from(sources: &[&Source]) -> BTreeSet<String> {
    let builtin = profile::builtin_names()
        .iter()
        .map(|name| (*name).to_owned());
    let configured = sources
        .iter()
        .flat_map(|source| source.layer.profiles.keys().cloned());
    builtin.chain(configured).collect()
}

fn base_of(sources: &[&Source], name: &str) -> Result<String> {
    if profile::builtin_names().contains(&name) {
        return Ok(name.to_owned());
    }
    let mut tables = sources
        .iter()
        .filter_map(|source| source.layer.profiles.get(name))
        .peekable();
    if tables.peek().is_none() {
        let known = names_from(sources)
            .into_iter()
            .collect::<Vec<_>>()
            .join(", ");
        return Err(SetupError::new(
            SetupErrorKind::Config,
            format_args!("there is no profile `{name}`"),
        )
        .hint(format!("the profiles are: {known}")));
    }
    let base = tables
        .filter_map(|table| table.get(EXTENDS)?.as_str())
        .next_back()
        .unwrap_or(DEFAULT_PROFILE);
    Ok(base.to_owned())
}

fn layers_of(source: &Source, name: &str, renamed: bool) -> Vec<profile::Layer> {
    let mut layers = Vec::new();
    if let Some(table) = source.layer.profiles.get(name) {
        let mut table = table.clone();
        table.remove(EXTENDS);
        if renamed {
            table.insert("name".to_owned(), Value::String(name.to_owned()));
        }
        layers.push((format!("{} [profiles.{name}]", source.name), table));
    }
    let table = profile_table(&source.layer);
    if !table.is_empty() {
        layers.push((source.name.clone(), table));
    }
    let plain = |(source, table): (String, Table)| profile::Layer {
        source,
        table: as_json(table),
    };
    layers.into_iter().map(plain).collect()
}

fn as_json(table: Table) -> Map<String, serde_json::Value> {
    let json = |(key, value)| (key, value_as_json(value));
    table.into_iter().map(json).collect()
}

/// Dates become strings, and NaN and infinities become null; a profile accepts neither.
fn value_as_json(value: Value) -> serde_json::Value {
    match value {
        Value::String(text) => text.into(),
        Value::Integer(number) => number.into(),
        Value::Float(number) => number.into(),
        Value::Boolean(flag) => flag.into(),
        Value::Datetime(date) => date.to_string().into(),
        Value::Array(items) => items.into_iter().map(value_as_json).collect(),
        Value::Table(table) => as_json(table).into(),
    }
}

/// Removes the numbers that are not lower than those of the layers below and the profile.
fn keep_lower(own: &mut [profile::Layer], base: &str, below: &[profile::Layer]) -> Result<()> {
    let failed = |err| SetupError::caused(SetupErrorKind::Config, err);
    let below = profile::resolve(base, below).map_err(failed)?.profile;
    let below = serde_json::to_value(&below)
        .map_err(|err| SetupError::caused(SetupErrorKind::Other, err))?;
    for layer in own {
        for (section, values) in &mut layer.table {
            let (Some(below), Some(values)) = (below.get(section), values.as_object_mut()) else {
                continue;
            };
            values.retain(|key, value| {
                let in_force = below.get(key).and_then(serde_json::Value::as_u64);
                in_force.is_none_or(|it| value.as_u64().is_some_and(|own| own < it))
            });
        }
    }
    Ok(())
}

/// Returns the settings of a layer that belong to a profile, by the profile's keys.
fn profile_table(layer: &Layer) -> Table {
    let mut limits = Table::new();
    set(&mut limits, "max_steps", layer.max_steps.map(integer));
    set(
        &mut limits,
        "max_tool_calls",
        layer.max_tool_calls.map(integer),
    );
    set(
        &mut limits,
        "max_tokens",
        layer.max_tokens_total.map(integer),
    );
    let cost = layer
        .max_budget_usd
        .map(|usd| integer(NanoUsd::from_usd(usd).0));
    set(&mut limits, "max_cost_nanousd", cost);
    let deadline = layer
        .deadline
        .map(|span| integer(u64::try_from(span.0.as_millis()).unwrap_or(u64::MAX)));
    set(&mut limits, "turn_timeout_ms", deadline);
    let mut sampling = Table::new();
    set(
        &mut sampling,
        "temperature",
        layer.temperature.map(Value::Float),
    );
    set(
        &mut sampling,
        "max_output_tokens",
        layer.max_output_tokens.map(integer),
    );
    let effort = layer
        .effort
        .map(|effort| Value::String(effort_name(effort).to_owned()));
    set(&mut sampling, "effort", effort);
    let mut table = Table::new();
    set(
        &mut table,
        "system_prompt",
        layer.system_prompt.clone().map(Value::String),
    );
    for (name, values) in [("limits", limits), ("sampling", sampling)] {
        if !values.is_empty() {
            table.insert(name.to_owned(), Value::Table(values));
        }
    }
    table
}

fn set(table: &mut Table, key: &str, value: Option<Value>) {
    if let Some(value) = value {
        table.insert(key.to_owned(), value);
    }
}

/// TOML integers are signed; a larger value is saturated, which counts as unlimited.
fn integer(value: impl Into<u64>) -> Value {
    Value::Integer(i64::try_from(value.into()).unwrap_or(i64::MAX))
}

fn effort_name(effort: Effort) -> &'static str {
    match effort {
        Effort::Low => "low",
        Effort::Medium => "medium",
        Effort::High => "high",
    }
}
