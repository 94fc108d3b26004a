//! Messages that a server sends by itself: progress of calls, changes of its lists, and questions.

use super::elicit;
use super::flood::Flood;
use rmcp::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationCapability,
    ErrorData, FormElicitationCapability, Implementation, ProgressNotificationParam, ProgressToken,
    ProtocolVersion,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};
use rondo_core::ports::{Asker, ProgressSink};
use rondo_types::ToolProgress;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// State shared by the calls over a connection and the listener to the server.
#[derive(Default)]
pub(crate) struct Shared {
    server: String,
    calls: Mutex<HashMap<ProgressToken, RunningCall>>,
    /// Told when a list of the server has changed.
    pub(crate) changed: Notify,
    /// Counts what the server sends without being asked.
    pub(crate) flood: Arc<Flood>,
}

/// A call that waits for its end.
struct RunningCall {
    /// Counts the calls of the connection.
    number: u64,
    progress: ProgressSink,
    asker: Asker,
    beat: Arc<Notify>,
}

impl Shared {
    pub(crate) fn new(server: &str) -> Self {
        Self {
            server: server.to_owned(),
            ..Self::default()
        }
    }

    /// Passes the progress and the questions of a call to it until the returned value is dropped, and tells `beat` of
    /// each sign of life.
    pub(crate) fn listen(
        self: &Arc<Self>,
        token: ProgressToken,
        progress: ProgressSink,
        asker: Asker,
        beat: Arc<Notify>,
    ) -> Listening {
        let mut calls = self.calls();
        let number = calls
            .values()
            .map(|it| it.number + 1)
            .max()
            .unwrap_or_default();
        let call = RunningCall {
            number,
            progress,
            asker,
            beat,
        };
        calls.insert(token.clone(), call);
        Listening {
            shared: Arc::clone(self),
            token,
        }
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<ProgressToken, RunningCall>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn progress(&self, params: ProgressNotificationParam) {
        if let Some(call) = self.calls().get(&params.progress_token) {
            call.progress.report(ToolProgress {
                done: Some(params.progress),
                total: params.total,
                message: params.message.map(|it| rondo_core::shown::line(&it)),
            });
            call.beat.notify_one();
        }
    }

    /// Returns the asker for a question that names no call: that of the latest call.
    fn asker(&self) -> Option<(Asker, Arc<Notify>)> {
        let calls = self.calls();
        let latest = calls.values().max_by_key(|it| it.number)?;
        Some((latest.asker.clone(), Arc::clone(&latest.beat)))
    }
}

/// A call that receives its progress.
pub(crate) struct Listening {
    shared: Arc<Shared>,
    token: ProgressToken,
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.shared.calls().remove(&self.token);
    }
}

/// Handles what a server says by itself.
#[derive(Clone)]
pub(crate) struct Handler(pub(crate) Arc<Shared>);

impl ClientHandler for Handler {
    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let Some((asker, beat)) = self.0.asker() else {
            // Only what a call needs is worth a person's time.
            return Ok(elicit::declined());
        };
        let withdrawal = self.0.flood.withdrawal(&context.id);
        tokio::select! {
            biased;
            () = withdrawal.cancelled() => Ok(elicit::cancelled()),
            // The connection has ended.
            () = context.ct.cancelled() => Ok(elicit::cancelled()),
            answer = elicit::ask(&self.0.server, &request, &asker, &beat) => Ok(answer),
        }
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.0.progress(params);
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.0.changed.notify_one();
    }

    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        let form = FormElicitationCapability::new().with_schema_validation(true);
        capabilities.elicitation = Some(ElicitationCapability::new().with_form(form));
        let info = Implementation::new("rondo", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(capabilities, info)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }
}
