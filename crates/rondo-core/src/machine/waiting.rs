//! The time that people are waited for, which counts against no limit of the turn.

use super::turn::TurnMachine;
use rondo_types::{CallId, QuestionId, TimeMs};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The open questions of a turn, and how long their answers were waited for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct OpenQuestions {
    open: Vec<OpenQuestion>,
    waited: Duration,
    /// Up to when time is counted: questions that are open at once count once.
    counted_until: TimeMs,
}

/// A question without an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct OpenQuestion {
    id: QuestionId,
    call: Option<CallId>,
    asked_at: TimeMs,
    /// Set if its call runs meanwhile. Then it counts once it is answered, since the call may have continued without an
    /// answer.
    is_of_running_call: bool,
}

impl OpenQuestions {
    /// Counts the time until now, if the turn does nothing but wait for an answer.
    pub(super) fn count(&mut self, at: TimeMs) {
        let open = self.open.iter().filter(|it| !it.is_of_running_call);
        if let Some(since) = open.map(|it| it.asked_at).min() {
            self.count_from(since, at);
        }
    }

    fn count_from(&mut self, since: TimeMs, at: TimeMs) {
        let since = since.max(self.counted_until);
        self.waited = self.waited.saturating_add(at.since(since));
        self.counted_until = self.counted_until.max(at);
    }

    /// Notes a question. One that is asked again, since what it is about changed, is the same.
    pub(super) fn ask(
        &mut self,
        asked_at: TimeMs,
        (id, call): (QuestionId, Option<CallId>),
        is_of_running_call: bool,
    ) {
        if self.open.iter().all(|it| it.id != id) {
            self.open.push(OpenQuestion {
                id,
                call,
                asked_at,
                is_of_running_call,
            });
        }
    }

    /// Notes the answer to a question.
    pub(super) fn answer(&mut self, at: TimeMs, id: &QuestionId) {
        let place = self.open.iter().position(|it| it.id == *id);
        let Some(question) = place.map(|place| self.open.remove(place)) else {
            return;
        };
        if question.is_of_running_call {
            self.count_from(question.asked_at, at);
        }
    }

    /// Forgets the questions of a call that continues or has ended.
    pub(super) fn forget_call(&mut self, call_id: &CallId) {
        self.open.retain(|it| it.call.as_ref() != Some(call_id));
    }

    /// Forgets all questions: a turn that continues in another process asks them again.
    pub(super) fn forget_all(&mut self) {
        self.open.clear();
    }
}

impl TurnMachine {
    /// Returns how long people were waited for.
    pub(crate) fn waited(&self) -> Duration {
        self.waiting.waited
    }

    /// Returns whether a question is open, so that the deadline is not known yet.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.waiting.open.is_empty()
    }
}
