//! Namespaces, then Landlock, then seccomp.
//!
//! Landlock has no rule that denies: what is protected inside of a writable directory is bound read-only over itself
//! in a mount namespace. Landlock comes after the mounts, since it forbids to undo them; seccomp comes last, since it
//! forbids both. If there are no namespaces, Landlock and seccomp are all there is.

use crate::covered::{Cover, c_path};
use crate::enclosing::{EnclosingRepository, linked_worktrees};
use crate::files::{FileRules, is_directory};
use crate::filter::FilterOptions;
use crate::ground::Ground;
use crate::nested::GIT;
use crate::protection::Protected;
use crate::root::open_without_links;
use crate::set_aside::SetAsideNotes;
use crate::{
    Enforcement, NetworkAccess, Root, SandboxMode, SandboxSpec, filter, hidden, init, lost, passing,
};
use landlock::RulesetCreated;
use rustix::fs::{Mode, OFlags, StatVfsMountFlags};
use rustix::process::DumpableBehavior;
use rustix::thread::{CapabilitySet, CapabilitySets};
use seccompiler::BpfProgram;
use std::ffi::{CStr, OsStr};
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

pub use crate::covered::MountCovers;
pub use crate::init::Collector;
pub use crate::protection::Protection;
pub(crate) use crate::protection::unchecked;

/// Directories that all users share: sockets of services, and files for others to find. A command has its own.
const SHARED: [&str; 4] = ["/tmp", "/var/tmp", "/dev/shm", "/run"];
/// The bound on processes and threads of a command's own PID namespace, if the kernel has one for each.
const PROCESS_IDS: &str = "/proc/sys/kernel/pid_max";
const PROCESS_IDS_MAX: &str = "4608";
/// The bound on shared memory of a command's own IPC namespace, in pages of 4 KiB.
const SHARED_MEMORY: &str = "/proc/sys/kernel/shmall";
/// 256 MiB.
const SHARED_MEMORY_PAGES: &str = "65536";
/// The bound on the content of each directory of a command's own: it is memory, which no process has. The number of
/// files is also that of KiB for their attributes.
const PRIVATE_SIZE: &CStr = c"size=1g,nr_inodes=256k";
/// The same for a command that only reads.
const PRIVATE_SIZE_READING: &CStr = c"size=256m,nr_inodes=64k";

pub(crate) fn confine(command: &mut Command, spec: &SandboxSpec) -> io::Result<Protection> {
    let mut preparation = Preparation::new(spec.clone())?;
    let (protection, covered) = preparation.protect()?;
    let directory = command.get_current_dir().map(Path::to_owned);
    enter_before_exec(command, move || {
        let (output, errors) = (io::stdout(), io::stderr());
        preparation
            .enter(&[output.as_fd(), errors.as_fd()], Collector::Relay)?
            .complete(&covered, directory.as_deref())
    });
    Ok(protection)
}

#[expect(
    unsafe_code,
    reason = "a process can only confine itself, between fork and exec"
)]
fn enter_before_exec(
    command: &mut Command,
    enter: impl FnMut() -> io::Result<()> + Send + Sync + 'static,
) {
    // SAFETY: the closure allocates, which the C library allows after a fork; it takes no other lock, and starts
    // no thread.
    unsafe { command.pre_exec(enter) };
}

/// A sandbox as far as it is the same for every command.
///
/// Protected paths are looked up for each command, when it starts.
pub struct Preparation {
    mode: SandboxMode,
    enforcement: Enforcement,
    /// The directories that commands work in, where they really are.
    writable: Vec<PathBuf>,
    repositories: Vec<EnclosingRepository>,
    /// The files `.git` of linked worktrees, which may be read.
    worktrees: Vec<PathBuf>,
    /// None if there are none.
    namespaces: Option<Namespaces>,
    files: FileRules,
    filter: BpfProgram,
    /// Becomes the protection's, with the mounts.
    held: Option<Protection>,
    ground: Ground,
}

impl Preparation {
    /// Looks for everything that is known before the fork.
    ///
    /// # Errors
    /// When the system has no sandbox, something in the specification cannot be a path, or the proxy cannot be reached.
    pub fn new(mut spec: SandboxSpec) -> io::Result<Self> {
        let (roots, repositories) = roots(&spec)?;
        let writable = written(&roots, &repositories);
        let worktrees = worktrees(&roots, &repositories);
        let tops = repositories.iter().map(|it| it.top.clone());
        let read_too: Vec<PathBuf> = tops.chain(worktrees.iter().cloned()).collect();
        Arc::make_mut(&mut spec.readable).extend(read_too);
        let is_full = spec.enforcement == Enforcement::Full;
        let namespaces = is_full.then(|| Namespaces::new(&spec, &writable));
        let private = namespaces.as_ref().map_or(&[][..], |it| &it.private);
        let files = FileRules::new(&spec, &writable, private)?;
        let filter = filter::program(FilterOptions {
            has_sockets: match spec.network {
                NetworkAccess::Host => true,
                NetworkAccess::Loopback => namespaces.is_some(),
                NetworkAccess::Nothing => false,
            },
            has_own_processes: namespaces.is_some(),
            watchers: &[Some(rustix::process::getpid()), rustix::process::getppid()]
                .map(|it| it.map_or(0, rustix::process::Pid::as_raw_pid)),
        })?;
        let (mode, enforcement) = (spec.mode, spec.enforcement);
        let mut preparation = Self {
            mode,
            enforcement,
            ground: Ground::new(spec, files.paths())?,
            writable: roots,
            repositories,
            worktrees,
            namespaces,
            files,
            filter,
            held: None,
        };
        preparation.renew()?;
        Ok(preparation)
    }

    /// Prepares the same sandbox for another command. Nothing is looked up again: [`Self::is_current`] tells whether what
    /// was found is still there.
    ///
    /// # Errors
    /// When there is no descriptor left, or the proxy cannot be reached.
    pub fn renew(&mut self) -> io::Result<()> {
        let mut held = Protection::default();
        if let Some(namespaces) = &mut self.namespaces {
            let (ours, theirs) = UnixStream::pair()?;
            held.holds_namespaces(ours.into(), namespaces.looked_at().cloned().collect());
            namespaces.lifeline = Some(theirs.into());
            let spec = &self.ground.spec;
            if let Some(socket) = spec.proxy.as_ref().filter(|_| spec.has_proxy()) {
                let proxy = passing::connected(socket)?;
                namespaces.proxy = Some(proxy.try_clone()?);
                held.serves_until_dropped(proxy);
            }
        }
        self.held = Some(held);
        Ok(())
    }

    /// Returns whether all that the sandbox is made of is still where it was found.
    #[must_use]
    pub fn is_current(&self) -> bool {
        let found = roots(&self.ground.spec);
        let is_same = |(roots, repositories): (Vec<PathBuf>, Vec<EnclosingRepository>)| {
            roots == self.writable
                && repositories == self.repositories
                && worktrees(&roots, &repositories) == self.worktrees
        };
        let covered = || {
            let written = written(&self.writable, &self.repositories);
            private(&self.ground.spec, &written)
        };
        let namespaces = self.namespaces.as_ref();
        let hidden = || {
            hidden::places(
                &self.ground.spec,
                &written(&self.writable, &self.repositories),
            )
        };
        let are_covered =
            namespaces.is_none_or(|it| it.private == covered() && it.hidden == hidden());
        are_covered && found.is_ok_and(is_same) && self.ground.is_unchanged()
    }

    /// Looks at what is protected, for the one command that this is for. Returns what to restore when it has
    /// ended, and the messages for it before it is executed.
    ///
    /// # Errors
    /// When what is protected cannot be kept.
    pub fn protect(&mut self) -> io::Result<(Protection, MountCovers)> {
        // Before anything is looked at, so that nothing is missed in between.
        let notes = self.ground.spec.ledger.as_deref().map(SetAsideNotes::new);
        let protected = Protected::find(
            self.mode,
            &self.writable,
            &self.repositories,
            &self.ground.spec.kept,
        );
        let covered = match self.enforcement {
            Enforcement::Full => MountCovers::new(&protected)?,
            Enforcement::Partial => MountCovers::default(),
        };
        let mut protection = Protection::new(self.enforcement, protected)?;
        notes.into_iter().for_each(|it| protection.notes(it));
        protection.take_held(self.held.take().unwrap_or_default());
        Ok((protection, covered))
    }

    /// Enters the sandbox as far as it does not depend on the command. With namespaces, this continues in another process,
    /// and the one that called becomes that which stands for the command.
    ///
    /// # Errors
    /// When the kernel refuses, or a directory that commands work in was moved or replaced.
    ///
    /// The command may open the `terminals` that it is given by their paths too, such as `/dev/stderr`.
    pub fn enter(
        &self,
        terminals: &[BorrowedFd<'_>],
        collector: Collector,
    ) -> io::Result<EnteredSandbox<'_>> {
        let namespaces = self.namespaces.as_ref().map(|it| {
            let roots = it.enter(&self.ground.spec, collector)?;
            Ok::<_, io::Error>((it, roots))
        });
        let entered = EnteredSandbox {
            namespaces: namespaces.transpose()?,
            rules: Some(self.files.ruleset(terminals)?),
            filter: &self.filter,
        };
        match self.mode {
            // Nothing is protected from a command that writes nothing, so nothing is left to be mounted.
            SandboxMode::ReadOnly => entered.restricted(),
            SandboxMode::WorkspaceWrite => Ok(entered),
        }
    }
}

/// Returns all that is written: the directories, and what is written of the repositories around them.
fn written(roots: &[PathBuf], repositories: &[EnclosingRepository]) -> Vec<PathBuf> {
    let of_repositories = repositories.iter().flat_map(EnclosingRepository::written);
    roots.iter().chain(of_repositories).cloned().collect()
}

/// Returns the directories that are covered by empty ones of the command's own.
fn private(spec: &SandboxSpec, writable: &[PathBuf]) -> Vec<PathBuf> {
    let shared = SHARED.iter().map(PathBuf::from);
    let home = spec.home.iter().filter_map(|it| it.canonicalize().ok());
    // A link is none.
    let is_directory = |it: &PathBuf| it.symlink_metadata().is_ok_and(|it| it.is_dir());
    let is_private =
        |it: &PathBuf| is_directory(it) && !writable.iter().any(|root| it.starts_with(root));
    shared.chain(home).filter(is_private).collect()
}

/// Returns the real paths of the writable directories, and the repositories around them.
fn roots(spec: &SandboxSpec) -> io::Result<(Vec<PathBuf>, Vec<EnclosingRepository>)> {
    let verified = |it: &Root| it.verify().map(|()| it.path().to_owned());
    let writable: Vec<PathBuf> = spec
        .writable
        .iter()
        .map(verified)
        .collect::<io::Result<_>>()?;
    let home = spec.home.as_ref().and_then(|it| it.canonicalize().ok());
    let around = |root: &PathBuf| EnclosingRepository::find(root, home.as_deref());
    let mut repositories: Vec<EnclosingRepository> = Vec::new();
    for found in writable.iter().filter_map(around) {
        let is_written = writable.iter().any(|it| found.common.starts_with(it));
        if !is_written && !repositories.contains(&found) {
            repositories.push(found);
        }
    }
    Ok((writable, repositories))
}

/// Returns the files `.git` of the linked worktrees of the repositories that commands work in, which `git` reads.
fn worktrees(roots: &[PathBuf], repositories: &[EnclosingRepository]) -> Vec<PathBuf> {
    let own = roots.iter().map(|it| it.join(GIT));
    let commons = own.chain(repositories.iter().map(|it| it.common.clone()));
    let linked = commons.flat_map(|it| linked_worktrees(&it));
    linked.map(|it| it.1).collect()
}

/// A process that is in its sandbox, as far as it does not depend on the command that it executes.
pub struct EnteredSandbox<'a> {
    /// With the roots of the private directories that are looked at when the command has ended.
    namespaces: Option<(&'a Namespaces, Vec<OwnedFd>)>,
    /// None once they hold.
    rules: Option<RulesetCreated>,
    filter: &'a BpfProgram,
}

impl EnteredSandbox<'_> {
    /// Enters the rest: what is protected is covered, the directory is the command's, and nothing of it can be undone.
    ///
    /// # Errors
    /// When the kernel refuses, or the directory is none.
    pub fn complete(self, covered: &MountCovers, directory: Option<&Path>) -> io::Result<()> {
        if let Some((namespaces, roots)) = &self.namespaces {
            for (path, cover) in &covered.0 {
                match cover {
                    Cover::ReadOnly => bind_over_itself(path, true)?,
                    Cover::Writable => bind_over_itself(path, false)?,
                    Cover::Hidden => hidden::cover_file(path_of(path))?,
                }
            }
            if let Some(directory) = directory {
                // It may lie in a directory that is covered now, and is empty then.
                let _ = make_place(directory, true);
                // Otherwise what was bound over it would not be seen from there.
                rustix::process::chdir(directory)?;
            }
            namespaces.pass_private(roots);
        }
        self.restricted().map(drop)
    }

    /// Applies the rules of files and the filter, unless they are applied.
    fn restricted(mut self) -> io::Result<Self> {
        if let Some(rules) = self.rules.take() {
            keep_file_capabilities()?;
            rules.restrict_self().map_err(io::Error::other)?;
            seccompiler::apply_filter(self.filter).map_err(io::Error::other)?;
        }
        Ok(self)
    }
}

/// View of a command in namespaces of its own.
struct Namespaces {
    /// The directories that are covered by empty ones of the command's own.
    private: Vec<PathBuf>,
    /// Mounts to bind again, parents first, and `true` for read-only ones: writable paths, and parts of the other
    /// roots that lie in the covered directories.
    kept: Vec<(PathBuf, bool)>,
    /// Paths among these that are covered once more.
    hidden: Vec<PathBuf>,
    /// The directories above these, which a command could move them away with.
    kept_in_place: Vec<PathBuf>,
    /// How much each of the covering directories holds, as an option of its mount.
    private_size: &'static CStr,
    has_loopback: bool,
    /// Gets the listener of the command's proxy.
    proxy: Option<OwnedFd>,
    /// Leads to the owner of the sandbox. It gets what holds the mounts: otherwise the last process in them would take them
    /// down as it ends, and its parent would wait for that. If it closes its end, everything in the namespaces is
    /// killed. Each command has its own.
    lifeline: Option<OwnedFd>,
    /// Set if there is no user namespace, which root does not need: inside one, files of other users would have no
    /// owner.
    keeps_users: bool,
    /// Set if the range of process ids bounds the number of processes.
    bounds_process_ids: bool,
    uid_map: String,
    gid_map: String,
}

impl Namespaces {
    fn new(spec: &SandboxSpec, writable: &[PathBuf]) -> Self {
        let reads_only = spec.mode == SandboxMode::ReadOnly;
        let private = private(spec, writable);
        let roots = writable.iter().map(|it| (it.clone(), reads_only));
        let roots = roots.chain(spec.readable.iter().map(|it| (it.clone(), true)));
        let roots = roots.chain(spec.scratch.iter().map(|it| (it.clone(), false)));
        // Writable paths are bound in any case: all else is made read-only.
        let is_covered =
            |it: &(PathBuf, bool)| !it.1 || private.iter().any(|place| it.0.starts_with(place));
        let mut kept: Vec<(PathBuf, bool)> = roots.filter(is_covered).collect();
        kept.sort();
        // Of a directory that is written and read, the first one counts: it is the one that is written.
        kept.dedup_by(|later, first| later.0 == first.0);
        let hidden = hidden::places(spec, writable);
        let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
        let capabilities = rustix::thread::capabilities(None);
        let may_mount =
            capabilities.is_ok_and(|it| it.effective.contains(CapabilitySet::SYS_ADMIN));
        Self {
            private,
            kept,
            kept_in_place: match reads_only {
                true => Vec::new(),
                false => hidden::above(&hidden, writable),
            },
            hidden,
            private_size: match reads_only {
                true => PRIVATE_SIZE_READING,
                false => PRIVATE_SIZE,
            },
            has_loopback: spec.network == NetworkAccess::Loopback,
            proxy: None,
            lifeline: None,
            keeps_users: uid.is_root() && may_mount,
            bounds_process_ids: has_process_ids_for_each(),
            uid_map: format!("{0} {0} 1\n", uid.as_raw()),
            gid_map: format!("{0} {0} 1\n", gid.as_raw()),
        }
    }

    /// Returns the roots of the private directories that are looked at when the command has ended.
    fn enter(&self, spec: &SandboxSpec, collector: Collector) -> io::Result<Vec<OwnedFd>> {
        let lifeline = self.lifeline.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        self.begin(lifeline)?;
        mount(None, c"/", None, libc::MS_REC | libc::MS_PRIVATE)?;
        let roots = self.hide_private(&spec.writable)?;
        hidden::cover(&self.hidden, &self.kept_in_place)?;
        init::split(lifeline, collector, || {
            own_processes(self.bounds_process_ids)
        })?;
        Ok(roots)
    }

    /// Returns the private directories that are looked at when the command has ended.
    fn looked_at(&self) -> impl Iterator<Item = &PathBuf> {
        self.private.iter().filter(|it| lost::is_looked_at(it))
    }

    /// Passes the roots of the private directories to the owner of the sandbox, with the number of files that each has before
    /// the command.
    fn pass_private(&self, roots: &[OwnedFd]) {
        let Some(lifeline) = &self.lifeline else {
            return;
        };
        let counts: io::Result<Vec<u64>> = roots.iter().map(lost::files).collect();
        let Ok(counts) = counts else { return };
        let counts: Vec<u8> = counts.iter().flat_map(|it| it.to_ne_bytes()).collect();
        let roots: Vec<BorrowedFd<'_>> = roots.iter().map(AsFd::as_fd).collect();
        // Without them, files that are gone after the command are not named.
        let _ = passing::pass_all(lifeline, &counts, &roots);
    }

    fn begin(&self, lifeline: &OwnedFd) -> io::Result<()> {
        let mut flags = libc::CLONE_NEWNS | libc::CLONE_NEWIPC | libc::CLONE_NEWPID;
        if self.has_loopback {
            flags |= libc::CLONE_NEWNET;
        }
        if self.keeps_users {
            unshare(flags)?;
        } else {
            unshare(flags | libc::CLONE_NEWUSER)?;
            seen_by_others(|| self.map_ids())?;
        }
        if self.has_loopback {
            start_loopback()?;
        }
        // Shared memory that nothing is attached to is not a process's. A kernel that refuses has a bound of its own.
        let _ = std::fs::write(SHARED_MEMORY, SHARED_MEMORY_PAGES);
        if let Some(proxy) = &self.proxy {
            passing::pass_listener(proxy)?;
        }
        // Their end is not waited for if no process holds them.
        let _ = passing::pass(lifeline, &std::fs::File::open("/proc/self/ns/mnt")?);
        Ok(())
    }

    fn map_ids(&self) -> io::Result<()> {
        std::fs::write("/proc/self/setgroups", "deny")?;
        std::fs::write("/proc/self/uid_map", &self.uid_map)?;
        std::fs::write("/proc/self/gid_map", &self.gid_map)
    }

    /// Covers directories, and binds back what of them the command has. Returns the roots of those that are looked at when the
    /// command has ended.
    fn hide_private(&self, roots: &[Root]) -> io::Result<Vec<OwnedFd>> {
        let opened = |(path, is_read_only): &(PathBuf, bool)| {
            let file = match roots.iter().find(|it| it.path() == path) {
                Some(root) => root.open()?,
                // A file that was removed meanwhile is not there for the command either.
                None => match rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
                {
                    Ok(file) => file,
                    Err(_) => return Ok(None),
                },
            };
            let is_read_only = *is_read_only || is_mounted_read_only(&file);
            Ok(Some((file, path.clone(), is_read_only)))
        };
        let kept: Vec<_> = self.kept.iter().map(opened).collect::<io::Result<_>>()?;
        // Landlock knows no rights of modes, owners, times and attributes.
        make_tree_read_only()?;
        let mut looked_at = Vec::new();
        for place in &self.private {
            // One that lies in another is covered with it.
            std::fs::create_dir_all(place)?;
            let flags = libc::MS_NOSUID | libc::MS_NODEV;
            mount_with(
                Some(c"none"),
                &c_path(place)?,
                Some(c"tmpfs"),
                flags,
                Some(self.private_size),
            )?;
            if lost::is_looked_at(place) {
                let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
                looked_at.push(rustix::fs::open(place, flags, Mode::empty())?);
            }
        }
        for (file, path, is_read_only) in kept.into_iter().flatten() {
            if !self.private.iter().any(|place| path.starts_with(place)) {
                bind(&file, &file, Access::read_only_if(is_read_only))?;
                continue;
            }
            make_place(&path, is_directory(&file)?)?;
            let place = open_without_links(&path)?;
            bind(&file, &place, Access::read_only_if(is_read_only))?;
        }
        own_terminals()?;
        Ok(looked_at)
    }
}

fn path_of(path: &CStr) -> &Path {
    Path::new(OsStr::from_bytes(path.to_bytes()))
}

/// Binds what is at a path over itself, following no link that was put into the path meanwhile.
fn bind_over_itself(path: &CStr, is_read_only: bool) -> io::Result<()> {
    let path = path_of(path);
    let opened = match open_without_links(path) {
        // A protected name may be a link itself: what it leads to is protected.
        Err(err) if err.raw_os_error() == Some(libc::ELOOP) => {
            open_without_links(&path.canonicalize()?)?
        }
        opened => opened?,
    };
    let is_read_only = is_read_only || is_mounted_read_only(&opened);
    bind(&opened, &opened, Access::read_only_if(is_read_only))
}

/// Does something while other processes of the user may look into this one, if that is what it takes: of one that is hidden
/// from them, the files below `/proc` are root's, and it cannot write its own. Who opens its memory in that moment can read
/// it until it executes something, so what waits for a call does this before there is any secret in it.
fn seen_by_others<T>(work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let before = rustix::process::dumpable_behavior()?;
    if before == DumpableBehavior::Dumpable || rustix::process::geteuid().is_root() {
        return work();
    }
    rustix::process::set_dumpable_behavior(DumpableBehavior::Dumpable)?;
    let done = work();
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    done
}

/// Makes what something can be bound over.
fn make_place(path: &Path, is_directory: bool) -> io::Result<()> {
    if path.exists() {
        return Ok(());
    }
    if is_directory {
        return std::fs::create_dir_all(path);
    }
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)?;
    }
    std::fs::File::create(path).map(drop)
}

/// Gives up every capability but those over files, for this process and every program that it starts, under any user:
/// which files are reached, the mounts and rules hold.
fn keep_file_capabilities() -> io::Result<()> {
    // Without FSETID the kernel takes the bits that give a file's rights from one that is written.
    let kept = CapabilitySet::CHOWN | CapabilitySet::DAC_OVERRIDE | CapabilitySet::FOWNER;
    drop_from_bounding_set(kept)?;
    let own = rustix::thread::capabilities(None)?;
    let sets = CapabilitySets {
        effective: own.effective & kept,
        permitted: own.permitted & kept,
        inheritable: CapabilitySet::empty(),
    };
    Ok(rustix::thread::set_capabilities(None, sets)?)
}

#[expect(
    unsafe_code,
    reason = "no safe interface drops all capabilities, later ones too"
)]
fn drop_from_bounding_set(kept: CapabilitySet) -> io::Result<()> {
    const LAST: libc::c_ulong = 63;
    for capability in (0..=LAST).filter(|it| kept.bits() & (1 << it) == 0) {
        // SAFETY: it takes numbers alone.
        let dropped = unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) };
        let err = io::Error::last_os_error();
        match (dropped, err.raw_os_error()) {
            (0, _) => {}
            // It is behind the last capability, or who may not drop them has none to gain.
            (_, Some(libc::EINVAL | libc::EPERM)) => return Ok(()),
            _ => return Err(err),
        }
    }
    Ok(())
}

#[expect(unsafe_code, reason = "no safe interface makes namespaces")]
fn unshare(flags: libc::c_int) -> io::Result<()> {
    // SAFETY: it takes no pointer, and this process has one thread.
    succeeded(unsafe { libc::unshare(flags) })
}

pub(crate) fn mount(
    from: Option<&CStr>,
    to: &CStr,
    kind: Option<&CStr>,
    flags: libc::c_ulong,
) -> io::Result<()> {
    mount_with(from, to, kind, flags, None)
}

#[expect(unsafe_code, reason = "no safe interface mounts")]
fn mount_with(
    from: Option<&CStr>,
    to: &CStr,
    kind: Option<&CStr>,
    flags: libc::c_ulong,
    options: Option<&CStr>,
) -> io::Result<()> {
    let pointer = |text: Option<&CStr>| text.map_or(std::ptr::null(), CStr::as_ptr);
    // SAFETY: each text ends with a zero and outlives the call; all but the second may be null.
    succeeded(unsafe {
        libc::mount(
            pointer(from),
            to.as_ptr(),
            pointer(kind),
            flags,
            pointer(options).cast(),
        )
    })
}

/// Returns whether something lies where it cannot be written. The kernel refuses to have that changed.
pub(crate) fn is_mounted_read_only(file: impl AsFd) -> bool {
    let found = rustix::fs::fstatvfs(file);
    found.is_ok_and(|it| it.f_flag.contains(StatVfsMountFlags::RDONLY))
}

/// Returns whether each PID namespace has a bound on process ids of its own. Before Linux 6.14 there is one for all, which
/// root would change for the whole machine.
fn has_process_ids_for_each() -> bool {
    const SINCE: (u32, u32) = (6, 14);
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release.split(['.', '-']).map_while(|it| it.parse().ok());
    let version = numbers.next().zip(numbers.next());
    version.is_some_and(|it| it >= SINCE)
}

/// Access to the content of a mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Full,
    ReadOnly,
    /// Not even a device in it can be opened.
    Nothing,
}

impl Access {
    pub(crate) fn read_only_if(is_read_only: bool) -> Self {
        match is_read_only {
            true => Self::ReadOnly,
            false => Self::Full,
        }
    }
}

/// Makes everything that is mounted read-only.
fn make_tree_read_only() -> io::Result<()> {
    set_read_only(c"/", true, true)
}

/// Makes a mount, or all below it too, read-only or writable. Only what was made so here can be made writable.
fn set_read_only(path: &CStr, is_read_only: bool, is_recursive: bool) -> io::Result<()> {
    let flags = if is_recursive { libc::AT_RECURSIVE } else { 0 };
    set_mount(
        libc::AT_FDCWD,
        path,
        flags,
        Access::read_only_if(is_read_only),
    )
}

#[expect(unsafe_code, reason = "no safe interface changes mounts")]
fn set_mount(
    directory: libc::c_int,
    path: &CStr,
    flags: libc::c_int,
    access: Access,
) -> io::Result<()> {
    let (attr_set, attr_clr) = match access {
        Access::Full => (0, libc::MOUNT_ATTR_RDONLY),
        Access::ReadOnly => (libc::MOUNT_ATTR_RDONLY, 0),
        Access::Nothing => (
            libc::MOUNT_ATTR_RDONLY
                | libc::MOUNT_ATTR_NOSUID
                | libc::MOUNT_ATTR_NODEV
                | libc::MOUNT_ATTR_NOEXEC,
            0,
        ),
    };
    let change = libc::mount_attr {
        attr_set,
        attr_clr,
        propagation: 0,
        userns_fd: 0,
    };
    // SAFETY: the text ends with a zero, the structure has the size that is said, and both outlive the call.
    called(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            directory,
            path.as_ptr(),
            flags,
            &change,
            size_of::<libc::mount_attr>(),
        )
    })
    .map(drop)
}

/// Binds what is opened, with all that is mounted below it, over something else that is opened. Paths play no part.
#[expect(unsafe_code, reason = "no safe interface binds by descriptors")]
pub(crate) fn bind(from: &OwnedFd, to: &OwnedFd, access: Access) -> io::Result<()> {
    const EMPTY: &CStr = c"";
    let recursive = libc::AT_RECURSIVE.cast_unsigned() | libc::AT_EMPTY_PATH.cast_unsigned();
    let flags = libc::OPEN_TREE_CLONE | libc::OPEN_TREE_CLOEXEC | recursive;
    // SAFETY: the text is empty and static, and what is returned is a new descriptor.
    let tree = unsafe {
        let tree = libc::syscall(libc::SYS_open_tree, from.as_raw_fd(), EMPTY.as_ptr(), flags);
        let tree = libc::c_int::try_from(called(tree)?).map_err(io::Error::other)?;
        OwnedFd::from_raw_fd(tree)
    };
    set_mount(tree.as_raw_fd(), EMPTY, libc::AT_EMPTY_PATH, access)?;
    let flags = libc::MOVE_MOUNT_F_EMPTY_PATH | libc::MOVE_MOUNT_T_EMPTY_PATH;
    // SAFETY: it takes numbers, and texts that are empty and static.
    called(unsafe {
        libc::syscall(
            libc::SYS_move_mount,
            tree.as_raw_fd(),
            EMPTY.as_ptr(),
            to.as_raw_fd(),
            EMPTY.as_ptr(),
            flags,
        )
    })
    .map(drop)
}

/// Mounts the processes of this PID namespace. Containers that hide a part of theirs do not let that be; the namespace keeps
/// the others out of reach all the same.
fn own_processes(bounds_process_ids: bool) -> io::Result<()> {
    let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
    match mount(Some(c"proc"), c"/proc", Some(c"proc"), flags) {
        Ok(()) => {
            if bounds_process_ids {
                let _ = std::fs::write(PROCESS_IDS, PROCESS_IDS_MAX);
            }
            set_read_only(c"/proc", true, false)
        }
        Err(err) if err.raw_os_error() == Some(libc::EPERM) => Ok(()),
        Err(err) => Err(err),
    }
}

/// Covers the terminals of others, which could be written to, by terminals of the command's own.
fn own_terminals() -> io::Result<()> {
    let flags = libc::MS_NOSUID | libc::MS_NOEXEC;
    mount(Some(c"devpts"), c"/dev/pts", Some(c"devpts"), flags)?;
    rustix::fs::chmod(c"/dev/pts/ptmx", Mode::from_raw_mode(0o666))?;
    mount(Some(c"/dev/pts/ptmx"), c"/dev/ptmx", None, libc::MS_BIND)
}

/// The loopback of a new namespace is down.
#[expect(
    unsafe_code,
    reason = "no safe interface sets the flags of a network interface"
)]
fn start_loopback() -> io::Result<()> {
    use rustix::net::{AddressFamily, SocketType};
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    // SAFETY: all zeros are a value of this structure of numbers.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = from.cast_signed();
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: the structure is the one that this request reads, and outlives the call.
    succeeded(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &request) })
}

fn succeeded(returned: libc::c_int) -> io::Result<()> {
    called(returned.into()).map(drop)
}

fn called(returned: libc::c_long) -> io::Result<libc::c_long> {
    match returned {
        -1 => Err(io::Error::last_os_error()),
        returned => Ok(returned),
    }
}
