//! Facts about a process from the system; none if there is no `/proc`.

use anyhow::Result;
use std::fs;
use std::path::Path;
use std::process::{Child, ExitStatus};
use std::thread::sleep;
use std::time::Duration;

/// The time between two looks at a process that is waited for.
const LOOK: Duration = Duration::from_millis(5);

/// Returns the greatest resident size that a process has had, in KiB.
pub(crate) fn peak_kib(pid: u32) -> Option<u64> {
    status(pid, "VmHWM:")
}

/// Returns the memory of a process by itself now, in KiB: without the pages of the program's file and its
/// libraries, of which the system maps 16 for each that is touched.
pub(crate) fn own_kib(pid: u32) -> Option<u64> {
    status(pid, "RssAnon:")
}

fn status(pid: u32, key: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(key))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}

/// Returns the processor time that the threads of a process have had.
pub(crate) fn cpu(pid: u32) -> Option<Duration> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    let threads = tasks.flatten();
    Some(
        threads
            .filter_map(|task| run_time(&task.path().join("schedstat")))
            .sum(),
    )
}

/// Returns the processor time that this thread has had.
pub(crate) fn own_thread_cpu() -> Option<Duration> {
    run_time(Path::new("/proc/thread-self/schedstat"))
}

/// Waits for a process and returns its end and its peak in KiB.
pub(crate) fn wait(child: &mut Child) -> Result<(ExitStatus, Option<u64>)> {
    let mut peak = None;
    loop {
        peak = peak_kib(child.id()).or(peak);
        if let Some(status) = child.try_wait()? {
            return Ok((status, peak));
        }
        sleep(LOOK);
    }
}

/// The first field of `schedstat` is nanoseconds on a processor, see proc(5).
fn run_time(schedstat: &Path) -> Option<Duration> {
    let text = fs::read_to_string(schedstat).ok()?;
    let nanos = text.split_whitespace().next()?.parse().ok()?;
    Some(Duration::from_nanos(nanos))
}
