//! Files that the agent sends to a chat, and who gets them.

use crate::world::World;
use rondo_hub::users::Role;
use rondo_testkit::{CallScript, ReplyScript, openai};
use serde_json::json;
use std::fs;

#[tokio::test]
async fn a_file_is_downloaded_as_it_was_when_it_was_sent_by_its_user_alone_and_after_a_restart() {
    let send = |id| CallScript::new(id, "message", &json!({"files": ["note.txt"]}));
    let world = World::new([
        openai::streamed(&ReplyScript::text(["Hello."]).usage(1, 1)),
        openai::streamed(&ReplyScript::calls([send("a")]).usage(1, 1)),
        openai::streamed(&ReplyScript::text(["Sent."]).usage(1, 1)),
    ])
    .await;
    let ada = world.user("ada", Role::Owner).await;
    let bob = world.user("bob", Role::Owner).await;
    world.say("home", &ada, "Hello.").await;
    let mut events = world.events("home", &ada, "").await;
    events.message().await;
    let note = world
        .home
        .path()
        .join("data/hub/chats/api@ada_home/note.txt");
    fs::write(&note, "as it was").unwrap();
    world.say("home", &ada, "Send the note.").await;
    let sent = loop {
        let message = events.message().await.1;
        assert_ne!(message["kind"], "final", "{message}");
        if message["files"] == json!(["note.txt"]) {
            break message;
        }
    };
    fs::write(&note, "as it is").unwrap();
    let ended = events.message().await.1;
    assert_eq!(ended["text"], "Sent.");
    drop(events);
    let (home, model) = world.stop().await;
    let world = World::on(home, model).await;
    let path = format!("/v1/chats/home/messages/{}/files/", sent["id"]);
    let first = format!("{path}0");
    let got = world.get(&first, &ada).await;
    assert_eq!((got.status, got.text()), (200, "as it was".into()));
    for (name, value) in [
        ("content-type", "application/octet-stream"),
        ("content-disposition", "attachment"),
        ("content-length", "9"),
    ] {
        assert_eq!(got.header(name), Some(value), "{name}");
    }
    assert_eq!(world.get(&format!("{path}1"), &ada).await.status, 404);
    assert_eq!(world.get(&first, &bob).await.status, 404);
    assert_eq!(world.request("GET", &first).send().await.status, 401);
    world.stop().await;
}
