//! The turn that runs in a session: connecting its model, then its end. Its events go to those who listen meanwhile.

use super::cursor::{CursorPosition, Progress};
use super::entry::Entry;
use super::update::UpdateBody;
use crate::error::Result;
use crate::turn::{Turn, TurnBuilder};
use futures_util::future::BoxFuture;
use rondo_core::events::{self, EventSink};
use rondo_core::ports::Mail;
use rondo_core::session::Run;
use rondo_core::{TurnEnd, TurnHandle, control};
use rondo_types::{Answer, EventBody, Message, TurnEvent, TurnId};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A run of the session machine.
pub(super) struct MachineRun {
    pub(super) run: Run,
    /// The key of the message that begins the turn, while its model is connected.
    pub(super) message: Option<String>,
    /// Set if it must be stopped as soon as it has begun.
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
    handle: TurnHandle,
    updates: Arc<TurnUpdates>,
}

/// Takes the events of the turn that runs to those who listen to its session.
pub(super) struct TurnUpdates {
    entry: Arc<Entry>,
    /// None once the turn is over: what comes later, from work that was abandoned, is dropped.
    run: Mutex<Option<RunProgress>>,
}

/// How far the updates of a run are.
struct RunProgress {
    /// The turn's number, and the number of processes that worked on it before.
    number: (u32, u32),
    /// The message that begins the turn, until it is sent to listeners.
    asked: Option<Arc<Message>>,
    progress: Option<Progress>,
    /// How many steering messages the turn said that the actor was not told of.
    steered: u32,
}

/// Next step of a run.
pub(super) enum Step {
    /// The question about the folder is answered, or is not waited for any more.
    FolderAsked(Option<Box<(Answer, Mail)>>),
    /// The model is connected, or cannot be.
    Connected(Box<Result<TurnBuilder>>),
    /// The turn is over or parked, or cannot be carried on.
    End(Result<TurnEnd>),
}

impl TurnUpdates {
    pub(super) fn new(entry: Arc<Entry>, number: (u32, u32), asked: Option<Arc<Message>>) -> Self {
        Self {
            entry,
            run: Mutex::new(Some(RunProgress {
                number,
                asked,
                progress: None,
                steered: 0,
            })),
        }
    }

    fn run(&self) -> MutexGuard<'_, Option<RunProgress>> {
        self.run.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns how many more steering messages the turn said.
    fn take_steered(&self) -> u32 {
        let mut run = self.run();
        run.as_mut().map_or(0, |it| std::mem::take(&mut it.steered))
    }
}

impl EventSink for TurnUpdates {
    fn take(&self, event: TurnEvent) {
        let mut run = self.run();
        let Some(run) = run.as_mut() else {
            return;
        };
        let (turn, number) = run.number;
        let began = || Progress::new(CursorPosition::beginning(turn, number, event.at));
        let progress = run.progress.get_or_insert_with(began);
        if let Some(message) = run.asked.take() {
            let turn = event.turn.clone();
            let asked = UpdateBody::Asked { turn, message };
            self.entry.tell(progress.pass(), asked);
        }
        let place = progress.pass_event(&event.body);
        if matches!(event.body, EventBody::Steered { .. }) {
            run.steered += 1;
            self.entry.wake.notify_one();
        }
        let event = Box::new(event);
        self.entry.tell(place, UpdateBody::Turn { event });
    }
}

impl MachineRun {
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
    pub(super) async fn turn(run: Run, turn: Turn, updates: TurnUpdates) -> Self {
        let updates = Arc::new(updates);
        let sink = Arc::clone(&updates) as _;
        let sender = events::into_sink(turn.session().clone(), turn.id(), sink);
        let service = &updates.entry.service;
        let sender = service.runtime.observe(sender).await;
        let (handle, control) = control();
        service.host.begins(&turn, &handle);
        let running = RunningTurn {
            id: turn.id(),
            turn: turn.run(sender, control),
            handle,
            updates,
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

    /// Returns how many more steering messages the turn said.
    pub(super) fn take_steered(&self) -> u32 {
        match &self.state {
            State::Turn(running) => running.updates.take_steered(),
            State::Asking(_) | State::Connecting(_) => 0,
        }
    }

    /// Waits for what it comes to; after that it comes to nothing more.
    ///
    /// # Cancel safety
    /// Cancel safe: nothing is lost.
    pub(super) async fn next(&mut self) -> Step {
        match &mut self.state {
            State::Asking(answered) => Step::FolderAsked(answered.await.map(Box::new)),
            State::Connecting(connecting) => Step::Connected(connecting.await),
            State::Turn(running) => Step::End((&mut running.turn).await),
        }
    }
}

impl Drop for RunningTurn {
    fn drop(&mut self) {
        *self.updates.run() = None;
    }
}
