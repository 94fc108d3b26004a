//! Acts of the agent of the shell's design at the prompt, and its questions.

use crate::grants::{QUESTION, answer, asked, runs};
use crate::harness::{TestEnv, calls, says, serve};
use crate::repl::{leave, messages};
use crate::sandbox::is_enforced;
use rondo_testkit::{CallScript, ReplyScript, Server};
use serde_json::json;

/// Returns what the model was told of calls in a request, oldest first.
fn told(server: &Server, request: usize) -> Vec<String> {
    let messages = messages(server, request).into_iter();
    let results = messages.filter(|(role, _)| role == "tool");
    results
        .map(|(_, content)| content.as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn gs_f1_a_command_is_confirmed_refused_or_allowed_from_now_on() {
    if !is_enforced() {
        return;
    }
    let server = serve(vec![
        runs("touch yes.txt"),
        runs("touch no.txt"),
        runs("ls"),
        runs("touch always.txt"),
        runs("touch later.txt"),
        says("That is all."),
    ])
    .await;
    // Elsewhere all commands that begin so are not allowed at once.
    let env = TestEnv::new().var("RONDO_SANDBOX", "workspace-write");
    let mut person = asked(&env, &server, &[]).await;
    answer(&mut person, "touch yes.txt", "y").await;
    answer(&mut person, "touch no.txt", "n").await;
    answer(&mut person, "touch always.txt", "a").await;
    person.sees("That is all.").await;
    person.prompt("agent").await;
    assert_eq!(person.all().matches(QUESTION).count(), 3);
    leave(person).await;
    let made = ["yes", "no", "always", "later"];
    let made = made.map(|name| env.project().join(format!("{name}.txt")).exists());
    assert_eq!(made, [true, false, true, true]);
    let told = told(&server, 5);
    assert_eq!(told.len(), 5);
    assert!(told[1].contains("the user said no"), "{told:?}");
    for at in [0, 2, 3, 4] {
        assert!(told[at].contains("\"exitCode\":0"), "{told:?}");
    }
}

#[tokio::test]
async fn gs_f4_files_are_read_written_edited_listed_and_searched() {
    let call = |id: &str, name: &str, arguments| CallScript::new(id, name, &arguments);
    let looks = ReplyScript::calls([
        call("1", "list_files", json!({})),
        call("2", "read_file", json!({"path": "poem.txt"})),
        call("3", "search_files", json!({"pattern": "viol.ts"})),
    ]);
    let edit = json!({"path": "poem.txt", "old_string": "blue", "new_string": "purple"});
    let server = serve(vec![
        looks,
        calls("edit_file", &edit),
        calls(
            "write_file",
            &json!({"path": "new/copy.txt", "content": "roses\n"}),
        ),
        says("Written."),
    ])
    .await;
    let env = TestEnv::new();
    env.write("poem.txt", "roses are red\nviolets are blue\n");
    env.user_config(
        "[profiles.shell]\ntools = ['exec', 'read_file', 'list_files', 'search_files', 'write_file', 'edit_file']\n",
    );
    let mut person = asked(&env, &server, &[]).await;
    answer(&mut person, "`edit_file` wants", "y").await;
    answer(&mut person, "`write_file` wants", "y").await;
    person.sees("Written.").await;
    person.prompt("agent").await;
    assert_eq!(person.all().matches(QUESTION).count(), 2);
    leave(person).await;
    let text = |name: &str| std::fs::read_to_string(env.project().join(name)).unwrap();
    assert_eq!(text("poem.txt"), "roses are red\nviolets are purple\n");
    assert_eq!(text("new/copy.txt"), "roses\n");
    let told = told(&server, 3);
    assert!(told[0].contains("poem.txt"), "{told:?}");
    assert!(told[1].contains("violets are blue"), "{told:?}");
    assert!(
        told[2].contains("violets") && !told[2].contains("roses"),
        "{told:?}"
    );
}

#[tokio::test]
async fn the_model_reads_why_the_person_says_no() {
    let server = serve(vec![runs("touch a.txt"), says("That is all.")]).await;
    let env = TestEnv::new();
    let mut person = asked(&env, &server, &[]).await;
    answer(&mut person, "touch a.txt", "b").await;
    person.types_behind("Why not? The model reads it: ").await;
    // Ctrl-C goes back alone.
    person.press("never\x03").await;
    person.sees_below("never", QUESTION).await;
    person.press("b").await;
    person.press("\r").await;
    person.types_behind("The model reads it: ").await;
    person.press("use git insted\x1b[Da\r").await;
    person.sees("denied: use git instead").await;
    person.sees("That is all.").await;
    person.prompt("agent").await;
    leave(person).await;
    let told = told(&server, 1);
    assert!(told[0].contains("use git instead"), "{told:?}");
    assert!(!env.project().join("a.txt").exists());
}

#[tokio::test]
async fn a_call_runs_as_the_person_changed_it_and_the_model_is_told() {
    let server = serve(vec![runs("touch first.txt"), says("That is all.")]).await;
    let env = TestEnv::new();
    let mut person = asked(&env, &server, &[]).await;
    answer(&mut person, "touch first.txt", "e").await;
    person.types_behind("edit: touch first.txt").await;
    // Ctrl-C ends the change alone.
    person.press(".bak\x03").await;
    person.sees_below(".bak", QUESTION).await;
    person.types_behind("no, because…): ").await;
    person.press("e\r").await;
    person.types_behind("edit: touch first.txt").await;
    person.press("\x17two\x1b[DX\x05.txt\x1b[H").await;
    person.sees("touch twXo.txt").await;
    person.press("\r").await;
    person.sees("exec touch twXo.txt").await;
    person.sees("That is all.").await;
    person.prompt("agent").await;
    person.enter("/steps").await;
    person.sees_below("step 1", "exec touch twXo.txt").await;
    person.prompt("agent").await;
    leave(person).await;
    let made = ["first.txt", "twXo.txt"].map(|name| env.project().join(name).exists());
    assert_eq!(made, [false, true]);
    let told = told(&server, 1);
    assert!(
        told[0].contains(r#"changed the arguments to {\"command\":\"touch twXo.txt\"}"#),
        "{told:?}"
    );
}

#[tokio::test]
async fn a_call_whose_question_was_open_when_rondo_was_killed_is_asked_about_again() {
    let server = serve(vec![runs("touch never.txt"), says("done")]).await;
    let env = TestEnv::new();
    let mut person = asked(&env, &server, &[]).await;
    person.sees("touch never.txt").await;
    person.sees_below("touch never.txt", QUESTION).await;
    let process = rustix::process::Pid::from_raw(person.process()).unwrap();
    rustix::process::kill_process(process, rustix::process::Signal::KILL).unwrap();
    person.code().await;
    let url = server.url("/v1");
    // There is no user to answer the question that is asked again.
    let resumed = env.run(&["resume", "latest", "--base-url", &url]).await;
    assert_eq!(resumed.stdout, "done\n", "{resumed:?}");
    let [result] = &told(&server, 1)[..] else {
        panic!("{resumed:?}")
    };
    assert!(result.contains("error (denied)"), "{result}");
    assert!(!env.project().join("never.txt").exists());
    let replayed = env.run(&["replay", "latest", "--strict"]).await;
    assert_eq!(replayed.code, Some(0), "{replayed:?}");
}
