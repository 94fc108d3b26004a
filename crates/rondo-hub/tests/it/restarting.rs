//! A hub that stops or ends, and the next one.

use crate::messenger::Event;
use crate::world::{World, gated, text};
use rondo_testkit::{Gate, Script};

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
