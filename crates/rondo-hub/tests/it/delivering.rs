//! How answers reach their chats: in order, once, and kept if they cannot be sent.

use crate::messenger::{Fault, Messenger, Said};
use crate::world::{World, text};
use rondo_core::ports::OutboxState;
use rondo_hub::channel::{Delivery, OutboxKind};
use rondo_testkit::{Gate, ReplyScript, Response, Script, Step, openai};

fn echo() -> Script {
    Script::answering(|request| {
        let said = crate::world::last_said(&request.json());
        text(&[&format!("Re: {}", said.lines().last().unwrap_or_default())])
    })
}

#[tokio::test]
async fn a_chat_that_is_to_wait_delays_no_other_and_keeps_its_order() {
    let world = World::new(echo()).await;
    world
        .messenger
        .fault("ann", Fault::Says(Said::Slow { after_ms: 1_500 }));
    let hub = world.start();
    world.messenger.say("ann", "one");
    world.messenger.say("ann", "two");
    world.messenger.say("bob", "three");
    world.messenger.until("bob", 1).await;
    assert_eq!(world.messenger.texts("ann"), [""; 0]);
    world.messenger.until("ann", 2).await;
    hub.stop().await;
    assert_eq!(world.messenger.texts("ann"), ["Re: one", "Re: two"]);
}

#[tokio::test]
async fn what_may_be_there_is_sent_again_and_counted_and_with_a_key_it_is_seen_once() {
    for (delivery, seen) in [(Delivery::AtLeastOnce, 2), (Delivery::Key, 1)] {
        let mut world = World::new(echo()).await;
        world.delivery = delivery;
        world.messenger.fault("ann", Fault::LosesReceipt);
        world.messenger.fault("bob", Fault::Breaks);
        let hub = world.start();
        world.messenger.say("ann", "one");
        world.messenger.until("ann", seen).await;
        world.messenger.say("bob", "two");
        world.messenger.until("bob", 1).await;
        let outbox = hub.hub.outbox();
        let mut changed = outbox.outbox_changed();
        while outbox.counts().await.unwrap().open > 0 {
            changed.changed().await.unwrap();
        }
        let resent = hub.hub.metrics().counted().resent;
        assert_eq!(resent, if delivery == Delivery::Key { 0 } else { 2 });
        hub.stop().await;
        assert_eq!(world.messenger.seen("ann").len(), seen);
        assert_eq!(world.messenger.texts("bob"), ["Re: two"]);
    }
}

/// A reply that does not continue after its first piece before the gate opens.
fn in_pieces(said: [&str; 2], gate: &Gate) -> Response {
    let mut frames = openai::frames(&ReplyScript::text(said).usage(1, 1));
    let of_begin = frames
        .iter()
        .position(|it| String::from_utf8_lossy(it).contains(said[0]));
    let rest = frames.split_off(of_begin.unwrap() + 1);
    let begun = Response::sse(frames).step(Step::Gate(gate.clone()));
    rest.into_iter().fold(begun, Response::send)
}

#[tokio::test]
async fn a_reply_is_shown_while_it_is_written_and_its_final_takes_the_place_of_that() {
    let gates = [Gate::new(), Gate::new()];
    let replies = [
        in_pieces(["One", " whole."], &gates[0]),
        in_pieces(["Two", " whole."], &gates[1]),
    ];
    let mut world = World::new(replies).await;
    world.delivery = Delivery::Edit;
    let streaming = toml::Table::from_iter([("streaming".to_owned(), true.into())]);
    world.flags.profiles.insert("hub".to_owned(), streaming);
    let hub = world.start();
    for (place, gate) in gates.iter().enumerate() {
        world.messenger.say("ann", "Tell.");
        let shown = world.messenger.until("ann", place + 1).await;
        assert!(shown[place].is_draft, "{shown:?}");
        gate.open();
        let is_whole = |it: &Messenger| it.seen("ann")[place].text.ends_with("whole.");
        world.messenger.until_all(is_whole).await;
    }
    hub.stop().await;
    let seen = world.messenger.seen("ann");
    let texts: Vec<&str> = seen.iter().map(|it| it.text.as_str()).collect();
    assert_eq!(texts, ["One whole.", "Two whole."]);
    assert!(seen.iter().all(|it| it.edits.is_some() && !it.is_draft));
}

#[tokio::test]
async fn what_is_refused_is_kept_and_listed_and_its_chat_is_told() {
    let world = World::new(echo()).await;
    world.messenger.fault("ann", Fault::Says(Said::Refused));
    let hub = world.start();
    world.messenger.say("ann", "one");
    let seen = world.messenger.until("ann", 1).await;
    assert_eq!(seen[0].kind, OutboxKind::Notice);
    assert!(
        seen[0]
            .text
            .contains("could not be delivered here: it says nothing"),
        "{}",
        seen[0].text
    );
    world.messenger.say("ann", "two");
    world.messenger.until("ann", 2).await;
    let kept = hub.hub.outbox().unsent().await.unwrap();
    assert_eq!(kept[0].state, OutboxState::Failed);
    assert_eq!(kept[0].entry.text, "Re: one");
    assert!(hub.hub.outbox().retry(kept[0].id).await.unwrap());
    world.messenger.until("ann", 3).await;
    hub.stop().await;
    assert_eq!(world.messenger.texts("ann")[1..], ["Re: two", "Re: one"]);
}

#[tokio::test]
async fn where_a_chat_refuses_even_the_notice_an_owner_is_told() {
    let world = World::new(echo()).await;
    let hub = world.start();
    world.messenger.say("ann", "one");
    world.messenger.until("ann", 1).await;
    for _ in 0..2 {
        world.messenger.fault("bob", Fault::Says(Said::Refused));
    }
    // The notice to the owner is refused, too: nothing goes round in circles.
    world.messenger.fault("ann", Fault::Says(Said::Refused));
    world.messenger.say("bob", "two");
    // The answer and the notice.
    let outbox = hub.hub.outbox();
    let mut changed = outbox.outbox_changed();
    while outbox.counts().await.unwrap().failed < 2 {
        changed.changed().await.unwrap();
    }
    world.messenger.say("bob", "three");
    world.messenger.until("bob", 1).await;
    for _ in 0..2 {
        world.messenger.fault("bob", Fault::Says(Said::Refused));
    }
    world.messenger.say("bob", "four");
    let seen = world.messenger.until("ann", 2).await;
    hub.stop().await;
    assert!(seen[1].text.contains("`wire:bob`"), "{}", seen[1].text);
    assert!(!seen[1].text.contains("four"), "{}", seen[1].text);
    assert_eq!(world.messenger.texts("bob"), ["Re: three"]);
    assert_eq!(world.messenger.seen("ann").len(), 2);
}

#[tokio::test]
async fn a_person_who_could_not_be_reached_is_told_so_at_their_next_message_and_an_owner_at_once() {
    let world = World::new(echo()).await;
    let hub = world.start();
    world.messenger.say("ann", "one");
    world.messenger.until("ann", 1).await;
    world.messenger.fault("bob", Fault::Says(Said::Gone));
    world.messenger.say("bob", "two");
    let seen = world.messenger.until("ann", 2).await;
    assert!(seen[1].text.contains("blocked"), "{}", seen[1].text);
    assert!(!seen[1].text.contains("Re: two"), "{}", seen[1].text);
    // It holds over a restart, and is said once.
    hub.stop().await;
    let hub = world.start();
    world.messenger.say("bob", "three");
    world.messenger.until("bob", 2).await;
    world.messenger.say("bob", "four");
    world.messenger.until("bob", 3).await;
    hub.stop().await;
    let texts = world.messenger.texts("bob");
    assert!(texts[0].contains("could not be delivered"), "{texts:?}");
    assert_eq!(texts[1..], ["Re: three", "Re: four"]);
}

#[tokio::test]
async fn an_owner_whose_own_chat_is_gone_is_told_at_their_next_message_and_nobody_else_is() {
    let world = World::new(echo()).await;
    let hub = world.start();
    world.messenger.say("bob", "one");
    world.messenger.until("bob", 1).await;
    world.messenger.fault("ann", Fault::Says(Said::Gone));
    world.messenger.say("ann", "two");
    world.messenger.until_taken().await;
    world.messenger.say("ann", "three");
    world.messenger.until("ann", 1).await;
    let outbox = hub.hub.outbox();
    let mut changed = outbox.outbox_changed();
    while outbox.counts().await.unwrap().open > 0 {
        changed.changed().await.unwrap();
    }
    world.messenger.say("ann", "four");
    world
        .messenger
        .until_all(|it| it.texts("ann").contains(&"Re: four".to_owned()))
        .await;
    hub.stop().await;
    let told = world.messenger.texts("ann");
    let told = told
        .iter()
        .filter(|it| it.contains("could not be delivered"));
    assert_eq!(told.count(), 1);
    assert_eq!(world.messenger.texts("bob"), ["Re: one"]);
}

#[tokio::test]
async fn a_chat_that_has_another_id_keeps_its_session_and_what_waits() {
    let world = World::new(echo()).await;
    let moved = Said::Moved {
        to: "group2".to_owned(),
    };
    world.messenger.fault("group1", Fault::Says(moved));
    let hub = world.start();
    world.messenger.write("group1", "ann", "one", false);
    world.messenger.until("group2", 1).await;
    world.messenger.write("group2", "ann", "two", false);
    world.messenger.until("group2", 2).await;
    hub.stop().await;
    assert!(
        world.requests()[1].to_string().contains("Re: one"),
        "it is the same conversation"
    );
}
