//! Questions: recorded, put to the approver one at a time, and void if what they are about changes meanwhile.

use super::intercept::Interceptors;
use super::judge::Judge;
use super::{CANCELLED, Driver, TaskEnd, guarded, not_approved};
use crate::machine::{Input, PlannedCall};
use crate::ports::{
    Approval, Approver, GateRequest, NotAnswered, QuestionReply, Terms, question_about_call,
    question_of_running_call,
};
use rondo_types::{
    Answer, AnswerValue, AskReason, CallId, EventBody, MailId, Question, QuestionKind,
    QuestionSubject, TimeMs,
};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

/// The bound on the time for one answer in place, for an approver that has none of its own.
pub(super) const ANSWER_TIMEOUT: Duration = Duration::from_hours(24 * 7);
/// How often a question is put again because what it is about changed before the answer; then the call is denied.
const ASKED_AGAIN_MAX: u32 = 3;
/// Said below the words of such a question.
const CHANGED: &str = "Asked again: the directory, variables or files changed before the answer.";
/// Message to the model if they do not stop changing.
const KEEPS_CHANGING: &str =
    "denied: the directory, environment or files changed while waiting for approval";
/// Message to the model if nothing can wait.
const NOT_LATER: &str = "the question cannot be answered later, since the turn is not recorded";
/// Message to a running call if no one answers in place.
const NOT_WHILE_RUNNING: &str = "the question cannot be answered while the call runs";
/// The actor of an answer to a running call that no person gave.
const NOBODY: &str = "nobody";

/// Asks, and returns the answer or why there is none.
pub(super) async fn answer(
    approver: &Arc<dyn Approver>,
    question: &Question,
) -> Result<QuestionReply, String> {
    let answered = guarded(approver.ask(question)).await;
    answered.map_err(|panic| format!("asking failed: {panic}"))
}

/// A question about a call, and the handling of its answer.
pub(super) struct CallAsk {
    subject: QuestionSubject,
    call_id: CallId,
    kind: QuestionKind,
    prompt: String,
    reasons: Vec<AskReason>,
    /// Terms of the approval; determined right before the question is asked.
    terms: Terms,
    /// How often it was put before.
    round: u32,
    /// The row of the mailbox with the answer that did not count.
    void: Option<MailId>,
    /// The call as the gate sees it; `None` if its tool is gone.
    judged: Option<GateRequest>,
    judge: Judge,
    interceptors: Interceptors,
    approver: Arc<dyn Approver>,
    cancel: CancellationToken,
    can_park: bool,
}

/// A question of a running call, and where its answer goes.
pub(super) struct RunningAsk {
    question: Question,
    reply: oneshot::Sender<Result<AnswerValue, NotAnswered>>,
}

impl Driver {
    /// Asks a person about a call, once that is recorded, and waits for the answer until the turn is stopped.
    pub(super) async fn ask(
        &mut self,
        call: PlannedCall,
        (prompt, reasons): (String, Vec<AskReason>),
        can_edit: bool,
    ) {
        let spec = self.setup.tools.spec(&call.name);
        let judged = spec.map(|spec| self.gate_request(spec, &call));
        let ask = CallAsk {
            call_id: call.call_id.clone(),
            subject: self.subject(call),
            kind: match can_edit {
                true => QuestionKind::Approval,
                false => QuestionKind::Repeat,
            },
            prompt,
            reasons,
            terms: Terms::default(),
            round: 0,
            void: None,
            judged,
            judge: self.judge(),
            interceptors: self.interceptors(),
            approver: Arc::clone(&self.setup.approver),
            cancel: self.tasks_cancel.clone(),
            can_park: self.batch.keeps_records(),
        };
        self.put(ask).await;
    }

    /// Returns the subject of a question about a call.
    fn subject(&self, call: PlannedCall) -> QuestionSubject {
        QuestionSubject {
            session: self.setup.session.clone(),
            turn: self.setup.turn.clone(),
            step: self.machine.steps(),
            record: 0,
            tool: call.name,
            arguments: call.arguments,
        }
    }

    /// Records a question about a call as it is now, and puts it.
    pub(super) async fn put(&mut self, mut ask: CallAsk) {
        self.batch.acknowledge(ask.void.take());
        if ask.round > ASKED_AGAIN_MAX {
            return self.ready.push_back(Input::Approval {
                call_id: ask.call_id,
                approval: not_approved(KEEPS_CHANGING),
            });
        }
        ask.learn_terms().await;
        let question = ask.question();
        let Some(question) = self.record_question(question).await else {
            return;
        };
        self.tasks.spawn(ask.put(question).in_current_span());
    }

    /// Makes a question durable; `None` if the journal fails, which ends the turn.
    pub(super) async fn record_question(&mut self, mut question: Question) -> Option<Question> {
        let step = self.machine.steps();
        question.subject.record = self.batch.note_asked(self.at, step, question.clone());
        let asked = Input::Asked {
            question: question.id.clone(),
            call: question.call.clone(),
            is_of_running_call: question.is_of_running_call(),
        };
        self.machine.handle(self.at, asked, &self.catalog);
        if !self.flush().await {
            return None;
        }
        self.emit(EventBody::QuestionAsked {
            question: Box::new(question.clone()),
        });
        Some(question)
    }

    /// Records an answer, and reports it.
    pub(super) fn note_answered(&mut self, at: TimeMs, answer: Answer, mail: Option<MailId>) {
        let step = self.machine.steps();
        let (question, actor) = (answer.question.clone(), answer.actor.clone());
        self.batch.note_answered(at, step, answer, mail);
        let answered = Input::Answered {
            question: question.clone(),
        };
        self.machine.handle(at, answered, &self.catalog);
        let answered = EventBody::QuestionAnswered { question, actor };
        self.events.send(at, answered);
    }

    /// Records what a running call asks, and puts it.
    pub(super) async fn put_of_running(&mut self, ask: RunningAsk) {
        self.at = self.clock.now();
        let RunningAsk {
            question,
            mut reply,
        } = ask;
        let Some(question) = self.record_question(question).await else {
            return;
        };
        let approver = Arc::clone(&self.setup.approver);
        let put = async move {
            let answered = tokio::select! {
                biased;
                // The call must end.
                () = reply.closed() => return TaskEnd::Settled,
                answered = answer(&approver, &question) => answered,
            };
            let no_answer = |reason: &str| question.answered(NOBODY, AnswerValue::deny(reason));
            // Without a record of it the question would be listed, and could be answered, until the call ends.
            let (answer, mail) = match answered {
                Ok(QuestionReply::Answered(answer, mail)) => (answer, mail),
                Ok(QuestionReply::Later { .. }) => (no_answer(NOT_WHILE_RUNNING), None),
                Err(reason) => (no_answer(&reason), None),
            };
            TaskEnd::AnsweredRunning {
                answer,
                mail,
                reply,
            }
        };
        self.tasks.spawn(put.in_current_span());
    }

    /// Hands an answer to the running call that asked, once it is durable.
    pub(super) async fn answered_running(
        &mut self,
        (answer, mail): (Answer, Option<MailId>),
        reply: oneshot::Sender<Result<AnswerValue, NotAnswered>>,
    ) {
        let value = answer.value.clone();
        self.note_answered(self.clock.now(), answer, mail);
        if self.flush().await {
            // The call may have ended.
            reply.send(Ok(value)).ok();
        }
    }
}

fn denied(reason: String) -> NotAnswered {
    NotAnswered::Denied { reason }
}

/// Puts the question of a running call to `asks`, until the call must end.
pub(super) async fn ask_of_running(
    asks: mpsc::Sender<Box<RunningAsk>>,
    own: CancellationToken,
    (subject, call_id): (QuestionSubject, CallId),
    (number, kind, prompt): (usize, QuestionKind, String),
) -> Result<AnswerValue, NotAnswered> {
    let (reply, answer) = oneshot::channel();
    let question = question_of_running_call(subject, &call_id, number, kind, &prompt);
    let asked = async {
        let lost = || denied("the turn is over".to_owned());
        let ask = Box::new(RunningAsk { question, reply });
        asks.send(ask).await.map_err(|_| lost())?;
        answer.await.map_err(|_| lost())?
    };
    tokio::select! {
        biased;
        () = own.cancelled() => Err(NotAnswered::Cancelled),
        answer = asked => answer,
    }
}

/// Outcome of a question about a call.
#[expect(
    clippy::large_enum_variant,
    reason = "one is held at a time, and not for long"
)]
enum CallAnswer {
    /// Someone answered.
    Given(Answer, Option<MailId>),
    /// No answer came, and the call is denied for this reason.
    Denied(String),
    Later(Option<TimeMs>),
}

impl CallAsk {
    /// Returns the question as it is put now.
    fn question(&self) -> Question {
        let prompt = match self.round {
            0 => self.prompt.clone(),
            _ => format!("{}\n{CHANGED}", self.prompt),
        };
        self.worded(prompt)
    }

    fn worded(&self, prompt: String) -> Question {
        let (subject, kind) = (self.subject.clone(), self.kind.clone());
        Question {
            reasons: self.reasons.clone(),
            ..question_about_call(subject, &self.call_id, kind, prompt, &self.terms)
        }
    }

    async fn put(mut self, question: Question) -> TaskEnd {
        let (approval, given) = match self.answer(question).await {
            CallAnswer::Later(expires) if self.can_park => {
                return TaskEnd::Later(Question {
                    expires,
                    // As it is asked when the turn continues.
                    ..self.worded(self.prompt.clone())
                });
            }
            CallAnswer::Later(_) => (not_approved(NOT_LATER), None),
            CallAnswer::Denied(reason) => (not_approved(&reason), None),
            CallAnswer::Given(answer, mail) => {
                (Approval::of_answer(&answer.value), Some((answer, mail)))
            }
        };
        if approval == Approval::Approved && !self.still_holds().await {
            self.round += 1;
            self.void = given.and_then(|(_, mail)| mail);
            return TaskEnd::AskAgain(Box::new(self));
        }
        self.settled(approval, given).await
    }

    async fn settled(self, approval: Approval, given: Option<(Answer, Option<MailId>)>) -> TaskEnd {
        let given = given.map(|(mut answer, mail)| {
            let offers = &self.terms.offers;
            answer.remember = answer
                .remember
                .filter(|it| approval == Approval::Approved && offers.contains(it));
            if let Some(grant) = &answer.remember {
                self.judge.remember(grant);
            }
            (answer, mail)
        });
        let call_id = self.call_id.clone();
        let approval = self
            .judge
            .check_edit(self.interceptors, self.judged, approval)
            .await;
        let input = Input::Approval { call_id, approval };
        match given {
            Some((answer, mail)) => TaskEnd::Given {
                input,
                answer,
                mail,
            },
            None => TaskEnd::Input(input),
        }
    }

    async fn learn_terms(&mut self) {
        let Some(judged) = &self.judged else {
            return;
        };
        self.terms = self.judge.terms(judged).await.unwrap_or_default();
        if self.kind != QuestionKind::Approval {
            // A yes to a call that may have been done already says nothing about others.
            self.terms.offers.clear();
        }
    }

    /// Returns whether the call is still the one that was asked about.
    async fn still_holds(&self) -> bool {
        match &self.judged {
            Some(judged) => {
                let terms = self.judge.terms(judged).await;
                terms.is_some_and(|it| it.hash == self.terms.hash)
            }
            None => true,
        }
    }

    async fn answer(&self, question: Question) -> CallAnswer {
        tokio::select! {
            () = self.cancel.cancelled() => CallAnswer::Denied(CANCELLED.to_owned()),
            () = sleep(ANSWER_TIMEOUT) => CallAnswer::Denied("there was no answer in time".to_owned()),
            answer = answer(&self.approver, &question) => match answer {
                Ok(QuestionReply::Answered(answer, mail)) => CallAnswer::Given(answer, mail),
                Ok(QuestionReply::Later { expires }) => CallAnswer::Later(expires),
                Err(reason) => CallAnswer::Denied(reason),
            },
        }
    }
}
