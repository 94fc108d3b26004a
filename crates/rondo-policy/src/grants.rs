//! Permissions that the user gave for the rest of a session.

use crate::analysis::{AllowedDirs, Analysis, SimpleWords};
use rondo_types::{Grant, GrantScope};
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

/// Permissions of the user. Clones share them, so that the gates of all turns of a session see them at once.
#[derive(Debug, Clone, Default)]
pub struct Grants(Arc<RwLock<Vec<Grant>>>);

/// Programs that do the same whatever follows their words, as far as the sandbox lets them: what they run is the workspace's
/// own code with any further words as with none. Outside of it they read and write any file that an option names
/// (`git commit -F ~/.ssh/id_rsa`, `ruff --output-file=~/.bashrc`). The list is closed, since most programs have an option
/// that runs, sends or overwrites anything. `git push` is not on it: the next word may be any address.
const EXTENSIBLE: &[(&str, &[&str])] = &[
    (
        "cargo",
        &["bench", "build", "check", "clippy", "doc", "fmt", "test"],
    ),
    ("git", &["add", "commit", "switch", "tag"]),
    ("go", &["build", "fmt", "test", "vet"]),
    ("gofmt", &[]),
    ("mypy", &[]),
    ("npm", &["test"]),
    ("pnpm", &["test"]),
    ("pytest", &[]),
    ("ruff", &[]),
    ("rustfmt", &[]),
    ("tsc", &[]),
    ("yarn", &["test"]),
];

/// Programs that change the files that their words name and nothing else. Further words are as safe if all of them
/// lead to ordinary files inside the directories.
const OF_FILES: [&str; 5] = ["cp", "ln", "mkdir", "mv", "touch"];
/// Their options that take no value; with others it is not known which words are files. Those that copy all that is in a
/// directory are not among them: the names in it are not known.
const OPTIONS_OF_FILES: [&str; 8] = ["-f", "-i", "-n", "-p", "-s", "-sf", "-v", "--"];
/// Those that put each file into the last one if that is a directory.
const INTO_DIRECTORY: [&str; 3] = ["cp", "ln", "mv"];
/// The longest prefix that is offered, in bytes.
const PREFIX_BYTES_MAX: usize = 60;

impl Grants {
    /// Starts with what was allowed before.
    #[must_use]
    pub fn new(grants: impl IntoIterator<Item = Grant>) -> Self {
        let all = Self::default();
        grants.into_iter().for_each(|it| all.add(it));
        all
    }

    /// Allows what a grant says, unless the user's settings keep it: then these alone count. Beyond
    /// [`Grant::COUNT_MAX`] the oldest one gives way.
    pub fn add(&self, grant: Grant) {
        if grant.scope.is_setting() {
            return;
        }
        let mut grants = self.0.write().unwrap_or_else(PoisonError::into_inner);
        grants.retain(|it| *it != grant);
        if grants.len() >= Grant::COUNT_MAX {
            grants.remove(0);
        }
        grants.push(grant);
    }

    /// Returns all of them, the oldest first.
    #[must_use]
    pub fn list(&self) -> Vec<Grant> {
        self.any_of(<[Grant]>::to_vec)
    }

    /// Returns whether a call is allowed; `hash` is asked for only if one call was allowed exactly. A permission for
    /// all calls of a tool counts if this is an `ordinary` one.
    pub(crate) fn allow_call(
        &self,
        tool: &str,
        is_wary: bool,
        ordinary: bool,
        hash: impl Fn() -> String,
    ) -> bool {
        let counts = |it: &&Grant| it.despite_outside_text || !is_wary;
        let (whole, exact): (bool, Vec<String>) = self.any_of(|grants| {
            let of_tool =
                |it: &&Grant| matches!(&it.scope, GrantScope::Tool { tool: it } if it == tool);
            let exact = grants
                .iter()
                .filter(counts)
                .filter_map(|it| match &it.scope {
                    GrantScope::Call { tool: of, hash, .. } if of == tool => Some(hash.clone()),
                    _ => None,
                });
            (
                grants.iter().filter(counts).any(|it| of_tool(&it)),
                exact.collect(),
            )
        });
        (whole && ordinary) || (!exact.is_empty() && exact.contains(&hash()))
    }

    /// Returns whether every simple command that does more than look begins with what was allowed, and is safe to
    /// extend as it is extended.
    pub(crate) fn allow_commands(
        &self,
        tool: &str,
        is_wary: bool,
        analysis: &Analysis,
        dirs: &AllowedDirs,
    ) -> bool {
        let prefixes: Vec<Vec<String>> = self.any_of(|grants| {
            let counts = grants
                .iter()
                .filter(|it| it.despite_outside_text || !is_wary);
            let prefixes = counts.filter_map(|it| match &it.scope {
                GrantScope::Commands { tool: of, prefix } if of == tool => Some(prefix.clone()),
                _ => None,
            });
            prefixes.collect()
        });
        if prefixes.is_empty() {
            return false;
        }
        let Some(commands) = analysis.plain_effects() else {
            return false;
        };
        commands.iter().all(|command| {
            let begins = |prefix: &Vec<String>| {
                prefix.len() <= command.words.len()
                    && prefix
                        .iter()
                        .zip(&command.words)
                        .all(|(one, other)| one == other)
            };
            safe_prefix(command, dirs).is_some() && prefixes.iter().any(begins)
        })
    }

    fn any_of<T>(&self, look: impl FnOnce(&[Grant]) -> T) -> T {
        look(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Returns the words that a command begins with if it is safe to allow all commands that begin so, and this is one of
/// those.
pub(crate) fn safe_prefix(command: &SimpleWords<'_>, dirs: &AllowedDirs) -> Option<Vec<String>> {
    let (program, rest) = command.words.split_first()?;
    if command.runs_others {
        return None;
    }
    let length = if OF_FILES.contains(program) {
        changes_only_inside(command, dirs).then_some(1)
    } else {
        let (_, subcommands) = EXTENSIBLE.iter().find(|(name, _)| name == program)?;
        match (subcommands.is_empty(), rest.first()) {
            (true, _) => Some(1),
            (false, Some(word)) => subcommands.contains(word).then_some(2),
            (false, None) => None,
        }
    }?;
    let prefix: Vec<String> = command
        .words
        .iter()
        .take(length)
        .map(ToString::to_string)
        .collect();
    (prefix.iter().map(String::len).sum::<usize>() <= PREFIX_BYTES_MAX).then_some(prefix)
}

/// Returns whether a program changes ordinary files inside the directories, and nothing else.
pub(crate) fn changes_only_inside(command: &SimpleWords<'_>, dirs: &AllowedDirs) -> bool {
    let Some((program, operands)) = command.words.split_first() else {
        return false;
    };
    let is_inside = |word: &&str| match word.starts_with('-') {
        true => OPTIONS_OF_FILES.contains(word),
        false => dirs.holds_ordinary(word.as_ref()),
    };
    let names_in_last = || {
        let files = operands.iter().filter(|word| !word.starts_with('-'));
        let files: Vec<&Path> = files.map(Path::new).collect();
        let [sources @ .., last] = files.as_slice() else {
            return true;
        };
        // In a directory each has its own name, where a link may lead anywhere.
        let mut targets = sources
            .iter()
            .filter_map(|it| Some(last.join(it.file_name()?)));
        !INTO_DIRECTORY.contains(program) || targets.all(|it| dirs.holds_ordinary(&it))
    };
    OF_FILES.contains(program)
        && !command.has_moved
        && operands.iter().all(is_inside)
        && names_in_last()
}
