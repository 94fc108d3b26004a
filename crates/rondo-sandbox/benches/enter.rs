//! Cost of starting a command in the sandbox, next to starting it without, one after the other.
//!
//! Prints a line for each mode, separated by tabs: its name, the nanoseconds of the median and of the fastest start to
//! end of `/bin/true` in it, and of the same without. `cargo xtask bench --sandbox` makes a table of it.
#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a benchmark talks on the terminal and fails like a test does"
)]

use rondo_sandbox::{NetworkAccess, Protection, SandboxMode, SandboxSpec, confine, readable_roots};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Starts of each kind.
const ROUNDS: usize = 300;

fn main() {
    let place = tempfile::tempdir().unwrap();
    let project = place.path();
    for folder in [".git/hooks", ".git/modules", ".rondo", ".vscode"] {
        std::fs::create_dir_all(project.join(folder)).unwrap();
    }
    for file in [".git/config", "AGENTS.md"] {
        std::fs::write(project.join(file), "").unwrap();
    }
    let looking = (SandboxMode::ReadOnly, NetworkAccess::Nothing);
    for (name, (mode, network)) in [
        ("only looks", looking),
        (
            "read-only",
            (SandboxMode::ReadOnly, NetworkAccess::Loopback),
        ),
        (
            "workspace-write",
            (SandboxMode::WorkspaceWrite, NetworkAccess::Loopback),
        ),
    ] {
        let spec = SandboxSpec {
            network,
            ..spec(mode, project)
        };
        let (mut with, mut without) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            with.push(time(Some(&spec), project));
            without.push(time(None, project));
        }
        println!("{name}\t{}\t{}", figures(with), figures(without));
    }
}

fn spec(mode: SandboxMode, project: &Path) -> SandboxSpec {
    let home = std::env::home_dir();
    let search_path = std::env::var_os("PATH");
    SandboxSpec {
        readable: Arc::new(readable_roots(home.as_deref(), search_path.as_deref())),
        home,
        ..SandboxSpec::new(mode, vec![project.to_owned()])
    }
}

/// Preparing the sandbox counts: the supervisor does it for each command.
fn time(spec: Option<&SandboxSpec>, project: &Path) -> Duration {
    let begun = Instant::now();
    let mut command = Command::new("/bin/true");
    command.current_dir(project);
    let mut protection = spec.map(|spec| confine(&mut command, spec).unwrap());
    assert!(command.status().unwrap().success());
    let undone = protection.as_mut().map(Protection::restore);
    assert!(undone.is_none_or(|it| it.is_empty()));
    // The supervisor lets go of the mounts too when it has told its agent.
    begun.elapsed()
}

fn figures(mut times: Vec<Duration>) -> String {
    times.sort();
    format!(
        "{}\t{}",
        times[times.len() / 2].as_nanos(),
        times[0].as_nanos()
    )
}
