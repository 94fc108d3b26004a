//! A request that is not sent before the tools, the interceptors and the budgets of the turn let it pass.

use super::finish::Ending;
use super::io::{Action, ModelCall, RequestCheck};
use super::turn::{Cx, Phase, TurnMachine};
use crate::ports::Reservation;
use rondo_types::{ErrorClass, ModelError, StopReason, TimeMs};
use serde::{Deserialize, Serialize};

/// A request that was not sent yet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct HeldRequest {
    pub(crate) call: ModelCall,
    /// The check under way; those before it are done.
    pub(crate) check: RequestCheck,
    /// When that check began. A replay has no budgets to ask: what they refuse, they refuse at this time.
    pub(crate) since: TimeMs,
}

/// The last steps whose first request passed these checks: they are made once a step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CheckedSteps {
    tools: u32,
    interceptors: u32,
}

impl TurnMachine {
    /// Returns the request that was not sent yet.
    pub(crate) fn held_request(&self) -> Option<&HeldRequest> {
        match &self.phase {
            Phase::Held(held) => Some(held),
            _ => None,
        }
    }

    /// Returns whether a request of a step, which is not one for a summary, was not sent yet.
    pub(crate) fn holds_request_of_step(&self) -> bool {
        let held = self.held_request();
        held.is_some_and(|held| held.call.purpose.is_step())
    }

    /// Holds a request and begins its first check.
    pub(super) fn hold(&mut self, cx: &mut Cx<'_>, call: ModelCall) {
        let is_step = call.purpose.is_step() && !self.goes_on_with_reply();
        let check = if is_step && call.step > self.checked.tools {
            RequestCheck::Tools
        } else if is_step && call.step > self.checked.interceptors {
            RequestCheck::Interceptors
        } else {
            RequestCheck::Budgets
        };
        let since = cx.at;
        self.phase = Phase::Held(Box::new(HeldRequest { call, check, since }));
        cx.out.push(Action::CheckRequest(check));
    }

    /// Begins the next check of the request that is held, or sends it after the last one.
    pub(super) fn request_passed(&mut self, cx: &mut Cx<'_>, check: RequestCheck) {
        let phase = std::mem::replace(&mut self.phase, Phase::AwaitingReply);
        let held = match phase {
            Phase::Held(held) if held.check == check => *held,
            other => {
                self.phase = other;
                return;
            }
        };
        match check {
            RequestCheck::Tools => self.checked.tools = held.call.step,
            RequestCheck::Interceptors => self.checked.interceptors = held.call.step,
            RequestCheck::Budgets => return cx.out.push(Action::CallModel(held.call)),
        }
        self.hold(cx, held.call);
    }

    /// Records that the tools of this step are settled: its request is made again with them.
    pub(super) fn note_tools_checked(&mut self) {
        self.checked.tools = self.spent.steps;
    }

    /// Records that the interceptors were asked about this step: its request is made again with their additions.
    pub(super) fn note_interceptors_checked(&mut self) {
        self.checked.interceptors = self.spent.steps;
    }

    pub(super) fn budget_spent(&mut self, cx: &mut Cx<'_>, reservation: Reservation) {
        if self.held_request().is_some() {
            let why = reservation.refused.unwrap_or_default();
            self.finish(cx, Ending::worded(StopReason::BudgetSpent, why));
        }
    }

    /// Takes up in another process what was held or had no reply. Its tools may be others.
    pub(super) fn resume_request(&mut self, cx: &mut Cx<'_>, unanswered: Option<ModelCall>) {
        match std::mem::replace(&mut self.phase, Phase::AwaitingReply) {
            Phase::Held(held) => {
                let before = held.call.step.saturating_sub(1);
                self.checked.tools = self.checked.tools.min(before);
                self.hold(cx, held.call);
            }
            Phase::AwaitingReply => {
                if let Some(call) = unanswered {
                    self.hold(cx, call);
                }
            }
            other => self.phase = other,
        }
    }

    /// Ends a held request as a cancelled one.
    pub(super) fn cancel_held(&mut self, cx: &mut Cx<'_>) {
        match std::mem::replace(&mut self.phase, Phase::AwaitingReply) {
            Phase::Held(held) => cx.out.push(Action::EndRequest {
                call: Box::new(held.call),
                error: ModelError::new(ErrorClass::Cancelled, "the request was cancelled"),
            }),
            other => self.phase = other,
        }
    }

    /// Moves the end of a request that is held by the time that a person was waited for.
    pub(super) fn delay_held(&mut self, waited: std::time::Duration) {
        if let Phase::Held(held) = &mut self.phase {
            held.call.delay(waited);
        }
    }

    /// Notes an answer: whatever the budgets then say, they say after it.
    pub(super) fn note_answer_to_held(&mut self, at: TimeMs) {
        if let Phase::Held(held) = &mut self.phase {
            held.since = at;
        }
    }
}
