//! Drives one recorded turn again and compares what it does with its records.

use super::difference::{RequestDifference, RetainedRequest};
use super::{
    ApprovalCall, Changes, Difference, ReplayError, ReplayedEnd, ReplayedTurn, recorded_ending,
    recorded_process,
};
use crate::catalog::Catalog;
use crate::driver::{began_with, catalog_of};
use crate::joined::{joined, shown};
use crate::machine::{ModelCall, PlannedCall, TurnConfig};
use crate::ports::{ProcessEnd, Record, RecordBody};
use crate::redrive::{Drive, RedrivenTurn};
use crate::request_hash::RequestHasher;
use rondo_types::{
    CallId, EventBody, ModelRequest, Outcome, Question, Reply, ResultEvent, Role, SessionId,
    TimeMs, Transcript, TurnEvent, TurnId,
};
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::mem::discriminant;
use std::sync::Arc;

/// One turn about to be driven again.
pub(super) struct Player {
    config: TurnConfig,
    catalog: Catalog,
    /// The place of the turn's first record in the session, from 0.
    first: usize,
    has_other_tools: bool,
}

/// Which requests are kept whole.
pub(super) enum Keep {
    /// Those that differ from what was recorded, so many.
    Differing(usize),
    /// Those of these records, if they are as they were recorded.
    These(HashSet<usize>),
    /// `None`, and none is compared.
    Nothing,
}

impl Keep {
    fn keeps(&mut self, record: usize, is_same: bool) -> bool {
        match self {
            Self::Differing(left) if !is_same && *left > 0 => {
                *left -= 1;
                true
            }
            Self::Differing(_) | Self::Nothing => false,
            Self::These(records) => is_same && records.contains(&record),
        }
    }
}

/// A request that was recorded, and made again.
struct ComparedRequest {
    /// Its record's place in the session, from 1.
    record: usize,
    step: u32,
    is_same: bool,
    kept: Option<RetainedRequest>,
}

/// One turn, driven again.
pub(super) struct PlayedTurn {
    pub(super) transcript: Transcript,
    turn: TurnId,
    streams: Vec<Vec<TurnEvent>>,
    outcome: Option<Outcome>,
    requests: Vec<ComparedRequest>,
    asked: Vec<ApprovalCall>,
    process: Option<ProcessEnd>,
    differences: Vec<Difference>,
}

impl Player {
    /// Takes the first records of one turn, its number in the session, and the place of its first record.
    pub(super) fn new(
        session: &SessionId,
        records: &[Record],
        (number, first): (usize, usize),
        changes: &Changes,
    ) -> Result<Self, ReplayError> {
        let config = began_with(session, records);
        let mut config = config.ok_or(ReplayError::NotEquipped { turn: number })?;
        if let Some(profile) = &changes.profile {
            config.profile = profile.clone().into();
        }
        if let Some(system) = &changes.system {
            config.system = Arc::new(system.clone());
        }
        if let Some(tools) = &changes.tools {
            config.tools = Arc::clone(tools);
        }
        let catalog = catalog_of(&config);
        Ok(Self {
            config,
            catalog,
            first,
            has_other_tools: changes.tools.is_some(),
        })
    }

    /// Drives the turn to the end of its records.
    pub(super) fn play(self, history: Transcript, records: &[Record], keep: Keep) -> PlayedTurn {
        let mut stage = self.begin(history, keep);
        for index in 0..records.len() {
            stage.take(records, index);
        }
        stage.played(records)
    }

    /// Stands before the turn's first record.
    pub(super) fn begin(self, history: Transcript, keep: Keep) -> Stage {
        let mut hasher = RequestHasher::default();
        hasher.skip(history.len());
        Stage {
            session: self.config.session.clone(),
            turn: self.config.turn.clone(),
            first: self.first,
            drive: Drive::new(self.config, self.catalog, history),
            hasher,
            keep,
            streams: Vec::new(),
            has_other_tools: self.has_other_tools,
            held: Vec::new(),
            requests: Vec::new(),
            asked: Vec::new(),
            told_questions: Vec::new(),
            differences: Vec::new(),
        }
    }
}

/// A turn between two of its records.
pub(super) struct Stage {
    session: SessionId,
    turn: TurnId,
    first: usize,
    drive: Drive<Catalog>,
    hasher: RequestHasher,
    keep: Keep,
    streams: Vec<Vec<TurnEvent>>,
    /// Set if it offers other tools than the recording did.
    has_other_tools: bool,
    /// Records that nothing waits for, or not yet.
    held: Vec<(usize, &'static str)>,
    requests: Vec<ComparedRequest>,
    asked: Vec<ApprovalCall>,
    /// The hashes of the questions that were reported.
    told_questions: Vec<String>,
    differences: Vec<Difference>,
}

impl Stage {
    /// Takes the next record, `index` among those of the turn so far.
    pub(super) fn take(&mut self, records: &[Record], index: usize) {
        if let Err(kind) = self.record(records, index) {
            self.held.push((index, kind));
        }
        self.take_held(records);
    }

    /// The events so far, those of each process in a stream of its own.
    pub(super) fn streams(&mut self) -> &mut [Vec<TurnEvent>] {
        &mut self.streams
    }

    /// The outcome, once the turn's end was taken.
    pub(super) fn outcome(&self) -> Option<&Outcome> {
        let state = &self.drive.state;
        state.open.outcome.as_deref().filter(|_| state.finished)
    }

    /// Messages of the turn, as recorded.
    pub(super) fn transcript(&self) -> Transcript {
        as_recorded(&self.drive.state)
    }

    /// Under another profile things may be asked for in another order.
    fn take_held(&mut self, records: &[Record]) {
        let mut at = 0;
        while let Some((index, _)) = self.held.get(at).copied() {
            match self.record(records, index) {
                Ok(()) => {
                    self.held.remove(at);
                    at = 0;
                }
                Err(_) => at += 1,
            }
        }
    }

    fn record(&mut self, records: &[Record], index: usize) -> Result<(), &'static str> {
        let Some(record) = records.get(index) else {
            return Ok(());
        };
        let rest = records.get(index + 1..).unwrap_or_default();
        self.before(record);
        match &record.body {
            body @ (RecordBody::CallResolved { .. }
            | RecordBody::AnswerRefused { .. }
            | RecordBody::MessageAdded { .. }
            | RecordBody::Compacted(_)) => self.changed(body)?,
            // Other tools than those of the recording do not change as they did.
            RecordBody::ToolsChanged { .. } if self.has_other_tools => return Ok(()),
            _ => self.drive.record(record, rest)?,
        }
        for (at, body) in std::mem::take(&mut self.drive.state.events) {
            self.tell(at, body);
        }
        self.after(index, record);
        Ok(())
    }

    /// Under another profile the machine may have added more, which is not recorded.
    fn changed(&mut self, body: &RecordBody) -> Result<(), &'static str> {
        let done = &mut self.drive.state.unrecorded;
        let is_same = |it: &RecordBody| discriminant(it) == discriminant(body);
        let place = done.iter().position(is_same);
        let place = place.ok_or("a change of the transcript")?;
        done.drain(..=place);
        Ok(())
    }

    /// Emits the events that the driver emitted before the machine took the record.
    fn before(&mut self, record: &Record) {
        let at = record.at_ms;
        match &record.body {
            RecordBody::TurnStarted { .. } => self.begin_stream(at),
            RecordBody::RequestQueued => self.tell(at, EventBody::RequestQueued),
            RecordBody::ModelReplied { reply } => self.tell_reply(at, reply),
            RecordBody::ModelFailed {
                partial,
                committed,
                shown,
                ..
            } if *committed || !shown.is_empty() => self.tell_partial(at, partial, shown),
            RecordBody::Resumed { downtime_ms } => self.resume(at, *downtime_ms),
            // Versions that did not report questions reported no answers either.
            RecordBody::Answered { answer } if self.told_questions.contains(&answer.hash) => {
                let (question, actor) = (answer.question.clone(), answer.actor.clone());
                self.tell(at, EventBody::QuestionAnswered { question, actor });
            }
            RecordBody::Parked { questions } => {
                let questions = questions.clone();
                self.tell(at, EventBody::Parked { questions });
            }
            _ => {}
        }
    }

    fn after(&mut self, index: usize, record: &Record) {
        match &record.body {
            RecordBody::ModelRequested { .. } => self.compare_request(index, record),
            RecordBody::ToolStarted {
                call_id,
                name,
                arguments,
                ..
            } => {
                self.compare_call(call_id, name, arguments);
            }
            RecordBody::ApprovalRequested { call_id, .. } => self.note_asked(call_id),
            RecordBody::Asked { question } => self.tell_asked(record.at_ms, question),
            RecordBody::Final { .. } => {
                let outcome = self.drive.state.open.outcome.as_deref();
                let result = outcome.map(|it| Box::new(ResultEvent::from_outcome(it)));
                if let Some(result) = result {
                    self.tell(record.at_ms, EventBody::Result(result));
                }
            }
            _ => {}
        }
    }

    fn tell_asked(&mut self, at: TimeMs, question: &Question) {
        if let Some(call_id) = question
            .call
            .as_ref()
            .filter(|_| !question.is_of_running_call())
        {
            self.note_asked(call_id);
        }
        self.told_questions.push(question.hash.clone());
        let question = Box::new(question.clone());
        self.tell(at, EventBody::QuestionAsked { question });
    }

    fn note_asked(&mut self, call_id: &CallId) {
        let open = &self.drive.state.open;
        let asks = open.asks.iter().map(|ask| &ask.call);
        let call = asks.chain(&open.running).find(|it| it.call_id == *call_id);
        let is_new = |it: &&PlannedCall| self.asked.iter().all(|asked| asked.call_id != it.call_id);
        if let Some(call) = call.filter(is_new) {
            let asked = ApprovalCall {
                call_id: call.call_id.clone(),
                tool: call.name.clone(),
                arguments: call.arguments.clone(),
            };
            self.asked.push(asked);
        }
    }

    fn begin_stream(&mut self, at: TimeMs) {
        self.streams.push(Vec::new());
        let init = self.drive.state.machine.config().init_event();
        self.tell(at, EventBody::Init(Box::new(init)));
    }

    fn tell(&mut self, at: TimeMs, body: EventBody) {
        let event = TurnEvent {
            session: self.session.clone(),
            turn: self.turn.clone(),
            seq: 0,
            at,
            body,
        };
        if let Some(stream) = self.streams.last_mut() {
            stream.push(event);
        }
    }

    /// Returns whether a request is open whose reply is shown as it comes.
    fn is_streaming(&self) -> bool {
        let state = &self.drive.state;
        let is_shown = |call: &ModelCall| call.purpose.is_step();
        state.open.model.as_ref().is_some_and(is_shown) && state.machine.model().streaming
    }

    fn tell_reply(&mut self, at: TimeMs, reply: &Reply) {
        let first = reply.candidates.first();
        if let Some(candidate) = first.filter(|_| self.is_streaming()) {
            for body in shown(&candidate.parts) {
                self.tell(at, body);
            }
        }
    }

    fn tell_partial(&mut self, at: TimeMs, partial: &str, shown: &[EventBody]) {
        if !self.is_streaming() {
            return;
        }
        if shown.is_empty() {
            let text = partial.to_owned();
            self.tell(at, EventBody::TextDelta { text });
        }
        for body in shown {
            self.tell(at, body.clone());
        }
    }

    fn resume(&mut self, at: TimeMs, downtime_ms: u64) {
        self.begin_stream(at);
        let step = self.drive.state.machine.steps();
        self.tell(at, EventBody::Resumed { step, downtime_ms });
    }

    fn compare_request(&mut self, index: usize, record: &Record) {
        let RecordBody::ModelRequested {
            request_hash,
            parts,
            ..
        } = &record.body
        else {
            return;
        };
        let Some(call) = &self.drive.state.open.model else {
            return;
        };
        if matches!(self.keep, Keep::Nothing) {
            return;
        }
        let hash = self.hasher.hash(&call.request);
        let place = self.first + index + 1;
        let is_same = *request_hash == hash.whole;
        let kept = self.keep.keeps(place, is_same).then(|| {
            let messages = self.hasher.messages().collect();
            RetainedRequest::new(&call.request, hash, messages, parts.clone())
        });
        self.requests.push(ComparedRequest {
            record: place,
            step: record.step,
            is_same,
            kept,
        });
    }

    fn compare_call(&mut self, call_id: &CallId, name: &str, arguments: &Value) {
        let planned = self.drive.state.open.running.iter();
        let planned = planned.filter(|it| it.call_id == *call_id);
        for call in planned.filter(|it| it.arguments != *arguments) {
            self.differences.push(Difference::Call {
                call_id: call_id.clone(),
                tool: name.to_owned(),
                recorded: arguments.clone(),
                now: call.arguments.clone(),
            });
        }
    }

    fn played(mut self, records: &[Record]) -> PlayedTurn {
        let transcript = self.transcript();
        let outcome = self.drive.state.open.outcome.map(|it| *it);
        let now = outcome.as_ref().map(|outcome| ReplayedEnd {
            stop_reason: outcome.stop_reason,
            text: outcome.text.clone(),
            degraded: outcome.degraded,
        });
        for (index, kind) in &self.held {
            self.differences.push(Difference::Unused {
                record: self.first + index + 1,
                kind,
            });
        }
        if let Some(recorded) = recorded_ending(records)
            && now.as_ref() != Some(&recorded)
        {
            let ending = Difference::Ending { recorded, now };
            self.differences.push(ending);
        }
        PlayedTurn {
            transcript,
            turn: self.turn,
            streams: self.streams.into_iter().map(joined).collect(),
            outcome,
            requests: self.requests,
            asked: self.asked,
            process: recorded_process(records),
            differences: self.differences,
        }
    }
}

/// Returns the transcript without what the machine did to it after the last record: a turn that continues
/// from the records knows nothing of that.
fn as_recorded(state: &RedrivenTurn) -> Transcript {
    let mut transcript = state.machine.transcript().clone();
    if state.finished {
        return transcript;
    }
    let is_added = |it: &&RecordBody| matches!(it, RecordBody::MessageAdded { .. });
    let added = state.unrecorded.iter().filter(is_added).count();
    transcript.truncate(transcript.len().saturating_sub(added));
    let is_resolved = |it: &RecordBody| matches!(it, RecordBody::CallResolved { .. });
    if state.unrecorded.iter().any(is_resolved) {
        transcript.pop_if(|it| it.role == Role::Tool);
    }
    transcript
}

impl PlayedTurn {
    /// Returns the places of the requests that are kept.
    pub(super) fn kept(&self) -> impl Iterator<Item = usize> + '_ {
        let kept = self.requests.iter().filter(|it| it.kept.is_some());
        kept.map(|it| it.record)
    }

    /// Returns the requests that are kept, by their place.
    pub(super) fn requests(self) -> impl Iterator<Item = (usize, Arc<ModelRequest>)> {
        let all = self.requests.into_iter();
        all.filter_map(|it| Some((it.record, it.kept?.request)))
    }

    /// Returns the differences of the requests. `recorded` are some of them as they were recorded.
    pub(super) fn compared(self, recorded: &HashMap<usize, Arc<ModelRequest>>) -> ReplayedTurn {
        let requests = self.requests.len();
        let changed = self.requests.into_iter().filter(|it| !it.is_same);
        let changed = changed.map(|it| {
            let before = recorded.get(&it.record).map(AsRef::as_ref);
            let parts = it.kept.map(|kept| kept.differing(before));
            Difference::Request(Box::new(RequestDifference {
                record: it.record,
                step: it.step,
                parts: parts.unwrap_or_default(),
            }))
        });
        let mut differences: Vec<Difference> = changed.collect();
        differences.extend(self.differences);
        ReplayedTurn {
            turn: self.turn,
            streams: self.streams,
            outcome: self.outcome,
            requests,
            asked: self.asked,
            process: self.process,
            differences,
        }
    }
}
