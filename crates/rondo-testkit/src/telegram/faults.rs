//! Faults between the bot and Telegram.

use crate::{Response, Step};
use serde_json::{Value, json};

/// Fault of one request instead of an ordinary answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// Refused: an error of the Bot API with this code and description.
    Refused(u16, String),
    /// Refused for now (429): too many requests, with the seconds to wait.
    TooMany(u64),
    /// The chat has become a supergroup with this id.
    Migrated(i64),
    /// The connection is reset before anything was done.
    ResetBefore,
    /// The request is carried out, and then the connection is reset: the bot cannot know.
    ResetAfter,
    /// The request is carried out and never answered.
    StallAfter,
    /// A gateway answers in Telegram's place: a page of HTML with this status. Nothing was done.
    Gateway(u16),
    /// The answer is this, whatever was asked. Nothing was done.
    Answer(Value),
}

impl Fault {
    /// Returns whether the request is carried out.
    pub(super) fn lands(&self) -> bool {
        matches!(self, Self::ResetAfter | Self::StallAfter)
    }

    /// Returns the response in place of the ordinary one.
    pub(super) fn response(&self) -> Response {
        match self {
            Self::Refused(code, description) => refused(*code, description, &Value::Null),
            Self::TooMany(seconds) => refused(
                429,
                &format!("Too Many Requests: retry after {seconds}"),
                &json!({ "retry_after": seconds }),
            ),
            Self::Migrated(to) => refused(
                400,
                "Bad Request: group chat was upgraded to a supergroup chat",
                &json!({ "migrate_to_chat_id": to }),
            ),
            Self::ResetBefore | Self::ResetAfter => Response::new(200).before(Step::Reset),
            Self::StallAfter => Response::new(200).before(Step::Stall),
            Self::Gateway(status) => crate::faults::html_error(*status),
            Self::Answer(body) => Response::json(200, body),
        }
    }
}

/// Builds an error as the Bot API words it.
pub(super) fn refused(code: u16, description: &str, parameters: &Value) -> Response {
    let mut body = json!({ "ok": false, "error_code": code, "description": description });
    if !parameters.is_null() {
        body["parameters"] = parameters.clone();
    }
    Response::json(code, &body)
}
