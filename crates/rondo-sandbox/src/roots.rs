//! What a sandboxed command may read, and what it may not write in its own directories.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// What configures the agent or is run by others outside of the sandbox: never written in it, at the top of a
/// writable directory, whether it exists or not. `.git` itself cannot be moved away either.
pub const PROTECTED: [&str; 23] = [
    ".git",
    ".git/commondir",
    ".git/config",
    ".git/config.worktree",
    ".git/hooks",
    ".rondo",
    ".agents",
    ".codex",
    ".claude",
    ".gemini",
    ".cursor",
    ".mcp.json",
    ".vscode",
    ".envrc",
    ".husky",
    "AGENTS.md",
    "CLAUDE.md",
    "GEMINI.md",
    ".bashrc",
    ".bash_profile",
    ".profile",
    ".zshrc",
    ".gitconfig",
];

/// What is protected of a repository further down, in its `.git`: what programs it starts, and where else `git` looks
/// for that.
pub(crate) const PROTECTED_OF_GIT: [&str; 4] = ["commondir", "config", "config.worktree", "hooks"];
/// What is protected of the directory that a repository has for one of its worktrees.
pub(crate) const PROTECTED_OF_WORKTREE: [&str; 3] = ["commondir", "config.worktree", "gitdir"];

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

/// Toolchains and caches in a home directory; no keys are in them.
const HOME: [&str; 21] = [
    ".cargo/bin",
    ".cargo/config.toml",
    ".cargo/env",
    ".cargo/git",
    ".cargo/registry",
    ".rustup",
    ".pyenv",
    ".nvm",
    ".volta",
    ".asdf",
    ".local/bin",
    ".local/lib",
    ".local/share/mise",
    ".local/share/pipx",
    ".local/share/uv",
    ".cache/pip",
    ".cache/go-build",
    ".npm/_cacache",
    ".gitconfig",
    ".config/git",
    "go/pkg",
];

/// Returns what commands may read beside the directories that they work in: the system, toolchains and caches, and
/// where `PATH` leads. Keys, browsers' profiles and the agent's own data are not among it.
#[must_use]
pub fn readable_roots(home: Option<&Path>, search_path: Option<&OsStr>) -> Vec<PathBuf> {
    let system = SYSTEM.iter().map(PathBuf::from);
    let of_home = home
        .into_iter()
        .flat_map(|home| HOME.map(|it| home.join(it)));
    let of_path = search_path.into_iter().flat_map(std::env::split_paths);
    // A home directory in `PATH` would be readable as a whole.
    let is_narrow =
        |it: &PathBuf| it.is_absolute() && home.is_none_or(|home| !home.starts_with(it));
    let mut roots: Vec<PathBuf> = system
        .chain(of_home)
        .chain(of_path.filter(is_narrow))
        .collect();
    // Each costs every command some microseconds, and `PATH` names most of them again.
    let mut seen = HashSet::new();
    roots.retain(|root| seen.insert(root.clone()));
    roots
}
