//! Collects what commands may read, and passes over what would open the home directory or a secret.

use crate::secrets::{holds_secret, is_secret};
use std::collections::HashSet;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

/// The bound on links that one path leads over; that of Linux.
const LINKS_MAX: usize = 40;
/// The bound on paths that are collected. Each costs every command some microseconds.
const PATHS_MAX: usize = 512;

/// The bound on entries of a directory that are added one by one.
const ENTRIES_MAX: usize = 128;
/// Directories of a home in which all kinds of programs keep their files. They are never opened as a whole.
pub(crate) const SHARED_BY_ALL: [&str; 5] = [".cache", ".config", ".local", ".var", "share"];

/// Paths that commands may read.
pub(crate) struct Readable {
    /// The user's home directory as it is named, and where it really is.
    homes: Vec<PathBuf>,
    /// Paths that are readable anyway.
    system: Vec<PathBuf>,
    /// Directories that commands may write; links in them cannot be trusted.
    workspace: Vec<PathBuf>,
    paths: Vec<PathBuf>,
    seen: HashSet<PathBuf>,
}

impl Readable {
    /// Starts with the directories of the system. Nothing is added that the workspace leads to.
    pub(crate) fn new(home: Option<&Path>, system: Vec<PathBuf>, workspace: &[PathBuf]) -> Self {
        let real = home.and_then(|it| it.canonicalize().ok());
        let real = real.filter(|it| Some(it.as_path()) != home);
        let real_workspace = workspace.iter().filter_map(|it| it.canonicalize().ok());
        Self {
            homes: home.map(Path::to_owned).into_iter().chain(real).collect(),
            system,
            workspace: real_workspace.chain(workspace.iter().cloned()).collect(),
            paths: Vec::new(),
            seen: HashSet::new(),
        }
    }

    /// Adds a file or a directory, if it exists and the home directory is not in it. Returns where it really is if it may
    /// be read now. A secret is passed over. Of a directory that has one in it, what else is in it is added.
    ///
    /// If links lead to it, it may be read by its own path and by this one.
    pub(crate) fn add(&mut self, path: &Path) -> Option<PathBuf> {
        let real = self.resolve(path)?;
        if !self.may_open(path) || !self.may_open(&real) {
            return None;
        }
        if self.homes.iter().any(|home| holds_secret(&real, home)) {
            self.add_entries(path);
            return None;
        }
        self.push(&real);
        self.push(path);
        Some(real)
    }

    /// Adds the entries of a directory, unless all kinds of things are.
    fn add_entries(&mut self, directory: &Path) {
        if SHARED_BY_ALL.iter().any(|it| directory.ends_with(it)) {
            return;
        }
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        for entry in entries.take(ENTRIES_MAX) {
            self.add(&entry.path());
        }
    }

    /// Returns the target of a path; nothing if nothing is there, or the path leads through the workspace, where
    /// commands could have it lead anywhere.
    pub(crate) fn resolve(&self, path: &Path) -> Option<PathBuf> {
        let mut left: Vec<OsString> = parts(path);
        let mut resolved = PathBuf::from("/");
        let mut links = 0;
        while let Some(part) = left.pop() {
            if part == ".." {
                resolved.pop();
                continue;
            }
            resolved.push(part);
            if self.workspace.iter().any(|it| resolved.starts_with(it)) {
                return None;
            }
            let is_link = resolved.symlink_metadata().ok()?.is_symlink();
            if is_link {
                let target = resolved.read_link().ok()?;
                resolved.pop();
                if target.is_absolute() {
                    resolved = PathBuf::from("/");
                }
                left.extend(parts(&target));
                links += 1;
            }
            if links > LINKS_MAX {
                return None;
            }
        }
        path.is_absolute().then_some(resolved)
    }

    /// Returns whether a path may be read already.
    pub(crate) fn has(&self, path: &Path) -> bool {
        self.is_of_system(path) || self.is_in_one(path)
    }

    /// Returns whether a path lies in a directory of the system.
    pub(crate) fn is_of_system(&self, path: &Path) -> bool {
        self.system.iter().any(|it| path.starts_with(it))
    }

    /// Returns whether a path is the home directory, or has it in it.
    pub(crate) fn is_home(&self, path: &Path) -> bool {
        self.homes.iter().any(|home| home.starts_with(path))
    }

    pub(crate) fn into_paths(self) -> Vec<PathBuf> {
        self.system.into_iter().chain(self.paths).collect()
    }

    fn is_in_one(&self, path: &Path) -> bool {
        path.ancestors().any(|it| self.seen.contains(it))
    }

    fn may_open(&self, path: &Path) -> bool {
        let is_secret = || {
            let mut homes = self.homes.iter();
            is_secret(path, None) || homes.any(|home| is_secret(path, Some(home)))
        };
        path.is_absolute() && !self.is_home(path) && !is_secret()
    }

    /// Adds a path unless it lies in one that may be read: what is there is there as it is, links too.
    fn push(&mut self, path: &Path) {
        if !self.has(path) && self.paths.len() < PATHS_MAX {
            self.seen.insert(path.to_owned());
            self.paths.push(path.to_owned());
        }
    }
}

/// Returns the names that a path is made of, the last one first.
fn parts(path: &Path) -> Vec<OsString> {
    let named = |it: Component<'_>| match it {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        _ => None,
    };
    path.components().rev().filter_map(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn what_links_lead_to_is_readable_and_the_home_and_secrets_are_not() {
        let place = tempfile::tempdir().unwrap();
        let home = place.path().canonicalize().unwrap();
        fs::create_dir_all(home.join("tool/bin")).unwrap();
        fs::create_dir(home.join(".ssh")).unwrap();
        fs::write(home.join(".ssh/config"), "").unwrap();
        symlink("tool", home.join("current")).unwrap();
        symlink(".ssh/config", home.join("innocent")).unwrap();
        symlink("..", home.join("up")).unwrap();
        let mut readable = Readable::new(Some(&home), vec!["/usr".into()], &[]);
        let real = readable.add(&home.join("current/bin"));
        assert_eq!(real, Some(home.join("tool/bin")));
        for refused in ["innocent", "up", ".ssh", "", "nothing"] {
            assert_eq!(readable.add(&home.join(refused)), None, "{refused}");
        }
        assert!(readable.has(Path::new("/usr/bin/a")) && readable.has(&home.join("tool/bin/a")));
        assert!(!readable.has(&home.join("tool")));
        let expected = [
            "/usr".into(),
            home.join("tool/bin"),
            home.join("current/bin"),
        ];
        assert_eq!(readable.into_paths(), expected);
    }

    #[test]
    fn nothing_is_opened_that_a_link_of_the_workspace_leads_to() {
        let place = tempfile::tempdir().unwrap();
        let home = place.path().canonicalize().unwrap();
        let workspace = home.join("workspace");
        fs::create_dir_all(home.join("private")).unwrap();
        fs::create_dir_all(workspace.join("bin")).unwrap();
        symlink("../private", workspace.join("link")).unwrap();
        symlink("workspace/link", home.join("over")).unwrap();
        symlink("loop", home.join("loop")).unwrap();
        let mut readable = Readable::new(Some(&home), Vec::new(), &[workspace]);
        for path in ["workspace/link", "workspace/bin", "over", "over/..", "loop"] {
            assert_eq!(readable.add(&home.join(path)), None, "{path}");
        }
        assert!(readable.add(&home.join("private")).is_some());
    }

    #[test]
    fn a_path_leads_where_the_system_says_that_it_does() {
        let place = tempfile::tempdir().unwrap();
        let home = place.path().canonicalize().unwrap();
        fs::create_dir_all(home.join("a/b/c")).unwrap();
        symlink("../a/b", home.join("a/link")).unwrap();
        symlink(home.join("a/link"), home.join("absolute")).unwrap();
        let readable = Readable::new(None, Vec::new(), &[]);
        for path in [
            "a/b/c",
            "a/link/c",
            "absolute/c",
            "absolute/../b",
            "a/./link",
            "no",
            "a/no/..",
        ] {
            let path = home.join(path);
            assert_eq!(
                readable.resolve(&path),
                path.canonicalize().ok(),
                "{path:?}"
            );
        }
    }
}
