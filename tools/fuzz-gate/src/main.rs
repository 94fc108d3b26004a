//! Looks for commands that are judged read-only and are not: `cargo xtask fuzz-gate`.
#![expect(
    clippy::print_stdout,
    reason = "a developer's command talks on the terminal"
)]

mod fuzz_gate;

use clap::Parser;
use std::process::ExitCode;

#[derive(Parser)]
#[command(
    name = "cargo xtask fuzz-gate",
    bin_name = "cargo xtask fuzz-gate",
    about = "Looks for commands that are judged read-only and are not"
)]
struct Cli {
    #[command(flatten)]
    args: fuzz_gate::Args,
}

fn main() -> ExitCode {
    // Commands that the fuzzer confines have this program as their supervisor.
    rondo_launch::run_if_requested(&[]);
    rondo_tool_support::exit_code(fuzz_gate::run(&Cli::parse().args))
}
