//! A process under a supervisor, whose streams are its agent's.

use super::frames::{Frames, lossy, out_of_turn};
use super::guard::COMMAND_END_MAX;
use super::protocol::{END, FrameKind, GO, INTERRUPT, KILL, ProcessSpec, WAKE};
use super::role::SupervisorCommand;
use super::serve_process;
use super::start::{ReadySupervisor, Start, line_of};
use super::start_error::StartError;
use super::watchers::{Watchers, woken_by};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use tokio::time::timeout;

/// How a process ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessExit {
    /// Its exit code, as a shell has it.
    pub code: i32,
    /// The name of the signal that ended it.
    pub signal: Option<String>,
}

/// A process under its supervisor.
///
/// It ends with this agent, however that ends, and so does what it started. Dropping this ends it too: SIGTERM, a
/// second later SIGKILL.
#[derive(Debug)]
pub struct SupervisedProcess {
    watchers: Watchers,
    control: File,
    frames: Frames,
    exit: Option<ProcessExit>,
}

impl ProcessExit {
    /// Reads a report of a [`Reaper`](super::Reaper).
    pub(super) fn from_report(report: &[u8]) -> Self {
        const LOST_CODE: i32 = 255;
        let Some((code, signal)) = report.split_first_chunk() else {
            return Self {
                code: LOST_CODE,
                signal: None,
            };
        };
        let signal = lossy(signal);
        Self {
            code: i32::from_be_bytes(*code),
            signal: (!signal.is_empty()).then_some(signal),
        }
    }
}

impl std::fmt::Display for ProcessExit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.signal {
            Some(signal) => write!(f, "was ended by {signal}"),
            None => write!(f, "ended with exit code {}", self.code),
        }
    }
}

impl SupervisedProcess {
    /// Starts a program with those standard streams: input, output and error. It finds the `variables` in its
    /// environment, and no others.
    ///
    /// # Errors
    /// When there is no supervisor, or the program cannot be started, which says why.
    ///
    /// # Cancel safety
    /// Cancel safe: what was started is ended.
    pub async fn start(
        supervisor: &SupervisorCommand,
        variables: &[(OsString, OsString)],
        spec: &ProcessSpec,
        streams: [OwnedFd; serve_process::STREAMS],
    ) -> Result<Self, StartError> {
        for path in [&spec.program, &spec.directory] {
            if !path.is_absolute() {
                let message = format!("`{}` is not an absolute path", path.display());
                return Err(StartError::Refused(message));
            }
        }
        let ReadySupervisor {
            watchers,
            control,
            frames,
            ..
        } = Start {
            program: &supervisor.resolve()?,
            role: serve_process::ROLE.name,
            key: ProcessSpec::KEY,
            line: line_of(spec)?,
            variables,
            descriptors: &streams.each_ref().map(|it| it.as_fd()),
            spares: None,
            is_absolute: true,
        }
        .start()
        .await?;
        drop(streams);
        let mut process = Self {
            watchers,
            control,
            frames,
            exit: None,
        };
        process.order(GO);
        let processes = process.watchers.processes();
        // It can stop its supervisor before that says that it was started.
        let first = processes.woken(process.frames.next()).await;
        match first.map_err(StartError::Lost)? {
            (FrameKind::Started, _) => Ok(process),
            (FrameKind::Failed, reason) => {
                process.watchers.wait().await;
                Err(StartError::Refused(lossy(&reason)))
            }
            _ => Err(StartError::Lost(out_of_turn())),
        }
    }

    /// Waits for the end of the process. Processes that it left are then being ended.
    ///
    /// # Errors
    /// When the supervisor is gone, and with it the process.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn exited(&mut self) -> Result<ProcessExit, StartError> {
        loop {
            if let Some(exit) = &self.exit {
                return Ok(exit.clone());
            }
            let (kind, payload) = self.frames.next().await.map_err(StartError::Lost)?;
            if kind == FrameKind::Done {
                let exit = serde_json::from_slice(&payload).map_err(io::Error::from);
                self.exit = Some(exit.map_err(StartError::Lost)?);
            }
        }
    }

    /// Interrupts the process and its process group, as Ctrl-C does at a terminal.
    pub fn interrupt(&self) {
        self.order(INTERRUPT);
    }

    /// Interrupts a waiting system call of the process, and nothing else: it is told that its terminal has
    /// another size, as may happen at any time.
    pub fn wake(&self) {
        self.order(WAKE);
    }

    /// Tells the process and all that it started to end: SIGTERM, a second later SIGKILL.
    pub fn terminate(&self) {
        self.order(END);
    }

    /// Kills the process and all that it started.
    pub fn kill(&self) {
        self.order(KILL);
    }

    /// Ends the process and those that it left, waits until none is left, and returns how the process ended. Processes
    /// that were not asked to end before are asked now.
    ///
    /// # Errors
    /// When the supervisor was killed, and the process's end was not seen; it did end.
    ///
    /// # Cancel safety
    /// Cancel safe: what was started ends, without being waited for.
    pub async fn end(mut self) -> Result<ProcessExit, StartError> {
        self.terminate();
        let processes = self.watchers.processes();
        let exited = timeout(COMMAND_END_MAX, self.exited());
        let exit = woken_by(|| processes.wake(), exited).await;
        let exit = exit.unwrap_or_else(|_| Err(StartError::Lost(io::ErrorKind::TimedOut.into())));
        let watchers = std::mem::replace(&mut self.watchers, Watchers::gone());
        watchers.end_rest().await;
        exit
    }

    /// One that is stopped continues to read it.
    fn order(&self, order: u8) {
        let _ = (&self.control).write_all(&[order]);
        self.watchers.processes().wake();
    }
}

impl Drop for SupervisedProcess {
    fn drop(&mut self) {
        self.terminate();
    }
}
