//! Names of sessions and turns, and the seed of retries.

use rondo_core::clock::Clock;
use rondo_types::{SessionId, TurnId};
use std::hash::{BuildHasher as _, RandomState};

/// Returns a name that no other session has, in this process or another. Later ones sort behind.
pub(crate) fn new_session() -> SessionId {
    SessionId::generated(Clock::system().now(), random())
}

/// Names a turn within its session.
pub(crate) fn turn(session: &SessionId, number: u32) -> TurnId {
    TurnId::new(format!("{session}-{number}"))
}

/// Returns a number that the operating system's randomness went into, by way of the keys of a hash
/// map; nothing here needs more than to be different each time.
pub(crate) fn random() -> u64 {
    RandomState::new().hash_one(0_u8)
}
