//! Sends what waits in the outbox: one worker a channel, each chat in order, no chat waiting for another.

use crate::channel::{Channel, ChatKey, Delivery, OutboxKind, Receipt, SendError};
use crate::metrics::Metrics;
use crate::outgoing;
use crate::progress::RunningTurns;
use crate::questions;
use crate::undelivered::{self, Cause};
use rondo_core::clock::Clock;
use rondo_core::ports::{Attempt, HostCommit, HostStore, Outbox, OutboxRow, OutboxState};
use rondo_types::TimeMs;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

/// Messages that a channel sends at once, each to another chat.
const AT_ONCE_MAX: usize = 32;
/// How long sending one may take; after that it may or may not be there.
const SEND_TIMEOUT: Duration = Duration::from_secs(60);
/// The pause after the first attempt that failed; it doubles with each up to [`PAUSE_MAX`]. There is no last one: a message
/// is tried until its channel refuses it, or a person drops it.
const PAUSE: Duration = Duration::from_secs(1);
/// The longest pause that the hub chooses itself.
const PAUSE_MAX: Duration = Duration::from_mins(5);
/// The longest pause that a channel may ask for.
const RETRY_AFTER_MAX: Duration = Duration::from_hours(24);
/// How long the worker sleeps at the most: rows of other processes are seen after that.
const LOOK: Duration = Duration::from_secs(5);

/// Sends what one channel is to send.
pub(crate) struct Worker {
    pub(crate) channel: Arc<dyn Channel>,
    pub(crate) outbox: Arc<dyn Outbox>,
    pub(crate) store: Arc<dyn HostStore>,
    pub(crate) shown: RunningTurns,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) failures: Failures,
    /// Set if some message of the channel may ask something.
    pub(crate) asks: AtomicBool,
}

/// Attempts in a row that failed in this process, by chat: those that a kill cut short say nothing of the channel, and
/// must not make what waits wait longer. Holds chats with messages to send, at most.
#[derive(Default)]
pub(crate) struct Failures(Mutex<HashMap<String, u32>>);

impl Failures {
    fn counts(&self) -> MutexGuard<'_, HashMap<String, u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the pause after one more, which doubles with each.
    fn pause(&self, chat: &str) -> Duration {
        let mut counts = self.counts();
        let count = counts.entry(chat.to_owned()).or_default();
        let pause = PAUSE.saturating_mul(1 << (*count).min(16)).min(PAUSE_MAX);
        *count = count.saturating_add(1);
        pause
    }

    fn are_over(&self, chat: &str) {
        self.counts().remove(chat);
    }
}

impl Worker {
    /// Works until `stop` fired and nothing is due any more.
    pub(crate) async fn run(self: Arc<Self>, stop: CancellationToken) {
        let mut changed = self.outbox.outbox_changed();
        let mut sending = JoinSet::new();
        let mut busy = HashSet::new();
        loop {
            changed.borrow_and_update();
            self.close_copies().await;
            self.begin(&mut sending, &mut busy).await;
            if stop.is_cancelled() && sending.is_empty() {
                return;
            }
            let pause = self.pause(&busy).await;
            tokio::select! {
                Some(done) = sending.join_next() => match done {
                    Ok(chat) => {
                        busy.remove(&chat);
                    }
                    // The row stays as it is, and is sent again: its chat is not known any more.
                    Err(error) => {
                        tracing::error!(%error, "a channel panicked while it sent");
                        sending.abort_all();
                        busy.clear();
                    }
                },
                _ = changed.changed() => {}
                () = sleep(pause) => {}
                () = stop.cancelled(), if !stop.is_cancelled() => {}
            }
        }
    }

    async fn close_copies(&self) {
        if !self.asks.swap(false, Ordering::AcqRel) {
            return;
        }
        match questions::close_copies(&*self.store, self.channel.name()).await {
            Ok(are_left) => {
                self.asks.fetch_or(are_left, Ordering::AcqRel);
            }
            Err(error) => {
                self.asks.store(true, Ordering::Release);
                tracing::warn!(%error, "the buttons of answered questions are still there");
            }
        }
    }

    async fn begin(self: &Arc<Self>, sending: &mut JoinSet<String>, busy: &mut HashSet<String>) {
        let limit = AT_ONCE_MAX + busy.len();
        let due = self.outbox.due(self.channel.name(), now(), limit).await;
        let due = due.unwrap_or_else(|error| {
            tracing::error!(%error, "the outbox could not be read");
            Vec::new()
        });
        for row in due {
            if busy.len() >= AT_ONCE_MAX {
                return;
            }
            if busy.insert(row.entry.chat.clone()) {
                let worker = Arc::clone(self);
                sending.spawn(async move { worker.deliver(row).await });
            }
        }
    }

    async fn pause(&self, busy: &HashSet<String>) -> Duration {
        let next = self.outbox.next_due(self.channel.name()).await;
        match next.ok().flatten() {
            // A due message is being sent, or waits for one that is.
            Some(at) if at <= now() && !busy.is_empty() => LOOK,
            Some(at) => Duration::from_millis(at.0.saturating_sub(now().0))
                .clamp(Duration::from_millis(10), LOOK),
            None => LOOK,
        }
    }

    /// Sends one and stores the outcome. Returns its chat.
    async fn deliver(&self, row: OutboxRow) -> String {
        let chat = row.entry.chat.clone();
        if self.is_answered(&row).await {
            let dropped = self.outbox.drop_row(row.id).await;
            if let Err(error) = dropped {
                tracing::error!(%error, "a question that was answered was not dropped");
                sleep(PAUSE).await;
            }
            return chat;
        }
        if self.channel.abilities().delivery != Delivery::Key {
            match self.outbox.begin_sending(row.id).await {
                Ok(true) => {}
                Ok(false) => return chat,
                Err(error) => {
                    tracing::error!(%error, "a message is not sent: that it is cannot be noted");
                    sleep(PAUSE).await;
                    return chat;
                }
            }
            if row.state == OutboxState::Sending {
                self.metrics.resent();
            }
        }
        let is_final = row.entry.kind == OutboxKind::Final;
        let is_edit = is_final && self.channel.abilities().delivery == Delivery::Edit;
        let (session, turn) = (&row.entry.session, row.entry.turn.as_ref());
        let placeholder = match turn.filter(|_| is_edit) {
            Some(turn) => self.shown.placeholder(session, turn).await,
            None => None,
        };
        let has_placeholder = placeholder.is_some();
        let attempt = self.send(&row, placeholder).await;
        let is_over = matches!(attempt, Attempt::Sent(_) | Attempt::GivenUp { .. });
        if let Some(turn) = turn.filter(|_| has_placeholder && is_over) {
            let forgotten = HostCommit {
                rows: vec![RunningTurns::used(session, turn)],
                ..HostCommit::default()
            };
            // Editing it again would do no harm.
            let _ = self.store.commit(forgotten).await;
        }
        if is_over {
            self.failures.are_over(&chat);
        }
        self.note_copy(&row, &attempt).await;
        self.metrics.attempted(&attempt);
        if let Err(error) = self.outbox.end_sending(row.id, attempt).await {
            tracing::error!(%error, "what came of a message was not noted");
            sleep(PAUSE).await;
        }
        chat
    }

    /// Returns whether it is the copy of a question for an owner that was answered before it was sent.
    async fn is_answered(&self, row: &OutboxRow) -> bool {
        match copied(row) {
            Some(token) if row.state != OutboxState::Sending => {
                let is_asked = questions::is_asked(&*self.store, token).await;
                is_asked.is_ok_and(|it| !it)
            }
            _ => false,
        }
    }

    /// Records the message of a question, so that its buttons go once it is answered.
    async fn note_copy(&self, row: &OutboxRow, attempt: &Attempt) {
        let can_edit = self.channel.abilities().delivery == Delivery::Edit;
        let (Some(token), Attempt::Sent(receipt)) = (asks(row).filter(|_| can_edit), attempt)
        else {
            return;
        };
        let Some(chat) = ChatKey::of_text(&row.entry.chat) else {
            return;
        };
        let commit = HostCommit {
            rows: vec![questions::copy(
                token,
                &chat,
                &Receipt(receipt.clone()),
                &row.entry.text,
            )],
            ..HostCommit::default()
        };
        if let Err(error) = self.store.commit(commit).await {
            tracing::warn!(%error, "the buttons of a question stay after its answer");
        }
        self.asks.store(true, Ordering::Release);
    }

    async fn send(&self, row: &OutboxRow, placeholder: Option<Receipt>) -> Attempt {
        let Some(message) = outgoing::to_send(row, placeholder) else {
            let error = "the row cannot be read: a later version wrote it".to_owned();
            return Attempt::GivenUp { error };
        };
        let sent = timeout(SEND_TIMEOUT, self.channel.send(&message)).await;
        let sent = sent.unwrap_or_else(|_| {
            let reason = "the channel did not answer in time".to_owned();
            Err(SendError::Ambiguous { reason })
        });
        match sent {
            Ok(receipt) => Attempt::Sent(receipt.0),
            Err(SendError::Retry { after, reason }) => Attempt::NotSent {
                not_before: later(after.unwrap_or_else(|| self.failures.pause(&row.entry.chat))),
                error: reason,
            },
            Err(SendError::Ambiguous { reason }) => Attempt::Unclear {
                not_before: later(self.failures.pause(&row.entry.chat)),
                error: reason,
            },
            Err(SendError::Refused { reason }) => self.given_up(row, Cause::Refused, reason).await,
            Err(SendError::Gone { reason }) => self.given_up(row, Cause::Gone, reason).await,
            Err(SendError::Migrated { to }) => self.migrated(&message.chat, to).await,
        }
    }

    /// Gives a message up once it is durable who is told so; else it is tried again.
    async fn given_up(&self, row: &OutboxRow, cause: Cause, reason: String) -> Attempt {
        match undelivered::note(&*self.store, row, cause, &reason).await {
            Ok(()) => Attempt::GivenUp { error: reason },
            Err(error) => {
                tracing::warn!(%error, "that a message was given up was not noted");
                Attempt::NotSent {
                    not_before: later(self.failures.pause(&row.entry.chat)),
                    error: reason,
                }
            }
        }
    }

    async fn migrated(&self, key: &ChatKey, to: String) -> Attempt {
        let not_before = later(Duration::ZERO);
        match migrate(&*self.store, &*self.outbox, key, to).await {
            Ok(()) => Attempt::NotSent {
                not_before,
                error: "the chat has another id now".to_owned(),
            },
            Err(error) => Attempt::NotSent {
                not_before: later(PAUSE),
                error: format!("the chat has another id now: {error}"),
            },
        }
    }
}

/// Moves a chat to another id, with its session and its waiting messages.
pub(crate) async fn migrate(
    store: &dyn HostStore,
    outbox: &dyn Outbox,
    key: &ChatKey,
    to: String,
) -> Result<(), rondo_core::ports::MailboxError> {
    let new = ChatKey {
        chat_id: to,
        ..key.clone()
    };
    let known: Option<crate::chats::Chat> =
        crate::chats::read(store, crate::chats::CHATS, &key.text()).await?;
    if let Some(chat) = known {
        let moved = crate::chats::Chat {
            session: Some(chat.session().as_str().to_owned()),
            key: new.clone(),
            ..chat
        };
        let commit = HostCommit {
            rows: moved.rows(),
            ..HostCommit::default()
        };
        store.commit(commit).await?;
    }
    outbox
        .move_chat(&key.channel, &key.text(), &new.text())
        .await
}

/// Returns the token of the question that a row asks.
fn asks(row: &OutboxRow) -> Option<&str> {
    let key = row.entry.key.strip_prefix("question:")?;
    Some(key.split_once(':').map_or(key, |it| it.0))
}

/// Returns the token of the question of which a row is an owner's copy.
fn copied(row: &OutboxRow) -> Option<&str> {
    let key = row.entry.key.strip_prefix("question:")?;
    let (token, of) = key.split_once(':')?;
    of.starts_with("owner").then_some(token)
}

fn now() -> TimeMs {
    Clock::system().now()
}

fn later(after: Duration) -> TimeMs {
    let millis = after.min(RETRY_AFTER_MAX).as_millis();
    TimeMs(
        now()
            .0
            .saturating_add(u64::try_from(millis).unwrap_or(u64::MAX)),
    )
}
