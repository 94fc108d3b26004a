//! Sessions as they are: turns of questions, replies, calls and results.

use crate::Failure;
use rondo_core::Journal as _;
use rondo_core::compaction::{Change, Compaction};
use rondo_core::ports::{Append, Purpose, Record, RecordBody, Seq};
use rondo_core::profile;
use rondo_journal::{Durability, Options, OwnedSession, Store};
use rondo_types::{
    CallId, Candidate, FinishReason, Message, Part, Recovery, Reply, StopReason, TimeMs, ToolCall,
    ToolOutcome, TurnId,
};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;

/// Records of a turn of one call.
pub(crate) const TURN_RECORDS: u32 = 8;
/// Messages that such a turn leaves.
const TURN_MESSAGES: u32 = 4;

pub(crate) fn store(dir: &Path, durability: Durability) -> Result<Store, Failure> {
    let options = Options {
        durability,
        ..Options::default()
    };
    Ok(Store::open(dir, options)?)
}

/// Appends a batch and returns where it ends.
pub(crate) async fn append(
    session: &OwnedSession,
    at: Seq,
    batch: Vec<Record>,
) -> Result<Seq, Failure> {
    Ok(session
        .append(session.fence(), Append::new(at, batch))
        .await?)
}

/// A record with a body of about 600 bytes.
pub(crate) fn said(n: u32) -> Record {
    let text = format!("{n:06} {}", "word ".repeat(105));
    let message = Message::user(text);
    record(1, RecordBody::UserMessage { message })
}

/// The records of the `n`-th turn, of one call with a result of so many bytes. One in so many turns
/// as `compact_every` says begins by leaving out all messages before it.
pub(crate) fn turn(n: u32, result_bytes: usize, compact_every: u32) -> Vec<Record> {
    let id = CallId::generated(n, 1, 0);
    let mut bodies = vec![
        RecordBody::TurnStarted {
            profile: Arc::new(profile::builtin("default").unwrap_or_else(|_| unreachable!())),
            seed: 1,
            tools_hash: String::new(),
            addresses: vec![],
            models: vec!["p/m".to_owned()],
            turn_number: n,
            history: (n - 1) % compact_every * TURN_MESSAGES,
            initial_history: vec![],
            unbegun_not_run: true,
        },
        RecordBody::UserMessage {
            message: Message::user(format!("question {n} {}", "word ".repeat(100))),
        },
    ];
    if n > 1 && (n - 1).is_multiple_of(compact_every) {
        // The summary before is among them, from the second on.
        let summary = u32::from(n > compact_every + 1);
        bodies.push(summed_up(compact_every * TURN_MESSAGES + summary));
    }
    let call = ToolCall {
        id: id.clone(),
        wire_id: None,
        name: "look".to_owned(),
        arguments: format!(r#"{{"n":{n}}}"#),
        complete: true,
        opaque: None,
    };
    bodies.extend([
        requested(),
        replied(Part::ToolCall(call), FinishReason::ToolCalls),
        RecordBody::ToolStarted {
            call_id: id.clone(),
            name: "look".to_owned(),
            arguments: json!({ "n": n }),
            recovery: Recovery::ReadOnly,
            idempotency_key: "0".repeat(64),
            evidence: None,
        },
        RecordBody::ToolFinished {
            call_id: id,
            outcome: ToolOutcome::text(format!("{n:06} {}", "x".repeat(result_bytes))),
            duration_ms: 3,
        },
        requested(),
        replied(Part::text("answer ".repeat(80)), FinishReason::Stop),
        RecordBody::Final {
            stop_reason: StopReason::Complete,
            text: "answer ".repeat(80),
            degraded: false,
            process: None,
        },
    ]);
    bodies.into_iter().map(|body| record(n, body)).collect()
}

fn summed_up(messages: u32) -> RecordBody {
    RecordBody::Compacted(Compaction {
        from: 0,
        to: messages,
        change: Change::Summarised {
            message: Message::synthetic_user("summary ".repeat(300)),
            model: "p/m".to_owned(),
        },
    })
}

fn requested() -> RecordBody {
    RecordBody::ModelRequested {
        model: "p/m".to_owned(),
        request_hash: "0".repeat(64),
        attempt: 0,
        parts: None,
        purpose: Purpose::Step,
    }
}

fn replied(part: Part, reason: FinishReason) -> RecordBody {
    let candidate = Candidate {
        parts: vec![part],
        finish_reason: Some(reason),
        raw_finish_reasons: vec![],
    };
    RecordBody::ModelReplied {
        reply: Box::new(Reply {
            candidates: vec![candidate],
            ..Reply::default()
        }),
    }
}

fn record(turn: u32, body: RecordBody) -> Record {
    Record {
        turn: TurnId::new(format!("turn-{turn}")),
        step: 1,
        at_ms: TimeMs(1_000_000),
        body,
    }
}
