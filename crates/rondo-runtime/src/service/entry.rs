//! State of one session in a service: its latest updates, its listeners, and its actor.

use super::Shared;
use super::actor::Actor;
use super::attached::Attached;
use super::cells::AskedCell;
use super::cursor::{Cursor, CursorPosition};
use super::follower::Follower;
use super::opened::OpenedSession;
use super::ring::Ring;
use super::update::UpdateBody;
use crate::parking::{self, InPlaceFirst};
use crate::session::SessionOptions;
use crate::settings::Settings;
use crate::table::Layer;
use crate::values::ApprovalMode;
use async_trait::async_trait;
use rondo_core::ports::{MailId, Seq};
use rondo_core::storage::Store;
use rondo_core::{Approver, QuestionReply, TurnHandle};
use rondo_types::{Question, SessionId, TimeMs};
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;

/// A message that was handed to the turn that runs, which may not have said it yet.
pub(super) struct SteeringMessage {
    pub(super) turn: TurnHandle,
    pub(super) mail: MailId,
}

/// One session of a service.
pub(super) struct Entry {
    pub(super) id: SessionId,
    pub(super) options: SessionOptions,
    /// The journal of all sessions, or the one in memory.
    store: Store,
    pub(super) service: Arc<Shared>,
    /// The model that a host named for it.
    pub(super) model: Mutex<Option<String>>,
    /// Other settings that a host chose for it.
    pub(super) chosen: Mutex<Option<Box<Layer>>>,
    /// Messages that began a turn and are in the mailbox still, and those that steer one. Held while one is edited or
    /// taken back.
    pub(super) begun: tokio::sync::Mutex<HashMap<String, Option<SteeringMessage>>>,
    /// Session that the host has opened, until an actor takes it.
    opened: Mutex<Option<Box<OpenedSession>>>,
    /// Set if the host has opened the session: it is worked on until nothing is left to do, and not taken again.
    pub(super) is_of_host: bool,
    work: Mutex<Work>,
    pub(super) wake: Notify,
    ring: Mutex<Ring>,
    pub(super) follower: Follower,
    attached: Mutex<Attached>,
    changes: watch::Sender<u64>,
    listeners: AtomicUsize,
    /// Those of them that a person sits at who can answer; see [`Attendance`].
    attending: watch::Sender<usize>,
    /// How many callers wait until no process works on the session.
    awaiting_rest: AtomicUsize,
    /// Reads the events of a turn that another process runs.
    live: Mutex<Option<AbortHandle>>,
}

/// Lets the watcher check whether a process works on the session, until this is dropped.
pub(super) struct FollowGuard<'a>(&'a Entry);

impl<'a> FollowGuard<'a> {
    pub(super) fn begin(entry: &'a Entry) -> Self {
        entry.awaiting_rest.fetch_add(1, Ordering::Relaxed);
        entry.service.look_again.notify_one();
        Self(entry)
    }
}

impl Drop for FollowGuard<'_> {
    fn drop(&mut self) {
        self.0.awaiting_rest.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A listener that a person sits at who can answer, such as a screen: as long as there is one, questions are waited for in
/// place.
pub struct Attendance(Arc<Entry>);

impl Attendance {
    pub(super) fn begin(entry: Arc<Entry>) -> Self {
        entry.attending.send_modify(|count| *count += 1);
        Self(entry)
    }
}

impl Drop for Attendance {
    fn drop(&mut self) {
        self.0.attending.send_modify(|count| *count -= 1);
    }
}

impl fmt::Debug for Attendance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Attendance").field(&self.0.id).finish()
    }
}

/// Waits as long as someone attends who can answer.
pub(super) struct AttendedApprover(pub(super) Arc<Entry>);

#[async_trait]
impl Approver for AttendedApprover {
    async fn ask(&self, _: &Question) -> QuestionReply {
        self.0.unattended().await;
        QuestionReply::Later { expires: None }
    }
}

/// Returns an approver that waits for those who attend, unless the settings decide about questions.
pub(super) fn attended(
    entry: &Arc<Entry>,
    settings: &Settings,
    host: Arc<dyn Approver>,
) -> Arc<dyn Approver> {
    match settings.values.approval.unwrap_or(ApprovalMode::Ask) {
        ApprovalMode::Deny | ApprovalMode::Park => host,
        ApprovalMode::Ask | ApprovalMode::Auto => Arc::new(InPlaceFirst {
            in_place: Arc::new(AttendedApprover(Arc::clone(entry))),
            park_after: parking::park_after(settings),
            then: host,
        }),
    }
}

/// Pending work for a session.
#[derive(Default)]
pub(super) struct Work {
    /// Set while there is an actor.
    is_running: bool,
    /// Read the mailbox.
    pub(super) look: bool,
    /// Take the session even if the mailbox is empty, such as for a turn that was cut off.
    pub(super) resume: bool,
    /// Begin no further turn.
    pub(super) drain: bool,
    /// The newest row of the mailbox that was seen.
    pub(super) seen: MailId,
    /// Retry work that failed.
    pub(super) retry: bool,
    /// When the next question expires.
    pub(super) due: Option<TimeMs>,
    /// The last record that listeners were sent or have read.
    pub(super) head: Seq,
    /// A person's cells that were asked for.
    pub(super) cells: Vec<AskedCell>,
}

impl Work {
    /// Notes the last record that was read, if none was noted before. Otherwise a change of another session would count as news
    /// of this one.
    pub(super) fn note_first_head(&mut self, head: Seq) {
        if self.head == Seq(0) {
            self.head = head;
        }
    }

    /// Takes the pending looks: whether at the mailbox, and whether at the session even if it is empty.
    pub(super) fn take(&mut self) -> (bool, bool) {
        let look = std::mem::take(&mut self.look);
        let resume = std::mem::take(&mut self.resume);
        (look, resume)
    }
}

impl Entry {
    pub(super) fn new(
        service: Arc<Shared>,
        store: Store,
        id: SessionId,
        options: SessionOptions,
    ) -> Self {
        Self {
            ring: Mutex::new(Ring::new(Arc::clone(&service.held))),
            id,
            options,
            store,
            service,
            model: Mutex::default(),
            chosen: Mutex::default(),
            begun: tokio::sync::Mutex::default(),
            opened: Mutex::default(),
            is_of_host: false,
            work: Mutex::default(),
            wake: Notify::new(),
            follower: Follower::default(),
            attached: Mutex::default(),
            changes: watch::Sender::default(),
            listeners: AtomicUsize::default(),
            attending: watch::Sender::default(),
            awaiting_rest: AtomicUsize::default(),
            live: Mutex::default(),
        }
    }

    /// Starts an actor on the session that the host has opened.
    pub(super) fn open(&mut self, opened: OpenedSession) {
        self.opened = Mutex::new(Some(Box::new(opened)));
        self.is_of_host = true;
    }

    /// Returns the session that the host has opened, once.
    pub(super) fn opened(&self) -> Option<Box<OpenedSession>> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        opened.take()
    }

    pub(super) fn id(&self) -> &SessionId {
        &self.id
    }

    pub(super) fn store(&self) -> &Store {
        &self.store
    }

    pub(super) fn service_number(&self) -> u64 {
        self.service.number
    }

    pub(super) fn ring(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn work(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the pending work, and has an actor do it; nothing if sessions are only read here.
    pub(super) fn ask(self: &Arc<Self>, change: impl FnOnce(&mut Work)) {
        if self.service.reads_only {
            return;
        }
        let mut work = self.work();
        change(&mut work);
        let is_running = std::mem::replace(&mut work.is_running, true);
        drop(work);
        if !is_running {
            let actor = Box::new(Actor::new(Arc::clone(self)));
            tokio::spawn(actor.run());
        }
        self.wake.notify_one();
    }

    /// Returns whether an actor works on it.
    pub(super) fn is_running(&self) -> bool {
        self.work().is_running
    }

    /// Returns whether no further turn may begin.
    pub(super) fn drains(&self) -> bool {
        self.work().drain || self.service.is_closed.load(Ordering::Relaxed)
    }

    /// Waits until no attendant who can answer is left.
    pub(super) async fn unattended(&self) {
        let mut attending = self.attending.subscribe();
        // The sender is the entry's, which lives as long as this.
        let _ = attending.wait_for(|count| *count == 0).await;
    }

    /// Waits until no actor works on it.
    pub(super) async fn is_done(&self) {
        let mut changes = self.changes();
        while self.is_running() {
            // The sender lives as long as this.
            let _ = changes.changed().await;
        }
    }

    /// Ends the actor, unless there is something to do.
    pub(super) fn ends(&self) -> bool {
        let mut work = self.work();
        work.is_running = work.look || work.resume || !work.cells.is_empty();
        let ends = !work.is_running;
        drop(work);
        if ends {
            if !self.has_listeners() {
                self.ring().forget();
            }
            self.changed();
        }
        ends
    }

    /// Tells those who listen.
    pub(super) fn tell(&self, place: CursorPosition, body: UpdateBody) {
        self.ring().push(place, body);
        self.service.make_room();
        self.changed();
    }

    /// Tells those who listen what is in no record, after the last update that was sent.
    pub(super) fn tell_unrecorded(&self, body: UpdateBody) {
        let mut ring = self.ring();
        let place = ring.end();
        ring.push(place, body);
        drop(ring);
        self.service.make_room();
        self.changed();
    }

    pub(super) fn live(&self) -> MutexGuard<'_, Option<AbortHandle>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The cursor after everything that the listeners here have received.
    pub(super) fn live_cursor(&self) -> Cursor {
        Cursor {
            place: self.ring().end(),
            live: None,
        }
    }

    /// Tells those who listen what the process that runs the turn says of it before it is recorded. Returns `false` if it does not
    /// follow on what they have received.
    pub(super) fn tell_live(&self, place: CursorPosition, body: UpdateBody) -> bool {
        if !self.ring().follow_live(place, body) {
            return false;
        }
        self.service.make_room();
        self.changed();
        true
    }

    /// Attachments of the next message.
    pub(super) fn attached(&self) -> MutexGuard<'_, Attached> {
        self.attached.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the listeners for something new, here or in the records.
    pub(super) fn changed(&self) {
        self.changes
            .send_modify(|count| *count = count.wrapping_add(1));
    }

    pub(super) fn listen(&self) -> watch::Receiver<u64> {
        self.listeners.fetch_add(1, Ordering::Relaxed);
        self.changes()
    }

    /// Says when there is something new, without being a listener.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Forgets the updates held for listeners, once there is no listener and nothing runs.
    pub(super) fn leave(&self) {
        let others = self.listeners.fetch_sub(1, Ordering::Relaxed);
        if others == 1 && !self.is_running() {
            self.ring().forget();
            self.follower.stop();
            if let Some(reading) = self.live().take() {
                reading.abort();
            }
        }
    }

    pub(super) fn has_listeners(&self) -> bool {
        self.listeners.load(Ordering::Relaxed) > 0
    }

    /// Returns whether a caller waits until no process works on the session.
    pub(super) fn is_rest_awaited(&self) -> bool {
        self.awaiting_rest.load(Ordering::Relaxed) > 0
    }
}
