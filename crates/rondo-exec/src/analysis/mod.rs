//! What a shell command would do, as far as that can be told without running it.
//!
//! Fails closed: what is not understood with certainty is [`Judgement::Unknown`]. The grammar is
//! `brush-parser`'s, which recurses into substitutions and was wrong less often than
//! `tree-sitter-bash` on nasty input; where it is known to be wrong, guards refuse. This decides
//! whether somebody is asked. It is no sandbox.

mod cut_off;
mod guard;
mod options;
mod paths;
mod programs;
mod repository;
mod walk;
mod words;

pub use paths::AllowedDirs;
pub(crate) use walk::Analysis;

use std::thread;

/// The longest command that is looked at, in bytes.
pub const COMMAND_BYTES_MAX: usize = 8 << 10;
/// The deepest nesting of substitutions that is looked at.
pub const NESTING_MAX: usize = 8;
/// The most opening brackets, or compound commands, that are looked at.
pub const OPENERS_MAX: usize = 64;
/// The parser recurses; it gets more stack than commands within the other bounds can use.
const STACK_BYTES: usize = 64 << 20;

/// What a command would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judgement {
    /// It only looks, and only inside the allowed directories.
    ReadOnly,
    /// It may change something or look elsewhere.
    Effects {
        /// The first thing that is not read-only.
        reason: String,
        /// The programs it names, by base name, those named to other programs included.
        commands: Vec<String>,
    },
    /// It cannot be told.
    Unknown {
        /// Why.
        reason: String,
    },
}

/// Judges a command for `bash -c`, run in the current directory of `dirs`.
///
/// Reads directories and links to see where paths lead, never runs anything.
#[must_use]
pub fn judge(command: &str, dirs: &AllowedDirs) -> Judgement {
    analyse(command, dirs).judgement()
}

/// Takes a command apart.
pub(crate) fn analyse(command: &str, dirs: &AllowedDirs) -> Analysis {
    if let Err(reason) = guard::check(command) {
        return Analysis::unknown(reason);
    }
    with_stack(|| walk::analyse(command, dirs))
        .unwrap_or_else(|| Analysis::unknown("the parser failed"))
}

/// Returns whether the text ends in the middle of a command; false where that cannot be told.
pub(crate) fn is_cut_off(text: &str) -> bool {
    let is_parsable = text.len() <= COMMAND_BYTES_MAX && !guard::is_deep(text);
    is_parsable && with_stack(|| cut_off::is_cut_off(text)).unwrap_or(false)
}

/// Parses on a thread with enough stack; nothing where that fails.
fn with_stack<T: Send>(parse: impl FnOnce() -> T + Send) -> Option<T> {
    thread::scope(|scope| {
        let parsing = thread::Builder::new()
            .stack_size(STACK_BYTES)
            .spawn_scoped(scope, parse);
        parsing.ok()?.join().ok()
    })
}
