//! The machine itself: takes one input at a time and goes through the step cycle.

use super::batch::Batch;
use super::budget::{NextRequest, TurnSpend};
use super::compact::ContextPressure;
use super::finish::Ending;
use super::guard::{Guard, Measure};
use super::held::{CheckedSteps, HeldRequest};
use super::io::{Action, Arguments, Input, ModelCall, TurnConfig};
use super::judge::{Problem, UsableReply, judge};
use super::waiting::OpenQuestions;
use super::written_call::written_call;
use crate::ports::{Purpose, RecordBody};
use rondo_types::{
    Candidate, ErrorClass, EventBody, Finding, FinishReason, Message, ModelError, ModelInfo,
    ModelRequest, Part, Reply, ResponseName, Role, StopReason, TimeMs, ToolChoice, ToolSpec,
    Transcript,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// One turn: from the user's message to its outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnMachine {
    pub(super) config: TurnConfig,
    /// Set if the model refused a temperature.
    #[serde(default)]
    pub(super) omits_temperature: bool,
    /// Index of the active model: 0 is the first, 1 and up are the fallbacks. It only increases.
    #[serde(default, rename = "asked")]
    pub(super) model_index: usize,
    pub(super) phase: Phase,
    pub(super) started_at: TimeMs,
    pub(super) transcript: Transcript,
    pub(super) spent: TurnSpend,
    /// Repetitions of this step's request so far.
    pub(super) attempt: u32,
    pub(super) invalid_used: u32,
    /// Paused replies in a row that were sent back.
    #[serde(default)]
    pub(super) pauses: u32,
    pub(super) findings: Vec<Finding>,
    pub(super) guard: Guard,
    #[serde(default, rename = "crowding")]
    pub(super) pressure: ContextPressure,
    pub(super) steering: Vec<Message>,
    /// Set from when the last, tool-free request is the only one left: why.
    pub(super) finalising: Option<StopReason>,
    pub(super) cancelled: bool,
    #[serde(default)]
    pub(super) waiting: OpenQuestions,
    #[serde(default)]
    pub(super) checked: CheckedSteps,
    pub(super) last_finish: Option<FinishReason>,
    /// The provider's name of the step's last reply.
    #[serde(default)]
    pub(super) last_response: ResponseName,
    /// Set while a step has begun whose `step_finished` was not sent yet.
    pub(super) step_open: bool,
    /// The model's latest text of this turn: part of an answer that the runtime must build.
    pub(super) last_text: String,
}

/// Input that the machine waits for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "phase", rename_all = "snake_case")]
pub(super) enum Phase {
    /// The beginning.
    Idle,
    /// The checks of a request that was not sent yet.
    Held(Box<HeldRequest>),
    /// A reply.
    AwaitingReply,
    /// The time to repeat a request.
    AwaitingRetry,
    /// The calls of a reply.
    Batch(Batch),
    /// Nothing more.
    Done,
}

/// One call of [`TurnMachine::handle`].
pub(super) struct Cx<'a> {
    pub(super) at: TimeMs,
    pub(super) arguments: &'a dyn Arguments,
    pub(super) out: Vec<Action>,
}

impl Cx<'_> {
    pub(super) fn record(&mut self, body: RecordBody) {
        self.out.push(Action::Record(Box::new(body)));
    }

    pub(super) fn emit(&mut self, body: EventBody) {
        self.out.push(Action::Emit(body));
    }
}

/// Paused replies in a row that are sent back; a further one is judged by what it holds.
pub(crate) const PAUSES_MAX: u32 = 8;

/// Bytes of the messages that a request may carry, without media: more than any model reads. It is
/// held once as messages and once as the request that repeats them.
pub(crate) const MESSAGE_BYTES_MAX: u64 = 16 << 20;

/// The bound on steering messages that wait; further ones stay with the caller.
const STEERING_MAX: usize = 64;

impl TurnMachine {
    /// Makes a turn that waits for [`Input::Begin`].
    #[must_use]
    pub fn new(config: TurnConfig) -> Self {
        let spent = TurnSpend::new(config.model.price);
        Self {
            config,
            omits_temperature: false,
            model_index: 0,
            phase: Phase::Idle,
            started_at: TimeMs::default(),
            transcript: Transcript::new(),
            spent,
            attempt: 0,
            invalid_used: 0,
            pauses: 0,
            findings: Vec::new(),
            guard: Guard::default(),
            pressure: ContextPressure::default(),
            steering: Vec::new(),
            finalising: None,
            cancelled: false,
            waiting: OpenQuestions::default(),
            checked: CheckedSteps::default(),
            last_finish: None,
            last_response: ResponseName::default(),
            step_open: false,
            last_text: String::new(),
        }
    }

    /// Returns whether the turn is over; any further input is ignored.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.phase == Phase::Done
    }

    /// Returns the messages so far. A call is without its result only while its batch runs.
    #[must_use]
    pub fn transcript(&self) -> &Transcript {
        &self.transcript
    }

    /// Returns the configuration of the turn.
    #[must_use]
    pub fn config(&self) -> &TurnConfig {
        &self.config
    }

    /// Returns the model in use.
    #[must_use]
    pub fn model(&self) -> &ModelInfo {
        let fallback = self.model_index.checked_sub(1);
        fallback
            .and_then(|index| self.config.fallbacks.get(index))
            .unwrap_or(&self.config.model)
    }

    /// Returns the number of model requests made.
    #[must_use]
    pub fn steps(&self) -> u32 {
        self.spent.steps
    }

    /// Takes one input and returns what to do, in order.
    ///
    /// Inputs that do not fit what the machine waits for are ignored.
    pub fn handle(&mut self, at: TimeMs, input: Input, arguments: &dyn Arguments) -> Vec<Action> {
        let mut cx = Cx {
            at,
            arguments,
            out: Vec::new(),
        };
        if !self.is_done() {
            let before = self.waited();
            self.waiting.count(at);
            self.delay_held(self.waited().saturating_sub(before));
            self.dispatch(&mut cx, input);
        }
        cx.out
    }

    fn dispatch(&mut self, cx: &mut Cx<'_>, input: Input) {
        match input {
            Input::Begin { history, message } => self.begin(cx, history, message),
            Input::Reply { reply } if self.phase == Phase::AwaitingReply => self.reply(cx, reply),
            Input::ReplyFailed {
                error,
                partial,
                committed,
                received,
            } if self.phase == Phase::AwaitingReply => {
                match received {
                    true => self.spent.note_failed_request(&partial),
                    false => self.spent.note_free_request(),
                }
                self.reply_failed(cx, error, &partial, committed);
            }
            Input::Time if self.phase == Phase::AwaitingRetry => self.retry(cx),
            Input::Gate { call_id, verdict } => self.gate(cx, &call_id, verdict),
            Input::Approval { call_id, approval } => {
                self.waiting.forget_call(&call_id);
                self.approval(cx, &call_id, approval);
            }
            Input::ToolFinished {
                call_id,
                outcome,
                duration_ms,
            } => {
                self.waiting.forget_call(&call_id);
                self.tool_finished(cx, &call_id, outcome, duration_ms);
            }
            Input::Asked {
                question,
                call,
                is_of_running_call,
            } => self
                .waiting
                .ask(cx.at, (question, call), is_of_running_call),
            Input::Answered { question } => {
                self.waiting.answer(cx.at, &question);
                self.note_answer_to_held(cx.at);
            }
            Input::Resumed { unanswered } => {
                self.resumed();
                self.resume_request(cx, unanswered.map(|call| *call));
            }
            Input::CutOff {
                call_id,
                recovery,
                known,
            } => self.cut_off(cx, &call_id, recovery, &known),
            Input::InDoubt {
                call_id,
                decision,
                still_running,
            } => self.in_doubt(cx, &call_id, decision, still_running),
            Input::JudgedAgain { verdicts } => self.judged_again(cx, &verdicts),
            Input::AskAgain {
                call_id,
                prompt,
                reasons,
                has_begun,
            } => self.ask_again(cx, &call_id, (prompt, reasons), has_begun),
            Input::Intercepted { what } => self.intercepted(cx, what),
            Input::RequestPassed { check } => self.request_passed(cx, check),
            Input::BudgetSpent { reservation } => self.budget_spent(cx, reservation),
            Input::Equip { specs } => self.equip(cx, specs),
            Input::Steer { message } => self.steer(message),
            Input::Cancel => self.cancel(cx),
            Input::Fault { error } => self.fault(cx, error),
            Input::Reply { .. } | Input::ReplyFailed { .. } | Input::Time => {}
        }
    }

    fn begin(&mut self, cx: &mut Cx<'_>, history: Transcript, message: Arc<Message>) {
        if self.phase != Phase::Idle {
            return;
        }
        self.started_at = cx.at;
        self.transcript = history;
        self.spent.note_unsent(&self.config, &self.transcript);
        self.limit_history(cx);
        self.push(message);
        if self.config.profile.compaction.only {
            return self.compact_only(cx);
        }
        self.next_step(cx);
    }

    /// Adds a message; every message enters the transcript here.
    pub(super) fn push(&mut self, message: impl Into<Arc<Message>>) {
        let message = message.into();
        self.spent.note_unsent_message(&message);
        self.transcript.push(message);
    }

    /// Adds a message of the runtime's own, which no other fact records.
    pub(super) fn add(&mut self, cx: &mut Cx<'_>, message: Message) {
        cx.record(RecordBody::MessageAdded {
            message: message.clone(),
        });
        self.push(message);
    }

    /// Begins the next step, or ends the turn if a limit on steps, time, tokens or money is met.
    pub(super) fn next_step(&mut self, cx: &mut Cx<'_>) {
        if self.cancelled {
            return self.finish(cx, Ending::stopped(StopReason::Cancelled));
        }
        self.step_finished(cx);
        // A message of the user would end the reply that the model must continue.
        if self.pauses == 0 {
            self.absorb_steering(cx);
        }
        if self.make_room(cx) {
            return;
        }
        if self.spent.message_bytes() > MESSAGE_BYTES_MAX {
            return self.finish(cx, Ending::failed(too_long()));
        }
        match self.allowance(cx.at) {
            NextRequest::Step => {}
            NextRequest::FinalOnly(reason) => self.begin_final(cx, reason),
            NextRequest::Nothing(reason) => return self.finish(cx, Ending::stopped(reason)),
        }
        self.spent.steps += 1;
        self.attempt = 0;
        self.last_finish = None;
        self.last_response = ResponseName::default();
        self.step_open = true;
        cx.emit(EventBody::StepStarted {
            step: self.spent.steps,
        });
        self.send_request(cx);
    }

    fn begin_final(&mut self, cx: &mut Cx<'_>, reason: StopReason) {
        // On the very first request there is nothing to sum up, so nothing is said.
        if self.finalising.is_none() && self.spent.steps > 0 {
            let text = self.text_with_limit(&self.config.profile.texts.finalise, reason);
            self.add(cx, Message::synthetic_user(text));
        }
        self.finalising.get_or_insert(reason);
    }

    pub(super) fn send_request(&mut self, cx: &mut Cx<'_>) {
        let end = self.step_end(cx.at);
        let whole = end.map(|end| end.at.since(cx.at));
        let limits = &self.config.profile.limits;
        let streaming = self.model().streaming;
        let call = ModelCall {
            request: Arc::new(self.request()),
            model: self.model_index,
            step: self.spent.steps,
            attempt: self.attempt,
            purpose: Purpose::Step,
            first_byte_timeout: limits.first_byte_timeout.filter(|_| streaming).or(whole),
            idle_timeout: limits.idle_timeout.filter(|_| streaming).or(whole),
            end,
        };
        self.hold(cx, call);
    }

    fn request(&self) -> ModelRequest {
        let (tools, tool_choice) = match self.finalising {
            Some(_) => (Arc::default(), ToolChoice::None),
            None => (self.offered_tools(), ToolChoice::Auto),
        };
        let mut sampling = self.config.profile.sampling.clone();
        sampling.max_output_tokens = self.output_cap(sampling.max_output_tokens);
        sampling.temperature = sampling.temperature.filter(|_| !self.omits_temperature);
        ModelRequest {
            model: self.model().origin.model.clone(),
            system: self.config.system.clone(),
            messages: self.transcript.clone(),
            tools,
            tool_choice,
            sampling,
            response_schema: self.config.response_schema.clone(),
        }
    }

    fn offered_tools(&self) -> Arc<Vec<ToolSpec>> {
        if !self.guard.withholds_any() {
            return Arc::clone(&self.config.tools);
        }
        let offered = self
            .config
            .tools
            .iter()
            .filter(|tool| !self.guard.withholds(&tool.name));
        Arc::new(offered.cloned().collect())
    }

    fn reply(&mut self, cx: &mut Cx<'_>, reply: Reply) {
        if self.is_summarising() {
            return self.summary_replied(cx, reply);
        }
        if reply.usage.is_some_and(|it| it.input > 0) {
            self.spent.note_density(self.spent.counted_usage(&reply));
        }
        self.note_fit();
        self.count_usage(cx, &reply);
        self.last_response = reply.response.clone();
        let may_pause = self.finalising.is_none() && self.pauses < PAUSES_MAX;
        let pauses = std::mem::take(&mut self.pauses);
        match judge(reply, self.config.profile.empty_reply, may_pause) {
            UsableReply::Paused(candidate) => {
                self.pauses = pauses + 1;
                self.show_text(cx, &candidate);
                self.last_finish = candidate.finish_reason;
                self.push_candidate(candidate);
                self.next_step(cx);
            }
            UsableReply::Calls(candidate) => {
                self.show_text(cx, &candidate);
                self.last_finish = candidate.finish_reason;
                self.begin_batch(cx, candidate);
            }
            UsableReply::Answer(candidate) => self.answer(cx, candidate),
            UsableReply::Refused(candidate) => {
                self.show_text(cx, &candidate);
                self.last_finish = candidate.finish_reason;
                let text = match candidate.refusal() {
                    refusal if refusal.is_empty() => candidate.text(),
                    refusal => refusal,
                };
                self.push_candidate(candidate);
                let ending = match text.trim().is_empty() {
                    true => Ending::stopped(StopReason::Refused).because(refused_without_words()),
                    false => Ending::refused(text),
                };
                self.finish(cx, ending);
            }
            UsableReply::Unusable(problem) => self.unusable(cx, problem),
        }
    }

    pub(super) fn count_usage(&mut self, cx: &mut Cx<'_>, reply: &Reply) {
        let usage = self.spent.counted_usage(reply);
        let cost = self.spent.note_usage(usage);
        let cost_usd = cost.map(rondo_types::NanoUsd::usd);
        cx.emit(EventBody::of_usage(usage, cost_usd));
    }

    fn show_text(&mut self, cx: &mut Cx<'_>, candidate: &Candidate) {
        self.emit_text(cx, candidate);
        self.remember_text(candidate);
    }

    /// A reply that was not streamed is one delta; a streamed one was shown as it came.
    fn emit_text(&self, cx: &mut Cx<'_>, candidate: &Candidate) {
        if self.model().streaming {
            return;
        }
        let text = candidate.text();
        if !text.is_empty() {
            cx.emit(EventBody::TextDelta { text });
        }
    }

    fn remember_text(&mut self, candidate: &Candidate) {
        let text = candidate.text();
        if !text.trim().is_empty() {
            self.last_text = text;
        }
    }

    fn answer(&mut self, cx: &mut Cx<'_>, candidate: Candidate) {
        let text = match self.checked(cx, candidate.text()) {
            Ok(text) => text,
            // The last answer is better than none.
            Err(_) if self.finalising.is_some() => candidate.text(),
            Err(problem) => {
                self.last_finish = candidate.finish_reason;
                self.push_candidate(candidate);
                return self.unusable(cx, Problem::of_answer(problem));
            }
        };
        let Some(candidate) = self.without_written_call(cx, candidate, &text) else {
            return;
        };
        self.emit_text(cx, &candidate);
        if !self.steering.is_empty() {
            self.remember_text(&candidate);
        }
        self.last_finish = candidate.finish_reason;
        self.push_candidate(candidate);
        // If no ordinary step is left, the answer that is there counts more.
        if !self.steering.is_empty() && self.allowance(cx.at) == NextRequest::Step {
            return self.next_step(cx);
        }
        let ending = match self.finalising {
            Some(reason) => Ending::final_answer(reason, text),
            None => Ending::complete(text),
        };
        self.finish(cx, ending);
    }

    /// Refuses an answer that holds a call which the model wrote as text, as long as the model may be asked again, and
    /// returns any other. Afterwards it counts as the answer, and a warning says so.
    fn without_written_call(
        &mut self,
        cx: &mut Cx<'_>,
        candidate: Candidate,
        text: &str,
    ) -> Option<Candidate> {
        let Some(mark) = written_call(text) else {
            return Some(candidate);
        };
        let problem = format!("it holds a tool call that is written as text (`{mark}`)");
        let can_call = self.finalising.is_none() && !self.offered_tools().is_empty();
        if can_call && self.invalid_used < self.config.profile.limits.invalid_retries {
            self.last_finish = candidate.finish_reason;
            self.push_candidate(candidate);
            self.unusable(cx, Problem::new(problem));
            return None;
        }
        let text = format!("the reply may not be an answer: {problem}");
        cx.emit(EventBody::Warning { text });
        Some(candidate)
    }

    fn checked(&self, cx: &mut Cx<'_>, text: String) -> Result<String, String> {
        let text = cx.arguments.check_answer(text)?;
        if self.finalising.is_none()
            && let Err(problem) = cx.arguments.refuse_answer(&text)
        {
            let refused = problem.clone();
            cx.record(RecordBody::AnswerRefused { problem: refused });
            return Err(problem);
        }
        Ok(text)
    }

    /// Adds the model's message as it came. Nothing is added for a reply without parts, since no
    /// provider takes an empty message back.
    pub(super) fn push_candidate(&mut self, candidate: Candidate) {
        if !candidate.parts.is_empty() {
            let origin = self.model().origin.clone();
            self.push(candidate.into_message(Some(origin)));
        }
    }

    /// Spends one of the shared corrective requests, or gives up.
    pub(super) fn unusable(&mut self, cx: &mut Cx<'_>, problem: Problem) {
        cx.emit(EventBody::ReplyRejected {
            reason: problem.text.clone(),
        });
        if let Some(reason) = self.finalising {
            return self.finish(cx, Ending::stopped(reason));
        }
        let retries = self.config.profile.limits.invalid_retries;
        // A model that said all beside its last call may have nothing to add. A profile with one corrective request, as that
        // of questions over a Python session, promises what was found instead.
        if problem.is_empty
            && (1..retries).contains(&self.invalid_used)
            && let Some(text) = self.said_beside_calls()
            && let Ok(text) = self.checked(cx, text)
        {
            return self.finish(cx, Ending::complete(text));
        }
        if self.invalid_used >= retries {
            let reason = if problem.blocked {
                StopReason::Refused
            } else {
                StopReason::InvalidResponse
            };
            let ending = match problem.error {
                Some(error) => Ending::stopped(reason).because(error),
                None if problem.is_of_answer => Ending::stopped(reason).refusing(problem.text),
                None => Ending::stopped(reason),
            };
            return self.finish(cx, ending);
        }
        self.invalid_used += 1;
        let text = self
            .config
            .profile
            .texts
            .corrective
            .replace("{problem}", &problem.text);
        self.add(cx, Message::synthetic_user(text));
        self.next_step(cx);
    }

    /// Returns the model's text beside its latest calls, if those are of this turn.
    fn said_beside_calls(&self) -> Option<String> {
        let is_of_turn = |message: &&Arc<Message>| message.role != Role::User || message.synthetic;
        let mut messages = self.transcript.iter().rev().take_while(is_of_turn);
        let latest = messages.find(|message| message.role == Role::Assistant)?;
        let text = latest.text();
        let is_beside_calls = latest.tool_calls().next().is_some();
        (is_beside_calls && !text.trim().is_empty()).then_some(text)
    }

    /// Continues after the results of a batch were committed.
    pub(super) fn after_batch(&mut self, cx: &mut Cx<'_>) {
        match self.guard.take() {
            Measure::None => {}
            Measure::Nudge | Measure::Withhold => {
                let text = super::guard::nudge_text(&self.question());
                self.add(cx, Message::synthetic_user(text));
            }
            Measure::Stop => return self.stop_early(cx, StopReason::NoProgress),
        }
        self.next_step(cx);
    }

    /// Ends the turn for a reason, by the last tool-free request if one is held back.
    pub(super) fn stop_early(&mut self, cx: &mut Cx<'_>, reason: StopReason) {
        if self.cancelled {
            return self.finish(cx, Ending::stopped(StopReason::Cancelled));
        }
        let can_ask = self.config.profile.limits.reserve_final
            && self.finalising.is_none()
            && !matches!(self.allowance(cx.at), NextRequest::Nothing(_));
        if !can_ask {
            return self.finish(cx, Ending::stopped(reason));
        }
        self.begin_final(cx, reason);
        self.next_step(cx);
    }

    /// Latest text of the user.
    fn question(&self) -> String {
        let said = |message: &&Arc<Message>| message.role == Role::User && !message.synthetic;
        self.transcript
            .iter()
            .rev()
            .find(said)
            .map(|message| message.text())
            .unwrap_or_default()
    }

    /// Takes back the steering messages that were not taken into the transcript yet.
    #[must_use]
    pub fn release_steering(&mut self) -> Vec<Message> {
        std::mem::take(&mut self.steering)
    }

    /// Returns whether one more steering message would be kept.
    #[must_use]
    pub fn takes_steering(&self) -> bool {
        self.steering.len() < STEERING_MAX
    }

    fn steer(&mut self, message: Message) {
        if self.takes_steering() {
            self.steering.push(message);
        }
    }

    fn absorb_steering(&mut self, cx: &mut Cx<'_>) {
        for message in std::mem::take(&mut self.steering) {
            let media = message.parts.iter().filter_map(|part| match part {
                Part::Media(media) => Some(media.info()),
                _ => None,
            });
            cx.emit(EventBody::Steered {
                text: message.text(),
                media: media.collect(),
            });
            self.push(message);
        }
    }

    fn cancel(&mut self, cx: &mut Cx<'_>) {
        if self.cancelled {
            return;
        }
        self.cancelled = true;
        match &self.phase {
            Phase::Held(_) => {
                self.cancel_held(cx);
                cx.out.push(Action::Abort);
            }
            // The ends of what runs are still awaited: they carry what was found.
            Phase::AwaitingReply => cx.out.push(Action::Abort),
            Phase::Batch(batch) if batch.is_running() => cx.out.push(Action::Abort),
            Phase::Idle | Phase::AwaitingRetry | Phase::Batch(_) => {
                cx.out.push(Action::Abort);
                self.finish(cx, Ending::stopped(StopReason::Cancelled));
            }
            Phase::Done => {}
        }
    }

    fn fault(&mut self, cx: &mut Cx<'_>, error: rondo_types::ModelError) {
        cx.out.push(Action::Abort);
        self.finish(cx, Ending::failed(error));
    }

    /// Tells the end of the step, once.
    pub(super) fn step_finished(&mut self, cx: &mut Cx<'_>) {
        if std::mem::take(&mut self.step_open) {
            let finish_reason = self.last_finish.map(|reason| reason.as_str().to_owned());
            let ResponseName { id, model } = std::mem::take(&mut self.last_response);
            cx.emit(EventBody::StepFinished {
                step: self.spent.steps,
                finish_reason,
                response_id: id,
                response_model: model,
            });
        }
    }
}

/// Gives the calls of a candidate their ids.
pub(crate) fn assign_ids(candidate: &mut Candidate, turn: u32, step: u32) {
    let calls = candidate.parts.iter_mut().filter_map(|part| match part {
        Part::ToolCall(call) => Some(call),
        _ => None,
    });
    for (index, call) in calls.enumerate() {
        let index = u32::try_from(index).unwrap_or(u32::MAX);
        call.id = rondo_types::CallId::generated(turn, step, index);
    }
}

fn too_long() -> ModelError {
    let mib = MESSAGE_BYTES_MAX >> 20;
    ModelError::new(
        ErrorClass::TooLarge,
        format!(
            "the conversation has more than {mib} MiB, more than any model reads; compact it, or start a new session"
        ),
    )
}

fn refused_without_words() -> ModelError {
    ModelError::new(
        ErrorClass::ContentFilter,
        "the model refused and did not say why",
    )
}
