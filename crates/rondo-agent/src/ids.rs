//! Generates ids of sessions and turns, and seeds for retries.

use rondo_core::clock::Clock;
use rondo_types::{SessionId, TurnId};
use std::hash::{BuildHasher as _, RandomState};

/// Generates the id of a new session, unique across processes. Ids sort by the time of creation.
pub(crate) fn new_session() -> SessionId {
    SessionId::generated(Clock::system().now(), random())
}

/// Returns the id of a turn, from its session and number.
pub(crate) fn turn(session: &SessionId, number: u32) -> TurnId {
    TurnId::new(format!("{session}-{number}"))
}

/// Returns a random number. It comes from the keys of a hash map, which the operating system seeds:
/// good enough for ids and retries, not for cryptography.
pub(crate) fn random() -> u64 {
    RandomState::new().hash_one(0_u8)
}
