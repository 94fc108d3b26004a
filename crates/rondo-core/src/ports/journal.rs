//! The port to durable records: the journal, its records, and what an append may answer.

use super::budget::Reservation;
use super::cell::{CellEnding, CodeChange};
use super::gate::{Approval, Verdict};
use super::interceptor::Interception;
use super::process::ProcessEnd;
use super::script::{ScriptCall, ScriptRun};
use crate::compaction::Compaction;
use async_trait::async_trait;
use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use rondo_types::{
    Answer, CallId, Commit, EventBody, InDoubtDecision, Message, ModelError, ModelInfo, Profile,
    Question, Recovery, Reply, SessionId, StopReason, TimeMs, ToolOutcome, ToolSpec, Transcript,
    TurnId,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// A record's place in its session: dense, from 1. Zero is before the first.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Seq(pub u64);

/// Proof that the writer owns the session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fence {
    /// The session.
    pub session: SessionId,
    /// Raised each time the session changes hands; an older one can no longer append.
    pub epoch: u64,
}

/// The durable record of sessions: what is true.
#[async_trait]
pub trait Journal: Send + Sync {
    /// Returns the place of the last record of the session that this value knows of, without asking the storage:
    /// where its next append belongs.
    fn at(&self) -> Seq;

    /// Returns the end of the session's records.
    ///
    /// # Errors
    /// When the storage fails.
    async fn head(&self) -> Result<Head, AppendError>;

    /// Fires once another owner has taken the session. An engine that cannot see that without asking fires it where
    /// it sees that at an append or another access, at the latest at the first append that is
    /// [`Fenced`](AppendError::Fenced).
    fn lost(&self) -> CancellationToken;

    /// Returns the epoch of this owner: what its [`Fence`]s must have. It stays the same for as long as this
    /// value lives, also after another owner took the session over.
    fn epoch(&self) -> u64 {
        0
    }

    /// Returns whether records are kept at all. If they are not, a turn makes none, and nothing is
    /// appended.
    fn keeps_records(&self) -> bool {
        true
    }

    /// Appends records at once or not at all, and returns the place of the last one when they are
    /// durable.
    ///
    /// # Errors
    /// When the writer no longer owns the session, when [`Append::expected`] is not its last place, or when
    /// the records cannot be made durable; then the effect they announce must not happen. After
    /// [`AppendError::Unknown`] the two may be there: [`settled`] finds out.
    ///
    /// # Cancel safety
    /// Not cancel safe: a dropped append may or may not have happened.
    async fn append(&self, fence: &Fence, append: Append) -> Result<Seq, AppendError>;
}

/// Records to append, and what becomes durable together with them.
#[derive(Debug, Clone)]
pub struct Append {
    /// The place of the session's last record, as its writer knows it.
    pub expected: Seq,
    /// The records, in order.
    pub batch: Vec<Record>,
    /// Becomes durable with the records or not at all, also if there are none.
    pub commit: Commit,
}

impl Append {
    /// Returns an append of records alone.
    #[must_use]
    pub fn new(expected: Seq, batch: Vec<Record>) -> Self {
        let commit = Commit::default();
        Self {
            expected,
            batch,
            commit,
        }
    }
}

/// Why records were not appended.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// Another process owns the session now.
    #[error("session `{session}` is owned by another process now")]
    Fenced {
        /// The session.
        session: SessionId,
    },
    /// Another writer appended first.
    #[error("the journal is at record {actual}, not at {expected}", actual = actual.0, expected = expected.0)]
    Conflict {
        /// Position that the writer expected.
        expected: Seq,
        /// Actual position.
        actual: Seq,
    },
    /// The journal has reached its bound or the disk is full.
    #[error("the journal is full")]
    Full,
    /// It is not known whether the records are durable: the storage failed, or did not answer any more, after it was
    /// told to commit.
    #[error("it is not known whether the journal was written")]
    Unknown {
        /// End of the records if they are durable.
        head: Head,
        /// Why it is not known.
        #[source]
        source: std::io::Error,
    },
    /// The storage failed, and the records are not there.
    #[error("failed to write the journal")]
    Io(#[source] std::io::Error),
}

/// End of a session's records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Head {
    /// The place of the last record.
    pub seq: Seq,
    /// The hash of that record and all before it.
    pub hash: ChainHash,
}

/// A hash over a record and the hash of the one before it, SHA-256. The engine decides its form; two heads of
/// one session with the same hash have the same records before them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct ChainHash(pub [u8; 32]);

impl ChainHash {
    /// The hash before a session's first record.
    pub const GENESIS: Self = Self([0; 32]);

    /// Reads 64 hexadecimal digits.
    #[must_use]
    pub fn from_hex(hex: &str) -> Option<Self> {
        let bytes = HEXLOWER_PERMISSIVE.decode(hex.as_bytes()).ok()?;
        Self::from_slice(&bytes)
    }

    /// Takes 32 bytes.
    #[must_use]
    pub fn from_slice(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }
}

impl fmt::Display for ChainHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&HEXLOWER.encode(&self.0))
    }
}

impl fmt::Debug for ChainHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// Finds out whether the records of an append are durable if that could not tell, by reading the head.
///
/// # Errors
/// As the append's: [`AppendError::Io`] if the records turn out not to be there, and
/// [`AppendError::Unknown`] only if the head cannot be read either.
pub async fn settled(
    journal: &dyn Journal,
    appended: Result<Seq, AppendError>,
) -> Result<Seq, AppendError> {
    let (head, source) = match appended {
        Err(AppendError::Unknown { head, source }) => (head, source),
        appended => return appended,
    };
    match journal.head().await {
        Ok(found) if found == head => Ok(head.seq),
        Ok(_) => Err(AppendError::Io(source)),
        Err(_) => Err(AppendError::Unknown { head, source }),
    }
}

/// One fact of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The turn it belongs to; empty if it [belongs to none](RecordBody::is_of_turn).
    pub turn: TurnId,
    /// The step it belongs to; 0 before the first.
    pub step: u32,
    /// When it was written.
    pub at_ms: TimeMs,
    /// The fact.
    pub body: RecordBody,
}

/// Purpose of the reply to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// It continues with the turn.
    #[default]
    Step,
    /// It sums up older messages, and is not shown.
    Summary,
}

impl Purpose {
    /// Returns whether the reply continues with the turn.
    #[must_use]
    pub fn is_step(&self) -> bool {
        *self == Self::Step
    }
}

/// The fact of a [`Record`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum RecordBody {
    /// A turn begins.
    TurnStarted {
        /// The profile in force, limits included.
        profile: Arc<Profile>,
        /// Seeds the jitter of retries.
        seed: u64,
        /// SHA-256 of the tools on offer, in hex.
        tools_hash: String,
        /// Models that may be asked, in order, as `provider/model`.
        #[serde(default)]
        models: Vec<String>,
        /// Their base URLs, in the same order, without credentials; empty for one without a server.
        /// All are absent if they were not recorded.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        addresses: Vec<String>,
        /// The turn's place in its session, from 1; 0 if it was not recorded.
        #[serde(default)]
        turn_number: u32,
        /// Messages that the transcript began with.
        #[serde(default)]
        history: u32,
        /// Those messages themselves, if the turn is its session's first and no record has
        /// them.
        #[serde(default, skip_serializing_if = "Vec::is_empty", rename = "brought")]
        initial_history: Transcript,
        /// Set if those messages have calls of a turn that was given up and that never began as
        /// `not_run`; before that was recorded, they read `in_doubt`.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        unbegun_not_run: bool,
    },
    /// Parts of the turn's requests besides the conversation, whole: so that a session can be
    /// replayed even if none of them is at hand.
    #[serde(rename = "equipped")]
    TurnEnvironment {
        /// The ordered blocks of the system prompt.
        system: Arc<Vec<String>>,
        /// The tools on offer.
        tools: Arc<Vec<ToolSpec>>,
        /// Models that may be asked, in order.
        models: Vec<ModelInfo>,
        /// The JSON Schema that the answer must fit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        response_schema: Option<Value>,
    },
    /// A message entered the transcript from outside: the user's, or a steering message.
    UserMessage {
        /// The message.
        message: Message,
    },
    /// A request is about to be sent.
    ModelRequested {
        /// `provider/model`.
        model: String,
        /// SHA-256 of the request in our own form, in hex.
        request_hash: String,
        /// From 0; repeated requests of a step count up.
        attempt: u32,
        /// Digests of what it is made of, so that a difference can be found.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parts: Option<RequestParts>,
        /// Purpose of its reply.
        #[serde(default, skip_serializing_if = "Purpose::is_step")]
        purpose: Purpose,
    },
    /// A request had to wait before it was sent.
    RequestQueued,
    /// A whole reply arrived.
    ModelReplied {
        /// The reply.
        reply: Box<Reply>,
    },
    /// A request failed.
    ModelFailed {
        /// Error of the request.
        error: ModelError,
        /// Text that had been shown before.
        partial: String,
        /// Set if text of the answer was shown, which rules out a repetition.
        committed: bool,
        /// Set if anything had arrived, which was paid for.
        received: bool,
        /// Events for listeners, with their deltas joined, if that is more than `partial` or it was not shown.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        shown: Vec<EventBody>,
    },
    /// The gate judged a call; its words may be what the model reads.
    GateJudged {
        /// Id of the call.
        call_id: CallId,
        /// Verdict of the gate.
        verdict: Verdict,
    },
    /// A call is about to run.
    ToolStarted {
        /// Id of the call.
        call_id: CallId,
        /// The tool.
        name: String,
        /// The arguments as they are run.
        arguments: Value,
        /// Action of recovery.
        recovery: Recovery,
        /// The call's key towards the outside.
        idempotency_key: String,
        /// Evidence from the tool that will tell whether it was done.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        evidence: Option<Value>,
    },
    /// The turn continues after a crash.
    Resumed {
        /// How long no process worked on it, in milliseconds. The turn's time leaves it out: what is recorded from here
        /// on happened that much later.
        downtime_ms: u64,
    },
    /// After a crash: a call was begun and its end was not recorded.
    ToolInDoubt {
        /// Id of the call.
        call_id: CallId,
        /// Decision about it.
        decision: InDoubtDecision,
        /// Set if it still runs and is waited for, instead of being run again.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        still_running: bool,
    },
    /// A call ended.
    ToolFinished {
        /// Id of the call.
        call_id: CallId,
        /// Outcome of the call.
        outcome: ToolOutcome,
        /// How long it ran.
        duration_ms: u64,
    },
    /// A call got its result without having run: it was refused, could not be read, or came too
    /// late.
    CallResolved {
        /// Id of the call.
        call_id: CallId,
        /// Outcome for the model.
        outcome: ToolOutcome,
    },
    /// The runtime put a message of its own into the transcript.
    MessageAdded {
        /// The message.
        message: Message,
    },
    /// An answer fits its schema, but the program's own check refused it. Recorded, since the check is
    /// code that a replay does not have.
    AnswerRefused {
        /// Problem that the check found.
        problem: String,
    },
    /// The transcript was made shorter.
    Compacted(Compaction),
    /// A person is asked about a call. Versions 1 to 3; later ones write [`Asked`](Self::Asked).
    ApprovalRequested {
        /// Id of the call.
        call_id: CallId,
        /// The question.
        prompt: String,
    },
    /// A person is asked, from this record on: any process may show the question and submit an answer. From version 4 on.
    Asked {
        /// The question.
        question: Question,
    },
    /// Part of the answer about a call that the turn uses.
    ApprovalResolved {
        /// Id of the call.
        call_id: CallId,
        /// The answer; its words may be what the model reads.
        approval: Approval,
    },
    /// The turn waits for answers, and no process works on it until [`Resumed`](Self::Resumed). From version 3 on.
    Parked {
        /// Open questions; never empty.
        questions: Vec<Question>,
    },
    /// A question was answered, by whom the answer names. The turn's decision from an answer about a call is its
    /// [`ApprovalResolved`](Self::ApprovalResolved). From version 3 on; there, only of answers that came from
    /// elsewhere.
    Answered {
        /// The answer.
        answer: Answer,
    },
    /// Interceptors decided about a call, a result or a step. From version 3 on.
    Intercepted(Interception),
    /// Budgets were asked for the request that follows, or refused it, which ends the turn. From version 3 on.
    Reserved(Reservation),
    /// From the request that follows on, the turn offers these tools. From version 3 on.
    ToolsChanged {
        /// All tools on offer.
        tools: Arc<Vec<ToolSpec>>,
    },
    /// The turn was cancelled.
    Cancelled,
    /// The runtime could not continue.
    Faulted {
        /// Error of the turn.
        error: ModelError,
    },
    /// The turn is over.
    Final {
        /// Reason of the end.
        stop_reason: StopReason,
        /// The answer.
        text: String,
        /// Set if the answer is less than it could be.
        degraded: bool,
        /// How the process ends by it; absent if it continues, and in older records.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        process: Option<ProcessEnd>,
    },
    /// A person's cell is about to run in the Python session. From version 2 of the records on.
    CellStarted {
        /// The code, as far as it is kept.
        code: String,
        /// Why that is not the code that runs, if it is not.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        changed: Option<CodeChange>,
    },
    /// The cell that was started last ended. From version 2 on.
    CellFinished {
        /// Ending of the cell.
        ending: CellEnding,
        /// Standard output, head and tail.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        stdout: String,
        /// And to standard error.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        stderr: String,
        /// How long it ran.
        duration_ms: u64,
        /// Set if its interpreter was a new one, because the last one was lost.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_restarted: bool,
        /// Set if it read typed input, which is not typed when it runs again.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        has_read_input: bool,
    },
    /// Earlier code is about to run again, to restore what it left in the interpreter. From
    /// version 2 on.
    CellsRepeating {
        /// The places of the cells and calls that it was recorded with.
        cells: Vec<Seq>,
    },
    /// The earlier code has run again, or was stopped. From version 2 on.
    CellsRepeated {
        /// How many of the cells ran again.
        repeated: u32,
        /// How many things were not restored.
        not_restored: u32,
    },
    /// A person is asked about the session's folder before a turn begins: any process may show the question and submit an
    /// answer. From version 4 on.
    FolderAsked {
        /// The question.
        question: Question,
    },
    /// The question about the folder that was asked last was answered, or is not asked any more. From version 4 on.
    FolderAnswered {
        /// The answer.
        answer: Answer,
    },
    /// A script begins to run in the session. It runs again from its beginning when it is resumed, over what follows.
    /// From version 3 on.
    ScriptStarted(ScriptRun),
    /// A call of a script to the outside is about to be made. From version 3 on.
    ScriptCallStarted {
        /// The call of the script.
        call: ScriptCall,
        /// Evidence that will tell whether it was made.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        evidence: Option<Value>,
    },
    /// A call of a script has its result, which it gets again whenever the script runs over these records. From
    /// version 3 on.
    ScriptCallFinished {
        /// The call of the script.
        call: ScriptCall,
        /// The result, as the script's functions write it.
        result: Value,
    },
    /// The script ended. From version 3 on.
    ScriptFinished {
        /// The exit code of its process.
        exit_code: u8,
        /// Why it failed, if it did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
}

impl RecordBody {
    /// The names of all kinds, as they are recorded.
    pub const KINDS: [&str; 37] = [
        "turn_started",
        "equipped",
        "user_message",
        "model_requested",
        "request_queued",
        "model_replied",
        "model_failed",
        "gate_judged",
        "tool_started",
        "resumed",
        "tool_in_doubt",
        "tool_finished",
        "call_resolved",
        "message_added",
        "answer_refused",
        "compacted",
        "approval_requested",
        "asked",
        "approval_resolved",
        "parked",
        "answered",
        "intercepted",
        "reserved",
        "tools_changed",
        "cancelled",
        "faulted",
        "final",
        "cell_started",
        "cell_finished",
        "cells_repeating",
        "cells_repeated",
        "folder_asked",
        "folder_answered",
        "script_started",
        "script_call_started",
        "script_call_finished",
        "script_finished",
    ];

    /// Returns whether it belongs to a turn. A person's acts in the Python session belong to none: they
    /// may be recorded between two turns, or in the middle of one that was cut off, and mean nothing
    /// to a model. So may a question about the folder. The calls of a script belong to none either: the turns that it starts are in sessions of their own.
    #[must_use]
    pub fn is_of_turn(&self) -> bool {
        !matches!(
            self,
            Self::CellStarted { .. }
                | Self::CellFinished { .. }
                | Self::CellsRepeating { .. }
                | Self::CellsRepeated { .. }
                | Self::FolderAsked { .. }
                | Self::FolderAnswered { .. }
                | Self::ScriptStarted(_)
                | Self::ScriptCallStarted { .. }
                | Self::ScriptCallFinished { .. }
                | Self::ScriptFinished { .. }
        )
    }
}

/// Parts of a request, as digests of 16 hexadecimal digits: they tell where two requests
/// differ, [`RecordBody::ModelRequested::request_hash`] tells whether.
///
/// A message's digest covers all messages before it, so each is recorded once in a turn, and those
/// of a turn before in that turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestParts {
    /// The system prompt.
    pub system: String,
    /// The tools on offer.
    pub tools: String,
    /// The model's name, the choice of tools, the sampling and the answer's schema.
    pub rest: String,
    /// How many messages are before those of `messages`.
    pub from: u32,
    /// The last of these; zeros if there are none.
    pub before: String,
    /// The messages from there on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_from_before_a_field_was_there_are_read() {
        let old = [
            r#"{"kind":"model_requested","model":"p/m","request_hash":"00","attempt":0}"#,
            r#"{"kind":"model_failed","error":{"class":"server","message":"x","retryable":true},"partial":"","committed":false,"received":false}"#,
        ];
        for line in old {
            let body: RecordBody = serde_json::from_str(line).unwrap();
            assert_eq!(serde_json::to_string(&body).unwrap(), line);
        }
    }
}
