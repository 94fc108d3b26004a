//! A messenger on a real socket: people write to it, the hub's channel is connected to it, and its log is what people saw.
//!
//! A line is one JSON value. A connection that begins with `"receive"` is sent each event until it acknowledges it; one
//! that begins with a message has it shown, and is told its number.

use async_trait::async_trait;
use rondo_hub::channel::{
    Abilities, Channel, ChannelError, ChatKey, ChatKind, Choice, Delivery, Inbound, InboundBody,
    OutboxKind, Outgoing, Progress, Receipt, SendError, Sender,
};
use rondo_hub::inbox::{Inbox, InboxError};
use rondo_types::AnswerValue;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::tcp::OwnedWriteHalf;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// The channel's name.
pub(crate) const NAME: &str = "wire";
/// The tests' patience: what takes longer has failed.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// How long the channel waits for other events if one could not be taken.
const AGAIN: Duration = Duration::from_millis(100);

/// Prefix of a message that another person wrote.
pub(crate) const FORWARDED: &str = "Fwd: ";

/// What an edit begins with, before the event of the message that it changes.
pub(crate) const EDITED: &str = "Edit ";

/// What the messenger tells of an event.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Event {
    pub(crate) id: String,
    pub(crate) chat: String,
    pub(crate) group: bool,
    pub(crate) sender: String,
    pub(crate) mentioned: bool,
    pub(crate) text: String,
    /// The button that was pressed: its token and answer.
    pub(crate) pressed: Option<(String, AnswerValue)>,
}

/// A message as it is sent.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Sent {
    pub(crate) key: String,
    pub(crate) chat: String,
    pub(crate) kind: OutboxKind,
    pub(crate) text: String,
    pub(crate) reply_to: Option<String>,
    pub(crate) choices: Vec<Choice>,
    /// The message that it replaces.
    pub(crate) edits: Option<u64>,
    /// Set for a draft of text that is still being written.
    pub(crate) is_draft: bool,
    /// How often it was tried before.
    pub(crate) attempts: u32,
}

/// Reply of the messenger to a message.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Said {
    Shown(u64),
    Slow { after_ms: u64 },
    Refused,
    Gone,
    Moved { to: String },
}

/// Fault of the next message of a chat.
#[derive(Debug, Clone)]
pub(crate) enum Fault {
    /// It is shown, and the connection breaks before that is said.
    LosesReceipt,
    /// It is not shown, and the connection breaks.
    Breaks,
    /// It is shown twice.
    Doubles,
    Says(Said),
}

#[derive(Default)]
struct State {
    waiting: BTreeMap<u64, Event>,
    /// Numbers what comes, also again.
    places: u64,
    events: u64,
    /// Shown messages, with times.
    shown: Vec<(Instant, Sent)>,
    keys: HashMap<String, u64>,
    faults: HashMap<String, VecDeque<Fault>>,
    typing: Vec<String>,
    /// Keys of messages that were replaced by another one, and of that.
    wrong_edits: Vec<(String, String)>,
}

/// The messenger. Clones are the same one.
#[derive(Clone)]
pub(crate) struct Messenger {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    changed: Arc<Notify>,
}

impl Messenger {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let messenger = Self {
            address: listener.local_addr().unwrap(),
            state: Arc::default(),
            changed: Arc::default(),
        };
        let serving = messenger.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let serving = serving.clone();
                tokio::spawn(async move { serving.serve(stream).await });
            }
        });
        messenger
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Someone writes in their private chat.
    pub(crate) fn say(&self, sender: &str, text: &str) -> String {
        self.write(sender, sender, text, false)
    }

    /// Someone writes in a chat, which is a group if it has another name than they.
    pub(crate) fn write(&self, chat: &str, sender: &str, text: &str, again: bool) -> String {
        let mut state = self.state();
        state.events += u64::from(!again);
        let event = Event {
            id: format!("e{}", state.events),
            chat: chat.to_owned(),
            group: chat != sender,
            sender: sender.to_owned(),
            mentioned: true,
            text: text.to_owned(),
            pressed: None,
        };
        drop(state);
        self.push(event)
    }

    /// Someone presses a button.
    pub(crate) fn press(&self, chat: &str, sender: &str, choice: &Choice) -> String {
        let mut state = self.state();
        state.events += 1;
        let event = Event {
            id: format!("e{}", state.events),
            chat: chat.to_owned(),
            group: chat != sender,
            sender: sender.to_owned(),
            mentioned: true,
            text: String::new(),
            pressed: Some((choice.token.clone(), choice.value.clone())),
        };
        drop(state);
        self.push(event)
    }

    /// An event comes as it is, perhaps again.
    pub(crate) fn push(&self, event: Event) -> String {
        let mut state = self.state();
        state.places += 1;
        let (place, id) = (state.places, event.id.clone());
        state.waiting.insert(place, event);
        drop(state);
        self.changed.notify_waiters();
        id
    }

    pub(crate) fn fault(&self, chat: &str, fault: Fault) {
        let mut state = self.state();
        state
            .faults
            .entry(chat.to_owned())
            .or_default()
            .push_back(fault);
    }

    /// Removes all faults.
    pub(crate) fn faults_are_over(&self) {
        self.state().faults.clear();
    }

    /// Messages that people saw in a chat.
    pub(crate) fn seen(&self, chat: &str) -> Vec<Sent> {
        let mut seen = self.all_seen();
        seen.retain(|it| it.chat == chat);
        seen
    }

    pub(crate) fn all_seen(&self) -> Vec<Sent> {
        self.all_seen_at().into_iter().map(|it| it.1).collect()
    }

    /// Messages that people saw, with times.
    pub(crate) fn all_seen_at(&self) -> Vec<(Instant, Sent)> {
        self.state().shown.clone()
    }

    /// The texts that people saw in a chat.
    pub(crate) fn texts(&self, chat: &str) -> Vec<String> {
        self.seen(chat).into_iter().map(|it| it.text).collect()
    }

    pub(crate) fn wrong_edits(&self) -> Vec<(String, String)> {
        self.state().wrong_edits.clone()
    }

    pub(crate) fn typing(&self) -> Vec<String> {
        self.state().typing.clone()
    }

    /// Waits until so many messages were seen in a chat.
    pub(crate) async fn until(&self, chat: &str, count: usize) -> Vec<Sent> {
        self.until_all(|messenger| messenger.seen(chat).len() >= count)
            .await;
        self.seen(chat)
    }

    /// Waits until something holds of the messenger.
    pub(crate) async fn until_all(&self, holds: impl Fn(&Self) -> bool) {
        let waited = tokio::time::timeout(LONG, async {
            loop {
                let changed = self.changed.notified();
                tokio::pin!(changed);
                changed.as_mut().enable();
                if holds(self) {
                    return;
                }
                changed.await;
            }
        });
        if waited.await.is_err() {
            panic!("what was seen: {:#?}", self.all_seen());
        }
    }

    /// Waits until every event was acknowledged.
    pub(crate) async fn until_taken(&self) {
        self.until_all(|it| it.state().waiting.is_empty()).await;
    }

    async fn serve(&self, stream: TcpStream) {
        let (read, mut write) = stream.into_split();
        let mut lines = BufReader::new(read).lines();
        let Ok(Some(first)) = lines.next_line().await else {
            return;
        };
        if first == "\"receive\"" {
            let mut sent = Vec::new();
            loop {
                let changed = self.changed.notified();
                tokio::pin!(changed);
                changed.as_mut().enable();
                let new: Vec<(u64, Event)> = {
                    let state = self.state();
                    let new = state
                        .waiting
                        .iter()
                        .filter(|(place, _)| !sent.contains(*place));
                    new.map(|(place, event)| (*place, event.clone())).collect()
                };
                for (place, event) in new {
                    sent.push(place);
                    let line = serde_json::to_string(&(place, event)).unwrap();
                    if put(&mut write, &line).await.is_err() {
                        return;
                    }
                }
                tokio::select! {
                    () = changed => {}
                    line = lines.next_line() => {
                        let Ok(Some(line)) = line else {
                            return;
                        };
                        let place: u64 = serde_json::from_str(&line).unwrap();
                        self.state().waiting.remove(&place);
                        self.changed.notify_waiters();
                    }
                }
            }
        }
        if let Ok(chat) = serde_json::from_str::<String>(&first) {
            self.state().typing.push(chat);
            self.changed.notify_waiters();
            return;
        }
        let message: Sent = serde_json::from_str(&first).unwrap();
        if let Some(said) = self.show(message) {
            let _ = put(&mut write, &serde_json::to_string(&said).unwrap()).await;
        }
    }

    /// Shows a message, and says what its sender is told; nothing if the connection breaks.
    fn show(&self, message: Sent) -> Option<Said> {
        let mut state = self.state();
        let fault = state
            .faults
            .get_mut(&message.chat)
            .and_then(VecDeque::pop_front);
        match fault {
            Some(Fault::Breaks) => return None,
            Some(Fault::Says(said)) => return Some(said),
            Some(Fault::Doubles) => state.shown.push((Instant::now(), message.clone())),
            Some(Fault::LosesReceipt) | None => {}
        }
        let number = match (state.keys.get(&message.key), message.edits) {
            // A messenger that knows keys shows a message once.
            (Some(number), None) if message.key.starts_with("key:") => *number,
            (_, Some(number)) => {
                let place = usize::try_from(number).unwrap();
                let replaced = &state.shown[place].1;
                if !replaced.is_draft
                    && replaced.key != message.key
                    && !closes(&message.key, &replaced.key)
                {
                    let keys = (replaced.key.clone(), message.key.clone());
                    state.wrong_edits.push(keys);
                }
                state.shown[place] = (Instant::now(), message);
                number
            }
            _ => {
                let number = state.shown.len() as u64;
                state.keys.insert(message.key.clone(), number);
                state.shown.push((Instant::now(), message));
                number
            }
        };
        drop(state);
        self.changed.notify_waiters();
        let is_told = !matches!(fault, Some(Fault::LosesReceipt));
        is_told.then_some(Said::Shown(number))
    }
}

/// Returns whether a message says that a question is no longer open, in place of the one that asked it.
fn closes(key: &str, replaced: &str) -> bool {
    let question = replaced.strip_prefix("question:");
    let token = question.map(|it| it.split_once(':').map_or(it, |it| it.0));
    token.is_some_and(|token| key.starts_with(&format!("answered:{token}/")))
}

async fn put(write: &mut OwnedWriteHalf, line: &str) -> std::io::Result<()> {
    write.write_all(line.as_bytes()).await?;
    write.write_all(b"\n").await
}

/// The hub's side of the messenger.
pub(crate) struct WireChannel {
    pub(crate) messenger: SocketAddr,
    pub(crate) delivery: Delivery,
}

#[async_trait]
impl Channel for WireChannel {
    fn name(&self) -> &str {
        NAME
    }

    fn abilities(&self) -> Abilities {
        Abilities {
            delivery: self.delivery,
            drafts: self.delivery == Delivery::Edit,
            typing: true,
            buttons: true,
        }
    }

    async fn receive(&self, inbox: Inbox, stop: CancellationToken) -> Result<(), ChannelError> {
        let failed = |err: std::io::Error| ChannelError::Failed {
            message: err.to_string(),
        };
        let stream = TcpStream::connect(self.messenger).await.map_err(failed)?;
        let (read, mut write) = stream.into_split();
        put(&mut write, "\"receive\"").await.map_err(failed)?;
        let mut lines = BufReader::new(read).lines();
        let (mut refused, mut behind) = (None, HashSet::new());
        loop {
            let line = tokio::select! {
                line = lines.next_line() => line.map_err(failed)?,
                () = stop.cancelled() => return Ok(()),
                // The next connection is sent what this one did not acknowledge.
                () = sleep(AGAIN), if refused.is_some() => None,
            };
            let Some(line) = line else {
                return refused.map_or(Ok(()), Err);
            };
            let (place, event): (u64, Event) = serde_json::from_str(&line).unwrap();
            let chat = event.chat.clone();
            // What comes behind another one that is not taken comes again behind it.
            if behind.contains(&chat) {
                continue;
            }
            match inbox.push(inbound(event)).await {
                Ok(_) | Err(InboxError::Full | InboxError::Malformed { .. }) => {
                    put(&mut write, &place.to_string()).await.map_err(failed)?;
                }
                Err(error) => {
                    behind.insert(chat);
                    refused = Some(error.into());
                }
            }
        }
    }

    async fn send(&self, message: &Outgoing) -> Result<Receipt, SendError> {
        let unclear = |err: std::io::Error| SendError::Ambiguous {
            reason: err.to_string(),
        };
        let not_yet = |err: std::io::Error| SendError::Retry {
            after: None,
            reason: err.to_string(),
        };
        let edits = message
            .placeholder
            .as_ref()
            .and_then(|it| it.0.parse().ok());
        let key = match self.delivery {
            Delivery::Key => format!("key:{}", message.key),
            Delivery::Edit | Delivery::AtLeastOnce => message.key.clone(),
        };
        let sent = Sent {
            key,
            chat: message.chat.chat_id.clone(),
            kind: message.kind,
            text: message.text.clone(),
            reply_to: message.reply_to.clone(),
            choices: message.choices.clone(),
            edits,
            is_draft: false,
            attempts: message.attempts,
        };
        let stream = TcpStream::connect(self.messenger).await.map_err(not_yet)?;
        match show(stream, &sent).await.map_err(unclear)? {
            Said::Shown(number) => Ok(Receipt(number.to_string())),
            Said::Slow { after_ms } => Err(SendError::Retry {
                after: Some(Duration::from_millis(after_ms)),
                reason: "slow down".to_owned(),
            }),
            Said::Refused => Err(SendError::Refused {
                reason: "it says nothing".to_owned(),
            }),
            Said::Gone => Err(SendError::Gone {
                reason: "blocked".to_owned(),
            }),
            Said::Moved { to } => Err(SendError::Migrated { to }),
        }
    }

    async fn progress(&self, chat: &ChatKey, progress: Progress) -> Option<Receipt> {
        let stream = TcpStream::connect(self.messenger).await.ok()?;
        match progress {
            Progress::Typing => {
                let (_, mut write) = stream.into_split();
                let line = serde_json::to_string(&chat.chat_id).unwrap();
                put(&mut write, &line).await.ok()?;
                None
            }
            Progress::Draft { text, placeholder } => {
                let draft = Sent {
                    key: "draft".to_owned(),
                    chat: chat.chat_id.clone(),
                    kind: OutboxKind::Message,
                    text,
                    reply_to: None,
                    choices: Vec::new(),
                    edits: placeholder.and_then(|it| it.0.parse().ok()),
                    is_draft: true,
                    attempts: 0,
                };
                match show(stream, &draft).await.ok()? {
                    Said::Shown(number) => Some(Receipt(number.to_string())),
                    Said::Slow { .. } | Said::Refused | Said::Gone | Said::Moved { .. } => None,
                }
            }
            Progress::Idle => None,
        }
    }
}

/// Makes the messenger show something, and returns its reply.
async fn show(stream: TcpStream, message: &Sent) -> std::io::Result<Said> {
    let (read, mut write) = stream.into_split();
    put(&mut write, &serde_json::to_string(message).unwrap()).await?;
    let line = BufReader::new(read).lines().next_line().await?;
    let line = line.ok_or(std::io::ErrorKind::UnexpectedEof)?;
    Ok(serde_json::from_str(&line).unwrap())
}

fn inbound(mut event: Event) -> Inbound {
    let edited = event.text.strip_prefix(EDITED);
    let edited = edited.and_then(|it| it.split_once(": "));
    let edited = edited.map(|(of, text)| (of.to_owned(), text.to_owned()));
    let is_edit = edited.is_some();
    let message = match edited {
        Some((of, text)) => {
            event.text = text;
            of
        }
        None => event.id.clone(),
    };
    Inbound {
        message_id: Some(format!("m-{message}")),
        is_edit,
        event_id: event.id,
        chat: ChatKey {
            channel: NAME.to_owned(),
            account: String::new(),
            chat_id: event.chat,
            topic: None,
        },
        chat_kind: match event.group {
            true => ChatKind::Group,
            false => ChatKind::Private,
        },
        sender: Sender {
            name: format!("{} [x]\n", event.sender),
            id: event.sender,
            is_bot: false,
        },
        mentioned: event.mentioned,
        body: match event.pressed {
            Some((token, value)) => InboundBody::Answer { token, value },
            None => InboundBody::Message {
                by_others: event.text.starts_with(FORWARDED),
                text: event.text,
                images: Vec::new(),
                files: Vec::new(),
                notes: Vec::new(),
            },
        },
        at_ms: 1_764_039_600_000,
    }
}
