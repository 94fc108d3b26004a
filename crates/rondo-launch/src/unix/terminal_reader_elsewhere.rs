//! Processes that wait for a user to type, on a system that does not list what processes wait for.

use std::os::fd::OwnedFd;

/// How a process waits for input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(dead_code, reason = "no process is found on this system")]
pub(crate) enum InputWait {
    /// It reads from the terminal.
    Reads,
    /// It waits until one of several files can be read, of which the terminal may be one.
    Polls,
    /// It waits for something that the kernel does not tell.
    Unknown,
}

/// A process that waits for input from a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TerminalReader {
    /// Its process id.
    pub(crate) pid: u32,
    /// The name of its program.
    pub(crate) program: String,
    /// How it waits.
    pub(crate) waiting: InputWait,
}

pub(crate) fn terminal_reader(_terminal: &OwnedFd) -> Option<TerminalReader> {
    None
}
