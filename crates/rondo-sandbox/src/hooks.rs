//! Hooks of `git` that do not run in the sandbox. `git` passes over hooks that it does not find, and says nothing.

use crate::enclosing::EnclosingRepository;
use crate::{Root, SandboxSpec, git_config};
use std::path::{Path, PathBuf};

/// The hooks that `git` runs on a user's own machine.
const NAMES: [&str; 14] = [
    "applypatch-msg",
    "commit-msg",
    "post-applypatch",
    "post-checkout",
    "post-commit",
    "post-merge",
    "post-rewrite",
    "pre-applypatch",
    "pre-commit",
    "pre-merge-commit",
    "pre-push",
    "pre-rebase",
    "prepare-commit-msg",
    "reference-transaction",
];

/// Hooks that the sandbox hides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HiddenHooks {
    /// Directory of the hooks.
    pub directory: PathBuf,
    /// Their names, such as `pre-commit`.
    pub names: Vec<&'static str>,
}

/// Returns the hooks that the configuration of the repository around a directory names, and a command there does not
/// reach: what a repository says opens no directory.
#[must_use]
pub fn hidden_hooks(spec: &SandboxSpec, directory: &Path) -> Option<HiddenHooks> {
    let real = |path: &Path| path.canonicalize().ok();
    let home = spec.home.as_deref().and_then(real);
    let repository = EnclosingRepository::around(&real(directory)?, home.as_deref())?;
    let settings = git_config::read(&repository.common.join("config"));
    let named = settings.iter().rfind(|it| it.key == b"core.hookspath")?;
    let named = named.path()?;
    let path = match (named.strip_prefix("~"), &home) {
        (Ok(below), Some(home)) => home.join(below),
        _ => repository.top.join(named),
    };
    let path = real(&path)?;
    let own = [&repository.top, &repository.common];
    let written = spec.writable.iter().map(Root::path);
    let reached = written.chain(spec.readable.iter().map(PathBuf::as_path));
    let is_reached =
        |it: &Path| path.starts_with(it) || real(it).is_some_and(|it| path.starts_with(it));
    if own
        .into_iter()
        .map(PathBuf::as_path)
        .chain(reached)
        .any(is_reached)
    {
        return None;
    }
    let names = NAMES.into_iter().filter(|it| path.join(it).is_file());
    let names: Vec<_> = names.collect();
    (!names.is_empty()).then_some(HiddenHooks {
        directory: path,
        names,
    })
}
