//! The turn that runs in a session: connecting its model, then its events, then its end.

use super::Shared;
use super::cursor::{Place, Progress};
use crate::error::Result;
use crate::turn::{Turn, TurnBuilder};
use futures_util::future::BoxFuture;
use rondo_core::ports::Mail;
use rondo_core::session::Run;
use rondo_core::{EventReceiver, TurnEnd, TurnHandle, control, events};
use rondo_types::{Answer, Message, TurnEvent, TurnId};
use std::sync::Arc;

/// A run of the session machine.
pub(super) struct Running {
    pub(super) run: Run,
    /// The key of the message that begins the turn, while its model is connected.
    pub(super) message: Option<String>,
    /// Whether it is to be stopped as soon as it has begun.
    pub(super) is_cancelled: bool,
    state: State,
}

enum State {
    /// A person is asked about the folder, who may answer.
    Asking(BoxFuture<'static, Option<(Answer, Mail)>>),
    /// The model is being connected, such as by fetching its weights.
    Connecting(BoxFuture<'static, Box<Result<TurnBuilder>>>),
    Turn(Box<RunningTurn>),
}

struct RunningTurn {
    id: TurnId,
    turn: BoxFuture<'static, Result<TurnEnd>>,
    events: EventReceiver,
    handle: TurnHandle,
    /// The end, while events of before it wait.
    end: Option<Result<TurnEnd>>,
    told: RunProgress,
}

/// How far the updates of a run are.
pub(super) struct RunProgress {
    /// The turn's number, and the number of processes that worked on it before.
    number: (u32, u32),
    /// The message that begins the turn, until it is told.
    asked: Option<Arc<Message>>,
    progress: Option<Progress>,
}

/// What a run has come to.
pub(super) enum Step {
    /// The question about the folder is answered, or is not waited for any more.
    FolderAsked(Option<Box<(Answer, Mail)>>),
    /// The model is connected, or cannot be.
    Connected(Box<Result<TurnBuilder>>),
    /// An event.
    Event(Box<TurnEvent>),
    /// The turn is over or parked, or cannot be carried on.
    End(Result<TurnEnd>),
}

impl RunProgress {
    pub(super) fn new(number: (u32, u32), asked: Option<Arc<Message>>) -> Self {
        Self {
            number,
            asked,
            progress: None,
        }
    }

    /// Returns the places after what an event tells: that of the message that began the turn, where it was not
    /// told yet, and that of the event.
    pub(super) fn pass(&mut self, event: &TurnEvent) -> (Option<(Place, Arc<Message>)>, Place) {
        let (turn, run) = self.number;
        let progress = self
            .progress
            .get_or_insert_with(|| Progress::new(Place::beginning(turn, run, event.at)));
        let asked = self.asked.take().map(|it| (progress.pass(), it));
        (asked, progress.pass_event(&event.body))
    }
}

impl Running {
    pub(super) fn connecting(
        run: Run,
        message: Option<String>,
        connecting: impl Future<Output = Box<Result<TurnBuilder>>> + Send + 'static,
    ) -> Self {
        Self {
            run,
            message,
            is_cancelled: false,
            state: State::Connecting(Box::pin(connecting)),
        }
    }

    /// Waits for the answer to a question about the folder before the turn of a message.
    pub(super) fn asking(
        run: Run,
        message: String,
        answered: impl Future<Output = Option<(Answer, Mail)>> + Send + 'static,
    ) -> Self {
        Self {
            run,
            message: Some(message),
            is_cancelled: false,
            state: State::Asking(Box::pin(answered)),
        }
    }

    /// Runs a turn of a session of the runtime.
    pub(super) async fn turn(run: Run, turn: Turn, told: RunProgress, service: &Shared) -> Self {
        let (sender, events) = events::channel(turn.session().clone(), turn.id());
        let sender = service.runtime.observe(sender).await;
        let (handle, control) = control();
        service.host.begins(&turn, &handle);
        let running = RunningTurn {
            id: turn.id(),
            turn: turn.run(sender, control),
            events,
            handle,
            end: None,
            told,
        };
        Self {
            run,
            message: None,
            is_cancelled: false,
            state: State::Turn(Box::new(running)),
        }
    }

    /// Returns the controls of the turn; none before it has begun.
    pub(super) fn handle(&self) -> Option<&TurnHandle> {
        match &self.state {
            State::Turn(running) => Some(&running.handle),
            State::Asking(_) | State::Connecting(_) => None,
        }
    }

    /// Returns the turn; none before it has begun.
    pub(super) fn id(&self) -> Option<&TurnId> {
        match &self.state {
            State::Turn(running) => Some(&running.id),
            State::Asking(_) | State::Connecting(_) => None,
        }
    }

    /// Returns how far its updates are; none before it has begun.
    pub(super) fn progress(&mut self) -> Option<&mut RunProgress> {
        match &mut self.state {
            State::Turn(running) => Some(&mut running.told),
            State::Asking(_) | State::Connecting(_) => None,
        }
    }

    /// Waits for what comes next. After [`Step::FolderAsked`], [`Step::Connected`] and [`Step::End`] nothing does.
    ///
    /// # Cancel safety
    /// Cancel safe: nothing is lost.
    pub(super) async fn next(&mut self) -> Step {
        match &mut self.state {
            State::Asking(answered) => Step::FolderAsked(answered.await.map(Box::new)),
            State::Connecting(connecting) => Step::Connected(connecting.await),
            State::Turn(running) => running.next().await,
        }
    }
}

impl RunningTurn {
    async fn next(&mut self) -> Step {
        loop {
            if self.end.is_some() {
                if let Some(event) = self.events.next().await {
                    return Step::Event(Box::new(event));
                }
                if let Some(end) = self.end.take() {
                    return Step::End(end);
                }
                return std::future::pending().await;
            }
            tokio::select! {
                biased;
                Some(event) = self.events.next() => return Step::Event(Box::new(event)),
                end = &mut self.turn => self.end = Some(end),
            }
        }
    }
}
