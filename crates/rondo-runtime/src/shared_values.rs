//! What most turns of a host have alike, held once: a thousand that run at the same time have the same profile and rules.

use rondo_core::SharedSpecs;
use rondo_core::redact::Secrets;
use rondo_policy::rules::Rules;
use rondo_policy::{CommandEnvironment, GateOptions, ToolPatterns};
use rondo_types::Profile;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// How many different values of a kind are kept.
const KEPT_MAX: usize = 8;

/// The values that turns share.
#[derive(Default)]
pub struct SharedValues {
    pub(crate) specs: SharedSpecs,
    pub(crate) profiles: Interner<Arc<Profile>>,
    pub(crate) rules: Interner<Arc<Rules>>,
    pub(crate) environments: Interner<Arc<CommandEnvironment>>,
    pub(crate) tool_patterns: Interner<ToolPatterns>,
    /// What commands in a sandbox may read besides their directories.
    pub(crate) readable: Interner<Arc<Vec<PathBuf>>>,
    /// With what finds them in a text.
    pub(crate) secrets: Interner<Secrets>,
}

impl SharedValues {
    /// Has a gate hold what others hold that are alike.
    pub(crate) fn share(&self, gate: &mut GateOptions) {
        gate.rules = self.rules.share(Arc::clone(&gate.rules));
        gate.allowed_tools = self.tool_patterns.share(gate.allowed_tools.clone());
        gate.disallowed_tools = self.tool_patterns.share(gate.disallowed_tools.clone());
        gate.environment = self.environments.share(Arc::clone(&gate.environment));
    }
}

/// Holds equal values once: those that it was asked for last. Clones of `T` share what they hold.
pub(crate) struct Interner<T>(Mutex<Vec<T>>);

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Clone + PartialEq> Interner<T> {
    /// Returns the kept value that equals this one; it is kept where there is none.
    pub(crate) fn share(&self, value: T) -> T {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = match kept.iter().position(|it| *it == value) {
            Some(place) => kept.remove(place),
            None => value,
        };
        if kept.len() == KEPT_MAX {
            kept.remove(0);
        }
        kept.push(found.clone());
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_are_held_once_and_others_apart() {
        let interner = Interner::default();
        let (one, other) = (interner.share(Arc::new(1)), interner.share(Arc::new(2)));
        assert!(Arc::ptr_eq(&one, &interner.share(Arc::new(1))));
        assert_eq!((*one, *other), (1, 2));
    }

    #[test]
    fn what_was_asked_for_last_is_kept_within_the_bound() {
        let interner = Interner::default();
        let first = interner.share(Arc::new(0));
        for number in 1..=KEPT_MAX {
            interner.share(Arc::new(number));
        }
        assert_eq!(interner.0.lock().unwrap().len(), KEPT_MAX);
        assert!(!Arc::ptr_eq(&first, &interner.share(Arc::new(0))));
    }
}
