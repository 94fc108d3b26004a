//! The parent of a supervisor, which owns the command's processes once the supervisor is gone.
//!
//! A command can end or stop its supervisor, and so can the kernel where memory is short. What the
//! supervisor started is then adopted by the guard, which ends all of it, and the guard keeps the
//! command's time if the supervisor does not. It does nothing else, and holds nothing that the
//! agent waits for.

use super::link::attach_socket_name;
use super::protocol::CallSpec;
use super::unix;
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::process::{Pid, Signal};
use serde::{Deserialize, Serialize};
use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long a supervisor has to notice by itself that the command's time is up, before its guard and its
/// agent see to it.
pub const NOTICE_MAX: Duration = Duration::from_millis(250);
/// How long a tree has to end between SIGTERM and SIGKILL.
pub(super) const TERM_GRACE: Duration = Duration::from_millis(1000);
/// How long SIGKILL is repeated, for trees that fork faster than they are killed.
pub(super) const KILL_MAX: Duration = Duration::from_secs(2);
/// How long an agent waits for the end of a command after it told the supervisor to end it: both signals, and
/// a second for what follows. All who wait for that end in this crate and in `rondo-exec` count from here; a turn that was
/// cancelled waits for its own `cancel_grace_ms`.
pub const COMMAND_END_MAX: Duration = TERM_GRACE
    .saturating_add(KILL_MAX)
    .saturating_add(Duration::from_secs(1));
/// How long a supervisor that has noticed has to end the command and to tell its agent.
const SUPERVISOR_END_MAX: Duration = TERM_GRACE.saturating_add(KILL_MAX.saturating_mul(5));
/// How often a supervisor that may have been stopped again is woken.
const WAKE_EVERY: Duration = Duration::from_millis(250);
/// How often one is woken that runs in time: the signal that reports its stop is missed if it
/// comes between two waits.
const WAKE_SELDOM: Duration = Duration::from_secs(1);
/// How often one is woken that may run for days.
const WAKE_RARELY: Duration = Duration::from_secs(15);
/// How long what a dead supervisor left is killed; a process that the kernel holds cannot end.
const REST_MAX: Duration = Duration::from_secs(10);
/// How often that is repeated, for trees that fork faster than they are killed.
const REST_EVERY: Duration = Duration::from_millis(5);
/// The bound on the message by which a guard learns what it watches over, in bytes: a path is what makes it long.
const ASSIGNMENT_BYTES_MAX: usize = 64 << 10;
/// Byte from a supervisor when the command's time begins.
const TIME_BEGINS: u8 = b's';
/// Byte when the command has ended and the supervisor waits for another.
const IS_OVER: u8 = b'o';
/// How a guard ends whose supervisor was killed.
const KILLED_CODE: i32 = 1;

/// Which of the two processes this one is.
pub(super) enum Side {
    /// The one that waits.
    Guard(Ward),
    /// The one that works.
    Supervisor(StartSignal),
}

/// The supervisor as its guard knows it.
pub(super) struct Ward {
    supervisor: Pid,
    /// Readable when the command's time begins; at its end when the supervisor is gone.
    started: PipeReader,
}

/// Pipe to the guard; must live as long as the supervisor.
pub(super) struct StartSignal(Option<PipeWriter>);

impl StartSignal {
    /// Reports that the command's time begins now.
    pub(super) fn tell(&self) {
        if let Some(mut pipe) = self.0.as_ref() {
            let _ = pipe.write_all(&[TIME_BEGINS]);
        }
    }

    /// Reports that the command and all processes it started have ended, and that there may be another.
    ///
    /// # Errors
    /// When the guard is gone.
    pub(super) fn tell_over(&self) -> io::Result<()> {
        match self.0.as_ref() {
            Some(mut pipe) => pipe.write_all(&[IS_OVER]),
            None => Ok(()),
        }
    }

    /// Sends the command to a guard that waits for it.
    ///
    /// # Errors
    /// When the guard is gone.
    pub(super) fn assign(&self, watch: &Watch) -> io::Result<()> {
        let watch = serde_json::to_vec(watch)?;
        let length = u32::try_from(watch.len()).map_err(io::Error::other)?;
        let message = [&length.to_be_bytes()[..], &watch].concat();
        match self.0.as_ref() {
            Some(mut pipe) => pipe.write_all(&message),
            None => Ok(()),
        }
    }
}

/// Splits this process in two, which must have one thread. If orphans are not adopted, a guard
/// would own nothing, and there is none.
pub(super) fn split() -> io::Result<Side> {
    if !unix::ADOPTS_ORPHANS {
        return Ok(Side::Supervisor(StartSignal(None)));
    }
    let (started, tell) = io::pipe()?;
    match unix::fork()? {
        Some(supervisor) => Ok(Side::Guard(Ward {
            supervisor,
            started,
        })),
        None => Ok(Side::Supervisor(StartSignal(Some(tell)))),
    }
}

/// Processes and files that a guard watches.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Watch {
    /// How long the command may run, once its time has begun.
    timeout: Duration,
    /// How often the supervisor is woken before.
    wakes_every: Duration,
    /// Directory of the supervisor's attach socket, if it has one.
    #[serde(with = "rondo_sandbox::stored_path")]
    state_dir: Option<PathBuf>,
    /// Set if the memory of the call's supervisor is hidden from other processes of the user.
    pub(super) is_hidden: bool,
}

impl Watch {
    pub(super) fn of_call(spec: &CallSpec) -> Self {
        Self {
            timeout: spec.timeout(),
            wakes_every: WAKE_SELDOM,
            state_dir: Some(spec.state_dir.clone()),
            is_hidden: !spec.secrets.is_empty(),
        }
    }

    /// Returns that of a process that may run forever.
    pub(super) fn of_process() -> Self {
        Self {
            timeout: Duration::MAX,
            wakes_every: WAKE_RARELY,
            state_dir: None,
            is_hidden: false,
        }
    }
}

/// How a guard's watch ended.
pub(super) enum GuardEnd {
    /// The supervisor waits for another call.
    Next,
    /// It is gone, and so is all that it left; the exit code.
    Gone(i32),
}

/// Event that a guard received.
enum GuardEvent {
    Nothing,
    Over,
    Gone,
}

/// How far the time of the command is.
enum CommandTime {
    NotBegun,
    Runs { until: Instant },
    IsUp { until: Instant },
}

impl Ward {
    /// Waits until the supervisor names the processes to watch; nothing if it ends before.
    pub(super) fn assignment(&mut self) -> Option<Watch> {
        self.wait_for_word();
        let mut length = [0; 4];
        self.started.read_exact(&mut length).ok()?;
        let length = usize::try_from(u32::from_be_bytes(length)).ok()?;
        let mut watch = vec![0; length.min(ASSIGNMENT_BYTES_MAX)];
        self.started.read_exact(&mut watch).ok()?;
        serde_json::from_slice(&watch).ok()
    }

    /// Waits until the supervisor says something or is gone, and wakes it meanwhile: it may have been stopped.
    fn wait_for_word(&self) {
        let mut fds = [PollFd::new(&self.started, PollFlags::IN)];
        let mut hear = || rustix::event::poll(&mut fds, Some(&unix::timespec(WAKE_SELDOM)));
        while matches!(hear(), Ok(0) | Err(Errno::INTR)) {
            self.signal(Signal::CONT);
            unix::resume_unexecuted(self.supervisor);
        }
    }

    /// Waits for the end of the supervisor, ends what it left, and returns the exit code.
    pub(super) fn watch(&mut self, watch: &Watch) -> i32 {
        loop {
            if let GuardEnd::Gone(code) = self.watch_call(watch) {
                return code;
            }
        }
    }

    /// Waits for the end of a call, or that of the supervisor, of which it ends what was left.
    pub(super) fn watch_call(&mut self, watch: &Watch) -> GuardEnd {
        unix::notice_children();
        let mut time = CommandTime::NotBegun;
        loop {
            match self.hear(&mut time, watch) {
                GuardEvent::Nothing => {}
                GuardEvent::Over => return GuardEnd::Next,
                GuardEvent::Gone => break,
            }
            match time {
                CommandTime::Runs { until } if Instant::now() >= until => {
                    time = CommandTime::IsUp {
                        until: Instant::now() + SUPERVISOR_END_MAX,
                    };
                }
                CommandTime::IsUp { until } if Instant::now() >= until => {
                    self.signal(Signal::KILL);
                    // Processes that it leaves become ours, and hold the pipe as long as they have executed nothing.
                    unix::kill_descendants();
                }
                _ => {}
            }
            if matches!(time, CommandTime::IsUp { .. }) {
                self.signal(Signal::CONT);
            }
        }
        let code = unix::wait_for(self.supervisor);
        if let Some(state_dir) = watch.state_dir.as_ref().filter(|_| code.is_none()) {
            // One that was killed leaves its attach socket behind.
            let socket = attach_socket_name(self.supervisor.as_raw_pid().unsigned_abs());
            let _ = std::fs::remove_file(state_dir.join(socket));
        }
        end_rest();
        GuardEnd::Gone(code.unwrap_or(KILLED_CODE))
    }

    /// Waits for something to happen.
    fn hear(&mut self, time: &mut CommandTime, watch: &Watch) -> GuardEvent {
        let patience = match time {
            CommandTime::NotBegun => watch.wakes_every,
            CommandTime::Runs { until } => {
                let left = until.saturating_duration_since(Instant::now());
                left.min(WAKE_SELDOM)
            }
            CommandTime::IsUp { .. } => WAKE_EVERY,
        };
        let mut fds = [PollFd::new(&self.started, PollFlags::IN)];
        match rustix::event::poll(&mut fds, Some(&unix::timespec(patience))) {
            Ok(1) => {}
            // The supervisor has ended, or may have. It is not meant to stop.
            Ok(_) | Err(Errno::INTR) => {
                self.signal(Signal::CONT);
                unix::resume_unexecuted(self.supervisor);
                return GuardEvent::Nothing;
            }
            Err(_) => return GuardEvent::Nothing,
        }
        let mut byte = [0; 1];
        match self.started.read(&mut byte) {
            Ok(0) => GuardEvent::Gone,
            Ok(_) if byte == [IS_OVER] => GuardEvent::Over,
            Ok(_) => {
                let limit = watch.timeout.saturating_add(NOTICE_MAX);
                let until = Instant::now().checked_add(limit);
                *time = until.map_or(CommandTime::NotBegun, |until| CommandTime::Runs { until });
                GuardEvent::Nothing
            }
            Err(err) if err.kind() == io::ErrorKind::Interrupted => GuardEvent::Nothing,
            Err(_) => GuardEvent::Gone,
        }
    }

    fn signal(&self, signal: Signal) {
        // Its process id is its own until its end is waited for.
        let _ = rustix::process::kill_process(self.supervisor, signal);
    }
}

/// Ends everything that was adopted.
fn end_rest() {
    let until = Instant::now() + REST_MAX;
    while unix::has_children() && Instant::now() < until {
        unix::kill_descendants();
        sleep(REST_EVERY);
    }
}
