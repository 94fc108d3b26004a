//! The channels of the configuration: the one place that knows what kinds there are.

use crate::error::{CliError, Result};
use crate::exit::Exit;
use rondo_hub::HubConfig;
use rondo_hub::channel::Channel;
use rondo_hub::commands::COMMANDS;
use rondo_runtime::settings::Settings;
use rondo_runtime::transport;
use rondo_telegram::Telegram;
use rondo_webhook::Webhook;
use std::sync::Arc;

/// Makes a channel of one kind, from its table in the configuration and the settings, whose environment has its secrets.
type Make = fn(&toml::Table, &Settings) -> Result<Arc<dyn Channel>>;

/// The kinds of channels.
const KINDS: &[(&str, Make)] = &[
    (rondo_telegram::NAME, telegram),
    (rondo_webhook::NAME, webhook),
];

fn telegram(table: &toml::Table, settings: &Settings) -> Result<Arc<dyn Channel>> {
    let connections = transport::connections(settings)?;
    let telegram = Telegram::configured(table, &settings.env, connections, &COMMANDS)?;
    Ok(Arc::new(telegram))
}

fn webhook(table: &toml::Table, settings: &Settings) -> Result<Arc<dyn Channel>> {
    let connections = transport::connections(settings)?;
    let webhook = Webhook::configured(table, &settings.env, connections)?;
    Ok(Arc::new(webhook))
}

/// Returns the channels that the configuration names.
///
/// # Errors
/// When it names none, one that there is not, or one that is not set up as it must be.
pub(super) fn of(config: &HubConfig, settings: &Settings) -> Result<Vec<Arc<dyn Channel>>> {
    if config.channels.is_empty() {
        let message = "no channel is configured, so nobody can reach the hub";
        let error = CliError::new(Exit::Config, message);
        return Err(error.hint("name one as `[hub.channels.NAME]` in your configuration file"));
    }
    let channels = config.channels.iter();
    let channels = channels.map(|(name, table)| {
        let kind = KINDS.iter().find(|(kind, _)| kind == name);
        let (_, make) = kind.ok_or_else(|| unknown(name))?;
        make(table, settings)
    });
    channels.collect()
}

fn unknown(name: &str) -> CliError {
    let kinds: Vec<&str> = KINDS.iter().map(|(kind, _)| *kind).collect();
    let error = CliError::new(Exit::Config, format!("there is no channel `{name}`"));
    error.hint(format!("the channels are: {}", kinds.join(", ")))
}
