//! Replays one turn as its records are written: each record is taken once, so that following a turn costs what is new.

use super::player::{Keep, Player, Stage};
use super::{Changes, ReplayError, Replayer, recorded_process};
use crate::joined::joined_from;
use crate::ports::{ProcessEnd, Record, RecordBody};
use rondo_types::{Outcome, TurnEvent};

/// A turn that is replayed while it is recorded.
pub struct FollowedTurn {
    stage: Stage,
    /// The turn's records so far.
    records: Vec<Record>,
    /// Stands before the turn.
    replayer: Replayer,
    /// Events that were returned of each stream, before and after their deltas were joined.
    returned: Vec<StreamPosition>,
}

/// How much of a stream was returned.
#[derive(Debug, Clone, Copy, Default)]
struct StreamPosition {
    /// Events of the machine, which are taken out of the stream.
    events: usize,
    /// Events with their deltas joined.
    joined: u64,
}

/// Events that came after those that were returned before.
#[derive(Debug, Clone, PartialEq)]
pub struct NewEvents {
    /// The number of the process that ran this part of the turn, from 0.
    pub run: usize,
    /// The events, with their deltas joined (see [`joined`](crate::joined::joined)).
    pub events: Vec<TurnEvent>,
}

impl Replayer {
    /// Begins to follow the next turn as it was recorded, whatever the replay of whole turns replaces. Its first records say
    /// what it runs with; [`FollowedTurn::push`] takes those after them. This replayer stays before the turn, and
    /// [`FollowedTurn::end`] returns one that is after it.
    ///
    /// # Errors
    /// When the records do not begin a turn, or one without its prompt and tools.
    pub fn follow(&self, first: Vec<Record>) -> Result<FollowedTurn, ReplayError> {
        let mut replayer = self.clone();
        replayer.now.begin(&first);
        replayer.turns += 1;
        let mut turn = FollowedTurn {
            stage: replayer.stage(&first)?,
            records: Vec::new(),
            replayer,
            returned: Vec::new(),
        };
        turn.push(first)?;
        Ok(turn)
    }

    /// Returns the turn that begins with these records, before the first of them.
    fn stage(&self, first: &[Record]) -> Result<Stage, ReplayError> {
        let place = (self.turns, self.records);
        let player = Player::new(&self.session, first, place, &Changes::default())?;
        Ok(player.begin(self.now.before.clone(), Keep::Nothing))
    }
}

impl FollowedTurn {
    /// Takes the next records of the turn.
    ///
    /// # Errors
    /// Never, if the turn could be followed from its first records.
    pub fn push(&mut self, records: Vec<Record>) -> Result<(), ReplayError> {
        let mut next = self.records.len();
        let is_late = records.first().is_some_and(|it| follows_at_once(&it.body));
        self.records.extend(records);
        // A journal appends such a record together with the one before it, which is taken with it in view. If they came
        // apart all the same, the turn is replayed from its beginning.
        if is_late && next > 0 {
            self.stage = self.replayer.stage(&self.records)?;
            next = 0;
        }
        for index in next..self.records.len() {
            self.stage.take(&self.records, index);
        }
        if is_late && next == 0 {
            let streams = self.stage.streams().iter_mut().zip(&self.returned);
            streams.for_each(|(events, it)| drop(events.drain(..it.events.min(events.len()))));
        }
        Ok(())
    }

    /// Returns the events that came since the last call.
    pub fn events(&mut self) -> Vec<NewEvents> {
        let streams = self.stage.streams();
        self.returned
            .resize(streams.len(), StreamPosition::default());
        let streams = streams.iter_mut().zip(&mut self.returned).enumerate();
        let new = streams.filter(|(_, (events, _))| !events.is_empty());
        let new = new.map(|(run, (events, returned))| {
            let events = std::mem::take(events);
            returned.events += events.len();
            let events = joined_from(returned.joined, events);
            returned.joined += events.len() as u64;
            NewEvents { run, events }
        });
        new.collect()
    }

    /// Returns the outcome, once the turn's end is recorded.
    #[must_use]
    pub fn outcome(&self) -> Option<&Outcome> {
        self.stage.outcome()
    }

    /// Returns how the process that ran the turn ended, if that is recorded.
    #[must_use]
    pub fn process(&self) -> Option<ProcessEnd> {
        recorded_process(&self.records)
    }

    /// Ends the turn, and returns a replayer after it.
    #[must_use]
    pub fn end(self) -> Replayer {
        let mut replayer = self.replayer;
        replayer.records += self.records.len();
        replayer.now.end(self.stage.transcript(), &self.records);
        replayer
    }
}

/// Returns whether a record describes what entered the conversation with the record before it.
pub(crate) fn follows_at_once(body: &RecordBody) -> bool {
    matches!(
        body,
        RecordBody::UserMessage { .. }
            | RecordBody::CallResolved { .. }
            | RecordBody::AnswerRefused { .. }
            | RecordBody::MessageAdded { .. }
            | RecordBody::Compacted(_)
    )
}
