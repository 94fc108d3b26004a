//! Calls that need approval: asked about in the chat, answered there, also after a restart.

use crate::messenger::{Fault, Messenger, Said, Sent};
use crate::world::{RunningHub, World, calls, text, writes};
use async_trait::async_trait;
use rondo_core::Tool;
use rondo_core::ports::{HostCommit, ToolInvocation, ToolScope, ToolSource};
use rondo_hub::HubConfig;
use rondo_hub::accounts::Accounts;
use rondo_hub::channel::{Delivery, OutboxKind};
use rondo_hub::extending::TurnExtensions;
use rondo_hub::questions;
use rondo_runtime::Extensions;
use rondo_types::{Effects, SessionId, ToolOutcome, ToolSpec};
use serde_json::json;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

fn note(world: &World, chat: &str) -> PathBuf {
    world
        .home
        .path()
        .join("data/hub/chats")
        .join(chat)
        .join("note")
}

#[tokio::test]
async fn a_question_is_answered_by_its_button_once_also_after_a_restart() {
    let world = World::new([writes("c", "note"), text(&["Written."])]).await;
    let hub = world.start();
    world.messenger.say("ann", "Write a note.");
    let seen = world.messenger.until("ann", 1).await;
    assert_eq!(seen[0].kind, OutboxKind::Question);
    assert!(
        seen[0].text.contains("write_file") || seen[0].text.contains("note"),
        "{}",
        seen[0].text
    );
    hub.stop().await;
    assert!(!note(&world, "wire_ann").exists());
    let hub = world.start();
    for _ in 0..2 {
        world.messenger.press("ann", "ann", &seen[0].choices[0]);
    }
    world.messenger.press("ann", "ann", &seen[0].choices[1]);
    world
        .messenger
        .until_all(|it| it.texts("ann").contains(&"Written.".to_owned()))
        .await;
    world.messenger.until_taken().await;
    hub.stop().await;
    assert_eq!(fs::read_to_string(note(&world, "wire_ann")).unwrap(), "c");
    assert_eq!(world.model.requests().len(), 2);
    let finals = world.messenger.seen("ann");
    let finals = finals.iter().filter(|it| it.kind == OutboxKind::Final);
    assert_eq!(finals.count(), 1);
}

#[tokio::test]
async fn a_command_answers_and_a_denial_reaches_the_model() {
    let world = World::new([writes("c", "note"), text(&["Not written."])]).await;
    let hub = world.start();
    world.messenger.say("ann", "Write a note.");
    world.messenger.until("ann", 1).await;
    world.messenger.say("ann", "/deny not on a Monday");
    world.messenger.until("ann", 2).await;
    hub.stop().await;
    assert_eq!(world.messenger.texts("ann")[1], "Not written.");
    assert!(world.requests()[1].to_string().contains("not on a Monday"));
    assert!(!note(&world, "wire_ann").exists());
}

#[tokio::test]
async fn whoever_may_not_approve_does_not_by_button_or_command_and_the_owner_is_asked_too() {
    let world = World::new([text(&["Hello."]), writes("c", "note"), text(&["Written."])]).await;
    let hub = world.start();
    // From here on the owner can be reached.
    world.messenger.say("ann", "Hello.");
    world.messenger.until("ann", 1).await;
    world.messenger.say("bob", "Write a note.");
    let asked = world.messenger.until("bob", 1).await;
    let allow = &asked[0].choices[0];
    world.messenger.press("bob", "bob", allow);
    world.messenger.say("bob", "/approve");
    world.messenger.press("group", "bob", allow);
    world.messenger.press("eve", "eve", allow);
    let refused = world.messenger.until("bob", 3).await;
    assert!(
        refused[1].text.contains("only an owner"),
        "{}",
        refused[1].text
    );
    assert!(
        refused[2].text.contains("only an owner"),
        "{}",
        refused[2].text
    );
    world.messenger.until_taken().await;
    assert!(!note(&world, "wire_bob").exists());
    let asked = world.messenger.until("ann", 2).await;
    assert!(asked[1].text.contains("wire_bob"), "{}", asked[1].text);
    world.messenger.press("ann", "ann", &asked[1].choices[0]);
    world.messenger.until("bob", 4).await;
    hub.stop().await;
    assert!(note(&world, "wire_bob").exists());
    assert_eq!(world.messenger.texts("bob")[3], "Written.");
}

/// Two more owners, each of whom has written in their private chat.
const OWNERS: &str = "
    [users.cid]
    role = 'owner'
    ids = ['wire:cid']
    [users.old]
    role = 'owner'
    ids = ['wire:old']
";

async fn greeted(world: &World) {
    for owner in ["ann", "cid", "old"] {
        world.messenger.say(owner, "Hello.");
        world.messenger.until(owner, 1).await;
    }
}

/// Waits until the hub knows where that many messages ask something.
async fn copies(hub: &RunningHub, count: usize) {
    let read = async || {
        let rows = hub.hub.store().rows("question_copy", "", 10).await;
        rows.unwrap().len()
    };
    while read().await < count {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn messages_that_ask_lose_their_buttons_when_the_question_is_no_longer_open() {
    let hello = || text(&["Hello."]);
    let replies = [hello(), hello(), hello(), writes("c", "note")];
    let mut world = World::new(replies).await;
    world.delivery = Delivery::Edit;
    world.config.push_str(OWNERS);
    let hub = world.start();
    greeted(&world).await;
    world.messenger.say("bob", "Write a note.");
    copies(&hub, 4).await;
    let store = hub.hub.store();
    let session = SessionId::new("wire_bob");
    let asked = questions::of_session(&**store, &session).await.unwrap();
    let commit = HostCommit {
        rows: questions::forget(&session, &asked),
        ..HostCommit::default()
    };
    assert!(store.commit(commit).await.unwrap());
    // Whatever is sent next has the channel look.
    world.messenger.say("ann", "/help");
    let is_closed = |it: &Sent| {
        let end = "\n\nThis question is no longer open.";
        it.text.ends_with(end) && it.choices.is_empty() && it.edits.is_some()
    };
    let all_closed = |it: &Messenger| {
        let mut owners = ["ann", "cid", "old"].iter();
        owners.all(|owner| is_closed(&it.seen(owner)[1])) && is_closed(&it.seen("bob")[0])
    };
    world.messenger.until_all(all_closed).await;
    let text = &world.messenger.seen("ann")[1].text;
    assert!(text.contains("asks in `wire_bob`: May this run?"), "{text}");
    assert!(!text.contains("/approve"), "{text}");
    hub.stop().await;
}

#[tokio::test]
async fn every_owner_is_asked_but_a_revoked_one_and_the_first_answer_settles_all_copies() {
    let hello = || text(&["Hello."]);
    let replies = [
        hello(),
        hello(),
        hello(),
        writes("c", "note"),
        text(&["Written."]),
        writes("d", "note"),
        text(&["Again."]),
    ];
    let mut world = World::new(replies).await;
    world.delivery = Delivery::Edit;
    world.config.push_str(OWNERS);
    let hub = world.start();
    greeted(&world).await;
    let config: HubConfig = toml::from_str(&world.config).unwrap();
    let accounts = Accounts::new(config.users(), Arc::clone(hub.hub.store()));
    accounts.revoke("old").await.unwrap();
    world.messenger.say("bob", "Write a note.");
    let asked = world.messenger.until("cid", 2).await;
    let from = "bob (`wire:bob`), member, asks in `wire_bob`: ";
    assert!(asked[1].text.starts_with(from), "{}", asked[1].text);
    assert!(
        asked[1].text.contains("/approve always"),
        "{}",
        asked[1].text
    );
    world.messenger.until("ann", 2).await;
    world.messenger.until("bob", 1).await;
    let labels: Vec<&str> = asked[1]
        .choices
        .iter()
        .map(|it| it.label.as_str())
        .collect();
    assert_eq!(labels, ["Allow", "Deny", "Always"]);
    copies(&hub, 3).await;
    world.messenger.press("cid", "cid", &asked[1].choices[2]);
    let settled = |it: &Messenger| {
        let is_settled = |it: &Sent| it.text.ends_with("\n\nAlways allowed by cid.");
        it.texts("bob").contains(&"Written.".to_owned())
            && is_settled(&it.seen("ann")[1])
            && is_settled(&it.seen("bob")[0])
    };
    world.messenger.until_all(settled).await;
    let ann = &world.messenger.seen("ann")[1];
    assert!(ann.choices.is_empty() && ann.edits.is_some(), "{ann:?}");
    // The channel itself changes the message whose button was pressed.
    assert_eq!(world.messenger.seen("cid")[1].choices.len(), 3);
    world.messenger.say("bob", "Write it again.");
    let is_again = |it: &Messenger| it.texts("bob").contains(&"Again.".to_owned());
    world.messenger.until_all(is_again).await;
    hub.stop().await;
    assert_eq!(world.messenger.texts("old"), ["Hello."]);
    assert_eq!(world.messenger.seen("ann").len(), 2);
    assert_eq!(fs::read_to_string(note(&world, "wire_bob")).unwrap(), "d");
}

#[tokio::test]
async fn a_question_that_is_over_without_an_answer_in_a_chat_loses_its_buttons_in_all_of_them() {
    let replies = [text(&["Hello."]), writes("c", "note")];
    let mut world = World::new(replies).await;
    world.delivery = Delivery::Edit;
    let hub = world.start();
    world.messenger.say("ann", "Hello.");
    world.messenger.until("ann", 1).await;
    world.messenger.say("bob", "Write a note.");
    world.messenger.until("ann", 2).await;
    world.messenger.until("bob", 1).await;
    while !hub.hub.outbox().unsent().await.unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    world.messenger.say("bob", "/stop");
    let settled = |it: &Messenger| {
        let (ann, bob) = (&it.seen("ann")[1], &it.seen("bob")[0]);
        ann.choices.is_empty() && bob.choices.is_empty()
    };
    world.messenger.until_all(settled).await;
    hub.stop().await;
    for said in [
        world.messenger.texts("ann").remove(1),
        world.messenger.texts("bob").remove(0),
    ] {
        assert!(
            said.ends_with("\n\nThis question is no longer open."),
            "{said}"
        );
    }
}

#[tokio::test]
async fn an_owner_who_could_not_be_told_yet_is_not_asked_what_another_one_answered() {
    let hello = || text(&["Hello."]);
    let replies = [
        hello(),
        hello(),
        hello(),
        writes("c", "note"),
        text(&["Written."]),
    ];
    let mut world = World::new(replies).await;
    world.config.push_str(OWNERS);
    let hub = world.start();
    greeted(&world).await;
    let slow = Said::Slow { after_ms: 500 };
    world.messenger.fault("cid", Fault::Says(slow));
    world.messenger.say("bob", "Write a note.");
    let asked = world.messenger.until("ann", 2).await;
    world.messenger.press("ann", "ann", &asked[1].choices[0]);
    world.messenger.until("bob", 2).await;
    while !hub.hub.outbox().unsent().await.unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    hub.stop().await;
    assert_eq!(world.messenger.texts("cid"), ["Hello."]);
}

#[tokio::test]
async fn where_no_owner_can_be_reached_the_call_is_denied_at_once() {
    let world = World::new([writes("c", "note"), text(&["I may not."])]).await;
    let hub = world.start();
    world.messenger.say("bob", "Write a note.");
    world.messenger.until("bob", 1).await;
    hub.stop().await;
    assert_eq!(world.messenger.texts("bob"), ["I may not."]);
    assert!(
        world.requests()[1]
            .to_string()
            .contains("no owner can be asked")
    );
}

#[tokio::test]
async fn stopping_a_turn_that_waits_denies_what_it_asks() {
    let world = World::new([writes("c", "note"), text(&["Again."])]).await;
    let hub = world.start();
    world.messenger.say("ann", "Write a note.");
    let asked = world.messenger.until("ann", 1).await;
    world.messenger.say("ann", "/stop");
    let seen = world.messenger.until("ann", 2).await;
    assert_eq!(seen[1].kind, OutboxKind::Final);
    assert!(seen[1].text.contains("Stopped."), "{}", seen[1].text);
    world.messenger.press("ann", "ann", &asked[0].choices[0]);
    let seen = world.messenger.until("ann", 3).await;
    assert!(seen[2].text.contains("no longer open"), "{}", seen[2].text);
    world.messenger.say("ann", "Hello?");
    world.messenger.until("ann", 4).await;
    hub.stop().await;
    assert!(!note(&world, "wire_ann").exists());
}

/// A tool that asks for values while it runs, and returns them.
#[derive(Clone)]
struct Books;

impl TurnExtensions for Books {
    fn of_turn(&self) -> rondo_runtime::error::Result<Extensions> {
        Ok(Extensions {
            tool_sources: vec![Arc::new(Self)],
            ..Extensions::default()
        })
    }
}

impl ToolSource for Books {
    fn tools(&self, _: &ToolScope) -> Vec<Arc<dyn Tool>> {
        vec![Arc::new(Self)]
    }

    fn generation(&self) -> u64 {
        0
    }
}

#[async_trait]
impl Tool for Books {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "book".to_owned(),
            effects: Effects::ReadOnly,
            ..ToolSpec::default()
        }
    }

    async fn call(&self, call: ToolInvocation) -> ToolOutcome {
        let form = json!({"type": "object", "required": ["room", "nights"], "properties": {
            "room": {"type": "string", "enum": ["single", "double"]},
            "nights": {"type": "integer", "minimum": 1},
        }});
        ToolOutcome::text(format!(
            "{:?}",
            call.asker.input("How shall I book?", form).await
        ))
    }
}

#[tokio::test]
async fn values_that_a_running_call_asks_for_are_given_in_the_chat() {
    let books = calls(&[("c", "book", json!({}))]);
    let world = World::new([books, text(&["Booked."])]).await;
    let hub = world.start();
    hub.hub.extend_turns(Arc::new(Books));
    world.messenger.say("ann", "Book a room.");
    let asked = world.messenger.until("ann", 1).await;
    assert_eq!(asked[0].kind, OutboxKind::Question, "{asked:?}");
    for part in ["How shall I book?", "room: single or double", "/answer"] {
        assert!(asked[0].text.contains(part), "{}", asked[0].text);
    }
    world.messenger.say("ann", "/answer double");
    let told = world.messenger.until("ann", 2).await;
    assert!(
        told[1].text.contains("a line is missing"),
        "{}",
        told[1].text
    );
    world.messenger.say("ann", "/answer double\n3");
    world
        .messenger
        .until_all(|it| it.texts("ann").contains(&"Booked.".to_owned()))
        .await;
    hub.stop().await;
    let read = world.requests()[1].to_string();
    assert!(read.contains("double") && read.contains("Ok("), "{read}");
}
