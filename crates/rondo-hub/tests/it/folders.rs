//! Questions to an owner about the folder that a chat works in.

use crate::world::{World, text, writes};
use rondo_hub::channel::OutboxKind;
use std::fs;
use std::path::PathBuf;

/// Returns the directory of a chat, which brings a setting that counts only with trust.
fn bring(world: &World, chat: &str) -> PathBuf {
    let directory = world.home.path().join("data/hub/chats").join(chat);
    fs::create_dir_all(directory.join(".rondo")).unwrap();
    fs::write(directory.join(".rondo/config.toml"), "yolo = true").unwrap();
    directory
}

fn is_trusted(world: &World) -> bool {
    let file = world.home.path().join("config.toml");
    fs::read_to_string(file).is_ok_and(|it| it.contains("trusted_folders"))
}

#[tokio::test]
async fn the_owner_is_asked_about_the_folder_of_a_chat_and_the_answer_holds_from_the_next_turn_on()
{
    let world = World::new([text(&["Hello."]), text(&["Hi."]), text(&["Again."])]).await;
    let hub = world.start();
    // From here on the owner can be reached.
    world.messenger.say("ann", "Hello.");
    world.messenger.until("ann", 1).await;
    bring(&world, "wire_bob");
    world.messenger.say("bob", "Hi.");
    world.messenger.until("bob", 1).await;
    let asked = world.messenger.until("ann", 2).await.remove(1);
    assert_eq!(asked.kind, OutboxKind::Question);
    assert!(asked.text.contains("yolo = true"), "{}", asked.text);
    let allow = &asked.choices[0];
    // No other may agree to it, and nothing is trusted before.
    world.messenger.press("bob", "bob", allow);
    world.messenger.say("bob", "/approve");
    world.messenger.until("bob", 3).await;
    assert!(!is_trusted(&world));
    world.messenger.press("ann", "ann", allow);
    world.messenger.until_taken().await;
    world.messenger.say("bob", "Again.");
    world
        .messenger
        .until_all(|it| it.texts("bob").contains(&"Again.".to_owned()))
        .await;
    hub.stop().await;
    assert!(is_trusted(&world));
    let questions = world.messenger.seen("ann");
    let questions = questions
        .iter()
        .filter(|it| it.kind == OutboxKind::Question);
    assert_eq!(questions.count(), 1, "it is asked once");
}

#[tokio::test]
async fn a_command_in_the_chat_is_about_what_was_asked_there_and_not_about_its_folder() {
    let world = World::new([text(&["Hello."]), writes("c", "note"), text(&["Written."])]).await;
    let hub = world.start();
    world.messenger.say("ann", "Hello.");
    world.messenger.until("ann", 1).await;
    let directory = bring(&world, "wire_ann");
    world.messenger.say("ann", "Write a note.");
    world.messenger.until("ann", 3).await;
    world.messenger.say("ann", "/approve");
    world
        .messenger
        .until_all(|it| it.texts("ann").contains(&"Written.".to_owned()))
        .await;
    hub.stop().await;
    assert!(directory.join("note").exists() && !is_trusted(&world));
}

#[tokio::test]
async fn nobody_is_asked_about_a_folder_before_an_owner_can_be_reached() {
    let world = World::new([text(&["Hi."])]).await;
    bring(&world, "wire_bob");
    let hub = world.start();
    world.messenger.say("bob", "Hi.");
    let said = world.messenger.until("bob", 1).await;
    hub.stop().await;
    assert_eq!(said[0].text, "Hi.");
    assert_eq!(world.messenger.all_seen().len(), 1);
    assert!(!is_trusted(&world));
}
