//! The agent's side of a supervised call.

use super::link::door_name;
use super::protocol::{CallSpec, END, FRAME_BYTES_MAX, FRAME_HEAD, FrameKind, GO, SPEC_BYTES_MAX};
use super::status::CallStatus;
use super::{SUPERVISE_ARG, SupervisorCommand};
use crate::environment::{Environment, Given};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
use tokio::process::{Child, ChildStdout, Command};

/// Why a command was not run.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Nothing in this program can be started as supervisor.
    #[error(
        "this program has no supervisor: call `rondo_exec::supervisor::run_if_requested` at the top of its `main`, or name a supervisor program"
    )]
    NoSupervisor,
    /// The supervisor is not named by an absolute path.
    #[error("the supervisor `{path}` is not an absolute path", path = .0.display())]
    NotAbsolute(PathBuf),
    /// The supervisor cannot be started.
    #[error("failed to start the supervisor")]
    Spawn(#[source] io::Error),
    /// The supervisor ended without a word, or said what it must not.
    #[error("the supervisor did not answer")]
    Lost(#[source] io::Error),
    /// The supervisor could not start the command.
    #[error("{0}")]
    Refused(String),
    /// The specification is too long.
    #[error("the command is longer than {max} bytes", max = SPEC_BYTES_MAX / 2)]
    TooLong,
}

/// A command under its supervisor.
///
/// Dropping it ends the command's whole tree; the supervisor does that on its own.
#[derive(Debug)]
pub struct Supervised {
    keeper: Keeper,
    control: File,
    frames: Frames,
    is_over: bool,
}

/// The supervisor's process.
#[derive(Debug)]
enum Keeper {
    /// We started it.
    Child(Child),
    /// An agent before us did.
    Other { pid: u32, start_time: u64 },
}

#[derive(Debug)]
enum Frames {
    Pipe(ChildStdout),
    Socket(UnixStream),
}

/// What comes from a running command.
#[derive(Debug)]
pub enum Ended {
    /// More output, as the command wrote it; at most 16 KiB.
    Output(Vec<u8>),
    /// Its end; nothing follows.
    Status(Box<CallStatus>),
}

impl Supervised {
    /// Starts a supervisor and returns when its status file is on disk. The command waits.
    ///
    /// # Errors
    /// When there is no supervisor, or it cannot do its part.
    ///
    /// # Cancel safety
    /// Cancel safe: a supervisor that was not told to go ends by itself.
    pub async fn start(
        supervisor: &SupervisorCommand,
        environment: &Environment,
        spec: &CallSpec,
    ) -> Result<Self, StartError> {
        let given = Given {
            rules: environment,
            variables: None,
        };
        Self::start_in(supervisor, &given, spec).await
    }

    /// As [`Self::start`], with other variables than those of this process.
    pub(crate) async fn start_in(
        supervisor: &SupervisorCommand,
        environment: &Given<'_>,
        spec: &CallSpec,
    ) -> Result<Self, StartError> {
        let mut line = serde_json::to_vec(spec).map_err(|err| StartError::Lost(err.into()))?;
        line.push(b'\n');
        if line.len() > SPEC_BYTES_MAX {
            return Err(StartError::TooLong);
        }
        let mut command = Command::new(supervisor.resolve()?);
        command
            .arg(SUPERVISE_ARG)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        environment.apply(command.as_std_mut());
        let mut child = command.spawn().map_err(StartError::Spawn)?;
        let (Some(mut stdin), Some(frames)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(StartError::Spawn(io::ErrorKind::BrokenPipe.into()));
        };
        tokio::io::AsyncWriteExt::write_all(&mut stdin, &line)
            .await
            .map_err(StartError::Lost)?;
        let control = File::from(stdin.into_owned_fd().map_err(StartError::Lost)?);
        let mut started = Self {
            keeper: Keeper::Child(child),
            control,
            frames: Frames::Pipe(frames),
            is_over: true,
        };
        match started.read_frame().await.map_err(StartError::Lost)? {
            (FrameKind::Ready, _) => {
                tracing::debug!(supervisor = started.keeper.pid(), "a supervisor is ready");
                Ok(started)
            }
            (FrameKind::Failed, reason) => Err(StartError::Refused(lossy(&reason))),
            (FrameKind::Output | FrameKind::Done, _) => Err(StartError::Lost(out_of_turn())),
        }
    }

    /// Takes the place of an agent that is gone, at a command that runs.
    ///
    /// What there was so far comes first, as far as it is kept.
    ///
    /// # Errors
    /// When the supervisor does not answer: it may just end.
    ///
    /// # Cancel safety
    /// Cancel safe: the command goes on.
    pub(crate) async fn attach(state_dir: &Path, status: &CallStatus) -> Result<Self, StartError> {
        let (dir, name) = (state_dir.to_owned(), door_name(status.pid));
        let called = tokio::task::spawn_blocking(move || {
            let socket = crate::unix::call_at(&dir, &name)?;
            socket.set_nonblocking(true)?;
            Ok((File::from(OwnedFd::from(socket.try_clone()?)), socket))
        });
        let called = called.await.map_err(|err| StartError::Lost(err.into()))?;
        let (control, socket) = called.map_err(StartError::Lost)?;
        tracing::debug!(supervisor = status.pid, "a supervisor was found again");
        Ok(Self {
            keeper: Keeper::Other {
                pid: status.pid,
                start_time: status.start_time,
            },
            control,
            frames: Frames::Socket(UnixStream::from_std(socket).map_err(StartError::Lost)?),
            is_over: false,
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
            supervisor: self.keeper.pid(),
        })
    }

    /// Waits for output or for the end.
    ///
    /// # Errors
    /// When the command could not be started, or the supervisor died.
    ///
    /// # Cancel safety
    /// Not cancel safe: a frame that was read in part is lost.
    pub async fn next(&mut self) -> Result<Ended, StartError> {
        let frame = self.read_frame().await;
        match frame.map_err(StartError::Lost)? {
            (FrameKind::Output, bytes) => Ok(Ended::Output(bytes)),
            (FrameKind::Done, json) => {
                let status = serde_json::from_slice(&json)
                    .map_err(|err| StartError::Lost(io::Error::from(err)))?;
                self.is_over = true;
                self.keeper.wait().await;
                Ok(Ended::Status(Box::new(status)))
            }
            (FrameKind::Failed, reason) => {
                self.is_over = true;
                Err(StartError::Refused(lossy(&reason)))
            }
            (FrameKind::Ready, _) => Err(StartError::Lost(out_of_turn())),
        }
    }

    async fn read_frame(&mut self) -> io::Result<(FrameKind, Vec<u8>)> {
        let mut head = [0; FRAME_HEAD];
        self.read(&mut head).await?;
        let [kind, length @ ..] = head;
        let kind = FrameKind::from_byte(kind).ok_or_else(out_of_turn)?;
        let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
        if length > FRAME_BYTES_MAX {
            return Err(out_of_turn());
        }
        let mut payload = vec![0; length];
        self.read(&mut payload).await?;
        Ok((kind, payload))
    }

    async fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match &mut self.frames {
            Frames::Pipe(pipe) => pipe.read_exact(into).await,
            Frames::Socket(socket) => socket.read_exact(into).await,
        }
    }
}

impl Keeper {
    /// Returns the process id as long as it is surely that process's own.
    fn pid(&self) -> Option<u32> {
        match self {
            Self::Child(child) => child.id(),
            Self::Other { pid, start_time } => {
                crate::unix::is_alive(*pid, *start_time).then_some(*pid)
            }
        }
    }

    async fn wait(&mut self) {
        if let Self::Child(child) = self {
            let _ = child.wait().await;
        }
    }
}

/// Ends a command.
#[derive(Debug)]
pub struct Ender {
    control: File,
    supervisor: Option<u32>,
}

impl Ender {
    /// Tells the supervisor to end the whole tree, whose end [`Supervised::next`] then returns.
    pub fn end(&mut self) {
        tell_to_end(&mut self.control, self.supervisor);
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        if !self.is_over {
            let supervisor = self.keeper.pid();
            tell_to_end(&mut self.control, supervisor);
        }
    }
}

/// Wakes the supervisor too: its command can have stopped it. The process id is its own as long as
/// its end was not waited for.
fn tell_to_end(control: &mut File, supervisor: Option<u32>) {
    let _ = control.write_all(&[END]);
    if let Some(supervisor) = supervisor {
        crate::unix::resume(supervisor);
    }
}

fn out_of_turn() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "the supervisor spoke out of turn",
    )
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
