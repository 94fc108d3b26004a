//! Decides whether ignore files (`.gitignore`) exclude a path.

use cap_fs_ext::OpenOptionsSyncExt;
use cap_std::fs::{Dir, OpenOptions};
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

/// The files that name what is ignored; a later one overrules an earlier one.
const NAMES: [&str; 2] = [".gitignore", ".ignore"];

/// The bound on one such file; a longer one is not heeded.
pub(crate) const FILE_BYTES_MAX: u64 = 256 << 10;

/// The bound on directories above a root that are looked at for the top of a repository.
const ANCESTORS_MAX: usize = 64;

/// Ignore rules of a directory and of all above it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rules(Option<Arc<Level>>);

#[derive(Debug)]
struct Level {
    own: Gitignore,
    above: Rules,
}

impl Rules {
    /// Reads the rules above a root, from the top of the repository that holds it.
    ///
    /// Goes by path and is for the time when a root is opened.
    pub(crate) fn above(root: &Path) -> Self {
        let ancestors: Vec<&Path> = root.ancestors().take(ANCESTORS_MAX).collect();
        let Some(top) = ancestors.iter().position(|dir| dir.join(".git").exists()) else {
            return Self::default();
        };
        // The root's own file is read at each walk, since it may change.
        let above = ancestors.iter().take(top + 1).skip(1).rev();
        above.fold(Self::default(), |rules, path| {
            match Dir::open_ambient_dir(path, cap_std::ambient_authority()) {
                Ok(dir) => rules.below(&dir, path),
                Err(_) => rules,
            }
        })
    }

    /// Adds the rules of a directory's ignore files; `path` is its absolute path.
    pub(crate) fn below(&self, dir: &Dir, path: &Path) -> Self {
        let mut builder = GitignoreBuilder::new(path);
        let mut is_empty = true;
        for text in NAMES.iter().filter_map(|name| read(dir, name)) {
            is_empty = false;
            for line in text.trim_start_matches('\u{feff}').lines() {
                // A line that is not a glob says nothing.
                let _ = builder.add_line(None, line);
            }
        }
        match builder.build() {
            Ok(own) if !is_empty => Self(Some(Arc::new(Level {
                own,
                above: self.clone(),
            }))),
            _ => self.clone(),
        }
    }

    /// Returns whether an entry is ignored; `path` is absolute.
    pub(crate) fn ignores(&self, path: &Path, is_dir: bool) -> bool {
        let mut rules = self;
        while let Some(level) = &rules.0 {
            match level.own.matched(path, is_dir) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => rules = &level.above,
            }
        }
        false
    }
}

/// Reads an ignore file beneath its directory. A repository can hold a pipe or a link to an endless
/// device under that name, so only a regular file of bounded length is heeded.
fn read(dir: &Dir, name: &str) -> Option<String> {
    let mut options = OpenOptions::new();
    options.read(true).nonblock(true);
    let file = dir.open_with(name, &options).ok()?;
    let metadata = file.metadata().ok()?;
    if !metadata.is_file() || metadata.len() > FILE_BYTES_MAX {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
