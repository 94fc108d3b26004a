//! One bounded look at a directory: which files it has, and the text of small ones.

use super::rank::TextFile;
use crate::blocking::Call;
use crate::failure::Failure;
use crate::walk::{Order, Walk, WalkEntry};
use crate::workspace::{Access, Workspace, WorkspacePath, open_regular};
use std::collections::BTreeMap;
use std::fmt;
use std::io::Read as _;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Entries that are looked at, levels of directories, and time that all of it may take.
const VISITED_MAX: usize = 2_000;
const DEPTH_MAX: usize = 4;
const TIME_MAX: Duration = Duration::from_millis(150);
/// Files that are read, bytes of one, and bytes of all.
const READ_FILES_MAX: usize = 300;
const FILE_BYTES_MAX: u64 = 64 << 10;
const READ_BYTES_MAX: u64 = 2 << 20;
/// Characters of a path.
const PATH_CHARS_MAX: usize = 80;
/// Bytes of `.git/HEAD`.
const HEAD_BYTES_MAX: u64 = 512;

/// Content of a directory.
#[derive(Debug, Default)]
pub(super) struct DirectoryContents {
    /// The branch that is checked out, if the directory is the top of a repository.
    pub(super) branch: Option<String>,
    /// Entries by their directories, of which the working directory has the empty path.
    pub(super) directories: BTreeMap<String, Vec<ListedEntry>>,
    /// Small text files.
    pub(super) files: Vec<TextFile>,
    /// Set if `directories` is complete.
    pub(super) has_all_names: bool,
    /// Set if all files were read, so that a word that was not found does not occur.
    pub(super) is_whole: bool,
}

/// An entry of a directory.
#[derive(Debug)]
pub(super) struct ListedEntry {
    name: String,
    lines: Option<usize>,
    pub(super) is_file: bool,
}

impl fmt::Display for ListedEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.lines {
            Some(lines) => write!(f, "{} ({lines} lines)", self.name),
            None if self.is_file => f.write_str(&self.name),
            None => write!(f, "{}/", self.name),
        }
    }
}

/// Looks at the working directory of a workspace. Hidden and ignored files are left out, and so are links. Blocks for
/// at most 150 milliseconds and one read.
pub(super) fn look(workspace: &Arc<Workspace>) -> DirectoryContents {
    let mut looking = Looking {
        started: Instant::now(),
        visited: 0,
        read_bytes: 0,
        seen: DirectoryContents {
            has_all_names: true,
            is_whole: true,
            ..DirectoryContents::default()
        },
    };
    // An unreadable directory counts as empty: the model can still run commands.
    let _ = looking.look(&Call::looking(workspace));
    let files = &mut looking.seen.files;
    files.sort_by(|one, other| Path::new(&one.path).cmp(Path::new(&other.path)));
    looking.seen
}

/// A look, and what it has taken.
struct Looking {
    started: Instant,
    visited: usize,
    read_bytes: u64,
    seen: DirectoryContents,
}

impl Looking {
    fn look(&mut self, call: &Call) -> Result<(), Failure> {
        let place = call.workspace.locate(".", Access::Read)?;
        self.seen.branch = branch(&place);
        let walk = Walk {
            place: &place,
            glob: None,
            depth: Some(DEPTH_MAX),
            // Upper levels show more of a directory, if there is no time for all of it.
            order: Order::Levels,
            call,
        };
        walk.each(|found| {
            self.visited += 1;
            self.take(&place, found);
            let goes_on = self.visited < VISITED_MAX && self.started.elapsed() < TIME_MAX;
            if goes_on {
                return Ok(ControlFlow::Continue(()));
            }
            self.leave_out();
            Ok(ControlFlow::Break(()))
        })?;
        Ok(())
    }

    fn leave_out(&mut self) {
        self.seen.has_all_names = false;
        self.seen.is_whole = false;
    }

    fn take(&mut self, place: &WorkspacePath<'_>, found: &WalkEntry) {
        let (is_file, is_dir) = (found.metadata.is_file(), found.metadata.is_dir());
        if is_dir && found.relative.components().count() >= DEPTH_MAX {
            self.leave_out();
        }
        if !is_file && !is_dir {
            return;
        }
        let path = one_line(&place.show(&found.relative));
        let text = is_file.then(|| self.read(place, found)).flatten();
        let (directory, name) = path.rsplit_once('/').unwrap_or(("", &path));
        let listed = ListedEntry {
            name: name.to_owned(),
            lines: text.as_ref().map(|text| text.lines().count()),
            is_file,
        };
        let directories = &mut self.seen.directories;
        directories
            .entry(directory.to_owned())
            .or_default()
            .push(listed);
        if is_dir {
            directories.entry(path).or_default();
            return;
        }
        let file = text.map(|text| TextFile { path, text });
        self.seen.files.extend(file);
    }

    /// Reads a small text file, while there is room for one.
    fn read(&mut self, place: &WorkspacePath<'_>, found: &WalkEntry) -> Option<String> {
        let bytes = found.metadata.len();
        let fits = bytes <= FILE_BYTES_MAX
            && self.read_bytes + bytes <= READ_BYTES_MAX
            && self.seen.files.len() < READ_FILES_MAX;
        if !fits {
            self.seen.is_whole = false;
            return None;
        }
        self.read_bytes += bytes;
        read_text(place, &found.relative, FILE_BYTES_MAX)
    }
}

fn read_text(place: &WorkspacePath<'_>, path: &Path, bytes_max: u64) -> Option<String> {
    let (file, _) = open_regular(place.dir(), path, "").ok()?;
    let mut bytes = Vec::new();
    file.take(bytes_max).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    (!text.contains('\0')).then_some(text)
}

/// Returns the branch that is checked out, if the directory is the top of a repository.
fn branch(place: &WorkspacePath<'_>) -> Option<String> {
    let head = read_text(place, Path::new(".git/HEAD"), HEAD_BYTES_MAX)?;
    let head = head.trim();
    Some(one_line(
        head.strip_prefix("ref: refs/heads/").unwrap_or(head),
    ))
}

/// Returns a path without control characters, within its bound.
pub(super) fn one_line(path: &str) -> String {
    let clean = path
        .chars()
        .map(|it| if it.is_control() { '?' } else { it });
    clean.take(PATH_CHARS_MAX).collect()
}
