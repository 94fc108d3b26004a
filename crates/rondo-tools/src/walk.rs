//! Walks a directory tree, each directory in the order of names.

use crate::blocking::Call;
use crate::failure::Failure;
use crate::rules::Rules;
use crate::workspace::WorkspacePath;
use cap_std::fs::{DirEntry, Metadata};
use ignore::overrides::{Override, OverrideBuilder};
use std::collections::VecDeque;
use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// The bound on entries looked at by one call.
pub(crate) const VISITED_MAX: usize = 200_000;

/// The bound on levels below where a walk starts.
const DEPTH_MAX: usize = 256;

/// The bound on a glob, in bytes.
const GLOB_BYTES_MAX: usize = 1_000;

/// Which entries of a tree come first. Those of one directory come in the order of names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// The content of a directory follows it.
    Depth,
    /// The content of a directory follows all entries of its own level.
    Levels,
}

/// Walks a directory, without hidden and ignored entries and without following links.
///
/// Goes by the root's handle all the way: the walkers of the `ignore` crate go by path, and a
/// directory that becomes a link under them leads them outside.
pub(crate) struct Walk<'a> {
    pub(crate) place: &'a WorkspacePath<'a>,
    pub(crate) glob: Option<&'a str>,
    pub(crate) depth: Option<usize>,
    pub(crate) order: Order,
    pub(crate) call: &'a Call,
}

/// One entry that was found.
#[derive(Clone)]
pub(crate) struct WalkEntry {
    /// Relative to the root.
    pub(crate) relative: PathBuf,
    pub(crate) metadata: Metadata,
}

/// An entry that waits for its turn.
struct Pending {
    found: WalkEntry,
    depth: usize,
    rules: Rules,
}

impl Walk<'_> {
    /// Calls `visit` with each entry until it says stop. Returns whether the bound on entries ended
    /// the walk.
    ///
    /// Entries named by `.gitignore` and `.ignore` files are left out, those above the root included up to
    /// the top of its repository. The user's global ignore file is not read, since finding it would
    /// take the environment.
    pub(crate) fn each(
        &self,
        mut visit: impl FnMut(&WalkEntry) -> Result<ControlFlow<()>, Failure>,
    ) -> Result<bool, Failure> {
        let start = self.place.resolved()?;
        let filter = self.filter()?;
        let mut budget = VISITED_MAX;
        let rules = self.rules_above(&start);
        // The next one is at the back.
        let mut pending = VecDeque::from(self.entries(&start, 1, &rules, &mut budget)?);
        while let Some(next) = pending.pop_back() {
            self.call.proceed()?;
            let passes = filter
                .as_ref()
                .is_none_or(|filter| passes(filter, &next.found, &start));
            if passes && visit(&next.found)?.is_break() {
                return Ok(false);
            }
            let goes_on = next.depth < self.depth.unwrap_or(DEPTH_MAX).min(DEPTH_MAX);
            if goes_on && next.found.metadata.is_dir() {
                let path = &next.found.relative;
                let below = self.entries(path, next.depth + 1, &next.rules, &mut budget)?;
                match self.order {
                    Order::Depth => pending.extend(below),
                    Order::Levels => below
                        .into_iter()
                        .rev()
                        .for_each(|it| pending.push_front(it)),
                }
            }
        }
        Ok(budget == 0)
    }

    /// Returns the entries of a directory, the last one first; none if it cannot be read.
    fn entries(
        &self,
        path: &Path,
        depth: usize,
        rules: &Rules,
        budget: &mut usize,
    ) -> Result<Vec<Pending>, Failure> {
        let Ok(dir) = self.place.dir().open_dir(path) else {
            return Ok(Vec::new());
        };
        let rules = rules.below(&dir, &self.absolute(path));
        let Ok(listing) = dir.entries() else {
            return Ok(Vec::new());
        };
        let mut found = Vec::new();
        for entry in listing.flatten() {
            self.call.proceed()?;
            if *budget == 0 {
                break;
            }
            *budget -= 1;
            found.extend(self.found(path, &entry, &rules));
        }
        found.sort_by(|(one, _), (other, _)| other.cmp(one));
        let pending = found.into_iter().map(|(_, found)| Pending {
            found,
            depth,
            rules: rules.clone(),
        });
        Ok(pending.collect())
    }

    fn found(
        &self,
        parent: &Path,
        entry: &DirEntry,
        rules: &Rules,
    ) -> Option<(OsString, WalkEntry)> {
        let name = entry.file_name();
        if name.as_encoded_bytes().starts_with(b".") {
            return None;
        }
        let relative = match parent.to_str() {
            Some(".") => PathBuf::from(&name),
            _ => parent.join(&name),
        };
        let is_dir = entry.file_type().ok()?.is_dir();
        let path = self.absolute(&relative);
        let is_hidden = self.place.hidden().leaves_out(&path, is_dir);
        if is_hidden || rules.ignores(&path, is_dir) {
            return None;
        }
        let metadata = entry.metadata().ok()?;
        Some((name, WalkEntry { relative, metadata }))
    }

    /// Returns the rules of all directories from the root down to the parent of `start`.
    fn rules_above(&self, start: &Path) -> Rules {
        let mut rules = self.place.rules().clone();
        if start == Path::new(".") {
            return rules;
        }
        let mut above: Vec<&Path> = start.ancestors().skip(1).collect();
        above.reverse();
        for path in above {
            let path = if path.as_os_str().is_empty() {
                Path::new(".")
            } else {
                path
            };
            if let Ok(dir) = self.place.dir().open_dir(path) {
                rules = rules.below(&dir, &self.absolute(path));
            }
        }
        rules
    }

    fn absolute(&self, relative: &Path) -> PathBuf {
        let relative = relative.strip_prefix(".").unwrap_or(relative);
        self.place.root_path().join(relative)
    }

    fn filter(&self) -> Result<Option<Override>, Failure> {
        let Some(glob) = self.glob else {
            return Ok(None);
        };
        let bad = |what: &str| Failure::InvalidArgs(format!("`glob` is invalid: {what}"));
        if glob.len() > GLOB_BYTES_MAX {
            return Err(bad("too long"));
        }
        let mut builder = OverrideBuilder::new(self.place.root_path());
        builder.add(glob).map_err(|err| bad(&err.to_string()))?;
        let filter = builder.build().map_err(|err| bad(&err.to_string()))?;
        Ok(Some(filter))
    }
}

/// A glob names files, from the root or from where the walk starts.
fn passes(filter: &Override, found: &WalkEntry, start: &Path) -> bool {
    let matches = |path: &Path| filter.matched(path, false).is_whitelist();
    let below = found.relative.strip_prefix(start);
    !found.metadata.is_dir() && (matches(&found.relative) || below.is_ok_and(matches))
}
