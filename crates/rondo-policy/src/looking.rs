//! The calls that were allowed because they only look, so that what runs them holds them to it.

use rondo_types::{CallId, SessionId};
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// The bound on calls that are noted: more than the calls of a step.
const CALLS_MAX: usize = 2_048;

/// Calls that were allowed because they only look: the gate notes them, and the tool that runs them takes them.
///
/// The turns below one that started them share its gate, and so this: calls of several sessions may have the same id.
/// Each call is judged by the gate before it starts, after a crash too, so what is not in here was allowed for another
/// reason. Cheap to clone; clones share the calls.
#[derive(Debug, Clone, Default)]
pub struct LookingCalls(Arc<Mutex<VecDeque<(SessionId, CallId, Value)>>>);

impl LookingCalls {
    /// Notes whether a call was allowed because it only looks; what was noted of it before is forgotten.
    pub fn note(&self, session: &SessionId, call: &CallId, arguments: &Value, only_looks: bool) {
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        calls.retain(|(of, id, _)| (of, id) != (session, call));
        if !only_looks {
            return;
        }
        if calls.len() >= CALLS_MAX {
            calls.pop_front();
        }
        calls.push_back((session.clone(), call.clone(), arguments.clone()));
    }

    /// Returns whether the latest verdict was to allow this call, with these arguments, because it only looks.
    #[must_use]
    pub fn holds(&self, session: &SessionId, call: &CallId, arguments: &Value) -> bool {
        let calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        calls
            .iter()
            .any(|(of, id, noted)| (of, id, noted) == (session, call, arguments))
    }

    /// Returns whether the latest verdict was to allow this call, with these arguments, because it only looks; forgets
    /// it.
    #[must_use]
    pub fn take(&self, session: &SessionId, call: &CallId, arguments: &Value) -> bool {
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = calls
            .iter()
            .position(|(of, id, _)| (of, id) == (session, call));
        let noted = at.and_then(|at| calls.remove(at));
        noted.is_some_and(|(_, _, noted)| noted == *arguments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn session() -> SessionId {
        SessionId::new("s")
    }

    #[test]
    fn calls_of_two_sessions_with_one_id_are_apart() {
        let calls = LookingCalls::default();
        let (id, other) = (CallId::new("a"), SessionId::new("other"));
        let ls = json!({"command": "ls"});
        calls.note(&session(), &id, &ls, true);
        calls.note(&other, &id, &ls, false);
        assert!(!calls.take(&other, &id, &ls) && calls.take(&session(), &id, &ls));
    }

    #[test]
    fn a_call_is_taken_once_and_as_it_was_judged_last() {
        let calls = LookingCalls::default();
        let id = CallId::new("a");
        let ls = json!({"command": "ls"});
        calls.note(&session(), &id, &ls, true);
        assert!(!LookingCalls::default().take(&session(), &id, &ls));
        assert!(
            calls.holds(&session(), &id, &ls)
                && !calls.holds(&session(), &id, &json!({"command": "rm a"}))
        );
        assert!(calls.clone().take(&session(), &id, &ls) && !calls.take(&session(), &id, &ls));
        calls.note(&session(), &id, &ls, true);
        assert!(!calls.take(&session(), &id, &json!({"command": "rm a"})));
        calls.note(&session(), &id, &ls, true);
        calls.note(&session(), &id, &ls, false);
        assert!(!calls.take(&session(), &id, &ls));
    }

    #[test]
    fn no_more_are_kept_than_the_bound() {
        let calls = LookingCalls::default();
        let id = |number: usize| CallId::new(number.to_string());
        for number in 0..=CALLS_MAX {
            calls.note(&session(), &id(number), &Value::Null, true);
        }
        assert!(!calls.take(&session(), &id(0), &Value::Null));
        assert!(
            calls.take(&session(), &id(1), &Value::Null)
                && calls.take(&session(), &id(CALLS_MAX), &Value::Null)
        );
    }
}
