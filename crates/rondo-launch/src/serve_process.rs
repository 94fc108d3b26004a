//! The supervisor of a process that has its streams from its agent: it passes orders on, and ends the tree.

use super::assignment::{Assignment, ForkLifeline};
use super::guard::{self, KILL_MAX, Side, TERM_GRACE, Watch};
use super::pipe::write_all;
use super::process::ProcessExit;
use super::protocol::{END, FrameKind, INTERRUPT, KILL, ProcessSpec, WAKE, Watcher, encode_frame};
use super::reaper::start_reaper;
use super::role::Role;
use super::unix;
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::process::{Pid, Signal};
use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// The supervisor of a process.
pub(super) const ROLE: Role = Role {
    name: "process",
    descriptors: STREAMS,
    serve,
};
/// Standard input, output and error.
pub(super) const STREAMS: usize = 3;
/// How often SIGKILL is repeated.
const KILL_EVERY: Duration = Duration::from_millis(5);

/// Runs one process from its specification to its end.
fn serve(mut given: Assignment) -> io::Result<i32> {
    let spec: ProcessSpec = given.spec()?;
    let streams = std::mem::take(&mut given.descriptors);
    let streams: [OwnedFd; STREAMS] = streams
        .try_into()
        .map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    unix::show_environment();
    if spec.leaves_detached {
        // Its orphans are not ours.
        rustix::process::setsid()?;
        return Process::supervise(&spec, given, streams);
    }
    match given.life.is_some() {
        true => unix::adopt_orphans()?,
        false => unix::leave_session()?,
    }
    match guard::split()? {
        Side::Guard(mut ward) => {
            drop(streams);
            let life = given.let_go();
            let code = ward.watch(&Watch::of_process());
            life.iter().for_each(ForkLifeline::end);
            Ok(code)
        }
        Side::Supervisor(_begun) => {
            given.life = None;
            unix::leave_session()?;
            let served = Process::supervise(&spec, given, streams);
            // The process can have stopped our guard, which no other process would wake.
            unix::resume_parent(None);
            served
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Running,
    /// The tree was asked to end.
    Ending {
        until: Instant,
    },
    /// The tree is being killed.
    Killing {
        until: Instant,
    },
    /// Nothing is left, or nothing can be done.
    Over,
}

struct Process<'a> {
    spec: &'a ProcessSpec,
    leader: Pid,
    control: Option<OwnedFd>,
    frames: OwnedFd,
    reaped: Option<OwnedFd>,
    phase: Phase,
}

impl<'a> Process<'a> {
    fn supervise(
        spec: &'a ProcessSpec,
        mut given: Assignment,
        streams: [OwnedFd; STREAMS],
    ) -> io::Result<i32> {
        if !given.is_to_go()? {
            return Ok(0);
        }
        let mark = Watcher::own().mark(ProcessSpec::KEY);
        // Everything in the sandbox ends with it.
        let (leader, _protection) = unix::spawn_process(spec, &given.variables, streams, &mark)?;
        let reaper = start_reaper(leader)?;
        let _ = tell(&given.frames, FrameKind::Started, b"");
        Self {
            spec,
            leader,
            control: Some(given.control),
            frames: given.frames,
            reaped: Some(reaper.report),
            phase: Phase::Running,
        }
        .run()?;
        if let Some(life) = given.life {
            life.end();
        }
        Ok(0)
    }

    fn run(mut self) -> io::Result<()> {
        while self.phase != Phase::Over {
            let [control, reaped] = self.wait()?;
            if reaped {
                self.take_reaped();
            }
            if control {
                self.take_orders();
            }
            self.advance(Instant::now());
        }
        Ok(())
    }

    /// Waits for orders and for ended processes.
    fn wait(&self) -> io::Result<[bool; 2]> {
        let now = Instant::now();
        let left = match self.phase {
            Phase::Running => None,
            Phase::Ending { until } => Some(until.saturating_duration_since(now)),
            Phase::Killing { until } => Some(until.saturating_duration_since(now).min(KILL_EVERY)),
            Phase::Over => Some(Duration::ZERO),
        };
        let watched = [self.control.as_ref(), self.reaped.as_ref()];
        let mut fds: Vec<_> = watched
            .iter()
            .flatten()
            .map(|fd| PollFd::new(*fd, PollFlags::IN))
            .collect();
        match rustix::event::poll(&mut fds, left.map(unix::timespec).as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(err) => return Err(err.into()),
        }
        let mut polled = fds.iter();
        Ok(watched
            .map(|slot| slot.is_some() && polled.next().is_some_and(|fd| !fd.revents().is_empty())))
    }

    fn take_reaped(&mut self) {
        let mut bytes = [0; 64];
        let read = self
            .reaped
            .as_ref()
            .map(|fd| rustix::io::read(fd, &mut bytes));
        match read {
            Some(Err(Errno::INTR)) | None => {}
            Some(Ok(length)) if length > 0 => {
                let report = bytes.get(..length).unwrap_or_default();
                let exit = ProcessExit::from_report(report);
                let exit = serde_json::to_vec(&exit).unwrap_or_default();
                let _ = tell(&self.frames, FrameKind::Done, &exit);
                match self.spec.leaves_detached {
                    true => self.kill(),
                    false => self.end_tree(),
                }
            }
            // No process is left.
            Some(_) => {
                self.reaped = None;
                self.phase = Phase::Over;
            }
        }
    }

    fn take_orders(&mut self) {
        let mut orders = [0; 64];
        let read = self
            .control
            .as_ref()
            .map(|fd| rustix::io::read(fd, &mut orders));
        match read {
            Some(Err(Errno::AGAIN | Errno::INTR)) | None => {}
            Some(Ok(length)) if length > 0 => {
                for order in orders.iter().take(length) {
                    self.obey(*order);
                }
            }
            Some(_) => {
                self.control = None;
                self.end_tree();
            }
        }
    }

    fn obey(&mut self, order: u8) {
        match order {
            END => self.end_tree(),
            KILL => self.kill(),
            // Once it has ended, its id may be another's.
            INTERRUPT if self.phase == Phase::Running => {
                unix::interrupt(self.leader);
            }
            WAKE if self.phase == Phase::Running => {
                let _ = rustix::process::kill_process(self.leader, Signal::WINCH);
            }
            _ => {}
        }
    }

    fn advance(&mut self, now: Instant) {
        match self.phase {
            Phase::Ending { until } if now >= until => self.kill(),
            Phase::Killing { until } if now >= until => self.phase = Phase::Over,
            Phase::Killing { .. } => self.signal(Signal::KILL),
            Phase::Running | Phase::Ending { .. } | Phase::Over => {}
        }
    }

    fn end_tree(&mut self) {
        if self.phase == Phase::Running {
            self.signal(Signal::TERM);
            self.signal(Signal::CONT);
            self.phase = Phase::Ending {
                until: Instant::now() + TERM_GRACE,
            };
        }
    }

    fn kill(&mut self) {
        if matches!(self.phase, Phase::Running | Phase::Ending { .. }) {
            self.signal(Signal::KILL);
            self.phase = Phase::Killing {
                until: Instant::now() + KILL_MAX,
            };
        }
    }

    fn signal(&self, signal: Signal) {
        match self.spec.leaves_detached {
            true => {
                let _ = rustix::process::kill_process_group(self.leader, signal);
            }
            false => unix::signal_tree(self.leader, signal),
        }
    }
}

fn tell(frames: &OwnedFd, kind: FrameKind, payload: &[u8]) -> io::Result<()> {
    let mut frame = Vec::new();
    encode_frame(kind, payload, &mut frame);
    write_all(frames, &frame)
}
