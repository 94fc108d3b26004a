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

/// What stands for the namespace of users, that of mounts, and the rules of files.
const OWN: usize = 3;

/// Namespaces and rules that are there already.
#[derive(Debug)]
pub struct Reusable {
    users: OwnedFd,
    /// None where each command has its own.
    place: Option<Place>,
}

/// What a command sees of files, and may do to them.
#[derive(Debug)]
struct Place {
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
    /// The bound on what stands for one, in descriptors; where it is more, mounts and rules are made anew for each command.
    pub const DESCRIPTORS_MAX: usize = 32;

    /// Takes what [`Entered::for_next`](crate::Entered::for_next) returned, before the command is executed; nothing where
    /// that was nothing.
    ///
    /// # Errors
    /// When it cannot be looked at.
    pub fn new(descriptors: Vec<OwnedFd>) -> io::Result<Option<Self>> {
        let mut all = descriptors.into_iter();
        let Some(users) = all.next() else {
            return Ok(None);
        };
        let place = match (all.next(), all.next()) {
            (Some(mounts), Some(rules)) => {
                let private = all.map(|it| State::of(&it).map(|state| (it, state)));
                Some(Place {
                    mounts,
                    rules,
                    private: private.collect::<io::Result<_>>()?,
                })
            }
            _ => None,
        };
        Ok(Some(Self { users, place }))
    }

    /// Returns whether the mounts and rules can be entered again, and everything of their own is as it was. To be asked once
    /// all processes in them have ended.
    #[must_use]
    pub fn is_untouched(&self) -> bool {
        let is_same = |(it, was): &(OwnedFd, State)| State::of(it).is_ok_and(|now| now == *was);
        let place = self.place.as_ref();
        place.is_some_and(|it| it.private.iter().all(is_same))
    }

    /// Returns what is left where mounts and rules are made anew.
    #[must_use]
    pub fn without_mounts(self) -> Self {
        Self {
            place: None,
            ..self
        }
    }

    /// Has this process enter the namespace of users, whose maps are written: only a process that may be looked into can do
    /// that.
    pub(crate) fn enter_users(&self) -> io::Result<()> {
        let users = Some(LinkNameSpaceType::User);
        Ok(move_into_link_name_space(self.users.as_fd(), users)?)
    }

    /// Has this process enter all of it but for the filter of system calls; returns whether there are mounts and rules.
    pub(crate) fn enter(&self) -> io::Result<bool> {
        let Some(place) = &self.place else {
            return Ok(false);
        };
        self.enter_users()?;
        let mounts = Some(LinkNameSpaceType::Mount);
        move_into_link_name_space(place.mounts.as_fd(), mounts)?;
        unshare(libc::CLONE_NEWIPC)?;
        set_no_new_privs(true)?;
        restrict_self(&place.rules)?;
        Ok(true)
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

/// Opens what stands for the namespaces that this process has entered; with the rules and the files of their own, where
/// another command can have them.
pub(crate) fn opened(
    rules: &RulesetCreated,
    private: Option<&[PathBuf]>,
) -> io::Result<Vec<OwnedFd>> {
    let namespace = |of: &str| File::open(format!("/proc/self/ns/{of}")).map(OwnedFd::from);
    let mut all = vec![namespace("user")?];
    let private = private.filter(|it| OWN + it.len() <= Reusable::DESCRIPTORS_MAX);
    let rules: Option<OwnedFd> = rules.try_clone()?.into();
    if let (Some(private), Some(rules)) = (private, rules) {
        all.extend([namespace("mnt")?, rules]);
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // What is not there changes the directory that it would be in.
        let open = |path: &PathBuf| rustix::fs::open(path, flags, Mode::empty()).ok();
        all.extend(private.iter().filter_map(open));
    }
    Ok(all)
}

/// Returns the directories that lie below one of the `places` and above what is bound back into them, or another of them.
pub(crate) fn between(bound: &[PathBuf], places: &[PathBuf]) -> Vec<PathBuf> {
    let is_inner = |it: &&Path| {
        places
            .iter()
            .any(|place| it.starts_with(place) && it != place)
    };
    // What is bound back is others' too.
    let is_bound = |it: &Path| bound.iter().any(|bound| it.starts_with(bound));
    let inner = bound.iter().chain(places);
    let above = inner.flat_map(|it| it.ancestors().skip(1));
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
        let found = between(&bound, &paths(&["/home", "/tmp", "/home/p/q"]));
        assert_eq!(found, paths(&["/home/a", "/home/a/b", "/home/p"]));
    }
}
