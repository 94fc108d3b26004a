//! Generates the ids of sessions and turns, and the keys of what is submitted to mailboxes.
//!
//! Each is made of the time in milliseconds and the id of this process. If a process needs several within one
//! millisecond, as a service of many sessions does, the later ones take the milliseconds that follow.

use rondo_types::{SessionId, TimeMs, TurnId};
use std::sync::atomic::{AtomicU64, Ordering};

/// Returns the id of a new session. No other session on this machine has it.
pub(crate) fn new_session(at: TimeMs) -> SessionId {
    SessionId::generated(distinct(at), std::process::id().into())
}

/// Returns the id of a new turn. No other turn on this machine has it.
pub(crate) fn new_turn(at: TimeMs) -> TurnId {
    TurnId::new(format!("t-{}", time_and_process(at)))
}

/// Returns the key of what is submitted now to a mailbox, such as a message. No other row of it has it.
pub(crate) fn new_key(kind: &str, at: TimeMs) -> String {
    format!("{kind}-{}", time_and_process(at))
}

fn time_and_process(at: TimeMs) -> String {
    format!("{:x}-{:x}", distinct(at).0, std::process::id())
}

/// Returns `at`, or the first millisecond after all that this process used for an id.
fn distinct(at: TimeMs) -> TimeMs {
    static USED: AtomicU64 = AtomicU64::new(0);
    let next = |used: u64| at.0.max(used.saturating_add(1));
    let used = USED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
        Some(next(used))
    });
    let (Ok(used) | Err(used)) = used;
    TimeMs(next(used))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn ids_of_one_millisecond_and_of_a_clock_that_was_set_back_differ() {
        let times = [5, 5, 5, 4, 5].map(TimeMs);
        let sessions: BTreeSet<_> = times.map(new_session).into();
        let turns: BTreeSet<_> = times.map(new_turn).into();
        let keys: BTreeSet<_> = times.map(|at| new_key("message", at)).into();
        assert_eq!([sessions.len(), turns.len(), keys.len()], [times.len(); 3]);
    }
}
