//! Asks models: `cargo xtask eval-local` and `cargo xtask live`.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a developer's command talks on the terminal"
)]

mod eval_local;
mod live;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", about = "Asks models")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Asks the embedded model questions whose answers are known
    EvalLocal(eval_local::Args),
    /// Repeats real runs against an OpenAI-compatible server
    Live(live::Args),
}

fn main() -> ExitCode {
    rondo_tool_support::exit_code(match Cli::parse().task {
        Task::EvalLocal(args) => eval_local::run(&args),
        Task::Live(args) => live::run(&args),
    })
}
