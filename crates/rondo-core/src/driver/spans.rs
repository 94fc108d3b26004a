//! Log of a turn: its spans, and a line for each event that decides how it continues.
//!
//! Neither texts, arguments and results nor the messages of errors, which may quote them, are ever
//! part of it.

use super::TurnSetup;
use crate::machine::{Input, ModelCall, PlannedCall};
use crate::ports::{Approval, Verdict};
use rondo_types::{EventBody, ModelInfo, Reply};
use tracing::{Span, debug, info, info_span, warn};

/// The span of a turn.
pub(super) fn turn(setup: &TurnSetup) -> Span {
    info_span!(
        "invoke_agent",
        session = %setup.session,
        turn = %setup.turn,
        profile = setup.profile.name,
    )
}

/// The span of one model request.
pub(super) fn request(call: &ModelCall, model: &ModelInfo) -> Span {
    let origin = &model.origin;
    info_span!(
        "chat",
        step = call.step,
        attempt = call.attempt,
        provider = origin.provider,
        model = origin.model,
    )
}

/// The span of one tool call.
pub(super) fn tool_call(call: &PlannedCall) -> Span {
    info_span!("execute_tool", tool = call.name, call = %call.call_id)
}

/// Traces that a request is sent.
pub(super) fn note_request(call: &ModelCall) {
    debug!(
        messages = call.request.messages.len(),
        tools = call.request.tools.len(),
        "the request is sent"
    );
}

/// Says how a request or a call ended, in its span.
pub(super) fn note_end(input: &Input, elapsed_ms: u64) {
    match input {
        Input::Reply { reply } => note_reply(reply, elapsed_ms),
        Input::ReplyFailed {
            error,
            committed,
            received,
            ..
        } => warn!(
            class = %error.class,
            status = error.status,
            retry_after_ms = error.retry_after_ms,
            shown = committed,
            received,
            elapsed_ms,
            "the request failed"
        ),
        Input::ToolFinished { outcome, .. } => match outcome.code() {
            None => info!(elapsed_ms, "the call has its result"),
            Some(code) => info!(%code, elapsed_ms, "the call failed"),
        },
        _ => {}
    }
}

fn note_reply(reply: &Reply, elapsed_ms: u64) {
    let first = reply.candidates.first();
    let finish_reason = first.and_then(|it| it.finish_reason);
    let calls = first.map_or(0, |it| it.tool_calls().count());
    let usage = reply.usage.unwrap_or_default();
    info!(
        finish_reason = finish_reason.map(rondo_types::FinishReason::as_str),
        calls,
        input_tokens = usage.input,
        output_tokens = usage.output,
        elapsed_ms,
        "the reply is whole"
    );
}

/// Traces a decision of the gate or of a person.
pub(super) fn note_decision(input: &Input) {
    match input {
        Input::Gate { call_id, verdict } => {
            let verdict = match verdict {
                Verdict::Allow => "allow",
                Verdict::Deny { .. } => "deny",
                Verdict::Ask { .. } => "ask",
            };
            debug!(call = %call_id, verdict, "the gate judged a call");
        }
        Input::Approval { call_id, approval } => {
            let approved = !matches!(approval, Approval::Denied { .. });
            info!(call = %call_id, approved, "a person decided about a call");
        }
        Input::Cancel => info!("the turn was cancelled"),
        Input::Fault { error } => warn!(class = %error.class, "the runtime cannot go on"),
        _ => {}
    }
}

/// Traces a decision of the machine.
pub(super) fn note_event(body: &EventBody) {
    match body {
        EventBody::RetryScheduled {
            class,
            status,
            attempt,
            delay_ms,
        } => warn!(%class, status, attempt, delay_ms, "the request is repeated after a wait"),
        EventBody::ModelFallback {
            from, to, class, ..
        } => warn!(from, to, %class, "another model goes on"),
        EventBody::RequestQueued => debug!("the request waits for others to end"),
        EventBody::Warning { text } => warn!(text, "the person is warned"),
        EventBody::ReplyRejected { .. } => warn!("the reply cannot be used"),
        EventBody::ArgumentsRepaired { id, diff } => {
            debug!(call = %id, repairs = diff.len(), "arguments were repaired");
        }
        EventBody::ToolCallPending { id, name, .. } => {
            debug!(call = %id, tool = name, "the model asked for a call");
        }
        EventBody::CompactionStarted { messages, tokens } => {
            info!(messages, tokens, "older messages are being summed up");
        }
        EventBody::Compacted {
            replaced,
            how,
            reason,
            ..
        } => info!(replaced, ?how, reason, "older messages were compacted"),
        EventBody::Steered { .. } => debug!("a steering message entered the conversation"),
        _ => {}
    }
}
