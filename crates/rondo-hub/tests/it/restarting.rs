//! A hub that stops or ends, and the next one.

use crate::messenger::Event;
use crate::world::{World, content, gated, text};
use rondo_runtime::providers::Provider;
use rondo_testkit::{CallScript, Gate, ReplyScript, Response, Script, Step, openai};
use serde_json::json;
use std::num::NonZeroUsize;
use tokio_util::sync::CancellationToken;

#[tokio::test]
async fn a_second_hub_on_the_same_data_is_refused_while_the_first_one_runs() {
    let world = World::new([text(&["Yes."])]).await;
    let first = world.start();
    world.messenger.say("ann", "Well?");
    world.messenger.until("ann", 1).await;
    let second = world.open().run(CancellationToken::new()).await;
    let refused = second.unwrap_err().to_string();
    let holder = format!(
        "process {} is already serving the sessions in",
        std::process::id()
    );
    assert!(refused.contains(&holder), "{refused}");
    first.stop().await;
    let third = world.start();
    world.messenger.until_taken().await;
    third.stop().await;
}

#[tokio::test]
async fn hub_17_one_that_is_told_to_stop_lets_turns_end_and_takes_nothing_more() {
    let gate = Gate::new();
    let world = World::new([gated("One.", &gate), text(&["Two."])]).await;
    let hub = world.start();
    world.messenger.say("ann", "first");
    // From here on it waits for the model alone.
    world.model.request(0).await;
    let inbox = hub.hub.clone();
    let stopping = tokio::spawn(hub.stop());
    while !inbox.is_draining() {
        tokio::task::yield_now().await;
    }
    world.messenger.say("ann", "second");
    gate.open();
    stopping.await.unwrap();
    assert_eq!(world.messenger.texts("ann"), ["One."]);
    let hub = world.start();
    world.messenger.until("ann", 2).await;
    hub.stop().await;
    assert_eq!(world.messenger.texts("ann"), ["One.", "Two."]);
}

/// Calls a tool once the gate is open, and then answers.
fn one_call(gate: &Gate) -> Script {
    let gate = gate.clone();
    Script::answering(move |request| {
        let request = request.json();
        let messages = request["messages"].as_array().unwrap();
        let said = messages.iter().rfind(|it| it["role"] == "user").unwrap();
        let said = content(said);
        if messages.last().unwrap()["role"] == "tool" {
            return text(&[&format!("Re: {}", said.lines().last().unwrap())]);
        }
        let call = CallScript::new("a", "list_files", &json!({"path": "."}));
        let frames = openai::frames(&ReplyScript::calls([call]).usage(1, 1));
        let waits = Response::sse(Vec::<String>::new()).step(Step::Gate(gate.clone()));
        frames.into_iter().fold(waits, Response::send)
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn hub_17_under_load_turns_stop_before_they_ask_again_and_the_next_hub_goes_on_with_them() {
    const PEOPLE: usize = 20;
    let gate = Gate::new();
    let mut world = World::new(one_call(&gate)).await;
    let users = (0..PEOPLE).map(|n| format!("[users.p{n}]\nrole = 'owner'\nids = ['wire:p{n}']\n"));
    world.config = format!("drain = '25s'\n{}", users.collect::<String>());
    let at_once = Provider {
        max_concurrent_requests: NonZeroUsize::new(PEOPLE),
        ..Provider::default()
    };
    world.flags.providers.insert("local".to_owned(), at_once);
    let apart = world.start_apart();
    for person in 0..PEOPLE {
        world
            .messenger
            .say(&format!("p{person}"), &format!("from {person}"));
    }
    // All are being worked on, and each is in the middle of its first reply.
    world.model.request(PEOPLE - 1).await;
    let hub = apart.hub.hub.clone();
    let stopping = tokio::spawn(apart.stop());
    while !hub.is_draining() {
        tokio::task::yield_now().await;
    }
    drop(hub);
    gate.open();
    stopping.await.unwrap();
    assert_eq!(world.model.requests().len(), PEOPLE, "none asks again");
    assert_eq!(world.messenger.all_seen().len(), 0);
    let hub = world.start();
    for person in 0..PEOPLE {
        let name = format!("p{person}");
        world.messenger.until(&name, 1).await;
        assert_eq!(world.messenger.texts(&name), [format!("Re: from {person}")]);
    }
    hub.stop().await;
    assert_eq!(
        world.model.requests().len(),
        2 * PEOPLE,
        "each asks once more"
    );
    assert_eq!(world.messenger.all_seen().len(), PEOPLE);
}

#[tokio::test]
async fn an_event_that_comes_again_is_answered_once_also_in_the_next_process() {
    let world = World::new(Script::repeat(text(&["Yes."]))).await;
    let event = |id: &str| Event {
        id: id.to_owned(),
        chat: "ann".to_owned(),
        group: false,
        sender: "ann".to_owned(),
        mentioned: true,
        text: format!("Event {id}"),
        pressed: None,
    };
    for round in 0..2 {
        let hub = world.start();
        for id in ["a", "b", "a", "b", "a"] {
            world.messenger.push(event(id));
        }
        world.messenger.until_taken().await;
        world.messenger.until("ann", 2).await;
        let counted = hub.hub.metrics().counted();
        assert_eq!(counted.duplicates, [3, 5][round]);
        hub.stop().await;
    }
    assert_eq!(world.messenger.seen("ann").len(), 2);
    assert_eq!(world.model.requests().len(), 2);
}
