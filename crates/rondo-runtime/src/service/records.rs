//! The updates of a session by its records.

use super::cursor::{Place, Progress};
use super::update::UpdateBody;
use crate::error::Result;
use crate::sessions;
use crate::watch::unreadable;
use rondo_core::ports::{Record, RecordBody, Seq};
use rondo_core::replay::{Changes, Replayer};
use rondo_journal::{Entry, Store, StoreError};
use rondo_types::{Message, SessionId, TimeMs, TurnEvent, TurnId};

/// Records that are read at once.
const PAGE_RECORDS: usize = 256;

/// Reads a session turn by turn, from its beginning.
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
    ahead: Option<Record>,
    /// The next record to read.
    next: Seq,
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
        }
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

    fn begin(&mut self, first: Record) -> Result<()> {
        if !self.turn.is_empty() {
            self.before.turn(&self.turn).map_err(unreadable)?;
        }
        self.turn = vec![first];
        self.number += 1;
        Ok(())
    }

    /// Reads on until another turn begins, or to the end.
    fn read(&mut self) -> Result<()> {
        loop {
            let page = match self.store.read(&self.session, self.next, PAGE_RECORDS) {
                Ok(page) => page,
                // Nothing is recorded of it yet.
                Err(StoreError::Unknown { .. }) => return Ok(()),
                Err(error) => return Err(sessions::failed(error)),
            };
            if page.is_empty() {
                return Ok(());
            }
            for entry in page {
                self.next = Seq(entry.seq.0 + 1);
                let Some(record) = Entry::into_record(entry) else {
                    continue;
                };
                if !record.body.is_of_turn() {
                    continue;
                }
                match self.turn.last() {
                    Some(last) if last.turn != record.turn => {
                        self.ahead = Some(record);
                        return Ok(());
                    }
                    Some(_) => self.turn.push(record),
                    None => self.begin(record)?,
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
                message: message.clone(),
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
