//! Entries of a repository's directory that run a program, or lead `git` elsewhere.

use crate::content::kind;
use crate::directory::Directory;
use crate::git_config::{Setting, parse};
use crate::harmless::{Effect, is_hook_of_lfs};
use crate::named;
use rustix::fs::FileType;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

/// The bound on each file that is read, in bytes. A longer one is not harmless.
const BYTES_MAX: u64 = 256 << 10;
/// Suffix of hooks that `git` installs and does not run.
const SAMPLE: &[u8] = b".sample";
/// Part of the names of renamed entries.
const REFUSED: &[u8] = b".refused";
/// Commands in the list of an interrupted rebase, with their short names.
const STEPS: [&str; 24] = [
    "pick",
    "p",
    "revert",
    "edit",
    "e",
    "reword",
    "r",
    "fixup",
    "f",
    "squash",
    "s",
    "drop",
    "d",
    "noop",
    "break",
    "b",
    "label",
    "l",
    "reset",
    "t",
    "merge",
    "m",
    "update-ref",
    "u",
];
/// The strategies of a merge that are part of `git`; any other is a program.
const STRATEGIES: [&str; 6] = ["ort", "recursive", "resolve", "octopus", "ours", "subtree"];
/// The lists of interrupted work.
const LISTS: [&str; 2] = ["rebase-merge/git-rebase-todo", "sequencer/todo"];
/// File of interrupted work with its merge strategy.
const STRATEGY: &str = "rebase-merge/strategy";
/// The options of interrupted work, which are written as settings are.
const OPTIONS: &str = "sequencer/opts";
/// The directory of hooks.
const HOOKS: &str = "hooks";
/// File with the path of the directory that has the settings of this one.
const COMMON: &str = "commondir";

/// Something in a repository that runs a program or leads elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    /// The file, from the directory of the repository.
    pub(crate) file: PathBuf,
    /// Effect of the entry, for a person.
    pub(crate) what: String,
    /// Value of the entry, for comparison.
    pub(crate) value: Vec<u8>,
}

/// A directory that paths in a repository may lead to.
#[derive(Debug)]
pub(crate) struct Bound {
    pub(crate) place: Directory,
    /// Set if commands may write it. Otherwise it encloses a repository that they may write, and counts for that one
    /// only.
    pub(crate) is_written: bool,
}

impl Finding {
    /// Returns the finding for a file that names another repository.
    pub(crate) fn of_pointer(name: &OsStr, what: String) -> Self {
        Self::new(name, what, [])
    }

    /// Returns the finding for settings of Rondo, further down than at the top.
    pub(crate) fn of_rondo(file: PathBuf) -> Self {
        Self::new(file, "Rondo would follow it", [])
    }

    pub(crate) fn new(
        file: impl Into<PathBuf>,
        what: impl Into<String>,
        value: impl Into<Vec<u8>>,
    ) -> Self {
        Self {
            file: file.into(),
            what: what.into(),
            value: value.into(),
        }
    }
}

/// Returns all that runs a program or leads outside of the `bounds`.
///
/// # Errors
/// When something cannot be looked at.
pub(crate) fn inspect(git: &Directory, bounds: &[Bound]) -> io::Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for name in ["config", "config.worktree"] {
        inspect_settings(git, name, bounds, &mut findings)?;
    }
    inspect_hooks(git, &mut findings)?;
    if let Some(bytes) = read(git, COMMON, &mut findings)?
        && !leads_back(git, line(&bytes))
    {
        findings.push(Finding::new(COMMON, "it leads to other settings", bytes));
    }
    findings.extend(inspect_interrupted(git)?);
    Ok(findings)
}

/// Returns the programs that interrupted work of a repository would run when it continues.
///
/// # Errors
/// When something cannot be looked at.
pub(crate) fn inspect_interrupted(git: &Directory) -> io::Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for list in LISTS {
        let Some(bytes) = read(git, list, &mut findings)? else {
            continue;
        };
        let runs = bytes
            .split(|it| *it == b'\n')
            .map(<[u8]>::trim_ascii)
            .filter(|line| !line.is_empty() && !line.starts_with(b"#") && !is_step(line));
        // Each by itself: a list becomes shorter as the work continues.
        findings.extend(runs.map(|line| {
            let what = format!("it runs `{}`", String::from_utf8_lossy(line));
            Finding::new(list, what, line)
        }));
    }
    if let Some(bytes) = read(git, STRATEGY, &mut findings)?
        && !is_strategy(bytes.trim_ascii())
    {
        findings.push(Finding::new(STRATEGY, "it names a program", bytes));
    }
    if let Some(bytes) = read(git, OPTIONS, &mut findings)? {
        let is_plain = parse(&bytes).is_ok_and(|settings| {
            let mut strategies = settings.iter().filter(|it| it.key == b"options.strategy");
            strategies.all(|it| it.value.as_deref().is_some_and(is_strategy))
        });
        if !is_plain {
            findings.push(Finding::new(OPTIONS, "it names a program", bytes));
        }
    }
    Ok(findings)
}

/// Returns the files that the settings of a repository name, whose files are `around` it.
pub(crate) fn named_by_settings(git: &Directory, around: &Path) -> Vec<PathBuf> {
    let files = ["config", "config.worktree"].map(|it| git.path().join(it));
    named::by_settings(files, Some(around))
}

/// Returns the targets of those hooks of a repository that are links: the targets are hooks as well.
pub(crate) fn linked_hooks(git: &Directory) -> Vec<PathBuf> {
    let Ok(hooks) = git.open_below(HOOKS) else {
        return Vec::new();
    };
    let mut names = Vec::new();
    let listed = hooks.list(|name, kind, _| {
        let is_link = matches!(kind, FileType::Symlink | FileType::Unknown);
        names.extend(is_link.then(|| name.to_owned()));
    });
    match listed {
        Ok(()) => linked(&hooks, names.iter().map(OsString::as_os_str)),
        Err(_) => Vec::new(),
    }
}

/// Returns the targets of those of these names that are links in a directory.
pub(crate) fn linked<'a>(
    directory: &Directory,
    names: impl Iterator<Item = &'a OsStr>,
) -> Vec<PathBuf> {
    let target = |name| {
        let target = rustix::fs::readlinkat(directory.as_fd(), name, Vec::new()).ok()?;
        resolved(directory.path(), target.as_bytes())
    };
    names.filter_map(target).collect()
}

fn is_step(line: &[u8]) -> bool {
    let name = line
        .split(u8::is_ascii_whitespace)
        .next()
        .unwrap_or_default();
    STEPS.iter().any(|it| it.as_bytes() == name)
}

/// Returns the bytes that `git` takes for a path in a file that holds one: up to the end of the line, spaces included.
pub(crate) fn line(bytes: &[u8]) -> &[u8] {
    let mut line = bytes;
    while let Some((b'\n' | b'\r', rest)) = line.split_last() {
        line = rest;
    }
    let mut parts = line.split(|it| *it == 0);
    parts.next().unwrap_or_default()
}

fn is_strategy(name: &[u8]) -> bool {
    STRATEGIES.iter().any(|it| it.as_bytes() == name)
}

/// Reads a file of a repository; `None` if there is nothing. One that is too long, or no file, is noted.
fn read(git: &Directory, name: &str, findings: &mut Vec<Finding>) -> io::Result<Option<Vec<u8>>> {
    let path = Path::new(name);
    if let Some(parent) = path.parent().filter(|it| !it.as_os_str().is_empty()) {
        // Its target may change at any time.
        let found = git.stat(parent)?;
        if found.is_some_and(|it| kind(&it) == FileType::Symlink) {
            let target = rustix::fs::readlinkat(git.as_fd(), parent, Vec::new())?;
            let finding = Finding::new(parent, "it leads elsewhere", target.into_bytes());
            if !findings.contains(&finding) {
                findings.push(finding);
            }
            return Ok(None);
        }
    }
    let Some(found) = git.stat(path)? else {
        return Ok(None);
    };
    let length = u64::try_from(found.st_size).unwrap_or(u64::MAX);
    if kind(&found) != FileType::RegularFile || length > BYTES_MAX {
        let what = "it is not a file that git writes";
        let value = format!(
            "{} {} {}",
            found.st_ino, found.st_ctime, found.st_ctime_nsec
        );
        findings.push(Finding::new(path, what, value));
        return Ok(None);
    }
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(file)) if !parent.as_os_str().is_empty() => {
            git.open_below(parent)?.read(file, BYTES_MAX)
        }
        _ => git.read(OsStr::new(name), BYTES_MAX),
    }
}

fn inspect_settings(
    git: &Directory,
    name: &str,
    bounds: &[Bound],
    findings: &mut Vec<Finding>,
) -> io::Result<()> {
    let Some(bytes) = read(git, name, findings)? else {
        return Ok(());
    };
    let Ok(settings) = parse(&bytes) else {
        findings.push(Finding::new(name, "git cannot read it", bytes));
        return Ok(());
    };
    let is_harmful = |setting: &&Setting| match setting.effect() {
        Effect::Harmless => false,
        Effect::Worktree(path) => !stays_within(git, path, bounds),
        Effect::Harmful => true,
    };
    findings.extend(settings.iter().filter(is_harmful).map(|setting| {
        let what = format!("it sets `{}`", String::from_utf8_lossy(&setting.key));
        let value = setting.value.clone().unwrap_or_default();
        Finding::new(name, what, value)
    }));
    Ok(())
}

fn inspect_hooks(git: &Directory, findings: &mut Vec<Finding>) -> io::Result<()> {
    let Some(found) = git.stat(HOOKS)? else {
        return Ok(());
    };
    match kind(&found) {
        FileType::Directory => {}
        FileType::Symlink => {
            let target = rustix::fs::readlinkat(git.as_fd(), HOOKS, Vec::new())?;
            findings.push(Finding::new(
                HOOKS,
                "it leads to other hooks",
                target.into_bytes(),
            ));
            return Ok(());
        }
        _ => return Ok(()),
    }
    let hooks = git.open_below(HOOKS)?;
    let mut names: Vec<OsString> = Vec::new();
    hooks.list(|name, kind, _| {
        let bytes = name.as_bytes();
        let is_left =
            bytes.ends_with(SAMPLE) || bytes.windows(REFUSED.len()).any(|it| it == REFUSED);
        if kind != FileType::Directory && !is_left {
            names.push(name.to_owned());
        }
    })?;
    for name in names {
        let Some(found) = hooks.stat(&name)? else {
            continue;
        };
        let value = match kind(&found) {
            FileType::RegularFile if found.st_mode & 0o111 == 0 => continue,
            FileType::RegularFile => hooks.read(&name, BYTES_MAX)?.unwrap_or_default(),
            FileType::Symlink => {
                rustix::fs::readlinkat(hooks.as_fd(), &name, Vec::new())?.into_bytes()
            }
            _ => continue,
        };
        if !is_hook_of_lfs(&name.to_string_lossy(), &value) {
            let file = Path::new(HOOKS).join(&name);
            findings.push(Finding::new(file, "git runs it", value));
        }
    }
    Ok(())
}

/// Returns whether what is in `commondir` leads to the repository that a worktree is part of.
fn leads_back(git: &Directory, target: &[u8]) -> bool {
    let path = git.path();
    let parent = path.parent();
    let is_worktree = parent.is_some_and(|it| it.ends_with("worktrees"));
    let repository = parent.and_then(Path::parent);
    is_worktree && repository.is_some_and(|it| resolved(path, target).as_deref() == Some(it))
}

/// Returns whether a path that a repository names leads to a directory within the bounds, or to nothing there.
fn stays_within(git: &Directory, target: &[u8], bounds: &[Bound]) -> bool {
    // A home directory, or where git is installed.
    if target.starts_with(b"~") || target.starts_with(b"%(") {
        return false;
    }
    let Some(path) = resolved(git.path(), target) else {
        return false;
    };
    let counts = |bound: &&Bound| bound.is_written || git.path().starts_with(bound.place.path());
    let is_inside = |bound: &Bound| {
        let below = path.strip_prefix(bound.place.path());
        below.is_ok_and(|below| match bound.place.open_below(below) {
            Ok(_) => true,
            Err(err) => err.kind() == io::ErrorKind::NotFound,
        })
    };
    bounds.iter().filter(counts).any(is_inside)
}

/// Returns the target of a path from a directory, if no part of it is a link.
pub(crate) fn resolved(from: &Path, target: &[u8]) -> Option<PathBuf> {
    let mut path = PathBuf::new();
    for part in from.join(OsStr::from_bytes(target)).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                path.pop();
            }
            part => path.push(part),
        }
    }
    path.is_absolute().then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::process::Command;

    struct Repository {
        _place: tempfile::TempDir,
        root: PathBuf,
    }

    impl Repository {
        fn new() -> Self {
            let place = tempfile::tempdir().unwrap();
            let root = place.path().canonicalize().unwrap();
            let repository = Self {
                _place: place,
                root,
            };
            repository.git(&["init", "-q", "-b", "main", "."]);
            repository
        }

        fn git(&self, arguments: &[&str]) {
            let mut git = Command::new("git");
            git.args([
                "-c",
                "user.name=A",
                "-c",
                "user.email=a@b",
                "-c",
                "protocol.file.allow=always",
            ]);
            let done = git
                .args(arguments)
                .current_dir(&self.root)
                .output()
                .unwrap();
            assert!(done.status.success(), "{arguments:?}: {done:?}");
        }

        fn write(&self, file: &str, text: &str) {
            let path = self.root.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn files(&self, git: &str) -> Vec<String> {
            let root = Directory::open(&self.root).unwrap();
            let git = root.open_below(git).unwrap();
            let bound = Bound {
                place: root,
                is_written: true,
            };
            let found = inspect(&git, &[bound]).unwrap();
            let files = found
                .iter()
                .map(|it| it.file.to_string_lossy().into_owned());
            files.collect()
        }
    }

    #[test]
    fn repositories_as_git_makes_them_have_nothing_that_is_harmful() {
        let repository = Repository::new();
        repository.git(&["commit", "-q", "--allow-empty", "-m", "a"]);
        repository.git(&["init", "-q", "--bare", "bare.git"]);
        repository.git(&["init", "-q", "--separate-git-dir=.elsewhere", "separate"]);
        repository.git(&["clone", "-q", ".", "clone"]);
        repository.git(&["clone", "-q", "--depth=1", "--no-local", ".", "shallow"]);
        repository.git(&["submodule", "add", "-q", "./clone", "sub/module"]);
        repository.git(&["worktree", "add", "-q", "wt"]);
        repository.git(&["-C", "wt", "sparse-checkout", "set", "a"]);
        repository.git(&["remote", "add", "-f", "o", "./clone"]);
        repository.git(&["branch", "-q", "--track", "b", "o/main"]);
        for git in [
            ".git",
            "bare.git",
            ".elsewhere",
            "clone/.git",
            "shallow/.git",
            ".git/modules/sub/module",
            ".git/worktrees/wt",
        ] {
            assert!(
                repository.files(git).is_empty(),
                "{git}: {:?}",
                repository.files(git)
            );
        }
    }

    #[test]
    fn what_runs_or_leads_elsewhere_is_found() {
        let repository = Repository::new();
        repository.write(".git/hooks/pre-commit", "x");
        repository.write(".git/hooks/post-commit", "x");
        let mode = Permissions::from_mode(0o755);
        fs::set_permissions(repository.root.join(".git/hooks/pre-commit"), mode).unwrap();
        symlink("/bin/sh", repository.root.join(".git/hooks/pre-push")).unwrap();
        repository.write(".git/commondir", "../other");
        repository.write(
            ".git/config.worktree",
            "[core]\nbare = false\nworktree = /etc\n",
        );
        repository.write(
            ".git/rebase-merge/git-rebase-todo",
            "pick a\n# x\nx touch y\n",
        );
        repository.write(".git/rebase-merge/strategy", "evil\n");
        repository.write(".git/sequencer/opts", "[options]\nstrategy = ../evil\n");
        let mut files = repository.files(".git");
        files.sort();
        let expected = [
            "commondir",
            "config.worktree",
            "hooks/pre-commit",
            "hooks/pre-push",
            "rebase-merge/git-rebase-todo",
            "rebase-merge/strategy",
            "sequencer/opts",
        ];
        assert_eq!(files, expected);
    }

    #[test]
    fn a_worktree_stays_within_what_the_command_may_write() {
        let repository = Repository::new();
        symlink("/etc", repository.root.join("link")).unwrap();
        let worktree = |path: &str| {
            repository.write("a/.git/config", &format!("[core]\nworktree = {path}\n"));
            repository.files("a/.git").is_empty()
        };
        assert!(worktree("..") && worktree("../../b"));
        assert!(worktree(&repository.root.to_string_lossy()));
        for path in ["../../..", "/etc", "../../link", "~", "~/x", "%(prefix)/x"] {
            assert!(!worktree(path), "{path}");
        }
    }

    #[test]
    fn a_path_of_a_file_ends_where_git_ends_it() {
        assert_eq!(line(b"../a \r\n\n"), b"../a ");
        assert_eq!(line(b"../a\0b\n"), b"../a");
        assert_eq!(line(b"../a\n\0"), b"../a\n");
        let repository = Repository::new();
        for (text, is_own) in [("../..\n", true), ("../.. \n", false), ("../../\n", true)] {
            repository.write(".git/worktrees/w/commondir", text);
            assert_eq!(
                repository.files(".git/worktrees/w").is_empty(),
                is_own,
                "{text:?}"
            );
        }
    }

    #[test]
    fn interrupted_work_without_a_program_is_harmless() {
        let repository = Repository::new();
        let todo = "pick 1 a\nlabel onto\nreset onto\nmerge -C 2 x # y\nbreak\nupdate-ref refs/heads/a\n\n# Rebase\n";
        repository.write(".git/rebase-merge/git-rebase-todo", todo);
        repository.write(".git/rebase-merge/strategy", "ort\n");
        assert!(repository.files(".git").is_empty());
        repository.write(
            ".git/rebase-merge/git-rebase-todo",
            "exec a\npick 1\nexec b\n",
        );
        assert_eq!(repository.files(".git").len(), 2);
        for line in ["exec x", "x x", "\texec x", "!x", "execute"] {
            repository.write(".git/rebase-merge/git-rebase-todo", line);
            assert_eq!(
                repository.files(".git"),
                ["rebase-merge/git-rebase-todo"],
                "{line}"
            );
        }
    }

    #[test]
    fn what_is_in_the_place_of_a_file_is_found() {
        let repository = Repository::new();
        fs::rename(
            repository.root.join(".git/config"),
            repository.root.join("c"),
        )
        .unwrap();
        assert!(repository.files(".git").is_empty());
        symlink("../c", repository.root.join(".git/config")).unwrap();
        assert_eq!(repository.files(".git"), ["config"]);
    }
}
