//! Which files a command may reach, as rules of Landlock, and which processes it may signal.

use crate::{Enforcement, Root, SandboxMode, SandboxSpec};
use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, Scope,
};
use rustix::fs::{FileType, Mode, OFlags};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

/// The rights that are handled: those of Linux 6.12, which has scopes of signals and abstract sockets.
const RIGHTS: ABI = ABI::V6;
/// The least that holds anything: before Linux 6.2, every file could be truncated.
const RIGHTS_MIN: ABI = ABI::V3;
/// Devices that a command may write to.
const DEVICES: [&str; 6] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
];
/// Terminals, if a command has its own.
const TERMINALS: [&str; 2] = ["/dev/ptmx", "/dev/pts"];
/// Directory of the terminals of others and of disks; without terminals of its own, a command reads nothing here.
const ALL_DEVICES: &str = "/dev";

/// Access of a command to files.
pub(crate) struct FileRules {
    rights: ABI,
    /// Each path, and what may be done below it.
    allowed: Vec<(PathBuf, BitFlags<AccessFs>)>,
    /// The directories among them that no other may take the place of.
    roots: Vec<Root>,
}

impl FileRules {
    /// Makes the rules; `private` are directories of the command's own.
    ///
    /// # Errors
    /// When the kernel has fewer rights than are needed.
    pub(crate) fn new(
        spec: &SandboxSpec,
        writable: &[PathBuf],
        private: &[PathBuf],
    ) -> io::Result<Self> {
        let rights = rights(spec.enforcement)?;
        let (all, reads) = (AccessFs::from_all(rights), AccessFs::from_read(rights));
        let own = match spec.mode {
            SandboxMode::ReadOnly => reads,
            SandboxMode::WorkspaceWrite => all,
        };
        // What may be done in a directory may be done in what is bound below it, where a read-only mount keeps nobody from
        // writing to a pipe.
        let own_of_private = |place: &Path| match spec.mode {
            // A directory is made there for a command that begins in it.
            SandboxMode::ReadOnly if !spec.has_nothing_below(place) => reads | AccessFs::MakeDir,
            _ => all,
        };
        let is_full = spec.enforcement == Enforcement::Full;
        let readable = spec.readable.iter();
        let readable = readable.filter(|it| *it != Path::new(ALL_DEVICES));
        let terminals = TERMINALS.iter().filter(|_| is_full);
        let devices = DEVICES.iter().chain(terminals).map(PathBuf::from);
        // The devices may be listed, and no other one opened.
        let listed = (PathBuf::from(ALL_DEVICES), AccessFs::ReadDir.into());
        let allowed = (readable.map(|it| (it.clone(), reads)))
            .chain(std::iter::once(listed))
            .chain(writable.iter().map(|it| (it.clone(), own)))
            .chain(private.iter().map(|it| (it.clone(), own_of_private(it))))
            .chain(spec.scratch.iter().map(|it| (it.clone(), all)))
            .chain(devices.map(|it| (it, all)));
        Ok(Self {
            rights,
            allowed: allowed.collect(),
            roots: spec.writable.clone(),
        })
    }

    /// Returns whether signals to other processes are refused.
    pub(crate) fn scopes_signals(&self) -> bool {
        self.rights >= RIGHTS
    }

    /// Returns the paths that there are rules for.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.allowed.iter().map(|(path, _)| path.as_path())
    }

    /// Returns the rules for this process to restrict itself by, after which it gains no privileges. It may open the
    /// `terminals` again.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub(crate) fn ruleset(&self, terminals: &[BorrowedFd<'_>]) -> io::Result<RulesetCreated> {
        let mut ruleset = Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::from_all(self.rights))
            .map_err(io::Error::other)?;
        if self.scopes_signals() {
            let scopes = Scope::AbstractUnixSocket | Scope::Signal;
            ruleset = ruleset.scope(scopes).map_err(io::Error::other)?;
        }
        let mut ruleset = ruleset.create().map_err(io::Error::other)?;
        for (path, rights) in &self.allowed {
            let root = self.roots.iter().find(|it| it.path() == path);
            let opened = match root {
                Some(root) => root.open()?,
                None => match rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
                {
                    Ok(opened) => opened,
                    // A missing file cannot be reached either.
                    Err(_) => continue,
                },
            };
            let rights = match is_directory(&opened)? {
                true => *rights,
                false => *rights & AccessFs::from_file(self.rights),
            };
            let rule = PathBeneath::new(opened, rights);
            ruleset = ruleset.add_rule(rule).map_err(io::Error::other)?;
        }
        let rights = AccessFs::from_file(self.rights);
        let is_device = |it: &&BorrowedFd<'_>| {
            let found = rustix::fs::fstat(it);
            found.is_ok_and(|it| FileType::from_raw_mode(it.st_mode).is_char_device())
        };
        // There are no rules of pipes, which need none.
        for terminal in terminals.iter().filter(is_device) {
            let rule = PathBeneath::new(*terminal, rights);
            ruleset = ruleset.add_rule(rule).map_err(io::Error::other)?;
        }
        Ok(ruleset)
    }
}

/// Returns whether what is opened is a directory: looking at the path again takes longer.
pub(crate) fn is_directory(opened: impl AsFd) -> io::Result<bool> {
    let mode = rustix::fs::fstat(opened)?.st_mode;
    Ok(FileType::from_raw_mode(mode).is_dir())
}

/// Returns the rights to handle.
fn rights(enforcement: Enforcement) -> io::Result<ABI> {
    let found = version()?;
    let needed = match enforcement {
        Enforcement::Full => RIGHTS,
        Enforcement::Partial => RIGHTS_MIN,
    };
    let known = [ABI::V3, ABI::V4, ABI::V5, ABI::V6];
    let best = known.into_iter().rfind(|it| *it as i64 <= found);
    best.filter(|it| *it >= needed).ok_or_else(|| {
        let needed = needed as i64;
        io::Error::new(
            io::ErrorKind::Unsupported,
            format!("Landlock of the kernel is version {found}, and {needed} is needed"),
        )
    })
}

/// Returns the kernel's version of Landlock. It is asked by the call: files below `/sys` do not tell.
#[expect(unsafe_code, reason = "no safe interface tells the version")]
fn version() -> io::Result<i64> {
    const VERSION: libc::c_uint = 1;
    // SAFETY: with this flag there is no structure to read, and its size is zero.
    let version = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<libc::c_void>(),
            0_usize,
            VERSION,
        )
    };
    match version {
        version if version > 0 => Ok(version),
        _ => Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "the kernel has no Landlock",
        )),
    }
}
