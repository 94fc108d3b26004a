//! Judges what a shell command would do, without running it.
//!
//! Fails closed: a command that is not understood with certainty is [`Judgement::Unknown`]. The lexer and the
//! grammar are our own and accept only what every bash reads in the same way. Parsers of the whole language
//! disagree with bash in corner cases, above all about here-documents, and `brush-parser`, which was used
//! before, needed unbounded memory for some input. The judgment decides whether the user is asked. It is not
//! a sandbox.

mod complete;
mod cut_off;
mod effect_tables;
mod expansions;
mod fetching;
mod found;
mod git_commands;
mod git_directory;
mod git_looks;
mod globs;
mod grammar;
mod here;
mod lexer;
mod options;
mod paths;
mod places;
mod programs;
mod read_only_sandbox;
mod scripts;
mod singular;
mod survey;
mod tables;
mod walk;
mod without_shell;
mod words;
mod wrappers;

pub use complete::is_complete;
pub use fetching::{fetches, may_fetch};
pub(crate) use found::{Analysis, SimpleWords};
pub use paths::AllowedDirs;
pub(crate) use paths::PATH_BYTES_MAX;
pub(crate) use read_only_sandbox::programs as programs_in_read_only_sandbox;
pub(crate) use survey::{Placed, Survey, resolve_text};
pub(crate) use without_shell::refusal as refusal_without_shell;
pub(crate) use wrappers::{PREFIXES, base as base_name, tokens};
pub use wrappers::{has_subcommands, is_second_wrapper, is_wrapper};

/// The longest command that is analyzed, in bytes.
pub const COMMAND_BYTES_MAX: usize = 512 << 10;
/// The deepest nesting of substitutions, and of compound commands, that is analyzed.
pub const NESTING_MAX: usize = 8;
/// The most words and operators of a command: each word may be a path that is looked for on the disk.
pub const TOKENS_MAX: usize = 1000;
/// The most simple commands that are looked at.
const COMMANDS_MAX: usize = 256;
/// The bound on file patterns that are expanded.
const PATTERNS_MAX: usize = 64;
/// The bound on repositories that are examined for one command.
const REPOSITORIES_MAX: usize = 16;
const TOO_DEEP: &str = "it is nested too deeply to be checked";

/// Effect of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judgement {
    /// It only reads, and only inside the allowed directories.
    ReadOnly,
    /// It may change something, or read outside the allowed directories.
    Effects {
        /// The first thing that is not read-only.
        reason: String,
        /// The base names of all programs that it names, including those in the arguments of wrappers.
        commands: Vec<String>,
    },
    /// It is not understood.
    Unknown {
        /// Reason for the doubt.
        reason: String,
    },
}

/// Judges a command for `bash -c`, run in the current directory of `dirs`.
///
/// Reads directories and links to resolve paths; never runs anything.
#[must_use]
pub fn judge(command: &str, dirs: &AllowedDirs) -> Judgement {
    analyse(command, dirs).judgement()
}

/// Takes a command apart.
pub(crate) fn analyse(command: &str, dirs: &AllowedDirs) -> Analysis {
    if command.len() > COMMAND_BYTES_MAX {
        let most = COMMAND_BYTES_MAX >> 10;
        return Analysis::unknown(&format!(
            "it is longer than {most} KiB, the most that is checked"
        ));
    }
    if command.chars().any(is_odd) {
        return Analysis::unknown("it contains unusual white space or control characters");
    }
    walk::analyse(command, dirs)
}

/// Returns whether the text ends in the middle of a command; false if that is not known.
fn is_cut_off(text: &str) -> bool {
    text.len() <= COMMAND_BYTES_MAX && cut_off::is_cut_off(text)
}

/// Bash separates words at spaces and tabs only; other white space is part of a word.
fn is_odd(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t')
        || (c.is_whitespace() && !c.is_ascii())
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}
