//! Where a person works with a session: on the full screen or at the line prompt, and from one to the other.

use crate::cli::{ColorChoice, ReplArgs, TurnArgs};
use crate::error::Result;
use crate::exit::Exit;
use crate::output::Output;
use crate::{executor, full_screen, repl};
use rondo_runtime::env::Env;
use rondo_runtime::values::ApprovalMode;
use rondo_tui::Kept;
use rondo_tui::prompt::run_mode::RunMode;
use tokio::runtime::Runtime;

/// How the screen or the prompt was left.
#[derive(Debug)]
pub(crate) enum Left {
    /// For good.
    For(Exit),
    /// To go on at the other one.
    Other(GoesOn),
}

/// What goes along to the other one.
#[derive(Debug)]
pub(crate) struct GoesOn {
    /// The session, where something was recorded in it.
    pub(crate) session: Option<String>,
    /// What runs without asking, where that was changed.
    pub(crate) run_mode: Option<RunMode>,
    /// What the user's own commands and cells ran in.
    pub(crate) kept: Kept,
}

/// Runs `rondo` without a command, or `rondo repl`.
///
/// # Errors
/// When there is no terminal, the settings make no sense, or the session that is named cannot be had.
pub(crate) fn run(
    args: ReplArgs,
    env: &Env,
    color: Option<ColorChoice>,
    verbose: u8,
    early: &Output,
) -> Result<Exit> {
    // The shell and the live Python session live on it, and go from one to the other.
    let runtime = executor::of_this_thread()?;
    let left = on(&runtime, args, env, (color, verbose), early);
    // What still waits for the disk, the terminal or a key must not keep the process.
    runtime.shutdown_background();
    left
}

fn on(
    runtime: &Runtime,
    args: ReplArgs,
    env: &Env,
    (color, verbose): (Option<ColorChoice>, u8),
    early: &Output,
) -> Result<Exit> {
    let mut is_screen = full_screen::opens(&args, env, verbose);
    let mut turn = args.turn.clone();
    let mut args = args;
    let mut before = None;
    loop {
        let env = env.clone();
        let left = match is_screen {
            true => full_screen::run(runtime, args, before, env, color, early)?,
            false => repl::run(runtime, args, before, env, color, early)?,
        };
        match left {
            Left::For(exit) => return Ok(exit),
            Left::Other(goes_on) => before = Some(go_on(&mut turn, goes_on)),
        }
        is_screen = !is_screen;
        args = ReplArgs {
            turn: turn.clone(),
            ..ReplArgs::default()
        };
    }
}

/// Has the other one go on with what is chosen, and returns what goes along beside.
fn go_on(turn: &mut TurnArgs, goes_on: GoesOn) -> Kept {
    turn.continue_latest = false;
    turn.session = goes_on.session;
    if let Some(mode) = goes_on.run_mode {
        turn.plan = mode == RunMode::Plan;
        turn.approval = Some(match mode {
            RunMode::Auto => ApprovalMode::Auto,
            RunMode::Ask | RunMode::Plan => ApprovalMode::Ask,
        });
    }
    goes_on.kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_without_asking_goes_along_where_it_was_changed() {
        let mut turn = TurnArgs {
            approval: Some(ApprovalMode::Deny),
            continue_latest: true,
            ..TurnArgs::default()
        };
        let goes_on = |run_mode| GoesOn {
            session: Some("s".to_owned()),
            run_mode,
            kept: Kept::default(),
        };
        go_on(&mut turn, goes_on(None));
        assert_eq!(
            (turn.plan, turn.approval),
            (false, Some(ApprovalMode::Deny))
        );
        assert_eq!(
            (turn.session.as_deref(), turn.continue_latest),
            (Some("s"), false)
        );
        go_on(&mut turn, goes_on(Some(RunMode::Plan)));
        assert_eq!((turn.plan, turn.approval), (true, Some(ApprovalMode::Ask)));
        go_on(&mut turn, goes_on(Some(RunMode::Auto)));
        assert_eq!(
            (turn.plan, turn.approval),
            (false, Some(ApprovalMode::Auto))
        );
    }
}
