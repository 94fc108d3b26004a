//! Acts of a user: sends, listens, resumes, stops, answers.

use crate::http::Events;
use crate::world::World;
use rondo_hub::users::Role;
use rondo_testkit::{CallScript, Gate, ReplyScript, Response, Step, openai};
use serde_json::{Value, json};
use std::fs;

fn text(pieces: &[&str]) -> Response {
    openai::streamed(&ReplyScript::text(pieces.iter().copied()).usage(10, 2))
}

/// A reply that stops before its last pieces until the gate opens.
fn gated(pieces: &[&str], gate: &Gate) -> Response {
    let mut frames = openai::frames(&ReplyScript::text(pieces.iter().copied()).usage(10, 2));
    let rest = frames.split_off(2);
    let mut response = Response::sse(frames).step(Step::Gate(gate.clone()));
    for frame in rest {
        response = response.send(frame);
    }
    response
}

#[tokio::test]
async fn a_message_is_answered_and_the_stream_goes_on_from_any_event() {
    let world = World::new([text(&["Hel", "lo."]), text(&["Again."])]).await;
    let key = world.user("ada", Role::Owner).await;
    world.say("home", &key, "Hi.").await;
    let mut events = world.events("home", &key, "").await;
    let (_, first) = events.next().await.unwrap();
    assert_eq!(first["type"], "session");
    assert_eq!(first["session"], "api@ada_home");
    let mut deltas = String::new();
    let (place, answer) = loop {
        let (id, data) = events.next().await.unwrap();
        if data["update"]["event"]["type"] == "text_delta" {
            deltas.push_str(data["update"]["event"]["text"].as_str().unwrap());
        }
        if data["type"] == "message" {
            break (id, data["message"].clone());
        }
    };
    assert_eq!(deltas, "Hello.");
    assert_eq!(answer["kind"], "final");
    assert_eq!(answer["text"], "Hello.");
    drop(events);
    world.say("home", &key, "And?").await;
    let path = "/v1/chats/home/events";
    let request = world.request("GET", path).key(&key);
    let mut events = Events::open(request.header("Last-Event-ID", &place)).await;
    let (_, answer) = events.message().await;
    assert_eq!(answer["text"], "Again.");
    let listed = world.get("/v1/chats/home/messages", &key).await.json();
    let texts: Vec<_> = listed["messages"].as_array().unwrap().iter().collect();
    assert_eq!(texts.len(), 2, "{listed}");
    let rest = world.get("/v1/chats/home/messages?after=1", &key).await;
    assert_eq!(rest.json()["messages"][0]["text"], "Again.");
    let usage = world.get("/v1/usage", &key).await.json();
    assert_eq!(
        (&usage["requests"], &usage["input_tokens"]),
        (&json!(2), &json!(20))
    );
    world.stop().await;
}

#[tokio::test]
async fn the_same_submission_counts_once_also_after_a_restart() {
    let world = World::new([text(&["One."]), text(&["Two."])]).await;
    let key = world.user("ada", Role::Member).await;
    let send = async |world: &World, name: &str| {
        let request = world.request("POST", "/v1/chats/home/messages").key(&key);
        let request = request.header("Idempotency-Key", name);
        let response = request.json(&json!({ "text": "Hi." })).send().await;
        assert_eq!(response.status, 202, "{}", response.text());
        response.json()["is_duplicate"].clone()
    };
    assert_eq!(send(&world, "a:1").await, false);
    assert_eq!(send(&world, "a:1").await, true);
    let mut events = world.events("home", &key, "").await;
    assert_eq!(events.message().await.1["text"], "One.");
    let (home, model) = world.stop().await;
    // The hub ends the stream when it stops.
    while events.next().await.is_some() {}
    let world = World::on(home, model).await;
    assert_eq!(send(&world, "a:1").await, true);
    assert_eq!(send(&world, "a:2").await, false);
    let mut events = world.events("home", &key, "").await;
    assert_eq!(events.message().await.1["text"], "One.");
    assert_eq!(events.message().await.1["text"], "Two.");
    assert_eq!(world.model.requests().len(), 2);
    world.stop().await;
}

#[tokio::test]
async fn a_name_that_comes_again_with_something_else_is_refused_also_after_a_restart() {
    let world = World::new([text(&["One."]), text(&["Two."])]).await;
    let key = world.user("ada", Role::Member).await;
    let send = async |world: &World, path: &str, body: &str| {
        let request = world.request("POST", &format!("/v1/chats/{path}"));
        let request = request.key(&key).header("Idempotency-Key", "a:1");
        request.json(&json!({ "text": body })).send().await
    };
    assert_eq!(send(&world, "home/messages", "Hi.").await.status, 202);
    let mut events = world.events("home", &key, "").await;
    assert_eq!(events.message().await.1["text"], "One.");
    let refused = send(&world, "home/messages", "Bye.").await;
    assert_eq!(refused.status, 409, "{}", refused.text());
    assert_eq!(refused.json()["error"]["code"], "key_reused");
    let cancelled = world.request("POST", "/v1/chats/home/cancel").key(&key);
    let cancelled = cancelled.header("Idempotency-Key", "a:1");
    let cancelled = cancelled.header("Content-Length", "0").send().await;
    assert_eq!(cancelled.status, 409, "{}", cancelled.text());
    let (home, model) = world.stop().await;
    while events.next().await.is_some() {}
    let world = World::on(home, model).await;
    assert_eq!(send(&world, "home/messages", "Bye.").await.status, 409);
    let again = send(&world, "home/messages", "Hi.").await;
    assert_eq!(again.json()["is_duplicate"], true, "{}", again.text());
    assert_eq!(send(&world, "work/messages", "Bye.").await.status, 202);
    let mut events = world.events("work", &key, "").await;
    assert_eq!(events.message().await.1["text"], "Two.");
    assert_eq!(world.model.requests().len(), 2);
    world.stop().await;
}

#[tokio::test]
async fn a_stream_from_now_tells_nothing_of_before() {
    let world = World::new([text(&["Old."]), text(&["New."])]).await;
    let key = world.user("ada", Role::Owner).await;
    world.say("home", &key, "Hi.").await;
    world.events("home", &key, "").await.message().await;
    let mut events = world.events("home", &key, "?from=now").await;
    assert_eq!(events.next().await.unwrap().1["type"], "session");
    world.say("home", &key, "More.").await;
    let mut told = Vec::new();
    loop {
        let (_, data) = events.next().await.unwrap();
        let is_last = data["type"] == "message";
        told.push(data);
        if is_last {
            break;
        }
    }
    let told = json!(told).to_string();
    assert!(told.contains("New.") && !told.contains("Old."), "{told}");
    world.stop().await;
}

#[tokio::test]
async fn a_turn_is_cancelled_and_a_closed_stream_cancels_nothing() {
    let gate = Gate::new();
    let replies = [
        gated(&["Half", " whole."], &gate),
        gated(&["Never", " told."], &Gate::new()),
    ];
    let world = World::new(replies).await;
    let key = world.user("ada", Role::Owner).await;
    world.say("home", &key, "Hi.").await;
    let mut events = world.events("home", &key, "").await;
    until_delta(&mut events, "Half").await;
    drop(events);
    gate.open();
    let mut events = world.events("home", &key, "").await;
    assert_eq!(events.message().await.1["text"], "Half whole.");
    world.say("home", &key, "Once more.").await;
    until_delta(&mut events, "Never").await;
    let cancelled = world
        .request("POST", "/v1/chats/home/cancel")
        .key(&key)
        .header("Content-Length", "0")
        .send()
        .await;
    assert_eq!(cancelled.status, 202, "{}", cancelled.text());
    let mut messages = Vec::new();
    while !messages.iter().any(|it: &Value| it["kind"] == "final") {
        messages.push(events.message().await.1);
    }
    let said = json!(messages).to_string();
    assert!(!said.contains("told."), "{said}");
    world.stop().await;
}

async fn until_delta(events: &mut Events, said: &str) {
    loop {
        let (_, data) = events.next().await.unwrap();
        let text = &data["update"]["event"]["text"];
        if text.as_str().is_some_and(|it| it.contains(said)) {
            return;
        }
    }
}

#[tokio::test]
async fn a_question_is_answered_over_the_api_once_and_after_a_restart() {
    let call = CallScript::new(
        "c",
        "write_file",
        &json!({"path": "note", "content": "hello"}),
    );
    let replies = [
        openai::streamed(&ReplyScript::calls([call]).usage(1, 1)),
        text(&["Written."]),
    ];
    let world = World::new(replies).await;
    let key = world.user("ada", Role::Owner).await;
    world.say("home", &key, "Write it.").await;
    let mut events = world.events("home", &key, "").await;
    let (_, question) = events.message().await;
    assert_eq!(question["kind"], "question", "{question}");
    let choices = question["choices"].as_array().unwrap().clone();
    let yes = choices.iter().find(|it| it["answer"] == "approve").unwrap();
    let (home, model) = world.stop().await;
    let world = World::on(home, model).await;
    let chat = world.get("/v1/chats/home", &key).await.json();
    assert_eq!(chat["questions"].as_array().unwrap().len(), 1, "{chat}");
    let answer = json!({ "token": yes["token"], "answer": "approve" });
    let given = world.post("/v1/chats/home/answers", &key, &answer).await;
    assert_eq!(given.status, 202, "{}", given.text());
    let mut events = world.events("home", &key, "").await;
    let mut messages = Vec::new();
    while !messages.iter().any(|it: &Value| it["kind"] == "final") {
        messages.push(events.message().await.1);
    }
    assert_eq!(messages.last().unwrap()["text"], "Written.");
    let written = world.home.path().join("data/hub/chats/api@ada_home/note");
    assert_eq!(fs::read_to_string(&written).unwrap(), "hello");
    fs::remove_file(&written).unwrap();
    // A second answer changes nothing.
    let again = world.post("/v1/chats/home/answers", &key, &answer).await;
    assert!(matches!(again.status, 202 | 403), "{}", again.text());
    let chat = world.get("/v1/chats/home", &key).await.json();
    assert_eq!(chat["questions"], json!([]));
    assert!(!written.exists());
    assert_eq!(world.model.requests().len(), 2);
    world.stop().await;
}

#[tokio::test]
async fn a_chat_that_begins_anew_is_followed_by_its_streams() {
    let world = World::new([text(&["Before."]), text(&["After."])]).await;
    let key = world.user("ada", Role::Owner).await;
    world.say("home", &key, "Hi.").await;
    let mut events = world.events("home", &key, "").await;
    events.message().await;
    world.say("home", &key, "/new").await;
    let session = loop {
        let (_, data) = events.next().await.unwrap();
        if data["type"] == "session" {
            break data["session"].clone();
        }
    };
    assert_eq!(session, "api@ada_home+1");
    world.say("home", &key, "Hi again.").await;
    loop {
        if events.message().await.1["text"] == "After." {
            break;
        }
    }
    // What was used before counts, too.
    let usage = world.get("/v1/usage", &key).await.json();
    assert_eq!(usage["requests"], 2);
    world.stop().await;
}
