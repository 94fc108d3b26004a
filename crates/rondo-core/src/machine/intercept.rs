//! Decisions of interceptors about a call, a result or the request of a step.

use super::batch::{CallState, done};
use super::budget::NextRequest;
use super::finish::Ending;
use super::io::Action;
use super::turn::{Cx, Phase, TurnMachine};
use crate::ports::{Interception, Note};
use rondo_types::{CallId, EventBody, Message, StopReason, ToolErrorCode};
use serde_json::Value;

impl TurnMachine {
    /// Returns whether interceptors have decided about a call, in this process or by the records of an earlier one.
    pub(crate) fn is_intercepted(&self, call_id: &CallId) -> bool {
        let Phase::Batch(batch) = &self.phase else {
            return false;
        };
        let mut calls = batch.calls.iter();
        calls.any(|call| call.call_id == *call_id && call.is_intercepted)
    }

    pub(super) fn intercepted(&mut self, cx: &mut Cx<'_>, what: Interception) {
        if let Some(call_id) = what.judged_call()
            && let Some(call) = self.call_in(call_id, &CallState::AwaitingGate)
        {
            call.is_intercepted = true;
        }
        match what {
            Interception::Allowed { call_id } => self.send_to_gate(cx, &call_id),
            Interception::Rewritten {
                call_id,
                by,
                arguments,
            } => self.rewritten(cx, &call_id, by, &arguments),
            Interception::Denied {
                call_id,
                by,
                reason,
            } => {
                let Some(call) = self.call_in(&call_id, &CallState::AwaitingGate) else {
                    return;
                };
                let text = format!("{by} denied the call: {reason}");
                call.state = done(ToolErrorCode::Denied, text);
                self.report_if_done(cx, &call_id, 0);
                self.run_stage_if_cleared(cx);
            }
            Interception::ResultRewritten { call_id, text, .. } => {
                if let Some(call) = self.call_in(&call_id, &CallState::Running) {
                    call.reads = Some(text);
                }
            }
            Interception::Added { notes } => self.added(cx, notes),
            Interception::Stopped { by, reason } => {
                if self.holds_request_of_step() {
                    let why = format!("{by} stopped the turn: {reason}");
                    self.finish(cx, Ending::worded(StopReason::Intercepted, why));
                }
            }
        }
    }

    /// Returns whether the next request has the model continue with a reply that its provider paused: nothing may come
    /// between the two.
    pub(crate) fn goes_on_with_reply(&self) -> bool {
        self.pauses > 0
    }

    fn rewritten(&mut self, cx: &mut Cx<'_>, call_id: &CallId, by: Vec<String>, other: &Value) {
        let Some(call) = self.call_in(call_id, &CallState::AwaitingGate) else {
            return;
        };
        call.rewritten_by.clone_from(&by);
        call.replace(cx.arguments, other);
        let arguments = call.arguments.clone();
        let fits = call.state == CallState::Cleared;
        if fits {
            call.state = CallState::AwaitingGate;
            let id = call_id.clone();
            cx.emit(EventBody::ToolCallRewritten { id, by, arguments });
            return self.send_to_gate(cx, call_id);
        }
        self.report_if_done(cx, call_id, 0);
        self.run_stage_if_cleared(cx);
    }

    fn send_to_gate(&mut self, cx: &mut Cx<'_>, call_id: &CallId) {
        let time = self.call_time(cx.at);
        if let Some(call) = self.call_in(call_id, &CallState::AwaitingGate) {
            let planned = call.planned(time);
            cx.out.push(Action::CheckGate(vec![planned]));
        }
    }

    /// Makes the request again with what was added, if it still fits the limits.
    fn added(&mut self, cx: &mut Cx<'_>, notes: Vec<Note>) {
        if !self.holds_request_of_step() || self.goes_on_with_reply() {
            return;
        }
        self.note_interceptors_checked();
        for note in notes {
            self.add(cx, Message::synthetic_user(note.text));
        }
        match self.next_allowance() {
            NextRequest::Nothing(reason) => self.finish(cx, Ending::stopped(reason)),
            _ => self.send_request(cx),
        }
    }
}
