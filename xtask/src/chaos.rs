//! Kills a hub at random, until it was killed so often, and looks what people saw; or has a bot live through a day.

use anyhow::{Context, Result};
use rondo_tool_support::workspace;

/// The test of a day.
const DAY: [&str; 7] = [
    "test",
    "-p",
    "rondo-cli",
    "--test",
    "it",
    "on_a_day_of_stops",
    "--",
];
/// Arguments of the test that does it.
const TEST: [&str; 6] = ["test", "-p", "rondo-hub", "--test", "chaos", "--"];

/// Arguments of the task.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Runs cases until the hub was killed so often
    #[arg(long, default_value_t = 500)]
    kills: u64,
    /// Repeats the choices of an earlier run, which printed it; a new one when absent
    #[arg(long)]
    seed: Option<u64>,
    /// Takes the power away at every commit of a conversation, not at one of eight
    #[arg(long)]
    all_points: bool,
    /// Has so many messages written to a served bot instead, on a day with stops of all kinds
    #[arg(long)]
    messages: Option<u64>,
    /// The stops of that day
    #[arg(long, default_value_t = 100, requires = "messages")]
    stops: u64,
}

/// Runs the cases; true when each message was answered once, or more often only as often as the hub itself counted.
///
/// # Errors
/// When cargo cannot be started.
pub(crate) fn run(args: &Args) -> Result<bool> {
    if let Some(messages) = args.messages {
        let seed = args.seed.unwrap_or_else(|| u64::from(std::process::id()));
        let day = format!("{messages} {} {seed}", args.stops);
        let mut command = workspace::cargo();
        command.args(DAY).arg("--nocapture");
        let status = command.env("RONDO_TEST_DAY", day).status();
        return Ok(status.context("failed to start cargo")?.success());
    }
    let mut command = workspace::cargo();
    command.args(TEST);
    command.args(["--kills", &args.kills.to_string()]);
    if let Some(seed) = args.seed {
        command.args(["--seed", &seed.to_string()]);
    }
    if args.all_points {
        command.arg("--all-points");
    }
    let status = command.status().context("failed to start cargo")?;
    Ok(status.success())
}
