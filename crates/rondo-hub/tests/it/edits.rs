//! Messages that are edited after they were sent.

use crate::messenger::EDITED;
use crate::world::{World, gated, last_said, text};
use rondo_testkit::Gate;

const READ_BEFORE: &str =
    "I read your message as it was before this edit. Send what you changed as a new message.";

#[tokio::test]
async fn an_edit_replaces_a_message_that_waits_and_none_that_was_read() {
    let gate = Gate::new();
    let world = World::new([gated("One.", &gate), text(&["Two."])]).await;
    let hub = world.start();
    let read = world.messenger.say("ann", "Read.");
    world.model.request(0).await;
    let waiting = world.messenger.say("ann", "Waits.");
    world.messenger.until_taken().await;
    // Nobody changes what others said, and no edit is a command.
    for (sender, text) in [("bob", "Forged."), ("ann", "/new"), ("ann", "Edited.")] {
        let edit = format!("{EDITED}{waiting}: {text}");
        world.messenger.write("ann", sender, &edit, false);
    }
    world.messenger.until_taken().await;
    // A preview changes no text.
    world
        .messenger
        .say("ann", &format!("{EDITED}{read}: Read."));
    world
        .messenger
        .say("ann", &format!("{EDITED}{waiting}: Edited."));
    world.messenger.until_taken().await;
    assert_eq!(world.messenger.texts("ann"), Vec::<String>::new());
    world
        .messenger
        .say("ann", &format!("{EDITED}{read}: Read anew."));
    let told = world.messenger.until("ann", 1).await;
    assert_eq!(told[0].text, READ_BEFORE);
    gate.open();
    world.messenger.until("ann", 3).await;
    world
        .messenger
        .say("ann", &format!("{EDITED}{waiting}: Edited."));
    world
        .messenger
        .say("ann", &format!("{EDITED}{waiting}: Late."));
    world.messenger.until("ann", 4).await;
    hub.stop().await;
    let requests = world.requests();
    assert_eq!(requests.len(), 2);
    let said = last_said(&requests[1]);
    assert!(said.ends_with("]\nEdited."), "{said}");
    assert_eq!(
        world.messenger.texts("ann"),
        [READ_BEFORE, "One.", "Two.", READ_BEFORE]
    );
}
