use crate::harness::{Shown, TestEnv, ask_args, calls, says, serve};
use rondo_testkit::{Gate, Response, Script, Server, Step, openai};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Child;

/// Starts a server that sends half a reply and no more; the gate is reached then.
async fn half_a_reply() -> (Server, Gate) {
    let mut frames = openai::frames(&says("partial text"));
    frames.truncate(2);
    let gate = Gate::new();
    let response = Response::sse(frames)
        .step(Step::Gate(gate.clone()))
        .step(Step::Stall);
    (Server::start(response).await, gate)
}

/// Starts a turn that never ends by itself, and waits until its reply has begun.
async fn start(args: &[&str]) -> (Child, Server, TestEnv) {
    let (server, gate) = half_a_reply().await;
    let url = server.url("/v1");
    let env = TestEnv::new();
    let child = env.command(&ask_args(&url, args)).spawn().unwrap();
    gate.reached().await;
    (child, server, env)
}

pub(crate) fn signal(child: &Child, signal: Signal) {
    let id = i32::try_from(child.id().unwrap()).unwrap();
    kill_process(Pid::from_raw(id).unwrap(), signal).unwrap();
}

async fn stopped_by(kind: Signal, args: &[&str]) -> Shown {
    let (child, _server, env) = start(args).await;
    signal(&child, kind);
    env.wait(child).await
}

#[tokio::test]
async fn an_interrupt_stops_the_turn_and_the_exit_code_is_130() {
    let shown = stopped_by(Signal::INT, &["--json", "x"]).await;
    assert_eq!(shown.code, Some(130), "{shown:?}");
    assert_eq!(shown.result()["stop_reason"], "cancelled");
}

#[tokio::test]
async fn termination_stops_the_turn_and_the_exit_code_is_143() {
    let shown = stopped_by(Signal::TERM, &["--output-format", "stream-json", "x"]).await;
    assert_eq!(shown.code, Some(143), "{shown:?}");
    assert_eq!(shown.result()["stop_reason"], "cancelled");
}

/// By their numbers on Linux: all that end a program and are not the processor's own.
const ENDING: [i32; 17] = [
    1, 3, 5, 6, 10, 12, 14, 15, 16, 24, 26, 27, 29, 30, 31, 34, 64,
];

#[tokio::test]
async fn every_signal_that_ends_a_program_ends_the_turn_with_its_result() {
    for number in ENDING {
        let (child, _server, env) = start(&["--json", "x"]).await;
        let id = child.id().unwrap().to_string();
        let sent = std::process::Command::new("kill")
            .args([format!("-{number}"), id])
            .status();
        assert!(sent.unwrap().success());
        let shown = env.wait(child).await;
        assert_eq!(shown.code, Some(143), "{number}: {shown:?}");
        assert_eq!(shown.result()["stop_reason"], "cancelled", "{number}");
    }
}

/// As `nohup` starts it. An interrupt that comes second would end the process without a result.
#[tokio::test]
async fn a_hang_up_that_was_ignored_from_the_start_stays_ignored() {
    let (server, gate) = half_a_reply().await;
    let url = server.url("/v1");
    let env = TestEnv::new();
    let args = ask_args(&url, &["--json", "x"]);
    let mut command = env.wrapped("trap '' HUP; exec \"$0\" \"$@\"", &args);
    let child = command.spawn().unwrap();
    gate.reached().await;
    signal(&child, Signal::HUP);
    signal(&child, Signal::INT);
    let shown = env.wait(child).await;
    assert_eq!(shown.code, Some(130), "{shown:?}");
    assert_eq!(shown.result()["stop_reason"], "cancelled");
}

#[tokio::test]
async fn a_bound_on_files_is_told_and_kills_nothing() {
    let server = serve(vec![says("done")]).await;
    let url = server.url("/v1");
    let env = TestEnv::new();
    for (args, code) in [(&["--json"][..], 54), (&["--json", "--ephemeral"], 0)] {
        let all = [&["ask", "-m", "openai/test", "--base-url", &url, "x"], args].concat();
        let mut command = env.wrapped("ulimit -f 4; exec \"$0\" \"$@\"", &all);
        let shown = env.wait(command.spawn().unwrap()).await;
        assert_eq!(shown.code, Some(code), "{shown:?}");
        shown.result();
    }
}

/// The command says on its output that the first interrupt has reached it.
#[tokio::test]
async fn a_second_interrupt_exits_at_once() {
    let command = "trap 'echo stopping' TERM; echo started; while :; do sleep 0.1; done";
    let server = serve(vec![calls("exec", &json!({"command": command}))]).await;
    let url = server.url("/v1");
    let env = TestEnv::new();
    let args = ["ask", "-m", "openai/test", "--base-url", &url];
    let rest = ["--yolo", "--output-format", "stream-json", "x"];
    let mut child = env
        .command(&[&args[..], &rest[..]].concat())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut interrupts = 0;
    let mut last = String::new();
    while let Some(line) = lines.next_line().await.unwrap() {
        let awaited = ["started", "stopping"].get(interrupts);
        if line.contains("tool_output_delta") && awaited.is_some_and(|said| line.contains(said)) {
            signal(&child, Signal::INT);
            interrupts += 1;
        }
        last = line;
    }
    assert_eq!(interrupts, 2);
    assert_eq!(child.wait().await.unwrap().code(), Some(130));
    assert!(!last.contains("\"type\":\"result\""), "{last}");
}

#[tokio::test]
async fn what_there_is_is_printed_when_the_turn_is_stopped() {
    let (mut child, _server, _env) = start(&["--output-format", "stream-json", "x"]).await;
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    while let Some(line) = lines.next_line().await.unwrap() {
        if line.contains("text_delta") {
            break;
        }
    }
    signal(&child, Signal::INT);
    let mut last = String::new();
    while let Some(line) = lines.next_line().await.unwrap() {
        last = line;
    }
    let result: Value = serde_json::from_str(&last).unwrap();
    assert_eq!(result["exit_code"], 130);
    assert!(
        result["text"].as_str().unwrap().contains("partial text"),
        "{result}"
    );
    assert_eq!(child.wait().await.unwrap().code(), Some(130));
}

/// More than a pipe holds, so that a writer without a reader stands still.
const MORE_THAN_A_PIPE: usize = 1 << 20;

async fn start_unread(deadline: &str) -> (Child, Server, TestEnv) {
    let text = "x".repeat(MORE_THAN_A_PIPE);
    let mut frames = openai::frames(&says(&text));
    frames.truncate(2);
    let server = Server::start(Response::sse(frames).step(Step::Stall)).await;
    let url = server.url("/v1");
    let env = TestEnv::new();
    let args = ["ask", "-m", "openai/test", "--base-url", &url];
    let rest = [
        "--output-format",
        "stream-json",
        "--deadline",
        deadline,
        "x",
    ];
    let child = env
        .command(&[&args[..], &rest[..]].concat())
        .spawn()
        .unwrap();
    (child, server, env)
}

#[tokio::test]
async fn a_turn_ends_in_time_though_nobody_reads_its_output() {
    let (child, server, env) = start_unread("1s").await;
    // The turn ends its request at the deadline, while the pipe is still full.
    server.disconnected(0).await;
    let shown = env.wait(child).await;
    assert_eq!(shown.code, Some(124), "{:?}", shown.code);
    assert_eq!(shown.result()["stop_reason"], "deadline");
}

#[tokio::test]
async fn interrupts_are_heard_though_nobody_reads_the_output() {
    let (mut child, server, _env) = start_unread("10m").await;
    server.request(0).await;
    signal(&child, Signal::INT);
    server.disconnected(0).await;
    signal(&child, Signal::INT);
    assert_eq!(child.wait().await.unwrap().code(), Some(130));
}

/// Standard input that never ends is still being read when the signal comes.
#[tokio::test]
async fn a_signal_before_the_turn_ends_with_a_result_too() {
    let env = TestEnv::new();
    let pipe = env.project().join("pipe");
    let made = std::process::Command::new("mkfifo")
        .arg(&pipe)
        .status()
        .unwrap();
    assert!(made.success());
    let url = "http://127.0.0.1:9/v1";
    let args = [
        "ask",
        "-m",
        "openai/test",
        "--base-url",
        url,
        "--json",
        "@pipe",
        "x",
    ];
    let child = env.command(&args).spawn().unwrap();
    // Opening the other end returns once the program has opened its own.
    let path = pipe.clone();
    let writer =
        tokio::task::spawn_blocking(move || std::fs::File::options().write(true).open(path));
    let _writer = writer.await.unwrap().unwrap();
    signal(&child, Signal::INT);
    let shown = env.wait(child).await;
    assert_eq!(shown.code, Some(130), "{shown:?}");
    assert_eq!(shown.result()["exit_code"], 130);
}

#[tokio::test]
async fn one_signal_ends_the_process_though_nobody_reads_the_output() {
    let (mut child, server, _env) = start_unread("10m").await;
    server.request(0).await;
    signal(&child, Signal::TERM);
    assert_eq!(child.wait().await.unwrap().code(), Some(143));
}

/// The turn is over long before its time is, and recorded.
#[tokio::test]
async fn output_that_nobody_takes_is_given_up_after_the_turns_time() {
    let text = "x".repeat(MORE_THAN_A_PIPE);
    let server = serve(vec![says(&text)]).await;
    let url = server.url("/v1");
    let env = TestEnv::new();
    let args = ["ask", "-m", "openai/test", "--base-url", &url];
    let rest = ["--deadline", "1s", "x"];
    let mut child = env
        .command(&[&args[..], &rest[..]].concat())
        .spawn()
        .unwrap();
    assert_eq!(child.wait().await.unwrap().code(), Some(141));
    let listed = env.run(&["session", "list", "--json"]).await;
    assert!(listed.stdout.contains("\"state\":\"done\""), "{listed:?}");
}

#[tokio::test]
async fn a_pipe_that_nobody_reads_keeps_no_result() {
    let server = serve(vec![says("Hello.")]).await;
    let url = server.url("/v1");
    let env = TestEnv::new();
    let pipe = env.project().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let args = ["ask", "-m", "openai/test", "--base-url", &url];
    let rest = ["--deadline", "1s", "-o", "pipe", "x"];
    let shown = env.run(&[&args[..], &rest[..]].concat()).await;
    let said = "error: failed to write the answer to `pipe`\n  caused by: ";
    assert_eq!((shown.stdout.as_str(), shown.code), ("Hello.\n", Some(141)));
    assert!(shown.stderr.starts_with(said), "{shown:?}");
}

#[tokio::test]
async fn a_reader_that_went_away_is_told_from_one_that_read() {
    let server = serve(vec![says("Hello.")]).await;
    let url = server.url("/v1");
    let env = TestEnv::new();
    let args = ask_args(&url, &["x"]);
    let mut child = env.command(&args).spawn().unwrap();
    drop(child.stdout.take());
    let shown = env.wait(child).await;
    assert_eq!((shown.stderr.as_str(), shown.code), ("", Some(141)));
}

/// The replay of the latest session prints the same `result` as the run.
async fn check_replayed(env: &TestEnv, shown: &Shown) {
    let stream = ["replay", "latest", "--output-format", "stream-json"];
    let stream = env.run(&stream).await;
    let told = shown.stdout.lines().last();
    assert_eq!(stream.stdout.lines().last(), told, "{shown:?}");
    let replayed = env.run(&["replay", "latest", "--strict", "--json"]).await;
    assert_eq!(replayed.code, Some(0), "{replayed:?}");
    let replayed = &replayed.lines()[0]["turns"][0]["result"];
    assert_eq!(Some(replayed.to_string().as_str()), told, "{shown:?}");
}

#[tokio::test]
async fn a_replay_tells_the_exit_code_of_a_turn_that_a_signal_stopped() {
    for (kind, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 143)] {
        let (child, _server, env) = start(&["--json", "x"]).await;
        signal(&child, kind);
        let shown = env.wait(child).await;
        assert_eq!(shown.result()["exit_code"], code, "{shown:?}");
        check_replayed(&env, &shown).await;
    }
}

#[tokio::test]
async fn a_replay_tells_the_exit_code_of_a_turn_that_ended_by_itself() {
    let write = json!({"command": "echo x > written"});
    let refused = || openai::error(401, "auth", "no such key");
    for (replies, args, code) in [
        (
            vec![calls("exec", &write), says("denied")],
            [].as_slice(),
            44,
        ),
        (
            vec![calls("list_files", &json!({})), says("so far")],
            &["--max-steps", "2", "--strict-complete"],
            3,
        ),
        (
            vec![calls("list_files", &json!({}))],
            &["--max-tokens-total", "10"],
            53,
        ),
        (vec![], &["--max-steps", "2"], 41),
        (vec![says("done")], &["--strict-complete"], 0),
    ] {
        let mut script: Vec<Response> = replies.iter().map(openai::streamed).collect();
        if script.is_empty() {
            script.push(refused());
        }
        let server = Server::start(Script::from(script)).await;
        let env = TestEnv::new();
        let shown = env.ask(&server, &[args, &["--json", "x"]].concat()).await;
        assert_eq!(shown.result()["exit_code"], code, "{shown:?}");
        check_replayed(&env, &shown).await;
    }
}
