//! Sending: a message of the hub as messages of Telegram.
//!
//! # Layout
//! - `plan`: the messages it becomes. `piece`: sends one of them. `failure`: the hub's reaction if that fails.

mod failure;
mod file;
mod piece;
mod plan;

pub(crate) use piece::no_preview;

use crate::channel::{ChatThread, Telegram};
use crate::clock;
use failure::{failed, is_of_form};
use plan::{Piece, Plan};
use rondo_hub::channel::{Outgoing, Receipt, SendError};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

/// The longest wait for the pace that is waited out here; for a longer one the hub is asked to come again.
const WAIT_MAX: Duration = Duration::from_secs(5);
/// Messages of several parts whose progress is remembered.
const PARTS_MAX: usize = 1_000;

/// Which parts of messages were sent, so that those are not sent again if a later one failed. It does not outlive the
/// process: then all parts are sent again.
#[derive(Debug, Default)]
pub(crate) struct Parts(HashMap<String, SentParts>);

#[derive(Debug, Clone, Default)]
struct SentParts {
    count: usize,
    first: Option<i32>,
    /// Set if Telegram refused it as a rich message.
    is_rich_refused: bool,
}

impl Telegram {
    /// Sends a message, or what is left of it.
    pub(crate) async fn deliver(&self, message: &Outgoing) -> Result<Receipt, SendError> {
        let place = ChatThread::of(&message.chat).ok_or_else(|| SendError::Refused {
            reason: "the chat is not on Telegram".to_owned(),
        })?;
        let mut sent = self
            .parts()
            .0
            .get(&message.key)
            .cloned()
            .unwrap_or_default();
        let mut plan = Plan::new(message, self.settings.rich && !sent.is_rich_refused);
        while let Some(piece) = plan.pieces.get(sent.count) {
            let is_last_text = plan.last_text == Some(sent.count);
            match self
                .send_piece(place, message, piece, sent.count == 0, is_last_text)
                .await
            {
                Ok(id) => {
                    sent.count += 1;
                    // A question is the message with its buttons.
                    let has_buttons = is_last_text && !message.choices.is_empty();
                    sent.first = sent.first.filter(|_| !has_buttons).or(Some(id));
                    if sent.count < plan.pieces.len() {
                        self.remember(&message.key, sent.clone());
                    }
                }
                Err(error) if matches!(piece, Piece::Rich(_)) && is_of_form(&error) => {
                    tracing::info!(%error, "sent without being a rich message");
                    sent.is_rich_refused = true;
                    self.remember(&message.key, sent.clone());
                    plan = Plan::new(message, false);
                }
                Err(error) => {
                    self.hold(place, &error);
                    return Err(failed(&error));
                }
            }
        }
        self.parts().0.remove(&message.key);
        let nothing = || SendError::Refused {
            reason: "there is nothing in it".to_owned(),
        };
        Ok(Receipt(sent.first.ok_or_else(nothing)?.to_string()))
    }

    /// Waits until a message may be sent to a chat.
    pub(crate) async fn paced(&self, place: ChatThread) -> Result<(), Duration> {
        let wait = {
            let mut pace = self.pace();
            let now = clock::now();
            let wait = pace.wait(place.chat_id, now);
            if wait > WAIT_MAX {
                return Err(wait);
            }
            pace.reserve(place.chat_id, now)
        };
        tokio::time::sleep(wait).await;
        Ok(())
    }

    fn parts(&self) -> MutexGuard<'_, Parts> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remember(&self, key: &str, sent: SentParts) {
        let mut parts = self.parts();
        if parts.0.len() >= PARTS_MAX {
            parts.0.clear();
        }
        parts.0.insert(key.to_owned(), sent);
    }
}

/// Reads the id of a message that was sent. Nothing else of it is needed, so nothing else can be misread.
pub(crate) fn message_id(message: &Value) -> Option<i32> {
    i32::try_from(message.get("message_id")?.as_i64()?).ok()
}
