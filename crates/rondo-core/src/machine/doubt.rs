//! Calls whose end is not known after a crash, and those that a person is asked about again.

use super::batch::CallState;
use super::io::Action;
use super::turn::{Cx, Phase, TurnMachine};
use crate::ports::Approval;
use rondo_types::{AskReason, CallId, EventBody, InDoubtDecision, ToolErrorCode, ToolOutcome};

/// What the model reads of a call whose end is unknown.
pub(crate) const IN_DOUBT: &str = "the call was running when the program was cut off, and it is not known \
                                   whether it was done: look before you repeat it";

impl TurnMachine {
    /// A question whether a call runs again does not outlive its process.
    pub(super) fn resumed(&mut self) {
        self.waiting.forget_all();
        let Phase::Batch(batch) = &mut self.phase else {
            return;
        };
        for call in &mut batch.calls {
            if matches!(call.state, CallState::AwaitingRepeat { .. }) {
                call.state = CallState::Running;
            }
        }
    }

    pub(super) fn in_doubt(
        &mut self,
        cx: &mut Cx<'_>,
        call_id: &CallId,
        decision: InDoubtDecision,
        still_running: bool,
    ) {
        let time = self.call_time(cx.at);
        let Some(call) = self.call_in(call_id, &CallState::Running) else {
            return;
        };
        call.has_recorded_start = true;
        cx.emit(EventBody::ToolCallInDoubt {
            id: call.call_id.clone(),
            name: call.name.clone(),
            decision,
            still_running,
        });
        if decision == InDoubtDecision::Fail {
            cx.out.push(Action::EndCall {
                call: Box::new(call.planned(time)),
                outcome: ToolOutcome::error(ToolErrorCode::InDoubt, IN_DOUBT),
            });
        }
    }

    pub(super) fn ask_again(
        &mut self,
        cx: &mut Cx<'_>,
        call_id: &CallId,
        (prompt, reasons): (String, Vec<AskReason>),
        has_begun: bool,
    ) {
        let time = self.call_time(cx.at);
        let is_repeat = self.call_in(call_id, &CallState::Running).is_some();
        let state = match is_repeat {
            true => CallState::Running,
            false => CallState::AwaitingApproval,
        };
        let Some(call) = self.call_in(call_id, &state) else {
            return;
        };
        if is_repeat {
            call.state = CallState::AwaitingRepeat { has_begun };
        }
        let call = Box::new(call.planned(time));
        let id = call_id.clone();
        cx.emit(EventBody::ApprovalRequested {
            id,
            prompt: prompt.clone(),
        });
        cx.out.push(Action::Ask {
            call,
            prompt,
            reasons,
            is_repeat,
        });
    }

    /// Takes the answer to a question whether a call runs again, and returns whether it is one.
    pub(super) fn repeat_answered(
        &mut self,
        cx: &mut Cx<'_>,
        call_id: &CallId,
        approval: &Approval,
    ) -> bool {
        let time = self.call_time(cx.at);
        let (call, has_begun) = match [true, false]
            .into_iter()
            .find(|it| self.call_in(call_id, &repeat(*it)).is_some())
        {
            Some(has_begun) => (self.call_in(call_id, &repeat(has_begun)), has_begun),
            None => return false,
        };
        let Some(call) = call else {
            return false;
        };
        call.state = CallState::Running;
        let has_recorded_start = call.has_recorded_start;
        let call = call.planned(time);
        let (approved, reason) = approval.of_a_repeat();
        cx.emit(EventBody::ApprovalResolved {
            id: call_id.clone(),
            approved,
            reason: reason.clone(),
            arguments: None,
        });
        let denied = match has_begun {
            true => ToolOutcome::error(ToolErrorCode::InDoubt, IN_DOUBT),
            false => ToolOutcome::error(ToolErrorCode::Denied, reason.unwrap_or_default()),
        };
        cx.out.push(match approved {
            true if has_recorded_start => Action::RepeatCall(Box::new(call)),
            true => Action::RunTools(vec![call]),
            false => Action::EndCall {
                call: Box::new(call),
                outcome: denied,
            },
        });
        true
    }
}

fn repeat(has_begun: bool) -> CallState {
    CallState::AwaitingRepeat { has_begun }
}
