//! The agent's side of a supervised call.

use super::link::attach_socket_name;
use super::protocol::{
    CallSpec, END, FRAME_BYTES_MAX, FRAME_HEAD, FrameKind, GO, SPEC_BYTES_MAX, Watcher,
};
use super::recall::end_orphans;
use super::role::{SUPERVISE_ARG, SupervisorCommand};
use super::start_error::StartError;
use super::status::CallStatus;
use super::unix;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::{sleep, timeout};

/// How long a supervisor may take until it is ready; a slow disk and a busy machine are within it.
const READY_MAX: Duration = Duration::from_secs(30);
/// How often one that is not ready is woken meanwhile: it may have been stopped.
const WAKE_EVERY: Duration = Duration::from_secs(1);
/// How long the guard of a supervisor that is gone, or ends, may take.
const GUARD_MAX: Duration = Duration::from_secs(5);

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

/// The processes between us and the command.
#[derive(Debug)]
struct Keeper {
    /// The one we started, which is the supervisor's guard; none where an agent before us did.
    guard: Option<Child>,
    /// The supervisor; none before it has said so.
    watcher: Option<Watcher>,
    /// What the command's processes are known by.
    mark: String,
}

#[derive(Debug)]
enum Frames {
    Pipe(ChildStdout),
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
        let mut command = Command::new(supervisor.resolve()?);
        command
            .arg(SUPERVISE_ARG)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .env_clear()
            .envs(variables.iter().map(|(name, value)| (name, value)));
        let mut child = command.spawn().map_err(StartError::Spawn)?;
        let (Some(mut stdin), Some(frames)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(StartError::Spawn(io::ErrorKind::BrokenPipe.into()));
        };
        let processes = Processes {
            guard: child.id(),
            watcher: None,
        };
        let handing = tokio::io::AsyncWriteExt::write_all(&mut stdin, &line);
        processes.woken(handing).await.map_err(StartError::Lost)?;
        let control = File::from(stdin.into_owned_fd().map_err(StartError::Lost)?);
        let mut started = Self {
            keeper: Keeper {
                guard: Some(child),
                watcher: None,
                mark: String::new(),
            },
            control,
            frames: Frames::Pipe(frames),
            is_over: true,
        };
        let first = processes.woken(started.read_frame()).await;
        match first.map_err(StartError::Lost)? {
            (FrameKind::Ready, watcher) => {
                let watcher: Watcher =
                    serde_json::from_slice(&watcher).map_err(|err| StartError::Lost(err.into()))?;
                tracing::debug!(supervisor = watcher.pid, "a supervisor is ready");
                started.keeper.mark = watcher.mark(&spec.key);
                started.keeper.watcher = Some(watcher);
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
            keeper: Keeper {
                guard: None,
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
            processes: self.keeper.processes(),
        })
    }

    /// Ends what is left of a command whose supervisor is gone, or is to go.
    ///
    /// # Cancel safety
    /// Not cancel safe: processes may be left running.
    pub async fn end_rest(mut self) {
        self.is_over = true;
        let processes = self.keeper.processes();
        processes.tell_to_end(&mut self.control);
        if let Some(guard) = &mut self.keeper.guard
            && let Ok(Ok(status)) = timeout(GUARD_MAX, guard.wait()).await
            && status.code().is_some()
        {
            // It ends by itself only when nothing is left.
            return;
        }
        processes.kill();
        end_orphans(std::mem::take(&mut self.keeper.mark)).await;
    }

    /// Waits for output or for the end.
    ///
    /// # Errors
    /// When the command could not be started, or the supervisor died.
    ///
    /// # Cancel safety
    /// Not cancel safe: a frame that was read in part is lost.
    pub async fn next(&mut self) -> Result<CommandEvent, StartError> {
        let frame = self.read_frame().await;
        match frame.map_err(StartError::Lost)? {
            (FrameKind::Output, bytes) => Ok(CommandEvent::Output(bytes)),
            (FrameKind::Done, json) => {
                let status = serde_json::from_slice(&json)
                    .map_err(|err| StartError::Lost(io::Error::from(err)))?;
                self.is_over = true;
                self.keeper.wait().await;
                Ok(CommandEvent::Status(Box::new(status)))
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
    fn processes(&self) -> Processes {
        Processes {
            guard: self.guard.as_ref().and_then(Child::id),
            watcher: self.watcher,
        }
    }

    /// Waits for the guard's end, which comes with the supervisor's unless it was stopped.
    async fn wait(&mut self) {
        let processes = self.processes();
        if let Some(guard) = &mut self.guard {
            processes.wake();
            let _ = timeout(GUARD_MAX, guard.wait()).await;
        }
    }
}

/// The processes between us and the command, by their ids.
#[derive(Debug, Clone, Copy)]
struct Processes {
    /// A child of ours, whose id is its own as long as its end was not waited for.
    guard: Option<u32>,
    watcher: Option<Watcher>,
}

impl Processes {
    /// Tells the supervisor to end the command. Wakes it too: its command can have stopped it.
    fn tell_to_end(&self, control: &mut File) {
        let _ = control.write_all(&[END]);
        self.wake();
    }

    fn wake(&self) {
        self.each(unix::resume);
    }

    fn kill(&self) {
        self.each(unix::kill);
    }

    /// Waits for a part of the start, waking who may have been stopped; kills them when it takes too
    /// long.
    async fn woken<T>(self, part: impl Future<Output = io::Result<T>>) -> io::Result<T> {
        let waking = async {
            loop {
                sleep(WAKE_EVERY).await;
                self.wake();
            }
        };
        tokio::select! {
            ended = timeout(READY_MAX, part) => ended.unwrap_or_else(|_| {
                self.kill();
                Err(io::ErrorKind::TimedOut.into())
            }),
            never = waking => match never {},
        }
    }

    /// The supervisor first: its guard ends what it leaves.
    fn each(&self, act: fn(u32)) {
        if let Some(supervisor) = self.supervisor() {
            act(supervisor);
        }
        if let Some(guard) = self.guard {
            act(guard);
        }
    }

    fn supervisor(&self) -> Option<u32> {
        let alive = |it: &Watcher| unix::is_alive(it.pid, it.start_time);
        self.watcher.filter(alive).map(|it| it.pid)
    }
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
        self.processes.tell_to_end(&mut self.control);
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
            let processes = self.keeper.processes();
            processes.tell_to_end(&mut self.control);
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
