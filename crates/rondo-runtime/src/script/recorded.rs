//! Turns of a conversation that are in its records already.

use crate::error::Result;
use crate::sessions;
use rondo_core::ports::{Entry, Record, RecordBody, Seq};
use rondo_core::replay::{Changes, Replayer};
use rondo_core::session_store::SessionInfo;
use rondo_core::storage::Store;
use rondo_types::{CallId, Outcome, TurnId};
use serde_json::Value;

/// A call of a tool that ended.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedCall {
    /// The tool.
    pub tool: String,
    /// Its arguments, as they were run.
    pub arguments: Value,
    /// Its key, the same in each run.
    pub key: String,
}

/// State of a turn in the records.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum TurnState {
    /// It has not begun.
    #[default]
    New,
    /// It was cut off, after these calls.
    CutOff(Vec<RecordedCall>),
    /// It is over.
    Done(Box<Outcome>, Vec<RecordedCall>),
}

/// Reads the state of the turn with this number, from 1.
///
/// # Errors
/// When the records cannot be read.
pub(super) fn turn(store: &Store, info: &SessionInfo, number: u32) -> Result<TurnState> {
    let entries = store.read(&info.id, Seq(1), usize::MAX);
    let entries = entries.map_err(sessions::failed)?.into_iter();
    let records = entries.filter_map(Entry::into_record);
    let mut turns: Vec<(TurnId, Vec<Record>)> = Vec::new();
    for record in records.filter(|it| it.body.is_of_turn()) {
        match turns.last_mut() {
            Some((turn, records)) if *turn == record.turn => records.push(record),
            _ => turns.push((record.turn.clone(), vec![record])),
        }
    }
    let mut replayer = Replayer::new(info.id.clone(), Changes::default());
    for (at, (_, records)) in turns.iter().enumerate() {
        let played = replayer.turn(records).map_err(sessions::unreadable)?;
        if u32::try_from(at + 1) == Ok(number) {
            let calls = ended_calls(records);
            return Ok(match played.outcome {
                Some(outcome) => TurnState::Done(Box::new(outcome), calls),
                None => TurnState::CutOff(calls),
            });
        }
    }
    Ok(TurnState::New)
}

/// Returns the calls that ended, in the order in which they began.
fn ended_calls(records: &[Record]) -> Vec<RecordedCall> {
    let ended: Vec<&CallId> = records
        .iter()
        .filter_map(|it| match &it.body {
            RecordBody::ToolFinished { call_id, .. } => Some(call_id),
            _ => None,
        })
        .collect();
    let started = records.iter().filter_map(|it| match &it.body {
        RecordBody::ToolStarted {
            call_id,
            name,
            arguments,
            idempotency_key,
            ..
        } if ended.contains(&call_id) => Some(RecordedCall {
            tool: name.clone(),
            arguments: arguments.clone(),
            key: idempotency_key.clone(),
        }),
        _ => None,
    });
    let mut calls: Vec<RecordedCall> = Vec::new();
    for call in started {
        if !calls.iter().any(|it| it.key == call.key) {
            calls.push(call);
        }
    }
    calls
}
