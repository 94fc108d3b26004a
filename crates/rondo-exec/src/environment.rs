//! Environment of commands.

use rondo_policy::{CommandEnvironment, Variables};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

/// Returns the environment of a command: of `variables`, or of those of this process if there are none, those that the
/// rules do not withhold, and those that they set. A command in the sandbox gets of these only those that the sandbox
/// passes and those that the user names.
pub(crate) fn variables_from_env(
    rules: &CommandEnvironment,
    variables: Option<&Variables>,
    is_confined: bool,
) -> Vec<(OsString, OsString)> {
    let mut passed = of_user_from_env(variables);
    passed.retain(|(name, value)| is_passed(rules, name, value, is_confined));
    let set = rules
        .set
        .iter()
        .map(|(name, value)| (name.into(), value.into()));
    passed.into_iter().chain(set).collect()
}

/// Returns the names of the variables that the user has and a command in the sandbox does not get.
pub(crate) fn kept_outside_from_env(
    rules: &CommandEnvironment,
    variables: Option<&Variables>,
) -> Vec<OsString> {
    let mut kept = of_user_from_env(variables);
    kept.retain(|(name, value)| !is_passed(rules, name, value, true));
    kept.into_iter().map(|(name, _)| name).collect()
}

fn is_passed(rules: &CommandEnvironment, name: &OsStr, value: &OsStr, is_confined: bool) -> bool {
    let (name, value) = (name.to_string_lossy(), value.to_string_lossy());
    let passes = !is_confined || rondo_sandbox::passes_variable(&name) || rules.is_named(&name);
    passes && !rules.is_withheld_with(&name, &value)
}

/// Returns `variables`, or those of this process if there are none.
fn of_user_from_env(variables: Option<&Variables>) -> Vec<(OsString, OsString)> {
    match variables {
        Some(variables) => {
            let pairs = variables.iter();
            pairs
                .map(|(name, value)| (name.into(), value.into()))
                .collect()
        }
        None => std::env::vars_os().collect(),
    }
}

/// Returns the variables of this process, with others added or taken away (`None`).
pub(crate) fn changed_from_env(
    changes: &[(OsString, Option<OsString>)],
) -> Vec<(OsString, OsString)> {
    let mut variables: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
    for (name, value) in changes {
        match value {
            Some(value) => variables.insert(name.clone(), value.clone()),
            None => variables.remove(name),
        };
    }
    variables.into_iter().collect()
}
