//! Services of the operating system: terminals, sessions, process trees.
//!
//! On Linux the supervisor adopts every orphan of its command, so that nothing escapes by `setsid`,
//! `nohup` or a double fork. Elsewhere (written, not tried) only the command's process group is
//! ended.

mod children;
mod commands;
pub(crate) mod descriptors;
#[cfg_attr(not(target_os = "linux"), path = "unix/handover_elsewhere.rs")]
pub(crate) mod handover;
mod standing;
#[cfg_attr(not(target_os = "linux"), path = "unix/terminal_reader_elsewhere.rs")]
mod terminal_reader;
#[cfg_attr(not(target_os = "linux"), path = "unix/tree_elsewhere.rs")]
mod tree;

pub(crate) use children::Children;
pub(crate) use standing::ProcessLimits;
pub(crate) use terminal_reader::{InputWait, TerminalReader, terminal_reader};
pub(crate) use tree::{
    count_descendants, interrupt, kill_descendants, measure, memory_total, signal_namespace,
    signal_tree,
};

pub(crate) use commands::{in_shell, put_on_terminal, spawn_command, spawn_process, without_shell};

use super::handed::value_of;
use super::pty_size::PtySize;
use rustix::event::Timespec;
use rustix::fs::{Mode, OFlags};
use rustix::io::FdFlags;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};
use rustix::pty::OpenptFlags;
use rustix::termios::{LocalModes, OptionalActions, OutputModes, Winsize};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

/// Locations of bash; relative entries of `PATH` must never decide it.
pub const BASH_PATHS: [&str; 6] = [
    "/bin/bash",
    "/usr/bin/bash",
    "/usr/local/bin/bash",
    "/opt/homebrew/bin/bash",
    "/opt/local/bin/bash",
    "/run/current-system/sw/bin/bash",
];

/// Returns the running program, as a path that also works once its file was replaced.
pub(crate) fn current_exe() -> io::Result<PathBuf> {
    if cfg!(target_os = "linux") {
        return Ok(PathBuf::from("/proc/self/exe"));
    }
    std::env::current_exe()
}

/// A terminal's two ends.
pub struct Pty {
    /// Our end.
    pub master: OwnedFd,
    /// The command's end.
    pub slave: OwnedFd,
}

/// Opens a terminal that neither echoes nor turns line feeds into pairs.
pub(crate) fn open_pty(size: PtySize) -> io::Result<Pty> {
    let pty = open_pair(size)?;
    let mut modes = rustix::termios::tcgetattr(&pty.slave)?;
    modes
        .local_modes
        .remove(LocalModes::ECHO | LocalModes::ECHONL);
    modes.output_modes.remove(OutputModes::OPOST);
    rustix::termios::tcsetattr(&pty.slave, OptionalActions::Now, &modes)?;
    Ok(pty)
}

/// Opens a terminal with the kernel's usual modes.
pub fn open_pair(size: PtySize) -> io::Result<Pty> {
    let master = rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
    // Not a flag of `openpt` everywhere; no other thread forks here.
    rustix::io::fcntl_setfd(&master, FdFlags::CLOEXEC)?;
    rustix::pty::grantpt(&master)?;
    rustix::pty::unlockpt(&master)?;
    let name = rustix::pty::ptsname(&master, Vec::new())?;
    let slave = rustix::fs::open(
        name.as_c_str(),
        OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    resize(&slave, size)?;
    Ok(Pty { master, slave })
}

/// Gives a terminal a size.
pub(crate) fn resize(terminal: &OwnedFd, size: PtySize) -> io::Result<()> {
    let size = Winsize {
        ws_row: size.rows,
        ws_col: size.columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    Ok(rustix::termios::tcsetwinsize(terminal, size)?)
}

/// The variable that says which call a process is of.
const MARK_VARIABLE: &str = "RONDO_CALL";
/// The bound on the marks of calls inside of calls, in bytes.
const MARKS_BYTES_MAX: usize = 4096;

/// Returns the marks of the calls that a command is inside of, its own last.
fn marks(variables: &[(OsString, OsString)], mark: &str) -> String {
    match value_of(variables, MARK_VARIABLE).and_then(OsStr::to_str) {
        Some(outer) if outer.len() < MARKS_BYTES_MAX => format!("{outer}/{mark}"),
        _ => mark.to_owned(),
    }
}

/// Returns those variables of this process by which it is found if it must end.
pub(crate) fn seen_by_others_from_env() -> Vec<(&'static str, OsString)> {
    let value = |name| Some((name, std::env::var_os(name)?));
    SEEN_BY_OTHERS.into_iter().filter_map(value).collect()
}

/// Gives a command a session of its own, whose terminal is its standard output.
///
/// Makes the command fork, so only the small supervisor may call it.
#[expect(
    unsafe_code,
    reason = "a controlling terminal can only be taken between fork and exec"
)]
pub fn own_session(shell: &mut Command) {
    let take_terminal = || {
        lead_terminal(rustix::stdio::stdout())?;
        die_with_supervisor();
        Ok(())
    };
    // SAFETY: between fork and exec only async-signal-safe calls are allowed; the closure makes
    // three system calls, allocates nothing and takes no lock.
    unsafe { shell.pre_exec(take_terminal) };
}

/// Makes the kernel end this process and its children before others if memory is short.
pub(crate) fn give_way() {
    // An ordinary user may not do it for a process that is hidden, which is no worse than it was.
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
}

/// Gives this process a session of its own, with that terminal.
pub(crate) fn lead_terminal(terminal: impl AsFd) -> io::Result<()> {
    rustix::process::setsid()?;
    Ok(rustix::process::ioctl_tiocsctty(terminal)?)
}

/// Restores the signals of a new terminal. Our parent may ignore some, as `nohup` and a
/// shell without jobs (`command &`) do, and what is started inherits that: Ctrl-C would do nothing.
#[expect(unsafe_code, reason = "signals have no safe interface")]
pub(crate) fn reset_signals() {
    let of_terminals = [
        libc::SIGHUP,
        libc::SIGINT,
        libc::SIGQUIT,
        libc::SIGTERM,
        libc::SIGTSTP,
        libc::SIGTTIN,
        libc::SIGTTOU,
    ];
    for number in of_terminals {
        // SAFETY: the default action is not a code of ours, and this is the only thread.
        unsafe { libc::signal(number, libc::SIG_DFL) };
    }
}

/// Makes a write past the largest size of a file (`ulimit -f`) fail, instead of ending the process.
/// Programs that are started are ended by it as ever: only what is ignored is inherited.
#[expect(unsafe_code, reason = "signals have no safe interface")]
pub(crate) fn survive_large_files() {
    // SAFETY: the handler does nothing, so it may run at any time.
    unsafe { libc::signal(libc::SIGXFSZ, nothing()) };
}

/// Lets waiting for descriptors be interrupted when a child stops, continues or ends.
#[expect(unsafe_code, reason = "signals have no safe interface")]
pub(crate) fn notice_children() {
    // SAFETY: the handler does nothing, so it may run at any time.
    unsafe { libc::signal(libc::SIGCHLD, nothing()) };
}

/// Returns a handler of signals that does nothing.
fn nothing() -> libc::sighandler_t {
    extern "C" fn nothing(_signal: libc::c_int) {}
    let handler: extern "C" fn(libc::c_int) = nothing;
    handler as libc::sighandler_t
}

/// Lets the parent continue if it was stopped; only the one of that id, if one is given. That of a supervisor
/// is its guard.
pub(crate) fn resume_parent(wanted: Option<u32>) {
    let is_wanted = |parent: &Pid| wanted.is_none_or(|id| pid(id) == Some(*parent));
    let parent = rustix::process::getppid().filter(|_| ADOPTS_ORPHANS);
    if let Some(parent) = parent.filter(is_wanted) {
        let _ = rustix::process::kill_process(parent, Signal::CONT);
    }
}

/// `true` if orphaned descendants are adopted by this process.
pub(crate) const ADOPTS_ORPHANS: bool = cfg!(target_os = "linux");

/// Makes a second process of this one, which must have one thread; returns the other's id in the
/// first one.
#[expect(unsafe_code, reason = "fork has no safe interface")]
pub(crate) fn fork() -> io::Result<Option<Pid>> {
    // SAFETY: there is no other thread whose locks the second process could find held.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        process => Ok(Pid::from_raw(process)),
    }
}

/// Redirects standard input and output to nowhere, so that readers of their other ends see the end.
pub(crate) fn let_go_of_stdio() {
    let null = File::options().read(true).write(true).open("/dev/null");
    if let Ok(null) = null {
        let _ = rustix::stdio::dup2_stdin(&null);
        let _ = rustix::stdio::dup2_stdout(&null);
    }
}

/// Waits for a child and returns its exit code; `None` if a signal ended it.
pub(crate) fn wait_for(child: Pid) -> Option<i32> {
    loop {
        match rustix::process::waitpid(Some(child), WaitOptions::empty()) {
            Ok(Some((_, status))) => return status.exit_status(),
            Ok(None) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return None,
        }
    }
}

/// Collects the children that have ended; returns whether there are others.
pub(crate) fn has_children() -> bool {
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}

/// Makes the kernel kill this process when its parent ends, which must have one thread.
///
/// # Errors
/// When that is another one already.
#[cfg(target_os = "linux")]
pub(crate) fn die_with_parent(parent: u32) -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    match rustix::process::getppid() == pid(parent) {
        true => Ok(()),
        false => Err(io::ErrorKind::NotConnected.into()),
    }
}

/// Returns the process id of this process's parent.
#[cfg(target_os = "linux")]
pub(crate) fn parent_id() -> u32 {
    let parent = rustix::process::getppid();
    parent.map_or(0, |it| it.as_raw_pid().unsigned_abs())
}

/// Makes the kernel leave this process alone when its parent ends.
#[cfg(target_os = "linux")]
pub(crate) fn outlive_parent() -> io::Result<()> {
    Ok(rustix::process::set_parent_process_death_signal(None)?)
}

#[cfg(target_os = "linux")]
fn die_with_supervisor() {
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
}

#[cfg(not(target_os = "linux"))]
fn die_with_supervisor() {}

/// Keeps this process's environment from other processes of the same user: a command could read the
/// keys in it from `/proc` otherwise, whatever was taken from its own.
#[cfg(target_os = "linux")]
pub(crate) fn hide_environment() {
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn hide_environment() {}

/// Limits the allocator to so many heaps.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(
    unsafe_code,
    reason = "the allocator's parameters have no safe binding"
)]
pub(crate) fn bound_heaps(heaps: usize) {
    let heaps = libc::c_int::try_from(heaps.max(1)).unwrap_or(libc::c_int::MAX);
    // SAFETY: it takes two numbers; an unknown or impossible one changes nothing.
    unsafe { libc::mallopt(libc::M_ARENA_MAX, heaps) };
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn bound_heaps(_: usize) {}

/// Lets other processes of the same user see this one again, which a keeper's fork must want to.
#[cfg(target_os = "linux")]
pub(crate) fn show_environment() {
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};
    let _ = set_dumpable_behavior(DumpableBehavior::Dumpable);
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn show_environment() {}

/// Variables whose values stay where others see them: they identify processes that must end.
/// The second one is that of GitHub's runner.
const SEEN_BY_OTHERS: [&str; 2] = [MARK_VARIABLE, "RUNNER_TRACKING_ID"];

/// Moves this process's environment to memory of its own, and overwrites the values if the kernel
/// shows them to every process that may read `/proc/PID/environ`. Does nothing if there is another thread,
/// which may be reading them.
#[cfg(target_os = "linux")]
#[expect(
    unsafe_code,
    reason = "what the kernel shows of an environment has no safe interface"
)]
pub(crate) fn move_environment() {
    use std::ffi::{CStr, c_char};
    unsafe extern "C" {
        static mut environ: *mut *mut c_char;
    }
    let is_alone = || {
        let threads = std::fs::read_dir("/proc/self/task").ok()?;
        Some(threads.take(2).count() == 1)
    };
    if is_alone() != Some(true) {
        return;
    }
    let mut moved = Vec::new();
    // SAFETY: `environ` is null or leads to pointers that end with a null, each to bytes that end with
    // a NUL and can be written, and no other thread is there to read or change any of it. A text that is read
    // from an old place later, such as by C code that kept it, still ends with a NUL. The copies, and
    // the array of pointers to them, are never freed.
    unsafe {
        let mut next = environ;
        if next.is_null() {
            return;
        }
        while !(*next).is_null() {
            let entry = CStr::from_ptr(*next).to_owned();
            let length = entry.as_bytes().len();
            hide_value(std::slice::from_raw_parts_mut((*next).cast(), length));
            moved.push(entry.into_raw());
            next = next.add(1);
        }
        moved.push(std::ptr::null_mut());
        environ = moved.leak().as_mut_ptr();
    }
}

/// Leaves the name of a variable.
#[cfg(target_os = "linux")]
fn hide_value(entry: &mut [u8]) {
    let mut parts = entry.splitn_mut(2, |byte| *byte == b'=');
    let (name, value) = (parts.next(), parts.next());
    let is_seen = |name: &[u8]| SEEN_BY_OTHERS.iter().any(|seen| seen.as_bytes() == name);
    match (name, value) {
        (Some(name), Some(_)) if is_seen(name) => {}
        (_, Some(value)) => value.fill(0),
        // No variable; whatever it is.
        (Some(all), None) => all.fill(0),
        (None, None) => {}
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn move_environment() {}

/// Leaves the agent's session, so that its terminal's signals and its end do not reach us, and
/// adopts every orphan among our descendants.
pub(crate) fn leave_session() -> io::Result<()> {
    rustix::process::setsid()?;
    adopt_orphans()
}

/// Adopts every orphan among our descendants.
#[cfg(target_os = "linux")]
pub(crate) fn adopt_orphans() -> io::Result<()> {
    Ok(rustix::process::set_child_subreaper(Some(
        rustix::process::getpid(),
    ))?)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn adopt_orphans() -> io::Result<()> {
    Ok(())
}

/// A socket at which the next agent finds a supervisor, removed with it. Only its owner may connect.
pub(crate) struct AttachSocket {
    listener: UnixListener,
    path: PathBuf,
}

impl AttachSocket {
    /// Opens an attach socket of that name in a directory; one that is left from before is replaced.
    ///
    /// Changes the process's umask for a moment, so only the small supervisor may call it.
    pub(crate) fn open(dir: &Path, name: &str) -> io::Result<Self> {
        let path = dir.join(name);
        match std::fs::remove_file(&path) {
            Err(err) if err.kind() != io::ErrorKind::NotFound => return Err(err),
            _ => {}
        }
        let held = File::open(dir)?;
        let before = rustix::process::umask(Mode::RWXG | Mode::RWXO);
        let listener = UnixListener::bind(short_path(&held, dir, name));
        rustix::process::umask(before);
        let listener = listener?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener, path })
    }

    /// Accepts the next caller: what it says and what it is told on, neither of which waits.
    pub(crate) fn accept(&self) -> io::Result<(OwnedFd, OwnedFd)> {
        let (caller, _) = self.listener.accept()?;
        caller.set_nonblocking(true)?;
        Ok((caller.try_clone()?.into(), caller.into()))
    }
}

impl AsFd for AttachSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

impl Drop for AttachSocket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Connects to the attach socket of that name in a directory.
pub(crate) fn connect_to(dir: &Path, name: &str) -> io::Result<UnixStream> {
    let held = File::open(dir)?;
    UnixStream::connect(short_path(&held, dir, name))
}

/// A socket's path may be about 100 bytes long, so it is named by its directory's handle.
#[cfg(target_os = "linux")]
fn short_path(held: &File, _dir: &Path, name: &str) -> PathBuf {
    use std::os::fd::AsRawFd as _;
    PathBuf::from(format!("/proc/self/fd/{}/{name}", held.as_raw_fd()))
}

#[cfg(not(target_os = "linux"))]
fn short_path(_held: &File, dir: &Path, name: &str) -> PathBuf {
    dir.join(name)
}

/// Returns the id of this start of the machine, if the system has one. No process sees another one.
#[cfg(target_os = "linux")]
pub(crate) fn boot_id() -> Option<String> {
    static ID: OnceLock<Option<String>> = OnceLock::new();
    let read = || {
        let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        Some(id.trim().to_owned())
    };
    ID.get_or_init(read).clone()
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn boot_id() -> Option<String> {
    None
}

/// Returns an id that differs between a directory and one that takes its place.
pub(crate) fn directory_id(dir: &Path) -> Option<String> {
    let metadata = std::fs::metadata(dir).ok()?;
    let made = metadata.created().ok();
    let made = made.and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
    let made = made.map_or(0, |at| at.as_nanos());
    Some(format!("{}:{}:{made}", metadata.dev(), metadata.ino()))
}

/// Waits for any child; `None` when there is none left.
pub(crate) fn wait_any() -> Option<(Pid, WaitStatus)> {
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some(ended)) => return Some(ended),
            Ok(None) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return None,
        }
    }
}

/// Kills a process.
pub(crate) fn kill(process: u32) {
    if let Some(pid) = pid(process) {
        let _ = rustix::process::kill_process(pid, Signal::KILL);
    }
}

/// Returns whether a process ended because the command it was of had: by the hang-up of the terminal,
/// or by us.
pub(crate) fn was_cut_off(status: WaitStatus, is_leader_gone: bool) -> bool {
    let signal = status.terminating_signal();
    let ours = [Signal::TERM, Signal::KILL].map(Signal::as_raw);
    signal.is_some_and(|it| it == Signal::HUP.as_raw() || is_leader_gone && ours.contains(&it))
}

/// Returns the number that a process told by its exit code; one, if it was killed.
pub(crate) fn count_of(status: WaitStatus) -> u32 {
    let code = status.exit_status();
    code.map_or(1, |it| u32::try_from(it).unwrap_or_default())
}

/// Kills every process whose environment at its start held `mark`; returns whether there was any.
#[cfg(target_os = "linux")]
pub(crate) fn kill_marked(mark: &str) -> bool {
    let variable = format!("{MARK_VARIABLE}=");
    let is_marked = |pid: u32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let mut variables = environment.split(|byte| *byte == 0);
        let marks = variables.find_map(|it| it.strip_prefix(variable.as_bytes()));
        let mut marks = marks.unwrap_or_default().split(|byte| *byte == b'/');
        marks.any(|it| it == mark.as_bytes())
    };
    let own = std::process::id();
    let all = tree::parents().into_iter().map(|(pid, _)| pid);
    let doomed: Vec<u32> = all.filter(|pid| *pid != own && is_marked(*pid)).collect();
    doomed.iter().copied().for_each(kill);
    doomed
        .iter()
        .any(|pid| stat_field(*pid, STAT_STATE).is_some_and(|state| state != "Z"))
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn kill_marked(_mark: &str) -> bool {
    false
}

/// Lets a process continue that was stopped.
pub(crate) fn resume(process: u32) {
    if let Some(pid) = pid(process) {
        let _ = rustix::process::kill_process(pid, Signal::CONT);
    }
}

/// Lets children of a process continue that were stopped before they executed a program: no other process can, as their
/// parent waits until they have.
#[cfg(target_os = "linux")]
pub(crate) fn resume_unexecuted(parent: Pid) {
    use std::os::unix::fs::MetadataExt as _;
    let program = |of: &str| {
        let program = std::fs::metadata(format!("/proc/{of}/exe"));
        program.ok().map(|it| (it.dev(), it.ino()))
    };
    let parent = parent.as_raw_pid();
    let children = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"));
    let own = program("self");
    for child in children.unwrap_or_default().split_ascii_whitespace() {
        // That of one that is hidden cannot be read, and it has executed nothing.
        if own.is_some() && program(child).is_none_or(|it| Some(it) == own) {
            child.parse().into_iter().for_each(resume);
        }
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn resume_unexecuted(_parent: Pid) {}

/// Fields of `/proc/PID/stat`, counted from the one after the name.
#[cfg(target_os = "linux")]
const STAT_STATE: usize = 0;
#[cfg(target_os = "linux")]
const STAT_PARENT: usize = 1;
#[cfg(target_os = "linux")]
const STAT_START_TIME: usize = 19;

#[cfg(target_os = "linux")]
fn stat_field(pid: u32, field: usize) -> Option<String> {
    stat_fields(pid)?.into_iter().nth(field)
}

/// Returns the fields of `/proc/PID/stat` after the name.
#[cfg(target_os = "linux")]
pub fn stat_fields(pid: u32) -> Option<Vec<String>> {
    use std::io::Read as _;
    // The kernel gives all of it at once, which is 52 numbers and a name of 64 bytes at most.
    let mut stat = [0; 2048];
    let mut file = File::open(format!("/proc/{pid}/stat")).ok()?;
    let length = file.read(&mut stat).ok()?;
    let stat = String::from_utf8_lossy(stat.get(..length)?).into_owned();
    let (_, after_name) = stat.rsplit_once(") ")?;
    let fields = after_name.split_ascii_whitespace();
    Some(fields.map(str::to_owned).collect())
}

/// Returns when a process started, in ticks since boot, if the system says it.
#[cfg(target_os = "linux")]
pub(crate) fn start_time(pid: u32) -> Option<u64> {
    stat_field(pid, STAT_START_TIME)?.parse().ok()
}

/// Returns when this process started; looks only the first time, which a spare does while it waits.
pub(crate) fn own_start_time() -> Option<u64> {
    static OWN: OnceLock<(u32, Option<u64>)> = OnceLock::new();
    let own = std::process::id();
    let (process, started) = *OWN.get_or_init(|| (own, start_time(own)));
    // A fork has what its parent knew.
    match process == own {
        true => started,
        false => start_time(own),
    }
}

/// Returns when a process started, in ticks since boot, if the system says it.
#[cfg(not(target_os = "linux"))]
pub(crate) fn start_time(_pid: u32) -> Option<u64> {
    None
}

/// Returns whether the process that had that id and start time is still there.
#[cfg(target_os = "linux")]
pub(crate) fn is_alive(pid: u32, started: u64) -> bool {
    start_time(pid) == Some(started) && stat_field(pid, STAT_STATE).is_some_and(|s| s != "Z")
}

/// Returns whether a process of that id is there.
#[cfg(not(target_os = "linux"))]
pub(crate) fn is_alive(process: u32, _started: u64) -> bool {
    pid(process).is_some_and(|pid| rustix::process::test_kill_process(pid).is_ok())
}

/// Returns whether there is a process of that id.
pub fn exists(process: u32) -> bool {
    pid(process)
        .is_some_and(|pid| rustix::process::test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
}

/// Returns a process id for system calls, if there can be a process of that id.
#[must_use]
pub fn pid(raw: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(raw).ok()?)
}

/// Converts a duration for `poll`.
pub fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(duration.subsec_nanos()),
    }
}

/// Returns the exit code as a shell has it, and the signal's name if one ended the command.
pub(crate) fn exit_of(status: WaitStatus) -> (i32, Option<String>) {
    const SIGNALLED: i32 = 128;
    match status.terminating_signal() {
        Some(signal) => (SIGNALLED + signal, Some(signal_name(signal))),
        None => (status.exit_status().unwrap_or(SIGNALLED), None),
    }
}

fn signal_name(raw: i32) -> String {
    let known = [
        (Signal::HUP, "SIGHUP"),
        (Signal::INT, "SIGINT"),
        (Signal::QUIT, "SIGQUIT"),
        (Signal::ILL, "SIGILL"),
        (Signal::TRAP, "SIGTRAP"),
        (Signal::ABORT, "SIGABRT"),
        (Signal::BUS, "SIGBUS"),
        (Signal::FPE, "SIGFPE"),
        (Signal::KILL, "SIGKILL"),
        (Signal::USR1, "SIGUSR1"),
        (Signal::SEGV, "SIGSEGV"),
        (Signal::USR2, "SIGUSR2"),
        (Signal::PIPE, "SIGPIPE"),
        (Signal::ALARM, "SIGALRM"),
        (Signal::TERM, "SIGTERM"),
        (Signal::XCPU, "SIGXCPU"),
        (Signal::XFSZ, "SIGXFSZ"),
        (Signal::SYS, "SIGSYS"),
    ];
    known
        .iter()
        .find(|(signal, _)| signal.as_raw() == raw)
        .map_or_else(|| format!("SIG{raw}"), |(_, name)| (*name).to_owned())
}
