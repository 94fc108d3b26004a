//! What a command may reach: files, the network and other processes, as the kernel enforces it.
//!
//! A [`SandboxSpec`] says it as plain data; [`confine`] has a command enter it between fork and exec. It cannot be left
//! again, and holds for everything that the command starts. Where the kernel does not enforce all of it, the
//! command does not start: nothing runs with less than what was asked for.
#![warn(missing_docs)]

#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(target_os = "linux")]
mod filter;
#[cfg(target_os = "linux")]
mod linux;
mod roots;

#[cfg(not(target_os = "linux"))]
use elsewhere as system;
#[cfg(target_os = "linux")]
use linux as system;

use serde::{Deserialize, Serialize};
use std::io;
use std::path::PathBuf;
use std::process::Command;

pub use roots::{PROTECTED, readable_roots};

/// How far a command is confined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxMode {
    /// It reads the readable and the writable roots, and writes nothing that is there when it has ended.
    ReadOnly,
    /// It writes the writable roots too, but for what is [`PROTECTED`] in them.
    WorkspaceWrite,
}

/// What a command may reach.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxSpec {
    /// How far it is confined.
    pub mode: SandboxMode,
    /// The directories that it works in, absolute.
    pub writable: Vec<PathBuf>,
    /// What else it may read and execute, absolute; what does not exist is passed over.
    pub readable: Vec<PathBuf>,
    /// The user's home directory. The command finds an empty one of its own, with what of its roots lies in it.
    pub home: Option<PathBuf>,
    /// Whether it has the network; otherwise it has a loopback of its own.
    pub has_network: bool,
}

/// Has a command enter the sandbox between fork and exec.
///
/// Starting the command then forks, which copies the page tables of this process: small processes should. The
/// sandbox is entered before what is set on the command later by the same means.
///
/// # Errors
/// When the system has no sandbox, or something in the specification cannot be a path. What the kernel refuses is an
/// error of starting the command.
pub fn confine(command: &mut Command, spec: &SandboxSpec) -> io::Result<()> {
    system::confine(command, spec)
}

/// Tries whether this system enforces the sandbox, by starting a command in it.
///
/// # Errors
/// Why it does not.
pub fn probe() -> io::Result<()> {
    let spec = SandboxSpec {
        mode: SandboxMode::ReadOnly,
        writable: vec![PathBuf::from("/")],
        readable: Vec::new(),
        home: None,
        has_network: false,
    };
    let mut command = Command::new("/bin/sh");
    command.args(["-c", ":"]);
    confine(&mut command, &spec)?;
    let status = command.status()?;
    match status.success() {
        true => Ok(()),
        false => Err(io::Error::other("a command does not run in it")),
    }
}
