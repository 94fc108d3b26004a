//! Which files a command may reach without naming them as they are in a rule: from a directory that it changes to, by
//! reading a directory as a whole, or in the history of a repository.

use super::fit::CommandDirectory;
use crate::analysis::{PREFIXES, Placed, Survey, base_name, resolve_text};
use std::path::{Path, PathBuf};

/// Options that name the directory in which a program works.
const DIRECTORY_OPTIONS: [&str; 4] = ["-C", "--chdir", "--directory", "--work-tree"];
/// Programs that read or change all that is in a directory, whatever their options.
const WHOLE: [&str; 8] = ["ack", "ag", "mv", "rg", "rsync", "tar", "ugrep", "zip"];
/// Programs that do so with one of these letters or options.
const WITH_OPTION: [(&str, &str, &[&str]); 11] = [
    ("chgrp", "R", &["--recursive"]),
    ("chmod", "R", &["--recursive"]),
    ("chown", "R", &["--recursive"]),
    ("cp", "raR", &["--recursive", "--archive"]),
    ("diff", "r", &["--recursive"]),
    ("egrep", "rR", &["--recursive", "--dereference-recursive"]),
    ("fgrep", "rR", &["--recursive", "--dereference-recursive"]),
    (
        "find",
        "",
        &["-exec", "-execdir", "-delete", "-ok", "-okdir"],
    ),
    ("grep", "rR", &["--recursive", "--dereference-recursive"]),
    ("rm", "rR", &["--recursive"]),
    ("scp", "r", &[]),
];
/// Subcommands of `git` that read or store the content of all files below a directory.
const OF_GIT: [&str; 2] = ["archive", "grep"];
/// Subcommands of `git` that show the content of the files among their arguments.
const OF_HISTORY: [&str; 6] = ["blame", "diff", "log", "show", "whatchanged", "range-diff"];

/// Files and programs that a command reaches.
#[derive(Debug, Default)]
pub(super) struct Reached {
    /// Files and directories that its words name, from the directories that it changes to.
    pub(super) named: Vec<PathBuf>,
    /// Directories that it reads or changes as a whole.
    pub(super) whole: Vec<PathBuf>,
    /// Directories of which it reads the files in a repository, which no sandbox hides.
    pub(super) in_history: Vec<PathBuf>,
    /// Set if it names files in an unknown directory.
    pub(super) is_unclear: bool,
}

/// Finds the files and hosts that a command reaches; nothing if it cannot be read.
pub(super) fn find(command: &str, place: &CommandDirectory<'_>) -> Reached {
    let mut reached = Reached::default();
    if let Ok(survey) = Survey::new(command, place.directory, place.home) {
        for placed in &survey.commands {
            reached.add(placed, place);
        }
        for (text, directory) in survey.files() {
            match directory {
                Some(directory) => reached
                    .named
                    .extend(resolve_text(text, directory, place.home)),
                None => reached.is_unclear = true,
            }
        }
    }
    reached
}

impl Reached {
    fn add(&mut self, placed: &Placed, place: &CommandDirectory<'_>) {
        let words: Vec<&str> = placed.texts().collect();
        let Some(from) = program(&words) else {
            return;
        };
        let name = base_name(words.get(from).copied().unwrap_or_default());
        let Some(directory) = directory(&words, placed.directory(), place.home) else {
            self.is_unclear |= words.len() > from + 1;
            return;
        };
        if directory != place.directory {
            // Files in a directory are reached from within it.
            self.named.push(directory.join("*"));
        }
        let operands = words.iter().skip(from + 1);
        let mut paths = Vec::new();
        for word in operands {
            let value = word.split_once('=').map(|(_, value)| value);
            let of_revision = (name == "git").then(|| word.split_once(':')).flatten();
            for text in [Some(*word), value].into_iter().flatten() {
                paths.extend(resolve_text(text, &directory, place.home));
            }
            if let Some((_, path)) = of_revision {
                let top = top_of_repository(&directory);
                self.named
                    .extend(resolve_text(path, &directory, place.home));
                self.named.extend(resolve_text(path, top, place.home));
                // `HEAD:` is the whole tree, and `HEAD:directory` lists one.
                let listed = resolve_text(path, top, place.home);
                self.in_history.extend(listed.filter(|it| !it.is_file()));
            }
        }
        self.named.extend(paths.iter().cloned());
        let existing = paths.into_iter().filter(|path| path.is_dir());
        match reads_whole(name, words.get(from + 1..).unwrap_or_default()) {
            ReadScope::Files => {
                let given: Vec<PathBuf> = existing.collect();
                let is_current = given.is_empty() && !["cp", "mv", "rm", "scp"].contains(&name);
                self.whole.extend(given);
                self.whole.extend(is_current.then_some(directory));
            }
            ReadScope::Repository => {
                let given: Vec<PathBuf> = existing.collect();
                let is_current = given.is_empty();
                self.in_history.extend(given);
                self.in_history.extend(is_current.then_some(directory));
            }
            ReadScope::Told => self.in_history.extend(existing),
            ReadScope::Nothing => {}
        }
    }
}

/// How much of directories a program reads.
enum ReadScope {
    Nothing,
    /// All files of the directories among its arguments, or of its own directory.
    Files,
    /// As [`Self::Files`], in a repository.
    Repository,
    /// The files of the directories among its arguments, in a repository.
    Told,
}

fn reads_whole(name: &str, words: &[&str]) -> ReadScope {
    if name == "git" {
        let has = |names: &[&str]| words.iter().any(|word| names.contains(word));
        return match (has(&OF_GIT), has(&OF_HISTORY)) {
            (true, _) => ReadScope::Repository,
            (false, true) => ReadScope::Told,
            (false, false) => ReadScope::Nothing,
        };
    }
    let has_option = |letters: &str, long: &[&str]| {
        words.iter().any(|word| {
            let is_short = word.starts_with('-') && !word.starts_with("--");
            long.contains(word) || is_short && word.contains(|c| letters.contains(c))
        })
    };
    let is_recursive = WITH_OPTION
        .iter()
        .any(|(program, letters, long)| *program == name && has_option(letters, long));
    match is_recursive || WHOLE.contains(&name) {
        true => ReadScope::Files,
        false => ReadScope::Nothing,
    }
}

/// Returns the place of the program in the words, behind those that only set how it runs.
fn program(words: &[&str]) -> Option<usize> {
    let is_wrapper = |word: &str| PREFIXES.contains(&base_name(word));
    let mut at = 0;
    while words.get(at).is_some_and(|word| is_wrapper(word)) {
        at += 1;
        while let Some(word) = words.get(at) {
            let is_number = word.starts_with(|c: char| c.is_ascii_digit());
            let takes_next = DIRECTORY_OPTIONS.contains(word);
            if !word.starts_with('-') && !word.contains('=') && !is_number {
                break;
            }
            at += 1 + usize::from(takes_next);
        }
    }
    (at < words.len()).then_some(at)
}

/// Returns the directory in which a program works, as its options say.
fn directory(words: &[&str], directory: Option<&Path>, home: Option<&Path>) -> Option<PathBuf> {
    let mut directory = directory?.to_owned();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let told = match word.split_once('=') {
            Some((option, value)) if DIRECTORY_OPTIONS.contains(&option) => Some(value),
            _ if DIRECTORY_OPTIONS.contains(word) => words.next().copied(),
            _ => None,
        };
        if let Some(told) = told {
            directory = resolve_text(told, &directory, home)?;
        }
    }
    Some(directory)
}

/// Returns the top of the repository around a directory, or the directory itself.
fn top_of_repository(directory: &Path) -> &Path {
    let mut above = directory.ancestors();
    above
        .find(|it| it.join(".git").exists())
        .unwrap_or(directory)
}
