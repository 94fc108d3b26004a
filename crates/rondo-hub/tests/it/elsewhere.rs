//! What other processes do with the sessions of chats while the hub runs: `rondo answer` and `rondo resume`.

use crate::messenger::Messenger;
use crate::world::{RunningHub, World, text, writes};
use rondo_core::session_store::SessionState;
use rondo_hub::channel::Delivery;
use rondo_hub::questions;
use rondo_runtime::SessionOptions;
use rondo_runtime::parking::ParkedSession;
use rondo_runtime::service::{NoHost, SessionService};
use rondo_types::{AnswerValue, SessionId};
use std::fs;

fn ann() -> SessionId {
    SessionId::new("wire_ann")
}

/// Waits until the hub's turn is parked, and the hub knows where its message stands.
async fn parked(hub: &RunningHub) {
    let is_noted = async || {
        let rows = hub.hub.store().rows("question_copy", "", 10).await;
        rows.unwrap().len() == 1
    };
    let is_parked = async || hub.hub.session(&ann()).state().await.unwrap() == SessionState::Parked;
    while !(is_noted().await && is_parked().await) {
        tokio::task::yield_now().await;
    }
}

fn is_closed_and_answered(messenger: &Messenger) -> bool {
    let seen = messenger.seen("ann");
    let written = seen.iter().filter(|it| it.text == "Written.");
    seen.len() == 2 && seen[0].choices.is_empty() && written.count() == 1
}

#[tokio::test]
async fn a_turn_that_is_answered_in_another_process_goes_on_in_the_hub_and_its_message_is_closed() {
    let mut world = World::new([writes("c", "note"), text(&["Written."])]).await;
    world.delivery = Delivery::Edit;
    let hub = world.start();
    world.messenger.say("ann", "Write a note.");
    world.messenger.until("ann", 1).await;
    parked(&hub).await;
    // As `rondo answer` does it, with a store of its own.
    let settings = hub.hub.service().runtime().settings("/".into()).unwrap();
    let mut elsewhere = ParkedSession::find(&settings, "wire_ann").unwrap();
    let answer = elsewhere.open[0].answered("root", AnswerValue::Approve);
    elsewhere.answer(answer).await.unwrap();
    world.messenger.until_all(is_closed_and_answered).await;
    let asked = questions::of_session(&**hub.hub.store(), &ann()).await;
    assert_eq!(asked.unwrap(), []);
    hub.stop().await;
    let note = world.home.path().join("data/hub/chats/wire_ann/note");
    assert_eq!(fs::read_to_string(note).unwrap(), "c");
}

#[tokio::test]
async fn a_turn_that_another_process_ended_is_not_asked_about_any_more_and_its_reply_is_sent() {
    let mut world = World::new([writes("c", "note"), text(&["Written."])]).await;
    world.delivery = Delivery::Edit;
    let hub = world.start();
    world.messenger.say("ann", "Write a note.");
    world.messenger.until("ann", 1).await;
    parked(&hub).await;
    let runtime = hub.hub.service().runtime().clone();
    hub.stop().await;
    // As `rondo resume` does it.
    let home = world.home.path().to_owned();
    let elsewhere = SessionService::open(runtime, home.clone(), NoHost).unwrap();
    let session = elsewhere.session(ann(), SessionOptions::in_directory(home));
    let questions = session.questions().await.unwrap();
    let answer = questions[0].answered("root", AnswerValue::Approve);
    session.answer(answer).await.unwrap();
    session.at_rest().await;
    assert_eq!(session.state().await.unwrap(), SessionState::Done);
    drop(session);
    let hub = world.start();
    world.messenger.until_all(is_closed_and_answered).await;
    let asked = questions::of_session(&**hub.hub.store(), &ann()).await;
    assert_eq!(asked.unwrap(), []);
    hub.stop().await;
}
