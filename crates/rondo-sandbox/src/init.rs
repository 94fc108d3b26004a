//! The first process of a command's own PID namespace, and the process outside of it that stands for the command.
//!
//! The kernel gives a new PID namespace to the children of the process that asks for it, so entering one takes two
//! forks. The process that entered the other namespaces becomes the *relay*: its parent knows the command by it, and it
//! ends as the command ended. Its child is *init*, the first process of the namespace: it adopts and collects every
//! orphan of the command, and the kernel kills everything in the namespace with it. The command is a child of init.
//!
//! The parent of the command stays outside of the namespace, so nothing inside can see, signal, limit or stop it.

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{
    DumpableBehavior, Pid, Signal, WaitOptions, WaitStatus, set_dumpable_behavior,
};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{FromRawFd as _, IntoRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;

/// The signals that the relay passes on: an interrupt for the command's process group, and one that wakes the command.
const FORWARDED: [(libc::c_int, u8); 2] = [(libc::SIGINT, INTERRUPT), (libc::SIGWINCH, WAKE)];
/// Interrupts the command's process group.
const INTERRUPT: u8 = b'i';
/// Wakes the command.
const WAKE: u8 = b'w';
/// The length of the message that tells how the command ended: [`EXITED`] or [`SIGNALLED`], a number, and whether no
/// other process is left nor was ended with the command.
const END_BYTES: usize = 3;
/// The number is an exit code.
const EXITED: u8 = b'e';
/// The number is that of a signal.
const SIGNALLED: u8 = b's';
/// The exit code if a process of ours cannot do its work.
const FAILED: libc::c_int = 125;
/// The largest number of processes that an exit code can tell.
const COUNT_MAX: u32 = 100;

/// Which process collects init when the command has ended and nothing else of it is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Collector {
    /// The relay: a process that sees the end of the command finds nothing of it then.
    Relay,
    /// The process that started the command, which adopts orphans and waits for all of them. Relay and init end at the same
    /// time then, instead of one after the other.
    Starter,
}

/// Forks the command into the PID namespace that this process has made for its children. Returns in the command's
/// process alone: this process becomes the relay.
///
/// Everything in the namespace is killed when the other end of `lifeline` is closed, so that its owner cannot be
/// outlived. `begin` prepares init, whose namespace is new.
///
/// Init's exit code is the number of processes that the end of the command ended: by the hang-up of its terminal, or by a
/// signal after it.
///
/// # Errors
/// When the kernel refuses, or `begin` fails. The error is returned in one process alone.
pub(crate) fn split(
    lifeline: &OwnedFd,
    collector: Collector,
    begin: impl FnOnce() -> io::Result<()>,
) -> io::Result<()> {
    let (relay, init) = UnixStream::pair()?;
    if let Some(first) = fork()? {
        drop(init);
        exit(run_relay(first, relay, collector));
    }
    drop(relay);
    begin()?;
    if let Some(command) = fork()? {
        exit(run_init(command, init, lifeline));
    }
    Ok(())
}

/// Waits for the end of the command, and ends in the same way.
fn run_relay(first: Pid, init: UnixStream, collector: Collector) -> libc::c_int {
    let Ok((mut init, signals)) = alone(init, None, &FORWARDED.map(|it| it.0)) else {
        return FAILED;
    };
    loop {
        let mut polled = [
            PollFd::new(&init, PollFlags::IN),
            PollFd::new(&signals, PollFlags::IN),
        ];
        if poll(&mut polled, None).is_err_and(|err| err != Errno::INTR) {
            return FAILED;
        }
        let [told, signalled] = polled.map(|it| !it.revents().is_empty());
        if signalled {
            let signal = read_signal(&signals);
            let forwarded = FORWARDED.iter().find(|it| Some(it.0) == signal);
            if let Some((_, order)) = forwarded {
                let _ = init.write_all(&[*order]);
            }
        }
        if told {
            let mut message = [0; END_BYTES];
            if init.read_exact(&mut message).is_err() {
                // Init was killed, and with it everything in the namespace.
                return wait_for(first).map_or(FAILED, |it| end_alike(end_of(it)));
            }
            let [kind, number, is_last] = message;
            if is_last != 0 && collector == Collector::Relay {
                wait_for(first);
            }
            return end_alike([kind, number]);
        }
    }
}

/// Collects every process of the namespace until none is left; returns how many were cut off by the end of the command.
fn run_init(command: Pid, relay: UnixStream, lifeline: &OwnedFd) -> libc::c_int {
    let read = [libc::SIGCHLD, libc::SIGTERM];
    let Ok((mut relay, signals)) = alone(relay, Some(lifeline), &read) else {
        return FAILED;
    };
    // The place that `alone` has put it to.
    let lifeline = std::io::stdout();
    let mut has_ended = false;
    let mut cut_off = 0;
    loop {
        match collect(command, &mut has_ended, &mut cut_off) {
            CollectedProcesses::Ended([kind, number], is_last) => {
                // The relay would lose the number that init tells by its exit code.
                let is_relays = is_last && cut_off == 0;
                let _ = relay.write_all(&[kind, number, u8::from(is_relays)]);
                if is_last {
                    return exit_code_of(cut_off);
                }
            }
            CollectedProcesses::All => return exit_code_of(cut_off),
            CollectedProcesses::Some => {}
        }
        let mut polled = [
            PollFd::new(&lifeline, PollFlags::empty()),
            PollFd::new(&signals, PollFlags::IN),
            PollFd::new(&relay, PollFlags::IN),
        ];
        // The relay is gone after the command, which is as it should be.
        let watched = if has_ended { 2 } else { 3 };
        let waited = polled.get_mut(..watched).map(|it| poll(it, None));
        if waited.is_none_or(|it| it.is_err_and(|err| err != Errno::INTR)) {
            return FAILED;
        }
        let [life, signalled, told] = polled.map(|it| !it.revents().is_empty());
        if life {
            return FAILED;
        }
        if signalled && read_signal(&signals) == Some(libc::SIGTERM) {
            end_politely();
        }
        if told {
            let mut order = [0; 1];
            if relay.read_exact(&mut order).is_err() {
                return FAILED;
            }
            obey(order, command);
        }
    }
}

/// Returns the exit code of init that tells a number of processes.
fn exit_code_of(count: u32) -> libc::c_int {
    libc::c_int::try_from(count.min(COUNT_MAX)).unwrap_or(0)
}

/// Asks every process of the namespace to end. Those that were stopped continue, so that they can.
#[expect(unsafe_code, reason = "no safe interface signals all processes")]
fn end_politely() {
    const EVERYBODY: libc::pid_t = -1;
    for signal in [libc::SIGTERM, libc::SIGCONT] {
        // SAFETY: it takes numbers alone, and reaches no process outside of the namespace.
        unsafe { libc::kill(EVERYBODY, signal) };
    }
}

/// Carries out an order of the relay.
fn obey(order: [u8; 1], command: Pid) {
    let _ = match order {
        [INTERRUPT] => rustix::process::kill_process_group(command, Signal::INT),
        [WAKE] => rustix::process::kill_process(command, Signal::WINCH),
        _ => Ok(()),
    };
}

/// Child process that init collected.
enum CollectedProcesses {
    /// The command ended in this way; whether no other process is left.
    Ended([u8; 2], bool),
    /// No process is left.
    All,
    /// Other processes are left.
    Some,
}

/// Collects the processes that have ended.
fn collect(command: Pid, has_ended: &mut bool, cut_off: &mut u32) -> CollectedProcesses {
    let mut ended = None;
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some((process, status))) if process == command => {
                *has_ended = true;
                ended = Some(end_of(status));
            }
            Ok(Some((_, status))) => {
                // The hang-up of the command's terminal reaches the others before the command can be collected.
                let was_hung_up = status.terminating_signal() == Some(libc::SIGHUP);
                *cut_off += u32::from(was_hung_up || *has_ended && status.signaled());
            }
            Err(Errno::INTR) => {}
            Ok(None) => {
                return ended.map_or(CollectedProcesses::Some, |it| {
                    CollectedProcesses::Ended(it, false)
                });
            }
            Err(_) => {
                return ended.map_or(CollectedProcesses::All, |it| {
                    CollectedProcesses::Ended(it, true)
                });
            }
        }
    }
}

/// Blocks every signal, hides this process, and lets go of every descriptor but `socket` and `kept`, which become standard
/// input and output. Returns the socket, and a descriptor at which the signals of these numbers are read.
fn alone(
    socket: UnixStream,
    kept: Option<&OwnedFd>,
    signals: &[libc::c_int],
) -> io::Result<(UnixStream, File)> {
    // Nothing inside of the namespace may look into it.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    let null = File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&socket)?;
    match kept {
        Some(kept) => rustix::stdio::dup2_stdout(kept)?,
        None => rustix::stdio::dup2_stdout(&null)?,
    }
    rustix::stdio::dup2_stderr(&null)?;
    // They are closed with all others.
    let _ = (socket.into_raw_fd(), null.into_raw_fd());
    close_from(3)?;
    Ok((own_stdin(), signal_reader(signals)?))
}

/// Takes standard input, which is a socket.
#[expect(unsafe_code, reason = "standard input has no owner")]
fn own_stdin() -> UnixStream {
    // SAFETY: it was opened right before, and nothing else in this process reads standard input.
    unsafe { UnixStream::from_raw_fd(0) }
}

/// Closes all descriptors from that number on.
#[expect(
    unsafe_code,
    reason = "descriptors that nothing here owns have no safe interface"
)]
fn close_from(first: libc::c_uint) -> io::Result<()> {
    let (last, flags): (libc::c_uint, libc::c_uint) = (libc::c_uint::MAX, 0);
    // SAFETY: this process continues with its standard descriptors alone, and drops no owner of another.
    match unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Blocks every signal, and returns a descriptor at which these are read instead.
#[expect(unsafe_code, reason = "signals have no safe interface")]
fn signal_reader(signals: &[libc::c_int]) -> io::Result<File> {
    // SAFETY: all zeros are a value of these sets, which the calls fill and outlive none of them; the descriptor that is
    // returned is new, and has no other owner.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const all, std::ptr::null_mut());
        let mut read: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut read);
        for signal in signals {
            libc::sigaddset(&raw mut read, *signal);
        }
        let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
        match libc::signalfd(-1, &raw const read, flags) {
            -1 => Err(io::Error::last_os_error()),
            descriptor => Ok(File::from_raw_fd(descriptor)),
        }
    }
}

/// Returns the number of the next signal; nothing if there is none.
fn read_signal(mut signals: &File) -> Option<libc::c_int> {
    let mut record = [0; size_of::<libc::signalfd_siginfo>()];
    signals.read_exact(&mut record).ok()?;
    let [a, b, c, d, ..] = record;
    libc::c_int::try_from(u32::from_ne_bytes([a, b, c, d])).ok()
}

fn wait_for(process: Pid) -> Option<WaitStatus> {
    loop {
        match rustix::process::waitpid(Some(process), WaitOptions::empty()) {
            Ok(Some((_, status))) => return Some(status),
            Ok(None) | Err(Errno::INTR) => {}
            Err(_) => return None,
        }
    }
}

/// Returns how a process ended, as the message has it.
fn end_of(status: WaitStatus) -> [u8; 2] {
    let of = |kind, number| u8::try_from(number).map(|it| [kind, it]).ok();
    let signalled = status.terminating_signal().and_then(|it| of(SIGNALLED, it));
    let exited = || status.exit_status().and_then(|it| of(EXITED, it));
    signalled.or_else(exited).unwrap_or([EXITED, u8::MAX])
}

/// Ends this process as another one ended; returns the exit code if that one ended by itself.
#[expect(unsafe_code, reason = "signals have no safe interface")]
fn end_alike([kind, number]: [u8; 2]) -> libc::c_int {
    let number = libc::c_int::from(number);
    if kind == EXITED {
        return number;
    }
    // SAFETY: the default action is not a code of ours, and all zeros are a value of the set.
    unsafe {
        libc::signal(number, libc::SIG_DFL);
        libc::kill(libc::getpid(), number);
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
    }
    FAILED
}

/// Makes a second process of this one, which must have one thread; returns the other's id in the first one.
#[expect(unsafe_code, reason = "fork has no safe interface")]
fn fork() -> io::Result<Option<Pid>> {
    // SAFETY: there is no other thread whose locks the second process could find held.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        process => Ok(Pid::from_raw(process)),
    }
}

/// Ends this process at once: what runs at an ordinary end belongs to the program that it was forked from.
#[expect(
    unsafe_code,
    reason = "ending without cleaning up has no safe interface"
)]
fn exit(code: libc::c_int) -> ! {
    // SAFETY: it takes a number, and does not return.
    unsafe { libc::_exit(code) }
}
