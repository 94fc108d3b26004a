//! The full screen while a turn is prepared.

use crate::harness::{TestEnv, serve};
use crate::person::{CTRL_D, ESC, Person};
use rustix::fs::{CWD, Mode, mkfifoat};
use std::fs::File;
use std::io::Read as _;
use tokio::task::spawn_blocking;

/// Opens the screen on a provider whose key never comes, and returns the pipe that its command holds open.
async fn prepared() -> (TestEnv, Person, File) {
    let server = serve(vec![]).await;
    let env = TestEnv::new();
    let pipe = env.project().join("pipe");
    mkfifoat(CWD, &pipe, Mode::RWXU).unwrap();
    env.user_config(&format!(
        "model = 'slow/any'\n[providers.slow]\ndialect = 'openai-chat'\nbase_url = '{}'\napi_key_command = \"sleep 1000 > '{}'; echo k\"\n",
        server.url("/v1"),
        pipe.display()
    ));
    let mut person = Person::start(&env, &[]);
    person.shows("? help").await;
    person.press("make it\r").await;
    person.shows("› make it").await;
    person.shows("Preparing").await;
    let opened = spawn_blocking(|| File::open(pipe)).await;
    (env, person, opened.unwrap().unwrap())
}

/// Waits until a pipe has no writer any more.
async fn ends(mut pipe: File) {
    let read = spawn_blocking(move || pipe.read(&mut [0])).await;
    assert_eq!(read.unwrap().unwrap(), 0);
}

#[tokio::test]
async fn a_question_is_seen_while_its_turn_is_prepared_and_esc_stops_that() {
    let (_env, mut person, pipe) = prepared().await;
    person.press("and this\r").await;
    person.shows("⧗ steers: and this").await;
    person.press(ESC).await;
    person.shows("stopped before the turn began").await;
    person.shows("│ make it ").await;
    ends(pipe).await;
}

#[tokio::test]
async fn leaving_while_a_turn_is_prepared_leaves_nothing_behind() {
    let (_env, mut person, pipe) = prepared().await;
    person.press(CTRL_D).await;
    assert_eq!(person.code().await, Some(0));
    ends(pipe).await;
}
