//! The directories that file tools may touch.

use crate::failure::Failure;
use crate::hidden::{self, DeniedFiles, HiddenPaths, HiddenRules, IGNORE_FILE};
use crate::rules::Rules;
use cap_fs_ext::OpenOptionsSyncExt;
use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, Metadata, OpenOptions};
use std::io;
use std::path::{Component, Path, PathBuf};

/// The bound on directories of one workspace.
const ROOTS_MAX: usize = 64;

/// The bound on a path, in bytes: that of Linux.
const PATH_BYTES_MAX: usize = 4_096;

/// The directories that tools may touch, each opened once.
///
/// Relative paths are relative to the working directory. Absolute paths are accepted beneath any of the
/// directories. Links and `..` are followed as long as they stay beneath the same directory; a link with an
/// absolute target is always refused.
#[derive(Debug)]
pub struct Workspace {
    roots: Vec<Root>,
    writes_through_links: bool,
}

/// Why a workspace cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// A directory cannot be opened.
    #[error("failed to open directory `{}`", path.display())]
    Open {
        /// The directory.
        path: PathBuf,
        /// Cause of the failure.
        #[source]
        source: io::Error,
    },
    /// A directory's `.rondoignore`, or the setting that adds to it, cannot be used.
    #[error("failed to read the ignore rules of `{}`", path.display())]
    Ignored {
        /// The file.
        path: PathBuf,
        /// Cause of the failure.
        #[source]
        source: io::Error,
    },
    /// There are too many directories.
    #[error("there are more than {ROOTS_MAX} directories")]
    TooMany,
}

#[derive(Debug)]
pub(crate) struct Root {
    /// Without links, to show and to match ignore rules against.
    path: PathBuf,
    /// As it was given, made absolute: the model may use this name.
    alias: PathBuf,
    dir: Dir,
    writable: bool,
    /// Rules of the ignore files above it.
    rules: Rules,
    /// Entries that no tool may read.
    hidden: HiddenRules,
}

/// Intended use of a path by a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

/// A path beneath a root.
#[derive(Debug)]
pub(crate) struct WorkspacePath<'a> {
    root: &'a Root,
    is_working: bool,
    /// Follows links on the way to a file that is written.
    pub(crate) writes_through_links: bool,
    /// Never empty: the root itself is `.`.
    pub(crate) relative: PathBuf,
}

impl Workspace {
    /// Opens the working directory.
    ///
    /// # Errors
    /// When it is not a directory or cannot be opened.
    pub fn open(working: impl AsRef<Path>) -> Result<Self, WorkspaceError> {
        Ok(Self {
            roots: vec![Root::open(working.as_ref(), true)?],
            writes_through_links: true,
        })
    }

    /// Follows no link on the way to a file that is written, wherever it leads: beside processes that plant
    /// links, the file that is written is then the one that is named.
    #[must_use]
    pub fn without_links(self) -> Self {
        Self {
            writes_through_links: false,
            ..self
        }
    }

    /// Adds a directory that may be read and written.
    ///
    /// # Errors
    /// When it is not a directory or cannot be opened, or there are too many.
    pub fn with_dir(self, path: impl AsRef<Path>) -> Result<Self, WorkspaceError> {
        self.with(path.as_ref(), true)
    }

    /// Adds a directory that may only be read, such as the one of spilled outputs.
    ///
    /// # Errors
    /// When it is not a directory or cannot be opened, or there are too many.
    pub fn with_read_only_dir(self, path: impl AsRef<Path>) -> Result<Self, WorkspaceError> {
        self.with(path.as_ref(), false)
    }

    /// Hides what the `.rondoignore` of each directory names, what these patterns do, and from searches and lists also what
    /// rules deny. Call it when all directories have been added.
    ///
    /// # Errors
    /// When such a file cannot be read, or a line is not a pattern.
    pub fn hiding(
        mut self,
        patterns: &[String],
        denied: Option<&DeniedFiles>,
    ) -> Result<Self, WorkspaceError> {
        for root in &mut self.roots {
            let hidden = HiddenRules::new(&root.dir, &root.path, patterns, denied.cloned());
            root.hidden = hidden.map_err(|(directory, source)| WorkspaceError::Ignored {
                path: directory.join(IGNORE_FILE),
                source,
            })?;
        }
        Ok(self)
    }

    /// Looks for the files that are hidden in the directories that may be written, as far as bounds allow.
    ///
    /// This may take as long as the disk does.
    #[must_use]
    pub fn find_hidden(&self) -> HiddenPaths {
        let roots = self.roots.iter().filter(|root| root.writable);
        let found = hidden::find(roots.map(|root| &root.hidden));
        self.roots
            .iter()
            .for_each(|root| root.hidden.note_links(&found));
        found
    }

    /// Returns the working directory, without links.
    #[must_use]
    pub fn working_dir(&self) -> &Path {
        self.roots
            .first()
            .map_or(Path::new("/"), |root| root.path.as_path())
    }

    /// Returns all directories without links, the working directory first, and whether each may be
    /// written.
    pub fn dirs(&self) -> impl Iterator<Item = (&Path, bool)> {
        self.roots
            .iter()
            .map(|root| (root.path.as_path(), root.writable))
    }

    fn with(mut self, path: &Path, writable: bool) -> Result<Self, WorkspaceError> {
        if self.roots.len() >= ROOTS_MAX {
            return Err(WorkspaceError::TooMany);
        }
        self.roots.push(Root::open(path, writable)?);
        Ok(self)
    }

    /// Finds the root of a path that a model named. Opens nothing.
    pub(crate) fn locate(&self, path: &str, access: Access) -> Result<WorkspacePath<'_>, Failure> {
        if path.len() > PATH_BYTES_MAX || path.contains('\0') {
            return Err(Failure::InvalidArgs(
                "`path` is not a valid path".to_owned(),
            ));
        }
        let place = self.place(Path::new(path)).ok_or_else(|| {
            Failure::Failed(format!("`{path}` is outside the allowed directories"))
        })?;
        if access == Access::Write && !place.root.writable {
            return Err(Failure::Failed(format!("`{path}` may only be read")));
        }
        place.check_hidden(path)?;
        Ok(place)
    }

    fn place(&self, path: &Path) -> Option<WorkspacePath<'_>> {
        let (index, root, relative) = if path.is_absolute() {
            self.roots
                .iter()
                .enumerate()
                .filter_map(|(index, root)| Some((index, root, root.strip(path)?)))
                .min_by_key(|(_, _, relative)| relative.components().count())?
        } else {
            (0, self.roots.first()?, path)
        };
        let is_root = relative.as_os_str().is_empty();
        Some(WorkspacePath {
            root,
            is_working: index == 0,
            writes_through_links: self.writes_through_links,
            relative: if is_root { Path::new(".") } else { relative }.to_path_buf(),
        })
    }
}

impl Root {
    fn open(path: &Path, writable: bool) -> Result<Self, WorkspaceError> {
        let failed = |source| WorkspaceError::Open {
            path: path.to_path_buf(),
            source,
        };
        let alias = std::path::absolute(path).map_err(failed)?;
        let canonical = alias.canonicalize().map_err(failed)?;
        let dir = Dir::open_ambient_dir(&canonical, ambient_authority()).map_err(failed)?;
        let rules = Rules::above(&canonical);
        Ok(Self {
            rules,
            hidden: HiddenRules::default(),
            path: canonical,
            alias,
            dir,
            writable,
        })
    }

    fn strip<'a>(&self, path: &'a Path) -> Option<&'a Path> {
        path.strip_prefix(&self.path)
            .or_else(|_| path.strip_prefix(&self.alias))
            .ok()
    }
}

impl WorkspacePath<'_> {
    pub(crate) fn dir(&self) -> &Dir {
        &self.root.dir
    }

    /// Returns the path as the model may use it again.
    pub(crate) fn shown(&self) -> String {
        self.show(&self.relative)
    }

    /// Returns the whole path, in which links may be left.
    pub(crate) fn full(&self) -> PathBuf {
        without_dots(&self.root_path().join(&self.relative))
    }

    /// Returns another path of the same root as the model may use it again.
    pub(crate) fn show(&self, relative: &Path) -> String {
        if self.is_working {
            return relative.to_string_lossy().into_owned();
        }
        let relative = relative.strip_prefix(".").unwrap_or(relative);
        self.root.path.join(relative).to_string_lossy().into_owned()
    }

    /// Refuses a path that is ignored: as it is written, and where its links lead.
    fn check_hidden(&self, shown: &str) -> Result<(), Failure> {
        let root = self.root_path();
        let check = |path: &Path| self.root.hidden.check(path, shown);
        check(&without_dots(&root.join(&self.relative)))?;
        // A missing file has its directory's links.
        let mut ways = self.relative.ancestors().take(2);
        let real = ways.find_map(|way| {
            let way = if way.as_os_str().is_empty() {
                Path::new(".")
            } else {
                way
            };
            let rest = self.relative.strip_prefix(way).unwrap_or(Path::new(""));
            Some(self.dir().canonicalize(way).ok()?.join(rest))
        });
        real.map_or(Ok(()), |real| check(&without_dots(&root.join(real))))
    }

    /// Returns the files that no tool may read.
    pub(crate) fn hidden(&self) -> &HiddenRules {
        &self.root.hidden
    }

    /// Returns the rules of the ignore files above the root.
    pub(crate) fn rules(&self) -> &Rules {
        &self.root.rules
    }

    /// Returns the root's own path, which ignore rules are matched against.
    pub(crate) fn root_path(&self) -> &Path {
        &self.root.path
    }

    /// Resolves all links beneath the root.
    pub(crate) fn resolved(&self) -> Result<PathBuf, Failure> {
        let path = self
            .dir()
            .canonicalize(&self.relative)
            .map_err(|err| Failure::io("resolve", &self.shown(), &err))?;
        Ok(if path.as_os_str().is_empty() {
            PathBuf::from(".")
        } else {
            path
        })
    }

    /// Opens the file for reading.
    pub(crate) fn open_file(&self) -> Result<(File, Metadata), Failure> {
        open_regular(self.dir(), &self.relative, &self.shown())
    }
}

/// Opens a file for reading; refuses whatever is not a regular file.
///
/// Without blocking: opening a pipe without a writer would wait forever.
pub(crate) fn open_regular(
    dir: &Dir,
    path: &Path,
    shown: &str,
) -> Result<(File, Metadata), Failure> {
    let mut options = OpenOptions::new();
    options.read(true).nonblock(true);
    let failed = |err| Failure::io("open", shown, &err);
    let file = dir.open_with(path, &options).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if metadata.is_dir() {
        return Err(Failure::Failed(format!("`{shown}` is a directory")));
    }
    if !metadata.is_file() {
        return Err(Failure::Failed(format!("`{shown}` is not a regular file")));
    }
    Ok((file, metadata))
}

/// Takes out `.` and `..`, as if no part of the path were a link.
fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}
