//! Start parameters of a supervisor, from a keeper or from its own process.

use super::handed::{self, HANDED_BYTES_MAX, SPEC_BYTES_MAX, Variables};
use super::keeper::GUARD_ENDS;
use super::pipe::{read_line, write_all};
use super::protocol::{FrameKind, Watcher, encode_frame};
use super::serve::told_to_go;
use super::unix::{self, descriptors, handover};
use serde::de::DeserializeOwned;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};

/// Start parameters of a supervisor.
#[derive(Debug)]
pub struct Assignment {
    /// Commands from the agent.
    pub control: OwnedFd,
    /// Replies to the agent.
    pub frames: OwnedFd,
    /// Environment of the started processes; they get no other variables.
    pub variables: Variables,
    /// Bytes from the agent after the specification.
    pub said: Vec<u8>,
    /// As many as the role takes.
    pub descriptors: Vec<OwnedFd>,
    /// Tells the agent that this process is there, if a keeper forked it.
    pub life: Option<ForkLifeline>,
    line: Vec<u8>,
}

/// Notifications to a keeper's agent about its fork. At end of file when no process holds it any more.
#[derive(Debug)]
pub struct ForkLifeline {
    of_fork: OwnedFd,
    /// The keeper's process id.
    keeper: u32,
}

impl ForkLifeline {
    /// Reports to the keeper which forked this process that it runs.
    pub(super) fn begin(of_fork: OwnedFd, keeper: u32) -> io::Result<Self> {
        descriptors::send(&of_fork, &[handover::own_handle()?.as_fd()])?;
        Ok(Self { of_fork, keeper })
    }

    /// Reports the end of this process, with nothing left of its assignment.
    pub(super) fn end(&self) {
        let _ = rustix::io::write(&self.of_fork, &[GUARD_ENDS]);
        // The command can have stopped it, and its agent may be gone.
        unix::resume_parent(Some(self.keeper));
    }
}

impl Assignment {
    /// Takes the assignment of a supervisor that was started for itself: descriptors, a line, and the environment.
    pub(super) fn from_stdio(descriptor_count: usize) -> io::Result<Self> {
        // Other open descriptors are not meant for the command; if they cannot be closed, the command sees those that
        // the agent was given.
        let _ = handover::close_others();
        let control = rustix::io::fcntl_dupfd_cloexec(io::stdin(), 3)?;
        let frames = rustix::io::fcntl_dupfd_cloexec(io::stdout(), 3)?;
        let descriptors = match descriptor_count {
            0 => Vec::new(),
            _ => descriptors::receive(&control)?.unwrap_or_default(),
        };
        let (line, said) = read_line(&control, SPEC_BYTES_MAX)?;
        Ok(Self {
            control,
            frames,
            variables: handed::variables_from_env(),
            said,
            descriptors,
            life: None,
            line,
        })
    }

    /// Takes the assignment of a keeper's fork, and the name of the role in it: sealed memory, the two pipes, the
    /// socket that reports the fork, and the role's own descriptors.
    pub(super) fn from_keeper(
        mut descriptors: Vec<OwnedFd>,
        keeper: u32,
    ) -> io::Result<(String, Self)> {
        let others = descriptors.split_off(CALL_DESCRIPTORS.min(descriptors.len()));
        let own: Result<[OwnedFd; CALL_DESCRIPTORS], _> = descriptors.try_into();
        let [memory, control, frames, of_fork] = own.map_err(|_| io::ErrorKind::InvalidInput)?;
        let life = ForkLifeline::begin(of_fork, keeper)?;
        // Destination of the reason for which nothing was started.
        rustix::stdio::dup2_stdout(&frames)?;
        let bytes = handover::read_sealed(memory, HANDED_BYTES_MAX)?;
        let handed::HandoverParts {
            role,
            line,
            variables,
        } = handed::decode(&bytes)?;
        let given = Self {
            control,
            frames,
            variables,
            said: Vec::new(),
            descriptors: others,
            life: Some(life),
            line,
        };
        Ok((role, given))
    }

    /// Reports that this process runs, and waits for its agent's word to continue; returns whether it came.
    ///
    /// Nothing may be started before: an agent that hears nothing of this has another supervisor do it.
    ///
    /// # Errors
    /// When the agent does not read or answer.
    pub fn is_to_go(&mut self) -> io::Result<bool> {
        let mut frame = Vec::new();
        let watcher = serde_json::to_vec(&Watcher::own())?;
        encode_frame(FrameKind::Ready, &watcher, &mut frame);
        write_all(&self.frames, &frame)?;
        let is_told = told_to_go(&self.said, &self.control)?;
        // The rest is for the role.
        self.said.drain(..self.said.len().min(1));
        Ok(is_told)
    }

    /// Closes what is the supervisor's, for its guard.
    pub(super) fn let_go(self) -> Option<ForkLifeline> {
        unix::let_go_of_stdio();
        self.life
    }

    /// Reads the specification.
    ///
    /// # Errors
    /// When it is not of that kind.
    pub fn spec<T: DeserializeOwned>(&self) -> io::Result<T> {
        Ok(serde_json::from_slice(&self.line)?)
    }
}

/// How many descriptors every supervisor is handed by a keeper.
pub(super) const CALL_DESCRIPTORS: usize = 4;
