//! Tracks the directories in which the shell may be when each of its commands runs.

use super::paths::AllowedDirs;
use std::path::{Component, Path};

/// The most directories that are followed at once.
const PLACES_MAX: usize = 4;

/// The directories the shell may be in; one as a rule, more after a `cd` that may have failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Places(Vec<AllowedDirs>);

/// Directory of the shell after a command that succeeded, and after one that failed.
#[derive(Debug, Clone)]
pub(super) struct Ends {
    pub(super) good: Places,
    pub(super) bad: Places,
}

impl Ends {
    pub(super) fn at(places: &Places) -> Self {
        Self {
            good: places.clone(),
            bad: places.clone(),
        }
    }

    pub(super) fn either(&self) -> Result<Places, &'static str> {
        self.good.or(&self.bad)
    }
}

impl Places {
    pub(super) fn new(dirs: &AllowedDirs) -> Self {
        Self(vec![dirs.clone()])
    }

    pub(super) fn or(&self, other: &Self) -> Result<Self, &'static str> {
        let mut all = self.0.clone();
        for dirs in &other.0 {
            if !all.contains(dirs) {
                all.push(dirs.clone());
            }
        }
        if all.len() > PLACES_MAX {
            return Err("it changes its directory too often");
        }
        Ok(Self(all))
    }

    /// Returns the first reason against any of them.
    pub(super) fn refusal(
        &self,
        mut check: impl FnMut(&AllowedDirs) -> Result<(), String>,
    ) -> Option<String> {
        self.0.iter().find_map(|dirs| check(dirs).err())
    }

    /// Returns the place after `cd`.
    ///
    /// `..` is refused: the shell takes it for the name before it, which may be a link.
    pub(super) fn enter(&self, directory: &str) -> Result<Self, String> {
        let path = Path::new(directory);
        let is_plain = path
            .components()
            .all(|part| !matches!(part, Component::ParentDir));
        if directory.is_empty() || directory.starts_with('-') || !is_plain {
            return Err("the target of `cd` is not understood".to_owned());
        }
        let mut entered = Vec::new();
        for dirs in &self.0 {
            let inner = dirs
                .in_directory(path)
                .map_err(|_| format!("`{directory}` is not a directory"))?;
            if !inner.contains(inner.current()) {
                return Err(format!(
                    "`{directory}` may lie outside the allowed directories"
                ));
            }
            entered.push(inner);
        }
        Ok(Self(entered))
    }
}
