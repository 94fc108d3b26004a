//! Record of one command.

use super::process::{Process, boot};
use super::repositories;
use super::snapshot::Snapshot;
use crate::stored_path::StoredPath;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The first line of an entry.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Record {
    /// The version of this form; 1.
    version: u32,
    supervisor: Process,
    boot: String,
    /// When it was written, in microseconds since 1970.
    pub(super) began_us: u64,
    protected: Vec<String>,
    pub(super) snapshot: Snapshot,
    /// Set once the files were compared after the command had ended.
    has_ended: bool,
    /// Paths that the command changed and that could not be restored.
    not_restored: Vec<StoredPath>,
    /// Paths that were perhaps already changed when the command began: until its end, by other commands; then, the part
    /// of the unrestored paths.
    #[serde(default)]
    doubtful: Vec<StoredPath>,
}

impl Record {
    pub(super) fn new(
        supervisor: Process,
        began: Duration,
        protected: &[&str],
        snapshot: Snapshot,
    ) -> Self {
        Self {
            version: 1,
            supervisor,
            boot: boot(),
            began_us: u64::try_from(began.as_micros()).unwrap_or(u64::MAX),
            protected: protected.iter().map(|it| (*it).to_owned()).collect(),
            snapshot,
            has_ended: false,
            not_restored: Vec::new(),
            doubtful: Vec::new(),
        }
    }

    /// Records the changes that others had made when the command began.
    pub(super) fn doubt(&mut self, changed: &[PathBuf]) {
        self.doubtful = changed.iter().map(|it| StoredPath::of(it)).collect();
    }

    pub(super) fn end(&mut self, not_restored: &[PathBuf], doubtful: &[&Path]) {
        self.has_ended = true;
        self.doubtful = doubtful.iter().map(|it| StoredPath::of(it)).collect();
        self.not_restored = not_restored.iter().map(|it| StoredPath::of(it)).collect();
    }

    /// Returns whether the command runs, or its files are about to be compared.
    pub(super) fn is_running(&self) -> bool {
        !self.has_ended && self.boot == boot() && self.supervisor.is_alive()
    }

    /// Returns whether nothing that the command started can change anything any more.
    pub(super) fn is_settled(&self) -> bool {
        self.has_ended || self.boot != boot()
    }

    pub(super) fn roots(&self) -> Vec<PathBuf> {
        self.snapshot.roots()
    }

    pub(super) fn protected(&self) -> Vec<&str> {
        self.protected.iter().map(String::as_str).collect()
    }

    /// Returns whether the command worked in one of these directories, or in one above or below it.
    pub(super) fn is_about(&self, roots: &[PathBuf]) -> bool {
        let own = self.roots();
        let meets = |own: &PathBuf, root: &PathBuf| own.starts_with(root) || root.starts_with(own);
        self.version == 1 && own.iter().any(|own| roots.iter().any(|it| meets(own, it)))
    }

    /// Returns the directory that a path is in.
    pub(super) fn root_of(&self, path: &Path) -> PathBuf {
        let mut roots = self.roots().into_iter();
        roots
            .find(|root| path.starts_with(root))
            .unwrap_or_else(|| path.to_owned())
    }

    fn is_doubtful(&self, path: &Path) -> bool {
        let path = StoredPath::of(path);
        self.doubtful.contains(&path)
    }

    /// Returns the files to look at besides those that were compared: those that could not be put back, and if nobody
    /// compared anything, those that were changed in repositories further down since the command started.
    pub(super) fn unchecked(
        &self,
        is_known: impl Fn(&Path) -> bool,
    ) -> impl Iterator<Item = PathBuf> {
        let left = self.not_restored.iter().map(StoredPath::path);
        let left = left.filter(|it| it.symlink_metadata().is_ok() || self.is_doubtful(it));
        let since = SystemTime::UNIX_EPOCH + Duration::from_micros(self.began_us);
        let changed = match self.has_ended {
            true => Vec::new(),
            false => {
                let mut changed = repositories::changed_since(&self.roots(), since);
                changed.extend(self.doubtful.iter().map(StoredPath::path));
                changed
            }
        };
        let mut found: Vec<PathBuf> = left.chain(changed).collect();
        // A comparison with what the command found says nothing of what was doubtful then.
        found.retain(|path| self.is_doubtful(path) || !is_known(path));
        found.into_iter()
    }
}
