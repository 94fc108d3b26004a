//! What all sessions of a host share.

use crate::env::Env;
use crate::error::Result;
use crate::notices::Notices;
use crate::plan::{ConnectedModel, TurnPlan};
use crate::python::LivePython;
use crate::request_limits::RequestLimits;
use crate::settings::Settings;
use crate::table::Layer;
use crate::telemetry::Telemetry;
use rondo_core::EventSender;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// Settings, connections and models of a host, shared by its sessions. Nothing of it is global: two may live
/// in one process. Clones are the same one.
#[derive(Clone)]
pub struct Runtime(Arc<Shared>);

struct Shared {
    env: Env,
    flags: Layer,
    notices: Arc<dyn Notices>,
    request_limits: RequestLimits,
    python: LivePython,
    /// The model that was connected last, and what it was connected from.
    connected: Mutex<Option<(String, ConnectedModel)>>,
    telemetry: tokio::sync::Mutex<Option<Telemetry>>,
}

impl Runtime {
    /// Takes the environment and what a person named for this run. Nothing is opened yet.
    #[must_use]
    pub fn new(env: Env, flags: Layer, notices: Arc<dyn Notices>) -> Self {
        Self(Arc::new(Shared {
            env,
            flags,
            notices,
            request_limits: RequestLimits::default(),
            python: LivePython::default(),
            connected: Mutex::default(),
            telemetry: tokio::sync::Mutex::default(),
        }))
    }

    /// Reads every layer of settings, with that of the project that `directory` is in.
    ///
    /// # Errors
    /// When a file or a variable does not say what it should, or there is no home directory.
    pub fn settings(&self, directory: PathBuf) -> Result<Settings> {
        let (env, flags) = (self.0.env.clone(), self.0.flags.clone());
        Settings::load(env, directory, flags, self.notices())
    }

    /// Finds what a plan's model needs, a key or its weights, and connects it. One that was connected before
    /// is taken again: weights are loaded once.
    ///
    /// # Errors
    /// When there is no key, or none in time, or there are no weights.
    ///
    /// # Cancel safety
    /// Cancel safe: what came of a download is kept for the next time.
    pub async fn connect(&self, plan: &TurnPlan, settings: &Settings) -> Result<ConnectedModel> {
        let from = plan.connected_from(settings);
        if let Some((known, connected)) = &*self.connected()
            && *known == from
        {
            return Ok(connected.clone());
        }
        let connected = plan
            .connect(settings, self.notices(), self.request_limits())
            .await?;
        *self.connected() = Some((from, connected.clone()));
        Ok(connected)
    }

    /// Has the next turn's model be connected anew, as after a key was changed.
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

    /// Has the turn that runs with this sender traced and measured, where a collector is named.
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

    /// Ends what outlives turns: sends what telemetry is left, for a bounded time.
    pub async fn close(&self) {
        let telemetry = self.0.telemetry.lock().await.take();
        if let Some(telemetry) = telemetry {
            telemetry.finish().await;
        }
    }

    /// Returns what takes notices for a person.
    #[must_use]
    pub fn notices(&self) -> &dyn Notices {
        &*self.0.notices
    }

    pub(crate) fn request_limits(&self) -> &RequestLimits {
        &self.0.request_limits
    }

    /// Returns the live Python session, one for all.
    #[must_use]
    pub fn python(&self) -> &LivePython {
        &self.0.python
    }
}
