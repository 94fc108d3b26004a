//! The span of a turn, with those of its requests and calls.

use crate::call::CallSpan;
use crate::clock::seconds;
use crate::content;
use crate::convention as name;
use crate::request::RequestSpan;
use crate::telemetry::Sink;
use opentelemetry::trace::{Span as _, SpanKind, Status, TraceContextExt as _};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::trace::Span;
use rondo_core::machine::Input;
use rondo_core::{EventSender, Moment, Observer, TurnSetup};
use rondo_types::{
    CallId, ErrorClass, EventBody, Message, Outcome, SessionId, StopReason, ToolErrorCode, TurnId,
    Usage,
};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

/// The bound on a tool's name that a model made up, in characters.
const UNKNOWN_NAME_CHARS_MAX: usize = 64;

/// Follows one turn.
pub(crate) struct TurnObserver {
    sink: Arc<Sink>,
    session: SessionId,
    turn: TurnId,
    /// Absent before the turn begins and after its end.
    under_way: Mutex<Option<UnderWay>>,
}

/// A turn under way. Its spans are ended with it, however the turn ends.
pub(crate) struct UnderWay {
    pub(crate) sink: Arc<Sink>,
    pub(crate) session: SessionId,
    pub(crate) turn_number: u32,
    pub(crate) agent: String,
    /// Parent context of the spans under the turn's.
    pub(crate) context: Context,
    pub(crate) tools: HashMap<String, String>,
    span: Span,
    started: SystemTime,
    ended: bool,
    request: Option<RequestSpan>,
    /// Counts by providers: an estimate of ours is not reported as theirs.
    usage: Option<Usage>,
    calls: HashMap<CallId, CallSpan>,
    /// The names of calls that have no result yet.
    asked: HashMap<CallId, String>,
}

impl TurnObserver {
    pub(crate) fn new(sink: Arc<Sink>, events: &EventSender) -> Self {
        Self {
            sink,
            session: events.session().clone(),
            turn: events.turn().clone(),
            under_way: Mutex::new(None),
        }
    }
}

impl Observer for TurnObserver {
    fn observe(&self, moment: &Moment<'_>) {
        if matches!(moment, Moment::Event(event) if is_delta(event)) {
            return;
        }
        let mut turn = self
            .under_way
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Moment::Begun { setup, message } = moment {
            *turn = Some(self.begin(setup, message));
        } else if let Moment::Ended(outcome) = moment {
            if let Some(turn) = turn.take() {
                turn.end(outcome);
            }
        } else if let Moment::Parked { .. } = moment {
            // The process that continues it begins spans of its own.
            if let Some(mut turn) = turn.take() {
                turn.close(None);
            }
        } else if let Some(turn) = turn.as_mut() {
            turn.follow(moment);
        }
    }
}

/// Deltas are frequent, and what they tell is known before they are events.
fn is_delta(event: &EventBody) -> bool {
    matches!(
        event,
        EventBody::TextDelta { .. }
            | EventBody::ReasoningDelta { .. }
            | EventBody::ToolOutputDelta { .. }
            | EventBody::ToolProgress { .. }
            | EventBody::ChildEvent { .. }
    )
}

impl TurnObserver {
    fn begin(&self, setup: &TurnSetup, message: &Message) -> UnderWay {
        let started = self.sink.clock.now();
        let span = self.sink.start(
            format!("{} {}", name::INVOKE_AGENT, setup.profile.name),
            SpanKind::Internal,
            self.attributes(setup, message),
            &self.parent(),
            started,
        );
        UnderWay {
            sink: Arc::clone(&self.sink),
            session: self.session.clone(),
            turn_number: setup.turn_number,
            agent: setup.profile.name.clone(),
            context: Context::new().with_remote_span_context(span.span_context().clone()),
            tools: descriptions(setup),
            span,
            started,
            ended: false,
            request: None,
            usage: None,
            calls: HashMap::new(),
            asked: HashMap::new(),
        }
    }

    fn parent(&self) -> Context {
        let current = Context::current();
        let given = self.sink.parent.as_ref();
        match given {
            Some(parent) if !current.has_active_span() => parent.clone(),
            _ => current,
        }
    }

    fn attributes(&self, setup: &TurnSetup, message: &Message) -> Vec<KeyValue> {
        let origin = setup.model.info().origin;
        let mut all = vec![
            KeyValue::new(name::OPERATION, name::INVOKE_AGENT),
            KeyValue::new(name::PROVIDER, name::provider(&origin)),
            KeyValue::new(name::REQUEST_MODEL, origin.model),
            KeyValue::new(name::AGENT, setup.profile.name.clone()),
            KeyValue::new(name::CONVERSATION, self.session.to_string()),
            KeyValue::new(name::TURN, self.turn.to_string()),
        ];
        if self.sink.content {
            all.extend(content::system(&setup.system));
            all.push(KeyValue::new(name::INPUT, content::messages([message])));
        }
        all
    }
}

fn descriptions(setup: &TurnSetup) -> HashMap<String, String> {
    let specs = setup.tools.specs();
    let pairs = specs
        .iter()
        .map(|spec| (spec.name.clone(), spec.description.clone()));
    pairs.collect()
}

impl UnderWay {
    fn follow(&mut self, moment: &Moment<'_>) {
        match moment {
            Moment::Requested {
                model,
                server,
                call,
            } => {
                self.request = Some(RequestSpan::start(self, model, *server, call));
            }
            Moment::Received(event) => {
                if let Some(request) = &mut self.request {
                    request.received(event);
                }
            }
            Moment::ToolStarted(call) => {
                let span = CallSpan::start(self, call);
                self.calls.insert(call.call_id.clone(), span);
            }
            Moment::Input(input) => self.take_input(input),
            Moment::Event(event) => self.take_event(event),
            _ => {}
        }
    }

    fn take_input(&mut self, input: &Input) {
        match input {
            Input::Reply { reply } => {
                if let Some(request) = self.request.take() {
                    let counted = request.replied(reply);
                    self.add(counted);
                }
            }
            Input::ReplyFailed { error, .. } => {
                if let Some(request) = self.request.take() {
                    let counted = request.failed(error.class, error.status);
                    self.add(counted);
                }
            }
            Input::ToolFinished {
                call_id, outcome, ..
            } => {
                if let Some(call) = self.calls.remove(call_id) {
                    self.asked.remove(call_id);
                    call.finished(outcome);
                }
            }
            _ => {}
        }
    }

    fn add(&mut self, counted: Option<Usage>) {
        if let Some(counted) = counted {
            *self.usage.get_or_insert_default() += counted;
        }
    }

    fn take_event(&mut self, event: &EventBody) {
        match event {
            EventBody::RetryScheduled {
                class,
                status,
                attempt,
                delay_ms,
            } => {
                let status = status.map(|it| KeyValue::new(name::STATUS_CODE, i64::from(it)));
                let mut attributes = vec![
                    KeyValue::new(name::ERROR_TYPE, class.as_str()),
                    KeyValue::new(name::ATTEMPT, i64::from(*attempt)),
                    KeyValue::new(name::DELAY, whole(*delay_ms)),
                ];
                attributes.extend(status);
                self.note("rondo.retry", attributes);
            }
            EventBody::ModelFallback {
                from, to, class, ..
            } => self.note(
                "rondo.model_fallback",
                vec![
                    KeyValue::new("rondo.from", from.clone()),
                    KeyValue::new("rondo.to", to.clone()),
                    KeyValue::new(name::ERROR_TYPE, class.as_str()),
                ],
            ),
            EventBody::ReplyRejected { .. } => self.note("rondo.reply_rejected", Vec::new()),
            EventBody::ToolCallPending { id, name, .. } => {
                let name = name.chars().take(UNKNOWN_NAME_CHARS_MAX).collect();
                self.asked.insert(id.clone(), name);
            }
            EventBody::ToolCallFinished {
                id,
                code: Some(code),
                ..
            } => self.note_not_run(id, *code),
            _ => {}
        }
    }

    /// A call that was never run is not an execution, so it is an event of the turn.
    fn note_not_run(&mut self, id: &CallId, code: ToolErrorCode) {
        let Some(tool) = self.asked.remove(id) else {
            return;
        };
        let attributes = vec![
            KeyValue::new(name::TOOL_NAME, tool),
            KeyValue::new(name::TOOL_CALL_ID, id.to_string()),
            KeyValue::new(name::ERROR_TYPE, code.as_str()),
        ];
        self.note("rondo.tool_call_not_run", attributes);
    }

    fn note(&mut self, what: &'static str, attributes: Vec<KeyValue>) {
        let at = self.sink.clock.now();
        self.span.add_event_with_timestamp(what, at, attributes);
    }

    fn end(mut self, outcome: &Outcome) {
        self.span.set_attributes([
            KeyValue::new(name::STOP_REASON, outcome.stop_reason.as_str()),
            KeyValue::new(name::DEGRADED, outcome.degraded),
            KeyValue::new(name::STEPS, i64::from(outcome.steps)),
            KeyValue::new(name::TOOL_CALLS, i64::from(outcome.tool_calls)),
        ]);
        if let Some(reason) = outcome.finish_reason {
            self.span.set_attribute(finish_reasons([reason]));
        }
        if let Some(cost) = outcome.cost {
            self.span
                .set_attribute(KeyValue::new(name::COST, cost.usd()));
        }
        if self.sink.content {
            let text = content::answer(&outcome.text, outcome.finish_reason);
            self.span.set_attribute(KeyValue::new(name::OUTPUT, text));
        }
        self.close(error_of(outcome));
    }

    /// Ends the span and all that is left under it.
    fn close(&mut self, error: Option<&'static str>) {
        self.ended = true;
        if let Some(request) = self.request.take() {
            let counted = request.failed(ErrorClass::Cancelled, None);
            self.add(counted);
        }
        if let Some(usage) = self.usage {
            self.span.set_attributes(usage_attributes(usage));
        }
        for (_, call) in self.calls.drain() {
            call.abandoned();
        }
        let at = self.sink.clock.now();
        let mut measured = vec![KeyValue::new(name::AGENT, self.agent.clone())];
        if let Some(error) = error {
            fail(&mut self.span, error);
            measured.push(KeyValue::new(name::ERROR_TYPE, error));
        }
        self.span.end_with_timestamp(at);
        let took = seconds(self.started, at);
        self.sink.instruments.agent.record(took, &measured);
    }
}

/// A turn whose future was dropped has no outcome.
impl Drop for UnderWay {
    fn drop(&mut self) {
        if !self.ended {
            self.close(Some(ErrorClass::Cancelled.as_str()));
        }
    }
}

/// A turn that has an answer is not an error, however it came by it; one that was stopped is.
fn error_of(outcome: &Outcome) -> Option<&'static str> {
    if outcome.stop_reason == StopReason::Cancelled {
        return Some(outcome.stop_reason.as_str());
    }
    if outcome.answered {
        return None;
    }
    let class = outcome.error.as_ref().map(|error| error.class.as_str());
    Some(class.unwrap_or(outcome.stop_reason.as_str()))
}

/// Marks a span as failed. Its description stays empty: messages may quote what was said.
pub(crate) fn fail(span: &mut Span, error: &'static str) {
    span.set_attribute(KeyValue::new(name::ERROR_TYPE, error));
    span.set_status(Status::error(""));
}

pub(crate) fn usage_attributes(usage: Usage) -> Vec<KeyValue> {
    let always = [
        (name::INPUT_TOKENS, usage.input),
        (name::OUTPUT_TOKENS, usage.output),
    ];
    // A provider that does not count these is read as one that counts none.
    let known = [
        (name::CACHE_READ_TOKENS, usage.cache_read),
        (name::CACHE_WRITE_TOKENS, usage.cache_write),
        (name::REASONING_TOKENS, usage.reasoning),
    ];
    let known = known.into_iter().filter(|(_, count)| *count > 0);
    let all = always.into_iter().chain(known);
    all.map(|(key, count)| KeyValue::new(key, whole(count)))
        .collect()
}

pub(crate) fn finish_reasons(
    reasons: impl IntoIterator<Item = rondo_types::FinishReason>,
) -> KeyValue {
    let reasons: Vec<opentelemetry::StringValue> = reasons
        .into_iter()
        .map(|reason| name::finish_reason(reason).into())
        .collect();
    KeyValue::new(
        name::FINISH_REASONS,
        opentelemetry::Value::Array(reasons.into()),
    )
}

/// OpenTelemetry has no unsigned numbers.
pub(crate) fn whole(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
