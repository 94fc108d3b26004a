//! The end of the process: a command with a deadline ends at most half a second after it, whatever still runs.
//!
//! One thread owns that bound, so that nothing which waits (for a file, a server, a disk, a reader) needs a timeout of
//! its own for it. It may end the process at any moment: effects are recorded before they happen, and the supervisors
//! of commands and servers end these once the process is gone.

use crate::error::{CliError, Result};
use crate::exit::Exit;
use crate::output;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread::{Builder, sleep};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// How long after the deadline the process is ended. The rest of half a second is for its end itself.
const END_GRACE: Duration = Duration::from_millis(400);
/// How long after the deadline output is still waited for.
const OUTPUT_GRACE: Duration = Duration::from_millis(300);
/// How long after the deadline the process gives up what it still prepares.
const PREPARE_GRACE: Duration = Duration::from_millis(100);
/// Message about a process that is ended.
const ENDED: &str =
    "error: the deadline passed; work that did not stop was ended with the process\n";
/// Stands for an exit code that is not known yet.
const UNKNOWN: u8 = u8::MAX;

/// When the process began.
static STARTED: OnceLock<Instant> = OnceLock::new();
/// When its time is over.
static DEADLINE: OnceLock<Instant> = OnceLock::new();
/// Fires once there is a deadline.
static BOUNDED: Notify = Notify::const_new();
/// The exit code, if the process is ended from now on.
static CODE: AtomicU8 = AtomicU8::new(UNKNOWN);

/// Notes when the process began; its deadline is counted from there.
pub(crate) fn note_start() {
    let _ = started();
}

fn started() -> Instant {
    *STARTED.get_or_init(Instant::now)
}

/// Bounds the time of the process. The first bound counts: that of the arguments, or that of the settings.
///
/// # Errors
/// When no thread can be started.
pub(crate) fn bound(time: Option<Duration>) -> Result<()> {
    let Some(at) = time.and_then(|it| started().checked_add(it)) else {
        return Ok(());
    };
    if DEADLINE.set(at).is_err() {
        return Ok(());
    }
    BOUNDED.notify_waiters();
    let watch = move || {
        sleep((at + END_GRACE).saturating_duration_since(Instant::now()));
        end();
    };
    let spawned = Builder::new().name("deadline".to_owned()).spawn(watch);
    spawned.map(drop).map_err(|err| {
        let context = "failed to start a thread";
        CliError::caused(Exit::Error, anyhow::Error::new(err).context(context))
    })
}

/// Says how the process ends if it is ended from now on.
pub(crate) fn set_code(code: u8) {
    CODE.store(code, Ordering::Relaxed);
}

/// Returns the time that is left; `None` if it has no bound.
pub(crate) fn time_left() -> Option<Duration> {
    let at = DEADLINE.get()?;
    Some(at.saturating_duration_since(Instant::now()))
}

/// Returns how long something may take that has a bound of its own and that began late: what is left to the process, if
/// that is much less.
pub(crate) fn shortened(time: Option<Duration>) -> Option<Duration> {
    match (time, time_left()) {
        (Some(time), Some(left)) if left + PREPARE_GRACE < time => Some(left),
        (None, left) => left,
        (time, _) => time,
    }
}

/// Returns until when output is waited for that could be waited for until `instant`.
pub(crate) fn output_end(instant: Instant) -> Instant {
    let end = DEADLINE.get().map(|it| *it + OUTPUT_GRACE);
    end.map_or(instant, |end| end.min(instant))
}

/// Does the work unless the deadline passes first.
///
/// # Errors
/// When the deadline passes, with this message; the work is dropped then.
///
/// # Cancel safety
/// As cancel safe as the work.
pub(crate) async fn in_time<T>(message: &str, work: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::select! {
        biased;
        done = work => done,
        () = passed() => Err(CliError::new(Exit::Deadline, message)),
    }
}

/// Waits until the deadline has passed; forever if there is none.
async fn passed() {
    loop {
        let bounded = BOUNDED.notified();
        if let Some(at) = DEADLINE.get() {
            return sleep_until(*at + PREPARE_GRACE).await;
        }
        bounded.await;
    }
}

#[expect(
    clippy::exit,
    reason = "the time of the process is over, and something in it does not end"
)]
fn end() -> ! {
    let code = match CODE.load(Ordering::Relaxed) {
        UNKNOWN => {
            output::stderr_at_once(ENDED);
            Exit::Deadline.code()
        }
        code => code,
    };
    std::process::exit(i32::from(code))
}
