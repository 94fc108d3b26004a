//! A session's records followed one at a time, each checked against those before it.

use super::Defect;
use crate::ports::{Body, ChainHash, Entry, RecordBody, Seq};
use rondo_types::{CallId, TurnId};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// How far the chain was followed.
#[derive(Debug, Default)]
pub struct Walk {
    /// The place of the last record.
    pub at: Seq,
    /// The hash of the last record.
    pub hash: ChainHash,
    /// The calls that have ended.
    pub ends: EndedCalls,
}

/// The calls of the turn under way that have ended: no call ends twice. An id names its turn, and a
/// turn's records lie together, so those of the turns before need not be held.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedCalls {
    turn: Option<TurnId>,
    calls: HashSet<CallId>,
}

impl Walk {
    /// Checks the next entry and returns its body.
    ///
    /// # Errors
    /// When it does not follow on the last one, its hash is another, its body cannot be read, or it ends a call that has
    /// ended.
    pub fn take(&mut self, entry: &Entry) -> Result<Body, Defect> {
        let defect = |seq, reason: String| Defect { seq, reason };
        let next = Seq(self.at.0 + 1);
        if entry.seq != next {
            return Err(missing(next));
        }
        if entry.chained(self.hash) != entry.hash {
            let reason = "its hash does not fit: it or one before it was changed";
            return Err(defect(next, reason.to_owned()));
        }
        let body = entry
            .body()
            .map_err(|error| defect(next, format!("its body cannot be read: {error}")))?;
        if let Body::Known(known) = &body
            && let RecordBody::ToolFinished { call_id, .. } = &**known
            && !self.ends.note(&entry.turn, call_id)
        {
            return Err(defect(next, format!("call `{call_id}` ended before")));
        }
        (self.at, self.hash) = (next, entry.hash);
        Ok(body)
    }
}

impl EndedCalls {
    /// Returns false if the call has ended before.
    fn note(&mut self, turn: &TurnId, call: &CallId) -> bool {
        if self.turn.as_ref() != Some(turn) {
            self.turn = Some(turn.clone());
            self.calls.clear();
        }
        self.calls.insert(call.clone())
    }
}

/// Returns the defect of a record that is missing.
#[must_use]
pub fn missing(seq: Seq) -> Defect {
    Defect {
        seq,
        reason: "it is not there".to_owned(),
    }
}
