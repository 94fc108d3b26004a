//! Files that a command leaves in the private directories over the home directory and the temporary ones: they are
//! deleted after the command.
//!
//! The command's process passes descriptors of these directories to its supervisor, with the number of files in each. If that
//! number is the same at the end, nothing is looked at. Files that programs leave for themselves, such as caches, are
//! not missed: they are left out, and so are those in a temporary directory unless the command or its output names
//! them.

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// The bound on files and directories that are looked at.
const LOOKED_AT_MAX: usize = 4_096;
/// How deep directories are looked into.
const DEPTH_MAX: usize = 12;
/// Directories for temporary files.
const TEMPORARY: [&str; 2] = ["/tmp", "/var/tmp"];
/// Directories in which nothing is looked for.
const UNSEEN: [&str; 2] = ["/dev/shm", "/run"];
/// Directories in the home directory that programs keep for themselves.
const OF_PROGRAMS: [&str; 8] = [
    ".cache",
    ".cargo",
    ".local/share",
    ".local/state",
    ".npm",
    ".rustup",
    "go/pkg",
    "snap",
];
/// Directories in the home directory, with names that begin with a dot, that hold programs installed for the user.
const INSTALLED: [&str; 3] = [".gem", ".local/bin", ".local/lib"];
/// How the names begin of what programs leave in a temporary directory and mention in their output.
const LEFT_OVER: [&str; 1] = ["pytest-of-"];

/// A private directory of a command, seen from outside.
#[derive(Debug)]
pub(crate) struct PrivateDirectory {
    path: PathBuf,
    root: OwnedFd,
    /// The number of files before the command.
    files_before: u64,
}

/// Returns whether something is looked for in a private directory.
pub(crate) fn is_looked_at(path: &Path) -> bool {
    UNSEEN.iter().all(|it| path != Path::new(it))
}

/// Returns the number of files in the file system of a private directory.
pub(crate) fn files(root: &OwnedFd) -> io::Result<u64> {
    let found = rustix::fs::fstatvfs(root)?;
    Ok(found.f_files.saturating_sub(found.f_ffree))
}

impl PrivateDirectory {
    pub(crate) fn new(path: PathBuf, root: OwnedFd, files_before: u64) -> Self {
        Self {
            path,
            root,
            files_before,
        }
    }

    /// Returns the files the command left here that a user would miss, and directories that are new as a whole.
    pub(crate) fn lost(&self, command: &str, output: &str) -> Vec<PathBuf> {
        if files(&self.root).is_ok_and(|it| it == self.files_before) {
            return Vec::new();
        }
        let mut look = DirectoryWalk {
            below: PathBuf::new(),
            left: LOOKED_AT_MAX,
            is_temporary: TEMPORARY.iter().any(|it| self.path == Path::new(it)),
            found: Vec::new(),
        };
        // A file that cannot be looked at is not named.
        let _ = look.directory(&self.root, 0);
        let is_missed = |it: &PathBuf| look.is_missed(it, command, output);
        let mut lost: Vec<PathBuf> = look
            .found
            .iter()
            .filter(|it| is_missed(it))
            .cloned()
            .collect();
        lost.sort();
        lost.iter().map(|it| self.path.join(it)).collect()
    }
}

/// A walk through a private directory.
struct DirectoryWalk {
    /// Path below the private directory.
    below: PathBuf,
    /// How many files and directories may still be looked at.
    left: usize,
    is_temporary: bool,
    found: Vec<PathBuf>,
}

impl DirectoryWalk {
    /// Looks into a directory. Returns whether something else is mounted below it, so that it was made for that.
    fn directory(&mut self, directory: &OwnedFd, depth: usize) -> io::Result<bool> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::openat(directory, c".", flags, Mode::empty())?;
        let own = rustix::fs::fstat(&directory)?;
        let before = self.found.len();
        let mut has_mounts = false;
        for entry in Dir::read_from(&directory)? {
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            if self.left == 0 || depth >= DEPTH_MAX {
                break;
            }
            self.left -= 1;
            let found = rustix::fs::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
            if found.st_dev != own.st_dev {
                has_mounts = true;
                continue;
            }
            self.below
                .push(std::ffi::OsStr::from_bytes(name.to_bytes()));
            if FileType::from_raw_mode(found.st_mode) == FileType::Directory {
                let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
                let resolve =
                    ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
                let inner = rustix::fs::openat2(&directory, name, flags, Mode::empty(), resolve);
                has_mounts |= inner
                    .map_err(io::Error::from)
                    .and_then(|it| self.directory(&it, depth + 1))
                    .unwrap_or(false);
            } else {
                self.found.push(self.below.clone());
            }
            self.below.pop();
        }
        if !has_mounts && depth > self.depth_of_programs() {
            self.found.truncate(before);
            self.found.push(self.below.clone());
        }
        Ok(has_mounts)
    }

    /// Returns how deep below the private directory the directories lie that programs and users share.
    fn depth_of_programs(&self) -> usize {
        let first = self.below.iter().next().unwrap_or_default();
        let is_shared = !self.is_temporary && (is_hidden(first.as_bytes()) || first == "go");
        usize::from(is_shared)
    }

    /// Returns whether a user would miss something.
    fn is_missed(&self, path: &Path, command: &str, output: &str) -> bool {
        let is_named = |name: &[u8]| {
            let name = String::from_utf8_lossy(name);
            command.contains(&*name) || output.contains(&*name)
        };
        let is_below = |it: &&str| path.starts_with(it);
        let first = path.iter().next().unwrap_or_default().as_bytes();
        if self.is_temporary {
            let is_left_over = LEFT_OVER.iter().any(|it| first.starts_with(it.as_bytes()));
            let last = path.iter().next_back().unwrap_or_default();
            return !is_left_over && is_named(last.as_bytes());
        }
        if OF_PROGRAMS.iter().any(is_below) {
            return false;
        }
        !is_hidden(first) || is_named(first) || INSTALLED.iter().any(is_below)
    }
}

fn is_hidden(name: &[u8]) -> bool {
    name.starts_with(b".")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn lost(path: &str, made: &[&str], command: &str) -> Vec<String> {
        let place = tempfile::tempdir().unwrap();
        for it in made {
            let path = place.path().join(it);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            match it.ends_with('/') {
                true => fs::create_dir_all(path).unwrap(),
                false => fs::write(path, "").unwrap(),
            }
        }
        let root = fs::File::open(place.path()).unwrap().into();
        let lost = PrivateDirectory::new(path.into(), root, 0).lost(command, "");
        lost.iter().map(|it| it.display().to_string()).collect()
    }

    #[test]
    fn files_and_new_directories_of_the_home_directory_are_named_and_not_what_programs_keep_there()
    {
        let made = [
            "notes.md",
            "project/src/main.rs",
            "empty/",
            ".cache/pip/a",
            ".cargo/.package-cache",
            ".config/tool/settings",
            ".local/share/app/a",
            ".local/lib/python3/site-packages/a.py",
            "go/pkg/mod/a",
            "go/bin/tool",
        ];
        let always = [
            "/home/a/.local/lib",
            "/home/a/empty",
            "/home/a/go/bin",
            "/home/a/notes.md",
            "/home/a/project",
        ];
        assert_eq!(lost("/home/a", &made, "make"), always);
        let named = lost("/home/a", &made, "cp settings ~/.config/tool/settings");
        assert_eq!(
            named.first().map(String::as_str),
            Some("/home/a/.config/tool")
        );
        assert_eq!(named.get(1..).unwrap(), always);
    }

    #[test]
    fn of_temporary_files_those_are_named_that_the_command_names() {
        let made = [
            "report.html",
            "tmpx1f3/a",
            "pytest-of-me/pytest-0/a",
            "out/a",
            "out/b",
        ];
        let command = "make && pytest-of-me; cp -r build /tmp/out; cat /tmp/report.html";
        assert_eq!(
            lost("/tmp", &made, command),
            ["/tmp/out", "/tmp/report.html"]
        );
        assert!(lost("/tmp", &made, "make").is_empty());
    }

    #[test]
    fn a_directory_with_many_files_is_looked_at_up_to_a_bound() {
        let made: Vec<String> = (0..LOOKED_AT_MAX + 10)
            .map(|it| format!("file-{it}"))
            .collect();
        let made: Vec<&str> = made.iter().map(String::as_str).collect();
        assert_eq!(lost("/home/a", &made, "").len(), LOOKED_AT_MAX);
    }
}
