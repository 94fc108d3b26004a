//! The agent's side of a supervised call.

use super::handed;
use super::keeper::{self, Handed};
use super::link::attach_socket_name;
use super::protocol::{
    CallSpec, END, FRAME_BYTES_MAX, FRAME_HEAD, FrameKind, GO, SPEC_BYTES_MAX, Watcher,
};
use super::role::{SUPERVISE_ARG, SupervisorCommand};
use super::start_error::StartError;
use super::status::CallStatus;
use super::unix::{self, handover};
use super::watchers::{Guard, GuardId, KeptGuard, Processes, Watchers, woken_by};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::process::Command;
use tokio::time::timeout;

/// How long a keeper may take until its fork is heard of; one that takes longer is given up.
const FORK_MAX: Duration = Duration::from_secs(5);
/// How long a keeper that was killed may take until nothing of it is left.
const KILLED_MAX: Duration = Duration::from_secs(2);
/// How often a call is handed to a keeper before it is started without one.
const HAND_OVER_MAX: u32 = 2;

/// A command under its supervisor.
///
/// Dropping it ends the command's whole tree; the supervisor does that on its own.
#[derive(Debug)]
pub struct Supervised {
    watchers: Watchers,
    control: File,
    frames: Frames,
    is_over: bool,
}

#[derive(Debug)]
enum Frames {
    Pipe(pipe::Receiver),
    Socket(UnixStream),
}

/// What comes from a running command.
#[derive(Debug)]
pub enum CommandEvent {
    /// More output, as the command wrote it; at most 16 KiB.
    Output(Vec<u8>),
    /// Its end; nothing follows.
    Status(Box<CallStatus>),
}

impl Supervised {
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
        let mut line = serde_json::to_vec(spec).map_err(|err| StartError::Lost(err.into()))?;
        line.push(b'\n');
        if line.len() > SPEC_BYTES_MAX {
            return Err(StartError::TooLong);
        }
        let program = supervisor.resolve()?;
        if let Some(memory) = to_hand_over(spec, &line, variables) {
            for _ in 0..HAND_OVER_MAX {
                let Ok(handed) = keeper::hand_over(&program, &memory) else {
                    break;
                };
                if let Some(started) = Self::start_handed(handed, spec).await {
                    return started;
                }
            }
        }
        Self::start_anew(&program, variables, spec, &line).await
    }

    /// Waits for a supervisor that a keeper was asked for; nothing where there is none and will be none.
    async fn start_handed(handed: Handed, spec: &CallSpec) -> Option<Result<Self, StartError>> {
        let Handed {
            control,
            frames,
            life,
            keeper,
        } = handed;
        let (mut guard, mut frames) = match (KeptGuard::new(life), Frames::pipe(frames)) {
            (Ok(guard), Ok(frames)) => (guard, frames),
            (Err(err), _) | (_, Err(err)) => return Some(Err(StartError::Lost(err))),
        };
        let first = {
            let reading = frames.next();
            tokio::pin!(reading);
            let first = timeout(FORK_MAX, &mut reading);
            match woken_by(|| keeper.wake(), first).await {
                Ok(first) => first,
                Err(_) if !guard.has_begun() => {
                    keeper.retire();
                    return match timeout(KILLED_MAX, guard.begun()).await {
                        Ok(Ok(false)) => None,
                        _ => Some(Err(StartError::Lost(io::ErrorKind::TimedOut.into()))),
                    };
                }
                Err(_) => {
                    let processes = guard.processes();
                    processes.woken(&mut reading).await
                }
            }
        };
        if guard.has_begun() {
            keeper.has_forked();
        }
        match first {
            // No process holds the other end: nothing was begun.
            Err(err) if err.kind() == io::ErrorKind::UnexpectedEof => None,
            first => Some(Self::ready(
                Guard::Kept(guard),
                control,
                frames,
                first,
                spec,
            )),
        }
    }

    async fn start_anew(
        program: &Path,
        variables: &[(OsString, OsString)],
        spec: &CallSpec,
        line: &[u8],
    ) -> Result<Self, StartError> {
        let mut command = Command::new(program);
        command
            .arg(SUPERVISE_ARG)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .env_clear()
            .envs(variables.iter().map(|(name, value)| (name, value)));
        let mut child = command.spawn().map_err(StartError::Spawn)?;
        let (Some(mut stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(StartError::Spawn(io::ErrorKind::BrokenPipe.into()));
        };
        let processes = Processes {
            guard: child.id().map_or(GuardId::None, GuardId::Child),
            watcher: None,
        };
        let handing = tokio::io::AsyncWriteExt::write_all(&mut stdin, line);
        processes.woken(handing).await.map_err(StartError::Lost)?;
        let control = File::from(stdin.into_owned_fd().map_err(StartError::Lost)?);
        let frames = stdout.into_owned_fd().and_then(Frames::pipe);
        let mut frames = frames.map_err(StartError::Lost)?;
        let first = processes.woken(frames.next()).await;
        Self::ready(Guard::Child(child), control, frames, first, spec)
    }

    /// Takes what a supervisor says first.
    fn ready(
        guard: Guard,
        control: File,
        frames: Frames,
        first: io::Result<(FrameKind, Vec<u8>)>,
        spec: &CallSpec,
    ) -> Result<Self, StartError> {
        match first.map_err(StartError::Lost)? {
            (FrameKind::Ready, watcher) => {
                let watcher: Watcher =
                    serde_json::from_slice(&watcher).map_err(|err| StartError::Lost(err.into()))?;
                tracing::debug!(supervisor = watcher.pid, "a supervisor is ready");
                Ok(Self {
                    watchers: Watchers {
                        guard,
                        watcher: Some(watcher),
                        mark: watcher.mark(&spec.key),
                    },
                    control,
                    frames,
                    is_over: true,
                })
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
            processes: self.watchers.processes(),
        })
    }

    /// Ends what is left of a command whose supervisor is gone, or is to go.
    ///
    /// # Cancel safety
    /// Not cancel safe: processes may be left running.
    pub async fn end_rest(mut self) {
        self.is_over = true;
        tell_to_end(&mut self.control, &self.watchers.processes());
        let watchers = std::mem::replace(&mut self.watchers, Watchers::gone());
        watchers.end_rest().await;
    }

    /// Waits for output or for the end.
    ///
    /// # Errors
    /// When the command could not be started, or the supervisor died.
    ///
    /// # Cancel safety
    /// Not cancel safe: a frame that was read in part is lost.
    pub async fn next(&mut self) -> Result<CommandEvent, StartError> {
        let frame = self.frames.next().await;
        match frame.map_err(StartError::Lost)? {
            (FrameKind::Output, bytes) => Ok(CommandEvent::Output(bytes)),
            (FrameKind::Done, json) => {
                let status = serde_json::from_slice(&json)
                    .map_err(|err| StartError::Lost(io::Error::from(err)))?;
                self.is_over = true;
                self.watchers.wait().await;
                Ok(CommandEvent::Status(Box::new(status)))
            }
            (FrameKind::Failed, reason) => {
                self.is_over = true;
                Err(StartError::Refused(lossy(&reason)))
            }
            (FrameKind::Ready, _) => Err(StartError::Lost(out_of_turn())),
        }
    }
}

impl Frames {
    fn pipe(from: OwnedFd) -> io::Result<Self> {
        pipe::Receiver::from_owned_fd(from).map(Self::Pipe)
    }

    async fn next(&mut self) -> io::Result<(FrameKind, Vec<u8>)> {
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
        match self {
            Self::Pipe(pipe) => pipe.read_exact(into).await,
            Self::Socket(socket) => socket.read_exact(into).await,
        }
    }
}

/// Returns what a keeper is handed a call with; nothing where it cannot be: a keeper has no directory of
/// its own, for one.
fn to_hand_over(
    spec: &CallSpec,
    line: &[u8],
    variables: &[(OsString, OsString)],
) -> Option<OwnedFd> {
    let is_absolute = spec.state_dir.is_absolute() && spec.directory.is_absolute();
    let bytes = handed::encode(line, variables).filter(|_| is_absolute)?;
    handover::seal(&bytes).ok()
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
    /// Tells the supervisor to end the whole tree, whose end [`Supervised::next`] then returns.
    pub fn end(&mut self) {
        tell_to_end(&mut self.control, &self.processes);
    }

    /// Lets the supervisor go on, where it was stopped again.
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

impl Drop for Supervised {
    fn drop(&mut self) {
        if !self.is_over {
            tell_to_end(&mut self.control, &self.watchers.processes());
        }
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
