pub(crate) use rondo_conformance::samples::{id, said};
use rondo_core::Journal as _;
use rondo_core::ports::{Append, AppendError, Record, Seq};
use rondo_journal::{Options, OwnedSession, Store};
use rondo_types::TimeMs;
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
        .append(session.fence(), Append::new(expected, batch))
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
