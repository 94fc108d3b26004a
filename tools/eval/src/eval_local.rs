//! Abilities of the embedded model: questions with checked answers, run for real.
//!
//! Each question is a `rondo ask` of its own in a fresh directory with known files, with the real
//! loop and the real tools; the questions of a run share one prompt cache. Prompts and profile are tuned
//! on the first set alone; the others tell whether the tuning was to the questions.

mod sets;

use anyhow::Result;
use rondo_tool_support::stats::Samples;
use rondo_tool_support::weights::{self, DEFAULT_MODEL};
use rondo_tool_support::{table, workspace};
use serde_json::Value;
use sets::{Question, Questions, Set};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How many of sixteen the default model should get right.
const RIGHT_MIN: usize = 12;
/// Characters of a wrong answer that are shown.
const ANSWER_CHARS_MAX: usize = 100;

/// Arguments of the task.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The model, as `rondo models list` names it, or a GGUF file
    #[arg(long, default_value = DEFAULT_MODEL)]
    model: String,
    /// The questions
    #[arg(long, value_enum, default_value_t = Set::First)]
    set: Set,
    /// A built binary, instead of building one
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// Asks only the questions whose names contain this
    #[arg(long, value_name = "WORD")]
    only: Option<String>,
    /// Seconds that each question is given
    #[arg(long, default_value_t = 300)]
    deadline_s: u64,
}

/// Asks every question and prints the table; true when enough answers were right.
///
/// # Errors
/// When the binary cannot be built or started, or the weights are not here.
pub(crate) fn run(args: &Args) -> Result<bool> {
    let binary = match &args.binary {
        Some(binary) => binary.canonicalize()?,
        None => workspace::release_binary()?,
    };
    let weights = weights::weights(&binary, &args.model)?;
    let all = args.set.read()?;
    let only = args.only.as_deref().unwrap_or_default();
    let cache = tempfile::tempdir()?;
    let asking = Asking {
        binary: &binary,
        weights: &weights,
        cache: cache.path(),
        deadline_s: args.deadline_s,
    };
    let (mut rows, mut right, mut times) = (Vec::new(), 0, Samples::default());
    for question in all.questions.iter().filter(|it| it.name.contains(only)) {
        let report = asking.ask(&all, question)?;
        eprintln!("{}: {}", question.name, report.verdict);
        right += usize::from(report.is_right);
        times.extend([report.elapsed]);
        rows.push(report.row(question));
    }
    print!(
        "{}",
        table::render(["question", "ok", "steps", "calls", "ms", "answer"], &rows)
    );
    println!(
        "\nmodel {}: {right} of {} right, median {} ms",
        args.model,
        rows.len(),
        times.median_ms()
    );
    Ok(right >= RIGHT_MIN.min(rows.len()))
}

/// How the questions of a run are asked.
struct Asking<'a> {
    binary: &'a Path,
    weights: &'a Path,
    cache: &'a Path,
    deadline_s: u64,
}

impl Asking<'_> {
    fn ask(&self, all: &Questions, question: &Question) -> Result<Report> {
        let dir = tempfile::tempdir()?;
        let files = dir.path().join(&question.project);
        all.prepare(question, &files)?;
        let started = Instant::now();
        let output = Command::new(self.binary)
            .args(["ask", "--yolo", "--output-format", "json"])
            .args(["--model", &format!("local/{}", self.weights.display())])
            .args(["--deadline", &format!("{}s", self.deadline_s)])
            .arg("-C")
            .arg(&files)
            .arg(&question.ask)
            .env_remove("RONDO_HOME")
            .env("XDG_CONFIG_HOME", dir.path().join("config"))
            .env("XDG_DATA_HOME", dir.path().join("data"))
            .env("XDG_STATE_HOME", dir.path().join("state"))
            .env("XDG_CACHE_HOME", self.cache)
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()?;
        let result = serde_json::from_slice(&output.stdout).unwrap_or_default();
        Ok(Report::new(question, &result, started.elapsed()))
    }
}

struct Report {
    is_right: bool,
    verdict: String,
    steps: u64,
    calls: u64,
    elapsed: Duration,
}

impl Report {
    fn new(question: &Question, result: &Value, elapsed: Duration) -> Self {
        let number = |key| result.get(key).and_then(Value::as_u64).unwrap_or(0);
        let answer = result.get("text").and_then(Value::as_str);
        let calls = number("tool_calls");
        let is_right = answer.is_some_and(|text| question.is_right(text));
        let shown: String = answer
            .unwrap_or("no answer")
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
            .chars()
            .take(ANSWER_CHARS_MAX)
            .collect();
        Self {
            is_right,
            verdict: format!("{} {shown}", if is_right { "ok" } else { "WRONG" }),
            steps: number("steps"),
            calls,
            elapsed,
        }
    }

    fn row(&self, question: &Question) -> [String; 6] {
        let (ok, answer) = self.verdict.split_once(' ').unwrap_or_default();
        [
            question.name.clone(),
            ok.to_owned(),
            self.steps.to_string(),
            self.calls.to_string(),
            self.elapsed.as_millis().to_string(),
            answer.to_owned(),
        ]
    }
}
