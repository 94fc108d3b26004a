//! The context of the user's terminal, which goes along with each question under a profile with `terminal_context`.

use crate::env::Env;
use crate::sanitize::plain;
use async_trait::async_trait;
pub use rondo_context::TerminalContext;
use rondo_core::ports::{Interceptor, StepContext, StepDecision};
use rondo_core::redact::Secrets;
use std::path::{Path, PathBuf};

/// Commands of a person that are named as their latest.
pub const RECENT_COMMANDS_MAX: usize = 10;
/// Bytes of a file of git that are read.
const GIT_FILE_BYTES_MAX: u64 = 4096;
/// Characters of a commit that distinguish it from others.
const COMMIT_CHARS: usize = 7;
/// The files by which git shows that it is in the middle of something.
const GIT_STATES: [(&str, &str); 6] = [
    ("MERGE_HEAD", "a merge"),
    ("rebase-merge", "a rebase"),
    ("rebase-apply", "a rebase"),
    ("CHERRY_PICK_HEAD", "a cherry-pick"),
    ("REVERT_HEAD", "a revert"),
    ("BISECT_LOG", "a bisection"),
];

/// Adds the directory, the operating system, the shell and the state of git to a context.
#[must_use]
pub fn with_surroundings(seen: TerminalContext, directory: &Path, env: &Env) -> TerminalContext {
    let git = git_directory(directory);
    let midst = GIT_STATES
        .iter()
        .find(|(file, _)| git.as_ref().is_some_and(|git| git.join(file).exists()));
    TerminalContext {
        cwd: Some(directory.to_owned()),
        system: Some(std::env::consts::OS.to_owned()),
        shell: env.get("SHELL").map(str::to_owned),
        git_branch: branch(directory),
        git_state: midst.map(|(_, state)| format!("in the middle of {state}")),
        ..seen
    }
}

/// Returns the branch that is checked out, or the beginning of the commit. It reads two small files
/// and starts no process: a repository names programs that git runs, and every prompt asks.
#[must_use]
pub fn branch(directory: &Path) -> Option<String> {
    let head = small_file(&git_directory(directory)?.join("HEAD"))?;
    let name = match head.strip_prefix("ref: ") {
        Some(name) => name.strip_prefix("refs/heads/").unwrap_or(name).to_owned(),
        None => head.chars().take(COMMIT_CHARS).collect(),
    };
    Some(plain(&name))
}

/// Returns git's own directory of the repository around a directory.
fn git_directory(directory: &Path) -> Option<PathBuf> {
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
    let text = crate::files::read_text(path, GIT_FILE_BYTES_MAX).ok()?;
    Some(text.trim().to_owned())
}

/// Shows the model the terminal's context of the moment in which a turn begins. The text is recorded with the turn, so
/// that a replay sends the same bytes.
pub(crate) struct ShowTerminal {
    /// The context as far as the host sees it: commands, and the screen.
    pub(crate) seen: TerminalContext,
    /// The directory in which commands run.
    pub(crate) directory: PathBuf,
    pub(crate) env: Env,
    pub(crate) secrets: Secrets,
}

#[async_trait]
impl Interceptor for ShowTerminal {
    fn name(&self) -> &'static str {
        "terminal_context"
    }

    /// # Cancel safety
    /// Cancel safe: it only reads.
    async fn turn_start(&self, _step: &StepContext) -> StepDecision {
        let (seen, directory, env) = (self.seen.clone(), self.directory.clone(), self.env.clone());
        let looked =
            tokio::task::spawn_blocking(move || with_surroundings(seen, &directory, &env)).await;
        match looked {
            Ok(context) => StepDecision::Add {
                text: self.secrets.text(context.text()),
            },
            Err(_) => StepDecision::Continue,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_state_of_git_is_named_and_what_the_host_saw_stays() {
        let root = tempfile::tempdir().unwrap();
        let git = root.path().join(".git");
        fs::create_dir(&git).unwrap();
        fs::write(git.join("HEAD"), "ref: refs/heads/topic\n").unwrap();
        let seen = || TerminalContext {
            commands: vec!["make".to_owned()],
            ..TerminalContext::default()
        };
        let env = Env::of(&[("SHELL", "/bin/bash")]);
        let context = with_surroundings(seen(), root.path(), &env);
        assert_eq!(context.git_branch.as_deref(), Some("topic"));
        assert_eq!(context.git_state, None);
        fs::create_dir(git.join("rebase-merge")).unwrap();
        let context = with_surroundings(seen(), root.path(), &env);
        let state = context.git_state.as_deref();
        assert_eq!(state, Some("in the middle of a rebase"));
        assert_eq!(context.commands, ["make"]);
    }

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
}
