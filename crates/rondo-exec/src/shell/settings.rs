//! Start parameters of a shell.

use super::program::ShellProgram;
use rondo_core::redact::Secrets;
use rondo_launch::{PtySize, SupervisorCommand};
use rondo_policy::Workdir;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// A shell to keep.
#[derive(Debug, Clone)]
pub struct ShellSettings {
    /// Program to start as supervisor.
    pub supervisor: SupervisorCommand,
    /// The shell.
    pub program: ShellProgram,
    /// Initial directory of the shell, and a mirror of its state: set after each command.
    pub workdir: Workdir,
    /// Directory of its pipes while it lives; must exist, and should be private to the user.
    pub state_dir: PathBuf,
    /// Variables that are added to the environment of this process, or taken from it (`None`).
    pub environment: Vec<(OsString, Option<OsString>)>,
    /// The size of its terminal.
    pub size: PtySize,
    /// The bound on the copy of a command's output, in bytes: its beginning and its end.
    pub captured_bytes_max: usize,
    /// Secrets to remove from that copy, until [`Shell::set_secrets`](super::Shell::set_secrets) replaces them.
    pub secrets: Secrets,
    /// How long its start files may take.
    pub start_timeout: Duration,
}

impl ShellSettings {
    /// The default of [`Self::captured_bytes_max`].
    pub const CAPTURED_BYTES: usize = 50_000;
    /// The default of [`Self::start_timeout`].
    pub const START_TIMEOUT: Duration = Duration::from_secs(15);

    /// Returns the defaults for a shell that starts in `workdir`.
    #[must_use]
    pub fn new(
        supervisor: SupervisorCommand,
        program: ShellProgram,
        workdir: Workdir,
        state_dir: PathBuf,
    ) -> Self {
        Self {
            supervisor,
            program,
            workdir,
            state_dir,
            environment: Vec::new(),
            size: PtySize::default(),
            captured_bytes_max: Self::CAPTURED_BYTES,
            secrets: Secrets::default(),
            start_timeout: Self::START_TIMEOUT,
        }
    }
}
