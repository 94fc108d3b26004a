//! The places that connections and bodies take: bounded for each address and each key, so that nobody takes those of
//! others, and with some that only owners get.

use crate::keys::KeyHash;
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

/// What connections can take at the most.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// Connections at once on which no valid key was shown yet.
    pub(super) strangers: usize,
    /// The same of one address.
    pub(super) strangers_of_address: usize,
    /// How long a connection has to show a key before another one may take its place.
    pub(super) stranger_time: Duration,
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
            strangers: 256,
            strangers_of_address: 128,
            stranger_time: Duration::from_millis(250),
            others: 640,
            of_key: 128,
            body_bytes: 64 << 20,
            body_bytes_of_key: 32 << 20,
        }
    }
}

/// Counts the places that connections and bodies take.
pub(super) struct Places {
    bounds: Bounds,
    taken: Mutex<Taken>,
    /// Notified when a place of a stranger is free.
    freed: Notify,
}

#[derive(Default)]
struct Taken {
    /// Numbers connections in the order in which they came.
    next: u64,
    strangers: BTreeMap<u64, Stranger>,
    keys: HashMap<KeyHash, OfKey>,
    /// Connections with keys of members and guests.
    others: usize,
    /// Bytes of bodies of owners, and of all others.
    owner_bytes: usize,
    other_bytes: usize,
}

struct Stranger {
    ip: IpAddr,
    since: Instant,
    displaced: CancellationToken,
}

#[derive(Default)]
struct OfKey {
    connections: usize,
    bytes: usize,
}

/// A place of a connection on which no valid key was shown.
pub(super) struct StrangerPlace {
    places: Arc<Places>,
    number: u64,
    /// Fires when another connection takes the place.
    pub(super) displaced: CancellationToken,
}

/// A place of a connection with a valid key.
pub(super) struct KeyPlace {
    places: Arc<Places>,
    key: KeyHash,
    is_owner: bool,
    /// Bytes of the body that is held for it.
    bytes: usize,
}

impl Places {
    pub(super) fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            taken: Mutex::default(),
            freed: Notify::new(),
        }
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a new connection a place. If all are taken, the oldest connection of the address that has the most is
    /// displaced once it had time to show a key; until then the new one waits.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub(super) async fn enter(self: &Arc<Self>, ip: IpAddr) -> StrangerPlace {
        loop {
            let freed = self.freed.notified();
            let Some(until) = self.make_room(ip) else {
                return self.place(ip);
            };
            // What comes first: a place becomes free, or another one may be displaced.
            drop(timeout_at(until, freed).await);
        }
    }

    /// Makes room for a connection of an address. Returns the time at which there can be room, if there is none yet.
    fn make_room(&self, ip: IpAddr) -> Option<Instant> {
        let mut taken = self.taken();
        let of_address = |taken: &Taken, ip| {
            let strangers = taken.strangers.values();
            strangers.filter(|it| it.ip == ip).count()
        };
        let crowded = if of_address(&taken, ip) >= self.bounds.strangers_of_address {
            ip
        } else if taken.strangers.len() >= self.bounds.strangers {
            let all = taken.strangers.values().map(|it| it.ip);
            all.max_by_key(|ip| of_address(&taken, *ip))?
        } else {
            return None;
        };
        let oldest = taken.strangers.iter().find(|(_, it)| it.ip == crowded);
        let (number, since) = oldest.map(|(number, it)| (*number, it.since))?;
        let until = since + self.bounds.stranger_time;
        if until > Instant::now() {
            return Some(until);
        }
        if let Some(oldest) = taken.strangers.remove(&number) {
            oldest.displaced.cancel();
        }
        None
    }

    fn place(self: &Arc<Self>, ip: IpAddr) -> StrangerPlace {
        let mut taken = self.taken();
        let number = taken.next;
        taken.next += 1;
        let displaced = CancellationToken::new();
        let stranger = Stranger {
            ip,
            since: Instant::now(),
            displaced: displaced.clone(),
        };
        taken.strangers.insert(number, stranger);
        StrangerPlace {
            places: Arc::clone(self),
            number,
            displaced,
        }
    }

    /// Gives a connection a place of its key, if one is free.
    pub(super) fn known(self: &Arc<Self>, key: &KeyHash, is_owner: bool) -> Option<KeyPlace> {
        let mut taken = self.taken();
        let taken = &mut *taken;
        let of_key = taken.keys.get(key).map_or(0, |it| it.connections);
        if of_key >= self.bounds.of_key || (!is_owner && taken.others >= self.bounds.others) {
            return None;
        }
        taken.keys.entry(key.clone()).or_default().connections += 1;
        taken.others += usize::from(!is_owner);
        Some(KeyPlace {
            places: Arc::clone(self),
            key: key.clone(),
            is_owner,
            bytes: 0,
        })
    }
}

impl KeyPlace {
    /// Returns whether it is of this key, in this role.
    pub(super) fn is_of(&self, key: &KeyHash, is_owner: bool) -> bool {
        self.key == *key && self.is_owner == is_owner
    }

    /// Counts more bytes of the body. Returns whether they may be held.
    pub(super) fn hold(&mut self, bytes: usize) -> bool {
        let mut taken = self.places.taken();
        let taken = &mut *taken;
        let bounds = &self.places.bounds;
        let all = match self.is_owner {
            true => &mut taken.owner_bytes,
            false => &mut taken.other_bytes,
        };
        let of_key = &mut taken.keys.entry(self.key.clone()).or_default().bytes;
        if *all + bytes > bounds.body_bytes || *of_key + bytes > bounds.body_bytes_of_key {
            return false;
        }
        *all += bytes;
        *of_key += bytes;
        self.bytes += bytes;
        true
    }

    /// Notes that nothing of the body is held any more.
    pub(super) fn release(&mut self) {
        let mut taken = self.places.taken();
        let taken = &mut *taken;
        let all = match self.is_owner {
            true => &mut taken.owner_bytes,
            false => &mut taken.other_bytes,
        };
        *all = all.saturating_sub(self.bytes);
        if let Some(of_key) = taken.keys.get_mut(&self.key) {
            of_key.bytes = of_key.bytes.saturating_sub(self.bytes);
        }
        self.bytes = 0;
    }
}

impl Drop for StrangerPlace {
    fn drop(&mut self) {
        self.places.taken().strangers.remove(&self.number);
        self.places.freed.notify_one();
    }
}

impl Drop for KeyPlace {
    fn drop(&mut self) {
        self.release();
        let mut taken = self.places.taken();
        taken.others = taken.others.saturating_sub(usize::from(!self.is_owner));
        let Some(of_key) = taken.keys.get_mut(&self.key) else {
            return;
        };
        of_key.connections = of_key.connections.saturating_sub(1);
        if of_key.connections == 0 {
            taken.keys.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::ApiKey;
    use futures_util::FutureExt as _;

    const BOUNDS: Bounds = Bounds {
        strangers: 3,
        strangers_of_address: 2,
        stranger_time: Duration::from_millis(250),
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

    fn ip(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_displaces_its_own_oldest_connection_after_its_time() {
        let places = places();
        let first = places.enter(ip(1)).await;
        let second = places.enter(ip(1)).await;
        assert!(places.enter(ip(1)).now_or_never().is_none());
        let other = places.enter(ip(2)).await;
        let began = Instant::now();
        let third = places.enter(ip(1)).await;
        assert_eq!(began.elapsed(), BOUNDS.stranger_time);
        assert!(first.displaced.is_cancelled());
        for place in [&second, &other, &third] {
            assert!(!place.displaced.is_cancelled());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_newcomer_displaces_one_of_the_address_that_has_the_most() {
        let places = places();
        let of_one = places.enter(ip(2)).await;
        let of_many = places.enter(ip(1)).await;
        let _of_many_too = places.enter(ip(1)).await;
        tokio::time::advance(BOUNDS.stranger_time).await;
        let _newcomer = places.enter(ip(3)).await;
        assert!(of_many.displaced.is_cancelled());
        assert!(!of_one.displaced.is_cancelled());
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_waits_gets_a_place_that_becomes_free() {
        let places = places();
        let first = places.enter(ip(1)).await;
        let _second = places.enter(ip(1)).await;
        let began = Instant::now();
        let (_third, ()) = tokio::join!(places.enter(ip(1)), async { drop(first) });
        assert_eq!(began.elapsed(), Duration::ZERO);
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
        assert_eq!((taken.owner_bytes, taken.other_bytes), (0, 0));
        assert!(taken.keys.is_empty() && taken.others == 0);
    }
}
