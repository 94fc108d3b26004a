//! The namespaces and rules of a sandbox whose command has ended, for the next command of the same sandbox.
//!
//! To make them takes longer than a short command, and so does taking them down. They are entered again only where the
//! command has left nothing in them: each finds the empty directories that the first one found. Of what a process of its
//! own holds (the scope of its signals, IPC), each has its own.

use crate::linux::unshare;
use landlock::RulesetCreated;
use rustix::fs::{Mode, OFlags};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space, set_no_new_privs};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};

/// What stands for the namespaces of users and mounts, and the rules of files.
const OWN: usize = 3;

/// Namespaces and rules that are there already.
#[derive(Debug)]
pub struct Reusable {
    users: OwnedFd,
    mounts: OwnedFd,
    rules: OwnedFd,
    /// The directories and files of the namespaces' own, as they were before the first command.
    private: Vec<(OwnedFd, State)>,
}

/// What changes when something is left in a directory, or a file is changed.
#[derive(Debug, PartialEq, Eq)]
struct State {
    changed: (i64, i64),
    mode: u32,
    owner: (u32, u32),
    /// Of its file system, which is the command's own.
    inodes: (u64, u64),
}

impl Reusable {
    /// The bound on what stands for one, in descriptors; a sandbox of which it is more is made anew for each command.
    pub const DESCRIPTORS_MAX: usize = 32;

    /// Takes what [`Entered::for_next`](crate::Entered::for_next) returned, before the command is executed; nothing where
    /// that was nothing.
    ///
    /// # Errors
    /// When it cannot be looked at.
    pub fn new(descriptors: Vec<OwnedFd>) -> io::Result<Option<Self>> {
        let mut all = descriptors.into_iter();
        let (Some(users), Some(mounts), Some(rules)) = (all.next(), all.next(), all.next()) else {
            return Ok(None);
        };
        let private = all.map(|it| State::of(&it).map(|state| (it, state)));
        Ok(Some(Self {
            users,
            mounts,
            rules,
            private: private.collect::<io::Result<_>>()?,
        }))
    }

    /// Returns whether everything of its own is as it was. To be asked once all processes in it have ended.
    #[must_use]
    pub fn is_untouched(&self) -> bool {
        let is_same = |(it, was): &(OwnedFd, State)| State::of(it).is_ok_and(|now| now == *was);
        self.private.iter().all(is_same)
    }

    /// Has this process enter it, but for the filter of system calls.
    pub(crate) fn enter(&self) -> io::Result<()> {
        move_into_link_name_space(self.users.as_fd(), Some(LinkNameSpaceType::User))?;
        move_into_link_name_space(self.mounts.as_fd(), Some(LinkNameSpaceType::Mount))?;
        unshare(libc::CLONE_NEWIPC)?;
        set_no_new_privs(true)?;
        restrict_self(&self.rules)
    }
}

impl State {
    fn of(opened: &OwnedFd) -> io::Result<Self> {
        let found = rustix::fs::fstat(opened)?;
        let system = rustix::fs::fstatfs(opened)?;
        Ok(Self {
            changed: (found.st_ctime, found.st_ctime_nsec.cast_signed()),
            mode: found.st_mode,
            owner: (found.st_uid, found.st_gid),
            inodes: (system.f_files, system.f_ffree),
        })
    }
}

/// Opens what stands for the namespaces that this process has entered and for its rules; nothing where that is too much.
pub(crate) fn opened(rules: &RulesetCreated, private: &[PathBuf]) -> io::Result<Vec<OwnedFd>> {
    if OWN + private.len() > Reusable::DESCRIPTORS_MAX {
        return Ok(Vec::new());
    }
    let Some(rules) = rules.try_clone()?.into() else {
        return Ok(Vec::new());
    };
    let namespace = |of: &str| File::open(format!("/proc/self/ns/{of}")).map(OwnedFd::from);
    let own = [namespace("user")?, namespace("mnt")?, rules];
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // What is not there changes the directory that it would be in.
    let private = private
        .iter()
        .filter_map(|path| rustix::fs::open(path, flags, Mode::empty()).ok());
    Ok(own.into_iter().chain(private).collect())
}

/// Returns the directories that lie below one of the `places` and above what is bound back into them.
pub(crate) fn between(bound: &[PathBuf], places: &[PathBuf]) -> Vec<PathBuf> {
    let is_inner = |it: &&Path| {
        places
            .iter()
            .any(|place| it.starts_with(place) && it != place)
    };
    // What is bound back is others' too.
    let is_bound = |it: &Path| bound.iter().any(|bound| it.starts_with(bound));
    let above = bound.iter().flat_map(|it| it.ancestors().skip(1));
    let mut found: Vec<PathBuf> = above
        .filter(|it| is_inner(it) && !is_bound(it))
        .map(Path::to_owned)
        .collect();
    found.sort();
    found.dedup();
    found
}

#[expect(
    unsafe_code,
    reason = "the library restricts a process only by rules that it has made itself"
)]
fn restrict_self(rules: &OwnedFd) -> io::Result<()> {
    const FLAGS: libc::c_uint = 0;
    // SAFETY: it takes numbers alone, of which one is a descriptor that is open.
    let returned =
        unsafe { libc::syscall(libc::SYS_landlock_restrict_self, rules.as_raw_fd(), FLAGS) };
    match returned {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_between_is_of_the_commands_own_and_what_is_bound_back_is_not() {
        let paths = |all: &[&str]| all.iter().map(PathBuf::from).collect::<Vec<_>>();
        let bound = paths(&[
            "/home/a/b/c",
            "/home/a/b/c/d/e",
            "/home/x",
            "/usr/lib",
            "/tmp",
        ]);
        let found = between(&bound, &paths(&["/home", "/tmp"]));
        assert_eq!(found, paths(&["/home/a", "/home/a/b"]));
    }
}
