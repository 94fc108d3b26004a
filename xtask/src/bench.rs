//! What the program itself costs, next to a raw client in the same run.
//!
//! A scripted server in this process notes when each request arrives and when it is answered, so
//! that a step gap is everything that a client does between the two, and the way there and back.
//! The raw client posts a history of the same shape and parses nothing: it is the limit. Figures
//! of different machines or days say little; the ratios of one run do.

mod raw;
mod server;

use crate::stats::{self, Samples};
use crate::{table, workspace};
use anyhow::{Context, Result, bail};
use server::{Exchange, Server};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Characters of a failed run's messages that are shown.
const MESSAGE_CHARS_MAX: usize = 2000;

/// Arguments of the task.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Rounds that count; one more is run first to warm up
    #[arg(long, default_value_t = 7)]
    rounds: u32,
    /// Tool calls of each conversation
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=200))]
    turns: u32,
    /// A built binary, instead of building one
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
}

/// Measures and prints the table; true when every conversation made its exact number of requests.
///
/// # Errors
/// When the binary cannot be built or started, or a conversation went wrong.
pub(crate) fn run(args: &Args) -> Result<bool> {
    let bench = Bench::new(args)?;
    bench.round(&mut Figures::default())?;
    let mut figures = Figures::default();
    for round in 1..=args.rounds {
        eprintln!("round {round} of {}", args.rounds);
        bench.round(&mut figures)?;
    }
    figures.print(args.turns);
    Ok(true)
}

#[derive(Default)]
struct Figures {
    version: Samples,
    cold_start: Samples,
    read_gap: Samples,
    exec_gap: Samples,
    raw_gap: Samples,
    raw_bash_gap: Samples,
    peak_kib: Vec<u64>,
}

impl Figures {
    fn print(&self, turns: u32) {
        let rows = [
            self.row("process start to end (--version)", &self.version, None),
            self.row("cold start to first request", &self.cold_start, None),
            self.row("step gap, raw client", &self.raw_gap, None),
            self.row("step gap, read_file", &self.read_gap, Some(&self.raw_gap)),
            self.row("step gap, raw client + bash -c", &self.raw_bash_gap, None),
            self.row("step gap, exec", &self.exec_gap, Some(&self.raw_bash_gap)),
        ];
        let header = [
            "figure",
            "n",
            "median ms",
            "range ms",
            "over raw ms",
            "ratio",
        ];
        print!("{}", table::render(header, &rows));
        let peak = self.peak_kib.iter().max().copied().unwrap_or(0);
        println!("\npeak memory at the first request: {peak} KiB; {turns} calls a conversation");
    }

    fn row(&self, name: &str, samples: &Samples, base: Option<&Samples>) -> [String; 6] {
        let against = |render: fn(&Samples, &Samples) -> String| {
            base.map_or_else(|| "-".to_owned(), |base| render(samples, base))
        };
        [
            name.to_owned(),
            samples.len().to_string(),
            samples.median_ms(),
            samples.range_ms(),
            against(stats::over_ms),
            against(stats::ratio),
        ]
    }
}

struct Bench {
    binary: PathBuf,
    server: Server,
    home: tempfile::TempDir,
    turns: u32,
}

impl Bench {
    fn new(args: &Args) -> Result<Self> {
        let binary = match &args.binary {
            Some(binary) => binary
                .canonicalize()
                .with_context(|| format!("no binary at `{}`", binary.display()))?,
            None => workspace::release_binary()?,
        };
        let home = tempfile::tempdir()?;
        let work = home.path().join("work");
        fs::create_dir(&work)?;
        for turn in 0..args.turns {
            fs::write(work.join(format!("{turn}.txt")), format!("note {turn}\n"))?;
        }
        Ok(Self {
            binary,
            server: Server::start()?,
            home,
            turns: args.turns,
        })
    }

    /// Everything once, so that a disturbance of the machine touches all figures alike.
    fn round(&self, figures: &mut Figures) -> Result<()> {
        figures.version.extend([self.version()?]);
        let (started, exchanges) = self.converse("text", 0)?;
        figures.cold_start.extend(
            exchanges
                .first()
                .map(|first| first.arrived.duration_since(started)),
        );
        figures
            .peak_kib
            .extend(exchanges.first().and_then(|first| first.peak_kib));
        let (_, exchanges) = self.converse("read", self.turns)?;
        figures.read_gap.extend(gaps(&exchanges));
        figures.raw_gap.extend(self.raw(|| Ok(()))?);
        let (_, exchanges) = self.converse("exec", self.turns)?;
        figures.exec_gap.extend(gaps(&exchanges));
        figures.raw_bash_gap.extend(self.raw(raw::run_true)?);
        Ok(())
    }

    fn version(&self) -> Result<Duration> {
        let started = Instant::now();
        let output = self.command().arg("--version").output()?;
        if !output.status.success() {
            bail!("`--version` failed");
        }
        Ok(started.elapsed())
    }

    fn raw(&self, tool: fn() -> Result<()>) -> Result<Vec<Duration>> {
        raw::converse(self.server.address(), self.turns, tool)?;
        Ok(gaps(&self.take_exchanges("raw", self.turns)?))
    }

    fn converse(&self, scenario: &str, turns: u32) -> Result<(Instant, Vec<Exchange>)> {
        let model = format!("openai/bench-{scenario}-{turns}");
        let base_url = format!("http://{}/v1", self.server.address());
        let mut command = self.command();
        command
            .args(["ask", "-m", &model, "--base-url", &base_url, "--yolo", "-C"])
            .arg(self.work())
            .arg("go");
        let started = Instant::now();
        let child = command.spawn().context("failed to start the binary")?;
        self.server.watch(child.id());
        let output = child.wait_with_output()?;
        if !output.status.success() {
            let message = String::from_utf8_lossy(&output.stderr);
            let message: String = message.chars().take(MESSAGE_CHARS_MAX).collect();
            bail!("`{model}` ended with {}: {message}", output.status);
        }
        Ok((started, self.take_exchanges(&model, turns)?))
    }

    fn take_exchanges(&self, what: &str, turns: u32) -> Result<Vec<Exchange>> {
        let exchanges = self.server.take_exchanges();
        let expected = usize::try_from(turns)? + 1;
        if exchanges.len() != expected {
            bail!(
                "`{what}` made {} requests instead of {expected}",
                exchanges.len()
            );
        }
        Ok(exchanges)
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.binary);
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.home.path())
            .env("OPENAI_API_KEY", "bench")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn work(&self) -> PathBuf {
        Path::new(self.home.path()).join("work")
    }
}

fn gaps(exchanges: &[Exchange]) -> Vec<Duration> {
    exchanges
        .iter()
        .zip(exchanges.iter().skip(1))
        .map(|(before, after)| after.arrived.saturating_duration_since(before.answered))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_raw_client_makes_one_request_more_than_it_has_calls() {
        let server = Server::start().unwrap();
        raw::converse(server.address(), 3, || Ok(())).unwrap();
        let exchanges = server.take_exchanges();
        assert_eq!((exchanges.len(), gaps(&exchanges).len()), (4, 3));
        assert!(server.take_exchanges().is_empty());
    }
}
