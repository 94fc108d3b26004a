//! Kills parts of running turns at random, for as long as one likes; or scripts, at as many points as one likes.

use crate::test_run;
use anyhow::{Context, Result};
use rondo_tool_support::workspace;

/// Arguments of the test that does it.
const TEST: [&str; 6] = ["test", "-p", "rondo-cli", "--test", "kill", "--"];
const SECONDS_A_MINUTE: u64 = 60;
/// The test that kills scripts, and what has it print its counts.
const OF_SCRIPTS: [&str; 8] = [
    "test",
    "-p",
    "rondo-cli",
    "--test",
    "scripts",
    "--",
    "--nocapture",
    "a_script_that_is_killed_at_random_points",
];

/// Arguments of the task.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// How long new cases begin
    #[arg(long, default_value_t = 1)]
    minutes: u64,
    /// Repeats the choices of an earlier run, which printed it; a new one when absent
    #[arg(long)]
    seed: Option<u64>,
    /// Runs at most so many cases; a problem names the seed of its own
    #[arg(long)]
    cases: Option<u64>,
    /// Kills scripts of twenty calls instead, at so many points, and counts what was repeated or differs
    #[arg(long, value_name = "POINTS", conflicts_with_all = ["minutes", "cases"])]
    scripts: Option<u32>,
}

/// Runs the cases; true when nothing was lost, repeated or left.
///
/// # Errors
/// When cargo cannot be started.
pub(crate) fn run(args: &Args) -> Result<bool> {
    if let Some(points) = args.scripts {
        return scripts(points, args.seed);
    }
    test_run::install_tracer();
    let seconds = args.minutes.saturating_mul(SECONDS_A_MINUTE);
    let mut command = workspace::cargo();
    command.args(TEST).args(["--seconds", &seconds.to_string()]);
    for (flag, value) in [("--seed", args.seed), ("--cases", args.cases)] {
        if let Some(value) = value {
            command.args([flag, &value.to_string()]);
        }
    }
    let status = command.status().context("failed to start cargo")?;
    Ok(status.success())
}

fn scripts(points: u32, seed: Option<u64>) -> Result<bool> {
    let mut command = workspace::cargo();
    command
        .args(OF_SCRIPTS)
        .env("RONDO_KILL_POINTS", points.to_string());
    if let Some(seed) = seed {
        command.env("RONDO_KILL_SEED", seed.to_string());
    }
    let status = command.status().context("failed to start cargo")?;
    Ok(status.success())
}
