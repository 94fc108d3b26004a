//! The channel itself: what the hub sees of it.

use crate::pace::Pace;
use crate::progress::Drafts;
use crate::send::Parts;
use crate::settings::{Streaming, TelegramSettings};
use crate::{Api, receive};
use async_trait::async_trait;
use frankenstein::types::ChatId;
use rondo_hub::channel::{
    Abilities, Channel, ChannelError, ChatKey, Delivery, Outgoing, Progress, Receipt, SendError,
};
use rondo_hub::inbox::Inbox;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// The name of the channel.
pub const NAME: &str = "telegram";

/// Messages whose files are fetched at once.
const FETCHES_MAX: usize = 4;

/// A bot of Telegram as a channel of the hub.
#[derive(Debug)]
pub struct Telegram {
    pub(crate) api: Api,
    pub(crate) settings: TelegramSettings,
    pace: Mutex<Pace>,
    pub(crate) parts: Mutex<Parts>,
    pub(crate) drafts: Mutex<Drafts>,
    /// Messages whose files are fetched at once, each of at most 200 MB.
    pub(crate) fetching: Semaphore,
}

/// Destination of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChatThread {
    pub(crate) chat_id: i64,
    pub(crate) thread_id: Option<i32>,
}

impl Telegram {
    /// Builds the channel of a bot.
    #[must_use]
    pub fn new(api: Api, settings: TelegramSettings) -> Self {
        Self {
            api,
            settings,
            pace: Mutex::default(),
            parts: Mutex::default(),
            drafts: Mutex::default(),
            fetching: Semaphore::new(FETCHES_MAX),
        }
    }

    pub(crate) fn pace(&self) -> MutexGuard<'_, Pace> {
        self.pace.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Channel for Telegram {
    fn name(&self) -> &str {
        NAME
    }

    fn abilities(&self) -> Abilities {
        Abilities {
            delivery: Delivery::Edit,
            drafts: self.settings.streaming != Streaming::Off,
            typing: true,
            buttons: true,
        }
    }

    async fn receive(&self, inbox: Inbox, stop: CancellationToken) -> Result<(), ChannelError> {
        receive::run(self, &inbox, &stop).await
    }

    async fn send(&self, message: &Outgoing) -> Result<Receipt, SendError> {
        self.deliver(message).await
    }

    async fn progress(&self, chat: &ChatKey, progress: Progress) -> Option<Receipt> {
        self.show(ChatThread::of(chat)?, progress).await
    }
}

impl ChatThread {
    /// Returns the Telegram chat of a chat of the hub; `None` if it is not on Telegram.
    pub(crate) fn of(chat: &ChatKey) -> Option<Self> {
        let topic = chat.topic.as_ref();
        Some(Self {
            chat_id: chat.chat_id.parse().ok()?,
            thread_id: topic.map(|it| it.parse()).transpose().ok()?,
        })
    }

    pub(crate) fn key(self) -> ChatKey {
        ChatKey {
            channel: NAME.to_owned(),
            account: String::new(),
            chat_id: self.chat_id.to_string(),
            topic: self.thread_id.map(|it| it.to_string()),
        }
    }

    pub(crate) fn id(self) -> ChatId {
        ChatId::Integer(self.chat_id)
    }

    /// Returns whether the chat is with one person. Groups and channels have negative ids.
    pub(crate) fn is_private(self) -> bool {
        self.chat_id > 0
    }
}
