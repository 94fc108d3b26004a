//! The limits of the process that reads documents.

use rustix::process::{Resource, Rlimit, setrlimit};
use std::io;

/// Address space, in bytes. macOS does not hold processes to it.
const MEMORY_MAX: u64 = 1 << 30;
/// Processor time, in seconds.
const CPU_SECONDS_MAX: u64 = 20;

/// Takes from this process what it does not need to read a document.
///
/// # Errors
/// When the system refuses.
pub(super) fn limit() -> io::Result<()> {
    let limits = [
        (Resource::As, MEMORY_MAX),
        (Resource::Cpu, CPU_SECONDS_MAX),
        (Resource::Core, 0),
        // It writes no file and opens none.
        (Resource::Fsize, 0),
        (Resource::Nofile, 0),
    ];
    for (resource, max) in limits {
        let limit = Rlimit {
            current: Some(max),
            maximum: Some(max),
        };
        setrlimit(resource, limit)?;
    }
    Ok(())
}
