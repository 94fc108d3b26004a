//! One turn folded from its records to the messages that it leaves in the transcript.

use super::OpenTurn;
use crate::machine::judge::{UsableReply, judge};
use crate::machine::{PAUSES_MAX, assign_ids, render};
use crate::ports::{Approval, Interception, Purpose, Record, RecordBody, Seq};
use rondo_types::{
    CallId, Candidate, EmptyReply, Message, ModelInfo, Origin, Profile, Question, Reply,
    ResultRendering, ToolCall, ToolErrorCode, ToolOutcome, ToolResult, Transcript, TurnId,
};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Message to the model about a call that never began.
const NEVER_BEGUN: &str = "the turn was cut off before the call began";

/// Fate of the calls of a turn that is given up, if their beginning is not recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnstartedCalls {
    /// They read `not_run`.
    NotRun,
    /// They read `in_doubt`, as they did in sessions of earlier versions.
    InDoubt,
}

impl UnstartedCalls {
    /// Reads it out of the beginning of the turn that follows.
    pub(crate) fn recorded(is_not_run: bool) -> Self {
        match is_not_run {
            true => Self::NotRun,
            false => Self::InDoubt,
        }
    }
}

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
    /// Model of the running request, with its purpose.
    asked: Option<(String, Purpose)>,
    pauses: u32,
    /// Calls of the last reply that wait for their results, with those that came.
    calls: Vec<(ToolCall, Option<SettledCall>)>,
    /// Those of them whose beginning is recorded; `None` if that is not known.
    #[serde(default)]
    begun: Option<HashSet<CallId>>,
    /// Those that a person changed the arguments of, with the new ones.
    #[serde(default, skip_serializing_if = "HashMap::is_empty")]
    edits: HashMap<CallId, (String, Option<String>)>,
    /// Those that interceptors changed the arguments of: who did, and the new ones.
    #[serde(default, skip_serializing_if = "HashMap::is_empty")]
    rewrites: HashMap<CallId, (Vec<String>, String)>,
    /// Replacements of results that follow.
    #[serde(default, skip_serializing_if = "HashMap::is_empty")]
    reads: HashMap<CallId, String>,
    /// Open questions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    questions: Vec<AskedQuestion>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_parked: bool,
}

/// A question without an answer, and where it is recorded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct AskedQuestion {
    question: Question,
    record: u64,
    step: u32,
}

/// A call's outcome, and whether the runtime made it up.
type SettledCall = (ToolOutcome, bool);

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
            begun: None,
            edits: HashMap::new(),
            rewrites: HashMap::new(),
            reads: HashMap::new(),
            questions: Vec::new(),
            is_parked: false,
        }
    }

    pub(super) fn place(&self) -> OpenTurn {
        OpenTurn {
            turn: self.turn.clone(),
            number: self.number,
            first: Seq(self.first),
            questions: self.questions.iter().map(|it| self.shown(it)).collect(),
            is_parked: self.is_parked,
        }
    }

    /// Returns a question with what it is about.
    fn shown(&self, asked: &AskedQuestion) -> Question {
        let mut question = asked.question.clone();
        let subject = &mut question.subject;
        subject.turn = self.turn.clone();
        (subject.step, subject.record) = (asked.step, asked.record);
        let mut calls = self.calls.iter().map(|(call, _)| call);
        let call = calls.find(|it| question.call.as_ref() == Some(&it.id));
        // A question of a child is about a call of the child.
        if let Some(call) = call.filter(|_| question.child.is_none()) {
            subject.tool.clone_from(&call.name);
            let rewritten = self.rewrites.get(&call.id).map(|it| it.1.as_str());
            let arguments = rewritten.unwrap_or(&call.arguments);
            subject.arguments = serde_json::from_str(arguments).unwrap_or_default();
        }
        question
    }

    /// Takes a question that was put, in place of one about the same.
    fn asks(&mut self, question: &Question, (record, step): (u64, u32)) {
        self.questions.retain(|it| it.question.id != question.id);
        self.questions.push(AskedQuestion {
            question: question.clone(),
            record,
            step,
        });
    }

    /// Takes the questions of a parked turn: those that were put before keep their place.
    fn parked(&mut self, questions: &[Question], place: (u64, u32)) {
        self.is_parked = true;
        let before = std::mem::take(&mut self.questions);
        for question in questions {
            let known = before.iter().find(|it| it.question.hash == question.hash);
            self.asks(question, known.map_or(place, |it| (it.record, it.step)));
        }
    }

    /// Forgets what is asked about a call, or by it.
    fn no_longer_asks(&mut self, call_id: &CallId) {
        self.questions
            .retain(|it| it.question.call.as_ref() != Some(call_id));
    }

    pub(super) fn open_calls(&self) -> Vec<(CallId, bool)> {
        let open = self.calls.iter().filter(|(_, settled)| settled.is_none());
        let has_begun = |id: &CallId| self.begun.as_ref().is_none_or(|begun| begun.contains(id));
        open.map(|(call, _)| (call.id.clone(), has_begun(&call.id)))
            .collect()
    }

    pub(super) fn before(&self, transcript: &Transcript) -> Transcript {
        match &self.before_changed {
            Some(before) => before.clone(),
            None => transcript.iter().take(self.before).cloned().collect(),
        }
    }

    /// Takes the questions of a record.
    fn note_asked(&mut self, record: &Record, seq: Seq) {
        let place = (seq.0, record.step);
        match &record.body {
            RecordBody::Asked { question } => self.asks(question, place),
            RecordBody::Parked { questions } => self.parked(questions, place),
            RecordBody::Answered { answer } => {
                let is_answered = |it: &AskedQuestion| it.question.hash == answer.hash;
                self.questions.retain(|it| !is_answered(it));
            }
            RecordBody::ApprovalResolved { call_id, .. }
            | RecordBody::ToolFinished { call_id, .. }
            | RecordBody::CallResolved { call_id, .. } => self.no_longer_asks(call_id),
            RecordBody::Resumed { .. } => {
                self.questions.clear();
                self.is_parked = false;
            }
            RecordBody::Cancelled | RecordBody::Faulted { .. } | RecordBody::Final { .. } => {
                self.questions.clear();
            }
            RecordBody::Reserved(reservation) => {
                self.questions
                    .retain(|it| it.question.id.0 != reservation.id);
            }
            _ => {}
        }
    }

    pub(super) fn take(&mut self, record: &Record, seq: Seq, transcript: &mut Transcript) {
        self.note_asked(record, seq);
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
            RecordBody::ToolStarted { call_id, .. } => {
                if let Some(begun) = &mut self.begun {
                    begun.insert(call_id.clone());
                }
            }
            RecordBody::ApprovalResolved {
                call_id,
                approval:
                    Approval::Edited {
                        arguments,
                        left_out,
                    },
            } => {
                // A call that runs again after a crash runs with the same arguments.
                let has_begun = self.begun.as_ref().is_some_and(|it| it.contains(call_id));
                if !has_begun {
                    let edit = (arguments.to_string(), left_out.clone());
                    self.edits.insert(call_id.clone(), edit);
                }
            }
            RecordBody::Intercepted(Interception::Rewritten {
                call_id,
                by,
                arguments,
            }) => {
                let rewrite = (by.clone(), arguments.to_string());
                self.rewrites.insert(call_id.clone(), rewrite);
            }
            RecordBody::Intercepted(Interception::ResultRewritten { call_id, text, .. }) => {
                self.reads.insert(call_id.clone(), text.clone());
            }
            RecordBody::Compacted(compaction) => {
                self.commit(transcript);
                let before = self.before(transcript);
                self.before_changed.get_or_insert(before);
                compaction.apply(transcript);
            }
            RecordBody::Final { .. } => self.commit(transcript),
            RecordBody::TurnEnvironment { models, .. } => self.models.clone_from(models),
            RecordBody::TurnStarted { .. }
            | RecordBody::Asked { .. }
            | RecordBody::Parked { .. }
            | RecordBody::Resumed { .. }
            | RecordBody::RequestQueued
            | RecordBody::ModelFailed { .. }
            | RecordBody::GateJudged { .. }
            | RecordBody::ToolInDoubt { .. }
            | RecordBody::ApprovalRequested { .. }
            | RecordBody::ApprovalResolved { .. }
            | RecordBody::AnswerRefused { .. }
            | RecordBody::Answered { .. }
            | RecordBody::Intercepted(_)
            | RecordBody::Reserved(_)
            | RecordBody::ToolsChanged { .. }
            | RecordBody::Cancelled
            | RecordBody::Faulted { .. }
            | RecordBody::CellStarted { .. }
            | RecordBody::CellFinished { .. }
            | RecordBody::CellsRepeating { .. }
            | RecordBody::CellsRepeated { .. }
            | RecordBody::FolderAsked { .. }
            | RecordBody::FolderAnswered { .. }
            | RecordBody::ScriptStarted(_)
            | RecordBody::ScriptCallStarted { .. }
            | RecordBody::ScriptCallFinished { .. }
            | RecordBody::ScriptFinished { .. } => {}
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
            UsableReply::Calls(mut candidate) => {
                assign_ids(&mut candidate, self.number, step);
                let calls: Vec<_> = candidate.tool_calls().cloned().collect();
                self.say(transcript, candidate);
                self.begun = Some(HashSet::new());
                self.calls = calls.into_iter().map(|call| (call, None)).collect();
            }
            UsableReply::Paused(candidate) => {
                self.pauses = pauses + 1;
                self.say(transcript, candidate);
            }
            UsableReply::Answer(candidate) | UsableReply::Refused(candidate) => {
                self.say(transcript, candidate);
            }
            UsableReply::Unusable(_) => {}
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
            let outcome = match self.reads.remove(call_id) {
                Some(text) => render::with_text(outcome.clone(), text),
                None => outcome.clone(),
            };
            *settled = Some((outcome, synthetic));
        }
    }

    /// Puts the results of the calls into the transcript. One that has none gets it by
    /// [`paired`](crate::pairing::paired).
    fn commit(&mut self, transcript: &mut Transcript) {
        self.give_up(transcript, UnstartedCalls::InDoubt);
    }

    /// Does the same if the turn is abandoned.
    pub(super) fn give_up(&mut self, transcript: &mut Transcript, unbegun: UnstartedCalls) {
        if !self.calls.is_empty() {
            transcript.push(Arc::new(self.results(unbegun)));
        }
    }

    /// Takes the results of the calls that have one.
    pub(super) fn results(&mut self, unbegun: UnstartedCalls) -> Message {
        let calls = std::mem::take(&mut self.calls);
        let begun = self.begun.take();
        let edits = std::mem::take(&mut self.edits);
        let rewrites = std::mem::take(&mut self.rewrites);
        self.reads.clear();
        let never_began = |call: &ToolCall| {
            let known = begun.as_ref().filter(|_| unbegun == UnstartedCalls::NotRun);
            known.is_some_and(|begun| !begun.contains(&call.id))
        };
        let not_run = || ToolOutcome::error(ToolErrorCode::NotRun, NEVER_BEGUN);
        let results = calls.into_iter().filter_map(|(call, settled)| {
            let settled = settled.or_else(|| never_began(&call).then(|| (not_run(), true)));
            let (outcome, synthetic) = settled?;
            let id = call.id.clone();
            let mut result = self.result(call, &outcome, synthetic);
            if let Some((arguments, left_out)) = edits.get(&id) {
                render::note_edit(&mut result.content, arguments, left_out.as_deref());
            } else if let Some((by, arguments)) = rewrites.get(&id) {
                render::note_rewrite(&mut result.content, by, arguments);
            }
            Some(result)
        });
        Message::tool_results(results.collect())
    }

    fn result(&self, call: ToolCall, outcome: &ToolOutcome, synthetic: bool) -> ToolResult {
        let ToolCall {
            id, wire_id, name, ..
        } = call;
        render::result(self.results, id, wire_id, name, outcome, synthetic)
    }
}
