//! The processes below this one: signalling them, counting them, and what memory they take.

use super::{STAT_PARENT, STAT_STATE, pid, stat_field};
use rustix::process::{Pid, Signal};
use std::collections::{HashMap, HashSet, VecDeque};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;

/// Prefix of the link of a descriptor of a file in memory.
const MEMORY_FILE: &[u8] = b"/memfd:";
/// The bound on descriptors of a process that are looked at.
const DESCRIPTORS_MAX: usize = 4096;
/// Unit of the size of a file on the disk.
const BLOCK_BYTES: u64 = 512;

/// Resources of the processes below this one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Measure {
    /// How many there are.
    pub(crate) processes: u32,
    /// Their memory, in bytes.
    pub(crate) memory: u64,
}

/// Signals everything the command started and that is still there.
///
/// `leader` is its process group.
pub(crate) fn signal_tree(leader: Pid, signal: Signal) {
    let _ = rustix::process::kill_process_group(leader, signal);
    for pid in descendants() {
        let _ = rustix::process::kill_process(pid, signal);
    }
}

/// Interrupts a command. In a PID namespace of its own it leads a process group that has no number here; the process that
/// stands for it is in ours, and passes the signal on.
pub(crate) fn interrupt(leader: Pid) {
    if rustix::process::kill_process_group(leader, Signal::INT).is_err() {
        let _ = rustix::process::kill_process(leader, Signal::INT);
    }
}

/// Signals the first process of the PID namespace that `leader` stands for; returns whether there is one. It passes SIGTERM
/// on to everything in the namespace, and the kernel kills everything with it: however many processes there are, none has to
/// be looked for.
pub(crate) fn signal_namespace(leader: Pid, signal: Signal) -> bool {
    let leader = leader.as_raw_pid().unsigned_abs();
    // Once the leader has ended, it is a child of ours.
    let near = children_of(leader).into_iter();
    let near = near.chain(children_of(std::process::id()));
    let mut is_found = false;
    for init in near.filter(|it| is_init(*it)).filter_map(pid) {
        is_found |= rustix::process::kill_process(init, signal).is_ok();
    }
    is_found
}

/// Kills everything below this process.
pub(crate) fn kill_descendants() {
    for pid in descendants() {
        let _ = rustix::process::kill_process(pid, Signal::KILL);
    }
}

/// Returns how many processes there are below this one, without those that are ours.
pub(crate) fn count_descendants() -> u32 {
    let is_there = |pid: &Pid| {
        let pid = pid.as_raw_pid().unsigned_abs();
        let state = stat_field(pid, STAT_STATE);
        state.is_some_and(|state| state != "Z") && !is_init(pid)
    };
    u32::try_from(descendants().iter().filter(|pid| is_there(pid)).count()).unwrap_or(u32::MAX)
}

/// Measures the processes below this one; more than `processes_max` are not looked for. If their memory seems to be more
/// than `memory_max`, pages that several of them share are counted once.
pub(crate) fn measure(processes_max: u32, memory_max: u64) -> Measure {
    let count_max = usize::try_from(processes_max).unwrap_or(usize::MAX);
    let found = below(std::process::id(), count_max.saturating_add(1));
    let sum = |of: fn(u32) -> u64| {
        found
            .iter()
            .fold(0_u64, |sum, pid| sum.saturating_add(of(*pid)))
    };
    let in_files = memory_files(&found);
    let mut memory = in_files.saturating_add(sum(resident_memory));
    if memory > memory_max {
        let exact = sum(|pid| proportional_memory(pid).unwrap_or_else(|| resident_memory(pid)));
        memory = in_files.saturating_add(exact);
    }
    Measure {
        processes: u32::try_from(found.len()).unwrap_or(u32::MAX),
        memory,
    }
}

/// Returns the memory of this machine, in bytes.
pub(crate) fn memory_total() -> Option<u64> {
    let info = fs::read_to_string("/proc/meminfo").ok()?;
    kibibytes(&info, "MemTotal:")
}

/// Returns the memory that a process has for itself, in bytes, moved to the disk or not.
fn resident_memory(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let of = |name| kibibytes(&status, name).unwrap_or_default();
    of("RssAnon:").saturating_add(of("VmSwap:"))
}

/// Returns the memory of the files without a name (`memfd_create`) that processes have open, in bytes, each file once. Of
/// what is not mapped, no process has a part.
fn memory_files(processes: &[u32]) -> u64 {
    let mut sizes = HashMap::new();
    for pid in processes {
        let open = fs::read_dir(format!("/proc/{pid}/fd"));
        for entry in open.into_iter().flatten().flatten().take(DESCRIPTORS_MAX) {
            let path = entry.path();
            let named = fs::read_link(&path).unwrap_or_default();
            if named.as_os_str().as_bytes().starts_with(MEMORY_FILE)
                && let Ok(found) = fs::metadata(path)
            {
                let bytes = found.blocks().saturating_mul(BLOCK_BYTES);
                sizes.insert((found.dev(), found.ino()), bytes);
            }
        }
    }
    sizes.values().fold(0, |sum, it| sum.saturating_add(*it))
}

/// Returns the memory of a process, in bytes: of what several processes share, its part. Takes long.
fn proportional_memory(pid: u32) -> Option<u64> {
    let memory = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    kibibytes(&memory, "Pss_Anon:")
}

/// Reads a line of a name and a number of kibibytes; returns bytes.
fn kibibytes(text: &str, name: &str) -> Option<u64> {
    let value = text.lines().find_map(|it| it.strip_prefix(name))?;
    let number: u64 = value.split_ascii_whitespace().next()?.parse().ok()?;
    number.checked_mul(1024)
}

/// Returns whether a process is the first one of a PID namespace.
fn is_init(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let ids = status.lines().find_map(|it| it.strip_prefix("NSpid:"));
    ids.is_some_and(|it| {
        let mut ids = it.split_ascii_whitespace();
        ids.next().is_some() && ids.next_back() == Some("1")
    })
}

/// Returns at most so many processes below another one, by what the kernel lists of each.
pub(super) fn below(root: u32, count_max: usize) -> Vec<u32> {
    let mut found = Vec::new();
    // A process can move while this looks, so that it is listed twice.
    let mut seen = HashSet::new();
    let mut next = VecDeque::from([root]);
    while let Some(parent) = next.pop_front() {
        for child in children_of(parent) {
            if found.len() >= count_max {
                return found;
            }
            if seen.insert(child) {
                found.push(child);
                next.push_back(child);
            }
        }
    }
    found
}

/// Returns the children of a process.
fn children_of(parent: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{parent}/task"));
    let lists = threads.into_iter().flatten().flatten();
    let lists = lists.filter_map(|it| fs::read_to_string(it.path().join("children")).ok());
    let children = |list: String| -> Vec<u32> {
        let ids = list.split_ascii_whitespace();
        ids.filter_map(|it| it.parse().ok()).collect()
    };
    lists.flat_map(children).collect()
}

/// Returns all descendants of this process.
fn descendants() -> Vec<Pid> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for (child, parent) in parents() {
        children.entry(parent).or_default().push(child);
    }
    let mut found = Vec::new();
    let mut next = vec![std::process::id()];
    while let Some(parent) = next.pop() {
        // Each process is taken once, so this ends whatever the list says.
        let own = children.remove(&parent).unwrap_or_default();
        found.extend(own.iter().copied().filter_map(pid));
        next.extend(own);
    }
    found
}

/// Lists the processes with their parents; at most as many as the kernel has process ids.
pub(super) fn parents() -> Vec<(u32, u32)> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter_map(|pid| Some((pid, stat_field(pid, STAT_PARENT)?.parse().ok()?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_their_unit() {
        let text = "Rss:  12 kB\nPss_Anon:        34 kB\n";
        assert_eq!(kibibytes(text, "Pss_Anon:"), Some(34 << 10));
        assert_eq!(kibibytes(text, "Swap:"), None);
        assert!(memory_total().is_some_and(|it| it > 1 << 20));
    }

    #[test]
    fn a_child_is_measured_and_the_first_process_is_no_init_of_its_own() {
        let mut child = std::process::Command::new("sleep")
            .arg("1000")
            .spawn()
            .unwrap();
        assert!(below(std::process::id(), usize::MAX).contains(&child.id()));
        assert!(!is_init(child.id()));
        let measured = measure(100, u64::MAX);
        assert!(measured.processes >= 1);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
