//! A session that its host has opened already, such as for one question: it is worked on as it is, without reading its
//! settings and its records a second time, until there is nothing more to do.

use super::SessionService;
use super::actor::Actor;
use super::cursor::CursorPosition;
use super::entry::Entry;
use super::handle::SessionHandle;
use super::host::SessionHost;
use super::live_dir;
use super::taking::{open_turn, runs_of};
use crate::error::{Result, SetupError, SetupErrorKind};
use crate::ids;
use crate::parking;
use crate::runtime::Runtime;
use crate::session::{Session, SessionOptions};
use crate::sessions;
use crate::settings::Settings;
use crate::spec::{ConnectedModel, TurnSpec};
use crate::turn::TurnStart;
use rondo_core::Journal as _;
use rondo_core::clock::Clock;
use rondo_core::ports::Mail;
use rondo_core::session::{Delivery, Input, QueuedMessage, TicketId};
use rondo_types::{Message, TimeMs};
use std::sync::Arc;

/// A session that its host has opened, with the work in it.
pub struct OpenedSession {
    /// The session. Its record has begun.
    pub session: Session,
    /// The rows of its mailbox.
    pub mail: Vec<Mail>,
    /// Message of the host that follows the waiting ones, with its models, profile and tools. It is in no mailbox: it
    /// becomes durable with the first records of its turn.
    pub message: Option<(Message, TurnSpec)>,
}

/// The message of the host that is in no mailbox.
pub(super) struct OwnMessage {
    pub(super) ticket: TicketId,
    pub(super) spec: TurnSpec,
}

impl SessionService {
    /// Starts a service on a session that its host has opened, and on no other, once it is told to
    /// [resume](SessionHandle::resume). The turn that was cut off or waits for answers continues whatever is answered, the
    /// messages that wait follow, and then that of the host. To be called within a runtime of tokio.
    ///
    /// # Errors
    /// When the record of the session has not begun, or there is no room for what it keeps in memory.
    pub fn of_opened(
        opened: OpenedSession,
        host: impl SessionHost,
    ) -> Result<(Self, SessionHandle)> {
        let session = &opened.session;
        let Some(conversation) = session.conversation() else {
            let message = "the record of the session has not begun";
            return Err(SetupError::new(SetupErrorKind::NoSession, message));
        };
        let store = match session.opened_store() {
            Some(store) => store.clone(),
            None => sessions::in_memory()?,
        };
        let id = conversation.session.clone();
        let cut_off = conversation.cut_off.as_ref();
        let runs = cut_off.map_or(0, |it| runs_of(&it.records));
        let next = CursorPosition::beginning(conversation.turns.saturating_add(1), runs, TimeMs(0));
        let at = conversation.journal.at();
        let options = SessionOptions::in_directory(session.settings.directory.clone());
        let runtime = session.runtime().clone();
        let live = live_dir(&session.settings, &store);
        let service = Self::start(runtime, Arc::new(host), store.clone(), false, live);
        let shared = &service.shared;
        let mut entry = Entry::new(Arc::clone(shared), store, id.clone(), options);
        entry.open(opened);
        let entry = Arc::new(entry);
        let mut ring = entry.ring();
        ring.take(at);
        ring.begin(next);
        drop(ring);
        shared.entries().insert(id, Arc::downgrade(&entry));
        Ok((service, SessionHandle::new(entry)))
    }
}

impl Actor {
    /// Takes the session that the host has opened. Its parked turn continues like one that was cut off: the host has decided
    /// that the open questions are asked again.
    pub(super) async fn take_opened(&mut self, opened: Box<OpenedSession>) {
        let OpenedSession {
            session,
            mail,
            message,
        } = *opened;
        let mut waiting = self.waiting_in(mail).await;
        if let Some((message, spec)) = message {
            let ticket = TicketId(ids::new_key("message", Clock::system().now()));
            self.own = Some(OwnMessage {
                ticket: ticket.clone(),
                spec,
            });
            waiting.push(QueuedMessage {
                ticket,
                message,
                delivery: Delivery::Queue,
                actor: parking::user(session.runtime().env()),
            });
        }
        let open = open_turn(&session, true);
        self.session = Some(session);
        self.inputs.push_back(Input::Taken { open, waiting });
    }
}

/// Connects the model of a turn, and adds the resources of servers that the host's message names to it. The servers start
/// while the key or the weights of the model are found.
///
/// # Errors
/// When the model cannot be connected, the servers cannot be started, or a resource cannot be read.
///
/// # Cancel safety
/// As [`Runtime::connect`].
pub(super) async fn connect_opened(
    runtime: &Runtime,
    settings: &Settings,
    spec: &TurnSpec,
    start: TurnStart,
) -> Result<(ConnectedModel, TurnStart)> {
    // They start while the model is connected.
    runtime.servers(settings)?;
    let connected = runtime.connect(spec, settings).await?;
    let start = match start {
        TurnStart::Message { message, row: None } => {
            let message = runtime.with_resources(settings, message).await?;
            TurnStart::Message { message, row: None }
        }
        start => start,
    };
    Ok((connected, start))
}
