//! What a shell command would do, as far as that can be told without running it.
//!
//! Fails closed: what is not understood with certainty is [`Judgement::Unknown`]. The lexer and the
//! grammar are our own and know only what every bash reads in one way. Parsers that know all of the
//! language disagree with bash at its edges, about here-documents above all, and `brush-parser`, which
//! was used before, needed memory without bound for some of what it does not know. This decides
//! whether a call is asked about. It is no sandbox.

mod complete;
mod cut_off;
mod expansions;
mod found;
mod git_commands;
mod git_directory;
mod grammar;
mod here;
mod lexer;
mod options;
mod paths;
mod places;
mod programs;
mod scripts;
mod singular;
mod tables;
mod walk;
mod words;
mod wrappers;

pub use complete::is_complete;
pub(crate) use found::Analysis;
pub use paths::AllowedDirs;
pub use wrappers::{has_subcommands, is_wrapper};

/// The longest command that is looked at, in bytes.
pub const COMMAND_BYTES_MAX: usize = 8 << 10;
/// The deepest nesting of substitutions, and of compound commands, that is looked at.
pub const NESTING_MAX: usize = 8;
/// The most simple commands that are looked at.
const COMMANDS_MAX: usize = 256;
/// The most patterns whose files are looked at.
const PATTERNS_MAX: usize = 64;
/// How often a repository is looked at for one command.
const REPOSITORIES_MAX: usize = 16;
const TOO_DEEP: &str = "it is nested too deeply to be judged";

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
    if command.len() > COMMAND_BYTES_MAX {
        return Analysis::unknown("it is too long to be judged");
    }
    if command.chars().any(is_odd) {
        return Analysis::unknown("it contains unusual white space or control characters");
    }
    walk::analyse(command, dirs)
}

/// Returns whether the text ends in the middle of a command; false where that cannot be told.
fn is_cut_off(text: &str) -> bool {
    text.len() <= COMMAND_BYTES_MAX && cut_off::is_cut_off(text)
}

/// Bash separates words at spaces and tabs only; other white space is part of a word.
fn is_odd(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t')
        || (c.is_whitespace() && !c.is_ascii())
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}
