//! Questions to a person about a folder: its settings, its servers, and changes that a sandboxed command left in it.

use crate::harness::{TestEnv, says, serve};
use crate::person::{ENTER, Person};
use crate::repl;
use crate::screen;
use rondo_sandbox::{Ledger, PROTECTED};
use rondo_testkit::Server;
use serde_json::json;

/// Ends of the three questions, in the order in which they are asked.
const CHANGES: &str = "Accept these differences, so that Rondo works here as before?";
const SETTINGS: &str = "Trust [ROOT]/project from now on?";
const SERVERS: &str = "Start them from now on?";
/// What stands behind a question at the terminal.
const CHOICE: &str = "then Enter (Enter alone: no): ";

/// Returns a folder that is not trusted, with settings, a server and what a command left.
fn folder(server: &Server) -> TestEnv {
    let env = TestEnv::new()
        .var("OPENAI_API_KEY", "sk-123456789")
        .var("OPENAI_BASE_URL", &server.url("/v1"));
    env.user_config("model = 'openai/mine'\n");
    env.write(".rondo/config.toml", "model = 'openai/theirs'\n");
    let program = json!({"command": "python3", "args": ["server.py"]});
    let servers = json!({"mcpServers": {"py": program}});
    env.write(".mcp.json", servers.to_string());
    leave_a_change(&env);
    env
}

/// Plays a sandboxed command that leaves a file which it must not change.
fn leave_a_change(env: &TestEnv) {
    let ledger = Ledger::at(env.home().join(".local/state/rondo/ledger"));
    let root = env.project().canonicalize().unwrap();
    let entry = ledger.begin("key", (1, 0), &[root], &PROTECTED).unwrap();
    env.write(".envrc", "planted");
    assert!(!entry.end(&[]).unwrap());
}

/// Answers questions at the terminal, in their order.
async fn answer(person: &mut Person, answers: &[(&str, &str)]) {
    for (question, key) in answers {
        person.sees_below(question, CHOICE).await;
        person.press(&format!("{key}{ENTER}")).await;
    }
}

fn model(server: &Server) -> String {
    let asked = server.requests().pop().unwrap().json();
    asked["model"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn ask_puts_all_that_a_folder_brings_to_the_person_in_order() {
    let server = serve(vec![says("first"), says("second"), says("third")]).await;
    let env = folder(&server);
    let mut person = Person::start(&env, &["ask", "x"]);
    person.sees(".envrc: added").await;
    answer(&mut person, &[(CHANGES, "y")]).await;
    person.sees("  model = \"openai/theirs\"").await;
    answer(&mut person, &[(SETTINGS, "y")]).await;
    person.sees("first").await;
    assert_eq!(person.code().await, Some(0));
    assert_eq!(model(&server), "theirs");
    // A project has servers once it is trusted.
    let mut person = Person::start(&env, &["ask", "x"]);
    person.sees("  py: python3 server.py").await;
    answer(&mut person, &[(SERVERS, "n")]).await;
    person.sees("second").await;
    assert_eq!(person.code().await, Some(0));
    // Each was answered for good.
    let mut person = Person::start(&env, &["ask", "x"]);
    person.sees("third").await;
    assert_eq!(person.code().await, Some(0));
    assert!(!person.all().contains(CHOICE), "{}", person.all());
}

#[tokio::test]
async fn nothing_of_a_folder_counts_whose_changes_a_person_does_not_accept() {
    let server = serve(vec![says("first"), says("second")]).await;
    let env = folder(&server);
    let mut person = Person::start(&env, &["ask", "x"]);
    answer(&mut person, &[(CHANGES, "")]).await;
    person.sees("first").await;
    assert_eq!(person.code().await, Some(0));
    assert!(!person.all().contains(SETTINGS), "{}", person.all());
    assert!(
        person.all().contains("must be reviewed"),
        "{}",
        person.all()
    );
    assert_eq!(model(&server), "mine");
    // It is asked again, since it was not accepted.
    let mut person = Person::start(&env, &["ask", "x"]);
    answer(&mut person, &[(CHANGES, "y"), (SETTINGS, "n")]).await;
    person.sees("is not trusted").await;
    person.sees("second").await;
    assert_eq!(person.code().await, Some(0));
    assert_eq!(model(&server), "mine");
}

#[tokio::test]
async fn nobody_is_asked_about_a_folder_without_a_terminal_or_if_the_run_is_quiet() {
    let server = serve(vec![says("first"), says("second")]).await;
    let env = folder(&server);
    let shown = env.run(&["ask", "x"]).await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(!shown.stderr.contains(CHOICE), "{shown:?}");
    let mut person = Person::start(&env, &["ask", "--quiet", "x"]);
    person.sees("second").await;
    assert_eq!(person.code().await, Some(0));
    assert!(!person.all().contains(CHOICE), "{}", person.all());
    assert_eq!(model(&server), "mine");
}

#[tokio::test]
async fn the_line_prompt_puts_all_that_a_folder_brings_to_the_person_before_it_begins() {
    let server = serve(vec![says("first")]).await;
    let env = folder(&server);
    let mut person = Person::start(&env, &["repl"]);
    answer(&mut person, &[(CHANGES, "y"), (SETTINGS, "y")]).await;
    person.prompt("agent").await;
    repl::leave(person).await;
    let mut person = Person::start(&env, &["repl"]);
    answer(&mut person, &[(SERVERS, "n")]).await;
    person.prompt("agent").await;
    person.enter("x").await;
    person.sees("first").await;
    person.prompt("agent").await;
    assert_eq!(model(&server), "theirs");
    repl::leave(person).await;
}

#[tokio::test]
async fn the_screen_opens_once_all_that_the_folder_brings_is_answered() {
    let server = serve(vec![says("first")]).await;
    let env = folder(&server);
    let mut person = Person::start(&env, &[]);
    answer(
        &mut person,
        &[(CHANGES, "y"), (SETTINGS, "y"), (SERVERS, "n")],
    )
    .await;
    person.is_alternate().await;
    person.shows("? help").await;
    person.press("x\r").await;
    person.shows("first").await;
    assert_eq!(model(&server), "theirs");
    screen::leave(person).await;
}

/// Allows what is asked on the screen.
async fn allow(person: &mut Person, question: &str) {
    person.shows("┏━ ").await;
    person.press(screen::REVIEW).await;
    person.shows(question).await;
    person.shows("y allow").await;
    person.press("y").await;
}

/// Says something on the screen, and again after the folder has changed.
async fn at_a_change(server: &Server) -> (TestEnv, Person) {
    let env = TestEnv::new()
        .var("OPENAI_API_KEY", "sk-123456789")
        .var("OPENAI_BASE_URL", &server.url("/v1"));
    env.user_config("model = 'openai/mine'\n");
    let mut person = Person::start(&env, &[]);
    person.is_alternate().await;
    person.shows("? help").await;
    person.press("x\r").await;
    person.shows("first").await;
    leave_a_change(&env);
    person.press("y\r").await;
    (env, person)
}

#[tokio::test]
async fn the_screen_asks_about_what_comes_into_the_folder_before_the_next_turn() {
    let server = serve(vec![
        says("first"),
        says("second"),
        says("third"),
        says("fourth"),
    ])
    .await;
    let (env, mut person) = at_a_change(&server).await;
    allow(&mut person, ".envrc: added").await;
    person.shows("second").await;
    env.write(".rondo/config.toml", "yolo = true\n");
    person.press("z\r").await;
    allow(&mut person, "Trust").await;
    person.shows("third").await;
    let program = json!({"command": "python3", "args": ["server.py"]});
    let servers = json!({"mcpServers": {"py": program}});
    env.write(".mcp.json", servers.to_string());
    person.press("w\r").await;
    person.shows("┏━ ").await;
    person.press(screen::REVIEW).await;
    person.shows("py: python3 server.py").await;
    person.shows("y allow").await;
    person.press("n").await;
    person.shows("fourth").await;
    screen::leave(person).await;
}

#[tokio::test]
async fn another_terminal_answers_what_the_screen_asks_about_the_folder() {
    let server = serve(vec![says("first"), says("second")]).await;
    let (env, mut person) = at_a_change(&server).await;
    person.shows("┏━ ").await;
    assert_eq!(server.requests().len(), 1);
    let answered = env.run(&["answer", "latest", "y"]).await;
    assert_eq!(answered.code, Some(0), "{answered:?}");
    person.shows("second").await;
    assert!(
        !person.screen().contains("must be reviewed"),
        "{}",
        person.screen()
    );
    screen::leave(person).await;
}

#[tokio::test]
async fn a_session_that_goes_on_records_what_ask_puts_about_its_folder() {
    let server = serve(vec![says("first"), says("second")]).await;
    let env = TestEnv::new()
        .var("OPENAI_API_KEY", "sk-123456789")
        .var("OPENAI_BASE_URL", &server.url("/v1"));
    env.user_config("model = 'openai/mine'\n");
    let shown = env.run(&["ask", "x"]).await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    leave_a_change(&env);
    let mut person = Person::start(&env, &["ask", "--continue", "y"]);
    person.sees_below(CHANGES, CHOICE).await;
    // It is recorded, so another terminal may answer it.
    let answered = env.run(&["answer", "latest", "y"]).await;
    assert_eq!(answered.code, Some(0), "{answered:?}");
    person.sees("second").await;
    assert_eq!(person.code().await, Some(0));
    assert!(
        !person.all().contains("must be reviewed"),
        "{}",
        person.all()
    );
}
