//! The listing of a directory. It says how many files a directory has only if all are listed: a small model takes
//! any number that it sees for the one that was asked for.

use super::looking::{DirectoryContents, ListedEntry};
use std::fmt;

/// Files of the directory itself that are named, directories below it, and entries of each.
const OWN_FILES_MAX: usize = 12;
const DIRECTORIES_MAX: usize = 8;
const ENTRIES_OF_DIRECTORY_MAX: usize = 8;

/// Writes the listing, without a line end behind it.
pub(super) fn write(f: &mut fmt::Formatter<'_>, seen: &DirectoryContents) -> fmt::Result {
    writeln!(f, "<files>")?;
    if let Some(branch) = &seen.branch {
        writeln!(f, "(git repository, branch {branch})")?;
    }
    let own = seen.directories.get("").into_iter().flatten();
    let own: Vec<_> = own.filter(|entry| entry.is_file).collect();
    for file in own.iter().take(OWN_FILES_MAX) {
        writeln!(f, "{file}")?;
    }
    if own.len() > OWN_FILES_MAX {
        writeln!(f, "... and more files")?;
    }
    let with_files = below(seen, |entry| entry.is_file);
    let has_all = seen.has_all_names && with_files.len() <= DIRECTORIES_MAX;
    let shown = if has_all {
        with_files
    } else {
        below(seen, |_| true)
    };
    for (path, entries) in shown.iter().take(DIRECTORIES_MAX) {
        let named = entries.iter().take(ENTRIES_OF_DIRECTORY_MAX);
        let mut named: Vec<String> = named.map(ToString::to_string).collect();
        if entries.len() > ENTRIES_OF_DIRECTORY_MAX {
            named.push("...".to_owned());
        }
        let named = named.join(", ");
        if has_all {
            writeln!(f, "{path}/ has {} files: {named}", entries.len())?;
        } else {
            writeln!(f, "{path}/: {named}")?;
        }
    }
    if !has_all {
        writeln!(f, "... and more files and directories")?;
    }
    if let Some(path) = longest(seen) {
        writeln!(f, "(most lines: {path})")?;
    }
    write!(f, "</files>")
}

/// Returns the directories below, those of the upper levels first, each with some of its entries; without those that
/// have none.
fn below(
    seen: &DirectoryContents,
    is_named: impl Fn(&ListedEntry) -> bool,
) -> Vec<(&str, Vec<&ListedEntry>)> {
    let below = seen.directories.iter().filter(|(path, _)| !path.is_empty());
    let mut below: Vec<_> = below
        .map(|(path, entries)| {
            let named = entries.iter().filter(|entry| is_named(entry));
            (path.as_str(), named.collect::<Vec<_>>())
        })
        .filter(|(_, named)| !named.is_empty())
        .collect();
    below.sort_by_key(|(path, _)| path.matches('/').count());
    below
}

/// Returns the file with most lines, the first of several, if there is more than one and all were read.
fn longest(seen: &DirectoryContents) -> Option<&str> {
    let files = seen.files.iter();
    let files = files.filter(|_| seen.is_whole && seen.files.len() > 1);
    let longest = files.rev().max_by_key(|file| file.text.lines().count())?;
    Some(&longest.path)
}
