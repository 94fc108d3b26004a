//! Finds and reads a repository's instruction files for agents: `AGENTS.md`, or else `CLAUDE.md`, or else
//! `GEMINI.md`.

use crate::unix;
use cap_fs_ext::OpenOptionsSyncExt as _;
use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, OpenOptions};
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// File names, the preferred one first. Only one name counts: the first that any directory has.
const NAMES: [&str; 3] = ["AGENTS.md", "CLAUDE.md", "GEMINI.md"];
/// The bound on directories that are searched, from the working directory upwards.
const LEVELS_MAX: usize = 32;
/// The bound on the part of one file that is read, in bytes.
const FILE_BYTES_MAX: u64 = 64 << 10;

/// A repository's root, and its instruction files.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RepositoryInstructions {
    /// The root; `None` if the directory is in no repository.
    pub root: Option<PathBuf>,
    /// The files, from the root's down to the directory's own: the path below the root, and the first
    /// 64 KiB of the text.
    pub files: Vec<(PathBuf, String)>,
}

/// Reads the instruction files from the repository's root down to a directory; outside of a
/// repository, the directory's own.
///
/// Only regular files beneath the root count: links that lead out of the repository are not followed, and
/// a pipe does not block. The search for the root stops at a directory of another user, since any user can
/// make `/tmp` a repository.
#[must_use]
pub fn repository_instructions(directory: &Path) -> RepositoryInstructions {
    let root = repository_root(directory);
    let top = root.as_deref().unwrap_or(directory);
    let Ok(dir) = Dir::open_ambient_dir(top, ambient_authority()) else {
        return RepositoryInstructions {
            root,
            files: Vec::new(),
        };
    };
    let below = directory.strip_prefix(top).unwrap_or(Path::new(""));
    let mut folders = vec![PathBuf::new()];
    for part in below.components() {
        folders.extend(folders.last().map(|last| last.join(part)));
    }
    let of_name = |name: &&str| -> Vec<(PathBuf, String)> {
        let paths = folders.iter().map(|folder| folder.join(name));
        paths
            .filter_map(|path| Some((path.clone(), read(&dir, &path)?)))
            .collect()
    };
    let files = NAMES.iter().map(of_name).find(|files| !files.is_empty());
    let files = files.unwrap_or_default();
    RepositoryInstructions { root, files }
}

/// Returns the root of the repository that a directory is in: the nearest directory upwards that holds `.git`, as
/// far as they belong to the same user.
#[must_use]
pub fn repository_root(directory: &Path) -> Option<PathBuf> {
    let owner = unix::owner(directory)?;
    let own = |it: &&Path| unix::owner(it) == Some(owner);
    let mut upwards = directory.ancestors().take(LEVELS_MAX).take_while(own);
    let root = upwards.find(|it| it.join(".git").symlink_metadata().is_ok())?;
    Some(root.to_owned())
}

/// Reads the first 64 KiB of an instruction file that the user named or owns; `None` if it is not a
/// regular file or cannot be read.
#[must_use]
pub fn instruction_file(path: &Path) -> Option<String> {
    text_of(&File::open_ambient_with(path, &reading(), ambient_authority()).ok()?)
}

fn read(dir: &Dir, path: &Path) -> Option<String> {
    text_of(&dir.open_with(path, &reading()).ok()?)
}

pub(crate) fn reading() -> OpenOptions {
    let mut options = OpenOptions::new();
    // A pipe in the file's place is not waited for.
    options.read(true).nonblock(true);
    options
}

fn text_of(file: &File) -> Option<String> {
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
