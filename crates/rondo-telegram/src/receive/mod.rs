//! Receiving: long polling, and handing in what came.
//!
//! Telegram keeps one stream of updates for all chats, and takes asking for a later one as the confirmation of all before.
//! So that one chat with files to fetch holds up no other, chats are worked on side by side, and the stream is asked
//! again from the oldest update that is not durable yet; what came before is skipped.
//!
//! # Layout
//! - `update`: the content of an update. `intake`: updates that wait, run and are done. `fetch`: files.
//! - `take`: hands in the updates of one chat.

mod fetch;
mod intake;
mod take;
mod update;

pub(crate) use fetch::image_type;
pub(crate) use update::encoded;

use crate::channel::{NAME, Telegram};
use crate::{ApiError, clock};
use frankenstein::methods::GetUpdatesParams;
use frankenstein::types::{AllowedUpdate, BotCommand, User};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use intake::Intake;
use rondo_hub::channel::ChannelError;
use rondo_hub::inbox::Inbox;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use update::{BotIdentity, Update};

/// How long Telegram may wait for an update before it answers that there is none, in seconds.
const POLL_SECONDS: u32 = 50;
/// How much longer its answer may take.
const POLL_MARGIN: Duration = Duration::from_secs(15);
/// How often it is asked while updates are being worked on.
const BUSY_PAUSE: Duration = Duration::from_millis(500);
/// The pauses after failures: the first one, and the longest.
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// Failures in a row after which the channel is reported as not receiving.
const FAILURES_TOLD: u32 = 3;
/// Remedy for a webhook.
const HAS_WEBHOOK: &str = "a webhook is set for this bot, which takes its updates: `rondo doctor --probe` says how to delete it";
/// The bound on the updates of one answer.
const UPDATES_MAX: u32 = 100;

/// Receives until `stop` fires.
pub(crate) async fn run(
    telegram: &Telegram,
    inbox: &Inbox,
    stop: &CancellationToken,
) -> Result<(), ChannelError> {
    let work = async {
        let me = introduced(telegram, inbox).await?;
        receive(telegram, inbox, &me).await
    };
    tokio::select! {
        () = stop.cancelled() => Ok(()),
        ended = work => ended,
    }
}

/// Learns who the bot is, and tells clients its commands.
async fn introduced(telegram: &Telegram, inbox: &Inbox) -> Result<BotIdentity, ChannelError> {
    let mut pause = Pause::default();
    let me: User = loop {
        match telegram.api.call("getMe", &json!({})).await {
            Ok(me) => break me,
            Err(error) => tokio::time::sleep(pause.after(&error, inbox)?).await,
        }
    };
    let commands: Vec<BotCommand> = telegram
        .settings
        .commands
        .iter()
        .map(|(name, text)| {
            BotCommand::builder()
                .command(name)
                .description(text)
                .build()
        })
        .collect();
    if !commands.is_empty() {
        let parameters = json!({ "commands": commands });
        let set = telegram
            .api
            .call::<Value>("setMyCommands", &parameters)
            .await;
        if let Err(error) = set {
            tracing::warn!(%error, "clients do not list the commands");
        }
    }
    tracing::info!(bot = me.id, "receives from Telegram");
    Ok(BotIdentity {
        id: me.id,
        name: me.username.unwrap_or_default(),
        sees_all: me.can_read_all_group_messages.unwrap_or_default(),
    })
}

async fn receive(telegram: &Telegram, inbox: &Inbox, me: &BotIdentity) -> Result<(), ChannelError> {
    let mut intake = Intake::default();
    let mut running = FuturesUnordered::new();
    let mut pause = Pause::default();
    loop {
        while let Some((chat, items)) = intake.next_ready(clock::now()) {
            running.push(take::take(telegram, inbox, me, chat, items));
        }
        let offset = intake.offset();
        let polling = poll(telegram, offset, intake.has_work());
        tokio::pin!(polling);
        let polled = loop {
            tokio::select! {
                Some(taken) = running.next(), if !running.is_empty() => intake.finish(taken, clock::now()),
                polled = &mut polling => break polled,
            }
        };
        let is_well = polled.is_ok();
        let rest = match polled {
            Ok(updates) => {
                pause.is_over(inbox);
                intake.polled(offset, updates, clock::now());
                let is_busy = intake.has_work() && !intake.has_ready(clock::now());
                is_busy.then_some(BUSY_PAUSE)
            }
            Err(error) => Some(pause.after(&error, inbox)?),
        };
        let Some(rest) = rest else {
            continue;
        };
        let over = tokio::time::sleep(rest);
        tokio::pin!(over);
        loop {
            tokio::select! {
                Some(taken) = running.next(), if !running.is_empty() => {
                    intake.finish(taken, clock::now());
                    if is_well && !intake.has_work() {
                        break;
                    }
                }
                () = &mut over => break,
            }
        }
    }
}

/// Asks for updates: waits for some only if there is nothing else to do.
async fn poll(
    telegram: &Telegram,
    offset: Option<i64>,
    is_busy: bool,
) -> Result<Vec<Update>, ApiError> {
    let timeout = if is_busy { 0 } else { POLL_SECONDS };
    let parameters = GetUpdatesParams::builder()
        .maybe_offset(offset)
        .limit(UPDATES_MAX)
        .timeout(timeout)
        .allowed_updates(vec![
            AllowedUpdate::Message,
            AllowedUpdate::EditedMessage,
            AllowedUpdate::CallbackQuery,
        ])
        .build();
    let within = Duration::from_secs(u64::from(timeout)) + POLL_MARGIN;
    let api = &telegram.api;
    let found: Vec<Box<RawValue>> = api.call_within("getUpdates", &parameters, within).await?;
    Ok(found
        .iter()
        .filter_map(|it| Update::read(it.get()))
        .collect())
}

/// The pause after a failure, which grows.
#[derive(Debug, Default)]
struct Pause {
    failures: u32,
    /// Set if Telegram is known to hand out updates.
    is_well: bool,
}

impl Pause {
    /// Records that the failures are over.
    fn is_over(&mut self, inbox: &Inbox) {
        self.failures = 0;
        if !self.is_well {
            self.is_well = true;
            inbox.receives(NAME);
        }
    }

    /// Returns how long to wait, unless waiting is useless.
    fn after(&mut self, error: &ApiError, inbox: &Inbox) -> Result<Duration, ChannelError> {
        if let Some(message) = hopeless(error) {
            return Err(ChannelError::Setup { message });
        }
        let grown = PAUSE_MIN
            .saturating_mul(1 << self.failures.min(6))
            .min(PAUSE_MAX);
        self.failures = self.failures.saturating_add(1);
        let pause = error.retry_after().unwrap_or_default().max(grown);
        let advice = advice(error);
        tracing::info!(%error, "receives nothing from Telegram for {} s: {advice}", pause.as_secs());
        // A single one is usual, such as when another process just gave way.
        if self.failures >= FAILURES_TOLD {
            self.is_well = false;
            inbox.receives_nothing(NAME, &format!("{error}: {advice}"));
        }
        Ok(pause)
    }
}

/// Returns the remedy for an error that no waiting ends. Telegram answers 404 to what is not a token at all.
fn hopeless(error: &ApiError) -> Option<String> {
    if error.says(409, "webhook") {
        return Some(HAS_WEBHOOK.to_owned());
    }
    matches!(error.code(), Some(401 | 404)).then(|| {
        "Telegram does not know the bot's token: @BotFather shows the valid one with /mybots"
            .to_owned()
    })
}

fn advice(error: &ApiError) -> &'static str {
    if error.code() == Some(409) {
        "another program receives with the same token: stop it, or make a new bot with @BotFather"
    } else {
        "it is tried again"
    }
}
