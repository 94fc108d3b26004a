//! The agent's side of a supervised call.

use super::frames::{Frames, lossy, out_of_turn};
use super::link::attach_socket_name;
use super::protocol::{CallSpec, END, FrameKind, GO};
use super::role::SupervisorCommand;
use super::spares::{SpareConnection, SpareKind};
use super::start::{Cancelled, ReadySupervisor, Start, line_of};
use super::start_error::StartError;
use super::status::CallStatus;
use super::watchers::{Guard, Processes, Watchers};
use super::{serve, unix};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use tokio::net::UnixStream;

/// A command under its supervisor.
///
/// Dropping it ends the command's whole tree; the supervisor does that on its own.
#[derive(Debug)]
pub struct SupervisedCommand {
    watchers: Watchers,
    control: File,
    frames: Frames,
    is_over: bool,
    /// For which calls one is to be ready once this one's command is executed, or has ended if this supervisor may take
    /// them.
    spares: Option<SpareKind>,
    /// How this supervisor is handed the next call.
    way: Option<SpareConnection>,
}

/// Event of a running command.
#[derive(Debug)]
pub enum CommandEvent {
    /// More output, as the command wrote it; at most 16 KiB.
    Output(Vec<u8>),
    /// Its end; nothing follows.
    Status(Box<CallStatus>),
}

impl SupervisedCommand {
    /// Starts a supervisor and returns when its status file is on disk. The command waits.
    ///
    /// The supervisor and its command find the `variables` in their environment, and no others.
    ///
    /// # Errors
    /// When there is no supervisor, or it cannot do its part.
    ///
    /// # Cancel safety
    /// Cancel safe: a supervisor that was not told to go ends by itself.
    pub async fn start(
        supervisor: &SupervisorCommand,
        variables: &[(OsString, OsString)],
        spec: &CallSpec,
    ) -> Result<Self, StartError> {
        Self::start_by(supervisor, variables, spec, None).await
    }

    /// Starts a supervisor and lets its command run, without a way to here and back in between if it need not be
    /// started again. Its status file is on disk before the command runs, and it runs only if this process is there then.
    ///
    /// # Errors
    /// As [`Self::start`]; [`StartError::Cancelled`] when `cancelled` came before the command was started.
    ///
    /// # Cancel safety
    /// Cancel safe: the command is not started, or ended.
    pub async fn run(
        supervisor: &SupervisorCommand,
        variables: &[(OsString, OsString)],
        spec: &CallSpec,
        cancelled: impl Future<Output = ()> + Send,
    ) -> Result<Self, StartError> {
        let cancelled = std::pin::pin!(cancelled);
        let mut running = Self::start_by(supervisor, variables, spec, Some(cancelled)).await?;
        if running.is_over {
            running.go()?;
        }
        Ok(running)
    }

    async fn start_by(
        supervisor: &SupervisorCommand,
        variables: &[(OsString, OsString)],
        spec: &CallSpec,
        cancelled: Option<Cancelled<'_>>,
    ) -> Result<Self, StartError> {
        let program = supervisor.resolve()?;
        let is_absolute = spec.state_dir.is_absolute() && spec.directory.is_absolute();
        let spares = SpareKind::of(&program, spec).filter(|_| is_absolute);
        let start = Start {
            program: &program,
            role: serve::ROLE.name,
            key: &spec.key,
            line: line_of(spec)?,
            variables,
            descriptors: &[],
            spares: spares.clone(),
            is_absolute,
        };
        let ReadySupervisor {
            watchers,
            control,
            frames,
            is_told,
            way,
        } = match cancelled {
            Some(cancelled) => start.start_at_once(cancelled).await?,
            None => start.start().await?,
        };
        let is_kept = matches!(watchers.guard, Guard::Kept(_));
        Ok(Self {
            watchers,
            control,
            frames,
            is_over: !is_told,
            spares: spares.filter(|_| is_kept),
            way,
        })
    }

    /// Takes the place of an agent that is gone, at a command that runs.
    ///
    /// Earlier events come first, as far as they are kept.
    ///
    /// # Errors
    /// When the supervisor does not answer: it may just end.
    ///
    /// # Cancel safety
    /// Cancel safe: the command continues.
    pub async fn attach(
        state_dir: &Path,
        key: &str,
        status: &CallStatus,
    ) -> Result<Self, StartError> {
        let (dir, name) = (state_dir.to_owned(), attach_socket_name(status.pid));
        let called = tokio::task::spawn_blocking(move || {
            let socket = unix::connect_to(&dir, &name)?;
            socket.set_nonblocking(true)?;
            Ok((File::from(OwnedFd::from(socket.try_clone()?)), socket))
        });
        let called = called.await.map_err(|err| StartError::Lost(err.into()))?;
        let (control, socket) = called.map_err(StartError::Lost)?;
        tracing::debug!(supervisor = status.pid, "a supervisor was found again");
        Ok(Self {
            watchers: Watchers {
                guard: Guard::NotOurs,
                watcher: Some(status.watcher()),
                mark: status.watcher().mark(key),
            },
            control,
            frames: Frames::socket(UnixStream::from_std(socket).map_err(StartError::Lost)?),
            is_over: false,
            spares: None,
            way: None,
        })
    }

    /// Lets the command run.
    ///
    /// # Errors
    /// When the supervisor is gone.
    pub fn go(&mut self) -> Result<(), StartError> {
        self.is_over = false;
        self.control.write_all(&[GO]).map_err(StartError::Lost)
    }

    /// Returns a handle that ends the command while [`Self::next`] is being awaited.
    ///
    /// # Errors
    /// When the process has no file descriptor left.
    pub fn ender(&self) -> Result<Ender, StartError> {
        let control = self.control.try_clone().map_err(StartError::Lost)?;
        Ok(Ender {
            control,
            processes: self.watchers.processes(),
        })
    }

    /// Ends what is left of a command whose supervisor is gone, or must go.
    ///
    /// # Cancel safety
    /// Not cancel safe: processes may be left running.
    pub async fn end_rest(mut self) {
        self.is_over = true;
        tell_to_end(&mut self.control, &self.watchers.processes());
        // It waits for no other call.
        self.way = None;
        let watchers = std::mem::replace(&mut self.watchers, Watchers::gone());
        watchers.end_rest().await;
    }

    /// Waits for output or for the end.
    ///
    /// # Errors
    /// When the command could not be started, or the supervisor died.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn next(&mut self) -> Result<CommandEvent, StartError> {
        let mut frame = self.frames.next().await;
        if let Ok((FrameKind::Started, _)) = &frame {
            // Not before: a command that is about to be executed would share the processors with it.
            if self.way.is_none() {
                self.prepare_spare();
            }
            frame = self.frames.next().await;
        }
        match frame.map_err(StartError::Lost)? {
            (FrameKind::Output, bytes) => Ok(CommandEvent::Output(bytes)),
            (kind @ (FrameKind::Done | FrameKind::DoneAndWaits), json) => {
                let status: CallStatus = serde_json::from_slice(&json)
                    .map_err(|err| StartError::Lost(io::Error::from(err)))?;
                self.is_over = true;
                self.let_go(kind == FrameKind::DoneAndWaits);
                Ok(CommandEvent::Status(Box::new(status)))
            }
            (FrameKind::Failed, reason) => {
                self.is_over = true;
                Err(StartError::Refused(lossy(&reason)))
            }
            (FrameKind::Ready | FrameKind::Started, _) => Err(StartError::Lost(out_of_turn())),
        }
    }

    /// Lets go of a supervisor of whose command nothing is left: it takes the next call, or ends by itself, which takes as
    /// long as a short command does.
    fn let_go(&mut self, waits: bool) {
        let mut watchers = std::mem::replace(&mut self.watchers, Watchers::gone());
        match (self.way.take(), watchers.guard) {
            (Some(way), Guard::Kept(guard)) if waits => way.put_back(guard),
            (_, guard) => {
                self.prepare_spare();
                watchers.guard = guard;
                tokio::spawn(async move { watchers.wait().await });
            }
        }
    }

    /// Prepares a supervisor for the next call of this kind, unless one was asked for already.
    fn prepare_spare(&mut self) {
        if let Some(spares) = self.spares.take() {
            spares.prepare();
        }
    }
}

/// Tells the supervisor to end the command. Wakes it too: its command can have stopped it.
fn tell_to_end(control: &mut File, processes: &Processes) {
    let _ = control.write_all(&[END]);
    processes.wake();
}

/// Ends a command.
#[derive(Debug)]
pub struct Ender {
    control: File,
    processes: Processes,
}

impl Ender {
    /// Tells the supervisor to end the whole tree, whose end [`SupervisedCommand::next`] then returns.
    pub fn end(&mut self) {
        tell_to_end(&mut self.control, &self.processes);
    }

    /// Lets the supervisor continue, if it was stopped again.
    pub fn wake(&self) {
        self.processes.wake();
    }

    /// Kills the supervisor; its guard ends the command.
    pub fn kill_supervisor(&self) {
        if let Some(supervisor) = self.processes.supervisor() {
            unix::kill(supervisor);
        }
    }
}

impl Drop for SupervisedCommand {
    fn drop(&mut self) {
        if !self.is_over {
            tell_to_end(&mut self.control, &self.watchers.processes());
        }
    }
}
