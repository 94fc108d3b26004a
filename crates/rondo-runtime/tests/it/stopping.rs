//! Turns that are stopped while their model is connected.

use crate::service::{World, approve, event, is_parked, is_result, next, text, until, writes};
use rondo_core::session::{Delivery, SessionEvent};
use rondo_runtime::Layer;
use rondo_runtime::service::{Cursor, NoHost, SessionService, UpdateBody};
use rondo_testkit::{CallScript, Gate, ReplyScript, Step, openai};
use rondo_types::{EventBody, Message, StopReason};
use serde_json::json;
use std::fs;
use std::path::PathBuf;

/// A provider whose key comes as soon as a file is gone.
fn service(world: &World) -> (SessionService, PathBuf) {
    let gate = world.home.path().join("gate");
    let asked = world.home.path().join("asked");
    let wait = format!(
        "touch '{}'; while [ -e '{}' ]; do sleep 0.01; done; echo key-1234567890",
        asked.display(),
        gate.display()
    );
    let config = format!(
        "[providers.slow]\nbase_url = '{}'\ndialect = 'openai-chat'\napi_key_command = [\"sh\", \"-c\", \"{wait}\"]\n",
        world.server.url("/v1"),
    );
    fs::write(world.home.path().join("config.toml"), config).unwrap();
    let flags = Layer {
        model: Some("slow/any".to_owned()),
        base_url: Some(world.server.url("/v1")),
        ..Layer::default()
    };
    (world.service_of(flags, NoHost), gate)
}

async fn is_connecting(world: &World) {
    let asked = world.home.path().join("asked");
    while fs::remove_file(&asked).is_err() {
        tokio::task::yield_now().await;
    }
}

fn is_idle(body: &UpdateBody) -> bool {
    let UpdateBody::Session { event } = body else {
        return false;
    };
    *event == SessionEvent::Idle
}

#[tokio::test]
async fn a_turn_that_is_stopped_while_its_model_is_connected_takes_its_message_along() {
    let world = World::new([text(&["Hello."])]).await;
    let (service, gate) = service(&world);
    fs::write(&gate, "").unwrap();
    let session = service.new_session(world.options());
    let mut listener = session.subscribe(Cursor::START);
    let message = Message::user("Not this.");
    let ticket = session.submit(message, Delivery::Queue).await.unwrap();
    is_connecting(&world).await;
    session.cancel().await.unwrap();
    let told = until(&mut listener, is_idle).await;
    let withdrawn = UpdateBody::Session {
        event: SessionEvent::Withdrawn {
            ticket: ticket.id.clone(),
        },
    };
    assert!(told.iter().any(|it| it.body == withdrawn), "{told:?}");
    assert!(!ticket.withdraw().await.unwrap());
    // It begins no turn later either.
    fs::remove_file(&gate).unwrap();
    let message = Message::user("But this.");
    session.submit(message, Delivery::Queue).await.unwrap();
    let told = until(&mut listener, is_result).await;
    let asked = told.iter().filter_map(|it| match &it.body {
        UpdateBody::Asked { message, .. } => Some(message.text()),
        _ => None,
    });
    assert_eq!(asked.collect::<Vec<_>>(), ["But this."]);
    assert_eq!(world.server.requests().len(), 1);
}

#[tokio::test]
async fn a_parked_turn_that_is_stopped_while_its_model_is_connected_again_ends() {
    let world = World::new([writes("c1", "one"), text(&["It is done."])]).await;
    let (first, gate) = service(&world);
    let session = first.new_session(world.options());
    let mut listener = session.subscribe(Cursor::START);
    let message = Message::user("Write.");
    session.submit(message, Delivery::Queue).await.unwrap();
    until(&mut listener, is_parked).await;
    first.close().await;
    is_connecting(&world).await;
    // Another process connects the model again.
    fs::write(&gate, "").unwrap();
    let (second, _) = service(&world);
    let session = second.session(session.id().clone(), world.options());
    let question = session.questions().await.unwrap().remove(0);
    session.answer(approve(&question)).await.unwrap();
    is_connecting(&world).await;
    session.cancel().await.unwrap();
    // Once the stop was seen, its row is gone.
    let mut listener = session.subscribe(Cursor::START);
    until(&mut listener, is_parked).await;
    fs::remove_file(&gate).unwrap();
    let end = loop {
        let update = next(&mut listener).await;
        if let Some(EventBody::Result(outcome)) = event(&update.body) {
            break outcome.stop_reason;
        }
    };
    assert_eq!(end, StopReason::Cancelled);
    assert!(!world.project.path().join("one").exists());
}

#[tokio::test]
async fn a_message_that_comes_while_the_model_is_connected_joins_the_turn() {
    let hold = Gate::new();
    let read = CallScript::new("c", "read_file", &json!({"path": "."}));
    let read = openai::streamed(&ReplyScript::calls([read]).usage(1, 1));
    let world = World::new(vec![
        read.before(Step::Gate(hold.clone())),
        text(&["Done."]),
    ])
    .await;
    let (service, gate) = service(&world);
    fs::write(&gate, "").unwrap();
    let session = service.new_session(world.options());
    let mut listener = session.subscribe(Cursor::START);
    let submit = |words: &str| session.submit(Message::user(words), Delivery::Steer);
    submit("one").await.unwrap();
    is_connecting(&world).await;
    submit("two").await.unwrap();
    fs::remove_file(&gate).unwrap();
    hold.reached().await;
    submit("three").await.unwrap();
    hold.open();
    until(&mut listener, is_result).await;
    // A later one must not overtake it.
    let sent = world.server.requests()[1].json().to_string();
    let at = |words: &str| sent.find(words);
    assert!(at("one") < at("two"), "{sent}");
    assert!(at("three").is_none_or(|it| Some(it) > at("two")), "{sent}");
}

#[tokio::test]
async fn a_message_that_another_process_edits_while_its_model_is_connected_begins_as_it_is_then() {
    let world = World::new([text(&["Hello."])]).await;
    let (service, gate) = service(&world);
    fs::write(&gate, "").unwrap();
    let session = service.new_session(world.options());
    let mut listener = session.subscribe(Cursor::START);
    let message = Message::user("Tpyed.");
    let ticket = session.submit(message, Delivery::Queue).await.unwrap();
    is_connecting(&world).await;
    let elsewhere = world.service();
    let there = elsewhere.session(session.id().clone(), world.options());
    let edited = there.edit(&ticket.id, Message::user("Typed."));
    assert!(edited.await.unwrap());
    fs::remove_file(&gate).unwrap();
    until(&mut listener, is_result).await;
    let requests = world.server.requests();
    let bodies: Vec<_> = requests.iter().map(|it| it.json().to_string()).collect();
    assert_eq!(bodies.len(), 1);
    assert!(bodies[0].contains("Typed.") && !bodies[0].contains("Tpyed."));
    assert_eq!(session.waiting().await.unwrap(), 0);
}

#[tokio::test]
async fn a_message_that_another_process_takes_back_while_its_model_is_connected_begins_nothing() {
    let world = World::new([text(&["Hello."])]).await;
    let (service, gate) = service(&world);
    fs::write(&gate, "").unwrap();
    let session = service.new_session(world.options());
    let mut listener = session.subscribe(Cursor::START);
    let message = Message::user("Not this.");
    let ticket = session.submit(message, Delivery::Queue).await.unwrap();
    is_connecting(&world).await;
    let elsewhere = world.service();
    let there = elsewhere.session(session.id().clone(), world.options());
    assert!(there.withdraw(&ticket.id).await.unwrap());
    // Another message, which has the mailbox read here: by its event, what was taken back is known to be gone.
    let later = session.submit(Message::user("This."), Delivery::Queue);
    let later = later.await.unwrap().id;
    until(&mut listener, |body| {
        matches!(body, UpdateBody::Session { event: SessionEvent::Queued { ticket, .. } } if *ticket == later)
    })
    .await;
    fs::remove_file(&gate).unwrap();
    until(&mut listener, is_result).await;
    let requests = world.server.requests();
    let body = requests[0].json().to_string();
    assert!(
        body.contains("This.") && !body.contains("Not this."),
        "{body}"
    );
    assert_eq!((requests.len(), session.waiting().await.unwrap()), (1, 0));
}
