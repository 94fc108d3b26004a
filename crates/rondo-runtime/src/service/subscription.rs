//! A listener of a session.

use super::cursor::{Cursor, CursorPosition, LivePosition};
use super::entry::Entry;
use super::records::{ReadRun, ReadTurn, RecordReader, TurnEnding};
use super::ring::{NextUpdate, RingPosition, RingStart, TooLarge};
use super::update::{Update, UpdateBody};
use crate::error::{Result, SetupError, SetupErrorKind};
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::watch;
use tokio::task::{JoinHandle, spawn_blocking};

/// Listens to a session. It costs the session nothing: one that never reads holds a place, and reads the records
/// when it comes back.
///
/// All listeners are told the same, up to how deltas are cut. Events of other processes are told once they are
/// recorded, with whole replies.
pub struct Subscription {
    entry: Arc<Entry>,
    changes: watch::Receiver<u64>,
    /// Its position in the records.
    place: CursorPosition,
    /// Bytes of live output before its place.
    live_bytes: u64,
    /// Its position among the held updates; `None` while it reads the records.
    stand: Option<RingPosition>,
    /// Number from which it receives updates that are in no record.
    since: u64,
    /// Updates that were read and not returned yet.
    read: VecDeque<(CursorPosition, UpdateBody)>,
    /// Reads the records; none while it is told what the service holds.
    records: Option<RecordReader>,
    /// A turn that is being read, and where the ring began before: a caller that stops waiting for it comes back to it.
    reading: Option<Reading>,
    /// The last place of what was read.
    read_to: CursorPosition,
    /// Set once all records were read, with the state of the ring that was seen before.
    has_read_all: Option<RingStart>,
    /// The number of an update that was too large to be held, and was looked for in the records.
    looked_for: Option<u64>,
    /// Set if nothing was left at the last look: until something changes, it need not look again.
    was_at_end: bool,
    /// Set if it follows only the latest turns.
    is_of_latest: bool,
    /// The turns before them that it does not receive.
    passed: u32,
    /// The number of the turn that ended last of those that it read, and how that ended.
    ending: Option<(u32, TurnEnding)>,
}

impl Subscription {
    pub(super) fn new(entry: Arc<Entry>, cursor: Cursor) -> Self {
        let changes = entry.listen();
        let mine = cursor
            .live
            .filter(|it| it.service == entry.service_number());
        let mut ring = entry.ring();
        let stand = mine.and_then(|it| ring.stand_at(it));
        let since = ring.next_number();
        // Output from here on is missed if it is not told.
        let live_bytes = stand.map_or(ring.all_live_bytes(), |it| it.live_bytes);
        drop(ring);
        Self {
            changes,
            since,
            place: cursor.place,
            live_bytes,
            stand,
            read: VecDeque::new(),
            records: None,
            reading: None,
            read_to: CursorPosition::default(),
            has_read_all: None,
            looked_for: None,
            was_at_end: false,
            is_of_latest: false,
            passed: 0,
            ending: None,
            entry,
        }
    }

    /// Stands after the last update that the service holds, such as none. As long as the session is worked on here, nothing
    /// that follows is missed.
    pub(super) fn of_next(entry: Arc<Entry>) -> Self {
        let mut subscription = Self::new(entry, Cursor::START);
        let mut ring = subscription.entry.ring();
        let (place, since) = (ring.end(), ring.next_number());
        let stand = ring.stand_after(place, since);
        drop(ring);
        subscription.place = place;
        subscription.live_bytes = stand.live_bytes;
        subscription.stand = Some(stand);
        subscription
    }

    pub(super) fn of_latest(entry: Arc<Entry>) -> Self {
        let mut subscription = Self::new(entry, Cursor::START);
        subscription.is_of_latest = true;
        subscription
    }

    /// Returns how many turns it skipped at its beginning, once it received something.
    #[must_use]
    pub fn turns_passed(&self) -> u32 {
        self.passed
    }

    /// Returns how the turn of the last update ended; `None` if it has not, or if this process runs the session, since the
    /// records were not read then.
    #[must_use]
    pub fn ending(&self) -> Option<TurnEnding> {
        let turn = self.place.turn;
        match &self.ending {
            Some((number, ending)) if *number == turn => Some(ending.clone()),
            _ => self.entry.follower.ending(turn),
        }
    }

    /// Returns the cursor after the last update that was returned.
    #[must_use]
    pub fn cursor(&self) -> Cursor {
        let number = self.stand.map(|it| it.next);
        Cursor {
            place: self.place,
            live: number.map(|number| LivePosition {
                service: self.entry.service_number(),
                number,
            }),
        }
    }

    /// Waits for the next update.
    ///
    /// # Errors
    /// When the session's records cannot be read; a later call tries again.
    ///
    /// # Cancel safety
    /// Cancel safe: no update is lost.
    pub async fn next(&mut self) -> Result<Update> {
        loop {
            let is_nothing_new = self.was_at_end && !self.changes.has_changed().unwrap_or_default();
            if !is_nothing_new && let Some(update) = self.next_told().await? {
                return Ok(update);
            }
            // The sender is the entry's, which lives as long as this.
            let _ = self.changes.changed().await;
            self.was_at_end = false;
        }
    }

    /// Returns the next update of what happened until now; `None` once all of that was returned.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    ///
    /// # Cancel safety
    /// Cancel safe: no update is lost.
    pub async fn next_of_past(&mut self) -> Result<Option<Update>> {
        self.next_told().await
    }

    /// Passes over everything that happened until now. It reads what of it this service does not hold.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    ///
    /// # Cancel safety
    /// Cancel safe: it stays at some place on the way.
    pub async fn skip(&mut self) -> Result<()> {
        while self.next_told().await?.is_some() {}
        Ok(())
    }

    /// Returns the next update; `None` if it has to be waited for.
    async fn next_told(&mut self) -> Result<Option<Update>> {
        self.was_at_end = false;
        loop {
            if let Some((place, body)) = self.read.pop_front() {
                self.place = place;
                return Ok(Some(self.update(body)));
            }
            // Changes from here on are looked at again, but for those that were read already.
            if self.has_read_all.is_none() && self.reading.is_none() {
                self.changes.borrow_and_update();
            }
            let told = match self.stand {
                Some(stand) => self.next_held(stand),
                None => self.catch_up().await?,
            };
            match told {
                Step::Told(body) => return Ok(Some(self.update(body))),
                Step::Again => {}
                Step::Wait => {
                    self.was_at_end = true;
                    return Ok(None);
                }
            }
        }
    }

    fn update(&self, body: UpdateBody) -> Update {
        Update {
            cursor: self.cursor(),
            body,
        }
    }

    /// Returns the next of the updates that the service holds.
    fn next_held(&mut self, mut stand: RingPosition) -> Step {
        let next = self.entry.ring().next(&mut stand);
        match next {
            NextUpdate::Update(before, place, body) => {
                self.stand = Some(stand);
                self.since = stand.next;
                self.live_bytes = stand.live_bytes;
                // An update with a place was read already if the records were ahead of the updates held.
                if before < place && place <= self.place {
                    return Step::Again;
                }
                let body = Arc::unwrap_or_clone(body);
                let rest = body.after(returned_bytes(self.place, before, place));
                self.place = self.place.max(place);
                rest.map_or(Step::Again, Step::Told)
            }
            NextUpdate::TooLarge(update) => self.pass_too_large(update, stand),
            NextUpdate::Nothing => Step::Wait,
            NextUpdate::Gone => {
                self.stand = None;
                Step::Again
            }
        }
    }

    /// Passes an update that was too large to be held: the records have it, unless it is live output or they lack it
    /// still.
    fn pass_too_large(&mut self, update: TooLarge, after: RingPosition) -> Step {
        if !update.is_live && self.looked_for != Some(update.number) {
            self.looked_for = Some(update.number);
            self.stand = None;
            return Step::Again;
        }
        self.stand = Some(after);
        self.since = after.next;
        self.live_bytes = after.live_bytes;
        self.place = self.place.max(update.place);
        Step::Told(UpdateBody::Missed {
            bytes: update.bytes,
        })
    }

    /// Reads the records, until the listener is where the service holds what comes next.
    async fn catch_up(&mut self) -> Result<Step> {
        let Some(start) = self.has_read_all.take() else {
            let (start, turn) = self.read_turn().await?;
            if turn.as_ref().is_none_or(|it| it.is_last) {
                self.has_read_all = Some(start);
                let head = self.records.as_ref().map(RecordReader::head);
                self.entry.work().note_first_head(head.unwrap_or_default());
            }
            if let Some(turn) = turn {
                self.take(turn);
            }
            return Ok(Step::Again);
        };
        Ok(self.join(start))
    }

    /// Reads the next turn. It is returned with where the ring began before the records were read: what is recorded after it
    /// is held.
    async fn read_turn(&mut self) -> Result<(RingStart, Option<ReadTurn>)> {
        let reading = match self.reading.take() {
            Some(reading) => reading,
            None => {
                let start = self.entry.ring().start();
                let read = self.begin_reading();
                Reading { start, read }
            }
        };
        let reading = self.reading.insert(reading);
        let read = (&mut reading.read).await;
        let start = reading.start;
        self.reading = None;
        let read: Result<_> = read.map_err(|err| {
            let context = "the thread that reads the records failed";
            SetupError::because(SetupErrorKind::Other, context, err)
        })?;
        let (reader, turn) = read?;
        if self.is_of_latest && self.place == CursorPosition::default() {
            self.passed = reader.passed();
        }
        self.records = Some(reader);
        Ok((start, turn))
    }

    fn begin_reading(&mut self) -> JoinHandle<Result<(RecordReader, Option<ReadTurn>)>> {
        let reader = match self.records.take() {
            Some(reader) => Some(reader),
            None => {
                self.read_to = CursorPosition::default();
                // Before it received anything, where it begins depends on the records.
                let is_near_end = self.is_of_latest && self.place == CursorPosition::default();
                (!is_near_end).then(|| self.new_reader())
            }
        };
        let store = self.entry.store().clone();
        let service = Arc::clone(&self.entry.service);
        let session = self.entry.id().clone();
        spawn_blocking(move || {
            let mut reader = match reader {
                Some(reader) => reader,
                None => RecordReader::near_end(store, session.clone())?,
            };
            let turn = reader.turn()?;
            service.checkpoints.hold_from(&session, &reader);
            Ok((reader, turn))
        })
    }

    /// Reads from the turn on that the listener has come to, if that is known, or from the first one.
    fn new_reader(&self) -> RecordReader {
        let (store, session) = (self.entry.store().clone(), self.entry.id().clone());
        let checkpoints = &self.entry.service.checkpoints;
        match checkpoints.before(&session, self.place.turn) {
            Some(checkpoint) => RecordReader::from(store, session, &checkpoint),
            None => RecordReader::new(store, session),
        }
    }

    /// Takes the new events of a turn that was read.
    fn take(&mut self, turn: ReadTurn) {
        if turn.number > self.place.turn {
            self.reset_beyond_read();
        }
        if let Some(ending) = turn.ending {
            self.ending = Some((turn.number, ending));
        }
        let is_last_turn = turn.is_last;
        let mut place = self.last_place();
        let count = turn.runs.len();
        for (index, run) in turn.runs.into_iter().enumerate() {
            let is_last = is_last_turn && index + 1 == count;
            place = self.take_run(run, place, is_last);
        }
    }

    /// Takes the new events of a run, and returns the place after it.
    fn take_run(&mut self, run: ReadRun, place: CursorPosition, is_last: bool) -> CursorPosition {
        let (begins, end) = (run.beginning, run.end());
        let earlier = std::mem::replace(&mut self.read_to, end);
        let is_mine = (begins.turn, begins.run) == (place.turn, place.run);
        if !is_mine && begins < place {
            return place;
        }
        let is_other = is_mine && begins.began != place.began;
        let is_beyond = is_mine && !is_other && place > end && !is_last;
        let place = match (is_other, is_beyond) {
            (true, _) => self.reset_to(earlier),
            (_, true) => return self.reset_to(end),
            _ => place,
        };
        let mut last = place;
        let mut next = begins;
        for (after, body) in run.updates {
            let before = std::mem::replace(&mut next, after);
            if place >= after && !is_other {
                continue;
            }
            if let Some(rest) = body.after(returned_bytes(place, before, after)) {
                self.read.push_back((after, rest));
            }
            last = after;
        }
        last
    }

    /// The place after the updates that were sent and those that follow.
    fn last_place(&self) -> CursorPosition {
        self.read.back().map_or(self.place, |it| it.0)
    }

    /// If a later turn follows, updates that went beyond the records are lost.
    fn reset_beyond_read(&mut self) {
        let place = self.last_place();
        if place > self.read_to {
            self.reset_to(self.read_to);
        }
    }

    fn reset_to(&mut self, place: CursorPosition) -> CursorPosition {
        self.read.push_back((place, UpdateBody::Reset));
        place
    }

    /// All is read and told: continues with what the service holds, or waits. `seen` is where that began before
    /// the records were read.
    fn join(&mut self, seen: RingStart) -> Step {
        let entry = Arc::clone(&self.entry);
        let mut ring = entry.ring();
        if ring.start() != seen {
            return Step::Again;
        }
        let start = seen.place;
        let is_covered = ring.covers(self.place);
        // It received updates that are in no record yet, and what followed is not held any more.
        let is_evicted = !ring.is_empty() && self.place.is_same_run(start) && self.place < start;
        let is_beyond = self.place > self.read_to;
        if is_beyond && !is_covered && !is_evicted {
            drop(ring);
            self.reset_to(self.read_to);
            return Step::Again;
        }
        let stand = ring.stand_after(self.place, self.since);
        // Text that was written since it stood somewhere and is not told from here on, even if it is still held.
        let live = stand.live_bytes.saturating_sub(self.live_bytes);
        if ring.is_empty() {
            self.live_bytes += live;
            if live > 0 {
                return Step::Told(UpdateBody::Missed { bytes: live });
            }
            let is_at_end = self.place == self.read_to;
            let follower = &entry.follower;
            if is_at_end && follower.take_over(&mut ring, self.place, &mut self.records) {
                self.stand = Some(ring.stand_after(self.place, self.since));
                self.records = None;
                drop(ring);
                entry.service.read_live(&entry);
            }
            return Step::Wait;
        }
        // The records may be ahead of what is held: then it misses nothing of them.
        let missed = match self.place >= start || start.is_beginning() {
            true => live,
            // The missing part is in no record yet, and not held any more.
            false => live + start.offset.saturating_sub(self.place.offset).max(1),
        };
        if !is_covered {
            self.place = self.place.max(start);
        }
        drop(ring);
        self.stand = Some(stand);
        self.live_bytes = stand.live_bytes;
        self.records = None;
        match missed {
            0 => Step::Again,
            bytes => Step::Told(UpdateBody::Missed { bytes }),
        }
    }
}

#[cfg(test)]
impl Subscription {
    /// Returns whether it reads the records itself.
    pub(super) fn reads_itself(&self) -> bool {
        self.records.is_some() || self.reading.is_some()
    }
}

/// Returns how many bytes of a delta between two places a listener was told that has come to `place`: by its record, or by
/// an earlier subscription.
fn returned_bytes(place: CursorPosition, before: CursorPosition, after: CursorPosition) -> u64 {
    let is_begun = place.is_same_run(after) && place.update == after.update;
    match is_begun && before.update == place.update {
        true => place.offset.saturating_sub(before.offset),
        false if is_begun => place.offset,
        false => 0,
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.entry.leave();
    }
}

/// A turn that is being read, on a thread that may wait for the disk.
struct Reading {
    /// Previous beginning of the ring.
    start: RingStart,
    read: JoinHandle<Result<(RecordReader, Option<ReadTurn>)>>,
}

enum Step {
    Told(UpdateBody),
    Again,
    Wait,
}
