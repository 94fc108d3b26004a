//! Reaction of the hub if Telegram refuses a message.

use crate::ApiError;
use rondo_hub::channel::SendError;
use std::time::Duration;

/// The wait where Telegram names none.
const TOO_MANY_WAIT: Duration = Duration::from_secs(5);

/// Errors of Telegram about chats that are gone.
const GONE: [&str; 4] = [
    "chat not found",
    "user not found",
    "PEER_ID_INVALID",
    "group chat was deactivated",
];
/// Errors about an impossible edit, though the text may be sent.
const NO_EDIT: [&str; 4] = [
    "message to edit not found",
    "message can't be edited",
    "MESSAGE_ID_INVALID",
    "there is no text in the message to edit",
];

pub(super) fn failed(error: &ApiError) -> SendError {
    let reason = error.to_string();
    match error {
        ApiError::Unsent { .. } => SendError::Retry {
            after: None,
            reason,
        },
        ApiError::Unknown { .. } => SendError::Ambiguous { reason },
        ApiError::TooLarge { .. } => SendError::Ambiguous { reason },
        ApiError::Refused {
            migrate_to: Some(to),
            ..
        } => SendError::Migrated { to: to.to_string() },
        ApiError::Refused {
            code,
            description,
            retry_after,
            ..
        } => match code {
            429 => SendError::Retry {
                after: Some(retry_after.unwrap_or(TOO_MANY_WAIT)),
                reason,
            },
            403 => SendError::Gone { reason },
            400 if GONE.iter().any(|it| description.contains(it)) => SendError::Gone { reason },
            // The token is not known, or not any more: that is mended by a person.
            401 | 404 => SendError::Retry {
                after: None,
                reason,
            },
            500.. => SendError::Ambiguous { reason },
            _ => SendError::Refused { reason },
        },
    }
}

/// Returns whether another form of the text may be taken: it is not the chat, the rate or the line that is at fault.
pub(super) fn is_of_form(error: &ApiError) -> bool {
    error.code() == Some(400) && matches!(failed(error), SendError::Refused { .. })
}

/// Returns whether a message already shows the edited text.
pub(super) fn is_same(error: &ApiError) -> bool {
    error.says(400, "message is not modified")
}

/// Returns whether a message cannot be edited, so that a new one must be sent.
pub(super) fn is_no_edit(error: &ApiError) -> bool {
    NO_EDIT.iter().any(|it| error.says(400, it))
}

/// Returns whether the topic is gone, but not its chat.
pub(super) fn is_no_thread(error: &ApiError) -> bool {
    error.says(400, "message thread not found") || error.says(400, "TOPIC_DELETED")
}
