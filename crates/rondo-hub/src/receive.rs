//! Receives events from channels: identifies the sender, and stores the consequences in one transaction with the event.

use crate::attachments;
use crate::authorise::{Action, authorise};
use crate::channel::{ChatKind, Inbound, InboundBody};
use crate::chats::{self, Chat};
use crate::commands::{self, Command};
use crate::delivery;
use crate::host::OWNER_CHATS;
use crate::hub::Core;
use crate::inbox::{InboxError, InboxResult, Receiver};
use crate::outgoing;
use crate::questions;
use crate::shortage::shortage;
use crate::undelivered;
use crate::users::{Actor, Role, identity};
use async_trait::async_trait;
use rondo_core::ports::{HostCommit, HostRow, Mail, MailBody, MailboxError, NewMail};
use rondo_core::session::{Delivery, TicketId};
use rondo_runtime::service::SessionHandle;
use rondo_types::units::counted;
use rondo_types::{
    AnswerValue, Media, Message, Part, QuestionKind, Role as MessageRole, SessionId, TimeMs,
};

use std::io;

/// Bytes of an event's id.
const EVENT_ID_BYTES_MAX: usize = 200;
/// Bytes of each other name of an event.
const NAME_BYTES_MAX: usize = 200;
/// Bytes of a message's text.
const TEXT_BYTES_MAX: usize = 256 << 10;
/// Messages of a chat that may wait to be sent before no more is taken from it.
const UNSENT_MAX: u64 = 256;
/// What a person is told who edits a message that was read.
const READ_BEFORE: &str =
    "I read your message as it was before this edit. Send what you changed as a new message.";
/// Characters of a sender's name that a model reads.
const SHOWN_NAME_CHARS_MAX: usize = 64;
/// Separator of the event and the message in the key of mail.
const MESSAGE_MARK: char = '#';

/// An event, and who it is from.
pub(crate) struct Event<'a> {
    pub(crate) inbound: &'a Inbound,
    /// Names it among all events of the hub.
    pub(crate) key: String,
    pub(crate) chat: Chat,
    pub(crate) actor: Actor,
    /// How many messages could not be sent to the chat before.
    missed: u32,
}

/// Returns the message that a row of mail was, as its channel names it.
pub(crate) fn message_id(key: &str) -> Option<&str> {
    key.rsplit_once(MESSAGE_MARK)
        .map(|it| it.1)
        .filter(|it| !it.is_empty())
}

#[async_trait]
impl Receiver for Core {
    async fn admits(&self, event: &Inbound) -> bool {
        let is_meant = match &event.body {
            InboundBody::Message { text, .. } => event.mentioned || Command::parse(text).is_some(),
            InboundBody::Answer { .. } | InboundBody::Migrated { .. } => true,
        };
        if !is_meant || check(event).is_err() || self.drain.is_cancelled() {
            return false;
        }
        let known = self.chats.find(&event.chat).await.ok().flatten();
        let actor = self.users.who(&event.chat.channel, &event.sender).await;
        let actor = actor.ok().flatten();
        let actor = actor.or_else(|| self.stranger(event, known.as_ref()));
        actor.is_some_and(|it| authorise(&it, Action::Speak, event.chat_kind).is_ok())
    }

    async fn take(&self, event: Inbound) -> Result<InboxResult, InboxError> {
        check(&event)?;
        if self.drain.is_cancelled() {
            let reason = "the hub is stopping".to_owned();
            return Err(InboxError::Later { reason });
        }
        let taken = match self.sorted(&event).await {
            Ok(taken) => taken,
            Err(error) => return Err(self.not_taken(&event, error).await),
        };
        match taken {
            InboxResult::Accepted => self.metrics.received(),
            InboxResult::Duplicate => self.metrics.duplicate(),
            InboxResult::Dropped => self.metrics.denied(),
        }
        Ok(taken)
    }

    fn receives(&self, channel: &str) {
        self.states.receives(channel);
    }

    fn receives_nothing(&self, channel: &str, reason: &str) {
        self.states.fails(channel, reason, false);
    }
}

impl Core {
    /// Decides about an event that was not taken. If that is for want of room its sender is told: what cannot be
    /// noted is not answered for a long time, however often the channel hands it in.
    async fn not_taken(&self, event: &Inbound, error: MailboxError) -> InboxError {
        let is_full = matches!(
            error,
            MailboxError::TooLong { .. }
                | MailboxError::TooMany { .. }
                | MailboxError::TooMuch { .. }
        );
        if !is_full && self.try_storage().await.is_ok() {
            return self.not_taken_alone(event, &error).await;
        }
        let reason = match shortage(&error) {
            Some(reason) => reason.to_owned(),
            None => error.to_string(),
        };
        if shortage(&error).is_some() && self.admits(event).await {
            let text = format!(
                "Your message cannot be accepted now: {reason}. It will be accepted once that is fixed. Send it again if you \
                 hear nothing within a day."
            );
            self.tell_unnoted(&event.chat, text);
        }
        match error {
            MailboxError::TooLong { .. } => InboxError::Malformed { reason },
            MailboxError::TooMany { .. } | MailboxError::TooMuch { .. } => InboxError::Full,
            _ => InboxError::Later { reason },
        }
    }

    async fn sorted(&self, inbound: &Inbound) -> Result<InboxResult, MailboxError> {
        let key = event_key(inbound);
        if let InboundBody::Migrated { chat_id } = &inbound.body {
            delivery::migrate(&*self.store, &*self.outbox, &inbound.chat, chat_id.clone()).await?;
            return Ok(InboxResult::Accepted);
        }
        let known = self.chats.find(&inbound.chat).await?;
        let actor = self
            .users
            .who(&inbound.chat.channel, &inbound.sender)
            .await?;
        let Some(actor) = actor.or_else(|| self.stranger(inbound, known.as_ref())) else {
            return self.unknown(inbound, key).await;
        };
        let mut chat = known.unwrap_or_else(|| Chat::new(inbound.chat.clone(), inbound.chat_kind));
        // A chat's readers are those that its channel names now.
        chat.kind = inbound.chat_kind;
        let missed = chats::missed(&*self.store, &chat.key).await?;
        let event = Event {
            inbound,
            key,
            chat,
            actor,
            missed,
        };
        match &inbound.body {
            InboundBody::Answer { token, value } => self.answered(&event, token, value).await,
            InboundBody::Message { text, .. } if inbound.is_edit => self.edited(&event, text).await,
            InboundBody::Message { text, .. } => match Command::parse(text) {
                Some(command) => commands::run(self, &event, &command).await,
                None if inbound.mentioned => self.said(&event).await,
                None => Ok(InboxResult::Dropped),
            },
            InboundBody::Migrated { .. } => Ok(InboxResult::Accepted),
        }
    }

    /// Returns a stranger as a guest, in a group in which a user has spoken.
    fn stranger(&self, inbound: &Inbound, known: Option<&Chat>) -> Option<Actor> {
        let may_speak = known.is_some() && self.lets_guests_in(inbound.chat_kind);
        (may_speak && !inbound.sender.is_bot).then(|| {
            let id = identity(&inbound.chat.channel, &inbound.sender);
            Actor {
                user: id.clone(),
                id,
                role: Role::Guest,
            }
        })
    }

    /// Tells a stranger their id, once.
    async fn unknown(&self, inbound: &Inbound, key: String) -> Result<InboxResult, MailboxError> {
        if inbound.chat_kind == ChatKind::Private && !inbound.sender.is_bot {
            let id = identity(&inbound.chat.channel, &inbound.sender);
            let text = format!(
                "I do not know you. Your id is `{id}`: an owner of this hub can add you with `rondo users add NAME --id {id}`."
            );
            let commit = HostCommit {
                event: Some(key),
                outbox: vec![outgoing::notice(
                    format!("stranger:{id}"),
                    &inbound.chat,
                    text,
                )],
                ..HostCommit::default()
            };
            self.store.commit(commit).await?;
        }
        Ok(InboxResult::Dropped)
    }

    async fn said(&self, event: &Event<'_>) -> Result<InboxResult, MailboxError> {
        if let Err(denied) = authorise(&event.actor, Action::Speak, event.chat.kind) {
            return self.tell(event, format!("Not done: {denied}.")).await;
        }
        if let Some(notes) = notes_alone(&event.inbound.body) {
            return self.tell(event, notes).await;
        }
        let chat = &event.inbound.chat;
        if self
            .outbox
            .open_in_chat(&chat.channel, &chat.text())
            .await?
            >= UNSENT_MAX
        {
            let max = usize::try_from(UNSENT_MAX).unwrap_or(usize::MAX);
            return Err(MailboxError::TooMany { max });
        }
        let session = event.chat.session();
        let message = self.message(event, &session).await?;
        let delivery = match self.steers {
            // A message joins the turn of its own sender alone: another one's tools are not theirs.
            true => Delivery::SteerOwn,
            false => Delivery::Queue,
        };
        let mail = NewMail {
            session: session.clone(),
            key: mail_key(event),
            actor: event.actor.id.clone(),
            at_ms: TimeMs(event.inbound.at_ms),
            body: MailBody::Message { message, delivery },
        };
        let mut commit = HostCommit {
            event: Some(event.key.clone()),
            mail: vec![mail],
            rows: event.rows(),
            ..HostCommit::default()
        };
        event.tell_missed(&mut commit);
        match self.store.commit(commit).await {
            Ok(true) => {
                self.wake(&session);
                Ok(InboxResult::Accepted)
            }
            Ok(false) => {
                // The process may have ended before it looked at it.
                self.wake(&session);
                Ok(InboxResult::Duplicate)
            }
            Err(
                error @ (MailboxError::TooMany { .. }
                | MailboxError::TooMuch { .. }
                | MailboxError::TooLong { .. }),
            ) => {
                self.tell(event, format!("Your message was not accepted: {error}."))
                    .await
            }
            Err(error) => Err(error),
        }
    }

    /// Has a message that waits say what it says since it was edited. One that was read stays as it was.
    async fn edited(&self, event: &Event<'_>, text: &str) -> Result<InboxResult, MailboxError> {
        if authorise(&event.actor, Action::Speak, event.chat.kind).is_err() {
            return Ok(InboxResult::Dropped);
        }
        let session = event.chat.session();
        let handle = self.session(&session);
        let waiting = handle.store().list(&session).await?;
        let edited = event.inbound.message_id.as_deref();
        let is_edited = |it: &&Mail| {
            let is_of_sender = it.actor == event.actor.id && it.body.is_message();
            is_of_sender && edited.is_some() && message_id(&it.key) == edited
        };
        if let Some(mail) = waiting.iter().find(is_edited) {
            let message = self.message(event, &session).await?;
            let edit = handle.edit(&TicketId(mail.key.clone()), message).await;
            if edit.map_err(|error| MailboxError::Io(io::Error::other(error)))? {
                return self.tell(event, String::new()).await;
            }
        }
        let is_private = event.chat.kind == ChatKind::Private;
        if !is_private || says(&handle, &waiting, text).await {
            return Ok(InboxResult::Dropped);
        }
        self.tell(event, READ_BEFORE.to_owned()).await
    }

    async fn message(
        &self,
        event: &Event<'_>,
        session: &SessionId,
    ) -> Result<Message, MailboxError> {
        let InboundBody::Message {
            text,
            images,
            files,
            notes,
            by_others,
        } = &event.inbound.body
        else {
            return Ok(Message::user(""));
        };
        let mut lines = vec![heading(event.inbound)];
        let kept = attachments::keep_all(self.directory_of(session), &event.key, files).await;
        for name in kept.map_err(MailboxError::Io)? {
            lines.push(format!("[the file `{name}` came with this message]"));
        }
        lines.extend(notes.iter().map(|it| format!("[{}]", one_line(it, 200))));
        lines.push(text.clone());
        let (images, malformed): (Vec<_>, Vec<_>) =
            images.iter().partition(|it| Media::is_well_formed(it));
        if !malformed.is_empty() {
            let count = counted(malformed.len() as u64, "image");
            lines.insert(1, format!("[{count} of this message cannot be read]"));
        }
        let mut message = Message::user(lines.join("\n"));
        message
            .parts
            .extend(images.into_iter().cloned().map(Part::Media));
        message.from_outside = *by_others || is_outsider(&event.actor, event.chat.kind);
        Ok(message)
    }

    /// Answers an event with a notice, once.
    pub(crate) async fn tell(
        &self,
        event: &Event<'_>,
        text: String,
    ) -> Result<InboxResult, MailboxError> {
        self.done(event, HostCommit::default(), text).await
    }

    /// Does what an event led to, and answers it with a notice, once.
    pub(crate) async fn done(
        &self,
        event: &Event<'_>,
        commit: HostCommit,
        text: String,
    ) -> Result<InboxResult, MailboxError> {
        let mut commit = commit;
        commit.event = Some(event.key.clone());
        let key = format!("notice:{}", event.key);
        if !text.is_empty() {
            commit
                .outbox
                .push(outgoing::notice(key, &event.inbound.chat, text));
        }
        event.tell_missed(&mut commit);
        Ok(match self.store.commit(commit).await? {
            true => InboxResult::Accepted,
            false => InboxResult::Duplicate,
        })
    }

    async fn answered(
        &self,
        event: &Event<'_>,
        token: &str,
        value: &AnswerValue,
    ) -> Result<InboxResult, MailboxError> {
        let action = match value {
            AnswerValue::Deny { .. } => Action::Deny,
            AnswerValue::Approve | AnswerValue::Value { .. } => Action::Approve,
        };
        if let Err(denied) = authorise(&event.actor, action, event.chat.kind) {
            return self.denied(event, format!("Not done: {denied}.")).await;
        }
        let found = questions::of_token(&*self.store, token).await?;
        let Some((session, asked, remember)) = found else {
            let text = "That question is no longer open.".to_owned();
            return self.tell(event, text).await;
        };
        // Others may refuse what is asked in their own chat alone.
        if event.actor.role < Role::Owner && session != event.chat.session() {
            return self
                .denied(event, "Not done: it was asked elsewhere.".to_owned())
                .await;
        }
        let asked = questions::Answering {
            asked: &[asked],
            value: value.clone(),
            remembers: remember.is_some(),
        };
        self.answer(event, &session, asked).await
    }

    /// Reports that an answer does not count. Its question stays open, and its channel is told so.
    async fn denied(&self, event: &Event<'_>, text: String) -> Result<InboxResult, MailboxError> {
        self.tell(event, text).await.map(|_| InboxResult::Dropped)
    }

    /// Answers questions of a session.
    pub(crate) async fn answer(
        &self,
        event: &Event<'_>,
        session: &SessionId,
        answering: questions::Answering<'_>,
    ) -> Result<InboxResult, MailboxError> {
        let at = TimeMs(event.inbound.at_ms);
        let asked = answering.asked;
        let mails = asked.iter();
        let mails = mails.map(|it| {
            let value = answering.value.clone();
            let remember = it.offer.clone().filter(|_| answering.remembers);
            it.answered(session, &event.actor.id, (value, remember), at)
        });
        let mut commit = HostCommit {
            mail: mails.collect(),
            ..HostCommit::default()
        };
        // No turn's records say that it was answered.
        let of_folder = asked.iter().filter(|it| it.kind == QuestionKind::Trust);
        let of_folder: Vec<_> = of_folder.cloned().collect();
        if !of_folder.is_empty() {
            let mut left = questions::of_session(&*self.store, session).await?;
            left.retain(|it| !of_folder.contains(it));
            commit
                .rows
                .extend(questions::forget_some(session, &of_folder, &left));
        }
        let is_pressed = matches!(event.inbound.body, InboundBody::Answer { .. });
        let pressed_in = Some(&event.inbound.chat).filter(|_| is_pressed);
        let how = answering.in_words(&event.actor.user);
        for it in asked {
            questions::settle(&*self.store, it, pressed_in, &how, &mut commit).await?;
        }
        let taken = self.done(event, commit, String::new()).await?;
        self.wake(session);
        Ok(taken)
    }
}

impl Event<'_> {
    /// Tells the chat what it missed, before anything else is said: someone has written there, so it takes messages.
    fn tell_missed(&self, commit: &mut HostCommit) {
        if self.missed > 0 {
            let key = &self.chat.key;
            let notice = undelivered::missed(key, self.missed, &self.key);
            commit.outbox.insert(0, notice);
            commit.rows.push(chats::missed_row(key, 0));
        }
    }

    /// Returns the rows of the chat.
    pub(crate) fn rows(&self) -> Vec<HostRow> {
        let mut rows = self.chat.rows();
        if self.actor.role == Role::Owner && self.chat.kind == ChatKind::Private {
            let key = self.chat.key.text();
            rows.push(HostRow::set(OWNER_CHATS, &self.actor.user, key));
        }
        rows
    }
}

/// Returns whether what someone says may be meant to lead astray who speaks after them in the same chat, and may do more.
fn is_outsider(actor: &Actor, kind: ChatKind) -> bool {
    actor.role == Role::Guest || (kind == ChatKind::Group && actor.role < Role::Owner)
}

/// Returns whether a message of a session, read or not, says the same: a messenger also reports as edits what changes no
/// text, such as a preview of a link that it adds.
async fn says(handle: &SessionHandle, waiting: &[Mail], text: &str) -> bool {
    let end = format!("\n{text}");
    let is_same = |message: &Message| message.text().ends_with(&end);
    let in_mail = waiting.iter().any(|it| match &it.body {
        MailBody::Message { message, .. } => is_same(message),
        MailBody::Answer { .. } | MailBody::Cancel => false,
    });
    let said = handle.messages().await.unwrap_or_default();
    let mut users = said.iter().filter(|it| it.role == MessageRole::User);
    in_mail || users.any(|it| is_same(it))
}

/// Returns what the sender is told of a message in which nothing is said, such as one of a kind that is not understood.
fn notes_alone(body: &InboundBody) -> Option<String> {
    match body {
        InboundBody::Message {
            text,
            images,
            files,
            notes,
            by_others: _,
        } if text.trim().is_empty() && images.is_empty() && files.is_empty() => {
            Some(notes.join("\n")).filter(|it| !it.is_empty())
        }
        _ => None,
    }
}

pub(crate) fn event_key(inbound: &Inbound) -> String {
    let chat = &inbound.chat;
    format!("{}@{}:{}", chat.channel, chat.account, inbound.event_id)
}

fn mail_key(event: &Event<'_>) -> String {
    let message = event.inbound.message_id.as_deref().unwrap_or_default();
    let message = message.replace(MESSAGE_MARK, "");
    // An id that would not fit goes without: it is for a reply to that message alone.
    match event.inbound.event_id.len() + message.len() < EVENT_ID_BYTES_MAX {
        true => format!("{}{MESSAGE_MARK}{message}", event.inbound.event_id),
        false => format!("{}{MESSAGE_MARK}", event.inbound.event_id),
    }
}

fn check(event: &Inbound) -> Result<(), InboxError> {
    let malformed = |reason: &str| {
        Err(InboxError::Malformed {
            reason: reason.to_owned(),
        })
    };
    if event.event_id.is_empty() || event.event_id.len() > EVENT_ID_BYTES_MAX {
        return malformed("its id must have 1 to 200 bytes");
    }
    let chat = &event.chat;
    let names = [
        &chat.channel,
        &chat.account,
        &chat.chat_id,
        &event.sender.id,
    ];
    let topic = chat.topic.iter();
    if names
        .into_iter()
        .chain(topic)
        .any(|it| it.len() > NAME_BYTES_MAX)
    {
        return malformed("a name in it has more than 200 bytes");
    }
    match &event.body {
        InboundBody::Message { text, .. } if text.len() > TEXT_BYTES_MAX => {
            malformed("its text has more than 256 KiB")
        }
        _ => Ok(()),
    }
}

/// Heading of a message: it carries the clock and the sender, so that the earlier text stays the same from turn to
/// turn.
fn heading(inbound: &Inbound) -> String {
    let at = rondo_runtime::service::local_time(TimeMs(inbound.at_ms));
    match inbound.chat_kind {
        ChatKind::Private => format!("[{at}]"),
        ChatKind::Group => {
            let name = one_line(&inbound.sender.name, SHOWN_NAME_CHARS_MAX);
            format!(
                "[{at}, from {name} ({})]",
                one_line(&inbound.sender.id, SHOWN_NAME_CHARS_MAX)
            )
        }
    }
}

/// Names are chosen by people: they must not look like another line.
fn one_line(text: &str, chars_max: usize) -> String {
    let plain = |c: char| match c {
        '[' | ']' | '`' => '\'',
        c if c.is_control() || c == '\u{2028}' || c == '\u{2029}' => ' ',
        c => c,
    };
    text.chars().take(chars_max).map(plain).collect()
}
