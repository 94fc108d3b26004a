//! The updates of a session by its records.

use super::cursor::{CursorPosition, Progress};
use super::update::UpdateBody;
use crate::error::Result;
use crate::sessions;
use rondo_core::ports::{ChainHash, Entry, ProcessEnd, Record, RecordBody, Seq};
use rondo_core::replay::{Changes, FollowedTurn, NewEvents, Replayer};
use rondo_core::session_store::{LateTurn, StoreError};
use rondo_core::storage::Store;
use rondo_types::{Outcome, SessionId, TimeMs, TurnEvent, TurnId};
use std::sync::Arc;

/// Records that are read at once.
const PAGE_RECORDS: usize = 256;
/// Records, about so many, that are read if only the end of a session is wanted at first.
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

/// Reads a session turn by turn, from its beginning or from a checkpoint. Each record is read and replayed once: a turn
/// that is still recorded is followed.
pub(super) struct RecordReader {
    store: Store,
    session: SessionId,
    /// Stands before the turn that is read.
    before: Replayer,
    /// That turn, once one of its records was read.
    turn: Option<OpenTurn>,
    /// The number of that turn.
    number: u32,
    /// A record of the turn after it.
    ahead: Option<FirstRecord>,
    /// The next record to read.
    next: Seq,
    /// Hash of the record from which it reads, until it was compared.
    expected: Option<ChainHash>,
    /// Beginning of the turn that is being read.
    began: Option<(Seq, ChainHash)>,
    /// Turns before the first one that is read, of which it knows nothing else.
    passed: u32,
    /// Bytes of what was said in all that was read, as JSON. To count them again for each turn would take as long as all
    /// turns together.
    said_bytes: usize,
    /// The same before the turn that is read.
    said_before: usize,
    /// Rows that were read.
    #[cfg(test)]
    rows: usize,
}

/// A turn that is read.
struct OpenTurn {
    id: TurnId,
    /// Replays the turn; `None` until its first records were read.
    followed: Option<FollowedTurn>,
    /// Records that were read and not replayed yet.
    new: Vec<Record>,
    /// The place after the updates that were returned, in each run.
    runs: Vec<Progress>,
}

/// The first record of a turn.
struct FirstRecord {
    record: Record,
    seq: Seq,
    hash: ChainHash,
}

/// New records of a turn.
pub(super) struct ReadTurn {
    pub(super) number: u32,
    /// The new updates of each process that worked on it, in order: from the process on that had the last update before
    /// them, even if there is no other update of that process.
    pub(super) runs: Vec<ReadRun>,
    /// Set for the last one.
    pub(super) is_last: bool,
    /// How it ended, once it has.
    pub(super) ending: Option<TurnEnding>,
}

/// How a turn ended, as its records have it.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnEnding {
    /// The outcome.
    pub outcome: Outcome,
    /// How the process ended that ran the turn; `None` if that process continues, such as a gateway.
    pub process: Option<ProcessEnd>,
}

/// The new updates of one process that worked on a turn.
pub(super) struct ReadRun {
    /// The place before the first of them.
    pub(super) beginning: CursorPosition,
    /// The updates, each with the place after it.
    pub(super) updates: Vec<(CursorPosition, UpdateBody)>,
}

impl ReadRun {
    /// The place after everything that is recorded of it.
    pub(super) fn end(&self) -> CursorPosition {
        self.updates.last().map_or(self.beginning, |it| it.0)
    }
}

impl RecordReader {
    pub(super) fn new(store: Store, session: SessionId) -> Self {
        Self {
            before: Replayer::new(session.clone(), Changes::default()),
            store,
            session,
            turn: None,
            number: 0,
            ahead: None,
            next: Seq(1),
            expected: None,
            began: None,
            passed: 0,
            said_bytes: 0,
            said_before: 0,
            #[cfg(test)]
            rows: 0,
        }
    }

    /// Begins before one of the latest turns, if there is one that can be read without those before it; else at the
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

    /// The last record that was read.
    pub(super) fn head(&self) -> Seq {
        Seq(self.next.0 - 1)
    }

    /// The number of the turn that was read last.
    pub(super) fn number(&self) -> u32 {
        self.number
    }

    /// Returns the bytes of what was said before that turn, as JSON.
    pub(super) fn history_bytes(&self) -> usize {
        self.said_before
    }

    /// Begins again if the session is not the one that it was.
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

    /// Returns the next turn; once all were read, what was recorded since of the last one. `None` if there is no turn.
    ///
    /// # Errors
    /// When the records cannot be read.
    pub(super) fn turn(&mut self) -> Result<Option<ReadTurn>> {
        if let Some(first) = self.ahead.take() {
            self.begin(first);
        }
        self.read()?;
        let Some(turn) = &mut self.turn else {
            return Ok(None);
        };
        let is_replayed = turn.new.is_empty();
        let runs = turn.updates(&self.before, self.number)?;
        Ok(Some(ReadTurn {
            number: self.number,
            runs,
            is_last: self.ahead.is_none(),
            ending: match is_replayed {
                true => None,
                false => turn.ending(),
            },
        }))
    }

    fn begin(&mut self, first: FirstRecord) {
        self.said_before = self.said_bytes;
        if let Some(followed) = self.turn.take().and_then(|it| it.followed) {
            self.before = followed.end();
        }
        self.began = Some((first.seq, first.hash));
        self.turn = Some(OpenTurn {
            id: first.record.turn.clone(),
            followed: None,
            new: vec![first.record],
            runs: Vec::new(),
        });
        self.number += 1;
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
                #[cfg(test)]
                {
                    self.rows += 1;
                }
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
                match &mut self.turn {
                    Some(turn) if turn.id != record.turn => {
                        self.ahead = Some(FirstRecord { record, seq, hash });
                        return Ok(());
                    }
                    Some(turn) => turn.new.push(record),
                    None => self.begin(FirstRecord { record, seq, hash }),
                }
            }
        }
    }
}

impl OpenTurn {
    /// Returns the updates of the records that were read since the last call.
    fn updates(&mut self, before: &Replayer, number: u32) -> Result<Vec<ReadRun>> {
        let new = std::mem::take(&mut self.new);
        let mut asked = None;
        let followed = match &mut self.followed {
            Some(followed) => {
                if !new.is_empty() {
                    followed.push(new).map_err(sessions::unreadable)?;
                }
                followed
            }
            None => {
                asked = new.iter().find_map(|record| match &record.body {
                    RecordBody::UserMessage { message } => Some(UpdateBody::Asked {
                        turn: self.id.clone(),
                        message: Arc::new(message.clone()),
                    }),
                    _ => None,
                });
                let followed = before.follow(new).map_err(sessions::unreadable)?;
                self.followed.insert(followed)
            }
        };
        let mut all = Vec::from_iter(self.runs.last().map(|it| ReadRun {
            beginning: it.place,
            updates: Vec::new(),
        }));
        for NewEvents { run, events } in followed.events() {
            let began = events.first().map_or(TimeMs(0), |it| it.at);
            let count = self.runs.len();
            let index = u32::try_from(run).unwrap_or(u32::MAX);
            if run >= count {
                let beginning = CursorPosition::beginning(number, index, began);
                self.runs.push(Progress::new(beginning));
                all.push(ReadRun {
                    beginning,
                    updates: Vec::new(),
                });
            }
            if let (Some(progress), Some(read)) = (self.runs.last_mut(), all.last_mut()) {
                read.updates
                    .extend(asked.take().map(|body| (progress.pass(), body)));
                read.updates
                    .extend(events.into_iter().map(|it| placed(progress, it)));
            }
        }
        Ok(all)
    }

    fn ending(&self) -> Option<TurnEnding> {
        let followed = self.followed.as_ref()?;
        Some(TurnEnding {
            outcome: followed.outcome()?.clone(),
            process: followed.process(),
        })
    }
}

/// Returns an event as an update, and the place after it.
fn placed(progress: &mut Progress, event: TurnEvent) -> (CursorPosition, UpdateBody) {
    let place = progress.pass_event(&event.body);
    let event = Box::new(event);
    (place, UpdateBody::Turn { event })
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
impl RecordReader {
    /// Returns how many rows were read.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }
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

#[cfg(test)]
pub(super) mod tests;
