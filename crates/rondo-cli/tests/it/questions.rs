//! Questions that are answered where they are asked, on each front end, and from another process.

use crate::harness::{Shown, TestEnv, calls, says, serve};
use crate::mcp_terminal::{answered, booking, filled, with_server};
use crate::person::{CTRL_D, ENTER, Person};
use crate::repl;
use crate::screen::{self, REVIEW};
use rondo_core::ports::{Record, RecordBody};
use rondo_journal::{Options, Store};
use rondo_testkit::Server;
use serde_json::json;

async fn writing() -> Server {
    let write = json!({"path": "made.txt", "content": "x"});
    serve(vec![calls("write_file", &write), says("Over.")]).await
}

fn ask(env: &TestEnv, server: &Server, args: &[&str]) -> Person {
    let url = server.url("/v1");
    let own = ["ask", "-m", "openai/test", "--base-url", &url];
    Person::start(env, &[&own[..], args].concat())
}

async fn answer(env: &TestEnv, words: &[&str]) -> Shown {
    env.run(&[&["answer", "latest"], words].concat()).await
}

/// Returns the records of the only session.
fn records(env: &TestEnv) -> Vec<Record> {
    let sessions = env.home().join(".local/share/rondo/sessions");
    let store = Store::open(&sessions, Options::default()).unwrap();
    let session = store.sessions(1).unwrap().remove(0).id;
    store.load(&session).unwrap()
}

/// Asserts that a question was recorded before it was answered, by whom, and that its turn was not parked.
fn assert_answered_in_place(env: &TestEnv) {
    let records = records(env);
    let place = |wanted: fn(&RecordBody) -> bool| records.iter().position(|it| wanted(&it.body));
    let asked = place(|it| matches!(it, RecordBody::Asked { .. }));
    let answered = place(|it| matches!(it, RecordBody::Answered { .. }));
    assert!(asked.is_some() && asked < answered, "{records:?}");
    let parked = place(|it| matches!(it, RecordBody::Parked { .. }));
    assert_eq!(parked, None);
}

#[tokio::test]
async fn a_call_that_ask_asks_about_is_allowed_from_another_process() {
    let (env, server) = (TestEnv::new(), writing().await);
    let mut person = ask(&env, &server, &["make it"]);
    person.sees("Run it?").await;
    let shown = answer(&env, &["y"]).await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(
        shown.stderr.contains("continues with the answer"),
        "{shown:?}"
    );
    person.sees("answered elsewhere by").await;
    person.sees("Over.").await;
    assert_eq!(person.code().await, Some(0));
    assert!(env.project().join("made.txt").exists());
    assert_answered_in_place(&env);
}

#[tokio::test]
async fn a_call_that_the_prompt_asks_about_is_denied_from_another_process() {
    let (env, server) = (TestEnv::new(), writing().await);
    let mut person = repl::start(&env, &server, &[]);
    person.prompt("agent").await;
    person.enter("make it").await;
    person.sees("Run it?").await;
    let shown = answer(&env, &["n", "--reason", "not today"]).await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    person.sees("answered elsewhere by").await;
    person.sees("Over.").await;
    person.prompt("agent").await;
    repl::leave(person).await;
    assert!(!env.project().join("made.txt").exists());
    let read = server.requests()[1].json().to_string();
    assert!(read.contains("not today"), "{read}");
    assert_answered_in_place(&env);
}

#[tokio::test]
async fn a_call_that_the_screen_asks_about_is_allowed_in_place_and_from_another_process() {
    for is_elsewhere in [false, true] {
        let (env, server) = (TestEnv::new(), writing().await);
        let mut person = screen::open(&env, &server, &[]).await;
        person.press("make it\r").await;
        person.shows("may this run?").await;
        if is_elsewhere {
            let shown = answer(&env, &["y"]).await;
            assert_eq!(shown.code, Some(0), "{shown:?}");
        } else {
            person.press(REVIEW).await;
            person.shows("y allow").await;
            person.press("y").await;
        }
        person.shows("Over.").await;
        screen::leave(person).await;
        assert!(env.project().join("made.txt").exists());
        assert_answered_in_place(&env);
    }
}

#[tokio::test]
async fn a_turn_that_asks_is_parked_when_the_screen_is_left() {
    let (env, server) = (TestEnv::new(), writing().await);
    let mut person = screen::open(&env, &server, &[]).await;
    person.press("make it\r").await;
    person.shows("may this run?").await;
    person.press(CTRL_D).await;
    assert_eq!(person.code().await, Some(0));
    let list = env.run(&["session", "list", "--json"]).await;
    assert_eq!(list.lines()[0]["state"], "parked", "{list:?}");
    let url = server.url("/v1");
    let shown = env
        .run(&["answer", "--base-url", &url, "latest", "y"])
        .await;
    assert_eq!(shown.stdout, "Over.\n", "{shown:?}");
}

#[tokio::test]
async fn a_question_that_nobody_answers_in_its_time_is_parked() {
    let (env, server) = (TestEnv::new(), writing().await);
    env.user_config("park_after = '1s'\n");
    let mut person = ask(&env, &server, &["make it"]);
    person.sees("Run it?").await;
    assert_eq!(person.code().await, Some(47));
    let shown = env.run(&["session", "show"]).await;
    assert!(shown.stdout.contains("waits for an answer"), "{shown:?}");
}

#[tokio::test]
async fn values_that_a_server_asks_for_are_given_from_another_process() {
    let (env, server) = (with_server().await, booking().await);
    let mut person = ask(&env, &server, &["--yolo", "x"]);
    person.sees("room: Which room").await;
    let shown = answer(&env, &["y"]).await;
    assert_eq!(shown.code, Some(2), "{shown:?}");
    assert!(shown.stderr.contains("asks for a value"), "{shown:?}");
    let form = r#"{"room": "double", "nights": 3, "breakfast": true}"#;
    let shown = answer(&env, &[form]).await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    person.sees("Booked.").await;
    assert_eq!(person.code().await, Some(0));
    assert_eq!(answered(&server), filled());
    assert_answered_in_place(&env);
}

#[tokio::test]
async fn values_that_a_server_asks_for_are_typed_on_the_screen() {
    let (env, server) = (with_server().await, booking().await);
    let mut person = screen::open(&env, &server, &["--yolo"]).await;
    person.press("book a room\r").await;
    person.shows("┏━ ").await;
    person.press(REVIEW).await;
    person.shows("How shall I book?").await;
    person.shows("nights: a whole number").await;
    person.shows("y fill in").await;
    person.press("y").await;
    for (asked, typed) in [
        ("room: Which room", "double"),
        ("(a whole number", "3"),
        ("(y or n", "y"),
    ] {
        person.shows(asked).await;
        person.press(typed).await;
        person.press(ENTER).await;
    }
    person.shows("Booked.").await;
    screen::leave(person).await;
    assert_eq!(answered(&server), filled());
    assert_answered_in_place(&env);
}

#[tokio::test]
async fn a_spent_budget_is_asked_about_in_place() {
    let (env, server) = (TestEnv::new(), writing().await);
    env.user_config("max_session_tokens = 1\n");
    let mut person = ask(&env, &server, &["--yolo", "make it"]);
    person.sees("may the turn go on beyond that?").await;
    person.press("y").await;
    person.press(ENTER).await;
    person.sees("Over.").await;
    assert_eq!(person.code().await, Some(0));
    assert_answered_in_place(&env);
}
