//! The file that `-o` names: whatever it is, the result is shown.

use crate::error::{CliError, Result};
use crate::exit::Exit;
use crate::process_end;
use crate::show_turn::Ended;
use rustix::fs::{Mode, OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;
use tokio::time::Instant;

/// How long a file that is not a pipe may take.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);
/// How often a pipe without a reader is tried again.
const RETRY: Duration = Duration::from_millis(50);

/// A pipe, which is written once the result is shown.
#[derive(Debug)]
pub(super) struct AnswerPipe {
    path: PathBuf,
    /// None while it has no reader.
    file: Option<File>,
}

/// Writes the answer to a file, or returns the pipe that it is.
///
/// # Errors
/// When that fails, or takes too long.
pub(super) async fn write(
    path: &Path,
    text: String,
    ended: &mut Ended,
) -> Result<Option<AnswerPipe>> {
    let named = path.to_owned();
    let end = process_end::output_end(Instant::now() + WRITE_TIMEOUT);
    let write = move || {
        let file = try_open(&named)?;
        match file {
            Some(mut file) if !file.metadata()?.file_type().is_fifo() => {
                fill(&mut file, &text)?;
                Ok(None)
            }
            file => Ok(Some(AnswerPipe { path: named, file })),
        }
    };
    let written = ended.block_on(Some(end), write).await;
    written.flatten().map_err(|err| failed(path, err))
}

impl AnswerPipe {
    /// Writes the answer. A pipe without a reader is waited for as long as standard output would be; `unread` is how the
    /// process ends then.
    ///
    /// # Errors
    /// When that fails, or takes too long.
    pub(super) async fn write(self, text: String, unread: Exit, ended: &mut Ended) -> Result<()> {
        let end = ended.give_up_at();
        let Self { path, file } = self;
        let named = path.clone();
        let write = move || {
            let mut file = match file {
                Some(file) => file,
                None => wait_for_a_reader(&named, end)?,
            };
            fill(&mut file, &text)
        };
        let written = ended.block_on(end, write).await;
        written.flatten().map_err(|err| {
            let is_unread = err.kind() == io::ErrorKind::TimedOut;
            let exit = if is_unread { unread } else { Exit::Error };
            CliError {
                exit,
                ..failed(&path, err)
            }
        })
    }
}

fn fill(file: &mut File, text: &str) -> io::Result<()> {
    if file.metadata()?.is_file() {
        file.set_len(0)?;
    }
    file.write_all(text.as_bytes())
}

/// Opens a file without waiting; none for a pipe without a reader.
fn try_open(path: &Path) -> io::Result<Option<File>> {
    let flags =
        OFlags::WRONLY | OFlags::CREATE | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = match rustix::fs::open(path, flags, Mode::from_raw_mode(0o666)) {
        Ok(file) => file,
        // A socket and a device without a driver say the same as a pipe without a reader.
        Err(Errno::NXIO) if path.metadata()?.file_type().is_fifo() => return Ok(None),
        Err(err) => return Err(err.into()),
    };
    fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    Ok(Some(file.into()))
}

fn wait_for_a_reader(path: &Path, end: Option<Instant>) -> io::Result<File> {
    loop {
        if let Some(file) = try_open(path)? {
            return Ok(file);
        }
        if end.is_some_and(|end| Instant::now() >= end) {
            return Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "this pipe has no reader",
            ));
        }
        sleep(RETRY);
    }
}

fn failed(path: &Path, err: io::Error) -> CliError {
    let context = format!("failed to write the answer to `{}`", path.display());
    CliError::caused(Exit::Error, anyhow::Error::new(err).context(context))
}
