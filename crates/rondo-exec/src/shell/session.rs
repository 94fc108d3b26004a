//! One shell from its start to its end, as the agent sees it.

use super::error::ShellError;
use super::protocol::{
    FRAME_BYTES_MAX, Frames, FromSupervisor, LINE_BYTES_MAX, ShellAtPrompt, Spec, ToSupervisor,
};
use super::report::{self, Report};
use super::serve::ROLE;
use super::settings::ShellSettings;
use crate::environment::changed_from_env;
use rondo_launch::{RolePresence, RoleProcess, StartError};
use rondo_policy::Workdir;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// How many orders wait for a supervisor that does not read them.
const ORDERS_MAX: usize = 64;
const READ_BYTES: usize = 16 << 10;
/// The bound on the output of the start files, in bytes.
const GREETING_BYTES_MAX: usize = 64 << 10;

const _: () =
    assert!(LINE_BYTES_MAX < FRAME_BYTES_MAX && report::REPORT_BYTES_MAX < FRAME_BYTES_MAX);

/// A shell under its supervisor.
#[derive(Debug)]
pub(super) struct Session {
    supervisor: RolePresence,
    news: pipe::Receiver,
    frames: Frames,
    orders: mpsc::Sender<Vec<u8>>,
    seq: u64,
    at_start: Option<Report>,
    /// Output while no command ran.
    pub(super) greeting: Vec<u8>,
}

impl Session {
    /// Starts a shell and waits for its first prompt.
    pub(super) async fn start(
        settings: &ShellSettings,
        spec: &Spec,
    ) -> Result<(Self, Writer), ShellError> {
        let variables = changed_from_env(&settings.environment);
        let starting = ROLE.start(&settings.supervisor, &variables, spec);
        let started = tokio::time::timeout(settings.start_timeout, starting).await;
        let RoleProcess {
            control,
            frames: news,
            presence,
        } = started.map_err(|_| ShellError::NotReady(String::new()))??;
        let (orders, queue) = mpsc::channel(ORDERS_MAX);
        let writer = Writer::start(control, queue).map_err(StartError::Spawn)?;
        let mut session = Self {
            supervisor: presence,
            news,
            frames: Frames::default(),
            orders,
            seq: 0,
            at_start: None,
            greeting: Vec::new(),
        };
        let first = tokio::time::timeout(settings.start_timeout, session.first_prompt()).await;
        match first {
            Ok(Ok(at_prompt)) => session.at_start = report::parse(&at_prompt.report),
            Ok(Err(err)) => return Err(err),
            Err(_) => return Err(ShellError::NotReady(lossy(&session.greeting))),
        }
        tracing::debug!(supervisor = session.supervisor.id(), "a shell is ready");
        Ok((session, writer))
    }

    async fn first_prompt(&mut self) -> Result<ShellAtPrompt, ShellError> {
        loop {
            match self.next().await? {
                FromSupervisor::Output(bytes) => self.greet(&bytes),
                FromSupervisor::Prompt(at_prompt) => return Ok(*at_prompt),
                FromSupervisor::Exited(_) => {
                    return Err(ShellError::EndedEarly(lossy(&self.greeting)));
                }
                FromSupervisor::Failed(reason) => return Err(StartError::Refused(reason).into()),
            }
        }
    }

    fn greet(&mut self, bytes: &[u8]) {
        let room = GREETING_BYTES_MAX.saturating_sub(self.greeting.len());
        let fits = bytes.get(..room.min(bytes.len())).unwrap_or_default();
        self.greeting.extend_from_slice(fits);
    }

    /// Sets where the shell is.
    pub(super) fn report_to(&self, workdir: &Workdir) {
        if let Some(report) = &self.at_start {
            set(workdir, report);
        }
    }

    /// Returns the way to the supervisor.
    pub(super) fn orders(&self) -> mpsc::Sender<Vec<u8>> {
        self.orders.clone()
    }

    /// Returns whether the supervisor is there, which ends with its shell.
    pub(super) fn is_alive(&mut self) -> bool {
        self.supervisor.is_alive() && !self.orders.is_closed()
    }

    /// Hands a line over and returns the command's number.
    pub(super) async fn hand_over(&mut self, line: &str) -> Result<u64, ShellError> {
        let seq = self.seq + 1;
        let line = line.as_bytes().to_vec();
        self.send(ToSupervisor::Run { seq, line }.encode()).await?;
        self.seq = seq;
        Ok(seq)
    }

    async fn send(&self, frame: Vec<u8>) -> Result<(), ShellError> {
        let sent = self.orders.send(frame).await;
        sent.map_err(|_| ShellError::Lost(io::ErrorKind::BrokenPipe.into()))
    }

    /// Waits for what the supervisor says next.
    ///
    /// Cancel safe: what was read in part is kept.
    pub(super) async fn next(&mut self) -> Result<FromSupervisor, ShellError> {
        loop {
            let frame = self.frames.next().map_err(|_| garbled())?;
            if let Some((kind, payload)) = frame {
                return FromSupervisor::decode(kind, &payload).ok_or_else(garbled);
            }
            let mut buffer = [0; READ_BYTES];
            let length = self
                .news
                .read(&mut buffer)
                .await
                .map_err(ShellError::Lost)?;
            if length == 0 {
                return Err(ShellError::Lost(io::ErrorKind::UnexpectedEof.into()));
            }
            self.frames.push(buffer.get(..length).unwrap_or_default());
        }
    }

    /// Waits for a command's end; returns whether the shell is still there.
    pub(super) async fn wait_for(&mut self, seq: u64) -> bool {
        loop {
            match self.next().await {
                Ok(FromSupervisor::Output(_)) => {}
                Ok(FromSupervisor::Prompt(at_prompt)) if at_prompt.seq == seq => return true,
                Ok(FromSupervisor::Prompt(_)) => {}
                Ok(FromSupervisor::Exited(_) | FromSupervisor::Failed(_)) | Err(_) => return false,
            }
        }
    }
}

/// Records the directory of a shell.
pub(super) fn set(workdir: &Workdir, report: &Report) {
    workdir.set_directory(&report.directory);
    if let Some(environment) = &report.environment {
        workdir.set_environment(environment.clone());
    }
}

/// Passes orders on. Dropped, it ends the shell.
#[derive(Debug)]
pub(super) struct Writer {
    task: JoinHandle<()>,
    pipe: OwnedFd,
}

impl Writer {
    fn start(to: OwnedFd, queue: mpsc::Receiver<Vec<u8>>) -> io::Result<Self> {
        let pipe = to.try_clone()?;
        rustix::io::ioctl_fionbio(&to, true)?;
        // It is a pipe, or a socket.
        let to = pipe::Sender::from_file_unchecked(File::from(to))?;
        let task = tokio::spawn(write_orders(to, queue));
        Ok(Self { task, pipe })
    }
}

impl Drop for Writer {
    /// The pipe closes when the runtime next looks at its tasks. It may be blocked, so say it too.
    fn drop(&mut self) {
        self.task.abort();
        let _ = rustix::io::write(&self.pipe, &ToSupervisor::End.encode());
    }
}

async fn write_orders(mut to: pipe::Sender, mut queue: mpsc::Receiver<Vec<u8>>) {
    while let Some(frame) = queue.recv().await {
        if to.write_all(&frame).await.is_err() {
            return;
        }
    }
}

fn garbled() -> ShellError {
    ShellError::Lost(io::Error::new(
        io::ErrorKind::InvalidData,
        "the supervisor sent an unexpected message",
    ))
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
