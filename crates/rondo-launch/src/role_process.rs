//! A supervisor of a role that another crate performs.

use super::protocol::GO;
use super::role::{Role, SupervisorCommand};
use super::start::{ReadySupervisor, Start, line_of};
use super::start_error::StartError;
use super::watchers::Watchers;
use serde::Serialize;
use std::ffi::OsString;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::OwnedFd;
use tokio::net::unix::pipe;

/// A supervisor that was asked to end, from its agent's side.
#[derive(Debug)]
pub struct RoleProcess {
    /// Input of the supervisor, which must end when this is closed.
    pub control: OwnedFd,
    /// Output of the supervisor.
    pub frames: pipe::Receiver,
    /// The process.
    pub presence: RolePresence,
}

/// Presence of a supervisor.
#[derive(Debug)]
pub struct RolePresence(Watchers);

impl Role {
    /// Starts a supervisor that performs this role by a specification whose paths are absolute. It finds the
    /// `variables` in its environment or in its [`Assignment`](super::Assignment).
    ///
    /// # Errors
    /// When there is no supervisor, or it does not answer.
    ///
    /// # Cancel safety
    /// Cancel safe: a supervisor that was not told to go ends by itself.
    pub async fn start(
        &self,
        supervisor: &SupervisorCommand,
        variables: &[(OsString, OsString)],
        spec: &impl Serialize,
    ) -> Result<RoleProcess, StartError> {
        let start = Start {
            program: &supervisor.resolve()?,
            role: self.name,
            key: self.name,
            line: line_of(spec)?,
            variables,
            descriptors: &[],
            spares: None,
            is_absolute: true,
        };
        let ReadySupervisor {
            watchers,
            mut control,
            frames,
            ..
        } = start.start().await?;
        control.write_all(&[GO]).map_err(StartError::Lost)?;
        Ok(RoleProcess {
            control: File::into(control),
            frames: frames.into_pipe().map_err(StartError::Lost)?,
            presence: RolePresence(watchers),
        })
    }
}

impl RolePresence {
    /// Returns whether the supervisor was not found ended.
    pub fn is_alive(&mut self) -> bool {
        !self.0.guard.has_ended()
    }

    /// Returns its process id.
    #[must_use]
    pub fn id(&self) -> Option<u32> {
        self.0.watcher.map(|it| it.pid)
    }
}
