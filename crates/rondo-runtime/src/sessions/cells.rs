//! Python code that ran in a recorded session.

use crate::error::{Result, SetupError};
use rondo_core::ports::{Entry, RecordBody, Seq};
use rondo_core::storage::Store;
use rondo_python::{Capability, CellEnding, RecordedCell, ending_of, is_after_loss};
use rondo_types::{CallId, SessionId, ToolErrorCode, ToolOutcome};
use serde_json::Value;
use std::collections::HashMap;
use std::time::Duration;

/// Cells of a session that are looked at; later ones are not.
const CELLS_MAX: usize = 10_000;
/// Their code together, in bytes.
const CODE_BYTES_MAX: usize = 64 << 20;
/// The kinds of records about cells.
const KINDS: [&str; 5] = [
    "cell_started",
    "cell_finished",
    "turn_started",
    "tool_started",
    "tool_finished",
];

/// Code that ran in the Python session, of a person or of the agent.
#[derive(Debug, Clone, PartialEq)]
pub struct KeptCell {
    /// The place of its beginning.
    pub seq: Seq,
    /// Cell, and its ending.
    pub cell: RecordedCell,
}

/// All such code of a session, in the order in which it ran.
#[derive(Debug, Default)]
pub struct Cells {
    /// The cells, numbered from 1.
    pub kept: Vec<KeptCell>,
    /// Cells up to here ran in an interpreter that was lost since.
    pub lost_at: Seq,
    /// How many more there were than are looked at.
    pub left_out: u32,
    /// Of the person's cell that was started last.
    open: Option<usize>,
    /// Of the agent's calls under way.
    calls: HashMap<CallId, usize>,
    /// Of the turn's calls.
    timeout: Option<Duration>,
    bytes: usize,
}

impl Cells {
    /// Reads a session's records for them.
    ///
    /// # Errors
    /// When there is no such session, or the disk fails.
    pub fn read(store: &Store, session: &SessionId) -> Result<Self> {
        let mut cells = Self::default();
        store.each::<SetupError>(session, Seq(1), |entry| {
            cells.entry(entry);
            Ok(())
        })?;
        Ok(cells)
    }

    fn entry(&mut self, entry: Entry) {
        let kind = entry.kind();
        let is_others = kind == "tool_finished" && self.calls.is_empty();
        if is_others || !KINDS.contains(&kind.as_str()) {
            return;
        }
        let seq = entry.seq;
        if let Some(record) = entry.into_record() {
            self.take(seq, record.body);
        }
    }

    fn take(&mut self, seq: Seq, body: RecordBody) {
        match body {
            RecordBody::TurnStarted { profile, .. } => {
                self.timeout = profile.limits.tool_timeout;
                self.calls.clear();
            }
            RecordBody::CellStarted { code, changed } => {
                self.open = self.begin(seq, code, None);
                if let Some(kept) = self.open.and_then(|at| self.kept.get_mut(at)) {
                    kept.cell.changed = changed;
                }
            }
            RecordBody::CellFinished {
                ending,
                is_restarted,
                has_read_input,
                ..
            } => {
                if let Some(at) = self.open.take() {
                    if let Some(kept) = self.kept.get_mut(at) {
                        kept.cell.has_read_input = has_read_input;
                    }
                    self.end(at, seq, ending, is_restarted);
                }
            }
            RecordBody::ToolStarted {
                call_id,
                name,
                arguments,
                ..
            } => self.call(seq, call_id, &name, &arguments),
            RecordBody::ToolFinished {
                call_id, outcome, ..
            } => self.call_ended(seq, &call_id, &outcome),
            _ => {}
        }
    }

    fn call(&mut self, seq: Seq, call_id: CallId, name: &str, arguments: &Value) {
        let argument = match name {
            name if name == Capability::RunCode.name() => "code",
            name if name == Capability::EvalExpr.name() => "expr",
            _ => return,
        };
        let code = arguments.get(argument).and_then(Value::as_str);
        let code = code.unwrap_or_default().to_owned();
        if let Some(at) = self.begin(seq, code, self.timeout) {
            self.calls.insert(call_id, at);
        }
    }

    fn call_ended(&mut self, seq: Seq, call_id: &CallId, outcome: &ToolOutcome) {
        let Some(at) = self.calls.remove(call_id) else {
            return;
        };
        let not_run = match outcome {
            // The model read this; it is unknown.
            ToolOutcome::Error(error) if error.code == ToolErrorCode::InDoubt => return,
            ToolOutcome::Error(error) => error.message.clone(),
            ToolOutcome::Ok(_) => String::new(),
        };
        let not_run = || CellEnding::NotRun { message: not_run };
        let ending = ending_of(outcome).unwrap_or_else(not_run);
        self.end(at, seq, ending, is_after_loss(outcome));
    }

    fn begin(&mut self, seq: Seq, code: String, timeout: Option<Duration>) -> Option<usize> {
        self.bytes = self.bytes.saturating_add(code.len());
        if self.kept.len() >= CELLS_MAX || self.bytes > CODE_BYTES_MAX {
            self.left_out = self.left_out.saturating_add(1);
            return None;
        }
        let at = self.kept.len();
        let number = u32::try_from(at + 1).unwrap_or(u32::MAX);
        let cell = RecordedCell {
            number,
            code,
            changed: None,
            ending: None,
            has_read_input: false,
            timeout,
        };
        self.kept.push(KeptCell { seq, cell });
        Some(at)
    }

    fn end(&mut self, at: usize, seq: Seq, ending: CellEnding, is_restarted: bool) {
        let Some(kept) = self.kept.get_mut(at) else {
            return;
        };
        if is_restarted {
            self.lost_at = self.lost_at.max(Seq(kept.seq.0.saturating_sub(1)));
        }
        if let CellEnding::Lost { .. } = ending {
            self.lost_at = self.lost_at.max(seq);
        }
        kept.cell.ending = Some(ending);
    }
}

impl KeptCell {
    /// Returns whether it ran, or may have.
    pub fn may_have_run(&self) -> bool {
        !matches!(self.cell.ending, Some(CellEnding::NotRun { .. }))
    }
}

#[cfg(test)]
mod tests;
