//! Reservations with the budgets for each request, and their settlement.

use super::ask::{ANSWER_TIMEOUT, answer};
use super::{Driver, TaskEnd, guarded};
use crate::machine::{Input, RequestCheck};
use crate::ports::{
    Amount, Approver, BUDGET_TIMEOUT, Budgets, MailId, QuestionReply, Record, RecordBody,
    Reservation, ReservationRequest, Reserved, question_about_budget,
};
use rondo_types::{Answer, AnswerValue, Question, QuestionSubject, SessionId};
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

/// Reservations of a turn.
#[derive(Debug, Default)]
pub(super) struct Reservations {
    /// How many there were; it names the next one.
    count: u64,
    /// Set if a person let the turn exceed the budgets.
    beyond: bool,
    /// That of the request under way.
    open: Option<Reservation>,
    /// That of the request before, from the records: whether it was settled is not known.
    closed: Option<Reservation>,
    /// Ends when the request before is settled.
    settling: Option<oneshot::Receiver<()>>,
}

impl Reservations {
    pub(super) fn recorded(records: &[Record]) -> Self {
        let mut all = Self::default();
        for record in records {
            match &record.body {
                RecordBody::Reserved(reservation) => all.note(reservation),
                RecordBody::ModelReplied { .. } | RecordBody::ModelFailed { .. } => {
                    all.closed = all.open.take();
                }
                _ => {}
            }
        }
        all
    }

    fn note(&mut self, reservation: &Reservation) {
        self.count += 1;
        self.beyond |= reservation.beyond;
        self.closed = None;
        if reservation.refused.is_none() {
            self.open = Some(reservation.clone());
        }
    }
}

/// Result of asking for a request.
pub(super) struct BudgetReply {
    reservation: Reservation,
    given: Option<(Answer, Option<MailId>)>,
}

/// Asks the budgets for a request, and a person if they are spent.
pub(super) struct Funding {
    budgets: Arc<[Arc<dyn Budgets>]>,
    approver: Arc<dyn Approver>,
    cancel: CancellationToken,
    request: ReservationRequest,
    can_park: bool,
}

impl Funding {
    async fn ask(self, settled: Option<oneshot::Receiver<()>>) -> TaskEnd {
        if let Some(settled) = settled {
            // It ends also if the budget did not take it.
            settled.await.ok();
        }
        let Some(reason) = self.refusal().await else {
            return self.ended(None, None);
        };
        let subject = QuestionSubject {
            session: self.request.session.clone(),
            turn: self.request.turn.clone(),
            step: self.request.step,
            ..QuestionSubject::default()
        };
        let question = question_about_budget(subject, &self.request.id, &reason);
        TaskEnd::AskBudget(Box::new(self), question, reason)
    }

    /// Puts the question whether the turn may continue, which is recorded.
    async fn put(mut self, question: Question, reason: String) -> TaskEnd {
        let answered = tokio::select! {
            biased;
            () = self.cancel.cancelled() => None,
            () = sleep(ANSWER_TIMEOUT) => None,
            reply = answer(&self.approver, &question) => reply.ok(),
        };
        let (answer, mail) = match answered {
            Some(QuestionReply::Answered(answer, mail)) => (answer, mail),
            Some(QuestionReply::Later { expires }) if self.can_park => {
                return TaskEnd::Later(Question {
                    expires,
                    ..question
                });
            }
            Some(QuestionReply::Later { .. }) | None => return self.ended(Some(reason), None),
        };
        let is_approved = answer.value == AnswerValue::Approve;
        let given = Some((answer, mail));
        if !is_approved {
            return self.ended(Some(reason), given);
        }
        self.request.beyond = true;
        let refused = self.refusal().await;
        self.ended(refused, given)
    }

    /// Reserves with each budget, and returns why one refuses; what was granted so far is given back then.
    async fn refusal(&self) -> Option<String> {
        for (place, budget) in self.budgets.iter().enumerate() {
            let reserved = timeout(BUDGET_TIMEOUT, guarded(budget.reserve(&self.request)));
            let reserved = tokio::select! {
                biased;
                () = self.cancel.cancelled() => Ok(Err("the turn was cancelled".to_owned())),
                reserved = reserved => reserved,
            };
            let reason = match reserved {
                Ok(Ok(Reserved::Granted)) => continue,
                Ok(Ok(Reserved::Spent { reason })) => reason,
                Ok(Err(why)) => format!("the budget failed: {why}"),
                Err(_) => "the budget did not answer in time".to_owned(),
            };
            let granted = self.budgets.get(..=place).unwrap_or_default();
            let (session, id) = (&self.request.session, &self.request.id);
            settle(granted, session, id, Amount::default()).await;
            return Some(reason);
        }
        None
    }

    fn ended(self, refused: Option<String>, given: Option<(Answer, Option<MailId>)>) -> TaskEnd {
        let reservation = Reservation {
            id: self.request.id,
            estimate: self.request.estimate,
            beyond: self.request.beyond,
            refused,
        };
        TaskEnd::Funded(BudgetReply { reservation, given })
    }
}

impl Driver {
    /// Asks the budgets for the request that is held, and returns whether that is needed.
    pub(super) fn fund(&mut self) -> bool {
        // A request that was cut off is sent again from what was reserved for it.
        if self.setup.budgets.is_empty() || self.reservations.open.is_some() {
            return false;
        }
        let funding = Funding {
            budgets: self.setup.budgets.as_slice().into(),
            approver: Arc::clone(&self.setup.approver),
            cancel: self.tasks_cancel.clone(),
            request: ReservationRequest {
                session: self.setup.session.clone(),
                turn: self.setup.turn.clone(),
                step: self.machine.steps(),
                id: format!(
                    "budget-{}-{}",
                    self.setup.turn_number, self.reservations.count
                ),
                estimate: self.machine.next_amount(),
                beyond: self.reservations.beyond,
            },
            can_park: self.batch.keeps_records(),
        };
        let settled = self.reservations.settling.take();
        self.tasks.spawn(funding.ask(settled).in_current_span());
        true
    }

    /// Records the question whether the turn may continue, and puts it.
    pub(super) async fn put_budget(
        &mut self,
        funding: Funding,
        question: Question,
        reason: String,
    ) {
        self.at = self.held_since();
        if let Some(question) = self.record_question(question).await {
            let put = funding.put(question, reason);
            self.tasks.spawn(put.in_current_span());
        }
    }

    /// Takes the reservation for the held request, and returns the decision of the budgets; `None` if the request was
    /// stopped meanwhile.
    pub(super) fn funded(&mut self, funded: BudgetReply) -> Option<Input> {
        let BudgetReply { reservation, given } = funded;
        if let Some((answer, mail)) = given {
            self.note_answered(self.clock.now(), answer, mail);
        }
        if self.machine.held_request().is_none() {
            if reservation.refused.is_none() {
                self.settle_reservation(reservation, Amount::default());
            }
            return None;
        }
        self.reservations.note(&reservation);
        if reservation.refused.is_some() {
            return Some(Input::BudgetSpent { reservation });
        }
        let step = self.machine.steps();
        self.batch
            .note_reserved(self.held_since(), step, reservation);
        Some(Input::RequestPassed {
            check: RequestCheck::Budgets,
        })
    }

    /// Settles the request whose end the machine has received.
    pub(super) fn settle_request(&mut self) {
        if let Some(reservation) = self.reservations.open.take() {
            self.settle_reservation(reservation, self.machine.last_amount());
        }
    }

    /// Settles the request whose end is recorded; that it was settled is not.
    pub(super) fn settle_again(&mut self) {
        if let Some(reservation) = self.reservations.closed.take() {
            self.settle_reservation(reservation, self.machine.last_amount());
        }
    }

    /// The turn ends without the end of a request: it may have used all that was reserved, unless it was never sent.
    pub(super) async fn settle_the_rest(&mut self) {
        if let Some(Reservation { id, estimate, .. }) = self.reservations.open.take() {
            settle(&self.setup.budgets, &self.setup.session, &id, estimate).await;
        }
    }

    fn settle_reservation(&mut self, reservation: Reservation, used: Amount) {
        let budgets = self.setup.budgets.clone();
        let session = self.setup.session.clone();
        let (done, settled) = oneshot::channel();
        self.reservations.settling = Some(settled);
        let settling = async move {
            settle(&budgets, &session, &reservation.id, used).await;
            // The turn may be over.
            done.send(()).ok();
            TaskEnd::Settled
        };
        self.tasks.spawn(settling.in_current_span());
    }

    /// Answers a question about a budget with no; the turn ends by it.
    pub(super) fn refuse_budget(&mut self, question: &Question, reason: &str) {
        if self.machine.held_request().is_some() {
            let reservation = Reservation {
                id: question.id.0.clone(),
                estimate: self.machine.next_amount(),
                beyond: false,
                refused: Some(reason.to_owned()),
            };
            self.ready.push_back(Input::BudgetSpent { reservation });
        }
    }
}

async fn settle(budgets: &[Arc<dyn Budgets>], session: &SessionId, id: &str, used: Amount) {
    for budget in budgets {
        let settled = timeout(BUDGET_TIMEOUT, guarded(budget.settle(session, id, used))).await;
        if !matches!(settled, Ok(Ok(()))) {
            tracing::warn!(%session, id, "a budget did not take what was used");
        }
    }
}
