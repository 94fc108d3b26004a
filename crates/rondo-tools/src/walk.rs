use crate::blocking::Call;
use crate::failure::Failure;
use crate::workspace::Place;
use cap_std::fs::Metadata;
use ignore::WalkBuilder;
use ignore::overrides::{Override, OverrideBuilder};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// The bound on entries looked at by one call.
pub(crate) const VISITED_MAX: usize = 200_000;

/// The bound on a glob, in bytes.
const GLOB_BYTES_MAX: usize = 1_000;

/// Walks a directory in the order of names, without hidden and ignored entries and without
/// following links.
pub(crate) struct Walk<'a> {
    pub(crate) place: &'a Place<'a>,
    pub(crate) glob: Option<&'a str>,
    pub(crate) depth: Option<usize>,
    pub(crate) call: &'a Call,
}

/// One entry that was found and can be reached through the root's handle.
pub(crate) struct Found {
    /// Relative to the root.
    pub(crate) relative: PathBuf,
    pub(crate) metadata: Metadata,
}

impl Walk<'_> {
    /// Calls `visit` with each entry until it says stop. Returns whether the bound on entries ended
    /// the walk.
    ///
    /// The `.git` directory and whatever `.gitignore` and `.ignore` files name is left out; the
    /// user's global ignore file is not read, since finding it would take the environment.
    pub(crate) fn each(
        &self,
        mut visit: impl FnMut(Found) -> Result<ControlFlow<()>, Failure>,
    ) -> Result<bool, Failure> {
        let start = self.place.resolved()?;
        let filter = self.filter()?;
        let top = self.place.root_path().join(&start);
        let walk = WalkBuilder::new(top)
            .follow_links(false)
            .require_git(false)
            .git_global(false)
            .max_depth(self.depth)
            .sort_by_file_name(Ord::cmp)
            .build();
        for (visited, entry) in walk.enumerate() {
            self.call.proceed()?;
            if visited >= VISITED_MAX {
                return Ok(true);
            }
            // An entry that cannot be read is left out, as ripgrep does.
            let Ok(entry) = entry else {
                continue;
            };
            let Some(found) = self.found(entry.path(), entry.depth()) else {
                continue;
            };
            if filter
                .as_ref()
                .is_some_and(|filter| !passes(filter, &found, &start))
            {
                continue;
            }
            if visit(found)?.is_break() {
                return Ok(false);
            }
        }
        Ok(false)
    }

    /// Looks at an entry through the root's handle: what a link led the walk to is not there.
    fn found(&self, path: &Path, depth: usize) -> Option<Found> {
        if depth == 0 {
            return None;
        }
        let relative = path.strip_prefix(self.place.root_path()).ok()?;
        let metadata = self.place.dir().symlink_metadata(relative).ok()?;
        Some(Found {
            relative: relative.to_path_buf(),
            metadata,
        })
    }

    fn filter(&self) -> Result<Option<Override>, Failure> {
        let Some(glob) = self.glob else {
            return Ok(None);
        };
        let bad = |what: &str| Failure::InvalidArgs(format!("`glob` is not usable: {what}"));
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
fn passes(filter: &Override, found: &Found, start: &Path) -> bool {
    let matches = |path: &Path| filter.matched(path, false).is_whitelist();
    let below = found.relative.strip_prefix(start);
    !found.metadata.is_dir() && (matches(&found.relative) || below.is_ok_and(matches))
}
