//! Servers of the Model Context Protocol: which ones are configured, whether they may be started, and starting them.
//!
//! # Layout
//! - `table`: the table `[mcp]` of a configuration file.
//! - `setup`: the servers of a directory, from the user's file and from those of its project.
//! - `consents`: what the user said about servers that a project brings.
//! - `mentions`: resources that a message names.
//! - `programs`: starts servers that are programs.

mod consents;
mod mentions;
mod programs;
mod setup;
mod table;

pub use consents::Consents;
pub(crate) use mentions::with_resources;
pub(crate) use setup::Looking;
pub use setup::{McpSetup, ProjectServers, WaitingServer, ask_about};
pub use table::McpTable;

use crate::error::{Result, SetupError, SetupErrorKind};
use crate::notices::Notices;
use crate::settings::Settings;
use crate::values::ApprovalMode;
use programs::Programs;
use rondo_http::{Network, Proxies, Transport};
use rondo_mcp::{Consent, Options, PinStore, Servers};
use std::sync::Arc;

/// The directory below that of data in which servers are remembered.
const DIRECTORY: &str = "mcp";

/// Returns where servers are remembered.
#[must_use]
pub fn pins(settings: &Settings) -> PinStore {
    PinStore::in_directory(settings.paths.data.join(DIRECTORY).join("servers"))
}

/// Starts the servers of these settings in the background, on the current Tokio runtime; nothing where there are none.
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
    let network = Network {
        proxies: Proxies::from_lookup(|name| settings.env.text(name)),
        ca_file: settings.values.ca_file.clone(),
        ..Network::default()
    };
    let transport = Transport::new(network);
    let transport = transport.map_err(|err| SetupError::caused(SetupErrorKind::Config, err))?;
    let sink = Arc::clone(notices);
    Ok(Some(Servers::start(Options {
        servers,
        transport,
        programs: Arc::new(Programs::of(settings)),
        pins: pins(settings),
        notes: Arc::new(move |note| sink.note(note)),
        consent,
        bytes_max: settings
            .values
            .mcp
            .schema_bytes_max
            .unwrap_or(Options::BYTES),
    })))
}

/// Returns what happens to tools that have changed: they are asked about where there is a user who may answer.
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
