use super::TurnSetup;
use crate::machine::{Input, ModelCall, PlannedCall};
use crate::ports::{Fence, Journal, Record, RecordBody, Seq};
use rondo_types::{
    CallId, ErrorClass, InDoubtDecision, Message, ModelError, ModelRequest, Outcome, Profile,
    TimeMs, TurnId,
};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// How long the journal may take to make records durable.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(30);

/// Gathers what happened and appends it before the next effect.
///
/// So a step with one call costs two appends: the request, and the reply with the call's
/// beginning; the call's end goes with the next request.
pub(super) struct Writer {
    journal: Arc<dyn Journal>,
    fence: Fence,
    at: Seq,
    pending: Vec<Record>,
    /// Set when records were lost: those that follow them would tell of a past that is not there.
    has_gap: bool,
    turn: TurnId,
    step: u32,
    /// Of all models of the turn, in their order.
    models: Vec<String>,
    seed: u64,
    tools_hash: String,
    requests: RequestHasher,
}

impl Writer {
    pub(super) fn new(setup: &TurnSetup) -> Self {
        let models = std::iter::once(&setup.model).chain(&setup.fallbacks);
        Self {
            journal: Arc::clone(&setup.journal),
            fence: Fence {
                session: setup.session.clone(),
                epoch: 0,
            },
            at: setup.journal.head(),
            pending: Vec::new(),
            has_gap: false,
            turn: setup.turn.clone(),
            step: 0,
            models: models.map(|model| model.info().full_name()).collect(),
            seed: setup.seed,
            tools_hash: hex(digest(&[], setup.tools.specs().as_ref())),
            requests: RequestHasher::default(),
        }
    }

    pub(super) fn begin(&mut self, at: TimeMs, profile: &Profile, message: &Message) {
        let body = RecordBody::TurnStarted {
            profile: Box::new(profile.clone()),
            seed: self.seed,
            tools_hash: self.tools_hash.clone(),
            models: self.models.clone(),
        };
        self.note(at, body);
        self.note(
            at,
            RecordBody::UserMessage {
                message: message.clone(),
            },
        );
    }

    pub(super) fn note_input(&mut self, at: TimeMs, step: u32, input: &Input) {
        self.step = step;
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
            Input::Cancel => RecordBody::Cancelled,
            // A steering message is recorded when it enters the transcript.
            Input::Begin { .. } | Input::Steer { .. } | Input::Time | Input::Fault { .. } => return,
        };
        self.note(at, body);
    }

    pub(super) fn note_steered(&mut self, at: TimeMs, text: &str) {
        let message = Message::user(text);
        self.note(at, RecordBody::UserMessage { message });
    }

    pub(super) fn note_request(&mut self, at: TimeMs, call: &ModelCall) {
        self.step = call.step;
        let body = RecordBody::ModelRequested {
            model: self.models.get(call.model).cloned().unwrap_or_default(),
            request_hash: self.requests.hash(&call.request),
            attempt: call.attempt,
        };
        self.note(at, body);
    }

    pub(super) fn note_ask(&mut self, at: TimeMs, step: u32, call_id: &CallId, prompt: &str) {
        self.step = step;
        let body = RecordBody::ApprovalRequested {
            call_id: call_id.clone(),
            prompt: prompt.to_owned(),
        };
        self.note(at, body);
    }

    pub(super) fn note_tool_started(
        &mut self,
        at: TimeMs,
        step: u32,
        call: &PlannedCall,
        idempotency_key: String,
        evidence: Option<Value>,
    ) {
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

    pub(super) fn note_resumed(&mut self, at: TimeMs, step: u32, downtime_ms: u64) {
        self.step = step;
        self.note(at, RecordBody::Resumed { downtime_ms });
    }

    pub(super) fn note_in_doubt(
        &mut self,
        at: TimeMs,
        call_id: &CallId,
        decision: InDoubtDecision,
    ) {
        let call_id = call_id.clone();
        self.note(at, RecordBody::ToolInDoubt { call_id, decision });
    }

    pub(super) fn note_final(&mut self, at: TimeMs, outcome: &Outcome) {
        self.step = outcome.steps;
        let body = RecordBody::Final {
            stop_reason: outcome.stop_reason,
            text: outcome.text.clone(),
            degraded: outcome.degraded,
        };
        self.note(at, body);
    }

    /// Appends what was noted, within the limit and [`FLUSH_TIMEOUT`].
    ///
    /// # Errors
    /// When the journal does not make it durable; what it was to announce must not happen.
    pub(super) async fn flush(&mut self, limit: Duration) -> Result<(), ModelError> {
        if self.pending.is_empty() {
            return Ok(());
        }
        if self.has_gap {
            return Err(ModelError::new(
                ErrorClass::Internal,
                "the journal misses records of this turn, so it was not written any further",
            ));
        }
        let batch = std::mem::take(&mut self.pending);
        let records = batch.len();
        let appended = timeout(
            limit.min(FLUSH_TIMEOUT),
            self.journal.append(&self.fence, self.at, batch),
        );
        self.has_gap = true;
        match appended.await {
            Ok(Ok(seq)) => {
                tracing::trace!(records, at = seq.0, "the journal was appended to");
                self.has_gap = false;
                self.at = seq;
                Ok(())
            }
            Ok(Err(error)) => Err(ModelError::new(
                ErrorClass::Internal,
                format!("the turn was stopped because the journal could not be written: {error}"),
            )),
            Err(_) => Err(ModelError::new(
                ErrorClass::Internal,
                "the turn was stopped because the journal did not answer in time",
            )),
        }
    }

    fn note(&mut self, at_ms: TimeMs, body: RecordBody) {
        self.pending.push(Record {
            turn: self.turn.clone(),
            step: self.step,
            at_ms,
            body,
        });
    }
}

/// Hashes requests at the cost of what is new in each: the digest of each message covers those
/// before it, and is kept for as long as the request begins with the same messages.
#[derive(Default)]
struct RequestHasher {
    known: Vec<(Arc<Message>, Digest)>,
}

type Digest = [u8; 32];

impl RequestHasher {
    /// SHA-256 over everything in the request, in hex.
    fn hash(&mut self, request: &ModelRequest) -> String {
        let pairs = self.known.iter().zip(&request.messages);
        let kept = pairs.take_while(|((known, _), message)| Arc::ptr_eq(known, message));
        let kept = kept.count();
        self.known.truncate(kept);
        for message in request.messages.iter().skip(self.known.len()) {
            let next = digest(&self.last(), message);
            self.known.push((Arc::clone(message), next));
        }
        let rest = ModelRequest {
            model: request.model.clone(),
            system: request.system.clone(),
            messages: Vec::new(),
            tools: Arc::clone(&request.tools),
            tool_choice: request.tool_choice,
            sampling: request.sampling.clone(),
            response_schema: request.response_schema.clone(),
        };
        hex(digest(&self.last(), &rest))
    }

    fn last(&self) -> Digest {
        self.known.last().map_or(Digest::default(), |(_, it)| *it)
    }
}

/// SHA-256 of what comes before and a value's JSON, without building the JSON in memory.
fn digest<T: serde::Serialize + ?Sized>(before: &[u8], value: &T) -> Digest {
    struct Sink(Sha256);
    impl io::Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.update(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut sink = Sink(Sha256::new_with_prefix(before));
    match serde_json::to_writer(&mut sink, value) {
        Ok(()) => sink.0.finalize().into(),
        Err(_) => Digest::default(),
    }
}

pub(super) fn hex(digest: Digest) -> String {
    let mut hex = String::with_capacity(64);
    for byte in digest {
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

#[cfg(test)]
mod tests {
    use super::*;
    use rondo_types::{Sampling, ToolChoice};

    fn request(messages: &[Arc<Message>]) -> ModelRequest {
        ModelRequest {
            model: "m".into(),
            system: vec![],
            messages: messages.to_vec(),
            tools: Arc::default(),
            tool_choice: ToolChoice::Auto,
            sampling: Sampling::default(),
            response_schema: None,
        }
    }

    #[test]
    fn a_requests_hash_tells_of_all_of_it_whatever_was_hashed_before() {
        let said: Vec<_> = ["a", "b", "c"].map(|it| Arc::new(Message::user(it))).into();
        let other = [Arc::clone(&said[0]), Arc::new(Message::user("x"))];
        let mut kept = RequestHasher::default();
        let mut all = Vec::new();
        for messages in [&said[..1], &said[..2], &said, &other, &said[1..], &said] {
            let hash = kept.hash(&request(messages));
            assert_eq!(hash, RequestHasher::default().hash(&request(messages)));
            all.push(hash);
        }
        assert_eq!(all.remove(2), all.remove(4));
        all.push(kept.hash(&ModelRequest {
            tool_choice: ToolChoice::None,
            ..request(&said)
        }));
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 5);
    }
}
