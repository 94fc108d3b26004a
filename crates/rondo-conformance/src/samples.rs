//! Records and mail for the checks.

use rondo_core::Journal;
use rondo_core::ports::{
    Append, AppendError, Commit, Fence, Mail, MailBody, MailId, Mailbox, NewMail, Pushed, Record,
    RecordBody, Seq,
};
use rondo_core::profile;
use rondo_core::session::{Answer, AnswerValue, Delivery, QuestionId};
use rondo_core::session_store::{NewSession, SessionStore, StoreError};
use rondo_types::{Message, SessionId, StopReason, TimeMs, TurnId};
use std::sync::Arc;

/// Returns a session id.
#[must_use]
pub fn id(name: &str) -> SessionId {
    SessionId::new(name)
}

/// Returns the record of a message.
#[must_use]
pub fn said(text: &str) -> Record {
    Record {
        turn: TurnId::new("t1"),
        step: 0,
        at_ms: TimeMs(1000),
        body: RecordBody::UserMessage {
            message: Message::user(text),
        },
    }
}

pub(crate) fn at(time: u64, record: Record) -> Record {
    Record {
        at_ms: TimeMs(time),
        ..record
    }
}

pub(crate) fn body(body: RecordBody) -> Record {
    Record { body, ..said("") }
}

pub(crate) fn started() -> Record {
    body(RecordBody::TurnStarted {
        profile: Arc::new(profile::builtin("default").unwrap()),
        seed: 1,
        tools_hash: String::new(),
        models: Vec::new(),
        addresses: Vec::new(),
        turn_number: 1,
        history: 0,
        initial_history: Vec::new(),
        unbegun_not_run: true,
    })
}

pub(crate) fn ended() -> Record {
    body(RecordBody::Final {
        stop_reason: StopReason::Complete,
        text: "done".to_owned(),
        degraded: false,
        process: None,
    })
}

/// Begins a session with records.
pub(crate) async fn with(
    store: &dyn SessionStore,
    name: &str,
    records: Vec<Record>,
) -> Arc<dyn Journal> {
    let new = NewSession::new(id(name), TimeMs(1));
    let journal = store.begin(new).unwrap();
    append_to(name, &*journal, 0, records, &[]).await.unwrap();
    journal
}

pub(crate) fn is_unknown<T>(result: &Result<T, StoreError>) -> bool {
    matches!(result, Err(StoreError::Unknown { .. }))
}

pub(crate) fn is_in_use<T>(result: &Result<T, StoreError>) -> bool {
    matches!(result, Err(StoreError::InUse { .. }))
}

pub(crate) fn all_said<const N: usize>(texts: [&str; N]) -> Vec<Record> {
    texts.map(said).into()
}

/// Appends to session `a`.
pub(crate) async fn append(
    journal: &dyn Journal,
    expected: u64,
    batch: Vec<Record>,
    ack: &[MailId],
) -> Result<Seq, AppendError> {
    append_to("a", journal, expected, batch, ack).await
}

pub(crate) async fn append_to(
    session: &str,
    journal: &dyn Journal,
    expected: u64,
    batch: Vec<Record>,
    ack: &[MailId],
) -> Result<Seq, AppendError> {
    let fence = Fence {
        session: id(session),
        epoch: journal.epoch(),
    };
    let commit = Commit {
        ack: ack.into(),
        ..Commit::default()
    };
    journal
        .append(
            &fence,
            Append {
                expected: Seq(expected),
                batch,
                commit,
            },
        )
        .await
}

/// Returns a message of `ann` to a session.
#[must_use]
pub fn message(session: &str, key: &str, text: &str) -> NewMail {
    NewMail {
        session: id(session),
        key: key.to_owned(),
        actor: "ann".to_owned(),
        at_ms: TimeMs(5),
        body: MailBody::Message {
            message: Message::user(text),
            delivery: Delivery::Steer,
        },
    }
}

pub(crate) fn cancel(session: &str, key: &str) -> NewMail {
    NewMail {
        body: MailBody::Cancel,
        ..message(session, key, "")
    }
}

pub(crate) fn answer(session: &str, key: &str) -> NewMail {
    let answer = Answer {
        question: QuestionId("q".to_owned()),
        hash: "00".to_owned(),
        actor: "ann".to_owned(),
        value: AnswerValue::Approve,
        remember: None,
    };
    NewMail {
        body: MailBody::Answer { answer },
        ..message(session, key, "")
    }
}

/// Returns mail as the mailbox keeps it.
#[must_use]
pub fn row(id: MailId, mail: NewMail) -> Mail {
    Mail {
        id,
        session: mail.session,
        key: mail.key,
        actor: mail.actor,
        at_ms: mail.at_ms,
        revision: 0,
        body: mail.body,
    }
}

/// Pushes mail that was not there yet.
///
/// # Panics
/// When the mailbox refuses it or has it already.
pub async fn accepted(mailbox: &dyn Mailbox, mail: NewMail) -> MailId {
    match mailbox.push(mail).await.unwrap() {
        Pushed::Accepted(id) => id,
        Pushed::Duplicate(id) => panic!("it was taken for {id}"),
    }
}

/// The keys of a session's waiting messages.
pub(crate) async fn keys(mailbox: &dyn Mailbox, session: &str) -> Vec<String> {
    let mails = mailbox.list(&id(session)).await.unwrap();
    mails.into_iter().map(|mail| mail.key).collect()
}
