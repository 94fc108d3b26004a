//! All servers of a directory, started in the background, and what they offer to sessions.

use crate::client::{self, PromptInfo, ResourceInfo, StartPrograms};
use crate::config::Server;
use crate::content::{self, ResultBlock};
use crate::offer::{Catalog, Change, Era, PinStore, SessionTools};
use crate::running::{ReadyConnection, RunningServer, SessionDirectory, StartOptions, State};
use crate::sign_in::TokenStore;
use rmcp::model::{
    ClientRequest, GetPromptRequest, GetPromptRequestParams, ReadResourceRequestParams, Role,
    ServerResult,
};
use rondo_core::notices::Notices;
use rondo_core::ports::ToolSource;
use rondo_http::Transport;
use rondo_types::{Part, SessionId};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// How many servers may start at once: each may be a program that needs all of a processor.
const STARTS_AT_ONCE: usize = 4;
/// Sessions whose offers are remembered; the oldest is forgotten.
const SESSIONS_MAX: usize = 1024;
/// How long the end of all servers is waited for.
const CLOSE_MAX: Duration = Duration::from_secs(5);

/// Treatment of a tool that changed since it was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consent {
    /// It is offered as it was, and its next call asks the user.
    Ask,
    /// It is set aside, with a note: there is no user to ask.
    SetAside,
}

/// What servers are started with.
pub struct Options {
    /// The servers, in the order in which they are offered. Names are unique.
    pub servers: Vec<Server>,
    /// Connections to those at addresses.
    pub transport: Transport,
    /// Starts those that are programs.
    pub programs: Arc<dyn StartPrograms>,
    /// Stored facts about them.
    pub pins: PinStore,
    /// Tokens that the user was granted by remote servers.
    pub tokens: TokenStore,
    /// Shows notes to the user, at the next step of any session. They quote servers; control characters are escaped.
    pub notices: Arc<dyn Notices>,
    /// Treatment of tools that have changed.
    pub consent: Consent,
    /// Directory for whole results if the model gets only their ends; without one, the middle is lost.
    pub results: Option<SessionDirectory>,
    /// Bytes of schemas that are offered in every request; beyond that, tools are found by a search.
    pub bytes_max: usize,
}

impl Options {
    /// The usual budget of schemas, in bytes: about 1,500 tokens.
    pub const BYTES: usize = 6_000;
}

/// Servers that run until this is dropped or closed.
pub struct Servers {
    running: Vec<Arc<RunningServer>>,
    catalog: Arc<Catalog>,
    notices: Arc<dyn Notices>,
    bytes_max: usize,
    stop: CancellationToken,
    tasks: Mutex<JoinSet<()>>,
    sessions: Mutex<Vec<(SessionId, Arc<SessionTools>)>>,
}

/// Facts about a server, for display.
#[derive(Debug, Clone)]
pub struct ServerReport {
    /// Name of the server.
    pub name: String,
    /// Why it is not there; nothing if it is.
    pub failure: Option<String>,
    /// The lifecycle that it speaks.
    pub era: Option<Era>,
    /// The revision of the protocol.
    pub protocol: Option<String>,
    /// Its tools: the name that models call them by, and what they do.
    pub tools: Vec<(String, String)>,
    /// Prompts of the server.
    pub prompts: Vec<PromptInfo>,
    /// Resources of the server.
    pub resources: Vec<ResourceInfo>,
    /// Tools that are not what they were when they were accepted, and what is different.
    pub changed: Vec<(String, String)>,
    /// Further notes.
    pub notes: Vec<String>,
}

impl Servers {
    /// Starts servers in the background, on the current Tokio runtime.
    #[must_use]
    pub fn start(options: Options) -> Self {
        let servers: Vec<Arc<Server>> = options.servers.into_iter().map(Arc::new).collect();
        let can_ask = options.consent == Consent::Ask;
        let catalog = Arc::new(Catalog::new(&servers, can_ask));
        let means = Arc::new(StartOptions {
            transport: options.transport,
            programs: options.programs,
            tokens: options.tokens,
            slots: Semaphore::new(STARTS_AT_ONCE),
        });
        let (stop, mut tasks) = (CancellationToken::new(), JoinSet::new());
        let mut running = Vec::new();
        for server in servers {
            catalog.recall(&server, &options.pins.load(&server.fingerprint));
            let one = RunningServer::new(server, Arc::clone(&catalog), options.pins.clone());
            let one = Arc::new(one.keeping(options.results.clone()));
            running.push(Arc::clone(&one));
            let (means, stop) = (Arc::clone(&means), stop.clone());
            tasks.spawn(async move { one.keep(&means, stop).await });
        }
        Self {
            running,
            catalog,
            notices: options.notices,
            bytes_max: options.bytes_max,
            stop,
            tasks: Mutex::new(tasks),
            sessions: Mutex::default(),
        }
    }

    /// Returns the tools for a session. The same session gets the same source, which knows what was offered before.
    #[must_use]
    pub fn source(&self, session: &SessionId) -> Arc<dyn ToolSource> {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, known)) = sessions.iter().find(|(id, _)| id == session) {
            return Arc::clone(known) as _;
        }
        let source = Arc::new(SessionTools::new(
            Arc::clone(&self.catalog),
            self.running.clone(),
            self.bytes_max,
            Arc::clone(&self.notices),
        ));
        if sessions.len() == SESSIONS_MAX {
            sessions.remove(0);
        }
        sessions.push((session.clone(), Arc::clone(&source)));
        source
    }

    /// Returns the names of the servers.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.running
            .iter()
            .map(|it| it.server().name.clone())
            .collect()
    }

    /// Reads a resource, for the user who named it.
    ///
    /// # Errors
    /// Says why it cannot be read.
    ///
    /// # Cancel safety
    /// Cancel safe: the request is withdrawn.
    pub async fn resource(&self, server: &str, uri: &str) -> Result<Vec<Part>, String> {
        let ready = self.ready(server).await?;
        let reading = ready
            .peer
            .read_resource(ReadResourceRequestParams::new(uri));
        let read = timeout(self.call_timeout(server), reading).await;
        let read = read.map_err(|_| "the server did not answer in time".to_owned())?;
        let read = read.map_err(|err| rondo_core::shown::line(&err.to_string()))?;
        let contents = read.contents.into_iter().map(content::resource);
        Ok(parts(contents.collect()))
    }

    /// Returns the text and the media of a prompt.
    ///
    /// # Errors
    /// Says why there is none.
    ///
    /// # Cancel safety
    /// Cancel safe: the request is withdrawn.
    pub async fn prompt(
        &self,
        server: &str,
        prompt: &str,
        arguments: BTreeMap<String, String>,
    ) -> Result<Vec<Part>, String> {
        let ready = self.ready(server).await?;
        let mut params = GetPromptRequestParams::new(prompt);
        if !arguments.is_empty() {
            let arguments = arguments
                .into_iter()
                .map(|(name, value)| (name, value.into()));
            params = params.with_arguments(arguments.collect());
        }
        let request = ClientRequest::GetPromptRequest(GetPromptRequest::new(params));
        let got = timeout(self.call_timeout(server), ready.peer.send_request(request)).await;
        let got = got.map_err(|_| "the server did not answer in time".to_owned())?;
        let got = match got.map_err(|err| rondo_core::shown::line(&err.to_string()))? {
            ServerResult::GetPromptResult(got) => got,
            _ => return Err("the server sent a reply that is not a prompt".to_owned()),
        };
        let is_one = got.messages.len() == 1;
        let mut shown = Vec::new();
        for message in got.messages {
            if !is_one {
                let role = match message.role {
                    Role::User => "user",
                    Role::Assistant => "assistant",
                };
                shown.push(ResultBlock::Text(format!("[{role}]")));
            }
            shown.extend(content::blocks(vec![message.content]));
        }
        Ok(parts(shown))
    }

    /// Returns the prompts of a server.
    ///
    /// # Errors
    /// Says why they cannot be listed.
    pub async fn prompts(&self, server: &str) -> Result<Vec<PromptInfo>, String> {
        let ready = self.ready(server).await?;
        let listed = timeout(self.call_timeout(server), client::prompts(&ready.peer)).await;
        let listed = listed.map_err(|_| "the server did not answer in time".to_owned())?;
        listed.map_err(|err| rondo_core::shown::line(&err.to_string()))
    }

    /// Waits until a server is there or is not, and says all of it.
    pub async fn report(&self, server: &str) -> Option<ServerReport> {
        let running = self.running.iter().find(|it| it.server().name == server)?;
        let ready = running.ready().await;
        let mut report = ServerReport {
            name: server.to_owned(),
            failure: None,
            era: None,
            protocol: None,
            tools: Vec::new(),
            prompts: Vec::new(),
            resources: Vec::new(),
            changed: Vec::new(),
            notes: Vec::new(),
        };
        match ready {
            Ok(ready) => self.tell(&ready, &mut report).await,
            Err(why) => report.failure = Some(why),
        }
        let entries = self.catalog.entries().into_iter();
        for entry in entries.filter(|it| it.server.name == server) {
            let spec = entry.offered.spec;
            if let Change::Changed(diff) = self
                .catalog
                .change_of(server, &entry.offered.definition.name)
            {
                report.changed.push((entry.offered.definition.name, diff));
            }
            report.tools.push((spec.name, spec.description));
        }
        report.notes = running.take_notes();
        Some(report)
    }

    async fn tell(&self, ready: &ReadyConnection, report: &mut ServerReport) {
        report.era = Some(ready.era);
        let Some(info) = ready.peer.peer_info() else {
            return;
        };
        report.protocol = Some(info.protocol_version.to_string());
        let limit = self.call_timeout(&report.name);
        if info.capabilities.prompts.is_some()
            && let Ok(Ok(prompts)) = timeout(limit, client::prompts(&ready.peer)).await
        {
            report.prompts = prompts;
        }
        if info.capabilities.resources.is_some()
            && let Ok(Ok(resources)) = timeout(limit, client::resources(&ready.peer)).await
        {
            report.resources = resources;
        }
    }

    /// Accepts what a tool has become.
    pub fn accept(&self, server: &str, tool: &str) {
        if let Some(running) = self.running.iter().find(|it| it.server().name == server) {
            running.accept(tool);
        }
    }

    /// Returns whether a server is there, has not started yet, or is not there and why.
    #[must_use]
    pub fn is_up(&self, server: &str) -> Option<Result<bool, String>> {
        let running = self.running.iter().find(|it| it.server().name == server)?;
        Some(match running.state() {
            State::Ready(_) => Ok(true),
            State::Starting => Ok(false),
            State::Down(why) | State::Over(why) => Err(why),
        })
    }

    /// Ends all servers, and waits for that for a bounded time.
    pub async fn close(&self) {
        self.stop.cancel();
        let mut tasks = {
            let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *tasks)
        };
        let all = async { while tasks.join_next().await.is_some() {} };
        drop(timeout(CLOSE_MAX, all).await);
    }

    async fn ready(&self, server: &str) -> Result<ReadyConnection, String> {
        let running = self.running.iter().find(|it| it.server().name == server);
        let running = running.ok_or_else(|| "there is no such server".to_owned())?;
        running.ready().await
    }

    fn call_timeout(&self, server: &str) -> Duration {
        let running = self.running.iter().find(|it| it.server().name == server);
        running.map_or(Duration::from_secs(30), |it| it.server().timeouts.call)
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn parts(shown: Vec<ResultBlock>) -> Vec<Part> {
    let part = |it: ResultBlock| match it {
        ResultBlock::Text(text) => Part::text(content::shortened(&text)),
        ResultBlock::Json(json) => Part::text(content::shortened(&json.to_string())),
        ResultBlock::Media(media) => Part::Media(media),
    };
    shown.into_iter().map(part).collect()
}
