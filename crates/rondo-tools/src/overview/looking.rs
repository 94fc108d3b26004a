//! One bounded look at a directory: which files it has, and the text of small ones.

use super::rank::TextFile;
use crate::blocking::Call;
use crate::failure::Failure;
use crate::walk::{Found, Walk};
use crate::workspace::{Access, Workspace, WorkspacePath, open_regular};
use std::collections::BTreeMap;
use std::fmt;
use std::io::Read as _;
use std::ops::ControlFlow;
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

/// What a directory has.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// The branch that is checked out, where the directory is the top of a repository.
    pub(super) branch: Option<String>,
    /// Files by their directories, of which the working directory has the empty path.
    pub(super) directories: BTreeMap<String, Vec<Listed>>,
    /// Small text files.
    pub(super) files: Vec<TextFile>,
    /// Whether all files were read, so that what was not found is not there.
    pub(super) is_whole: bool,
}

#[derive(Debug)]
pub(super) struct Listed {
    name: String,
    lines: Option<usize>,
}

impl fmt::Display for Listed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.lines {
            Some(lines) => write!(f, "{} ({lines} lines)", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// Looks at the working directory of a workspace. Hidden and ignored files are left out, and so are links. Blocks for
/// at most 150 milliseconds and one read.
pub(super) fn look(workspace: &Arc<Workspace>) -> Seen {
    let mut looking = Looking {
        started: Instant::now(),
        visited: 0,
        read_bytes: 0,
        seen: Seen {
            is_whole: true,
            ..Seen::default()
        },
    };
    // What cannot be looked at is as good as empty: the model can still run commands.
    let _ = looking.look(&Call::looking(workspace));
    looking.seen
}

/// A look, and what it has taken.
struct Looking {
    started: Instant,
    visited: usize,
    read_bytes: u64,
    seen: Seen,
}

impl Looking {
    fn look(&mut self, call: &Call) -> Result<(), Failure> {
        let place = call.workspace.locate(".", Access::Read)?;
        self.seen.branch = branch(&place);
        let walk = Walk {
            place: &place,
            glob: None,
            depth: Some(DEPTH_MAX),
            call,
        };
        walk.each(|found| {
            self.visited += 1;
            if found.metadata.is_file() {
                self.take(&place, found);
            } else if found.relative.components().count() >= DEPTH_MAX {
                self.seen.is_whole = false;
            }
            let goes_on = self.visited < VISITED_MAX && self.started.elapsed() < TIME_MAX;
            if goes_on {
                return Ok(ControlFlow::Continue(()));
            }
            self.seen.is_whole = false;
            Ok(ControlFlow::Break(()))
        })?;
        Ok(())
    }

    fn take(&mut self, place: &WorkspacePath<'_>, found: &Found) {
        let path = one_line(&place.show(&found.relative));
        let text = self.read(place, found);
        let lines = text.as_ref().map(|text| text.lines().count());
        let (directory, name) = path.rsplit_once('/').unwrap_or(("", &path));
        let listed = Listed {
            name: name.to_owned(),
            lines,
        };
        let directories = &mut self.seen.directories;
        directories
            .entry(directory.to_owned())
            .or_default()
            .push(listed);
        let file = text.map(|text| TextFile { path, text });
        self.seen.files.extend(file);
    }

    /// Reads a small text file, while there is room for one.
    fn read(&mut self, place: &WorkspacePath<'_>, found: &Found) -> Option<String> {
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

fn read_text(place: &WorkspacePath<'_>, path: &std::path::Path, bytes_max: u64) -> Option<String> {
    let (file, _) = open_regular(place.dir(), path, "").ok()?;
    let mut bytes = Vec::new();
    file.take(bytes_max).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    (!text.contains('\0')).then_some(text)
}

/// Returns the branch that is checked out, where the directory is the top of a repository.
fn branch(place: &WorkspacePath<'_>) -> Option<String> {
    let head = read_text(place, std::path::Path::new(".git/HEAD"), HEAD_BYTES_MAX)?;
    let head = head.trim();
    Some(one_line(
        head.strip_prefix("ref: refs/heads/").unwrap_or(head),
    ))
}

fn one_line(path: &str) -> String {
    let clean = path
        .chars()
        .map(|it| if it.is_control() { '?' } else { it });
    clean.take(PATH_CHARS_MAX).collect()
}
