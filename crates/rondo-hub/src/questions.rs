//! Questions of turns in chats: how they are asked, and how an answer finds its question, also after a restart.

use crate::channel::{ChatKey, Choice, Receipt};
use crate::chats;
use crate::outgoing::{self, Details};
use data_encoding::HEXLOWER;
use rondo_core::ports::{
    HostCommit, HostRow, HostStore, MailBody, MailboxError, NewMail, OutboxEntry, OutboxKind,
};
use rondo_core::shown;
use rondo_runtime::form::Form;
use rondo_types::text::shortened;
use rondo_types::{
    Answer, AnswerValue, CallId, Grant, Question, QuestionId, QuestionKind, SessionId, TimeMs,
    TurnId,
};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// The table of sessions' questions, by session.
const OF_SESSION: &str = "questions";
/// The table of the sessions of tokens.
const TOKENS: &str = "question_token";
/// The table of when sessions' questions expire, by that and the session.
const DUE: &str = "question_due";
/// Rows of it that are read at once.
const DUE_READ: usize = 64;
/// The table of the messages that ask, by the question's token and the chat.
const COPIES: &str = "question_copy";
/// Separator between them.
const COPY_MARK: char = '/';
/// Copies of a question that are looked at.
const COPIES_MAX: usize = 64;
/// Copies of all questions that are read at once.
const COPIES_READ: usize = 1000;
/// Characters of what is offered.
const OFFER_CHARS_MAX: usize = 80;
/// Digits of a token.
const TOKEN_DIGITS: usize = 22;

/// A question that waits for an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChatQuestion {
    /// Token that a button sends back.
    pub token: String,
    /// The question.
    pub id: QuestionId,
    /// Hash of the question.
    pub hash: String,
    /// Text of the question.
    pub prompt: String,
    /// When it expires.
    pub expires: Option<TimeMs>,
    /// Kind of answer that it takes.
    #[serde(default = "about_call")]
    pub kind: QuestionKind,
    /// Grant for the rest of the session that a yes can also give.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offer: Option<Grant>,
}

fn about_call() -> QuestionKind {
    QuestionKind::Approval
}

impl ChatQuestion {
    fn of(session: &SessionId, question: &Question) -> Self {
        // The widest of them, but for those that change the user's settings.
        let offers = question.offers.iter().rev();
        let offer = offers.clone().find(|it| !it.scope.is_setting()).cloned();
        Self {
            token: token_of(&[session.as_str(), &question.id.0, &question.hash]),
            offer,
            id: question.id.clone(),
            hash: question.hash.clone(),
            prompt: question.prompt.clone(),
            expires: question.expires,
            kind: question.kind.clone(),
        }
    }

    /// Returns the token of the answer that also allows what is offered for the rest of the session.
    #[must_use]
    pub fn always_token(&self) -> String {
        token_of(&[&self.token, "always"])
    }

    /// Returns whether it is a question of this call, which runs.
    #[must_use]
    pub fn is_of_running(&self, call: &CallId) -> bool {
        let number = self.id.0.strip_prefix(call.as_str());
        number.is_some_and(|it| it.starts_with('/'))
    }

    /// Returns the words of the message that asks. `number` is its place among several.
    fn text(&self, number: Option<usize>) -> String {
        let number = number.map_or_else(String::new, |it| format!(" {it}"));
        let always = self.offer.as_ref().map_or_else(String::new, |offer| {
            let name = shortened(&shown::line(&offer.to_string()), OFFER_CHARS_MAX);
            format!(" Always, or /approve{number} always, allows {name} until /new.")
        });
        let how = format!(
            "Answer with a button, or with /approve{number} or /deny{number} REASON.{always}"
        );
        let prompt = &self.prompt;
        match &self.kind {
            QuestionKind::Approval | QuestionKind::Repeat => {
                format!("May this run?\n\n{prompt}\n\n{how}")
            }
            QuestionKind::Permission | QuestionKind::Budget | QuestionKind::Trust => {
                format!("{prompt}\n\n{how}")
            }
            QuestionKind::Input { schema } => {
                let fields = Form::of(schema).map(|it| it.fields());
                let fields = fields.unwrap_or_else(|| schema.to_string());
                format!(
                    "{prompt}\n\n{fields}\n\nAnswer with /answer and one line for each, or with /deny{number} REASON."
                )
            }
        }
    }

    /// Returns someone's answer, and what it allows from then on. Under its key a second one counts for nothing.
    #[must_use]
    pub fn answered(
        &self,
        session: &SessionId,
        actor: &str,
        (value, remember): (AnswerValue, Option<Grant>),
        at_ms: TimeMs,
    ) -> NewMail {
        let answer = Answer {
            question: self.id.clone(),
            hash: self.hash.clone(),
            actor: actor.to_owned(),
            value,
            remember,
        };
        NewMail {
            session: session.clone(),
            key: format!("answer-{}", self.token),
            actor: actor.to_owned(),
            at_ms,
            body: MailBody::Answer { answer },
        }
    }
}

fn token_of(parts: &[&str]) -> String {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update(part.as_bytes());
        digest.update([0]);
    }
    let mut token = HEXLOWER.encode(&digest.finalize());
    token.truncate(TOKEN_DIGITS);
    token
}

/// Sender of the questions, and their receivers.
pub struct Asker<'a> {
    /// The chat of the turn.
    pub chat: &'a ChatKey,
    /// Whose turn it is, as owners elsewhere read it.
    pub name: &'a str,
    /// The private chats of owners, who are asked too.
    pub owners: &'a [ChatKey],
}

/// An answer to some questions.
pub struct Answering<'a> {
    /// The questions.
    pub asked: &'a [ChatQuestion],
    /// The answer.
    pub value: AnswerValue,
    /// Also gives the offered grant for the rest of the session.
    pub remembers: bool,
}

impl Answering<'_> {
    /// Returns how they were answered, for other copies of them.
    pub(crate) fn in_words(&self, user: &str) -> String {
        let how = match &self.value {
            AnswerValue::Approve if self.remembers => "Always allowed",
            AnswerValue::Approve => "Allowed",
            AnswerValue::Deny { .. } => "Denied",
            AnswerValue::Value { .. } => "Answered",
        };
        format!("{how} by {user}.")
    }
}

/// Changes committed with a turn's questions.
pub struct Asking {
    /// All that is asked then.
    pub asked: Vec<ChatQuestion>,
    /// The messages that ask.
    pub outbox: Vec<OutboxEntry>,
    /// Rows by which an answer finds its question.
    pub rows: Vec<HostRow>,
}

/// Asks a turn's questions in its chat, and owners in theirs. `open` are those that were asked before and stay open.
#[must_use]
pub fn ask(
    asker: &Asker<'_>,
    (session, turn): (&SessionId, &TurnId),
    open: &[ChatQuestion],
    questions: &[Question],
) -> Asking {
    let mut all = open.to_vec();
    all.extend(questions.iter().map(|it| ChatQuestion::of(session, it)));
    let mut outbox = Vec::new();
    // Those about the folder have no number here.
    let has_number = |it: &&ChatQuestion| it.kind != QuestionKind::Trust;
    let numbered = all.iter().filter(has_number).count();
    let before = open.iter().filter(has_number).count();
    for (asked, number) in all.iter().skip(open.len()).zip(before + 1..) {
        let details = Details {
            choices: choices(asked),
            ..Details::default()
        };
        let text = asked.text((numbered > 1).then_some(number));
        let mut put = |to: &ChatKey, key: String, text: String| {
            let entry = outgoing::entry(key, to, OutboxKind::Question, text, &details);
            outbox.push(outgoing::of_turn(entry, session, turn));
        };
        put(
            asker.chat,
            format!("question:{}", asked.token),
            text.clone(),
        );
        for owner in asker.owners.iter().filter(|it| *it != asker.chat) {
            let text = format!("{} asks in `{session}`: {text}", asker.name);
            put(owner, owner_key(asked, owner), text);
        }
    }
    let rows = note(session, &all);
    Asking {
        asked: all,
        outbox,
        rows,
    }
}

/// Returns the key of a question that is put to an owner beside its chat.
fn owner_key(asked: &ChatQuestion, owner: &ChatKey) -> String {
    format!("question:{}:owner:{}", asked.token, owner.text())
}

/// Asks owners about the folder of a session, in their private chats. The question is answered by its button alone:
/// `/approve` in the session's chat is about what was asked there.
#[must_use]
pub fn ask_owners(
    owners: &[ChatKey],
    session: &SessionId,
    open: &[ChatQuestion],
    question: &Question,
) -> Asking {
    let asked = ChatQuestion::of(session, question);
    let details = Details {
        choices: choices(&asked),
        ..Details::default()
    };
    let text = format!(
        "In `{session}`: {}\n\nAnswer with a button, or with `rondo answer {session}`. Until then it is not used.",
        asked.prompt
    );
    let entry = |owner: &ChatKey| {
        let key = owner_key(&asked, owner);
        let entry = outgoing::entry(key, owner, OutboxKind::Question, text.clone(), &details);
        outgoing::of_turn(entry, session, &TurnId::new(""))
    };
    let outbox = owners.iter().map(entry).collect();
    let others = open.iter().filter(|it| it.id != question.id);
    let all: Vec<ChatQuestion> = others.cloned().chain([asked]).collect();
    let rows = note(session, &all);
    Asking {
        asked: all,
        outbox,
        rows,
    }
}

/// Returns the tokens of a question's answers.
fn tokens(asked: &ChatQuestion) -> impl Iterator<Item = String> {
    let always = asked.offer.as_ref().map(|_| asked.always_token());
    [asked.token.clone()].into_iter().chain(always)
}

/// A message that asks, in a chat whose messages can be edited.
#[derive(Serialize, Deserialize)]
struct AskingMessage {
    receipt: String,
    text: String,
}

impl AskingMessage {
    /// Reads a row of [`COPIES`]; earlier versions wrote the receipt alone.
    fn of_row(row: String) -> Self {
        serde_json::from_str(&row).unwrap_or_else(|_| Self {
            receipt: row,
            text: "This was a question.".to_owned(),
        })
    }
}

/// Returns the row for a message that asks; `text` is the whole message.
pub(crate) fn copy(token: &str, chat: &ChatKey, receipt: &Receipt, text: &str) -> HostRow {
    let key = format!("{token}{COPY_MARK}{}", chat.text());
    // The last paragraph says how to answer.
    let text = text.rsplit_once("\n\n").map_or(text, |it| it.0);
    let message = AskingMessage {
        receipt: receipt.0.clone(),
        text: text.to_owned(),
    };
    let json = serde_json::to_string(&message).unwrap_or_default();
    HostRow::set(COPIES, key, json)
}

/// Takes the buttons of a channel's messages whose questions are no longer open: they were answered elsewhere, or
/// expired. Returns whether messages that ask are left.
///
/// # Errors
/// When the storage fails.
pub(crate) async fn close_copies(
    store: &dyn HostStore,
    channel: &str,
) -> Result<bool, MailboxError> {
    let rows = store.rows(COPIES, "", COPIES_READ).await?;
    let mut are_left = rows.len() == COPIES_READ;
    let mut commit = HostCommit::default();
    for (key, row) in rows {
        let Some((token, chat)) = key.split_once(COPY_MARK) else {
            continue;
        };
        let Some(chat) = ChatKey::of_text(chat).filter(|it| it.channel == channel) else {
            continue;
        };
        if is_asked(store, token).await? {
            are_left = true;
            continue;
        }
        let message = AskingMessage::of_row(row);
        let text = format!("{}\n\nThis question is no longer open.", message.text);
        commit
            .outbox
            .push(closed(&key, &chat, message.receipt, text));
        commit.rows.push(HostRow::removed(COPIES, key));
    }
    if !commit.rows.is_empty() {
        store.commit(commit).await?;
    }
    Ok(are_left)
}

/// Returns the message that takes the place of one that asked.
fn closed(key: &str, chat: &ChatKey, receipt: String, text: String) -> OutboxEntry {
    let details = Details {
        replaces: Some(Receipt(receipt)),
        ..Details::default()
    };
    let name = format!("answered:{key}");
    outgoing::entry(name, chat, OutboxKind::Notice, text, &details)
}

/// Returns whether a question of a token is still asked.
///
/// # Errors
/// When the storage fails.
pub(crate) async fn is_asked(store: &dyn HostStore, token: &str) -> Result<bool, MailboxError> {
    Ok(store.row(TOKENS, token).await?.is_some())
}

/// Shows in the copies of a question how it was answered, in place of their buttons, but for the one in the chat where
/// it was answered by its button.
///
/// # Errors
/// When the storage fails.
pub(crate) async fn settle(
    store: &dyn HostStore,
    asked: &ChatQuestion,
    pressed_in: Option<&ChatKey>,
    how: &str,
    commit: &mut HostCommit,
) -> Result<(), MailboxError> {
    let begin = format!("{}{COPY_MARK}", asked.token);
    for (key, row) in store.rows(COPIES, &begin, COPIES_MAX).await? {
        let Some(chat) = key.strip_prefix(&begin) else {
            break;
        };
        commit.rows.push(HostRow::removed(COPIES, key.clone()));
        let Some(chat) = ChatKey::of_text(chat).filter(|it| Some(it) != pressed_in) else {
            continue;
        };
        let message = AskingMessage::of_row(row);
        let text = format!("{}\n\n{how}", asked.prompt);
        commit
            .outbox
            .push(closed(&key, &chat, message.receipt, text));
    }
    Ok(())
}

/// Returns the rows of all questions of a session.
fn note(session: &SessionId, asked: &[ChatQuestion]) -> Vec<HostRow> {
    let json = serde_json::to_string(asked).unwrap_or_default();
    let mut rows = vec![HostRow::set(OF_SESSION, session.as_str(), json)];
    let tokens = asked.iter().flat_map(tokens);
    rows.extend(tokens.map(|it| HostRow::set(TOKENS, it, session.as_str())));
    rows.extend(due(session, asked).map(|it| HostRow::set(DUE, it, session.as_str())));
    rows
}

/// Returns the rows that delete questions of a session that are not asked any more, but not those that are left.
#[must_use]
pub fn forget_some(
    session: &SessionId,
    over: &[ChatQuestion],
    left: &[ChatQuestion],
) -> Vec<HostRow> {
    let mut rows = forget(session, over);
    if !left.is_empty() {
        rows.extend(note(session, left));
    }
    rows
}

fn choices(asked: &ChatQuestion) -> Vec<Choice> {
    let choice = |label: &str, value| Choice {
        label: label.to_owned(),
        token: asked.token.clone(),
        value,
    };
    let denied = AnswerValue::Deny {
        reason: "denied in the chat".to_owned(),
    };
    match asked.kind {
        QuestionKind::Input { .. } => vec![choice("Deny", denied)],
        _ => {
            let mut all = vec![
                choice("Allow", AnswerValue::Approve),
                choice("Deny", denied),
            ];
            all.extend(asked.offer.as_ref().map(|_| Choice {
                label: "Always".to_owned(),
                token: asked.always_token(),
                value: AnswerValue::Approve,
            }));
            all
        }
    }
}

/// Returns the rows that delete the questions of a session, once they are not asked any more.
#[must_use]
pub fn forget(session: &SessionId, asked: &[ChatQuestion]) -> Vec<HostRow> {
    let mut rows = vec![HostRow::removed(OF_SESSION, session.as_str())];
    let tokens = asked.iter().flat_map(tokens);
    rows.extend(tokens.map(|it| HostRow::removed(TOKENS, it)));
    rows.extend(due(session, asked).map(|it| HostRow::removed(DUE, it)));
    rows
}

/// Returns the key under which a session is found once the first of its questions expires.
fn due(session: &SessionId, asked: &[ChatQuestion]) -> Option<String> {
    let first = asked.iter().filter_map(|it| it.expires).min()?;
    Some(format!("{:020}:{session}", first.0))
}

/// Returns the questions of a session.
///
/// # Errors
/// When the storage fails.
pub async fn of_session(
    store: &dyn HostStore,
    session: &SessionId,
) -> Result<Vec<ChatQuestion>, MailboxError> {
    let asked = chats::read(store, OF_SESSION, session.as_str()).await?;
    Ok(asked.unwrap_or_default())
}

/// Returns sessions that ask something, so many at most.
///
/// # Errors
/// When the storage fails.
pub(crate) async fn asking(
    store: &dyn HostStore,
    limit: usize,
) -> Result<Vec<SessionId>, MailboxError> {
    let rows = store.rows(OF_SESSION, "", limit).await?;
    Ok(rows.into_iter().map(|it| SessionId::new(it.0)).collect())
}

/// Returns the question of a token, its session, and what the token's answer allows from then on; none if it is not asked
/// any more.
///
/// # Errors
/// When the storage fails.
pub async fn of_token(
    store: &dyn HostStore,
    token: &str,
) -> Result<Option<(SessionId, ChatQuestion, Option<Grant>)>, MailboxError> {
    let Some(session) = store.row(TOKENS, token).await? else {
        return Ok(None);
    };
    let session = SessionId::new(session);
    let asked = of_session(store, &session).await?;
    let found = asked.into_iter().find_map(|it| {
        if it.token == token {
            return Some((session.clone(), it, None));
        }
        let offer = it.offer.clone().filter(|_| it.always_token() == token)?;
        Some((session.clone(), it, Some(offer)))
    });
    Ok(found)
}

/// Returns the sessions with a question that has expired. No others are read than these and at most 64 that expire next.
///
/// # Errors
/// When the storage fails.
pub async fn expired(store: &dyn HostStore, now: TimeMs) -> Result<Vec<SessionId>, MailboxError> {
    let mut expired = Vec::new();
    let mut after = String::new();
    // The text behind the colon in the keys of this moment sorts before this.
    let end = format!("{:020};", now.0);
    loop {
        let rows = store.rows(DUE, &after, DUE_READ).await?;
        let is_last = rows.len() < DUE_READ;
        for (key, session) in rows {
            if key > end {
                return Ok(expired);
            }
            expired.push(SessionId::new(session));
            after = key;
        }
        if is_last {
            return Ok(expired);
        }
    }
}
