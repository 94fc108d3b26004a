//! Identities of the files that a sandbox's rules and mounts refer to.
//!
//! Rules and mounts hold files, not names. One that is put in the place of another is not reached by them, so a sandbox
//! that waits for its command is used only while each name leads where it led.

use crate::SandboxSpec;
use rustix::event::{PollFd, PollFlags, Timespec};
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The table of mounts, which wakes its reader for each change since it was opened.
const MOUNTS: &str = "/proc/self/mounts";

pub(crate) struct Ground {
    pub(crate) spec: SandboxSpec,
    /// Each path, and what was there.
    found: Vec<(PathBuf, Option<Identity>)>,
    mounts: File,
}

/// The device and the number of a file.
type Identity = (u64, u64);

impl Ground {
    pub(crate) fn new<'a>(
        spec: SandboxSpec,
        paths: impl Iterator<Item = &'a Path>,
    ) -> io::Result<Self> {
        let mounts = File::open(MOUNTS)?;
        let found = paths.map(|path| (path.to_owned(), identity(path)));
        Ok(Self {
            spec,
            found: found.collect(),
            mounts,
        })
    }

    pub(crate) fn is_unchanged(&self) -> bool {
        !self.was_mounted() && self.found.iter().all(|(path, was)| identity(path) == *was)
    }

    fn was_mounted(&self) -> bool {
        let mut polled = [PollFd::new(&self.mounts, PollFlags::PRI)];
        let at_once = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        !matches!(rustix::event::poll(&mut polled, Some(&at_once)), Ok(0))
    }
}

fn identity(path: &Path) -> Option<Identity> {
    let metadata = path.metadata().ok()?;
    Some((metadata.dev(), metadata.ino()))
}
