//! The places of connections that showed a valid key, and the bytes of bodies that are held for each key: bounded, so that
//! nobody takes those of others, and with some that only owners get.

use crate::connections::{AddressBounds, ByteBound, HeldBytes};
use crate::keys::KeyHash;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Bounds on the resources of connections.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// Connections at once on which no valid key was shown yet.
    pub(super) strangers: AddressBounds,
    /// Connections at once with keys of members and guests; owners have the others.
    pub(super) others: usize,
    /// Connections at once with one key.
    pub(super) of_key: usize,
    /// Bytes of bodies that are held at once for members and guests, and as many again for owners.
    pub(super) body_bytes: usize,
    /// The same of one key.
    pub(super) body_bytes_of_key: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            strangers: AddressBounds {
                all: 256,
                of_address: 128,
                time: Duration::from_millis(250),
            },
            others: 640,
            of_key: 128,
            body_bytes: 64 << 20,
            body_bytes_of_key: 32 << 20,
        }
    }
}

/// Counts the connections with keys, and the bytes of their bodies.
pub(super) struct Places {
    bounds: Bounds,
    taken: Mutex<KeyConnections>,
    owner_bytes: Arc<ByteBound<KeyHash>>,
    other_bytes: Arc<ByteBound<KeyHash>>,
}

#[derive(Default)]
struct KeyConnections {
    keys: HashMap<KeyHash, usize>,
    /// Connections with keys of members and guests.
    others: usize,
}

/// A place of a connection with a valid key.
pub(super) struct KeyPlace {
    places: Arc<Places>,
    key: KeyHash,
    is_owner: bool,
    body: HeldBytes<KeyHash>,
}

impl Places {
    pub(super) fn new(bounds: Bounds) -> Self {
        let bytes = || Arc::new(ByteBound::new(bounds.body_bytes, bounds.body_bytes_of_key));
        Self {
            bounds,
            taken: Mutex::default(),
            owner_bytes: bytes(),
            other_bytes: bytes(),
        }
    }

    fn taken(&self) -> MutexGuard<'_, KeyConnections> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a connection a place of its key, if one is free.
    pub(super) fn known(self: &Arc<Self>, key: &KeyHash, is_owner: bool) -> Option<KeyPlace> {
        let mut taken = self.taken();
        let of_key = taken.keys.get(key).copied().unwrap_or_default();
        if of_key >= self.bounds.of_key || (!is_owner && taken.others >= self.bounds.others) {
            return None;
        }
        taken.keys.insert(key.clone(), of_key + 1);
        taken.others += usize::from(!is_owner);
        let bytes = match is_owner {
            true => &self.owner_bytes,
            false => &self.other_bytes,
        };
        Some(KeyPlace {
            places: Arc::clone(self),
            key: key.clone(),
            is_owner,
            body: bytes.begin(key.clone()),
        })
    }
}

impl KeyPlace {
    /// Returns whether it belongs to this key, in this role.
    pub(super) fn is_of(&self, key: &KeyHash, is_owner: bool) -> bool {
        self.key == *key && self.is_owner == is_owner
    }

    /// Counts more bytes of the body. Returns whether they may be held.
    pub(super) fn hold(&mut self, bytes: usize) -> bool {
        self.body.add(bytes)
    }

    /// Releases the bytes of the body.
    pub(super) fn release(&mut self) {
        self.body.release();
    }
}

impl Drop for KeyPlace {
    fn drop(&mut self) {
        let mut taken = self.places.taken();
        taken.others = taken.others.saturating_sub(usize::from(!self.is_owner));
        let Some(of_key) = taken.keys.get_mut(&self.key) else {
            return;
        };
        *of_key = of_key.saturating_sub(1);
        if *of_key == 0 {
            taken.keys.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::ApiKey;

    const BOUNDS: Bounds = Bounds {
        strangers: AddressBounds {
            all: 3,
            of_address: 2,
            time: Duration::from_millis(250),
        },
        others: 3,
        of_key: 2,
        body_bytes: 100,
        body_bytes_of_key: 60,
    };

    fn places() -> Arc<Places> {
        Arc::new(Places::new(BOUNDS))
    }

    fn key(text: &str) -> KeyHash {
        ApiKey::new(text.to_owned()).hash()
    }

    #[test]
    fn keys_have_bounds_of_their_own_and_owners_places_are_theirs() {
        let places = places();
        let (guest, member, owner) = (key("guest"), key("member"), key("owner"));
        let of_guest = [places.known(&guest, false), places.known(&guest, false)];
        assert!(of_guest.iter().all(Option::is_some));
        assert!(places.known(&guest, false).is_none());
        let of_member = places.known(&member, false);
        assert!(of_member.is_some());
        assert!(places.known(&member, false).is_none());
        assert!(places.known(&owner, true).is_some());
        drop(of_guest);
        assert!(places.known(&member, false).is_some());
    }

    #[test]
    fn bodies_are_counted_for_each_key_and_owners_bytes_are_theirs() {
        let places = places();
        let mut guest = places.known(&key("guest"), false).unwrap();
        let mut member = places.known(&key("member"), false).unwrap();
        let mut owner = places.known(&key("owner"), true).unwrap();
        assert!(guest.hold(59) && guest.hold(1) && !guest.hold(1));
        assert!(member.hold(40) && !member.hold(1));
        assert!(owner.hold(60) && !owner.hold(1));
        guest.release();
        assert!(member.hold(20) && !member.hold(1));
        drop((guest, member, owner));
        let taken = places.taken();
        assert!(taken.keys.is_empty() && taken.others == 0);
    }
}
