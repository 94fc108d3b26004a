//! Tests: a session is read as it is recorded.

use super::*;
use crate::service::{NoHost, SessionService};
use crate::{Env, Layer, NoNotices, Runtime, SessionOptions};
use rondo_core::ports::{Append, Fence, Journal};
use rondo_core::session::Delivery;
use rondo_core::session_store::NewSession;
use rondo_testkit::{CallScript, ReplyScript, Server, openai};
use rondo_types::Message;
use serde_json::json;

/// The turns of a session that is recorded piece by piece.
const TURNS: usize = 3;

/// Returns the records of a session whose turns each run calls.
pub(in crate::service) async fn recorded() -> (SessionId, Vec<Record>) {
    let home = tempfile::tempdir().unwrap();
    let calls = |turn: usize, step: usize| {
        let id = format!("c{turn}{step}");
        let call = CallScript::new(&id, "read_file", &json!({"path": "nothing"}));
        ReplyScript::calls([call])
    };
    let turn = |turn| [calls(turn, 1), calls(turn, 2), ReplyScript::text(["Done."])];
    let replies = (0..TURNS).flat_map(turn);
    let replies: Vec<_> = replies
        .map(|it| openai::streamed(&it.usage(1, 1)))
        .collect();
    let server = Server::start(replies).await;
    let env = Env::of(&[
        ("RONDO_HOME", home.path().to_str().unwrap()),
        ("RONDO_MODEL", "local/any"),
        ("RONDO_BASE_URL", &server.url("/v1")),
    ]);
    let runtime = Runtime::new(env, Layer::default(), Arc::new(NoNotices));
    let service = SessionService::open(runtime, home.path().to_owned(), NoHost).unwrap();
    let session = service.new_session(SessionOptions::in_directory(home.path()));
    for _ in 0..TURNS {
        let message = Message::user("Look.");
        session.submit(message, Delivery::Queue).await.unwrap();
        session.at_rest().await;
    }
    let entries = session.entry.store().read(session.id(), Seq(1), 10_000);
    let records = entries.unwrap().into_iter().map(Entry::into_record);
    (session.id().clone(), records.map(Option::unwrap).collect())
}

/// Begins a session in a store.
pub(crate) fn begun(store: &Store, session: &SessionId) -> Arc<dyn Journal> {
    let new = NewSession {
        id: session.clone(),
        at: TimeMs(1),
        title: String::new(),
        directory: String::new(),
    };
    store.begin(new).unwrap()
}

/// Appends records to a session that is owned here.
pub(crate) async fn append(owned: &Arc<dyn Journal>, session: &SessionId, records: Vec<Record>) {
    let fence = Fence {
        session: session.clone(),
        epoch: owned.epoch(),
    };
    let appended = owned.append(&fence, Append::new(owned.at(), records));
    appended.await.unwrap();
}

fn updates(turn: ReadTurn) -> Vec<(CursorPosition, UpdateBody)> {
    turn.runs.into_iter().flat_map(|it| it.updates).collect()
}

fn whole(store: &Store, session: &SessionId) -> Vec<(CursorPosition, UpdateBody)> {
    let mut reader = RecordReader::new(store.clone(), session.clone());
    let mut all = Vec::new();
    loop {
        let turn = reader.turn().unwrap().unwrap();
        let is_last = turn.is_last;
        all.extend(updates(turn));
        if is_last {
            return all;
        }
    }
}

#[tokio::test]
async fn a_listener_reads_each_record_once_and_is_given_each_update_once() {
    let (session, records) = recorded().await;
    let store = sessions::in_memory().unwrap();
    let owned = begun(&store, &session);
    let mut reader = RecordReader::new(store.clone(), session.clone());
    let mut all = Vec::new();
    let mut endings = 0;
    let count = records.len();
    let mut rest = records.into_iter().peekable();
    while let Some(first) = rest.next() {
        // The journal gets what begins a turn at once.
        let begins = usize::from(matches!(first.body, RecordBody::TurnStarted { .. })) * 2;
        let piece = std::iter::once(first).chain(rest.by_ref().take(begins));
        append(&owned, &session, piece.collect()).await;
        let mut is_last = false;
        while !is_last {
            let Some(turn) = reader.turn().unwrap() else {
                break;
            };
            is_last = turn.is_last;
            endings += usize::from(turn.ending.is_some());
            all.extend(updates(turn));
        }
    }
    assert_eq!(reader.rows, count);
    assert_eq!(all, whole(&store, &session));
    assert_eq!(endings, TURNS);
    // Nothing is new.
    let turn = reader.turn().unwrap().unwrap();
    assert!(turn.is_last && turn.ending.is_none() && updates(turn).is_empty());
    assert_eq!(reader.rows, count);
}
