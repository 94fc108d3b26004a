//! A program that its agent talks to over pipes, such as a server.

use super::capture::Capture;
use super::process::{ProcessExit, SupervisedProcess};
use super::protocol::ProcessSpec;
use super::role::SupervisorCommand;
use super::start_error::StartError;
use rondo_core::redact::Secrets;
use std::ffi::OsString;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// How much of standard error is read at once, in bytes.
const READ_BYTES: usize = 8 << 10;
/// How long what was written to standard error last is waited for, once the program has ended.
const ERRORS_MAX: Duration = Duration::from_secs(1);

/// A program to run with pipes as its standard streams.
#[derive(Debug, Clone)]
pub struct PipedSpec {
    /// Process to run, with its directory.
    pub process: ProcessSpec,
    /// The bound on the kept part of its standard error, in bytes: its beginning and its end.
    pub stderr_bytes_max: usize,
    /// Secrets to remove from that.
    pub secrets: Secrets,
}

/// A program whose standard input and output are pipes, and whose standard error is kept within a bound.
///
/// It ends with this agent, however that ends, and so does everything that it has started; on Linux, what has left
/// its session or lost its parent too. Dropping this ends it as well: SIGTERM, a second later SIGKILL.
///
/// ```no_run
/// use rondo_launch::{PipedChild, PipedSpec, ProcessSpec, SupervisorCommand};
/// use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
///
/// # async fn talk() -> Result<(), Box<dyn std::error::Error>> {
/// let process = ProcessSpec {
///     program: "/usr/bin/sort".into(),
///     arguments: Vec::new(),
///     directory: "/".into(),
///     sandbox: None,
///     leaves_detached: false,
/// };
/// let spec = PipedSpec {
///     process,
///     stderr_bytes_max: PipedSpec::STDERR_BYTES,
///     secrets: Default::default(),
/// };
/// let mut child = PipedChild::start(&SupervisorCommand::CurrentExe, &[], &spec).await?;
/// let (mut stdin, stdout) = child.take_streams().ok_or("they were taken")?;
/// stdin.write_all(b"2\n1\n").await?;
/// drop(stdin);
/// let mut lines = BufReader::new(stdout).lines();
/// while let Some(line) = lines.next_line().await? {
///     assert!(line == "1" || line == "2");
/// }
/// let end = child.end(std::time::Duration::from_secs(1)).await?;
/// assert_eq!(end.exit.code, 0);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct PipedChild {
    process: SupervisedProcess,
    streams: Option<(pipe::Sender, pipe::Receiver)>,
    errors: Arc<Mutex<Option<Capture>>>,
    reading: JoinHandle<()>,
}

/// How a program with pipes ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PipedEnd {
    /// How the program itself ended.
    pub exit: ProcessExit,
    /// Standard error: text without terminal sequences, its middle left out if it is too
    /// long.
    pub stderr: String,
}

impl PipedSpec {
    /// The usual bound on what is kept of standard error.
    pub const STDERR_BYTES: usize = 16 << 10;
}

impl PipedChild {
    /// Starts a program, on the current Tokio runtime. It finds the `variables` in its environment, and no others.
    ///
    /// # Errors
    /// When there is no supervisor, the system has no pipes left, or the program cannot be started, which says why.
    ///
    /// # Cancel safety
    /// Cancel safe: what was started is ended.
    pub async fn start(
        supervisor: &SupervisorCommand,
        variables: &[(OsString, OsString)],
        spec: &PipedSpec,
    ) -> Result<Self, StartError> {
        let (input, stdin) = io::pipe().map_err(StartError::Spawn)?;
        let (stdout, output) = io::pipe().map_err(StartError::Spawn)?;
        let (stderr, errors_end) = io::pipe().map_err(StartError::Spawn)?;
        let ends = [input.into(), output.into(), errors_end.into()];
        let ours = || {
            Ok::<_, io::Error>((
                pipe::Sender::from_owned_fd(stdin.into())?,
                pipe::Receiver::from_owned_fd(stdout.into())?,
                pipe::Receiver::from_owned_fd(stderr.into())?,
            ))
        };
        let (stdin, stdout, stderr) = ours().map_err(StartError::Spawn)?;
        let process = SupervisedProcess::start(supervisor, variables, &spec.process, ends).await?;
        let capture = Capture::in_memory(spec.stderr_bytes_max).without(&spec.secrets);
        let errors = Arc::new(Mutex::new(Some(capture)));
        Ok(Self {
            process,
            streams: Some((stdin, stdout)),
            reading: tokio::spawn(keep(stderr, Arc::clone(&errors))),
            errors,
        })
    }

    /// Takes its standard input, which closes when it is dropped, and its standard output, which ends when no
    /// process has it any more. Nothing the second time.
    pub fn take_streams(&mut self) -> Option<(pipe::Sender, pipe::Receiver)> {
        self.streams.take()
    }

    /// Returns its standard error so far, as far as it is kept.
    #[must_use]
    pub fn stderr(&self) -> String {
        let errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        let text = errors.as_ref().map(Capture::so_far).unwrap_or_default();
        String::from_utf8_lossy(&text).into_owned()
    }

    /// Waits for the program to end by itself. Processes that it left are then being ended.
    ///
    /// # Errors
    /// When the supervisor is gone, and with it the program.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn exited(&mut self) -> Result<ProcessExit, StartError> {
        self.process.exited().await
    }

    /// Ends the program, and waits until nothing of it is left. Streams that were not taken are closed, and it has
    /// `patience` to end by itself; then it gets SIGTERM, and a second later SIGKILL.
    ///
    /// Servers expect their input to be closed first: drop it before.
    ///
    /// # Errors
    /// When the supervisor was killed, and the program's end was not seen; it did end.
    ///
    /// # Cancel safety
    /// Cancel safe: the program ends, without being waited for.
    pub async fn end(self, patience: Duration) -> Result<PipedEnd, StartError> {
        let Self {
            mut process,
            streams,
            errors,
            mut reading,
        } = self;
        drop(streams);
        // Its result is asked for again.
        let _ = timeout(patience, process.exited()).await;
        let exit = process.end().await;
        if timeout(ERRORS_MAX, &mut reading).await.is_err() {
            // If orphans are not ended, one may write on.
            reading.abort();
        }
        let capture = errors.lock().unwrap_or_else(PoisonError::into_inner).take();
        let stderr = capture.map(|it| it.finish().text).unwrap_or_default();
        Ok(PipedEnd {
            exit: exit?,
            stderr,
        })
    }
}

/// Reads until no process has the pipe any more; what does not fit is read all the same, so that no writer waits.
async fn keep(mut from: pipe::Receiver, errors: Arc<Mutex<Option<Capture>>>) {
    let mut buffer = vec![0; READ_BYTES];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        let mut errors = errors.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(errors) = errors.as_mut() {
            errors.push(buffer.get(..length).unwrap_or_default());
        }
    }
}
