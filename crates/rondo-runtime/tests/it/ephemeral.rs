//! Served sessions that are in memory alone.

use crate::service::{
    Page, World, approve, gated, is_parked, is_result, next, results, says, text, until, writes,
};
use rondo_core::session::{Delivery, SessionEvent};
use rondo_runtime::service::{Cursor, SessionHandle, SessionService, UpdateBody};
use rondo_runtime::{Layer, SetupErrorKind};
use rondo_testkit::Gate;
use rondo_types::Message;
use std::fs;
use std::path::Path;

fn in_memory(world: &World) -> SessionService {
    world.service_with(Layer {
        ephemeral: Some(true),
        ..Layer::default()
    })
}

/// Returns whether a file below a directory holds these words.
fn is_on_disk(dir: &Path, words: &str) -> bool {
    fs::read_dir(dir).unwrap().flatten().any(|it| {
        let path = it.path();
        match path.is_dir() {
            true => is_on_disk(&path, words),
            false => fs::read(&path)
                .unwrap()
                .windows(words.len())
                .any(|it| it == words.as_bytes()),
        }
    })
}

async fn submit(session: &SessionHandle, words: &str) {
    let message = Message::user(words);
    session.submit(message, Delivery::Queue).await.unwrap();
}

#[tokio::test]
async fn a_session_in_memory_parks_queues_and_is_listened_to_as_others_and_leaves_nothing() {
    let world = World::new([
        writes("c1", "one"),
        text(&["It ", "is ", "done."]),
        text(&["Bye."]),
    ])
    .await;
    let service = in_memory(&world);
    let session = service.new_session(world.options());
    let mut listener = session.subscribe(Cursor::START);
    submit(&session, "Remember nothing.").await;
    let mut heard = until(&mut listener, is_parked).await;
    // The parked turn has no actor, and its message queues behind the question.
    submit(&session, "Good bye, then.").await;
    let question = session.questions().await.unwrap().remove(0);
    session.answer(approve(&question)).await.unwrap();
    while results(&heard) < 2 {
        heard.push(next(&mut listener).await);
    }
    assert!(world.project.path().join("one").exists());
    // Who reconnects with any cursor hears the same.
    let (page, id) = (Page::of(&heard), session.id().clone());
    drop((session, listener));
    let session = service.session(id.clone(), world.options());
    for at in [None, Some(3), Some(heard.len() / 2)] {
        let (cursor, mut told) = match at {
            None => (Cursor::START, Vec::new()),
            Some(at) => (heard[at].cursor, heard[..=at].to_vec()),
        };
        let mut late = session.subscribe(cursor);
        while results(&told) < 2 {
            told.push(next(&mut late).await);
        }
        assert_eq!(Page::of(&told), page, "from {cursor}");
    }
    service.close().await;
    assert!(!is_on_disk(world.home.path(), "Remember nothing."));
    // It is gone with the service.
    let again = in_memory(&world);
    let gone = again.find(id.as_str(), world.options()).await.unwrap_err();
    assert_eq!(gone.kind, SetupErrorKind::NoSession);
}

#[tokio::test]
async fn a_message_of_a_session_in_memory_can_be_taken_back_and_its_turn_stopped() {
    let gate = Gate::new();
    let world = World::new([gated(&["Half ", "of ", "it."], &gate)]).await;
    let service = in_memory(&world);
    let session = service.new_session(world.options());
    let mut listener = session.subscribe(Cursor::START);
    submit(&session, "Go.").await;
    until(&mut listener, |it| says(it, "Half")).await;
    let waits = Message::user("Wait.");
    let waits = session.submit(waits, Delivery::Queue).await.unwrap();
    assert!(waits.withdraw().await.unwrap());
    session.cancel().await.unwrap();
    until(&mut listener, is_result).await;
    let idle = |it: &UpdateBody| {
        matches!(
            it,
            UpdateBody::Session {
                event: SessionEvent::Idle
            }
        )
    };
    until(&mut listener, idle).await;
    assert_eq!(world.server.requests().len(), 1);
}

#[tokio::test]
async fn sessions_in_memory_stand_beside_those_that_are_kept_and_can_be_forgotten() {
    let world = World::new([text(&["Kept."]), text(&["Not kept."]), text(&["Anew."])]).await;
    let service = world.service();
    let kept = service.new_session(world.options());
    let fleeting = service.new_ephemeral_session(world.options()).unwrap();
    for (session, words) in [(&kept, "Keep this."), (&fleeting, "Do not keep this.")] {
        let mut listener = session.subscribe(Cursor::START);
        submit(session, words).await;
        until(&mut listener, is_result).await;
    }
    service.close().await;
    assert!(is_on_disk(world.home.path(), "Keep this."));
    assert!(!is_on_disk(world.home.path(), "Do not keep this."));
    let id = fleeting.id().clone();
    assert!(service.find(id.as_str(), world.options()).await.is_ok());
    // Another service does not see it, and a kept one is not forgotten so.
    let other = world.service();
    assert!(other.find(id.as_str(), world.options()).await.is_err());
    assert!(
        other
            .find(kept.id().as_str(), world.options())
            .await
            .is_ok()
    );
    let refused = service.forget(kept.id()).await.unwrap_err();
    assert_eq!(refused.kind, SetupErrorKind::Usage);
    service.forget(&id).await.unwrap();
    assert!(service.find(id.as_str(), world.options()).await.is_err());
    service.forget(&id).await.unwrap_err();
}

#[tokio::test]
async fn a_kept_session_whose_directory_keeps_nothing_says_so_and_its_message_waits() {
    let world = World::new([text(&["Hello."])]).await;
    let service = world.service();
    let session = service.new_session(world.options());
    let mut listener = session.subscribe(Cursor::START);
    fs::write(world.home.path().join("config.toml"), "ephemeral = true\n").unwrap();
    submit(&session, "Hello?").await;
    let failed = until(&mut listener, |it| matches!(it, UpdateBody::Failed { .. })).await;
    let message = "the settings of its directory are `ephemeral`, but the session is recorded";
    let Some(UpdateBody::Failed { message: told, .. }) = failed.last().map(|it| &it.body) else {
        panic!("{failed:?}");
    };
    assert_eq!(told, message);
    fs::remove_file(world.home.path().join("config.toml")).unwrap();
    session.resume();
    until(&mut listener, is_result).await;
}
