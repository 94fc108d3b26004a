//! Drives a machine again from the records of a turn: pure, and the same for the same records.

use crate::catalog::{Catalog, Schemas};
use crate::machine::{
    Action, Arguments, Input, ModelCall, PlannedCall, PreparedCall, RequestCheck, TurnConfig,
    TurnMachine,
};
use crate::pairing::paired_with;
use crate::ports::{Interception, Record, RecordBody, Reservation};
use rondo_types::{
    Answer, AskReason, CallId, EventBody, InDoubtDecision, Message, Outcome, Question,
    QuestionKind, Recovery, TimeMs, ToolSpec, Transcript,
};
use serde_json::Value;
use std::collections::{HashMap, HashSet, VecDeque};
use std::mem::discriminant;
use std::sync::Arc;

/// State of a turn at the end of its records.
#[derive(Debug)]
pub struct RedrivenTurn {
    /// The machine, ready for the next input.
    pub machine: TurnMachine,
    /// Effects that the driver has not completed.
    pub open: OpenEffects,
    /// Calls whose beginning is recorded, with what was recorded then.
    pub started: HashMap<CallId, StartedCall>,
    /// How often the open request was sent already.
    pub sent: u32,
    /// Changes that the machine made to the transcript by itself and that are not recorded yet.
    pub unrecorded: VecDeque<RecordBody>,
    /// Events on the way, with their times.
    pub events: Vec<(TimeMs, EventBody)>,
    /// The time of the last record.
    pub last_at: TimeMs,
    /// Set if the turn's end is recorded.
    pub finished: bool,
}

impl RedrivenTurn {
    /// Takes the request that was sent and has no reply, for another attempt; `None` if it is not to be sent again.
    pub(crate) fn take_unanswered(&mut self) -> Option<Box<ModelCall>> {
        if self.open.aborted {
            return None;
        }
        let mut call = self.open.model.take()?;
        call.attempt = call.attempt.saturating_add(self.sent);
        Some(Box::new(call))
    }

    /// Takes the decision about a call that was cut off: one that a tool is asked about runs again only if nothing
    /// of it was done.
    fn settled(&mut self, call_id: &CallId, decision: InDoubtDecision, still_running: bool) {
        let running = self.open.running.iter().find(|it| it.call_id == *call_id);
        let is_checked = running.is_some_and(|it| it.recovery == Recovery::Checkable);
        if let Some(started) = self.started.get_mut(call_id) {
            let is_again = decision == InDoubtDecision::Retry && !still_running;
            started.never_began = is_checked && is_again;
        }
    }
}

/// Record of a call's beginning.
#[derive(Debug, Clone, PartialEq)]
pub struct StartedCall {
    /// Its key towards the outside.
    pub idempotency_key: String,
    /// Evidence that the tool noted before it.
    pub evidence: Option<Value>,
    /// Set if its tool said after a crash that nothing of it was done.
    pub never_began: bool,
}

/// Effects that the driver has not completed.
#[derive(Debug, Default)]
pub struct OpenEffects {
    /// A request without its reply.
    pub model: Option<ModelCall>,
    /// Calls that the gate did not judge.
    pub gates: Vec<PlannedCall>,
    /// Questions without an answer.
    pub asks: Vec<OpenApproval>,
    /// Calls without their end.
    pub running: Vec<PlannedCall>,
    /// A wait that was not over.
    pub wait: Option<TimeMs>,
    /// Set if all running work was asked to end.
    pub aborted: bool,
    /// The outcome, if the turn is over.
    pub outcome: Option<Box<Outcome>>,
}

impl OpenEffects {
    pub(crate) fn runs(&self, call_id: &CallId) -> bool {
        self.running.iter().any(|it| it.call_id == *call_id)
    }

    /// Takes back the questions whether calls run again: it is decided again if the turn continues.
    pub(crate) fn forget_repeats(&mut self) {
        let (repeats, asks) = std::mem::take(&mut self.asks)
            .into_iter()
            .partition(|it| it.is_repeat);
        self.asks = asks;
        let repeats: Vec<OpenApproval> = repeats;
        self.running.extend(repeats.into_iter().map(|it| it.call));
    }
}

/// A question without an answer.
#[derive(Debug)]
pub struct OpenApproval {
    /// Call in question.
    pub call: PlannedCall,
    /// Set if the question is about running a call again.
    pub is_repeat: bool,
}

/// Why records cannot be driven again.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum RedriveError {
    /// The turn's message is not among them.
    #[error("the records do not hold the message that the turn began with")]
    NoMessage,
    /// A record does not follow from those before it: another version wrote them, or the profile,
    /// the models or the tools are not the ones they were written under.
    #[error("record {index} of the turn does not follow from those before it ({kind})")]
    Diverged {
        /// From 0.
        index: usize,
        /// Kind of the record.
        kind: &'static str,
    },
}

/// Drives a machine through the records of one turn.
///
/// # Errors
/// When the records are not those of one turn under this configuration.
pub fn redrive(
    config: TurnConfig,
    arguments: &dyn Arguments,
    history: Transcript,
    records: &[Record],
) -> Result<RedrivenTurn, RedriveError> {
    let mut drive = Drive::new(config, arguments, history);
    let of_turn = |it: &(usize, &Record)| it.1.body.is_of_turn();
    for (index, record) in records.iter().enumerate().filter(of_turn) {
        drive.state.last_at = drive.state.last_at.max(record.at_ms);
        // Messages that the user sent meanwhile entered the transcript with the effects of this record.
        let rest = records.get(index + 1..).unwrap_or_default();
        drive
            .record(record, rest)
            .map_err(|kind| RedriveError::Diverged { index, kind })?;
    }
    match drive.history {
        Some(_) => Err(RedriveError::NoMessage),
        None => Ok(drive.state),
    }
}

/// A machine between two records.
pub(crate) struct Drive<A> {
    pub(crate) state: RedrivenTurn,
    arguments: RecordedRules<A>,
    /// Until the turn has begun.
    history: Option<Transcript>,
    /// Questions that were open when the turn continued: they are put again.
    asked_before: HashSet<CallId>,
}

/// Prepares arguments as ever, and refuses the answers that were refused.
struct RecordedRules<A> {
    arguments: A,
    /// Prepares the arguments of the tools that the turn offers since they changed.
    equipped: Option<Catalog>,
    refusal: Option<String>,
}

impl<A: Arguments> Arguments for RecordedRules<A> {
    fn prepare(&self, tool: &str, raw: &str) -> PreparedCall {
        match &self.equipped {
            Some(catalog) => catalog.prepare(tool, raw),
            None => self.arguments.prepare(tool, raw),
        }
    }

    fn check_answer(&self, text: String) -> Result<String, String> {
        self.arguments.check_answer(text)
    }

    fn refuse_answer(&self, _answer: &str) -> Result<(), String> {
        self.refusal.clone().map_or(Ok(()), Err)
    }
}

/// Nothing, or what a record is that does not follow from those before it.
type Step = Result<(), &'static str>;

impl<A: Arguments> Drive<A> {
    pub(crate) fn new(config: TurnConfig, arguments: A, history: Transcript) -> Self {
        let state = RedrivenTurn {
            machine: TurnMachine::new(config),
            open: OpenEffects::default(),
            started: HashMap::new(),
            sent: 0,
            unrecorded: VecDeque::new(),
            events: Vec::new(),
            last_at: TimeMs::default(),
            finished: false,
        };
        Self {
            state,
            arguments: RecordedRules {
                arguments,
                equipped: None,
                refusal: None,
            },
            history: Some(history),
            asked_before: HashSet::new(),
        }
    }

    /// Takes a record; `rest` are those after it.
    pub(crate) fn record(&mut self, record: &Record, rest: &[Record]) -> Step {
        let at = record.at_ms;
        match &record.body {
            RecordBody::UserMessage { message } => self.said(at, message, rest),
            RecordBody::ModelRequested { model, .. } => self.requested(at, model),
            RecordBody::ModelReplied { reply } => {
                let input = Input::Reply {
                    reply: (**reply).clone(),
                };
                self.replied(at, input, rest)
            }
            RecordBody::ModelFailed {
                error,
                partial,
                committed,
                received,
                ..
            } => {
                let input = Input::ReplyFailed {
                    error: error.clone(),
                    partial: partial.clone(),
                    committed: *committed,
                    received: *received,
                };
                self.replied(at, input, rest)
            }
            RecordBody::Cancelled => {
                self.input(at, Input::Cancel);
                Ok(())
            }
            RecordBody::Final { .. } => self.finished(at),
            RecordBody::Faulted { error } => {
                let error = error.clone();
                self.input(at, Input::Fault { error });
                Ok(())
            }
            RecordBody::TurnStarted { .. }
            | RecordBody::TurnEnvironment { .. }
            | RecordBody::RequestQueued
            | RecordBody::Parked { .. }
            | RecordBody::CellStarted { .. }
            | RecordBody::CellFinished { .. }
            | RecordBody::CellsRepeating { .. }
            | RecordBody::CellsRepeated { .. }
            | RecordBody::FolderAsked { .. }
            | RecordBody::FolderAnswered { .. }
            | RecordBody::ScriptStarted(_)
            | RecordBody::ScriptCallStarted { .. }
            | RecordBody::ScriptCallFinished { .. }
            | RecordBody::ScriptFinished { .. } => Ok(()),
            RecordBody::Resumed { .. } => self.resumed(at),
            RecordBody::ApprovalRequested { call_id, prompt } => {
                self.asked(at, call_id, (prompt, &[]))
            }
            RecordBody::Asked { question } => self.question(at, question),
            RecordBody::Answered { answer } => self.answered(at, answer),
            RecordBody::ToolsChanged { tools } => self.equipped(at, tools),
            RecordBody::Reserved(reservation) => self.reserved(at, reservation),
            RecordBody::Intercepted(what) => self.intercepted(at, what, rest),
            RecordBody::CallResolved { .. }
            | RecordBody::AnswerRefused { .. }
            | RecordBody::MessageAdded { .. }
            | RecordBody::Compacted(_) => self.changed(&record.body),
            RecordBody::GateJudged { .. }
            | RecordBody::ToolStarted { .. }
            | RecordBody::ToolInDoubt { .. }
            | RecordBody::ToolFinished { .. }
            | RecordBody::ApprovalResolved { .. } => self.of_a_call(record, rest),
        }
    }

    /// The machine has done it again by now. Its words may be another version's.
    fn changed(&mut self, body: &RecordBody) -> Step {
        let done = self.state.unrecorded.pop_front();
        let done = done.ok_or("a change of the transcript")?;
        let is_same = match body {
            RecordBody::Compacted(_) => done == *body,
            _ => discriminant(&done) == discriminant(body),
        };
        is_same.then_some(()).ok_or("a change of the transcript")
    }

    fn of_a_call(&mut self, record: &Record, rest: &[Record]) -> Step {
        let (at, open) = (record.at_ms, &mut self.state.open);
        let input = match &record.body {
            RecordBody::GateJudged { call_id, verdict } => {
                take(&mut open.gates, call_id).ok_or("a verdict")?;
                Input::Gate {
                    call_id: call_id.clone(),
                    verdict: verdict.clone(),
                }
            }
            RecordBody::ApprovalResolved { call_id, approval } => {
                let asked = |it: &OpenApproval| it.call.call_id == *call_id;
                let place = open.asks.iter().position(asked).ok_or("an answer")?;
                open.asks.remove(place);
                Input::Approval {
                    call_id: call_id.clone(),
                    approval: approval.clone(),
                }
            }
            RecordBody::ToolInDoubt {
                call_id,
                decision,
                still_running,
            } => {
                self.state.settled(call_id, *decision, *still_running);
                Input::InDoubt {
                    call_id: call_id.clone(),
                    decision: *decision,
                    still_running: *still_running,
                }
            }
            RecordBody::ToolFinished {
                call_id,
                outcome,
                duration_ms,
            } => {
                take(&mut open.running, call_id).ok_or("a call's end")?;
                Input::ToolFinished {
                    call_id: call_id.clone(),
                    outcome: outcome.clone(),
                    duration_ms: *duration_ms,
                }
            }
            RecordBody::ToolStarted {
                call_id,
                idempotency_key,
                evidence,
                ..
            } => {
                if !open.runs(call_id) {
                    return Err("a call's beginning");
                }
                let started = StartedCall {
                    idempotency_key: idempotency_key.clone(),
                    evidence: evidence.clone(),
                    never_began: false,
                };
                self.state.started.insert(call_id.clone(), started);
                return Ok(());
            }
            _ => return Ok(()),
        };
        self.steer(at, rest);
        self.input(at, input);
        Ok(())
    }

    /// The effect in question is withdrawn; the machine requests it again in its new form.
    fn intercepted(&mut self, at: TimeMs, what: &Interception, rest: &[Record]) -> Step {
        let open = &mut self.state.open;
        match what {
            Interception::Allowed { call_id }
            | Interception::Rewritten { call_id, .. }
            | Interception::Denied { call_id, .. } => {
                take(&mut open.gates, call_id).ok_or("an interceptor's decision")?;
                self.steer(at, rest);
            }
            Interception::ResultRewritten { call_id, .. } if open.runs(call_id) => {}
            Interception::Added { .. } | Interception::Stopped { .. }
                if self.state.machine.holds_request_of_step() =>
            {
                self.pass_until(at, RequestCheck::Interceptors);
            }
            _ => return Err("an interceptor's decision"),
        }
        let what = what.clone();
        self.input(at, Input::Intercepted { what });
        Ok(())
    }

    fn resumed(&mut self, at: TimeMs) -> Step {
        let unanswered = self.state.take_unanswered();
        let open = &mut self.state.open;
        open.forget_repeats();
        self.asked_before = open.asks.iter().map(|it| it.call.call_id.clone()).collect();
        self.input(at, Input::Resumed { unanswered });
        Ok(())
    }

    /// Of a question of a running call, or about a budget, the machine knows only that it is open.
    fn question(&mut self, at: TimeMs, question: &Question) -> Step {
        if let Some(call_id) = &question.call
            && !question.is_of_running_call()
        {
            self.asked(at, call_id, (&question.prompt, &question.reasons))?;
        }
        self.end_wait(at);
        if question.kind == QuestionKind::Budget {
            self.pass_until(at, RequestCheck::Budgets);
        }
        self.input(
            at,
            Input::Asked {
                question: question.id.clone(),
                call: question.call.clone(),
                is_of_running_call: question.is_of_running_call(),
            },
        );
        Ok(())
    }

    fn answered(&mut self, at: TimeMs, answer: &Answer) -> Step {
        let question = answer.question.clone();
        self.input(at, Input::Answered { question });
        Ok(())
    }

    /// Lets the held request pass the checks before this one: that nothing spoke against it is not recorded.
    fn pass_until(&mut self, at: TimeMs, until: RequestCheck) {
        while let Some(check) = self.state.machine.held_request().map(|it| it.check)
            && check < until
        {
            self.input(at, Input::RequestPassed { check });
        }
    }

    /// The wait before a request is over once something is recorded that leads to it.
    fn end_wait(&mut self, at: TimeMs) {
        if self.state.open.wait.take().is_some() {
            self.input(at, Input::Time);
        }
    }

    /// The machine has asked by itself, unless the turn continues: then the question is put again, or a call is asked
    /// about that was taken to be running.
    fn asked(
        &mut self,
        at: TimeMs,
        call_id: &CallId,
        (prompt, reasons): (&str, &[AskReason]),
    ) -> Step {
        let open = &mut self.state.open;
        let is_again = self.asked_before.remove(call_id);
        if !is_again && !open.runs(call_id) {
            return Ok(());
        }
        open.asks.retain(|it| it.call.call_id != *call_id);
        open.running.retain(|it| it.call_id != *call_id);
        let input = Input::AskAgain {
            call_id: call_id.clone(),
            prompt: prompt.to_owned(),
            reasons: reasons.to_vec(),
            has_begun: self
                .state
                .started
                .get(call_id)
                .is_some_and(|it| !it.never_began),
        };
        self.input(at, input);
        Ok(())
    }

    /// The request that was about to be sent is made again.
    fn equipped(&mut self, at: TimeMs, tools: &Arc<Vec<ToolSpec>>) -> Step {
        if !self.state.machine.holds_request_of_step() {
            return Err("a change of the tools");
        }
        let specs = Arc::clone(tools);
        let schemas = Arc::new(Schemas::new(Arc::clone(&specs)));
        self.arguments.equipped = Some(Catalog::without_answer(schemas));
        self.input(at, Input::Equip { specs });
        Ok(())
    }

    fn reserved(&mut self, at: TimeMs, reservation: &Reservation) -> Step {
        self.end_wait(at);
        self.pass_until(at, RequestCheck::Budgets);
        if reservation.refused.is_none() {
            return Ok(());
        }
        let held = self.state.machine.held_request();
        held.ok_or("a spent budget")?;
        let reservation = reservation.clone();
        self.input(at, Input::BudgetSpent { reservation });
        Ok(())
    }

    /// The first message begins the turn; later ones were taken with the record before them.
    fn said(&mut self, at: TimeMs, message: &Message, rest: &[Record]) -> Step {
        if let Some(history) = self.history.take() {
            // Messages before the turn's first request went into that.
            self.steer(at, rest);
            let (history, message) = paired_with(history, Arc::new(message.clone()));
            self.input(at, Input::Begin { history, message });
        }
        Ok(())
    }

    fn requested(&mut self, at: TimeMs, model: &str) -> Step {
        self.end_wait(at);
        let is_held = self.state.machine.held_request().is_some();
        if !is_held && self.state.open.model.is_none() {
            return Err("a request");
        }
        // A reply of another model must not pass for this one's.
        if self.state.machine.model().full_name() != model {
            return Err("a request to this model");
        }
        if is_held {
            self.pass_until(at, RequestCheck::Budgets);
            let check = RequestCheck::Budgets;
            self.input(at, Input::RequestPassed { check });
        }
        self.state.sent += 1;
        Ok(())
    }

    fn replied(&mut self, at: TimeMs, input: Input, rest: &[Record]) -> Step {
        self.state.open.model.take().ok_or("a reply")?;
        self.steer(at, rest);
        self.arguments.refusal = match rest.first().map(|record| &record.body) {
            Some(RecordBody::AnswerRefused { problem }) => Some(problem.clone()),
            _ => None,
        };
        self.input(at, input);
        Ok(())
    }

    fn finished(&mut self, at: TimeMs) -> Step {
        self.end_wait(at);
        self.state.finished = true;
        Ok(())
    }

    fn steer(&mut self, at: TimeMs, rest: &[Record]) {
        for record in rest {
            match &record.body {
                RecordBody::UserMessage { message } => {
                    let message = message.clone();
                    self.input(at, Input::Steer { message });
                }
                RecordBody::CallResolved { .. }
                | RecordBody::AnswerRefused { .. }
                | RecordBody::MessageAdded { .. }
                | RecordBody::Compacted(_) => {}
                _ => return,
            }
        }
    }

    fn input(&mut self, at: TimeMs, input: Input) {
        let machine = &mut self.state.machine;
        let before = machine.waited();
        let actions = machine.handle(at, input, &self.arguments);
        let waited = machine.waited().saturating_sub(before);
        if let Some(call) = &mut self.state.open.model {
            call.delay(waited);
        }
        for action in actions {
            self.action(at, action);
        }
    }

    fn action(&mut self, at: TimeMs, action: Action) {
        let open = &mut self.state.open;
        match action {
            Action::Emit(body) => self.state.events.push((at, body)),
            Action::Record(body) => self.state.unrecorded.push_back(*body),
            Action::CallModel(call) => {
                open.model = Some(call);
                self.state.sent = 0;
            }
            // The machine holds the request itself.
            Action::CheckRequest(_) => {}
            // These follow from what is not recorded.
            Action::AskAgain { .. } | Action::Answer { .. } | Action::Settle { .. } => {}
            Action::EndRequest { call, .. } => open.model = Some(*call),
            Action::CheckGate(calls) => open.gates.extend(calls),
            Action::Ask {
                call, is_repeat, ..
            } => open.asks.push(OpenApproval {
                call: *call,
                is_repeat,
            }),
            Action::EndCall { call, .. } => {
                if !open.runs(&call.call_id) {
                    open.running.push(*call);
                }
            }
            // The gate's decision about them is not recorded, but its effect is.
            Action::RunTools(calls) | Action::JudgeAgain(calls) => open.running.extend(calls),
            Action::RepeatCall(call) => open.running.push(*call),
            Action::Wait { until } => open.wait = Some(until),
            Action::Abort => {
                open.aborted = true;
                open.wait = None;
            }
            Action::Done(outcome) => open.outcome = Some(outcome),
        }
    }
}

fn take(calls: &mut Vec<PlannedCall>, call_id: &CallId) -> Option<PlannedCall> {
    let place = calls.iter().position(|call| call.call_id == *call_id)?;
    Some(calls.remove(place))
}
