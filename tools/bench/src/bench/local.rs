//! The embedded model by itself, and next to a llama.cpp server with the same weights.
//!
//! Both get the same tokens, in turns, so that a disturbance of the machine touches both alike.

use super::process;
use anyhow::{Context, Result, bail};
use rondo_tool_support::stats::{Samples, ratio};
use rondo_tool_support::{http, table, workspace};
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Tokens of the prompt and of the reply.
const PROMPT: u32 = 256;
const REPLY: u32 = 48;
/// How long the other server may take for both.
const REFERENCE_TIMEOUT: Duration = Duration::from_secs(600);

/// Job to measure.
pub(super) struct Job<'a> {
    pub(super) rounds: u32,
    /// The weights.
    pub(super) weights: &'a Path,
    /// The base URL of a llama.cpp server that has the same weights.
    pub(super) reference: Option<&'a str>,
    /// The instructions to compute with, as the example `speed` names them, instead of the processor's fastest.
    pub(super) instructions: Option<&'a str>,
}

/// One engine's times: per prompt token, per reply token.
#[derive(Default)]
struct Speed {
    prefill: Samples,
    generation: Samples,
}

#[derive(Default)]
struct Figures {
    cold: Samples,
    warm: Samples,
    second: Samples,
    ours: Speed,
    reference: Speed,
    peak_kib: u64,
    /// How many times faster replies are that guess, where they quote a tool's result and where they do not.
    quoting: Vec<f64>,
    own_words: Vec<f64>,
}

/// Measures and renders the table, in Markdown.
///
/// # Errors
/// When the example does not build or run, or the other server does not answer.
pub(super) fn measure(job: &Job<'_>) -> Result<String> {
    let example = workspace::release_example("rondo-local", "speed")?;
    let mut figures = Figures::default();
    for round in 1..=job.rounds {
        eprintln!("round {round} of {}", job.rounds);
        drop_from_cache(job.weights)?;
        let (cold, _) = run(&example, job)?;
        figures.cold.extend([time(&cold, "load_ms")?]);
        let (warm, peak_kib) = run(&example, job)?;
        figures.add(&warm, peak_kib)?;
        if let Some(url) = job.reference {
            figures.add_reference(&complete(url)?)?;
        }
    }
    figures.add_guesses(&guesses(job)?)?;
    Ok(figures.render())
}

/// Returns what the example `quote` prints: replies with guesses beside the same ones without.
fn guesses(job: &Job<'_>) -> Result<Vec<Value>> {
    let example = workspace::release_example("rondo-local", "quote")?;
    let output = Command::new(example)
        .arg(job.weights)
        .arg(job.rounds.to_string())
        .args(job.instructions)
        .stderr(Stdio::inherit())
        .output()
        .context("failed to start the example")?;
    if !output.status.success() {
        bail!("the example ended with {}", output.status);
    }
    let lines = serde_json::Deserializer::from_slice(&output.stdout).into_iter();
    Ok(lines.collect::<Result<_, _>>()?)
}

/// Has the system forget the file, so that the next one reads it from the disk.
fn drop_from_cache(file: &Path) -> Result<()> {
    let status = Command::new("dd")
        .arg(format!("if={}", file.display()))
        .args(["iflag=nocache", "count=0", "status=none"])
        .status()
        .context("failed to start dd")?;
    if !status.success() {
        bail!("`{}` cannot be dropped from the cache", file.display());
    }
    Ok(())
}

fn run(example: &Path, job: &Job<'_>) -> Result<(Value, Option<u64>)> {
    let mut child = Command::new(example)
        .arg(job.weights)
        .args([PROMPT.to_string(), REPLY.to_string()])
        .args(job.instructions)
        .stdout(Stdio::piped())
        .spawn()
        .context("failed to start the example")?;
    // Its one line fits the pipe, so waiting first is safe.
    let (status, peak_kib) = process::wait(&mut child)?;
    if !status.success() {
        bail!("the example ended with {status}");
    }
    let stdout = child.stdout.take().context("the example has no output")?;
    Ok((serde_json::from_reader(stdout)?, peak_kib))
}

/// Asks llama.cpp's own `/completion`, which tells its times and takes tokens
/// (<https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md>).
fn complete(base_url: &str) -> Result<Value> {
    let prompt: Vec<u32> = (0..PROMPT)
        .map(|index| 1_000 + index * 7_919 % 150_000)
        .collect();
    let body = json!({
        "prompt": prompt,
        "n_predict": REPLY,
        "cache_prompt": false,
        "temperature": 0,
        "ignore_eos": true,
    });
    let reply = http::post_json(base_url, "/completion", &body, REFERENCE_TIMEOUT)?;
    let timings = reply.get("timings").cloned();
    timings.context("the server does not tell its times: it is not llama.cpp's")
}

impl Figures {
    fn add(&mut self, run: &Value, peak_kib: Option<u64>) -> Result<()> {
        self.warm.extend([time(run, "load_ms")?]);
        let each = |what: &str| {
            let (all, tokens) = (format!("{what}_ms"), format!("{what}_tokens"));
            Ok::<_, anyhow::Error>(time(run, &all)? / count(run, &tokens)?)
        };
        self.ours.prefill.extend([each("prompt")?]);
        self.ours.generation.extend([each("reply")?]);
        self.second.extend([each("second")?]);
        self.peak_kib = self.peak_kib.max(peak_kib.unwrap_or_default());
        Ok(())
    }

    fn add_reference(&mut self, timings: &Value) -> Result<()> {
        let prefill = time(timings, "prompt_ms")? / count(timings, "prompt_n")?;
        let generation = time(timings, "predicted_ms")? / count(timings, "predicted_n")?;
        self.reference.prefill.extend([prefill]);
        self.reference.generation.extend([generation]);
        Ok(())
    }

    fn add_guesses(&mut self, replies: &[Value]) -> Result<()> {
        for reply in replies {
            if reply["is_same"] != true {
                bail!("a reply is another one with guesses: {reply}");
            }
            let faster = reply["times_faster"].as_f64();
            let faster = faster.context("`times_faster` is missing")?;
            match reply["quotes"] == true {
                true => self.quoting.push(faster),
                false => self.own_words.push(faster),
            }
        }
        Ok(())
    }

    fn render(&self) -> String {
        let (ours, other) = (&self.ours, &self.reference);
        let row = |name: &str, ours: String, other: String, ratio: String, aim: &str| {
            [name.to_owned(), ours, other, ratio, aim.to_owned()]
        };
        let none = || "-".to_owned();
        let rows = [
            row(
                "load, not in the page cache",
                self.cold.median_ms() + " ms",
                none(),
                none(),
                "<= 3 s",
            ),
            row(
                "load, in the page cache",
                self.warm.median_ms() + " ms",
                none(),
                none(),
                "<= 0.6 s",
            ),
            row(
                "prompt, tokens a second",
                rate(&ours.prefill),
                rate(&other.prefill),
                ratio(&other.prefill, &ours.prefill),
                ">= 1.5 times llama.cpp's",
            ),
            row(
                "reply, tokens a second",
                rate(&ours.generation),
                rate(&other.generation),
                ratio(&other.generation, &ours.generation),
                ">= llama.cpp's",
            ),
            row(
                "reply that quotes a tool's result, to one without guesses",
                none(),
                none(),
                mean(&self.quoting),
                ">= 1.5",
            ),
            row(
                "reply in other words, to one without guesses",
                none(),
                none(),
                mean(&self.own_words),
                ">= 0.98",
            ),
            row(
                "second step, new tokens a second",
                rate(&self.second),
                none(),
                none(),
                "as the prompt",
            ),
            row(
                "peak memory",
                format!("{} MB", self.peak_kib / 1024),
                none(),
                none(),
                "<= 1.3 GB",
            ),
        ];
        table::render(["figure", "ours", "llama.cpp", "ratio", "aim"], &rows)
    }
}

fn rate(each: &Samples) -> String {
    match each.median() {
        Some(time) if !time.is_zero() => format!("{:.1}", 1.0 / time.as_secs_f64()),
        _ => "-".to_owned(),
    }
}

fn mean(ratios: &[f64]) -> String {
    let count = u32::try_from(ratios.len()).unwrap_or(u32::MAX);
    match count {
        0 => "-".to_owned(),
        _ => format!("{:.2}", ratios.iter().sum::<f64>() / f64::from(count)),
    }
}

fn time(of: &Value, key: &str) -> Result<Duration> {
    let ms = of.get(key).and_then(Value::as_f64);
    let ms = ms.with_context(|| format!("`{key}` is missing"))?;
    Ok(Duration::try_from_secs_f64(ms / 1e3)?)
}

fn count(of: &Value, key: &str) -> Result<u32> {
    let count = of.get(key).and_then(Value::as_u64).unwrap_or_default();
    match u32::try_from(count) {
        Ok(count) if count > 0 => Ok(count),
        _ => bail!("`{key}` is missing"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_engines_are_compared_by_the_token() {
        let mut figures = Figures::default();
        let ours = json!({
            "load_ms": 900, "prompt_tokens": 200, "prompt_ms": 2_000,
            "reply_tokens": 40, "reply_ms": 2_000, "second_tokens": 10, "second_ms": 100,
        });
        figures.add(&ours, Some(2_048)).unwrap();
        let other = json!({
            "prompt_n": 200, "prompt_ms": 4_000.0, "predicted_n": 40, "predicted_ms": 1_800.0,
        });
        figures.add_reference(&other).unwrap();
        let replies = [(true, 2.0), (true, 1.0), (false, 0.75)].map(
            |(quotes, faster)| json!({"quotes": quotes, "is_same": true, "times_faster": faster}),
        );
        figures.add_guesses(&replies).unwrap();
        let shown = figures.render();
        for row in ["100.0", "20.0", "22.2", "0.90", "2 MB", "1.50", "0.75"] {
            assert!(shown.contains(row), "{row}: {shown}");
        }
        assert!(figures.add(&json!({"load_ms": 1}), None).is_err());
        let other = json!({"quotes": true, "is_same": false, "times_faster": 2.0});
        assert!(figures.add_guesses(&[other]).is_err());
    }
}
