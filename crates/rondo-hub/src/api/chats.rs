//! Reads the caller's chats: their list, their state, what they were sent, and what they used.

use super::Shared;
use super::call::{CHAT_CHARS_MAX, Call, Caller, NUMBER_MAX, chat_key};
use super::error::ApiError;
use super::messages::{CHATS_MAX, Message};
use crate::channel::ChatKey;
use crate::chats::first_session;
use crate::shortage::shortage;
use axum::Json;
use axum::response::{IntoResponse as _, Response};
use rondo_core::ports::MailboxError;
use rondo_runtime::usage::UsageSum;
use rondo_types::{QuestionKind, SessionId, TimeMs};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::HashSet;

/// How many chats or messages are returned at once.
const LIST_MAX: u64 = 100;

/// The user of a key.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct CurrentUser {
    /// Their name.
    user: String,
    /// Role of the user: `guest`, `member` or `owner`.
    role: String,
}

/// Chats.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ChatList {
    /// In order of their names.
    chats: Vec<ChatEntry>,
}

/// A chat in a list.
#[derive(Debug, Serialize, JsonSchema)]
struct ChatEntry {
    /// Name of the chat.
    chat: String,
    /// When it began, in milliseconds since 1970.
    created_ms: u64,
    /// The number of its latest message; 0 before the first.
    latest: u64,
}

/// A chat.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Chat {
    /// Name of the chat.
    chat: String,
    /// When it began, in milliseconds since 1970.
    created_ms: u64,
    /// The number of its latest message; 0 before the first.
    latest: u64,
    /// The session that it talks to now, as `rondo session` knows it. `/new` begins another one.
    session: String,
    /// Open questions of its turn. The message of kind `question` in the chat says how to answer.
    questions: Vec<OpenQuestion>,
}

/// A question that a turn waits with.
#[derive(Debug, Serialize, JsonSchema)]
struct OpenQuestion {
    /// Its name in the session.
    id: String,
    /// Text of the question.
    prompt: String,
    /// When it expires and counts as denied, in milliseconds since 1970; absent if it never does.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_ms: Option<u64>,
}

/// Messages.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct MessageList {
    /// The oldest first.
    messages: Vec<Message>,
}

/// Sums of usage.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct UsageSums {
    /// Requests that models replied to.
    requests: u64,
    /// Tokens that were read, those from caches included.
    input_tokens: u64,
    /// Tokens that were written.
    output_tokens: u64,
    /// Their cost in billionths of a US dollar, as far as prices are known.
    cost_nano_usd: u64,
    /// Replies whose tokens or price are not known.
    uncounted: u64,
}

pub(super) async fn me(_: Call, caller: Caller) -> Result<Response, ApiError> {
    let me = CurrentUser {
        user: caller.user,
        role: caller.role.to_string(),
    };
    Ok(Json(me).into_response())
}

pub(super) async fn list(call: Call, caller: Caller) -> Result<Response, ApiError> {
    let after = call.query("after").unwrap_or_default();
    if after.chars().count() > CHAT_CHARS_MAX {
        let message = format!("`after` has at most {CHAT_CHARS_MAX} characters");
        return Err(ApiError::bad_request(message));
    }
    let limit = limit(&call)?;
    let found = call
        .shared
        .parts()?
        .messages
        .chats(&caller.user, &after, limit);
    let chats = found.await.map_err(unreadable)?;
    let chats = chats.into_iter().map(|(chat, row)| ChatEntry {
        chat,
        created_ms: row.created.0,
        latest: row.latest,
    });
    let list = ChatList {
        chats: chats.collect(),
    };
    Ok(Json(list).into_response())
}

pub(super) async fn get(call: Call, caller: Caller) -> Result<Response, ApiError> {
    let (chat, row) = existing(&call, &caller).await?;
    let session = call.shared.session(&chat).await?;
    let questions = session.questions().await;
    let questions = questions.map_err(|error| ApiError::internal(&error))?;
    // An owner is asked about the folder elsewhere.
    let questions = questions.into_iter();
    let questions = questions.filter(|it| it.kind != QuestionKind::Trust);
    let questions = questions.map(|it| OpenQuestion {
        id: it.id.0,
        prompt: it.prompt,
        expires_ms: it.expires.map(|it| it.0),
    });
    let chat = Chat {
        chat: chat.chat_id,
        created_ms: row.created.0,
        latest: row.latest,
        session: session.id().to_string(),
        questions: questions.collect(),
    };
    Ok(Json(chat).into_response())
}

pub(super) async fn messages(call: Call, caller: Caller) -> Result<Response, ApiError> {
    let after = call.number("after", 0, NUMBER_MAX)?;
    let limit = limit(&call)?;
    let (chat, _) = existing(&call, &caller).await?;
    let found = call
        .shared
        .parts()?
        .messages
        .after(&chat, after, limit)
        .await;
    let list = MessageList {
        messages: found.map_err(unreadable)?,
    };
    Ok(Json(list).into_response())
}

pub(super) async fn usage(call: Call, caller: Caller) -> Result<Response, ApiError> {
    let all = &call.shared.parts()?.messages;
    let all = all.chats(&caller.user, "", CHATS_MAX);
    let chats = all.await.map_err(unreadable)?.into_iter();
    let chats = chats.map(|(name, _)| chat_key(&caller, &name)).collect();
    let used = used(&call.shared, chats).await?;
    let sums = UsageSums {
        requests: used.requests,
        input_tokens: used.usage.input,
        output_tokens: used.usage.output,
        cost_nano_usd: used.cost.0,
        uncounted: used.uncounted,
    };
    Ok(Json(sums).into_response())
}

/// Returns the usage of models in all sessions of chats, also in those before the chats started over, and in those that
/// they started.
async fn used(shared: &Shared, chats: HashSet<ChatKey>) -> Result<UsageSum, ApiError> {
    let core = shared.core()?;
    let first: HashSet<SessionId> = chats.iter().map(|it| it.session(0)).collect();
    let used = core.service.usage(TimeMs(0), move |session| {
        first.contains(&first_session(session))
    });
    used.await.map_err(|error| ApiError::internal(&error))
}

/// Returns the chat that the path names, if the caller has one of that name.
pub(super) async fn existing(
    call: &Call,
    caller: &Caller,
) -> Result<(ChatKey, super::messages::ChatRow), ApiError> {
    let chat = call.chat(caller)?;
    let row = call.shared.parts()?.messages.chat(&chat).await;
    let row = row.map_err(unreadable)?;
    let row = row.ok_or_else(|| ApiError::not_found("you have no chat of that name"))?;
    Ok((chat, row))
}

fn limit(call: &Call) -> Result<usize, ApiError> {
    let limit = call.number("limit", LIST_MAX, LIST_MAX)?;
    match usize::try_from(limit) {
        Ok(limit) if limit > 0 => Ok(limit),
        _ => Err(ApiError::bad_request("`limit` is at least 1")),
    }
}

pub(super) fn unreadable(error: MailboxError) -> ApiError {
    match (shortage(&error), error) {
        (Some(reason), error) => {
            tracing::error!(%error, "the storage failed a request of the API");
            ApiError::later(reason)
        }
        (None, error) => ApiError::internal(&error),
    }
}
