//! Limits of a command's access to files, the network and other processes, enforced by the kernel.
//!
//! A [`SandboxSpec`] says it as plain data; [`confine`] has a command enter it between fork and exec. It cannot be left
//! again, and holds for everything that the command starts. If the kernel does not enforce all of it, the
//! command does not start: nothing runs with less than what was asked for.
//!
//! # Processes
//! The kernel puts children into a new PID namespace, never the process that asks for it. So there are three processes: the
//! *relay*, by which the supervisor knows the command; *init*, the first process of the namespace, which adopts every orphan;
//! and the command. Supervisor, guard and agent stay outside, and nothing inside has a number for them.
//!
//! - The supervisor is not init itself, because init can be limited from inside (`prlimit`), and the supervisor must outlive
//!   the command to check protected files.
//! - Init ends when the supervisor's end of a socket closes, and the kernel kills everything with it: processes that left their
//!   session and wiped their environment, and storms of forks.
//! - Root makes no user namespace, in which other users' files would have no owner. Once the mounts are made it keeps
//!   the capabilities over files (`CHOWN`, `DAC_OVERRIDE`, `FOWNER`, `FSETID`) and drops all others.
//! - Roots (`root.rs`) are identified when a turn begins, by device, inode and time of birth. Mounts and Landlock rules are
//!   made by descriptors that were opened without following links and compared with these, never by paths.
//!
//! # Protected names
//! A protected name that exists is bound read-only by mounts. One that does not exist is watched by the supervisor
//! (`watch.rs`), in its own loop, and renamed through a descriptor of its directory. A separate watcher per agent was rejected: it
//! would have to learn of each command and outlive its agent. If the supervisor dies, its guard ends the command, and the
//! ledger's entry has the folder reviewed.
//!
//! Nested repositories (`nested.rs`, `repositories.rs`, `repository.rs`) are searched before and after a command that may
//! write, and compared. A list of *harmless* settings (`harmless.rs`) decides what stays, since a list of harmful ones would be out of
//! date with the next `git`. Settings are read by our own parser (`git_config.rs`, compared with `git` by a test), because asking `git`
//! would run what the repository configures. Later searches list only directories whose change time differs, which no program
//! can set. `.git/modules` and `.git/worktrees` are checked but not bound, so that submodules and worktrees can be added.
#![warn(missing_docs)]

mod caches;
#[cfg(target_os = "linux")]
mod content;
#[cfg(target_os = "linux")]
mod covered;
#[cfg(target_os = "linux")]
mod directory;
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
mod elsewhere;
#[cfg(target_os = "linux")]
mod enclosing;
mod environment;
#[cfg(target_os = "linux")]
mod files;
#[cfg(target_os = "linux")]
mod filter;
mod git_config;
#[cfg(target_os = "linux")]
mod git_files;
mod git_settings;
#[cfg(target_os = "linux")]
mod ground;
#[cfg(target_os = "linux")]
mod harmless;
#[cfg(target_os = "linux")]
mod hidden;
#[cfg(target_os = "linux")]
mod hooks;
#[cfg(target_os = "linux")]
mod index;
#[cfg(target_os = "linux")]
mod init;
mod ledger;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod lost;
#[cfg(target_os = "macos")]
mod macos;
#[cfg(target_os = "linux")]
mod named;
#[cfg(target_os = "linux")]
mod nested;
#[cfg(target_os = "linux")]
mod passing;
#[cfg(target_os = "linux")]
mod protection;
mod readable;
#[cfg(target_os = "linux")]
mod repositories;
#[cfg(target_os = "linux")]
mod repository;
mod root;
mod roots;
#[cfg(any(test, target_os = "macos"))]
mod seatbelt;
mod secrets;
#[cfg(target_os = "linux")]
mod set_aside;
mod settings;
mod shown_path;
#[cfg(target_os = "linux")]
mod sockets;
pub mod stored_path;
mod support;
mod toolchains;
#[cfg(target_os = "linux")]
mod watch;
mod whole_file;

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
use elsewhere as system;
#[cfg(target_os = "linux")]
use linux as system;
#[cfg(target_os = "macos")]
use macos as system;

use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

#[cfg(target_os = "linux")]
pub use environment::passes_variable;
pub use hooks::{HiddenHooks, hidden_hooks};
pub use ledger::{Difference, DifferenceKind, Entry, Ledger};
pub use root::Root;
pub use roots::{PROTECTED, kept_of_user, readable_roots, readable_roots_by, repository_around};
pub use secrets::secrets_of_toolchains;
pub use shown_path::shown_path;
pub use support::{SandboxSupport, known_support, probe, support};
pub use system::Protection;
#[cfg(target_os = "linux")]
pub use system::{Collector, EnteredSandbox, MountCovers, Preparation};
pub use whole_file::{Readers, replace_file};

/// How far a command is confined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxMode {
    /// It reads the readable and the writable roots, and writes nothing that is there when it has ended, except in
    /// [`SandboxSpec::scratch`] if it has one.
    ReadOnly,
    /// It writes the writable roots too, but for what is [`PROTECTED`] in them.
    WorkspaceWrite,
}

/// By what it is confined.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Enforcement {
    /// Namespaces, rules of files and a filter of system calls; everything that is promised holds.
    #[default]
    Full,
    /// Rules of files and a filter alone, if the system gives no namespaces: there are no sockets at all, no private
    /// directories, and what is protected is put back after the command instead of being out of its reach. Modes, owners
    /// and times of other files of the user can be changed, and before Linux 6.12 other processes signalled.
    Partial,
}

/// Reach of a command's sockets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NetworkAccess {
    /// Same as the user's own sockets.
    Host,
    /// A loopback of its own, if there are namespaces; otherwise there are no sockets.
    #[default]
    Loopback,
    /// There are no sockets, but pairs of them. Entering is faster than with a loopback.
    Nothing,
}

/// Access of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxSpec {
    /// How far it is confined.
    pub mode: SandboxMode,
    /// By what.
    #[serde(default)]
    pub enforcement: Enforcement,
    /// The directories that it works in.
    pub writable: Vec<Root>,
    /// Further paths that it may read and execute, absolute; missing ones are skipped.
    #[serde(with = "stored_path")]
    pub readable: Arc<Vec<PathBuf>>,
    /// The user's home directory. The command finds an empty one of its own, with what of its roots lies in it.
    #[serde(default, with = "stored_path")]
    pub home: Option<PathBuf>,
    /// A directory for its caches, to which variables of its environment lead; absolute, and made if it is not
    /// there. It may write it in each mode: a command that must write nothing that lasts is given none.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "stored_path")]
    pub scratch: Option<PathBuf>,
    /// Files and directories in all of these that it does not see, absolute; only with [`Enforcement::Full`]. Those
    /// that do not exist when the sandbox is prepared are passed over.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "stored_path")]
    pub hidden: Vec<PathBuf>,
    /// Files and directories in the writable roots that it cannot change, absolute and without links, besides what is
    /// [`PROTECTED`]. They need not exist.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<PathBuf>,
    /// Reach of its sockets.
    #[serde(default)]
    pub network: NetworkAccess,
    /// The socket of a proxy. With a loopback of its own and everything enforced, the command finds the proxy there, at
    /// [`PROXY_PORT`], and variables of its environment lead to it. It is served until the [`Protection`] is dropped.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "stored_path")]
    pub proxy: Option<PathBuf>,
    /// The directory of the [`Ledger`] into which the protected files are written before the command starts; absolute,
    /// and out of the command's reach. None if nothing is written.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "stored_path")]
    pub ledger: Option<PathBuf>,
}

/// Port of the proxy on a command's own loopback.
pub const PROXY_PORT: u16 = 3128;
/// Directories of a command's own where programs have temporary files.
const TEMPORARY: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];
/// The variables in which programs look for a proxy.
const PROXY_VARIABLES: [&str; 6] = [
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
];
/// Hosts that bypass the proxy: the command's own loopback.
const NOT_PROXIED: &str = "localhost,127.0.0.1,::1";

impl SandboxSpec {
    /// Returns the specification of a command that reaches these directories and nothing else, confined by everything. The
    /// directories are looked up here, and never again.
    #[must_use]
    pub fn new<R: Into<Root>>(mode: SandboxMode, writable: impl IntoIterator<Item = R>) -> Self {
        Self {
            mode,
            enforcement: Enforcement::Full,
            writable: writable.into_iter().map(Into::into).collect(),
            readable: Arc::default(),
            home: None,
            scratch: None,
            hidden: Vec::new(),
            kept: Vec::new(),
            network: NetworkAccess::Loopback,
            proxy: None,
            ledger: None,
        }
    }
}

impl SandboxSpec {
    /// Returns whether the command has a proxy: there must be a network of its own that it can be put into.
    fn has_proxy(&self) -> bool {
        cfg!(target_os = "linux")
            && self.proxy.is_some()
            && self.enforcement == Enforcement::Full
            && self.network == NetworkAccess::Loopback
    }

    /// Returns whether nothing that the command may read or write lies in a directory.
    fn has_nothing_below(&self, place: &Path) -> bool {
        let written = self.writable.iter().map(Root::path);
        let mut all = written.chain(self.readable.iter().map(PathBuf::as_path));
        !all.any(|it| it.starts_with(place))
    }

    /// Returns the directory for temporary files of a command that only reads, if it may write nothing in `/tmp`.
    fn other_temporary(&self) -> Option<&'static str> {
        let is_confined = self.enforcement == Enforcement::Full && cfg!(target_os = "linux");
        let is_needed = is_confined && self.mode == SandboxMode::ReadOnly;
        let [usual, others @ ..] = TEMPORARY;
        if !is_needed || self.has_nothing_below(Path::new(usual)) {
            return None;
        }
        others
            .into_iter()
            .find(|it| self.has_nothing_below(Path::new(it)))
    }

    /// Returns whether the command reaches no other machine.
    fn is_offline(&self) -> bool {
        self.network != NetworkAccess::Host && !self.has_proxy()
    }
}

/// The bound on [`UndoneChange`] things that are named of one command.
pub const UNDONE_MAX: usize = 1_000;

/// Something protected that a command changed, or made if it did not exist.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UndoneChange {
    /// Path of the entry.
    #[serde(with = "shown_path::lossy")]
    pub path: PathBuf,
    /// Path of the command's version beside it; `None` if there is none.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "shown_path::lossy_option"
    )]
    pub aside: Option<PathBuf>,
    /// `true` if it is as it was before the command.
    pub is_restored: bool,
    /// Problem with it, if its name does not tell: a setting that runs a program, or a failure to inspect it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Something below the directories of a command that is not looked at: what a command does there stays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unchecked {
    /// Path that cannot be checked.
    #[serde(with = "shown_path::lossy")]
    pub path: PathBuf,
    /// Why it is not looked at.
    pub reason: String,
}

impl From<Unchecked> for UndoneChange {
    fn from(unchecked: Unchecked) -> Self {
        Self {
            path: unchecked.path,
            aside: None,
            is_restored: false,
            reason: Some(unchecked.reason),
        }
    }
}

/// Changes that were refused to a running command.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct RefusedChanges {
    /// Renamed entries.
    pub undone: Vec<UndoneChange>,
    /// Set if the command must be ended: it made the same name again at once, or one that could not be renamed.
    pub is_repeated: bool,
}

/// Directories without which no program runs.
const NEEDED: [&str; 7] = ["/bin", "/dev", "/etc", "/lib", "/lib64", "/proc", "/usr"];

/// Returns whether a path can be hidden from commands: none of their directories lies in it, and nothing that every program
/// needs.
#[must_use]
pub fn can_be_hidden(path: &Path, directories: &[PathBuf]) -> bool {
    let needed = NEEDED.iter().map(Path::new);
    let mut inner = directories.iter().map(PathBuf::as_path).chain(needed);
    !inner.any(|it| it.starts_with(path))
}

/// Makes a command enter the sandbox between fork and exec, and returns what to restore when all its processes
/// have ended.
///
/// Starting the command then forks, which copies the page tables of this process: small processes should. The
/// sandbox is entered before what is set on the command later by the same means.
///
/// # Errors
/// When the system has no sandbox, something in the specification cannot be a path, or what is protected cannot be
/// kept. A refusal of the kernel is an error of starting the command.
pub fn confine(command: &mut Command, spec: &SandboxSpec) -> io::Result<Protection> {
    command.envs(variables(spec)?);
    system::confine(command, spec)
}

/// Returns the parts of the directories of commands that are not checked after them, because there is too much or it
/// cannot be listed: a person must be asked before the first command runs there. It takes as long as listing all
/// directories.
#[must_use]
pub fn unchecked(spec: &SandboxSpec) -> Vec<Unchecked> {
    system::unchecked(spec)
}

/// Returns the variables of a command in the sandbox, and makes the directories of its caches.
///
/// # Errors
/// When a directory cannot be made.
pub fn variables(spec: &SandboxSpec) -> io::Result<Vec<(&'static str, OsString)>> {
    let mut variables = Vec::new();
    if let Some(scratch) = &spec.scratch {
        let has_own_tmp = spec.enforcement == Enforcement::Full && cfg!(target_os = "linux");
        for (name, directory) in caches::variables(scratch, has_own_tmp) {
            std::fs::create_dir_all(&directory)?;
            variables.push((name, directory.into()));
        }
        caches::copy_lists(spec, scratch)?;
        for (name, directory) in caches::shared(spec, scratch) {
            if directory.starts_with(scratch) {
                std::fs::create_dir_all(&directory)?;
            }
            variables.push((name, directory.into()));
        }
        variables.extend(build_directory(spec, scratch));
    }
    variables.extend(spec.other_temporary().map(|it| ("TMPDIR", it.into())));
    let settings = settings::variables(spec.is_offline());
    variables.extend(settings.map(|(name, value)| (name, value.into())));
    if spec.has_proxy() {
        let address = format!("http://127.0.0.1:{PROXY_PORT}");
        variables.extend(PROXY_VARIABLES.map(|name| (name, OsString::from(&address))));
        variables.extend(["no_proxy", "NO_PROXY"].map(|name| (name, NOT_PROXIED.into())));
    }
    Ok(variables)
}

/// Returns the variable that leads cargo to a build directory of the session, if the command works in a member of a
/// workspace whose root it may only read and has no build directory.
#[cfg(target_os = "linux")]
fn build_directory(spec: &SandboxSpec, scratch: &Path) -> Option<(&'static str, OsString)> {
    let is_needed =
        |root: &Root| enclosing::lacks_build_directory(root.path(), spec.home.as_deref());
    let is_needed = spec.writable.first().is_some_and(is_needed);
    is_needed.then(|| ("CARGO_TARGET_DIR", scratch.join("cargo-target").into()))
}

#[cfg(not(target_os = "linux"))]
fn build_directory(_: &SandboxSpec, _: &Path) -> Option<(&'static str, OsString)> {
    None
}
