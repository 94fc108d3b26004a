//! Tests: listeners of a session that another process works on.

use crate::service::records::tests::{append, begun, recorded};
use crate::service::{Cursor, SessionService, Subscription, Update, UpdateBody};
use crate::{Env, Layer, NoNotices, Runtime, SessionOptions};
use rondo_core::ports::RecordBody;
use std::sync::Arc;

/// Listeners of one session.
const LISTENERS: usize = 100;

async fn past(listener: &mut Subscription) -> Vec<Update> {
    let mut all = Vec::new();
    while let Some(update) = listener.next_of_past().await.unwrap() {
        all.push(update);
    }
    all
}

fn bodies(updates: Vec<Update>) -> Vec<UpdateBody> {
    updates.into_iter().map(|it| it.body).collect()
}

#[tokio::test]
async fn what_another_process_records_is_read_once_for_all_listeners() {
    let (id, records) = recorded().await;
    let home = tempfile::tempdir().unwrap();
    let env = Env::of(&[("RONDO_HOME", home.path().to_str().unwrap())]);
    let runtime = Runtime::new(env, Layer::default(), Arc::new(NoNotices));
    let service = SessionService::open_to_read(runtime, home.path().to_owned()).unwrap();
    let session = service.session(id, SessionOptions::in_directory(home.path()));
    let entry = &session.entry;
    let owned = begun(entry.store(), session.id());
    let count = records.len();
    let mut rest = records.into_iter();
    let mut listeners = Vec::new();
    let mut told = vec![Vec::new(); LISTENERS];
    while let Some(first) = rest.next() {
        let begins = usize::from(matches!(first.body, RecordBody::TurnStarted { .. })) * 2;
        let piece = std::iter::once(first).chain(rest.by_ref().take(begins));
        append(&owned, session.id(), piece.collect()).await;
        // They come when the first turn has begun.
        if listeners.is_empty() {
            listeners.extend((0..LISTENERS).map(|_| session.subscribe(Cursor::START)));
        }
        entry.see_records();
        for (listener, told) in listeners.iter_mut().zip(&mut told) {
            told.extend(past(listener).await);
            assert!(!listener.reads_itself());
        }
    }
    let rows = entry.follower.reader().as_ref().map(|it| it.rows());
    assert_eq!(rows, Some(count));
    let mut late = session.subscribe(Cursor::START);
    let whole = bodies(past(&mut late).await);
    for told in told {
        assert_eq!(bodies(told), whole);
    }
    assert!(late.ending().is_some());
    assert_eq!(listeners[0].ending(), late.ending());
}
