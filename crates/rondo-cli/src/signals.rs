//! The signals that stop a run: all that would end the process, except those that report a crash. The effect of each
//! one is decided in `show_turn`.

use crate::exit::Stop;
use rustix::process::Signal as Known;
use std::future::poll_fn;
use std::ops::RangeInclusive;
use std::sync::OnceLock;
use std::task::Poll;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Signals from other processes, timers and resource limits. Those of the processor (`SIGSEGV`, `SIGBUS`,
/// `SIGILL`, `SIGFPE`) report a crash and keep their default effect, as do signals that end nothing. `abort`
/// ends the process even though `SIGABRT` is handled.
const STOPPING: [Known; 14] = [
    Known::INT,
    Known::TERM,
    Known::HUP,
    Known::QUIT,
    Known::USR1,
    Known::USR2,
    Known::ALARM,
    Known::VTALARM,
    Known::PROF,
    Known::XCPU,
    Known::IO,
    Known::ABORT,
    Known::TRAP,
    Known::SYS,
];
/// Those that only Linux has, by their numbers there: `SIGSTKFLT`, `SIGPWR` and the real-time signals
/// that its C library leaves to programs.
const STOPPING_ON_LINUX: [RangeInclusive<i32>; 3] = [16..=16, 30..=30, 34..=64];
/// The file that holds the mask of ignored signals, in hexadecimal, with the lowest bit for signal 1.
const STATUS: &str = "/proc/self/status";
const IGNORED: &str = "SigIgn:";

/// The signals that stop a run, one after another.
pub(crate) struct Signals(Vec<(Stop, Signal)>);

impl Signals {
    /// A signal that cannot be listened to keeps its default effect, which ends the process.
    pub(crate) fn listen() -> Self {
        let known = STOPPING.iter().map(|it| it.as_raw());
        let more = STOPPING_ON_LINUX.into_iter().flatten();
        let all = known.chain(more.filter(|_| cfg!(target_os = "linux")));
        let wanted = all.filter(|number| !stays_ignored(*number));
        let listened = wanted.filter_map(|number| {
            let stop = match number == Known::INT.as_raw() {
                true => Stop::Interrupt,
                false => Stop::Terminate,
            };
            Some((stop, signal(SignalKind::from_raw(number)).ok()?))
        });
        Self(listened.collect())
    }

    /// Waits for the next one.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub(crate) async fn next(&mut self) -> Stop {
        poll_fn(|cx| {
            let heard = self.0.iter_mut().find_map(|(stop, signal)| {
                matches!(signal.poll_recv(cx), Poll::Ready(Some(()))).then_some(*stop)
            });
            heard.map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }
}

/// Returns whether a signal was ignored when we were started, and stays ignored: `nohup` asks that of a
/// hang-up. A shell asks it of interrupts too, for whatever it starts in the background; an interrupt
/// from elsewhere stops that all the same, and so does a request to terminate.
fn stays_ignored(number: i32) -> bool {
    static AT_START: OnceLock<u64> = OnceLock::new();
    // Before anything is listened to, which changes it.
    let at_start = *AT_START.get_or_init(|| {
        let status = std::fs::read_to_string(STATUS).unwrap_or_default();
        ignored(&status)
    });
    let is_asked_for = [Known::INT, Known::TERM].map(Known::as_raw);
    !is_asked_for.contains(&number) && has(at_start, number)
}

fn ignored(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(IGNORED));
    let set = line.and_then(|it| u64::from_str_radix(it.trim(), 16).ok());
    set.unwrap_or_default()
}

fn has(set: u64, number: i32) -> bool {
    let bit = u32::try_from(number - 1).ok();
    bit.and_then(|bit| set.checked_shr(bit))
        .is_some_and(|it| it & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_told_by_the_kernel() {
        let set = ignored("Name:\tx\nSigBlk:\tff\nSigIgn:\t8000000000001001\n");
        let found: Vec<i32> = (1..=64).filter(|number| has(set, *number)).collect();
        assert_eq!(found, [1, 13, 64]);
        assert_eq!(ignored("no such line"), 0);
        assert!(!has(u64::MAX, 0) && !has(u64::MAX, 65));
    }
}
