//! Storage to which nothing can be written, such as a full disk: people are told without a record of it, and operators
//! see it in the hub's readiness.

use crate::channel::ChatKey;
use crate::hub::Core;
use rondo_core::clock::Clock;
use rondo_core::ports::{HostCommit, HostRow, MailboxError};
use std::collections::HashMap;
use std::io::ErrorKind;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync;
use tokio::time::{Instant, timeout};

/// The least time between two messages of this kind to a chat.
const TELL_AGAIN: Duration = Duration::from_mins(10);
/// Chats that are told within that time.
const TOLD_MAX: usize = 1_000;
/// How long telling one may take.
const TELL_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a try whether something can be noted counts.
const TRY_AGAIN: Duration = Duration::from_secs(2);
/// The table in which that is tried.
const TRIED: &str = "storage_tried";

/// State of a shortage, with the people who were told of it.
#[derive(Default)]
pub(crate) struct Shortage {
    told: Mutex<HashMap<ChatKey, Instant>>,
    /// When it was tried last, and what was wrong.
    tried: sync::Mutex<Option<(Instant, Option<String>)>>,
}

impl Shortage {
    /// Returns whether a chat must be told, and counts it as told.
    fn tells(&self, chat: &ChatKey, now: Instant) -> bool {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.retain(|_, at| now.duration_since(*at) < TELL_AGAIN);
        if told.len() >= TOLD_MAX || told.contains_key(chat) {
            return false;
        }
        told.insert(chat.clone(), now);
        true
    }
}

/// Returns the failure of the storage, in words for people; `None` if the error is not one of the storage, or leaves
/// open whether the message was taken.
pub(crate) fn shortage(error: &MailboxError) -> Option<&'static str> {
    match error {
        MailboxError::Full => Some("the disk of this gateway is full"),
        MailboxError::Io(error) if error.kind() == ErrorKind::StorageFull => {
            shortage(&MailboxError::Full)
        }
        MailboxError::Io(_) => Some("the storage of this gateway fails"),
        _ => None,
    }
}

impl Core {
    /// Tells a chat something that cannot be noted: once in a while, and lost if it does not arrive.
    pub(crate) fn tell_unnoted(&self, chat: &ChatKey, text: String) {
        let Some(channel) = self.channel(&chat.channel) else {
            return;
        };
        if !self.shortage.tells(chat, Instant::now()) {
            return;
        }
        let (channel, chat) = (Arc::clone(channel), chat.clone());
        tokio::spawn(async move {
            let told = timeout(TELL_TIMEOUT, channel.tell_unnoted(&chat, text)).await;
            if told.is_err() {
                tracing::debug!("a chat was not told in time that nothing can be noted");
            }
        });
    }

    /// Tries whether anything can be noted; a try counts for a short while.
    ///
    /// # Errors
    /// When nothing can be written, with the reason.
    pub(crate) async fn try_storage(&self) -> Result<(), String> {
        let mut tried = self.shortage.tried.lock().await;
        let known = tried.as_ref();
        if let Some((_, known)) = known.filter(|(at, _)| at.elapsed() < TRY_AGAIN) {
            return known.clone().map_or(Ok(()), Err);
        }
        let now = Clock::system().now().0.to_string();
        let commit = HostCommit {
            rows: vec![HostRow::set(TRIED, "at", now)],
            ..HostCommit::default()
        };
        let wrong = self.store.commit(commit).await.err().map(|error| {
            tracing::warn!(%error, "nothing can be noted");
            let wrong = shortage(&error).unwrap_or("the journal cannot be written");
            wrong.to_owned()
        });
        *tried = Some((Instant::now(), wrong.clone()));
        wrong.map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    fn chat(number: usize) -> ChatKey {
        ChatKey {
            channel: "wire".to_owned(),
            account: String::new(),
            chat_id: number.to_string(),
            topic: None,
        }
    }

    #[test]
    fn a_chat_is_told_once_in_a_while_and_not_too_many_are() {
        let (shortage, now) = (Shortage::default(), Instant::now());
        assert!(shortage.tells(&chat(0), now));
        assert!(!shortage.tells(&chat(0), now + TELL_AGAIN / 2));
        let told = (1..2 * TOLD_MAX).filter(|it| shortage.tells(&chat(*it), now));
        assert_eq!(told.count(), TOLD_MAX - 1);
        assert!(shortage.tells(&chat(0), now + TELL_AGAIN));
    }

    #[test]
    fn what_leaves_open_whether_a_message_was_taken_is_no_shortage() {
        let full = io::Error::from(ErrorKind::StorageFull);
        assert!(shortage(&MailboxError::Io(full)).unwrap().contains("full"));
        let unknown = MailboxError::Unknown(io::Error::other("lost"));
        assert_eq!(shortage(&unknown), None);
        assert_eq!(shortage(&MailboxError::TooMany { max: 1 }), None);
    }
}
