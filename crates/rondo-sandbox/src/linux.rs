//! Namespaces, then Landlock, then seccomp.
//!
//! Landlock has no rule that denies: what is protected inside of a writable directory is bound read-only over itself
//! in a mount namespace. Landlock comes after the mounts, since it forbids to undo them; seccomp comes last, since it
//! forbids both. Where there are no namespaces, Landlock and seccomp are all there is.

use crate::files::{FileRules, is_directory};
use crate::filter::FilterOptions;
use crate::nested::GIT;
use crate::protection::Protected;
use crate::worktree::Worktree;
use crate::{Enforcement, NetworkAccess, SandboxMode, SandboxSpec, filter, passing};
use rustix::fs::{Mode, OFlags};
use seccompiler::BpfProgram;
use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

pub use crate::protection::Protection;

/// Directories that everybody shares: sockets of services, and files for others to find. A command has its own.
const SHARED: [&str; 4] = ["/tmp", "/var/tmp", "/dev/shm", "/run"];

pub(crate) fn confine(command: &mut Command, spec: &SandboxSpec) -> io::Result<Protection> {
    let real = |path: &PathBuf| path.canonicalize();
    let writable: Vec<PathBuf> = spec.writable.iter().map(real).collect::<io::Result<_>>()?;
    let worktrees: Vec<Worktree> = match spec.enforcement {
        Enforcement::Full => writable
            .iter()
            .filter_map(|it| Worktree::find(it))
            .collect(),
        // What is written of it could not be told from what is put back.
        Enforcement::Partial => Vec::new(),
    };
    let protected = Protected::find(spec.mode, &writable, &worktrees);
    let repositories = worktrees.iter().map(|it| it.common.clone());
    let writable: Vec<PathBuf> = writable.into_iter().chain(repositories).collect();
    let mut entry = Entry::new(spec, &writable, &protected, command.get_current_dir())?;
    let mut protection = Protection::new(spec, protected)?;
    if let (Some(socket), Some(namespaces), true) =
        (&spec.proxy, &mut entry.namespaces, spec.has_proxy())
    {
        let proxy = passing::connected(socket)?;
        namespaces.proxy = Some(proxy.try_clone()?);
        protection.serves_until_dropped(proxy);
    }
    enter_before_exec(command, entry);
    Ok(protection)
}

#[expect(
    unsafe_code,
    reason = "a process can only confine itself, between fork and exec"
)]
fn enter_before_exec(command: &mut Command, entry: Entry) {
    // SAFETY: the closure allocates, which the C library allows after a fork; it takes no other lock, and starts
    // no thread.
    unsafe { command.pre_exec(move || entry.enter()) };
}

/// Everything that is known before the fork.
struct Entry {
    /// None where there are none.
    namespaces: Option<Namespaces>,
    files: FileRules,
    filter: BpfProgram,
}

/// What a command sees in namespaces of its own.
struct Namespaces {
    /// The directories that are covered by empty ones of the command's own.
    private: Vec<PathBuf>,
    /// What is bound again, parents first, and whether it is read-only then: what is written, and what of the other
    /// roots lies in the covered directories.
    kept: Vec<(PathBuf, bool)>,
    /// What is bound over itself, and whether it is read-only then.
    bound: Vec<(CString, bool)>,
    directory: Option<PathBuf>,
    has_loopback: bool,
    /// Gets the listener of the command's proxy.
    proxy: Option<OwnedFd>,
    uid_map: String,
    gid_map: String,
}

impl Entry {
    fn new(
        spec: &SandboxSpec,
        writable: &[PathBuf],
        protected: &Protected,
        directory: Option<&Path>,
    ) -> io::Result<Self> {
        let namespaces = match spec.enforcement {
            Enforcement::Full => Some(Namespaces::new(spec, writable, protected, directory)?),
            Enforcement::Partial => None,
        };
        let private = namespaces.as_ref().map_or(&[][..], |it| &it.private);
        let files = FileRules::new(spec, writable, private)?;
        let filter = filter::program(FilterOptions {
            has_sockets: match spec.network {
                NetworkAccess::Host => true,
                NetworkAccess::Loopback => namespaces.is_some(),
                NetworkAccess::Nothing => false,
            },
            scopes_signals: files.scopes_signals(),
        })?;
        Ok(Self {
            namespaces,
            files,
            filter,
        })
    }

    fn enter(&self) -> io::Result<()> {
        match &self.namespaces {
            Some(namespaces) => namespaces.enter()?,
            // In a namespace of the user's own, they reach nothing outside of it.
            None => drop_capabilities()?,
        }
        self.files.restrict()?;
        seccompiler::apply_filter(&self.filter).map_err(io::Error::other)
    }
}

impl Namespaces {
    fn new(
        spec: &SandboxSpec,
        writable: &[PathBuf],
        protected: &Protected,
        directory: Option<&Path>,
    ) -> io::Result<Self> {
        let reads_only = spec.mode == SandboxMode::ReadOnly;
        let shared = SHARED.iter().map(PathBuf::from);
        let home = spec.home.iter().filter_map(|it| it.canonicalize().ok());
        let is_private = |it: &PathBuf| {
            it.is_dir() && !it.is_symlink() && !writable.iter().any(|root| it.starts_with(root))
        };
        let private: Vec<PathBuf> = shared.chain(home).filter(is_private).collect();
        let roots = writable.iter().map(|it| (it.clone(), reads_only));
        let roots = roots.chain(spec.readable.iter().map(|it| (it.clone(), true)));
        let roots = roots.chain(spec.scratch.iter().map(|it| (it.clone(), false)));
        // What is to be written is bound in any case: all else is made read-only.
        let is_covered =
            |it: &(PathBuf, bool)| !it.1 || private.iter().any(|place| it.0.starts_with(place));
        let mut kept: Vec<(PathBuf, bool)> = roots.filter(is_covered).collect();
        kept.sort();
        kept.dedup();
        let mountable = protected.paths.iter();
        let mountable = mountable.filter(|path| protected.can_be_mounted(path));
        let bound = mountable.map(|path| {
            let is_place = path.ends_with(GIT) && path.is_dir() || protected.own.contains(path);
            Ok((c_path(path)?, !is_place))
        });
        let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
        Ok(Self {
            bound: bound.collect::<io::Result<_>>()?,
            private,
            kept,
            directory: directory.map(Path::to_owned),
            has_loopback: spec.network == NetworkAccess::Loopback,
            proxy: None,
            uid_map: format!("{0} {0} 1\n", uid.as_raw()),
            gid_map: format!("{0} {0} 1\n", gid.as_raw()),
        })
    }

    fn enter(&self) -> io::Result<()> {
        self.begin()?;
        self.mount()
    }

    fn begin(&self) -> io::Result<()> {
        let mut flags = libc::CLONE_NEWUSER | libc::CLONE_NEWNS | libc::CLONE_NEWIPC;
        if self.has_loopback {
            flags |= libc::CLONE_NEWNET;
        }
        unshare(flags)?;
        std::fs::write("/proc/self/setgroups", "deny")?;
        std::fs::write("/proc/self/uid_map", &self.uid_map)?;
        std::fs::write("/proc/self/gid_map", &self.gid_map)?;
        if self.has_loopback {
            start_loopback()?;
        }
        if let Some(proxy) = &self.proxy {
            passing::pass_listener(proxy)?;
        }
        Ok(())
    }

    fn mount(&self) -> io::Result<()> {
        mount(None, c"/", None, libc::MS_REC | libc::MS_PRIVATE)?;
        self.hide_private()?;
        for (path, is_read_only) in &self.bound {
            mount(Some(path), path, None, libc::MS_BIND | libc::MS_REC)?;
            set_read_only(path, *is_read_only, false)?;
        }
        if let Some(directory) = &self.directory {
            // It may lie in a directory that is covered now, and is empty then.
            let _ = make_place(directory, true);
            // Otherwise what was bound over it would not be seen from there.
            rustix::process::chdir(directory)?;
        }
        Ok(())
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

fn c_path(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(io::Error::other)
}

#[expect(unsafe_code, reason = "no safe interface makes namespaces")]
fn unshare(flags: libc::c_int) -> io::Result<()> {
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
