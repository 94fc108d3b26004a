//! The process that compares the protected files of a command when it has ended.

use serde::{Deserialize, Serialize};

/// A process of this boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Process {
    pub(super) pid: u32,
    /// When it started, in the kernel's ticks since boot.
    pub(super) start_time: u64,
}

impl Process {
    /// Returns whether it is there still. A zombie has ended.
    #[cfg(target_os = "linux")]
    pub(super) fn is_alive(self) -> bool {
        let stat = std::fs::read(format!("/proc/{}/stat", self.pid)).unwrap_or_default();
        let stat = String::from_utf8_lossy(&stat);
        let Some((_, after_name)) = stat.rsplit_once(") ") else {
            return false;
        };
        let mut fields = after_name.split_ascii_whitespace();
        let state = fields.next();
        // The field 22, counted from 1, of which the state is the third.
        let started = fields.nth(18).and_then(|it| it.parse().ok());
        started == Some(self.start_time) && state != Some("Z")
    }

    /// Returns whether a process of that id is there.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn is_alive(self) -> bool {
        let pid = i32::try_from(self.pid)
            .ok()
            .and_then(rustix::process::Pid::from_raw);
        pid.is_some_and(|pid| rustix::process::test_kill_process(pid).is_ok())
    }
}

/// Returns the id of this boot of the machine; empty if the system has none.
pub(super) fn boot() -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
    boot.unwrap_or_default().trim().to_owned()
}
