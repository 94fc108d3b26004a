//! Collects the processes that end.

use super::unix;
use rustix::process::{Pid, WaitStatus};
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::thread;

/// Collects every child that ends, adopted ones too, on a thread of its own: a blocking wait needs
/// no signal handler. Writes the leader's raw status; end of file means that no process is left.
pub fn start_reaper(leader: Pid) -> io::Result<Reaper> {
    let (reaped, mut report) = io::pipe()?;
    thread::Builder::new().spawn(move || {
        while let Some((pid, status)) = unix::wait_any() {
            if pid == leader {
                let _ = report.write_all(&encode_status(status));
            }
        }
    })?;
    Ok(Reaper {
        report: reaped.into(),
    })
}

/// Collector of child processes that end.
pub struct Reaper {
    /// Pipe with the raw status of the leader: its exit code, four bytes big-endian, and the name of its
    /// signal. At its end no process is left.
    pub report: OwnedFd,
}

fn encode_status(status: WaitStatus) -> Vec<u8> {
    let (code, signal) = unix::exit_of(status);
    let mut bytes = code.to_be_bytes().to_vec();
    bytes.extend_from_slice(signal.unwrap_or_default().as_bytes());
    bytes
}
