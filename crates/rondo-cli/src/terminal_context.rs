//! What is known of the user's terminal beside what the screen shows: the directory, git, and tmux.

use crate::repl::place;
use rondo_runtime::env::Env;
use rondo_runtime::sanitize;
use rondo_tui::TerminalContext;
use std::path::Path;
use std::process::{Command, Stdio};

/// What git leaves in its directory while it is in the midst of something.
const GIT_STATES: [(&str, &str); 6] = [
    ("MERGE_HEAD", "a merge"),
    ("rebase-merge", "a rebase"),
    ("rebase-apply", "a rebase"),
    ("CHERRY_PICK_HEAD", "a cherry-pick"),
    ("REVERT_HEAD", "a revert"),
    ("BISECT_LOG", "a bisection"),
];

/// Adds it to what is seen on the screen. No program of git is started: a repository says which ones that would be.
pub(crate) fn with_surroundings(
    seen: TerminalContext,
    directory: &Path,
    env: &Env,
) -> TerminalContext {
    let git = place::git_directory(directory);
    let midst = GIT_STATES
        .iter()
        .find(|(file, _)| git.as_ref().is_some_and(|git| git.join(file).exists()));
    TerminalContext {
        cwd: Some(directory.to_owned()),
        system: Some(std::env::consts::OS.to_owned()),
        shell: env.get("SHELL").map(str::to_owned),
        git_branch: place::branch(directory),
        git_state: midst.map(|(_, state)| format!("in the midst of {state}")),
        tmux: other_pane(env),
        ..seen
    }
}

/// Returns what stands in the pane of the same window of tmux that was used before; none where there is none.
fn other_pane(env: &Env) -> Option<String> {
    let (tmux, pane) = (env.get("TMUX")?, env.get("TMUX_PANE")?);
    let output = Command::new("tmux")
        .args(["capture-pane", "-p", "-J", "-t", "{last}"])
        .env("TMUX", tmux)
        .env("TMUX_PANE", pane)
        .stdin(Stdio::null())
        .output()
        .ok()?;
    let shown = String::from_utf8_lossy(&output.stdout);
    let shown = sanitize::plain(shown.trim_end());
    (output.status.success() && !shown.is_empty()).then_some(shown)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn git_is_told_with_what_it_is_in_the_midst_of_and_what_is_seen_stays() {
        let root = tempfile::tempdir().unwrap();
        let git = root.path().join(".git");
        fs::create_dir(&git).unwrap();
        fs::write(git.join("HEAD"), "ref: refs/heads/topic\n").unwrap();
        let seen = || TerminalContext {
            commands: vec!["make".to_owned()],
            ..TerminalContext::default()
        };
        let env = Env::of(&[("SHELL", "/bin/bash")]);
        let told = with_surroundings(seen(), root.path(), &env);
        assert_eq!(told.git_branch.as_deref(), Some("topic"));
        assert_eq!((told.git_state, told.tmux), (None, None));
        fs::create_dir(git.join("rebase-merge")).unwrap();
        let told = with_surroundings(seen(), root.path(), &env);
        assert_eq!(told.git_state.as_deref(), Some("in the midst of a rebase"));
        assert_eq!(told.commands, ["make"]);
        let text = told.text();
        assert!(text.contains("- Git branch: topic\n"), "{text}");
        assert!(text.contains("  $ make"), "{text}");
    }
}
