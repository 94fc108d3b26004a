//! Namespaces, then Landlock, then seccomp.
//!
//! Landlock has no rule that denies: what is protected inside of a writable directory is bound read-only over itself
//! in a mount namespace. Landlock comes after the mounts, since it forbids to undo them; seccomp comes last, since it
//! forbids both. Where there are no namespaces, Landlock and seccomp are all there is.

use crate::covered::c_path;
use crate::files::{FileRules, is_directory};
use crate::filter::FilterOptions;
use crate::ground::Ground;
use crate::protection::Protected;
use crate::reusable;
use crate::worktree::Worktree;
use crate::{Enforcement, NetworkAccess, SandboxMode, SandboxSpec, filter, passing};
use landlock::RulesetCreated;
use rustix::fs::{Mode, OFlags};
use rustix::process::DumpableBehavior;
use seccompiler::BpfProgram;
use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

pub use crate::covered::Covered;
pub use crate::protection::Protection;
pub use crate::reusable::Reusable;

/// Directories that everybody shares: sockets of services, and files for others to find. A command has its own.
const SHARED: [&str; 4] = ["/tmp", "/var/tmp", "/dev/shm", "/run"];
/// The terminals of a command's own.
const TERMINALS: [&str; 2] = ["/dev/pts", "/dev/pts/ptmx"];

pub(crate) fn confine(command: &mut Command, spec: &SandboxSpec) -> io::Result<Protection> {
    let mut preparation = Preparation::new(spec.clone())?;
    let (protection, covered) = preparation.protect()?;
    let directory = command.get_current_dir().map(Path::to_owned);
    enter_before_exec(command, move || {
        preparation
            .enter()?
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
/// What is protected is looked at for each command, when it comes.
pub struct Preparation {
    mode: SandboxMode,
    enforcement: Enforcement,
    /// The directories that commands work in, where they really are.
    writable: Vec<PathBuf>,
    worktrees: Vec<Worktree>,
    /// None where there are none.
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
    pub fn new(spec: SandboxSpec) -> io::Result<Self> {
        let (roots, worktrees) = roots(&spec)?;
        let writable = written(&roots, &worktrees);
        let mut held = Protection::default();
        let mut namespaces = match spec.enforcement {
            Enforcement::Full => Some(Namespaces::new(&spec, &writable)?),
            Enforcement::Partial => None,
        };
        if let Some(namespaces) = &mut namespaces {
            let (ours, theirs) = UnixStream::pair()?;
            namespaces.mounts_held_by = Some(theirs.into());
            held.holds_mounts(ours.into());
        }
        if let (Some(socket), Some(namespaces), true) =
            (&spec.proxy, &mut namespaces, spec.has_proxy())
        {
            let proxy = passing::connected(socket)?;
            namespaces.proxy = Some(proxy.try_clone()?);
            held.serves_until_dropped(proxy);
        }
        let private = namespaces.as_ref().map_or(&[][..], |it| &it.private);
        let files = FileRules::new(&spec, &writable, private)?;
        let filter = filter::program(FilterOptions {
            has_sockets: match spec.network {
                NetworkAccess::Host => true,
                NetworkAccess::Loopback => namespaces.is_some(),
                NetworkAccess::Nothing => false,
            },
            scopes_signals: files.scopes_signals(),
        })?;
        let (mode, enforcement) = (spec.mode, spec.enforcement);
        Ok(Self {
            mode,
            enforcement,
            ground: Ground::new(spec, files.paths())?,
            writable: roots,
            worktrees,
            namespaces,
            files,
            filter,
            held: Some(held),
        })
    }

    /// Returns whether all that the sandbox is made of is still where it was found.
    #[must_use]
    pub fn is_current(&self) -> bool {
        let found = roots(&self.ground.spec);
        let is_same = |(roots, worktrees): (Vec<PathBuf>, Vec<Worktree>)| {
            roots == self.writable && worktrees == self.worktrees
        };
        let covered = || private(&self.ground.spec, &written(&self.writable, &self.worktrees));
        let namespaces = self.namespaces.as_ref();
        let are_covered = namespaces.is_none_or(|it| it.private == covered());
        are_covered && found.is_ok_and(is_same) && self.ground.is_unchanged()
    }

    /// Looks at what is protected, for the one command that this is for. Returns what is to be put back when it has
    /// ended, and what it is to be told before it is executed.
    ///
    /// # Errors
    /// When what is protected cannot be kept.
    pub fn protect(&mut self) -> io::Result<(Protection, Covered)> {
        let protected = Protected::find(self.mode, &self.writable, &self.worktrees);
        let covered = match self.enforcement {
            Enforcement::Full => Covered::new(&protected)?,
            Enforcement::Partial => Covered::default(),
        };
        let mut protection = Protection::new(self.enforcement, protected)?;
        protection.take_held(self.held.take().unwrap_or_default());
        Ok((protection, covered))
    }

    /// Enters the sandbox as far as it does not depend on the command.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn enter(&self) -> io::Result<Entered<'_>> {
        self.enter_by(None, false)
    }

    /// Enters it as [`Self::enter`] does, and opens what the next command of this sandbox can enter it by.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn enter_first(&self) -> io::Result<Entered<'_>> {
        self.enter_by(None, true)
    }

    fn enter_by(&self, users: Option<&Reusable>, has_next: bool) -> io::Result<Entered<'_>> {
        match &self.namespaces {
            Some(namespaces) => namespaces.enter(users)?,
            // In a namespace of the user's own, they reach nothing outside of it.
            None => drop_capabilities()?,
        }
        let rules = self.files.ruleset()?;
        let for_next = match &self.namespaces {
            Some(_) if has_next => {
                let private = self.reusable().map(Namespaces::own_files);
                reusable::opened(&rules, private.as_deref())?
            }
            _ => Vec::new(),
        };
        let entered = Entered {
            rules: Some(rules),
            filter: &self.filter,
            has_namespaces: self.namespaces.is_some(),
            for_next,
        };
        match self.mode {
            // Nothing is protected from what writes nothing, so nothing is left to be mounted.
            SandboxMode::ReadOnly => entered.restricted(),
            SandboxMode::WorkspaceWrite => Ok(entered),
        }
    }

    /// Enters the sandbox where a command of it has been before, which has ended: its mounts and rules only where it has left
    /// them untouched.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn enter_again(&self, reusable: &Reusable) -> io::Result<Entered<'_>> {
        if !reusable.enter()? {
            return self.enter_by(Some(reusable), true);
        }
        seccompiler::apply_filter(&self.filter).map_err(io::Error::other)?;
        Ok(Entered {
            rules: None,
            filter: &self.filter,
            has_namespaces: true,
            for_next: Vec::new(),
        })
    }

    /// Returns the namespaces that another command can enter after this one: nothing is bound over for one command in
    /// them, and no socket of one is left.
    fn reusable(&self) -> Option<&Namespaces> {
        let is_reusable = |it: &&Namespaces| {
            self.mode == SandboxMode::ReadOnly && !it.has_loopback && it.proxy.is_none()
        };
        self.namespaces.as_ref().filter(is_reusable)
    }
}

/// Returns all that is written: the directories, and the repositories of those that are linked worktrees.
fn written(roots: &[PathBuf], worktrees: &[Worktree]) -> Vec<PathBuf> {
    let repositories = worktrees.iter().map(|it| it.common.clone());
    roots.iter().cloned().chain(repositories).collect()
}

/// Returns the directories that are covered by empty ones of the command's own.
fn private(spec: &SandboxSpec, writable: &[PathBuf]) -> Vec<PathBuf> {
    let shared = SHARED.iter().map(PathBuf::from);
    let home = spec.home.iter().filter_map(|it| it.canonicalize().ok());
    let is_private = |it: &PathBuf| {
        it.is_dir() && !it.is_symlink() && !writable.iter().any(|root| it.starts_with(root))
    };
    shared.chain(home).filter(is_private).collect()
}

/// Returns where the writable directories really are, and the repositories of those that are linked worktrees.
fn roots(spec: &SandboxSpec) -> io::Result<(Vec<PathBuf>, Vec<Worktree>)> {
    let real = |path: &PathBuf| path.canonicalize();
    let writable: Vec<PathBuf> = spec.writable.iter().map(real).collect::<io::Result<_>>()?;
    let worktrees = match spec.enforcement {
        Enforcement::Full => writable
            .iter()
            .filter_map(|it| Worktree::find(it))
            .collect(),
        // What is written of it could not be told from what is put back.
        Enforcement::Partial => Vec::new(),
    };
    Ok((writable, worktrees))
}

/// A process that is in its sandbox, as far as it does not depend on the command that it executes.
pub struct Entered<'a> {
    /// None once they hold.
    rules: Option<RulesetCreated>,
    filter: &'a BpfProgram,
    has_namespaces: bool,
    for_next: Vec<OwnedFd>,
}

impl Entered<'_> {
    /// Takes what the next command of this sandbox can enter it by, as [`Reusable`]; nothing where there are no namespaces.
    pub fn for_next(&mut self) -> Vec<OwnedFd> {
        std::mem::take(&mut self.for_next)
    }

    /// Enters the rest: what is protected is covered, the directory is the command's, and nothing of it can be undone.
    ///
    /// # Errors
    /// When the kernel refuses, or the directory is none.
    pub fn complete(self, covered: &Covered, directory: Option<&Path>) -> io::Result<()> {
        if self.has_namespaces {
            for (path, is_read_only) in &covered.0 {
                mount(Some(path), path, None, libc::MS_BIND | libc::MS_REC)?;
                set_read_only(path, *is_read_only, false)?;
            }
            if let Some(directory) = directory {
                // It may lie in a directory that is covered now, and is empty then.
                let _ = make_place(directory, true);
                // Otherwise what was bound over it would not be seen from there.
                rustix::process::chdir(directory)?;
            }
        }
        self.restricted().map(drop)
    }

    /// Has the rules of files and the filter hold, unless they do.
    fn restricted(mut self) -> io::Result<Self> {
        if let Some(rules) = self.rules.take() {
            rules.restrict_self().map_err(io::Error::other)?;
            seccompiler::apply_filter(self.filter).map_err(io::Error::other)?;
        }
        Ok(self)
    }
}

/// What a command sees in namespaces of its own.
struct Namespaces {
    /// The directories that are covered by empty ones of the command's own.
    private: Vec<PathBuf>,
    /// What is bound again, parents first, and whether it is read-only then: what is written, and what of the other
    /// roots lies in the covered directories.
    kept: Vec<(PathBuf, bool)>,
    has_loopback: bool,
    /// Gets the listener of the command's proxy.
    proxy: Option<OwnedFd>,
    /// Gets what holds the mounts. Otherwise the last process in them would take them down as it ends, and whoever
    /// waits for it would wait for that.
    mounts_held_by: Option<OwnedFd>,
    uid_map: String,
    gid_map: String,
}

impl Namespaces {
    fn new(spec: &SandboxSpec, writable: &[PathBuf]) -> io::Result<Self> {
        let reads_only = spec.mode == SandboxMode::ReadOnly;
        let private = private(spec, writable);
        let roots = writable.iter().map(|it| (it.clone(), reads_only));
        let roots = roots.chain(spec.readable.iter().map(|it| (it.clone(), true)));
        let roots = roots.chain(spec.scratch.iter().map(|it| (it.clone(), false)));
        // What is to be written is bound in any case: all else is made read-only.
        let is_covered =
            |it: &(PathBuf, bool)| !it.1 || private.iter().any(|place| it.0.starts_with(place));
        let mut kept: Vec<(PathBuf, bool)> = roots.filter(is_covered).collect();
        kept.sort();
        kept.dedup();
        let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
        Ok(Self {
            private,
            kept,
            has_loopback: spec.network == NetworkAccess::Loopback,
            proxy: None,
            mounts_held_by: None,
            uid_map: format!("{0} {0} 1\n", uid.as_raw()),
            gid_map: format!("{0} {0} 1\n", gid.as_raw()),
        })
    }

    fn enter(&self, users: Option<&Reusable>) -> io::Result<()> {
        self.begin(users)?;
        mount(None, c"/", None, libc::MS_REC | libc::MS_PRIVATE)?;
        self.hide_private()
    }

    fn begin(&self, users: Option<&Reusable>) -> io::Result<()> {
        let mut flags = libc::CLONE_NEWNS | libc::CLONE_NEWIPC;
        if self.has_loopback {
            flags |= libc::CLONE_NEWNET;
        }
        match users {
            Some(users) => {
                users.enter_users()?;
                unshare(flags)?;
            }
            None => {
                unshare(flags | libc::CLONE_NEWUSER)?;
                seen_by_others(|| self.map_ids())?;
            }
        }
        if self.has_loopback {
            start_loopback()?;
        }
        if let Some(proxy) = &self.proxy {
            passing::pass_listener(proxy)?;
        }
        if let Some(holder) = &self.mounts_held_by {
            // Nobody waits where nobody holds them.
            let _ = passing::pass(holder, &std::fs::File::open("/proc/self/ns/mnt")?);
        }
        Ok(())
    }

    fn map_ids(&self) -> io::Result<()> {
        std::fs::write("/proc/self/setgroups", "deny")?;
        std::fs::write("/proc/self/uid_map", &self.uid_map)?;
        std::fs::write("/proc/self/gid_map", &self.gid_map)
    }

    /// Returns the files in these that are of their own.
    fn own_files(&self) -> Vec<PathBuf> {
        let bound: Vec<PathBuf> = self.kept.iter().map(|it| it.0.clone()).collect();
        let between = reusable::between(&bound, &self.private);
        let terminals = TERMINALS.iter().map(PathBuf::from);
        let private = self.private.iter().cloned();
        private.chain(between).chain(terminals).collect()
    }

    /// Covers directories, and binds back what of them the command has.
    fn hide_private(&self) -> io::Result<()> {
        let opened = |(path, is_read_only): &(PathBuf, bool)| {
            let file = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
            Some((file.ok()?, path.clone(), *is_read_only))
        };
        let kept: Vec<_> = self.kept.iter().filter_map(opened).collect();
        // Landlock knows no rights of modes, owners, times and attributes.
        make_tree_read_only()?;
        for place in &self.private {
            // One that lies in another is covered with it.
            std::fs::create_dir_all(place)?;
            let flags = libc::MS_NOSUID | libc::MS_NODEV;
            mount(Some(c"none"), &c_path(place)?, Some(c"tmpfs"), flags)?;
        }
        for (file, path, is_read_only) in kept {
            let from = format!("/proc/self/fd/{}", file.as_raw_fd());
            make_place(&path, is_directory(&file)?)?;
            let (from, to) = (CString::new(from)?, c_path(&path)?);
            mount(Some(&from), &to, None, libc::MS_BIND | libc::MS_REC)?;
            set_read_only(&to, is_read_only, false)?;
        }
        own_terminals()
    }
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

/// Has no program that is started gain a capability but those to change files, whoever runs it: files are what the
/// rules hold.
#[expect(unsafe_code, reason = "no safe interface drops capabilities")]
fn drop_capabilities() -> io::Result<()> {
    const FILES: [libc::c_ulong; 4] = [0, 1, 3, 4];
    const LAST: libc::c_ulong = 63;
    for capability in (0..=LAST).filter(|it| !FILES.contains(it)) {
        // SAFETY: it takes numbers alone.
        let dropped = unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) };
        let err = io::Error::last_os_error();
        match (dropped, err.raw_os_error()) {
            // Not all numbers are capabilities, and who may not drop them has none to gain.
            (0, _) | (_, Some(libc::EINVAL | libc::EPERM)) => {}
            _ => return Err(err),
        }
    }
    Ok(())
}

#[expect(unsafe_code, reason = "no safe interface makes namespaces")]
pub(crate) fn unshare(flags: libc::c_int) -> io::Result<()> {
    // SAFETY: it takes no pointer, and this process has one thread.
    succeeded(unsafe { libc::unshare(flags) })
}

#[expect(unsafe_code, reason = "no safe interface mounts")]
fn mount(
    from: Option<&CStr>,
    to: &CStr,
    kind: Option<&CStr>,
    flags: libc::c_ulong,
) -> io::Result<()> {
    let pointer = |text: Option<&CStr>| text.map_or(std::ptr::null(), CStr::as_ptr);
    // SAFETY: each text ends with a zero and outlives the call; the last may be null.
    succeeded(unsafe {
        libc::mount(
            pointer(from),
            to.as_ptr(),
            pointer(kind),
            flags,
            std::ptr::null(),
        )
    })
}

/// Makes everything that is mounted read-only.
fn make_tree_read_only() -> io::Result<()> {
    set_read_only(c"/", true, true)
}

/// Makes a mount, or all below it too, read-only or writable. Only what was made so here can be made writable.
#[expect(unsafe_code, reason = "no safe interface changes mounts")]
fn set_read_only(path: &CStr, is_read_only: bool, is_recursive: bool) -> io::Result<()> {
    let flag = libc::MOUNT_ATTR_RDONLY;
    let change = libc::mount_attr {
        attr_set: if is_read_only { flag } else { 0 },
        attr_clr: if is_read_only { 0 } else { flag },
        propagation: 0,
        userns_fd: 0,
    };
    let recursive = if is_recursive { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: the text ends with a zero, the structure has the size that is said, and both outlive the call.
    let returned = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            path.as_ptr(),
            recursive,
            &change,
            size_of::<libc::mount_attr>(),
        )
    };
    match returned {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
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
    match returned {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
