//! A terminal that can only print (`TERM=dumb`), as in Emacs: no byte of an escape sequence reaches it.

use crate::harness::{TestEnv, calls, says, serve};
use crate::person::{CTRL_C, CTRL_D, ENTER, Person};
use crate::repl::said;
use rondo_testkit::Server;
use serde_json::json;

fn env() -> TestEnv {
    TestEnv::new().var("TERM", "dumb")
}

fn start(env: &TestEnv, server: &Server, args: &[&str]) -> Person {
    let url = server.url("/v1");
    let named = ["-m", "openai/test", "--base-url", &url];
    Person::start(env, &[args, &named[..]].concat())
}

/// Asserts that a terminal without any sequences shows what was written to it.
fn assert_plain(person: &Person) {
    let text = String::from_utf8(person.written().to_vec()).unwrap();
    let is_known = |c: &char| !c.is_control() || matches!(c, '\n' | '\r' | '\t' | '\x08');
    let strange: Vec<_> = text.chars().filter(|c| !is_known(c)).collect();
    assert!(strange.is_empty(), "{strange:?} in {text:?}");
}

fn replies() -> Vec<rondo_testkit::ReplyScript> {
    let colours = "printf '\\033[31mred\\033[0m\\n'; touch made.txt";
    vec![
        calls("exec", &json!({ "command": colours })).saying("Let me **look**."),
        says("# Sum\n\nIt is *four*:\n\n- two\n- `two`\n"),
    ]
}

#[tokio::test]
async fn a_question_at_a_dumb_terminal_gets_no_escape_sequence() {
    let server = serve(replies()).await;
    let env = env();
    let mut person = start(&env, &server, &["ask", "2+2?"]);
    person.sees("y/n").await;
    person.press("y\r").await;
    assert_eq!(person.code().await, Some(0));
    assert!(
        person.all().contains("Let me **look**.\n\n`exec` wants"),
        "{}",
        person.all()
    );
    assert!(person.all().contains("It is *four*"), "{}", person.all());
    assert_plain(&person);
}

#[tokio::test]
async fn the_prompt_at_a_dumb_terminal_gets_no_escape_sequence() {
    for args in [&[][..], &["repl"]] {
        let server = serve(replies()).await;
        let env = env();
        let mut person = start(&env, &server, args);
        person.prompt("agent").await;
        person.enter("2+2?").await;
        person.sees("y/n").await;
        person.press("y").await;
        person.press(ENTER).await;
        person.sees("It is *four*").await;
        person.prompt("agent").await;
        for (line, shown) in [
            ("/help", "/include"),
            ("/steps", "exec"),
            ("/nosuch", "nosuch"),
        ] {
            person.enter(line).await;
            person.sees(shown).await;
            person.prompt("agent").await;
        }
        person.enter("/mode shell").await;
        person.prompt("shell").await;
        person.enter("echo $((6*7))").await;
        person.sees("\n42").await;
        person.prompt("shell").await;
        person.press(CTRL_D).await;
        assert_eq!(person.code().await, Some(0));
        assert_plain(&person);
    }
}

#[tokio::test]
async fn a_line_at_a_dumb_terminal_is_dropped_and_continued_as_at_any_other() {
    let server = serve(vec![says("Both.")]).await;
    let env = env();
    let mut person = start(&env, &server, &["repl"]);
    person.prompt("agent").await;
    person.press("not this").await;
    person.types_behind("not this").await;
    person.press(CTRL_C).await;
    person.prompt("agent").await;
    person.enter("one \\").await;
    // What is typed before the program asks for the rest is drawn twice.
    person.types_behind("  ").await;
    person.enter("two").await;
    person.sees("Both.").await;
    person.prompt("agent").await;
    person.press(CTRL_D).await;
    assert_eq!(person.code().await, Some(0));
    assert_eq!(said(&server, 0).len(), 1);
    assert!(said(&server, 0)[0].contains("two"));
    assert_plain(&person);
}

#[tokio::test]
async fn a_wrong_option_at_a_dumb_terminal_is_refused_without_colours() {
    let env = env();
    let mut person = Person::start(&env, &["ask", "--nope"]);
    assert_eq!(person.code().await, Some(2));
    let mut help = Person::start(&env, &["--help"]);
    assert_eq!(help.code().await, Some(0));
    assert_plain(&person);
    assert_plain(&help);
}
