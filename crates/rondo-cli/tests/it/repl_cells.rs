//! Python cells at the prompt: recorded, run again on request, carried by forks.

use crate::harness::{TestEnv, calls, says, serve};
use crate::person::{CTRL_C, Person};
use crate::repl::{leave, messages, never_done, said, start};
use rondo_testkit::Server;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::path::PathBuf;

async fn python(env: &TestEnv, server: &Server, args: &[&str]) -> Person {
    let args = [&["--mode", "python"], args].concat();
    let mut person = start(env, server, &args);
    person.prompt("python").await;
    person
}

/// Runs a cell, and waits for the next prompt.
async fn cell(person: &mut Person, code: &str) {
    person.enter(code).await;
    person.prompt("python").await;
}

async fn sessions(env: &TestEnv) -> Vec<Value> {
    env.run(&["session", "list", "--json"]).await.lines()
}

async fn latest(env: &TestEnv) -> String {
    sessions(env).await[0]["id"].as_str().unwrap().to_owned()
}

/// The latest session's records of cells, as their kinds and bodies.
async fn records(env: &TestEnv, session: &str) -> Vec<Value> {
    let exported = env.run(&["session", "export", session]).await;
    assert_eq!(exported.code, Some(0), "{exported:?}");
    let lines = exported.lines().into_iter().skip(1);
    lines.map(|it| it["body"].clone()).collect()
}

async fn kinds(env: &TestEnv, session: &str) -> Vec<String> {
    let all = records(env, session).await;
    let kinds = all.iter().map(|it| it["kind"].as_str().unwrap().to_owned());
    kinds.filter(|it| it.starts_with("cell")).collect()
}

#[tokio::test]
async fn cells_begin_a_session_and_are_run_again_on_request_alone() {
    let server = serve(Vec::new()).await;
    let env = TestEnv::new();
    let mut person = python(&env, &server, &[]).await;
    cell(&mut person, "x = 6").await;
    cell(&mut person, "open('touched', 'a').write('1')").await;
    cell(&mut person, "1 / 0").await;
    leave(person).await;
    let list = sessions(&env).await;
    assert_eq!(
        (&list[0]["title"], &list[0]["turns"]),
        (&json!(">>> x = 6"), &json!(0))
    );
    let session = latest(&env).await;
    let pair = ["cell_started", "cell_finished"];
    assert_eq!(kinds(&env, &session).await, [pair, pair, pair].concat());
    let shown = env.run(&["session", "show", &session]).await.stdout;
    assert!(
        shown.contains("ZeroDivisionError: division by zero"),
        "{shown}"
    );
    let checked = env.run(&["session", "fsck", &session]).await;
    assert_eq!(checked.code, Some(0), "{checked:?}");

    let mut person = python(&env, &server, &["-c"]).await;
    person
        .sees("3 Python cells of the session are not in this interpreter: `/restore` runs them")
        .await;
    person.enter("'x' in globals()").await;
    person.sees("\nFalse\n").await;
    person.prompt("python").await;
    let touched = env.project().join("touched");
    assert_eq!(std::fs::read_to_string(&touched).unwrap(), "1");
    person.enter("/restore").await;
    person
        .sees("running 3 Python cells again, with what they do to files")
        .await;
    person.sees("3 of 3 ran again").await;
    person
        .sees("3  1 / 0\n     raised ZeroDivisionError: division by zero, then as now")
        .await;
    person.prompt("python").await;
    assert_eq!(std::fs::read_to_string(&touched).unwrap(), "11");
    person.enter("x * 7").await;
    person.sees("\n42\n").await;
    person.prompt("python").await;
    person.enter("/restore").await;
    person
        .sees("every cell of the session is in this interpreter")
        .await;
    person.prompt("python").await;
    leave(person).await;
    assert_eq!(std::fs::read_to_string(&touched).unwrap(), "11");
    assert_eq!(latest(&env).await, session);
    let kinds = kinds(&env, &session).await;
    assert_eq!(kinds[8..10], ["cells_repeating", "cells_repeated"]);
}

/// Has the agent make `y` from the `x` of a cell.
async fn making_y(env: &TestEnv) -> (Person, Server) {
    let server = serve(vec![
        calls("run_code", &json!({"code": "y = x + 1"})),
        says("I made y."),
    ])
    .await;
    let mut person = python(env, &server, &["--yolo"]).await;
    cell(&mut person, "x = 41").await;
    person.enter("# make y").await;
    person.sees("I made y.").await;
    person.prompt("python").await;
    (person, server)
}

#[tokio::test]
async fn the_agents_code_is_run_again_too_and_recorded_once() {
    let env = TestEnv::new();
    let (person, server) = making_y(&env).await;
    leave(person).await;
    let session = latest(&env).await;
    let row = &sessions(&env).await[0];
    assert_eq!(
        (&row["title"], &row["turns"]),
        (&json!("make y"), &json!(1))
    );
    assert_eq!(
        kinds(&env, &session).await,
        ["cell_started", "cell_finished"]
    );
    let replayed = env.run(&["replay", &session, "--strict"]).await;
    assert_eq!(replayed.code, Some(0), "{replayed:?}");
    let mut person = python(&env, &server, &["-c", "--restore-python"]).await;
    person.sees("2 of 2 ran again").await;
    person.enter("y").await;
    person.sees("\n42\n").await;
    person.prompt("python").await;
    leave(person).await;
}

/// Begins a cell that does not end, and returns the file that it makes first.
pub(crate) async fn sleeping(env: &TestEnv, person: &mut Person) -> PathBuf {
    person
        .enter("open('begun', 'w').close(); __import__('time').sleep(600)")
        .await;
    let begun = env.project().join("begun");
    while !begun.exists() {
        tokio::task::yield_now().await;
    }
    begun
}

#[tokio::test]
async fn a_cell_that_was_running_when_the_process_was_killed_is_in_doubt() {
    let server = serve(Vec::new()).await;
    let env = TestEnv::new();
    let mut person = python(&env, &server, &[]).await;
    cell(&mut person, "x = 1").await;
    let begun = sleeping(&env, &mut person).await;
    let process = Pid::from_raw(person.process()).unwrap();
    kill_process(process, Signal::KILL).unwrap();
    person.code().await;
    std::fs::remove_file(&begun).unwrap();
    let session = latest(&env).await;
    let started = "cell_started";
    assert_eq!(
        kinds(&env, &session).await,
        [started, "cell_finished", started]
    );

    let mut person = python(&env, &server, &["-c", "--restore-python"]).await;
    person.sees("1 of 2 ran again").await;
    person
        .sees("not run: its end is not recorded, so what it did is unknown")
        .await;
    person
        .sees("`/restore NUMBER` runs one of them anyway.")
        .await;
    person.prompt("python").await;
    assert!(!begun.exists());
    // A cell that is named by its number runs until it is stopped.
    person.enter("/restore 2").await;
    while !begun.exists() {
        tokio::task::yield_now().await;
    }
    person.press(CTRL_C).await;
    person.sees("was stopped before its end").await;
    person.prompt("python").await;
    person.enter("x + 1").await;
    person.sees("\n2\n").await;
    person.prompt("python").await;
    leave(person).await;
}

#[tokio::test]
async fn a_fork_has_an_interpreter_of_its_own_and_both_sides_diverge() {
    let server = serve(Vec::new()).await;
    let env = TestEnv::new();
    let mut person = python(&env, &server, &[]).await;
    cell(&mut person, "import random").await;
    cell(&mut person, "x = [1]").await;
    cell(&mut person, "pid = __import__('os').getpid()").await;
    let parent = latest(&env).await;
    person.enter("/fork").await;
    person.sees("running 3 Python cells again").await;
    person.sees("3 of 3 ran again").await;
    person.prompt("python").await;
    cell(&mut person, "x.append(2)").await;
    person.enter("x").await;
    person.sees("\n[1, 2]\n").await;
    person.prompt("python").await;
    let fork = latest(&env).await;
    // Each has its own here too, as long as the prompt is there.
    person.enter(&format!("/resume {parent}")).await;
    person.prompt("python").await;
    person.enter("len(x) + 10").await;
    person.sees("\n11\n").await;
    person.prompt("python").await;
    person.enter(&format!("/resume {fork}")).await;
    person.prompt("python").await;
    person.enter("len(x) + 20").await;
    person.sees("\n22\n").await;
    person.prompt("python").await;
    assert!(!person.all().contains("not in this interpreter"));
    leave(person).await;
    let mut person = python(&env, &server, &["--session", &parent, "--restore-python"]).await;
    person.sees("4 of 4 ran again").await;
    person.prompt("python").await;
    person.enter("x").await;
    person.sees("\n[1]\n").await;
    person.prompt("python").await;
    leave(person).await;
}

#[tokio::test]
async fn what_a_turn_and_later_cells_left_in_python_is_taken_back_with_it() {
    let env = TestEnv::new();
    let (mut person, _server) = making_y(&env).await;
    cell(&mut person, "z = y").await;
    person.enter("/undo").await;
    person
        .sees("what 2 later Python cells left is taken back too")
        .await;
    person.sees("1 of 1 ran again").await;
    person.prompt("python").await;
    person
        .enter("(x, 'y' in globals(), 'z' in globals())")
        .await;
    person.sees("\n(41, False, False)\n").await;
    person.prompt("python").await;
    person.enter("/undo").await;
    person.sees("no question was asked yet").await;
    person.prompt("python").await;
    leave(person).await;
}

#[tokio::test]
async fn an_ephemeral_session_keeps_no_cell_and_keys_are_kept_by_none() {
    let server = serve(Vec::new()).await;
    let env = TestEnv::new().var("MY_TOKEN", "k-1234567890");
    let mut person = python(&env, &server, &["--ephemeral"]).await;
    cell(&mut person, "x = 6").await;
    person.enter("/restore").await;
    person.sees("this session is not recorded").await;
    person.prompt("python").await;
    leave(person).await;
    assert!(sessions(&env).await.is_empty());

    let mut person = python(&env, &server, &[]).await;
    cell(&mut person, "key = 'k-1234567890'").await;
    cell(&mut person, "print(key); key").await;
    leave(person).await;
    let session = latest(&env).await;
    let kept = env.run(&["session", "export", &session]).await.stdout;
    assert!(
        !kept.contains("k-1234567890") && kept.contains("[redacted]"),
        "{kept}"
    );
    let mut person = python(&env, &server, &["-c", "--restore-python"]).await;
    person
        .sees("not run: it held a key, which is not kept")
        .await;
    person.prompt("python").await;
    leave(person).await;
    let refused = env.run(&["repl", "--restore-python"]).await;
    assert_eq!(refused.code, Some(2), "{refused:?}");
}

#[tokio::test]
async fn a_lost_interpreter_is_restored_by_what_ran_in_it() {
    let server = serve(Vec::new()).await;
    let env = TestEnv::new();
    let mut person = python(&env, &server, &[]).await;
    cell(&mut person, "x = 6").await;
    cell(&mut person, "import os; os._exit(3)").await;
    person.sees("ended with exit code 3").await;
    person.enter("/restore").await;
    person.sees("1 of 2 ran again").await;
    person.sees("not run: it ended the interpreter then").await;
    person.prompt("python").await;
    person.enter("x * 7").await;
    person.sees("\n42\n").await;
    person.prompt("python").await;
    leave(person).await;
}

/// A cell may run while a turn waits to be resumed: the turn continues as if it were not there.
#[tokio::test]
async fn a_cell_between_a_killed_turn_and_its_rest_is_no_part_of_it() {
    let write = json!({"path": "a.txt", "content": "a\n"});
    let server = never_done(&calls("write_file", &write)).await;
    let env = TestEnv::new();
    let mut person = start(&env, &server, &["--yolo"]);
    person.prompt("agent").await;
    person.enter(">x = 1").await;
    person.prompt("agent").await;
    person.enter("make it").await;
    server.request(1).await;
    kill_process(Pid::from_raw(person.process()).unwrap(), Signal::KILL).unwrap();
    person.code().await;
    let mut person = start(&env, &server, &["-c", "--yolo"]);
    person.prompt("agent").await;
    person.enter(">y = 2").await;
    person.prompt("agent").await;
    person.enter("/resume").await;
    person.sees("It was made.").await;
    person.prompt("agent").await;
    leave(person).await;
    let mut person = start(&env, &server, &["-c", "--yolo"]);
    person.prompt("agent").await;
    person.enter("else?").await;
    person.sees("Nothing else.").await;
    person.prompt("agent").await;
    leave(person).await;
    assert_eq!(messages(&server, 1), messages(&server, 2));
    assert_eq!(said(&server, 3), ["make it", "else?"]);
    let session = latest(&env).await;
    let pair = ["cell_started", "cell_finished"];
    assert_eq!(kinds(&env, &session).await, [pair, pair].concat());
    let replayed = env.run(&["replay", &session, "--strict"]).await;
    assert_eq!(replayed.code, Some(0), "{replayed:?}");
    // A copy that went through a file has the cells, and so has a fork made outside of the prompt.
    let exported = env
        .run(&["session", "export", &session, "-o", "s.jsonl"])
        .await;
    assert_eq!(exported.code, Some(0), "{exported:?}");
    let imported = env
        .run(&["session", "import", "s.jsonl", "--as", "copy"])
        .await;
    assert_eq!(imported.code, Some(0), "{imported:?}");
    assert_eq!(kinds(&env, "copy").await, [pair, pair].concat());
    let forked = env.run(&["fork", "copy", "--at", "1.2", "--no-run"]).await;
    assert_eq!(forked.code, Some(0), "{forked:?}");
    let fork = forked.stdout.trim();
    let mut person = python(&env, &server, &["--session", fork, "--restore-python"]).await;
    person.sees("2 of 2 ran again").await;
    person.enter("x + y").await;
    person.sees("\n3\n").await;
    person.prompt("python").await;
    leave(person).await;
}

#[tokio::test]
async fn what_another_session_left_in_the_interpreter_is_told_as_gone_in_a_fork() {
    let server = serve(Vec::new()).await;
    let env = TestEnv::new();
    let mut person = python(&env, &server, &[]).await;
    cell(&mut person, "x = 1").await;
    person.enter("/clear").await;
    person.prompt("python").await;
    cell(&mut person, "y = x").await;
    cell(&mut person, "z = 3").await;
    person.enter("/fork").await;
    person
        .sees("raised NameError: name 'x' is not defined (then: nothing was raised)")
        .await;
    person.sees("not there any more: x, y").await;
    person.prompt("python").await;
    person.enter("z + 1").await;
    person.sees("\n4\n").await;
    person.prompt("python").await;
    leave(person).await;
}

#[tokio::test]
async fn restoring_is_stopped_by_a_key_and_says_how_far_it_came() {
    let server = serve(Vec::new()).await;
    let env = TestEnv::new();
    let mut person = python(&env, &server, &[]).await;
    cell(&mut person, "x = 1").await;
    cell(&mut person, "import os, time").await;
    let slow = "os.path.exists('slow') and (open('begun', 'w'), time.sleep(600))";
    cell(&mut person, slow).await;
    cell(&mut person, "x = 2").await;
    leave(person).await;
    env.write("slow", "");
    let mut person = python_at_once(&env, &server).await;
    while !env.project().join("begun").exists() {
        tokio::task::yield_now().await;
    }
    person.press(CTRL_C).await;
    person.sees("3 of 4 ran again; it was stopped there").await;
    person.sees("not run: this was stopped before it").await;
    person.prompt("python").await;
    person.enter("x + 10").await;
    person.sees("\n11\n").await;
    person.prompt("python").await;
    // What is left runs when it is asked for, and the rest not again.
    std::fs::remove_file(env.project().join("slow")).unwrap();
    person.enter("/restore").await;
    person.sees("running 1 Python cell again").await;
    person.sees("1 of 1 ran again").await;
    person.prompt("python").await;
    person.enter("x + 20").await;
    person.sees("\n22\n").await;
    person.prompt("python").await;
    leave(person).await;
}

/// Continues the latest session and restores it, and does not wait for the prompt.
async fn python_at_once(env: &TestEnv, server: &Server) -> Person {
    let args = ["--mode", "python", "-c", "--restore-python"];
    let mut person = start(env, server, &args);
    person.sees("running 4 Python cells again").await;
    person
}

#[tokio::test]
async fn a_session_of_cells_alone_takes_a_question_as_its_first_turn() {
    let server = serve(vec![says("Hello."), says("Again.")]).await;
    let env = TestEnv::new();
    let mut person = python(&env, &server, &[]).await;
    cell(&mut person, "x = 1").await;
    leave(person).await;
    let session = latest(&env).await;
    let nothing = env.run(&["resume"]).await;
    assert_eq!(nothing.code, Some(45), "{nothing:?}");
    for (question, answer) in [("hi", "Hello.\n"), ("and", "Again.\n")] {
        let shown = env.ask(&server, &["-c", question]).await;
        assert_eq!(
            (shown.stdout.as_str(), shown.code),
            (answer, Some(0)),
            "{shown:?}"
        );
    }
    assert_eq!(said(&server, 1), ["hi", "and"]);
    assert_eq!(
        (latest(&env).await, sessions(&env).await.len()),
        (session.clone(), 1)
    );
    let replayed = env.run(&["replay", &session, "--strict"]).await;
    assert_eq!(replayed.code, Some(0), "{replayed:?}");
}

#[tokio::test]
async fn a_cell_that_read_what_was_typed_is_run_again_only_by_its_number_and_without_input() {
    let server = serve(Vec::new()).await;
    let env = TestEnv::new();
    let mut person = python(&env, &server, &[]).await;
    person.enter("name = input('name? ')").await;
    person.types_behind("name? ").await;
    person.press("Ada\r").await;
    person.prompt("python").await;
    cell(&mut person, "x = 1").await;
    leave(person).await;
    let mut person = python(&env, &server, &["-c"]).await;
    person.enter("/restore").await;
    person
        .sees("not run: it read what was typed then, and is given no input now")
        .await;
    person.prompt("python").await;
    person.enter("/restore 1").await;
    person
        .sees("raised EOFError: EOF when reading a line (then: nothing was raised)")
        .await;
    person.prompt("python").await;
    leave(person).await;
}
