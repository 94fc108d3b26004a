//! The lines that a person or a program types, read on a thread of their own.

use crate::error::{CliError, Result};
use crate::exit::Exit;
use std::io::{self, BufRead as _, Read as _};
use std::thread;
use tokio::sync::mpsc;

/// Bytes of a line; the hub takes no longer message.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// Lines to send, one after the other.
pub(super) struct Lines {
    lines: mpsc::Receiver<String>,
    /// Set if they are typed at a terminal.
    pub(super) is_terminal: bool,
}

impl Lines {
    /// One line.
    pub(super) fn of(line: String) -> Self {
        let (sender, lines) = mpsc::channel(1);
        // There is room for one.
        let _ = sender.try_send(line);
        Self {
            lines,
            is_terminal: false,
        }
    }

    /// Those of standard input.
    ///
    /// # Errors
    /// When the system gives no thread that reads it.
    pub(super) fn of_stdin(is_terminal: bool) -> Result<Self> {
        let (sender, lines) = mpsc::channel(1);
        // It ends with its input, or with the process.
        let read = move || {
            let mut stdin = io::stdin().lock();
            loop {
                let mut line = Vec::new();
                let read = (&mut stdin)
                    .take(LINE_BYTES_MAX)
                    .read_until(b'\n', &mut line);
                if !matches!(read, Ok(1..)) {
                    return;
                }
                let line = String::from_utf8_lossy(&line).trim_end().to_owned();
                if sender.blocking_send(line).is_err() {
                    return;
                }
            }
        };
        thread::Builder::new().spawn(read).map_err(|err| {
            let error = anyhow::Error::new(err).context("failed to start a thread");
            CliError::caused(Exit::Error, error)
        })?;
        Ok(Self { lines, is_terminal })
    }

    /// Returns the next line; `None` at the end.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub(super) async fn next(&mut self) -> Option<String> {
        self.lines.recv().await
    }
}
