//! Checks of `rondo serve --check` beyond those of every start: keys of models, and users and scheduled jobs on
//! channels that the hub has.

use crate::error::{CliError, Result};
use crate::exit::Exit;
use rondo_hub::HubConfig;
use rondo_hub::channel::Channel;
use rondo_runtime::settings::Settings;
use rondo_runtime::spec::profile_name;
use rondo_runtime::target::ModelTarget;
use rondo_runtime::{SetupError, profiles};
use std::sync::Arc;

/// Checks the configuration.
///
/// # Errors
/// Names all that is wrong.
pub(super) fn check(
    config: &HubConfig,
    channels: &[Arc<dyn Channel>],
    settings: &Settings,
) -> Result<()> {
    let mut wrong = of_models(settings);
    let is_there = |id: &str| {
        let channel = id.split_once(':').map_or(id, |it| it.0);
        channels.iter().any(|it| it.name() == channel)
    };
    for user in config.users() {
        let lost = user.ids.iter().filter(|id| !is_there(id));
        wrong.extend(lost.map(|id| {
            format!(
                "`{id}` of `[hub.users.{}]` is on a channel that is not configured",
                user.name
            )
        }));
    }
    let beats_in = config.heartbeat.as_ref().and_then(|it| it.chat());
    if let Some(chat) = beats_in.filter(|chat| !is_there(&chat.channel)) {
        let channel = chat.channel;
        wrong.push(format!(
            "the chat of `[hub.heartbeat]` is on the channel `{channel}`, which is not configured"
        ));
    }
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(CliError::new(Exit::Config, wrong.join("; "))),
    }
}

/// Returns why models cannot be asked.
fn of_models(settings: &Settings) -> Vec<String> {
    let target = match ModelTarget::make(settings) {
        Ok(target) => target,
        Err(error) => return vec![explained(&error)],
    };
    let mut wrong = Vec::new();
    let fallbacks = target.fallbacks(settings);
    let profile = profiles::resolve(settings, profile_name(&target, settings));
    wrong.extend(fallbacks.err().as_ref().map(explained));
    wrong.extend(profile.err().as_ref().map(explained));
    let variables = target.key_variables();
    let has_key = target.keyless()
        || target.weights.is_some()
        || target.provider.api_key_command.is_some()
        || variables.iter().any(|it| settings.env.text(it).is_some());
    if !has_key {
        let name = target.full_name();
        wrong.push(format!(
            "the model `{name}` has no key: none of {} is set",
            variables.join(", ")
        ));
    }
    wrong
}

fn explained(error: &SetupError) -> String {
    match &error.hint {
        Some(hint) => format!("{} ({hint})", error.line()),
        None => error.line(),
    }
}
