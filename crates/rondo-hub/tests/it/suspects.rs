//! Sessions that may have ended the processes before: they are tried alone, and quarantined if they did so again.

use crate::world::{World, gated, last_said, text};
use rondo_testkit::{Gate, Script};
use rusqlite::Connection;

/// Row of a session that was alone at a request as three processes ended, and among others as two did.
const CULPRIT: &str = r#"{"at_work": 3}"#;
const SUSPECT: &str = r#"{"among_others": 2}"#;

/// Cuts off the turns of these people, so that they are suspected.
async fn cut_off(world: &World, people: &[&str], known: &str) {
    let hub = world.start_apart();
    for (place, person) in people.iter().enumerate() {
        world.messenger.say(person, &format!("from {person}"));
        world.model.request(place).await;
    }
    hub.kill().await;
    let journal = world.home.path().join("data/sessions/journal.db");
    let journal = Connection::open(journal).unwrap();
    for person in people {
        let row = (format!("wire_{person}"), known);
        let insert = "REPLACE INTO host_rows (name, key, value) VALUES ('suspect', ?1, ?2)";
        journal.execute(insert, row).unwrap();
    }
}

/// Answers by what was said, not before the gate of that opens.
fn echo(gates: Vec<(&'static str, Gate)>) -> Script {
    Script::answering(move |request| {
        let said = last_said(&request.json());
        let said = said.lines().last().unwrap_or_default().to_owned();
        let gate = gates.iter().find(|(name, _)| said.contains(name));
        match gate {
            Some((_, gate)) => gated(&format!("Re: {said}"), gate),
            None => text(&[&format!("Re: {said}")]),
        }
    })
}

#[tokio::test]
async fn who_is_put_aside_is_told_also_where_an_event_wakes_the_chat_first() {
    let gate = Gate::new();
    let world = World::new(echo(vec![("from ann", gate)])).await;
    cut_off(&world, &["ann"], CULPRIT).await;
    // It waits at the messenger, which hands it in as soon as the hub is there.
    world.messenger.say("ann", "again");
    let hub = world.start();
    world.messenger.until("ann", 3).await;
    hub.stop().await;
    let texts = world.messenger.texts("ann");
    assert!(texts[0].contains("quarantined"), "{texts:?}");
    assert!(texts[1].ends_with("Stopped."), "{texts:?}");
    assert_eq!(texts[2], "Re: again");
    assert_eq!(world.model.requests().len(), 2);
}

#[tokio::test]
async fn those_that_are_suspected_are_tried_one_at_a_time_while_others_wait() {
    let people = ["ann", "bob"];
    let first = people.map(|_| Gate::new());
    let world = World::new(echo(people.into_iter().zip(first.clone()).collect())).await;
    cut_off(&world, &people, SUSPECT).await;
    let begun = world.model.requests().len();
    let hub = world.start();
    world.messenger.say("gus", "from gus");
    world.messenger.until_taken().await;
    world.model.request(begun).await;
    for place in 0..people.len() {
        let requests = world.requests();
        assert_eq!(requests.len(), begun + place + 1, "one is tried at a time");
        let said = last_said(requests.last().unwrap());
        let tried = people.iter().position(|it| said.contains(it)).unwrap();
        first[tried].open();
        world.messenger.until(people[tried], 1).await;
        world.model.request(begun + place + 1).await;
    }
    world.messenger.until("gus", 1).await;
    hub.stop().await;
    for person in ["ann", "bob", "gus"] {
        assert_eq!(
            world.messenger.texts(person),
            [format!("Re: from {person}")]
        );
    }
}
