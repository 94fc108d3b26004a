//! Lines that name no command.

use crate::harness::{TestEnv, calls, says, serve};
use crate::person::{CTRL_D, Person};
use crate::repl::{leave, said, start};
use rondo_testkit::{Response, Server, openai};
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
    assert!(shown.stderr.contains("Agents:\n  ask "), "{shown:?}");
    with_server(&server).stdin(" \n").run(&[]).await.check(
        "",
        "error: no question given: standard input is empty\n\n\
         hint: `rondo --help` lists the commands\n",
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
    let env = with_server(&server).var("RONDO_TUI_SCREEN", "inline");
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
         error: the deadline passed before all input was read\n\n\
         hint: is something still writing to standard input or to an attached file? Use `< /dev/null` if there is no input\n"
    );
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn a_list_says_what_became_of_each_last_turn() {
    let refused = json!({"error": {"message": "no", "type": "invalid_request_error"}});
    let server = Server::start(vec![
        openai::streamed(&says("yes")),
        Response::json(400, &refused),
        openai::streamed(&calls("exec", &json!({"command": "ls"}))),
    ])
    .await;
    let env = with_server(&server);
    env.run(&["ask", "one"]).await.check("yes\n", "", 0);
    assert_eq!(env.run(&["ask", "two"]).await.code, Some(1));
    let limited = env.run(&["ask", "--max-tool-calls", "0", "three"]).await;
    assert_ne!(limited.code, Some(0), "{limited:?}");
    let listed = env.run(&["session", "list", "--json"]).await.lines();
    let told: Vec<_> = listed
        .iter()
        .map(|it| json!([it["title"], it["state"], it["stop_reason"]]))
        .collect();
    assert_eq!(
        told[1..],
        [
            json!(["two", "done", "error"]),
            json!(["one", "done", "complete"]),
        ]
    );
    assert_eq!(told[0][0], "three");
    assert_ne!(told[0][2], "complete");
    let table = env.run(&["session", "list"]).await.stdout;
    for (title, word) in [("one", "  answered  "), ("two", "  failed  ")] {
        let row = table.lines().find(|row| row.ends_with(title)).unwrap();
        assert!(row.contains(word.trim_end()), "{row}");
    }
}

#[tokio::test]
async fn an_error_before_a_session_is_there_names_none() {
    let shown = TestEnv::new()
        .run(&["ask", "--json", "-m", "nobody/x", "hi"])
        .await;
    let result = shown.result();
    assert_eq!(
        (&result["session"], &result["turn"]),
        (&json!("none"), &json!("none"))
    );
}

#[tokio::test]
async fn what_is_missing_is_named_in_the_users_words() {
    let server = serve(vec![says("ok")]).await;
    let env = with_server(&server);
    env.run(&["-c", "go on"]).await.check(
        "",
        "error: nothing to continue: no session yet\n\nhint: `rondo ask \"...\"` begins one\n",
        45,
    );
    env.run(&["session", "prune"]).await.check(
        "",
        "error: no criterion given: pass --older-than, --keep-bytes or both\n\n\
         hint: `rondo session prune --older-than 30d --dry-run` lists the sessions without removing them\n",
        2,
    );
    env.run(&["ask", "hi"]).await.check("ok\n", "", 0);
    let file = env.project().join("s.jsonl");
    let file = file.to_str().unwrap();
    env.run(&["session", "export", "-o", file])
        .await
        .check("", "", 0);
    let again = env.run(&["session", "import", file]).await;
    assert_eq!(again.code, Some(1));
    assert!(
        again
            .stderr
            .ends_with("hint: use `--as NAME` to import it under another name\n"),
        "{again:?}"
    );
}

#[tokio::test]
async fn an_ephemeral_run_needs_no_place_to_write() {
    let server = serve(vec![
        calls("exec", &json!({"command": "echo done"})),
        says("ok"),
    ])
    .await;
    let env = with_server(&server).var("RONDO_HOME", "/proc/nowhere");
    env.run(&["ask", "--ephemeral", "hi"])
        .await
        .check("ok\n", "", 0);
    let messages = server.requests()[1].json()["messages"].to_string();
    assert!(messages.contains("done"), "{messages}");
}

#[tokio::test]
async fn every_command_ends_with_141_where_nobody_reads_what_it_prints() {
    let server = serve(vec![says("ok")]).await;
    let env = with_server(&server);
    env.run(&["ask", "hi"]).await.check("ok\n", "", 0);
    for args in [
        &["session", "list"][..],
        &["session", "list", "--json"],
        &["session", "show"],
        &["session", "show", "--format", "html"],
        &["session", "export"],
        &["session", "fsck"],
        &["replay", "latest"],
        &["replay", "--json", "latest"],
        &["profiles", "list"],
        &["profiles", "show", "default"],
        &["models", "list"],
        &["completion", "bash"],
        &["doctor"],
        &["--help"],
        &["help", "ask"],
        &["--version"],
        &["version"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = env.command(args);
        let child = command.stdout(writer).spawn().unwrap();
        drop(command);
        let shown = env.wait(child).await;
        assert_eq!(
            (shown.stderr.as_str(), shown.code),
            ("", Some(141)),
            "{args:?}"
        );
    }
}
