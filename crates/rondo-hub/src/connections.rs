//! Connections of a listener, bounded for each address, and the bytes that are held of their requests: common to the
//! API and other channels that listen.

use bytes::Buf as _;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::Body;
use std::collections::{BTreeMap, HashMap};
use std::error::Error;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

/// The pause after a connection could not be accepted, as when the system has no more descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How long the rest of a refused body is read and dropped.
const DISCARD_TIMEOUT: Duration = Duration::from_secs(1);

/// How many connections there are at once.
#[derive(Debug, Clone, Copy)]
pub struct AddressBounds {
    /// The connections of all addresses.
    pub all: usize,
    /// The connections of one address. An IPv6 network of 64 bits counts as one.
    pub of_address: usize,
    /// How long a connection keeps its place even if others wait for it.
    pub time: Duration,
}

/// Counts connections for each address.
#[derive(Debug)]
pub struct Addresses {
    bounds: AddressBounds,
    taken: Mutex<OpenConnections>,
    /// Notified when a connection ends.
    freed: Notify,
}

#[derive(Debug, Default)]
struct OpenConnections {
    /// Numbers connections in the order in which they came.
    next: u64,
    connections: BTreeMap<u64, CountedConnection>,
}

#[derive(Debug)]
struct CountedConnection {
    ip: IpAddr,
    since: Instant,
    displaced: CancellationToken,
}

/// The place of a connection among those of its address. It is free when this is dropped.
#[derive(Debug)]
pub struct AddressPlace {
    addresses: Arc<Addresses>,
    number: u64,
    /// Fires when another connection takes the place.
    pub displaced: CancellationToken,
}

impl Addresses {
    /// Returns a counter without connections.
    #[must_use]
    pub fn new(bounds: AddressBounds) -> Self {
        Self {
            bounds,
            taken: Mutex::default(),
            freed: Notify::new(),
        }
    }

    fn taken(&self) -> MutexGuard<'_, OpenConnections> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a new connection a place. If all are taken, the oldest connection of the address that has the most is
    /// displaced once it had its time; until then the new one waits.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn enter(self: &Arc<Self>, ip: IpAddr) -> AddressPlace {
        let ip = network(ip);
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
        let of_address = |taken: &OpenConnections, ip| {
            let connections = taken.connections.values();
            connections.filter(|it| it.ip == ip).count()
        };
        let crowded = if of_address(&taken, ip) >= self.bounds.of_address {
            ip
        } else if taken.connections.len() >= self.bounds.all {
            let all = taken.connections.values().map(|it| it.ip);
            all.max_by_key(|ip| of_address(&taken, *ip))?
        } else {
            return None;
        };
        let oldest = taken.connections.iter().find(|(_, it)| it.ip == crowded);
        let (number, since) = oldest.map(|(number, it)| (*number, it.since))?;
        let until = since + self.bounds.time;
        if until > Instant::now() {
            return Some(until);
        }
        if let Some(oldest) = taken.connections.remove(&number) {
            oldest.displaced.cancel();
        }
        None
    }

    fn place(self: &Arc<Self>, ip: IpAddr) -> AddressPlace {
        let mut taken = self.taken();
        let number = taken.next;
        taken.next += 1;
        let displaced = CancellationToken::new();
        let counted = CountedConnection {
            ip,
            since: Instant::now(),
            displaced: displaced.clone(),
        };
        taken.connections.insert(number, counted);
        AddressPlace {
            addresses: Arc::clone(self),
            number,
            displaced,
        }
    }
}

impl Drop for AddressPlace {
    fn drop(&mut self) {
        self.addresses.taken().connections.remove(&self.number);
        self.addresses.freed.notify_one();
    }
}

/// Returns the address that a peer is counted by: the owner of an IPv6 address usually has a whole network of 64 bits.
#[must_use]
pub fn network(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V4(ip) => ip.into(),
        IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() & (u128::MAX << 64)).into(),
    }
}

/// Accepts connections until `stop` fires, then waits for those that are being served. Each gets a place among those of its
/// address. Past `connections_max`, further ones wait in the system's queue and are not closed.
pub async fn accept<F, S>(
    listener: &TcpListener,
    connections_max: usize,
    bounds: AddressBounds,
    stop: &CancellationToken,
    serve: F,
) where
    F: Fn(TcpStream, IpAddr, AddressPlace) -> S,
    S: Future<Output = ()> + Send + 'static,
{
    let all = Arc::new(Semaphore::new(connections_max));
    let addresses = Arc::new(Addresses::new(bounds));
    let mut connections = JoinSet::new();
    loop {
        let all = Arc::clone(&all);
        let accepting = async {
            // It is never closed.
            let permit = all.acquire_owned().await;
            (permit, listener.accept().await)
        };
        let (permit, accepted) = tokio::select! {
            () = stop.cancelled() => break,
            accepted = accepting => accepted,
            Some(_) = connections.join_next() => continue,
        };
        let (stream, address) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let ip = address.ip().to_canonical();
        let place = tokio::select! {
            () = stop.cancelled() => break,
            place = addresses.enter(ip) => place,
        };
        let served = serve(stream, ip, place);
        connections.spawn(async move {
            served.await;
            drop(permit);
        });
    }
    while connections.join_next().await.is_some() {}
}

/// Counts the bytes that are held of requests, in all and for each sender.
#[derive(Debug)]
pub struct ByteBound<K> {
    all_max: usize,
    of_sender_max: usize,
    held: Mutex<HeldTotals<K>>,
}

#[derive(Debug)]
struct HeldTotals<K> {
    all: usize,
    of_sender: HashMap<K, usize>,
}

/// The bytes that are held of one request. They are free when this is dropped.
#[derive(Debug)]
pub struct HeldBytes<K: Clone + Eq + Hash> {
    bound: Arc<ByteBound<K>>,
    sender: K,
    bytes: usize,
}

impl<K: Clone + Eq + Hash> ByteBound<K> {
    /// Returns a counter without bytes.
    #[must_use]
    pub fn new(all_max: usize, of_sender_max: usize) -> Self {
        Self {
            all_max,
            of_sender_max,
            held: Mutex::new(HeldTotals {
                all: 0,
                of_sender: HashMap::new(),
            }),
        }
    }

    fn held(&self) -> MutexGuard<'_, HeldTotals<K>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to count the bytes of a request.
    #[must_use]
    pub fn begin(self: &Arc<Self>, sender: K) -> HeldBytes<K> {
        HeldBytes {
            bound: Arc::clone(self),
            sender,
            bytes: 0,
        }
    }
}

impl<K: Clone + Eq + Hash> HeldBytes<K> {
    /// Counts more bytes. Returns whether they may be held.
    #[must_use]
    pub fn add(&mut self, bytes: usize) -> bool {
        let mut held = self.bound.held();
        let of_sender = held
            .of_sender
            .get(&self.sender)
            .copied()
            .unwrap_or_default();
        if held.all + bytes > self.bound.all_max || of_sender + bytes > self.bound.of_sender_max {
            return false;
        }
        held.all += bytes;
        held.of_sender
            .insert(self.sender.clone(), of_sender + bytes);
        drop(held);
        self.bytes += bytes;
        true
    }

    /// Releases the bytes.
    pub fn release(&mut self) {
        let mut held = self.bound.held();
        held.all = held.all.saturating_sub(self.bytes);
        if let Some(of_sender) = held.of_sender.get_mut(&self.sender) {
            *of_sender = of_sender.saturating_sub(self.bytes);
            if *of_sender == 0 {
                held.of_sender.remove(&self.sender);
            }
        }
        drop(held);
        self.bytes = 0;
    }
}

impl<K: Clone + Eq + Hash> Drop for HeldBytes<K> {
    fn drop(&mut self) {
        self.release();
    }
}

/// Why a body was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyRefused {
    /// It is longer than a body may be.
    TooLong,
    /// The connection broke, or the body was malformed.
    Broken,
    /// More bytes are held than may be.
    NoRoom,
}

/// Reads a body of at most `bytes_max` bytes. `hold` counts its bytes as they arrive, so that a sender that only announces
/// a long body takes nothing from others.
///
/// # Errors
/// Why it was not read.
///
/// # Cancel safety
/// Cancel safe; what was read is lost.
pub async fn read_body<B>(
    body: B,
    bytes_max: usize,
    mut hold: impl FnMut(usize) -> bool,
) -> Result<Vec<u8>, BodyRefused>
where
    B: Body + Unpin,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let mut body = Limited::new(body, bytes_max);
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| match error.is::<LengthLimitError>() {
            true => BodyRefused::TooLong,
            false => BodyRefused::Broken,
        })?;
        let Ok(mut piece) = frame.into_data() else {
            continue;
        };
        if !hold(piece.remaining()) {
            drop(bytes);
            // A sender that is still sending would be cut off before it reads the answer.
            let discard = async { while let Some(Ok(_)) = body.frame().await {} };
            drop(timeout(DISCARD_TIMEOUT, discard).await);
            return Err(BodyRefused::NoRoom);
        }
        while piece.has_remaining() {
            let chunk = piece.chunk();
            let length = chunk.len();
            bytes.extend_from_slice(chunk);
            piece.advance(length);
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;

    const BOUNDS: AddressBounds = AddressBounds {
        all: 3,
        of_address: 2,
        time: Duration::from_millis(250),
    };

    fn addresses() -> Arc<Addresses> {
        Arc::new(Addresses::new(BOUNDS))
    }

    fn ip(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_displaces_its_own_oldest_connection_after_its_time() {
        let addresses = addresses();
        let first = addresses.enter(ip(1)).await;
        let second = addresses.enter(ip(1)).await;
        assert!(addresses.enter(ip(1)).now_or_never().is_none());
        let other = addresses.enter(ip(2)).await;
        let began = Instant::now();
        let third = addresses.enter(ip(1)).await;
        assert_eq!(began.elapsed(), BOUNDS.time);
        assert!(first.displaced.is_cancelled());
        for place in [&second, &other, &third] {
            assert!(!place.displaced.is_cancelled());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_newcomer_displaces_one_of_the_address_that_has_the_most() {
        let addresses = addresses();
        let of_one = addresses.enter(ip(2)).await;
        let of_many = addresses.enter(ip(1)).await;
        let _of_many_too = addresses.enter(ip(1)).await;
        tokio::time::advance(BOUNDS.time).await;
        let _newcomer = addresses.enter(ip(3)).await;
        assert!(of_many.displaced.is_cancelled());
        assert!(!of_one.displaced.is_cancelled());
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_waits_gets_a_place_that_becomes_free() {
        let addresses = addresses();
        let first = addresses.enter(ip(1)).await;
        let _second = addresses.enter(ip(1)).await;
        let began = Instant::now();
        let (_third, ()) = tokio::join!(addresses.enter(ip(1)), async { drop(first) });
        assert_eq!(began.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn addresses_of_one_ipv6_network_are_counted_as_one() {
        let addresses = addresses();
        let of = |text: &str| text.parse::<IpAddr>().unwrap();
        let _first = addresses.enter(of("2001:db8::1")).await;
        let _second = addresses.enter(of("2001:db8::2")).await;
        assert!(addresses.enter(of("2001:db8::3")).now_or_never().is_none());
        assert!(
            addresses
                .enter(of("2001:db8:0:1::1"))
                .now_or_never()
                .is_some()
        );
        assert_eq!(network(of("::ffff:192.0.2.1")), ip(1));
    }

    #[test]
    fn bytes_are_counted_in_all_and_for_each_sender() {
        let bound = Arc::new(ByteBound::new(100, 60));
        let (mut first, mut second) = (bound.begin(1), bound.begin(2));
        let mut of_same = bound.begin(1);
        assert!(first.add(59) && of_same.add(1) && !of_same.add(1));
        assert!(second.add(40) && !second.add(1));
        first.release();
        assert!(second.add(20) && !second.add(1));
        drop((first, of_same, second));
        let held = bound.held();
        assert!(held.all == 0 && held.of_sender.is_empty());
    }
}
