//! Questions of turns in chats: how they are asked, and how an answer finds its question, also after a restart.

use crate::channel::{ChatKey, Choice};
use crate::chats;
use crate::outgoing::{self, Details};
use data_encoding::HEXLOWER;
use rondo_core::ports::{
    HostRow, HostStore, MailBody, MailboxError, NewMail, OutboxEntry, OutboxKind,
};
use rondo_runtime::form::Form;
use rondo_types::{
    Answer, AnswerValue, CallId, Question, QuestionId, QuestionKind, SessionId, TimeMs, TurnId,
};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// The table of what sessions ask, by session.
const OF_SESSION: &str = "questions";
/// The table of the sessions of tokens.
const TOKENS: &str = "question_token";
/// The table of when sessions' questions expire, by that and the session.
const DUE: &str = "question_due";
/// Rows of it that are read at once.
const DUE_READ: usize = 64;
/// Digits of a token.
const TOKEN_DIGITS: usize = 22;

/// A question that waits for an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Asked {
    /// What a button sends back.
    pub token: String,
    /// The question.
    pub id: QuestionId,
    /// Its hash.
    pub hash: String,
    /// What is asked.
    pub prompt: String,
    /// When it expires.
    pub expires: Option<TimeMs>,
    /// What kind of answer it takes.
    #[serde(default = "about_call")]
    pub kind: QuestionKind,
}

fn about_call() -> QuestionKind {
    QuestionKind::Approval
}

impl Asked {
    fn of(session: &SessionId, question: &Question) -> Self {
        let mut digest = Sha256::new();
        for part in [session.as_str(), &question.id.0, &question.hash] {
            digest.update(part.as_bytes());
            digest.update([0]);
        }
        let mut token = HEXLOWER.encode(&digest.finalize());
        token.truncate(TOKEN_DIGITS);
        Self {
            token,
            id: question.id.clone(),
            hash: question.hash.clone(),
            prompt: question.prompt.clone(),
            expires: question.expires,
            kind: question.kind.clone(),
        }
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
        let how =
            format!("Answer with a button, or with /approve{number} or /deny{number} REASON.");
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
                    "{prompt}\n\n{fields}\n\nAnswer with /answer and a line for each, or with /deny{number} REASON."
                )
            }
        }
    }

    /// Returns someone's answer. Under its key a second one counts for nothing.
    #[must_use]
    pub fn answered(
        &self,
        session: &SessionId,
        actor: &str,
        value: AnswerValue,
        at_ms: TimeMs,
    ) -> NewMail {
        let answer = Answer {
            question: self.id.clone(),
            hash: self.hash.clone(),
            actor: actor.to_owned(),
            value,
            remember: None,
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

/// What is committed where a turn asks.
pub struct Asking {
    /// All that is asked then.
    pub asked: Vec<Asked>,
    /// The messages that ask.
    pub outbox: Vec<OutboxEntry>,
    /// What is noted, so that an answer finds its question.
    pub rows: Vec<HostRow>,
}

/// Asks a turn's questions in its chat, and in another one where those are who may answer. `open` are those that were
/// asked before and stay open.
#[must_use]
pub fn ask(
    chat: &ChatKey,
    owner: Option<&ChatKey>,
    (session, turn): (&SessionId, &TurnId),
    open: &[Asked],
    questions: &[Question],
) -> Asking {
    let mut all = open.to_vec();
    all.extend(questions.iter().map(|it| Asked::of(session, it)));
    let mut outbox = Vec::new();
    // Those about the folder have no number here.
    let has_number = |it: &&Asked| it.kind != QuestionKind::Trust;
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
        put(chat, format!("question:{}", asked.token), text.clone());
        if let Some(owner) = owner.filter(|it| *it != chat) {
            let text = format!("In `{session}`: {text}");
            put(owner, format!("question:{}:owner", asked.token), text);
        }
    }
    let rows = note(session, &all);
    Asking {
        asked: all,
        outbox,
        rows,
    }
}

/// Asks an owner about the folder of a session, in the owner's private chat. The question is answered by its button alone:
/// `/approve` in the session's chat is about what was asked there.
#[must_use]
pub fn ask_owner(
    owner: &ChatKey,
    session: &SessionId,
    open: &[Asked],
    question: &Question,
) -> Asking {
    let asked = Asked::of(session, question);
    let details = Details {
        choices: choices(&asked),
        ..Details::default()
    };
    let text = format!(
        "In `{session}`: {}\n\nAnswer with a button, or with `rondo answer {session}`. Until then it is not used.",
        asked.prompt
    );
    let key = format!("question:{}:owner", asked.token);
    let entry = outgoing::entry(key, owner, OutboxKind::Question, text, &details);
    let others = open.iter().filter(|it| it.id != question.id);
    let all: Vec<Asked> = others.cloned().chain([asked]).collect();
    let rows = note(session, &all);
    Asking {
        asked: all,
        outbox: vec![outgoing::of_turn(entry, session, &TurnId::new(""))],
        rows,
    }
}

/// Returns what notes all that a session asks.
fn note(session: &SessionId, asked: &[Asked]) -> Vec<HostRow> {
    let json = serde_json::to_string(asked).unwrap_or_default();
    let mut rows = vec![HostRow::set(OF_SESSION, session.as_str(), json)];
    let tokens = asked.iter();
    rows.extend(tokens.map(|it| HostRow::set(TOKENS, &it.token, session.as_str())));
    rows.extend(due(session, asked).map(|it| HostRow::set(DUE, it, session.as_str())));
    rows
}

/// Returns what forgets questions of a session that are not asked any more, but not those that are left.
#[must_use]
pub fn forget_some(session: &SessionId, over: &[Asked], left: &[Asked]) -> Vec<HostRow> {
    let mut rows = forget(session, over);
    if !left.is_empty() {
        rows.extend(note(session, left));
    }
    rows
}

fn choices(asked: &Asked) -> Vec<Choice> {
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
        _ => vec![
            choice("Allow", AnswerValue::Approve),
            choice("Deny", denied),
        ],
    }
}

/// Returns what forgets the questions of a session, once they are not asked any more.
#[must_use]
pub fn forget(session: &SessionId, asked: &[Asked]) -> Vec<HostRow> {
    let mut rows = vec![HostRow::removed(OF_SESSION, session.as_str())];
    let tokens = asked.iter();
    rows.extend(tokens.map(|it| HostRow::removed(TOKENS, &it.token)));
    rows.extend(due(session, asked).map(|it| HostRow::removed(DUE, it)));
    rows
}

/// Returns the key under which a session is found once the first of its questions expires.
fn due(session: &SessionId, asked: &[Asked]) -> Option<String> {
    let first = asked.iter().filter_map(|it| it.expires).min()?;
    Some(format!("{:020}:{session}", first.0))
}

/// Returns what a session asks.
///
/// # Errors
/// When the storage fails.
pub async fn of_session(
    store: &dyn HostStore,
    session: &SessionId,
) -> Result<Vec<Asked>, MailboxError> {
    let asked = chats::read(store, OF_SESSION, session.as_str()).await?;
    Ok(asked.unwrap_or_default())
}

/// Returns the question of a token, and its session; none where it is not asked any more.
///
/// # Errors
/// When the storage fails.
pub async fn of_token(
    store: &dyn HostStore,
    token: &str,
) -> Result<Option<(SessionId, Asked)>, MailboxError> {
    let Some(session) = store.row(TOKENS, token).await? else {
        return Ok(None);
    };
    let session = SessionId::new(session);
    let asked = of_session(store, &session).await?;
    let found = asked.into_iter().find(|it| it.token == token);
    Ok(found.map(|it| (session, it)))
}

/// Returns the sessions with a question that has expired. No others are read than these and at most 64 that expire next.
///
/// # Errors
/// When the storage fails.
pub async fn expired(store: &dyn HostStore, now: TimeMs) -> Result<Vec<SessionId>, MailboxError> {
    let mut expired = Vec::new();
    let mut after = String::new();
    // What follows the colon in the keys of this moment sorts before this.
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
