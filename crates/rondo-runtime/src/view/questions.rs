//! The questions that a turn waits for, those of the sessions that it started included.

use super::Fold;
use rondo_types::{CallId, EventBody, Question, QuestionId, TurnEvent};

impl Fold {
    /// Returns the questions that are open.
    #[must_use]
    pub fn questions(&self) -> &[Question] {
        self.turn().map_or(&[], |turn| &turn.waits_for)
    }

    /// Takes the questions of an event.
    pub(super) fn of_questions(&mut self, body: &EventBody) {
        match body {
            EventBody::Parked { questions } => self.waits_for(questions),
            EventBody::Resumed { .. } | EventBody::Result(_) => self.waits_for(&[]),
            EventBody::QuestionAsked { question } => self.ask(question.as_ref().clone()),
            EventBody::QuestionAnswered { question, .. } => self.settle(|it| it.id == *question),
            EventBody::ApprovalResolved { id, .. } | EventBody::ToolCallFinished { id, .. } => {
                self.settle(|it| it.call.as_ref() == Some(id));
            }
            EventBody::ChildEvent { id, event } => self.of_child(id, event),
            _ => {}
        }
    }

    fn of_child(&mut self, call: &CallId, event: &TurnEvent) {
        let child = &event.session;
        let named = |id: &QuestionId| QuestionId(format!("{child}:{id}"));
        match &event.body {
            EventBody::QuestionAsked { question } => {
                self.ask(question.as_ref().clone().of_child(child, call));
            }
            EventBody::QuestionAnswered { question, .. } => {
                self.settle(|it| it.id == named(question));
            }
            EventBody::ApprovalResolved { id, .. } => {
                let of_call = named(&QuestionId::of_call(id));
                self.settle(|it| it.id == of_call);
            }
            EventBody::Result(_) => self.settle(|it| it.child.as_ref() == Some(child)),
            _ => {}
        }
    }

    /// Takes a question that is open, in place of one by that name.
    fn ask(&mut self, question: Question) {
        self.settle(|it| it.id == question.id);
        if let Some(turn) = &mut self.turn {
            turn.waits_for.push(question);
        }
    }

    fn settle(&mut self, is_over: impl Fn(&Question) -> bool) {
        if let Some(turn) = &mut self.turn {
            turn.waits_for.retain(|it| !is_over(it));
        }
    }
}
