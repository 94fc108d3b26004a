//! Why a bot is silent, for `rondo doctor`.

use crate::{Api, ApiError};
use frankenstein::types::User;
use frankenstein::updates::WebhookInfo;
use serde_json::json;

/// Finding about an invalid token.
pub const UNKNOWN_TOKEN: &str =
    "Telegram does not know the token: @BotFather shows the valid one with /mybots";

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// `true` if it is as it should be; `None` for information only.
    pub is_good: Option<bool>,
    /// Finding and remedy.
    pub text: String,
}

/// Asks Telegram about the bot: whether the token is valid, whether a webhook takes its updates, whether another
/// program does, and what it sees in groups. Changes nothing and takes no update.
///
/// # Cancel safety
/// Cancel safe.
pub async fn check(api: &Api) -> Vec<Finding> {
    let me: User = match api.call("getMe", &json!({})).await {
        Ok(me) => me,
        Err(error) => return vec![bad(unreachable(&error))],
    };
    let name = me.username.as_deref().unwrap_or_default();
    let mut found = vec![good(format!(
        "the token is valid; the bot is @{name} ({})",
        me.id
    ))];
    match api.call::<WebhookInfo>("getWebhookInfo", &json!({})).await {
        Ok(info) => found.extend(updates(&info)),
        Err(error) => found.push(bad(error.to_string())),
    }
    // Asking for nothing confirms nothing; a program that is waiting for updates is asked to give way, and tries again.
    let nothing = json!({ "limit": 1, "timeout": 0 });
    if let Err(error) = api.call::<serde_json::Value>("getUpdates", &nothing).await
        && error.code() == Some(409)
        && !error.says(409, "webhook")
    {
        found.push(info(
            "another program receives with this token: fine if that is this hub, otherwise stop it"
                .to_owned(),
        ));
    }
    found.push(info(match me.can_read_all_group_messages {
        Some(true) => "it sees all messages of the groups that it is in".to_owned(),
        _ => "privacy mode is on: in groups it sees only commands, replies to it and what mentions it; \
              @BotFather turns that off with /setprivacy, after which it must be added to the groups again"
            .to_owned(),
    }));
    if me.can_join_groups == Some(false) {
        found.push(info(
            "it cannot be added to groups; @BotFather allows it with /setjoingroups".to_owned(),
        ));
    }
    found
}

fn updates(webhook: &WebhookInfo) -> Vec<Finding> {
    let waiting = webhook.pending_update_count;
    let mut found = Vec::new();
    if !webhook.url.is_empty() {
        found.push(bad(
            "a webhook is set, which takes the bot's updates: delete it with \
             `curl https://api.telegram.org/bot$TELEGRAM_BOT_TOKEN/deleteWebhook`"
                .to_owned(),
        ));
    }
    found.push(match waiting {
        0 => good("no message is waiting at Telegram".to_owned()),
        1 => info(waiting_at("1 message is")),
        _ => info(waiting_at(&format!("{waiting} messages are"))),
    });
    found
}

fn waiting_at(messages: &str) -> String {
    format!(
        "{messages} waiting at Telegram, which keeps them for 24 hours: is the hub running (`rondo serve`)?"
    )
}

fn unreachable(error: &ApiError) -> String {
    match error.code() {
        Some(401 | 404) => UNKNOWN_TOKEN.to_owned(),
        _ => error.to_string(),
    }
}

fn good(text: String) -> Finding {
    Finding {
        is_good: Some(true),
        text,
    }
}

fn bad(text: String) -> Finding {
    Finding {
        is_good: Some(false),
        text,
    }
}

fn info(text: String) -> Finding {
    Finding {
        is_good: None,
        text,
    }
}
