//! The context of the user's terminal that `/terminal` shows, with the other pane of tmux.

use rondo_runtime::env::Env;
use rondo_runtime::{sanitize, terminal};
use rondo_tui::TerminalContext;
use std::path::Path;
use std::process::{Command, Stdio};

/// Adds the surroundings and the other pane of tmux to what is seen on the screen.
pub(crate) fn with_surroundings(
    seen: TerminalContext,
    directory: &Path,
    env: &Env,
) -> TerminalContext {
    TerminalContext {
        tmux: other_pane(env),
        ..terminal::with_surroundings(seen, directory, env)
    }
}

/// Returns the text in the pane of the same window of tmux that was used before; `None` if there is no such pane.
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
