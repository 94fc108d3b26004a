//! Mark of conversations with text from outside, which may be written to lead the model astray.

use crate::ports::{Record, RecordBody};
use rondo_types::{CallId, ToolKind, ToolOutcome, ToolSpec};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Mark of a conversation that has text from outside. Clones share it, so that the turns of a session see each
/// other's; it is never removed, since content that is summarized or left out has been read.
#[derive(Debug, Clone, Default)]
pub struct OutsideText(Arc<AtomicBool>);

impl OutsideText {
    /// Starts from what is known.
    #[must_use]
    pub fn new(is_present: bool) -> Self {
        Self(Arc::new(AtomicBool::new(is_present)))
    }

    /// Returns whether there is any.
    #[must_use]
    pub fn is_present(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Records that there is text from outside.
    pub fn note(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Notes it if the result of a call is marked as such text.
    pub fn note_result(&self, outcome: &ToolOutcome) {
        if is_from_outside(outcome, false) {
            self.note();
        }
    }
}

/// Returns whether the words of a tool's error may come from outside: those of a server that refuses to answer. Commands
/// say so themselves, since most of them reach nothing.
pub(crate) fn reaches_outside(spec: &ToolSpec) -> bool {
    match spec.kind {
        ToolKind::Fetch => true,
        ToolKind::Execute => false,
        _ => spec.hints.open_world == Some(true),
    }
}

/// Returns whether the result of a call holds text from outside.
pub(crate) fn is_from_outside(outcome: &ToolOutcome, reaches_outside: bool) -> bool {
    match outcome {
        ToolOutcome::Ok(output) => output.from_outside,
        ToolOutcome::Error(error) => reaches_outside || is_marked(&error.details),
    }
}

/// The detail by which a tool marks an error that holds such text: `true`.
pub const FROM_OUTSIDE: &str = "from_outside";

fn is_marked(details: &Value) -> bool {
    details.get(FROM_OUTSIDE) == Some(&Value::Bool(true))
}

/// The same from the records of a session, one at a time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct OutsideTextFold {
    is_present: bool,
    /// Tools on offer whose errors may hold such text.
    tools: HashSet<String>,
    /// Calls of theirs that were begun.
    begun: HashSet<CallId>,
}

impl OutsideTextFold {
    pub(crate) fn of<'a>(records: impl IntoIterator<Item = &'a Record>) -> Self {
        let mut fold = Self::default();
        records.into_iter().for_each(|record| fold.take(record));
        fold
    }

    pub(crate) fn is_present(&self) -> bool {
        self.is_present
    }

    pub(crate) fn take(&mut self, record: &Record) {
        match &record.body {
            RecordBody::TurnStarted { .. } => self.begun.clear(),
            RecordBody::UserMessage { message } => self.is_present |= message.from_outside,
            RecordBody::TurnEnvironment { tools, .. } | RecordBody::ToolsChanged { tools } => {
                let outside = tools.iter().filter(|it| reaches_outside(it));
                self.tools = outside.map(|it| it.name.clone()).collect();
            }
            RecordBody::ToolStarted { call_id, name, .. } if self.tools.contains(name) => {
                self.begun.insert(call_id.clone());
            }
            RecordBody::ToolFinished {
                call_id, outcome, ..
            } => {
                let reaches_outside = self.begun.remove(call_id);
                self.is_present |= is_from_outside(outcome, reaches_outside);
            }
            _ => {}
        }
    }
}
