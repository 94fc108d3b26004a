//! The updates of a session by its records.

use super::cursor::{Place, Progress};
use super::update::UpdateBody;
use crate::error::Result;
use crate::sessions;
use crate::watch::unreadable;
use rondo_core::ports::{ChainHash, Entry, Record, RecordBody, Seq};
use rondo_core::replay::{Changes, Replayer};
use rondo_core::session_store::{LateTurn, StoreError};
use rondo_core::storage::Store;
use rondo_types::{Message, SessionId, TimeMs, TurnEvent, TurnId};
use std::sync::Arc;

/// Records that are read at once.
const PAGE_RECORDS: usize = 256;
/// Records, about so many, that are read where only the end of a session is wanted at first.
const LATE_RECORDS: u64 = 256;

/// A place before a turn, from which a session can be read.
pub(super) struct Checkpoint {
    /// The number of that turn.
    pub(super) number: u32,
    /// Stands before that turn.
    before: Replayer,
    /// Its first record.
    first: Seq,
    /// The hash of that record and all before it: by it the session is still the same one.
    hash: ChainHash,
    /// Bytes of what was said before it.
    said_bytes: usize,
}

/// Reads a session turn by turn, from its beginning or from a checkpoint.
pub(super) struct RecordReader {
    store: Store,
    session: SessionId,
    /// Stands before the turn that is read.
    before: Replayer,
    /// The records of that turn so far.
    turn: Vec<Record>,
    /// The number of that turn.
    number: u32,
    /// A record of the turn after it.
    ahead: Option<First>,
    /// The next record to read.
    next: Seq,
    /// Where it began to read: the hash of that record, until it was compared.
    expected: Option<ChainHash>,
    /// Where the turn that is read begins.
    began: Option<(Seq, ChainHash)>,
    /// Turns before the first one that is read, of which it knows nothing else.
    passed: u32,
    /// Bytes of what was said in all that was read, as JSON. To count them anew for each turn would take as long as all
    /// turns together.
    said_bytes: usize,
    /// The same before the turn that is read.
    said_before: usize,
}

/// The first record of a turn.
struct First {
    record: Record,
    seq: Seq,
    hash: ChainHash,
}

/// A turn, as far as it is recorded.
pub(super) struct ReadTurn {
    pub(super) number: u32,
    /// The updates of each process that worked on it, in order.
    pub(super) runs: Vec<ReadRun>,
    /// Whether it is the last one.
    pub(super) is_last: bool,
}

/// The updates of one process that worked on a turn.
pub(super) struct ReadRun {
    pub(super) beginning: Place,
    /// The updates, each with the place after it.
    pub(super) updates: Vec<(Place, UpdateBody)>,
}

impl ReadRun {
    /// The place after everything that is recorded of it.
    pub(super) fn end(&self) -> Place {
        self.updates.last().map_or(self.beginning, |it| it.0)
    }
}

impl RecordReader {
    pub(super) fn new(store: Store, session: SessionId) -> Self {
        Self {
            before: Replayer::new(session.clone(), Changes::default()),
            store,
            session,
            turn: Vec::new(),
            number: 0,
            ahead: None,
            next: Seq(1),
            expected: None,
            began: None,
            passed: 0,
            said_bytes: 0,
            said_before: 0,
        }
    }

    /// Begins before one of the latest turns, where there is one that can be read without those before it; else at the
    /// beginning.
    ///
    /// # Errors
    /// When the records cannot be read.
    pub(super) fn near_end(store: Store, session: SessionId) -> Result<Self> {
        let late = match store.late_turn(&session, LATE_RECORDS) {
            Ok(late) => late,
            Err(StoreError::Unknown { .. }) => None,
            Err(error) => return Err(sessions::failed(error)),
        };
        let beginning = Self::new(store, session);
        Ok(match late {
            None => beginning,
            Some(LateTurn { number, first }) => Self {
                before: Replayer::after(beginning.session.clone(), number - 1, first.0 - 1),
                number: number - 1,
                next: first,
                passed: number - 1,
                ..beginning
            },
        })
    }

    /// Turns before the first one that is read, of which it knows nothing else.
    pub(super) fn passed(&self) -> u32 {
        self.passed
    }

    /// Begins before a turn.
    pub(super) fn from(store: Store, session: SessionId, checkpoint: &Checkpoint) -> Self {
        Self {
            before: checkpoint.before.clone(),
            number: checkpoint.number - 1,
            next: checkpoint.first,
            expected: Some(checkpoint.hash),
            said_bytes: checkpoint.said_bytes,
            ..Self::new(store, session)
        }
    }

    /// Returns the place before the turn that was read last.
    pub(super) fn checkpoint(&self) -> Option<Checkpoint> {
        // Others that read from there on would miss what was said before.
        let (first, hash) = self.began.filter(|_| self.passed == 0)?;
        Some(Checkpoint {
            number: self.number,
            before: self.before.clone(),
            first,
            hash,
            said_bytes: self.said_before,
        })
    }

    /// The number of the turn that was read last.
    pub(super) fn number(&self) -> u32 {
        self.number
    }

    /// Returns the bytes of what was said before that turn, as JSON.
    pub(super) fn history_bytes(&self) -> usize {
        self.said_before
    }

    /// Begins anew where the session is not the one that it was.
    fn is_same(&mut self, entry: Option<&Entry>) -> bool {
        let Some(expected) = self.expected.take() else {
            return true;
        };
        let is_same = entry.is_some_and(|it| it.seq == self.next && it.hash == expected);
        if !is_same {
            *self = Self::new(self.store.clone(), self.session.clone());
        }
        is_same
    }

    /// Returns the next turn; once all were read, the last one again, with what was recorded since. `None` where
    /// there is no turn.
    ///
    /// # Errors
    /// When the records cannot be read.
    pub(super) fn turn(&mut self) -> Result<Option<ReadTurn>> {
        if let Some(first) = self.ahead.take() {
            self.begin(first)?;
        }
        self.read()?;
        if self.turn.is_empty() {
            return Ok(None);
        }
        Ok(Some(ReadTurn {
            number: self.number,
            runs: self.runs()?,
            is_last: self.ahead.is_none(),
        }))
    }

    fn begin(&mut self, first: First) -> Result<()> {
        self.said_before = self.said_bytes;
        if !self.turn.is_empty() {
            self.before.turn(&self.turn).map_err(unreadable)?;
        }
        self.began = Some((first.seq, first.hash));
        self.turn = vec![first.record];
        self.number += 1;
        Ok(())
    }

    /// Reads on until another turn begins, or to the end.
    fn read(&mut self) -> Result<()> {
        'pages: loop {
            let page = match self.store.read(&self.session, self.next, PAGE_RECORDS) {
                Ok(page) => page,
                // Nothing is recorded of it yet.
                Err(StoreError::Unknown { .. }) => Vec::new(),
                Err(error) => return Err(sessions::failed(error)),
            };
            if !self.is_same(page.first()) {
                continue;
            }
            if page.is_empty() {
                return Ok(());
            }
            for entry in page {
                self.next = Seq(entry.seq.0 + 1);
                let (seq, hash, bytes) = (entry.seq, entry.hash, entry.json.len());
                let Some(record) = Entry::into_record(entry) else {
                    continue;
                };
                if !record.body.is_of_turn() {
                    continue;
                }
                if self.passed > 0 && matches!(record.body, RecordBody::Compacted(_)) {
                    *self = Self::new(self.store.clone(), self.session.clone());
                    continue 'pages;
                }
                if is_said(&record.body) {
                    self.said_bytes += bytes;
                }
                match self.turn.last() {
                    Some(last) if last.turn != record.turn => {
                        self.ahead = Some(First { record, seq, hash });
                        return Ok(());
                    }
                    Some(_) => self.turn.push(record),
                    None => self.begin(First { record, seq, hash })?,
                }
            }
        }
    }

    fn runs(&self) -> Result<Vec<ReadRun>> {
        let played = self.before.clone().turn(&self.turn).map_err(unreadable)?;
        let mut asked = self.turn.iter().filter_map(|record| match &record.body {
            RecordBody::UserMessage { message } => Some(message),
            _ => None,
        });
        let asked = asked.next();
        let streams = (0..).zip(played.streams);
        let runs = streams.map(|(run, events)| self.run(run, asked.filter(|_| run == 0), events));
        Ok(runs.collect())
    }

    fn run(&self, run: u32, asked: Option<&Message>, events: Vec<TurnEvent>) -> ReadRun {
        let began = events.first().map_or(TimeMs(0), |it| it.at);
        let beginning = Place::beginning(self.number, run, began);
        let mut progress = Progress::new(beginning);
        let mut updates = Vec::new();
        if let Some(message) = asked {
            let turn = events.first().map(|it| it.turn.clone());
            let body = UpdateBody::Asked {
                turn: turn.unwrap_or_else(|| TurnId::new("")),
                message: Arc::new(message.clone()),
            };
            updates.push((progress.pass(), body));
        }
        for event in events {
            let place = progress.pass_event(&event.body);
            let event = Box::new(event);
            updates.push((place, UpdateBody::Turn { event }));
        }
        ReadRun { beginning, updates }
    }
}

/// Returns whether a record holds a message. The first record of a turn does not.
fn is_said(body: &RecordBody) -> bool {
    matches!(
        body,
        RecordBody::UserMessage { .. }
            | RecordBody::ModelReplied { .. }
            | RecordBody::ToolFinished { .. }
    )
}

#[cfg(test)]
impl Checkpoint {
    /// One before a turn of a session of which nothing is known.
    pub(super) fn at(session: &SessionId, number: u32) -> Self {
        Self {
            number,
            before: Replayer::new(session.clone(), Changes::default()),
            first: Seq(1),
            hash: ChainHash::GENESIS,
            said_bytes: 0,
        }
    }
}
