//! Readable paths of a sandboxed command, and protected paths in its own directories.

use crate::readable::Readable;
use crate::{git_settings, toolchains};
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Files that configure the agent or that others run outside of the sandbox: never written in it, at the top of a
/// writable directory, whether they exist or not. `.git` itself cannot be moved away either.
pub const PROTECTED: [&str; 42] = [
    ".git",
    ".git/commondir",
    ".git/config",
    ".git/config.worktree",
    ".git/hooks",
    ".rondo",
    ".rondoignore",
    ".agents",
    ".codex",
    ".claude",
    ".gemini",
    ".cursor",
    ".cursorrules",
    ".clinerules",
    ".goosehints",
    ".junie",
    ".kiro",
    ".opencode",
    ".roo",
    ".windsurf",
    ".windsurfrules",
    ".aider.conf.yml",
    ".mcp.json",
    "opencode.json",
    ".vscode",
    ".zed",
    ".devcontainer",
    ".envrc",
    ".husky",
    "AGENTS.md",
    "AGENTS.override.md",
    "CLAUDE.md",
    "CLAUDE.local.md",
    "GEMINI.md",
    ".bashrc",
    ".bash_login",
    ".bash_profile",
    ".profile",
    ".zprofile",
    ".zshenv",
    ".zshrc",
    ".gitconfig",
];

/// Protected entries in the `.git` of a nested repository: those that name programs to start, or other places for
/// such settings.
pub(crate) const PROTECTED_OF_GIT: [&str; 4] = ["commondir", "config", "config.worktree", "hooks"];
/// Protected entries in a repository's directory of one of its worktrees.
pub(crate) const PROTECTED_OF_WORKTREE: [&str; 3] = ["commondir", "config.worktree", "gitdir"];
/// Of the directory of a worktree that lies outside of the workspace: without these it is not a worktree any more, and has lost
/// what was staged in it. `git worktree remove` removes them although it cannot remove the files.
pub(crate) const PROTECTED_OF_OTHER_WORKTREE: [&str; 4] = ["HEAD", "commondir", "gitdir", "index"];

/// Files in the home directory that the user's shells, session and agents read, besides the settings of `git`.
const OF_USER: [&str; 24] = [
    ".bash_aliases",
    ".bash_login",
    ".bash_logout",
    ".bash_profile",
    ".bashrc",
    ".claude",
    ".codex",
    ".config/autostart",
    ".config/environment.d",
    ".config/fish",
    ".config/git",
    ".config/systemd",
    ".cursor",
    ".gemini",
    ".gitconfig",
    ".local/bin",
    ".profile",
    ".ssh",
    ".xprofile",
    ".zlogin",
    ".zlogout",
    ".zprofile",
    ".zshenv",
    ".zshrc",
];

/// Of the system.
const SYSTEM: [&str; 14] = [
    "/bin",
    "/etc",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/home/linuxbrew",
    "/nix",
    "/opt",
    "/proc",
    "/sbin",
    "/sys",
    "/usr",
    "/dev",
];

/// Returns the directories that commands may read beside those that they work in: the system, toolchains and caches,
/// the directories of `PATH`, and the files that the user's configuration of `git` names. Keys, browsers' profiles and
/// the agent's own data
/// are not among them.
///
/// `variable` looks a variable of the user's environment up. Some name the directory of a toolchain. Paths in the
/// workspace do not count here: commands write it, and could have a link there lead anywhere.
#[must_use]
pub fn readable_roots_by(
    home: Option<&Path>,
    workspace: &[PathBuf],
    variable: &dyn Fn(&str) -> Option<OsString>,
) -> Vec<PathBuf> {
    let mut readable = Readable::new(
        home,
        SYSTEM.map(PathBuf::from).into(),
        &written(home, workspace),
    );
    if let Some(home) = home {
        git_settings::add(&mut readable, home, variable);
    }
    toolchains::add(&mut readable, home, variable);
    readable.into_paths()
}

/// Returns the result of [`readable_roots_by`] for no workspace and an environment with nothing but `PATH`.
#[must_use]
pub fn readable_roots(home: Option<&Path>, search_path: Option<&OsStr>) -> Vec<PathBuf> {
    let variable = |name: &str| search_path.filter(|_| name == "PATH").map(OsStr::to_owned);
    readable_roots_by(home, &[], &variable)
}

/// Returns the files that the user's shells, `git`, session and agents read in the home directory, with their real
/// paths: a working
/// directory may hold some of them, as a repository of such files does. Missing ones are among them.
#[must_use]
pub fn kept_of_user(home: &Path, variable: &dyn Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let mut kept: Vec<PathBuf> = OF_USER.iter().map(|it| home.join(it)).collect();
    let settings = git_settings::of_user(home, variable);
    kept.extend(named(settings.clone()));
    kept.extend(settings);
    // Most are not there, and below the same few directories.
    kept.sort();
    kept.dedup();
    let mut known = HashMap::new();
    let mut kept: Vec<PathBuf> = kept
        .iter()
        .map(|it| without_links(it, &mut known))
        .collect();
    kept.sort();
    kept.dedup();
    kept
}

#[cfg(target_os = "linux")]
fn named(settings: Vec<PathBuf>) -> Vec<PathBuf> {
    crate::named::by_settings(settings, None)
}

#[cfg(not(target_os = "linux"))]
fn named(_: Vec<PathBuf>) -> Vec<PathBuf> {
    Vec::new()
}

/// Returns the target of a path; of one that does not exist, the target of its nearest directory. `known` holds the
/// targets of the paths
/// that were looked at before.
fn without_links<'a>(path: &'a Path, known: &mut HashMap<&'a Path, Option<PathBuf>>) -> PathBuf {
    let found = path.ancestors().find_map(|it| {
        let below = path.strip_prefix(it).ok()?;
        let real = known.entry(it).or_insert_with(|| it.canonicalize().ok());
        Some((real.clone()?, below))
    });
    match found {
        Some((real, below)) if below.as_os_str().is_empty() => real,
        Some((real, below)) => real.join(below),
        None => path.to_owned(),
    }
}

/// Returns the top of the repository that a directory is a subdirectory of: none if it has a repository itself, or if that
/// around it may not be opened to commands, such as one that holds the home directory.
///
/// A command of `git` changes the working tree as a whole. If it could write the repository and only a part of the tree, it
/// would leave the rest behind, and the next commit would undo the work of others.
#[must_use]
pub fn repository_around(directory: &Path, home: Option<&Path>) -> Option<PathBuf> {
    let real = directory.canonicalize().ok()?;
    around_real(&real, home).filter(|top| real.starts_with(top) && real != *top)
}

/// Returns the directories that commands write, those of the repositories around the workspace too.
fn written(home: Option<&Path>, workspace: &[PathBuf]) -> Vec<PathBuf> {
    let real = workspace.iter().filter_map(|it| it.canonicalize().ok());
    let around = real.filter_map(|it| around_real(&it, home));
    workspace.iter().cloned().chain(around).collect()
}

/// Returns the top of the repository around a directory, whose path has no links.
#[cfg(target_os = "linux")]
fn around_real(root: &Path, home: Option<&Path>) -> Option<PathBuf> {
    let home = home.and_then(|it| it.canonicalize().ok());
    Some(crate::enclosing::EnclosingRepository::find(root, home.as_deref())?.top)
}

#[cfg(not(target_os = "linux"))]
fn around_real(_: &Path, _: Option<&Path>) -> Option<PathBuf> {
    None
}
