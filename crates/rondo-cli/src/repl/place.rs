//! The directory and branch that the prompt shows.

use std::path::{Path, PathBuf};

/// Bytes of a file of git that are read.
const GIT_FILE_BYTES_MAX: u64 = 4096;
/// Characters of a commit that tell it from others.
const COMMIT_CHARS: usize = 7;
/// Columns of a directory at most; its end says more than its beginning.
const DIRECTORY_CHARS_MAX: usize = 40;

/// Returns a directory with `~` for the home, its end alone where it is long.
pub(super) fn shown(directory: &Path, home: Option<&Path>) -> String {
    let text = match home.and_then(|home| directory.strip_prefix(home).ok()) {
        Some(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
        Some(rest) => format!("~/{}", rest.display()),
        None => directory.display().to_string(),
    };
    let text = rondo_runtime::sanitize::plain(&text);
    let count = text.chars().count();
    if count <= DIRECTORY_CHARS_MAX {
        return text;
    }
    let end: String = text.chars().skip(count - DIRECTORY_CHARS_MAX + 1).collect();
    format!("…{end}")
}

/// Returns the branch that is checked out, or the beginning of the commit. It reads two small files
/// and starts no process, since every prompt asks.
pub(crate) fn branch(directory: &Path) -> Option<String> {
    let head = small_file(&git_directory(directory)?.join("HEAD"))?;
    let name = match head.strip_prefix("ref: ") {
        Some(name) => name.strip_prefix("refs/heads/").unwrap_or(name).to_owned(),
        None => head.chars().take(COMMIT_CHARS).collect(),
    };
    Some(rondo_runtime::sanitize::plain(&name))
}

/// Returns git's own directory of the repository around a directory.
pub(crate) fn git_directory(directory: &Path) -> Option<PathBuf> {
    let git = directory
        .ancestors()
        .map(|folder| folder.join(".git"))
        .find(|git| git.exists())?;
    git_dir(git)
}

/// Follows the file that stands in for the directory in a worktree.
fn git_dir(git: PathBuf) -> Option<PathBuf> {
    if git.is_dir() {
        return Some(git);
    }
    let link = small_file(&git)?;
    let named = link.strip_prefix("gitdir: ")?;
    Some(git.parent()?.join(named))
}

fn small_file(path: &Path) -> Option<String> {
    let text = rondo_runtime::files::read_text(path, GIT_FILE_BYTES_MAX).ok()?;
    Some(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_branch_is_found_from_below_and_from_a_worktree() {
        let root = tempfile::tempdir().unwrap();
        let (main, tree) = (root.path().join("main"), root.path().join("tree"));
        let own = main.join(".git/worktrees/tree");
        fs::create_dir_all(&own).unwrap();
        fs::create_dir_all(main.join("src")).unwrap();
        fs::create_dir_all(&tree).unwrap();
        fs::write(main.join(".git/HEAD"), "ref: refs/heads/feature/x\n").unwrap();
        fs::write(own.join("HEAD"), "0123456789abcdef\n").unwrap();
        fs::write(tree.join(".git"), format!("gitdir: {}\n", own.display())).unwrap();
        assert_eq!(branch(&main.join("src")).as_deref(), Some("feature/x"));
        assert_eq!(branch(&tree).as_deref(), Some("0123456"));
    }

    #[test]
    fn a_pipe_in_the_place_of_a_file_of_git_is_not_waited_for() {
        let root = tempfile::tempdir().unwrap();
        let git = root.path().join(".git");
        let pipe = |path: &Path| {
            rustix::fs::mkfifoat(rustix::fs::CWD, path, rustix::fs::Mode::RWXU).unwrap();
        };
        pipe(&git);
        assert_eq!(branch(root.path()), None);
        fs::remove_file(&git).unwrap();
        fs::create_dir(&git).unwrap();
        pipe(&git.join("HEAD"));
        assert_eq!(branch(root.path()), None);
    }

    #[test]
    fn a_directory_is_short() {
        let home = Path::new("/home/me");
        let show = |path: &str| shown(Path::new(path), Some(home));
        assert_eq!(show("/home/me"), "~");
        assert_eq!(show("/home/me/a b"), "~/a b");
        assert_eq!(show("/home/mel"), "/home/mel");
        let long = format!("/{}", "x".repeat(60));
        assert_eq!(show(&long).chars().count(), DIRECTORY_CHARS_MAX);
    }
}
