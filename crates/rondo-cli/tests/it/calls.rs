//! Files that commands leave on the disk, and their lifetime.

use crate::harness::{TestEnv, ask_args, calls, says, serve};
use crate::person::Person;
use rondo_testkit::Server;
use serde_json::{Value, json};
use std::fs::{File, FileTimes};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use tokio::process::Child;

/// More directories than are kept.
const MANY: usize = 250;
/// The state of a session that is in no journal.
const FORGOTTEN: &str = "forgotten";

pub(crate) fn mkfifo(path: &Path) {
    let made = std::process::Command::new("mkfifo").arg(path).status();
    assert!(made.unwrap().success());
}

/// Starts a turn whose command waits for a writer of `gate`.
pub(crate) async fn waiting(env: &TestEnv) -> (Child, Server) {
    for name in ["gate", "up"] {
        mkfifo(&env.project().join(name));
    }
    let command = "echo run >> runs; echo up > up; cat gate; exit 3";
    let server = serve(vec![
        calls("exec", &json!({ "command": command })),
        says("done"),
    ])
    .await;
    let url = server.url("/v1");
    let args = ask_args(&url, &["--yolo", "--json", "x"]);
    let child = env.command(&args).spawn().unwrap();
    read_all(env.project().join("up")).await;
    (child, server)
}

pub(crate) async fn read_all(path: PathBuf) {
    let read = tokio::task::spawn_blocking(move || std::fs::read(path));
    read.await.unwrap().unwrap();
}

/// Makes the state of all there is as old as can be, and much that is new beside it.
fn crowd(env: &TestEnv) -> PathBuf {
    let root = env.calls("");
    let [session] = std::fs::read_dir(&root)
        .unwrap()
        .map(|it| it.unwrap().path())
        .collect::<Vec<_>>()
        .try_into()
        .unwrap();
    for index in 0..MANY {
        std::fs::create_dir(root.join(format!("z-{index:03}"))).unwrap();
    }
    std::fs::create_dir(root.join(FORGOTTEN)).unwrap();
    let old = FileTimes::new().set_modified(SystemTime::UNIX_EPOCH);
    for path in [&session, &root.join(FORGOTTEN)] {
        File::open(path).unwrap().set_times(old).unwrap();
    }
    session
}

/// Asks in a session that looks through the others' state.
async fn another(env: &TestEnv) {
    let server = serve(vec![says("another")]).await;
    assert_eq!(env.ask(&server, &["x"]).await.code, Some(0));
    assert!(!env.calls(FORGOTTEN).exists());
}

pub(crate) fn last_result(server: &Server) -> Value {
    let request = server.requests().pop().unwrap().json();
    let messages = request["messages"].as_array().unwrap().clone();
    let told = messages.last().unwrap()["content"]
        .as_str()
        .unwrap()
        .to_owned();
    serde_json::from_str(&told).unwrap()
}

/// Lets the command that waits go on, once another program has started and left its state, which is returned.
async fn let_go_on(env: &TestEnv) -> PathBuf {
    let state = crowd(env);
    another(env).await;
    assert!(state.is_dir());
    tokio::fs::write(env.project().join("gate"), "on\n")
        .await
        .unwrap();
    state
}

#[tokio::test]
async fn the_state_of_a_turn_that_runs_stays_whoever_else_starts() {
    let env = TestEnv::new();
    let (child, server) = waiting(&env).await;
    let_go_on(&env).await;
    let shown = env.wait(child).await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    let told = last_result(&server);
    assert_eq!(told, json!({ "stdout": "on\n", "exitCode": 3 }));
}

#[tokio::test]
async fn the_state_of_a_turn_that_was_cut_off_stays_whoever_else_starts() {
    let env = TestEnv::new();
    let (mut child, server) = waiting(&env).await;
    child.kill().await.unwrap();
    let state = let_go_on(&env).await;
    another(&env).await;
    let id = state.file_name().unwrap().to_str().unwrap();
    let shown = env
        .run(&["resume", id, "--base-url", &server.url("/v1"), "--yolo"])
        .await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert_eq!(
        last_result(&server),
        json!({ "stdout": "on\n", "exitCode": 3 })
    );
    let runs = std::fs::read_to_string(env.project().join("runs")).unwrap();
    assert_eq!(runs, "run\n");
}

/// Returns the processes that a process has started and that are there.
#[cfg(target_os = "linux")]
fn children(of: u32) -> Vec<u32> {
    let pids = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = pids.filter_map(|it| it.file_name().to_str()?.parse::<u32>().ok());
    let is_child = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let fields = stat.rsplit_once(") ").map(|(_, fields)| fields);
        let mut fields = fields.unwrap_or_default().split(' ');
        fields.next() != Some("Z") && fields.next() == Some(of.to_string().as_str())
    };
    pids.filter(is_child).collect()
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_killed_programs_keeper_ends_and_its_command_goes_on() {
    let env = TestEnv::new();
    let (mut child, server) = waiting(&env).await;
    let [keeper] = children(child.id().unwrap()).try_into().unwrap();
    let [guard] = children(keeper).try_into().unwrap();
    let is_there = |pid: u32| Path::new(&format!("/proc/{pid}")).exists();
    child.kill().await.unwrap();
    while is_there(keeper) {
        tokio::task::yield_now().await;
    }
    assert!(is_there(guard));
    tokio::fs::write(env.project().join("gate"), "on\n")
        .await
        .unwrap();
    let url = server.url("/v1");
    let shown = env
        .run(&["resume", "latest", "--base-url", &url, "--yolo"])
        .await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    let told = last_result(&server);
    assert_eq!(told, json!({ "stdout": "on\n", "exitCode": 3 }));
    let runs = std::fs::read_to_string(env.project().join("runs")).unwrap();
    assert_eq!(runs, "run\n");
}

#[tokio::test]
async fn a_command_that_outlived_its_turn_is_said_to_run_and_to_be_waited_for() {
    let env = TestEnv::new();
    let (mut child, server) = waiting(&env).await;
    child.kill().await.unwrap();
    let url = server.url("/v1");
    let resume = ["resume", "latest", "--base-url", &url, "--yolo"];
    let mut person = Person::start(&env, &resume);
    person.sees("still running, waiting for it").await;
    let gate = env.project().join("gate");
    let written = tokio::task::spawn_blocking(move || std::fs::write(gate, "go"));
    written.await.unwrap().unwrap();
    person.sees("done").await;
    assert_eq!(person.code().await, Some(0));
    assert!(
        !person.all().contains("running it again"),
        "{}",
        person.all()
    );
    let runs = std::fs::read_to_string(env.project().join("runs")).unwrap();
    assert_eq!(runs, "run\n");
}

#[tokio::test]
async fn removing_a_session_ends_its_commands_and_removes_what_they_left() {
    let env = TestEnv::new();
    let (mut child, _server) = waiting(&env).await;
    child.kill().await.unwrap();
    let state = crowd(&env);
    let id = state.file_name().unwrap().to_str().unwrap();
    let shown = env.run(&["session", "rm", "--yes", id]).await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(!state.exists());
    // No process waits for it any more.
    let gate = env.project().join("gate");
    let flags = rustix::fs::OFlags::WRONLY | rustix::fs::OFlags::NONBLOCK;
    let opened = rustix::fs::open(gate, flags, rustix::fs::Mode::empty());
    assert_eq!(opened.unwrap_err(), rustix::io::Errno::NXIO);
}

#[tokio::test]
async fn nothing_of_a_session_that_is_not_kept_is_on_the_disk() {
    let env = TestEnv::new();
    let command = "echo top-secret-output; seq 200000; find ~ -type f -newer . > found";
    let server = serve(vec![
        calls("exec", &json!({ "command": command })),
        says("done"),
    ])
    .await;
    let shown = env.ask(&server, &["--yolo", "--ephemeral", "x"]).await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    let told = last_result(&server);
    assert_eq!(
        (&told["exitCode"], &told["truncated"]),
        (&json!(0), &json!(true))
    );
    assert_eq!(told.get("full_output"), None);
    let during = std::fs::read_to_string(env.project().join("found")).unwrap();
    assert_eq!(during, "");
    assert!(!env.calls("").exists());
}

/// Whatever leaves its session is stopped right after it: the keeper, the supervisors, and the command before it is
/// executed. Needs `strace`, which `cargo xtask test` installs if it can.
#[tokio::test]
async fn a_command_that_is_stopped_before_it_is_executed_goes_on() {
    let traced = "exec strace -f -qq -o /dev/null -e trace=setsid -e inject=setsid:signal=STOP \"$0\" \"$@\"";
    let can_trace = std::process::Command::new("strace")
        .args(["-f", "-qq", "-o", "/dev/null", "-e", "trace=close", "true"])
        .status();
    if !can_trace.is_ok_and(|it| it.success()) {
        return;
    }
    let env = TestEnv::new();
    let command = json!({"command": "echo x >> made"});
    let server = serve(vec![calls("exec", &command), says("done")]).await;
    let url = server.url("/v1");
    let args = ask_args(&url, &["--yolo", "x"]);
    let output = env.wrapped(traced, &args).output();
    let output = tokio::time::timeout(Duration::from_secs(60), output).await;
    let shown = env.shown(&output.expect("the turn hangs").unwrap());
    assert_eq!((shown.code, shown.stdout.as_str()), (Some(0), "done\n"));
    let made = std::fs::read_to_string(env.project().join("made"));
    assert_eq!(made.unwrap(), "x\n");
}
