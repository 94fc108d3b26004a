//! The runtime of a host: what its sessions share.

use crate::env::Env;
use crate::error::Result;
use crate::extensions::Extensions;
use crate::known_files::KnownFiles;
use crate::mcp::{self, SharedServers};
use crate::notices::{NoNotices, Notices};
use crate::python::LivePython;
use crate::request_limits::RequestLimits;
use crate::settings::{Settings, Source, Values};
use crate::shared_values::SharedValues;
use crate::spec::{ConnectedModel, TurnSpec};
use crate::table::Layer;
use crate::telemetry::Telemetry;
use crate::trust_question::{AskingSession, TrustAnswers};
use rondo_core::{Approver, EventSender};
use rondo_mcp::{Consent, Servers};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// How long the end waits for work that was done beside turns.
const BESIDE_TIMEOUT: Duration = Duration::from_secs(2);

/// The settings, connections and models that the sessions of a host share. It has no global state, so two
/// can live in one process. Clones share the same state.
#[derive(Clone)]
pub struct Runtime(Arc<Shared>);

struct Shared {
    env: Env,
    flags: Layer,
    notices: Arc<dyn Notices>,
    /// The configuration files that were read.
    files: KnownFiles,
    /// Answers to questions about folders.
    trust_answers: TrustAnswers,
    /// Set once the user was told of gaps in the sandbox.
    has_noted_shortfall: AtomicBool,
    request_limits: RequestLimits,
    python: LivePython,
    values: SharedValues,
    extensions: Mutex<Extensions>,
    /// The model that was connected last, and the fingerprint of its connection.
    connected: Mutex<Option<(String, ConnectedModel)>>,
    /// The settings of the session that was taken last: those of most others are the same.
    latest: Mutex<Option<(Values, Arc<[Source]>)>>,
    telemetry: tokio::sync::Mutex<Option<Telemetry>>,
    servers: SharedServers,
    /// Work beside turns that is not done yet.
    beside: Mutex<JoinSet<()>>,
}

impl Runtime {
    /// Builds a runtime from the environment and the settings of the command line. Nothing is opened yet.
    #[must_use]
    pub fn new(env: Env, flags: Layer, notices: Arc<dyn Notices>) -> Self {
        Self(Arc::new(Shared {
            env,
            flags,
            notices,
            files: KnownFiles::default(),
            trust_answers: TrustAnswers::default(),
            has_noted_shortfall: AtomicBool::new(false),
            request_limits: RequestLimits::default(),
            python: LivePython::default(),
            values: SharedValues::default(),
            extensions: Mutex::default(),
            connected: Mutex::default(),
            latest: Mutex::default(),
            telemetry: tokio::sync::Mutex::default(),
            servers: SharedServers::default(),
            beside: Mutex::default(),
        }))
    }

    /// Returns the receiver of notes, for a task that outlives this call.
    pub(crate) fn shared_notices(&self) -> Arc<dyn Notices> {
        Arc::clone(&self.0.notices)
    }

    /// Reads all layers of settings, including those of the project that `directory` is in.
    ///
    /// # Errors
    /// When a file or a variable is malformed, or there is no home directory.
    pub fn settings(&self, directory: PathBuf) -> Result<Settings> {
        self.settings_of(directory, None)
    }

    /// Reads the same for a session: what is asked about the directory is recorded in it, and may be answered there.
    ///
    /// # Errors
    /// As [`settings`](Self::settings).
    pub(crate) fn settings_of(
        &self,
        directory: PathBuf,
        session: Option<AskingSession>,
    ) -> Result<Settings> {
        let (env, flags) = (self.0.env.clone(), self.0.flags.clone());
        let answers = self.0.trust_answers.of(session, &env);
        Settings::load_with(
            &answers,
            &self.0.files,
            env,
            directory,
            flags,
            self.notices(),
        )
    }

    /// Reads the same without asking or noting anything, for what does not depend on it.
    ///
    /// # Errors
    /// As [`settings`](Self::settings).
    pub(crate) fn settings_unasked(&self, directory: PathBuf) -> Result<Settings> {
        let (env, flags) = (self.0.env.clone(), self.0.flags.clone());
        let answers = TrustAnswers::default();
        Settings::load_with(&answers, &self.0.files, env, directory, flags, &NoNotices)
    }

    /// Asks an approver while settings are read whether a folder is trusted, its servers may be started and what a
    /// command left changed there is accepted; nobody if it is `None`, which is how a runtime begins. What is not answered
    /// is not used.
    pub fn ask_about_folders(&self, approver: Option<Arc<dyn Approver>>) {
        self.0.trust_answers.ask(approver);
    }

    /// Lets settings share what is equal in those that were shared last. A thousand sessions of a host have
    /// read the same files.
    pub(crate) fn share(&self, settings: &mut Settings) {
        let mut latest = self.0.latest.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((values, sources)) = &*latest {
            if settings.values == *values {
                settings.values = values.clone();
            }
            if settings.sources == *sources {
                settings.sources = Arc::clone(sources);
            }
        }
        *latest = Some((settings.values.clone(), Arc::clone(&settings.sources)));
    }

    /// Finds the key or the weights of a spec's model and connects it. The model that was connected last is
    /// reused if nothing has changed, so weights are loaded once.
    ///
    /// # Errors
    /// When a key or weights are missing, or the key does not come within the turn's time limit.
    ///
    /// # Cancel safety
    /// Cancel safe: a partial download is kept and continued the next time.
    pub async fn connect(&self, spec: &TurnSpec, settings: &Settings) -> Result<ConnectedModel> {
        let from = spec.connected_from(settings);
        if let Some((known, connected)) = &*self.connected()
            && *known == from
        {
            return Ok(connected.clone());
        }
        let connected = spec
            .connect(settings, self.notices(), self.request_limits())
            .await?;
        *self.connected() = Some((from, connected.clone()));
        Ok(connected)
    }

    /// Forgets the connected model, so that the next turn connects again, such as after a key was changed.
    pub fn disconnect(&self) {
        *self.connected() = None;
    }

    /// Returns the key of the model that was connected last.
    #[must_use]
    pub fn connected_key(&self) -> Option<String> {
        self.connected().as_ref().and_then(|(_, it)| it.key.clone())
    }

    fn connected(&self) -> std::sync::MutexGuard<'_, Option<(String, ConnectedModel)>> {
        self.0
            .connected
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a sender that also traces and measures its turn, if a collector is configured.
    pub async fn observe(&self, events: EventSender) -> EventSender {
        let mut telemetry = self.0.telemetry.lock().await;
        let telemetry = match telemetry.take() {
            Some(started) => telemetry.insert(started),
            None => {
                let started = Telemetry::start(&self.0.env, self.notices()).await;
                telemetry.insert(started)
            }
        };
        telemetry.observe(events)
    }

    /// Returns the servers of these settings, which the first call starts in the background, on the current Tokio
    /// runtime; nothing if there are none. Sessions of one directory share them, and they continue as long as what this
    /// returns is held.
    ///
    /// # Errors
    /// When the settings of the network cannot be used.
    pub fn servers(&self, settings: &Settings) -> Result<Option<Arc<Servers>>> {
        self.0.servers.get(fingerprint(settings), || {
            if let Some(note) = settings.mcp.note() {
                self.notices().note(&note);
            }
            let consent = mcp::consent(settings, self.notices());
            Ok(mcp::start(settings, &self.0.notices, consent)?.map(Arc::new))
        })
    }

    /// Starts the servers of these settings apart from those that sessions share, for a look at what they offer. Tools
    /// that have changed stay in it.
    ///
    /// # Errors
    /// As [`Self::servers`].
    pub fn servers_to_test(&self, settings: &Settings) -> Result<Option<Servers>> {
        mcp::start(settings, &self.0.notices, Consent::Ask)
    }

    /// Does something that no turn waits for on a thread that may block; at once if there is no such thread.
    pub(crate) fn beside(&self, work: impl FnOnce() + Send + 'static) {
        let Ok(threads) = Handle::try_current() else {
            return work();
        };
        let mut tasks = self.0.beside.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.spawn_blocking_on(work, &threads);
    }

    /// Ends servers, sends the remaining telemetry and waits for what is done beside turns, for a bounded time.
    pub async fn close(&self) {
        self.0.servers.close().await;
        let telemetry = self.0.telemetry.lock().await.take();
        if let Some(telemetry) = telemetry {
            telemetry.finish().await;
        }
        let mut beside = {
            let mut tasks = self.0.beside.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *tasks)
        };
        if beside.is_empty() {
            // A host whose turns need no clock may have none.
            return;
        }
        // Work that takes longer is abandoned.
        let done = async { while beside.join_next().await.is_some() {} };
        let _ = timeout(BESIDE_TIMEOUT, done).await;
    }

    /// Returns the environment that the settings are read from.
    #[must_use]
    pub fn env(&self) -> &Env {
        &self.0.env
    }

    /// Returns the receiver of notes for the user.
    #[must_use]
    pub fn notices(&self) -> &dyn Notices {
        &*self.0.notices
    }

    /// Says once what the sandbox does not hold here.
    pub(crate) fn note_shortfall(&self, text: &str) {
        if !self.0.has_noted_shortfall.swap(true, Ordering::Relaxed) {
            self.notices().note(text);
        }
    }

    pub(crate) fn request_limits(&self) -> &RequestLimits {
        &self.0.request_limits
    }

    /// Adds to all turns that are put together from now on, in every session.
    pub fn extend(&self, more: Extensions) {
        let extensions = self.0.extensions.lock();
        let mut extensions = extensions.unwrap_or_else(PoisonError::into_inner);
        *extensions = std::mem::take(&mut *extensions).with(more);
    }

    /// Returns the additions to all turns so far.
    #[must_use]
    pub fn extensions(&self) -> Extensions {
        let extensions = self.0.extensions.lock();
        let extensions = extensions.unwrap_or_else(PoisonError::into_inner);
        extensions.clone()
    }

    /// Returns the values that turns share.
    pub(crate) fn values(&self) -> &SharedValues {
        &self.0.values
    }

    /// Returns the live Python session, which all sessions share.
    #[must_use]
    pub fn python(&self) -> &LivePython {
        &self.0.python
    }
}

/// Identifies the servers of these settings.
fn fingerprint(settings: &Settings) -> String {
    let servers = settings.mcp.servers.iter();
    let servers = servers.map(|it| format!("{} {:?} {}\n", it.name, it.origin, it.fingerprint));
    format!(
        "{}\n{}",
        settings.directory.display(),
        servers.collect::<String>()
    )
}
