//! Namespaces, then Landlock, then seccomp.
//!
//! Landlock has no rule that denies: what is protected inside of a writable directory is bound read-only over itself
//! in a mount namespace. Landlock comes after the mounts, since it forbids to undo them; seccomp comes last, since it
//! forbids both.

use crate::roots::PROTECTED;
use crate::{SandboxMode, SandboxSpec, filter};
use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreatedAttr, Scope,
};
use rustix::fs::{Mode, OFlags};
use seccompiler::BpfProgram;
use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The rights that are handled: those of Linux 6.12, which has scopes of signals and abstract sockets.
const RIGHTS: ABI = ABI::V6;
/// Directories that everybody shares: sockets of services, and files for others to find. A command has its own.
const SHARED: [&str; 4] = ["/tmp", "/var/tmp", "/dev/shm", "/run"];
/// Devices that a command may write to.
const DEVICES: [&str; 8] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
];

pub(crate) fn confine(command: &mut Command, spec: &SandboxSpec) -> io::Result<()> {
    let entry = Entry::new(spec, command.get_current_dir())?;
    enter_before_exec(command, entry);
    Ok(())
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
    mode: SandboxMode,
    writable: Vec<PathBuf>,
    readable: Vec<PathBuf>,
    /// The directories that are covered by empty ones of the command's own.
    private: Vec<PathBuf>,
    /// What is bound again, parents first, and whether it is read-only then: what is written, and what of the other
    /// roots lies in the covered directories.
    kept: Vec<(PathBuf, bool)>,
    /// What is bound over itself, and whether it is read-only then.
    bound: Vec<(CString, bool)>,
    directory: Option<CString>,
    has_network: bool,
    uid_map: String,
    gid_map: String,
    filters: [BpfProgram; 2],
}

impl Entry {
    fn new(spec: &SandboxSpec, directory: Option<&Path>) -> io::Result<Self> {
        let real = |path: &PathBuf| path.canonicalize();
        let writable: Vec<PathBuf> = spec.writable.iter().map(real).collect::<io::Result<_>>()?;
        let reads_only = spec.mode == SandboxMode::ReadOnly;
        let shared = SHARED.iter().map(PathBuf::from);
        let home = spec.home.iter().filter_map(|it| it.canonicalize().ok());
        let is_private = |it: &PathBuf| {
            it.is_dir() && !it.is_symlink() && !writable.iter().any(|root| it.starts_with(root))
        };
        let private: Vec<PathBuf> = shared.chain(home).filter(is_private).collect();
        let roots = writable.iter().map(|it| (it.clone(), reads_only));
        let roots = roots.chain(spec.readable.iter().map(|it| (it.clone(), true)));
        // What is to be written is bound in any case: all else is made read-only.
        let is_covered =
            |it: &(PathBuf, bool)| !it.1 || private.iter().any(|place| it.0.starts_with(place));
        let mut kept: Vec<(PathBuf, bool)> = roots.filter(is_covered).collect();
        kept.sort();
        let mut bound = Vec::new();
        for path in writable
            .iter()
            .flat_map(|root| PROTECTED.map(|it| root.join(it)))
        {
            // A link is protected as little as what it leads to: neither can be written through the other.
            if path.symlink_metadata().is_ok_and(|it| !it.is_symlink()) {
                bound.push((c_path(&path)?, !path.ends_with(".git") || path.is_file()));
            }
        }
        let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
        Ok(Self {
            mode: spec.mode,
            private,
            kept,
            writable,
            readable: spec.readable.clone(),
            bound,
            directory: directory.map(c_path).transpose()?,
            has_network: spec.has_network,
            uid_map: format!("{0} {0} 1\n", uid.as_raw()),
            gid_map: format!("{0} {0} 1\n", gid.as_raw()),
            filters: filter::programs()?,
        })
    }

    fn enter(&self) -> io::Result<()> {
        self.enter_namespaces()?;
        self.mount()?;
        self.restrict_files()?;
        for filter in &self.filters {
            seccompiler::apply_filter(filter).map_err(io::Error::other)?;
        }
        Ok(())
    }

    fn enter_namespaces(&self) -> io::Result<()> {
        let mut flags = libc::CLONE_NEWUSER | libc::CLONE_NEWNS | libc::CLONE_NEWIPC;
        if !self.has_network {
            flags |= libc::CLONE_NEWNET;
        }
        unshare(flags)?;
        std::fs::write("/proc/self/setgroups", "deny")?;
        std::fs::write("/proc/self/uid_map", &self.uid_map)?;
        std::fs::write("/proc/self/gid_map", &self.gid_map)?;
        if !self.has_network {
            start_loopback()?;
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
            // Otherwise what was bound over it would not be seen from there.
            rustix::process::chdir(directory.as_c_str())?;
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
            make_place(&path, Path::new(&from).is_dir())?;
            let (from, to) = (CString::new(from)?, c_path(&path)?);
            mount(Some(&from), &to, None, libc::MS_BIND | libc::MS_REC)?;
            set_read_only(&to, is_read_only, false)?;
        }
        own_terminals()
    }

    fn restrict_files(&self) -> io::Result<()> {
        let all = AccessFs::from_all(RIGHTS);
        let reads = AccessFs::from_read(RIGHTS);
        let ruleset = Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(all)
            .and_then(|it| it.scope(Scope::AbstractUnixSocket | Scope::Signal))
            .and_then(Ruleset::create)
            .map_err(io::Error::other)?;
        let own = match self.mode {
            SandboxMode::ReadOnly => reads,
            SandboxMode::WorkspaceWrite => all,
        };
        let devices = DEVICES.iter().map(Path::new);
        let allowed = (self.readable.iter().map(|it| (it.as_path(), reads)))
            .chain(self.writable.iter().map(|it| (it.as_path(), own)))
            .chain(self.private.iter().map(|it| (it.as_path(), all)))
            .chain(devices.map(|it| (it, all)));
        let mut ruleset = ruleset;
        for (path, rights) in allowed {
            let Ok(opened) = PathFd::new(path) else {
                continue;
            };
            let rights = match path.is_dir() {
                true => rights,
                false => rights & of_files(),
            };
            let rule = PathBeneath::new(opened, rights);
            ruleset = ruleset.add_rule(rule).map_err(io::Error::other)?;
        }
        ruleset.restrict_self().map_err(io::Error::other)?;
        Ok(())
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

/// The rights that a file can have which is no directory.
fn of_files() -> BitFlags<AccessFs> {
    AccessFs::from_file(RIGHTS)
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
