//! Collects the records of a turn and appends them to the journal before the effect that they describe.

use super::TurnSetup;
use crate::machine::{Input, ModelCall, PlannedCall};
use crate::ports::{
    Append, AppendError, Commit, Fence, Journal, MailId, ProcessEnd, Record, RecordBody,
    Reservation, Seq, settled,
};
use crate::request_hash::{RequestHasher, digest, hashed_tools};
use data_encoding::HEXLOWER;
use rondo_types::{
    Answer, ErrorClass, EventBody, Message, ModelError, Outcome, Question, TimeMs, ToolOutcome,
    Transcript, TurnId,
};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// How long the journal may take to make records durable.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(30);

/// Why the journal did not make records durable. It ends the turn, and the user reads its text.
#[derive(Debug, thiserror::Error)]
pub(super) enum FlushError {
    /// Earlier records of the turn were lost, so none can follow.
    #[error("the journal lacks records of this turn, so no more were written")]
    Gap,
    /// The journal refused the records: a full disk, a lock, an error of the file system.
    #[error("the turn was stopped because the journal could not be written: {0}")]
    Refused(String),
    /// The journal took longer than the limit.
    #[error("the turn was stopped because the journal did not answer in time")]
    TimedOut,
}

impl FlushError {
    /// Returns the error as an outcome and the machine have it.
    pub(super) fn into_turn_error(self) -> ModelError {
        ModelError::new(ErrorClass::Internal, self.to_string())
    }
}

impl From<AppendError> for FlushError {
    fn from(error: AppendError) -> Self {
        Self::Refused(match error {
            AppendError::Io(cause) | AppendError::Unknown { source: cause, .. } => {
                cause.to_string()
            }
            error => error.to_string(),
        })
    }
}

/// Gathers what happened and appends it before the next effect.
///
/// So a step with one call costs two appends: the request, and the reply with the call's
/// beginning; the call's end goes with the next request.
pub(super) struct RecordBatch {
    journal: Arc<dyn Journal>,
    /// Set if events are recorded at all.
    is_kept: bool,
    fence: Fence,
    at: Seq,
    pending: Vec<Record>,
    /// Effects that become durable with them, such as the removal of finished rows of the mailbox.
    commit: Commit,
    /// Set when records were lost: those that follow them would describe a past that is not there.
    has_gap: bool,
    turn: TurnId,
    step: u32,
    /// Of all models of the turn, in their order.
    models: Vec<String>,
    requests: RequestHasher,
    told: RequestEvents,
}

/// Events that a request showed its listener besides its reply.
#[derive(Debug, Default)]
pub(super) struct RequestEvents {
    /// When it had to wait.
    pub(super) queued: Vec<TimeMs>,
    /// Shown events before it failed, if they are more than text.
    pub(super) shown: Vec<EventBody>,
}

/// Returns the address of each model's server; empty if none has one.
fn addresses(setup: &TurnSetup) -> Vec<String> {
    let models = std::iter::once(&setup.model).chain(&setup.fallbacks);
    let all: Vec<String> = models
        .map(|model| model.base_url().unwrap_or_default())
        .collect();
    match all.iter().all(String::is_empty) {
        true => Vec::new(),
        false => all,
    }
}

impl RecordBatch {
    pub(super) fn new(setup: &TurnSetup) -> Self {
        let models = std::iter::once(&setup.model).chain(&setup.fallbacks);
        Self {
            journal: Arc::clone(&setup.journal),
            is_kept: setup.journal.keeps_records(),
            fence: Fence {
                session: setup.session.clone(),
                epoch: setup.journal.epoch(),
            },
            at: setup.journal.at(),
            pending: Vec::new(),
            commit: Commit::default(),
            has_gap: false,
            turn: setup.turn.clone(),
            step: 0,
            models: models.map(|model| model.info().full_name()).collect(),
            requests: RequestHasher::default(),
            told: RequestEvents::default(),
        }
    }

    pub(super) fn keeps_records(&self) -> bool {
        self.is_kept
    }

    /// The whole history is recorded if no record has it.
    pub(super) fn begin(
        &mut self,
        at: TimeMs,
        setup: &TurnSetup,
        history: &Transcript,
        message: &Message,
    ) {
        if !self.is_kept {
            return;
        }
        self.commit.take(setup.opening.clone());
        let is_first = self.at == Seq(0);
        let body = RecordBody::TurnStarted {
            profile: Arc::clone(&setup.profile),
            seed: setup.seed,
            tools_hash: HEXLOWER.encode(&digest(&[], &hashed_tools(&setup.tools.specs()))),
            models: self.models.clone(),
            addresses: addresses(setup),
            turn_number: setup.turn_number,
            history: u32::try_from(history.len()).unwrap_or(u32::MAX),
            initial_history: if is_first {
                history.clone()
            } else {
                Vec::new()
            },
            unbegun_not_run: true,
        };
        self.note(at, body);
        let models = std::iter::once(&setup.model).chain(&setup.fallbacks);
        let environment = RecordBody::TurnEnvironment {
            system: setup.system.clone(),
            tools: setup.tools.specs(),
            models: models.map(|model| model.info()).collect(),
            response_schema: setup.response_schema.clone(),
        };
        self.note(at, environment);
        let message = message.clone();
        self.note(at, RecordBody::UserMessage { message });
    }

    pub(super) fn note_input(&mut self, at: TimeMs, step: u32, input: &Input) {
        if !self.is_kept {
            return;
        }
        self.step = step;
        self.take_effects(input);
        self.note_queued(input);
        let body = match input {
            Input::Reply { reply } => RecordBody::ModelReplied {
                reply: Box::new(reply.clone()),
            },
            Input::ReplyFailed {
                error,
                partial,
                committed,
                received,
            } => RecordBody::ModelFailed {
                error: error.clone(),
                partial: partial.clone(),
                committed: *committed,
                received: *received,
                shown: std::mem::take(&mut self.told.shown),
            },
            Input::Gate { call_id, verdict } => RecordBody::GateJudged {
                call_id: call_id.clone(),
                verdict: verdict.clone(),
            },
            Input::ToolFinished {
                call_id,
                outcome,
                duration_ms,
            } => RecordBody::ToolFinished {
                call_id: call_id.clone(),
                outcome: outcome.clone(),
                duration_ms: *duration_ms,
            },
            Input::Approval { call_id, approval } => RecordBody::ApprovalResolved {
                call_id: call_id.clone(),
                approval: approval.clone(),
            },
            Input::Intercepted { what } => RecordBody::Intercepted(what.clone()),
            Input::Equip { specs } => RecordBody::ToolsChanged {
                tools: Arc::clone(specs),
            },
            Input::BudgetSpent { reservation } => RecordBody::Reserved(reservation.clone()),
            Input::Cancel => RecordBody::Cancelled,
            Input::Fault { error } => RecordBody::Faulted {
                error: error.clone(),
            },
            Input::Begin { history, .. } => return self.requests.skip(history.len()),
            Input::InDoubt {
                call_id,
                decision,
                still_running,
            } => RecordBody::ToolInDoubt {
                call_id: call_id.clone(),
                decision: *decision,
                still_running: *still_running,
            },
            // Questions, answers, reservations, requests and beginnings are noted by themselves, that the turn continues is
            // noted with its downtime, and a steering message when it enters the transcript.
            Input::AskAgain { .. }
            | Input::Asked { .. }
            | Input::Answered { .. }
            | Input::RequestPassed { .. }
            | Input::JudgedAgain { .. }
            | Input::CutOff { .. }
            | Input::Resumed { .. }
            | Input::Steer { .. }
            | Input::Time => return,
        };
        self.note(at, body);
    }

    /// Takes the effects that become durable with the end of a call.
    fn take_effects(&mut self, input: &Input) {
        if let Input::ToolFinished { outcome, .. } = input
            && let ToolOutcome::Ok(output) = outcome
        {
            self.commit.take((*output.effects).clone());
        }
    }

    /// Notes before the end of a request when that had to wait.
    fn note_queued(&mut self, input: &Input) {
        if matches!(input, Input::Reply { .. } | Input::ReplyFailed { .. }) {
            for at in std::mem::take(&mut self.told.queued) {
                self.note(at, RecordBody::RequestQueued);
            }
        }
    }

    /// Takes the text that the listener of the current request was shown, for the record of its end.
    pub(super) fn note_told(&mut self, told: RequestEvents) {
        self.told = told;
    }

    pub(super) fn note_steered(
        &mut self,
        at: TimeMs,
        message: Message,
        row: Option<(MailId, u64)>,
    ) {
        self.commit.ack_unedited.extend(row);
        self.note(at, RecordBody::UserMessage { message });
    }

    pub(super) fn note_request(&mut self, at: TimeMs, call: &ModelCall) {
        if !self.is_kept {
            return;
        }
        self.step = call.step;
        let hash = self.requests.hash(&call.request);
        let body = RecordBody::ModelRequested {
            model: self.models.get(call.model).cloned().unwrap_or_default(),
            request_hash: hash.whole,
            attempt: call.attempt,
            parts: Some(hash.parts),
            purpose: call.purpose,
        };
        self.note(at, body);
    }

    /// Records a change that the machine made to the transcript by itself.
    pub(super) fn note_change(&mut self, at: TimeMs, step: u32, body: RecordBody) {
        self.step = step;
        self.note(at, body);
    }

    /// Notes a question that is about to be put, and returns the place of its record; 0 if nothing is recorded.
    pub(super) fn note_asked(&mut self, at: TimeMs, step: u32, question: Question) -> u64 {
        self.step = step;
        self.note(at, RecordBody::Asked { question });
        match self.is_kept {
            true => self.at.0 + self.pending.len() as u64,
            false => 0,
        }
    }

    /// Removes a row of the mailbox with the records that follow.
    pub(super) fn acknowledge(&mut self, mail: Option<MailId>) {
        self.commit.ack.extend(mail);
    }

    /// Notes an answer, beside what the machine takes of it.
    pub(super) fn note_answered(
        &mut self,
        at: TimeMs,
        step: u32,
        answer: Answer,
        mail: Option<MailId>,
    ) {
        self.step = step;
        self.commit.ack.extend(mail);
        self.note(at, RecordBody::Answered { answer });
    }

    pub(super) fn note_reserved(&mut self, at: TimeMs, step: u32, reservation: Reservation) {
        self.step = step;
        self.note(at, RecordBody::Reserved(reservation));
    }

    pub(super) fn note_parked(&mut self, at: TimeMs, step: u32, questions: Vec<Question>) {
        self.step = step;
        self.note(at, RecordBody::Parked { questions });
    }

    pub(super) fn note_tool_started(
        &mut self,
        at: TimeMs,
        step: u32,
        call: &PlannedCall,
        idempotency_key: String,
        evidence: Option<Value>,
    ) {
        if !self.is_kept {
            return;
        }
        self.step = step;
        let body = RecordBody::ToolStarted {
            call_id: call.call_id.clone(),
            name: call.name.clone(),
            arguments: call.arguments.clone(),
            recovery: call.recovery,
            idempotency_key,
            evidence,
        };
        self.note(at, body);
    }

    /// `messages` were reported earlier.
    pub(super) fn note_resumed(
        &mut self,
        at: TimeMs,
        step: u32,
        downtime_ms: u64,
        messages: usize,
    ) {
        self.step = step;
        self.requests.skip(messages);
        self.note(at, RecordBody::Resumed { downtime_ms });
    }

    pub(super) fn note_final(
        &mut self,
        at: TimeMs,
        outcome: &Outcome,
        process: Option<ProcessEnd>,
    ) {
        self.step = outcome.steps;
        let body = RecordBody::Final {
            stop_reason: outcome.stop_reason,
            text: outcome.text.clone(),
            degraded: outcome.degraded,
            process,
        };
        self.note(at, body);
    }

    /// Appends what was noted, within the limit and [`FLUSH_TIMEOUT`].
    ///
    /// # Errors
    /// When the journal does not make it durable; the effect that the records precede must not happen then.
    pub(super) async fn flush(&mut self, limit: Duration) -> Result<(), FlushError> {
        if self.pending.is_empty() {
            return Ok(());
        }
        if self.has_gap {
            return Err(FlushError::Gap);
        }
        let batch = std::mem::take(&mut self.pending);
        let commit = std::mem::take(&mut self.commit);
        let records = batch.len();
        let journal = self.journal.as_ref();
        let append = journal.append(
            &self.fence,
            Append {
                expected: self.at,
                batch,
                commit,
            },
        );
        let appended = timeout(limit.min(FLUSH_TIMEOUT), async {
            settled(journal, append.await).await
        });
        self.has_gap = true;
        match appended.await {
            Ok(Ok(seq)) => {
                tracing::trace!(records, at = seq.0, "the journal was appended to");
                self.has_gap = false;
                self.at = seq;
                Ok(())
            }
            Ok(Err(error)) => Err(error.into()),
            Err(_) => Err(FlushError::TimedOut),
        }
    }

    /// Drops what was noted since the last flush, and was to announce nothing.
    pub(super) fn forget_unwritten(&mut self) {
        self.pending.clear();
        self.commit = Commit::default();
    }

    fn note(&mut self, at_ms: TimeMs, body: RecordBody) {
        if self.is_kept {
            self.pending.push(Record {
                turn: self.turn.clone(),
                step: self.step,
                at_ms,
                body,
            });
        }
    }
}
