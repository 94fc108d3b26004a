//! The child interpreter.

use crate::capture::Capture;
use crate::cell::OutputStream;
use crate::channel::{Channel, unless_blocked};
use crate::error::SessionError;
use crate::process::{self, Process, StartedInterpreter};
use crate::settings::Settings;
use crate::startup::Startup;
use crate::terminal::Pty;
use crate::unix;
use serde_json::Value;
use std::io::{self, PipeWriter};
use std::path::PathBuf;
use std::time::Duration;
use tokio::net::unix::pipe::Receiver;
use tokio::time::timeout;

/// Reads the helper from standard input and runs it.
const BOOTSTRAP: &str = include_str!("../python/bootstrap.py");
/// The helper.
const HELPER: &str = concat!(
    include_str!("../python/basis.py"),
    include_str!("../python/channel.py"),
    include_str!("../python/values.py"),
    include_str!("../python/failures.py"),
    include_str!("../python/cells.py"),
    include_str!("../python/stored.py"),
    include_str!("../python/looks.py"),
    include_str!("../python/prompt.py"),
    include_str!("../python/terminal.py"),
    include_str!("../python/serve.py"),
);

/// How much output is read at a time, in bytes: what a pipe holds.
const OUTPUT_PIECE_BYTES: usize = 64 << 10;
/// How often a pipe is read after a reply. Output before the reply is in the pipe by then,
/// so this is more than enough; processes that write on would have it continue forever.
const DRAIN_READS_MAX: usize = 32;
/// How long the kernel may take to pass on what was written to a terminal.
const TERMINAL_WAIT: Duration = Duration::from_millis(20);
/// How long an interpreter that was killed may take to be gone.
const EXIT_WAIT: Duration = Duration::from_secs(5);
/// How much of standard error is shown when the interpreter does not start, in bytes.
const SAID_BYTES_MAX: usize = 2_000;

/// Event of an interpreter.
pub(crate) enum Event {
    /// A reply.
    Reply(Value),
    /// More output.
    Output(OutputStream, Vec<u8>),
    /// Output to the terminal, including its echo.
    Terminal(Vec<u8>),
    /// It is gone, or makes no sense any more.
    Lost,
}

/// A running interpreter. Dropping it ends it and its process group.
pub(crate) struct Interpreter {
    process: Process,
    channel: Channel,
    stdout: Output,
    stderr: Output,
    leash: Option<PipeWriter>,
    pub(crate) terminal: Option<Pty>,
    /// Current directory of the interpreter.
    pub(crate) directory: PathBuf,
    /// As `sys.version_info` has it.
    pub(crate) version: String,
}

impl Interpreter {
    /// Starts an interpreter and returns when its helper is ready.
    ///
    /// # Cancel safety
    /// Cancel safe: what was started is ended.
    pub(crate) async fn start(settings: &Settings) -> Result<Self, SessionError> {
        let failed = |source| SessionError::Start {
            program: settings.program.clone(),
            source,
        };
        // A program cannot be started there either, which would be blamed.
        std::fs::metadata(settings.directory.join(".")).map_err(|source| {
            let directory = settings.directory.clone();
            SessionError::Directory { directory, source }
        })?;
        let startup = Startup::from_env(&settings.directory);
        let starting = process::start(settings, &startup, BOOTSTRAP);
        let started = timeout(settings.start_timeout, starting).await;
        let started = started.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        let started = started.map_err(failed)?;
        let mut starting = Self::new(started, settings.directory.clone());
        let helper = startup.preamble() + HELPER;
        let length = format!("{}\n", helper.len());
        starting.channel.queue(length.as_bytes());
        starting.channel.queue(helper.as_bytes());
        let mut said = Capture::new(SAID_BYTES_MAX, crate::LiveOutput::discard());
        let hello = timeout(settings.start_timeout, starting.hello(&mut said)).await;
        let Ok(Some(hello)) = hello else {
            let how = starting.end(&mut said).await;
            let texts = said.into_texts();
            let said = match texts.stderr.trim() {
                "" => how,
                text => text.to_owned(),
            };
            let program = settings.program.clone();
            return Err(SessionError::NotReady { program, said });
        };
        let version = hello.get("version").and_then(Value::as_str);
        starting.version = version.unwrap_or_default().to_owned();
        let terminal = settings.has_terminal.then(Pty::open).transpose();
        let opened = terminal.map_err(failed)?;
        let (terminal, theirs) = opened.unzip();
        let leash = unix::leash(starting.channel.socket(), theirs.as_ref()).map_err(failed)?;
        starting.leash = Some(leash);
        starting.terminal = terminal;
        tracing::debug!(version = starting.version, "a Python interpreter is ready");
        Ok(starting)
    }

    fn new(started: StartedInterpreter, directory: PathBuf) -> Self {
        Self {
            directory,
            process: started.process,
            channel: Channel::new(started.socket),
            stdout: Output::new(OutputStream::Stdout, started.stdout),
            stderr: Output::new(OutputStream::Stderr, started.stderr),
            leash: None,
            terminal: None,
            version: String::new(),
        }
    }

    async fn hello(&mut self, said: &mut Capture) -> Option<Value> {
        loop {
            match self.next().await {
                Event::Reply(hello) => return Some(hello),
                Event::Output(stream, bytes) => said.push(stream, &bytes),
                Event::Terminal(_) => {}
                Event::Lost => return None,
            }
        }
    }

    /// Queues a request; [`Self::next`] sends it.
    pub(crate) fn send(&mut self, request: &[u8]) -> io::Result<()> {
        self.channel.queue_frame(request)
    }

    /// Waits for whatever comes next.
    ///
    /// # Cancel safety
    /// Cancel safe: nothing is lost.
    pub(crate) async fn next(&mut self) -> Event {
        loop {
            match self.channel.take_frame() {
                Ok(Some(frame)) => return Event::Reply(frame),
                Ok(None) => {}
                Err(_) => return Event::Lost,
            }
            tokio::select! {
                progress = self.channel.progress() => if progress.is_err() {
                    return Event::Lost;
                },
                piece = self.stdout.next() => return piece,
                piece = self.stderr.next() => return piece,
                bytes = of_terminal(&mut self.terminal) => return Event::Terminal(bytes),
                () = self.process.exited() => {
                    // Its last reply may have arrived with its end.
                    self.channel.receive_rest();
                    return match self.channel.take_frame() {
                        Ok(Some(frame)) => Event::Reply(frame),
                        _ => Event::Lost,
                    };
                }
            }
        }
    }

    /// Reads the output before the reply that just came.
    pub(crate) fn drain(&mut self, capture: &mut Capture) {
        self.stdout.drain(capture);
        self.stderr.drain(capture);
    }

    /// Interrupts what runs: `KeyboardInterrupt` in the interpreter, SIGINT for what it started.
    pub(crate) fn interrupt(&self) {
        self.process.interrupt();
    }

    /// Makes a read look for signals that came just before it, as Python looks only before it reads and
    /// when a signal comes meanwhile.
    pub(crate) fn wake(&self) {
        self.process.wake();
    }

    /// Ends the interpreter and its process group.
    pub(crate) fn kill(&mut self) {
        self.process.kill();
        self.leash = None;
    }

    /// Ends an interpreter that is lost, reads its last output, and returns how it ended.
    pub(crate) async fn end(&mut self, capture: &mut Capture) -> String {
        // One that ended by itself keeps its status.
        self.kill();
        let ending = self.process.end(EXIT_WAIT).await;
        self.drain(capture);
        for _ in 0..DRAIN_READS_MAX {
            let rest = timeout(TERMINAL_WAIT, of_terminal(&mut self.terminal)).await;
            let Ok(bytes) = rest else { break };
            capture.push(OutputStream::Stdout, &bytes);
        }
        format!("the Python interpreter {ending}")
    }
}

impl Drop for Interpreter {
    fn drop(&mut self) {
        self.kill();
    }
}

async fn of_terminal(terminal: &mut Option<Pty>) -> Vec<u8> {
    match terminal {
        Some(terminal) => terminal.next().await,
        None => std::future::pending().await,
    }
}

/// One output stream of the interpreter and of what it starts.
struct Output {
    stream: OutputStream,
    /// None once all writers have closed it.
    pipe: Option<Receiver>,
}

impl Output {
    fn new(stream: OutputStream, pipe: Receiver) -> Self {
        Self {
            stream,
            pipe: Some(pipe),
        }
    }

    async fn next(&mut self) -> Event {
        loop {
            let Some(pipe) = &self.pipe else {
                return std::future::pending().await;
            };
            // An error here shows again in the read.
            let _ = pipe.readable().await;
            if let Some(bytes) = self.read() {
                return Event::Output(self.stream, bytes);
            }
        }
    }

    fn read(&mut self) -> Option<Vec<u8>> {
        let mut bytes = Vec::with_capacity(OUTPUT_PIECE_BYTES);
        match unless_blocked(self.pipe.as_ref()?.try_read_buf(&mut bytes)) {
            Ok(None) => None,
            Ok(Some(count)) if count > 0 => Some(bytes),
            Ok(Some(_)) | Err(_) => {
                self.pipe = None;
                None
            }
        }
    }

    fn drain(&mut self, capture: &mut Capture) {
        let mut bytes = vec![0; OUTPUT_PIECE_BYTES];
        for _ in 0..DRAIN_READS_MAX {
            let Some(pipe) = &self.pipe else { return };
            let count = unix::read_now(pipe, &mut bytes).unwrap_or(0);
            if count == 0 {
                return;
            }
            capture.push(self.stream, bytes.get(..count).unwrap_or_default());
        }
    }
}
