//! Gives commands their environment, and keeps this process's own from them.

use rondo_policy::{Environment, Variables};
use std::ffi::{OsStr, OsString};

/// Keeps this process's environment, and the keys in it, from the commands it starts and from other
/// processes of the same user, where the system can do that (Linux). Memory dumps and debuggers are
/// kept away with it.
///
/// For programs that hold keys in their environment; called once, early in `main`.
pub fn hide_environment() {
    crate::launch::unix::hide_environment();
}

/// Overwrites the values of this process's environment where the system shows them to other processes
/// (on Linux, `/proc/PID/environ`), which [`hide_environment`] keeps from the user's but not from
/// root's. The process itself and what it starts find their environment as it was.
///
/// For the start of `main`: does nothing once there is another thread.
pub fn move_environment() {
    crate::launch::unix::move_environment();
}

/// Has a write past the largest size of a file (`ulimit -f`) fail with an error, which can be told
/// and survived, where it would end this process without a word. What it starts is not affected.
///
/// Called once, early in `main`.
pub fn survive_large_files() {
    crate::launch::unix::survive_large_files();
}

/// Returns what a command finds in its environment: of `variables`, or of those of this process where
/// there are none, what the rules do not withhold, and what they set.
pub(crate) fn variables_from_env(
    rules: &Environment,
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

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_environment_can_be_hidden() {
        use rustix::process::{DumpableBehavior, dumpable_behavior};
        hide_environment();
        assert_eq!(dumpable_behavior().unwrap(), DumpableBehavior::NotDumpable);
    }
}
