//! Records the user's Python cells, and knows which of them ran in the current interpreter.

use super::talk::AgentChat;
use crate::error::Result;
use crate::render::sanitize::plain;
use rondo_core::ports::{CellEnding, CodeChange, RecordBody, Seq};
use rondo_core::redact::Secrets;
use rondo_python::{CellEnd, SessionError};
use rondo_types::SessionId;
use std::collections::{HashMap, HashSet};
use std::time::Duration;

/// Bytes of a cell's code that are kept; a longer one cannot be run again.
const CODE_BYTES_MAX: usize = 1 << 20;
/// Bytes of each output stream of a cell that are kept, half of them its end.
const STREAM_BYTES_MAX: usize = 4 << 10;

/// Which records tell of code that ran in the interpreter that there is.
#[derive(Debug, Default)]
pub(super) struct Presence {
    /// Which interpreter that is, from 1.
    interpreter: u64,
    /// First and last places of each session, in the order in which they were added. What follows on
    /// the last ones is joined to them.
    ranges: HashMap<SessionId, Vec<(Seq, Seq)>>,
    /// What ran in an interpreter of before, and again in this one.
    repeated: HashSet<(SessionId, Seq)>,
}

impl Presence {
    /// Notes how many interpreters were started, and returns whether one was lost since the last time.
    pub(super) fn sync(&mut self, started: u64) -> bool {
        if self.interpreter == started {
            return false;
        }
        let before = std::mem::replace(&mut self.interpreter, started);
        if before == 0 {
            return false;
        }
        self.forget();
        true
    }

    /// Says that nothing ran in it, or that it is lost.
    pub(super) fn forget(&mut self) {
        self.ranges.clear();
        self.repeated.clear();
    }

    /// Says that what these records tell of ran in it again.
    pub(super) fn repeat(&mut self, session: &SessionId, seqs: impl IntoIterator<Item = Seq>) {
        let named = seqs.into_iter().map(|seq| (session.clone(), seq));
        self.repeated.extend(named);
    }

    /// Says that what these records tell of ran in it.
    pub(super) fn add(&mut self, session: &SessionId, first: Seq, last: Seq) {
        let ranges = self.ranges.entry(session.clone()).or_default();
        match ranges.last_mut() {
            Some((_, end)) if end.0 + 1 == first.0 => *end = last,
            _ if first <= last => ranges.push((first, last)),
            _ => {}
        }
    }

    /// Returns whether it ran in it. Up to `lost_at`, the records tell of one that was lost.
    pub(super) fn holds(&self, session: &SessionId, seq: Seq, lost_at: Seq) -> bool {
        let ranges = self.ranges.get(session).map(Vec::as_slice);
        let within = |(first, last): &(Seq, Seq)| *first <= seq && seq <= *last;
        let is_first = ranges.unwrap_or_default().iter().any(within);
        (is_first && seq > lost_at) || self.repeated.contains(&(session.clone(), seq))
    }
}

impl AgentChat {
    /// Records that a cell is about to run, and returns the record's place when it is durable. The
    /// first one begins the session. None where nothing is kept.
    ///
    /// # Errors
    /// When it cannot be recorded; then the cell must not run.
    pub(super) async fn cell_starts(&mut self, code: &str) -> Result<Option<Seq>> {
        if self.is_ephemeral() {
            return Ok(None);
        }
        let (code, changed) = kept_code(code, &self.all_secrets());
        let title = format!(">>> {}", code.trim());
        let conversation = self.session.begin(title)?;
        let body = RecordBody::CellStarted { code, changed };
        Ok(Some(conversation.record(body).await?))
    }

    /// Records how a cell ended, and whether the interpreter took the place of a lost one.
    ///
    /// # Errors
    /// When it cannot be recorded.
    pub(super) async fn cell_ended(
        &mut self,
        started: Seq,
        ended: &std::result::Result<CellEnd, SessionError>,
        is_new: bool,
        took: Duration,
    ) -> Result<()> {
        let body = kept_end(ended, is_new, took, &self.all_secrets());
        let has_run = ended.is_ok();
        let Some(conversation) = self.current() else {
            return Ok(());
        };
        let session = conversation.session.clone();
        let recorded = conversation.record(body).await;
        if let Err(SessionError::Lost(_)) = ended {
            self.presence.forget();
        }
        if has_run {
            let last = *recorded.as_ref().unwrap_or(&started);
            self.presence.add(&session, started, last);
        }
        recorded?;
        Ok(())
    }

    /// Notes which interpreter there is now, and returns whether one was lost since the last time.
    pub(super) fn sync_presence(&mut self) -> bool {
        let started = self.python.as_ref().map(|it| it.interpreters_started());
        self.presence.sync(started.unwrap_or_default())
    }
}

/// Returns the code as it is kept, and why that is not the code where it is not.
fn kept_code(code: &str, secrets: &Secrets) -> (String, Option<CodeChange>) {
    let redacted = secrets.text(code.to_owned());
    match (redacted.len() > CODE_BYTES_MAX, redacted == code) {
        (true, _) => {
            let end = redacted.floor_char_boundary(CODE_BYTES_MAX);
            let kept = redacted.get(..end).unwrap_or_default().to_owned();
            (kept, Some(CodeChange::Cut))
        }
        (false, true) => (redacted, None),
        (false, false) => (redacted, Some(CodeChange::Redacted)),
    }
}

fn kept_end(
    ended: &std::result::Result<CellEnd, SessionError>,
    is_new: bool,
    took: Duration,
    secrets: &Secrets,
) -> RecordBody {
    let seen = |text: &str| secrets.text(text.to_owned());
    // A cell that draws on its terminal may do so in the middle of a key.
    let written = |text: &str| cut(&seen(&plain(text)));
    let (stdout, stderr) = match ended {
        Ok(end) => (end.stdout.as_str(), end.stderr.as_str()),
        Err(SessionError::Lost(loss)) => (loss.stdout.as_str(), loss.stderr.as_str()),
        Err(_) => ("", ""),
    };
    let ending = match ended {
        Ok(end) => match &end.exception {
            Some(it) if it.is_interrupt() => CellEnding::Interrupted,
            Some(it) => CellEnding::Raised {
                exc_type: it.exc_type.clone(),
                message: seen(&it.message),
            },
            None => CellEnding::Returned {
                value_repr: end.value_repr.as_deref().map(seen),
            },
        },
        Err(SessionError::Lost(loss)) if !loss.is_earlier => CellEnding::Lost {
            message: loss.how.clone(),
        },
        Err(error) => CellEnding::NotRun {
            message: error.to_string(),
        },
    };
    RecordBody::CellFinished {
        ending,
        stdout: written(stdout),
        stderr: written(stderr),
        duration_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        has_read_input: ended.as_ref().is_ok_and(|end| end.has_read_input),
        is_restarted: is_new || ended.as_ref().is_ok_and(|end| end.is_restarted),
    }
}

/// Keeps the head and the tail of a long text.
fn cut(text: &str) -> String {
    let over = text.len().saturating_sub(STREAM_BYTES_MAX);
    if over == 0 {
        return text.to_owned();
    }
    let half = STREAM_BYTES_MAX / 2;
    let head = text.get(..text.floor_char_boundary(half));
    let tail = text.get(text.ceil_char_boundary(text.len() - half)..);
    let (head, tail) = (head.unwrap_or_default(), tail.unwrap_or_default());
    format!("{head}\n[{over} bytes left out]\n{tail}")
}

#[cfg(test)]
mod tests;
