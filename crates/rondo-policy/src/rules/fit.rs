//! Matching of rules against commands and files.

use super::AnyOf;
use crate::analysis::{Analysis, PATH_BYTES_MAX, tokens};
use crate::unix::{self, Way, without_dots};
use std::collections::HashSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Returns whether a command begins with these words, written plainly.
pub(super) fn begins(command: &[AnyOf], words: &[&str]) -> bool {
    command.len() <= words.len() && command.iter().zip(words).all(|(any, word)| any.has(word))
}

/// Returns whether a command may run this one: by another path to its program, with options between its words, or
/// within the words of a program that runs others.
pub(super) fn may_run(command: &[AnyOf], analysis: &Analysis) -> bool {
    let Some((program, rest)) = command.split_first() else {
        return false;
    };
    let begins_at = |words: &[String], at: usize| {
        let (name, after) = (words.get(at), words.get(at + 1..));
        name.is_some_and(|name| means(program, base(name)))
            && after.is_some_and(|after| follow(rest, after))
    };
    analysis.commands().any(|words| begins_at(&words, 0))
        || analysis
            .wrapped_commands()
            .any(|words| (0..words.len()).any(|at| begins_at(&words, at)))
        || (rest.is_empty() && analysis.wrapped_names().iter().any(|it| means(program, it)))
}

/// Returns whether a pattern of files in a command may become the name of this one's program.
pub(super) fn may_be_expanded(command: &[AnyOf], analysis: &Analysis) -> bool {
    let patterns = analysis.patterns();
    let programs = command.first().map_or(&[][..], AnyOf::texts);
    programs.iter().any(|program| patterns.may_mean(program))
}

/// Returns whether words that a command reads from its input may complete this one.
pub(super) fn may_be_completed(command: &[AnyOf], analysis: &Analysis) -> bool {
    let program = command.first();
    program.is_some_and(|program| analysis.may_be_completed(|name| means(program, name)))
}

/// Returns whether a text that is not understood names a command: its program and its words, in any order.
pub(super) fn may_name(command: &[AnyOf], text: &str) -> bool {
    let names: HashSet<String> = tokens(text).collect();
    command.split_first().is_some_and(|(program, rest)| {
        names.iter().any(|name| means(program, base(name)))
            && rest
                .iter()
                .all(|any| names.iter().any(|name| any.has(name)))
    })
}

/// Returns whether the word of a rule that restricts means a program: at its end, `*` is any rest of the name.
fn means(program: &AnyOf, name: &str) -> bool {
    let mut texts = program.texts().iter();
    texts.any(|text| match text.strip_suffix('*') {
        Some(begin) => name.starts_with(begin),
        None => text == name,
    })
}

/// Returns whether words come in this order, whatever is between them. Within the words of other programs, options
/// have lost their dashes.
fn follow(wanted: &[AnyOf], words: &[String]) -> bool {
    let is = |any: &AnyOf, word: &str| {
        let mut texts = any.texts().iter();
        texts.any(|text| text == word || text.trim_start_matches('-') == word)
    };
    let mut words = words.iter();
    wanted.iter().all(|any| words.any(|word| is(any, word)))
}

/// Directory of a command.
#[derive(Debug, Clone, Copy)]
pub(super) struct CommandDirectory<'a> {
    pub(super) directory: &'a Path,
    pub(super) home: Option<&'a Path>,
}

impl CommandDirectory<'_> {
    /// Returns the path that a word stands for; `None` if that is not known. Without a home directory it is `~`.
    pub(super) fn resolve(&self, word: &str) -> Option<PathBuf> {
        let home = self.home.unwrap_or(Path::new("~"));
        let in_home = ["~", "${HOME}", "$HOME"]
            .iter()
            .find_map(|it| word.strip_prefix(it));
        let path = match in_home {
            Some("") => home.to_owned(),
            Some(rest) if rest.starts_with('/') => home.join(rest.trim_start_matches('/')),
            Some(_) => return None,
            None => self
                .directory
                .join(word.strip_prefix("$PWD/").unwrap_or(word)),
        };
        let path = without_dots(&path);
        (!path.to_string_lossy().contains('$')).then_some(path)
    }
}

/// However a program is named, it is the same.
pub(super) fn base(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// Returns the parts of a command that may name a file: its words, the text behind `=` in them, and the targets of its
/// output.
pub(super) fn files(analysis: &Analysis) -> impl Iterator<Item = &str> {
    analysis.words().flat_map(|word| {
        let value = word.split_once('=').map(|(_, value)| value);
        [Some(word), value].into_iter().flatten()
    })
}

/// Returns the absolute paths that a name may stand for: as it is written, and where its links lead. `directory` has no
/// links in it.
pub(super) fn places(path: &Path, directory: &Path) -> Vec<PathBuf> {
    let plain = without_dots(&directory.join(path));
    // One look at each name of the path, if no `..` makes it matter what a link before it leads to.
    let has_parents = path.components().any(|part| part == Component::ParentDir);
    let is_short = path.as_os_str().len() <= PATH_BYTES_MAX;
    if !has_parents && is_short {
        // A path from the root on need not be followed through the directory again.
        let below = path.strip_prefix(directory).unwrap_or(path);
        match unix::way(directory, below) {
            Way::To(real) if real == plain => return vec![plain],
            Way::To(real) => return vec![plain, real],
            Way::Ends(last) if plain.starts_with(&last) => return vec![plain],
            Way::Ends(_) | Way::Differs | Way::Unknown => {}
        }
    }
    let exists = |path: &&Path| path.as_os_str().len() <= PATH_BYTES_MAX;
    let real = plain.ancestors().filter(exists).find_map(|existing| {
        let real = fs::canonicalize(existing).ok()?;
        Some(real.join(plain.strip_prefix(existing).ok()?))
    });
    let real = real.map(|real| without_dots(&real));
    let real = real.filter(|real| *real != plain);
    std::iter::once(plain).chain(real).collect()
}
