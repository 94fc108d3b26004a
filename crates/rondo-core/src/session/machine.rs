//! The machine itself: takes one input at a time and says what to do.

use super::io::{Action, Delivery, Input, QueuedMessage, Refusal, Run, SessionEvent, TicketId};
use rondo_types::{Answer, AnswerValue, Message, Question, TimeMs, TurnId};
use std::collections::VecDeque;

/// The bound on messages that wait in a session.
pub const QUEUED_MAX: usize = 256;

/// The actor of a denial because no answer came in time.
const EXPIRY: &str = "expiry";
/// The actor of a denial because the turn was stopped.
const STOP: &str = "stop";

/// One session, as its owner sees it.
///
/// It owns the session only while it has something to do: a session that waits for a message or an answer is free
/// for any process.
#[derive(Debug, Default)]
pub struct SessionMachine {
    ownership: Ownership,
    turn: Turn,
    /// The latest run that was begun.
    run: Run,
    /// Messages that wait, in the order in which they came.
    queue: VecDeque<ArrivedMessage>,
    /// Messages that were handed to the turn that runs, and that it did not take yet.
    handed: VecDeque<ArrivedMessage>,
    /// Answers that came before the session was taken, or while its turn ran. The mailbox bounds them.
    answers: Vec<Answer>,
    /// Set if the turn must be stopped as soon as the session is taken.
    is_cancelled: bool,
    /// Set if no further turn may begin.
    is_draining: bool,
    /// How many messages came so far.
    arrivals: u64,
    /// A person's cells that wait. They run between turns, and before the messages that wait: a person waits for
    /// their end.
    cells: usize,
    is_cell_running: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Ownership {
    #[default]
    Free,
    Taking,
    Owned,
}

/// The session's latest turn.
#[derive(Debug, Default)]
enum Turn {
    /// Over.
    #[default]
    Over,
    Running {
        is_cancelled: bool,
        /// Author of its message; unknown for a turn that continues after a restart or an answer.
        actor: Option<String>,
    },
    CutOff(TurnId),
    Parked(ParkedState),
}

#[derive(Debug)]
struct ParkedState {
    turn: TurnId,
    questions: Vec<Question>,
    /// At most one for each question.
    answers: Vec<Answer>,
}

#[derive(Debug)]
struct ArrivedMessage {
    /// Its place in the order of arrival.
    arrival: u64,
    message: QueuedMessage,
}

impl SessionMachine {
    /// A session without an owner.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes an input that came at `now`, and returns what to do, in order.
    pub fn handle(&mut self, now: TimeMs, input: Input) -> Vec<Action> {
        let mut actions = Vec::new();
        self.take(now, input, &mut actions);
        self.advance(&mut actions);
        actions
    }

    /// Returns whether the session is neither owned nor wanted: such a machine can be dropped.
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
        self.ownership == Ownership::Free
    }

    /// Returns the messages that were handed to the turn that runs and that it did not take yet, in order.
    pub fn handed(&self) -> impl Iterator<Item = &QueuedMessage> {
        self.handed.iter().map(|it| &it.message)
    }

    fn take(&mut self, now: TimeMs, input: Input, out: &mut Vec<Action>) {
        match input {
            Input::Submitted(message) => self.submitted(message, out),
            Input::Edited { ticket, message } => self.edited(ticket, message, out),
            Input::Withdrawn { ticket } => self.withdrawn(ticket, out),
            Input::Taken { open, waiting } => self.taken(now, open, waiting, out),
            Input::NotTaken => self.lost(out),
            Input::Steered { run, ticket } => self.steered(run, &ticket, out),
            Input::TurnEnded { run } => self.ended(run),
            Input::NotStarted { run } if self.runs(run) => self.release(out),
            Input::NotStarted { .. } => {}
            Input::Parked {
                run,
                turn,
                questions,
            } => self.parked(run, turn, questions, out),
            Input::Answered(answer) => {
                // The same one is in the mailbox when the session is taken.
                if !self.answers.contains(&answer) {
                    self.answers.push(answer);
                }
            }
            // The session is taken, and what expired is seen then.
            Input::Due if self.is_at_rest() => self.want(out),
            Input::Due => {}
            Input::Cancel => self.cancel(out),
            Input::OwnerLost if self.ownership == Ownership::Owned => {
                if matches!(self.turn, Turn::Running { .. }) {
                    out.push(Action::CancelTurn { run: self.run });
                }
                if self.is_cell_running {
                    out.push(Action::StopCell);
                }
                self.lost(out);
            }
            Input::OwnerLost => {}
            Input::Drain => self.is_draining = true,
            Input::CellAsked => self.cell_asked(out),
            Input::CellEnded if self.is_cell_running => self.cell_ended(now, out),
            Input::CellEnded => {}
        }
    }

    /// Does the next work: takes the session, begins the next turn, or releases the session.
    fn advance(&mut self, out: &mut Vec<Action>) {
        match self.ownership {
            Ownership::Taking => {}
            Ownership::Free => {
                if self.is_cancelled || !self.answers.is_empty() {
                    self.want(out);
                }
            }
            Ownership::Owned => self.advance_owned(out),
        }
    }

    fn advance_owned(&mut self, out: &mut Vec<Action>) {
        // A turn that was cut off may have gone on with answers that it did not record yet, and asks again. One that runs
        // may have asked what is not known here yet.
        if matches!(self.turn, Turn::Over) {
            for answer in std::mem::take(&mut self.answers) {
                let question = answer.question;
                out.push(Action::Refuse(Refusal::NoQuestion { question }));
            }
        }
        match &self.turn {
            _ if self.is_cell_running => {}
            Turn::Running { .. } => {}
            _ if self.is_draining => self.release(out),
            _ if self.cells > 0 => {
                self.cells -= 1;
                self.is_cell_running = true;
                out.push(Action::RunCell);
            }
            Turn::Over => match self.queue.pop_front() {
                Some(next) => self.start(next.message, out),
                None => {
                    self.release(out);
                    out.push(Action::Tell(SessionEvent::Idle));
                }
            },
            Turn::CutOff(turn) => {
                let turn = turn.clone();
                let answers = std::mem::take(&mut self.answers);
                self.resume(turn, answers, out);
            }
            Turn::Parked(parked) if parked.is_answered() => {
                let (turn, answers) = (parked.turn.clone(), parked.answers.clone());
                self.resume(turn, answers, out);
            }
            Turn::Parked(_) => {
                let came_meanwhile = !self.answers.is_empty();
                self.release(out);
                if came_meanwhile {
                    self.want(out);
                }
            }
        }
    }

    fn want(&mut self, out: &mut Vec<Action>) {
        self.ownership = Ownership::Taking;
        out.push(Action::Take);
    }

    /// Lets go of the session and forgets it. Messages that wait are rows, open questions are records.
    fn release(&mut self, out: &mut Vec<Action>) {
        self.forget();
        out.push(Action::Release);
    }

    fn lost(&mut self, out: &mut Vec<Action>) {
        self.forget();
        out.push(Action::Tell(SessionEvent::Lost));
    }

    fn forget(&mut self) {
        *self = Self {
            run: self.run,
            arrivals: self.arrivals,
            is_draining: self.is_draining,
            ..Self::default()
        };
    }

    fn start(&mut self, message: QueuedMessage, out: &mut Vec<Action>) {
        let run = self.begin_run(Some(message.actor.clone()));
        let ticket = message.ticket.clone();
        out.push(Action::Start {
            run,
            message: Box::new(message),
        });
        out.push(Action::Tell(SessionEvent::Delivered { ticket }));
        self.cancel_if_asked(out);
    }

    fn resume(&mut self, turn: TurnId, answers: Vec<Answer>, out: &mut Vec<Action>) {
        let run = self.begin_run(None);
        out.push(Action::Resume { run, turn, answers });
        self.cancel_if_asked(out);
    }

    fn begin_run(&mut self, actor: Option<String>) -> Run {
        self.run.0 += 1;
        self.turn = Turn::Running {
            is_cancelled: false,
            actor,
        };
        self.run
    }

    fn cancel_if_asked(&mut self, out: &mut Vec<Action>) {
        if std::mem::take(&mut self.is_cancelled) {
            self.cancel(out);
        }
    }

    fn submitted(&mut self, message: QueuedMessage, out: &mut Vec<Action>) {
        if self.is_draining || self.knows(&message.ticket) {
            return;
        }
        // It is among the messages that the session is taken with.
        if self.is_at_rest() {
            return self.want(out);
        }
        let ticket = message.ticket.clone();
        if self.queue.len() + self.handed.len() >= QUEUED_MAX {
            let max = QUEUED_MAX;
            return out.push(Action::Refuse(Refusal::QueueFull { ticket, max }));
        }
        let waiting = self.arrived(message);
        if self.takes_steering_by(&waiting.message) {
            return self.hand(waiting, out);
        }
        let ahead = u32::try_from(self.queue.len()).unwrap_or(u32::MAX);
        self.queue.push_back(waiting);
        out.push(Action::Tell(SessionEvent::Queued { ticket, ahead }));
    }

    fn knows(&self, ticket: &TicketId) -> bool {
        let mut known = self.queue.iter().chain(&self.handed);
        known.any(|it| it.message.ticket == *ticket)
    }

    fn arrived(&mut self, message: QueuedMessage) -> ArrivedMessage {
        self.arrivals += 1;
        ArrivedMessage {
            arrival: self.arrivals,
            message,
        }
    }

    /// Returns whether a message joins the turn that runs. It joins none that is being stopped.
    fn takes_steering_by(&self, message: &QueuedMessage) -> bool {
        let Turn::Running {
            is_cancelled: false,
            actor,
        } = &self.turn
        else {
            return false;
        };
        match message.delivery {
            Delivery::Steer => true,
            Delivery::SteerOwn => actor.as_ref() == Some(&message.actor),
            Delivery::Queue | Delivery::Compact => false,
        }
    }

    fn hand(&mut self, waiting: ArrivedMessage, out: &mut Vec<Action>) {
        out.push(Action::Steer {
            run: self.run,
            message: Box::new(waiting.message.clone()),
        });
        self.handed.push_back(waiting);
    }

    fn edited(&mut self, ticket: TicketId, message: Message, out: &mut Vec<Action>) {
        let mut all = self.queue.iter_mut().chain(&mut self.handed);
        match all.find(|it| it.message.ticket == ticket) {
            Some(waiting) => {
                waiting.message.message = message;
                out.push(Action::Tell(SessionEvent::Edited { ticket }));
            }
            None => out.push(Action::Refuse(Refusal::NotWaiting { ticket })),
        }
    }

    fn withdrawn(&mut self, ticket: TicketId, out: &mut Vec<Action>) {
        let waiting = self.queue.len() + self.handed.len();
        // A message that the turn did not take yet waits, too.
        for waits in [&mut self.queue, &mut self.handed] {
            waits.retain(|it| it.message.ticket != ticket);
        }
        out.push(match self.queue.len() + self.handed.len() < waiting {
            true => Action::Tell(SessionEvent::Withdrawn { ticket }),
            false => Action::Refuse(Refusal::NotWaiting { ticket }),
        });
    }

    fn taken(
        &mut self,
        now: TimeMs,
        open: Option<(TurnId, Vec<Question>)>,
        waiting: Vec<QueuedMessage>,
        out: &mut Vec<Action>,
    ) {
        if self.ownership != Ownership::Taking {
            return;
        }
        self.ownership = Ownership::Owned;
        self.begin_queue(waiting);
        self.turn = match open {
            None => Turn::Over,
            Some((turn, questions)) if questions.is_empty() => Turn::CutOff(turn),
            Some((turn, questions)) => Turn::Parked(ParkedState {
                turn,
                questions,
                answers: Vec::new(),
            }),
        };
        match &self.turn {
            // There is nothing to stop.
            Turn::Over => self.is_cancelled = false,
            Turn::Parked(_) => self.answer(now, out),
            Turn::CutOff(_) | Turn::Running { .. } => {}
        }
    }

    /// Queues the messages of the mailbox before those that came since it was read.
    fn begin_queue(&mut self, waiting: Vec<QueuedMessage>) {
        let since = std::mem::take(&mut self.queue);
        // Mostly it is one, and without a bound there would be room for four.
        self.queue.reserve_exact(waiting.len());
        for message in waiting {
            let waiting = self.arrived(message);
            self.queue.push_back(waiting);
        }
        for newer in since.into_iter().map(|it| it.message) {
            if !self.knows(&newer.ticket) {
                let waiting = self.arrived(newer);
                self.queue.push_back(waiting);
            }
        }
    }

    fn steered(&mut self, run: Run, ticket: &TicketId, out: &mut Vec<Action>) {
        let handed = self.handed.iter();
        let at = handed.enumerate().find(|it| it.1.message.ticket == *ticket);
        if let Some((at, _)) = at.filter(|_| run == self.run) {
            self.handed.remove(at);
            let ticket = ticket.clone();
            out.push(Action::Tell(SessionEvent::Delivered { ticket }));
        }
    }

    fn ended(&mut self, run: Run) {
        if self.runs(run) {
            self.turn = Turn::Over;
            self.take_back_steering();
        }
    }

    fn parked(&mut self, run: Run, turn: TurnId, questions: Vec<Question>, out: &mut Vec<Action>) {
        if !self.runs(run) {
            return;
        }
        self.is_cancelled = matches!(
            self.turn,
            Turn::Running {
                is_cancelled: true,
                ..
            }
        );
        self.take_back_steering();
        out.push(Action::Tell(SessionEvent::Parked {
            questions: questions.clone(),
        }));
        self.turn = Turn::Parked(ParkedState {
            turn,
            questions,
            answers: Vec::new(),
        });
        if self.is_cancelled {
            self.answer(TimeMs(0), out);
        }
    }

    fn runs(&self, run: Run) -> bool {
        run == self.run && matches!(self.turn, Turn::Running { .. })
    }

    /// Queues steering again that the turn did not take, at its old place.
    fn take_back_steering(&mut self) {
        self.queue.extend(self.handed.drain(..));
        self.queue.make_contiguous().sort_by_key(|it| it.arrival);
    }

    fn cell_asked(&mut self, out: &mut Vec<Action>) {
        if self.is_draining {
            return;
        }
        self.cells += 1;
        if self.is_at_rest() {
            self.want(out);
        }
    }

    /// Answers may have come while it ran, and questions expired.
    fn cell_ended(&mut self, now: TimeMs, out: &mut Vec<Action>) {
        self.is_cell_running = false;
        self.answer(now, out);
    }

    fn cancel(&mut self, out: &mut Vec<Action>) {
        if self.is_cell_running {
            return out.push(Action::StopCell);
        }
        match &mut self.turn {
            Turn::Running { is_cancelled, .. } => {
                if !std::mem::replace(is_cancelled, true) {
                    out.push(Action::CancelTurn { run: self.run });
                }
            }
            _ => self.is_cancelled = true,
        }
    }

    /// Gives a parked turn the answers that came, denies what expired, and all that is left if the turn is to
    /// be stopped.
    fn answer(&mut self, now: TimeMs, out: &mut Vec<Action>) {
        let Turn::Parked(parked) = &mut self.turn else {
            return;
        };
        for answer in std::mem::take(&mut self.answers) {
            parked.take(answer, out);
        }
        for question in parked.open() {
            let is_expired = question.expires.is_some_and(|at| at <= now);
            let (actor, reason) = match (is_expired, self.is_cancelled) {
                (true, _) => (EXPIRY, "the question expired without an answer"),
                (false, true) => (STOP, "the turn was stopped"),
                (false, false) => continue,
            };
            parked.take(denied(&question, actor, reason), out);
        }
    }
}

impl ParkedState {
    fn is_answered(&self) -> bool {
        self.questions.len() == self.answers.len()
    }

    fn open(&self) -> Vec<Question> {
        let is_open = |it: &&Question| !self.answers.iter().any(|answer| answer.question == it.id);
        self.questions.iter().filter(is_open).cloned().collect()
    }

    /// Takes the first answer to a question that is as the one who answers read it.
    fn take(&mut self, answer: Answer, out: &mut Vec<Action>) {
        if self.answers.contains(&answer) {
            return;
        }
        let question = answer.question.clone();
        let Some(asked) = self.open().into_iter().find(|it| it.id == question) else {
            return out.push(Action::Refuse(Refusal::NoQuestion { question }));
        };
        if asked.hash != answer.hash {
            return out.push(Action::Refuse(Refusal::Changed { question }));
        }
        let actor = answer.actor.clone();
        out.push(Action::Tell(SessionEvent::Answered { question, actor }));
        self.answers.push(answer);
    }
}

fn denied(question: &Question, actor: &str, reason: &str) -> Answer {
    let reason = reason.to_owned();
    question.answered(actor, AnswerValue::Deny { reason })
}
