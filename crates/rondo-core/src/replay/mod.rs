//! Replays a session from its records alone: no network, no tools, no clock.
//!
//! The machine makes every decision again; replies, results, answers and times come from the records. The same
//! version with the same profile gives the same events; another version or profile shows what it changes.
//!
//! # Layout
//! - `player`: one turn, record by record.
//! - `difference`: the differences of a request to the recorded one.
//! - `follow`: one turn, as its records are written.
//! - `live`: runs the calls of read-only tools again.

mod difference;
mod follow;
mod live;
mod player;

pub use difference::{PartDifference, RequestDifference, RequestPart};
#[cfg(test)]
pub(crate) use follow::follows_at_once;
pub use follow::{FollowedTurn, NewEvents};
pub use live::{Rerun, rerun};

use crate::history::{History, UnstartedCalls};
use crate::ports::{ProcessEnd, Record, RecordBody};
use player::{Keep, PlayedTurn, Player};
use rondo_types::{
    CallId, Message, Outcome, Profile, SessionId, StopReason, ToolSpec, Transcript, TurnEvent,
    TurnId,
};
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The bound on requests whose differences are detailed: a changed prompt changes every request of a
/// session, and each holds the whole conversation before it.
pub const DETAILED_MAX: usize = 32;

/// Replacements of the recorded configuration.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Changes {
    /// The profile, limits included.
    pub profile: Option<Profile>,
    /// The ordered blocks of the system prompt.
    pub system: Option<Vec<String>>,
    /// The offered tools. They are not run: the results are the recorded ones.
    pub tools: Option<Arc<Vec<ToolSpec>>>,
}

impl Changes {
    /// Returns whether nothing is replaced.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The replay of a session.
#[derive(Debug)]
pub struct Replay {
    /// Its turns, in order.
    pub turns: Vec<ReplayedTurn>,
}

/// The replay of a turn.
#[derive(Debug)]
pub struct ReplayedTurn {
    /// The turn.
    pub turn: TurnId,
    /// The events, with their deltas joined (see [`joined`](crate::joined::joined)): one stream for each
    /// process that ran a part of the turn.
    pub streams: Vec<Vec<TurnEvent>>,
    /// The outcome; `None` if the turn does not end.
    pub outcome: Option<Outcome>,
    /// The number of recorded requests.
    pub requests: usize,
    /// The calls that the recording asked about, each once.
    pub asked: Vec<ApprovalCall>,
    /// The recorded end of the process that ran the turn.
    pub process: Option<ProcessEnd>,
    /// The differences from the recording.
    pub differences: Vec<Difference>,
}

/// A call that needed approval.
#[derive(Debug, Clone, PartialEq)]
pub struct ApprovalCall {
    /// Id of the call.
    pub call_id: CallId,
    /// The tool.
    pub tool: String,
    /// The arguments in question.
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

/// A difference between a replay and the recording.
#[derive(Debug, Clone, PartialEq)]
pub enum Difference {
    /// A request differs.
    Request(Box<RequestDifference>),
    /// A call would be run with other arguments.
    Call {
        /// Id of the call.
        call_id: CallId,
        /// The tool.
        tool: String,
        /// The arguments that it was run with.
        recorded: Value,
        /// Those that it would be run with.
        now: Value,
    },
    /// A record is not used: the replay does not do what it is the result of.
    Unused {
        /// The record's number in the session, from 1.
        record: usize,
        /// Kind of the record.
        kind: &'static str,
    },
    /// The turn ends differently.
    Ending {
        /// How it ended.
        recorded: ReplayedEnd,
        /// How it ends now; `None` if it would continue past the end of the records.
        now: Option<ReplayedEnd>,
    },
    /// The process would end with another exit code. Added by the host, which knows the codes.
    Exit {
        /// The recorded code.
        recorded: i32,
        /// The code now.
        now: i32,
    },
}

/// How a turn ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayedEnd {
    /// The stop reason.
    pub stop_reason: StopReason,
    /// The answer.
    pub text: String,
    /// Set if the answer is degraded.
    pub degraded: bool,
}

/// Why records cannot be replayed.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ReplayError {
    /// There is no turn in them.
    #[error("the session has no turn")]
    Empty,
    /// A turn was recorded without its prompt and tools, as by an old version.
    #[error("turn {turn} was recorded without its prompt and tools, so it cannot be replayed")]
    NotEquipped {
        /// The turn's place in the session, from 1.
        turn: usize,
    },
}

/// Replays a session. `records` are all its records, in order.
///
/// All requests that differ are counted; the first [`DETAILED_MAX`] are detailed.
///
/// # Errors
/// When the records hold no turn, or a turn without its prompt and tools.
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

/// Replays a session turn by turn, so that only one turn and the conversation are in memory.
#[derive(Debug, Clone)]
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

/// Messages before the last turn, and after it.
#[derive(Debug, Default, Clone)]
struct Course {
    before: Transcript,
    /// Without results for the calls that the turn was cut off in.
    after: Transcript,
    /// The turn's own records, if it was cut off.
    cut_off: Option<History>,
}

impl Replayer {
    /// Starts before a session's first turn.
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

    /// Starts before a later turn, of whose session so many turns and records are before it, without what was said in
    /// them. Its events are the same, unless it sums up or leaves out what was said before it; its requests differ.
    #[must_use]
    pub fn after(session: SessionId, turns: u32, records: u64) -> Self {
        Self {
            turns: usize::try_from(turns).unwrap_or(usize::MAX),
            records: usize::try_from(records).unwrap_or(usize::MAX),
            detailed_left: 0,
            ..Self::new(session, Changes::default())
        }
    }

    /// Replays the next turn. `records` are all its records, in order; records that belong to no turn may be
    /// before and among them.
    ///
    /// # Errors
    /// When the records hold no turn, or a turn without its prompt and tools.
    pub fn turn(&mut self, records: &[Record]) -> Result<ReplayedTurn, ReplayError> {
        let before = records.iter().position(|it| it.body.is_of_turn());
        let before = before.ok_or(ReplayError::Empty)?;
        let (_, records) = records.split_at(before);
        self.records += before;
        self.turns += 1;
        let place = (self.turns, self.records);
        self.records += records.len();
        let keep = Keep::Differing(self.detailed_left);
        let player = Player::new(&self.session, records, place, &self.changes)?;
        let played = self.now.play(player, records, keep);
        let differing: HashSet<usize> = played.kept().collect();
        self.detailed_left = self.detailed_left.saturating_sub(differing.len());
        let mut recorded = HashMap::new();
        if !self.changes.is_empty() {
            let keep = Keep::These(differing);
            let player = Player::new(&self.session, records, place, &Changes::default())?;
            recorded.extend(self.recorded.play(player, records, keep).requests());
        }
        Ok(played.compared(&recorded))
    }
}

impl Course {
    fn play(&mut self, player: Player, records: &[Record], keep: Keep) -> PlayedTurn {
        self.begin(records);
        let mut played = player.play(self.before.clone(), records, keep);
        self.end(std::mem::take(&mut played.transcript), records);
        played
    }

    /// Steps before the turn that begins with these records.
    fn begin(&mut self, records: &[Record]) {
        let began = Began::of(records);
        let before = std::mem::take(&mut self.before);
        let after = self.take_after(began.unbegun);
        self.before = began.history(before, after);
    }

    /// Steps behind the turn of these records.
    fn end(&mut self, transcript: Transcript, records: &[Record]) {
        self.after = transcript;
        self.cut_off = match recorded_ending(records) {
            Some(_) => None,
            None => Some(History::of(records)),
        };
    }

    /// Takes the messages after the turn, each call with its result.
    fn take_after(&mut self, unbegun: UnstartedCalls) -> Transcript {
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

/// Facts in the beginning of a turn about its first messages.
struct Began<'a> {
    count: Option<usize>,
    initial_history: &'a [Arc<Message>],
    unbegun: UnstartedCalls,
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
                unbegun: UnstartedCalls::recorded(*unbegun_not_run),
            }),
            _ => None,
        });
        began.unwrap_or(Self {
            count: None,
            initial_history: &[],
            unbegun: UnstartedCalls::InDoubt,
        })
    }

    /// Returns the messages with which the turn began: those after the turn before it, or, if that one
    /// was given up, those before it.
    fn history(&self, before: Transcript, after: Transcript) -> Transcript {
        match self.count {
            _ if !self.initial_history.is_empty() => self.initial_history.to_vec(),
            Some(count) if count != after.len() && count == before.len() => before,
            _ => after,
        }
    }
}

/// Returns how a turn ended by its records; `None` if it was cut off.
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

/// Returns how the process ended by the turn; `None` if that is not recorded.
fn recorded_process(records: &[Record]) -> Option<ProcessEnd> {
    records.iter().rev().find_map(|record| match &record.body {
        RecordBody::Final { process, .. } => process.clone(),
        _ => None,
    })
}
