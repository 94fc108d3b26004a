//! Servers of the Model Context Protocol: which ones are configured, whether they may be started, and starting them.
//!
//! # Layout
//! - `table`: the table `[mcp]` of a configuration file.
//! - `setup`: the servers of a directory, from the user's file and from those of its project.
//! - `consents`: the user's consents to servers that a project brings.
//! - `prompts`: prompts and resources that a person names; `mentions`: resources that a message names.
//! - `shared`: the servers that sessions of a host share.
//! - `programs`: starts servers that are programs.

mod consents;
mod mentions;
mod programs;
mod prompts;
mod setup;
mod shared;
mod table;

pub use consents::Consents;
pub(crate) use setup::Looking;
pub use setup::{McpSetup, WaitingServer, ask_about};
pub(crate) use shared::{HeldTools, SharedServers};
pub use table::McpTable;

use crate::calls;
use crate::error::{Result, SetupError, SetupErrorKind};
use crate::notices::Notices;
use crate::settings::Settings;
use crate::values::ApprovalMode;
use programs::Programs;
use rondo_http::{Network, Proxies, Transport};
use rondo_mcp::config::{Connection, Server};
use rondo_mcp::{Consent, Options, PinStore, Servers, SessionDirectory, SignIn, TokenStore};
use std::sync::Arc;

/// The directory below that of data in which servers are remembered.
const DIRECTORY: &str = "mcp";

/// Returns the store of remembered servers.
#[must_use]
pub fn pins(settings: &Settings) -> PinStore {
    PinStore::in_directory(settings.paths.data.join(DIRECTORY).join("servers"))
}

/// Returns the store of the tokens that servers granted the user.
#[must_use]
pub fn tokens(settings: &Settings) -> TokenStore {
    TokenStore::in_directory(settings.paths.data.join(DIRECTORY).join("tokens"))
}

/// Begins to sign in to a server of these settings.
///
/// # Errors
/// When there is no such server, or it has no sign-in.
///
/// # Cancel safety
/// Cancel safe; its authorization server may know us already.
pub async fn sign_in(settings: &Settings, name: &str) -> Result<SignIn> {
    let server = server(settings, name)?;
    let begun = SignIn::begin(server, &transport(settings)?, &tokens(settings)).await;
    begun.map_err(|why| {
        let message = format!("cannot sign in to the server `{name}`: {why}");
        SetupError::new(SetupErrorKind::Auth, message)
    })
}

/// Forgets what the user was granted by a server. Returns whether there was anything.
///
/// # Errors
/// When there is no such server, it is a program, or what was granted cannot be forgotten.
pub fn sign_out(settings: &Settings, name: &str) -> Result<bool> {
    let Connection::Http { url, .. } = &server(settings, name)?.connection else {
        let message = format!("the server `{name}` is a program, and not at an address");
        return Err(SetupError::new(SetupErrorKind::Config, message));
    };
    let forgotten = tokens(settings).forget(url);
    forgotten.map_err(|err| SetupError::caused(SetupErrorKind::Other, err))
}

fn server<'a>(settings: &'a Settings, name: &str) -> Result<&'a Server> {
    let found = settings.mcp.servers.iter().find(|it| it.name == name);
    found.ok_or_else(|| {
        let name = rondo_core::shown::line(name);
        let message = format!("there is no server `{name}` that may be started here");
        SetupError::new(SetupErrorKind::Config, message)
    })
}

fn transport(settings: &Settings) -> Result<Transport> {
    let network = Network {
        proxies: Proxies::from_lookup(|name| settings.env.text(name)),
        ca_file: settings.values.ca_file.clone(),
        ..Network::default()
    };
    let transport = Transport::new(network);
    transport.map_err(|err| SetupError::caused(SetupErrorKind::Config, err))
}

/// Starts the servers of these settings in the background, on the current Tokio runtime; nothing if there are none.
///
/// # Errors
/// When the settings of the network cannot be used.
pub(crate) fn start(
    settings: &Settings,
    notices: &Arc<dyn Notices>,
    consent: Consent,
) -> Result<Option<Servers>> {
    let servers = settings.mcp.servers.clone();
    if servers.is_empty() {
        return Ok(None);
    }
    Ok(Some(Servers::start(Options {
        servers,
        transport: transport(settings)?,
        programs: Arc::new(Programs::of(settings)),
        pins: pins(settings),
        tokens: tokens(settings),
        notices: Arc::clone(notices),
        consent,
        results: Some(results_of(settings)),
        bytes_max: settings
            .values
            .mcp
            .schema_bytes_max
            .unwrap_or(Options::BYTES),
    })))
}

/// Returns the directory for the whole results of long calls: beside the files of the session's commands, and as long.
fn results_of(settings: &Settings) -> SessionDirectory {
    let paths = settings.paths.clone();
    Arc::new(move |session| calls::dir(&paths, session))
}

/// Returns the treatment of changed tools: they are asked about if there is a user who may answer.
pub(crate) fn consent(settings: &Settings, notices: &dyn Notices) -> Consent {
    let asks = matches!(
        settings.values.approval,
        None | Some(ApprovalMode::Ask | ApprovalMode::Auto)
    );
    match asks && notices.can_ask() {
        true => Consent::Ask,
        false => Consent::SetAside,
    }
}
