//! Starts the process that reads a document, and holds it to its time and its output.

use super::child::is_hooked;
use super::protocol::{
    Answer, DOCUMENT_BYTES_MAX, Document, LINE_BYTES_MAX, ROLE, ReadText, TEXT_BYTES_MAX,
};
use rondo_launch::{StartError, SupervisorCommand};
use std::io;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};
use tokio::sync::Semaphore;

/// How long a document may take.
const TIME_MAX: Duration = Duration::from_secs(20);
/// The bound on documents that are read at once: each may take a gigabyte.
const AT_ONCE_MAX: usize = 2;

/// Reads documents. Clones share the bound on how many are read at once.
#[derive(Debug, Clone)]
pub struct Reader {
    program: SupervisorCommand,
    slots: Arc<Semaphore>,
    time_max: Duration,
}

/// Why a document was not read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The program cannot be started to read documents.
    #[error(
        "this program cannot read documents: call `rondo_web::reader::run_if_requested` at the top of its `main`"
    )]
    NoReader,
    /// It is too large.
    #[error("it is larger than {max} bytes", max = DOCUMENT_BYTES_MAX)]
    TooLarge,
    /// The process was not started.
    #[error("the process to read it does not start")]
    Start(#[source] StartError),
    /// The process ended without an answer, as it does when it needs more memory than it may have.
    #[error("reading it exceeded its limit of memory or time")]
    Ended,
    /// It took too long.
    #[error("it takes longer than {} s to read", .0.as_secs())]
    Timeout(Duration),
    /// The process says why.
    #[error("{0}")]
    Unreadable(String),
}

impl Reader {
    /// Builds a reader that starts this program, or another one, whose `main` calls
    /// [`run_if_requested`](super::run_if_requested).
    #[must_use]
    pub fn new(program: SupervisorCommand) -> Self {
        Self {
            program,
            slots: Arc::new(Semaphore::new(AT_ONCE_MAX)),
            time_max: TIME_MAX,
        }
    }

    /// Returns the reader with another bound on the time of a document.
    #[must_use]
    pub fn with_time_max(self, time_max: Duration) -> Self {
        Self { time_max, ..self }
    }

    /// Reads a document.
    ///
    /// # Errors
    /// When it has no text, cannot be understood, or takes more than it may.
    ///
    /// # Cancel safety
    /// Dropping it ends the process.
    pub async fn read(&self, document: &Document, bytes: &[u8]) -> Result<ReadText, ReadError> {
        if bytes.len() > DOCUMENT_BYTES_MAX {
            return Err(ReadError::TooLarge);
        }
        if self.program == SupervisorCommand::CurrentExe && !is_hooked() {
            return Err(ReadError::NoReader);
        }
        // It is never closed.
        let _slot = self.slots.acquire().await;
        let command = ROLE.command(&self.program).map_err(ReadError::Start)?;
        let mut child = Command::from(command)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .map_err(|err| ReadError::Start(StartError::Spawn(err)))?;
        let exchange = tokio::time::timeout(self.time_max, exchange(&mut child, document, bytes));
        let answer = exchange.await;
        // It has answered or must not continue.
        let _ = child.kill().await;
        match answer {
            Err(_) => Err(ReadError::Timeout(self.time_max)),
            Ok(Err(_)) => Err(ReadError::Ended),
            Ok(Ok(answer)) => parse(&answer),
        }
    }
}

/// Hands over the document and takes the answer, at once: a pipe holds less than either.
async fn exchange(child: &mut Child, document: &Document, bytes: &[u8]) -> io::Result<Vec<u8>> {
    let broken = || io::Error::from(io::ErrorKind::BrokenPipe);
    let mut input = child.stdin.take().ok_or_else(broken)?;
    let output = child.stdout.take().ok_or_else(broken)?;
    let mut line = serde_json::to_vec(document)?;
    line.push(b'\n');
    let hand_over = async {
        input.write_all(&line).await?;
        input.write_all(bytes).await?;
        drop(input);
        io::Result::Ok(())
    };
    let max = u64::try_from(LINE_BYTES_MAX + TEXT_BYTES_MAX).unwrap_or(u64::MAX);
    let take = async {
        let mut answer = Vec::new();
        output.take(max).read_to_end(&mut answer).await?;
        io::Result::Ok(answer)
    };
    // A process that answers before it has read everything has an answer all the same.
    let (_, answer) = tokio::join!(hand_over, take);
    answer
}

fn parse(answer: &[u8]) -> Result<ReadText, ReadError> {
    let end = answer.iter().position(|byte| *byte == b'\n');
    let (line, text) = end
        .and_then(|end| answer.split_at_checked(end))
        .ok_or(ReadError::Ended)?;
    let answer = serde_json::from_slice(line).map_err(|_| ReadError::Ended)?;
    match answer {
        Answer::Failed(problem) => Err(ReadError::Unreadable(problem)),
        Answer::Read(read) => Ok(ReadText {
            text: String::from_utf8_lossy(text.get(1..).unwrap_or_default()).into_owned(),
            ..read
        }),
    }
}
