//! Parking: a turn whose questions are answered later lets go of everything until then.

use super::tool_work::WaitingCall;
use super::{CANCELLED, Driver, not_approved, resume};
use crate::machine::Input;
use crate::observe::Moment;
use crate::ports::CHILD_QUESTIONS_MAX;
use rondo_types::{
    CallId, EventBody, Message, Outcome, Question, QuestionKind, Recovery, ToolErrorCode,
    ToolOutcome,
};
use std::collections::HashSet;

/// How a turn's work here ended.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub enum TurnEnd {
    /// It is over.
    Done(Box<Outcome>),
    /// It waits for answers; [`resume_turn`](super::resume_turn) continues it.
    Parked(ParkedTurn),
}

/// A turn that waits for answers. All of it is in its records.
#[derive(Debug, Clone, PartialEq)]
pub struct ParkedTurn {
    /// Open questions, in the order in which they were asked; never empty.
    pub questions: Vec<Question>,
    /// Steering messages that it has not taken. The caller may send them again.
    pub undelivered_steering: Vec<Message>,
}

impl TurnEnd {
    /// Returns the outcome; `None` if the turn is parked, which it never is by an approver that always answers.
    #[must_use]
    pub fn outcome(self) -> Option<Outcome> {
        match self {
            Self::Done(outcome) => Some(*outcome),
            Self::Parked(_) => None,
        }
    }
}

impl Driver {
    /// Returns whether questions wait and nothing else is under way.
    pub(super) fn is_to_be_parked(&self) -> bool {
        !self.questions.is_empty()
            && self.ready.is_empty()
            && self.model.is_none()
            && self.wait.is_none()
            && self.tasks.is_empty()
    }

    /// Records what the turn waits for, and lets go of it. If it cannot be recorded the questions are denied, and
    /// the turn continues to its end.
    pub(super) async fn park(mut self: Box<Self>) -> TurnEnd {
        self.at = self.clock.now();
        let questions = std::mem::take(&mut self.questions);
        self.batch
            .note_parked(self.at, self.machine.steps(), questions.clone());
        if !self.flush().await {
            self.questions = questions;
            self.deny_questions("the question could not be recorded");
            return Box::pin(self.run()).await;
        }
        let undelivered_steering = self.control.undelivered();
        tracing::info!(
            session = %self.setup.session,
            questions = questions.len(),
            "turn parked"
        );
        self.emit(EventBody::Parked {
            questions: questions.clone(),
        });
        self.events.observe(&Moment::Parked {
            questions: &questions,
        });
        TurnEnd::Parked(ParkedTurn {
            questions,
            undelivered_steering,
        })
    }

    /// Lets the turn wait with the questions of a call's child, or ends the call if it cannot.
    pub(super) fn wait_for_child(&mut self, waiting: WaitingCall) {
        let WaitingCall {
            call,
            child,
            mut questions,
        } = waiting;
        if self.tasks_cancel.is_cancelled() {
            return self.ended(call, ToolErrorCode::Cancelled, CANCELLED);
        }
        let refused = if resume::recovery(&self.setup.tools, &call) != Recovery::Checkable {
            Some(
                "the tool cannot wait for the session that it started: it does not say what becomes of its calls",
            )
        } else if questions.is_empty() {
            Some("the session that the call started has no open question")
        } else if !self.batch.keeps_records() {
            Some("the question cannot be answered later, since the turn is not recorded")
        } else {
            None
        };
        if let Some(why) = refused {
            return self.ended(call, ToolErrorCode::Failed, why);
        }
        questions.truncate(CHILD_QUESTIONS_MAX);
        let questions = questions.into_iter();
        let asked = questions.map(|it| it.of_child(&child, &call.call_id));
        self.questions.extend(asked);
    }

    /// Denies the questions that wait.
    pub(super) fn deny_questions(&mut self, reason: &str) {
        let mut ended = HashSet::new();
        for question in std::mem::take(&mut self.questions) {
            if let (Some(_), Some(call_id)) = (&question.child, &question.call) {
                if ended.insert(call_id.clone()) {
                    let outcome = ToolOutcome::error(ToolErrorCode::Cancelled, reason);
                    self.ready.push_back(Input::ToolFinished {
                        call_id: call_id.clone(),
                        outcome,
                        duration_ms: 0,
                    });
                }
                continue;
            }
            if question.kind == QuestionKind::Budget {
                self.refuse_budget(&question, reason);
                continue;
            }
            let call_id = question.call.unwrap_or_else(|| CallId::new(question.id.0));
            self.ready.push_back(Input::Approval {
                call_id,
                approval: not_approved(reason),
            });
        }
    }
}
