//! The whole test suite, streamed and remembered.

use crate::fuzz_gate;
use crate::test_output::{Status, TestOutput, Totals};
use crate::workspace;
use anyhow::{Context, Result, bail};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

/// Programs that tests start, and the Debian packages that hold them.
const PROGRAMS: [(&str, &str); 7] = [
    ("bash", "bash"),
    ("git", "git"),
    ("less", "less"),
    ("python3", "python3"),
    ("top", "procps"),
    ("vim", "vim"),
    ("zsh", "zsh"),
];
/// The program that has a test killed at exact system calls; without it, that part is left out. Its
/// package has its name.
const TRACER: &str = "strace";
/// What a whole run is built with, so that the tests of telemetry are in it. Lints and documents are
/// checked without, so that both builds are.
const FEATURES: [&str; 2] = ["--features", "rondo-cli/otel"];
/// The models that tests ask: one for the engine, and the default.
const TEST_MODELS: [&str; 2] = ["smollm2-135m", "qwen2.5-coder-1.5b"];
/// Where the results of the last whole run are, and its counts.
const RESULTS: &str = "results.txt";
const SUMMARY: &str = "summary.txt";
/// What is read of one line of output before it counts as several.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// Arguments of the task.
#[derive(Default, clap::Args)]
pub(crate) struct Args {
    /// Passed to `cargo test`; a run with such arguments is not remembered for `conformance`
    #[arg(last = true)]
    cargo_args: Vec<String>,
}

/// Runs the suite; true when every test passed.
///
/// # Errors
/// When a program that tests need is missing and cannot be installed, or the tests do not build.
pub(crate) fn run(args: &Args) -> Result<bool> {
    require_programs()?;
    install_tracer();
    let is_whole = args.cargo_args.is_empty();
    if is_whole {
        forget()?;
        if !build()? {
            bail!("the tests do not build");
        }
        fetch_weights()?;
    }
    let features: &[&str] = if is_whole { &FEATURES } else { &[] };
    let (output, passed) = stream_tests(features, &args.cargo_args)?;
    if !passed && output.totals == Totals::default() {
        bail!("the tests do not build");
    }
    if is_whole {
        remember(&output)?;
    }
    println!("\n{}", output.totals);
    let is_gate_tight = !is_whole || fuzz_gate::run_short()?;
    Ok(passed && is_gate_tight)
}

/// Fetches the weights that tests load, once for all runs on this machine.
fn fetch_weights() -> Result<()> {
    for model in TEST_MODELS {
        let status = Command::new(workspace::debug_binary())
            .args(["models", "pull", model])
            .stdout(Stdio::null())
            .status()
            .context("failed to start the binary")?;
        if !status.success() {
            bail!("the weights of `{model}` are not here and cannot be fetched");
        }
    }
    Ok(())
}

/// Returns where the last whole run's results are: one `STATUS NAME` a line.
pub(crate) fn results_path() -> Result<PathBuf> {
    Ok(workspace::output_dir()?.join(RESULTS))
}

/// Reads the last whole run's results.
pub(crate) fn recall(path: &Path) -> Result<Vec<(String, Status)>> {
    let text = fs::read_to_string(path).context("the tests did not run to their end")?;
    Ok(text
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter_map(|(status, name)| Some((name.to_owned(), Status::parse(status)?)))
        .collect())
}

/// A run that comes to nothing must not leave the results of the one before it.
fn forget() -> Result<()> {
    let dir = workspace::output_dir()?;
    for name in [RESULTS, SUMMARY] {
        match fs::remove_file(dir.join(name)) {
            Err(err) if err.kind() != io::ErrorKind::NotFound => return Err(err.into()),
            _ => {}
        }
    }
    Ok(())
}

fn remember(output: &TestOutput) -> Result<()> {
    let lines: String = output
        .tests
        .iter()
        .map(|(name, status)| format!("{} {name}\n", status.word()))
        .collect();
    fs::write(results_path()?, lines)?;
    let summary = workspace::output_dir()?.join(SUMMARY);
    fs::write(summary, format!("{}\n", output.totals))?;
    Ok(())
}

fn stream_tests(features: &[&str], extra: &[String]) -> Result<(TestOutput, bool)> {
    // Without a package the root of a virtual workspace means all of them.
    let mut child = workspace::cargo()
        .args(["test", "--no-fail-fast"])
        .args(features)
        .args(extra)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("failed to start cargo")?;
    let stdout = child.stdout.take().context("cargo has no output")?;
    let output = copy_lines(stdout, io::stdout())?;
    Ok((output, child.wait()?.success()))
}

fn copy_lines(from: impl Read, mut to: impl Write) -> Result<TestOutput> {
    let mut from = BufReader::new(from);
    let (mut output, mut line) = (TestOutput::default(), Vec::new());
    loop {
        line.clear();
        if from
            .by_ref()
            .take(LINE_BYTES_MAX)
            .read_until(b'\n', &mut line)?
            == 0
        {
            return Ok(output);
        }
        to.write_all(&line)?;
        to.flush()?;
        output.line(String::from_utf8_lossy(&line).trim_end());
    }
}

/// Builds the tests, and with them every binary that a test starts: cargo builds those of a package
/// that has integration tests. Building the binaries by themselves first would build candle twice,
/// since tests turn on one more feature below it.
fn build() -> Result<bool> {
    let status = workspace::cargo()
        .args(["test", "--no-run"])
        .args(FEATURES)
        .status()
        .context("failed to start cargo")?;
    Ok(status.success())
}

fn require_programs() -> Result<()> {
    let missing: Vec<(&str, &str)> = PROGRAMS
        .into_iter()
        .filter(|(program, _)| !on_path(program))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = missing.iter().map(|(program, _)| *program).collect();
    if !(on_path("apt-get") && is_root()) {
        bail!(
            "the tests need `{}`: install and try again",
            names.join("`, `")
        );
    }
    let packages: Vec<&str> = missing.iter().map(|(_, package)| *package).collect();
    install(&packages)
}

/// Installs the program that traces system calls, where that can be done; says so where not.
pub(crate) fn install_tracer() {
    if on_path(TRACER) {
        return;
    }
    let can_install = on_path("apt-get") && is_root();
    if !can_install || install(&[TRACER]).is_err() {
        println!(
            "`{TRACER}` is not here and cannot be installed: nothing is killed at system calls"
        );
    }
}

fn install(packages: &[&str]) -> Result<()> {
    for step in [
        &["update"][..],
        &["install", "-y", "--no-install-recommends"][..],
    ] {
        let mut apt = Command::new("apt-get");
        apt.args(step).env("DEBIAN_FRONTEND", "noninteractive");
        if step.len() > 1 {
            apt.args(packages);
        }
        let status = apt.status().context("failed to start apt-get")?;
        if !status.success() {
            bail!(
                "apt-get {} failed for `{}`",
                step.join(" "),
                packages.join(" ")
            );
        }
    }
    Ok(())
}

fn on_path(program: &str) -> bool {
    env::var_os("PATH")
        .is_some_and(|path| env::split_paths(&path).any(|dir| dir.join(program).is_file()))
}

fn is_root() -> bool {
    Command::new("id")
        .arg("-u")
        .output()
        .is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_without_an_end_are_still_read() {
        let (text, mut copy) = (&b"test a ... ok\ntest b ... FAILED"[..], Vec::new());
        let output = copy_lines(text, &mut copy).unwrap();
        assert_eq!((output.tests.len(), copy.as_slice()), (2, text));
    }

    #[test]
    fn a_missing_program_is_noticed() {
        assert!(on_path("bash") || !Path::new("/bin/bash").exists());
        assert!(!on_path("no-such-program-of-any-kind"));
    }

    #[test]
    fn remembered_results_come_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("results.txt");
        fs::write(
            &path,
            "ok a::b\nFAILED crates/x.rs - doc (line 3)\nnonsense\n",
        )
        .unwrap();
        assert_eq!(
            recall(&path).unwrap(),
            [
                ("a::b".to_owned(), Status::Passed),
                ("crates/x.rs - doc (line 3)".to_owned(), Status::Failed)
            ]
        );
    }
}
