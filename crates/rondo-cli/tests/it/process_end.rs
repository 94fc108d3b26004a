//! The end of the process although something does not end: output without a reader, files, servers and disks that hang.

use crate::calls::mkfifo;
use crate::harness::{TestEnv, ask_args, calls, says, serve};
use crate::sessions::killed_at;
use futures_util::future::join_all;
use rondo_testkit::{Gate, Response, Script, Server, Step, openai};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use serde_json::json;
use std::io::{PipeReader, PipeWriter, Write as _};
use std::process::Stdio;
use std::time::{Duration, Instant};
use tokio::time::timeout;

/// More than a pipe holds.
const MORE_THAN_A_PIPE: usize = 1 << 20;
/// Time that a busy machine may add to half a second, so that a test fails only if something is waited for.
const SLACK: Duration = Duration::from_secs(1);

/// The ways of `ask` to show an answer.
const FORMATS: [&[&str]; 5] = [
    &[],
    &["--json"],
    &["--output-format", "stream-json"],
    &["-o", "pipe"],
    &["--json", "-o", "pipe"],
];

/// Returns a pipe that takes nothing more, with its other end.
fn full_pipe() -> (PipeReader, PipeWriter) {
    let (reader, mut writer) = std::io::pipe().unwrap();
    let flags = fcntl_getfl(&writer).unwrap();
    fcntl_setfl(&writer, flags | OFlags::NONBLOCK).unwrap();
    while writer.write(&[b'x'; 4096]).is_ok() {}
    fcntl_setfl(&writer, flags).unwrap();
    (reader, writer)
}

/// Asks without a reader of the output, and returns the exit code and how long the process ran.
async fn ask_unread(format: &[&str], options: &[&str]) -> (Option<i32>, Duration) {
    let server = serve(vec![says(&"x".repeat(MORE_THAN_A_PIPE))]).await;
    let url = server.url("/v1");
    let env = TestEnv::new();
    mkfifo(&env.project().join("pipe"));
    let asked = ask_args(&url, &["x"]);
    let mut command = env.command(&[&asked[..], format, options].concat());
    // The pipe after `-o` has no reader; what is shown beside it is read.
    let is_shown_read = format.contains(&"-o");
    let begun = Instant::now();
    let mut child = command.spawn().unwrap();
    let code = match is_shown_read {
        true => env.wait(child).await.code,
        false => child.wait().await.unwrap().code(),
    };
    (code, begun.elapsed())
}

#[tokio::test]
async fn an_answer_that_nobody_reads_is_given_up_ten_seconds_after_the_end_of_the_turn() {
    let all = join_all(FORMATS.map(|format| ask_unread(format, &[]))).await;
    for (format, (code, took)) in FORMATS.iter().zip(all) {
        assert_eq!(code, Some(141), "{format:?}");
        let most = Duration::from_secs(20);
        assert!(took < most, "{format:?}: {took:?}");
        assert!(took > Duration::from_secs(9), "{format:?}: {took:?}");
    }
}

#[tokio::test]
async fn an_answer_that_nobody_reads_is_given_up_at_the_deadline() {
    let all = join_all(FORMATS.map(|format| ask_unread(format, &["--deadline", "3s"]))).await;
    for (format, (code, took)) in FORMATS.iter().zip(all) {
        assert_eq!(code, Some(141), "{format:?}");
        assert!(
            took < Duration::from_millis(3500) + SLACK,
            "{format:?}: {took:?}"
        );
    }
}

#[tokio::test]
async fn the_session_of_a_detached_turn_that_nobody_reads_is_given_up_at_the_deadline() {
    let server = silent().await;
    let url = server.url("/v1");
    let env = TestEnv::new();
    let args = ask_args(&url, &["--detach"]);
    let all = [&args[..], &["--deadline", "2s", "x"]].concat();
    let (_reader, writer) = full_pipe();
    let begun = Instant::now();
    let child = env.command(&all).stdout(Stdio::from(writer)).spawn();
    let ended = timeout(Duration::from_secs(20), env.wait(child.unwrap())).await;
    let shown = ended.expect("it ends though its output is not read");
    assert_eq!((shown.stderr.as_str(), shown.code), ("", Some(141)));
    let took = begun.elapsed();
    assert!(took < Duration::from_millis(2500) + SLACK, "{took:?}");
}

#[tokio::test]
async fn a_message_that_nobody_reads_does_not_keep_a_command() {
    let cases: [(&[&str], &str, i32); 8] = [
        (&["--allowed-tools", "nope"], "Hello.\n", 0),
        (&["-vvv"], "Hello.\n", 0),
        (&["--plan"], "Hello.\n", 0),
        (&["--nope"], "", 2),
        (&["--profile", "nope"], "", 52),
        (&["--session", "nope"], "", 45),
        (&["run", "s.lua"], "done\n", 0),
        (&["run", "failing.lua"], "", 1),
    ];
    for (options, stdout, code) in cases {
        let server = serve(vec![says("Hello.")]).await;
        let url = server.url("/v1");
        let env = TestEnv::new();
        env.write("s.lua", "io.stderr:write('x') rondo.log('y') print('done')");
        env.write("failing.lua", "error('x')");
        let asked = ask_args(&url, &["x"]);
        let all = match options.first() {
            Some(&"run") => options.to_vec(),
            _ => [&asked[..], options].concat(),
        };
        let (_reader, writer) = full_pipe();
        let child = env.command(&all).stderr(Stdio::from(writer)).spawn();
        let ended = timeout(Duration::from_secs(20), env.wait(child.unwrap())).await;
        let shown = ended.expect("it ends though its messages are not read");
        assert_eq!(
            (shown.stdout.as_str(), shown.code),
            (stdout, Some(code)),
            "{options:?}"
        );
    }
}

/// A server that offers a resource and never sends it, and that ignores what asks it to end.
const HANGING: &str = r#"
import json, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for line in sys.stdin:
    message = json.loads(line)
    result = {"tools": [], "resources": []}
    if message.get("method") == "initialize":
        result = {"protocolVersion": message["params"]["protocolVersion"], "serverInfo": {"name": "x", "version": "1"},
                  "capabilities": {"tools": {}, "resources": {}}}
    if message.get("method") == "resources/read":
        break
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
while True:
    time.sleep(1)
"#;

/// Returns a model that never answers.
async fn silent() -> Server {
    let held = Response::sse(Vec::<Vec<u8>>::new()).step(Step::Gate(Gate::new()));
    Server::start(Script::repeat(held)).await
}

/// Runs a command whose time ends while something hangs.
async fn check_ends(before: impl FnOnce(&TestEnv), args: &[&str], server: &Server) {
    let env = TestEnv::new();
    mkfifo(&env.project().join("pipe"));
    before(&env);
    let url = server.url("/v1");
    let command = args.first().copied().unwrap_or_default();
    let common = ["-m", "openai/test", "--base-url", &url, "--deadline", "2s"];
    let all = [&[command], &common[..], args.get(1..).unwrap_or_default()].concat();
    let begun = Instant::now();
    let shown = env.run(&all).await;
    let took = begun.elapsed();
    assert_eq!(shown.code, Some(124), "{args:?}: {shown:?}");
    assert!(shown.stderr.contains("error: "), "{args:?}: {shown:?}");
    assert!(
        took < Duration::from_millis(2500) + SLACK,
        "{args:?}: {took:?}"
    );
}

fn has_hanging_server(env: &TestEnv) {
    env.write("hanging.py", HANGING);
    let script = env.project().join("hanging.py");
    env.user_config(&format!(
        "[mcp.servers.a]\ncommand = 'python3'\nargs = ['{}']\n",
        script.display()
    ));
}

#[tokio::test]
async fn a_question_ends_with_its_deadline_whatever_hangs() {
    let server = silent().await;
    check_ends(|_| {}, &["ask", "x"], &server).await;
    check_ends(|_| {}, &["ask", "@pipe x"], &server).await;
    check_ends(has_hanging_server, &["ask", "@a:note://one x"], &server).await;
    check_ends(has_hanging_server, &["ask", "x"], &server).await;
    let command = "trap '' TERM INT HUP; while :; do sleep 1; done";
    let calling = Server::start(Script::repeat(openai::streamed(&calls(
        "exec",
        &json!({ "command": command }),
    ))));
    check_ends(|_| {}, &["ask", "--yolo", "x"], &calling.await).await;
}

#[tokio::test]
async fn a_turn_that_goes_on_ends_with_the_deadline_of_the_process_and_can_be_resumed_again() {
    let mut frames = openai::frames(&says("partial text"));
    frames.truncate(2);
    let partial = Response::sse(frames).step(Step::Stall);
    let held = Response::sse(Vec::<Vec<u8>>::new()).step(Step::Stall);
    let done = openai::streamed(&says("Done."));
    let server = Server::start(Script::from(vec![partial, held, done])).await;
    let env = TestEnv::new();
    killed_at(&env, &server, "text_delta", "partial").await;
    let url = server.url("/v1");
    let begun = Instant::now();
    let options = [
        "resume",
        "latest",
        "--base-url",
        &url,
        "--deadline",
        "1s",
        "--json",
    ];
    let shown = env.run(&options).await;
    assert_eq!(shown.code, Some(124), "{shown:?}");
    assert!(begun.elapsed() < Duration::from_millis(1500) + SLACK);
    assert!(
        shown.stderr.contains("`rondo resume` continues"),
        "{shown:?}"
    );
    assert!(shown.stdout.contains("\"exit_code\":124"), "{shown:?}");
    let shown = env.run(&["resume", "latest"]).await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
}

#[tokio::test]
async fn a_script_ends_with_its_deadline_whatever_hangs() {
    let server = silent().await;
    for script in [
        "rondo.files.write('pipe', 'x')",
        "rondo.files.append('pipe', 'x')",
        "rondo.exec(\"trap '' TERM; while :; do sleep 1; done\")",
        "print((('a'):rep(40)):match(('a?'):rep(40) .. ('a'):rep(40)))",
        "rondo.mcp { name = 'b', command = 'sh', args = { '-c', \"trap '' TERM; while :; do sleep 1; done\" } }:call('t', {})",
    ] {
        let with_script = |env: &TestEnv| {
            env.write("s.lua", script);
        };
        check_ends(with_script, &["run", "s.lua"], &server).await;
    }
    check_ends(|_| {}, &["run", "pipe"], &server).await;
}

#[tokio::test]
async fn a_deadline_of_the_environment_or_of_the_settings_ends_the_process_too() {
    for is_of_file in [false, true] {
        let env = TestEnv::new();
        let env = match is_of_file {
            true => env,
            false => env.var("RONDO_DEADLINE", "1s"),
        };
        if is_of_file {
            env.user_config("deadline = '1s'\n");
        }
        mkfifo(&env.project().join("pipe"));
        env.write("s.lua", "rondo.files.write('pipe', 'x')");
        let begun = Instant::now();
        let shown = env.run(&["run", "s.lua"]).await;
        assert_eq!(shown.code, Some(124), "{shown:?}");
        assert!(
            begun.elapsed() < Duration::from_millis(1500) + SLACK,
            "{shown:?}"
        );
    }
}
