//! Calls that were interrupted by a crash of the agent, and the state of their commands.

use crate::outcome::outcome;
use rondo_core::ports::{InterruptedCall, Reconciled};
use rondo_launch::{CallSpec, RecalledCall, StatusLocation, end_orphans, look};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// The bound on interrupted calls whose commands were found running and that were not waited for yet.
const FOUND_RUNNING_MAX: usize = 1024;

/// Returns the evidence that shows, after a crash, whether a command was run: the directory of its files. If the key of
/// its call is
/// known, a file says from now on that it was not.
pub(crate) fn evidence(state_dir: &Path, key: Option<&str>) -> Option<Value> {
    let whereabouts = match key {
        Some(key) => StatusLocation::reserved(state_dir, key),
        None => StatusLocation::of(state_dir),
    };
    serde_json::to_value(whereabouts?).ok()
}

/// Calls that were found running, and that a call with the same key continues with.
///
/// Only those: a key alone does not tell a call that is repeated after a crash from a call of
/// another session that happens to have its name.
#[derive(Debug, Clone, Default)]
pub(crate) struct CallsFoundRunning(Arc<Mutex<BTreeSet<String>>>);

impl CallsFoundRunning {
    /// Finds out the state of a command that an earlier process started.
    pub(crate) async fn reconcile(&self, state_dir: &Path, call: &InterruptedCall) -> Reconciled {
        let key = &call.idempotency_key;
        if !CallSpec::is_key(key) {
            // A call with such a key has no effect.
            return Reconciled::NotDone;
        }
        match look(state_dir, key).await {
            RecalledCall::Ended(status) => Reconciled::Done(outcome(*status, None)),
            RecalledCall::Running(_) if self.add(key) => Reconciled::Running,
            RecalledCall::NeverBegun { is_recorded }
                if never_began(state_dir, call, is_recorded) =>
            {
                Reconciled::NotDone
            }
            RecalledCall::Lost { mark: Some(mark) } => {
                // The user or the model looks at its effects next, so what is left of it must not continue meanwhile.
                end_orphans(mark).await;
                Reconciled::Unknown
            }
            RecalledCall::Running(_)
            | RecalledCall::NeverBegun { .. }
            | RecalledCall::Lost { mark: None } => Reconciled::Unknown,
        }
    }

    /// Returns whether the call was found running, once.
    pub(crate) fn take(&self, key: &str) -> bool {
        self.keys(|keys| keys.remove(key))
    }

    fn add(&self, key: &str) -> bool {
        self.keys(|keys| {
            let has_room = keys.len() < FOUND_RUNNING_MAX;
            if has_room {
                keys.insert(key.to_owned());
            }
            has_room
        })
    }

    fn keys<T>(&self, work: impl FnOnce(&mut BTreeSet<String>) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn never_began(state_dir: &Path, call: &InterruptedCall, is_recorded: bool) -> bool {
    let then = call.evidence.clone().map(serde_json::from_value);
    let now = StatusLocation::of(state_dir);
    match then {
        Some(Ok::<StatusLocation, _>(then)) => then.rule_out(now.as_ref(), is_recorded),
        Some(Err(_)) | None => false,
    }
}
