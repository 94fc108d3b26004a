//! Profiles: named sets of limits, dialect, tools and rendering, as data in layers.
//!
//! A built-in profile sets every key. A layer (the user's file, the environment, flags) is an object with
//! any of the same keys; the last layer that sets a key wins.
//!
//! The built-in profiles, with the defaults of all limits, are the files `profiles/*.toml`. Their JSON form,
//! `profiles/builtin.json`, is compiled in, so that this crate needs no TOML parser; a test compares the two
//! and, with `RONDO_UPDATE_PROFILES=1`, writes the JSON again.

use rondo_types::Profile;
use serde::Deserialize as _;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The built-in profiles, by name.
const BUILTIN: &str = include_str!("../profiles/builtin.json");

/// The values that one source sets.
#[derive(Debug, Clone, PartialEq)]
pub struct Layer {
    /// Source of the values, for display: a file, a variable, a flag.
    pub source: String,
    /// The values, with the keys of a profile.
    pub table: Map<String, Value>,
}

/// A profile with all layers applied.
#[derive(Debug, Clone, PartialEq)]
pub struct ResolvedProfile {
    /// The effective values.
    pub profile: Profile,
    /// Which source set each key, by its dotted name.
    pub sources: BTreeMap<String, String>,
}

/// Why a profile cannot be resolved.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// No profile has that name.
    #[error("there is no profile `{name}`; there are {known}", known = builtin_names().join(", "))]
    Unknown {
        /// The name asked for.
        name: String,
    },
    /// A value does not fit.
    #[error("profile `{name}`, as set by {sources}: {message}")]
    Invalid {
        /// The profile.
        name: String,
        /// The layers in question.
        sources: String,
        /// Problem and its place.
        message: String,
    },
}

/// Returns the names of the built-in profiles.
#[must_use]
pub fn builtin_names() -> &'static [&'static str] {
    const NAMES: [&str; 7] = [
        "python", "stream", "react", "hub", "shell", "local", "default",
    ];
    &NAMES
}

/// Returns a built-in profile without any layer.
///
/// # Errors
/// When no profile has that name.
pub fn builtin(name: &str) -> Result<Profile, ProfileError> {
    Ok(resolve(name, &[])?.profile)
}

/// Applies layers, in order, to a built-in profile.
///
/// # Errors
/// When no profile has that name, or when a layer sets an unknown key or a value of the wrong kind.
pub fn resolve(name: &str, layers: &[Layer]) -> Result<ResolvedProfile, ProfileError> {
    if !builtin_names().contains(&name) {
        return Err(ProfileError::Unknown {
            name: name.to_owned(),
        });
    }
    let invalid = |error: serde_json::Error| ProfileError::Invalid {
        name: name.to_owned(),
        sources: layers
            .iter()
            .map(|layer| layer.source.as_str())
            .collect::<Vec<_>>()
            .join(", "),
        message: error.to_string(),
    };
    let mut table = whole(name).map_err(invalid)?;
    let mut sources = BTreeMap::new();
    note_sources(&table, "", &format!("profile {name}"), &mut sources);
    for layer in layers {
        merge(&mut table, &layer.table);
        note_sources(&layer.table, "", &layer.source, &mut sources);
    }
    let profile = Profile::deserialize(Value::Object(table)).map_err(invalid)?;
    if profile.limits.max_steps == 0 {
        return Err(ProfileError::Invalid {
            name: name.to_owned(),
            sources: sources.get("limits.max_steps").cloned().unwrap_or_default(),
            message: "`limits.max_steps` must be at least 1".to_owned(),
        });
    }
    Ok(ResolvedProfile { profile, sources })
}

fn whole(name: &str) -> serde_json::Result<Map<String, Value>> {
    let all: BTreeMap<&str, &RawValue> = serde_json::from_str(BUILTIN)?;
    let text = all.get(name).map_or("{}", |profile| profile.get());
    serde_json::from_str(text)
}

/// The lists of refusals of a profile, which layers only add to.
const REFUSING: [&str; 2] = ["rule_sets", "forbidden_programs"];

fn merge(base: &mut Map<String, Value>, over: &Map<String, Value>) {
    for (key, value) in over {
        match (base.get_mut(key), value) {
            (Some(Value::Object(base)), Value::Object(over)) => merge(base, over),
            // A profile also refuses everything that the one it extends refuses.
            (Some(Value::Array(base)), Value::Array(over)) if REFUSING.contains(&key.as_str()) => {
                let new = over.iter().filter(|it| !base.contains(it)).cloned();
                let new: Vec<Value> = new.collect();
                base.extend(new);
            }
            _ => {
                base.insert(key.clone(), value.clone());
            }
        }
    }
}

fn note_sources(
    table: &Map<String, Value>,
    prefix: &str,
    source: &str,
    sources: &mut BTreeMap<String, String>,
) {
    for (key, value) in table {
        let path = if prefix.is_empty() {
            key.clone()
        } else {
            format!("{prefix}.{key}")
        };
        match value {
            Value::Object(table) => note_sources(table, &path, source, sources),
            _ => {
                sources.insert(path, source.to_owned());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(source: &str, text: &str) -> Layer {
        Layer {
            source: source.into(),
            table: toml::from_str(text).unwrap(),
        }
    }

    #[test]
    fn every_builtin_profile_is_whole() {
        for name in builtin_names() {
            let profile = builtin(name).unwrap();
            assert_eq!(profile.name, *name);
        }
    }

    #[test]
    fn what_is_compiled_in_is_what_the_files_say() {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/profiles");
        let read = |name: &&'static str| {
            let text = std::fs::read_to_string(format!("{directory}/{name}.toml")).unwrap();
            (*name, toml::from_str::<Map<String, Value>>(&text).unwrap())
        };
        let written: BTreeMap<_, _> = builtin_names().iter().map(read).collect();
        let written = serde_json::to_string_pretty(&written).unwrap() + "\n";
        if std::env::var_os("RONDO_UPDATE_PROFILES").is_some() {
            std::fs::write(format!("{directory}/builtin.json"), &written).unwrap();
        }
        assert_eq!(
            BUILTIN, written,
            "set RONDO_UPDATE_PROFILES=1 and test twice"
        );
        let files = std::fs::read_dir(directory).unwrap().count();
        assert_eq!(files, builtin_names().len() + 1);
    }

    #[test]
    fn py_10_py_11_py_12_py_13_the_python_profile_has_the_designs_limits() {
        let limits = builtin("python").unwrap().limits;
        assert_eq!(limits.max_steps, 6);
        assert_eq!(limits.step_timeout.unwrap().as_millis(), 8_000);
        assert_eq!(limits.turn_timeout.unwrap().as_millis(), 20_000);
        assert_eq!(limits.invalid_retries, 1);
    }

    #[test]
    fn py_49_the_system_prompt_is_the_designs() {
        let prompt = builtin("python").unwrap().system_prompt.unwrap();
        assert_eq!(
            prompt,
            "You are PyAIChat assistant operating over a live Python runtime via declared functions.\n\
             \n\
             Rules:\n\
             1) For runtime facts (values, types, attributes, docs, last exception), call functions instead of guessing.\n\
             2) You may call multiple functions when needed.\n\
             3) When enough information is gathered, provide a concise final answer in plain text.\n\
             4) If a function returns an error, adapt and continue when possible.\n\
             5) Do not invent variables or results that were not returned by function responses.\n\
             6) Keep responses concise and technically precise."
        );
    }

    #[test]
    fn gs_16_the_shell_profile_has_the_designs_prompt_and_exec() {
        let profile = builtin("shell").unwrap();
        assert_eq!(
            profile.system_prompt.unwrap(),
            "You are gsh, an AI-powered shell. You can execute commands using the exec tool."
        );
        assert_eq!(profile.tools, ["exec"]);
    }

    #[test]
    fn gs_4_the_shell_profile_stops_after_ten_steps() {
        assert_eq!(builtin("shell").unwrap().limits.max_steps, 10);
    }

    #[test]
    fn the_last_layer_wins_and_is_named() {
        let layers = [
            layer("config.toml", "[limits]\nmax_steps = 3\nmax_tokens = 10"),
            layer("--max-steps", "limits.max_steps = 4"),
        ];
        let resolved = resolve("default", &layers).unwrap();
        assert_eq!(resolved.profile.limits.max_steps, 4);
        assert_eq!(resolved.profile.limits.max_tokens_total, Some(10));
        assert_eq!(resolved.sources["limits.max_steps"], "--max-steps");
        assert_eq!(resolved.sources["limits.max_tokens"], "config.toml");
        assert_eq!(resolved.sources["limits.overflow"], "profile default");
    }

    #[test]
    fn hub_33_a_layer_adds_to_what_a_profile_refuses_and_takes_nothing_from_it() {
        for (list, added) in [("['curl', 'rm']", &["curl", "rm"][..]), ("[]", &[])] {
            let text = format!("rule_sets = {list}\nforbidden_programs = {list}");
            let layers = [layer("config.toml", &text), layer("again", &text)];
            let profile = resolve("hub", &layers).unwrap().profile;
            assert_eq!(profile.rule_sets, [&["dangerous-programs"], added].concat());
            assert_eq!(profile.forbidden_programs, added);
        }
    }

    #[test]
    fn unknown_keys_and_bad_values_are_named() {
        let error = resolve("hub", &[layer("x.toml", "[limits]\nmax_stepz = 3")]).unwrap_err();
        assert!(error.to_string().contains("max_stepz"), "{error}");
        assert!(error.to_string().contains("x.toml"), "{error}");
        let error = resolve("hub", &[layer("x.toml", "[limits]\nmax_steps = 0")]).unwrap_err();
        assert!(error.to_string().contains("at least 1"), "{error}");
    }

    #[test]
    fn an_unknown_profile_lists_the_known_ones() {
        let error = resolve("nope", &[]).unwrap_err();
        assert!(error.to_string().contains("default"), "{error}");
    }
}
