//! Shows in chats what their turns are doing, as well as channels can: one task for all of them.

use crate::channel::{Channel, ChatKey, Delivery, Progress, Receipt};
use rondo_core::observe::{Moment, Observer};
use rondo_core::ports::{HostCommit, HostRow, HostStore};
use rondo_types::{EventBody, SessionId};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;

/// How often drafts are shown.
const TICK: Duration = Duration::from_secs(1);
/// Every how many ticks a channel is told that a turn runs.
const TYPING_TICKS: u64 = 4;
/// How long showing something may take.
const SHOW_TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes of a draft; of a longer reply the beginning is shown.
const DRAFT_BYTES_MAX: usize = 16 << 10;
/// The table of the messages that stand in the place of finals.
const PLACEHOLDERS: &str = "placeholder";

/// The turns that run, as far as they are shown.
#[derive(Clone)]
pub(crate) struct Shown {
    turns: Arc<Mutex<HashMap<SessionId, ShownTurn>>>,
    begun: Arc<Notify>,
    store: Arc<dyn HostStore>,
}

struct ShownTurn {
    chat: ChatKey,
    text: String,
    has_changed: bool,
    is_busy: bool,
    placeholder: Option<Receipt>,
    ticks: u64,
    /// Tells those apart that were begun again.
    number: u64,
}

/// The message that stands in the place of a final.
#[derive(Serialize, Deserialize)]
struct Placeholder {
    receipt: Receipt,
}

/// What is shown in a tick.
struct Showing {
    session: SessionId,
    chat: ChatKey,
    progress: Vec<Progress>,
}

impl Shown {
    pub(crate) fn new(store: Arc<dyn HostStore>) -> Self {
        Self {
            turns: Arc::default(),
            begun: Arc::default(),
            store,
        }
    }

    /// Returns how many turns run.
    pub(crate) fn running(&self) -> usize {
        self.turns().len()
    }

    /// Returns whether a session's turn runs.
    pub(crate) fn is_running(&self, session: &SessionId) -> bool {
        self.turns().contains_key(session)
    }

    /// Returns how many turns run that a session's calls have started.
    pub(crate) fn running_below(&self, session: &SessionId) -> usize {
        let turns = self.turns();
        let below = turns
            .keys()
            .filter(|it| it.parent().as_ref() == Some(session));
        below.count()
    }

    /// Returns what sees a turn of a chat, and has it shown until it is dropped.
    pub(crate) fn watch(&self, session: &SessionId, chat: &ChatKey) -> Arc<dyn Observer> {
        let mut turns = self.turns();
        let number = turns.get(session).map_or(0, |it| it.number) + 1;
        let turn = ShownTurn {
            chat: chat.clone(),
            text: String::new(),
            has_changed: false,
            is_busy: false,
            placeholder: None,
            ticks: 0,
            number,
        };
        turns.insert(session.clone(), turn);
        self.begun.notify_one();
        Arc::new(Watch {
            shown: self.clone(),
            session: session.clone(),
            number,
        })
    }

    fn turns(&self) -> MutexGuard<'_, HashMap<SessionId, ShownTurn>> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows what happens until `stop` fires.
    pub(crate) async fn run(
        &self,
        channels: &HashMap<String, Arc<dyn Channel>>,
        stop: &CancellationToken,
    ) {
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            if self.turns().is_empty() {
                tokio::select! {
                    () = self.begun.notified() => {}
                    () = stop.cancelled() => return,
                }
            }
            for showing in self.due(channels) {
                if let Some(channel) = channels.get(&showing.chat.channel) {
                    tokio::spawn(self.clone().show(Arc::clone(channel), showing));
                }
            }
            tokio::select! {
                _ = ticks.tick() => {}
                () = stop.cancelled() => return,
            }
        }
    }

    fn due(&self, channels: &HashMap<String, Arc<dyn Channel>>) -> Vec<Showing> {
        let mut all = Vec::new();
        for (session, turn) in self.turns().iter_mut() {
            let Some(channel) = channels.get(&turn.chat.channel) else {
                continue;
            };
            let can = channel.abilities();
            let mut progress = Vec::new();
            if can.typing && turn.ticks.is_multiple_of(TYPING_TICKS) {
                progress.push(Progress::Typing);
            }
            turn.ticks += 1;
            if can.drafts && turn.has_changed {
                turn.has_changed = false;
                progress.push(Progress::Draft {
                    text: turn.text.clone(),
                    placeholder: turn.placeholder.clone(),
                });
            }
            if progress.is_empty() || turn.is_busy {
                continue;
            }
            turn.is_busy = true;
            all.push(Showing {
                session: session.clone(),
                chat: turn.chat.clone(),
                progress,
            });
        }
        all
    }

    async fn show(self, channel: Arc<dyn Channel>, showing: Showing) {
        for progress in showing.progress {
            let shown = channel.progress(&showing.chat, progress);
            let Ok(Some(receipt)) = timeout(SHOW_TIMEOUT, shown).await else {
                continue;
            };
            let is_new = match self.turns().get_mut(&showing.session) {
                Some(turn) => turn.placeholder.replace(receipt.clone()).as_ref() != Some(&receipt),
                None => true,
            };
            if is_new && channel.abilities().delivery == Delivery::Edit {
                self.note(&showing.session, receipt).await;
            }
        }
        if let Some(turn) = self.turns().get_mut(&showing.session) {
            turn.is_busy = false;
        }
    }

    async fn note(&self, session: &SessionId, receipt: Receipt) {
        let json = serde_json::to_string(&Placeholder { receipt }).unwrap_or_default();
        let commit = HostCommit {
            rows: vec![HostRow::set(PLACEHOLDERS, session.as_str(), json)],
            ..HostCommit::default()
        };
        if let Err(error) = self.store.commit(commit).await {
            tracing::warn!(%error, "a placeholder was not noted: the final is sent beside it");
        }
    }

    /// Returns the message that the final of a session is to replace, once nothing more is being shown there.
    pub(crate) async fn placeholder(&self, session: &SessionId) -> Option<Receipt> {
        let is_busy = || self.turns().get(session).is_some_and(|it| it.is_busy);
        let quiet = async {
            while is_busy() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let _ = timeout(SHOW_TIMEOUT, quiet).await;
        let row = self
            .store
            .row(PLACEHOLDERS, session.as_str())
            .await
            .ok()??;
        let placeholder: Placeholder = serde_json::from_str(&row).ok()?;
        Some(placeholder.receipt)
    }

    /// Returns what forgets that message.
    pub(crate) fn used(session: &SessionId) -> HostRow {
        HostRow::removed(PLACEHOLDERS, session.as_str())
    }
}

struct Watch {
    shown: Shown,
    session: SessionId,
    number: u64,
}

impl Watch {
    fn with(&self, change: impl FnOnce(&mut ShownTurn)) {
        let mut turns = self.shown.turns();
        let turn = turns.get_mut(&self.session);
        if let Some(turn) = turn.filter(|it| it.number == self.number) {
            change(turn);
        }
    }
}

impl Observer for Watch {
    fn observe(&self, moment: &Moment<'_>) {
        match moment {
            Moment::Event(EventBody::TextDelta { text }) => self.with(|turn| {
                let room = DRAFT_BYTES_MAX.saturating_sub(turn.text.len());
                let end = text.floor_char_boundary(room);
                turn.text.push_str(text.get(..end).unwrap_or_default());
                turn.has_changed = true;
            }),
            // What the model said before it called tools is not its answer.
            Moment::ToolStarted(_) => self.with(|turn| turn.text.clear()),
            _ => {}
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut turns = self.shown.turns();
        if turns
            .get(&self.session)
            .is_some_and(|it| it.number == self.number)
        {
            turns.remove(&self.session);
        }
    }
}
