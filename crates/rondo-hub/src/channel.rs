//! A way in which people or programs reach the hub: the trait that each channel implements, and its types.

use crate::hub::Hub;
use crate::inbox::{Inbox, InboxError};
use async_trait::async_trait;
use bytes::Bytes;
use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt as _, OpenOptionsSyncExt as _};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};
use rondo_core::clock::Clock;
use rondo_types::{AnswerValue, Media};

pub use rondo_types::OutboxKind;
use serde::{Deserialize, Serialize};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// A way in which people or programs reach the hub, such as a bot of a messenger.
///
/// A channel has no state that outlives it: what it received is durable once [`Inbox::push`] returned, and what it is to
/// send is a row that the hub keeps.
#[async_trait]
pub trait Channel: Send + Sync {
    /// Returns its name: lower-case letters and digits, such as `telegram`. It is part of the ids of sessions, so it
    /// stays the same.
    fn name(&self) -> &str;

    /// Returns the abilities of the channel.
    fn abilities(&self) -> Abilities;

    /// Tells it which hub it is a channel of: once, before it receives. A channel that shows more of the hub than what is
    /// sent to it keeps what it needs. The hub keeps its channels, so they must not keep it.
    fn opened(&self, hub: &Hub) {
        let _ = hub;
    }

    /// Receives until `stop` fires: hands each event to the inbox, and acknowledges it to its sender only after that
    /// returned. The hub calls this again after a pause if it ends with an error.
    ///
    /// # Errors
    /// When it cannot continue, such as without a valid key. Faults of the network are the channel's own to retry.
    ///
    /// # Cancel safety
    /// It must be cancel safe: what was not acknowledged is received again.
    async fn receive(&self, inbox: Inbox, stop: CancellationToken) -> Result<(), ChannelError>;

    /// Sends a message. The hub sends those of one chat one after the other, and those of other chats meanwhile.
    ///
    /// # Errors
    /// Says how the hub must treat it.
    ///
    /// # Cancel safety
    /// It may be dropped at any point; the hub takes that as [`SendError::Ambiguous`].
    async fn send(&self, message: &Outgoing) -> Result<Receipt, SendError>;

    /// Tells a chat something that the hub cannot note, such as that its disk is full: once, and lost if it does not arrive.
    /// A channel that answers its senders' requests tells them by its answer, and does nothing here.
    async fn tell_unnoted(&self, chat: &ChatKey, text: String) {
        let message = Outgoing {
            key: format!("unnoted:{}:{}", chat.text(), Clock::system().now().0),
            chat: chat.clone(),
            kind: OutboxKind::Notice,
            text,
            files: Vec::new(),
            choices: Vec::new(),
            reply_to: None,
            placeholder: None,
            attempts: 0,
        };
        if let Err(error) = self.send(&message).await {
            tracing::debug!(%error, "a chat was not told that nothing can be noted");
        }
    }

    /// Returns the files that it still shows of messages that were sent, such as those that a client may yet fetch: they
    /// stay. None if sending a message delivers its files.
    ///
    /// # Errors
    /// When it cannot say.
    async fn shown_files(&self) -> Result<Vec<OutgoingFile>, ChannelError> {
        Ok(Vec::new())
    }

    /// Shows the progress, as well as it can: nothing of it is recorded or repeated. Returns the receipt of a
    /// message that it sent for this, if one is replaced by the final message later (where [`Abilities::delivery`] is
    /// [`Delivery::Edit`]).
    async fn progress(&self, chat: &ChatKey, progress: Progress) -> Option<Receipt> {
        let _ = (chat, progress);
        None
    }
}

/// Abilities of a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Abilities {
    /// How a message that may have been sent is sent again.
    pub delivery: Delivery,
    /// Shows parts of a reply while it is written.
    pub drafts: bool,
    /// Shows that a text is being written.
    pub typing: bool,
    /// Offers buttons to answer questions.
    pub buttons: bool,
}

/// How a message that may have been sent is sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Delivery {
    /// Under the same key ([`Outgoing::key`]): its receiver takes it once.
    Key,
    /// By editing the message that is in its place ([`Outgoing::placeholder`]), if there is one: doing so again
    /// does no harm. Without one, as [`Delivery::AtLeastOnce`].
    Edit,
    /// As a new message: it may be seen twice if the process ended between sending and noting that it was sent.
    AtLeastOnce,
}

/// A chat: where messages come from and go to. Equal keys are the same chat.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ChatKey {
    /// The channel's name.
    pub channel: String,
    /// Which account of the channel, such as the bot's numeric id, if a channel has several; else empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub account: String,
    /// The chat, as its channel names it.
    pub chat_id: String,
    /// The topic or thread in the chat, if it has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
}

/// Sender of a message. Only facts that the channel itself vouches for: never a name that people choose.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Sender {
    /// Their id as the channel has it, which cannot be chosen: numeric for Telegram, the user of the key for the API.
    pub id: String,
    /// How they call themselves: for display alone.
    pub name: String,
    /// Set for a program.
    #[serde(default)]
    pub is_bot: bool,
}

/// Readers of a chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChatKind {
    /// The sender alone.
    Private,
    /// Several people.
    Group,
}

/// An event that a channel received.
#[derive(Debug, Clone, PartialEq)]
pub struct Inbound {
    /// The channel's id of the event, not of the message: an edit and a button have ids of their own. An event that
    /// comes again under its id is dropped. Of 1 to 200 bytes, unique within the channel and account.
    pub event_id: String,
    /// The chat it is from.
    pub chat: ChatKey,
    /// Kind of that chat.
    pub chat_kind: ChatKind,
    /// Sender of the message.
    pub sender: Sender,
    /// Set if it is meant for the hub: always in private chats; in a group if the bot is mentioned or replied to.
    pub mentioned: bool,
    /// Content of the event.
    pub body: InboundBody,
    /// The channel's id of the message, for a reply to it.
    pub message_id: Option<String>,
    /// Whether it is what a message of that id says now, which was received before and edited since.
    pub is_edit: bool,
    /// When it was sent, in milliseconds since 1970, by the channel's clock.
    pub at_ms: u64,
}

/// Content of an event.
#[derive(Debug, Clone, PartialEq)]
pub enum InboundBody {
    /// A message, perhaps with files: an album is one. Text that begins with `/` is taken as a command by the hub.
    Message {
        /// Text of the message.
        text: String,
        /// Images that the model can look at.
        images: Vec<Media>,
        /// Other files.
        files: Vec<InboundFile>,
        /// Notes for the sender, such as the names of files that could not be fetched.
        notes: Vec<String>,
        /// Set if others than the sender wrote it or a part of it, such as forwarded or quoted text.
        by_others: bool,
    },
    /// An answer to a question, such as by its button.
    Answer {
        /// The token of the question, as in [`Choice::token`] of what was sent.
        token: String,
        /// The answer.
        value: AnswerValue,
    },
    /// The chat has another id from now on.
    Migrated {
        /// The id.
        chat_id: String,
    },
}

/// A file that came with a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InboundFile {
    /// Its name, as its sender has it: hostile, and never a path.
    pub name: String,
    /// Content of the file.
    pub bytes: Bytes,
}

/// A message to send.
#[derive(Debug, Clone, PartialEq)]
pub struct Outgoing {
    /// Names it forever: the same message has the same key whenever it is sent.
    pub key: String,
    /// The chat.
    pub chat: ChatKey,
    /// Kind of message.
    pub kind: OutboxKind,
    /// Its text, as Markdown; empty if it has files alone.
    pub text: String,
    /// Files that go along: copies that the hub made when they were attached, so that they are what they were then.
    pub files: Vec<OutgoingFile>,
    /// How it can be answered; empty if it is not a question.
    pub choices: Vec<Choice>,
    /// The message that it answers, as the channel names it.
    pub reply_to: Option<String>,
    /// The message that is in its place and must be edited, as [`Channel::progress`] returned it.
    pub placeholder: Option<Receipt>,
    /// How often it was tried before; if that is more than 0, it may be there already.
    pub attempts: u32,
}

/// A file to send.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutgoingFile {
    /// Its name for the receiver.
    pub name: String,
    /// Path of the file. See [`OutgoingFile::open`].
    pub path: std::path::PathBuf,
}

impl OutgoingFile {
    /// Opens it to be read. It blocks, so it does not belong on an async thread.
    ///
    /// # Errors
    /// When it is not there, or something else is in its place: a link is not followed, and a pipe not waited for.
    pub fn open(&self) -> io::Result<std::fs::File> {
        let (Some(parent), Some(name)) = (self.path.parent(), self.path.file_name()) else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let directory = Dir::open_ambient_dir(parent, ambient_authority())?;
        let mut options = OpenOptions::new();
        options.read(true).nonblock(true).follow(FollowSymlinks::No);
        let file = directory.open_with(name, &options)?;
        match file.metadata()?.is_file() {
            true => Ok(file.into_std()),
            false => Err(io::Error::other("it is not a regular file")),
        }
    }
}

/// One way to answer a question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Choice {
    /// Label, such as `Allow once`.
    pub label: String,
    /// Token that comes back in [`InboundBody::Answer`] together with `value`: 22 letters and digits, unguessable, and
    /// the same after a restart.
    pub token: String,
    /// The answer.
    pub value: AnswerValue,
}

/// The channel's own name of a message that it sent, in a form that only the channel reads. At most 1 KiB.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Receipt(pub String);

/// Activity in a chat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// A turn runs; said again every 4 s while it does.
    Typing,
    /// The reply so far; at most once a second.
    Draft {
        /// Its text from the beginning.
        text: String,
        /// The message that shows it, as the first call returned it.
        placeholder: Option<Receipt>,
    },
    /// No turn runs any more.
    Idle,
}

/// Why a message was not sent. No secret may be in a text of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// It was not sent, and may be later.
    #[error("it cannot be sent now: {reason}")]
    Retry {
        /// How long to wait, if the channel says so.
        after: Option<Duration>,
        /// Reason of the failure.
        reason: String,
    },
    /// It is not known whether it was sent.
    #[error("it is not known whether it was sent: {reason}")]
    Ambiguous {
        /// Reason of the failure.
        reason: String,
    },
    /// The chat is gone, or the hub was put out of it: nothing can be sent there.
    #[error("the chat no longer takes messages: {reason}")]
    Gone {
        /// Reason of the failure.
        reason: String,
    },
    /// It can never be sent as it is.
    #[error("the channel refuses the message: {reason}")]
    Refused {
        /// Reason of the failure.
        reason: String,
    },
    /// The chat has another id now; it is sent there.
    #[error("the chat is `{to}` now")]
    Migrated {
        /// The new id.
        to: String,
    },
}

/// Why a channel cannot continue. No secret may be in a text of it.
#[derive(Debug, thiserror::Error)]
pub enum ChannelError {
    /// It is not set up correctly: retrying is useless before that is changed.
    #[error("{message}")]
    Setup {
        /// Problem and remedy.
        message: String,
    },
    /// It failed, and is begun again after a pause.
    #[error("{message}")]
    Failed {
        /// Description of the failure.
        message: String,
    },
    /// A received event could not be stored.
    #[error(transparent)]
    Inbox(#[from] InboxError),
}

impl ChannelError {
    /// Returns the error of a channel that cannot listen at its address. An address that another program has, or that this
    /// machine does not have, is not free by itself.
    #[must_use]
    pub fn not_bound(what: &str, listen: SocketAddr, error: &io::Error) -> Self {
        let message = format!("{what} cannot listen at {listen}: {error}");
        match error.kind() {
            io::ErrorKind::AddrInUse => Self::Setup {
                message: format!(
                    "{message}; is another `rondo serve` running? `listen` names another address"
                ),
            },
            io::ErrorKind::AddrNotAvailable | io::ErrorKind::PermissionDenied => {
                Self::Setup { message }
            }
            _ => Self::Failed { message },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Read as _;
    use std::os::unix::fs::symlink;

    #[test]
    fn what_is_in_the_place_of_an_attached_file_is_not_opened() {
        let home = tempfile::tempdir().unwrap();
        // A link above what the hub made is its owner's own, such as to another disk.
        let linked = home.path().join("linked");
        let real = home.path().join("real");
        fs::create_dir(&real).unwrap();
        symlink(&real, &linked).unwrap();
        fs::write(real.join("file"), "hi").unwrap();
        fs::create_dir(real.join("directory")).unwrap();
        symlink(real.join("file"), real.join("link")).unwrap();
        let (owner, pipe) = (rustix::fs::Mode::RUSR, rustix::fs::FileType::Fifo);
        rustix::fs::mknodat(rustix::fs::CWD, real.join("pipe"), pipe, owner, 0).unwrap();
        let open = |name: &str| {
            let file = OutgoingFile {
                name: name.to_owned(),
                path: linked.join(name),
            };
            file.open()
        };
        let mut text = String::new();
        open("file").unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "hi");
        for name in ["gone", "directory", "link", "pipe"] {
            assert!(open(name).is_err(), "{name}");
        }
    }
}
