//! The process of an interpreter: under a supervisor, or a child of ours.

use crate::settings::Settings;
use crate::startup::Startup;
use crate::unix;
use rondo_launch::{ProcessExit, ProcessSpec, StartError, SupervisedProcess, SupervisorCommand};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::net::unix::pipe::Receiver;
use tokio::process::Child;
use tokio::signal::unix::Signal;
use tokio::time::timeout;

/// An interpreter that was just started.
pub(crate) struct StartedInterpreter {
    pub(crate) process: Process,
    pub(crate) socket: UnixStream,
    pub(crate) stdout: Receiver,
    pub(crate) stderr: Receiver,
}

/// The process of an interpreter. Dropping it ends the interpreter and its process group.
pub(crate) enum Process {
    /// Under a supervisor, which ends it with us.
    Supervised(SupervisedProcess),
    /// A process without a supervisor.
    Own(OwnChild),
}

pub(crate) struct OwnChild {
    pub(crate) child: Child,
    /// Wakes when a child of ours ended, which may be this one.
    pub(crate) exits: Signal,
}

/// The ends of an interpreter's standard streams: ours, and its own.
struct Streams {
    socket: UnixStream,
    stdout: Receiver,
    stderr: Receiver,
    theirs: [OwnedFd; 3],
}

impl Streams {
    fn open() -> io::Result<Self> {
        let (ours, theirs) = StdUnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let (stdout, stdout_end) = io::pipe()?;
        let (stderr, stderr_end) = io::pipe()?;
        Ok(Self {
            socket: UnixStream::from_std(ours)?,
            stdout: Receiver::from_owned_fd(stdout.into())?,
            stderr: Receiver::from_owned_fd(stderr.into())?,
            theirs: [theirs.into(), stdout_end.into(), stderr_end.into()],
        })
    }
}

/// Starts an interpreter that runs `bootstrap`, with the other end of the socket as its standard
/// input. A sandbox needs a supervisor; without one, it is started as a child of ours if none is available.
pub(crate) async fn start(
    settings: &Settings,
    startup: &Startup,
    bootstrap: &str,
) -> io::Result<StartedInterpreter> {
    if !settings.program.is_absolute() {
        // It would be looked for wherever the search path says, in the session's directory too.
        let message = "its path must be absolute";
        return Err(io::Error::new(io::ErrorKind::NotFound, message));
    }
    let supervised = match &settings.supervisor {
        Some(supervisor) => start_supervised(supervisor, settings, startup, bootstrap).await,
        None => Err(StartError::NoSupervisor),
    };
    match supervised {
        Ok(started) => Ok(started),
        Err(StartError::Refused(reason)) => Err(io::Error::other(reason)),
        Err(err) if settings.sandbox.is_some() => Err(io::Error::other(err)),
        Err(_) => {
            let streams = Streams::open()?;
            let own = unix::start_child(settings, startup, bootstrap, streams.theirs)?;
            Ok(StartedInterpreter {
                process: Process::Own(own),
                socket: streams.socket,
                stdout: streams.stdout,
                stderr: streams.stderr,
            })
        }
    }
}

async fn start_supervised(
    supervisor: &SupervisorCommand,
    settings: &Settings,
    startup: &Startup,
    bootstrap: &str,
) -> Result<StartedInterpreter, StartError> {
    let streams = Streams::open().map_err(StartError::Spawn)?;
    let spec = ProcessSpec {
        program: settings.program.clone(),
        arguments: vec!["-c".into(), bootstrap.into()],
        directory: settings.directory.clone(),
        sandbox: settings.sandbox.clone(),
        // A process that a person starts to continue by itself, such as a browser, does.
        leaves_detached: settings.has_terminal,
    };
    let variables = startup.all_variables_from_env(&settings.withheld);
    let process = SupervisedProcess::start(supervisor, &variables, &spec, streams.theirs).await?;
    Ok(StartedInterpreter {
        process: Process::Supervised(process),
        socket: streams.socket,
        stdout: streams.stdout,
        stderr: streams.stderr,
    })
}

impl Process {
    /// Waits until it has ended.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub(crate) async fn exited(&mut self) {
        match self {
            // If its supervisor is gone, it is too.
            Self::Supervised(process) => drop(process.exited().await),
            Self::Own(own) => loop {
                own.exits.recv().await;
                if own.child.id().is_none_or(unix::has_exited) {
                    return;
                }
            },
        }
    }

    /// Interrupts what runs: `KeyboardInterrupt` in the interpreter, SIGINT for what it started.
    pub(crate) fn interrupt(&self) {
        match self {
            Self::Supervised(process) => process.interrupt(),
            Self::Own(own) => own.child.id().into_iter().for_each(unix::interrupt),
        }
    }

    /// Interrupts a system call of the interpreter, and nothing else.
    pub(crate) fn wake(&self) {
        match self {
            Self::Supervised(process) => process.wake(),
            Self::Own(own) => own.child.id().into_iter().for_each(unix::wake),
        }
    }

    /// Ends the interpreter and its process group.
    pub(crate) fn kill(&self) {
        match self {
            Self::Supervised(process) => process.kill(),
            Self::Own(own) => own.child.id().into_iter().for_each(unix::kill),
        }
    }

    /// Waits for the end of one that was killed or ended by itself, and returns how it was.
    pub(crate) async fn end(&mut self, patience: Duration) -> String {
        use std::os::unix::process::ExitStatusExt as _;
        match self {
            Self::Supervised(process) => match timeout(patience, process.exited()).await {
                Ok(Ok(ProcessExit {
                    code,
                    signal: Some(_),
                })) => format!("was ended by signal {}", code - SIGNALLED),
                Ok(Ok(ProcessExit { code, signal: None })) => {
                    format!("ended with exit code {code}")
                }
                _ => "ended".to_owned(),
            },
            Self::Own(own) => {
                // It is waited for only now: until then its process group cannot become another's.
                let status = timeout(patience, own.child.wait()).await;
                let status = status.ok().and_then(Result::ok);
                match status.map(|it| (it.code(), it.signal())) {
                    Some((Some(code), _)) => format!("ended with exit code {code}"),
                    Some((None, Some(signal))) => format!("was ended by signal {signal}"),
                    _ => "ended".to_owned(),
                }
            }
        }
    }
}

/// Offset that a shell adds to the number of a signal.
const SIGNALLED: i32 = 128;

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}
