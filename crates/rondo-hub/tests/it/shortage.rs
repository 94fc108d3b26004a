//! A journal that takes no records for a while, or one message never.

use crate::world::{World, gated, text};
use rondo_testkit::Gate;

/// Refuses records, and nothing else.
const REFUSES: &str = "CREATE TRIGGER refuses BEFORE INSERT ON records
    BEGIN SELECT RAISE(ABORT, 'nothing is taken'); END";

/// Refuses one message, and nothing else.
const REFUSES_ONE: &str =
    "CREATE TRIGGER refuses_one BEFORE INSERT ON mail WHEN CAST(NEW.body AS TEXT) LIKE '%poison%'
    BEGIN SELECT RAISE(ABORT, 'it is not taken'); END";

#[tokio::test]
async fn a_message_that_alone_cannot_be_taken_is_set_aside_after_a_few_tries_and_told() {
    let world = World::new([text(&["Well."])]).await;
    let hub = world.start();
    let journal = world.home.path().join("data/sessions/journal.db");
    let journal = rusqlite::Connection::open(journal).unwrap();
    journal.execute_batch(REFUSES_ONE).unwrap();
    world.messenger.say("ann", "poison");
    world.messenger.say("ann", "and now");
    let told = world.messenger.until("ann", 2).await;
    let mut texts: Vec<&str> = told.iter().map(|it| it.text.as_str()).collect();
    texts.sort_unstable();
    assert_eq!(texts[0], "Well.");
    assert!(
        texts[1].starts_with("Your message could not be processed and was set aside: "),
        "{texts:?}"
    );
    assert_eq!(hub.hub.metrics().counted().set_aside, 1);
    hub.stop().await;
}

#[tokio::test]
async fn a_turn_whose_end_cannot_be_recorded_is_told_and_goes_on_once_it_can() {
    let gate = Gate::new();
    let world = World::new([gated("One.", &gate), text(&["One again."])]).await;
    let hub = world.start();
    world.messenger.say("ann", "first");
    // Its beginning is recorded by now.
    world.model.request(0).await;
    let journal = world.home.path().join("data/sessions/journal.db");
    let journal = rusqlite::Connection::open(journal).unwrap();
    journal.execute_batch(REFUSES).unwrap();
    gate.open();
    let told = world.messenger.until("ann", 1).await;
    assert!(told[0].text.contains("is waiting"), "{}", told[0].text);
    journal.execute_batch("DROP TRIGGER refuses").unwrap();
    world
        .messenger
        .until_all(|it| it.texts("ann").contains(&"One again.".to_owned()))
        .await;
    hub.stop().await;
    assert_eq!(world.model.requests().len(), 2);
}
