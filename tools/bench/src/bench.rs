//! Cost of the program itself, next to a raw client in the same run.
//!
//! A scripted server in this process notes when each request arrives and when it is answered, so
//! that a step gap is everything that a client does between the two, and the way there and back.
//! The raw client posts a history of the same shape and parses nothing: it is the limit. Figures
//! of different machines or days say little; the ratios of one run do.
//!
//! # Layout
//! - `program`: the programs that are measured.
//! - `raw`: the raw client.
//! - `server`: the scripted server.
//! - `process`: the system's figures of a process.
//! - `figures`: the measured figures, and the table.
//! - `decode`: how fast replies are decoded.
//! - `local`: the embedded model.
//! - `journal`: the cost of the journal, next to a bare `fdatasync`.
//! - `policy`: how long a command is judged.
//! - `sandbox`: the cost of the sandbox for a command.
//! - `call`: the cost of a command under its supervisor.
//! - `python`: the cost of a call into a live Python session.
//! - `script`: the cost of starting a script, and of calling a tool of it.
//! - `screen`: the cost of the full screen with a long session open.

mod call;
mod decode;
mod figures;
mod journal;
mod local;
mod policy;
mod process;
mod program;
mod python;
mod raw;
mod sandbox;
mod screen;
mod script;
mod server;

use anyhow::{Context, Result};
use figures::{Figures, Steps};
pub(crate) use program::{Journaling, Program};
use rondo_tool_support::weights::{self, DEFAULT_MODEL};
use rondo_tool_support::workspace;
use rustix::process::{Resource, getrlimit, setrlimit};
pub(crate) use server::Server;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Steps of a short turn.
const SHORT: u32 = 20;
/// Steps of a long turn.
const LONG: u32 = 200;
/// Conversations at once.
const CROWD: u32 = 1000;
/// Calls of each of them; the answer is one more request.
const CROWD_CALLS: u32 = 3;

/// Arguments of the task.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Rounds that count; one more is run first to warm up
    #[arg(long, default_value_t = 7)]
    rounds: u32,
    /// A built binary, instead of building one
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// A built example `conversations`, `journal` or `round_trip`, instead of building it
    #[arg(long, value_name = "FILE")]
    example: Option<PathBuf>,
    /// Measure only how fast replies are decoded
    #[arg(long)]
    decode: bool,
    /// Measure only the embedded model
    #[arg(long)]
    local: bool,
    /// A llama.cpp server with the same weights, to compare the embedded model with
    #[arg(long, value_name = "URL", requires = "local")]
    reference: Option<String>,
    /// The instructions that the embedded model computes with, such as `avx2`, instead of the processor's fastest
    #[arg(long, requires = "local")]
    instructions: Option<String>,
    /// The embedded model's weights, instead of the default's
    #[arg(long, value_name = "FILE", requires = "local")]
    weights: Option<PathBuf>,
    /// Measure only what the journal costs on the disk of the build directory; takes 5 GB there
    #[arg(long, conflicts_with = "decode")]
    journal: bool,
    /// Measure only how long a command is judged
    #[arg(long, conflicts_with = "decode")]
    policy: bool,
    /// Measure only what the sandbox costs a command
    #[arg(long, conflicts_with = "decode")]
    sandbox: bool,
    /// Measure only what a command costs under its supervisor
    #[arg(long, conflicts_with = "decode")]
    call: bool,
    /// Measure only what a call into a live Python session costs
    #[arg(long, conflicts_with = "decode")]
    python: bool,
    /// Measure only what it costs to start a script, and to call a tool of it
    #[arg(long, conflicts_with = "decode")]
    script: bool,
    /// Measure only what the full screen costs with a long session open
    #[arg(long, conflicts_with = "decode")]
    screen: bool,
}

/// Measures and prints the table, in Markdown; true when every conversation made its exact number
/// of requests.
///
/// # Errors
/// When a program cannot be built or started, or a conversation went wrong.
pub(crate) fn run(args: &Args) -> Result<bool> {
    if args.decode {
        print!("{}", decode::measure()?);
        return Ok(true);
    }
    if args.local {
        print!("{}", local_model(args)?);
        return Ok(true);
    }
    if args.journal {
        print!("{}", journal::measure(args.example.as_deref())?);
        return Ok(true);
    }
    if args.sandbox {
        print!("{}", sandbox::measure()?);
        return Ok(true);
    }
    if args.call {
        print!("{}", call::measure()?);
        return Ok(true);
    }
    if args.policy {
        print!("{}", policy::measure()?);
        return Ok(true);
    }
    if args.python {
        print!("{}", python::measure(args.example.as_deref())?);
        return Ok(true);
    }
    if args.script {
        let binary = built(args.binary.as_deref(), workspace::release_binary)?;
        print!("{}", script::measure(&Program::new(binary)?)?);
        return Ok(true);
    }
    if args.screen {
        print!(
            "{}",
            screen::measure(args.binary.as_deref(), args.example.as_deref())?
        );
        return Ok(true);
    }
    raise_open_files();
    let bench = Bench::new(args)?;
    bench.round(&mut Figures::default())?;
    let mut figures = Figures::default();
    for round in 1..=args.rounds {
        eprintln!("round {round} of {}", args.rounds);
        bench.round(&mut figures)?;
    }
    print!("{}", figures.render(CROWD * (CROWD_CALLS + 1)));
    print!("\n{}", decode::measure()?);
    print!("\n{}", policy::measure()?);
    Ok(true)
}

/// Each of the conversations at once has a connection, which takes a descriptor on either side.
fn raise_open_files() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        eprintln!("failed to raise the bound on open files: {error}");
    }
}

fn local_model(args: &Args) -> Result<String> {
    let weights = match &args.weights {
        Some(file) => file.clone(),
        None => weights::weights(&workspace::release_binary()?, DEFAULT_MODEL)?,
    };
    local::measure(&local::Job {
        rounds: args.rounds,
        weights: &weights,
        reference: args.reference.as_deref(),
        instructions: args.instructions.as_deref(),
    })
}

struct Bench {
    program: Program,
    example: PathBuf,
    server: Server,
}

impl Bench {
    fn new(args: &Args) -> Result<Self> {
        let binary = built(args.binary.as_deref(), workspace::release_binary)?;
        let example = || workspace::release_example("rondo", "conversations");
        Ok(Self {
            program: Program::new(binary)?,
            example: built(args.example.as_deref(), example)?,
            server: Server::start()?,
        })
    }

    /// Everything once, so that a disturbance of the machine touches all figures alike.
    fn round(&self, figures: &mut Figures) -> Result<()> {
        figures.version.extend([self.program.version()?]);
        self.cold_start(figures)?;
        self.engine_steps(SHORT, &mut figures.short)?;
        self.raw_steps(SHORT, || Ok(()), &mut figures.raw_short)?;
        self.engine_steps(LONG, &mut figures.long)?;
        self.raw_steps(LONG, || Ok(()), &mut figures.raw_long)?;
        self.steps("read", SHORT, Journaling::Nothing, &mut figures.ask)?;
        self.steps("read", SHORT, Journaling::Durable, &mut figures.kept)?;
        self.steps("exec", SHORT, Journaling::Nothing, &mut figures.exec)?;
        self.raw_steps(SHORT, raw::run_true, &mut figures.raw_exec)?;
        figures.raw_crowd.extend([self.raw_crowd()?]);
        let crowd = program::crowd(&self.example, &self.server, CROWD, CROWD_CALLS)?;
        figures.add_crowd(&crowd);
        Ok(())
    }

    fn cold_start(&self, figures: &mut Figures) -> Result<()> {
        let (started, exchanges) =
            self.program
                .converse(&self.server, "text", 0, Journaling::Durable)?;
        let first = exchanges.first();
        figures
            .cold_start
            .extend(first.map(|it| it.arrived.duration_since(started)));
        figures
            .cold_peak_kib
            .extend(first.and_then(|it| it.peak_kib));
        figures.cold_own_kib.extend(first.and_then(|it| it.own_kib));
        Ok(())
    }

    fn steps(
        &self,
        scenario: &str,
        turns: u32,
        keeping: Journaling,
        steps: &mut Steps,
    ) -> Result<()> {
        let (_, exchanges) = self
            .program
            .converse(&self.server, scenario, turns, keeping)?;
        steps.add(&exchanges, None);
        Ok(())
    }

    /// The engine alone, as the raw client is alone: no view, and a tool that does nothing.
    fn engine_steps(&self, turns: u32, steps: &mut Steps) -> Result<()> {
        let exchanges = program::engine(&self.example, &self.server, turns)?;
        steps.add(&exchanges, None);
        Ok(())
    }

    fn raw_steps(&self, turns: u32, tool: fn() -> Result<()>, steps: &mut Steps) -> Result<()> {
        let cpu = raw::converse(self.server.address(), turns, tool)?;
        let exchanges = self.server.take_exchanges_of("raw", 1, turns)?;
        steps.add(&exchanges, cpu);
        Ok(())
    }

    fn raw_crowd(&self) -> Result<Duration> {
        let wall = raw::crowd(self.server.address(), CROWD, CROWD_CALLS)?;
        self.server
            .take_exchanges_of("raw crowd", CROWD, CROWD_CALLS)?;
        Ok(wall)
    }
}

fn built(given: Option<&Path>, build: impl FnOnce() -> Result<PathBuf>) -> Result<PathBuf> {
    match given {
        Some(path) => path
            .canonicalize()
            .with_context(|| format!("there is no `{}`", path.display())),
        None => build(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_raw_client_makes_one_request_more_than_it_has_calls() {
        let server = Server::start().unwrap();
        raw::converse(server.address(), 3, || Ok(())).unwrap();
        let exchanges = server.take_exchanges_of("raw", 1, 3).unwrap();
        assert_eq!(figures::gaps(&exchanges).len(), 3);
        assert!(server.take_exchanges().is_empty());
    }

    #[test]
    fn the_raw_crowd_holds_all_its_conversations() {
        let server = Server::start().unwrap();
        raw::crowd(server.address(), 16, 2).unwrap();
        assert!(server.take_exchanges_of("crowd", 16, 2).is_ok());
    }
}
