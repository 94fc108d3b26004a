//! Cost of the full screen with a long session open: the real binary on a terminal of its own.

mod stream;
mod terminal;

use super::process;
use anyhow::{Context, Result, bail};
use rondo_tool_support::{table, workspace};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use stream::DELTAS;
use terminal::Terminal;

/// Turns of the long session, of four messages each.
const TURNS: u32 = 2_500;
/// Times that it is opened.
const OPENINGS: usize = 7;
/// Keys that are pressed.
const KEYS: usize = 1_000;
/// The time between two of them, longer than a frame, so that each has a frame of its own.
const BETWEEN_KEYS: Duration = Duration::from_millis(25);
/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// Last word of the session.
const LAST_WORD: &[u8] = b"answer.";

/// Builds a long session, opens it, types, and has an answer streamed; returns a table in Markdown.
///
/// # Errors
/// When something cannot be built, or the screen does not show what it should.
pub(crate) fn measure(binary: Option<&Path>, example: Option<&Path>) -> Result<String> {
    let binary = super::built(binary, workspace::release_binary)?;
    let build = || workspace::release_example("rondo-journal", "journal");
    let example = super::built(example, build)?;
    let home = tempfile::tempdir_in(workspace::output_dir()?)?;
    let journal = home.path().join("data/sessions");
    let talk = Command::new(example)
        .arg("talk")
        .args([&journal])
        .arg(TURNS.to_string())
        .output()
        .context("failed to start the example `journal`")?;
    if !talk.status.success() {
        bail!("{}", String::from_utf8_lossy(&talk.stderr));
    }
    let scene = Scene { binary, home };
    let mut rows = scene.openings()?;
    rows.extend(scene.long_session()?);
    Ok(table::render(["the full screen", "measured", "aim"], &rows))
}

struct Scene {
    binary: PathBuf,
    home: tempfile::TempDir,
}

impl Scene {
    fn open(&self, args: &[&str]) -> Result<Terminal> {
        let home = self.home.path();
        let mut command = Command::new(&self.binary);
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", home)
            .env("RONDO_HOME", home)
            .env("OPENAI_API_KEY", "bench")
            .env("TERM", "xterm-256color")
            .current_dir(home)
            .args(["-m", "openai/bench"])
            .args(args);
        Terminal::start(command)
    }

    fn openings(&self) -> Result<Vec<[String; 3]>> {
        let (mut new, mut long) = (Vec::new(), Vec::new());
        for _ in 0..OPENINGS {
            new.push(self.opening(&[], "agent".as_bytes())?);
            long.push(self.opening(&["--session", "talk"], LAST_WORD)?);
        }
        let messages = TURNS * 4;
        Ok(vec![
            row(
                "from the start of the program to an input, a new session",
                ms(median(&mut new)),
                "",
            ),
            row(
                &format!("to the end of a session of {messages} messages"),
                ms(median(&mut long)),
                "< 50 ms",
            ),
        ])
    }

    fn opening(&self, args: &[&str], shown: &[u8]) -> Result<Duration> {
        let began = Instant::now();
        let mut screen = self.open(args)?;
        let at = screen.until(shown, PATIENCE)?;
        screen.end()?;
        Ok(at.duration_since(began))
    }

    fn long_session(&self) -> Result<Vec<[String; 3]>> {
        let url = stream::serve()?;
        let mut screen = self.open(&["--session", "talk", "--base-url", &url])?;
        screen.until(LAST_WORD, PATIENCE)?;
        let opened_kib = process::peak_kib(screen.process());
        screen.settle();
        let (mut times, mut bytes) = (Vec::new(), Vec::new());
        for key in 0..KEYS {
            let pressed = Instant::now();
            // A line is dropped before it is broken.
            screen.press(if key % 60 == 59 { b"\x15" } else { b"x" })?;
            let frame = screen.next_frame(PATIENCE)?;
            times.push(frame.at.duration_since(pressed));
            bytes.push(frame.bytes);
            std::thread::sleep(BETWEEN_KEYS.saturating_sub(pressed.elapsed()));
        }
        screen.press(b"\x15go\r")?;
        screen.settle();
        let streamed = screen.take_bytes();
        let kib = process::peak_kib(screen.process());
        // Its beginning is gone to, so that all of it is read.
        let asked = Instant::now();
        screen.press(b"\x1b[1;5H")?;
        let read = screen.settle().duration_since(asked);
        let all_kib = process::peak_kib(screen.process());
        screen.end()?;
        let most = bytes.iter().max().copied().unwrap_or_default();
        let delta = streamed / DELTAS;
        Ok(vec![
            row("a key to its frame, median", ms(median(&mut times)), ""),
            row(
                "a key to its frame, 99 of 100",
                ms(percentile(&mut times, 99)),
                "<= 16 ms",
            ),
            row("bytes of a key, at most", most.to_string(), "<= 200"),
            row(
                "bytes of a streamed delta, on average",
                delta.to_string(),
                "<= 400",
            ),
            row("from a key to the beginning of the session", ms(read), ""),
            row("peak memory once it is open", mb(opened_kib), "< 100 MB"),
            row("the same after an answer", mb(kib), "< 100 MB"),
            row("the same with all of it read", mb(all_kib), "< 100 MB"),
        ])
    }
}

fn row(what: &str, measured: String, aim: &str) -> [String; 3] {
    [what.to_owned(), measured, aim.to_owned()]
}

fn ms(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

fn mb(kib: Option<u64>) -> String {
    kib.map_or("not told".to_owned(), |it| format!("{} MB", it / 1024))
}

fn median(times: &mut [Duration]) -> Duration {
    percentile(times, 50)
}

fn percentile(times: &mut [Duration], percent: usize) -> Duration {
    times.sort_unstable();
    let at = (times.len() * percent / 100).min(times.len().saturating_sub(1));
    times.get(at).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_the_sorted_times() {
        let mut times: Vec<Duration> = (1..=100).rev().map(Duration::from_millis).collect();
        assert_eq!(percentile(&mut times, 99), Duration::from_millis(100));
        assert_eq!(median(&mut times), Duration::from_millis(51));
        assert_eq!(median(&mut []), Duration::ZERO);
    }
}
