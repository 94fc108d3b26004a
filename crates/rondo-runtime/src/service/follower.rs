//! Reader of the records that other processes write in a session, one for all of its listeners that have read the
//! earlier ones.

use super::cursor::CursorPosition;
use super::entry::Entry;
use super::records::{RecordReader, TurnEnding};
use super::ring::Ring;
use rondo_core::ports::Seq;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Reads for all listeners of a session, once one of them has handed over its reader.
#[derive(Default)]
pub(super) struct Follower {
    /// Held while records are read, on a thread that may wait for the disk.
    reader: Mutex<Option<RecordReader>>,
    /// The number of the turn that ended last, and how it ended.
    ending: Mutex<Option<(u32, TurnEnding)>>,
}

impl Follower {
    fn reader(&self) -> MutexGuard<'_, Option<RecordReader>> {
        self.reader.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns how a turn ended, if that was read here.
    pub(super) fn ending(&self, turn: u32) -> Option<TurnEnding> {
        let ending = self.ending.lock().unwrap_or_else(PoisonError::into_inner);
        let ending = ending.as_ref().filter(|(number, _)| *number == turn);
        ending.map(|(_, ending)| ending.clone())
    }

    /// Drops the reader, once there is no listener.
    pub(super) fn stop(&self) {
        // A reader that is busy right now is dropped with the session's entry.
        if let Ok(mut reader) = self.reader.try_lock() {
            *reader = None;
        }
    }

    /// Takes the reader of a listener that has read everything up to `place`, unless there is a reader already. Returns whether
    /// the ring continues where the listener is, so that it needs no reader of its own.
    pub(super) fn take_over(
        &self,
        ring: &mut Ring,
        place: CursorPosition,
        reader: &mut Option<RecordReader>,
    ) -> bool {
        let (Some(head), Ok(mut follower)) = (
            reader.as_ref().map(RecordReader::head),
            self.reader.try_lock(),
        ) else {
            return false;
        };
        match follower.as_ref().map(RecordReader::head) {
            Some(at) if ring.is_released_at(at) => at == head,
            _ if ring.begin_after(place, head) => {
                *follower = reader.take();
                true
            }
            _ => false,
        }
    }
}

impl Entry {
    /// Puts what other processes recorded into the ring, and wakes the listeners.
    pub(super) fn see_records(self: &Arc<Self>) {
        let mut reader = self.follower.reader();
        if self.is_running() || !self.has_listeners() {
            return;
        }
        let Ok(Some(head)) = self.store().last_record(&self.id) else {
            return;
        };
        if std::mem::replace(&mut self.work().head, head) == head {
            return;
        }
        let followed = reader.take().and_then(|it| self.follow(it));
        if let Some(reader) = &followed {
            self.work().head = reader.head();
        } else {
            let mut ring = self.ring();
            if ring.is_taken() {
                return;
            }
            ring.forget();
        }
        let has_followed = followed.is_some();
        *reader = followed;
        drop(reader);
        if has_followed {
            self.service.read_live(self);
        }
        self.service.make_room();
        self.changed();
    }

    /// Reads new records into the ring, and returns the reader. Returns `None` if the ring does not end where the reader began, or
    /// if the records cannot be read: then each listener reads for itself and reports the error.
    fn follow(&self, mut reader: RecordReader) -> Option<RecordReader> {
        let from = reader.head();
        let mut updates = Vec::new();
        loop {
            let turn = reader.turn().ok()??;
            self.service.checkpoints.hold_from(&self.id, &reader);
            updates.extend(turn.runs.into_iter().flat_map(|it| it.updates));
            if let Some(ending) = turn.ending {
                let mut last = self
                    .follower
                    .ending
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner);
                *last = Some((turn.number, ending));
            }
            if turn.is_last {
                break;
            }
        }
        let to: Seq = reader.head();
        self.ring().follow(from, to, updates).then_some(reader)
    }
}

#[cfg(test)]
mod tests;
