use super::OpenTurn;
use crate::machine::judge::{Judged, judge};
use crate::machine::{PAUSES_MAX, assign_ids, render};
use crate::ports::{Purpose, Record, RecordBody, Seq};
use rondo_types::{
    Candidate, EmptyReply, Message, ModelInfo, Origin, Profile, Reply, ResultRendering, ToolCall,
    ToolOutcome, Transcript, TurnId,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// One turn on its way through its records.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct TurnFold {
    turn: TurnId,
    number: u32,
    first: u64,
    /// Messages before the turn.
    before: usize,
    /// Those messages, once the turn has changed them.
    before_changed: Option<Transcript>,
    results: ResultRendering,
    empty_reply: EmptyReply,
    models: Vec<ModelInfo>,
    /// Who is asked, and what for.
    asked: Option<(String, Purpose)>,
    pauses: u32,
    /// Calls of the last reply that wait for their results, with those that came.
    calls: Vec<(ToolCall, Option<Settled>)>,
}

/// A call's outcome, and whether the runtime made it up.
type Settled = (ToolOutcome, bool);

impl TurnFold {
    /// Begins with a turn's first record, which should be `TurnStarted`.
    pub(super) fn new(record: &Record, place: (Seq, u32), history: &Transcript) -> Self {
        let (first, number) = place;
        let profile = match &record.body {
            RecordBody::TurnStarted { profile, .. } => Some(profile),
            _ => None,
        };
        let of = |profile: &Profile| (profile.results, profile.empty_reply);
        let (results, empty_reply) = profile
            .map_or((ResultRendering::Plain, EmptyReply::Invalid), |profile| {
                of(profile)
            });
        Self {
            turn: record.turn.clone(),
            number,
            first: first.0,
            before: history.len(),
            before_changed: None,
            results,
            empty_reply,
            models: Vec::new(),
            asked: None,
            pauses: 0,
            calls: Vec::new(),
        }
    }

    pub(super) fn place(&self) -> OpenTurn {
        OpenTurn {
            turn: self.turn.clone(),
            number: self.number,
            first: Seq(self.first),
        }
    }

    pub(super) fn before(&self, transcript: &Transcript) -> Transcript {
        match &self.before_changed {
            Some(before) => before.clone(),
            None => transcript.iter().take(self.before).cloned().collect(),
        }
    }

    pub(super) fn take(&mut self, record: &Record, transcript: &mut Transcript) {
        match &record.body {
            RecordBody::UserMessage { message } | RecordBody::MessageAdded { message } => {
                self.add(transcript, message.clone());
            }
            RecordBody::ModelRequested { model, purpose, .. } => {
                self.commit(transcript);
                self.asked = Some((model.clone(), *purpose));
            }
            RecordBody::ModelReplied { reply } => self.replied(record.step, reply, transcript),
            RecordBody::ToolFinished {
                call_id, outcome, ..
            } => self.settle(call_id, outcome, false),
            RecordBody::CallResolved { call_id, outcome } => self.settle(call_id, outcome, true),
            RecordBody::Compacted(compaction) => {
                self.commit(transcript);
                let before = self.before(transcript);
                self.before_changed.get_or_insert(before);
                compaction.apply(transcript);
            }
            RecordBody::Final { .. } => self.commit(transcript),
            RecordBody::Equipped { models, .. } => self.models.clone_from(models),
            RecordBody::TurnStarted { .. }
            | RecordBody::RequestQueued
            | RecordBody::ModelFailed { .. }
            | RecordBody::GateJudged { .. }
            | RecordBody::ToolStarted { .. }
            | RecordBody::Resumed { .. }
            | RecordBody::ToolInDoubt { .. }
            | RecordBody::ApprovalRequested { .. }
            | RecordBody::ApprovalResolved { .. }
            | RecordBody::AnswerRefused { .. }
            | RecordBody::Cancelled
            | RecordBody::Faulted { .. }
            | RecordBody::CellStarted { .. }
            | RecordBody::CellFinished { .. }
            | RecordBody::CellsRepeating { .. }
            | RecordBody::CellsRepeated { .. } => {}
        }
    }

    fn add(&mut self, transcript: &mut Transcript, message: Message) {
        self.commit(transcript);
        transcript.push(Arc::new(message));
    }

    fn replied(&mut self, step: u32, reply: &Reply, transcript: &mut Transcript) {
        let purpose = self.asked.as_ref().map(|(_, purpose)| *purpose);
        if purpose == Some(Purpose::Summary) {
            return;
        }
        let may_pause = self.pauses < PAUSES_MAX;
        let pauses = std::mem::take(&mut self.pauses);
        match judge(reply.clone(), self.empty_reply, may_pause) {
            Judged::Calls(mut candidate) => {
                assign_ids(&mut candidate, self.number, step);
                let calls: Vec<_> = candidate.tool_calls().cloned().collect();
                self.say(transcript, candidate);
                self.calls = calls.into_iter().map(|call| (call, None)).collect();
            }
            Judged::Paused(candidate) => {
                self.pauses = pauses + 1;
                self.say(transcript, candidate);
            }
            Judged::Answer(candidate) | Judged::Refused(candidate) => {
                self.say(transcript, candidate);
            }
            Judged::Unusable(_) => {}
        }
    }

    fn say(&mut self, transcript: &mut Transcript, candidate: Candidate) {
        if !candidate.parts.is_empty() {
            let message = candidate.into_message(self.origin());
            self.add(transcript, message);
        }
    }

    fn origin(&self) -> Option<Origin> {
        let (model, _) = self.asked.as_ref()?;
        let asked = self.models.iter().find(|it| it.full_name() == *model)?;
        Some(asked.origin.clone())
    }

    fn settle(&mut self, call_id: &rondo_types::CallId, outcome: &ToolOutcome, synthetic: bool) {
        let call = self.calls.iter_mut().find(|(call, _)| call.id == *call_id);
        if let Some((_, settled)) = call {
            *settled = Some((outcome.clone(), synthetic));
        }
    }

    /// Puts the results of the calls into the transcript. One that has none gets it by
    /// [`paired`](crate::pairing::paired).
    pub(super) fn commit(&mut self, transcript: &mut Transcript) {
        let calls = std::mem::take(&mut self.calls);
        if calls.is_empty() {
            return;
        }
        let results = calls.into_iter().filter_map(|(call, settled)| {
            let (outcome, synthetic) = settled?;
            let ToolCall {
                id, wire_id, name, ..
            } = call;
            let result = render::result(self.results, id, wire_id, name, &outcome, synthetic);
            Some(result)
        });
        let message = Message::tool_results(results.collect());
        transcript.push(Arc::new(message));
    }
}
