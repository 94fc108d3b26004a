//! Tests: the state that an actor leaves behind, and the place where listeners begin to read.

use super::*;
use crate::service::records::RecordReader;
use crate::service::{Cursor, NoHost, SessionService};
use crate::{Env, Layer, NoNotices, Runtime, SessionOptions};
use rondo_testkit::{ReplyScript, Server, openai};
use rondo_types::{EventBody, Message};

async fn service(home: &tempfile::TempDir, replies: &[&str]) -> (SessionService, Server) {
    let replies = replies
        .iter()
        .map(|it| ReplyScript::text([*it]).usage(1, 1));
    let replies: Vec<_> = replies.map(|it| openai::streamed(&it)).collect();
    let server = Server::start(replies).await;
    let env = Env::of(&[
        ("RONDO_HOME", home.path().to_str().unwrap()),
        ("RONDO_MODEL", "local/any"),
        ("RONDO_BASE_URL", &server.url("/v1")),
    ]);
    let runtime = Runtime::new(env, Layer::default(), Arc::new(NoNotices));
    let service = SessionService::open(runtime, home.path().to_owned(), NoHost);
    (service.unwrap(), server)
}

#[tokio::test]
async fn who_edits_a_message_while_the_session_is_let_go_of_leaves_none_that_cannot_be_changed() {
    let home = tempfile::tempdir().unwrap();
    let (service, _server) = service(&home, &[]).await;
    let session = service.new_session(SessionOptions::in_directory(home.path()));
    let mut actor = Actor::new(Arc::clone(&session.entry));
    let mut begun = session.entry.begun.lock().await;
    begun.insert("message".to_owned(), None);
    let edit = async move {
        tokio::task::yield_now().await;
        drop(begun);
    };
    tokio::join!(actor.let_go(), edit);
    assert!(session.entry.begun.lock().await.is_empty());
}

#[tokio::test]
async fn who_comes_back_reads_from_the_turn_on_that_they_came_to() {
    let home = tempfile::tempdir().unwrap();
    let words = ["One.", "Two.", "Three."];
    let (service, _server) = service(&home, &words).await;
    let session = service.new_session(SessionOptions::in_directory(home.path()));
    for word in words {
        let message = Message::user(word);
        session.submit(message, Delivery::Queue).await.unwrap();
    }
    let mut listener = session.subscribe(Cursor::START);
    let mut ends = 0;
    while ends < words.len() {
        let update = listener.next().await.unwrap();
        let UpdateBody::Turn { event } = update.body else {
            continue;
        };
        ends += usize::from(matches!(event.body, EventBody::Result(_)));
    }
    session.close().await;
    let entry = &session.entry;
    let read = |mut reader: RecordReader| {
        let turn = reader.turn().unwrap().unwrap();
        let ends = turn.runs.iter().map(|it| it.end()).collect::<Vec<_>>();
        (turn.number, turn.is_last, ends)
    };
    let (store, id) = (entry.store().clone(), entry.id().clone());
    let mut whole = RecordReader::new(store.clone(), id.clone());
    for number in 1..=3 {
        let turn = whole.turn().unwrap().unwrap();
        let ends: Vec<_> = turn.runs.iter().map(|it| it.end()).collect();
        if number > 1 {
            let checkpoint = whole.checkpoint().unwrap();
            let reader = RecordReader::from(store.clone(), id.clone(), &checkpoint);
            assert_eq!(read(reader), (number, number == 3, ends));
        }
    }
    // One of another session that has the same id reads all of it.
    let checkpoint = whole.checkpoint().unwrap();
    let other = crate::sessions::in_memory().unwrap();
    let reader = RecordReader::from(other, id.clone(), &checkpoint);
    assert!({ reader }.turn().unwrap().is_none());
    // A listener that reads the records leaves such places for others.
    entry.ring().forget();
    let mut late = session.subscribe(Cursor::START);
    for _ in 0..8 {
        late.next().await.unwrap();
    }
    while late.cursor().place.turn < 3 {
        late.next().await.unwrap();
    }
    let found = entry.service.checkpoints.before(&id, 3).unwrap();
    assert_eq!(found.number, 3);
}
