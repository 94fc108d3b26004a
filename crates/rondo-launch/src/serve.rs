//! The supervisor's own side: one loop over its file descriptors.

use super::assignment::{Assignment, ForkLifeline};
use super::capture::Capture;
use super::guard::{self, KILL_MAX, Side, StartSignal as Begun, TERM_GRACE, Watch};
use super::handed::Variables;
use super::ledger;
use super::link::{Link, OUTPUT_FRAME_BYTES};
use super::pipe::write_all;
use super::prompts::Prompts;
use super::protocol::{CallSpec, END, FrameKind, GO, OUTPUT_BYTES_CEILING, encode_frame};
use super::role::Role;
use super::status::{CallStatus, CommandState, Exceeded, LOST_MAX};
use super::unix::{self, Children, ProcessLimits, Pty};
use rondo_sandbox::{Entry, Protection, UndoneChange, shown_path};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::process::{Pid, Signal};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

/// How much output is read at once, in bytes.
const READ_BYTES: usize = OUTPUT_FRAME_BYTES;
/// After the command's end, output is over when none came for this long.
const DRAIN_QUIET: Duration = Duration::from_millis(15);
/// After the command's end, output of what it left behind is taken for this long at most.
const DRAIN_MAX: Duration = Duration::from_millis(250);
/// How often the processes of a command are measured.
const MEASURE_EVERY: Duration = Duration::from_millis(250);
/// The part of the time that measuring may take, if there are many processes: one in so many.
const MEASURE_PART: u32 = 20;
/// The bound on the processes of a command. A build of hundreds of crates has a few dozen.
const PROCESSES_MAX: u32 = 4096;
/// How often SIGKILL is repeated.
const KILL_EVERY: Duration = Duration::from_millis(5);
/// How many processes that have ended are collected at once, so that a tree that forks fast does not keep the rest waiting.
const COLLECTED_MAX: usize = 256;

/// Call to supervise.
pub(super) struct Call {
    pub(super) spec: CallSpec,
    /// Environment of the command.
    pub(super) variables: Variables,
    /// Bytes from the agent after the specification.
    pub(super) said: Vec<u8>,
    /// State that the supervisor needs to take another call after this one; `None` if it takes no other.
    pub(super) followed_while: Option<ProcessLimits>,
}

/// The supervisor of a command, which is asked for without a name.
pub(super) const ROLE: Role = Role {
    name: "",
    descriptors: 0,
    serve,
};

/// Runs one supervised call from its specification to its status.
fn serve(given: Assignment) -> io::Result<i32> {
    let spec: CallSpec = given.spec()?;
    if !CallSpec::is_key(&spec.key) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "the call's key is not usable as a file name",
        ));
    }
    match spec.secrets.is_empty() {
        true => unix::show_environment(),
        // The command could read them in our memory, and in the guard's.
        false => unix::hide_environment(),
    }
    let is_kept = given.life.is_some();
    match is_kept {
        // Its session is its keeper's, which is not a terminal's; a new one takes the scheduler's time.
        true => unix::adopt_orphans()?,
        false => unix::leave_session()?,
    }
    match guard::split()? {
        Side::Guard(mut ward) => {
            let life = given.let_go();
            let code = ward.watch(&Watch::of_call(&spec));
            life.iter().for_each(ForkLifeline::end);
            Ok(code)
        }
        Side::Supervisor(begun) => {
            let Assignment {
                control,
                frames,
                variables,
                said,
                ..
            } = given;
            unix::leave_session()?;
            let call = Call {
                spec,
                variables,
                said,
                followed_while: None,
            };
            let served = serve_call(&call, control, frames, &begun, launch);
            // The command can have stopped our guard, which no other process would wake.
            unix::resume_parent(None);
            served.map(|_| 0)
        }
    }
}

/// End of a call.
pub(super) enum SupervisionEnd {
    /// The agent was told that the supervisor takes another call. This holds the mounts of the command, which are taken
    /// down when it is dropped.
    Waits(Option<OwnedFd>),
    /// The supervisor takes no other call.
    Over,
}

/// Supervises a call to its end; `launch` starts its command, whose mark it is given.
pub(super) fn serve_call(
    call: &Call,
    control: OwnedFd,
    frames: OwnedFd,
    begun: &Begun,
    launch: impl FnOnce(&Call, &str) -> io::Result<LaunchedCommand>,
) -> io::Result<SupervisionEnd> {
    let spec = &call.spec;
    let mut status = CallStatus::new(spec);
    status.create(spec).map_err(|err| unwritten(spec, &err))?;
    let mut frame = Vec::new();
    let watcher = status.watcher();
    encode_frame(FrameKind::Ready, &serde_json::to_vec(&watcher)?, &mut frame);
    write_all(&frames, &frame)?;
    if !told_to_go(&call.said, &control)? || !is_wanted(&control)? {
        return Ok(SupervisionEnd::Over);
    }
    // Before the status that sends the next agent here.
    let link = Link::new(spec, control, frames);
    // Before the command: if this is the last line and no process is left, its end is unknown.
    status.state = CommandState::Running;
    status.append(spec).map_err(|err| unwritten(spec, &err))?;
    // Before the command too, which can stop us.
    begun.tell();
    let now = Instant::now();
    let mut entry = None;
    let launched = ledger::begin(spec, &status).and_then(|it| {
        entry = it;
        launch(call, &watcher.mark(&spec.key))
    });
    let started = launched.and_then(StartedCommand::new).map_err(|err| {
        ledger::end(entry.take(), &mut []);
        status.state = CommandState::Failed;
        let _ = status.append(spec);
        io::Error::new(err.kind(), format!("failed to start pty: {err}"))
    })?;
    let mut supervision = Supervision::new(call, started, link, now);
    supervision.entry = entry;
    supervision.link.tell_started();
    supervision.run(status)
}

fn unwritten(spec: &CallSpec, err: &io::Error) -> io::Error {
    let place = spec.state_dir.display();
    io::Error::new(
        err.kind(),
        format!("failed to write the state of the command in `{place}`: {err}"),
    )
}

/// Waits until the agent says so, or has gone.
pub(super) fn told_to_go(said: &[u8], control: &OwnedFd) -> io::Result<bool> {
    if let Some(first) = said.first() {
        return Ok(*first == GO && !said.contains(&END));
    }
    let mut byte = [0; 1];
    loop {
        match rustix::io::read(control, &mut byte) {
            Ok(0) => return Ok(false),
            Ok(_) => return Ok(byte == [GO]),
            Err(Errno::INTR) => {}
            Err(err) => return Err(err.into()),
        }
    }
}

/// Returns whether the agent is still there, and has not said since that the command must end.
///
/// It may have said that the command may run before there was a status file. An agent that comes next finds the file if
/// this one is still there now.
fn is_wanted(control: &OwnedFd) -> io::Result<bool> {
    let mut polled = [PollFd::new(control, PollFlags::IN)];
    let now = unix::timespec(Duration::ZERO);
    while let Err(err) = rustix::event::poll(&mut polled, Some(&now)) {
        if err != Errno::INTR {
            return Err(err.into());
        }
    }
    let [control] = polled;
    // The only possible order now is to end.
    Ok(control.revents().is_empty())
}

struct StartedCommand {
    leader: Pid,
    master: OwnedFd,
    slave: OwnedFd,
    children: Children,
    protection: Protection,
}

/// A command that was started.
pub(super) struct LaunchedCommand {
    pub(super) leader: Pid,
    pub(super) pty: Pty,
    pub(super) protection: Protection,
}

pub(super) fn launch(call: &Call, mark: &str) -> io::Result<LaunchedCommand> {
    let pty = unix::open_pty(call.spec.pty)?;
    let (leader, protection) = unix::spawn_command(&call.spec, &call.variables, &pty, mark)?;
    Ok(LaunchedCommand {
        leader,
        pty,
        protection,
    })
}

impl StartedCommand {
    fn new(launched: LaunchedCommand) -> io::Result<Self> {
        let Pty { master, slave } = launched.pty;
        rustix::io::ioctl_fionbio(&master, true)?;
        Ok(Self {
            leader: launched.leader,
            master,
            slave,
            children: Children::notice()?,
            protection: launched.protection,
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The command runs; its time is up at this instant.
    Running { until: Instant },
    /// The command has ended; what it wrote last is still taken, until none came for a while.
    Draining { until: Instant, quiet: Instant },
    /// The tree was asked to end.
    Ending { until: Instant },
    /// The tree is being killed.
    Killing { until: Instant },
    /// Nothing is left, or nothing can be done.
    Over,
}

struct Supervision<'a> {
    spec: &'a CallSpec,
    followed_while: Option<&'a ProcessLimits>,
    leader: Pid,
    master: Option<OwnedFd>,
    /// The command's end, held until its leader ended: when the last holder closes it, as programs
    /// do right before they exit, the terminal hangs up and the kernel sends them SIGHUP.
    slave: Option<OwnedFd>,
    /// None once no process is left.
    children: Option<Children>,
    link: Link,
    capture: Capture,
    phase: Phase,
    exit: Option<(i32, Option<String>)>,
    timed_out: bool,
    cancelled: bool,
    exceeded: Option<Exceeded>,
    /// The bound on the memory of its processes, in bytes.
    memory_max: u64,
    /// When its processes are measured next.
    measure_at: Instant,
    /// How many processes were there still when the leader ended, and were ended by that or by us.
    cut_off: u32,
    /// Requests of its programs for a person.
    prompts: Prompts,
    /// Processes that were running when the command had ended.
    left_running: u32,
    /// Set if the command is in a PID namespace of its own, whose first process collects the others.
    has_init: bool,
    protection: Protection,
    /// Changes that were refused to the running command.
    refused: Vec<UndoneChange>,
    /// Record of the protected files before the command.
    entry: Option<Entry>,
}

#[derive(Clone, Copy, Default)]
struct LoopEvents {
    output: bool,
    reaped: bool,
    told: bool,
    called: bool,
    sendable: bool,
    watched: bool,
}

impl<'a> Supervision<'a> {
    fn new(call: &'a Call, started: StartedCommand, link: Link, now: Instant) -> Self {
        let spec = &call.spec;
        let kept = spec.output_bytes_max.min(OUTPUT_BYTES_CEILING);
        Self {
            spec,
            followed_while: call.followed_while.as_ref(),
            leader: started.leader,
            master: Some(started.master),
            slave: Some(started.slave),
            children: Some(started.children),
            cut_off: 0,
            link,
            capture: match spec.is_kept {
                true => Capture::new(kept, spec.spill_path(), spec.spill_bytes_max),
                false => Capture::in_memory(kept),
            }
            .without(&spec.secrets),
            phase: Phase::Running {
                until: now.checked_add(spec.timeout()).unwrap_or(now),
            },
            exit: None,
            timed_out: false,
            cancelled: false,
            exceeded: None,
            memory_max: spec.memory_max(),
            measure_at: now + MEASURE_EVERY,
            prompts: Prompts::new(now),
            left_running: 0,
            has_init: started.protection.has_namespaces(),
            protection: started.protection,
            refused: Vec::new(),
            entry: None,
        }
    }

    fn run(mut self, status: CallStatus) -> io::Result<SupervisionEnd> {
        let mut buffer = vec![0; READ_BYTES];
        // Processes that ended before they could be reported.
        self.take_reaped();
        self.advance(LoopEvents::default());
        while self.phase != Phase::Over {
            let happened = self.wait()?;
            if happened.reaped {
                self.take_reaped();
            }
            if happened.told {
                self.take_order();
            }
            if happened.called {
                self.link.accept(&|| self.capture.so_far());
            }
            if happened.sendable {
                self.link.send();
            }
            if happened.watched {
                self.take_watched();
            }
            if happened.output {
                self.take_output(&mut buffer);
            }
            self.link.show_held(Instant::now());
            self.advance(happened);
        }
        self.finish(status)
    }

    fn wait(&self) -> io::Result<LoopEvents> {
        let mut fds = Vec::with_capacity(6);
        let reads_output = self.link.is_idle() || !self.is_running();
        let reaped = self.children.as_ref().map(AsFd::as_fd);
        let master = self.master.as_ref().map(AsFd::as_fd);
        let watch = self.protection.watch_fd();
        let [control, attach_socket, frames] = self.link.watched();
        let watched = [
            reaped.map(|fd| (fd, PollFlags::IN)),
            control,
            attach_socket,
            frames,
            master
                .filter(|_| reads_output)
                .map(|fd| (fd, PollFlags::IN)),
            watch.map(|fd| (fd, PollFlags::IN)),
        ];
        fds.extend(
            watched
                .iter()
                .flatten()
                .map(|(fd, flags)| PollFd::from_borrowed_fd(*fd, *flags)),
        );
        let timeout = unix::timespec(self.patience());
        match rustix::event::poll(&mut fds, Some(&timeout)) {
            Ok(_) => {}
            // By the end of a child, most likely.
            Err(Errno::INTR) => {
                return Ok(LoopEvents {
                    reaped: true,
                    ..LoopEvents::default()
                });
            }
            Err(err) => return Err(err.into()),
        }
        let mut polled = fds.iter();
        let mut ready = watched
            .iter()
            .map(|slot| slot.is_some() && polled.next().is_some_and(|fd| !fd.revents().is_empty()));
        let mut next = || ready.next().unwrap_or_default();
        Ok(LoopEvents {
            reaped: next(),
            told: next(),
            called: next(),
            sendable: next(),
            output: next(),
            watched: next(),
        })
    }

    fn is_running(&self) -> bool {
        matches!(self.phase, Phase::Running { .. })
    }

    fn patience(&self) -> Duration {
        let now = Instant::now();
        let quiet = self.link.quiet_at();
        let patience = match self.phase {
            Phase::Running { until } => {
                let alone = self.link.orphan_deadline().unwrap_or(until);
                let next = until.min(alone).min(self.measure_at);
                next.saturating_duration_since(now)
            }
            Phase::Ending { until } => until.saturating_duration_since(now),
            Phase::Draining { until, quiet } => until.min(quiet).saturating_duration_since(now),
            Phase::Killing { until } => until.saturating_duration_since(now).min(KILL_EVERY),
            Phase::Over => Duration::ZERO,
        };
        quiet.map_or(patience, |at| {
            patience.min(at.saturating_duration_since(now))
        })
    }

    fn take_reaped(&mut self) {
        let Some(children) = &self.children else {
            return;
        };
        children.forget_told();
        let mut others = Vec::new();
        let mut is_whole = false;
        let mut has_failed = false;
        for _ in 0..COLLECTED_MAX {
            match children.next_ended() {
                Ok(Some((process, status))) if process == self.leader => {
                    self.exit = Some(unix::exit_of(status));
                    self.slave = None;
                }
                Ok(Some((_, status))) => others.push(status),
                Ok(None) => is_whole = true,
                Err(_) => has_failed = true,
            }
            if is_whole || has_failed {
                break;
            }
        }
        if has_failed {
            self.children = None;
        } else if !is_whole {
            children.tell_again();
        }
        // The leader first, in whichever order they were collected: what another one's status means depends on it.
        let is_leader_gone = self.exit.is_some();
        for status in others {
            self.cut_off += match self.has_init && is_leader_gone {
                // It is the first process of the command's namespace, which says how many.
                true => unix::count_of(status),
                false => u32::from(unix::was_cut_off(status, is_leader_gone)),
            };
        }
    }

    fn take_order(&mut self) {
        if self.link.is_told_to_end() {
            match self.phase {
                // The guard, which keeps the time as well, may be first, if we were stopped meanwhile.
                Phase::Running { until } if Instant::now() >= until => self.timed_out = true,
                Phase::Running { .. } => self.cancelled = true,
                _ => {}
            }
            self.end_tree();
        }
    }

    /// Refuses what the command has made and may not make; ends a command that does it again and again.
    fn take_watched(&mut self) {
        let watched = self.protection.take_watched(Instant::now());
        for undone in watched.undone {
            // The output of a loop is reported once.
            self.refused.retain(|it| it.path != undone.path);
            self.refused.push(undone);
        }
        if watched.is_repeated {
            self.end_tree();
        }
    }

    fn take_output(&mut self, buffer: &mut [u8]) {
        match self
            .master
            .as_ref()
            .map(|fd| rustix::io::read(fd, &mut *buffer))
        {
            Some(Ok(0)) => self.master = None,
            Some(Err(Errno::AGAIN | Errno::INTR)) | None => {}
            // EIO: no process holds the command's end any more.
            Some(Err(_)) => self.master = None,
            Some(Ok(length)) => {
                let output = buffer.get(..length).unwrap_or_default();
                self.capture.push(output);
                self.link.relay(output);
                self.prompts.note_output(Instant::now(), output);
            }
        }
    }

    fn advance(&mut self, happened: LoopEvents) {
        let now = Instant::now();
        if self.is_running() && now >= self.measure_at {
            match self.is_over_a_bound(now) {
                true => self.kill_tree(now + KILL_MAX),
                false => self.answer_prompts(now),
            }
        }
        match self.phase {
            Phase::Running { .. } if self.exit.is_some() => {
                self.advance_drain(now, now + DRAIN_MAX, now + DRAIN_QUIET);
            }
            Phase::Running { until } if now >= until => {
                self.timed_out = true;
                self.end_tree();
            }
            Phase::Running { .. } if self.link.orphan_deadline().is_some_and(|end| now >= end) => {
                self.cancelled = true;
                self.end_tree();
            }
            Phase::Draining { until, .. } if happened.output => {
                self.advance_drain(now, until, now + DRAIN_QUIET);
            }
            Phase::Draining { until, quiet } => self.advance_drain(now, until, quiet),
            Phase::Ending { .. } | Phase::Killing { .. } if self.is_tree_gone() => {
                self.phase = Phase::Over;
            }
            Phase::Ending { until } if now >= until => {
                self.kill_tree(now + KILL_MAX);
            }
            Phase::Killing { until } if now >= until => self.phase = Phase::Over,
            Phase::Killing { until } => self.kill_tree(until),
            Phase::Running { .. } | Phase::Ending { .. } | Phase::Over => {}
        }
    }

    /// Measures the processes of the command; returns whether they take more than they may.
    fn is_over_a_bound(&mut self, now: Instant) -> bool {
        let measured = unix::measure(PROCESSES_MAX, self.memory_max);
        let took = now.elapsed();
        self.measure_at = now + MEASURE_EVERY.max(took * MEASURE_PART);
        self.exceeded = if measured.processes > PROCESSES_MAX {
            Some(Exceeded::Processes(PROCESSES_MAX))
        } else if measured.memory > self.memory_max {
            Some(Exceeded::Memory(self.memory_max))
        } else {
            None
        };
        self.exceeded.is_some()
    }

    /// Answers a program that waits for a user to type.
    fn answer_prompts(&mut self, now: Instant) {
        if let (Some(master), Some(slave)) = (&self.master, &self.slave) {
            let capture = &self.capture;
            self.prompts.look(now, master, slave, || capture.so_far());
        }
    }

    fn advance_drain(&mut self, now: Instant, until: Instant, quiet: Instant) {
        let is_over = now >= until.min(quiet);
        self.phase = match (self.is_tree_gone(), self.master.is_none()) {
            (true, true) => Phase::Over,
            (true, false) if is_over => Phase::Over,
            (false, _) if is_over => {
                self.left_running = unix::count_descendants();
                return self.end_tree();
            }
            _ => Phase::Draining { until, quiet },
        };
    }

    /// On systems without adopted orphans only the leader can be waited for.
    fn is_tree_gone(&self) -> bool {
        self.children.is_none() && self.exit.is_some()
    }

    fn end_tree(&mut self) {
        if matches!(
            self.phase,
            Phase::Ending { .. } | Phase::Killing { .. } | Phase::Over
        ) {
            return;
        }
        if !self.signal_namespace(Signal::TERM) {
            unix::signal_tree(self.leader, Signal::TERM);
            unix::signal_tree(self.leader, Signal::CONT);
        }
        self.phase = Phase::Ending {
            until: Instant::now() + TERM_GRACE,
        };
    }

    fn kill_tree(&mut self, until: Instant) {
        if !self.signal_namespace(Signal::KILL) {
            unix::signal_tree(self.leader, Signal::KILL);
        }
        self.phase = Phase::Killing { until };
    }

    /// Signals everything in the command's namespace; returns whether it has one that is still there.
    fn signal_namespace(&self, signal: Signal) -> bool {
        self.has_init && unix::signal_namespace(self.leader, signal)
    }

    fn finish(mut self, mut status: CallStatus) -> io::Result<SupervisionEnd> {
        if !self.is_tree_gone() || !cfg!(target_os = "linux") {
            unix::signal_tree(self.leader, Signal::KILL);
        }
        self.drain_rest();
        status.undone = std::mem::take(&mut self.refused);
        status.undone.extend(self.protection.restore());
        status.state = CommandState::Ended;
        let is_tree_gone = self.is_tree_gone();
        // Processes that are left can still change the files, so its entry stays.
        let entry = self.entry.take().filter(|_| is_tree_gone);
        ledger::end(entry, &mut status.undone);
        status.state = CommandState::Ended;
        status.survivors = !is_tree_gone;
        status.timed_out = self.timed_out;
        status.exceeded = self.exceeded;
        status.cancelled = self.cancelled;
        status.prompts = self.prompts.take();
        status.left_running = self.left_running.max(self.cut_off);
        let (code, signal) = self.exit.take().unzip();
        status.exit_code = code;
        status.signal = signal.flatten();
        let captured = self.capture.finish();
        status.stdout = captured.text;
        status.omitted_bytes = captured.omitted_bytes;
        status.full_output = captured.spill;
        if is_tree_gone {
            let lost = self.protection.lost(&self.spec.command, &status.stdout);
            status.lost = lost
                .iter()
                .take(LOST_MAX)
                .map(|it| shown_path(it))
                .collect();
        }
        let written = status.append(self.spec);
        // Of a call whose end is not on the disk, it must be visible that it is not supervised any more.
        let is_as_before = self
            .followed_while
            .is_some_and(|it| *it == ProcessLimits::own());
        let waits = is_as_before && is_tree_gone && written.is_ok() && self.link.has_first_agent();
        let kind = match waits {
            true => FrameKind::DoneAndWaits,
            false => FrameKind::Done,
        };
        self.link.finish(kind, &serde_json::to_vec(&status)?)?;
        written?;
        Ok(match waits {
            true => SupervisionEnd::Waits(self.protection.take_namespaces()),
            false => SupervisionEnd::Over,
        })
    }

    /// Reads the rest of the terminal's output once no process can write to it any more.
    fn drain_rest(&mut self) {
        const READS_MAX: usize = 64;
        let mut buffer = vec![0; READ_BYTES];
        for _ in 0..READS_MAX {
            match self
                .master
                .as_ref()
                .map(|fd| rustix::io::read(fd, &mut buffer))
            {
                Some(Ok(length)) if length > 0 => {
                    self.capture.push(buffer.get(..length).unwrap_or_default());
                }
                _ => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn a_command_is_wanted_as_long_as_its_agent_is_there_and_says_nothing_else() {
        let (control, mut agent) = io::pipe().unwrap();
        let control = OwnedFd::from(control);
        agent.write_all(&[GO]).unwrap();
        assert!(told_to_go(&[], &control).unwrap() && is_wanted(&control).unwrap());
        agent.write_all(&[END]).unwrap();
        assert!(!is_wanted(&control).unwrap());
        let (control, mut agent) = io::pipe().unwrap();
        let control = OwnedFd::from(control);
        agent.write_all(&[GO]).unwrap();
        drop(agent);
        assert!(told_to_go(&[], &control).unwrap() && !is_wanted(&control).unwrap());
    }
}
