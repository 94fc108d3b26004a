//! Decisions of the interceptors, each within a bound.

use super::{Driver, TaskEnd, TurnSetup, guarded};
use crate::machine::{Input, RequestCheck};
use crate::ports::{
    CallDecision, FinishedCall, GateRequest, INTERCEPT_TIMEOUT, Interception, Interceptor,
    NOTE_BYTES_MAX, Note, REASON_BYTES_MAX, REWRITTEN_BYTES_MAX, ResultDecision, StepContext,
    StepDecision,
};
use rondo_types::text::first_bytes;
use rondo_types::{Outcome, SessionId, TurnId};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

/// The interceptors of a turn, and how long each is waited for.
#[derive(Clone)]
pub(super) struct Interceptors {
    list: Arc<[Arc<dyn Interceptor>]>,
    session: SessionId,
    turn: TurnId,
    cancel: CancellationToken,
    limit: Duration,
}

impl Interceptors {
    fn new(setup: &TurnSetup, cancel: CancellationToken, left: Option<Duration>) -> Self {
        Self {
            list: setup.interceptors.as_slice().into(),
            session: setup.session.clone(),
            turn: setup.turn.clone(),
            cancel,
            limit: left.map_or(INTERCEPT_TIMEOUT, |left| left.min(INTERCEPT_TIMEOUT)),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns the reply of an interceptor, or why there is none.
    async fn heard<T>(&self, said: impl Future<Output = T>) -> Result<T, String> {
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err("the turn was cancelled before it answered".to_owned()),
            said = timeout(self.limit, guarded(said)) => match said {
                Ok(Ok(said)) => Ok(said),
                Ok(Err(panic)) => Err(format!("it failed: {panic}")),
                Err(_) => Err("it did not answer in time".to_owned()),
            },
        }
    }

    /// Asks about a call until one denies it.
    pub(super) async fn before_tool(self, mut request: GateRequest) -> Interception {
        let call_id = request.call_id.clone();
        let mut by = Vec::new();
        for it in self.list.iter() {
            let denied = |reason: String| Interception::Denied {
                call_id: request.call_id.clone(),
                by: name(it),
                reason: short(&reason),
            };
            match self.heard(it.before_tool(&request)).await {
                Ok(CallDecision::Allow) => {}
                Ok(CallDecision::Deny { reason }) => return denied(reason),
                Ok(CallDecision::Rewrite { arguments }) if is_too_long(&arguments) => {
                    return denied(format!(
                        "it changed the arguments to more than {REWRITTEN_BYTES_MAX} bytes"
                    ));
                }
                Ok(CallDecision::Rewrite { arguments }) => {
                    if arguments != request.arguments {
                        by.push(name(it));
                    }
                    request.arguments = arguments;
                }
                Err(why) => return denied(why),
            }
        }
        match by.is_empty() {
            true => Interception::Allowed { call_id },
            false => Interception::Rewritten {
                call_id,
                by,
                arguments: request.arguments,
            },
        }
    }

    /// Asks whether a call is denied whose arguments a person or a record has settled.
    pub(super) async fn denies(self, request: GateRequest) -> Option<String> {
        if self.is_empty() {
            return None;
        }
        match self.before_tool(request).await {
            Interception::Denied { by, reason, .. } => {
                Some(format!("{by} denied the call: {reason}"))
            }
            Interception::Rewritten { by, .. } => Some(format!(
                "{} would change the arguments, which are settled",
                by.join(", ")
            )),
            _ => None,
        }
    }

    /// Shows a call's end to the interceptors before the machine receives it.
    pub(super) async fn after(self, input: Input, tool: String, arguments: Value) -> TaskEnd {
        let Input::ToolFinished {
            call_id,
            outcome,
            duration_ms,
        } = &input
        else {
            return TaskEnd::Input(input);
        };
        if self.is_empty() {
            return TaskEnd::Input(input);
        }
        let call = FinishedCall {
            session: self.session.clone(),
            turn: self.turn.clone(),
            call_id: call_id.clone(),
            tool,
            arguments,
            outcome: outcome.clone(),
            duration_ms: *duration_ms,
        };
        match self.after_tool(call).await {
            Some(what) => TaskEnd::Rewritten { what, input },
            None => TaskEnd::Input(input),
        }
    }

    /// Asks about a result, and returns the text to read instead of it.
    async fn after_tool(self, mut call: FinishedCall) -> Option<Interception> {
        let mut by = Vec::new();
        let mut read = None;
        for it in self.list.iter() {
            let text = match self.heard(it.after_tool(&call)).await {
                Ok(ResultDecision::Keep) => continue,
                Ok(ResultDecision::Rewrite { text }) => text,
                Err(why) => format!(
                    "the result is withheld, because {} must see it first: {why}",
                    name(it)
                ),
            };
            by.push(name(it));
            call.outcome = crate::machine::render::with_text(call.outcome, text.clone());
            read = Some(text);
        }
        let call_id = call.call_id;
        read.map(|text| Interception::ResultRewritten { call_id, by, text })
    }

    /// Asks about a step, until one stops it.
    async fn step(self, step: StepContext) -> Option<Interception> {
        let mut notes = Vec::new();
        let turn_starts = [true, false].into_iter().filter(|it| !it || step.step == 1);
        for is_turn_start in turn_starts {
            for it in self.list.iter() {
                let said = match is_turn_start {
                    true => self.heard(it.turn_start(&step)).await,
                    false => self.heard(it.step_start(&step)).await,
                };
                let by = name(it);
                match said {
                    Ok(StepDecision::Continue) => {}
                    Ok(StepDecision::Add { text }) if text.trim().is_empty() => {}
                    Ok(StepDecision::Add { text }) => {
                        let text = first_bytes(&text, NOTE_BYTES_MAX).to_owned();
                        notes.push(Note { by, text });
                    }
                    Ok(StepDecision::Stop { reason }) => {
                        let reason = short(&reason);
                        return Some(Interception::Stopped { by, reason });
                    }
                    Err(why) => tracing::warn!(by, why, "a step goes on without its interceptor"),
                }
            }
        }
        (!notes.is_empty()).then_some(Interception::Added { notes })
    }
}

impl Driver {
    pub(super) fn interceptors(&self) -> Interceptors {
        let left = self.machine.work_deadline();
        let left = left.map(|end| end.since(self.clock.now()));
        Interceptors::new(&self.setup, self.tasks_cancel.clone(), left)
    }

    /// Asks the interceptors about the request that is held, and returns whether there are any.
    pub(super) fn ask_about_step(&mut self) -> bool {
        let held = self.machine.held_request();
        let Some(held) = held.filter(|_| !self.setup.interceptors.is_empty()) else {
            return false;
        };
        let step = StepContext {
            session: self.setup.session.clone(),
            turn: self.setup.turn.clone(),
            turn_number: self.setup.turn_number,
            step: held.call.step,
            model: self.machine.model().full_name(),
            transcript: held.call.request.messages.clone(),
        };
        let asked = self.interceptors().step(step);
        let asked = async move {
            TaskEnd::Input(match asked.await {
                Some(what) => Input::Intercepted { what },
                None => Input::RequestPassed {
                    check: RequestCheck::Interceptors,
                },
            })
        };
        self.tasks.spawn(asked.in_current_span());
        true
    }
}

/// Tells the interceptors of the turn's end, all of them within the time for one.
pub(super) async fn tell_end(interceptors: &[Arc<dyn Interceptor>], outcome: &Outcome) {
    let told = async {
        for it in interceptors {
            if let Err(panic) = guarded(it.turn_end(outcome)).await {
                tracing::warn!(interceptor = name(it), panic, "it failed at the turn's end");
            }
        }
    };
    if timeout(INTERCEPT_TIMEOUT, told).await.is_err() {
        tracing::warn!("the interceptors did not take the turn's end in time");
    }
}

fn name(it: &Arc<dyn Interceptor>) -> String {
    short(it.name())
}

fn short(text: &str) -> String {
    first_bytes(text, REASON_BYTES_MAX).to_owned()
}

fn is_too_long(arguments: &Value) -> bool {
    arguments.to_string().len() > REWRITTEN_BYTES_MAX
}
