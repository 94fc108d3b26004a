//! Submissions by their `Idempotency-Key`, so that a key that is reused for something else is refused, instead of
//! being taken for the earlier submission.

use super::error::ApiError;
use super::messages::{chat_key, json, read};
use crate::channel::{ChatKey, InboundBody};
use axum::http::StatusCode;
use data_encoding::BASE64;
use rondo_core::ports::{HostCommit, HostStore, MailboxError};
use rondo_types::HostRow;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::Mutex;

/// Names of a chat that are compared, the newest ones. All are in one row, which is written with each new name.
pub(super) const NAMES_KEPT: usize = 100;
/// Rows of names, by user and chat.
const NAMES: &str = "api_submissions";

/// The names of all chats of the API.
pub(super) struct Submissions {
    rows: Arc<dyn HostStore>,
    /// Held while a chat's row is read and written.
    writing: Mutex<()>,
}

/// Submission under a name.
#[derive(Serialize, Deserialize)]
struct NamedSubmission {
    name: String,
    digest: String,
}

impl Submissions {
    pub(super) fn new(rows: Arc<dyn HostStore>) -> Self {
        Self {
            rows,
            writing: Mutex::default(),
        }
    }

    /// Binds a name to a body, durably and before the body is submitted: of two bodies that come at once under one
    /// name, one is refused. Returns `false` if the name is bound to another body.
    pub(super) async fn bind(
        &self,
        chat: &ChatKey,
        name: &str,
        body: &InboundBody,
    ) -> Result<bool, MailboxError> {
        let digest = digest(body)?;
        let _writing = self.writing.lock().await;
        let key = chat_key(chat);
        let row = self.rows.row(NAMES, &key).await?;
        let mut bound: VecDeque<NamedSubmission> =
            row.map(|row| read(&row)).transpose()?.unwrap_or_default();
        if let Some(known) = bound.iter().find(|it| it.name == name) {
            return Ok(known.digest == digest);
        }
        bound.push_back(NamedSubmission {
            name: name.to_owned(),
            digest,
        });
        if bound.len() > NAMES_KEPT {
            bound.pop_front();
        }
        let commit = HostCommit {
            rows: vec![HostRow::set(NAMES, key, json(&bound)?)],
            ..HostCommit::default()
        };
        self.rows.commit(commit).await?;
        Ok(true)
    }
}

/// Returns the error for a name that is taken.
pub(super) fn reused(name: &str) -> ApiError {
    let message = format!(
        "`Idempotency-Key: {name}` was used for something else in this chat: use a new key for each submission"
    );
    ApiError::new(StatusCode::CONFLICT, "key_reused", message)
}

fn digest(body: &InboundBody) -> Result<String, MailboxError> {
    let mut digest = Sha256::new();
    let mut add = |part: &[u8]| {
        // With its length before it, no part can be taken for two.
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part);
    };
    match body {
        InboundBody::Message {
            text,
            images,
            files,
            notes: _,
            by_others: _,
        } => {
            add(b"message");
            add(text.as_bytes());
            add(json(images)?.as_bytes());
            for file in files {
                add(file.name.as_bytes());
                add(&file.bytes);
            }
        }
        InboundBody::Answer { token, value } => {
            add(b"answer");
            add(token.as_bytes());
            add(json(value)?.as_bytes());
        }
        InboundBody::Migrated { chat_id } => {
            add(b"migrated");
            add(chat_id.as_bytes());
        }
    }
    Ok(BASE64.encode(&digest.finalize()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::InboundFile;
    use rondo_runtime::sessions::in_memory;

    fn chat(user: &str, name: &str) -> ChatKey {
        ChatKey {
            channel: super::super::NAME.to_owned(),
            account: user.to_owned(),
            chat_id: name.to_owned(),
            topic: None,
        }
    }

    fn said(text: &str, files: &[(&str, &str)]) -> InboundBody {
        let file = |(name, bytes): &(&str, &str)| InboundFile {
            name: (*name).to_owned(),
            bytes: (*bytes).to_owned().into(),
        };
        InboundBody::Message {
            text: text.to_owned(),
            images: Vec::new(),
            files: files.iter().map(file).collect(),
            notes: Vec::new(),
            by_others: false,
        }
    }

    #[tokio::test]
    async fn a_name_is_bound_to_its_first_body_within_its_chat() {
        let names = Submissions::new(in_memory().unwrap());
        let first = said("a", &[("f", "xy")]);
        let a = chat("1", "a");
        assert!(names.bind(&a, "n", &first).await.unwrap());
        assert!(names.bind(&a, "n", &first).await.unwrap());
        for other in [
            said("b", &[("f", "xy")]),
            said("a", &[]),
            said("a", &[("f", "x")]),
            said("a", &[("fx", "y")]),
            said("a", &[("f", "xy"), ("", "")]),
            InboundBody::Answer {
                token: "a".to_owned(),
                value: rondo_types::AnswerValue::Approve,
            },
        ] {
            assert!(!names.bind(&a, "n", &other).await.unwrap(), "{other:?}");
        }
        let other = said("b", &[]);
        for chat in [chat("1", "b"), chat("2", "a")] {
            assert!(names.bind(&chat, "n", &other).await.unwrap(), "{chat:?}");
        }
    }

    #[tokio::test]
    async fn the_newest_names_are_compared() {
        let names = Submissions::new(in_memory().unwrap());
        let a = chat("1", "a");
        for number in 0..=NAMES_KEPT {
            let name = format!("n{number}");
            assert!(names.bind(&a, &name, &said("x", &[])).await.unwrap());
        }
        let other = said("y", &[]);
        assert!(!names.bind(&a, "n1", &other).await.unwrap());
        assert!(names.bind(&a, "n0", &other).await.unwrap());
    }
}
