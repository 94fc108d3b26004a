//! The files that commands meet: a project with a repository, and what lies beside it.

use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::fs::{self, File, FileTimes, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::SystemTime;

/// Content of every file that no command may show.
pub(super) const CANARY: &str = "CANARY";
/// Script of a planted program.
const PLANTED: &str = "#!/bin/sh\n: > \"${0%/*}/../planted-ran\" || : > planted-ran\n";
/// Names of programs that are planted in the project.
const PLANTED_NAMES: [&str; 8] = ["evil", "ls", "git", "grep", "sort", "cat", "bash", "sh"];
/// The most that is looked at.
const ENTRIES_MAX: usize = 10_000;

/// A directory with a project in it.
pub(super) struct World {
    root: PathBuf,
    /// Further paths that commands can write to.
    also: Vec<PathBuf>,
}

/// Files at one time.
pub(super) type Snapshot = BTreeMap<PathBuf, Entry>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    is_outside: bool,
    mode: u32,
    inode: u64,
    length: u64,
    /// Changes with every change, whatever a program does to the times it can set.
    changed: (i64, i64),
    /// Read no earlier than.
    read: (i64, i64),
}

impl World {
    /// Takes an empty directory.
    pub(super) fn new(root: PathBuf, also: Vec<PathBuf>) -> Self {
        Self { root, also }
    }

    pub(super) fn project(&self) -> PathBuf {
        self.root.join("project")
    }

    pub(super) fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    /// Removes whatever is there and makes everything again.
    ///
    /// # Errors
    /// When that fails.
    pub(super) fn make(&self) -> Result<()> {
        for place in self.also.iter().chain([&self.root]) {
            for entry in fs::read_dir(place)?.filter_map(io::Result::ok) {
                remove(&entry.path())?;
            }
        }
        let project = self.project();
        for folder in ["src/deep", "links", "bin", "planted/bin", "empty"] {
            fs::create_dir_all(project.join(folder))?;
        }
        for folder in ["home/.ssh", "outside/more"] {
            fs::create_dir_all(self.root.join(folder))?;
        }
        for (name, text) in [
            ("README.md", "a readme\nwith two lines\n"),
            ("src/a.rs", "fn main() {}\n"),
            ("src/b.rs", "// TODO: x\n"),
            ("src/deep/c.txt", "deep\n"),
            ("a b.txt", "a space\n"),
            ("data.csv", "b,2\na,1\na,1\n"),
            (".hidden", "hidden\n"),
            ("numbers", "3\n1\n2\n"),
            ("EOF", "EOF\n"),
            ("*", "a star\n"),
        ] {
            fs::write(project.join(name), text)?;
        }
        for name in [
            "outside/key",
            "outside/more/key",
            "home/.ssh/id",
            "home/.profile",
            "key",
        ] {
            fs::write(self.root.join(name), format!("{CANARY} {name}\n"))?;
        }
        for name in PLANTED_NAMES {
            for folder in ["", "bin/", "planted/bin/"] {
                let program = project.join(folder).join(name);
                fs::write(&program, PLANTED)?;
                fs::set_permissions(&program, Permissions::from_mode(0o755))?;
            }
        }
        for (name, target) in [
            ("links/in", "../README.md"),
            ("links/out", "../../outside"),
            ("links/key", "../../outside/key"),
            ("links/dangling", "/world/nowhere"),
            ("links/self", "."),
        ] {
            symlink(target, project.join(name))?;
        }
        self.make_repository()?;
        self.age()
    }

    fn make_repository(&self) -> Result<()> {
        for args in [
            &["init", "-q", "--template=", "-b", "main"][..],
            &["add", "README.md", "src"],
            &["commit", "-q", "-m", "first"],
        ] {
            let done = Command::new("git")
                .args(["-c", "user.name=A", "-c", "user.email=a@b.c"])
                .args(args)
                .current_dir(self.project())
                .env("GIT_CONFIG_GLOBAL", "/dev/null")
                .env("GIT_CONFIG_SYSTEM", "/dev/null")
                .env("HOME", self.home())
                .stdin(Stdio::null())
                .status()
                .context("failed to start `git`")?;
            if !done.success() {
                bail!("`git {}` failed", args.join(" "));
            }
        }
        Ok(())
    }

    /// Sets all times of reading back, so that the next read shows.
    fn age(&self) -> Result<()> {
        for path in self.paths()? {
            if fs::symlink_metadata(&path)?.is_symlink() {
                continue;
            }
            let times = FileTimes::new().set_accessed(SystemTime::UNIX_EPOCH);
            File::open(&path)?.set_times(times)?;
        }
        Ok(())
    }

    /// Looks at everything that a command could have changed.
    ///
    /// # Errors
    /// When something cannot be looked at.
    pub(super) fn snapshot(&self) -> Result<Snapshot> {
        let project = self.project();
        let mut found = Snapshot::new();
        for path in self.paths()? {
            // Programs such as `tac` keep a copy there that they remove: what stays is seen by itself.
            if self.also.contains(&path) {
                continue;
            }
            let metadata = fs::symlink_metadata(&path)?;
            let entry = Entry {
                is_outside: path.starts_with(&self.root)
                    && path != self.root
                    && !path.starts_with(&project),
                mode: metadata.mode(),
                inode: metadata.ino(),
                length: metadata.len(),
                changed: (metadata.ctime(), metadata.ctime_nsec()),
                read: (metadata.atime(), metadata.atime_nsec()),
            };
            found.insert(path, entry);
        }
        Ok(found)
    }

    fn paths(&self) -> Result<Vec<PathBuf>> {
        let mut waiting: Vec<PathBuf> = self.also.clone();
        waiting.push(self.root.clone());
        let mut found = Vec::new();
        while let Some(path) = waiting.pop() {
            if fs::symlink_metadata(&path)?.is_dir() {
                for entry in fs::read_dir(&path)? {
                    waiting.push(entry?.path());
                }
            }
            found.push(path);
            if found.len() > ENTRIES_MAX {
                bail!("there are too many files");
            }
        }
        Ok(found)
    }
}

/// Lists the files that were created, changed, removed, or read outside of the project.
pub(super) fn differences(before: &Snapshot, after: &Snapshot) -> Vec<String> {
    let mut found = Vec::new();
    for (path, entry) in after {
        let path_shown = path.display();
        match before.get(path) {
            None => found.push(format!("created `{path_shown}`")),
            Some(earlier) if !is_same(earlier, entry) => {
                found.push(format!("changed `{path_shown}`"))
            }
            Some(earlier) if entry.is_outside && earlier.read != entry.read => {
                found.push(format!("read `{path_shown}`"));
            }
            Some(_) => {}
        }
    }
    let removed = before.keys().filter(|path| !after.contains_key(*path));
    found.extend(removed.map(|path| format!("removed `{}`", path.display())));
    found
}

fn is_same(one: &Entry, other: &Entry) -> bool {
    (one.mode, one.inode, one.length, one.changed)
        == (other.mode, other.inode, other.length, other.changed)
}

/// Removes what commands may have made unreadable, too.
fn remove(path: &Path) -> Result<()> {
    let metadata = fs::symlink_metadata(path)?;
    if metadata.is_dir() {
        fs::set_permissions(path, Permissions::from_mode(0o700))?;
        for entry in fs::read_dir(path)? {
            remove(&entry?.path())?;
        }
        fs::remove_dir(path)?;
    } else {
        fs::remove_file(path)?;
    }
    Ok(())
}
