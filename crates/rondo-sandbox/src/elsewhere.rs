//! Systems without a sandbox of ours.

use crate::{RefusedChanges, SandboxSpec, Unchecked, UndoneChange};
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

/// State to restore after a command; empty on this system.
#[derive(Debug, Default)]
pub struct Protection;

impl Protection {
    /// Returns whether the command has namespaces of its own, which this system does not have.
    #[must_use]
    pub fn has_namespaces(&self) -> bool {
        false
    }

    /// Returns the holder of the command's mounts, which has none here.
    pub fn take_namespaces(&mut self) -> Option<OwnedFd> {
        None
    }

    /// Returns a descriptor that is readable when something must be refused: nothing is watched here.
    #[must_use]
    pub fn watch_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Returns the refusals since the last call.
    #[must_use]
    pub fn take_watched(&mut self, _now: Instant) -> RefusedChanges {
        RefusedChanges::default()
    }

    /// Returns the files that were restored.
    #[must_use]
    pub fn restore(&mut self) -> Vec<UndoneChange> {
        Vec::new()
    }

    /// Returns the files that are gone after the command: there are no private directories here.
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
