//! What a command's waiting runs on.

use crate::error::{CliError, Result};
use crate::exit::Exit;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// How long a thread for blocking work stays without any: as long as the process.
const KEPT: Duration = Duration::from_hours(24 * 365);

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

/// Starts so many threads at once, and ends them.
fn try_threads(count: usize) -> Result<()> {
    let gate = Mutex::new(());
    let closed = gate.lock().unwrap_or_else(PoisonError::into_inner);
    let started = thread::scope(|scope| {
        let started = (0..count).try_for_each(|_| {
            let wait = || drop(gate.lock());
            thread::Builder::new().spawn_scoped(scope, wait).map(drop)
        });
        drop(closed);
        started
    });
    started.map_err(|err| {
        let error = anyhow::Error::new(err).context("failed to start a thread");
        CliError::caused(Exit::Error, error).hint(
            "the system allows no more processes or threads: `ulimit -u` shows the user's limit",
        )
    })
}
