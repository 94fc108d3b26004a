//! The end of a shell and of its jobs.

use super::unix::{self, LeftProcesses};
use rustix::process::{Pid, Signal};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// How long a shell has to end after it was hung up; it tells its jobs and writes its history.
const HANG_UP_GRACE: Duration = Duration::from_millis(1000);
/// How long what it leaves has to end after SIGTERM.
const TERM_GRACE: Duration = Duration::from_millis(500);
/// How long SIGKILL is repeated, for what forks faster than it is killed.
const KILL_MAX: Duration = Duration::from_secs(2);

/// Ends a shell and its jobs, politely first. Jobs that were disowned, or left the session, stay.
pub(super) struct Ending {
    leader: Pid,
    stage: Stage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The shell was notified.
    HungUp { until: Instant },
    /// The remaining processes were asked to end.
    Told { until: Instant },
    /// The remaining processes are being killed.
    Killing { until: Instant },
    /// Nothing is left, or nothing can be done.
    Over,
}

impl Ending {
    /// Hangs up, unless the shell has ended by itself.
    pub(super) fn new(leader: Pid, has_exited: bool, master: Option<&OwnedFd>) -> Self {
        if let Some(master) = master.filter(|_| !has_exited) {
            unix::hang_up(leader, master);
        }
        Self {
            leader,
            stage: Stage::HungUp {
                until: Instant::now() + HANG_UP_GRACE,
            },
        }
    }

    /// Does what is due now; returns whether something is left to wait for.
    pub(super) fn goes_on(
        &mut self,
        jobs: &[i32],
        prompt_at: Option<u64>,
        has_exited: bool,
    ) -> bool {
        let now = Instant::now();
        let leavings = LeftProcesses {
            leader: self.leader,
            jobs,
            prompt_at,
        };
        let signal = |signal| unix::signal_leavings(&leavings, signal);
        self.stage = match self.stage {
            Stage::HungUp { until } if has_exited || now >= until => {
                // Whichever of them it knows; a stopped process must continue to end.
                let found = [Signal::HUP, Signal::TERM, Signal::CONT].map(&signal);
                match found.contains(&true) {
                    true => Stage::Told {
                        until: now + TERM_GRACE,
                    },
                    false => Stage::Over,
                }
            }
            Stage::Told { .. } if has_exited && !signal(Signal::CONT) => Stage::Over,
            Stage::Told { until } if now >= until => Stage::Killing {
                until: now + KILL_MAX,
            },
            Stage::Killing { until } if !signal(Signal::KILL) || now >= until => Stage::Over,
            stage => stage,
        };
        self.stage != Stage::Over
    }
}
