//! One server, and the task that keeps it running: started in the background, listed again when it says that its tools
//! have changed, and started again by a call if it has ended.

use crate::client::{self, Live, Shared, StartPrograms};
use crate::config::Server;
use crate::offer::{Catalog, Era, PinStore};
use crate::sign_in::TokenStore;
use futures_util::FutureExt as _;
use rmcp::model::SubscriptionFilter;
use rmcp::service::{Peer, RoleClient};
use rondo_http::Transport;
use rondo_types::units::seconds;
use rondo_types::{CallId, SessionId};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, Semaphore, watch};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

/// Returns the directory for files of a session.
pub type SessionDirectory = Arc<dyn Fn(&SessionId) -> PathBuf + Send + Sync>;

/// How often a server is started, all in all.
const STARTS_MAX: u32 = 10;
/// How long several notes of a change are taken for one.
const CHANGES_WITHIN: Duration = Duration::from_millis(200);
/// The longest such time: it doubles as long as a server keeps telling of changes.
const CHANGES_WITHIN_MAX: Duration = Duration::from_secs(60);
/// The bound on notes that have not been taken yet.
const NOTES_MAX: usize = 50;

/// A server, as calls see it.
pub(crate) struct RunningServer {
    server: Arc<Server>,
    state: watch::Sender<State>,
    /// Told when a call needs the server again.
    wanted: Notify,
    catalog: Arc<Catalog>,
    pins: PinStore,
    notes: Mutex<Vec<String>>,
    results: Option<SessionDirectory>,
}

/// State of a server.
#[derive(Clone)]
pub(crate) enum State {
    Starting,
    Ready(ReadyConnection),
    /// It is not there; why, on one line.
    Down(String),
    /// It is not started any more; why, on one line.
    Over(String),
}

/// A connection that calls go over.
#[derive(Clone)]
pub(crate) struct ReadyConnection {
    pub(crate) peer: Peer<RoleClient>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) era: Era,
}

/// Parameters for starting servers.
pub(crate) struct StartOptions {
    pub(crate) transport: Transport,
    pub(crate) programs: Arc<dyn StartPrograms>,
    pub(crate) tokens: TokenStore,
    /// How many may start at once.
    pub(crate) slots: Semaphore,
}

impl RunningServer {
    pub(crate) fn new(server: Arc<Server>, catalog: Arc<Catalog>, pins: PinStore) -> Self {
        Self {
            server,
            state: watch::Sender::new(State::Starting),
            wanted: Notify::new(),
            catalog,
            pins,
            notes: Mutex::default(),
            results: None,
        }
    }

    /// Keeps the whole of long results in these directories.
    pub(crate) fn keeping(self, results: Option<SessionDirectory>) -> Self {
        Self { results, ..self }
    }

    /// Returns the file for the whole result of a call.
    pub(crate) fn result_file(&self, session: &SessionId, call: &CallId) -> Option<PathBuf> {
        let directory = self.results.as_ref()?(session);
        Some(directory.join(call.as_str()).join("result.txt"))
    }

    pub(crate) fn server(&self) -> &Server {
        &self.server
    }

    pub(crate) fn state(&self) -> State {
        self.state.borrow().clone()
    }

    /// Waits until calls can go to the server. One that has ended is started again. How long a start may take is
    /// bounded, so this is too.
    ///
    /// # Errors
    /// Says why the server is not there.
    pub(crate) async fn ready(&self) -> Result<ReadyConnection, String> {
        let mut states = self.state.subscribe();
        if matches!(*states.borrow(), State::Down(_)) {
            self.state.send_replace(State::Starting);
            self.wanted.notify_one();
        }
        let settled = states.wait_for(|it| !matches!(it, State::Starting)).await;
        match settled.map(|it| it.clone()) {
            Ok(State::Ready(ready)) => Ok(ready),
            Ok(State::Down(why) | State::Over(why)) => Err(why),
            Ok(State::Starting) | Err(_) => Err("it is being ended".to_owned()),
        }
    }

    /// Pins what a tool has become.
    pub(crate) fn accept(&self, tool: &str) {
        let Some(new) = self.catalog.accept(&self.server.name, tool) else {
            return;
        };
        let mut pins = self.pins.load(&self.server.fingerprint);
        for pinned in pins.tools.iter_mut().flatten() {
            if pinned.name == new.name {
                *pinned = new.clone();
            }
        }
        self.save(&pins);
    }

    fn save(&self, pins: &crate::offer::Pins) {
        if let Err(err) = self.pins.save(&self.server.fingerprint, pins) {
            let name = &self.server.name;
            self.note(format!(
                "what the server `{name}` offers cannot be remembered: {err}"
            ));
        }
    }

    /// Keeps a note until the next step takes it.
    pub(crate) fn note(&self, note: String) {
        tracing::info!("{note}");
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        if notes.len() < NOTES_MAX && !notes.contains(&note) {
            notes.push(note);
        }
    }

    pub(crate) fn take_notes(&self) -> Vec<String> {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *notes)
    }

    fn down(&self, why: String) {
        self.catalog.unreachable(&self.server.name);
        self.note(format!(
            "the server `{}` is not available: {why}",
            self.server.name
        ));
        self.state.send_replace(State::Down(why));
    }

    /// Keeps the server running until it is stopped.
    pub(crate) async fn keep(&self, means: &StartOptions, stop: CancellationToken) {
        for start in 1..=STARTS_MAX {
            if start > 1 {
                tokio::select! {
                    biased;
                    () = stop.cancelled() => return,
                    () = self.wanted.notified() => {}
                }
            }
            let started = tokio::select! {
                biased;
                () = stop.cancelled() => return,
                started = self.start(means).boxed() => started,
            };
            match started {
                Ok(live) => {
                    let is_stopped = self.watch(live, &stop).boxed().await;
                    if is_stopped {
                        return;
                    }
                }
                Err(why) => self.down(why),
            }
        }
        self.state
            .send_replace(State::Over(format!("it ended {STARTS_MAX} times")));
        stop.cancelled().await;
    }

    async fn start(&self, means: &StartOptions) -> Result<Live, String> {
        // It is never closed.
        let _slot = means.slots.acquire().await;
        let limit = self.server.timeouts.startup;
        match timeout(limit, self.connect(means)).await {
            Ok(started) => started,
            Err(_) => Err(format!("it did not start within {}", seconds(limit))),
        }
    }

    async fn connect(&self, means: &StartOptions) -> Result<Live, String> {
        let known = self.pins.load(&self.server.fingerprint).era;
        let with = client::ConnectOptions {
            transport: &means.transport,
            programs: &means.programs,
            tokens: &means.tokens,
        };
        let live = client::connect(&self.server, &with, known).await?;
        let mut pins = self.pins.load(&self.server.fingerprint);
        if pins.era != Some(live.era) {
            pins.era = Some(live.era);
            self.save(&pins);
        }
        match self.list(&live.peer).await {
            Ok(()) => Ok(live),
            Err(why) => Err(live.why_ended().unwrap_or(why)),
        }
    }

    /// Lists the tools, and compares them with what is pinned.
    async fn list(&self, peer: &Peer<RoleClient>) -> Result<(), String> {
        let info = peer.peer_info();
        let has_tools = info.is_none_or(|it| it.capabilities.tools.is_some());
        let (tools, aside) = match has_tools {
            true => client::tools(peer).await.map_err(|err| {
                if err.is_authorization_required() || client::needs_more_scopes(&err) {
                    return client::asks_for_authorisation(&self.server.name);
                }
                format!("its tools cannot be listed: {}", client::why_failed(&err))
            })?,
            false => Default::default(),
        };
        let mut pins = self.pins.load(&self.server.fingerprint);
        let listed = self.catalog.listed(&self.server, &pins, tools, aside);
        for note in listed.notes {
            self.note(note);
        }
        if let Some(pinned) = listed.pinned {
            pins.tools = Some(pinned);
            self.save(&pins);
        }
        Ok(())
    }

    /// Lets calls go over a connection until it ends. Returns whether that is since all servers are being ended.
    async fn watch(&self, mut live: Live, stop: &CancellationToken) -> bool {
        self.state.send_replace(State::Ready(ReadyConnection {
            peer: live.peer.clone(),
            shared: Arc::clone(&live.shared),
            era: live.era,
        }));
        let (peer, shared, era) = (live.peer.clone(), Arc::clone(&live.shared), live.era);
        let is_stopped = tokio::select! {
            biased;
            () = stop.cancelled() => true,
            () = live.gone() => false,
            () = self.follow(&peer, &shared, era).boxed() => false,
        };
        if !is_stopped {
            // Its last output may still be on its way.
            sleep(Duration::from_millis(50)).await;
            self.down(live.why_gone());
        }
        live.end().await;
        is_stopped
    }

    /// Takes up changes of the server's list, for as long as it is there.
    async fn follow(&self, peer: &Peer<RoleClient>, shared: &Shared, era: Era) {
        let listing = async {
            let mut within = CHANGES_WITHIN;
            loop {
                // After a while of silence the next change is taken up at once again.
                if timeout(2 * within, shared.changed.notified())
                    .await
                    .is_err()
                {
                    within = CHANGES_WITHIN;
                    shared.changed.notified().await;
                }
                sleep(within).await;
                peer.clear_response_cache().await;
                if let Err(why) = self.list(peer).await {
                    self.note(format!("the server `{}`: {why}", self.server.name));
                }
                within = (2 * within).min(CHANGES_WITHIN_MAX);
            }
        };
        tokio::join!(subscribed(peer, shared, era), listing);
    }
}

/// Asks a server of the newer lifecycle to report changes, and passes them on until it ends that.
async fn subscribed(peer: &Peer<RoleClient>, shared: &Shared, era: Era) {
    if era != Era::Discover {
        return;
    }
    let info = peer.peer_info();
    let tells = info.and_then(|it| it.capabilities.tools.as_ref()?.list_changed);
    if tells != Some(true) {
        return;
    }
    let filter = SubscriptionFilter::builder().tools_list_changed().build();
    let Ok(mut subscription) = peer.listen(filter).await else {
        return;
    };
    while let Ok(Some(_)) = subscription.next().await {
        shared.changed.notify_one();
    }
}
