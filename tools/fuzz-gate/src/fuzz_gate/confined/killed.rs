//! Runs a command whose agent, supervisor or guard is killed meanwhile.

use super::cases::{Killing, Victim};
use super::machine::End;
use super::processes::{end, is_alive};
use anyhow::{Context as _, Result};
use rondo_launch::{CallSpec, CallStatus, CommandState, SUPERVISE_ARG};
use std::ffi::OsString;
use std::io::Write as _;
use std::process::{Child, Command, Stdio};
use std::thread::{sleep, yield_now};
use std::time::{Duration, Instant};

/// Byte that starts the command, after its specification.
const GO: u8 = b'g';
/// How long a supervisor may take until it is ready, and until it is gone once it was killed.
const PATIENCE: Duration = Duration::from_secs(20);

/// Starts a command, kills the given process, and waits until the command is not watched any more.
///
/// # Errors
/// When the supervisor cannot be started.
pub(super) fn run(
    spec: &CallSpec,
    variables: &[(OsString, OsString)],
    killing: Killing,
) -> Result<End> {
    let mut guard = Command::new("/proc/self/exe")
        .arg(SUPERVISE_ARG)
        .env_clear()
        .envs(variables.iter().cloned())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context("failed to start a supervisor")?;
    let mut agent = guard.stdin.take().context("a supervisor has no input")?;
    let mut order = serde_json::to_vec(spec)?;
    order.extend([b'\n', GO]);
    agent.write_all(&order).context("a supervisor is gone")?;
    let supervisor = started(spec, &mut guard)?;
    if let Some(supervisor) = supervisor {
        sleep(killing.after);
        match killing.victim {
            Victim::Agent => {
                drop(guard.stdout.take());
                drop(agent);
            }
            Victim::Supervisor => end(supervisor),
            Victim::Both => {
                // Not after the supervisor, whose command it would end.
                guard.kill()?;
                end(supervisor);
            }
        }
    }
    guard.wait()?;
    let begun = Instant::now();
    while supervisor.is_some_and(is_alive) && begun.elapsed() < PATIENCE {
        yield_now();
    }
    Ok(match status_of(spec) {
        Some(status) if status.state == CommandState::Ended => End::Reported(Box::new(status)),
        Some(status) if status.state == CommandState::Running => End::Unreported,
        _ => End::Refused,
    })
}

/// Waits until the command is started; returns its supervisor, and nothing if it is gone before.
fn started(spec: &CallSpec, guard: &mut Child) -> Result<Option<u32>> {
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE && guard.try_wait()?.is_none() {
        if let Some(status) = status_of(spec).filter(|it| it.state != CommandState::Ready) {
            return Ok(Some(status.pid));
        }
        yield_now();
    }
    Ok(None)
}

/// Returns how far the command is, if its status is there as a whole.
fn status_of(spec: &CallSpec) -> Option<CallStatus> {
    let status = CallStatus::read(&spec.state_dir, &spec.key);
    status.ok().flatten()
}
