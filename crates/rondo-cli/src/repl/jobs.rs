//! Shows the output of shell jobs and Python threads above the line being edited.

use super::unix::wake_editor;
use rondo_runtime::sanitize::{Keep, Sanitizer};
use std::sync::mpsc::{SyncSender, TrySendError};
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// How long the rest of a line is waited for before its beginning is shown by itself.
const REST_WAIT: Duration = Duration::from_millis(100);
/// How long to wait while the editor has not shown what it has; the shell drops what is too much.
const FULL_WAIT: Duration = Duration::from_millis(100);
/// The bound on a line that is waited for, in bytes.
const LINE_BYTES_MAX: usize = 64 << 10;

/// Output that is not shown yet.
#[derive(Debug, Default)]
pub(super) struct LateOutput(Vec<u8>);

impl LateOutput {
    /// Shows what comes above the line, until nothing can come any more.
    ///
    /// # Cancel safety
    /// As `next`, whose future is dropped and made anew: what was not shown is kept.
    pub(super) async fn tell(
        &mut self,
        mut next: impl AsyncFnMut() -> Option<Vec<u8>>,
        color: bool,
        above: &SyncSender<String>,
    ) {
        loop {
            let next = match self.0.is_empty() {
                true => Ok(next().await),
                false => timeout(REST_WAIT, next()).await,
            };
            let is_over = matches!(next, Ok(None));
            let is_quiet = is_over || next.is_err();
            self.0.extend(next.ok().flatten().unwrap_or_default());
            let end = self.end_of_lines(is_quiet);
            self.show(end, color, above).await;
            if is_over {
                return;
            }
        }
    }

    /// Adds what came and was not told of.
    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// Takes what was not shown, as it came.
    pub(super) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.0)
    }

    fn end_of_lines(&self, is_quiet: bool) -> usize {
        let last = self.0.iter().rposition(|byte| *byte == b'\n');
        match last {
            _ if is_quiet || self.0.len() > LINE_BYTES_MAX => self.0.len(),
            Some(at) => at + 1,
            None => 0,
        }
    }

    async fn show(&mut self, end: usize, color: bool, above: &SyncSender<String>) {
        let bytes = self.0.get(..end).unwrap_or_default();
        let keep = if color { Keep::LiveOutput } else { Keep::Text };
        let mut text = Sanitizer::new(keep).push(&String::from_utf8_lossy(bytes));
        if text.contains('\x1b') {
            // What a job coloured ends with it.
            text.push_str("\x1b[0m");
        }
        if text.is_empty() {
            self.0.drain(..end);
            return;
        }
        while let Err(TrySendError::Full(back)) = above.try_send(text) {
            text = back;
            wake_editor();
            sleep(FULL_WAIT).await;
        }
        wake_editor();
        self.0.drain(..end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_shown_whole_and_their_rest_once_nothing_follows() {
        let late = |text: &str| LateOutput(text.into());
        assert_eq!(late("a\nb\nc").end_of_lines(false), 4);
        assert_eq!(late("a\nb\nc").end_of_lines(true), 5);
        assert_eq!(late("half").end_of_lines(false), 0);
        let long = "x".repeat(LINE_BYTES_MAX + 1);
        assert_eq!(late(&long).end_of_lines(false), long.len());
    }
}
