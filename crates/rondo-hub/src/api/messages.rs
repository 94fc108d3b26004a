//! Messages delivered to the chats of the API: rows in the journal's file, which clients read when they want to.

use crate::channel::{ChatKey, OutboxKind, Outgoing, OutgoingFile};
use rondo_core::ports::{HostCommit, HostStore, MailboxError};
use rondo_types::{AnswerValue, HostRow, TimeMs};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::io;
use std::sync::Arc;
use tokio::sync::{Mutex, watch};

/// Messages that are kept of a chat, the newest ones.
pub(super) const MESSAGES_KEPT: u64 = 1000;
/// Chats of one user.
pub(super) const CHATS_MAX: usize = 1000;
/// Rows that are read at once, of those of all chats.
const ROWS_AT_ONCE: usize = 64;
/// Bytes of text in one row; longer text becomes several messages. A row has a bound, and JSON may write a byte as six.
const PIECE_BYTES_MAX: usize = 128 << 10;
/// Rows of chats, by user and name.
const CHATS: &str = "api_chats";
/// Rows of messages, by user, chat and number.
const MESSAGES: &str = "api_messages";

/// A message that a chat was sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Message {
    /// Its number in the chat, from 1; later ones have higher numbers.
    pub id: u64,
    /// When it was sent, in milliseconds since 1970.
    pub at_ms: u64,
    /// Kind of message.
    pub kind: MessageKind,
    /// Its text, as Markdown.
    pub text: String,
    /// How it can be answered; empty if it is not a question.
    pub choices: Vec<MessageChoice>,
    /// The names of the files that go with it, which `/files/0` and so on below the message return.
    pub files: Vec<String>,
}

/// Kind of message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MessageKind {
    /// The answer of a turn.
    Final,
    /// A question that can be answered.
    Question,
    /// Sent by the agent in the middle of a turn.
    Message,
    /// Sent by the hub itself.
    Notice,
}

/// One way to answer a question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MessageChoice {
    /// Label, such as `Allow once`.
    pub label: String,
    /// Names the question, to answer it with.
    pub token: String,
    /// The answer.
    #[serde(flatten)]
    pub answer: GivenAnswer,
}

/// An answer to a question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum GivenAnswer {
    /// Yes.
    Approve,
    /// No.
    Deny {
        /// Why, which the model reads.
        reason: String,
    },
    /// Requested value.
    Value {
        /// The value.
        value: serde_json::Value,
    },
}

impl From<AnswerValue> for GivenAnswer {
    fn from(value: AnswerValue) -> Self {
        match value {
            AnswerValue::Approve => Self::Approve,
            AnswerValue::Deny { reason } => Self::Deny { reason },
            AnswerValue::Value { value, .. } => Self::Value { value },
        }
    }
}

impl From<GivenAnswer> for AnswerValue {
    fn from(value: GivenAnswer) -> Self {
        match value {
            GivenAnswer::Approve => Self::Approve,
            GivenAnswer::Deny { reason } => Self::Deny { reason },
            GivenAnswer::Value { value } => Self::value(value),
        }
    }
}

/// A message as it is kept.
#[derive(Serialize, Deserialize)]
struct MessageRow {
    message: Message,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    files: Vec<OutgoingFile>,
}

/// Stored row of a chat.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct ChatRow {
    /// When it began.
    pub(super) created: TimeMs,
    /// The number of its latest message; 0 before the first.
    pub(super) latest: u64,
}

/// The messages of all chats of the API.
pub(super) struct Messages {
    rows: Arc<dyn HostStore>,
    /// Held while a chat's row is read and written.
    writing: Mutex<()>,
    changed: watch::Sender<u64>,
}

impl Messages {
    pub(super) fn new(rows: Arc<dyn HostStore>) -> Self {
        Self {
            rows,
            writing: Mutex::default(),
            changed: watch::Sender::default(),
        }
    }

    /// Returns a counter that changes with each message.
    pub(super) fn changed(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Adds a message, and returns its number; `None` if it was added before.
    pub(super) async fn add(
        &self,
        sent: &Outgoing,
        now: TimeMs,
    ) -> Result<Option<u64>, MailboxError> {
        let _writing = self.writing.lock().await;
        let chat = &sent.chat;
        let row = self.chat(chat).await?;
        let mut row = row.unwrap_or(ChatRow {
            created: now,
            latest: 0,
        });
        let mut rows = Vec::new();
        let pieces = pieces(&sent.text);
        let last = pieces.len() - 1;
        for (index, text) in pieces.into_iter().enumerate() {
            row.latest += 1;
            let number = row.latest;
            let message = piece(sent, text, index == last, number, now);
            rows.push(HostRow::set(
                MESSAGES,
                message_key(chat, number),
                json(&message)?,
            ));
            if let Some(old) = number.checked_sub(MESSAGES_KEPT) {
                rows.push(HostRow::removed(MESSAGES, message_key(chat, old)));
            }
        }
        let number = row.latest;
        rows.push(HostRow::set(CHATS, chat_key(chat), json(&row)?));
        let commit = HostCommit {
            event: Some(format!("api-message:{}", sent.key)),
            rows,
            ..HostCommit::default()
        };
        let is_new = self.rows.commit(commit).await?;
        self.changed.send_modify(|it| *it += 1);
        Ok(is_new.then_some(number))
    }

    /// Notes a chat before its first message. Returns `false` if its user has too many.
    pub(super) async fn begin_chat(
        &self,
        chat: &ChatKey,
        now: TimeMs,
    ) -> Result<bool, MailboxError> {
        let _writing = self.writing.lock().await;
        if self.chat(chat).await?.is_some() {
            return Ok(true);
        }
        if self.chats(&chat.account, "", CHATS_MAX).await?.len() >= CHATS_MAX {
            return Ok(false);
        }
        let row = ChatRow {
            created: now,
            latest: 0,
        };
        let commit = HostCommit {
            rows: vec![HostRow::set(CHATS, chat_key(chat), json(&row)?)],
            ..HostCommit::default()
        };
        self.rows.commit(commit).await?;
        Ok(true)
    }

    pub(super) async fn chat(&self, chat: &ChatKey) -> Result<Option<ChatRow>, MailboxError> {
        let row = self.rows.row(CHATS, &chat_key(chat)).await?;
        row.map(|row| read(&row)).transpose()
    }

    /// Returns the chats of a user after the one of that name, in order of their names.
    pub(super) async fn chats(
        &self,
        user: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<(String, ChatRow)>, MailboxError> {
        let prefix = format!("{user}/");
        let rows = self
            .rows
            .rows(CHATS, &format!("{prefix}{after}"), limit)
            .await?;
        let own = rows
            .into_iter()
            .map_while(|(key, row)| Some((key.strip_prefix(&prefix)?.to_owned(), row)));
        own.map(|(name, row)| Ok((name, read(&row)?))).collect()
    }

    /// Returns the messages of a chat after that number, at most so many, the oldest first.
    pub(super) async fn after(
        &self,
        chat: &ChatKey,
        number: u64,
        limit: usize,
    ) -> Result<Vec<Message>, MailboxError> {
        let prefix = format!("{}/", chat_key(chat));
        let rows = self
            .rows
            .rows(MESSAGES, &message_key(chat, number), limit)
            .await?;
        let own = rows.iter().take_while(|(key, _)| key.starts_with(&prefix));
        own.map(|(_, row)| Ok(read::<MessageRow>(row)?.message))
            .collect()
    }

    /// Returns the files of all messages that are kept.
    pub(super) async fn all_files(&self) -> Result<Vec<OutgoingFile>, MailboxError> {
        let (mut files, mut after) = (Vec::new(), String::new());
        loop {
            let rows = self.rows.rows(MESSAGES, &after, ROWS_AT_ONCE).await?;
            let Some((last, _)) = rows.last() else {
                return Ok(files);
            };
            after.clone_from(last);
            for (_, row) in &rows {
                files.extend(read::<MessageRow>(row)?.files);
            }
        }
    }

    /// Returns a file that goes with a message.
    pub(super) async fn file(
        &self,
        chat: &ChatKey,
        number: u64,
        index: u64,
    ) -> Result<Option<OutgoingFile>, MailboxError> {
        let row = self.rows.row(MESSAGES, &message_key(chat, number)).await?;
        let Some(row) = row else { return Ok(None) };
        let files = read::<MessageRow>(&row)?.files;
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        Ok(files.into_iter().nth(index))
    }
}

/// Cuts a text that is too long for one row.
fn pieces(text: &str) -> Vec<&str> {
    let (mut pieces, mut rest) = (Vec::new(), text);
    while rest.len() > PIECE_BYTES_MAX {
        let (piece, after) = rest.split_at(rest.floor_char_boundary(PIECE_BYTES_MAX));
        pieces.push(piece);
        rest = after;
    }
    pieces.push(rest);
    pieces
}

/// Buttons and fields to answer with, and attachments, are in the last piece.
fn piece(sent: &Outgoing, text: &str, is_last: bool, id: u64, now: TimeMs) -> MessageRow {
    let choices = sent.choices.iter().filter(|_| is_last);
    let choices = choices.map(|it| MessageChoice {
        label: it.label.clone(),
        token: it.token.clone(),
        answer: it.value.clone().into(),
    });
    let files: Vec<_> = sent.files.iter().filter(|_| is_last).cloned().collect();
    let message = Message {
        id,
        at_ms: now.0,
        kind: match sent.kind {
            OutboxKind::Final => MessageKind::Final,
            OutboxKind::Question => MessageKind::Question,
            OutboxKind::Message => MessageKind::Message,
            OutboxKind::Notice => MessageKind::Notice,
        },
        text: text.to_owned(),
        choices: choices.collect(),
        files: files.iter().map(|it| it.name.clone()).collect(),
    };
    MessageRow { message, files }
}

/// Neither a user's id nor a chat's name has a `/`.
pub(super) fn chat_key(chat: &ChatKey) -> String {
    format!("{}/{}", chat.account, chat.chat_id)
}

fn message_key(chat: &ChatKey, number: u64) -> String {
    format!("{}/{number:020}", chat_key(chat))
}

pub(super) fn json(value: &impl Serialize) -> Result<String, MailboxError> {
    serde_json::to_string(value).map_err(|error| MailboxError::Io(error.into()))
}

pub(super) fn read<T: for<'a> Deserialize<'a>>(row: &str) -> Result<T, MailboxError> {
    serde_json::from_str(row).map_err(|error| MailboxError::Io(io::Error::from(error)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rondo_runtime::sessions::in_memory;

    fn chat(user: &str, name: &str) -> ChatKey {
        ChatKey {
            channel: super::super::NAME.to_owned(),
            account: user.to_owned(),
            chat_id: name.to_owned(),
            topic: None,
        }
    }

    fn sent(key: &str, chat: &ChatKey) -> Outgoing {
        Outgoing {
            key: key.to_owned(),
            chat: chat.clone(),
            kind: OutboxKind::Final,
            text: format!("text of {key}"),
            files: Vec::new(),
            choices: Vec::new(),
            reply_to: None,
            placeholder: None,
            attempts: 0,
        }
    }

    #[tokio::test]
    async fn a_message_counts_once_and_chats_do_not_mix() {
        let messages = Messages::new(in_memory().unwrap());
        let (a, b) = (chat("1", "a"), chat("1", "a.b"));
        for (key, chat, number) in [("k1", &a, 1), ("k2", &b, 1), ("k3", &a, 2)] {
            let added = messages.add(&sent(key, chat), TimeMs(1)).await.unwrap();
            assert_eq!(added, Some(number), "{key}");
        }
        let again = messages.add(&sent("k1", &a), TimeMs(2)).await.unwrap();
        assert_eq!(again, None);
        let texts = |all: Vec<Message>| all.into_iter().map(|it| it.text).collect::<Vec<_>>();
        let of_a = messages.after(&a, 0, 10).await.unwrap();
        assert_eq!(texts(of_a), ["text of k1", "text of k3"]);
        let rest = messages.after(&a, 1, 10).await.unwrap();
        assert_eq!(texts(rest), ["text of k3"]);
        assert_eq!(texts(messages.after(&b, 0, 10).await.unwrap()).len(), 1);
        for other in [chat("2", "a"), chat("", "a"), chat("1", "b")] {
            assert_eq!(messages.after(&other, 0, 10).await.unwrap(), []);
        }
        let names: Vec<_> = messages.chats("1", "", 10).await.unwrap();
        let names: Vec<_> = names.into_iter().map(|it| it.0).collect();
        assert_eq!(names, ["a", "a.b"]);
        assert_eq!(messages.chats("2", "", 10).await.unwrap(), []);
    }

    #[tokio::test]
    async fn a_long_text_becomes_several_messages_at_once() {
        let messages = Messages::new(in_memory().unwrap());
        let a = chat("1", "a");
        let text = "\u{1}ü".repeat(100_000);
        let long = Outgoing {
            text: text.clone(),
            ..sent("k", &a)
        };
        assert_eq!(messages.add(&long, TimeMs(1)).await.unwrap(), Some(3));
        assert_eq!(messages.add(&long, TimeMs(1)).await.unwrap(), None);
        let all = messages.after(&a, 0, 10).await.unwrap();
        let told: String = all.iter().map(|it| it.text.as_str()).collect();
        assert!(told == text, "{} bytes", told.len());
    }

    #[tokio::test]
    async fn the_newest_messages_are_kept() {
        let messages = Messages::new(in_memory().unwrap());
        let a = chat("1", "a");
        for number in 0..MESSAGES_KEPT + 5 {
            let message = sent(&format!("k{number}"), &a);
            messages.add(&message, TimeMs(1)).await.unwrap();
        }
        let all = messages.after(&a, 0, 5000).await.unwrap();
        assert_eq!(all.len() as u64, MESSAGES_KEPT);
        assert_eq!(all.first().unwrap().id, 6);
    }
}
