//! A host that serves sessions, and the program beside it: what one does, the listeners of the other hear.

use crate::harness::{TestEnv, calls, says, serve};
use rondo_core::session::Delivery;
use rondo_runtime::service::{Cursor, NoHost, SessionService, Subscription, UpdateBody};
use rondo_runtime::{Env, Layer, NoNotices, Runtime, SessionOptions};
use rondo_testkit::Server;
use rondo_types::{EventBody, Message};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

const LONG: Duration = Duration::from_secs(60);

fn service(env: &TestEnv, server: &Server) -> SessionService {
    let home = env.home();
    let env = Env::of(&[
        ("RONDO_HOME", home.to_str().unwrap()),
        ("RONDO_MODEL", "openai/test"),
        ("RONDO_BASE_URL", &server.url("/v1")),
    ]);
    let runtime = Runtime::new(env, Layer::default(), Arc::new(NoNotices));
    SessionService::open(runtime, home, NoHost).unwrap()
}

/// Returns the answer of the turn that is over next, or what it waits for.
async fn heard(listener: &mut Subscription) -> String {
    let mut said = String::new();
    loop {
        let update = timeout(LONG, listener.next()).await;
        let update = update.expect("nothing was told").unwrap();
        let UpdateBody::Turn { event } = update.body else {
            continue;
        };
        match event.body {
            EventBody::TextDelta { text } => said += &text,
            EventBody::Parked { questions } => return format!("{said}?{}", questions[0].id),
            EventBody::Result(_) => return said,
            _ => {}
        }
    }
}

#[tokio::test]
async fn who_listens_to_a_service_hears_what_the_program_does_in_the_session() {
    let env = TestEnv::new();
    let home = env.home();
    let env = env.var("RONDO_HOME", home.to_str().unwrap());
    let write = calls(
        "write_file",
        &json!({"path": "made.txt", "content": "made"}),
    );
    let server = serve(vec![write, says("Made."), says("Again.")]).await;
    let service = service(&env, &server);
    let options = SessionOptions::in_directory(env.project());
    let session = service.new_session(options);
    let mut listeners = [(), ()].map(|()| session.subscribe(Cursor::START));
    let message = Message::user("make it");
    session.submit(message, Delivery::Queue).await.unwrap();
    for listener in &mut listeners {
        assert_eq!(heard(listener).await, "?r00100100");
    }
    let url = server.url("/v1");
    let answered = env
        .run(&["answer", "--base-url", &url, "latest", "y"])
        .await;
    assert_eq!(answered.code, Some(0), "{answered:?}");
    for listener in &mut listeners {
        assert_eq!(heard(listener).await, "Made.");
    }
    assert!(env.project().join("made.txt").exists());
    let id = session.id().to_string();
    let asked = env.ask(&server, &["--session", &id, "once more"]).await;
    assert_eq!(asked.code, Some(0), "{asked:?}");
    for listener in &mut listeners {
        assert_eq!(heard(listener).await, "Again.");
    }
}
