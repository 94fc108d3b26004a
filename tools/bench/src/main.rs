//! Measures Rondo: `cargo xtask bench`; records which functions a turn calls: `cargo xtask layout`.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a developer's command talks on the terminal"
)]

mod bench;
mod layout;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

#[derive(Parser)]
#[command(
    name = "cargo xtask",
    bin_name = "cargo xtask",
    about = "Measures Rondo"
)]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Measures cold start, step gap and command overhead
    Bench(bench::Args),
    /// Records which functions a turn calls, for the linker
    Layout(layout::Args),
}

fn main() -> ExitCode {
    rondo_tool_support::exit_code(match Cli::parse().task {
        Task::Bench(args) => bench::run(&args),
        Task::Layout(args) => layout::run(&args),
    })
}
