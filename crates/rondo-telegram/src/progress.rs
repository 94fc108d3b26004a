//! Progress in a chat: that a reply is being written, and the reply so far.

use crate::channel::{ChatThread, Telegram};
use crate::render::{FormattedText, TEXT_UNITS_MAX, formatted, split};
use crate::settings::Streaming;
use crate::{ApiError, clock, render};
use frankenstein::methods::{
    EditMessageTextParams, SendChatActionParams, SendMessageDraftParams, SendMessageParams,
};
use frankenstein::types::ChatAction;
use rondo_hub::channel::{Progress, Receipt};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::PoisonError;

/// Stands at the end of what is not complete.
const MORE: &str = " \u{2026}";
/// Chats whose drafts are distinguished.
const DRAFTS_MAX: usize = 10_000;

/// The drafts that are shown, so that the same one is replaced.
#[derive(Debug, Default)]
pub(crate) struct Drafts {
    last: i32,
    open: HashMap<i64, i32>,
}

impl Drafts {
    /// Returns the draft of a chat's turn. Telegram animates changes of one draft, and ids are not 0.
    fn of(&mut self, chat_id: i64) -> i32 {
        if self.open.len() >= DRAFTS_MAX {
            self.open.clear();
        }
        let last = &mut self.last;
        *self.open.entry(chat_id).or_insert_with(|| {
            *last = last.checked_add(1).unwrap_or(1);
            *last
        })
    }
}

impl Telegram {
    /// Shows progress if the pace allows it now, and leaves it out if it does not.
    pub(crate) async fn show(&self, place: ChatThread, progress: Progress) -> Option<Receipt> {
        match progress {
            Progress::Idle => {
                let mut drafts = self.drafts.lock().unwrap_or_else(PoisonError::into_inner);
                drafts.open.remove(&place.chat_id);
                None
            }
            Progress::Typing => {
                if !self.pace().try_action(place.chat_id, clock::now()) {
                    return None;
                }
                let parameters = SendChatActionParams::builder()
                    .chat_id(place.id())
                    .maybe_message_thread_id(place.thread_id)
                    .action(ChatAction::Typing)
                    .build();
                let sent = self.api.call::<Value>("sendChatAction", &parameters).await;
                self.noted(place, sent);
                None
            }
            Progress::Draft { text, placeholder } => self.draft(place, &text, placeholder).await,
        }
    }

    async fn draft(
        &self,
        place: ChatThread,
        text: &str,
        placeholder: Option<Receipt>,
    ) -> Option<Receipt> {
        let shown = so_far(text)?;
        if self.settings.streaming == Streaming::Off
            || !self.pace().try_now(place.chat_id, clock::now())
        {
            return placeholder;
        }
        if place.is_private() && self.settings.streaming == Streaming::Drafts {
            self.send_draft(place, &shown).await;
            return placeholder;
        }
        match placeholder {
            Some(receipt) => {
                self.edit_draft(place, &shown, &receipt).await;
                Some(receipt)
            }
            None => self.begin_draft(place, &shown).await,
        }
    }

    async fn send_draft(&self, place: ChatThread, shown: &FormattedText) {
        let draft_id = {
            let mut drafts = self.drafts.lock().unwrap_or_else(PoisonError::into_inner);
            drafts.of(place.chat_id)
        };
        let parameters = SendMessageDraftParams::builder()
            .chat_id(place.chat_id)
            .maybe_message_thread_id(place.thread_id)
            .draft_id(draft_id)
            .text(&shown.text)
            .entities(shown.message_entities())
            .build();
        let sent = self
            .api
            .call::<Value>("sendMessageDraft", &parameters)
            .await;
        self.noted(place, sent);
    }

    async fn edit_draft(&self, place: ChatThread, shown: &FormattedText, receipt: &Receipt) {
        let Ok(message_id) = receipt.0.parse() else {
            return;
        };
        let parameters = EditMessageTextParams::builder()
            .chat_id(place.id())
            .message_id(message_id)
            .text(&shown.text)
            .entities(shown.message_entities())
            .link_preview_options(crate::send::no_preview())
            .build();
        let sent = self.api.call::<Value>("editMessageText", &parameters).await;
        self.noted(place, sent);
    }

    async fn begin_draft(&self, place: ChatThread, shown: &FormattedText) -> Option<Receipt> {
        let parameters = SendMessageParams::builder()
            .chat_id(place.id())
            .maybe_message_thread_id(place.thread_id)
            .text(&shown.text)
            .entities(shown.message_entities())
            .link_preview_options(crate::send::no_preview())
            .disable_notification(true)
            .build();
        let sent = self.api.call::<Value>("sendMessage", &parameters).await;
        let id = sent.as_ref().ok().and_then(crate::send::message_id);
        self.noted(place, sent);
        Some(Receipt(id?.to_string()))
    }

    /// Takes note of a time to wait. Nothing else of a failure matters: the next one may succeed.
    fn noted(&self, place: ChatThread, sent: Result<Value, ApiError>) {
        if let Err(error) = sent {
            self.hold(place, &error);
            tracing::debug!(chat = place.chat_id, %error, "progress was not shown");
        }
    }

    /// Holds a chat as long as the server asked.
    pub(crate) fn hold(&self, place: ChatThread, error: &ApiError) {
        if let Some(wait) = error.retry_after()
            && let Some(until) = clock::now().checked_add(wait)
        {
            self.pace().hold(place.chat_id, until);
        }
    }
}

/// Returns the beginning of a reply that fits one message; `None` if nothing can be seen of it yet.
fn so_far(text: &str) -> Option<FormattedText> {
    let whole = formatted(text);
    let room = TEXT_UNITS_MAX - render::units(MORE);
    let mut shown = split(&whole, room).into_iter().next()?;
    shown.text.push_str(MORE);
    Some(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draft_fits_and_says_that_more_comes() {
        assert_eq!(so_far(" \n"), None);
        let shown = so_far("**a** b").unwrap();
        assert_eq!(shown.text, "a b \u{2026}");
        let long = so_far(&"😀".repeat(5_000)).unwrap();
        assert!(render::units(&long.text) <= TEXT_UNITS_MAX);
    }

    #[test]
    fn a_turn_has_one_draft_and_the_next_one_another() {
        let mut drafts = Drafts::default();
        assert_eq!((drafts.of(7), drafts.of(8), drafts.of(7)), (1, 2, 1));
        drafts.open.remove(&7);
        assert_eq!(drafts.of(7), 3);
    }
}
