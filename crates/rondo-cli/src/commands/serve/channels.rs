//! The channels of the configuration: the one place that knows what kinds there are.

use crate::error::{CliError, Result};
use crate::exit::Exit;
use rondo_hub::HubConfig;
use rondo_hub::api::{Api, ApiOptions};
use rondo_hub::channel::Channel;
use rondo_hub::commands::COMMANDS;
use rondo_runtime::settings::Settings;
use rondo_runtime::transport;
use rondo_telegram::Telegram;
use rondo_webhook::Webhook;
use std::sync::Arc;

/// Makes a channel of one kind, from its table in the configuration and the settings, whose environment has its secrets;
/// none if the table turns it off.
type Make = fn(&toml::Table, &Settings) -> Result<Option<Arc<dyn Channel>>>;

/// The kinds of channels.
const KINDS: &[(&str, Make)] = &[
    (rondo_hub::api::NAME, api),
    (rondo_telegram::NAME, telegram),
    (rondo_webhook::NAME, webhook),
];

fn telegram(table: &toml::Table, settings: &Settings) -> Result<Option<Arc<dyn Channel>>> {
    let connections = transport::connections(settings)?;
    let telegram = Telegram::configured(table, &settings.env, connections, &COMMANDS)?;
    Ok(Some(Arc::new(telegram)))
}

fn webhook(table: &toml::Table, settings: &Settings) -> Result<Option<Arc<dyn Channel>>> {
    let connections = transport::connections(settings)?;
    let webhook = Webhook::configured(table, &settings.env, connections)?;
    Ok(Some(Arc::new(webhook)))
}

/// The API over HTTP, which is there unless the configuration says otherwise.
fn api(table: &toml::Table, _: &Settings) -> Result<Option<Arc<dyn Channel>>> {
    let read = toml::Value::Table(table.clone()).try_into();
    let options: ApiOptions = read.map_err(|err: toml::de::Error| {
        let context = "the table `[hub.channels.api]` of the configuration is malformed";
        CliError::caused(Exit::Config, anyhow::Error::new(err).context(context))
    })?;
    Ok(options
        .enabled
        .then(|| Arc::new(Api::new(options)) as Arc<dyn Channel>))
}

/// Returns the channels that the configuration names.
///
/// # Errors
/// When there is none, it names one that there is not, or one that is not set up as it must be.
pub(super) fn of(config: &HubConfig, settings: &Settings) -> Result<Vec<Arc<dyn Channel>>> {
    let mut all = Vec::new();
    for (name, table) in &config.channels {
        all.extend(make(name, table, settings)?);
    }
    if !config.channels.contains_key(rondo_hub::api::NAME) {
        all.extend(api(&toml::Table::new(), settings)?);
    }
    if all.is_empty() {
        let message = "no channel is configured, so the hub cannot be reached";
        let error = CliError::new(Exit::Config, message);
        return Err(error.hint("add one as `[hub.channels.NAME]` in your configuration file"));
    }
    Ok(all)
}

/// Makes the channel of a name.
///
/// # Errors
/// When there is no such kind, or it is not set up as it must be.
pub(super) fn make(
    name: &str,
    table: &toml::Table,
    settings: &Settings,
) -> Result<Option<Arc<dyn Channel>>> {
    kind(name)?(table, settings)
}

/// Checks that there is a channel of a name.
///
/// # Errors
/// When there is none.
pub(super) fn check_name(name: &str) -> Result<()> {
    kind(name).map(drop)
}

fn kind(name: &str) -> Result<Make> {
    let kind = KINDS.iter().find(|(kind, _)| *kind == name);
    kind.map(|it| it.1).ok_or_else(|| unknown(name))
}

fn unknown(name: &str) -> CliError {
    let kinds: Vec<&str> = KINDS.iter().map(|(kind, _)| *kind).collect();
    let error = CliError::new(Exit::Config, format!("there is no channel `{name}`"));
    error.hint(format!("the channels are: {}", kinds.join(", ")))
}
