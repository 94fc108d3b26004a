//! Finds and reads the files of skills: directories that hold a `SKILL.md`.

use crate::instruction_files::reading;
use cap_std::ambient_authority;
use cap_std::fs::{Dir, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// The file that makes a directory a skill.
pub const SKILL_FILE: &str = "SKILL.md";
/// The bound on the part of that file that is read, in bytes.
pub const SKILL_BYTES_MAX: u64 = 64 << 10;
/// The bound on skills of one directory.
const SKILLS_MAX: usize = 200;
/// The bound on the entries of one directory that are looked at to find them.
const ENTRIES_MAX: usize = 1_000;
/// The bound on the files of a skill that are listed.
const BESIDE_MAX: usize = 100;
/// How deep the directories of a skill are looked into.
const DEPTH_MAX: usize = 4;
/// Packages that were installed bring skills that the user did not choose.
const INSTALLED: &str = "node_modules";

/// A skill's own file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillFile {
    /// The name of its directory.
    pub folder: String,
    /// The first [`SKILL_BYTES_MAX`] bytes of the text.
    pub text: String,
    /// Set if the text was cut.
    pub is_cut: bool,
}

/// Returns whether a path is in a directory of installed packages.
#[must_use]
pub fn is_installed(path: &Path) -> bool {
    path.components().any(|it| it.as_os_str() == INSTALLED)
}

/// Reads every `SKILL.md` in the directories directly below `base/below`, by the names of the directories.
///
/// Nothing is read that links lead to outside of `base`, and no directory of installed packages is entered. A
/// directory that cannot be read has no skills.
#[must_use]
pub fn skill_files(base: &Path, below: &Path) -> Vec<SkillFile> {
    let Some(dir) = open(base, below) else {
        return Vec::new();
    };
    let mut names = names(&dir, ENTRIES_MAX);
    names.retain(|name| name != INSTALLED);
    let found = names.into_iter().filter_map(|name| {
        let file = Path::new(&name).join(SKILL_FILE);
        let (text, is_cut) = text_of(&dir.open_with(file, &reading()).ok()?)?;
        Some(SkillFile {
            folder: name,
            text,
            is_cut,
        })
    });
    found.take(SKILLS_MAX).collect()
}

/// Reads the `SKILL.md` of one directory, as [`skill_files`] does.
#[must_use]
pub fn skill_file(base: &Path, below: &Path, folder: &str) -> Option<SkillFile> {
    let dir = open(base, below)?;
    let file = Path::new(folder).join(SKILL_FILE);
    let (text, is_cut) = text_of(&dir.open_with(file, &reading()).ok()?)?;
    Some(SkillFile {
        folder: folder.to_owned(),
        text,
        is_cut,
    })
}

/// Returns the paths of a skill's other files, relative to its directory, and whether there are more than 100.
#[must_use]
pub fn files_beside(base: &Path, below: &Path, folder: &str) -> (Vec<String>, bool) {
    let mut found = Vec::new();
    if let Some(dir) = open(base, &below.join(folder)) {
        collect(&dir, Path::new(""), DEPTH_MAX, &mut found);
    }
    found.retain(|path| path != SKILL_FILE);
    let has_more = found.len() > BESIDE_MAX;
    found.truncate(BESIDE_MAX);
    (found, has_more)
}

fn open(base: &Path, below: &Path) -> Option<Dir> {
    let dir = Dir::open_ambient_dir(base, ambient_authority()).ok()?;
    match below.as_os_str().is_empty() {
        true => Some(dir),
        false => dir.open_dir(below).ok(),
    }
}

/// Returns names that can be shown and are not hidden, sorted.
fn names(dir: &Dir, max: usize) -> Vec<String> {
    let entries = dir.entries().into_iter().flatten().take(max);
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let is_shown = |name: &String| !name.starts_with('.') && !name.chars().any(char::is_control);
    let mut names: Vec<String> = names.filter(is_shown).collect();
    names.sort_unstable();
    names
}

fn collect(dir: &Dir, path: &Path, depth: usize, found: &mut Vec<String>) {
    for name in names(dir, ENTRIES_MAX) {
        if found.len() > BESIDE_MAX + 1 {
            return;
        }
        // Links are not followed: they may form a circle.
        let Ok(metadata) = dir.symlink_metadata(&name) else {
            continue;
        };
        let path = path.join(&name);
        if metadata.is_file() {
            found.push(path.to_string_lossy().into_owned());
        } else if metadata.is_dir()
            && depth > 1
            && name != INSTALLED
            && let Ok(dir) = dir.open_dir(&name)
        {
            collect(&dir, &path, depth - 1, found);
        }
    }
}

fn text_of(file: &File) -> Option<(String, bool)> {
    let metadata = file.metadata().ok()?;
    if !metadata.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(SKILL_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Some((text, metadata.len() > SKILL_BYTES_MAX))
}

/// Returns the path of a skill's file.
#[must_use]
pub fn skill_path(base: &Path, below: &Path, folder: &str) -> PathBuf {
    base.join(below).join(folder).join(SKILL_FILE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn put(base: &Path, path: &str, text: &str) {
        let path = base.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn folders(base: &Path, below: &str) -> Vec<String> {
        let files = skill_files(base, Path::new(below));
        files.into_iter().map(|it| it.folder).collect()
    }

    #[test]
    fn directories_with_the_file_are_found_by_name_and_nothing_below_them() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path();
        put(base, "s/b/SKILL.md", "b");
        put(base, "s/a/SKILL.md", "a");
        put(base, "s/a/c/SKILL.md", "deeper");
        put(base, "s/plain/README.md", "none");
        put(base, "s/.hidden/SKILL.md", "none");
        put(base, "s/node_modules/SKILL.md", "none");
        put(base, "s/node_modules/p/SKILL.md", "none");
        assert_eq!(folders(base, "s"), ["a", "b"]);
        assert_eq!(folders(&base.join("s"), ""), ["a", "b"]);
        assert_eq!(folders(base, "missing"), [""; 0]);
    }

    #[test]
    fn links_count_only_within_the_base() {
        let (dir, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let base = dir.path();
        put(outside.path(), "evil/SKILL.md", "x");
        put(base, "s/own/SKILL.md", "x");
        symlink(outside.path().join("evil"), base.join("s/linked")).unwrap();
        fs::create_dir(base.join("s/file")).unwrap();
        symlink(
            outside.path().join("evil/SKILL.md"),
            base.join("s/file/SKILL.md"),
        )
        .unwrap();
        symlink("own", base.join("s/again")).unwrap();
        symlink(outside.path(), base.join("t")).unwrap();
        assert_eq!(folders(base, "s"), ["again", "own"]);
        assert_eq!(folders(base, "t"), [""; 0]);
    }

    #[test]
    fn a_pipe_is_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("p")).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            dir.path().join("p/SKILL.md"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RWXU,
            0,
        )
        .unwrap();
        assert_eq!(folders(dir.path(), ""), [""; 0]);
    }

    #[test]
    fn the_files_beside_are_listed_up_to_their_bound() {
        let of = |count: usize| {
            let dir = tempfile::tempdir().unwrap();
            put(dir.path(), "a/SKILL.md", "x");
            for number in 0..count {
                put(dir.path(), &format!("a/f/{number:03}.md"), "x");
            }
            symlink(dir.path(), dir.path().join("a/loop")).unwrap();
            let (files, has_more) = files_beside(dir.path(), Path::new(""), "a");
            (files.len(), has_more)
        };
        assert_eq!(of(BESIDE_MAX - 1), (BESIDE_MAX - 1, false));
        assert_eq!(of(BESIDE_MAX), (BESIDE_MAX, false));
        assert_eq!(of(BESIDE_MAX + 1), (BESIDE_MAX, true));
    }

    #[test]
    fn a_long_file_is_cut_at_its_bound() {
        let max = usize::try_from(SKILL_BYTES_MAX).unwrap();
        for (bytes, expected) in [(max - 1, false), (max, false), (max + 1, true)] {
            let dir = tempfile::tempdir().unwrap();
            put(dir.path(), "a/SKILL.md", &"x".repeat(bytes));
            let found = skill_file(dir.path(), Path::new(""), "a").unwrap();
            assert_eq!((found.text.len(), found.is_cut), (bytes.min(max), expected));
        }
    }
}
