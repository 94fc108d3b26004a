use rondo_types::{SessionId, TurnId};
use std::hash::{BuildHasher as _, RandomState};

/// Returns a name that no other session has, in this process or another.
pub(super) fn new_session() -> SessionId {
    SessionId::new(format!("s-{:016x}{:016x}", random(), random()))
}

/// Names a turn within its session.
pub(super) fn turn(session: &SessionId, number: u32) -> TurnId {
    TurnId::new(format!("{session}-{number}"))
}

/// Returns a number that the operating system's randomness went into, by way of the keys of a hash
/// map; nothing here needs more than to be different each time.
pub(super) fn random() -> u64 {
    RandomState::new().hash_one(0_u8)
}
