//! Systems without a sandbox of ours.

use crate::{SandboxSpec, Undone};
use std::io;
use std::process::Command;

/// What is to be as it was when a command has ended; there is nothing here.
#[derive(Debug, Default)]
pub struct Protection;

impl Protection {
    /// Returns whether the command has namespaces of its own, which this system does not have.
    #[must_use]
    pub fn has_namespaces(&self) -> bool {
        false
    }

    /// Returns what was put back.
    #[must_use]
    pub fn restore(&mut self) -> Vec<Undone> {
        Vec::new()
    }
}

pub(crate) fn confine(_command: &mut Command, _spec: &SandboxSpec) -> io::Result<Protection> {
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        "there is no sandbox on this system",
    ))
}
