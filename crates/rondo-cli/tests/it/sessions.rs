//! Sessions that outlive their process.

use crate::harness::{Shown, TestEnv, ask_args, calls, says, serve};
use crate::repl::said;
use rondo_testkit::{Gate, Response, Script, Server, Step, assert_paired, openai};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Child;

/// Prints that it began, then waits until the file `go` is there.
pub(crate) const WAITS: &str =
    "echo begun >> begun; echo started; while [ ! -e go ]; do sleep 0.02; done";

/// Runs a command of `rondo` against a server of the test's own.
async fn rondo(env: &TestEnv, server: &Server, command: &str, args: &[&str]) -> Shown {
    let url = server.url("/v1");
    let mut all = vec![command, "--base-url", &url];
    if command == "ask" {
        all.extend(["-m", "openai/test"]);
    }
    all.extend(args);
    env.run(&all).await
}

/// Starts a turn and kills it without warning, once an event of that kind says `awaited`.
pub(crate) async fn killed_at(env: &TestEnv, server: &Server, kind: &str, awaited: &str) {
    let url = server.url("/v1");
    let args = ask_args(&url, &["--yolo"]);
    let rest = ["--output-format", "stream-json", "do it"];
    let mut child = env.command(&[&args[..], &rest].concat()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    while let Some(line) = lines.next_line().await.unwrap() {
        if line.contains(kind) && line.contains(awaited) {
            break;
        }
    }
    kill(child).await;
}

async fn kill(mut child: Child) {
    let id = i32::try_from(child.id().unwrap()).unwrap();
    kill_process(Pid::from_raw(id).unwrap(), Signal::KILL).unwrap();
    child.wait().await.unwrap();
}

fn journal_dir(env: &TestEnv) -> PathBuf {
    env.home().join(".local/share/rondo/sessions")
}

fn messages(server: &Server, request: usize) -> Vec<Value> {
    let body = server.requests()[request].json();
    assert_paired(&body);
    body["messages"].as_array().unwrap().clone()
}

fn roles(messages: &[Value]) -> Vec<&str> {
    let roles = messages.iter().map(|it| it["role"].as_str().unwrap());
    roles.collect()
}

#[tokio::test]
async fn a_turn_killed_in_a_call_goes_on_without_repeating_what_was_recorded() {
    let write = json!({"path": "note.txt", "content": "one line\n"});
    let server = serve(vec![
        calls("write_file", &write),
        calls("exec", &json!({"command": WAITS})),
        says("done"),
    ])
    .await;
    let env = TestEnv::new();
    killed_at(&env, &server, "tool_output_delta", "started").await;
    // A program that writes it again would take this away.
    env.write("note.txt", "one line\nand another\n")
        .write("go", "");

    let shown = rondo(&env, &server, "resume", &["--yolo"]).await;
    assert_eq!(
        (shown.stdout.as_str(), shown.code),
        ("done\n", Some(0)),
        "{shown:?}"
    );
    assert!(shown.stderr.contains("was cut off and is resumed"));
    assert_eq!(
        server.requests().len(),
        3,
        "no recorded reply is asked for again"
    );
    let said = messages(&server, 2);
    assert_eq!(said[..4], messages(&server, 1)[..]);
    let note = std::fs::read_to_string(env.project().join("note.txt")).unwrap();
    assert_eq!(note, "one line\nand another\n");
    let begun = std::fs::read_to_string(env.project().join("begun")).unwrap();
    assert_eq!(
        begun, "begun\n",
        "the command went on, and did not begin again"
    );
    let told = said.last().unwrap()["content"].as_str().unwrap();
    assert_eq!(told, r#"{"stdout":"started\n","exitCode":0}"#);

    let again = rondo(&env, &server, "resume", &[]).await;
    assert_eq!(again.code, Some(45), "{again:?}");
    assert!(again.stderr.contains("has no turn to resume"), "{again:?}");
}

#[tokio::test]
async fn a_turn_killed_while_its_reply_came_asks_for_that_reply_again() {
    let mut frames = openai::frames(&says("partial text"));
    frames.truncate(2);
    let cut = Response::sse(frames).step(Step::Stall);
    let whole = [calls("list_files", &json!({})), says("done")];
    let [list, done] = whole.map(|reply| openai::streamed(&reply));
    let server = Server::start(Script::from(vec![list, cut, done])).await;
    let env = TestEnv::new();
    killed_at(&env, &server, "text_delta", "partial").await;
    let shown = rondo(&env, &server, "resume", &["latest"]).await;
    assert_eq!(
        (shown.stdout.as_str(), shown.code),
        ("done\n", Some(0)),
        "{shown:?}"
    );
    let bodies: Vec<Value> = server.requests().iter().map(|it| it.json()).collect();
    assert_eq!(bodies.len(), 3);
    assert_eq!(bodies[1], bodies[2], "the very same request");
}

#[tokio::test]
async fn a_session_goes_on_with_its_history_in_its_directory() {
    let server = serve(vec![says("Four."), says("Elsewhere."), says("Five.")]).await;
    let env = TestEnv::new();
    rondo(&env, &server, "ask", &["2+2?"]).await;
    env.write("other/x", "");
    rondo(&env, &server, "ask", &["-C", "other", "hello"]).await;
    rondo(&env, &server, "ask", &["-c", "plus one?"])
        .await
        .check("Five.\n", "", 0);
    let said = messages(&server, 2);
    assert_eq!(roles(&said), ["system", "user", "assistant", "user"]);
    assert_eq!(said[1]["content"], "2+2?");
    assert_eq!(said[3]["content"], "plus one?");
}

#[tokio::test]
async fn a_message_to_a_session_that_was_cut_off_comes_after_its_end() {
    let command = json!({"command": WAITS});
    let server = serve(vec![
        calls("exec", &command),
        says("carried on"),
        says("new"),
    ])
    .await;
    let env = TestEnv::new();
    killed_at(&env, &server, "tool_output_delta", "started").await;
    env.write("go", "");
    let shown = rondo(&env, &server, "ask", &["-c", "--yolo", "and now?"]).await;
    assert_eq!(
        (shown.stdout.as_str(), shown.code),
        ("new\n", Some(0)),
        "{shown:?}"
    );
    assert!(shown.stderr.contains("is resumed"), "{shown:?}");
    let said = messages(&server, 2);
    let expected = ["system", "user", "assistant", "tool", "assistant", "user"];
    assert_eq!(roles(&said), expected);
    assert_eq!(said[5]["content"], "and now?");
}

#[tokio::test]
async fn a_session_in_use_is_refused_with_its_process_and_others_are_free() {
    let gate = Gate::new();
    let held = openai::streamed(&says("first")).before(Step::Gate(gate.clone()));
    let second = openai::streamed(&says("second"));
    let server = Server::start(Script::from(vec![held, second])).await;
    let env = TestEnv::new();
    let url = server.url("/v1");
    let args = ask_args(&url, &["one"]);
    let child = env.command(&args).spawn().unwrap();
    let pid = child.id().unwrap();
    gate.reached().await;
    let refused = rondo(&env, &server, "resume", &[]).await;
    assert_eq!(refused.code, Some(46), "{refused:?}");
    assert!(refused.stderr.contains(&format!("in use by process {pid}")));
    let other = rondo(&env, &server, "ask", &["two"]).await;
    assert_eq!(other.stdout, "second\n");
    gate.open();
    assert_eq!(env.wait(child).await.stdout, "first\n");
}

#[tokio::test]
async fn what_is_not_there_is_said_with_its_own_exit_code() {
    let server = serve(vec![]).await;
    let env = TestEnv::new();
    for (args, said) in [
        (
            &["ask", "-c", "x"][..],
            "nothing to continue: no session yet",
        ),
        (&["resume"], "nothing to continue: no session yet"),
        (&["resume", "s-0"], "there is no session `s-0`"),
    ] {
        let shown = env.run(args).await;
        assert_eq!(shown.code, Some(45), "{args:?} {shown:?}");
        assert!(shown.stderr.contains(said), "{shown:?}");
    }
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn the_files_are_the_users_alone_and_an_ephemeral_session_leaves_none() {
    let server = serve(vec![says("a"), says("b")]).await;
    let env = TestEnv::new();
    rondo(&env, &server, "ask", &["--ephemeral", "x"])
        .await
        .check("a\n", "", 0);
    assert!(!journal_dir(&env).exists());
    rondo(&env, &server, "ask", &["x"])
        .await
        .check("b\n", "", 0);
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&journal_dir(&env)), 0o700);
    for entry in std::fs::read_dir(journal_dir(&env)).unwrap() {
        let path = entry.unwrap().path();
        let expected = if path.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(mode(&path), expected, "{}", path.display());
    }
}

#[tokio::test]
async fn a_journal_that_cannot_be_made_is_said_with_the_way_around_it() {
    let server = serve(vec![says("never")]).await;
    let env = TestEnv::new();
    std::fs::create_dir_all(journal_dir(&env).parent().unwrap()).unwrap();
    std::fs::write(journal_dir(&env), "in the way").unwrap();
    let shown = rondo(&env, &server, "ask", &["x"]).await;
    assert_eq!(shown.code, Some(54), "{shown:?}");
    assert!(
        shown.stderr.contains("failed to open the journal in"),
        "{shown:?}"
    );
    assert!(shown.stderr.contains("--ephemeral"), "{shown:?}");
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn a_key_is_neither_sent_nor_kept_wherever_it_comes_from() {
    const KEY: &str = "sk-very-secret-0123456789";
    let server = serve(vec![
        calls("exec", &json!({"command": "cat key.txt; cat key.txt >&2"})),
        says("done"),
    ])
    .await;
    let env = TestEnv::new().var("OPENAI_API_KEY", KEY);
    env.write("key.txt", KEY);
    let asked = format!("is {KEY} my key?");
    let shown = rondo(&env, &server, "ask", &["--yolo", &asked]).await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    let said = messages(&server, 1);
    let text = serde_json::to_string(&said).unwrap();
    assert!(!text.contains(KEY) && text.contains("[redacted]"), "{text}");
    for entry in std::fs::read_dir(journal_dir(&env)).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            let bytes = std::fs::read(&path).unwrap();
            let found = bytes.windows(KEY.len()).any(|it| it == KEY.as_bytes());
            assert!(!found, "{}", path.display());
        }
    }
}

/// Returns the files below a directory that hold the text.
fn files_with(dir: &Path, text: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.append(&mut files_with(&path, text));
        } else if let Ok(bytes) = std::fs::read(&path) {
            let is_in = bytes.windows(text.len()).any(|it| it == text.as_bytes());
            found.extend(is_in.then_some(path));
        }
    }
    found
}

#[tokio::test]
async fn a_key_that_a_command_prints_in_pieces_or_encoded_is_not_shown_and_in_no_file() {
    const KEY: &str = "sk-very-secret-0123456789";
    // In base64, if nothing is before it.
    const ENCODED: &str = "c2stdmVyeS1zZWNyZXQtMDEyMzQ1Njc4";
    let command = "head -c 9 key.txt; tail -c +10 key.txt; base64 key.txt; seq 20000; cat key.txt";
    let server = serve(vec![
        calls("exec", &json!({"command": format!("{command}; : {KEY}")})),
        says("done"),
    ])
    .await;
    let env = TestEnv::new().var("OPENAI_API_KEY", KEY);
    env.write("key.txt", KEY);
    let asked = ["--yolo", "--output-format", "stream-json", "x"];
    let shown = rondo(&env, &server, "ask", &asked).await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    let lines = shown.lines();
    let live = lines
        .iter()
        .filter(|line| line["type"] == "tool_output_delta");
    let live: String = live.filter_map(|line| line["text"].as_str()).collect();
    assert!(live.starts_with("[redacted][redacted]"), "{live:.200}");
    let kept = env.calls("");
    assert!(!files_with(&kept, "[redacted]").is_empty());
    for form in [KEY, ENCODED] {
        assert!(!live.contains(form), "{live:.200}");
        assert_eq!(files_with(&kept, form), Vec::<PathBuf>::new());
    }
}

/// Runs with a bound on the size of files, past which writes fail as on a full disk.
async fn with_small_files(env: &TestEnv, server: &Server, kib: u32, asked: &str) -> Shown {
    let url = server.url("/v1");
    let script = format!("trap '' XFSZ; ulimit -f {}; exec \"$@\"", kib * 2);
    let args = ask_args(&url, &["--yolo", asked]);
    let rondo = env.command(&args);
    let mut command = env.command(&[]);
    let mut shell = tokio::process::Command::new("/bin/sh");
    shell.args(["-c", &script, "sh"]);
    shell.arg(rondo.as_std().get_program());
    shell.args(rondo.as_std().get_args());
    let variables = command.as_std_mut().get_envs();
    shell.env_clear();
    shell.envs(variables.filter_map(|(name, value)| Some((name, value?))));
    shell.current_dir(env.project());
    env.shown(&shell.output().await.unwrap())
}

#[tokio::test]
async fn a_full_disk_stops_the_turn_before_the_effect_and_it_goes_on_when_there_is_room() {
    let long = "x".repeat(2_000_000);
    let effect = || calls("exec", &json!({"command": "echo done >> effect"}));
    let server = serve(vec![effect().saying(&long), effect(), says("done")]).await;
    let env = TestEnv::new();
    let full = with_small_files(&env, &server, 1000, "do it").await;
    assert_eq!(full.code, Some(54), "{full:?}");
    assert!(full.stderr.contains("journal"), "{}", full.stderr);
    assert!(!env.project().join("effect").exists());
    assert_eq!(server.requests().len(), 1);

    let shown = rondo(&env, &server, "resume", &["--yolo"]).await;
    assert_eq!(
        (shown.stdout.as_str(), shown.code),
        ("done\n", Some(0)),
        "{shown:?}"
    );
    let effect = std::fs::read_to_string(env.project().join("effect"));
    assert_eq!(effect.unwrap(), "done\n");
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn a_turn_whose_server_is_gone_goes_on_with_another_model_that_is_named() {
    for command in ["ask", "resume"] {
        let server = serve(vec![calls("exec", &json!({"command": WAITS}))]).await;
        let env = TestEnv::new();
        killed_at(&env, &server, "tool_output_delta", "started").await;
        env.write("go", "");
        drop(server);
        let other = serve(vec![says("carried on")]).await;
        let url = other.url("/v1");
        let mut args = vec![command, "-m", "openai/other", "--base-url", &url];
        args.extend(if command == "ask" {
            &["-c", "and now?"][..]
        } else {
            &["latest"]
        });
        let shown = env.run(&args).await;
        assert_eq!(
            (shown.stdout.as_str(), shown.code),
            ("carried on\n", Some(0)),
            "{shown:?}"
        );
        assert!(
            shown.stderr.contains("`openai/other` continues from there"),
            "{shown:?}"
        );
        let said = messages(&other, 0);
        assert_eq!(
            roles(&said),
            ["system", "user", "assistant", "tool", "user"]
        );
    }
}

#[tokio::test]
async fn a_session_whose_directory_is_gone_goes_on_nowhere_unless_one_is_named() {
    let server = serve(vec![says("one"), says("two")]).await;
    let env = TestEnv::new();
    env.write("sub/file", "");
    rondo(&env, &server, "ask", &["-C", "sub", "x"]).await;
    let (sub, moved) = (env.project().join("sub"), env.project().join("moved"));
    std::fs::rename(&sub, &moved).unwrap();
    for (command, args) in [
        ("resume", &["latest"][..]),
        ("ask", &["--session", "latest", "x"]),
        ("ask", &["-c", "x"]),
    ] {
        let refused = rondo(&env, &server, command, args).await;
        assert_eq!(refused.code, Some(42), "{refused:?}");
        assert!(
            refused.stderr.contains("`[ROOT]/project/sub`"),
            "{refused:?}"
        );
        assert!(refused.stderr.contains("`-C DIR`"), "{refused:?}");
    }
    assert_eq!(server.requests().len(), 1);
    let args = ["--session", "latest", "-C", "moved", "x"];
    let named = rondo(&env, &server, "ask", &args).await;
    assert_eq!(named.stdout, "two\n", "{named:?}");
}

#[tokio::test]
async fn a_turn_goes_on_at_the_address_that_it_was_asked_at_and_no_failure_to_connect_ends_it() {
    let mut frames = openai::frames(&says("partial text"));
    frames.truncate(2);
    let cut = Response::sse(frames).step(Step::Stall);
    let [list, done] =
        [calls("list_files", &json!({})), says("done")].map(|reply| openai::streamed(&reply));
    let server = Server::start(Script::from(vec![list, cut, done])).await;
    let env = TestEnv::new().var("RONDO_BASE_URL", "http://127.0.0.1:9/elsewhere");
    killed_at(&env, &server, "text_delta", "partial").await;

    // There is no listener.
    let nowhere = ["resume", "latest", "--base-url", "http://127.0.0.1:9/v1"];
    for _ in 0..2 {
        let failed = env.run(&nowhere).await;
        assert!(
            failed.code.is_some_and(|code| code != 0 && code != 45),
            "{failed:?}"
        );
    }
    assert_eq!(server.requests().len(), 2);

    let shown = env.run(&["resume", "latest"]).await;
    assert_eq!(
        (shown.stdout.as_str(), shown.code),
        ("done\n", Some(0)),
        "{shown:?}"
    );
    assert_eq!(server.requests().len(), 3);
    let over = env.run(&["resume", "latest"]).await;
    assert_eq!(over.code, Some(45), "{over:?}");
    let replayed = env.run(&["replay", "latest", "--strict"]).await;
    assert_eq!(replayed.code, Some(0), "{replayed:?}");
}

/// `local` is the older name of `localhost`: a session keeps the one that it began with.
#[tokio::test]
async fn a_session_that_asked_a_server_by_its_older_name_is_resumed_and_goes_on() {
    let gate = Gate::new();
    let server = Server::start(Script::from(vec![
        openai::streamed(&says("late")).before(Step::Gate(gate.clone())),
        openai::streamed(&says("Resumed.")),
        openai::streamed(&says("Gone on.")),
        openai::streamed(&says("By its name of today.")),
    ]))
    .await;
    let env = TestEnv::new();
    let url = server.url("/v1");
    let older = ["ask", "-m", "local/test", "--base-url", &url, "x"];
    let mut child = env.command(&older).spawn().unwrap();
    server.request(0).await;
    child.kill().await.unwrap();
    let resumed = env.run(&["resume"]).await;
    assert_eq!(resumed.stdout, "Resumed.\n", "{resumed:?}");
    let gone_on = env.run(&["ask", "-c", "y"]).await;
    assert_eq!(gone_on.stdout, "Gone on.\n", "{gone_on:?}");
    let replayed = env.run(&["replay", "latest", "--strict"]).await;
    assert_eq!(replayed.code, Some(0), "{replayed:?}");
    let named = ["ask", "-c", "-m", "test", "--base-url", &url, "--json", "z"];
    let named = env.run(&named).await;
    assert_eq!(named.result()["model"], "localhost/test", "{named:?}");
    let said: Vec<usize> = (0..4).map(|at| said(&server, at).len()).collect();
    assert_eq!(said, [1, 1, 2, 3]);
}
