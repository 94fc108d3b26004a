//! The span of a tool call.

use crate::clock::seconds;
use crate::content;
use crate::convention as name;
use crate::telemetry::Sink;
use crate::turn::{UnderWay, fail};
use opentelemetry::KeyValue;
use opentelemetry::trace::{Span as _, SpanKind};
use opentelemetry_sdk::trace::Span;
use rondo_core::machine::PlannedCall;
use rondo_types::{ToolErrorCode, ToolOutcome};
use std::sync::Arc;
use std::time::SystemTime;

/// One tool call under way.
pub(crate) struct CallSpan {
    sink: Arc<Sink>,
    span: Span,
    started: SystemTime,
    /// Attributes of calls in the histogram.
    measured: Vec<KeyValue>,
}

impl CallSpan {
    pub(crate) fn start(turn: &UnderWay, call: &PlannedCall) -> Self {
        let measured = vec![
            KeyValue::new(name::TOOL_NAME, call.name.clone()),
            KeyValue::new(name::TOOL_TYPE, "function"),
            KeyValue::new(name::AGENT, turn.agent.clone()),
        ];
        let mut attributes = measured.clone();
        attributes.extend([
            KeyValue::new(name::OPERATION, name::EXECUTE_TOOL),
            KeyValue::new(name::TOOL_CALL_ID, call.call_id.to_string()),
            KeyValue::new(name::CONVERSATION, turn.session.to_string()),
        ]);
        if let Some(description) = turn.tools.get(&call.name) {
            attributes.push(KeyValue::new(name::TOOL_DESCRIPTION, description.clone()));
        }
        if turn.sink.content {
            let arguments = content::value(&call.arguments);
            attributes.push(KeyValue::new(name::TOOL_ARGUMENTS, arguments));
        }
        let started = turn.sink.clock.now();
        let span = turn.sink.start(
            format!("{} {}", name::EXECUTE_TOOL, call.name),
            SpanKind::Internal,
            attributes,
            &turn.context,
            started,
        );
        Self {
            sink: Arc::clone(&turn.sink),
            span,
            started,
            measured,
        }
    }

    pub(crate) fn finished(mut self, outcome: &ToolOutcome) {
        if self.sink.content
            && let ToolOutcome::Ok(output) = outcome
        {
            let result = content::value(&output.value);
            self.span
                .set_attribute(KeyValue::new(name::TOOL_RESULT, result));
        }
        self.end(outcome.code());
    }

    /// Ends a call whose end was not waited for.
    pub(crate) fn abandoned(self) {
        self.end(Some(ToolErrorCode::Cancelled));
    }

    fn end(mut self, code: Option<ToolErrorCode>) {
        if let Some(code) = code {
            fail(&mut self.span, code.as_str());
            let error = KeyValue::new(name::ERROR_TYPE, code.as_str());
            self.measured.push(error);
        }
        let at = self.sink.clock.now();
        self.span.end_with_timestamp(at);
        let took = seconds(self.started, at);
        self.sink.instruments.tool.record(took, &self.measured);
    }
}
