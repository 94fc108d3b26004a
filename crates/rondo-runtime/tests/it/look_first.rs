//! View of the directory that a model gets before its first step, if the profile requests it.

use crate::service::{World, is_result, text, until};
use rondo_core::session::Delivery;
use rondo_runtime::env::Env;
use rondo_runtime::service::{Cursor, NoHost, SessionService};
use rondo_runtime::{Layer, NoNotices, Runtime};
use rondo_types::Message;
use std::fs;
use std::sync::Arc;

/// Request under a profile and the user's rules, preview of the session, and the number of sessions that are found by
/// a word of the question and by one that only the model was shown.
async fn asked(profile: &str, rules: &str) -> (String, Vec<Message>, [usize; 2]) {
    let world = World::new([text(&["Done."])]).await;
    fs::write(
        world.project.path().join("pump.txt"),
        "The pump was built in 1987.\n",
    )
    .unwrap();
    fs::write(world.home.path().join("policy.toml"), rules).unwrap();
    let env = Env::of(&[
        ("RONDO_HOME", world.home.path().to_str().unwrap()),
        ("RONDO_MODEL", "local/any"),
        ("RONDO_BASE_URL", &world.server.url("/v1")),
        ("RONDO_PROFILE", profile),
    ]);
    let runtime = Runtime::new(env, Layer::default(), Arc::new(NoNotices));
    let service = SessionService::open(runtime, world.project.path().to_owned(), NoHost).unwrap();
    let session = service.new_session(world.options());
    let mut listener = session.subscribe(Cursor::START);
    let message = Message::user("When was the pump built?");
    session.submit(message, Delivery::Queue).await.unwrap();
    until(&mut listener, is_result).await;
    let requests = world.server.requests();
    let sent = String::from_utf8_lossy(&requests.first().unwrap().body).into_owned();
    let preview = service.preview(session.id(), 9).await.unwrap();
    let by_question = service.list("pump built", 9).await.unwrap().len();
    let by_shown = service.list("pump.txt (1", 9).await.unwrap().len();
    (sent, preview, [by_question, by_shown])
}

async fn sent(profile: &str, rules: &str) -> String {
    asked(profile, rules).await.0
}

#[tokio::test]
async fn the_profile_local_shows_what_the_question_has_to_do_with_the_directory() {
    let local = sent("local", "").await;
    assert!(local.contains("<files>\\npump.txt (1 lines)"), "{local}");
    assert!(local.contains("built in 1987"), "{local}");
    let default = sent("default", "").await;
    assert!(
        !default.contains("<files>") && !default.contains("1987"),
        "{default}"
    );
}

#[tokio::test]
async fn a_file_that_a_rule_keeps_from_read_file_is_only_named() {
    for decision in ["deny", "ask"] {
        let rule = format!("[[rule]]\ntool = \"read_file\"\ndecision = \"{decision}\"\n");
        let local = sent("local", &rule).await;
        assert!(local.contains("pump.txt (1 lines)"), "{local}");
        assert!(!local.contains("1987"), "{local}");
    }
}

#[tokio::test]
async fn a_session_is_previewed_and_found_by_what_was_said_and_not_by_what_was_shown_with_it() {
    let (sent, preview, found) = asked("local", "").await;
    assert!(sent.contains("pump.txt (1"), "{sent}");
    assert_eq!(found, [1, 0]);
    let said: Vec<String> = preview.iter().map(Message::text).collect();
    assert_eq!(said, ["When was the pump built?", "Done."]);
}
