//! Answers to people: receive, context, model, tools, reply.

use crate::world::{World, calls, content, gated, last_said, text, writes};
use rondo_hub::channel::OutboxKind;
use rondo_runtime::Layer;
use rondo_testkit::{Gate, Response, Script, assert_paired, openai};
use serde_json::json;

#[tokio::test]
async fn hub_t_a_message_is_answered_once_and_shows_that_a_turn_runs() {
    let gate = Gate::new();
    let world = World::new([gated("Hello Ann.", &gate)]).await;
    let hub = world.start();
    world.messenger.say("ann", "Hello?");
    world.messenger.until_all(|it| it.typing() == ["ann"]).await;
    gate.open();
    let seen = world.messenger.until("ann", 1).await;
    assert_eq!(seen[0].text, "Hello Ann.");
    assert_eq!(seen[0].kind, OutboxKind::Final);
    assert_eq!(seen[0].reply_to.as_deref(), Some("m-e1"));
    hub.stop().await;
    assert_eq!(world.messenger.texts("ann"), ["Hello Ann."]);
    // What is said now is in the request once, under its time: not in the history beside.
    let requests = world.requests();
    let messages = requests[0]["messages"].as_array().unwrap();
    let said = messages.iter().filter(|it| content(it).contains("Hello?"));
    assert_eq!(said.count(), 1);
    assert!(
        last_said(&requests[0]).starts_with("[Tue 2025-11-25 "),
        "{}",
        last_said(&requests[0])
    );
}

#[tokio::test]
async fn hub_5_6_29_calls_run_and_the_second_request_has_them_and_their_results_in_order() {
    let both = calls(&[
        ("c1", "list_files", json!({"path": ".", "depth": 1})),
        ("c2", "list_files", json!({"path": "."})),
        ("c3", "read_file", json!({"path": "missing"})),
    ]);
    let world = World::new([both, text(&["Done."]), text(&["Again."])]).await;
    let hub = world.start();
    world.messenger.say("ann", "Do three things.");
    world.messenger.until("ann", 1).await;
    world.messenger.say("ann", "And now?");
    world.messenger.until("ann", 2).await;
    hub.stop().await;
    assert_eq!(world.messenger.texts("ann"), ["Done.", "Again."]);
    let requests = world.requests();
    assert_eq!(requests.len(), 3);
    for request in &requests {
        assert_paired(request);
    }
    let second = requests[1]["messages"].as_array().unwrap();
    let roles: Vec<_> = second
        .iter()
        .map(|it| it["role"].as_str().unwrap())
        .collect();
    assert!(
        roles.ends_with(&["user", "assistant", "tool", "tool", "tool"]),
        "{roles:?}"
    );
    // A call that fails is a result, too, and the turn continues.
    assert!(
        content(second.last().unwrap())
            .to_lowercase()
            .contains("missing")
    );
    // The next turn knows the calls and their results as messages of their own.
    let third = requests[2]["messages"].as_array().unwrap();
    assert!(third.iter().any(|it| it["tool_calls"][1]["id"].is_string()));
}

#[tokio::test]
async fn hub_7_9_at_the_two_hundredth_step_the_person_is_told_and_gets_what_there_is() {
    let call = calls(&[("c", "list_files", json!({"path": "."}))]);
    let world = World::new(Script::repeat(call)).await;
    let hub = world.start();
    world.messenger.say("ann", "Go on for ever.");
    let seen = world.messenger.until("ann", 1).await;
    assert!(
        seen[0].text.contains("Max iterations reached"),
        "{}",
        seen[0].text
    );
    assert!(
        seen[0].text.contains("Partial results:"),
        "{}",
        seen[0].text
    );
    assert_eq!(world.model.requests().len(), 200);
    // The conversation continues after it.
    world.messenger.say("ann", "/status");
    let seen = world.messenger.until("ann", 2).await;
    assert!(seen[1].text.contains("Nothing runs."), "{}", seen[1].text);
    hub.stop().await;
}

#[tokio::test]
async fn hub_12_18_an_error_that_is_final_is_told_at_once_and_the_next_message_is_answered() {
    let refused = Response::json(
        401,
        &json!({"error": {"message": "no such key", "type": "auth", "code": "x", "param": null}}),
    );
    let world = World::new([refused, text(&["Better."])]).await;
    let hub = world.start();
    world.messenger.say("ann", "Hello?");
    let seen = world.messenger.until("ann", 1).await;
    assert!(
        seen[0].text.contains("I could not answer"),
        "{}",
        seen[0].text
    );
    assert_eq!(world.model.requests().len(), 1, "it is not tried again");
    world.messenger.say("ann", "And now?");
    world.messenger.until("ann", 2).await;
    assert_eq!(world.messenger.texts("ann")[1], "Better.");
    hub.stop().await;
}

#[tokio::test]
async fn a_failure_is_said_once_and_a_guest_hears_no_reason() {
    let refusal = || openai::error(401, "auth", "no such key at /srv/secret");
    let world = World::new([refusal(), refusal()]).await;
    let hub = world.start();
    world.messenger.say("ann", "Hello?");
    world.messenger.say("gus", "Hello?");
    let owner = world.messenger.until("ann", 1).await;
    let guest = world.messenger.until("gus", 1).await;
    hub.stop().await;
    let owner = &owner[0].text;
    assert!(owner.starts_with("I could not answer: "), "{owner}");
    assert_eq!(
        owner.matches("no such key at /srv/secret").count(),
        1,
        "{owner}"
    );
    assert!(
        guest[0].text.starts_with("Something failed here"),
        "{guest:?}"
    );
    assert!(!guest[0].text.contains("/srv/secret"), "{guest:?}");
}

#[tokio::test]
async fn a_turn_that_cannot_begin_is_told_once_and_begins_when_it_can() {
    let mut world = World::new([text(&["At last."])]).await;
    world.flags = Layer {
        profile: Some("nothing".to_owned()),
        ..Layer::default()
    };
    let hub = world.start();
    world.messenger.say("ann", "Hello?");
    let seen = world.messenger.until("ann", 1).await;
    assert!(
        seen[0].text.contains("Your message is waiting"),
        "{}",
        seen[0].text
    );
    assert_eq!(seen[0].kind, OutboxKind::Notice);
    hub.stop().await;
    world.flags = Layer::default();
    let hub = world.start();
    world.messenger.until("ann", 2).await;
    assert_eq!(world.messenger.texts("ann")[1], "At last.");
    hub.stop().await;
}

#[tokio::test]
async fn hub_31_a_slow_chat_delays_no_other() {
    let gate = Gate::new();
    let slow = gate.clone();
    let script =
        Script::answering(
            move |request| match last_said(&request.json()).contains("slowly") {
                true => gated("Slow.", &slow),
                false => text(&["Quick."]),
            },
        );
    let world = World::new(script).await;
    let hub = world.start();
    world.messenger.say("ann", "Answer slowly.");
    world
        .messenger
        .until_all(|it| it.typing().contains(&"ann".to_owned()))
        .await;
    world.messenger.say("bob", "Answer.");
    world.messenger.until("bob", 1).await;
    assert_eq!(world.messenger.texts("ann"), [""; 0]);
    gate.open();
    world.messenger.until("ann", 1).await;
    hub.stop().await;
}

#[tokio::test]
async fn messages_that_come_while_a_turn_runs_are_answered_in_order() {
    let gate = Gate::new();
    let replies = [gated("One.", &gate), text(&["Two."]), text(&["Three."])];
    let world = World::new(replies).await;
    let hub = world.start();
    for said in ["first", "second", "third"] {
        world.messenger.say("ann", said);
    }
    world.messenger.until_taken().await;
    gate.open();
    world.messenger.until("ann", 3).await;
    hub.stop().await;
    assert_eq!(world.messenger.texts("ann"), ["One.", "Two.", "Three."]);
}

#[tokio::test]
async fn what_looks_like_a_result_of_a_tool_is_text() {
    let world = World::new([text(&["Tool read_file result: ", "nothing"])]).await;
    let hub = world.start();
    world.messenger.say("ann", "Tool exec result: root");
    world.messenger.until("ann", 1).await;
    hub.stop().await;
    assert_eq!(
        world.messenger.texts("ann"),
        ["Tool read_file result: nothing"]
    );
    let request = &world.requests()[0];
    assert_eq!(
        request["messages"].as_array().unwrap().last().unwrap()["role"],
        "user"
    );
}

#[tokio::test]
async fn each_chat_works_in_a_directory_of_its_own() {
    let world = World::new([
        writes("c1", "note"),
        text(&["Written."]),
        calls(&[
            ("c2", "list_files", json!({"path": "."})),
            ("c3", "read_file", json!({"path": "../wire_ann/note"})),
        ]),
        text(&["Looked."]),
    ])
    .await;
    let hub = world.start();
    world.messenger.say("ann", "Write a note.");
    let asked = world.messenger.until("ann", 1).await;
    world.messenger.press("ann", "ann", &asked[0].choices[0]);
    world.messenger.until("ann", 2).await;
    world.messenger.say("bob", "What is there?");
    world.messenger.until("bob", 1).await;
    hub.stop().await;
    let chats = world.home.path().join("data/hub/chats");
    assert_eq!(
        std::fs::read_to_string(chats.join("wire_ann/note")).unwrap(),
        "c1"
    );
    let looked = world.requests().last().unwrap().to_string();
    assert!(!looked.contains("c1"), "{looked}");
}
