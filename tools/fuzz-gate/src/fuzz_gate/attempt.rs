//! Test of an attempt that the gate lets into the read-only sandbox: it runs there, and may have no effect.

use super::bypasses;
use super::world::{self, CANARY, World};
use anyhow::{Context, Result};
use rondo_sandbox::{Enforcement, SandboxMode, SandboxSpec, confine, probe, readable_roots};
use std::fs::File;
use std::io::{self, Read as _};
use std::net::TcpListener;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The port that attempts connect to.
const PORT: u16 = 7777;
/// How long an attempt may take.
const TIME_MAX: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(1);
/// Bytes of an attempt's output that are inspected.
const OUTPUT_BYTES_MAX: u64 = 1 << 20;

/// Listens for what attempts send.
///
/// # Errors
/// When this system has no sandbox, or the port is taken.
pub(super) fn listener() -> Result<TcpListener> {
    probe(Enforcement::Full).context("commands cannot be confined here")?;
    let listener = TcpListener::bind(("127.0.0.1", PORT))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Runs an attempt in the sandbox of commands that only look, and returns its effects.
///
/// # Errors
/// When it cannot be run.
pub(super) fn effects_of_looking(
    attempt: &str,
    setup: &str,
    listener: &TcpListener,
) -> Result<Vec<String>> {
    effects_of(attempt, setup, SandboxMode::ReadOnly, listener)
}

fn effects_of(
    attempt: &str,
    setup: &str,
    mode: SandboxMode,
    listener: &TcpListener,
) -> Result<Vec<String>> {
    let place = tempfile::tempdir()?;
    let world = World::new(place.path().to_owned(), Vec::new());
    world.make()?;
    bypasses::prepare(&world, setup)?;
    let before = world.snapshot()?;
    let shown = shown_by(attempt, &world, mode)?;
    let mut effects = world::differences(&before, &world.snapshot()?);
    if shown.contains(CANARY) {
        effects.push("showed a file outside of the project".to_owned());
    }
    if listener.accept().is_ok() {
        effects.push("used the network".to_owned());
    }
    Ok(effects)
}

fn shown_by(attempt: &str, world: &World, mode: SandboxMode) -> Result<String> {
    let search_path = std::env::var_os("PATH");
    let own = std::env::home_dir();
    let spec = SandboxSpec {
        readable: Arc::new(readable_roots(own.as_deref(), search_path.as_deref())),
        home: own,
        ..SandboxSpec::new(mode, vec![world.project()])
    };
    let output = rustix::fs::memfd_create("output", rustix::fs::MemfdFlags::CLOEXEC)?;
    let mut output = File::from(output);
    let mut bash = Command::new("/bin/bash");
    bash.args(["-c", attempt])
        .current_dir(world.project())
        .env("HOME", world.home())
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output.try_clone()?)
        .process_group(0);
    let mut protection = confine(&mut bash, &spec)?;
    let mut child = bash.spawn().context("failed to start bash")?;
    let begun = Instant::now();
    while child.try_wait()?.is_none() && begun.elapsed() < TIME_MAX {
        sleep(PAUSE);
    }
    end_group(child.id());
    child.wait()?;
    let _ = protection.restore();
    let mut shown = Vec::new();
    io::Seek::rewind(&mut output)?;
    output.take(OUTPUT_BYTES_MAX).read_to_end(&mut shown)?;
    Ok(String::from_utf8_lossy(&shown).into_owned())
}

/// Ends what an attempt left in its group.
fn end_group(leader: u32) {
    let group = i32::try_from(leader)
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    if let Some(group) = group {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_effect_is_seen_where_the_sandbox_lets_it_through() {
        if probe(Enforcement::Full).is_err() {
            return;
        }
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let effects = |mode| effects_of("touch pwned", "", mode, &listener).unwrap();
        assert_eq!(effects(SandboxMode::ReadOnly), [""; 0]);
        assert!(!effects(SandboxMode::WorkspaceWrite).is_empty());
    }
}
