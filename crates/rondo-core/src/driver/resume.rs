//! Resumes a turn that a crash cut off: reads its records back and settles the calls in doubt.

use super::budgets::Reservations;
use super::close::{self, Closing};
use super::request::not_sent;
use super::tool_work::{idempotency_key, marked};
use super::{Driver, TurnControl, TurnEnd, TurnSetup, guarded, millis, spans};
use crate::catalog::{Catalog, Schemas};
use crate::clock::Clock;
use crate::events::EventSender;
use crate::machine::{Action, Input, PlannedCall, TurnConfig};
use crate::observe::Moment;
use crate::outside_text::OutsideTextFold;
use crate::ports::{InterruptedCall, Reconciled, Record, RecordBody, Verdict};
use crate::redrive::{OpenEffects, RedriveError, RedrivenTurn, StartedCall, redrive};
use crate::toolbox::Toolbox;
use futures_util::future::join_all;
use rondo_types::{
    CallId, ErrorClass, EventBody, Message, ModelError, ModelInfo, Outcome, Recovery, SessionId,
    TimeMs, ToolErrorCode, ToolOutcome, Transcript,
};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

/// How long a tool may take to say what is known of a call, within the turn's time.
const KNOW_TIMEOUT: Duration = Duration::from_secs(10);

/// How long tools are waited for that are asked what they know.
pub(super) struct Patience {
    limit: Duration,
    cancel: CancellationToken,
}

impl Patience {
    /// Returns the reply, unless it took too long, panicked, or the turn was stopped.
    async fn hear<T>(&self, said: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => None,
            said = timeout(self.limit, guarded(said)) => said.ok()?.ok(),
        }
    }
}

/// Why a turn cannot continue.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ResumeError {
    /// It is over.
    #[error("the turn is over")]
    Finished,
    /// It asks other models than those that are offered here.
    #[error("the turn uses {}, but these models were given: {}", recorded.join(", "), offered.join(", "))]
    OtherModels {
        /// Whom the turn asks, in order, as `provider/model`.
        recorded: Vec<String>,
        /// Models that were given.
        offered: Vec<String>,
    },
    /// Its records lead elsewhere.
    #[error(transparent)]
    Redrive(#[from] RedriveError),
}

/// Continues a turn that was cut off or parked, from its records.
///
/// Recorded events are facts: no recorded reply is requested again and no finished call runs again.
/// A call that was begun and whose end is not recorded is settled by the [`Recovery`] that its tool
/// declares now. No call runs because a record says that it may: the gate of `setup` judges each one
/// again before it runs, and what it asks about is asked again: an answer that was given to a parked turn is the
/// approver's to hand over. The turn runs under what it began
/// with: of `setup`, only the session, the models, the tools' code, the gate, the approver and the
/// journal are looked at. The time when no process worked on it does not count. `records` are those of this turn only, `history` is what came before it.
///
/// A parked turn whose records do not follow from one another here, as those of a later version may, is closed: its
/// open calls get the result `not_run`, or `in_doubt` if they were begun, and it ends with what it has found.
///
/// # Errors
/// When the turn is over, the models of `setup` are not the turn's, or the records of a turn that was cut off do not
/// follow from one another.
///
/// # Cancel safety
/// As [`run_turn`](super::run_turn).
pub async fn resume_turn(
    mut setup: TurnSetup,
    history: Transcript,
    records: &[Record],
    events: EventSender,
    control: TurnControl,
) -> Result<TurnEnd, ResumeError> {
    let config = began_with(&setup.session, records).ok_or(RedriveError::NoMessage)?;
    under_what_it_began(&mut setup, &config)?;
    let mut driver = Driver::new(setup, Clock::system(), events, control);
    if *driver.setup.tools.specs() != *config.tools {
        let check = driver.setup.answer_check.clone();
        driver.catalog = catalog_of(&config).with_check(check);
    }
    let history = crate::pairing::paired(history);
    let began = Arc::clone(&config.tools);
    let redriven = match redrive(config.clone(), &driver.catalog, history.clone(), records) {
        Ok(redriven) => redriven,
        Err(why @ RedriveError::Diverged { .. }) if close::is_parked(records) => {
            let Driver {
                setup,
                events,
                control,
                ..
            } = *driver;
            let closing = Closing {
                config,
                history,
                records,
                message: first_message(records),
                downtime: downtime(records, last_at(records)),
                why,
            };
            return close::close(setup, closing, events, control).await;
        }
        Err(why) => return Err(why.into()),
    };
    driver.equipment.resume();
    if OutsideTextFold::of(records).is_present() {
        driver.setup.outside_text.note();
    }
    let now = redriven.machine.config();
    if now.tools != began {
        let check = driver.setup.answer_check.clone();
        driver.catalog = catalog_of(now).with_check(check);
    }
    driver.reservations = Reservations::recorded(records);
    if redriven.finished {
        return Err(ResumeError::Finished);
    }
    let downtime = downtime(records, redriven.last_at);
    driver.clock = Clock::starting_at(redriven.last_at);
    driver.at = driver.clock.now();
    let span = spans::turn(&driver.setup);
    let message = first_message(records);
    let resumed = driver.resume(redriven, message, millis(downtime));
    Ok(resumed.instrument(span).await)
}

/// Returns the configuration with which a turn began; `None` if its records lack their beginning.
pub(crate) fn began_with(session: &SessionId, records: &[Record]) -> Option<TurnConfig> {
    let [started, environment, ..] = records else {
        return None;
    };
    let RecordBody::TurnStarted {
        profile,
        seed,
        turn_number,
        ..
    } = &started.body
    else {
        return None;
    };
    let RecordBody::TurnEnvironment {
        system,
        tools,
        models,
        response_schema,
    } = &environment.body
    else {
        return None;
    };
    let (model, fallbacks) = models.split_first()?;
    Some(TurnConfig {
        session: session.clone(),
        turn: started.turn.clone(),
        turn_number: *turn_number,
        model: model.clone(),
        fallbacks: fallbacks.to_vec(),
        profile: Arc::clone(profile),
        system: system.clone(),
        tools: Arc::clone(tools),
        response_schema: response_schema.clone(),
        seed: *seed,
    })
}

/// Returns the catalog that prepared the arguments of that turn.
pub(crate) fn catalog_of(config: &TurnConfig) -> Catalog {
    let schemas = Arc::new(Schemas::new(Arc::clone(&config.tools)));
    Catalog::new(Arc::clone(&schemas), config.response_schema.as_ref())
        .unwrap_or_else(|_| Catalog::without_answer(schemas))
}

fn under_what_it_began(setup: &mut TurnSetup, config: &TurnConfig) -> Result<(), ResumeError> {
    let recorded = std::iter::once(&config.model).chain(&config.fallbacks);
    let recorded: Vec<_> = recorded.map(ModelInfo::full_name).collect();
    let offered = std::iter::once(&setup.model).chain(&setup.fallbacks);
    let offered: Vec<_> = offered.map(|model| model.info().full_name()).collect();
    if recorded != offered {
        return Err(ResumeError::OtherModels { recorded, offered });
    }
    setup.turn = config.turn.clone();
    setup.turn_number = config.turn_number;
    setup.profile = Arc::clone(&config.profile);
    setup.system.clone_from(&config.system);
    setup.response_schema.clone_from(&config.response_schema);
    setup.seed = config.seed;
    Ok(())
}

/// Returns how long no process has worked on the turn since its last record. The turn's clock is behind
/// by all downtimes before.
fn downtime(records: &[Record], last_at: TimeMs) -> Duration {
    let before = records.iter().map(|record| match record.body {
        RecordBody::Resumed { downtime_ms } => downtime_ms,
        _ => 0,
    });
    let before = before.fold(0, u64::saturating_add);
    let behind = Clock::system().now().since(last_at);
    behind.saturating_sub(Duration::from_millis(before))
}

fn last_at(records: &[Record]) -> TimeMs {
    let times = records.iter().map(|it| it.at_ms);
    times.max().unwrap_or_default()
}

fn first_message(records: &[Record]) -> Message {
    let said = records.iter().find_map(|record| match &record.body {
        RecordBody::UserMessage { message } => Some(message.clone()),
        _ => None,
    });
    said.unwrap_or_else(|| Message::user(""))
}

/// Returns the recovery that a call's tool declares. A recorded one may be forged.
pub(super) fn recovery(tools: &Toolbox, call: &PlannedCall) -> Recovery {
    let spec = tools.spec(&call.name);
    spec.map_or(Recovery::AtMostOnce, |spec| spec.recovery)
}

/// Asks the tools for what will tell whether their calls were done. A tool that does not say in
/// time, or panics, gives none.
pub(super) async fn evidence(
    tools: &Toolbox,
    session: &SessionId,
    calls: &[PlannedCall],
    patience: &Patience,
) -> Vec<Option<Value>> {
    let asked = calls.iter().map(|call| async {
        if call.recovery != Recovery::Checkable {
            return None;
        }
        let tool = tools.get(&call.name)?;
        let key = idempotency_key(session, &call.call_id);
        let evidence = tool.evidence_of(&key, &call.arguments);
        patience.hear(evidence).await?
    });
    join_all(asked).await
}

impl Driver {
    async fn resume(
        mut self: Box<Self>,
        mut redriven: RedrivenTurn,
        message: Message,
        downtime_ms: u64,
    ) -> TurnEnd {
        let unanswered = redriven.take_unanswered();
        self.machine = redriven.machine;
        self.is_resumed_idle = true;
        self.events.observe(&Moment::Begun {
            setup: &self.setup,
            message: &message,
        });
        self.emit(EventBody::Init(Box::new(
            self.machine.config().init_event(),
        )));
        let step = self.machine.steps();
        for body in redriven.unrecorded {
            self.batch.note_change(self.at, step, body);
        }
        let messages = self.machine.transcript().len();
        self.batch
            .note_resumed(self.at, step, downtime_ms, messages);
        self.emit(EventBody::Resumed { step, downtime_ms });
        self.settle_again();
        let (mut open, started) = (redriven.open, redriven.started);
        open.forget_repeats();
        let resumed = Input::Resumed { unanswered };
        let actions = self.machine.handle(self.at, resumed, &self.catalog);
        match self.reopen(open, &started, actions).await {
            Some(outcome) => self.end(outcome).await,
            None => self.run().await,
        }
    }

    /// Takes up what was open.
    async fn reopen(
        &mut self,
        open: OpenEffects,
        started: &HashMap<CallId, StartedCall>,
        actions: Vec<Action>,
    ) -> Option<Outcome> {
        if let Some(outcome) = open.outcome {
            return Some(*outcome);
        }
        self.wait = open.wait;
        if open.aborted {
            self.tasks_cancel.cancel();
        }
        for ask in open.asks {
            if let Some(outcome) = self.judge_again(vec![ask.call]).await {
                return Some(outcome);
            }
        }
        self.check_gate(open.gates);
        if open.model.is_some() {
            self.ready.push_back(cancelled_request());
        }
        for action in actions {
            if let Some(outcome) = self.act(action).await {
                return Some(outcome);
            }
        }
        let (cut_off, fresh): (Vec<_>, Vec<_>) = open
            .running
            .into_iter()
            .partition(|call| started.contains_key(&call.call_id));
        if let Some(outcome) = self.settle(cut_off, started).await {
            return Some(outcome);
        }
        if open.aborted {
            let not_run = "the turn was cancelled";
            fresh
                .into_iter()
                .for_each(|call| self.ended(call, ToolErrorCode::NotRun, not_run));
        } else if !fresh.is_empty() {
            return self.judge_again(fresh).await;
        }
        None
    }

    /// Returns the verdict of the current gate on a call, and before it that of the current interceptors if no record
    /// holds one of theirs.
    fn verdict(&self, call: &PlannedCall) -> impl Future<Output = Verdict> + Send + use<> {
        let judge = self.judge();
        let spec = self.setup.tools.spec(&call.name);
        let request = spec.map(|spec| self.gate_request(spec, call));
        let missing = format!("the tool `{}` no longer exists", call.name);
        let is_intercepted = self.machine.is_intercepted(&call.call_id);
        let interceptors = (!is_intercepted).then(|| self.interceptors());
        async move {
            let Some(request) = request else {
                return Verdict::Deny { reason: missing };
            };
            if let Some(interceptors) = interceptors
                && let Some(reason) = interceptors.denies(request.clone()).await
            {
                return Verdict::Deny { reason };
            }
            judge.verdict(request).await
        }
    }

    /// Lets the current gate judge those of these calls that only an earlier process has judged.
    pub(super) async fn judge_again(&mut self, calls: Vec<PlannedCall>) -> Option<Outcome> {
        let mut verdicts = Vec::with_capacity(calls.len());
        for call in calls {
            if self.machine.awaits_verdict(&call.call_id) {
                let verdict = self.verdict(&call).await;
                verdicts.push((call.call_id, verdict));
            }
        }
        self.decide(Input::JudgedAgain { verdicts }).await
    }

    /// Asks the tools about the calls that were cut off, has the machine decide what is done about them, and records that
    /// first.
    async fn settle(
        &mut self,
        calls: Vec<PlannedCall>,
        started: &HashMap<CallId, StartedCall>,
    ) -> Option<Outcome> {
        let (tools, patience) = (&self.setup.tools, self.patience());
        let cut_off = calls.into_iter().filter_map(|call| {
            let started = started.get(&call.call_id)?.clone();
            let key = idempotency_key(&self.setup.session, &call.call_id);
            Some(asked_about(tools, call, (started, key), &patience))
        });
        let cut_off = join_all(cut_off).await;
        if cut_off.is_empty() {
            return None;
        }
        for (call, known) in &cut_off {
            let input = Input::CutOff {
                call_id: call.call_id.clone(),
                recovery: call.recovery,
                known: known.clone(),
            };
            if let Some(outcome) = self.decide(input).await {
                return Some(outcome);
            }
        }
        if !self.flush().await {
            return None;
        }
        for (call, known) in cut_off {
            if let Reconciled::Done(outcome) = known {
                self.was_done(call, outcome);
            } else if let Some(outcome) = self.judge_again(vec![call]).await {
                return Some(outcome);
            }
        }
        None
    }

    /// Tools are asked what they know within the turn's time, and until it is stopped.
    pub(super) fn patience(&self) -> Patience {
        let now = self.clock.now();
        let left = self.machine.work_deadline().map(|end| end.since(now));
        Patience {
            limit: left.map_or(KNOW_TIMEOUT, |left| left.min(KNOW_TIMEOUT)),
            cancel: self.control.cancel(),
        }
    }

    /// Takes the end of a call that was cut off as its tool knows it.
    fn was_done(&mut self, call: PlannedCall, outcome: ToolOutcome) {
        let spec = self.setup.tools.spec(&call.name);
        let kind = spec.map(|spec| spec.kind).unwrap_or_default();
        let input = Input::ToolFinished {
            call_id: call.call_id,
            outcome: marked(outcome, kind),
            duration_ms: 0,
        };
        if self.setup.interceptors.is_empty() {
            return self.ready.push_back(input);
        }
        let seen = self.interceptors().after(input, call.name, call.arguments);
        self.tasks.spawn(seen.in_current_span());
    }

    pub(super) fn ended(&mut self, call: PlannedCall, code: ToolErrorCode, text: &str) {
        self.ready.push_back(Input::ToolFinished {
            call_id: call.call_id,
            outcome: ToolOutcome::error(code, text),
            duration_ms: 0,
        });
    }
}

/// Asks the tool of a call that a crash cut off what became of it, if it declares that it knows.
async fn asked_about(
    tools: &Toolbox,
    mut call: PlannedCall,
    (started, key): (StartedCall, String),
    patience: &Patience,
) -> (PlannedCall, Reconciled) {
    call.recovery = recovery(tools, &call);
    let known = match call.recovery {
        // A finding under another key is about another call.
        Recovery::Checkable if started.idempotency_key == key => {
            reconciled(tools, &call, started, patience).await
        }
        _ => Reconciled::Unknown,
    };
    (call, known)
}

async fn reconciled(
    tools: &Toolbox,
    call: &PlannedCall,
    started: StartedCall,
    patience: &Patience,
) -> Reconciled {
    let Some(tool) = tools.get(&call.name) else {
        return Reconciled::Unknown;
    };
    let interrupted = InterruptedCall {
        idempotency_key: started.idempotency_key,
        arguments: call.arguments.clone(),
        evidence: started.evidence,
    };
    let known = patience.hear(tool.reconcile(&interrupted)).await;
    known.unwrap_or(Reconciled::Unknown)
}

fn cancelled_request() -> Input {
    not_sent(ModelError::new(
        ErrorClass::Cancelled,
        "the request was cancelled",
    ))
}
