//! Interactive work with a session: on the full screen or at the line prompt, and switching between them.

use crate::cli::{AskArgs, ColorChoice, ReplArgs, TurnArgs};
use crate::commands::ask::{agree_to_go_elsewhere, working_directory};
use crate::error::Result;
use crate::exit::Exit;
use crate::output::Output;
use crate::{executor, full_screen, repl};
use rondo_runtime::env::Env;
use rondo_runtime::values::ApprovalMode;
use rondo_runtime::{NoNotices, SessionOptions, SessionSource};
use rondo_tui::KeptSessions;
use rondo_tui::prompt::run_mode::RunMode;
use std::sync::Arc;
use tokio::runtime::Runtime;

/// How the screen or the prompt was left.
#[derive(Debug)]
pub(crate) enum FrontEndEnd {
    /// For good.
    For(Exit),
    /// To continue at the other one.
    Other(Handover),
}

/// State that moves to the other one.
#[derive(Debug)]
pub(crate) struct Handover {
    /// The session, where something was recorded in it.
    pub(crate) session: Option<String>,
    /// Mode of approval, if it was changed.
    pub(crate) run_mode: Option<RunMode>,
    /// Shell and interpreter of the user's own commands and cells.
    pub(crate) kept: KeptSessions,
}

/// Runs `rondo` without a command, or `rondo repl`.
///
/// # Errors
/// When there is no terminal, the settings are invalid, or the named session cannot be opened.
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
    // Work that still waits for the disk, the terminal or a key must not keep the process.
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
    let mut args = args;
    {
        let _on = runtime.enter();
        name_latest_of_elsewhere(&mut args.turn, env, early)?;
    }
    let mut turn = args.turn.clone();
    let mut before = None;
    loop {
        let env = env.clone();
        let left = match is_screen {
            true => full_screen::run(runtime, args, before, env, color, early)?,
            false => repl::run(runtime, args, before, env, color, early)?,
        };
        match left {
            FrontEndEnd::For(exit) => return Ok(exit),
            FrontEndEnd::Other(goes_on) => before = Some(go_on(&mut turn, goes_on)),
        }
        is_screen = !is_screen;
        args = ReplArgs {
            turn: turn.clone(),
            ..ReplArgs::default()
        };
    }
}

/// Asks a person whether `-c` continues the session of another directory, which is then named as `--session` would.
///
/// # Errors
/// When they do not agree.
fn name_latest_of_elsewhere(turn: &mut TurnArgs, env: &Env, output: &Output) -> Result<()> {
    if !turn.continue_latest {
        return Ok(());
    }
    let options = SessionOptions {
        directory: working_directory(turn.directory.as_deref())?,
        is_directory_named: turn.directory.is_some(),
    };
    let asked = AskArgs {
        turn: turn.clone(),
        ..AskArgs::default()
    };
    let parts = rondo_runtime::Runtime::new(env.clone(), asked.layer(), Arc::new(NoNotices));
    // The prompt that opens reports errors in the settings or the journal.
    let Ok(found) = parts.find(&SessionSource::Latest, &options) else {
        return Ok(());
    };
    let Some(info) = found.from_elsewhere(&options.directory) else {
        return Ok(());
    };
    let way = format!("rondo --session {}", info.id);
    agree_to_go_elsewhere(info, &options.directory, &way, output)?;
    turn.continue_latest = false;
    turn.session = Some(info.id.to_string());
    Ok(())
}

/// Passes the chosen values to the other one, and returns the state that moves along.
fn go_on(turn: &mut TurnArgs, goes_on: Handover) -> KeptSessions {
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
        let goes_on = |run_mode| Handover {
            session: Some("s".to_owned()),
            run_mode,
            kept: KeptSessions::default(),
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
