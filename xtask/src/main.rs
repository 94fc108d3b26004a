//! Developer tasks: `cargo xtask test`, `kill`, `chaos`, `conformance`, `live`, `fuzz-gate`, `bench`, `picture` and `layout`.
#![expect(
    clippy::print_stdout,
    reason = "a developer's command talks on the terminal"
)]

mod chaos;
mod conformance;
mod kill;
mod test_names;
mod test_output;
mod test_run;
mod tools;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Developer tasks of this workspace")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Runs every test of the workspace
    Test(test_run::Args),
    /// Kills parts of running turns at random, and looks what was lost
    Kill(kill::Args),
    /// Kills a hub at random while people write to it, and looks what they saw
    Chaos(chaos::Args),
    /// Prints requirement id, test and result
    Conformance(conformance::Args),
    /// Repeats real runs against an OpenAI-compatible server
    Live(tools::Args),
    /// Asks the embedded model questions whose answers are known
    EvalLocal(tools::Args),
    /// Looks for commands that are judged read-only and are not
    FuzzGate(tools::Args),
    /// Measures cold start, step gap and command overhead
    Bench(tools::Args),
    /// Draws what a terminal shows as a picture
    Picture(tools::Args),
    /// Records which functions a turn calls, for the linker
    Layout(tools::Args),
}

fn main() -> ExitCode {
    rondo_tool_support::exit_code(match Cli::parse().task {
        Task::Test(args) => test_run::run(&args),
        Task::Kill(args) => kill::run(&args),
        Task::Chaos(args) => chaos::run(&args),
        Task::Conformance(args) => conformance::run(&args),
        Task::Live(args) => args.run("rondo-eval", Some("live")),
        Task::EvalLocal(args) => args.run("rondo-eval", Some("eval-local")),
        Task::FuzzGate(args) => args.run("rondo-fuzz-gate", None),
        Task::Bench(args) => args.run("rondo-bench", Some("bench")),
        Task::Picture(args) => args.run("rondo-picture", None),
        Task::Layout(args) => args.run("rondo-bench", Some("layout")),
    })
}
