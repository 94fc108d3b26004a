//! Directory of the prompt: shell, Python and the agent go there together.

use crate::harness::{TestEnv, ask_args, calls, says, serve};
use crate::person::{F2, Person};
use crate::repl::{leave, messages, start};
use crate::screen_sessions::with_a_session_of_another_model;
use rondo_testkit::Server;
use serde_json::json;
use std::fs;

fn bash() -> TestEnv {
    TestEnv::new().var("SHELL", "/bin/bash")
}

async fn at(env: &TestEnv, server: &Server, mode: &str) -> Person {
    let mut person = start(env, server, &["--mode", mode, "--yolo"]);
    person.prompt(mode).await;
    person
}

/// Enters lines, each at the prompt of that mode.
async fn enters(person: &mut Person, mode: &str, lines: &[&str]) {
    for line in lines {
        person.enter(line).await;
        person.prompt(mode).await;
    }
}

#[tokio::test]
async fn python_and_the_agents_python_go_where_the_shell_goes() {
    let server = serve(vec![
        calls("eval_expr", &json!({"expr": "os.getcwd()[-6:]"})),
        says("I looked."),
    ])
    .await;
    let env = bash();
    fs::create_dir(env.project().join("below")).unwrap();
    let mut person = at(&env, &server, "python").await;
    enters(&mut person, "python", &["import os; mine = 6"]).await;
    enters(&mut person, "python", &["!cd below"]).await;
    person.enter("mine * 7, os.getcwd()[-14:]").await;
    person.sees("(42, '/project/below')").await;
    person.prompt("python").await;
    // What Python does by itself is Python's, until the shell continues.
    enters(&mut person, "python", &["os.chdir('/')", "!true"]).await;
    person.enter("'at ' + os.getcwd()").await;
    person.sees("'at /'").await;
    person.prompt("python").await;
    enters(&mut person, "python", &["!cd ..", "!cd below"]).await;
    person.enter("# where are you?").await;
    person.sees("I looked.").await;
    person.prompt("python").await;
    leave(person).await;
    let (_, told) = &messages(&server, 1)[3];
    assert!(told.to_string().contains("'/below'"), "{told}");
}

#[tokio::test]
async fn an_interpreter_that_was_not_there_yet_starts_where_the_shell_is() {
    let server = serve(Vec::new()).await;
    let env = bash();
    fs::create_dir(env.project().join("below")).unwrap();
    let mut person = at(&env, &server, "shell").await;
    enters(&mut person, "shell", &["cd below"]).await;
    person.press(F2).await;
    person.prompt("python").await;
    person.enter("import os; os.getcwd()[-14:]").await;
    person.sees("'/project/below'").await;
    person.prompt("python").await;
    enters(&mut person, "python", &["!cd ..", "os._exit(3)"]).await;
    person.enter("import os; os.getcwd()[-8:]").await;
    person.sees("'/project'").await;
    person.prompt("python").await;
    leave(person).await;
}

#[tokio::test]
async fn a_directory_that_is_gone_is_named_in_every_mode_and_left_by_cd() {
    let server = serve(vec![says("I am back.")]).await;
    let env = bash();
    let lost = env.project().join("lost");
    fs::create_dir(&lost).unwrap();
    let mut person = at(&env, &server, "shell").await;
    enters(&mut person, "shell", &["cd lost"]).await;
    person.enter("rmdir ../lost").await;
    person
        .sees("/project/lost` no longer exists; `!cd DIR`")
        .await;
    person.prompt("shell").await;
    person.press(F2).await;
    person.prompt("python").await;
    person.enter("6 * 7").await;
    person
        .sees("Python cannot work in `[ROOT]/project/lost`")
        .await;
    person.sees_below("cannot work in", "`!cd DIR`").await;
    person.prompt("python").await;
    person.press(F2).await;
    person.prompt("agent").await;
    person.enter("are you there?").await;
    person
        .sees_below("are you there?", "/project/lost` no longer exists\n")
        .await;
    person.prompt("agent").await;
    let shown = person.all();
    assert!(
        !shown.contains("python3") && !shown.contains("I am"),
        "{shown}"
    );
    enters(&mut person, "agent", &["!cd .."]).await;
    person.enter(">6 * 7").await;
    person.sees("\n42\n").await;
    person.prompt("agent").await;
    person.enter("are you there?").await;
    person.sees("I am back.").await;
    person.prompt("agent").await;
    leave(person).await;
}

#[tokio::test]
async fn a_line_for_a_directory_that_is_gone_runs_in_no_other() {
    let server = serve(Vec::new()).await;
    let env = bash();
    let mut person = at(&env, &server, "agent").await;
    // No shell was started yet.
    let (project, moved) = (env.project(), env.home().join("moved"));
    fs::rename(&project, &moved).unwrap();
    person.enter("!touch made.txt").await;
    person.sees("and the line was dropped").await;
    person.prompt("agent").await;
    for folder in [&moved, &env.home(), project.parent().unwrap()] {
        assert!(!folder.join("made.txt").exists(), "{}", folder.display());
    }
    person.enter("!pwd").await;
    person.prompt("agent").await;
    leave(person).await;
}

#[tokio::test]
async fn what_lies_where_the_shell_went_is_not_taken_for_the_standard_library() {
    let server = serve(Vec::new()).await;
    let env = bash();
    let lib = env.home().join("lib");
    fs::create_dir(&lib).unwrap();
    fs::write(lib.join("inspect.py"), "open('ran', 'w')").unwrap();
    let env = env.var("PYTHONPATH", lib.to_str().unwrap());
    let mut person = at(&env, &server, "python").await;
    enters(&mut person, "python", &["x = 1", "!cd ~/lib"]).await;
    person.enter("# /inspect x").await;
    person.sees("type: builtins.int").await;
    person.prompt("python").await;
    leave(person).await;
    assert!(!lib.join("ran").exists());
}

#[tokio::test]
async fn where_the_directory_is_gone_a_question_names_it_and_the_way_out() {
    let server = serve(vec![says("Hello.")]).await;
    let env = TestEnv::new();
    let url = server.url("/v1");
    let asked = ask_args(&url, &["hi"]);
    let in_lost = "mkdir lost && cd lost && rmdir ../lost && exec \"$0\" \"$@\"";
    let shown = env.shown(&env.wrapped(in_lost, &asked).output().await.unwrap());
    shown.check(
        "",
        "error: the directory `[ROOT]/project/lost` no longer exists\n  \
         caused by: No such file or directory (os error 2)\n\n\
         hint: `cd` to a directory that exists, or name one by its absolute path: `-C DIR`\n",
        42,
    );
    let project = env.project();
    let elsewhere = [&asked[..], &["-C", project.to_str().unwrap()]].concat();
    let shown = env.shown(&env.wrapped(in_lost, &elsewhere).output().await.unwrap());
    assert_eq!(
        (shown.stdout.as_str(), shown.code),
        ("Hello.\n", Some(0)),
        "{shown:?}"
    );
}

#[tokio::test]
async fn a_session_that_worked_elsewhere_says_so_and_goes_on_here() {
    let server = serve(vec![says("There."), says("Here.")]).await;
    let env = bash();
    fs::create_dir(env.project().join("other")).unwrap();
    let asked = env.ask(&server, &["-C", "other", "where?"]).await;
    assert_eq!(asked.code, Some(0));
    let mut person = at(&env, &server, "agent").await;
    person.enter("/resume latest").await;
    person
        .sees("/project/other` and continues here; `!cd [ROOT]/project/other` changes to it")
        .await;
    person.prompt("agent").await;
    person.enter("and now?").await;
    person.sees("Here.").await;
    person.prompt("agent").await;
    leave(person).await;
}

#[tokio::test]
async fn a_session_that_is_resumed_asks_its_own_model() {
    let server = serve(vec![says("A pear."), says("Green.")]).await;
    let url = server.url("/v1");
    let env = with_a_session_of_another_model(&url).await;
    let mut person = Person::start(&env, &["repl", "--base-url", &url]);
    person.prompt("agent").await;
    person.enter("/resume latest").await;
    person.prompt("agent").await;
    person.enter("which colour?").await;
    person.sees("Green.").await;
    person.prompt("agent").await;
    leave(person).await;
    assert_eq!(server.requests()[1].json()["model"], "own");
}
