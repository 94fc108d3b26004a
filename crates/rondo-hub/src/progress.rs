//! Shows in chats what their turns are doing, as well as channels can: one task for all of them.

use crate::channel::{Channel, ChatKey, Delivery, Progress, Receipt};
use crate::outgoing;
use rondo_core::clock::Clock;
use rondo_core::observe::{Moment, Observer};
use rondo_core::ports::{HostCommit, HostRow, HostStore, MailboxError};
use rondo_runtime::view::{Fold, TurnView};
use rondo_types::text::first_bytes;
use rondo_types::{EventBody, SessionId, TimeMs, TurnId};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::runtime::Handle;
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
/// The table of the messages that are in the place of finals, by session and turn.
const PLACEHOLDERS: &str = "placeholder";
/// Separator of session and turn in a row's key.
const TURN_MARK: char = '/';
/// Placeholders that are looked at when a process begins.
const PLACEHOLDERS_MAX: usize = 100_000;

/// The turns that run, as far as they are shown.
#[derive(Clone)]
pub(crate) struct RunningTurns {
    turns: Arc<Mutex<HashMap<SessionId, ShownTurn>>>,
    /// Turns of which something is being shown right now, also those that are over.
    showing: Arc<Mutex<HashSet<TurnId>>>,
    begun: Arc<Notify>,
    store: Arc<dyn HostStore>,
}

struct ShownTurn {
    chat: ChatKey,
    /// Its id, once it has begun.
    turn: Option<TurnId>,
    /// Current activity of the turn.
    fold: Fold,
    has_changed: bool,
    is_busy: bool,
    placeholder: Option<Receipt>,
    ticks: u64,
    /// Tells those apart that were begun again.
    number: u64,
}

impl ShownTurn {
    /// Returns the beginning of the model's answer. Text before a call of a tool is not its answer.
    fn draft(&self) -> &str {
        let text = self.fold.turn().and_then(TurnView::latest_text);
        first_bytes(text.unwrap_or_default(), DRAFT_BYTES_MAX)
    }

    /// Takes an event of the turn.
    fn event(&mut self, body: &EventBody) {
        if let Some(turn) = &self.turn {
            // How long it takes is not shown.
            let _ = self.fold.observe(turn, body, TimeMs(0));
        }
        self.has_changed |= matches!(body, EventBody::TextDelta { .. });
    }
}

/// The message that is in the place of a final.
#[derive(Serialize, Deserialize)]
struct Placeholder {
    receipt: Receipt,
}

/// Output of a tick.
struct ProgressUpdate {
    session: SessionId,
    chat: ChatKey,
    turn: Option<TurnId>,
    number: u64,
    progress: Vec<Progress>,
}

impl RunningTurns {
    pub(crate) fn new(store: Arc<dyn HostStore>) -> Self {
        Self {
            turns: Arc::default(),
            showing: Arc::default(),
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

    /// Returns the watcher of a chat's turn, which shows its progress until it is dropped. Users who may know of the
    /// folders of this
    /// machine are told its warnings.
    pub(crate) fn watch(
        &self,
        session: &SessionId,
        chat: &ChatKey,
        tells_warnings: bool,
    ) -> Arc<dyn Observer> {
        let mut turns = self.turns();
        let number = turns.get(session).map_or(0, |it| it.number) + 1;
        let turn = ShownTurn {
            chat: chat.clone(),
            turn: None,
            fold: Fold::brief(),
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
            warned: tells_warnings.then(|| chat.clone()),
            number,
        })
    }

    fn turns(&self) -> MutexGuard<'_, HashMap<SessionId, ShownTurn>> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn showing(&self) -> MutexGuard<'_, HashSet<TurnId>> {
        self.showing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows the progress until `stop` fires.
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

    fn due(&self, channels: &HashMap<String, Arc<dyn Channel>>) -> Vec<ProgressUpdate> {
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
                    text: turn.draft().to_owned(),
                    placeholder: turn.placeholder.clone(),
                });
            }
            if progress.is_empty() || turn.is_busy {
                continue;
            }
            turn.is_busy = true;
            // Before the turn can end: its final waits for this.
            self.showing().extend(turn.turn.clone());
            all.push(ProgressUpdate {
                session: session.clone(),
                chat: turn.chat.clone(),
                turn: turn.turn.clone(),
                number: turn.number,
                progress,
            });
        }
        all
    }

    async fn show(self, channel: Arc<dyn Channel>, showing: ProgressUpdate) {
        let ProgressUpdate {
            session,
            chat,
            turn,
            number,
            progress,
        } = showing;
        for mut progress in progress {
            self.find_placeholder(&session, turn.as_ref(), &mut progress)
                .await;
            let shown = timeout(SHOW_TIMEOUT, channel.progress(&chat, progress)).await;
            let (Ok(Some(receipt)), Some(turn)) = (shown, &turn) else {
                continue;
            };
            let is_new = self.with(&session, number, |it| {
                it.placeholder.replace(receipt.clone()).as_ref() != Some(&receipt)
            });
            if is_new.unwrap_or(true) && channel.abilities().delivery == Delivery::Edit {
                self.note(&session, turn, receipt).await;
            }
        }
        self.with(&session, number, |it| it.is_busy = false);
        if let Some(turn) = turn {
            self.showing().remove(&turn);
        }
    }

    /// Changes what is shown of a turn, unless it is over.
    fn with<T>(
        &self,
        session: &SessionId,
        number: u64,
        change: impl FnOnce(&mut ShownTurn) -> T,
    ) -> Option<T> {
        let mut turns = self.turns();
        let turn = turns.get_mut(session);
        turn.filter(|it| it.number == number).map(change)
    }

    /// Lets the first draft of a turn that continues replace the one that an earlier process showed.
    async fn find_placeholder(
        &self,
        session: &SessionId,
        turn: Option<&TurnId>,
        progress: &mut Progress,
    ) {
        if let (Progress::Draft { placeholder, .. }, Some(turn)) = (progress, turn)
            && placeholder.is_none()
        {
            *placeholder = self.noted(session, turn).await;
        }
    }

    async fn note(&self, session: &SessionId, turn: &TurnId, receipt: Receipt) {
        let json = serde_json::to_string(&Placeholder { receipt }).unwrap_or_default();
        let commit = HostCommit {
            rows: vec![HostRow::set(PLACEHOLDERS, row_key(session, turn), json)],
            ..HostCommit::default()
        };
        if let Err(error) = self.store.commit(commit).await {
            tracing::warn!(%error, "a placeholder was not noted: the final is sent beside it");
        }
    }

    async fn noted(&self, session: &SessionId, turn: &TurnId) -> Option<Receipt> {
        let row = self.store.row(PLACEHOLDERS, &row_key(session, turn)).await;
        let placeholder: Placeholder = serde_json::from_str(&row.ok()??).ok()?;
        Some(placeholder.receipt)
    }

    /// Returns the message that the final of a turn is to replace, once nothing more is being shown of it.
    pub(crate) async fn placeholder(&self, session: &SessionId, turn: &TurnId) -> Option<Receipt> {
        let quiet = async {
            while self.showing().contains(turn) {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let _ = timeout(SHOW_TIMEOUT, quiet).await;
        self.noted(session, turn).await
    }

    /// Returns the row that deletes that message.
    pub(crate) fn used(session: &SessionId, turn: &TurnId) -> HostRow {
        HostRow::removed(PLACEHOLDERS, row_key(session, turn))
    }

    /// Forgets the messages of turns that have no final to come.
    ///
    /// # Errors
    /// When the storage fails.
    pub(crate) async fn forget_all_but(
        &self,
        sessions: &HashSet<SessionId>,
    ) -> Result<(), MailboxError> {
        let rows = self.store.rows(PLACEHOLDERS, "", PLACEHOLDERS_MAX).await?;
        let is_over = |key: &str| {
            let session = key.split_once(TURN_MARK).map_or(key, |it| it.0);
            !sessions.contains(&SessionId::new(session))
        };
        let over = rows.into_iter().filter(|(key, _)| is_over(key));
        let over = over.map(|(key, _)| HostRow::removed(PLACEHOLDERS, key));
        let commit = HostCommit {
            rows: over.collect(),
            ..HostCommit::default()
        };
        self.store.commit(commit).await?;
        Ok(())
    }
}

/// No session's id has the mark.
fn row_key(session: &SessionId, turn: &TurnId) -> String {
    format!("{session}{TURN_MARK}{turn}")
}

struct Watch {
    shown: RunningTurns,
    session: SessionId,
    /// The chat that is told warnings; `None` if its people may not read them.
    warned: Option<ChatKey>,
    number: u64,
}

impl Watch {
    fn with(&self, change: impl FnOnce(&mut ShownTurn)) {
        self.shown.with(&self.session, self.number, change);
    }

    /// Queues a warning for the chat.
    fn tell(&self, text: &str) {
        let (Some(chat), Ok(runtime)) = (&self.warned, Handle::try_current()) else {
            return;
        };
        let now = Clock::system().now().0;
        let key = format!("warning:{}:{now}", self.session);
        let commit = HostCommit {
            outbox: vec![outgoing::notice(key, chat, text)],
            ..HostCommit::default()
        };
        let store = Arc::clone(&self.shown.store);
        runtime.spawn(async move {
            if let Err(error) = store.commit(commit).await {
                tracing::error!(%error, "a warning was not queued");
            }
        });
    }
}

impl Observer for Watch {
    fn observe(&self, moment: &Moment<'_>) {
        match moment {
            Moment::Begun { setup, .. } => self.with(|it| it.turn = Some(setup.turn.clone())),
            Moment::Event(body) => {
                if let EventBody::Warning { text } = body {
                    self.tell(text);
                }
                self.with(|turn| turn.event(body));
            }
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

#[cfg(test)]
mod tests {
    use super::*;
    use rondo_runtime::sessions::in_memory;

    fn shown() -> RunningTurns {
        RunningTurns::new(in_memory().unwrap())
    }

    #[tokio::test]
    async fn a_draft_is_what_the_model_said_last_and_is_bounded() {
        let shown = shown();
        let session = SessionId::new("s");
        let chat = ChatKey {
            channel: "c".to_owned(),
            account: String::new(),
            chat_id: "1".to_owned(),
            topic: None,
        };
        let _watch = shown.watch(&session, &chat, false);
        let happens = |body| {
            let mut turns = shown.turns();
            let turn = turns.get_mut(&session).unwrap();
            turn.turn = Some(TurnId::new("t"));
            turn.event(&body);
            turn.draft().to_owned()
        };
        let text = |text: &str| EventBody::TextDelta {
            text: text.to_owned(),
        };
        assert_eq!(happens(text("I ")), "I ");
        assert_eq!(happens(text("look.")), "I look.");
        let pending = EventBody::ToolCallPending {
            id: rondo_types::CallId::new("c"),
            name: "exec".to_owned(),
            arguments: serde_json::Value::Null,
        };
        assert_eq!(happens(pending), "");
        assert_eq!(happens(text("Done.")), "Done.");
        assert_eq!(happens(text(&"x".repeat(20_000))).len(), DRAFT_BYTES_MAX);
    }

    #[tokio::test]
    async fn a_final_replaces_the_draft_of_its_own_turn_alone() {
        let shown = shown();
        let session = SessionId::new("s");
        let [first, second] = ["t-1", "t-2"].map(TurnId::new);
        let receipt = Receipt("7".to_owned());
        // A draft that was still on its way when the turn's final was sent.
        shown.note(&session, &first, receipt.clone()).await;
        assert_eq!(shown.placeholder(&session, &second).await, None);
        assert_eq!(shown.placeholder(&session, &first).await, Some(receipt));
    }

    #[tokio::test(start_paused = true)]
    async fn a_final_waits_for_the_draft_that_is_being_shown_also_where_the_next_turn_has_begun() {
        let shown = shown();
        let (session, turn) = (SessionId::new("s"), TurnId::new("t-1"));
        shown.showing().insert(turn.clone());
        let (receipt, late) = (Receipt("7".to_owned()), shown.clone());
        let noted = receipt.clone();
        let (of, about) = (session.clone(), turn.clone());
        let showing = tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            late.note(&of, &about, noted).await;
            late.showing().remove(&about);
        });
        assert_eq!(shown.placeholder(&session, &turn).await, Some(receipt));
        showing.await.unwrap();
    }

    #[tokio::test]
    async fn placeholders_of_turns_without_a_final_to_come_are_forgotten() {
        let shown = shown();
        let [left, over] = ["s", "s+1"].map(SessionId::new);
        let turn = TurnId::new("t-1");
        for session in [&left, &over] {
            shown.note(session, &turn, Receipt("7".to_owned())).await;
        }
        shown
            .forget_all_but(&HashSet::from([left.clone()]))
            .await
            .unwrap();
        assert!(shown.placeholder(&left, &turn).await.is_some());
        assert_eq!(shown.placeholder(&over, &turn).await, None);
    }
}
