//! The supervisor's way to its agent, and to the next agent if that one is gone.

use super::pipe::send_last;
use super::protocol::{CallSpec, END, FrameKind, encode_frame};
use super::unix::AttachSocket;
use rondo_core::redact::Redactor;
use rustix::event::PollFlags;
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

/// How much unsent output is kept once the command has ended and is no longer held back, in bytes.
const PENDING_BYTES_MAX: usize = 1 << 20;
/// How long the command is quiet before what is held back of its output is shown, as far as it may be.
const QUIET: Duration = Duration::from_millis(50);
/// The longest payload of a frame of output, in bytes.
pub(super) const OUTPUT_FRAME_BYTES: usize = 16 << 10;

/// Returns the name of the socket at which a supervisor is called by the next agent. Not the call's
/// key: a socket's path may be 100 bytes long.
pub(super) fn attach_socket_name(supervisor: u32) -> String {
    format!("{supervisor}.sock")
}

/// Returns the supervisor whose attach socket has that name.
pub(super) fn supervisor_of(name: &str) -> Option<u32> {
    name.strip_suffix(".sock")?.parse().ok()
}

/// Connected agents, and agents that may connect.
pub(super) struct Link {
    agent: Option<Agent>,
    /// Set if that is the one that handed the call over.
    is_first: bool,
    attach_socket: Option<AttachSocket>,
    /// Since when there is no agent.
    alone_since: Option<Instant>,
    outlive: Duration,
    /// Removes secrets from the live output.
    redactor: Redactor,
    /// When the command is quiet, where something is held back that may be shown then.
    quiet: Option<Instant>,
    /// Frames being sent; while there are some and the command runs, the terminal is not read.
    pending: Vec<u8>,
}

struct Agent {
    control: OwnedFd,
    frames: OwnedFd,
}

impl Link {
    pub(super) fn new(spec: &CallSpec, control: OwnedFd, frames: OwnedFd) -> Self {
        let _ = rustix::io::ioctl_fionbio(&frames, true);
        let outlive = Duration::from_millis(spec.outlive_ms);
        Self {
            agent: Some(Agent { control, frames }),
            is_first: true,
            attach_socket: open_attach_socket(&spec.state_dir, outlive),
            alone_since: None,
            outlive,
            redactor: spec.secrets.redactor(),
            quiet: None,
            pending: Vec::new(),
        }
    }

    /// Reports that the command is executed.
    pub(super) fn tell_started(&mut self) {
        encode_frame(FrameKind::Started, b"", &mut self.pending);
        self.send();
    }

    /// Returns the descriptors to wait for: orders, callers, and room for waiting output.
    pub(super) fn watched(&self) -> [Option<(BorrowedFd<'_>, PollFlags)>; 3] {
        let agent = self.agent.as_ref();
        [
            agent.map(|agent| (agent.control.as_fd(), PollFlags::IN)),
            self.attach_socket
                .as_ref()
                .map(|it| (it.as_fd(), PollFlags::IN)),
            agent
                .filter(|_| !self.pending.is_empty())
                .map(|agent| (agent.frames.as_fd(), PollFlags::OUT)),
        ]
    }

    /// Returns whether everything was sent.
    pub(super) fn is_idle(&self) -> bool {
        self.pending.is_empty()
    }

    /// Returns until when the command may continue without an agent, if there is none.
    pub(super) fn orphan_deadline(&self) -> Option<Instant> {
        self.alone_since
            .map(|since| since.checked_add(self.outlive).unwrap_or(since))
    }

    /// Reads the agent's messages; returns whether the command must end.
    pub(super) fn is_told_to_end(&mut self) -> bool {
        let mut bytes = [0; 16];
        let Some(agent) = self.agent.as_ref() else {
            return false;
        };
        match rustix::io::read(&agent.control, &mut bytes) {
            Ok(length) if bytes.iter().take(length).any(|byte| *byte == END) => return true,
            Err(Errno::AGAIN | Errno::INTR) => {}
            Ok(0) | Err(_) => self.lose_agent(),
            Ok(_) => {}
        }
        false
    }

    /// Accepts the next agent, which gets the output so far. It takes the place of an earlier
    /// one: a session has one owner, so that one is gone or goes.
    pub(super) fn accept(&mut self, so_far: &dyn Fn() -> Vec<u8>) {
        let Some(Ok((control, frames))) = self.attach_socket.as_ref().map(AttachSocket::accept)
        else {
            return;
        };
        self.agent = Some(Agent { control, frames });
        self.is_first = false;
        self.alone_since = None;
        self.pending.clear();
        for piece in so_far().chunks(OUTPUT_FRAME_BYTES) {
            encode_frame(FrameKind::Output, piece, &mut self.pending);
        }
    }

    /// Relays output as the command wrote it, but for secrets. The possible beginning of one is
    /// held back.
    pub(super) fn relay(&mut self, output: &[u8]) {
        let told = self.redactor.push(output);
        // Without an agent too: the next one comes in between two pieces.
        self.quiet = self.redactor.can_show().then(|| Instant::now() + QUIET);
        self.add(&told);
        self.send();
    }

    /// Returns when [`Self::show_held`] must be called, if anything waits for that.
    pub(super) fn quiet_at(&self) -> Option<Instant> {
        self.quiet
    }

    /// Relays what is held back and may be shown, if the command is quiet.
    pub(super) fn show_held(&mut self, now: Instant) {
        if self.quiet.is_some_and(|quiet| now >= quiet) {
            self.quiet = None;
            let shown = self.redactor.show();
            self.add(&shown);
            self.send();
        }
    }

    /// A frame is never longer than agents take: what was held back comes with what follows it.
    fn add(&mut self, output: &[u8]) {
        if self.agent.is_some() && self.pending.len() < PENDING_BYTES_MAX {
            for piece in output.chunks(OUTPUT_FRAME_BYTES) {
                encode_frame(FrameKind::Output, piece, &mut self.pending);
            }
        }
    }

    pub(super) fn send(&mut self) {
        let Some(agent) = self.agent.as_ref().filter(|_| !self.pending.is_empty()) else {
            return;
        };
        match rustix::io::write(&agent.frames, &self.pending) {
            Ok(written) => drop(self.pending.drain(..written.min(self.pending.len()))),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => self.lose_agent(),
        }
    }

    /// Returns whether the agent that handed the call over is there still, which alone can hand over another.
    pub(super) fn has_first_agent(&self) -> bool {
        self.is_first && self.agent.is_some()
    }

    /// Sends what is left and the last frame, to an agent that reads it within its time.
    pub(super) fn finish(mut self, kind: FrameKind, status: &[u8]) -> io::Result<()> {
        let held = self.redactor.finish();
        self.add(&held);
        // Before the agent reads of the end: from then on no process should find a command here.
        self.attach_socket = None;
        let Some(agent) = self.agent else {
            return Ok(());
        };
        encode_frame(kind, status, &mut self.pending);
        send_last(&agent.frames, &self.pending)
    }

    fn lose_agent(&mut self) {
        self.agent = None;
        self.pending = Vec::new();
        self.alone_since = Some(Instant::now());
    }
}

/// Without an attach socket the command continues all the same, and its status file records its end.
fn open_attach_socket(state_dir: &Path, outlive: Duration) -> Option<AttachSocket> {
    if outlive.is_zero() {
        return None;
    }
    AttachSocket::open(state_dir, &attach_socket_name(std::process::id())).ok()
}
