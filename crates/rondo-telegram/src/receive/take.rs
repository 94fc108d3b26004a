//! Hands in the updates of one chat, one after the other.

use super::fetch::{self, Attachment};
use super::intake::IntakeResult;
use super::update::{self, BotIdentity, Content, Update};
use crate::channel::{ChatThread, Telegram};
use crate::clock;
use frankenstein::methods::{
    AnswerCallbackQueryParams, EditMessageReplyMarkupParams, SendMessageParams,
};
use frankenstein::types::{CallbackQuery, Message};
use rondo_hub::channel::{ChatKind, Inbound, InboundBody};
use rondo_hub::inbox::{self, Inbox, InboxError};
use serde_json::Value;
use std::collections::VecDeque;

/// Message to a person whose message had no place.
const FULL: &str = "Too many messages are waiting in this chat. This one was not accepted: please send it again later.";
/// Message to a person who may not answer.
const NOT_YOURS: &str = "You may not answer this.";
/// Message for a button without effect.
const OVER: &str = "This question is no longer open.";
/// Bytes of a button's query id, which becomes a part of the event's.
const QUERY_BYTES_MAX: usize = 150;

/// An update cannot be taken now.
struct Later;

/// Takes the updates of a chat, up to the first that cannot be taken now.
pub(super) async fn take(
    telegram: &Telegram,
    inbox: &Inbox,
    me: &BotIdentity,
    chat_id: i64,
    updates: Vec<Update>,
) -> IntakeResult {
    let mut done = Vec::new();
    let mut left = VecDeque::from(updates);
    while let Some(group) = next_group(&mut left) {
        let ids = group.iter().map(|it| it.id).collect::<Vec<_>>();
        match take_group(telegram, inbox, me, &group).await {
            Ok(()) => done.extend(ids),
            Err(Later) => {
                let left = group.into_iter().chain(left).collect();
                return IntakeResult {
                    chat_id,
                    done,
                    left,
                };
            }
        }
    }
    IntakeResult {
        chat_id,
        done,
        left: Vec::new(),
    }
}

/// Takes the next update with those that its sender sent together with it: the parts of an album, another album that was
/// chosen at the same time, and the rest of a text that was too long for one message.
fn next_group(left: &mut VecDeque<Update>) -> Option<Vec<Update>> {
    let mut group = vec![left.pop_front()?];
    while let Some(last) = group.last() {
        let next = left.iter().position(|it| it.is_of_album(last));
        let of_sender = || left.iter().position(|it| it.is_of_sender(last));
        let next = next
            .or_else(|| of_sender().filter(|it| left.get(*it).is_some_and(|it| it.goes_on(last))));
        let Some(next) = next.and_then(|it| left.remove(it)) else {
            break;
        };
        group.push(next);
    }
    Some(group)
}

async fn take_group(
    telegram: &Telegram,
    inbox: &Inbox,
    me: &BotIdentity,
    group: &[Update],
) -> Result<(), Later> {
    let Some(first) = group.first() else {
        return Ok(());
    };
    match &first.content {
        Content::Message(message) => {
            let messages = group.iter().filter_map(|it| match &it.content {
                Content::Message(message) => Some(&**message),
                _ => None,
            });
            let messages: Vec<&Message> = messages.collect();
            take_message(telegram, inbox, me, first, message, &messages).await
        }
        Content::Press(query) => take_press(telegram, inbox, query).await,
        Content::Other => Ok(()),
    }
}

async fn take_message(
    telegram: &Telegram,
    inbox: &Inbox,
    me: &BotIdentity,
    update: &Update,
    message: &Message,
    all: &[&Message],
) -> Result<(), Later> {
    let place = update::place(message);
    let Some(sender) = update::sender(message) else {
        return Ok(());
    };
    let (body, attachments, is_meant) = match message.migrate_to_chat_id {
        Some(id) => {
            let chat_id = id.to_string();
            (InboundBody::Migrated { chat_id }, Vec::new(), true)
        }
        None => match content(me, message, all) {
            Some(content) => content,
            None => return Ok(()),
        },
    };
    let mut event = Inbound {
        // After a week of silence ids begin anew anywhere: the date tells apart what has one id.
        event_id: format!("{}-{}", update.id, message.date),
        chat: place.key(),
        chat_kind: update::kind(message),
        sender,
        mentioned: is_meant,
        body,
        message_id: (!update.is_edit || !update::may_be_part(message))
            .then(|| message.message_id.to_string()),
        is_edit: update.is_edit,
        at_ms: message.date.saturating_mul(1000),
    };
    // A stranger's is handed in as well: the hub tells them who they are.
    if !attachments.is_empty() && inbox.admits(&event).await {
        fetch::into_body(telegram, attachments, &mut event.body).await;
    }
    match inbox.push(event).await {
        Ok(_) => Ok(()),
        Err(error) => refused(telegram, place, &error).await,
    }
}

/// Returns the content of a message or album; `None` if it is about the chat itself.
fn content(
    me: &BotIdentity,
    message: &Message,
    all: &[&Message],
) -> Option<(InboundBody, Vec<Attachment>, bool)> {
    let mut text = String::new();
    let mut notes = Vec::new();
    let mut attachments = Vec::new();
    let mut is_meant = false;
    for message in all {
        let (said, meant) = update::addressed(message, me);
        is_meant |= meant;
        let mut found = fetch::found(message);
        let forwarded = fetch::forwarded(message).filter(|it| !text.contains(it.as_str()));
        // A text that fills a message to its end was cut there.
        let is_cut =
            !text.is_empty() && update::units(&text).is_multiple_of(update::TEXT_UNITS_MAX);
        for said in forwarded.into_iter().chain([said, found.text]) {
            if !text.is_empty() && !said.is_empty() && !is_cut {
                text.push('\n');
            }
            text.push_str(&said);
        }
        notes.append(&mut found.notes);
        attachments.append(&mut found.attachments);
    }
    if let Some(note) = joined(me, message) {
        is_meant = true;
        notes.push(note);
    }
    if let Some(quote) = fetch::quoted(message, me.id).filter(|_| !text.starts_with('/')) {
        text = format!("{quote}\n\n{text}");
    }
    if text.is_empty() && notes.is_empty() && attachments.is_empty() {
        return None;
    }
    let body = InboundBody::Message {
        text,
        images: Vec::new(),
        files: Vec::new(),
        notes,
        by_others: all.iter().any(|it| fetch::is_by_others(it, me.id)),
    };
    Some((body, attachments, is_meant))
}

/// Returns the greeting for a group to which the bot was added.
fn joined(me: &BotIdentity, message: &Message) -> Option<String> {
    let mut added = message.new_chat_members.iter().flatten();
    if !added.any(|user| user.id == me.id) {
        return None;
    }
    let answers = "Hello! In groups I answer when I am mentioned or replied to.";
    Some(match me.sees_all {
        true => answers.to_owned(),
        false => format!(
            "{answers} Privacy mode is on for me, so Telegram hides all other messages from me: @BotFather turns it off \
             with /setprivacy, after which I must be added again."
        ),
    })
}

async fn take_press(
    telegram: &Telegram,
    inbox: &Inbox,
    query: &CallbackQuery,
) -> Result<(), Later> {
    let place = update::pressed_at(query);
    let answer = query.data.as_deref().and_then(update::decoded);
    let (Some((place, message_id)), Some((token, value))) = (place, answer) else {
        answer_press(telegram, query, Some(OVER)).await;
        return Ok(());
    };
    if query.id.len() > QUERY_BYTES_MAX {
        return Ok(());
    }
    let event = Inbound {
        event_id: format!("press-{}", query.id),
        chat: place.key(),
        chat_kind: match place.is_private() {
            true => ChatKind::Private,
            false => ChatKind::Group,
        },
        sender: update::person(&query.from),
        mentioned: true,
        body: InboundBody::Answer { token, value },
        message_id: Some(message_id.to_string()),
        is_edit: false,
        at_ms: clock::wall_ms(),
    };
    match inbox.push(event).await {
        Ok(inbox::InboxResult::Accepted) => {
            answer_press(telegram, query, None).await;
            remove_buttons(telegram, place, message_id).await;
            Ok(())
        }
        Ok(inbox::InboxResult::Duplicate) => {
            answer_press(telegram, query, None).await;
            Ok(())
        }
        Ok(inbox::InboxResult::Dropped) => {
            answer_press(telegram, query, Some(NOT_YOURS)).await;
            Ok(())
        }
        Err(error) => {
            let outcome = refused(telegram, place, &error).await;
            if outcome.is_ok() {
                answer_press(telegram, query, Some(OVER)).await;
            }
            outcome
        }
    }
}

/// Decides about an event that was not taken, and tells the chat if it is given up.
async fn refused(telegram: &Telegram, place: ChatThread, error: &InboxError) -> Result<(), Later> {
    tracing::warn!(chat = place.chat_id, %error, "a message of Telegram was not taken");
    match error {
        InboxError::Later { .. } => Err(Later),
        InboxError::Malformed { .. } => Ok(()),
        InboxError::Full => {
            tell(telegram, place, FULL).await;
            Ok(())
        }
    }
}

/// Says something in a chat, if the pace allows it now.
async fn tell(telegram: &Telegram, place: ChatThread, text: &str) {
    if telegram.pace().try_now(place.chat_id, clock::now()) {
        let parameters = SendMessageParams::builder()
            .chat_id(place.id())
            .maybe_message_thread_id(place.thread_id)
            .text(text)
            .build();
        let told = telegram.api.call::<Value>("sendMessage", &parameters).await;
        forget(told.err());
    }
}

/// Ends the waiting that a client shows at a pressed button.
async fn answer_press(telegram: &Telegram, query: &CallbackQuery, text: Option<&str>) {
    let parameters = AnswerCallbackQueryParams::builder()
        .callback_query_id(&query.id)
        .maybe_text(text)
        .build();
    let answered = telegram
        .api
        .call::<Value>("answerCallbackQuery", &parameters)
        .await;
    forget(answered.err());
}

async fn remove_buttons(telegram: &Telegram, place: ChatThread, message_id: i32) {
    let parameters = EditMessageReplyMarkupParams::builder()
        .chat_id(place.id())
        .message_id(message_id)
        .build();
    let removed = telegram
        .api
        .call::<Value>("editMessageReplyMarkup", &parameters)
        .await;
    forget(removed.err());
}

/// Failures of mere decorations are ignored.
fn forget(error: Option<crate::ApiError>) {
    if let Some(error) = error {
        tracing::debug!(%error, "left out");
    }
}
