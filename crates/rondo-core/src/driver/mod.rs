//! The only loop that awaits: it feeds a [`TurnMachine`] and does what it says.
//!
//! Everything a turn waits for becomes one input; the machine decides. Before each effect (a
//! model request, a tool call, a question) all that happened so far is appended to the journal.
//!
//! # Layout
//! - `alarm`: a timer for a limit that moves.
//! - `ask`: questions about calls and of running calls.
//! - `intercept`: the replies of interceptors about calls, results and steps.
//! - `budgets`: reservations for a request before it is sent.
//! - `equip`: tools that come and go between two steps.
//! - `judge`: the gate's verdict on one call, and on what a person made of it.
//! - `model_work`: one model request with its timers.
//! - `request`: the checks of a request before it is sent.
//! - `resume`: how a turn that was cut off continues, from its records.
//! - `task_end`: how work beside the loop ends.
//! - `tool_work`: one tool call with its timeout and its end.
//! - `spans`: the log of a turn.
//! - `record_batch`: records that are written to the journal, and when.
//! - `close`: the end of a parked turn that this version cannot drive again.
//! - `control`: the handle to cancel and steer a turn.
//! - `park`: how a turn lets go while its questions wait for an answer.

mod alarm;
mod ask;
mod budgets;
mod close;
mod control;
mod equip;
mod intercept;
mod judge;
mod model_work;
mod park;
mod record_batch;
mod request;
mod resume;
mod setup;
mod spans;
mod task_end;
mod tool_work;

#[cfg(test)]
mod tests;

pub use control::{TurnControl, TurnHandle, control};
pub use park::{ParkedTurn, TurnEnd};
pub use resume::{ResumeError, resume_turn};
pub(crate) use resume::{began_with, catalog_of};

use crate::catalog::{AnswerCheck, Catalog};
use crate::clock::Clock;
use crate::events::EventSender;
use crate::machine::{Action, Input, PlannedCall, TurnConfig, TurnMachine};
use crate::observe::Moment;
use crate::outside_text::{self, OutsideText};
use crate::ports::{
    Approval, Approver, Budgets, Commit, Gate, GateRequest, Interceptor, Journal, Model,
    OneAtATime, ToolSource, Verdict,
};
use crate::toolbox::Toolbox;
use alarm::Alarm;
use futures_util::FutureExt as _;
use judge::Judge;
use model_work::ModelWork;
use record_batch::RecordBatch;
use request::not_sent;
use rondo_types::{
    CallId, ErrorClass, EventBody, Message, ModelError, Outcome, Profile, Question, ResultEvent,
    Role, SessionId, StopReason, TimeMs, ToolErrorCode, ToolOutcome, ToolSpec, Transcript, TurnId,
};
use serde_json::Value;
use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use task_end::{RunningAsks, TaskEnd, next_ask};
use tokio::task::JoinSet;
use tokio::time::{sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

/// Everything a turn runs with.
pub struct TurnSetup {
    /// The session.
    pub session: SessionId,
    /// The turn.
    pub turn: TurnId,
    /// The turn's place in its session, from 1.
    pub turn_number: u32,
    /// Model to ask.
    pub model: Arc<dyn Model>,
    /// The fallback models, in order. Each takes over for the rest of the turn when the one before it fails.
    pub fallbacks: Vec<Arc<dyn Model>>,
    /// Tools that it may call.
    pub tools: Toolbox,
    /// Sources of further tools, which may change between two steps.
    pub tool_sources: Vec<Arc<dyn ToolSource>>,
    /// Gate that judges each call.
    pub gate: Arc<dyn Gate>,
    /// Answers when the gate asks for approval.
    pub approver: Arc<dyn Approver>,
    /// Interceptors, which may deny or change calls, results and steps, in order.
    pub interceptors: Vec<Arc<dyn Interceptor>>,
    /// Budgets that the turn shares with others. Each is asked before each request; one that refuses is enough.
    pub budgets: Vec<Arc<dyn Budgets>>,
    /// Journal in which everything is recorded first.
    pub journal: Arc<dyn Journal>,
    /// Limits, rendering and texts; shared, so that many turns hold one.
    pub profile: Arc<Profile>,
    /// The ordered blocks of the system prompt.
    pub system: Arc<Vec<String>>,
    /// The JSON Schema that the answer must fit.
    pub response_schema: Option<Value>,
    /// Checks answers that fit the schema; `None` if the schema says it all.
    pub answer_check: Option<AnswerCheck>,
    /// Effects that become durable together with the turn's first records, such as taking its message out of a
    /// mailbox.
    pub opening: Commit,
    /// Seeds the jitter of retries.
    pub seed: u64,
    /// Set if the conversation has text from outside; the turn adds its own.
    pub outside_text: OutsideText,
}

impl TurnSetup {
    /// Returns the model that a [`ModelCall`] names.
    fn model_at(&self, index: usize) -> &Arc<dyn Model> {
        let fallback = index.checked_sub(1);
        fallback
            .and_then(|index| self.fallbacks.get(index))
            .unwrap_or(&self.model)
    }
}

/// Runs one turn to its outcome, or until it waits for answers that come later.
///
/// Every turn ends, within its limits, and sends `init` first and `result` last, whatever happens;
/// failures are outcomes too. The time that a person takes to
/// answer counts against no limit but a week for each answer. If the approver replies [`QuestionReply::Later`](crate::QuestionReply::Later) it is parked instead, and sends
/// `parked` last. Calls of `history` that lack a result get one first: where `input` is
/// [`Message::tool_results`], the one that it holds. Results of calls that the history does not end
/// with fail the turn, if the message has no others.
///
/// # Cancel safety
/// Dropping the future ends the request and the tool calls under way without waiting for them and
/// without an outcome; use [`TurnHandle::cancel`] to stop a turn.
pub fn run_turn(
    setup: TurnSetup,
    history: Transcript,
    input: impl Into<Arc<Message>>,
    events: EventSender,
    control: TurnControl,
) -> impl Future<Output = TurnEnd> {
    let input = input.into();
    // Not an `async fn`, which would hold what it is given beside the driver that it goes into.
    let mut driver = Driver::new(setup, Clock::system(), events, control);
    let span = spans::turn(&driver.setup);
    let answers_calls = input.role == Role::Tool;
    let (history, input) = crate::pairing::paired_with(history, input);
    if answers_calls && input.results().next().is_none() {
        driver.ready.push_back(no_such_call());
    }
    driver.begin(history, input).instrument(span)
}

struct Driver {
    machine: TurnMachine,
    setup: TurnSetup,
    /// Sources of the tools of `setup`.
    equipment: equip::Equipment,
    catalog: Catalog,
    clock: Clock,
    /// When the input under way came: the time of all that it leads to, so that a replay of the
    /// same inputs tells the same.
    at: TimeMs,
    events: EventSender,
    control: TurnControl,
    batch: RecordBatch,
    /// Inputs that are known without waiting.
    ready: VecDeque<Input>,
    model: Option<ModelWork>,
    /// For the limits of `model`; stays set for the next request.
    alarm: Alarm,
    wait: Option<TimeMs>,
    /// Judgments, questions and tool calls under way.
    tasks: JoinSet<TaskEnd>,
    tasks_cancel: CancellationToken,
    /// Questions of running calls, once one could ask.
    asks: Option<RunningAsks>,
    /// Questions that will be answered later.
    questions: Vec<Question>,
    /// Reservations with the budgets, to which the use is reported.
    reservations: budgets::Reservations,
    /// Set if the turn continues after a crash and nothing has come of that yet: if no model can be reached, nothing is
    /// written of it.
    is_resumed_idle: bool,
    /// Calls under way whose errors may hold text from outside.
    reaching_outside: HashSet<CallId>,
}

impl Driver {
    /// Boxed, since a future that holds it by value would hold it once for each function it is
    /// handed through.
    fn new(
        mut setup: TurnSetup,
        clock: Clock,
        events: EventSender,
        control: TurnControl,
    ) -> Box<Self> {
        let equipment = equip::Equipment::begin(&mut setup);
        setup.approver = Arc::new(OneAtATime::new(setup.approver));
        let (catalog, broken) = catalog(&setup);
        // Inputs are large, and most turns never have two of them ready.
        let mut ready = VecDeque::with_capacity(1);
        ready.extend(broken.map(|error| Input::Fault { error }));
        Box::new(Self {
            machine: TurnMachine::new(turn_config(&setup)),
            ready,
            batch: RecordBatch::new(&setup),
            setup,
            equipment,
            catalog,
            at: clock.now(),
            clock,
            events,
            control,
            model: None,
            alarm: Alarm::default(),
            wait: None,
            tasks: JoinSet::new(),
            tasks_cancel: CancellationToken::new(),
            asks: None,
            questions: Vec::new(),
            reservations: budgets::Reservations::default(),
            is_resumed_idle: false,
            reaching_outside: HashSet::new(),
        })
    }

    async fn begin(mut self: Box<Self>, history: Transcript, message: Arc<Message>) -> TurnEnd {
        self.events.observe(&Moment::Begun {
            setup: &self.setup,
            message: &message,
        });
        self.emit(EventBody::Init(Box::new(
            self.machine.config().init_event(),
        )));
        let setup = &self.setup;
        self.batch.begin(self.at, setup, &history, &message);
        self.note_message(&message);
        self.ready.push_front(Input::Begin { history, message });
        self.run().await
    }

    /// Takes inputs until the turn is over, or nothing is left but questions that wait.
    ///
    /// A turn spends its life waiting for one, in memory that is as large as the largest thing it awaits
    /// here: what is awaited briefly is boxed, here and below.
    async fn run(mut self: Box<Self>) -> TurnEnd {
        while let Some(input) = self.awaited().await {
            if let Some(outcome) = self.take(input).await {
                return Box::pin(self.end(outcome)).await;
            }
        }
        Box::pin(self.park()).await
    }

    /// Waits for an input, which sets the time of what follows from it; `None` if the turn must be parked.
    async fn awaited(&mut self) -> Option<Input> {
        let input = loop {
            if self.is_to_be_parked() {
                return None;
            }
            match self.next_end().await {
                TaskEnd::Input(input) => break input,
                TaskEnd::Given {
                    input,
                    answer,
                    mail,
                } => {
                    self.note_answered(self.clock.now(), answer, mail);
                    break input;
                }
                TaskEnd::Rewritten { what, input } => {
                    self.ready.push_front(input);
                    break Input::Intercepted { what };
                }
                TaskEnd::Settled => {}
                TaskEnd::Waiting(waiting) => self.wait_for_child(waiting),
                TaskEnd::Funded(funded) => {
                    if let Some(input) = self.funded(funded) {
                        break input;
                    }
                }
                TaskEnd::AskAgain(ask) => Box::pin(self.put(*ask)).await,
                TaskEnd::AskBudget(funding, question, reason) => {
                    Box::pin(self.put_budget(*funding, question, reason)).await;
                }
                TaskEnd::AskRunning(ask) => Box::pin(self.put_of_running(*ask)).await,
                TaskEnd::AnsweredRunning {
                    answer,
                    mail,
                    reply,
                } => Box::pin(self.answered_running((answer, mail), reply)).await,
                TaskEnd::Later(question) => {
                    self.questions.push(question);
                    if self.tasks_cancel.is_cancelled() {
                        self.deny_questions(CANCELLED);
                    }
                }
            }
        };
        self.at = match input {
            Input::BudgetSpent { .. } => self.held_since(),
            // Work that began has reported it.
            Input::Begin { .. } => self.at,
            _ => self.clock.now(),
        };
        Some(input)
    }

    /// Takes one input and does what the machine says.
    async fn take(&mut self, input: Input) -> Option<Outcome> {
        if matches!(input, Input::RequestPassed { .. }) {
            return Box::pin(self.decide(input)).await;
        }
        spans::note_decision(&input);
        self.events.observe(&Moment::Input(&input));
        let is_cancel = input == Input::Cancel;
        self.is_resumed_idle &= matches!(
            input,
            Input::Time
                | Input::InDoubt { .. }
                | Input::AskAgain { .. }
                | Input::ReplyFailed {
                    received: false,
                    ..
                }
        );
        self.batch.note_input(self.at, self.machine.steps(), &input);
        if let Input::ToolFinished {
            call_id, outcome, ..
        } = &input
        {
            self.note_outside_text(call_id, outcome);
        }
        let is_end = matches!(input, Input::Reply { .. } | Input::ReplyFailed { .. });
        let (machine, catalog) = (&mut self.machine, &self.catalog);
        let actions = self.control.handle(machine, self.at, input, catalog);
        if is_end {
            self.settle_request();
        }
        for action in actions {
            if let Some(outcome) = self.act(action).await {
                return Some(outcome);
            }
        }
        // Stopped tools stay stopped, also when the process ends while the tools do.
        if is_cancel && self.ready.is_empty() {
            Box::pin(self.flush()).await;
        }
        None
    }

    fn note_message(&self, message: &Message) {
        if message.from_outside {
            self.setup.outside_text.note();
        }
    }

    fn note_outside_text(&mut self, call_id: &CallId, outcome: &ToolOutcome) {
        let reaches_outside = self.reaching_outside.remove(call_id);
        if outside_text::is_from_outside(outcome, reaches_outside) {
            self.setup.outside_text.note();
        }
    }

    fn emit(&self, body: EventBody) {
        self.events.send(self.at, body);
    }

    async fn act(&mut self, action: Action) -> Option<Outcome> {
        match action {
            Action::Emit(body) => {
                spans::note_event(&body);
                if matches!(body, EventBody::Steered { .. })
                    && let Some((message, row)) = self.control.next_said()
                {
                    self.note_message(&message);
                    self.batch.note_steered(self.at, message, row);
                }
                self.emit(body);
            }
            Action::Record(body) => {
                self.batch.note_change(self.at, self.machine.steps(), *body);
            }
            Action::CheckRequest(check) => return Box::pin(self.check_request(check)).await,
            Action::CallModel(call) => Box::pin(self.send(call)).await,
            Action::EndRequest { error, .. } => self.ready.push_back(not_sent(error)),
            Action::CheckGate(calls) => self.check_gate(calls),
            Action::Ask {
                call,
                prompt,
                reasons,
                is_repeat,
            } => {
                // A turn that waits for a person is woken by nothing else.
                self.alarm = Alarm::default();
                Box::pin(self.ask(*call, (prompt, reasons), !is_repeat)).await;
            }
            Action::EndCall { call, outcome } => self.ready.push_back(Input::ToolFinished {
                call_id: call.call_id,
                outcome,
                duration_ms: 0,
            }),
            Action::RunTools(calls) => Box::pin(self.run_tools(calls)).await,
            Action::JudgeAgain(calls) => return Box::pin(self.judge_again(calls)).await,
            Action::AskAgain {
                call,
                prompt,
                reasons,
                has_begun,
            } => self.ready.push_back(Input::AskAgain {
                call_id: call.call_id,
                prompt,
                reasons,
                has_begun,
            }),
            Action::Answer { call_id, approval } => {
                self.ready.push_back(Input::Approval { call_id, approval });
            }
            Action::Settle {
                call_id,
                decision,
                still_running,
            } => {
                let settled = Input::InDoubt {
                    call_id,
                    decision,
                    still_running,
                };
                return Box::pin(self.take(settled)).await;
            }
            Action::RepeatCall(call) => self.start_tool(*call),
            Action::Wait { until } => self.wait = Some(until),
            Action::Abort => self.abort(),
            Action::Done(outcome) => return Some(*outcome),
        }
        None
    }

    fn check_gate(&mut self, calls: Vec<PlannedCall>) {
        for call in calls {
            let Some(spec) = self.setup.tools.spec(&call.name) else {
                let reason = format!("there is no tool `{}`", call.name);
                let verdict = Verdict::Deny { reason };
                self.ready.push_back(Input::Gate {
                    call_id: call.call_id,
                    verdict,
                });
                continue;
            };
            let call_id = call.call_id.clone();
            let request = self.gate_request(spec, &call);
            if !self.setup.interceptors.is_empty() && !self.machine.is_intercepted(&call_id) {
                let interceptors = self.interceptors();
                let asked = async move {
                    let what = interceptors.before_tool(request).await;
                    TaskEnd::Input(Input::Intercepted { what })
                };
                self.tasks.spawn(asked.in_current_span());
                continue;
            }
            let judge = self.judge();
            let judging = async move {
                let verdict = judge.verdict(request).await;
                TaskEnd::Input(Input::Gate { call_id, verdict })
            };
            self.tasks.spawn(judging.in_current_span());
        }
    }

    fn gate_request(&self, spec: Arc<ToolSpec>, call: &PlannedCall) -> GateRequest {
        GateRequest {
            session: self.setup.session.clone(),
            turn: self.setup.turn.clone(),
            step: self.machine.steps(),
            call_id: call.call_id.clone(),
            spec,
            arguments: call.arguments.clone(),
            has_outside_text: self.setup.outside_text.is_present(),
        }
    }

    fn judge(&self) -> Judge {
        let now = self.clock.now();
        let left = self.machine.work_deadline().map(|end| end.since(now));
        Judge::new(
            Arc::clone(&self.setup.gate),
            self.tasks_cancel.clone(),
            left,
        )
    }

    /// Records the beginning of calls, and runs them.
    async fn run_tools(&mut self, mut calls: Vec<PlannedCall>) {
        for call in &mut calls {
            call.recovery = resume::recovery(&self.setup.tools, call);
        }
        let setup = &self.setup;
        let evidence =
            resume::evidence(&setup.tools, &setup.session, &calls, &self.patience()).await;
        for (call, evidence) in calls.iter().zip(evidence) {
            let key = tool_work::idempotency_key(&self.setup.session, &call.call_id);
            let step = self.machine.steps();
            self.batch
                .note_tool_started(self.at, step, call, key, evidence);
        }
        if !self.flush().await {
            return;
        }
        for call in calls {
            self.start_tool(call);
        }
    }

    /// Runs a call whose beginning is recorded.
    fn start_tool(&mut self, call: PlannedCall) {
        let Some(tool) = self.setup.tools.get(&call.name) else {
            let text = format!("the tool `{}` no longer exists", call.name);
            return self.ended(call, ToolErrorCode::NotRun, &text);
        };
        self.events.observe(&Moment::ToolStarted(&call));
        let spec = self.setup.tools.spec(&call.name);
        if spec.is_some_and(|spec| outside_text::reaches_outside(&spec)) {
            self.reaching_outside.insert(call.call_id.clone());
        }
        let span = spans::tool_call(&call);
        if self.setup.interceptors.is_empty() {
            let work = self.tool_work(tool, call).run().instrument(span);
            let work = work.map(|ended| ended.map_or_else(TaskEnd::Waiting, TaskEnd::Input));
            self.tasks.spawn(work.in_current_span());
            return;
        }
        let (tool_name, arguments) = (call.name.clone(), call.arguments.clone());
        let work = self.tool_work(tool, call).run().instrument(span);
        let interceptors = self.interceptors();
        let work = async move {
            match work.await {
                Ok(input) => interceptors.after(input, tool_name, arguments).await,
                Err(waiting) => TaskEnd::Waiting(waiting),
            }
        };
        self.tasks.spawn(work.in_current_span());
    }

    /// Ends what runs. The model's end is known at once; tools report theirs.
    fn abort(&mut self) {
        self.tasks_cancel.cancel();
        self.wait = None;
        self.deny_questions(CANCELLED);
        if let Some(work) = self.model.take() {
            self.batch.note_told(work.told());
            self.ready.push_back(work.cancelled());
        }
    }

    async fn next_end(&mut self) -> TaskEnd {
        if let Some(input) = self.ready.pop_front() {
            return TaskEnd::Input(input);
        }
        let wait = self.wait.map(|until| self.clock.instant(until));
        let Self {
            control,
            model,
            alarm,
            tasks,
            asks,
            events,
            clock,
            ..
        } = self;
        let (end, is_model, is_wait) = tokio::select! {
            biased;
            () = control.cancelled() => (TaskEnd::Input(Input::Cancel), false, false),
            input = model_work::next(model.as_mut(), alarm, events, clock) => (TaskEnd::Input(input), true, false),
            ask = next_ask(asks) => (TaskEnd::AskRunning(ask), false, false),
            Some(ended) = tasks.join_next() => {
                (ended.unwrap_or_else(|_| TaskEnd::Input(lost_task())), false, false)
            }
            () = sleep_until_some(wait) => (TaskEnd::Input(Input::Time), false, true),
        };
        if is_model && let Some(work) = self.model.take() {
            self.batch.note_told(work.told());
        }
        if is_wait {
            self.wait = None;
        }
        end
    }

    /// The journal is waited for within the turn's time, and a little longer: what it does not get
    /// is lost.
    fn flush_limit(&self) -> Duration {
        if self.machine.is_waiting() {
            return Duration::MAX;
        }
        let left = self
            .machine
            .deadline()
            .map(|end| end.since(self.clock.now()));
        let grace = self.setup.profile.limits.cancel_grace;
        left.map_or(Duration::MAX, |left| left.saturating_add(grace))
    }

    /// Makes all that happened durable; a journal that fails ends the turn before the effect.
    async fn flush(&mut self) -> bool {
        match self.batch.flush(self.flush_limit()).await {
            Ok(()) => true,
            Err(error) => {
                let error = error.into_turn_error();
                self.ready.push_back(Input::Fault { error });
                false
            }
        }
    }

    async fn end(mut self: Box<Self>, mut outcome: Outcome) -> TurnEnd {
        self.tasks_cancel.cancel();
        // Each task ends within its own grace period; this bound is for one that does not.
        let grace = self.setup.profile.limits.cancel_grace.saturating_mul(2);
        let teardown = async { while self.tasks.join_next().await.is_some() {} };
        if timeout(grace, teardown).await.is_err() {
            tracing::warn!(turn = %self.setup.turn, "abandoned work that did not end");
        }
        self.settle_the_rest().await;
        // Last in time too: work that ended meanwhile has reported it.
        self.at = self.clock.now();
        if self.is_resumed_idle && outcome.stop_reason == StopReason::Error {
            // No model could be reached: the turn stays cut off, and may be resumed later.
            self.batch.forget_unwritten();
        } else {
            let process = self.control.process_end(&outcome);
            self.batch.note_final(self.at, &outcome, process);
            if let Err(error) = self.batch.flush(self.flush_limit()).await {
                outcome.error.get_or_insert(error.into_turn_error());
            }
        }
        if outcome.stop_reason == StopReason::MaxSteps {
            tracing::warn!(
                iteration = outcome.steps,
                session = %self.setup.session,
                "the turn used all its steps: the model may be in an endless loop"
            );
        }
        tracing::info!(
            iteration = outcome.steps,
            session = %self.setup.session,
            stop_reason = %outcome.stop_reason,
            "turn finished"
        );
        let result = Box::new(ResultEvent::from_outcome(&outcome));
        self.emit(EventBody::Result(result));
        self.events.observe(&Moment::Ended(&outcome));
        intercept::tell_end(&self.setup.interceptors, &outcome).await;
        TurnEnd::Done(Box::new(outcome))
    }
}

/// Message to a call that was not allowed because the turn was stopped.
const CANCELLED: &str = "the turn was cancelled";

fn turn_config(setup: &TurnSetup) -> TurnConfig {
    TurnConfig {
        session: setup.session.clone(),
        turn: setup.turn.clone(),
        turn_number: setup.turn_number,
        model: setup.model.info(),
        fallbacks: setup.fallbacks.iter().map(|model| model.info()).collect(),
        profile: Arc::clone(&setup.profile),
        system: setup.system.clone(),
        tools: setup.tools.specs(),
        response_schema: setup.response_schema.clone(),
        seed: setup.seed,
    }
}

/// Returns the catalog that checks arguments and the answer, and the defect of the answer's schema.
fn catalog(setup: &TurnSetup) -> (Catalog, Option<ModelError>) {
    match Catalog::new(setup.tools.schemas(), setup.response_schema.as_ref()) {
        Ok(catalog) => (catalog.with_check(setup.answer_check.clone()), None),
        Err(error) => {
            let error = ModelError::new(
                ErrorClass::BadRequest,
                format!("the schema of the answer cannot be used: {error}"),
            );
            (Catalog::without_answer(setup.tools.schemas()), Some(error))
        }
    }
}

fn not_approved(reason: &str) -> Approval {
    Approval::Denied {
        reason: reason.to_owned(),
    }
}

fn no_such_call() -> Input {
    Input::Fault {
        error: ModelError::new(
            ErrorClass::BadRequest,
            "the message holds tool results, but the history does not end with their calls",
        ),
    }
}

/// A task always returns its input; it can only be lost when the runtime shuts down.
fn lost_task() -> Input {
    Input::Fault {
        error: ModelError::new(ErrorClass::Internal, "a task of the turn was lost"),
    }
}

fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

async fn sleep_until_some(at: Option<tokio::time::Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// Turns a panic of foreign code into its message.
fn guarded<T>(work: impl Future<Output = T>) -> impl Future<Output = Result<T, String>> {
    std::panic::AssertUnwindSafe(work)
        .catch_unwind()
        .map(|ended| ended.map_err(|panic| panic_text(&*panic)))
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .map(ToString::to_string)
        .or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "it panicked".to_owned())
}
