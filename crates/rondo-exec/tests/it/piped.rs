//! Programs with pipes as their standard streams, under a supervisor.

use crate::agent::wait_until;
use crate::deaths::{FIND_GUARD, without_keeper};
use crate::fixture::{Fixture, PATIENCE, marker, supervisor, survivors};
use crate::tree::ESCAPES;
use rondo_core::redact::Secrets;
use rondo_exec::SupervisorCommand;
use rondo_launch::{PipedChild, PipedSpec, ProcessExit, ProcessSpec, StartError};
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::pipe;

/// Names the directory in which a test is an agent that will be killed.
const AGENT_IN: &str = "RONDO_TEST_AGENT_IN";

fn spec(directory: &Path, script: &str) -> PipedSpec {
    PipedSpec {
        process: ProcessSpec {
            program: "/bin/bash".into(),
            arguments: ["-c", script].map(OsString::from).to_vec(),
            directory: directory.to_owned(),
            sandbox: None,
            leaves_detached: false,
        },
        stderr_bytes_max: 1000,
        secrets: Secrets::default(),
    }
}

fn variables() -> Vec<(OsString, OsString)> {
    let path = std::env::var_os("PATH").unwrap();
    vec![("PATH".into(), path), ("GIVEN".into(), "here".into())]
}

/// A program under a supervisor, and its streams.
struct Started {
    child: PipedChild,
    stdin: pipe::Sender,
    stdout: pipe::Receiver,
}

async fn start(supervisor: &SupervisorCommand, spec: &PipedSpec) -> Result<Started, StartError> {
    let mut child = PipedChild::start(supervisor, &variables(), spec).await?;
    let (stdin, stdout) = child.take_streams().unwrap();
    assert!(child.take_streams().is_none());
    Ok(Started {
        child,
        stdin,
        stdout,
    })
}

impl Started {
    async fn line(&mut self) -> String {
        let mut line = Vec::new();
        while line.last() != Some(&b'\n') {
            line.push(self.stdout.read_u8().await.unwrap());
        }
        String::from_utf8(line).unwrap().trim_end().to_owned()
    }

    async fn number(&mut self) -> i32 {
        self.line().await.parse().unwrap()
    }
}

fn ended(code: i32, signal: Option<&str>) -> ProcessExit {
    ProcessExit {
        code,
        signal: signal.map(str::to_owned),
    }
}

fn kill(process: i32, signal: Signal) {
    kill_process(Pid::from_raw(process).unwrap(), signal).unwrap();
}

/// Fixtures whose supervisors come from a keeper, and whose do not.
fn both_ways() -> [Fixture; 2] {
    let mut anew = Fixture::new();
    without_keeper(&mut anew);
    [Fixture::new(), anew]
}

#[tokio::test]
async fn a_program_talks_over_its_pipes_and_its_end_is_told() {
    for fixture in both_ways() {
        let script = "echo up $GIVEN $PWD ${CARGO_PKG_NAME:-none}; cat; echo bad >&2; exit 3";
        let spec = spec(fixture.path(), script);
        let mut started = start(&fixture.options.supervisor, &spec).await.unwrap();
        let directory = fixture.path().canonicalize().unwrap();
        let greeting = format!("up here {} none", directory.display());
        assert_eq!(started.line().await, greeting);
        let long: Vec<u8> = (0..1_000_000_u32).flat_map(u32::to_le_bytes).collect();
        let (writing, mut stdin) = (long.clone(), started.stdin);
        let writing = tokio::spawn(async move { stdin.write_all(&writing).await });
        let mut read = Vec::new();
        started.stdout.read_to_end(&mut read).await.unwrap();
        assert!(read == long);
        writing.await.unwrap().unwrap();
        assert_eq!(started.child.exited().await.unwrap(), ended(3, None));
        let end = started.child.end(PATIENCE).await.unwrap();
        assert_eq!((end.exit, &*end.stderr), (ended(3, None), "bad\n"));
    }
}

#[tokio::test]
async fn a_server_whose_input_is_closed_ends_by_itself() {
    let fixture = Fixture::new();
    let script = "echo up; cat > /dev/null; echo bye >&2";
    let mut started = start(&supervisor(), &spec(fixture.path(), script))
        .await
        .unwrap();
    assert_eq!(started.line().await, "up");
    drop(started.stdin);
    let end = started.child.end(PATIENCE).await.unwrap();
    assert_eq!((end.exit, &*end.stderr), (ended(0, None), "bye\n"));
}

#[tokio::test]
async fn the_whole_tree_ends_with_the_program_whatever_it_does_to_escape() {
    for (escape, fixture) in ESCAPES.iter().zip(both_ways().iter().cycle()) {
        let mark = marker();
        let script = format!(
            "export M={mark}; exec 3>&1; {{ {escape}\n}} > /dev/null; echo up >&3; exec sleep 1000"
        );
        let spec = spec(fixture.path(), &script);
        let mut started = start(&fixture.options.supervisor, &spec).await.unwrap();
        assert_eq!(started.line().await, "up", "{escape}");
        let end = started.child.end(Duration::ZERO).await.unwrap();
        assert_eq!(end.exit, ended(143, Some("SIGTERM")), "{escape}");
        assert_eq!(survivors(&mark), [""; 0], "{escape}");
    }
}

#[tokio::test]
async fn what_a_program_leaves_is_ended_when_it_ends() {
    for fixture in both_ways() {
        let mark = marker();
        let script = format!("export M={mark}; setsid -f sleep 1000; sleep 1000 & exit 0");
        let spec = spec(fixture.path(), &script);
        let mut started = start(&fixture.options.supervisor, &spec).await.unwrap();
        assert_eq!(started.child.exited().await.unwrap(), ended(0, None));
        // Its output, which they have too, ends with them.
        let mut rest = Vec::new();
        started.stdout.read_to_end(&mut rest).await.unwrap();
        drop(started.child.end(PATIENCE).await.unwrap());
        assert_eq!(survivors(&mark), [""; 0]);
    }
}

#[tokio::test]
async fn a_program_that_ignores_every_polite_signal_is_killed() {
    for fixture in both_ways() {
        let mark = marker();
        let script =
            format!("export M={mark}; trap '' TERM HUP INT; echo up; while :; do sleep 1; done");
        let spec = spec(fixture.path(), &script);
        let mut started = start(&fixture.options.supervisor, &spec).await.unwrap();
        assert_eq!(started.line().await, "up");
        let end = started.child.end(Duration::ZERO).await.unwrap();
        assert_eq!(end.exit, ended(137, Some("SIGKILL")));
        assert_eq!(survivors(&mark), [""; 0]);
    }
}

#[tokio::test]
async fn a_flood_on_standard_error_is_kept_within_its_bound_and_nobody_waits() {
    let fixture = Fixture::new();
    let script =
        "echo first >&2; head -c 200000000 /dev/zero | tr '\\0' x >&2; echo >&2; echo last >&2";
    let started = start(&supervisor(), &spec(fixture.path(), script))
        .await
        .unwrap();
    let end = started.child.end(PATIENCE).await.unwrap();
    assert_eq!(end.exit, ended(0, None));
    assert!(end.stderr.starts_with("first\nxxx"), "{}", end.stderr);
    assert!(end.stderr.ends_with("x\nlast\n"), "{}", end.stderr);
    assert!(end.stderr.len() < 1200, "{}", end.stderr.len());
}

#[tokio::test]
async fn what_is_kept_of_standard_error_holds_no_secret() {
    let fixture = Fixture::new();
    let mut spec = spec(
        fixture.path(),
        "echo the key is open-sesame-4711 >&2; exec cat",
    );
    spec.secrets = Secrets::new(["open-sesame-4711".to_owned()]);
    let started = start(&supervisor(), &spec).await.unwrap();
    while !started.child.stderr().contains('\n') {
        tokio::task::yield_now().await;
    }
    assert!(!started.child.stderr().contains("sesame"));
    drop(started.stdin);
    let end = started.child.end(PATIENCE).await.unwrap();
    assert!(end.stderr.starts_with("the key is ") && !end.stderr.contains("sesame"));
}

#[tokio::test]
async fn a_program_that_is_not_there_is_an_error_that_says_so() {
    for fixture in both_ways() {
        let mut spec = spec(fixture.path(), "");
        spec.process.program = "/nowhere/server".into();
        let refused = start(&fixture.options.supervisor, &spec)
            .await
            .err()
            .unwrap();
        assert!(refused.to_string().contains("No such file"), "{refused}");
        spec.process.program = "server".into();
        let refused = start(&fixture.options.supervisor, &spec)
            .await
            .err()
            .unwrap();
        assert_eq!(refused.to_string(), "`server` is not an absolute path");
    }
}

#[tokio::test]
async fn a_killed_supervisor_or_guard_leaves_nothing() {
    for fixture in both_ways() {
        for killed in ["$PPID", "$guard $PPID", "$guard"] {
            let mark = marker();
            let script = format!(
                "export M={mark}; setsid -f sleep 1000; {FIND_GUARD}; kill -KILL {killed}; sleep 1000"
            );
            let spec = spec(fixture.path(), &script);
            let mut started = start(&fixture.options.supervisor, &spec).await.unwrap();
            if killed == "$guard" {
                // It is not missed.
                drop(started.child.end(Duration::ZERO).await.unwrap());
            } else {
                started.child.exited().await.unwrap_err();
                started.child.end(PATIENCE).await.unwrap_err();
            }
            assert_eq!(survivors(&mark), [""; 0], "{killed}");
        }
    }
}

#[tokio::test]
async fn a_stopped_supervisor_goes_on_to_end_its_program() {
    for fixture in both_ways() {
        let mark = marker();
        let script =
            format!("export M={mark}; {FIND_GUARD}; kill -STOP $guard $PPID; echo up; sleep 1000");
        let spec = spec(fixture.path(), &script);
        let mut started = start(&fixture.options.supervisor, &spec).await.unwrap();
        assert_eq!(started.line().await, "up");
        let end = started.child.end(Duration::ZERO).await.unwrap();
        assert_eq!(end.exit, ended(143, Some("SIGTERM")));
        assert_eq!(survivors(&mark), [""; 0]);
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_program_does_not_miss_its_keeper() {
    let mut fixture = Fixture::new();
    let link = fixture.path().join("supervisor");
    std::os::unix::fs::symlink(crate::agent::program(), &link).unwrap();
    fixture.options.supervisor = SupervisorCommand::Path(link);
    let script = format!("{FIND_GUARD}; sed -n 's/^PPid:.//p' /proc/$guard/status; exec cat");
    let spec = spec(fixture.path(), &script);
    let mut first = start(&fixture.options.supervisor, &spec).await.unwrap();
    let keeper = first.number().await;
    kill(keeper, Signal::KILL);
    first.stdin.write_all(b"on\n").await.unwrap();
    assert_eq!(first.line().await, "on");
    let mut second = start(&fixture.options.supervisor, &spec).await.unwrap();
    assert_ne!(second.number().await, keeper);
    for started in [first, second] {
        drop(started.stdin);
        let end = started.child.end(PATIENCE).await.unwrap();
        assert_eq!(end.exit, ended(0, None));
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_program_has_its_three_streams_open_and_nothing_else() {
    for fixture in both_ways() {
        let file = std::fs::File::create(fixture.path().join("of the agent")).unwrap();
        // As what started the agent may have left it: a copy is inherited.
        let _inherited = rustix::io::dup(&file).unwrap();
        let spec = spec(fixture.path(), "ls /proc/$$/fd > open; echo $(< open)");
        let mut started = start(&fixture.options.supervisor, &spec).await.unwrap();
        assert_eq!(started.line().await, "0 1 2");
    }
}

#[tokio::test]
async fn a_program_that_is_dropped_ends() {
    for fixture in both_ways() {
        let mark = marker();
        let spec = spec(fixture.path(), &format!("M={mark} exec sleep 1000"));
        drop(start(&fixture.options.supervisor, &spec).await.unwrap());
        wait_until(|| survivors(&mark).is_empty());
    }
}

/// Starts what tries to escape, says so, and waits to be killed.
async fn be_an_agent(directory: &Path) {
    let fixtures = both_ways();
    let mut all = Vec::new();
    for (escape, fixture) in ESCAPES.iter().zip(fixtures.iter().cycle()) {
        let supervisor = &fixture.options.supervisor;
        let mark = std::fs::read_to_string(directory.join("mark")).unwrap();
        let script = format!("export M={mark}; trap '' TERM; {escape}\nwhile :; do sleep 1; done");
        all.push(start(supervisor, &spec(directory, &script)).await.unwrap());
    }
    std::fs::write(directory.join("up"), "").unwrap();
    std::future::pending::<()>().await;
}

#[test]
fn an_agent_that_is_killed_leaves_nothing_of_its_programs() {
    if let Some(directory) = std::env::var_os(AGENT_IN) {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().unwrap();
        runtime.block_on(be_an_agent(Path::new(&directory)));
    }
    let directory = tempfile::tempdir().unwrap();
    let mark = marker();
    std::fs::write(directory.path().join("mark"), &mark).unwrap();
    let own = "piped::an_agent_that_is_killed_leaves_nothing_of_its_programs";
    let mut agent = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", own, "--nocapture"])
        .env(AGENT_IN, directory.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    wait_until(|| directory.path().join("up").exists());
    assert!(survivors(&mark).len() >= ESCAPES.len());
    agent.kill().unwrap();
    agent.wait().unwrap();
    wait_until(|| survivors(&mark).is_empty());
}
