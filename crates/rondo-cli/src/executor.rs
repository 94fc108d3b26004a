//! Executor of a command's futures.

use crate::error::{CliError, Result};
use crate::exit::Exit;
use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// How long a thread for blocking work stays without any: as long as the process.
const KEPT: Duration = Duration::from_hours(24 * 365);

/// The name of the threads that are started to see whether the system gives any.
const TRIED: &str = "rondo-try";
/// How long is waited for a thread that has ended to be counted no longer.
const COUNTED_MAX: Duration = Duration::from_secs(1);
/// The pause until that is looked at again.
const PAUSE: Duration = Duration::from_micros(50);

/// Makes a runtime of one thread, which is the caller's, and of one for work that blocks. If the system gives no other
/// thread later, such work waits for that one.
///
/// # Errors
/// When the system gives none.
pub(crate) fn of_this_thread() -> Result<Runtime> {
    // Tokio panics if it has no thread and gets none.
    try_threads(1)?;
    let mut builder = Builder::new_current_thread();
    let runtime = builder.enable_all().thread_keep_alive(KEPT).build();
    let runtime = runtime.map_err(failed)?;
    drop(runtime.spawn_blocking(|| {}));
    Ok(runtime)
}

/// Makes a runtime of so many threads.
///
/// # Errors
/// When the system gives fewer.
pub(crate) fn of_threads(workers: usize) -> Result<Runtime> {
    try_threads(workers)?;
    let mut builder = Builder::new_multi_thread();
    let runtime = builder.worker_threads(workers).enable_all().build();
    runtime.map_err(failed)
}

fn failed(err: io::Error) -> CliError {
    let context = "failed to start the runtime";
    CliError::caused(Exit::Error, anyhow::Error::new(err).context(context))
}

/// Starts so many threads at once, and ends them. The system counts a thread a moment longer than it runs, and Tokio panics
/// if it gets none in that moment, so that is waited for.
fn try_threads(count: usize) -> Result<()> {
    let gate = Mutex::new(());
    let ids = Mutex::new(Vec::new());
    let closed = gate.lock().unwrap_or_else(PoisonError::into_inner);
    let started = thread::scope(|scope| {
        let started = (0..count).try_for_each(|_| {
            let wait = || {
                let id = rustix::thread::gettid().as_raw_pid();
                ids.lock().unwrap_or_else(PoisonError::into_inner).push(id);
                drop(gate.lock());
            };
            let thread = thread::Builder::new().name(TRIED.to_owned());
            thread.spawn_scoped(scope, wait).map(drop)
        });
        drop(closed);
        started
    });
    let ids = ids.into_inner().unwrap_or_else(PoisonError::into_inner);
    for id in ids {
        let counted = format!("/proc/self/task/{id}");
        let mut waited = Duration::ZERO;
        while waited < COUNTED_MAX && Path::new(&counted).exists() {
            thread::sleep(PAUSE);
            waited += PAUSE;
        }
    }
    started.map_err(|err| {
        let error = anyhow::Error::new(err).context("failed to start a thread");
        CliError::caused(Exit::Error, error).hint(
            "the system allows no more processes or threads: `ulimit -u` shows the user's limit",
        )
    })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn threads_that_were_tried_are_counted_no_longer() {
        for _ in 0..100 {
            try_threads(2).unwrap();
            let tasks = fs::read_dir("/proc/self/task").unwrap();
            let names =
                tasks.filter_map(|it| fs::read_to_string(it.unwrap().path().join("comm")).ok());
            assert_eq!(names.filter(|it| it.trim() == TRIED).count(), 0);
        }
    }
}
