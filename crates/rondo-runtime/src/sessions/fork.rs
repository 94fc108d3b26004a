//! Forks a session: the new one shares the records up to a point and continues on its own.

use super::failed;
use crate::error::{Result, SetupError, SetupErrorKind};
use crate::ids::new_session;
use rondo_core::clock::Clock;
use rondo_core::ports::{Body, Entry, RecordBody, Seq};
use rondo_core::session_store::SessionInfo;
use rondo_core::storage::Store;
use rondo_types::{SessionId, TurnId};
use std::str::FromStr;

/// The kind of a turn's first record.
const TURN_STARTED: &str = "turn_started";
/// The kind of its last.
const FINAL: &str = "final";
/// The kinds of records that the machine adds to a step after its calls. They may have the number of the next
/// step.
const ADDED: [&str; 4] = [
    "call_resolved",
    "message_added",
    "answer_refused",
    "compacted",
];

/// A step of a session, by its turn and number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepPlace {
    /// The turn, from 1; the latest one if none is named.
    pub turn: Option<u32>,
    /// The step, from 1.
    pub step: u32,
}

impl FromStr for StepPlace {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| match text.parse::<u32>() {
            Ok(number) if number > 0 => Ok(number),
            _ => Err("a step is a number from 1, or `TURN.STEP`".to_owned()),
        };
        match text.split_once('.') {
            Some((turn, step)) => Ok(Self {
                turn: Some(number(turn)?),
                step: number(step)?,
            }),
            None => Ok(Self {
                turn: None,
                step: number(text)?,
            }),
        }
    }
}

/// A session that was forked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fork {
    /// Its own id.
    pub session: SessionId,
    /// Set if it ends within a turn.
    pub is_open: bool,
}

/// Copies a session up to a record.
///
/// # Errors
/// When there is no such session or record, or the disk fails.
pub fn fork(store: &Store, of: &SessionId, at: Seq) -> Result<SessionInfo> {
    let now = Clock::system().now();
    let session = new_session(now);
    store.fork(of, at, &session, now)?;
    store.session(&session).map_err(failed)
}

/// Copies a session up to the end of a step.
///
/// # Errors
/// When there is no such step, when it was cut off before its end, or the disk fails.
pub fn fork_at(store: &Store, of: &SessionId, place: StepPlace) -> Result<Fork> {
    let end = end_of_step(store, of, place)?;
    Ok(Fork {
        session: fork(store, of, end.seq)?.id,
        is_open: !end.is_final,
    })
}

/// Returns the record before a session's latest turn, 0 if that is its first record; none without a turn.
///
/// # Errors
/// When the records cannot be read.
pub fn before_latest_turn(store: &Store, of: &SessionId) -> Result<Option<Seq>> {
    let mut first = None;
    store.each::<SetupError>(of, Seq(1), |entry| {
        if entry.kind() == TURN_STARTED {
            first = Some(entry.seq);
        }
        Ok(())
    })?;
    Ok(first.map(|first| Seq(first.0.saturating_sub(1))))
}

/// End of a step.
#[derive(Debug, PartialEq, Eq)]
struct End {
    seq: Seq,
    /// Set if its turn ends with it.
    is_final: bool,
}

/// Finds the last record of a finished step: one after which another step started, or the turn ended. All calls
/// of such a step have their results.
fn end_of_step(store: &Store, session: &SessionId, place: StepPlace) -> Result<End> {
    let turn = turn_at(store, session, place)?;
    let (last, step) = (turn.last_step, place.step);
    if step > last {
        let message = format!("the turn has no step {step}, its last is {last}");
        return Err(SetupError::new(SetupErrorKind::Input, message));
    }
    turn.end.ok_or_else(|| {
        let message = format!("step {step} was cut off before its end");
        let hint = "fork at an earlier step, or let `rondo resume` end it first";
        SetupError::new(SetupErrorKind::Input, message).hint(hint)
    })
}

/// Records about a step's end.
struct ForkPoint {
    turn: TurnId,
    last_step: u32,
    end: Option<End>,
}

impl ForkPoint {
    fn new(turn: TurnId) -> Self {
        Self {
            turn,
            last_step: 0,
            end: None,
        }
    }

    fn take(&mut self, entry: &Entry, step: u32) {
        if entry.turn != self.turn {
            return;
        }
        self.last_step = self.last_step.max(entry.step);
        let kind = entry.kind();
        let is_final = kind == FINAL;
        if self.end.is_none() && (is_final || entry.step > step && !ADDED.contains(&kind.as_str()))
        {
            let before = Seq(entry.seq.0.saturating_sub(1));
            self.end = Some(match entry.step > step {
                true => End {
                    seq: before,
                    is_final: false,
                },
                false => End {
                    seq: entry.seq,
                    is_final,
                },
            });
        }
    }
}

/// Reads the records up to the wanted turn, one at a time.
fn turn_at(store: &Store, session: &SessionId, place: StepPlace) -> Result<ForkPoint> {
    let mut found: Option<ForkPoint> = None;
    store.each::<SetupError>(session, Seq(1), |entry| {
        let is_meant = |number| place.turn.is_none_or(|meant| meant == number);
        let is_settled = found.is_some() && place.turn.is_some();
        if !is_settled && turn_number(&entry).is_some_and(is_meant) {
            found = Some(ForkPoint::new(entry.turn.clone()));
        }
        if let Some(found) = &mut found {
            found.take(&entry, place.step);
        }
        Ok(())
    })?;
    found.ok_or_else(|| {
        let message = match place.turn {
            Some(number) => format!("the session has no turn {number}"),
            None => "the session has no turn".to_owned(),
        };
        SetupError::new(SetupErrorKind::Input, message)
    })
}

/// Returns the number of the turn that a record starts.
fn turn_number(entry: &Entry) -> Option<u32> {
    if entry.kind() != TURN_STARTED {
        return None;
    }
    match entry.body() {
        Ok(Body::Known(body)) => match *body {
            RecordBody::TurnStarted { turn_number, .. } => Some(turn_number),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_one_of_the_latest_turn_or_of_the_one_that_is_named() {
        let read = |text: &str| text.parse::<StepPlace>().ok().map(|it| (it.turn, it.step));
        assert_eq!(read("3"), Some((None, 3)));
        assert_eq!(read("2.1"), Some((Some(2), 1)));
        for wrong in ["", "0", "1.0", "x", "1.2.3", "-1"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
