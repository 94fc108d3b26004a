//! Calls whose end is not known after a crash, and those that a person is asked about again.

use super::batch::{CallState, StartAwaits};
use super::io::{Action, PlannedCall};
use super::turn::{Cx, Phase, TurnMachine};
use crate::ports::{Approval, Reconciled, Verdict};
use crate::shown;
use rondo_types::{
    AskReason, CallId, EventBody, InDoubtDecision, Recovery, ToolErrorCode, ToolOutcome,
};

/// Message to the model about a call whose end is unknown.
pub(crate) const IN_DOUBT: &str = "the call was running when the program was cut off, and it is not known \
                                   whether it was done: look before you repeat it";

impl TurnMachine {
    /// A question whether a call runs again does not outlive its process, nor does a verdict.
    pub(super) fn resumed(&mut self) {
        self.waiting.forget_all();
        let Phase::Batch(batch) = &mut self.phase else {
            return;
        };
        for call in &mut batch.calls {
            if matches!(call.state, CallState::AwaitingRepeat { .. }) {
                call.state = CallState::Running;
            }
            if let CallState::AwaitingApproval | CallState::Cleared | CallState::Running =
                call.state
            {
                call.awaits = Some(StartAwaits::Verdict);
            }
        }
    }

    /// Returns whether so far only an earlier process has judged a call.
    pub(crate) fn awaits_verdict(&self, call_id: &CallId) -> bool {
        let Phase::Batch(batch) = &self.phase else {
            return false;
        };
        let mut calls = batch.calls.iter();
        calls.any(|it| it.call_id == *call_id && it.awaits == Some(StartAwaits::Verdict))
    }

    /// Takes the verdicts of this process's gate on calls that an earlier one had judged.
    pub(super) fn judged_again(&mut self, cx: &mut Cx<'_>, verdicts: &[(CallId, Verdict)]) {
        let time = self.call_time(cx.at);
        let Phase::Batch(batch) = &mut self.phase else {
            return;
        };
        let (mut begun, mut others) = (Vec::new(), Vec::new());
        for call in &mut batch.calls {
            let verdict = verdicts.iter().find(|it| it.0 == call.call_id);
            let verdict = match (call.awaits, verdict) {
                _ if !call.is_asked_about_or_runs() => continue,
                (Some(StartAwaits::Verdict), Some((_, verdict))) => verdict,
                (Some(StartAwaits::Others), _) => &Verdict::Allow,
                // It has begun, or was not judged.
                (None, _) | (Some(StartAwaits::Verdict), None) => continue,
            };
            call.awaits = None;
            let (doubt, planned) = (call.doubt, call.planned(time));
            match (&call.state, doubt, verdict) {
                (CallState::AwaitingApproval, _, _) => others.push(answered(planned, verdict)),
                (_, None, Verdict::Allow) => begun.push(planned),
                _ => others.push(after_verdict(doubt, planned, verdict)),
            }
        }
        if !begun.is_empty() {
            cx.out.push(Action::RunTools(begun));
        }
        cx.out.extend(others);
    }

    /// Decides how a call is settled that was cut off.
    pub(super) fn cut_off(
        &mut self,
        cx: &mut Cx<'_>,
        call_id: &CallId,
        recovery: Recovery,
        known: &Reconciled,
    ) {
        let is_stopped = self.cancelled;
        let Some(call) = self.call_in(call_id, &CallState::Running) else {
            return;
        };
        call.recovery = recovery;
        let decision = match (recovery, known) {
            (Recovery::Checkable, Reconciled::Done(_)) => InDoubtDecision::Done,
            // Nothing is begun in a turn that was stopped.
            _ if is_stopped => InDoubtDecision::Fail,
            (Recovery::Checkable, Reconciled::NotDone | Reconciled::Running)
            | (Recovery::ReadOnly | Recovery::Idempotent, _) => InDoubtDecision::Retry,
            (Recovery::Confirm, _) => InDoubtDecision::Ask,
            (Recovery::Checkable, Reconciled::Unknown) | (Recovery::AtMostOnce, _) => {
                InDoubtDecision::Fail
            }
        };
        cx.out.push(Action::Settle {
            call_id: call_id.clone(),
            decision,
            still_running: *known == Reconciled::Running,
        });
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
        call.doubt = Some(decision);
        call.awaits = match decision {
            InDoubtDecision::Retry if still_running => Some(StartAwaits::Others),
            InDoubtDecision::Retry | InDoubtDecision::Ask => Some(StartAwaits::Verdict),
            InDoubtDecision::Done | InDoubtDecision::Fail => None,
        };
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
        let has_recorded_start = call.doubt.is_some();
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

/// Returns the treatment of a question that an earlier process has asked.
fn answered(call: PlannedCall, verdict: &Verdict) -> Action {
    let approval = match verdict {
        Verdict::Allow => Approval::Approved,
        Verdict::Deny { reason } => Approval::Denied {
            reason: reason.clone(),
        },
        Verdict::Ask { prompt, reasons } => {
            // The present listener did not receive the question.
            return Action::AskAgain {
                call: Box::new(call),
                prompt: prompt.clone(),
                reasons: reasons.clone(),
                has_begun: false,
            };
        }
    };
    Action::Answer {
        call_id: call.call_id,
        approval,
    }
}

/// Returns the treatment of a call by the verdict of this process, if it does not simply begin.
fn after_verdict(doubt: Option<InDoubtDecision>, call: PlannedCall, verdict: &Verdict) -> Action {
    let call = Box::new(call);
    let may_be_done = match doubt {
        None => false,
        Some(InDoubtDecision::Ask) => true,
        // Its tool would be asked, and knows that nothing of it was done.
        Some(_) => call.recovery != Recovery::Checkable,
    };
    match verdict {
        Verdict::Deny { .. } if may_be_done && call.recovery != Recovery::ReadOnly => {
            Action::EndCall {
                call,
                outcome: ToolOutcome::error(ToolErrorCode::InDoubt, IN_DOUBT),
            }
        }
        Verdict::Deny { reason } => Action::EndCall {
            call,
            outcome: ToolOutcome::error(ToolErrorCode::Denied, reason),
        },
        _ if doubt == Some(InDoubtDecision::Ask) => Action::AskAgain {
            prompt: format!(
                "`{}` was running when the turn was cut off, and may have finished. It would run again with\n{}",
                shown::line(&call.name),
                shown::call(&call.arguments)
            ),
            call,
            reasons: Vec::new(),
            has_begun: true,
        },
        Verdict::Ask { prompt, reasons } => Action::AskAgain {
            call,
            prompt: prompt.clone(),
            reasons: reasons.clone(),
            has_begun: may_be_done,
        },
        Verdict::Allow => Action::RepeatCall(call),
    }
}
