//! Systems without a sandbox of ours.

use crate::{SandboxSpec, Unchecked, Undone, Watched};
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

/// What is to be as it was when a command has ended; there is nothing here.
#[derive(Debug, Default)]
pub struct Protection;

impl Protection {
    /// Returns whether the command has namespaces of its own, which this system does not have.
    #[must_use]
    pub fn has_namespaces(&self) -> bool {
        false
    }

    /// Returns what holds the mounts of the command, which has none here.
    pub fn take_namespaces(&mut self) -> Option<OwnedFd> {
        None
    }

    /// Returns what is readable when something is to be refused: nothing is watched here.
    #[must_use]
    pub fn watch_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Returns what was refused meanwhile.
    #[must_use]
    pub fn take_watched(&mut self, _now: Instant) -> Watched {
        Watched::default()
    }

    /// Returns what was put back.
    #[must_use]
    pub fn restore(&mut self) -> Vec<Undone> {
        Vec::new()
    }

    /// Returns what is gone after the command: there are no private directories here.
    #[must_use]
    pub fn lost(&mut self, _command: &str, _output: &str) -> Vec<PathBuf> {
        Vec::new()
    }
}

pub(crate) fn confine(_command: &mut Command, _spec: &SandboxSpec) -> io::Result<Protection> {
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        "there is no sandbox on this system",
    ))
}

/// Everything is held by its name here.
pub(crate) fn unchecked(_spec: &SandboxSpec) -> Vec<Unchecked> {
    Vec::new()
}
