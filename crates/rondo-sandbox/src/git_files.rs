//! Files in the directory of a repository that `git` writes, or writes through, without checking them first.
//!
//! It follows a link in the place of a file that it writes, such as `COMMIT_EDITMSG`, and writes wherever an index says.

use crate::content::kind;
use crate::directory::Directory;
use crate::index::{NoIndex, strange_conflict, strange_path};
use crate::nested::Stamp;
use crate::repository::Finding;
use rustix::fs::FileType;
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The bound on an index, in bytes.
const INDEX_BYTES_MAX: u64 = 128 << 20;
/// The bound on entries of directories that are looked at for links.
const ENTRIES_MAX: usize = 50_000;
/// The directories with files that `git` writes, beside the directory of the repository itself.
const WRITTEN: [&str; 6] = [
    "info",
    "logs",
    "rebase-apply",
    "rebase-merge",
    "rr-cache",
    "sequencer",
];
/// The index, and what the names of those begin with that it shares.
const INDEX: &str = "index";
const SHARED_INDEX: &[u8] = b"sharedindex.";
/// The list of conflicts whose resolutions are recorded.
const CONFLICTS: &str = "MERGE_RR";

/// An index or a list of conflicts, and what tells whether it was changed.
#[derive(Debug)]
pub(crate) struct List {
    name: OsString,
    stamp: Stamp,
}

/// Extent of the check of the lists of paths.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Lists<'a> {
    /// Nothing but whether they can be looked at.
    Noted,
    /// Those that were changed since they were noted.
    Changed(&'a [List]),
}

/// Returns the links in the directory of a repository, and the lists of paths of which one lies elsewhere than in its working
/// tree; with the lists that there are.
///
/// # Errors
/// When something cannot be looked at, or is too large.
pub(crate) fn inspect(git: &Directory, lists: Lists<'_>) -> io::Result<(Vec<Finding>, Vec<List>)> {
    let mut findings = Vec::new();
    let mut noted = Vec::new();
    let mut names = Vec::new();
    let mut below = VecDeque::new();
    git.list(|name, kind, _| {
        let is_written = WRITTEN.iter().any(|it| name == *it);
        match kind {
            FileType::Directory if is_written => below.push_back(PathBuf::from(name)),
            FileType::Directory => {}
            _ => names.push((name.to_owned(), kind)),
        }
    })?;
    for (name, kind) in names {
        if is_link(git, Path::new(&name), kind)? {
            findings.push(of_link(git, name.into())?);
        } else if is_list(&name) {
            noted.extend(inspect_list(git, name, lists, &mut findings)?);
        }
    }
    inspect_links(git, below, &mut findings)?;
    Ok((findings, noted))
}

/// Looks for links in directories and below them.
fn inspect_links(
    git: &Directory,
    mut next: VecDeque<PathBuf>,
    findings: &mut Vec<Finding>,
) -> io::Result<()> {
    let mut left = ENTRIES_MAX;
    while let Some(below) = next.pop_front() {
        let mut links = Vec::new();
        let listed = git.list_below(&below, |name, kind, _| {
            left = left.saturating_sub(1);
            match kind {
                FileType::Directory => next.push_back(below.join(name)),
                FileType::Symlink | FileType::Unknown => links.push((below.join(name), kind)),
                _ => {}
            }
        });
        if let Err(err) = listed
            && err.kind() != io::ErrorKind::NotFound
        {
            return Err(err);
        }
        if left == 0 {
            let message =
                format!("it has more than {ENTRIES_MAX} logs and other files that `git` writes");
            return Err(io::Error::other(message));
        }
        for (path, kind) in links {
            if is_link(git, &path, kind)? {
                findings.push(of_link(git, path)?);
            }
        }
    }
    Ok(())
}

/// Returns whether an entry is a link; some file systems do not say that when they list it.
fn is_link(git: &Directory, path: &Path, listed: FileType) -> io::Result<bool> {
    match listed {
        FileType::Unknown => Ok(git
            .stat(path)?
            .is_some_and(|it| kind(&it) == FileType::Symlink)),
        listed => Ok(listed == FileType::Symlink),
    }
}

fn of_link(git: &Directory, path: PathBuf) -> io::Result<Finding> {
    let target = rustix::fs::readlinkat(git.as_fd(), &path, Vec::new())?.into_bytes();
    let what = format!("it leads to `{}`", String::from_utf8_lossy(&target));
    Ok(Finding::new(path, what, target))
}

fn is_list(name: &OsStr) -> bool {
    name == INDEX || name == CONFLICTS || name.as_bytes().starts_with(SHARED_INDEX)
}

/// Looks at a list of paths unless it is as it was; returns what tells that, or nothing if it is not there any more.
fn inspect_list(
    git: &Directory,
    name: OsString,
    lists: Lists<'_>,
    findings: &mut Vec<Finding>,
) -> io::Result<Option<List>> {
    let Some(found) = git.stat(&name)? else {
        return Ok(None);
    };
    if u64::try_from(found.st_size).is_ok_and(|it| it > INDEX_BYTES_MAX) {
        let message = format!(
            "`{}` is larger than {} MiB",
            name.display(),
            INDEX_BYTES_MAX >> 20
        );
        return Err(io::Error::other(message));
    }
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or(Duration::ZERO);
    let stamp = Stamp::of(&found, now);
    let is_looked_at = match lists {
        Lists::Noted => false,
        Lists::Changed(noted) => !noted
            .iter()
            .any(|it| it.name == name && it.stamp.is_same(&stamp)),
    };
    if is_looked_at && kind(&found) == FileType::RegularFile {
        let bytes = git.read(&name, INDEX_BYTES_MAX)?.unwrap_or_default();
        let strange = match name == CONFLICTS {
            true => Ok(strange_conflict(&bytes)),
            false => strange_path(&bytes),
        };
        let what = match strange {
            Ok(None) => None,
            Ok(Some(path)) => Some(format!(
                "it has `git` write to `{}`",
                String::from_utf8_lossy(&path)
            )),
            Err(NoIndex) => Some("`git` cannot read it".to_owned()),
        };
        findings.extend(what.map(|what| Finding::new(&name, what, [])));
    }
    Ok(Some(List { name, stamp }))
}
