//! The span of a model request.

use crate::clock::seconds;
use crate::content;
use crate::convention as name;
use crate::telemetry::Sink;
use crate::turn::{UnderWay, fail, finish_reasons, usage_attributes, whole};
use opentelemetry::KeyValue;
use opentelemetry::trace::{Span as _, SpanKind};
use opentelemetry_sdk::trace::Span;
use rondo_core::machine::ModelCall;
use rondo_types::{
    CallId, ErrorClass, ModelEvent, ModelInfo, ModelRequest, Reply, ResponseName, ServerAddress,
    Usage,
};
use std::sync::Arc;
use std::time::SystemTime;

/// One model request under way.
pub(crate) struct RequestSpan {
    sink: Arc<Sink>,
    span: Span,
    started: SystemTime,
    /// When it went out: later than it began where as many as may be were under way.
    sent: SystemTime,
    turn_number: u32,
    step: u32,
    streaming: bool,
    /// When the newest chunk came.
    last_chunk: Option<SystemTime>,
    /// The counts so far: a reply that breaks was paid for too.
    usage: Option<Usage>,
    /// Attributes of requests in the histograms.
    measured: Vec<KeyValue>,
}

impl RequestSpan {
    pub(crate) fn start(
        turn: &UnderWay,
        model: &ModelInfo,
        server: Option<&ServerAddress>,
        call: &ModelCall,
    ) -> Self {
        let operation = name::operation(&model.origin);
        let mut measured = vec![
            KeyValue::new(name::OPERATION, operation),
            KeyValue::new(name::PROVIDER, name::provider(&model.origin)),
            KeyValue::new(name::REQUEST_MODEL, model.origin.model.clone()),
        ];
        if let Some(server) = server {
            measured.push(KeyValue::new(name::SERVER_ADDRESS, server.host.clone()));
            measured.push(KeyValue::new(name::SERVER_PORT, i64::from(server.port)));
        }
        let mut attributes = measured.clone();
        attributes.extend([
            KeyValue::new(name::CONVERSATION, turn.session.to_string()),
            KeyValue::new(name::AGENT, turn.agent.clone()),
            KeyValue::new(name::STEP, i64::from(call.step)),
            KeyValue::new(name::ATTEMPT, i64::from(call.attempt)),
        ]);
        attributes.extend(asked_for(&call.request, model.streaming));
        if turn.sink.content {
            attributes.extend(content::request(&call.request));
        }
        let started = turn.sink.clock.now();
        let span = turn.sink.start(
            format!("{operation} {}", model.origin.model),
            SpanKind::Client,
            attributes,
            &turn.context,
            started,
        );
        Self {
            sink: Arc::clone(&turn.sink),
            span,
            started,
            sent: started,
            turn_number: turn.turn_number,
            step: call.step,
            streaming: model.streaming,
            last_chunk: None,
            usage: None,
            measured,
        }
    }

    pub(crate) fn received(&mut self, event: &ModelEvent) {
        match event {
            ModelEvent::Usage(usage) => self.usage = Some(*usage),
            ModelEvent::ResponseNamed(name) => self.name_response(name),
            ModelEvent::Sent => self.sent = self.sink.clock.now(),
            event if self.streaming && is_output(event) => self.take_chunk(),
            _ => {}
        }
    }

    /// A reply that breaks was one too.
    fn name_response(&mut self, response: &ResponseName) {
        if let Some(id) = &response.id {
            self.span
                .set_attribute(KeyValue::new(name::RESPONSE_ID, id.clone()));
        }
        if let Some(model) = &response.model {
            let model = KeyValue::new(name::RESPONSE_MODEL, model.clone());
            self.measured.push(model.clone());
            self.span.set_attribute(model);
        }
    }

    fn take_chunk(&mut self) {
        let now = self.sink.clock.now();
        let instruments = &self.sink.instruments;
        if let Some(last) = self.last_chunk.replace(now) {
            let took = seconds(last, now);
            instruments.next_chunk.record(took, &self.measured);
            return;
        }
        let took = seconds(self.sent, now);
        instruments.first_chunk.record(took, &self.measured);
        self.span
            .set_attribute(KeyValue::new(name::FIRST_CHUNK, took));
    }

    /// Ends it, and returns what the provider counted.
    pub(crate) fn replied(mut self, reply: &Reply) -> Option<Usage> {
        let reasons = reply.candidates.iter().filter_map(|it| it.finish_reason);
        self.span.set_attribute(finish_reasons(reasons));
        if self.sink.content {
            let text = content::reply(reply, |index| {
                CallId::generated(self.turn_number, self.step, index)
            });
            self.span.set_attribute(KeyValue::new(name::OUTPUT, text));
        }
        self.usage = reply.usage.or(self.usage);
        self.end()
    }

    /// Ends it as failed, and returns what the provider counted.
    pub(crate) fn failed(mut self, class: ErrorClass, status: Option<u16>) -> Option<Usage> {
        fail(&mut self.span, class.as_str());
        if let Some(status) = status {
            self.span
                .set_attribute(KeyValue::new(name::STATUS_CODE, i64::from(status)));
        }
        let error = KeyValue::new(name::ERROR_TYPE, class.as_str());
        self.measured.push(error);
        self.end()
    }

    fn end(mut self) -> Option<Usage> {
        if let Some(usage) = self.usage {
            self.span.set_attributes(usage_attributes(usage));
            // Tokens are not told apart by whether the reply was whole.
            let is_kept = |it: &&KeyValue| it.key.as_str() != name::ERROR_TYPE;
            let kept: Vec<KeyValue> = self.measured.iter().filter(is_kept).cloned().collect();
            self.sink.instruments.record_usage(usage, &kept);
        }
        let at = self.sink.clock.now();
        self.span.end_with_timestamp(at);
        let took = seconds(self.started, at);
        self.sink.instruments.operation.record(took, &self.measured);
        self.usage
    }
}

fn asked_for(request: &ModelRequest, streaming: bool) -> Vec<KeyValue> {
    let mut all = vec![KeyValue::new(name::REQUEST_STREAM, streaming)];
    let sampling = &request.sampling;
    if let Some(temperature) = sampling.temperature {
        all.push(KeyValue::new(name::REQUEST_TEMPERATURE, temperature));
    }
    if let Some(tokens) = sampling.max_output_tokens {
        all.push(KeyValue::new(
            name::REQUEST_MAX_TOKENS,
            whole(tokens.into()),
        ));
    }
    if request.response_schema.is_some() {
        all.push(KeyValue::new(name::OUTPUT_TYPE, "json"));
    }
    all
}

/// `true` for a piece of the model's output, rather than a fact about it.
fn is_output(event: &ModelEvent) -> bool {
    matches!(
        event,
        ModelEvent::TextDelta { .. }
            | ModelEvent::ReasoningDelta { .. }
            | ModelEvent::RefusalDelta { .. }
            | ModelEvent::ToolCallStarted { .. }
            | ModelEvent::ToolCallDelta { .. }
    )
}
