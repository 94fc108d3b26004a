//! State of a call whose agent is gone.

use super::guard::COMMAND_END_MAX;
use super::status::{CallStatus, CommandState};
use super::unix;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long a supervisor that was asked to end, and has not confirmed it yet, is waited for.
const SETTLE_MAX: Duration = COMMAND_END_MAX.saturating_add(Duration::from_secs(1));
/// How long orphaned processes are killed; one that the kernel holds cannot end.
const ORPHANS_MAX: Duration = Duration::from_secs(2);
/// How often a status file is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// State of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecalledCall {
    /// Nothing says that its command was started.
    NeverBegun {
        /// Set if there is a status file, which says that it did not begin.
        is_recorded: bool,
    },
    /// Its command runs.
    Running(Box<CallStatus>),
    /// Its command has ended.
    Ended(Box<CallStatus>),
    /// Its supervisor died, or its status file cannot be read.
    Lost {
        /// Mark of its processes, if it can be read.
        mark: Option<String>,
    },
}

/// Looks up the state of a call. A command whose supervisor is just starting is waited for.
///
/// # Cancel safety
/// Cancel safe.
pub async fn look(state_dir: &Path, key: &str) -> RecalledCall {
    let until = Instant::now() + SETTLE_MAX;
    loop {
        if let Some(known) = glance(state_dir, key) {
            return known;
        }
        if Instant::now() >= until {
            return RecalledCall::Lost { mark: None };
        }
        sleep(LOOK_EVERY).await;
    }
}

/// Waits for the end of a call whose supervisor ended the conversation, as it does at the end.
///
/// # Cancel safety
/// Cancel safe.
pub async fn end(state_dir: &Path, key: &str) -> RecalledCall {
    let until = Instant::now() + SETTLE_MAX;
    loop {
        match look(state_dir, key).await {
            RecalledCall::Running(_) if Instant::now() < until => sleep(LOOK_EVERY).await,
            known => return known,
        }
    }
}

/// Ends the processes of a command whose supervisor and guard are gone, by their mark.
pub async fn end_orphans(mark: String) {
    let ending = tokio::task::spawn_blocking(move || {
        let until = std::time::Instant::now() + ORPHANS_MAX;
        let mut looks_without = 0;
        while looks_without < LOOKS_WITHOUT && std::time::Instant::now() < until {
            looks_without = match unix::kill_marked(&mark) {
                true => 0,
                false => looks_without + 1,
            };
            std::thread::sleep(LOOK_EVERY);
        }
    });
    let _ = ending.await;
}

/// How often in a row nothing must be found: a process that just executes a program shows no mark.
const LOOKS_WITHOUT: u32 = 2;

/// Returns nothing while the supervisor is between two states.
fn glance(state_dir: &Path, key: &str) -> Option<RecalledCall> {
    let before = match CallStatus::read(state_dir, key) {
        Ok(Some(status)) => status,
        Ok(None) => {
            let is_recorded = CallStatus::is_reserved(state_dir, key);
            return Some(RecalledCall::NeverBegun { is_recorded });
        }
        Err(_) => return Some(RecalledCall::Lost { mark: None }),
    };
    // A supervisor writes its last line before it ends: read after it is gone, that is the last.
    let is_alive = before.supervisor_is_alive();
    let Ok(Some(status)) = CallStatus::read(state_dir, key) else {
        return Some(RecalledCall::Lost { mark: None });
    };
    match status.state {
        CommandState::Ready if is_alive => None,
        CommandState::Ready | CommandState::Failed => {
            Some(RecalledCall::NeverBegun { is_recorded: true })
        }
        CommandState::Running if is_alive => Some(RecalledCall::Running(Box::new(status))),
        CommandState::Running => Some(RecalledCall::Lost {
            mark: Some(status.watcher().mark(key)),
        }),
        CommandState::Ended => Some(RecalledCall::Ended(Box::new(status))),
    }
}

/// Location of a call's status file, as noted before the call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusLocation {
    /// The start of the machine: a file that was not forced to the platter may be gone after
    /// another, or lack its end.
    boot: String,
    /// The directory itself: in one that took its place nothing is missed.
    directory: String,
    /// Set if a file said then that the call had not begun: if that file is missing, so may be its replacement.
    #[serde(default)]
    is_reserved: bool,
}

impl StatusLocation {
    /// Returns those of calls from now on, if the system says it.
    pub fn of(state_dir: &Path) -> Option<Self> {
        Some(Self {
            boot: unix::boot_id()?,
            directory: unix::directory_id(state_dir)?,
            is_reserved: false,
        })
    }

    /// Returns that of a call which begins next, and notes in its status file that it has not.
    pub fn reserved(state_dir: &Path, key: &str) -> Option<Self> {
        Some(Self {
            is_reserved: CallStatus::reserve(state_dir, key).is_ok(),
            ..Self::of(state_dir)?
        })
    }

    /// Returns whether a call that is not known to have begun, did not.
    pub fn rule_out(&self, now: Option<&Self>, is_recorded: bool) -> bool {
        now.is_some_and(|now| {
            let is_missed = !self.is_reserved && self.directory == now.directory;
            self.boot == now.boot && (is_recorded || is_missed)
        })
    }
}
