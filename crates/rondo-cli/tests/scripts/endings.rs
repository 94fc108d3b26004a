//! How scripts end: exit codes, errors with their lines, signals, deadlines, bounds.

use crate::harness::{says, serve};
use crate::world::World;
use rondo_testkit::{Gate, ReplyScript, Response, Script, Server, Step, openai};
use rustix::process::{Pid, Signal, kill_process};
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt as _, BufReader};

async fn alone(script: &str) -> World {
    World::new(script, serve(Vec::new()).await)
}

#[tokio::test]
async fn a_script_chooses_its_exit_code() {
    for (script, code) in [
        ("", 0),
        ("os.exit(7)", 7),
        ("os.exit(false)", 1),
        ("os.exit()", 0),
        ("pcall(os.exit, 9) print('not reached')", 9),
    ] {
        alone(script).await.run(&[]).await.check("", "", code);
    }
}

#[tokio::test]
async fn errors_name_script_line_and_call() {
    for (script, message, code) in [
        ("\nerror('no')", "s.lua:2: no", 1),
        (
            "local x\nprint(x.y)",
            "s.lua:2: attempt to index a nil value (local 'x')",
            1,
        ),
        (
            "\n\nrondo.agent { modle = 'x' }",
            "s.lua:3: rondo.agent has no option `modle`; its options are: allow, limits, model, name, on_event, profile, schema, system, tools",
            1,
        ),
        (
            "print(rondo.nope())",
            "s.lua:1: attempt to call a nil value (field 'nope')",
            1,
        ),
        ("x = = 1", "s.lua:1: unexpected symbol near '='", 42),
        (
            "rondo.files.read('gone')",
            "s.lua:1: rondo.files.read: `gone`: No such file or directory (os error 2)",
            1,
        ),
        (
            "_ = 'x' | rondo.agent { model = 'nobody/m' }",
            "s.lua:1: |: ",
            52,
        ),
        (
            "_ = 'x' | 'y'",
            "s.lua:1: attempt to perform bitwise operation on a string value (constant 'x')",
            1,
        ),
    ] {
        let shown = alone(script).await.env.run(&["run", "s.lua"]).await;
        assert_eq!(shown.code, Some(code), "{script}: {shown:?}");
        let expected = format!("error: {message}");
        assert!(shown.stderr.starts_with(&expected), "{script}: {shown:?}");
    }
}

#[tokio::test]
async fn what_runs_without_end_is_ended_by_its_deadline() {
    for script in [
        "while true do end",
        "while true do pcall(function() while true do end end) end",
        "local function f() return pcall(f) end while true do f() end",
        "coroutine.wrap(function() while true do end end)()",
        "while true do coroutine.resume(coroutine.create(function() while true do end end)) end",
        "setmetatable({}, { __index = function() while true do end end }).x()",
        "rondo.parallel { function() while true do end end, function() rondo.sleep(100) end }",
        "rondo.sleep(100)",
        "pcall(rondo.sleep, 100) while true do end",
        "rondo.exec('sleep 100')",
    ] {
        let world = alone(script).await;
        let begun = Instant::now();
        let shown = world.run(&["--deadline", "300ms"]).await;
        assert_eq!(shown.code, Some(124), "{script}: {shown:?}");
        assert!(begun.elapsed() < Duration::from_secs(10), "{script}");
    }
}

#[tokio::test]
async fn ctrl_c_ends_a_script_that_never_waits() {
    for script in [
        "print('begun') while true do end",
        "print('begun') while true do pcall(function() while true do end end) end",
        "print('begun') rondo.sleep(100)",
        "print('begun') rondo.exec('sleep 100')",
    ] {
        let world = alone(script).await;
        let mut child = world.env.command(&["run", "s.lua"]).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert_eq!(lines.next_line().await.unwrap().as_deref(), Some("begun"));
        let pid = Pid::from_raw(i32::try_from(child.id().unwrap()).unwrap()).unwrap();
        kill_process(pid, Signal::INT).unwrap();
        let shown = world.env.wait(child).await;
        assert_eq!(shown.code, Some(130), "{script}: {shown:?}");
        assert!(shown.stderr.contains("the script was stopped"), "{shown:?}");
    }
}

#[tokio::test]
async fn ctrl_c_stops_the_turn_of_an_agent_and_the_script_goes_on_later() {
    let gate = Gate::new();
    let held = Response::sse(Vec::<Vec<u8>>::new()).step(Step::Gate(gate));
    let responses = vec![held, openai::streamed(&says("At last."))];
    let server = Server::start(Script::from(responses)).await;
    let world = World::new("print('x' | rondo.agent { name = 'slow' })", server);
    let url = world.server.url("/v1");
    let args = ["run", "-m", "openai/test", "--base-url", &url, "s.lua"];
    let child = world.env.command(&args).spawn().unwrap();
    world.server.request(0).await;
    let pid = Pid::from_raw(i32::try_from(child.id().unwrap()).unwrap()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    let shown = world.env.wait(child).await;
    assert_eq!(shown.code, Some(130), "{shown:?}");
    world.run(&["--resume"]).await.check("At last.\n", "", 0);
}

#[tokio::test]
async fn memory_is_bounded() {
    for script in [
        "local t = {} for i = 1, 1e9 do t[i] = i end",
        "local s = 'x' while true do s = s .. s end",
        "string.rep('x', 1e10)",
    ] {
        let shown = alone(script).await.run(&[]).await;
        assert_eq!(shown.code, Some(1), "{script}");
        let told = shown.stderr.contains("memory limit") || shown.stderr.contains("too large");
        assert!(told, "{script}: {shown:?}");
    }
}

#[tokio::test]
async fn the_budget_of_a_script_is_that_of_all_its_turns() {
    let script = r#"
local agent = rondo.agent {}
for i = 1, 5 do
  local c = "x" | agent
  print(i, c.stop_reason, c.answered)
end
"#;
    let server = Server::start(Script::repeat(openai::streamed(
        &ReplyScript::text(["y"]).usage(1000, 500),
    )))
    .await;
    let world = World::new(script, server);
    let shown = world.run(&["--max-tokens-total", "5000"]).await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    let lines: Vec<&str> = shown.stdout.lines().collect();
    assert_eq!(lines[0], "1\tcomplete\ttrue");
    assert!(lines[4].starts_with("5\tmax_tokens"), "{lines:?}");
    assert!(world.requests().len() < 5, "{}", world.requests().len());
}

#[tokio::test]
async fn a_closed_pipe_ends_a_script() {
    let world = alone("for i = 1, 1e7 do print(i) end").await;
    let mut command = world.env.wrapped(
        "\"$0\" \"$@\" | head -n 2; exit ${PIPESTATUS[0]}",
        &["run", "s.lua"],
    );
    let output = command.output().await.unwrap();
    let shown = world.env.shown(&output);
    shown.check("1\n2\n", "", 141);
}

#[tokio::test]
async fn a_script_is_a_program_with_a_first_line() {
    let world = alone("#!/usr/bin/env -S rondo run\nprint('hello', ...)\nerror('x')").await;
    let shown = world.run(&[]).await;
    assert_eq!(shown.stdout, "hello\n");
    assert!(shown.stderr.starts_with("error: s.lua:3: x"), "{shown:?}");
}
