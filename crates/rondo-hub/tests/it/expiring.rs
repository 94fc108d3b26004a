//! Questions that are not answered: found when they expire, however many others wait.

use async_trait::async_trait;
use rondo_core::ports::{HostCommit, HostRow, HostStore, MailboxError};
use rondo_hub::channel::ChatKey;
use rondo_hub::questions::{self, Asker};
use rondo_journal::Store;
use rondo_types::{CallId, Question, QuestionId, QuestionKind, SessionId, TimeMs, TurnId};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts the rows that are read.
struct Counting {
    store: Store,
    read: AtomicUsize,
}

#[async_trait]
impl HostStore for Counting {
    async fn commit(&self, commit: HostCommit) -> Result<bool, MailboxError> {
        self.store.commit(commit).await
    }

    async fn row(&self, table: &str, key: &str) -> Result<Option<String>, MailboxError> {
        self.store.row(table, key).await
    }

    async fn rows(
        &self,
        table: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<(String, String)>, MailboxError> {
        let rows = self.store.rows(table, after, limit).await?;
        self.read.fetch_add(rows.len(), Ordering::Relaxed);
        Ok(rows)
    }
}

/// Returns the rows that are written if a session asks a question that expires then.
fn asked(session: &SessionId, expires: u64) -> Vec<HostRow> {
    let call = CallId::new("c");
    let question = Question {
        id: QuestionId::of_call(&call),
        call: Some(call),
        child: None,
        kind: QuestionKind::Approval,
        prompt: "Run it?".to_owned(),
        hash: "hash".to_owned(),
        expires: Some(TimeMs(expires)),
        offers: Vec::new(),
        reasons: Vec::new(),
        subject: rondo_types::QuestionSubject::default(),
    };
    let chat = ChatKey {
        channel: "wire".to_owned(),
        account: String::new(),
        chat_id: session.to_string(),
        topic: None,
    };
    let asker = Asker {
        chat: &chat,
        name: "ann",
        owners: &[],
    };
    questions::ask(&asker, (session, &TurnId::new("t")), &[], &[question]).rows
}

#[tokio::test]
async fn a_question_is_found_from_when_it_expires_until_it_is_forgotten_and_few_others_are_read() {
    let store = Counting {
        store: Store::in_memory().unwrap(),
        read: AtomicUsize::new(0),
    };
    let name = |number: u64| SessionId::new(format!("s{number:04}"));
    let mut rows: Vec<HostRow> = Vec::new();
    for number in 0..1_000 {
        rows.extend(asked(&name(number), 1_000 + number));
    }
    let commit = HostCommit {
        rows,
        ..HostCommit::default()
    };
    store.commit(commit).await.unwrap();

    let expired = async |at| questions::expired(&store, TimeMs(at)).await.unwrap();
    assert_eq!(expired(999).await, []);
    assert_eq!(expired(1_001).await, [name(0), name(1)]);
    assert!(store.read.load(Ordering::Relaxed) <= 128);
    // More than are read at once are found, too.
    assert_eq!(expired(1_150).await.len(), 151);
    assert_eq!(expired(5_000).await.len(), 1_000);

    let open = questions::of_session(&store, &name(0)).await.unwrap();
    let commit = HostCommit {
        rows: questions::forget(&name(0), &open),
        ..HostCommit::default()
    };
    store.commit(commit).await.unwrap();
    assert_eq!(expired(1_001).await, [name(1)]);
}
