//! The inputs and actions of the session machine.

use rondo_types::{Answer, Message, Question, QuestionId, TurnId};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Names a submitted message: the key of its row in the mailbox. It is unique within a session.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TicketId(pub String);

impl fmt::Display for TicketId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Treatment of a message that is submitted while a turn runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Delivery {
    /// It begins a turn of its own, after those before it.
    Queue,
    /// It joins the turn that runs, before that turn's next request. If none runs it begins one.
    Steer,
    /// As [`Delivery::Steer`], but it joins a turn only that the same actor began: what a turn may do follows from who
    /// began it. While another one's runs, and while one runs that continued after a restart or an answer, it waits.
    SteerOwn,
    /// It begins a turn that only sums up what was said, after those before it. It says what the summary is to
    /// look at; that may be nothing.
    Compact,
}

/// A submitted message, as the mailbox holds it.
#[derive(Debug, Clone, PartialEq)]
pub struct QueuedMessage {
    /// Row of the message.
    pub ticket: TicketId,
    /// Text and media of the message.
    pub message: Message,
    /// Treatment while a turn runs.
    pub delivery: Delivery,
    /// Author of the message.
    pub actor: String,
}

/// Counts the runs of turns that a machine began, from 1: the late end of a run whose session was lost is not
/// taken for the end of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Run(pub u64);

/// An input to the session machine.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// A message is in the mailbox.
    Submitted(QueuedMessage),
    /// A message that waits was changed.
    Edited {
        /// Row of the message.
        ticket: TicketId,
        /// New content of the message.
        message: Message,
    },
    /// A message that waits was taken back.
    Withdrawn {
        /// Row of the message.
        ticket: TicketId,
    },
    /// The session is owned now: what [`Action::Take`] asked for.
    Taken {
        /// Its last turn, if that has no recorded end, and what the turn waits for if it is parked.
        open: Option<(TurnId, Vec<Question>)>,
        /// The messages in its mailbox, oldest first, read after it was taken.
        waiting: Vec<QueuedMessage>,
    },
    /// The session could not be taken: another process owns it, or its records cannot be read.
    NotTaken,
    /// The turn took a steering message into its transcript.
    Steered {
        /// The run.
        run: Run,
        /// Row of the message.
        ticket: TicketId,
    },
    /// The turn is over. Steering that it did not take waits again, in its order.
    TurnEnded {
        /// The run.
        run: Run,
    },
    /// The turn could not be begun or resumed, such as for want of a key, and nothing was done. Its message
    /// still waits.
    NotStarted {
        /// The run.
        run: Run,
    },
    /// The turn waits for answers, and its run is over.
    Parked {
        /// The run.
        run: Run,
        /// The turn.
        turn: TurnId,
        /// Open questions; never empty.
        questions: Vec<Question>,
    },
    /// An answer is in the mailbox. It stays there until the turn takes it.
    Answered(Answer),
    /// A timer of the session is due: questions may have expired.
    Due,
    /// Stop the turn that runs, is parked or was cut off. Its questions are denied.
    Cancel,
    /// Another process owns the session now.
    OwnerLost,
    /// Begin no further turn here. Waiting messages stay in the mailbox.
    Drain,
    /// A person wants to run a cell of their own in the session.
    CellAsked,
    /// The cell that runs is over.
    CellEnded,
}

/// Request of the session machine to its driver.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Take the session; then [`Input::Taken`] or [`Input::NotTaken`].
    Take,
    /// Begin a turn with a message, whose row is done with the turn's first record; then [`Input::TurnEnded`] or
    /// [`Input::Parked`].
    Start {
        /// The run that begins.
        run: Run,
        /// The message.
        message: Box<QueuedMessage>,
    },
    /// Go on with the turn that was cut off or parked; then as [`Action::Start`].
    Resume {
        /// The run that begins.
        run: Run,
        /// The turn.
        turn: TurnId,
        /// One for each question that it asked. If it was cut off, all that came: those count that answer what it
        /// asks again.
        answers: Vec<Answer>,
    },
    /// Hand a message to the turn that runs; then [`Input::Steered`], unless the turn ends first.
    Steer {
        /// The run.
        run: Run,
        /// The message.
        message: Box<QueuedMessage>,
    },
    /// Stop a run; its end is still awaited.
    CancelTurn {
        /// The run.
        run: Run,
    },
    /// Let go of the session: nothing is left to do here until the next input. The machine forgets what it knew,
    /// since another process may take the session and change it. Cells that wait are asked for again.
    Release,
    /// Run the person's cell that was asked for first; then [`Input::CellEnded`].
    RunCell,
    /// Stop the person's cell that runs; its end is still awaited.
    StopCell,
    /// An input was not accepted; nothing changed.
    Refuse(Refusal),
    /// Tell the listeners.
    Tell(SessionEvent),
}

/// Why an input was not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The queue is full.
    #[error("{max} messages are already waiting: send `{ticket}` again later")]
    QueueFull {
        /// The message.
        ticket: TicketId,
        /// The bound.
        max: usize,
    },
    /// The message began a turn, joined one, was taken back, or never was.
    #[error("message `{ticket}` is no longer waiting")]
    NotWaiting {
        /// The message.
        ticket: TicketId,
    },
    /// Nothing is asked under that name, or it was answered.
    #[error("there is no open question `{question}`")]
    NoQuestion {
        /// Id of the question.
        question: QuestionId,
    },
    /// The question changed after the answering user read it.
    #[error("question `{question}` changed: read it again")]
    Changed {
        /// Id of the question.
        question: QuestionId,
    },
}

/// An event of a session itself, beside those of its turns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum SessionEvent {
    /// A message waits.
    Queued {
        /// Row of the message.
        ticket: TicketId,
        /// How many wait before it.
        ahead: u32,
    },
    /// A message that waits says something else now.
    Edited {
        /// Row of the message.
        ticket: TicketId,
    },
    /// A message was taken back.
    Withdrawn {
        /// Row of the message.
        ticket: TicketId,
    },
    /// A message began a turn, or joined one.
    Delivered {
        /// Row of the message.
        ticket: TicketId,
    },
    /// The turn waits for answers.
    Parked {
        /// Open questions.
        questions: Vec<Question>,
    },
    /// A question was answered, or expired.
    Answered {
        /// Id of the question.
        question: QuestionId,
        /// Author of the answer.
        actor: String,
    },
    /// Another process owns the session now, or it cannot be taken; what waits stays in the mailbox.
    Lost,
    /// Nothing waits and nothing runs here.
    Idle,
}
