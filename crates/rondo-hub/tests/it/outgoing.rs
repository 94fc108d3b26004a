//! Files that are sent with messages, and what is left of them.

use crate::messenger::{Fault, Said};
use crate::world::{World, calls, text};
use rondo_testkit::Script;
use serde_json::json;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use tokio::time::{sleep, timeout};

/// Sends a file, and says so.
fn sends() -> Script {
    Script::answering(|request| {
        let said = crate::world::last_said(&request.json());
        match said.ends_with("send it") {
            true => calls(&[("a", "message", json!({"files": ["note.txt"]}))]),
            false => text(&["Sent."]),
        }
    })
}

fn waiting(world: &World) -> Vec<PathBuf> {
    let entries = fs::read_dir(world.home.path().join("data/hub/outgoing")).unwrap();
    entries.map(|it| it.unwrap().path()).collect()
}

fn grow_old(directory: &Path) {
    let then = SystemTime::now() - Duration::from_secs(7_200);
    File::open(directory).unwrap().set_modified(then).unwrap();
}

async fn until_gone(directory: &Path) {
    let is_gone = async {
        while directory.exists() {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(Duration::from_secs(60), is_gone).await.unwrap();
}

#[tokio::test]
async fn a_file_goes_once_its_message_was_delivered_or_dropped_and_no_sooner() {
    let world = World::new(sends()).await;
    let hub = world.start();
    world.messenger.say("ann", "hello");
    world.messenger.until("ann", 1).await;
    let chat = world.home.path().join("data/hub/chats/wire_ann");
    fs::write(chat.join("note.txt"), "note").unwrap();
    world.messenger.fault("ann", Fault::Says(Said::Refused));
    world.messenger.say("ann", "send it");
    // The notice about the refusal, and the answer.
    world.messenger.until("ann", 3).await;
    let refused = waiting(&world).remove(0);
    world.messenger.say("ann", "send it");
    world.messenger.until("ann", 5).await;
    let delivered = waiting(&world);
    let delivered = delivered.into_iter().find(|it| *it != refused).unwrap();
    hub.stop().await;
    let unqueued = delivered.with_file_name("young");
    fs::create_dir(&unqueued).unwrap();
    for old in [&refused, &delivered] {
        grow_old(old);
    }
    let hub = world.start();
    until_gone(&delivered).await;
    assert_eq!(fs::read_to_string(refused.join("0")).unwrap(), "note");
    let kept = hub.hub.outbox().unsent().await.unwrap();
    assert!(hub.hub.outbox().drop_row(kept[0].id).await.unwrap());
    hub.stop().await;
    let hub = world.start();
    until_gone(&refused).await;
    hub.stop().await;
    assert_eq!(waiting(&world), [unqueued]);
}
