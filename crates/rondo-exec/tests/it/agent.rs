//! Agents that are killed.

use crate::fixture::{Fixture, PATIENCE, supervisor};
use rondo_core::redact::Secrets;
use rondo_exec::SupervisorCommand;
use rondo_exec::supervisor::{CallSpec, CallStatus, CommandState, PtySize, SUPERVISE_ARG};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Instant;

pub(crate) const PATIENCE_MS: u64 = PATIENCE.as_secs() * 1000;

pub(crate) fn program() -> std::path::PathBuf {
    match supervisor() {
        SupervisorCommand::Path(path) => path,
        SupervisorCommand::CurrentExe => unreachable!("the tests name a program"),
    }
}

pub(crate) fn spec(fixture: &Fixture, command: &str, timeout_ms: u64) -> CallSpec {
    CallSpec {
        key: "key-1".to_owned(),
        state_dir: fixture.state.path().to_path_buf(),
        command: command.to_owned(),
        argv: None,
        directory: fixture.path().to_path_buf(),
        timeout_ms,
        outlive_ms: PATIENCE_MS,
        output_bytes_max: 1000,
        spill_bytes_max: 1000,
        pty: PtySize::default(),
        is_kept: true,
        memory_bytes_max: None,
        sandbox: None,
        secrets: Secrets::default(),
    }
}

/// Plays an agent in a process of its own that starts the call and is killed with SIGKILL.
pub(crate) fn kill_agent_of(spec: &CallSpec) {
    let line = fixture_file(spec);
    let script = format!(
        "{{ cat '{}'; printf g; exec sleep 1000; }} | '{}' {SUPERVISE_ARG}",
        line.display(),
        program().display()
    );
    let mut agent = Command::new("bash")
        .args(["-c", &script])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .unwrap();
    wait_until(|| {
        let status = CallStatus::read(&spec.state_dir, &spec.key).unwrap();
        status.is_some_and(|status| status.state != CommandState::Ready)
    });
    let group = format!("-{}", agent.id());
    let killed = Command::new("kill")
        .args(["-KILL", "--", &group])
        .status()
        .unwrap();
    assert!(killed.success());
    agent.wait().unwrap();
}

fn fixture_file(spec: &CallSpec) -> std::path::PathBuf {
    let path = spec.state_dir.join("spec");
    let mut line = serde_json::to_vec(spec).unwrap();
    line.push(b'\n');
    std::fs::write(&path, line).unwrap();
    path
}

pub(crate) fn wait_for_end(spec: &CallSpec) -> CallStatus {
    let read = || {
        CallStatus::read(&spec.state_dir, &spec.key)
            .unwrap()
            .unwrap()
    };
    wait_until(|| read().state == CommandState::Ended);
    read()
}

pub(crate) fn wait_until(mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < until, "waited in vain");
        std::thread::yield_now();
    }
}
