//! People who may speak, and their rights.

use crate::messenger::Event;
use crate::world::{USERS, World, calls, last_said, text, tools};
use rondo_hub::channel::OutboxKind;
use rondo_hub::users::{Role, User};
use rondo_sandbox::Ledger;
use rondo_testkit::Script;
use serde_json::json;

#[tokio::test]
async fn a_stranger_is_told_their_id_once_and_asks_no_model() {
    let world = World::new([text(&["Never."])]).await;
    let hub = world.start();
    for said in ["Hello?", "/status", "/new", "Hello??"] {
        world.messenger.say("eve", said);
    }
    world.messenger.write("group", "eve", "Hello all.", false);
    world.messenger.until_taken().await;
    let seen = world.messenger.until("eve", 1).await;
    assert!(seen[0].text.contains("`wire:eve`"), "{}", seen[0].text);
    hub.stop().await;
    assert_eq!(world.messenger.all_seen().len(), 1);
    assert_eq!(world.model.requests().len(), 0);
}

#[tokio::test]
async fn a_user_who_is_added_may_speak_at_once_and_one_who_is_removed_may_not() {
    let world = World::new(Script::repeat(text(&["Hello."]))).await;
    let hub = world.start();
    let eve = User {
        name: "eve".to_owned(),
        role: Role::Member,
        ids: vec!["wire:eve".to_owned()],
    };
    hub.hub.users().put(&eve).await.unwrap();
    world.messenger.say("eve", "Hello?");
    world.messenger.until("eve", 1).await;
    assert!(hub.hub.users().remove("eve").await.unwrap());
    world.messenger.say("eve", "Hello?");
    world.messenger.until("eve", 2).await;
    hub.stop().await;
    let texts = world.messenger.texts("eve");
    assert_eq!(texts[0], "Hello.");
    assert!(texts[1].contains("do not know you"), "{texts:?}");
}

#[tokio::test]
async fn the_tools_are_those_of_who_asks_now() {
    let world = World::new(Script::repeat(text(&["Yes."]))).await;
    let hub = world.start();
    for (count, sender) in ["ann", "gus", "bob", "gus"].into_iter().enumerate() {
        world
            .messenger
            .write("group", sender, "What can you do?", false);
        world.messenger.until("group", count + 1).await;
    }
    hub.stop().await;
    let offered: Vec<_> = world.requests().iter().map(tools).collect();
    for (place, writes) in [(0, true), (1, false), (2, true), (3, false)] {
        let has = |name: &str| offered[place].iter().any(|it| it == name);
        assert_eq!(has("write_file"), writes, "{:?}", offered[place]);
        assert_eq!(has("exec"), writes, "{:?}", offered[place]);
    }
    let said = last_said(&world.requests()[1]);
    // A name that people choose does not look like another line or sender.
    assert!(said.contains("from gus 'x'  (gus)]"), "{said}");
}

#[tokio::test]
async fn a_guest_does_not_call_what_they_are_not_offered() {
    let call = calls(&[("c", "write_file", json!({"path": "note", "content": "x"}))]);
    let world = World::new([call, text(&["I cannot."])]).await;
    let hub = world.start();
    world.messenger.say("gus", "Write a note.");
    world.messenger.until("gus", 1).await;
    hub.stop().await;
    assert!(
        !world
            .home
            .path()
            .join("data/hub/chats/wire_gus/note")
            .exists()
    );
}

#[tokio::test]
async fn in_a_group_only_what_is_meant_for_it_is_answered_and_only_owners_begin_anew() {
    let world = World::new(Script::repeat(text(&["Yes."]))).await;
    let hub = world.start();
    world.messenger.push(Event {
        id: "x1".to_owned(),
        chat: "group".to_owned(),
        group: true,
        sender: "ann".to_owned(),
        mentioned: false,
        text: "Among ourselves.".to_owned(),
        pressed: None,
    });
    world.messenger.write("group", "bob", "/new", false);
    let seen = world.messenger.until("group", 1).await;
    assert!(seen[0].text.contains("only an owner"), "{}", seen[0].text);
    world.messenger.write("group", "ann", "/new", false);
    let seen = world.messenger.until("group", 2).await;
    assert_eq!(seen[1].text, "Started a new conversation.");
    hub.stop().await;
    assert_eq!(world.model.requests().len(), 0);
}

#[tokio::test]
async fn strangers_are_guests_in_groups_where_that_is_set_and_a_user_has_spoken() {
    let mut world = World::new(Script::repeat(text(&["Yes."]))).await;
    world.config = format!("strangers = 'guests_in_groups'\n{USERS}");
    let hub = world.start();
    world.messenger.write("group", "eve", "Hello?", false);
    world.messenger.until_taken().await;
    assert_eq!(world.messenger.texts("group"), [""; 0]);
    world.messenger.write("group", "ann", "Hello.", false);
    world.messenger.until("group", 1).await;
    world.messenger.write("group", "eve", "Hello?", false);
    world.messenger.until("group", 2).await;
    world.messenger.write("group", "eve", "/approve", false);
    world.messenger.until("group", 3).await;
    hub.stop().await;
    assert!(
        tools(&world.requests()[1])
            .iter()
            .all(|it| it.starts_with("web_"))
    );
}

#[tokio::test]
async fn a_chat_that_begins_anew_knows_nothing_of_before_and_the_command_counts_once() {
    let world = World::new(Script::repeat(text(&["Yes."]))).await;
    let hub = world.start();
    world.messenger.say("ann", "Remember the pear.");
    world.messenger.until("ann", 1).await;
    let id = world.messenger.say("ann", "/new");
    world.messenger.until("ann", 2).await;
    world.messenger.say("ann", "What was it?");
    world.messenger.until("ann", 3).await;
    // The event of the command comes again.
    world.messenger.push(Event {
        id,
        chat: "ann".to_owned(),
        group: false,
        sender: "ann".to_owned(),
        mentioned: true,
        text: "/new".to_owned(),
        pressed: None,
    });
    world.messenger.until_taken().await;
    world.messenger.say("ann", "And?");
    world.messenger.until("ann", 4).await;
    hub.stop().await;
    let requests = world.requests();
    assert!(!requests[1].to_string().contains("pear"));
    assert!(requests[2].to_string().contains("What was it?"));
}

#[tokio::test]
async fn a_message_to_the_own_chat_needs_no_approval_and_one_to_another_chat_does() {
    let call = |chat: serde_json::Value| {
        calls(&[("c", "message", json!({"text": "Psst.", "chat": chat}))])
    };
    let mut world = World::new([
        text(&["Hello."]),
        call(json!(null)),
        text(&["Done."]),
        call(json!("wire:bob")),
        text(&["Done."]),
        call(json!("wire:bob")),
        text(&["No."]),
    ])
    .await;
    // One that lets no tool run by its name.
    world.flags.profile = Some("default".to_owned());
    let hub = world.start();
    world.ask("ann", "Hello.").await;
    for seen in [2, 4] {
        world.messenger.say("bob", "Write to me.");
        world.messenger.until("bob", seen).await;
    }
    world.messenger.say("ann", "Write to Bob.");
    let asked = world.messenger.until("ann", 2).await;
    assert_eq!(asked[1].kind, OutboxKind::Question);
    world.messenger.press("ann", "ann", &asked[1].choices[1]);
    world.messenger.until("ann", 3).await;
    hub.stop().await;
    assert_eq!(
        world.messenger.texts("bob"),
        ["Psst.", "Done.", "Psst.", "Done."]
    );
}

#[tokio::test]
async fn a_chat_is_told_what_its_conversation_used_and_what_it_used_today_and_nothing_of_others() {
    let world = World::new(Script::repeat(text(&["Yes."]))).await;
    let hub = world.start();
    for (chat, text) in [
        ("bob", "Hello."),
        ("ann", "Hello."),
        ("ann", "/new"),
        ("ann", "Hello again."),
        ("ann", "/usage"),
    ] {
        world.ask(chat, text).await;
    }
    hub.stop().await;
    let said = world.messenger.texts("ann").pop().unwrap();
    let counted: Vec<_> = said
        .lines()
        .map(|line| line.split(" request").next())
        .collect();
    assert_eq!(
        counted,
        [Some("This conversation: 1"), Some("This chat today: 2")],
        "{said}"
    );
}

#[tokio::test]
async fn who_may_use_a_directory_is_told_that_it_must_be_reviewed() {
    let world = World::new(Script::repeat(text(&["answer"]))).await;
    let directory = world.home.path().join("data/hub/chats/wire_ann");
    std::fs::create_dir_all(&directory).unwrap();
    let directory = directory.canonicalize().unwrap();
    let ledger = Ledger::at(world.home.path().join("state/ledger"));
    let roots = [directory.clone()];
    let entry = ledger.begin("key", (1, 0), &roots, &[".envrc"]).unwrap();
    std::fs::write(directory.join(".envrc"), "planted").unwrap();
    assert!(!entry.end(&[]).unwrap());
    let hub = world.start();
    world.messenger.say("ann", "question");
    let seen = world.messenger.until("ann", 2).await;
    hub.stop().await;
    let warned = seen
        .iter()
        .filter(|it| it.text.contains("must be reviewed"));
    assert_eq!(warned.count(), 1, "{seen:?}");
}
