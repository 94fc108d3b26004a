//! Runs the programs that are measured against the scripted server.

use super::process;
use super::server::{Exchange, Server};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Characters of a failed run's messages that are shown.
const MESSAGE_CHARS_MAX: usize = 2000;
/// Files that the runs read, one a step.
const FILES: u32 = 200;

/// The binary with a home and a directory of its own.
pub(crate) struct Program {
    /// Program that runs the binary, with arguments; empty if it runs by itself.
    tracer: Vec<String>,
    binary: PathBuf,
    home: tempfile::TempDir,
}

/// Keeping of a conversation: a client that keeps nothing can be compared only with one
/// that does not either.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Journaling {
    /// As by default: durable before each effect.
    Durable,
    /// With `--ephemeral`.
    Nothing,
}

/// Many conversations in one process.
pub(crate) struct Crowd {
    pub(crate) wall: Duration,
    pub(crate) peak_kib: Option<u64>,
}

impl Program {
    /// Takes a built binary.
    pub(crate) fn new(binary: PathBuf) -> Result<Self> {
        let home = tempfile::tempdir()?;
        let work = home.path().join("work");
        fs::create_dir(&work)?;
        for file in 0..FILES {
            fs::write(work.join(format!("{file}.txt")), format!("note {file}\n"))?;
        }
        Ok(Self {
            tracer: Vec::new(),
            binary,
            home,
        })
    }

    /// Runs the binary under another program.
    pub(crate) fn under(mut self, tracer: &[String]) -> Self {
        tracer.clone_into(&mut self.tracer);
        self
    }

    /// Measures `--version`: the cost of starting a process.
    pub(crate) fn version(&self) -> Result<Duration> {
        let started = Instant::now();
        let output = self.command().arg("--version").output()?;
        check("--version", &output)?;
        Ok(started.elapsed())
    }

    /// Measures a script that prints a line, from the start of its process to the end.
    pub(crate) fn script(&self) -> Result<Duration> {
        let file = self.home.path().join("work/line.lua");
        fs::write(&file, "print('up')\n")?;
        let started = Instant::now();
        let output = self.command().arg("run").arg(&file).output()?;
        check("run", &output)?;
        Ok(started.elapsed())
    }

    /// Holds one conversation of so many calls; returns when it began and what the server saw.
    pub(crate) fn converse(
        &self,
        server: &Server,
        scenario: &str,
        turns: u32,
        keeping: Journaling,
    ) -> Result<(Instant, Vec<Exchange>)> {
        let model = format!("openai/bench-{scenario}-{turns}");
        let base_url = format!("http://{}/v1", server.address());
        let mut command = self.command();
        command
            .args(["ask", "-m", &model, "--base-url", &base_url, "--yolo"])
            .args(["--max-steps", "1000", "-C"])
            .arg(Path::new(self.home.path()).join("work"))
            .args((keeping == Journaling::Nothing).then_some("--ephemeral"))
            .arg("go");
        let started = Instant::now();
        let child = command.spawn().context("failed to start the binary")?;
        server.watch(child.id());
        let output = child.wait_with_output()?;
        server.watch(0);
        check(&model, &output)?;
        Ok((started, server.take_exchanges_of(&model, 1, turns)?))
    }

    fn command(&self) -> Command {
        let mut command = match self.tracer.split_first() {
            Some((tracer, arguments)) => {
                let mut command = bare(Path::new(tracer));
                command.args(arguments).arg(&self.binary);
                command
            }
            None => bare(&self.binary),
        };
        command
            .env("HOME", self.home.path())
            .env("OPENAI_API_KEY", "bench");
        command
    }
}

/// Holds many conversations at once in a process of the example `conversations`.
pub(crate) fn crowd(example: &Path, server: &Server, count: u32, turns: u32) -> Result<Crowd> {
    let (crowd, _) = conversations(example, server, count, turns)?;
    Ok(crowd)
}

/// Holds one conversation in a process of the example `conversations`: the engine without a view,
/// with a tool that does nothing. Returns what the server saw.
pub(crate) fn engine(example: &Path, server: &Server, turns: u32) -> Result<Vec<Exchange>> {
    let (_, exchanges) = conversations(example, server, 1, turns)?;
    Ok(exchanges)
}

fn conversations(
    example: &Path,
    server: &Server,
    count: u32,
    turns: u32,
) -> Result<(Crowd, Vec<Exchange>)> {
    let model = format!("bench-noop-{turns}");
    let mut child = bare(example)
        .args([&model, &count.to_string()])
        .env("FAKELLM_URL", format!("http://{}", server.address()))
        .spawn()
        .context("failed to start the example")?;
    // Looking at the process takes time at each request: not where requests are counted.
    server.watch(if count == 1 { child.id() } else { 0 });
    let (_, peak_kib) = process::wait(&mut child)?;
    server.watch(0);
    let output = child.wait_with_output()?;
    check(&model, &output)?;
    let exchanges = server.take_exchanges_of(&model, count, turns)?;
    let said: Value = serde_json::from_slice(&output.stdout)?;
    if said.get("ok").and_then(Value::as_u64) != Some(u64::from(count)) {
        bail!("not every conversation of `{model}` ended in its answer: {said}");
    }
    let wall = said.get("wall_s").and_then(Value::as_f64);
    let wall = Duration::try_from_secs_f64(wall.unwrap_or_default())?;
    Ok((Crowd { wall, peak_kib }, exchanges))
}

fn bare(binary: &Path) -> Command {
    let mut command = Command::new(binary);
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn check(what: &str, output: &Output) -> Result<()> {
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr);
        let message: String = message.chars().take(MESSAGE_CHARS_MAX).collect();
        bail!("`{what}` ended with {}: {message}", output.status);
    }
    Ok(())
}
