//! The processes below this one, on a system that does not list them: the command's process group is all that is known.

use rustix::process::{Pid, Signal};

/// Resources of the processes below this one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Measure {
    /// How many there are.
    pub(crate) processes: u32,
    /// Their memory, in bytes.
    pub(crate) memory: u64,
}

pub(crate) fn signal_tree(leader: Pid, signal: Signal) {
    let _ = rustix::process::kill_process_group(leader, signal);
}

pub(crate) fn interrupt(leader: Pid) {
    signal_tree(leader, Signal::INT);
}

pub(crate) fn signal_namespace(_leader: Pid, _signal: Signal) -> bool {
    false
}

pub(crate) fn kill_descendants() {}

pub(crate) fn count_descendants() -> u32 {
    0
}

pub(crate) fn measure(_processes_max: u32, _memory_max: u64) -> Measure {
    Measure::default()
}

pub(crate) fn memory_total() -> Option<u64> {
    None
}
