//! What the line prompt brings to the turns of its session.

use super::approver::PromptApprover;
use crate::changes::Changes;
use crate::hosted::{HostEvent, NEWS_MAX, tell};
use crate::slash::MemoryChoice;
use crate::user_input;
use async_trait::async_trait;
use rondo_core::redact::Secrets;
use rondo_core::{TurnEnd, TurnHandle};
use rondo_policy::Workdir;
use rondo_runtime::error::Result;
use rondo_runtime::sandboxed::SandboxOffer;
use rondo_runtime::service::{AskedTurn, SessionHost};
use rondo_runtime::sessions::WatchedJournal;
use rondo_runtime::settings::Settings;
use rondo_runtime::spec::TurnSpec;
use rondo_runtime::{SetupError, SetupErrorKind, Turn, TurnBuilder};
use rondo_types::{Message, SessionId, TurnId};
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, mpsc};

/// A turn that begins, with what stops it.
pub(super) struct BegunTurn {
    pub(super) session: SessionId,
    pub(super) id: TurnId,
    pub(super) spec: TurnSpec,
    /// The key of the message that begins it, and its text; none if the turn goes on.
    pub(super) message: Option<(String, String)>,
    pub(super) handle: TurnHandle,
    pub(super) journal: Arc<WatchedJournal>,
    /// The sandbox that its questions offer.
    pub(super) offer: Option<SandboxOffer>,
}

/// What holds at the prompt for turns and cells.
#[derive(Clone)]
pub(super) struct InForce {
    pub(super) settings: Settings,
    pub(super) secrets: Secrets,
    /// The directory and environment of the shell.
    pub(super) workdir: Workdir,
}

/// Where the next turn is shown and asks.
pub(super) struct Stage {
    pub(super) approver: PromptApprover,
    pub(super) changes: Changes,
    /// Whether its changes are shown.
    pub(super) shows_changes: bool,
}

/// What the prompt and its host share.
struct Shared {
    in_force: Mutex<InForce>,
    /// The keys of messages that were entered while a turn ran: the files that they name are read once they are asked.
    entered: Mutex<HashSet<String>>,
    memory: MemoryChoice,
    /// Whether the prompt waits for turns.
    is_open: AtomicBool,
    /// Whether a turn waits for its place.
    is_asked: AtomicBool,
    asked: Notify,
    stage: Mutex<Option<Stage>>,
    staged: Notify,
    /// Parts of the turn that is being built.
    parts: Mutex<Option<Parts>>,
}

struct Parts {
    spec: TurnSpec,
    message: Option<(String, String)>,
    changes: Changes,
    shows_changes: bool,
}

/// The host of the prompt's session, as the service has it.
pub(super) struct LineHost {
    shared: Arc<Shared>,
    news: mpsc::Sender<HostEvent<BegunTurn>>,
}

/// The prompt's side of its host.
pub(super) struct LineLink {
    shared: Arc<Shared>,
    pub(super) news: mpsc::Receiver<HostEvent<BegunTurn>>,
}

/// Returns a host and the prompt's side of it.
pub(super) fn host(in_force: InForce, memory: MemoryChoice) -> (LineHost, LineLink) {
    let (sender, news) = mpsc::channel(NEWS_MAX);
    let shared = Arc::new(Shared {
        in_force: Mutex::new(in_force),
        entered: Mutex::default(),
        memory,
        is_open: AtomicBool::default(),
        is_asked: AtomicBool::default(),
        asked: Notify::new(),
        stage: Mutex::default(),
        staged: Notify::new(),
        parts: Mutex::default(),
    });
    let host = LineHost {
        shared: Arc::clone(&shared),
        news: sender,
    };
    (host, LineLink { shared, news })
}

impl LineLink {
    /// Sets what holds for the next turns and cells.
    pub(super) fn set_in_force(&self, in_force: InForce) {
        *lock(&self.shared.in_force) = in_force;
    }

    /// Has messages that were entered while a turn ran be asked with the files that they name.
    pub(super) fn entered(&self, keys: impl IntoIterator<Item = String>) {
        lock(&self.shared.entered).extend(keys);
    }

    /// Forgets which messages were entered, as none of them waits.
    pub(super) fn all_asked(&self) {
        lock(&self.shared.entered).clear();
    }

    /// Lets turns begin until [`close`](Self::close). Each waits until it is [staged](Self::stage).
    pub(super) fn open(&mut self) {
        while self.news.try_recv().is_ok() {}
        self.shared.is_asked.store(false, Ordering::Relaxed);
        lock(&self.shared.stage).take();
        self.shared.is_open.store(true, Ordering::Relaxed);
    }

    /// Lets no further turn begin.
    pub(super) fn close(&self) {
        self.shared.is_open.store(false, Ordering::Relaxed);
        self.shared.staged.notify_one();
    }

    /// Waits until a turn is about to begin. The session is taken by then, and nothing of the turn was told.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub(super) fn asked(&self) -> impl Future<Output = ()> + use<> {
        let shared = Arc::clone(&self.shared);
        async move {
            while !shared.is_asked.swap(false, Ordering::Relaxed) {
                shared.asked.notified().await;
            }
        }
    }

    /// Lets one turn begin.
    pub(super) fn stage(&self, stage: Stage) {
        *lock(&self.shared.stage) = Some(stage);
        self.shared.staged.notify_one();
    }
}

impl Shared {
    /// Waits for the place of the next turn; `None` once the prompt waits for no turn.
    async fn staged(&self) -> Option<Stage> {
        self.is_asked.store(true, Ordering::Relaxed);
        self.asked.notify_one();
        while self.is_open.load(Ordering::Relaxed) {
            if let Some(stage) = lock(&self.stage).take() {
                return Some(stage);
            }
            self.staged.notified().await;
        }
        None
    }

    /// Returns the message that was entered while a turn ran, with the files that it names. What does not exist was noted
    /// when it was entered.
    fn with_files(&self, text: &str, settings: &Settings) -> Option<Message> {
        let (servers, quiet) = (settings.mcp.names(), |_: &str| {});
        let message = user_input::of_text(text, &settings.directory, &servers, &quiet);
        let secrets = lock(&self.in_force).secrets.clone();
        message.ok().map(|it| secrets.message(it))
    }
}

#[async_trait]
impl SessionHost for LineHost {
    async fn turn(&self, turn: &AskedTurn<'_>, builder: &mut TurnBuilder) -> Result<()> {
        let Some(stage) = self.shared.staged().await else {
            let message = "the prompt does not wait for a turn";
            return Err(SetupError::new(SetupErrorKind::Other, message));
        };
        let InForce {
            secrets, workdir, ..
        } = lock(&self.shared.in_force).clone();
        builder.secrets = secrets;
        builder.workdir = Some(workdir);
        builder.approver = Arc::new(stage.approver);
        let text = builder.message().map(Message::text).unwrap_or_default();
        if let Some((key, _)) = turn.begins
            && lock(&self.shared.entered).remove(key)
            && let Some(message) = self.shared.with_files(&text, turn.settings)
        {
            builder.set_message(message);
        }
        self.shared.memory.turn(turn, builder).await?;
        *lock(&self.shared.parts) = Some(Parts {
            spec: builder.spec.clone(),
            message: turn.begins.map(|(key, _)| (key.to_owned(), text)),
            changes: stage.changes,
            shows_changes: stage.shows_changes,
        });
        Ok(())
    }

    fn settings(&self, _: &SessionId) -> Option<Settings> {
        Some(lock(&self.shared.in_force).settings.clone())
    }

    fn lets_begin(&self, _: &SessionId) -> bool {
        self.shared.is_open.load(Ordering::Relaxed)
    }

    fn asks_again(&self, _: &SessionId) -> bool {
        true
    }

    fn begins(&self, turn: &Turn, handle: &TurnHandle) {
        let Some(parts) = lock(&self.shared.parts).take() else {
            return;
        };
        parts.changes.watch(turn, parts.shows_changes);
        tell(
            &self.news,
            HostEvent::Begun(Box::new(BegunTurn {
                session: turn.session().clone(),
                id: turn.id(),
                spec: parts.spec,
                message: parts.message,
                handle: handle.clone(),
                journal: Arc::clone(turn.journal()),
                offer: turn.offer().cloned(),
            })),
        );
    }

    fn ended(&self, _: &SessionId, end: &Result<TurnEnd>) {
        tell(&self.news, HostEvent::Ended(Box::new(end.clone())));
    }

    fn failed(&self, _: &SessionId, _: Option<&str>, error: &SetupError) {
        tell(&self.news, HostEvent::Failed(Box::new(error.clone())));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
