use rondo_core::Journal as _;
use rondo_core::ports::{AppendError, Commit, Record, RecordBody, Seq};
use rondo_journal::{Options, OwnedSession, Store};
use rondo_types::{Message, SessionId, TimeMs, TurnId};
use tempfile::TempDir;

pub(crate) struct Journal {
    pub(crate) dir: TempDir,
    pub(crate) store: Store,
}

pub(crate) fn journal() -> Journal {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path(), Options::default()).unwrap();
    Journal { dir, store }
}

pub(crate) fn id(name: &str) -> SessionId {
    SessionId::new(name)
}

pub(crate) fn said(text: &str) -> Record {
    Record {
        turn: TurnId::new("t1"),
        step: 0,
        at_ms: TimeMs(1000),
        body: RecordBody::UserMessage {
            message: Message::user(text),
        },
    }
}

/// Appends one record for each text, each by itself.
pub(crate) async fn say(session: &OwnedSession, mut at: Seq, texts: &[&str]) -> Seq {
    for text in texts {
        at = append(session, at, vec![said(text)]).await.unwrap();
    }
    at
}

pub(crate) async fn append(
    session: &OwnedSession,
    expected: Seq,
    batch: Vec<Record>,
) -> Result<Seq, AppendError> {
    session
        .append(session.fence(), expected, batch, Commit::default())
        .await
}

/// A session of three records.
pub(crate) async fn three(journal: &Journal, name: &str) -> OwnedSession {
    let session = journal.store.create(&id(name), TimeMs(1)).unwrap();
    say(&session, Seq(0), &["one", "two", "three"]).await;
    session
}

/// Runs SQL behind the store's back.
pub(crate) fn meddle(journal: &Journal, sql: &str) {
    let connection = rusqlite::Connection::open(journal.store.path()).unwrap();
    connection.execute_batch(sql).unwrap();
}
