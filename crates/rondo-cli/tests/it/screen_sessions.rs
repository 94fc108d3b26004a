//! The panel of sessions on the full screen, and what an opened session continues with.

use crate::harness::{TestEnv, calls, says, serve};
use crate::person::{CTRL_D, DOWN, ENTER, ESC, F2, Person};
use crate::screen::{leave, open};
use crate::sessions::{WAITS, killed_at};
use rondo_testkit::Server;
use serde_json::json;

const PANEL: &str = "\x1bs";
const COPIES: &str = "\x02";

/// An environment with a session for each question, the last one the latest.
async fn with_sessions(server: &Server, questions: &[&str]) -> TestEnv {
    let env = TestEnv::new();
    for question in questions {
        assert_eq!(env.ask(server, &[question]).await.code, Some(0));
    }
    env
}

async fn open_panel(person: &mut Person) {
    person.press(PANEL).await;
    person.shows("┏━ sessions").await;
}

#[tokio::test]
async fn a_session_is_listed_by_its_new_title_at_once_with_its_age_and_its_last_words() {
    let server = serve(vec![says("A pear.")]).await;
    let env = with_sessions(&server, &["name a fruit"]).await;
    let mut person = open(&env, &server, &[]).await;
    open_panel(&mut person).await;
    person.shows("now · name a fruit · 1 turn ·").await;
    person.shows("┃ › name a fruit").await;
    person.shows("┃   A pear.").await;
    person.press(F2).await;
    person.shows("title: name a fruit").await;
    person.press(" to eat\r").await;
    person.shows("· name a fruit to eat · 1 turn ·").await;
    person.press(ESC).await;
    person.shows_no_more("┏━ sessions").await;
    leave(person).await;
    let listed = env.run(&["session", "list"]).await;
    assert!(listed.stdout.contains("name a fruit to eat"), "{listed:?}");
}

#[tokio::test]
async fn a_copy_of_a_session_is_gone_on_with_and_the_session_stays_as_it_is() {
    let server = serve(vec![says("A pear."), says("Green.")]).await;
    let env = with_sessions(&server, &["name a fruit"]).await;
    let mut person = open(&env, &server, &[]).await;
    open_panel(&mut person).await;
    person.shows("· name a fruit ·").await;
    person.press(COPIES).await;
    person.shows("which stays as it is").await;
    person.press("which colour?\r").await;
    person.shows("Green.").await;
    let sent = server.requests()[1].json()["messages"].to_string();
    assert!(sent.contains("A pear."), "{sent}");
    open_panel(&mut person).await;
    person.shows("· 1 turn ·").await;
    person.shows("· 2 turns ·").await;
    person.press(ESC).await;
    person.shows_no_more("┏━ sessions").await;
    leave(person).await;
}

#[tokio::test]
async fn a_session_is_removed_when_the_panel_is_closed_unless_that_was_taken_back() {
    let server = serve(vec![says("A pear."), says("An oak.")]).await;
    let env = with_sessions(&server, &["name a fruit", "name a tree"]).await;
    let mut person = open(&env, &server, &[]).await;
    open_panel(&mut person).await;
    person.shows("▸ ").await;
    person.shows("· name a tree ·").await;
    person.press(CTRL_D).await;
    person.shows("✗ ").await;
    person.press(CTRL_D).await;
    person.shows_no_more("✗ ").await;
    person.press(DOWN).await;
    person.shows("┃   A pear.").await;
    person.press(CTRL_D).await;
    person.shows("✗ ").await;
    person.press(ESC).await;
    person.shows("was removed").await;
    open_panel(&mut person).await;
    person.shows("· name a tree ·").await;
    assert!(
        !person.screen().contains("· name a fruit ·"),
        "{}",
        person.screen()
    );
    person.press(ESC).await;
    person.shows_no_more("┏━ sessions").await;
    leave(person).await;
}

#[tokio::test]
async fn the_status_says_who_answers_next_and_not_who_answered_the_opened_session() {
    let server = serve(vec![says("A pear.")]).await;
    let env = with_sessions(&server, &["name a fruit"]).await;
    let url = server.url("/v1");
    let args = ["-c", "-m", "openai/another", "--base-url", &url];
    let mut person = Person::start(&env, &args);
    person.shows("› name a fruit").await;
    person.shows(" openai/another · default").await;
    leave(person).await;
    // Enter in the panel is the same.
    let args = ["-m", "openai/third", "--base-url", &url];
    let mut person = Person::start(&env, &args);
    person.shows("? help").await;
    open_panel(&mut person).await;
    person.shows("· name a fruit ·").await;
    person.press(ENTER).await;
    person.shows("› name a fruit").await;
    person.shows(" openai/third · default").await;
    leave(person).await;
}

#[tokio::test]
async fn a_turn_whose_process_was_killed_is_said_to_be_cut_off_and_goes_on_with_the_next_question()
{
    let server = serve(vec![
        calls("exec", &json!({"command": WAITS})),
        says("The first is done."),
        says("The second is done."),
    ])
    .await;
    let env = TestEnv::new();
    killed_at(&env, &server, "tool_output_delta", "started").await;
    let url = server.url("/v1");
    let args = ["-c", "-m", "openai/test", "--base-url", &url];
    let mut person = Person::start(&env, &args);
    person.shows("this turn was cut off; `/resume`").await;
    person.shows_no_more("Esc stops").await;
    env.write("go", "");
    person.press("and now?\r").await;
    person.shows("The first is done.").await;
    person.shows("The second is done.").await;
    leave(person).await;
    let begun = std::fs::read_to_string(env.project().join("begun")).unwrap();
    assert_eq!(begun, "begun\n", "the command was not run again");
}

/// Both prompts ask before `-c` continues the session of another directory, and refuse it unless `y` is typed.
#[tokio::test]
async fn continuing_the_session_of_another_directory_is_asked_about_at_both_prompts() {
    let server = serve(vec![says("A pear."), says("Green."), says("Sweet.")]).await;
    let env = TestEnv::new();
    env.write("sub/file", "");
    let begun = env.ask(&server, &["-C", "sub", "name a fruit"]).await;
    assert_eq!(begun.code, Some(0), "{begun:?}");
    let url = server.url("/v1");
    let named = ["-c", "-m", "openai/test", "--base-url", &url];
    for is_line in [true, false] {
        let command: &[&str] = if is_line { &["repl"] } else { &[] };
        let args = [command, &named[..]].concat();
        let mut person = Person::start(&env, &args);
        person.shows("Continue it there? [y/N").await;
        person.shows("name a fruit").await;
        person.press(ENTER).await;
        person.shows("no session was started in").await;
        person.shows("rondo --session ").await;
        assert_ne!(person.code().await, Some(0));
        let mut person = Person::start(&env, &args);
        person.shows("Continue it there? [y/N").await;
        person.press("y\r").await;
        if is_line {
            person.prompt("agent").await;
            person.enter("which colour?").await;
            person.shows("Green.").await;
            person.prompt("agent").await;
        } else {
            person.shows("? help").await;
            person.press("which taste?\r").await;
            person.shows("Sweet.").await;
            person.shows("1 step ·").await;
        }
        leave(person).await;
    }
    let last = server.requests()[2].json()["messages"].to_string();
    assert!(
        last.contains("A pear.") && last.contains("Green."),
        "{last}"
    );
}

/// Returns an environment whose model is `openai/default`, with a session of `openai/own` that asked the server once.
pub(crate) async fn with_a_session_of_another_model(url: &str) -> TestEnv {
    let env = TestEnv::new();
    env.user_config("model = \"openai/default\"\n");
    let asked = ["ask", "-m", "openai/own", "--base-url", url, "name a fruit"];
    assert_eq!(env.run(&asked).await.code, Some(0));
    env
}

#[tokio::test]
async fn a_session_that_goes_on_shows_and_asks_its_own_model() {
    let server = serve(vec![
        says("A pear."),
        says("Green."),
        says("Sweet."),
        says("A plum."),
    ])
    .await;
    let url = server.url("/v1");
    let env = with_a_session_of_another_model(&url).await;
    let mut person = Person::start(&env, &["-c", "--base-url", &url]);
    person.shows("openai/own ·").await;
    person.press("which colour?\r").await;
    person.shows("Green.").await;
    person.press("/clear\r").await;
    person.shows("openai/default ·").await;
    person.press("/resume latest\r").await;
    person.shows("openai/own ·").await;
    person.press("which taste?\r").await;
    person.shows("Sweet.").await;
    person.press("/clear\r").await;
    person.shows("openai/default ·").await;
    person.press("name another\r").await;
    person.shows("A plum.").await;
    leave(person).await;
    let models: Vec<_> = server
        .requests()
        .iter()
        .map(|it| it.json()["model"].clone())
        .collect();
    assert_eq!(models, ["own", "own", "own", "default"]);
}
