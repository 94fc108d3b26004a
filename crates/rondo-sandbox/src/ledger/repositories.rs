//! Repositories below a directory whose settings were changed since a command started that was not watched to its end.

use std::collections::VecDeque;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The bound on entries of directories that are looked at.
const ENTRIES_MAX: usize = 200_000;
/// The name of a directory that is a repository.
const GIT: &str = ".git";
/// File that makes a directory a repository, or the part of one that belongs to a worktree.
const HEAD: &str = "HEAD";
/// The settings of a repository, and where else `git` looks for them.
const SETTINGS: [&str; 4] = ["commondir", "config", "config.worktree", "gitdir"];
/// The directory of the programs that `git` runs.
const HOOKS: &str = "hooks";
/// Files of interrupted work that can run a program.
const INTERRUPTED: [&str; 6] = [
    "rebase-merge",
    "rebase-merge/git-rebase-todo",
    "rebase-merge/strategy",
    "sequencer",
    "sequencer/opts",
    "sequencer/todo",
];
/// Directory of Rondo's settings.
const RONDO: &str = ".rondo";
/// Directories of a repository that have many files, none of which is run.
const DATA: [&str; 3] = ["logs", "objects", "refs"];

/// Returns the settings, hooks and interrupted work of repositories below these directories that were changed at that time
/// or later, as the kernel notes it: no command can set that time.
pub(super) fn changed_since(roots: &[PathBuf], since: SystemTime) -> Vec<PathBuf> {
    // The kernel's time of a change is as old as its latest tick.
    let since = since
        .checked_sub(Duration::from_millis(20))
        .unwrap_or(since);
    let since = since
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    let mut found = Vec::new();
    let mut left = ENTRIES_MAX;
    let mut next: VecDeque<PathBuf> = roots.iter().cloned().collect();
    while let Some(directory) = next.pop_front() {
        let listed = fs::read_dir(&directory).into_iter().flatten().flatten();
        let entries: Vec<fs::DirEntry> = listed.take(left).collect();
        left = left.saturating_sub(entries.len());
        // A command that has removed the head of a repository can make it again.
        let is_named_so = directory.file_name().is_some_and(|it| it == GIT);
        let is_repository = is_named_so || entries.iter().any(|it| it.file_name() == HEAD);
        let is_of_hooks = directory.file_name().is_some_and(|it| it == HOOKS)
            && directory.parent().is_some_and(|it| it.join(HEAD).exists());
        if is_repository {
            let interrupted = INTERRUPTED.iter().map(|it| directory.join(it));
            found.extend(interrupted.filter(|it| changed_at(it).is_some_and(|it| it >= since)));
        }
        for entry in entries {
            let name = entry.file_name();
            let is_one_of = |names: &[&str]| names.iter().any(|it| name == *it);
            let is_directory = entry.file_type().is_ok_and(|it| it.is_dir());
            if is_directory && !(is_repository && is_one_of(&DATA)) {
                next.push_back(entry.path());
            }
            let is_setting = is_one_of(&SETTINGS) && !is_directory || name == HOOKS;
            let is_of_rondo = directory.iter().any(|it| it == RONDO) || name == RONDO;
            let is_run = is_of_hooks || is_of_rondo || is_repository && is_setting;
            if is_run && changed_at(&entry.path()).is_none_or(|it| it >= since) {
                found.push(entry.path());
            }
        }
    }
    found
}

/// Returns when the kernel noted the latest change of a file, counted from 1970.
fn changed_at(path: &Path) -> Option<Duration> {
    let metadata = path.symlink_metadata().ok()?;
    let seconds = u64::try_from(metadata.ctime()).ok()?;
    let nanoseconds = u32::try_from(metadata.ctime_nsec()).ok()?;
    Some(Duration::new(seconds, nanoseconds))
}
