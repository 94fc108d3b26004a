//! Process state that children inherit, and that others of the user can change.

use rustix::process::{Resource, Rlimit};

/// The limits of which one that is changed is missed most.
const LIMITS: [Resource; 10] = [
    Resource::Cpu,
    Resource::Fsize,
    Resource::Data,
    Resource::Stack,
    Resource::Core,
    Resource::Rss,
    Resource::Nproc,
    Resource::Nofile,
    Resource::Memlock,
    Resource::As,
];

/// Limits, priority and processors of this process. A command can change those of its supervisor, also from a sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProcessLimits {
    limits: Vec<Rlimit>,
    priority: Option<i32>,
    #[cfg(target_os = "linux")]
    processors: Option<rustix::thread::CpuSet>,
}

impl ProcessLimits {
    pub(crate) fn own() -> Self {
        Self {
            limits: LIMITS.map(rustix::process::getrlimit).to_vec(),
            priority: rustix::process::getpriority_process(None).ok(),
            #[cfg(target_os = "linux")]
            processors: rustix::thread::sched_getaffinity(None).ok(),
        }
    }
}
