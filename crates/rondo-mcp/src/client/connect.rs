//! Begins a connection, in the lifecycle that the server speaks.

use super::flood::{Bounded, BoundedOutput};
use super::handler::{Handler, Shared};
use super::http::{HttpClient, MESSAGE_BYTES_MAX};
use super::program::{Program, ProgramSpec, StartPrograms};
use super::words::why_not_sent;
use crate::config::{Connection, Origin, Server};
use crate::offer::Era;
use crate::sign_in::{TokenStore, authorised};
use futures_util::FutureExt as _;
use hyper::header::{HeaderName, HeaderValue};
use rmcp::model::ProtocolVersion;
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, Peer, QuitReason, RoleClient, RunningService,
    RunningServiceCancellationToken, ServiceError, serve_client_with_lifecycle,
};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::streamable_http_client::{
    InsufficientScopeError, StreamableHttpClientTransportConfig,
};
use rmcp::transport::{DynamicTransportError, StreamableHttpClientTransport};
use rondo_http::Transport;
use std::collections::HashMap;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;

/// The bound on one message of a program, in bytes.
const LINE_BYTES_MAX: usize = MESSAGE_BYTES_MAX;
/// How often a stream that broke off is opened again.
const STREAM_RETRIES_MAX: usize = 5;
/// The longest time between two such attempts.
const STREAM_RETRY_MAX: Duration = Duration::from_secs(30);
/// How long a program may take to end once its input is closed.
const END_GRACE: Duration = Duration::from_secs(2);
/// Characters of a program's standard error that are shown.
const STDERR_CHARS_MAX: usize = 400;

/// A connection that works.
pub(crate) struct Live {
    pub(crate) peer: Peer<RoleClient>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) era: Era,
    ending: RunningServiceCancellationToken,
    service: JoinHandle<Result<QuitReason, tokio::task::JoinError>>,
    program: Option<Box<dyn Program>>,
}

impl Live {
    /// Waits until the server is gone.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub(crate) async fn gone(&mut self) {
        let _ = (&mut self.service).await;
    }

    /// Returns the end of what its program wrote to its standard error, on one line.
    fn last_words(&self) -> String {
        self.program
            .as_ref()
            .map(|it| last_words(&**it))
            .unwrap_or_default()
    }

    /// Returns why the server was ended, if it sent more than a server may.
    pub(crate) fn why_ended(&self) -> Option<String> {
        self.shared.flood.exceeded().map(|it| ended_for(&it))
    }

    /// Returns why the connection is over, on one line.
    pub(crate) fn why_gone(&self) -> String {
        if let Some(why) = self.why_ended() {
            return why;
        }
        let words = self.last_words();
        match words.is_empty() {
            true => "it has ended".to_owned(),
            false => format!("it has ended; it wrote: {words}"),
        }
    }

    /// Ends the connection, and the program.
    pub(crate) async fn end(mut self) {
        self.ending.cancel();
        if !self.service.is_finished() {
            drop(tokio::time::timeout(END_GRACE, &mut self.service).await);
        }
        self.service.abort();
        if let Some(program) = self.program.take() {
            program.end(END_GRACE).await;
        }
    }
}

/// Parameters of a new connection.
pub(crate) struct ConnectOptions<'a> {
    pub(crate) transport: &'a Transport,
    pub(crate) programs: &'a Arc<dyn StartPrograms>,
    pub(crate) tokens: &'a TokenStore,
}

/// Begins a connection. A server that was known to speak one lifecycle and does not any more is asked which.
///
/// # Errors
/// Says why there is none, in a sentence without secrets.
pub(crate) async fn connect(
    server: &Server,
    with: &ConnectOptions<'_>,
    known: Option<Era>,
) -> Result<Live, String> {
    let first = attempt(server, with, known).await;
    let again = match (&first, known) {
        (Err(_), Some(_)) => None,
        // It answers what it does not know, instead of refusing it.
        (Err(failure), None) if failure.is_no_discovery => Some(Era::Initialize),
        _ => return first.map_err(|it| it.why),
    };
    let again = attempt(server, with, again).await;
    again.map_err(|it| it.why)
}

/// Why a connection did not begin.
struct ConnectFailure {
    /// In a sentence without secrets.
    why: String,
    /// Set if the answer to the first question is not from a server of the newer lifecycle.
    is_no_discovery: bool,
}

impl From<String> for ConnectFailure {
    fn from(why: String) -> Self {
        Self {
            why,
            is_no_discovery: false,
        }
    }
}

async fn attempt(
    server: &Server,
    with: &ConnectOptions<'_>,
    known: Option<Era>,
) -> Result<Live, ConnectFailure> {
    let shared = Arc::new(Shared::new(&server.name));
    let handler = Handler(Arc::clone(&shared));
    let mut program = None;
    let served = match &server.connection {
        Connection::Stdio {
            command,
            arguments,
            variables,
            directory,
        } => {
            let spec = ProgramSpec {
                server: server.name.clone(),
                command: command.clone(),
                arguments: arguments.clone(),
                variables: variables.clone().into_iter().collect(),
                directory: directory.clone(),
                is_confined: matches!(server.origin, Origin::Project(_)),
            };
            let started = program.insert(with.programs.start(&spec).await?);
            let streams = started.take_streams();
            let (input, output) = streams.ok_or_else(|| "its streams were taken".to_owned())?;
            let output = BoundedOutput::new(output, &shared.flood);
            let pipes =
                AsyncRwTransport::new_client(output, input).with_max_line_length(LINE_BYTES_MAX);
            let pipes = Bounded::new(pipes, &shared.flood);
            serve_client_with_lifecycle(handler, pipes, lifecycle(known))
                .boxed()
                .await
        }
        Connection::Http { url, headers, .. } => {
            let config = http_config(url.expose(), headers)?;
            let tokens = match server.has_authorisation() {
                true => TokenStore::default().of(url),
                false => with.tokens.of(url),
            };
            let client = HttpClient {
                transport: with.transport.clone(),
                tokens: tokens.clone(),
                flood: Arc::clone(&shared.flood),
            };
            let client = authorised(client, url.expose(), with.transport, &tokens)
                .boxed()
                .await?;
            let http = StreamableHttpClientTransport::with_client(client, config);
            let http = Bounded::new(http, &shared.flood);
            serve_client_with_lifecycle(handler, http, lifecycle(known))
                .boxed()
                .await
        }
    };
    match served {
        Ok(service) => Ok(live(service, shared, program)),
        Err(err) => {
            let why = why_not_begun(server, &shared, &err, program).await;
            let is_no_discovery = matches!(err, ClientInitializeError::ExpectedInitResult(_));
            Err(ConnectFailure {
                why,
                is_no_discovery,
            })
        }
    }
}

/// Ends the program, and returns why the connection did not begin.
async fn why_not_begun(
    server: &Server,
    shared: &Shared,
    err: &ClientInitializeError,
    program: Option<Box<dyn Program>>,
) -> String {
    let why = match shared.flood.exceeded() {
        Some(exceeded) => ended_for(&exceeded),
        None => reason(&server.name, err),
    };
    let Some(program) = program else {
        return why;
    };
    let words = last_words(&*program);
    program.end(Duration::from_millis(100)).await;
    match words.is_empty() {
        true => why,
        false => format!("{why}; it wrote: {words}"),
    }
}

fn live(
    service: RunningService<RoleClient, Handler>,
    shared: Arc<Shared>,
    program: Option<Box<dyn Program>>,
) -> Live {
    let peer = service.peer().clone();
    let info = peer.peer_info();
    let is_old = info.is_none_or(|it| it.protocol_version.has_initialize());
    Live {
        era: match is_old {
            true => Era::Initialize,
            false => Era::Discover,
        },
        ending: service.cancellation_token(),
        service: tokio::spawn(service.waiting()),
        peer,
        shared,
        program,
    }
}

fn lifecycle(known: Option<Era>) -> ClientLifecycleMode {
    let preferred_versions = vec![ProtocolVersion::LATEST];
    match known {
        Some(Era::Initialize) => ClientLifecycleMode::Initialize,
        Some(Era::Discover) => ClientLifecycleMode::Discover { preferred_versions },
        None => ClientLifecycleMode::Auto {
            preferred_versions,
            legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
        },
    }
}

fn http_config(
    url: &str,
    headers: &std::collections::BTreeMap<String, rondo_http::Secret>,
) -> Result<StreamableHttpClientTransportConfig, String> {
    let mut custom = HashMap::new();
    for (name, value) in headers {
        let wrong = || {
            format!(
                "the header `{}` cannot be sent",
                rondo_core::shown::line(name)
            )
        };
        let key = HeaderName::try_from(name).map_err(|_| wrong())?;
        let mut value = HeaderValue::try_from(value.expose()).map_err(|_| wrong())?;
        value.set_sensitive(true);
        custom.insert(key, value);
    }
    let mut retries = ExponentialBackoff::default();
    retries.max_times = Some(STREAM_RETRIES_MAX);
    retries.max_delay = Some(STREAM_RETRY_MAX);
    let mut config = StreamableHttpClientTransportConfig::with_uri(url)
        .custom_headers(custom)
        .max_json_response_size(MESSAGE_BYTES_MAX)
        .max_sse_event_size(MESSAGE_BYTES_MAX);
    config.retry_config = Arc::new(retries);
    Ok(config)
}

/// Says how to get at a server that asks who the user is.
pub(crate) fn asks_for_authorisation(server: &str) -> String {
    format!("it asks for authorisation: `rondo mcp login {server}`, or a token in its `headers`")
}

/// Returns whether what the user has granted is not enough for a request.
fn is_short_of_scopes(err: &DynamicTransportError) -> bool {
    let mut cause = Some(&*err.error as &(dyn Error + 'static));
    while let Some(error) = cause {
        if error.is::<InsufficientScopeError>() {
            return true;
        }
        cause = error.source();
    }
    false
}

/// Returns whether a request was refused since the user has not granted enough.
pub(crate) fn needs_more_scopes(err: &ServiceError) -> bool {
    matches!(err, ServiceError::TransportSend(error) if is_short_of_scopes(error))
}

/// Describes the limit for which a server was ended.
fn ended_for(exceeded: &str) -> String {
    format!("it was ended: {exceeded}")
}

/// Says why a connection could not be begun, on one line.
fn reason(server: &str, err: &ClientInitializeError) -> String {
    let is_short = match err {
        ClientInitializeError::TransportError { error, .. } => is_short_of_scopes(error),
        _ => false,
    };
    if err.is_authorization_required() || is_short {
        return asks_for_authorisation(server);
    }
    let mut text = match err {
        ClientInitializeError::ConnectionClosed(_) => "it ended before it replied".to_owned(),
        ClientInitializeError::JsonRpcError(error) => format!("it refused: {}", error.message),
        // The name of the transport says nothing to the user.
        ClientInitializeError::TransportError { error, .. } => match why_not_sent(&*error.error) {
            Some(why) => return shortened(&why),
            None => error.error.to_string(),
        },
        err => err.to_string(),
    };
    let mut source = Error::source(err);
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    shortened(&text)
}

fn shortened(text: &str) -> String {
    let text: String = text.chars().take(STDERR_CHARS_MAX).collect();
    rondo_core::shown::line(&text)
}

fn last_words(program: &dyn Program) -> String {
    let text = program.stderr();
    let text = text.trim();
    let start = text.chars().count().saturating_sub(STDERR_CHARS_MAX);
    let text: String = text
        .chars()
        .skip(start)
        .map(|it| if it == '\n' { ' ' } else { it })
        .collect();
    rondo_core::shown::line(&text)
}
