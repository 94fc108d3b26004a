//! Developer tasks: `cargo xtask test`, `kill`, `chaos`, `conformance`, `live`, `fuzz-gate`, `bench`, `picture` and `layout`.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a developer's command talks on the terminal"
)]

mod bench;
mod chaos;
mod conformance;
mod eval_local;
mod fuzz_gate;
mod http;
mod kill;
mod layout;
mod live;
mod picture;
mod stats;
mod table;
mod test_names;
mod test_output;
mod test_run;
mod workspace;

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
    Live(live::Args),
    /// Asks the embedded model questions whose answers are known
    EvalLocal(eval_local::Args),
    /// Looks for commands that are judged read-only and are not
    FuzzGate(fuzz_gate::Args),
    /// Measures cold start, step gap and command overhead
    Bench(bench::Args),
    /// Draws what a terminal shows as a picture
    Picture(picture::Args),
    /// Records which functions a turn calls, for the linker
    Layout(layout::Args),
}

fn main() -> ExitCode {
    // Commands that the fuzzer confines have this program as their supervisor.
    rondo_launch::run_if_requested(&[]);
    let outcome = match Cli::parse().task {
        Task::Test(args) => test_run::run(&args),
        Task::Kill(args) => kill::run(&args),
        Task::Chaos(args) => chaos::run(&args),
        Task::Conformance(args) => conformance::run(&args),
        Task::Live(args) => live::run(&args),
        Task::EvalLocal(args) => eval_local::run(&args),
        Task::FuzzGate(args) => fuzz_gate::run(&args),
        Task::Bench(args) => bench::run(&args),
        Task::Picture(args) => picture::run(&args),
        Task::Layout(args) => layout::run(&args),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(err) => {
            eprintln!("error: {err:#}");
            ExitCode::FAILURE
        }
    }
}
