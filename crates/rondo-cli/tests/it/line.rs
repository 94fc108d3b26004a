//! Lines that name no command.

use crate::harness::{TestEnv, says, serve};
use crate::person::{CTRL_D, Person};
use crate::repl::{leave, said, start};
use rondo_testkit::Server;
use serde_json::json;
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

/// Names a server of the test's own by variables, as a user's own settings do.
fn with_server(server: &Server) -> TestEnv {
    TestEnv::new()
        .var("RONDO_MODEL", "openai/test")
        .var("RONDO_BASE_URL", &server.url("/v1"))
}

#[tokio::test]
async fn a_question_alone_is_asked() {
    let server = serve(vec![says("one"), says("two"), says("three"), says("four")]).await;
    let env = with_server(&server);
    env.run(&["what is in src?"]).await.check("one\n", "", 0);
    let shown = env.run(&["--json", "-m", "openai/other", "why?"]).await;
    assert_eq!(shown.result()["text"], "two");
    env.run(&["-c", "go on"]).await.check("three\n", "", 0);
    env.run(&["-q", "ask", "and?"]).await.check("four\n", "", 0);
    let asked: Vec<String> = (0..4).map(|at| said(&server, at).pop().unwrap()).collect();
    assert_eq!(asked, ["what is in src?", "why?", "go on", "and?"]);
    assert_eq!(server.requests()[1].json()["model"], "other");
    assert_eq!(said(&server, 2), ["why?", "go on"]);
}

#[tokio::test]
async fn what_is_piped_in_alone_is_the_question() {
    let server = serve(vec![says("ok"), says("ok")]).await;
    let env = with_server(&server).stdin("the question\n");
    env.run(&[]).await.check("ok\n", "", 0);
    env.run(&["explain"]).await.check("ok\n", "", 0);
    assert_eq!(said(&server, 0), ["the question"]);
    assert_eq!(
        said(&server, 1),
        ["explain\n\n<stdin>\nthe question\n</stdin>"]
    );
}

#[tokio::test]
async fn nothing_at_all_gets_the_help_or_a_hint_and_asks_nobody() {
    let server = serve(Vec::new()).await;
    let env = with_server(&server);
    let shown = env.run(&[]).await;
    assert_eq!((shown.code, shown.stdout.as_str()), (Some(2), ""));
    assert!(shown.stderr.contains("Commands:\n  ask "), "{shown:?}");
    with_server(&server).stdin(" \n").run(&[]).await.check(
        "",
        "error: there is nothing to ask: standard input is empty\n\n\
         hint: `rondo --help` says what there is besides questions\n",
        2,
    );
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn a_mistyped_command_is_refused_with_a_guess_and_asks_nobody() {
    let server = serve(vec![says("a question")]).await;
    let env = with_server(&server);
    env.run(&["sesion"]).await.check(
        "",
        "error: there is no command `sesion`; did you mean `rondo session`?\n\n\
         hint: to ask it as a question: `rondo ask sesion`\n",
        2,
    );
    let shown = env.run(&["--json", "resum"]).await;
    assert_eq!(
        shown.result()["error"]["message"],
        "there is no command `resum`; did you mean `rondo resume`?"
    );
    let shown = env.run(&["test", "the", "login"]).await;
    assert_eq!(shown.code, Some(2));
    assert!(
        shown
            .stderr
            .ends_with("hint: to ask it as a question: `rondo ask \"...\"`\n"),
        "{shown:?}"
    );
    assert!(server.requests().is_empty());
    env.run(&["ask", "sesion"])
        .await
        .check("a question\n", "", 0);
}

#[tokio::test]
async fn a_word_for_the_version_prints_it() {
    let env = TestEnv::new();
    let version = env.run(&["--version"]).await;
    assert_eq!(version.code, Some(0));
    env.run(&["version"]).await.check(&version.stdout, "", 0);
    let shown = env.run(&["--hlep"]).await;
    assert_eq!(shown.code, Some(2));
    assert!(shown.stderr.contains("'--help'"), "{shown:?}");
}

#[tokio::test]
async fn a_terminal_alone_gets_the_prompt_and_is_told_how_to_leave_it() {
    let server = serve(vec![says("It is four.")]).await;
    let env = with_server(&server);
    let mut person = Person::start(&env, &[]);
    person.sees("Ctrl-D leaves").await;
    person.prompt("agent").await;
    person.enter("2+2?").await;
    person.sees("It is four.").await;
    person.prompt("agent").await;
    leave(person).await;
}

#[tokio::test]
async fn the_prompt_begins_with_what_it_is_given() {
    let server = serve(vec![says("It is four."), says("It was four.")]).await;
    let env = TestEnv::new();
    let mut person = start(&env, &server, &["2+2?"]);
    person.sees("It is four.").await;
    person.prompt("agent").await;
    person.enter("what was it?").await;
    person.sees("It was four.").await;
    person.prompt("agent").await;
    person.press(CTRL_D).await;
    assert_eq!(person.code().await, Some(0));
    assert_eq!(said(&server, 1), ["2+2?", "what was it?"]);
}

#[tokio::test]
async fn standard_input_is_read_to_its_end_however_late_it_comes() {
    let server = serve(vec![says("ok")]).await;
    let env = with_server(&server);
    let mut command = env.command(&["ask", "explain"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut notes = BufReader::new(child.stderr.take().unwrap()).lines();
    let note = notes.next_line().await.unwrap();
    assert_eq!(
        note.as_deref(),
        Some("note: reading standard input until it ends; `< /dev/null` if there is none")
    );
    // The note tells that a second has passed in silence.
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"DATA\n").await.unwrap();
    drop(stdin);
    let shown = env.wait(child).await;
    assert_eq!((shown.stdout.as_str(), shown.code), ("ok\n", Some(0)));
    assert_eq!(said(&server, 0), ["explain\n\n<stdin>\nDATA\n</stdin>"]);
    assert_eq!(notes.next_line().await.unwrap(), None);
}

#[tokio::test]
async fn a_pipe_that_nobody_closes_is_waited_for_until_the_deadline_and_no_longer() {
    let server = serve(Vec::new()).await;
    let env = with_server(&server);
    let mut command = env.command(&["ask", "--json", "--deadline", "1500ms", "explain"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let held = child.stdin.take().unwrap();
    let shown = env.wait(child).await;
    drop(held);
    let error = shown.result()["error"].clone();
    assert_eq!(
        (&error["class"], shown.code),
        (&json!("deadline"), Some(124))
    );
    assert_eq!(
        shown.stderr,
        "note: reading standard input until it ends; `< /dev/null` if there is none\n\
         error: the deadline came before the input was read to its end\n\n\
         hint: is something writing to standard input and to the files that are named? `< /dev/null` says that there is no input\n"
    );
    assert!(server.requests().is_empty());
}
