//! Gives commands their environment, and keeps this process's own from them.

use rondo_policy::{Environment, Variables};
use std::ffi::OsStr;
use std::process::Command;

/// Keeps this process's environment, and the keys in it, from the commands it starts and from other
/// processes of the same user, where the system can do that (Linux). Memory dumps and debuggers are
/// kept away with it.
///
/// For programs that hold keys in their environment; called once, early in `main`.
pub fn hide_environment() {
    crate::unix::hide_environment();
}

/// Overwrites the values of this process's environment where the system shows them to other processes
/// (on Linux, `/proc/PID/environ`), which [`hide_environment`] keeps from the user's but not from
/// root's. The process itself and what it starts find their environment as it was.
///
/// For the start of `main`: does nothing once there is another thread.
pub fn move_environment() {
    crate::unix::move_environment();
}

/// Has a write past the largest size of a file (`ulimit -f`) fail with an error, which can be told
/// and survived, where it would end this process without a word. What it starts is not affected.
///
/// Called once, early in `main`.
pub fn survive_large_files() {
    crate::unix::survive_large_files();
}

/// What is done to which variables.
pub(crate) struct Given<'a> {
    pub(crate) rules: &'a Environment,
    /// The variables; those of this process where there are none.
    pub(crate) variables: Option<&'a Variables>,
}

impl Given<'_> {
    /// Gives the variables to a command.
    pub(crate) fn apply(&self, command: &mut Command) {
        let Some(variables) = self.variables else {
            return self.apply_own(command);
        };
        let is_passed = |name: &OsStr| !self.rules.is_withheld(&name.to_string_lossy());
        let passed = variables.iter().filter(|(name, _)| is_passed(name));
        command.env_clear().envs(passed).envs(&self.rules.set);
    }

    /// Removes and sets variables; what is not named is inherited at the start of the process.
    fn apply_own(&self, command: &mut Command) {
        for name in names_from_env().filter(|name| self.rules.is_withheld(name)) {
            command.env_remove(name);
        }
        command.envs(&self.rules.set);
    }
}

fn names_from_env() -> impl Iterator<Item = String> {
    std::env::vars_os().filter_map(|(name, _)| name.into_string().ok())
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
