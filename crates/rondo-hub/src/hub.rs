//! The hub itself: its parts, how it is opened, run and stopped.

use crate::channel::{Channel, ChannelError};
use crate::chats::{Chats, first_session};
use crate::config::{HubConfig, StrangerPolicy};
use crate::context::{CONTEXT_TOKENS, WORKSPACE_DIR};
use crate::cron::HeartbeatConfig;
use crate::delivery::{Failures, Worker};
use crate::elsewhere::Waiting;
use crate::exclusive::ServeLock;
use crate::extending::{OwnExtensions, TurnExtensions};
use crate::host::HubHost;
use crate::inbox::Inbox;
use crate::metrics::Metrics;
use crate::models::Models;
use crate::progress::RunningTurns;
use crate::recovery::Retries;
use crate::set_aside::Failing;
use crate::shortage::Shortage;
use crate::states::ChannelStates;
use crate::suspects::Trial;
use crate::users::Users;
use rondo_core::ports::{HostStore, MailboxError, Outbox};
use rondo_runtime::error::{Result, SetupError, SetupErrorKind};
use rondo_runtime::service::{SessionHandle, SessionService};
use rondo_runtime::{Runtime, SessionOptions};
use rondo_types::{SessionId, TimeMs};
use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

/// The pause before a channel that ended is begun again; it doubles with each time, up to the longest.
const RESTART: Duration = Duration::from_secs(1);
/// The longest such pause.
const RESTART_MAX: Duration = Duration::from_mins(1);
/// A channel that ran so long is begun again after the shortest pause.
const STEADY: Duration = Duration::from_mins(5);
/// How long the hub continues sending after its turns have stopped.
const FLUSH: Duration = Duration::from_secs(5);
/// The directory of the chats' own directories.
pub(crate) const CHATS_DIR: &str = "chats";
/// The directory of the files to send.
pub(crate) const OUTGOING_DIR: &str = "outgoing";

/// A gateway: channels, and the sessions that they talk to. Clones are the same hub.
#[derive(Clone)]
pub struct Hub {
    core: Arc<Core>,
}

/// State that the parts of the hub share.
pub(crate) struct Core {
    pub(crate) service: SessionService,
    pub(crate) store: Arc<dyn HostStore>,
    pub(crate) outbox: Arc<dyn Outbox>,
    pub(crate) users: Users,
    pub(crate) chats: Chats,
    pub(crate) models: Models,
    pub(crate) strangers: StrangerPolicy,
    pub(crate) steers: bool,
    pub(crate) shown: RunningTurns,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) states: ChannelStates,
    pub(crate) retries: Retries,
    /// Sessions that wait for answers.
    pub(crate) waiting: Waiting,
    pub(crate) shortage: Shortage,
    /// Events that could not be taken while others could.
    pub(crate) failing: Failing,
    pub(crate) trial: Trial,
    /// Fires once no further events are taken, and turns stop before they ask a model again.
    pub(crate) drain: CancellationToken,
    /// The workspace and the chats' directories.
    pub(crate) directory: PathBuf,
    pub(crate) context_tokens: u64,
    pub(crate) keep_messages: Option<u32>,
    pub(crate) keep_sessions: Option<Duration>,
    pub(crate) heartbeat: Option<HeartbeatConfig>,
    pub(crate) own_extensions: OwnExtensions,
    drain_for: Duration,
    channels: HashMap<String, Arc<dyn Channel>>,
}

impl Hub {
    /// Opens the journal and puts the hub together. Nothing is received or sent before [`run`](Self::run).
    ///
    /// # Errors
    /// When the settings make no sense, the journal cannot be used, or two channels have one name.
    pub fn open(
        runtime: Runtime,
        config: &HubConfig,
        channels: Vec<Arc<dyn Channel>>,
    ) -> Result<Self> {
        let directory = config.directory(&runtime.settings(PathBuf::from("/"))?);
        let made = fs::create_dir_all(directory.join(CHATS_DIR));
        let made = made.and_then(|()| fs::create_dir_all(directory.join(WORKSPACE_DIR)));
        made.map_err(|err| {
            let context = format!("failed to make `{}`", directory.display());
            SetupError::because(SetupErrorKind::Config, context, err)
        })?;
        let channels = by_name(channels)?;
        let slot = Arc::new(std::sync::OnceLock::new());
        let host = HubHost(Arc::clone(&slot));
        let service = SessionService::open(runtime, directory.clone(), host)?;
        let store = service.host_store();
        let core = Arc::new(Core {
            outbox: service.outbox(),
            users: Users::new(config.users(), Arc::clone(&store)),
            chats: Chats::new(Arc::clone(&store)),
            models: Models::default(),
            strangers: config.strangers,
            steers: config.steer,
            shown: RunningTurns::new(Arc::clone(&store)),
            metrics: Arc::default(),
            states: ChannelStates::new(channels.keys()),
            retries: Retries::default(),
            waiting: Waiting::default(),
            shortage: Shortage::default(),
            failing: Failing::default(),
            trial: Trial::default(),
            drain: CancellationToken::new(),
            context_tokens: config.context_tokens.unwrap_or(CONTEXT_TOKENS),
            keep_messages: config.keep_messages,
            keep_sessions: config.keep_sessions.map(|it| it.0),
            heartbeat: config.heartbeat.clone(),
            own_extensions: OwnExtensions::new(),
            drain_for: config.drain(),
            directory,
            channels,
            service,
            store,
        });
        // Nothing else fills it in.
        let _: std::result::Result<(), Weak<Core>> = slot.set(Arc::downgrade(&core));
        let hub = Self { core };
        for channel in hub.core.channels.values() {
            channel.opened(&hub);
        }
        Ok(hub)
    }

    /// Adds to the turns of all chats that begin from now on. The first one given counts.
    pub fn extend_turns(&self, extensions: Arc<dyn TurnExtensions>) {
        self.core.own_extensions.get_or_init(|| extensions);
    }

    /// Receives, answers and sends until `stop` fires, and then stops: no further events are taken, turns end or stop
    /// before they ask a model again, and what they answered is sent. What is left continues in the next process.
    ///
    /// # Errors
    /// When another process serves the same data, when the journal cannot be read, and when no channel can receive before
    /// something is changed.
    ///
    /// # Cancel safety
    /// Dropping the future is as the end of the process: nothing is lost, and the next run continues.
    pub async fn run(&self, stop: CancellationToken) -> Result<()> {
        let core = &self.core;
        let settings = core.service.runtime().settings(PathBuf::from("/"))?;
        let _served = ServeLock::take(&settings.paths.sessions())?;
        let (receiving, sending) = (CancellationToken::new(), CancellationToken::new());
        let mut workers = JoinSet::new();
        let mut receivers = JoinSet::new();
        for channel in core.channels.values() {
            workers.spawn(core.worker(channel).run(sending.clone()));
        }
        {
            let (core, sending) = (Arc::clone(core), sending.clone());
            workers.spawn(async move { core.shown.run(&core.channels, &sending).await });
        }
        {
            let (core, receiving) = (Arc::clone(core), receiving.clone());
            receivers.spawn(async move { core.keep_going(&receiving).await });
        }
        core.load_models().await?;
        core.forget_former_owners().await?;
        core.recover().await?;
        {
            let (core, receiving) = (Arc::clone(core), receiving.clone());
            receivers.spawn(async move { core.remove_left_over(&receiving).await });
        }
        {
            let (core, receiving) = (Arc::clone(core), receiving.clone());
            receivers.spawn(async move { core.remove_old_sessions(&receiving).await });
        }
        {
            let (core, receiving) = (Arc::clone(core), receiving.clone());
            receivers.spawn(async move { core.keep_time(&receiving).await });
        }
        for channel in core.channels.values() {
            let (channel, inbox) = (Arc::clone(channel), self.inbox());
            let core = Arc::clone(core);
            receivers.spawn(receive(core, channel, inbox, receiving.clone()));
        }
        tracing::info!(channels = core.channels.len(), "the hub is open");
        let ended = tokio::select! {
            () = stop.cancelled() => Ok(()),
            reasons = core.states.none_is_left() => Err(no_channel_left(&reasons)),
        };
        core.drain.cancel();
        receiving.cancel();
        self.stop_turns().await;
        if let Err(error) = core.suspect_nobody().await {
            tracing::warn!(%error, "the end of this process may be taken for a crash");
        }
        sending.cancel();
        let done = async { while workers.join_next().await.is_some() {} };
        let _ = timeout(FLUSH, done).await;
        core.service.runtime().close().await;
        ended
    }

    /// Waits until no turn runs, or the time for that is over.
    async fn stop_turns(&self) {
        let until = Instant::now() + self.core.drain_for;
        let closed = self.core.service.close();
        tokio::pin!(closed);
        loop {
            tokio::select! {
                () = &mut closed => return,
                () = sleep(Duration::from_millis(50)) => {}
            }
            let running = self.core.shown.running();
            if Instant::now() >= until || running == self.core.retries.held() {
                tracing::info!(running, "turns go on in the next process");
                return;
            }
        }
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    /// Returns the inbox into which channels put their messages.
    #[must_use]
    pub fn inbox(&self) -> Inbox {
        Inbox::new(Arc::clone(&self.core) as _)
    }

    /// Returns the sessions.
    #[must_use]
    pub fn service(&self) -> &SessionService {
        &self.core.service
    }

    /// Returns the users.
    #[must_use]
    pub fn users(&self) -> &Users {
        &self.core.users
    }

    /// Returns the known chats.
    #[must_use]
    pub fn chats(&self) -> &Chats {
        &self.core.chats
    }

    /// Returns the messages to send.
    #[must_use]
    pub fn outbox(&self) -> &Arc<dyn Outbox> {
        &self.core.outbox
    }

    /// Returns the store of the hub's rows beside its sessions.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn HostStore> {
        &self.core.store
    }

    /// Returns the states of its channels.
    #[must_use]
    pub fn channel_states(&self) -> &ChannelStates {
        &self.core.states
    }

    /// Returns the hub's counters.
    #[must_use]
    pub fn metrics(&self) -> &Metrics {
        &self.core.metrics
    }

    /// Begins the jobs that are due at a time.
    ///
    /// # Errors
    /// When the storage fails.
    ///
    /// # Cancel safety
    /// Cancel safe: each run is submitted once, whole.
    pub async fn run_due(&self, now: TimeMs) -> std::result::Result<(), MailboxError> {
        self.core.run_due(now).await
    }

    /// Returns how many turns run.
    #[must_use]
    pub fn running(&self) -> usize {
        self.core.shown.running()
    }

    /// Returns whether it was told to stop.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.core.drain.is_cancelled()
    }

    /// Returns a chat's session, which works in a directory of its own.
    #[must_use]
    pub fn session(&self, id: &SessionId) -> SessionHandle {
        self.core.session(id)
    }
}

impl Core {
    /// Returns a session, which works in a directory of its own.
    pub(crate) fn session(&self, id: &SessionId) -> SessionHandle {
        let options = SessionOptions::in_directory(self.directory_of(id));
        let handle = self.service.session(id.clone(), options);
        if let Some(model) = self.models.of(id) {
            handle.set_model(&model);
        }
        handle
    }

    /// Returns the directory that a session works in: that of its chat, which it keeps when it starts over. Spawned work is
    /// done where its conversation works.
    pub(crate) fn directory_of(&self, id: &SessionId) -> PathBuf {
        let chats = self.directory.join(CHATS_DIR);
        chats.join(first_session(id).as_str())
    }

    /// Makes a session look at its mailbox.
    pub(crate) fn wake(&self, id: &SessionId) {
        let directory = self.directory_of(id);
        if let Err(error) = fs::create_dir_all(&directory) {
            tracing::error!(%error, "failed to make the directory of a chat");
        }
        self.session(id).look();
    }

    /// Returns the channels.
    pub(crate) fn channels(&self) -> impl Iterator<Item = &Arc<dyn Channel>> {
        self.channels.values()
    }

    /// Returns a channel of the hub.
    pub(crate) fn channel(&self, name: &str) -> Option<&Arc<dyn Channel>> {
        self.channels.get(name)
    }

    fn worker(&self, channel: &Arc<dyn Channel>) -> Arc<Worker> {
        Arc::new(Worker {
            channel: Arc::clone(channel),
            outbox: Arc::clone(&self.outbox),
            store: Arc::clone(&self.store),
            shown: self.shown.clone(),
            metrics: Arc::clone(&self.metrics),
            failures: Failures::default(),
            asks: AtomicBool::new(true),
        })
    }
}

fn by_name(channels: Vec<Arc<dyn Channel>>) -> Result<HashMap<String, Arc<dyn Channel>>> {
    let mut all = HashMap::new();
    for channel in channels {
        let name = channel.name().to_owned();
        let is_plain = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit();
        if name.is_empty() || !name.bytes().all(is_plain) {
            let message =
                format!("`{name}` is not a channel name: use lower-case letters and digits");
            return Err(SetupError::new(SetupErrorKind::Config, message));
        }
        if all.insert(name.clone(), channel).is_some() {
            let message = format!("two channels are called `{name}`");
            return Err(SetupError::new(SetupErrorKind::Config, message));
        }
    }
    Ok(all)
}

fn no_channel_left(reasons: &str) -> SetupError {
    let message = format!("no channel can receive ({reasons})");
    SetupError::new(SetupErrorKind::Config, message)
}

/// Lets a channel receive until `stop` fires; one that fails stops no other.
async fn receive(
    core: Arc<Core>,
    channel: Arc<dyn Channel>,
    inbox: Inbox,
    stop: CancellationToken,
) {
    let mut pause = RESTART;
    while !stop.is_cancelled() {
        let begun = Instant::now();
        let received = tokio::select! {
            received = channel.receive(inbox.clone(), stop.clone()) => received,
            () = stop.cancelled() => return,
        };
        let name = channel.name();
        match received {
            Ok(()) if stop.is_cancelled() => return,
            Ok(()) => core.states.fails(name, "it ended by itself", false),
            Err(ChannelError::Setup { message }) => {
                core.states.fails(name, &message, true);
                pause = RESTART_MAX;
            }
            Err(error) => core.states.fails(name, &error.to_string(), false),
        }
        if begun.elapsed() > STEADY {
            pause = RESTART;
        }
        tokio::select! {
            () = sleep(pause) => {}
            () = stop.cancelled() => return,
        }
        pause = (pause * 2).min(RESTART_MAX);
    }
}
