//! Keeps this process's own environment from others, and this process from dying of its files.

use super::unix;

/// Keeps this process's environment, and the keys in it, from the commands it starts and from other
/// processes of the same user, if the system can do that (Linux). Memory dumps and debuggers are
/// kept away with it.
///
/// For programs that hold keys in their environment; called once, early in `main`.
pub fn hide_environment() {
    unix::hide_environment();
}

/// Overwrites the values of this process's environment if the system shows them to other processes
/// (on Linux, `/proc/PID/environ`), which [`hide_environment`] keeps from the user's but not from
/// root's. The process itself and what it starts find their environment as it was.
///
/// For the start of `main`: does nothing once there is another thread.
pub fn move_environment() {
    unix::move_environment();
}

/// Makes a write past the largest size of a file (`ulimit -f`) fail with an error, which can be told
/// and survived, where it would end this process without a word. The processes it starts are not affected.
///
/// Called once, early in `main`.
pub fn survive_large_files() {
    unix::survive_large_files();
}

/// Limits the allocator to so many heaps that threads take turns with. By itself glibc gives nearly each thread
/// one of its own, and what is free in one is of no use to the others: of a thousand conversations 2.5 MB. Other
/// allocators are left as they are.
///
/// For programs of many short threads that hold much; called once, before they start.
pub fn bound_heaps(heaps: usize) {
    unix::bound_heaps(heaps);
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
