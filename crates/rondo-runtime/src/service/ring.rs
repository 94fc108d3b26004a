//! The latest updates of a session, held in memory for those who listen.

use super::cursor::{CursorPosition, LivePosition};
use super::update::UpdateBody;
use rondo_core::events::COALESCE_AFTER;
use rondo_core::ports::Seq;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The bound on the updates that are held of one session, in bytes of their text.
pub const RING_BYTES_MAX: usize = 8 << 20;
/// The bound on the updates that are held of all sessions of a service, in bytes of their text.
pub const RINGS_BYTES_MAX: usize = 64 << 20;
/// Bytes that are left after making room: it is made for many updates at once, since that visits all sessions.
const RINGS_BYTES_LEFT: usize = RINGS_BYTES_MAX / 8 * 7;
/// Bytes of an update beside its text: itself, its place, and the ids in it.
const UPDATE_BYTES: usize = 512;
/// The bound on an update that others are joined to, in bytes: room is made by whole updates.
const JOINED_BYTES_MAX: usize = 64 << 10;

/// How much the rings of a service hold together.
#[derive(Debug, Default)]
pub(super) struct RingTotals {
    bytes: AtomicUsize,
    /// Counts the updates of all rings.
    pushes: AtomicU64,
}

impl RingTotals {
    /// Returns how many bytes have to go, so that all rings together are within their bound for a while.
    pub(super) fn too_much(&self) -> usize {
        let all = self.bytes.load(Ordering::Relaxed);
        match all > RINGS_BYTES_MAX {
            true => all - RINGS_BYTES_LEFT,
            false => 0,
        }
    }
}

/// The latest updates of a session, without a gap.
#[derive(Debug)]
pub(super) struct Ring {
    updates: VecDeque<HeldUpdate>,
    /// The number of the first one that is held; numbers are never used twice.
    first: u64,
    /// The place before the first one that is held.
    start: CursorPosition,
    bytes: usize,
    held: Arc<RingTotals>,
    /// Bytes of live output that is in no record, among all updates so far.
    live_bytes: u64,
    /// The records that there were when the session was released here; none while it is worked on.
    until: Option<Seq>,
    /// Set if a held update is in the records: others are at the place of the one before them.
    has_recorded: bool,
    /// The place after the last update that was read from the records of other processes, while those are followed.
    recorded: Option<CursorPosition>,
    /// How often everything was let go of.
    forgotten: u64,
    /// The number of its latest update among those of all rings.
    pushed: u64,
    /// The number after the last update that a listener read or stands behind: others may still be joined.
    read: u64,
}

#[derive(Debug)]
struct HeldUpdate {
    /// The place after it.
    place: CursorPosition,
    /// None if it was too large: then it is only known that it was there.
    body: Option<Arc<UpdateBody>>,
    bytes: usize,
    /// Bytes of its text if it is not held.
    left_out: u64,
    /// How many of its bytes are live output.
    own_live_bytes: u64,
    /// Bytes of live output, this update included.
    live_bytes: u64,
}

/// Beginning of a ring. As long as it is unchanged, the held updates follow those that were there when it was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RingStart {
    /// The place before the first update that is held.
    pub(super) place: CursorPosition,
    forgotten: u64,
}

/// Position of a listener in a ring.
#[derive(Debug, Clone, Copy)]
pub(super) struct RingPosition {
    /// The number of the update that comes next.
    pub(super) next: u64,
    /// Bytes of live output that came before it.
    pub(super) live_bytes: u64,
}

/// Next item of a ring.
pub(super) enum NextUpdate {
    /// An update, and the place before and after it.
    Update(CursorPosition, CursorPosition, Arc<UpdateBody>),
    /// One that was too large to be held.
    TooLarge(TooLarge),
    /// Nothing yet.
    Nothing,
    /// It is not held any more.
    Gone,
}

/// An update that was too large to be held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooLarge {
    /// Number of the update.
    pub(super) number: u64,
    /// The place after it.
    pub(super) place: CursorPosition,
    /// Bytes of its text.
    pub(super) bytes: u64,
    /// Set for live output, which no record holds.
    pub(super) is_live: bool,
}

impl Ring {
    pub(super) fn new(held: Arc<RingTotals>) -> Self {
        Self {
            updates: VecDeque::new(),
            first: 0,
            start: CursorPosition::default(),
            bytes: 0,
            held,
            live_bytes: 0,
            until: Some(Seq(0)),
            has_recorded: false,
            recorded: None,
            forgotten: 0,
            pushed: 0,
            read: 0,
        }
    }

    /// Takes the session over, with so many records. If other processes worked on it
    /// since, the updates held are not the ones before these records.
    pub(super) fn take(&mut self, at: Seq) {
        if self.until.take() != Some(at) || self.is_ahead() {
            self.forget();
        }
        self.recorded = None;
    }

    /// Marks the start of a run of which nothing was sent yet.
    pub(super) fn begin(&mut self, run: CursorPosition) {
        if !self.has_recorded {
            self.start = run;
        }
    }

    /// Releases the session, with so many records.
    pub(super) fn release(&mut self, at: Seq) {
        self.until = Some(at);
    }

    /// Returns whether the session is worked on here.
    pub(super) fn is_taken(&self) -> bool {
        self.until.is_none()
    }

    /// Returns whether the session is not worked on here, and everything up to a record was sent.
    pub(super) fn is_released_at(&self, at: Seq) -> bool {
        self.until == Some(at)
    }

    /// Begins after what is recorded up to a record and a place, unless something is held or the session is worked on here.
    pub(super) fn begin_after(&mut self, place: CursorPosition, at: Seq) -> bool {
        if self.is_taken() || !self.is_empty() {
            return false;
        }
        self.start = place;
        self.recorded = Some(place);
        self.until = Some(at);
        true
    }

    /// Holds what other processes recorded from one record to another, if the sent updates end at the first of them,
    /// and if nothing that was sent before it was recorded is lost.
    pub(super) fn follow(
        &mut self,
        from: Seq,
        to: Seq,
        updates: Vec<(CursorPosition, UpdateBody)>,
    ) -> bool {
        if !self.is_released_at(from) {
            return false;
        }
        let told = self.end();
        let is_passed = updates.last().is_some_and(|(last, _)| *last > told);
        if self.is_ahead() && is_passed {
            let mut of_run = updates.iter().filter(|it| it.0.is_same_run(told));
            // Otherwise the process that told it is gone, and another one continued from the records.
            if !of_run.any(|(place, _)| *place >= told) {
                return false;
            }
        }
        for (place, body) in updates {
            self.recorded = Some(place);
            let end = self.end();
            if place > end {
                let is_begun = end.is_same_run(place) && end.update == place.update;
                let rest = body.after(if is_begun { end.offset } else { 0 });
                if let Some(rest) = rest {
                    self.push(place, rest);
                }
            }
        }
        self.until = Some(to);
        true
    }

    /// Returns whether an update of another process was sent that was in no record yet.
    fn is_ahead(&self) -> bool {
        self.recorded.is_some_and(|it| it < self.end())
    }

    /// Holds an update of a turn that another process runs, before its record was read. One that was read in the records
    /// meanwhile is held already. Returns `false` if it does not follow on what is held.
    pub(super) fn follow_live(&mut self, place: CursorPosition, body: UpdateBody) -> bool {
        let end = self.end();
        if self.recorded.is_none() || (place < end && !place.is_same_run(end)) {
            return false;
        }
        if place > end || (place == end && body.is_left_out()) {
            self.push(place, body);
        }
        true
    }

    /// Holds one more, and lets go of the oldest if there is too much. One that is too large by itself is not held:
    /// who comes to it reads the records, or misses it.
    pub(super) fn push(&mut self, place: CursorPosition, body: UpdateBody) {
        if !self.join(place, &body) {
            self.append(place, body);
        }
        self.pushed = self.held.pushes.fetch_add(1, Ordering::Relaxed) + 1;
        while self.bytes > RING_BYTES_MAX {
            self.drop_first();
        }
    }

    fn append(&mut self, place: CursorPosition, body: UpdateBody) {
        let text_bytes = body.text_bytes();
        let own_live_bytes = body.live_bytes();
        let is_held = text_bytes + UPDATE_BYTES <= RING_BYTES_MAX;
        let bytes = UPDATE_BYTES + if is_held { text_bytes } else { 0 };
        self.has_recorded |= place != self.end();
        self.live_bytes += own_live_bytes;
        self.updates.push_back(HeldUpdate {
            place,
            bytes,
            left_out: if is_held { 0 } else { text_bytes as u64 },
            own_live_bytes,
            live_bytes: self.live_bytes,
            body: is_held.then(|| Arc::new(body)),
        });
        self.bytes += bytes;
        self.held.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Joins an update to the last one, if no listener came to that: past [`COALESCE_AFTER`] of those a delta, and always
    /// a report of progress. Returns whether it did.
    fn join(&mut self, place: CursorPosition, more: &UpdateBody) -> bool {
        let unread = (self.first + self.updates.len() as u64).saturating_sub(self.read);
        let is_slow = unread >= COALESCE_AFTER as u64;
        let Some(last) = self.updates.back_mut() else {
            return false;
        };
        let is_same = last.place.is_same_run(place) && last.place.update == place.update;
        if unread == 0 || !(is_slow || more.is_progress()) || !is_same {
            return false;
        }
        let bytes = last.bytes + more.text_bytes();
        let body = last.body.as_mut().and_then(Arc::get_mut);
        let body = body.filter(|_| bytes <= JOINED_BYTES_MAX);
        let Some(body) = body else {
            return false;
        };
        if !body.join(more) {
            return false;
        }
        let (before, own_live_bytes) = (last.bytes, more.live_bytes());
        self.live_bytes += own_live_bytes;
        (last.place, last.live_bytes) = (place, self.live_bytes);
        last.own_live_bytes += own_live_bytes;
        last.bytes = UPDATE_BYTES + body.text_bytes();
        self.bytes = self.bytes + last.bytes - before;
        self.held.bytes.fetch_add(last.bytes, Ordering::Relaxed);
        self.held.bytes.fetch_sub(before, Ordering::Relaxed);
        true
    }

    /// The number of its latest update among those of all rings: the one of the least has been idle for the longest.
    pub(super) fn pushed(&self) -> u64 {
        self.pushed
    }

    /// Lets go of the oldest updates, in the way of the ring's own bound, so that others have room. Returns how many
    /// bytes that gave.
    pub(super) fn make_room(&mut self, least: usize) -> usize {
        // Updates of a running turn may be in no record yet: where they end is kept.
        let kept = usize::from(self.until.is_none());
        let mut gone = 0;
        while gone < least && self.updates.len() > kept {
            gone += self.drop_first();
        }
        if gone < least
            && let Some(last) = self.updates.back_mut()
            && last.body.take().is_some()
        {
            let freed = last.bytes - UPDATE_BYTES;
            last.left_out = freed as u64;
            last.bytes = UPDATE_BYTES;
            self.bytes -= freed;
            self.held.bytes.fetch_sub(freed, Ordering::Relaxed);
            gone += freed;
        }
        gone
    }

    /// Lets go of everything: those who listen read the records.
    pub(super) fn forget(&mut self) {
        while !self.updates.is_empty() {
            self.drop_first();
        }
        // A listener at its end is not at the beginning of what comes next.
        self.first += 1;
        self.has_recorded = false;
        self.recorded = None;
        self.forgotten += 1;
    }

    fn drop_first(&mut self) -> usize {
        let Some(gone) = self.updates.pop_front() else {
            return 0;
        };
        self.first += 1;
        self.start = gone.place;
        self.bytes -= gone.bytes;
        self.held.bytes.fetch_sub(gone.bytes, Ordering::Relaxed);
        gone.bytes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.updates.is_empty()
    }

    /// Beginning of the held updates.
    pub(super) fn start(&self) -> RingStart {
        RingStart {
            place: self.start,
            forgotten: self.forgotten,
        }
    }

    /// The place after the last update that was sent.
    pub(super) fn end(&self) -> CursorPosition {
        self.updates.back().map_or(self.start, |it| it.place)
    }

    /// Returns whether a place is one of those that are held.
    pub(super) fn covers(&self, place: CursorPosition) -> bool {
        let mut places = self.updates.iter().map(|it| it.place);
        !self.is_empty()
            && self.start <= place
            && place <= self.end()
            && (place == self.start || places.any(|it| it.is_same_run(place)))
    }

    /// Stands before the first update that is later than a place, or that came since and is in no record.
    pub(super) fn stand_after(&mut self, place: CursorPosition, since: u64) -> RingPosition {
        let since = usize::try_from(since.saturating_sub(self.first)).unwrap_or(usize::MAX);
        let mut before = self.updates.partition_point(|it| it.place <= place);
        while let Some(last) = before.checked_sub(1).filter(|last| *last >= since) {
            let earlier = last.checked_sub(1).and_then(|at| self.updates.get(at));
            let earlier = earlier.map_or(self.start, |it| it.place);
            if self.updates.get(last).is_some_and(|it| it.place > earlier) {
                break;
            }
            before = last;
        }
        self.stand(before)
    }

    /// The number of the update that comes next. What comes is not joined to the last one.
    pub(super) fn next_number(&mut self) -> u64 {
        let next = self.first + self.updates.len() as u64;
        self.read = next;
        next
    }

    /// Stands where a cursor of this service does, if that is still held.
    pub(super) fn stand_at(&mut self, live: LivePosition) -> Option<RingPosition> {
        let before = usize::try_from(live.number.checked_sub(self.first)?).ok()?;
        (before <= self.updates.len()).then(|| self.stand(before))
    }

    fn stand(&mut self, before: usize) -> RingPosition {
        self.read = self.read.max(self.first + before as u64);
        let last = before.checked_sub(1).and_then(|at| self.updates.get(at));
        RingPosition {
            next: self.first + before as u64,
            live_bytes: last.map_or_else(|| self.first_live_bytes(), |it| it.live_bytes),
        }
    }

    /// Bytes of live output among all updates so far.
    pub(super) fn all_live_bytes(&self) -> u64 {
        self.live_bytes
    }

    /// Bytes of live output before the first update that is held.
    fn first_live_bytes(&self) -> u64 {
        self.updates.front().map_or(self.live_bytes, |it| {
            it.live_bytes.saturating_sub(it.own_live_bytes)
        })
    }

    /// Returns what comes next, and steps behind it.
    pub(super) fn next(&mut self, stand: &mut RingPosition) -> NextUpdate {
        let Some(at) = stand.next.checked_sub(self.first) else {
            return NextUpdate::Gone;
        };
        let at = usize::try_from(at).unwrap_or(usize::MAX);
        match self.updates.get(at) {
            Some(update) => {
                let before = at.checked_sub(1).and_then(|at| self.updates.get(at));
                let before = before.map_or(self.start, |it| it.place);
                stand.next += 1;
                self.read = self.read.max(stand.next);
                stand.live_bytes = update.live_bytes;
                match &update.body {
                    Some(body) => NextUpdate::Update(before, update.place, Arc::clone(body)),
                    None => NextUpdate::TooLarge(TooLarge {
                        number: stand.next - 1,
                        place: update.place,
                        bytes: update.left_out,
                        is_live: update.own_live_bytes > 0,
                    }),
                }
            }
            None if at > self.updates.len() => NextUpdate::Gone,
            None => NextUpdate::Nothing,
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        self.held.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
