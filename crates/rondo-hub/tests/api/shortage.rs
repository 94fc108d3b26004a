//! A storage that takes nothing: clients are told, and it continues by itself.

use crate::world::World;
use rondo_hub::users::Role;
use rondo_testkit::{ReplyScript, Script, openai};
use serde_json::json;
use tokio::time::{Duration, sleep, timeout};

/// Refuses all notes of the hub.
const REFUSES: &str = "CREATE TRIGGER refuses BEFORE INSERT ON host_rows
    BEGIN SELECT RAISE(ABORT, 'nothing is taken'); END";

#[tokio::test]
async fn where_nothing_can_be_noted_the_hub_is_alive_and_not_ready_and_says_why() {
    let reply = openai::streamed(&ReplyScript::text(["Yes."]).usage(1, 1));
    let world = World::new(Script::repeat(reply)).await;
    let key = world.user("ada", Role::Owner).await;
    assert_eq!(world.request("GET", "/readyz").send().await.status, 200);
    let journal = world.home.path().join("data/sessions/journal.db");
    let journal = rusqlite::Connection::open(journal).unwrap();
    journal.execute_batch(REFUSES).unwrap();
    let refused = world
        .post("/v1/chats/home/messages", &key, &json!({"text": "one"}))
        .await;
    assert_eq!(refused.status, 503, "{}", refused.text());
    assert!(refused.text().contains("storage"), "{}", refused.text());
    let not_ready = until_ready_is(&world, 503).await;
    assert!(not_ready.contains("storage"), "{not_ready}");
    assert_eq!(world.request("GET", "/healthz").send().await.status, 200);
    journal.execute_batch("DROP TRIGGER refuses").unwrap();
    until_ready_is(&world, 200).await;
    world.say("home", &key, "two").await;
    let answer = world.events("home", &key, "").await.message().await;
    assert_eq!(answer.1["text"], "Yes.");
    world.stop().await;
}

/// Waits until `/readyz` answers so, which it may answer as before for a moment. Returns the body.
async fn until_ready_is(world: &World, status: u16) -> String {
    let answered = async {
        loop {
            let response = world.request("GET", "/readyz").send().await;
            if response.status == status {
                return response.text();
            }
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(Duration::from_secs(60), answered).await.unwrap()
}
