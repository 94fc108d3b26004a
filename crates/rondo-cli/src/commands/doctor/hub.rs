//! Checks of the hub's channels, and reasons for a silent bot.

use super::{Report, in_one_line};
use crate::error::Result;
use crate::executor;
use rondo_hub::HubConfig;
use rondo_runtime::settings::Settings;
use rondo_runtime::transport;
use rondo_telegram::Api;

/// Checks what needs no network: the configuration, secrets, and whether anyone may speak.
pub(super) fn check(settings: &Settings, report: &mut Report) {
    if settings.values.hub.is_empty() {
        return;
    }
    let config = match HubConfig::of(settings) {
        Ok(config) => config,
        Err(error) => return report.bad("hub", &in_one_line(&error)),
    };
    let names: Vec<&str> = config.channels.keys().map(String::as_str).collect();
    match names.as_slice() {
        [] => report.info("hub", "no channel is configured"),
        names => report.good("hub", &format!("channels: {}", names.join(", "))),
    }
    if let Some(table) = config.channels.get(rondo_telegram::NAME) {
        match bot(table, settings) {
            Ok(api) => report.good(
                "telegram",
                &format!(
                    "the bot {} has a token; `rondo doctor --probe` asks Telegram about it",
                    api.token().bot_id()
                ),
            ),
            Err(error) => report.bad("telegram", &in_one_line(&error)),
        }
        let is_known = |id: &String| id.starts_with("telegram:");
        if !config
            .users()
            .iter()
            .any(|user| user.ids.iter().any(is_known))
        {
            report.info(
                "telegram",
                "no configured user has a Telegram id, and the bot does not answer strangers: write to it, and it tells you your id",
            );
        }
    }
}

/// Asks Telegram about the bot.
pub(super) fn probe(settings: &Settings, report: &mut Report) -> Result<()> {
    let config = HubConfig::of(settings)?;
    let Some(table) = config.channels.get(rondo_telegram::NAME) else {
        return Ok(());
    };
    let Ok(api) = bot(table, settings) else {
        // Said before.
        return Ok(());
    };
    let runtime = executor::of_this_thread()?;
    for finding in runtime.block_on(rondo_telegram::check(&api)) {
        match finding.is_good {
            Some(true) => report.good("telegram", &finding.text),
            Some(false) => report.bad("telegram", &finding.text),
            None => report.info("telegram", &finding.text),
        }
    }
    Ok(())
}

fn bot(
    table: &toml::Table,
    settings: &Settings,
) -> std::result::Result<Api, rondo_runtime::SetupError> {
    Api::configured(table, &settings.env, transport::connections(settings)?)
}
