//! Commands of chats that change what a turn begins with: `/model` and `/compact`.

use crate::world::{RunningHub, World, last_said, text};
use rondo_types::SessionId;
use std::time::Duration;

#[tokio::test]
async fn a_model_that_is_chosen_in_a_chat_answers_there_also_after_new_and_a_restart() {
    let hello = || text(&["Hello."]);
    let world = World::new([hello(), hello(), hello(), hello()]).await;
    let hub = world.start();
    let said = async |sender: &str, text: &str| {
        let before = world.messenger.seen(sender).len();
        world.messenger.say(sender, text);
        let seen = world.messenger.until(sender, before + 1).await;
        seen.last().unwrap().text.clone()
    };
    let shown = said("ann", "/model").await;
    assert_eq!(shown, "Model: local/any\n/model NAME chooses another one.");
    said("ann", "Hello.").await;
    let chosen = said("ann", "/model local/other").await;
    assert_eq!(chosen, "From the next message on: local/other.");
    said("ann", "Hello.").await;
    hub.stop().await;
    let hub = world.start();
    said("ann", "/new").await;
    assert!(
        said("ann", "/model")
            .await
            .starts_with("Model: local/other\n")
    );
    said("ann", "Hello.").await;
    // Another chat has the model of the settings, and in a group the owner chooses.
    said("bob", "Hello.").await;
    world
        .messenger
        .write("group", "bob", "/model local/other", false);
    let refused = world.messenger.until("group", 1).await;
    assert_eq!(
        refused[0].text,
        "Not done: only an owner may do that in a group."
    );
    hub.stop().await;
    let requests = world.requests();
    let models: Vec<_> = requests
        .iter()
        .map(|it| it["model"].as_str().unwrap())
        .collect();
    assert_eq!(models, ["any", "other", "other", "any"]);
}

#[tokio::test]
async fn what_was_said_in_a_chat_is_summed_up_by_a_command() {
    let long = "Four, since two and two are four. ".repeat(200);
    let replies = [text(&[&long]), text(&["They count."]), text(&["Six."])];
    let world = World::new(replies).await;
    let hub = world.start();
    world.messenger.say("ann", "/compact");
    let told = world.messenger.until("ann", 1).await.remove(0).text;
    assert_eq!(
        told,
        "There is nothing to sum up yet: the conversation is empty."
    );
    world.messenger.say("ann", "What is 2 + 2?");
    world.messenger.until("ann", 2).await;
    world.messenger.say("ann", "/compact the sums");
    let told = world.messenger.until("ann", 3).await.remove(2).text;
    world.messenger.say("ann", "What is 3 + 3?");
    world.messenger.until("ann", 4).await;
    hub.stop().await;
    assert_eq!(told, "They count.");
    let requests = world.requests();
    let asked = last_said(&requests[1]);
    assert!(asked.contains("the sums"), "{asked}");
    let last = requests[2]["messages"].to_string();
    assert!(last.contains("They count."), "{last}");
    assert!(!last.contains("since two and two"), "{last}");
}

#[tokio::test]
async fn sessions_that_a_chat_has_left_are_removed_once_they_are_old_and_its_own_stays() {
    let mut world = World::new([text(&["One."]), text(&["Two."]), text(&["Three."])]).await;
    let hub = world.start();
    world.messenger.say("ann", "First.");
    world.messenger.until("ann", 1).await;
    world.messenger.say("ann", "/new");
    world.messenger.say("ann", "Second.");
    world.messenger.until("ann", 3).await;
    let sessions = |hub: &RunningHub| {
        let store = hub.hub.session(&SessionId::new("wire_ann")).store().clone();
        let sessions = store.sessions(10).unwrap().into_iter();
        sessions.map(|it| it.id.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(sessions(&hub), ["wire_ann+1", "wire_ann"]);
    hub.stop().await;
    world.config = format!("keep_sessions = '1s'\n{}", world.config);
    // Nobody waits: the hub's time is that of the machine.
    let store = world.open();
    let old = store
        .session(&SessionId::new("wire_ann"))
        .info()
        .unwrap()
        .unwrap();
    drop(store);
    while rondo_core::clock::Clock::system().now().since(old.updated) < Duration::from_millis(1001)
    {
        tokio::task::yield_now().await;
    }
    let hub = world.start();
    let row = async || {
        hub.hub
            .store()
            .row("chat_of_session", "wire_ann")
            .await
            .unwrap()
    };
    while row().await.is_some() {
        tokio::task::yield_now().await;
    }
    assert_eq!(sessions(&hub), ["wire_ann+1"]);
    world.messenger.say("ann", "Third.");
    world.messenger.until("ann", 4).await;
    hub.stop().await;
    let last = world.requests().pop().unwrap()["messages"].to_string();
    assert!(
        last.contains("Second.") && !last.contains("First."),
        "{last}"
    );
}
