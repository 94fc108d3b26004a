//! What commands find in their environment.

use rondo_policy::{CommandEnvironment, Variables};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

/// Returns what a command finds in its environment: of `variables`, or of those of this process where
/// there are none, what the rules do not withhold, and what they set.
pub(crate) fn variables_from_env(
    rules: &CommandEnvironment,
    variables: Option<Variables>,
) -> Vec<(OsString, OsString)> {
    let variables: Vec<(OsString, OsString)> = match variables {
        Some(variables) => {
            let pairs = variables.iter();
            pairs
                .map(|(name, value)| (name.into(), value.into()))
                .collect()
        }
        None => std::env::vars_os().collect(),
    };
    let is_passed = |name: &OsStr| !rules.is_withheld(&name.to_string_lossy());
    let passed = variables.into_iter().filter(|(name, _)| is_passed(name));
    let set = rules
        .set
        .iter()
        .map(|(name, value)| (name.into(), value.into()));
    passed.chain(set).collect()
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
