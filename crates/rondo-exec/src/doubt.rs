//! Commands that an earlier agent started.

use crate::outcome::outcome;
use rondo_core::ports::{DoubtfulCall, Reconciled};
use rondo_launch::{CallSpec, Known, Whereabouts, end_orphans, look};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// The bound on calls that are in doubt at a time.
const DOUBTED_MAX: usize = 1024;

/// Notes what will tell whether a command was run.
pub(crate) fn evidence(state_dir: &Path) -> Option<Value> {
    serde_json::to_value(Whereabouts::of(state_dir)?).ok()
}

/// Calls that were found running, and that a call with the same key goes on with.
///
/// Only those: a key alone does not tell a call that is repeated after a crash from a call of
/// another session that happens to have its name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Doubted(Arc<Mutex<BTreeSet<String>>>);

impl Doubted {
    /// Says what became of a command.
    pub(crate) async fn reconcile(&self, state_dir: &Path, call: &DoubtfulCall) -> Reconciled {
        let key = &call.idempotency_key;
        if !CallSpec::is_key(key) {
            // A call with such a key has no effect.
            return Reconciled::NotDone;
        }
        match look(state_dir, key).await {
            Known::Ended(status) => Reconciled::Done(outcome(*status)),
            Known::Running(_) if self.add(key) => Reconciled::Running,
            Known::NeverBegun { is_recorded } if never_began(state_dir, call, is_recorded) => {
                Reconciled::NotDone
            }
            Known::Lost { mark: Some(mark) } => {
                // Before what it did is looked at: it is not to go on meanwhile.
                end_orphans(mark).await;
                Reconciled::Unknown
            }
            Known::Running(_) | Known::NeverBegun { .. } | Known::Lost { mark: None } => {
                Reconciled::Unknown
            }
        }
    }

    /// Returns whether the call was found running, once.
    pub(crate) fn take(&self, key: &str) -> bool {
        self.keys(|keys| keys.remove(key))
    }

    fn add(&self, key: &str) -> bool {
        self.keys(|keys| {
            let has_room = keys.len() < DOUBTED_MAX;
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

fn never_began(state_dir: &Path, call: &DoubtfulCall, is_recorded: bool) -> bool {
    let then = call.evidence.clone().map(serde_json::from_value);
    let now = Whereabouts::of(state_dir);
    match then {
        Some(Ok::<Whereabouts, _>(then)) => then.rule_out(now.as_ref(), is_recorded),
        Some(Err(_)) | None => false,
    }
}
