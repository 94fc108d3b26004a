//! Operations on a session.

use super::cursor::Cursor;
use super::entry::{Attendance, Entry, FollowGuard};
use super::off_thread;
use super::records::RecordReader;
use super::subscription::Subscription;
use super::taking;
use super::update::UpdateBody;
use crate::compaction;
use crate::error::{Result, SetupError, SetupErrorKind};
use crate::ids;
use crate::parking::{self, unkept};
use crate::sessions;
use crate::table::Layer;
use crate::usage::{self, UsageSum};
use rondo_core::clock::Clock;
use rondo_core::ports::{MailBody, MailboxError, NewMail, Pushed};
use rondo_core::session::{Delivery, TicketId};
use rondo_core::session_store::{SessionInfo, SessionState, StoreError};
use rondo_core::storage::Store;
use rondo_types::{Answer, Grant, Message, Question, SessionId, TodoItem};
use std::fmt;
use std::sync::{Arc, PoisonError};

/// A session of a [`SessionService`](super::SessionService). Clones are the same session; having one costs a few
/// hundred bytes.
#[derive(Clone)]
pub struct SessionHandle {
    pub(super) entry: Arc<Entry>,
}

impl fmt::Debug for SessionHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SessionHandle").field(self.id()).finish()
    }
}

/// A message that was submitted.
#[derive(Debug, Clone)]
pub struct Ticket {
    /// Its name within the session, as updates have it.
    pub id: TicketId,
    session: SessionHandle,
}

impl Ticket {
    /// Changes what the message says, as long as it waits. Returns `false` if it does not wait any more.
    ///
    /// # Errors
    /// When the journal cannot be written, or the message is too long.
    ///
    /// # Cancel safety
    /// Not cancel safe: the message may or may not be changed.
    pub async fn edit(&self, message: Message) -> Result<bool> {
        self.session.edit(&self.id, message).await
    }

    /// Takes the message back, as long as it waits: one that steers a turn, until the model is told of it. Returns
    /// `false` if it does not wait any more.
    ///
    /// # Errors
    /// When the journal cannot be written.
    ///
    /// # Cancel safety
    /// Not cancel safe: the message may or may not be taken back.
    pub async fn withdraw(&self) -> Result<bool> {
        self.session.withdraw(&self.id).await
    }
}

impl SessionHandle {
    pub(super) fn new(entry: Arc<Entry>) -> Self {
        Self { entry }
    }

    /// Returns its id.
    #[must_use]
    pub fn id(&self) -> &SessionId {
        &self.entry.id
    }

    /// Returns the journal that the session is in.
    #[must_use]
    pub fn store(&self) -> &Store {
        self.entry.store()
    }

    /// Returns its entry in the list of sessions; `None` if nothing is recorded of it yet.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn info(&self) -> Result<Option<SessionInfo>> {
        match self.store().session(self.id()) {
            Ok(info) => Ok(Some(info)),
            Err(StoreError::Unknown { .. }) => Ok(None),
            Err(error) => Err(sessions::failed(error)),
        }
    }

    /// Returns its to-do list.
    ///
    /// # Errors
    /// When the records cannot be read.
    pub fn todo(&self) -> Result<Vec<TodoItem>> {
        match self.store().history(self.id()) {
            Ok(history) => Ok(history.todo().to_vec()),
            Err(StoreError::Unknown { .. }) => Ok(Vec::new()),
            Err(error) => Err(sessions::failed(error)),
        }
    }

    /// Submits a message of the user of this process. See [`submit_as`](Self::submit_as).
    ///
    /// # Errors
    /// As [`submit_as`](Self::submit_as).
    ///
    /// # Cancel safety
    /// As [`submit_as`](Self::submit_as).
    pub async fn submit(&self, message: Message, delivery: Delivery) -> Result<Ticket> {
        let key = ids::new_key("message", Clock::system().now());
        self.submit_as(&key, &self.user(), message, delivery).await
    }

    /// Submits a message. The output of a person's commands since the last one ([`cell`](Self::cell)) goes along
    /// with it. Once this returns no crash loses it, and it begins a turn or joins one as soon as it can.
    /// A submission that is repeated under the same key counts once.
    ///
    /// # Errors
    /// When too much waits in the session, something is too long, or the journal cannot be written.
    ///
    /// # Cancel safety
    /// Not cancel safe: the message may or may not be submitted; under the same key it can be submitted again.
    pub async fn submit_as(
        &self,
        key: &str,
        actor: &str,
        message: Message,
        delivery: Delivery,
    ) -> Result<Ticket> {
        let mut message = message;
        if delivery != Delivery::Compact {
            message.parts.extend(self.entry.attached().send(key));
        }
        let body = MailBody::Message { message, delivery };
        let pushed = self.push(key, actor, body).await;
        if !matches!(pushed, Ok(Pushed::Accepted(_))) {
            self.entry.attached().take_back(key);
        }
        pushed?;
        Ok(Ticket {
            id: TicketId(key.to_owned()),
            session: self.clone(),
        })
    }

    /// Summarizes the conversation, after the messages that wait, with an emphasis on the focus; that may be
    /// nothing. If there is nothing to sum up yet, an update says so.
    ///
    /// # Errors
    /// As [`submit_as`](Self::submit_as).
    ///
    /// # Cancel safety
    /// As [`submit_as`](Self::submit_as).
    pub async fn compact(&self, focus: &str) -> Result<Ticket> {
        self.submit(compaction::question(focus), Delivery::Compact)
            .await
    }

    /// Changes what a message says, as long as it waits: [`Ticket::edit`] by its name.
    ///
    /// # Errors
    /// As [`Ticket::edit`].
    ///
    /// # Cancel safety
    /// As [`Ticket::edit`].
    pub async fn edit(&self, ticket: &TicketId, message: Message) -> Result<bool> {
        self.refuse_if_read_only()?;
        let begun = self.entry.begun.lock().await;
        if begun.contains_key(&ticket.0) {
            return Ok(false);
        }
        let mut message = message;
        message.parts.extend(self.entry.attached().sent(&ticket.0));
        let edited = self.entry.store().edit(self.id(), &ticket.0, message).await;
        drop(begun);
        self.look();
        edited.map_err(unkept)
    }

    /// Takes a message back, as long as it waits: [`Ticket::withdraw`] by its name.
    ///
    /// # Errors
    /// As [`Ticket::withdraw`].
    ///
    /// # Cancel safety
    /// As [`Ticket::withdraw`].
    pub async fn withdraw(&self, ticket: &TicketId) -> Result<bool> {
        self.refuse_if_read_only()?;
        let mut begun = self.entry.begun.lock().await;
        match begun.get(&ticket.0) {
            Some(Some(steers)) if steers.turn.take_back(steers.mail) => {
                drop(begun.remove(&ticket.0))
            }
            Some(_) => return Ok(false),
            None => {}
        }
        let withdrawn = self.entry.store().withdraw(self.id(), &ticket.0).await;
        drop(begun);
        if matches!(withdrawn, Ok(true)) {
            self.entry.attached().take_back(&ticket.0);
        }
        self.look();
        withdrawn.map_err(unkept)
    }

    /// Stops the turn that runs, is parked or was cut off, wherever it is: what it asks is denied. Once this
    /// returns, no crash loses that. If a person's cell runs, it interrupts that; two seconds after the first time, it
    /// ends its interpreter or leaves its command.
    ///
    /// # Errors
    /// When the journal cannot be written.
    ///
    /// # Cancel safety
    /// Not cancel safe: the turn may or may not be stopped.
    pub async fn cancel(&self) -> Result<()> {
        let key = ids::new_key("cancel", Clock::system().now());
        let pushed = self.push(&key, &self.user(), MailBody::Cancel).await;
        pushed.map(drop)
    }

    /// Answers a question. Once this returns no crash loses it; a parked turn continues when all its questions are answered.
    ///
    /// # Errors
    /// When the journal cannot be written. An answer to what is not asked any more is dropped.
    ///
    /// # Cancel safety
    /// Not cancel safe: the question may or may not be answered.
    pub async fn answer(&self, answer: Answer) -> Result<()> {
        let key = ids::new_key("answer", Clock::system().now());
        let actor = answer.actor.clone();
        let pushed = self.push(&key, &actor, MailBody::Answer { answer }).await;
        pushed.map(drop)
    }

    /// Returns the open questions of the session and its turn, whether it is parked or not.
    ///
    /// # Errors
    /// When the records cannot be read.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn questions(&self) -> Result<Vec<Question>> {
        let (store, session) = (self.entry.store().clone(), self.id().clone());
        let read = off_thread(move || match store.history(&session) {
            Ok(history) => Ok(history.questions()),
            Err(StoreError::Unknown { .. }) => Ok(Vec::new()),
            Err(error) => Err(sessions::failed(error)),
        });
        read.await
    }

    /// Returns the messages of the session, as a model reads them next.
    ///
    /// # Errors
    /// When the records cannot be read.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn messages(&self) -> Result<Vec<Arc<Message>>> {
        let (store, session) = (self.entry.store().clone(), self.id().clone());
        let read = off_thread(move || match store.history(&session) {
            Ok(history) => Ok(history.transcript().to_vec()),
            Err(StoreError::Unknown { .. }) => Ok(Vec::new()),
            Err(error) => Err(sessions::failed(error)),
        });
        read.await
    }

    /// Returns whether the latest turn has no end and waits for nobody, and neither this process nor another works on
    /// the session: [`resume`](Self::resume) carries such a turn on.
    ///
    /// # Errors
    /// When the records cannot be read.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn is_cut_off(&self) -> Result<bool> {
        if self.entry.is_running() {
            return Ok(false);
        }
        Ok(self.state().await? == SessionState::CutOff)
    }

    /// Returns how the session stands in the list of all, by its records and its lock; one of which nothing is recorded yet
    /// is done.
    ///
    /// # Errors
    /// When the records cannot be read.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn state(&self) -> Result<SessionState> {
        let (store, session) = (self.entry.store().clone(), self.id().clone());
        let read = off_thread(move || match store.session(&session) {
            Ok(info) => Ok(info.state),
            Err(StoreError::Unknown { .. }) => Ok(SessionState::Done),
            Err(error) => Err(sessions::failed(error)),
        });
        read.await
    }

    /// Waits until no process works on the session, neither this one nor another. By then, the listeners in this process can
    /// read everything that was recorded before.
    ///
    /// # Errors
    /// When it cannot be read whether one does.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn at_rest_everywhere(&self) -> Result<()> {
        let _awaits = FollowGuard::begin(&self.entry);
        let mut changes = self.entry.changes();
        loop {
            changes.borrow_and_update();
            let (store, session) = (self.entry.store().clone(), self.id().clone());
            let is_in_use = off_thread(move || Ok(store.is_in_use(&session)));
            if !is_in_use.await? && !self.entry.is_running() {
                let entry = Arc::clone(&self.entry);
                return off_thread(move || {
                    entry.see_records();
                    Ok(())
                })
                .await;
            }
            // The sender is the entry's, which lives as long as this.
            let _ = changes.changed().await;
        }
    }

    /// Resumes a turn that was cut off, and looks again at what waits.
    pub fn resume(&self) {
        self.entry.ask(|work| {
            work.look = true;
            work.resume = true;
        });
    }

    /// Sets the model of the session's next turns, as `provider/model`; once one has, the session keeps to it.
    pub fn set_model(&self, model: &str) {
        let mut named = self
            .entry
            .model
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *named = Some(model.to_owned());
    }

    /// Returns the full name of the model that the session's next turn asks, or would ask if `named` were given to
    /// [`set_model`](Self::set_model).
    ///
    /// # Errors
    /// When the model or its provider is not known, or a key of it is missing.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn model(&self, named: Option<String>) -> Result<String> {
        let entry = Arc::clone(&self.entry);
        off_thread(move || taking::model(&entry, named)).await
    }

    /// Has the session's next turns use these settings over all others, such as another profile or what runs without
    /// asking. What was chosen before and is not named now stays.
    pub fn choose(&self, settings: Layer) {
        let mut chosen = self
            .entry
            .chosen
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        settings.over(chosen.get_or_insert_default());
    }

    /// Listens from a cursor on: [`Cursor::START`] is told everything that ever happened, what is in no record
    /// excepted.
    #[must_use]
    pub fn subscribe(&self, cursor: Cursor) -> Subscription {
        Subscription::new(Arc::clone(&self.entry), cursor)
    }

    /// Listens from one of the latest turns on, which takes as long for a long session as for a short one. For earlier
    /// turns, see [`earlier`](Self::earlier).
    #[must_use]
    pub fn subscribe_to_latest(&self) -> Subscription {
        Subscription::of_latest(Arc::clone(&self.entry))
    }

    /// Listens to what happens in a session from now on that is worked on here.
    #[must_use]
    pub fn subscribe_to_next(&self) -> Subscription {
        Subscription::of_next(Arc::clone(&self.entry))
    }

    /// Returns the updates of a session's first turns, so many, for a listener who
    /// [passed over them](Subscription::turns_passed). `take` is called with each update, on a thread of its own.
    ///
    /// # Errors
    /// When the records cannot be read.
    ///
    /// # Cancel safety
    /// Cancel safe: the reading continues to its end.
    pub async fn earlier<T: Send + 'static>(
        &self,
        turns: u32,
        mut told: T,
        take: impl Fn(&mut T, UpdateBody) + Send + 'static,
    ) -> Result<T> {
        let (store, session) = (self.entry.store().clone(), self.id().clone());
        off_thread(move || {
            let mut reader = RecordReader::new(store, session);
            while let Some(turn) = reader.turn()?.filter(|it| it.number <= turns) {
                let is_last = turn.is_last || turn.number == turns;
                let updates = turn.runs.into_iter().flat_map(|it| it.updates);
                updates.for_each(|(_, body)| take(&mut told, body));
                if is_last {
                    break;
                }
            }
            Ok(told)
        })
        .await
    }

    /// Declares that a person here can answer, until the returned value is dropped: meanwhile the session waits in
    /// place for the answers
    /// to its questions, for as long as the setting `park_after` allows.
    #[must_use]
    pub fn attend(&self) -> Attendance {
        Attendance::begin(Arc::clone(&self.entry))
    }

    /// Waits until the turn that runs is over. No further one begins here; what waits stays in the mailbox.
    ///
    /// # Cancel safety
    /// Cancel safe: the session stays closed for new turns.
    pub async fn close(&self) {
        self.entry.work().drain = true;
        self.entry.wake.notify_one();
        self.entry.is_done().await;
    }

    /// Waits until nothing works on the session here.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn at_rest(&self) {
        self.entry.is_done().await;
    }

    /// Returns how many messages wait.
    ///
    /// # Errors
    /// When the mailbox cannot be read.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn waiting(&self) -> std::result::Result<usize, MailboxError> {
        let mail = self.entry.store().list(self.id()).await?;
        Ok(mail.iter().filter(|it| it.body.is_message()).count())
    }

    /// Returns the key of the oldest message that waits, if one does and the mailbox can be read.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn first_waiting(&self) -> Option<String> {
        let mail = self.entry.store().list(self.id()).await.ok()?;
        let mut messages = mail.into_iter().filter(|it| it.body.is_message());
        messages.next().map(|it| it.key)
    }

    /// Returns the usage of the session so far, with those that its calls started.
    ///
    /// # Errors
    /// When the records cannot be read.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn used(&self) -> Result<UsageSum> {
        let (store, session) = (self.entry.store().clone(), self.id().clone());
        off_thread(move || usage::of_one(&store, &session)).await
    }

    /// Returns the calls that the user allowed for the rest of the session.
    ///
    /// # Errors
    /// When the records cannot be read.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn grants(&self) -> Result<Vec<Grant>> {
        let (store, session) = (self.entry.store().clone(), self.id().clone());
        off_thread(move || match store.session(&session) {
            Ok(info) => Ok(sessions::grants(&store, &info, &store.history(&session)?)?.list()),
            Err(StoreError::Unknown { .. }) => Ok(Vec::new()),
            Err(error) => Err(sessions::failed(error)),
        })
        .await
    }

    pub(super) fn refuse_if_read_only(&self) -> Result<()> {
        if !self.entry.service.reads_only {
            return Ok(());
        }
        let message = format!("session `{}` was opened for reading only", self.id());
        Err(SetupError::new(SetupErrorKind::Usage, message))
    }

    async fn push(&self, key: &str, actor: &str, body: MailBody) -> Result<Pushed> {
        self.refuse_if_read_only()?;
        let mail = NewMail {
            session: self.id().clone(),
            key: key.to_owned(),
            actor: actor.to_owned(),
            at_ms: Clock::system().now(),
            body,
        };
        let pushed = self.entry.store().push(mail).await.map_err(unkept)?;
        if matches!(pushed, Pushed::Accepted(_)) {
            self.look();
        }
        Ok(pushed)
    }

    /// Makes the session look at its mailbox: to be called after something was submitted past this handle.
    pub fn look(&self) {
        self.entry.ask(|work| work.look = true);
    }

    pub(super) fn user(&self) -> String {
        parking::user(self.entry.service.runtime.env())
    }
}
