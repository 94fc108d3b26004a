//! Places in the records of sessions from which listeners resume, so that a returning one does not read all turns.

use super::records::{Checkpoint, RecordReader};
use rondo_types::SessionId;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The bound on sessions of which some are held.
const SESSIONS_MAX: usize = 64;
/// The bound on those of one session: before its latest turns.
const EACH_MAX: usize = 8;
/// The bound on the histories that they hold together, in bytes. Those of one session share theirs.
const BYTES_MAX: usize = 32 << 20;

/// The checkpoints of a service.
#[derive(Default)]
pub(super) struct Checkpoints(Mutex<CheckpointCache>);

#[derive(Default)]
struct CheckpointCache {
    /// The one that was used last is the last one.
    sessions: VecDeque<SessionCheckpoints>,
    bytes: usize,
}

struct SessionCheckpoints {
    session: SessionId,
    /// In the order of their turns.
    all: VecDeque<Arc<Checkpoint>>,
    /// The size of the longest history.
    bytes: usize,
}

impl Checkpoints {
    fn held(&self) -> MutexGuard<'_, CheckpointCache> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the latest one that is not behind the beginning of a turn.
    pub(super) fn before(&self, session: &SessionId, turn: u32) -> Option<Arc<Checkpoint>> {
        let mut held = self.held();
        let found = held.take(session)?;
        let before = found.all.iter().rev().find(|it| it.number <= turn).cloned();
        held.put(found);
        before
    }

    /// Returns whether the one before a turn is held.
    pub(super) fn has(&self, session: &SessionId, turn: u32) -> bool {
        let held = self.held();
        let mut sessions = held.sessions.iter();
        let found = sessions.find(|it| it.session == *session);
        found.is_some_and(|it| it.all.iter().any(|it| it.number == turn))
    }

    /// Holds one, whose history has so many bytes.
    pub(super) fn hold(&self, session: &SessionId, checkpoint: Checkpoint, bytes: usize) {
        let mut held = self.held();
        let mut found = held.take(session).unwrap_or_else(|| SessionCheckpoints {
            session: session.clone(),
            all: VecDeque::new(),
            bytes: 0,
        });
        found.all.retain(|it| it.number != checkpoint.number);
        let at = found
            .all
            .partition_point(|it| it.number < checkpoint.number);
        found.all.insert(at, Arc::new(checkpoint));
        if found.all.len() > EACH_MAX {
            found.all.pop_front();
        }
        found.bytes = found.bytes.max(bytes);
        held.put(found);
    }

    /// Holds the place before the turn that was read, for those who come back in it. The first one needs none.
    pub(super) fn hold_from(&self, session: &SessionId, reader: &RecordReader) {
        let turn = reader.number();
        if turn < 2 || self.has(session, turn) {
            return;
        }
        if let Some(checkpoint) = reader.checkpoint() {
            self.hold(session, checkpoint, reader.history_bytes());
        }
    }

    /// Forgets those of a session.
    pub(super) fn forget(&self, session: &SessionId) {
        self.held().take(session);
    }
}

impl CheckpointCache {
    fn take(&mut self, session: &SessionId) -> Option<SessionCheckpoints> {
        let at = self.sessions.iter().position(|it| it.session == *session)?;
        let found = self.sessions.remove(at)?;
        self.bytes -= found.bytes;
        Some(found)
    }

    fn put(&mut self, of: SessionCheckpoints) {
        self.bytes += of.bytes;
        self.sessions.push_back(of);
        while self.sessions.len() > SESSIONS_MAX || self.bytes > BYTES_MAX {
            let Some(gone) = self.sessions.pop_front() else {
                return;
            };
            self.bytes -= gone.bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(all: &Checkpoints, session: &str) -> Vec<u32> {
        let held = all.held();
        let found = held
            .sessions
            .iter()
            .find(|it| it.session.as_str() == session);
        found.map_or_else(Vec::new, |it| it.all.iter().map(|it| it.number).collect())
    }

    #[test]
    fn the_latest_of_a_session_are_held_and_sessions_that_were_not_used_go_first() {
        let all = Checkpoints::default();
        let id = |name: &str| SessionId::new(name);
        for number in [3, 2, 4, 5, 6, 7, 8, 9, 10, 10] {
            all.hold(&id("a"), Checkpoint::at(&id("a"), number), 1);
        }
        assert_eq!(numbers(&all, "a"), [3, 4, 5, 6, 7, 8, 9, 10]);
        let before = |turn| all.before(&id("a"), turn).map(|it| it.number);
        assert_eq!(
            [before(2), before(5), before(99)],
            [None, Some(5), Some(10)]
        );
        all.hold(&id("b"), Checkpoint::at(&id("b"), 2), BYTES_MAX / 2);
        assert_eq!(before(3), Some(3));
        all.hold(&id("c"), Checkpoint::at(&id("c"), 2), BYTES_MAX / 2);
        assert_eq!([numbers(&all, "a").len(), numbers(&all, "b").len()], [8, 0]);
        all.hold(&id("d"), Checkpoint::at(&id("d"), 2), BYTES_MAX + 1);
        assert_eq!(all.held().bytes, 0);
        for number in 0..=SESSIONS_MAX {
            let session = id(&number.to_string());
            all.hold(&session, Checkpoint::at(&session, 2), 1);
        }
        assert_eq!(all.held().sessions.len(), SESSIONS_MAX);
        assert!(!all.has(&id("0"), 2) && all.has(&id("1"), 2) && !all.has(&id("1"), 3));
        all.forget(&id("1"));
        assert!(!all.has(&id("1"), 2));
    }
}
