//! Files that no tool may read: those that `.rondoignore` or a setting names, and those that a rule denies.

use crate::failure::Failure;
use crate::rules::FILE_BYTES_MAX;
use cap_fs_ext::OpenOptionsSyncExt;
use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use std::collections::VecDeque;
use std::fmt;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// The file at the top of a workspace that names what is ignored, in the syntax of `.gitignore`.
pub const IGNORE_FILE: &str = ".rondoignore";
/// The bound on files and directories that are looked at to find what is hidden.
const ENTRIES_MAX: usize = 50_000;
/// The bound on files and directories that are hidden from commands: each is a mount.
const HIDDEN_MAX: usize = 256;
/// The bound on directories above a root that are looked at to find the top of its repository.
const DEPTH_MAX: usize = 64;
/// The directories of repositories, whose files have no names that a person would ignore.
const REPOSITORY: &str = ".git";

/// Tells whether a rule denies a file or a directory to the tools that read.
#[derive(Clone)]
pub struct DeniedFiles(Arc<dyn Fn(&Path) -> bool + Send + Sync>);

impl DeniedFiles {
    /// Creates it from a test of an absolute path without links.
    pub fn new(denies: impl Fn(&Path) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(denies))
    }
}

impl fmt::Debug for DeniedFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeniedFiles").finish_non_exhaustive()
    }
}

/// Hidden entries of the directories of a workspace.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct HiddenPaths {
    /// The files and directories that are ignored; with a directory, all that is in it.
    pub ignored: Vec<PathBuf>,
    /// Those that a rule denies.
    pub denied: Vec<PathBuf>,
    /// The directories that cannot be looked into. A command can change that, so all that is in them is hidden from commands.
    pub closed: Vec<PathBuf>,
    /// Set if these are all: otherwise a bound was reached.
    pub is_complete: bool,
}

impl HiddenPaths {
    fn count(&self) -> usize {
        self.ignored.len() + self.denied.len() + self.closed.len()
    }
}

/// Hidden entries of one directory and all below it.
#[derive(Debug, Default)]
pub(crate) struct HiddenRules {
    ignored: Vec<Gitignore>,
    denied: Option<DeniedFiles>,
    /// The outermost directory with an ignore file, if it is above the root.
    top: Option<PathBuf>,
    root: PathBuf,
    /// Targets of hidden links, once they are known.
    targets: OnceLock<Vec<PathBuf>>,
}

impl HiddenRules {
    /// Reads the ignore file of a root, and those of the directories above it in the same repository. `patterns` count as if
    /// they were in that of the root.
    ///
    /// # Errors
    /// When one cannot be read, or has a line that is not a pattern: its author relies on it.
    pub(crate) fn new(
        dir: &Dir,
        root: &Path,
        patterns: &[String],
        denied: Option<DeniedFiles>,
    ) -> Result<Self, (PathBuf, io::Error)> {
        let text = read(dir).map_err(|err| (root.to_owned(), err))?;
        let own = matcher(root, &text.unwrap_or_default(), patterns);
        let mut ignored = vec![own.map_err(|err| (root.to_owned(), err))?];
        let mut top = None;
        for above in above_in_repository(root) {
            let enclosing = || {
                let dir = Dir::open_ambient_dir(above, ambient_authority())?;
                let text = read(&dir)?;
                text.map(|text| matcher(above, &text, &[])).transpose()
            };
            if let Some(found) = enclosing().map_err(|err| (above.to_owned(), err))? {
                ignored.push(found);
                top = Some(above.to_owned());
            }
        }
        ignored.retain(|it| !it.is_empty());
        Ok(Self {
            ignored,
            denied,
            top,
            root: root.to_owned(),
            targets: OnceLock::new(),
        })
    }

    /// Records the targets of hidden links, if they are not known yet.
    pub(crate) fn note_links(&self, found: &HiddenPaths) {
        self.targets.get_or_init(|| self.targets_in(found));
    }

    /// Returns whether a hidden link leads to a path, or to a directory above it.
    fn is_target(&self, path: &Path) -> bool {
        let find = || self.targets_in(&find(std::iter::once(self)));
        let targets = || self.targets.get_or_init(find).iter();
        !self.is_empty() && targets().any(|it| path.starts_with(it))
    }

    /// Returns the targets of hidden links, but for those that lead to the root itself or out of it upwards.
    fn targets_in(&self, found: &HiddenPaths) -> Vec<PathBuf> {
        let hidden = found.ignored.iter().chain(&found.denied);
        let links = hidden.filter(|it| it.is_symlink());
        let targets = links.filter_map(|it| it.canonicalize().ok());
        targets.filter(|it| !self.root.starts_with(it)).collect()
    }

    fn is_empty(&self) -> bool {
        self.ignored.is_empty() && self.denied.is_none()
    }

    /// Refuses a file or directory that is ignored, by its own name or one above it. `path` is absolute and below the root.
    pub(crate) fn check(&self, path: &Path, shown: &str) -> Result<(), Failure> {
        let above = path.ancestors().take_while(|it| *it != self.root);
        let is_ignored = |it: &Path| {
            let is_dir = it != path || it.is_dir();
            self.ignores(it, is_dir)
        };
        // Rules above count first: below an ignored directory nothing is taken back.
        let mut below = above.filter(|it| it.starts_with(&self.root));
        match below.any(is_ignored) || self.is_target(path) {
            true => Err(Failure::Failed(format!(
                "`{shown}` is ignored by {IGNORE_FILE}"
            ))),
            false => Ok(()),
        }
    }

    /// Returns whether a walk leaves out an entry; `path` is absolute, and what is above it was not left out.
    pub(crate) fn leaves_out(&self, path: &Path, is_dir: bool) -> bool {
        self.ignores(path, is_dir) || self.denies(path) || self.is_target(path)
    }

    fn ignores(&self, path: &Path, is_dir: bool) -> bool {
        // The innermost file counts first, as with `.gitignore`.
        let around = self.ignored.iter().filter(|it| path.starts_with(it.path()));
        let mut matches = around.map(|it| it.matched(path, is_dir));
        matches
            .find(|it| !it.is_none())
            .is_some_and(|it| it.is_ignore())
    }

    fn denies(&self, path: &Path) -> bool {
        self.denied.as_ref().is_some_and(|it| (it.0)(path))
    }
}

/// Looks for what is hidden below the roots, as far as the bounds allow. Follows no links.
pub(crate) fn find<'a>(roots: impl Iterator<Item = &'a HiddenRules>) -> HiddenPaths {
    let mut found = HiddenPaths {
        is_complete: true,
        ..HiddenPaths::default()
    };
    let mut budget = ENTRIES_MAX;
    for hidden in roots.filter(|it| !it.is_empty()) {
        // Commands in the sandbox may read the repository around the root.
        let top = hidden.top.as_deref().unwrap_or(&hidden.root);
        let mut pending = VecDeque::from([top.to_owned()]);
        while let Some(directory) = pending.pop_front() {
            let entries = match directory.read_dir() {
                Ok(entries) if is_searchable(&directory) => entries,
                Err(err) if err.kind() == io::ErrorKind::NotFound => continue,
                _ if directory != top && found.count() < HIDDEN_MAX => {
                    found.closed.push(directory);
                    continue;
                }
                _ => {
                    found.is_complete = false;
                    return found;
                }
            };
            for entry in entries.flatten() {
                let path = entry.path();
                let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
                let is_ignored = hidden.ignores(&path, is_dir);
                let is_hidden = is_ignored || hidden.denies(&path);
                if budget == 0 || is_hidden && found.count() >= HIDDEN_MAX {
                    found.is_complete = false;
                    return found;
                }
                budget -= 1;
                match (is_ignored, is_hidden) {
                    (true, _) => found.ignored.push(path),
                    (false, true) => found.denied.push(path),
                    (false, false) if is_dir && entry.file_name() != REPOSITORY => {
                        pending.push_back(path);
                    }
                    (false, false) => {}
                }
            }
        }
    }
    found
}

/// Returns whether what is in a directory can be reached.
fn is_searchable(directory: &Path) -> bool {
    directory.join(".").symlink_metadata().is_ok()
}

/// Returns the directories above a root up to the top of the repository that it is in, inner ones first; none if it is in
/// none, or is its top.
fn above_in_repository(root: &Path) -> impl Iterator<Item = &Path> {
    let is_top = |it: &Path| it.join(REPOSITORY).symlink_metadata().is_ok();
    let mut depth = root.ancestors().take(DEPTH_MAX).position(is_top);
    if depth == Some(0) {
        depth = None;
    }
    root.ancestors().skip(1).take(depth.unwrap_or_default())
}

/// Understands the lines of an ignore file in `root`, and `patterns`.
fn matcher(root: &Path, text: &str, patterns: &[String]) -> io::Result<Gitignore> {
    let mut builder = GitignoreBuilder::new(root);
    let lines = text.trim_start_matches('\u{feff}').lines();
    for line in lines.chain(patterns.iter().map(String::as_str)) {
        builder
            .add_line(None, line)
            .map_err(|err| io::Error::new(io::ErrorKind::InvalidData, err))?;
    }
    builder.build().map_err(io::Error::other)
}

/// Reads the ignore file; `None` if there is none.
fn read(dir: &Dir) -> io::Result<Option<String>> {
    let mut options = OpenOptions::new();
    options.read(true).nonblock(true);
    let file = match dir.open_with(IGNORE_FILE, &options) {
        Err(err) if err.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let metadata = file.metadata()?;
    if !metadata.is_file() || metadata.len() > FILE_BYTES_MAX {
        let reason = "it is not a regular file, or is longer than 256 KiB";
        return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
    }
    let mut text = String::new();
    file.take(FILE_BYTES_MAX).read_to_string(&mut text)?;
    Ok(Some(text))
}
