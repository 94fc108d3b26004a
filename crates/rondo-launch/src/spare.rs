//! A supervisor that waits for its call, so that the call need not wait for what is the same for each.
//!
//! A keeper forks it when the call before has begun. It is all that a call needs: a guard, the supervisor, a terminal, and
//! the process that executes the command, which is in its sandbox as far as that does not depend on the command. It has
//! nothing of any call before it is handed one by its agent, on a socket of its own. Once all of a command has ended it
//! waits for the next one, with another terminal and another such process. It ends with its keeper, with its agent, and
//! when no call has come for a while; one whose sandbox is out of date ends without a word, and its call is handed to the
//! keeper.

use super::PtySize;
use super::assignment::ForkLifeline;
use super::guard::{self, GuardEnd, Side, StartSignal as Begun, Ward, Watch};
use super::handed::{self, HANDED_BYTES_MAX, HandoverParts, Variables};
use super::pipe::write_all;
use super::protocol::CallSpec;
use super::role::{exit, tell_failure};
use super::serve::{Call, LaunchedCommand, SupervisionEnd, launch, serve_call};
use super::unix::{self, ProcessLimits, Pty, descriptors, handover};
use rondo_sandbox::{Collector, MountCovers, Preparation, SandboxSpec};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::process::Pid;
use std::ffi::OsString;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::time::Duration;

/// How many descriptors a keeper is handed for a spare: the sealed sandbox, the socket on which calls come, and the one
/// that tells of the fork.
pub(super) const DESCRIPTORS: usize = 3;
/// How many a spare is handed for its call: the sealed specification, and the two pipes.
pub(super) const CALL_DESCRIPTORS: usize = 3;

/// How long the mounts of a command that has ended are kept: the next call may come at once, and would wait while they are
/// taken down.
const MOUNTS_KEPT: Duration = Duration::from_millis(10);
/// How long a spare waits for a call.
const IDLE_MAX: Duration = Duration::from_mins(1);
/// The bound on its message when it is to execute, in bytes: the paths of protected files are most of it.
const ORDER_BYTES_MAX: usize = 64 << 20;
/// The bound on the reason why it could not, in bytes.
const REASON_BYTES_MAX: u64 = 64 << 10;

/// Waits for a call and supervises it to its end; returns the exit code.
pub(super) fn serve(given: Vec<OwnedFd>, keeper: u32) -> i32 {
    split(given, keeper).unwrap_or(1)
}

fn split(given: Vec<OwnedFd>, keeper: u32) -> io::Result<i32> {
    let own: Result<[OwnedFd; DESCRIPTORS], _> = given.try_into();
    let [memory, calls, of_fork] = own.map_err(|_| io::ErrorKind::InvalidInput)?;
    unix::die_with_parent(keeper)?;
    let life = ForkLifeline::begin(of_fork, keeper)?;
    let sandbox: Option<SandboxSpec> =
        serde_json::from_slice(&handover::read_sealed(memory, HANDED_BYTES_MAX)?)?;
    unix::adopt_orphans()?;
    let guard = std::process::id();
    match guard::split()? {
        Side::Guard(ward) => {
            drop(calls);
            let code = keep_watch(ward, keeper)?;
            life.end();
            Ok(code)
        }
        Side::Supervisor(begun) => {
            unix::die_with_parent(guard)?;
            unix::leave_session()?;
            let sandbox = sandbox.map(Sandbox::new).transpose()?;
            let mut mounts = None;
            let mut spare = Spare {
                waiting: SpareProcess::new(sandbox.as_ref(), &mut mounts)?,
                sandbox,
                mounts,
                begun,
                is_hidden: false,
                was_shown: false,
                standing: ProcessLimits::own(),
            };
            // The call need not wait until this is known.
            let _ = unix::own_start_time();
            while let Some(given) = spare.next_call(&calls)? {
                match spare.serve(given)? {
                    SpareEnd::Last(code) => return Ok(code),
                    SpareEnd::Next(next) => spare = *next,
                }
                unix::die_with_parent(guard)?;
            }
            Ok(0)
        }
    }
}

/// Watches over one call after another, until the supervisor has ended; returns the exit code.
fn keep_watch(mut ward: Ward, keeper: u32) -> io::Result<i32> {
    while let Some(watch) = ward.assignment() {
        unix::outlive_parent()?;
        show_environment(watch.is_hidden);
        if let GuardEnd::Gone(code) = ward.watch_call(&watch) {
            return Ok(code);
        }
        // If the keeper is gone, the agent hands over nothing more, and the supervisor sees that.
        let _ = unix::die_with_parent(keeper);
    }
    // There is no call, so the supervisor has ended.
    Ok(ward.watch(&Watch::of_process()))
}

fn show_environment(is_hidden: bool) {
    match is_hidden {
        true => unix::hide_environment(),
        false => unix::show_environment(),
    }
}

fn is_readable(fd: impl AsFd, patience: Option<Duration>) -> io::Result<bool> {
    let mut polled = [PollFd::new(&fd, PollFlags::IN)];
    let patience = patience.map(unix::timespec);
    loop {
        match rustix::event::poll(&mut polled, patience.as_ref()) {
            Ok(ready) => return Ok(ready > 0),
            Err(Errno::INTR) => {}
            Err(err) => return Err(err.into()),
        }
    }
}

/// The sandbox of each of its commands.
struct Sandbox {
    spec: SandboxSpec,
    preparation: Preparation,
}

impl Sandbox {
    fn new(spec: SandboxSpec) -> io::Result<Self> {
        Ok(Self {
            preparation: Preparation::new(spec.clone())?,
            spec,
        })
    }

    /// Returns the same for another command.
    fn renewed(mut self) -> io::Result<Self> {
        self.preparation.renew()?;
        Ok(self)
    }
}

/// The supervisor, while it waits.
struct Spare {
    sandbox: Option<Sandbox>,
    waiting: SpareProcess,
    /// Descriptors of the mounts of the previous command.
    mounts: Option<OwnedFd>,
    begun: Begun,
    /// Set if its memory has anything that no command may see: that stays there.
    is_hidden: bool,
    /// Set if other processes could look into it: one that has opened its memory can read it later.
    was_shown: bool,
    /// State that its commands inherit.
    standing: ProcessLimits,
}

/// End of a supervisor's call.
enum SpareEnd {
    /// It takes no other; the exit code.
    Last(i32),
    Next(Box<Spare>),
}

impl Spare {
    /// Waits for a call; none once the agent is gone, or when none has come in time.
    fn next_call(&mut self, calls: &OwnedFd) -> io::Result<Option<[OwnedFd; CALL_DESCRIPTORS]>> {
        if self.mounts.is_some() && !is_readable(calls, Some(MOUNTS_KEPT))? {
            self.mounts = None;
        }
        let given = match is_readable(calls, Some(IDLE_MAX))? {
            true => descriptors::receive(calls)?,
            false => None,
        };
        let own = given.map(<[OwnedFd; CALL_DESCRIPTORS]>::try_from);
        own.transpose()
            .map_err(|_| io::ErrorKind::InvalidInput.into())
    }

    /// Returns whether a call is one of those that this supervisor takes, in a sandbox that is still what it would be now.
    fn takes(&self, spec: &CallSpec) -> bool {
        let sandbox = self.sandbox.as_ref();
        let is_seen = !spec.secrets.is_empty() && self.was_shown;
        !is_seen
            && spec.sandbox.as_ref() == sandbox.map(|it| &it.spec)
            && self.waiting.is_in_sandbox()
            && sandbox.is_none_or(|it| it.preparation.is_current())
    }

    fn serve(mut self, given: [OwnedFd; CALL_DESCRIPTORS]) -> io::Result<SpareEnd> {
        let [memory, control, frames] = given;
        self.waiting.hand_over(&memory)?;
        let (spec, variables) = read_call(memory)?;
        // The agent sees that its descriptors are closed, and nothing was begun.
        if !self.takes(&spec) {
            return Ok(SpareEnd::Last(0));
        }
        let has_secrets = !spec.secrets.is_empty();
        unix::outlive_parent()?;
        // The command before may have removed the directories of its caches.
        spec.sandbox
            .as_ref()
            .map(rondo_sandbox::variables)
            .transpose()?;
        self.begun.assign(&Watch::of_call(&spec))?;
        self.is_hidden |= has_secrets;
        self.was_shown |= !self.is_hidden;
        show_environment(self.is_hidden);
        // Destination of the reason for which nothing was started.
        rustix::stdio::dup2_stdout(&frames)?;
        let call = Call {
            spec,
            variables,
            said: Vec::new(),
            followed_while: Some(self.standing.clone()),
        };
        let Self {
            mut sandbox,
            waiting,
            mut mounts,
            begun,
            is_hidden,
            was_shown,
            standing,
        } = self;
        let start = |call: &Call, mark: &str| {
            let launched = match waiting.execute(sandbox.as_mut(), call, mark)? {
                Some(launched) => Ok(launched),
                None => launch(call, mark),
            };
            // The command runs, and nothing waits for this process meanwhile.
            mounts = None;
            launched
        };
        let served = serve_call(&call, control, frames, &begun, start);
        // The command can have stopped our guard, which no other process would wake.
        unix::resume_parent(None);
        mounts = match served {
            Ok(SupervisionEnd::Waits(mounts)) => mounts,
            Ok(SupervisionEnd::Over) => return Ok(SpareEnd::Last(0)),
            Err(reason) => return Ok(SpareEnd::Last(tell_failure(&reason))),
        };
        drop(call);
        unix::let_go_of_stdio();
        begun.tell_over()?;
        // Waiting output must be checked for secrets.
        unix::hide_environment();
        let sandbox = sandbox.map(Sandbox::renewed).transpose()?;
        Ok(SpareEnd::Next(Box::new(Self {
            waiting: SpareProcess::new(sandbox.as_ref(), &mut mounts)?,
            sandbox,
            mounts,
            begun,
            is_hidden,
            was_shown,
            standing,
        })))
    }
}

fn read_call(memory: OwnedFd) -> io::Result<(CallSpec, Variables)> {
    let bytes = handover::read_sealed(memory, HANDED_BYTES_MAX)?;
    let HandoverParts {
        line, variables, ..
    } = handed::decode(&bytes)?;
    let spec: CallSpec = serde_json::from_slice(&line)?;
    match CallSpec::is_key(&spec.key) {
        true => Ok((spec, variables)),
        false => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// The process that is to execute the command, as its supervisor has it.
struct SpareProcess {
    process: Pid,
    socket: UnixStream,
    pty: Pty,
}

impl SpareProcess {
    /// Forks one for a command in that sandbox. It does not hold the mounts of the command before.
    fn new(sandbox: Option<&Sandbox>, mounts: &mut Option<OwnedFd>) -> io::Result<Self> {
        let pty = unix::open_pty(PtySize::default())?;
        let variables = sandbox.map(|it| rondo_sandbox::variables(&it.spec));
        let variables = variables.transpose()?;
        let (socket, theirs) = UnixStream::pair()?;
        let supervisor = std::process::id();
        if let Some(process) = unix::fork()? {
            return Ok(Self {
                process,
                socket,
                pty,
            });
        }
        drop(socket);
        *mounts = None;
        let becoming = NewSpare {
            supervisor,
            socket: theirs,
            terminal: pty.slave,
            variables: variables.unwrap_or_default(),
        };
        exit(becoming.command(sandbox.map(|it| &it.preparation)))
    }

    /// Hands the call over, of which it reads what it executes.
    fn hand_over(&self, memory: &OwnedFd) -> io::Result<()> {
        descriptors::send(&self.socket, &[memory.as_fd()])
    }

    /// Waits until it is in its sandbox; returns whether it is, and waits for a command.
    fn is_in_sandbox(&self) -> bool {
        let is_in_sandbox = self.in_sandbox().unwrap_or_default();
        // It says nothing more unless it has ended.
        let has_ended = is_readable(&self.socket, Some(Duration::ZERO)).unwrap_or(true);
        is_in_sandbox && !has_ended
    }

    /// Waits until it is in its sandbox; returns whether it is.
    fn in_sandbox(&self) -> io::Result<bool> {
        is_readable(&self.socket, None)?;
        Ok(descriptors::receive(&self.socket)?.is_some())
    }

    /// Makes it execute the command; nothing if it has ended before it received all of it.
    fn execute(
        mut self,
        sandbox: Option<&mut Sandbox>,
        call: &Call,
        mark: &str,
    ) -> io::Result<Option<LaunchedCommand>> {
        unix::resize(&self.pty.slave, call.spec.pty)?;
        let protected = sandbox.map(|it| it.preparation.protect());
        let (protection, covered) = protected.transpose()?.unwrap_or_default();
        let order = [mark.as_bytes(), b"\0", &covered.to_bytes()].concat();
        let length = u32::try_from(order.len()).map_err(io::Error::other)?;
        let told = [&length.to_be_bytes()[..], &order].concat();
        if self.socket.write_all(&told).is_err() {
            return Ok(None);
        }
        let mut reason = String::new();
        // It ends when the command is executed.
        let mut saying = self.socket.take(REASON_BYTES_MAX);
        match saying.read_to_string(&mut reason) {
            // It has ended without reading the message.
            Err(err) if err.kind() == io::ErrorKind::ConnectionReset => return Ok(None),
            read => read?,
        };
        match reason.is_empty() {
            true => Ok(Some(LaunchedCommand {
                leader: self.process,
                pty: self.pty,
                protection,
            })),
            false => Err(io::Error::other(reason)),
        }
    }
}

/// That process itself.
struct NewSpare {
    supervisor: u32,
    socket: UnixStream,
    terminal: OwnedFd,
    /// Those of its sandbox.
    variables: Vec<(&'static str, OsString)>,
}

impl NewSpare {
    /// Becomes the command; returns the exit code if that cannot be.
    fn command(mut self, sandbox: Option<&Preparation>) -> i32 {
        // None if its supervisor has ended.
        if let Ok(Some(reason)) = self.try_command(sandbox) {
            let _ = write_all(&self.socket.into(), reason.to_string().as_bytes());
        }
        1
    }

    /// Returns why the command cannot be executed; nothing if there is none.
    fn try_command(&mut self, sandbox: Option<&Preparation>) -> io::Result<Option<io::Error>> {
        unix::die_with_parent(self.supervisor)?;
        unix::give_way();
        let terminal = [self.terminal.as_fd()];
        let entered = sandbox.map(|it| it.enter(&terminal, Collector::Starter));
        let entered = entered.transpose()?;
        descriptors::send(&self.socket, &[])?;
        is_readable(&self.socket, None)?;
        let memory = descriptors::receive(&self.socket)?.unwrap_or_default();
        let Some(memory) = memory.into_iter().next() else {
            return Ok(None);
        };
        let (spec, variables) = read_call(memory)?;
        // Its supervisor has something to do before the order.
        let found = unix::lead_terminal(&self.terminal)
            .and_then(|()| unix::without_shell(&spec, &variables));
        let (mark, covered) = self.read_order()?;
        let executed = found.and_then(|program| {
            if let Some(entered) = entered {
                entered.complete(&covered, Some(&spec.directory))?;
            }
            // To enter a sandbox would undo it, and may have given this process another parent.
            unix::die_with_parent(unix::parent_id())?;
            self.execute(program, &spec, &variables, &mark)
        });
        Ok(executed.err())
    }

    /// Waits until it is to execute; returns the mark of the call, and what is protected.
    fn read_order(&mut self) -> io::Result<(String, MountCovers)> {
        let mut length = [0; 4];
        self.socket.read_exact(&mut length)?;
        let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
        let mut order = vec![0; length.min(ORDER_BYTES_MAX)];
        self.socket.read_exact(&mut order)?;
        let end = order.iter().position(|byte| *byte == 0);
        let (mark, covered) = order.split_at(end.ok_or(io::ErrorKind::InvalidData)?);
        let covered = MountCovers::from_bytes(covered.get(1..).unwrap_or_default())?;
        Ok((String::from_utf8_lossy(mark).into_owned(), covered))
    }

    /// Executes the program, or the shell if the command needs one. Returns only if it failed.
    fn execute(
        &self,
        program: Option<Command>,
        spec: &CallSpec,
        variables: &Variables,
        mark: &str,
    ) -> io::Result<()> {
        let executed = |mut command: Command| {
            unix::put_on_terminal(&mut command, spec, variables, &self.terminal, mark)?;
            let of_sandbox = self.variables.iter();
            command.envs(of_sandbox.map(|(name, value)| (name, value)));
            Err(command.exec())
        };
        if let Some(program) = program {
            let failed = executed(program);
            // A program that cannot be executed is left to the shell.
            if spec.argv.is_some() {
                return failed;
            }
        }
        executed(unix::in_shell(spec, variables)?)
    }
}
