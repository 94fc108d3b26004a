//! The directories that a command may read, and whether a path is inside them.

use crate::unix::{self, Way};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

/// The most entries of a directory that are looked at for a pattern.
const ENTRIES_MAX: usize = 2000;

/// The longest path that a system takes, in bytes; each part of a longer one would be looked for in vain.
pub(crate) const PATH_BYTES_MAX: usize = 4096;

/// Entries of a directory that make it a repository; with the last set, the rest of it is elsewhere.
const OF_REPOSITORY: [&[&str]; 2] = [&["HEAD", "objects", "refs"], &["HEAD", "commondir"]];
/// Entries of a repository that run programs or lead to them.
const OF_SETTINGS: [&str; 4] = ["commondir", "config", "config.worktree", "hooks"];

/// Files that instruct agents.
const INSTRUCTIONS: [&str; 3] = ["AGENTS.md", "CLAUDE.md", "GEMINI.md"];

/// The directories that a command may read without approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedDirs {
    current: PathBuf,
    /// Set if the current directory differs from process to process.
    differs: bool,
    roots: Vec<PathBuf>,
}

impl AllowedDirs {
    /// Allows `current`, in which commands run, and the directories in `more`, with everything below them.
    ///
    /// # Errors
    /// When one of them does not exist.
    pub fn new(current: &Path, more: &[PathBuf]) -> io::Result<Self> {
        let current = fs::canonicalize(current)?;
        let mut roots = vec![current.clone()];
        for root in more {
            roots.push(fs::canonicalize(root)?);
        }
        Ok(Self {
            differs: unix::way(Path::new("/"), &current) == Way::Differs,
            current,
            roots,
        })
    }

    /// Returns the directory in which commands run.
    #[must_use]
    pub fn current(&self) -> &Path {
        &self.current
    }

    /// Returns the same directories for a command that runs in `directory`, relative to the
    /// current one.
    ///
    /// # Errors
    /// When it does not exist, or leads through a path that differs between processes, such as
    /// `/proc/self/cwd`.
    pub fn in_directory(&self, directory: &Path) -> io::Result<Self> {
        let Way::To(current) = self.way(directory) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        fs::metadata(&current)?;
        Ok(Self {
            current,
            differs: false,
            roots: self.roots.clone(),
        })
    }

    /// Returns whether a path without links is inside.
    #[must_use]
    pub fn contains(&self, path: &Path) -> bool {
        self.roots.iter().any(|root| path.starts_with(root))
    }

    /// Refuses a path that leads, or may lead, outside.
    pub(super) fn check(&self, path: &str) -> Result<(), String> {
        // `-` is the input to most programs and a file to some, and to a redirection.
        if path.is_empty() || path == "/dev/null" {
            return Ok(());
        }
        if self.leads_inside(Path::new(path)) {
            Ok(())
        } else {
            Err(format!("`{path}` may lie outside the allowed directories"))
        }
    }

    /// Follows a path from the current directory.
    fn way(&self, path: &Path) -> Way {
        if path.as_os_str().len() > PATH_BYTES_MAX {
            return Way::Unknown;
        }
        // The current directory was looked at before.
        match path.strip_prefix(&self.current) {
            _ if self.differs => Way::Differs,
            Ok(below) => unix::way(&self.current, below),
            Err(_) => unix::way(&self.current, path),
        }
    }

    fn leads_inside(&self, path: &Path) -> bool {
        let plain = path
            .components()
            .all(|part| !matches!(part, Component::ParentDir));
        match self.way(path) {
            Way::To(target) => self.contains(&target),
            Way::Ends(last) => plain && self.contains(&last),
            Way::Differs | Way::Unknown => false,
        }
    }

    /// Returns whether a path leads inside, by whatever links, and to nothing that has one of these names, or lies below
    /// something that has.
    pub(crate) fn holds_unprotected(&self, path: &Path, names: &[&str]) -> bool {
        self.holds_without(path, |part| {
            names.iter().any(|name| part.eq_ignore_ascii_case(name))
        })
    }

    /// Returns whether a path leads inside, by whatever links, and to nothing that is hidden or instructs agents, or lies
    /// below something that does.
    pub(crate) fn holds_ordinary(&self, path: &Path) -> bool {
        self.holds_without(path, |part| {
            let is_hidden = part.as_encoded_bytes().starts_with(b".");
            is_hidden
                || INSTRUCTIONS
                    .iter()
                    .any(|name| part.eq_ignore_ascii_case(name))
        })
    }

    /// Returns whether a path leads to one of these places that are inside, or to what lies below one.
    pub(crate) fn leads_into(&self, path: &Path, places: &[PathBuf]) -> bool {
        let place = self.place(path);
        let mut inside = places.iter().filter(|it| self.contains(it));
        place.is_some_and(|place| inside.any(|it| place.starts_with(it)))
    }

    /// Returns whether a path leads to a part of a repository that is not named `.git`: one that is there, or that what is
    /// written at the path completes.
    pub(crate) fn is_of_repository(&self, path: &Path) -> bool {
        let Some(place) = self.place(path) else {
            return false;
        };
        let around = place.ancestors().skip(1).filter(|it| self.contains(it));
        around.into_iter().any(|directory| {
            let below = place.strip_prefix(directory).ok();
            let part = below.and_then(|it| it.iter().next());
            part.is_some_and(|part| is_of_repository(directory, part))
        })
    }

    fn holds_without(&self, path: &Path, is_special: impl Fn(&OsStr) -> bool) -> bool {
        let Some(place) = self.place(path) else {
            return false;
        };
        // The place of the directory itself is the user's choice.
        let mut below = self
            .roots
            .iter()
            .filter_map(|root| place.strip_prefix(root).ok());
        let is_below_special =
            below.any(|it| it.components().any(|part| is_special(part.as_os_str())));
        self.contains(&place) && !is_below_special
    }

    /// Returns the target of a path, also if nothing is there yet.
    fn place(&self, path: &Path) -> Option<PathBuf> {
        match self.way(path) {
            Way::To(place) => Some(place),
            Way::Ends(last) => {
                let mut parts = path.components();
                if parts.any(|part| matches!(part, Component::ParentDir)) {
                    return None;
                }
                // A missing file has no links on its way.
                let rest = self.current.join(path);
                Some(last.join(rest.strip_prefix(&last).ok()?))
            }
            Way::Differs | Way::Unknown => None,
        }
    }

    /// Refuses a pattern that may match a link that leads outside, or a name that reads as an
    /// option. Patterns are only understood in the last part of a path.
    pub(super) fn check_pattern(&self, pattern: &str) -> Result<(), String> {
        let uncertain = || format!("`{pattern}` may match something outside");
        let (directory, name) = pattern.rsplit_once('/').unwrap_or((".", pattern));
        if directory.contains(['*', '?', '[', ']']) {
            return Err(uncertain());
        }
        let directory = if directory.is_empty() { "/" } else { directory };
        self.check(directory)?;
        let after_dot = name.strip_prefix('.');
        if after_dot.is_some_and(|rest| rest.starts_with(['.', '*', '?', '['])) {
            // Before version 5.2, bash lists `..` among what it matches.
            return Err(uncertain());
        }
        let bare = !pattern.contains('/');
        if bare && name.starts_with('-') {
            return Err(uncertain());
        }
        let directory = self.current.join(directory);
        let entries = fs::read_dir(&directory).map_err(|_| uncertain())?;
        for (count, entry) in entries.enumerate() {
            let entry = entry.map_err(|_| uncertain())?;
            let is_option = bare && entry.file_name().as_encoded_bytes().starts_with(b"-");
            let is_link = entry.file_type().map_or(true, |kind| kind.is_symlink());
            let leads_out = is_link && !self.leads_inside(&entry.path());
            if count >= ENTRIES_MAX || is_option || leads_out {
                return Err(uncertain());
            }
        }
        Ok(())
    }
}

/// Returns whether a directory is a repository if it has this part, which is one of a repository.
fn is_of_repository(directory: &Path, part: &OsStr) -> bool {
    let is = |name: &&str| part.eq_ignore_ascii_case(name);
    let has = |name: &&str| is(name) || directory.join(name).symlink_metadata().is_ok();
    let is_part = OF_SETTINGS.iter().any(is) || OF_REPOSITORY.iter().any(|it| it.iter().any(is));
    is_part && OF_REPOSITORY.iter().any(|it| it.iter().all(has))
}
