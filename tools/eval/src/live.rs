//! Real runs against a server that others wrote, with answers that can be checked.
//!
//! Each job is run with streamed and with whole replies, in a fresh directory that holds known
//! files. A small model may get some wrong: the table says which, and
//! the task succeeds only when all are right.

mod jobs;

use anyhow::{Context, Result, bail};
use jobs::{JOBS, Job};
use rondo_tool_support::stats::Samples;
use rondo_tool_support::{http, table, workspace};
use serde_json::Value;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How replies are asked for.
const MODES: [(bool, &str); 2] = [(true, "streamed"), (false, "whole")];
/// Bytes that a run may print.
const OUTPUT_BYTES_MAX: u64 = 64 << 20;
/// Time after a run's own deadline before it counts as hanging.
const GRACE: Duration = Duration::from_secs(30);
/// How often a running child is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Characters of a wrong answer that are shown.
const ANSWER_CHARS_MAX: usize = 160;

/// Arguments of the task.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The server, as its own clients have it (with `/v1`)
    #[arg(long, value_name = "URL")]
    base_url: String,
    /// The model; the server's first one when absent
    #[arg(long)]
    model: Option<String>,
    /// The provider whose dialect and quirks the server has
    #[arg(long, default_value = "local")]
    provider: String,
    /// The profile; `react` calls tools in text
    #[arg(long, default_value = "default")]
    profile: String,
    /// A built binary, instead of building one
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// How often each job is run
    #[arg(long, default_value_t = 1)]
    repeat: u32,
    /// Seconds that each run is given
    #[arg(long, default_value_t = 300)]
    deadline_s: u64,
    /// Runs only the jobs whose names contain this
    #[arg(long, value_name = "WORD")]
    only: Option<String>,
}

/// Runs every job in every mode and prints the table; true when all answers were right.
///
/// # Errors
/// When the server cannot be asked for its models, or the binary cannot be built or started.
pub(crate) fn run(args: &Args) -> Result<bool> {
    let runner = Runner::new(args)?;
    let only = args.only.as_deref().unwrap_or_default();
    let (mut rows, mut right, mut total, mut times) = (Vec::new(), 0, 0, Samples::default());
    for job in JOBS.iter().filter(|job| job.name.contains(only)) {
        for (is_streamed, mode) in MODES {
            for _ in 0..args.repeat {
                let report = runner.run(job, is_streamed)?;
                eprintln!("{} {mode}: {}", job.name, report.verdict());
                total += 1;
                right += u32::from(report.is_right);
                times.extend([report.elapsed]);
                rows.push(report.row(job, mode));
            }
        }
    }
    print!(
        "{}",
        table::render(
            ["job", "replies", "ok", "steps", "calls", "ms", "note"],
            &rows
        )
    );
    println!(
        "\nmodel {}, profile {}: {right} of {total} right, median {} ms",
        runner.model,
        runner.profile,
        times.median_ms()
    );
    Ok(total > 0 && right == total)
}

struct Runner {
    binary: PathBuf,
    model: String,
    base_url: String,
    profile: String,
    deadline: Duration,
}

impl Runner {
    fn new(args: &Args) -> Result<Self> {
        let model = match &args.model {
            Some(model) => model.clone(),
            None => first_model(&args.base_url)?,
        };
        let binary = match &args.binary {
            Some(binary) => binary
                .canonicalize()
                .with_context(|| format!("no binary at `{}`", binary.display()))?,
            None => workspace::release_binary()?,
        };
        Ok(Self {
            binary,
            model: format!("{}/{model}", args.provider),
            base_url: args.base_url.clone(),
            profile: args.profile.clone(),
            deadline: Duration::from_secs(args.deadline_s),
        })
    }

    fn run(&self, job: &Job, is_streamed: bool) -> Result<Report> {
        let dir = tempfile::tempdir()?;
        let files = dir.path().join("work");
        jobs::prepare(&files)?;
        self.configure(dir.path(), is_streamed)?;
        let started = Instant::now();
        let mut child = self.command(job, dir.path(), &files).spawn()?;
        let output = read_in_background(child.stdout.take())?;
        let in_time = wait(&mut child, started + self.deadline + GRACE)?;
        let elapsed = started.elapsed();
        let Ok(output) = output.join() else {
            bail!("the reader of a run's output failed");
        };
        Ok(Report::new(job, &output, in_time, elapsed))
    }

    /// A model on a small machine may need longer for its first token than a profile expects.
    fn configure(&self, home: &Path, is_streamed: bool) -> Result<()> {
        let dir = home.join("rondo");
        fs::create_dir_all(&dir)?;
        let patience = self.deadline.as_millis();
        let name = &self.profile;
        let config = format!(
            "[profiles.{name}]\nstreaming = {is_streamed}\n\n[profiles.{name}.limits]\n\
             first_byte_timeout_ms = {patience}\nidle_timeout_ms = {patience}\n\
             step_timeout_ms = {patience}\n"
        );
        fs::write(dir.join("config.toml"), config)?;
        Ok(())
    }

    fn command(&self, job: &Job, home: &Path, files: &Path) -> Command {
        let mut command = Command::new(&self.binary);
        command
            .args(["ask", "-m", &self.model, "--base-url", &self.base_url])
            .args(["--profile", &self.profile])
            .args(["--yolo", "--output-format", "stream-json"])
            .args(["--deadline", &format!("{}s", self.deadline.as_secs())])
            .arg("-C")
            .arg(files)
            .arg(job.prompt)
            .env("HOME", home)
            .env("RONDO_HOME", home.join("rondo"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        command
    }
}

struct Report {
    is_right: bool,
    note: String,
    steps: u64,
    calls: u64,
    elapsed: Duration,
}

impl Report {
    fn new(job: &Job, output: &str, in_time: bool, elapsed: Duration) -> Self {
        let result = last_result(output).unwrap_or_default();
        let number = |key| result.get(key).and_then(Value::as_u64).unwrap_or(0);
        let text = |key| result.get(key).and_then(Value::as_str).unwrap_or_default();
        let (steps, calls) = (number("steps"), number("tool_calls"));
        let answer = text("text");
        let note = if !in_time {
            "did not end in time".to_owned()
        } else if result.is_null() {
            "no final result event".to_owned()
        } else if text("stop_reason") != "complete" {
            format!("stopped: {}", text("stop_reason"))
        } else if !(job.is_right)(answer) {
            format!("answer: {}", short(answer))
        } else if calls < job.calls_min {
            "right without looking".to_owned()
        } else {
            String::new()
        };
        Self {
            is_right: note.is_empty(),
            note,
            steps,
            calls,
            elapsed,
        }
    }

    fn verdict(&self) -> &str {
        if self.is_right { "ok" } else { &self.note }
    }

    fn row(&self, job: &Job, mode: &str) -> [String; 7] {
        [
            job.name.to_owned(),
            mode.to_owned(),
            if self.is_right { "ok" } else { "NO" }.to_owned(),
            self.steps.to_string(),
            self.calls.to_string(),
            self.elapsed.as_millis().to_string(),
            self.note.clone(),
        ]
    }
}

fn last_result(output: &str) -> Option<Value> {
    let value: Value = serde_json::from_str(output.trim_end().lines().last()?).ok()?;
    (value.get("type").and_then(Value::as_str) == Some("result")).then_some(value)
}

fn short(answer: &str) -> String {
    let line = answer.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(ANSWER_CHARS_MAX).collect()
}

fn first_model(base_url: &str) -> Result<String> {
    let models = http::get_json(base_url, "/models")
        .context("failed to ask for the models; name one with --model")?;
    models
        .pointer("/data/0/id")
        .and_then(Value::as_str)
        .map(str::to_owned)
        .context("the server lists no model; name one with --model")
}

fn read_in_background(stdout: Option<impl Read + Send + 'static>) -> Result<JoinHandle<String>> {
    let stdout = stdout.context("a run has no output")?;
    Ok(thread::spawn(move || {
        let mut output = Vec::new();
        // What was read before a failure is still worth a look.
        let _ = stdout.take(OUTPUT_BYTES_MAX).read_to_end(&mut output);
        String::from_utf8_lossy(&output).into_owned()
    }))
}

/// Waits until the instant at most, and ends the child then; true when it ended by itself.
fn wait(child: &mut Child, until: Instant) -> Result<bool> {
    while Instant::now() < until {
        if child.try_wait()?.is_some() {
            return Ok(true);
        }
        thread::sleep(LOOK_EVERY);
    }
    child.kill()?;
    child.wait()?;
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job() -> Job {
        Job {
            name: "sum",
            prompt: "?",
            calls_min: 1,
            is_right: |answer| answer.contains("42"),
        }
    }

    fn note(output: &str) -> String {
        Report::new(&job(), output, true, Duration::ZERO).note
    }

    #[test]
    fn only_a_complete_right_answer_that_looked_is_right() {
        let line = |text: &str, stop: &str, calls: u32| {
            format!(
                "{{\"type\":\"init\"}}\n{{\"type\":\"result\",\"text\":\"{text}\",\
                 \"stop_reason\":\"{stop}\",\"steps\":2,\"tool_calls\":{calls}}}\n"
            )
        };
        assert_eq!(note(&line("it is 42", "complete", 1)), "");
        assert_eq!(note(&line("it is 41", "complete", 1)), "answer: it is 41");
        assert_eq!(note(&line("42", "complete", 0)), "right without looking");
        assert_eq!(note(&line("42", "deadline", 1)), "stopped: deadline");
    }

    #[test]
    fn a_stream_without_a_result_is_wrong() {
        assert_eq!(note("{\"type\":\"init\"}\n"), "no final result event");
        assert_eq!(note(""), "no final result event");
    }
}
