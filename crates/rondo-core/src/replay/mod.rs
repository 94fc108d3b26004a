//! A session driven again from its records alone: no network, no tools, no clock.
//!
//! The machine decides everything anew; what it waits for is served from the records, at the recorded
//! times. So the same engine under the same profile tells the same, and another one shows what it
//! changes.
//!
//! # Layout
//! - `player`: one turn, record by record.
//! - `difference`: where a request differs from the recorded one.
//! - `live`: tools that only look, run again.

mod difference;
mod live;
mod player;

pub use difference::{PartDifference, RequestDifference, RequestPart};
pub use live::{Rerun, rerun};

use crate::history::{History, Unbegun};
use crate::ports::{ProcessEnd, Record, RecordBody};
use player::{Keep, Played, Player};
use rondo_types::{
    CallId, Message, Outcome, Profile, SessionId, StopReason, ToolSpec, Transcript, TurnEvent,
    TurnId,
};
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Requests of which it is said where they differ: a changed prompt changes all of a session, and
/// each holds the conversation up to it.
pub const DETAILED_MAX: usize = 32;

/// What a replay puts in the place of what was recorded.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Changes {
    /// The profile, limits included.
    pub profile: Option<Profile>,
    /// The ordered blocks of the system prompt.
    pub system: Option<Vec<String>>,
    /// The tools on offer. They are not run: a call's result is the recorded one.
    pub tools: Option<Arc<Vec<ToolSpec>>>,
}

impl Changes {
    /// Returns whether all is as it was recorded.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A session, driven again.
#[derive(Debug)]
pub struct Replay {
    /// Its turns, in order.
    pub turns: Vec<ReplayedTurn>,
}

/// A turn, driven again.
#[derive(Debug)]
pub struct ReplayedTurn {
    /// The turn.
    pub turn: TurnId,
    /// What was told, its deltas joined (see [`joined`](crate::joined::joined)): one stream for each
    /// process that worked on the turn.
    pub streams: Vec<Vec<TurnEvent>>,
    /// The outcome; none where the turn does not end.
    pub outcome: Option<Outcome>,
    /// Requests that were recorded.
    pub requests: usize,
    /// Questions about calls that were recorded, each call once.
    pub asked: Vec<AskedCall>,
    /// How the process ended by the turn, as it was recorded.
    pub process: Option<ProcessEnd>,
    /// Where it is not what was recorded.
    pub differences: Vec<Difference>,
}

/// A call that needed approval.
#[derive(Debug, Clone, PartialEq)]
pub struct AskedCall {
    /// The call.
    pub call_id: CallId,
    /// The tool.
    pub tool: String,
    /// The arguments that it was to run with.
    pub arguments: Value,
}

impl ReplayedTurn {
    /// Returns how many requests differ.
    #[must_use]
    pub fn requests_changed(&self) -> usize {
        let all = self.differences.iter();
        all.filter(|it| matches!(it, Difference::Request(_)))
            .count()
    }
}

/// Where a replay is not what was recorded.
#[derive(Debug, Clone, PartialEq)]
pub enum Difference {
    /// A request is another one.
    Request(Box<RequestDifference>),
    /// A call would be run with other arguments.
    Call {
        /// The call.
        call_id: CallId,
        /// The tool.
        tool: String,
        /// The arguments that it was run with.
        recorded: Value,
        /// Those that it would be run with.
        now: Value,
    },
    /// A record has no place any more: what it answers is not asked.
    Unused {
        /// The record's place in the session, from 1.
        record: usize,
        /// What it is.
        kind: &'static str,
    },
    /// The turn ends otherwise.
    Ending {
        /// How it ended.
        recorded: ReplayedEnd,
        /// How it would end; none where it would go on and the records do not tell how.
        now: Option<ReplayedEnd>,
    },
    /// The process would end with another exit code. Added by the host, which knows what the code follows from.
    Exit {
        /// That which was recorded.
        recorded: i32,
        /// That which it would be.
        now: i32,
    },
}

/// How a turn ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayedEnd {
    /// Why.
    pub stop_reason: StopReason,
    /// The answer.
    pub text: String,
    /// Whether the answer is less than it could be.
    pub degraded: bool,
}

/// Why records cannot be replayed.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ReplayError {
    /// There is no turn in them.
    #[error("the session holds no turn")]
    Empty,
    /// They do not say what a turn worked with.
    #[error("turn {turn} was recorded without its prompt and tools, so it cannot be replayed")]
    NotEquipped {
        /// The turn's place in the session, from 1.
        turn: usize,
    },
}

/// Drives a session again. `records` are all of it, in order.
///
/// All requests that differ are counted; of the first [`DETAILED_MAX`] it is said where.
///
/// # Errors
/// When the records do not hold a turn, or not what it worked with.
pub fn replay(
    session: &SessionId,
    records: &[Record],
    changes: &Changes,
) -> Result<Replay, ReplayError> {
    let mut replayer = Replayer::new(session.clone(), changes.clone());
    let mut turns = Vec::new();
    let mut rest = records;
    while !rest.is_empty() {
        let (turn, after) = rest.split_at(turn_len(rest));
        turns.push(replayer.turn(turn)?);
        rest = after;
    }
    match turns.is_empty() {
        true => Err(ReplayError::Empty),
        false => Ok(Replay { turns }),
    }
}

/// Returns how many of the records are the first turn's, with what belongs to none beside it.
fn turn_len(records: &[Record]) -> usize {
    let mut of_turns = records.iter().filter(|it| it.body.is_of_turn());
    let first = of_turns.next().map(|it| &it.turn);
    let is_other = |it: &Record| it.body.is_of_turn() && Some(&it.turn) != first;
    let other = records.iter().position(is_other);
    other.unwrap_or(records.len())
}

/// Drives a session again turn by turn, so that no more of it than a turn and the conversation is
/// held.
#[derive(Debug)]
pub struct Replayer {
    session: SessionId,
    changes: Changes,
    turns: usize,
    /// Records so far.
    records: usize,
    /// Differing requests of which it is still said where.
    detailed_left: usize,
    now: Course,
    /// As it was recorded; followed where something is changed.
    recorded: Course,
}

/// What was said before the last turn, and after it.
#[derive(Debug, Default)]
struct Course {
    before: Transcript,
    /// Without results for the calls that the turn was cut off in.
    after: Transcript,
    /// The turn's own records, where it was cut off.
    cut_off: Option<History>,
}

impl Replayer {
    /// Begins with a session's first turn.
    #[must_use]
    pub fn new(session: SessionId, changes: Changes) -> Self {
        Self {
            session,
            changes,
            turns: 0,
            records: 0,
            detailed_left: DETAILED_MAX,
            now: Course::default(),
            recorded: Course::default(),
        }
    }

    /// Drives the next turn again. `records` are all of it, in order; what belongs to no turn may
    /// stand before and among them.
    ///
    /// # Errors
    /// When the records hold no turn, or not what it worked with.
    pub fn turn(&mut self, records: &[Record]) -> Result<ReplayedTurn, ReplayError> {
        let before = records.iter().position(|it| it.body.is_of_turn());
        let before = before.ok_or(ReplayError::Empty)?;
        let (_, records) = records.split_at(before);
        self.records += before;
        self.turns += 1;
        let place = (self.turns, self.records);
        self.records += records.len();
        let mut keep = Keep::Differing(self.detailed_left);
        let player = Player::new(&self.session, records, place, &self.changes)?;
        let played = self.now.play(player, records, &mut keep);
        let differing: HashSet<usize> = played.kept().collect();
        self.detailed_left = self.detailed_left.saturating_sub(differing.len());
        let mut recorded = HashMap::new();
        if !self.changes.is_empty() {
            let mut keep = Keep::These(differing);
            let player = Player::new(&self.session, records, place, &Changes::default())?;
            recorded.extend(self.recorded.play(player, records, &mut keep).requests());
        }
        Ok(played.compared(&recorded))
    }
}

impl Course {
    fn play(&mut self, player: Player<'_>, records: &[Record], keep: &mut Keep) -> Played {
        let began = Began::of(records);
        let before = std::mem::take(&mut self.before);
        let after = self.take_after(began.unbegun);
        self.before = began.history(before, after);
        let mut played = player.play(self.before.clone(), keep);
        self.after = std::mem::take(&mut played.transcript);
        self.cut_off = match recorded_ending(records) {
            Some(_) => None,
            None => Some(History::of(records)),
        };
        played
    }

    /// Takes what was said after the turn, each call with its result.
    fn take_after(&mut self, unbegun: Unbegun) -> Transcript {
        let mut after = std::mem::take(&mut self.after);
        let waits = after
            .last()
            .is_some_and(|it| it.tool_calls().next().is_some());
        let cut_off = self.cut_off.take().filter(|_| waits);
        let results = cut_off.and_then(|it| it.open_results(unbegun));
        after.extend(results.map(Arc::new));
        crate::pairing::paired(after)
    }
}

/// What the beginning of a turn says of the messages that it began with.
struct Began<'a> {
    count: Option<usize>,
    initial_history: &'a [Arc<Message>],
    unbegun: Unbegun,
}

impl<'a> Began<'a> {
    fn of(turn: &'a [Record]) -> Self {
        let began = turn.iter().find_map(|record| match &record.body {
            RecordBody::TurnStarted {
                history,
                initial_history,
                unbegun_not_run,
                ..
            } => Some(Self {
                count: Some(usize::try_from(*history).unwrap_or(usize::MAX)),
                initial_history,
                unbegun: Unbegun::recorded(*unbegun_not_run),
            }),
            _ => None,
        });
        began.unwrap_or(Self {
            count: None,
            initial_history: &[],
            unbegun: Unbegun::InDoubt,
        })
    }

    /// Returns what the turn began with: what was said after the turn before it, or, where that one
    /// was given up, before it.
    fn history(&self, before: Transcript, after: Transcript) -> Transcript {
        match self.count {
            _ if !self.initial_history.is_empty() => self.initial_history.to_vec(),
            Some(count) if count != after.len() && count == before.len() => before,
            _ => after,
        }
    }
}

/// Returns how a turn ended by its records; none where it was cut off.
fn recorded_ending(records: &[Record]) -> Option<ReplayedEnd> {
    records.iter().rev().find_map(|record| match &record.body {
        RecordBody::Final {
            stop_reason,
            text,
            degraded,
            ..
        } => Some(ReplayedEnd {
            stop_reason: *stop_reason,
            text: text.clone(),
            degraded: *degraded,
        }),
        _ => None,
    })
}

/// Returns how the process ended by the turn; none where that is not recorded.
fn recorded_process(records: &[Record]) -> Option<ProcessEnd> {
    records.iter().rev().find_map(|record| match &record.body {
        RecordBody::Final { process, .. } => process.clone(),
        _ => None,
    })
}
