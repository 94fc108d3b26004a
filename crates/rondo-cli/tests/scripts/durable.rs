//! Scripts that are killed and run again over their records.

use crate::harness::{calls, says, serve};
use crate::world::World;
use rondo_testkit::{Gate, Response, Script, Server, Step, openai};
use serde_json::json;

/// A reply that never ends.
fn held() -> Response {
    Response::sse(Vec::<Vec<u8>>::new()).step(Step::Gate(Gate::new()))
}

/// Starts the script, waits until the server was asked so often, and kills it.
async fn kill_at(world: &World, request: usize) {
    let url = world.server.url("/v1");
    let args = ["run", "-m", "openai/test", "--base-url", &url, "s.lua"];
    let mut child = world.env.command(&args).spawn().unwrap();
    world.server.request(request).await;
    child.start_kill().unwrap();
    child.wait().await.unwrap();
}

const STEPS: &str = r#"
local names = {}
local note = rondo.tool { name = "note", parameters = { name = "string" }, read_only = true, run = function(given)
  names[#names + 1] = given.name
  rondo.files.append("notes", given.name .. "\n")
  return "noted"
end }
local agent = rondo.agent { tools = { note } }
rondo.files.append("log", "begun\n")
local c = "First" | agent
rondo.exec("echo between >> log")
c = c | "Second"
local r = rondo.parallel { function() return rondo.exec("echo branch >> log; echo done").stdout end }
io.write(c.text, " ", table.concat(names, ","), " ", r[1])
print(math.random(1000000), os.time())
"#;

#[tokio::test]
async fn a_script_that_is_killed_goes_on_and_repeats_nothing() {
    let responses = vec![
        openai::streamed(&calls("note", &json!({ "name": "one" }))),
        openai::streamed(&says("One.")),
        openai::streamed(&calls("note", &json!({ "name": "two" }))),
        held(),
        openai::streamed(&says("Two.")),
    ];
    let world = World::new(STEPS, Server::start(Script::from(responses)).await);
    kill_at(&world, 3).await;
    let shown = world.run(&["--resume"]).await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(shown.stdout.starts_with("Two. one,two done\n"), "{shown:?}");
    let read = |name: &str| std::fs::read_to_string(world.env.project().join(name)).unwrap();
    assert_eq!(read("log"), "begun\nbetween\nbranch\n");
    assert_eq!(read("notes"), "one\ntwo\n");
    assert_eq!(world.requests().len(), 5);
    // Over its whole record it makes no call at all, and says the same.
    let again = world.run(&["--resume"]).await;
    assert_eq!(again.stdout, shown.stdout);
    assert_eq!(
        (read("log").lines().count(), world.requests().len()),
        (3, 5)
    );
}

#[tokio::test]
async fn a_script_that_takes_another_way_is_told_the_line() {
    let responses = vec![openai::streamed(&says("One.")), held()];
    let script = "local a = rondo.agent {}\n_ = 'x' | a\n_ = 'y' | a\n";
    let world = World::new(script, Server::start(Script::from(responses)).await);
    kill_at(&world, 1).await;
    world
        .env
        .write("s.lua", "local a = rondo.agent {}\n\n_ = 'z' | a\n");
    let shown = world.run(&["--resume"]).await;
    assert_eq!(shown.code, Some(4), "{shown:?}");
    assert!(
        shown.stderr.contains("s.lua:3: `agent:ask` is called with other arguments, but the records have `agent:ask` of line 2"),
        "{shown:?}"
    );
}

#[tokio::test]
async fn a_call_that_failed_is_made_again_when_the_script_is_resumed() {
    let responses = vec![
        openai::streamed(&says("One.")),
        openai::error(401, "auth", "no such key"),
        openai::streamed(&says("Two.")),
    ];
    let script = "local a = rondo.agent {}\nprint('x' | a)\nprint('y' | a)\n";
    let world = World::new(script, Server::start(Script::from(responses)).await);
    let shown = world.run(&[]).await;
    assert_eq!(
        (shown.stdout.as_str(), shown.code),
        ("One.\n", Some(41)),
        "{shown:?}"
    );
    assert!(
        shown.stderr.contains("s.lua:3: |: `agent` has no answer"),
        "{shown:?}"
    );
    world.run(&["--resume"]).await.check("One.\nTwo.\n", "", 0);
    assert_eq!(world.requests().len(), 3);
}

#[tokio::test]
async fn a_failure_that_the_script_caught_stays_as_it_was() {
    let responses = vec![
        openai::error(401, "auth", "no such key"),
        held(),
        openai::streamed(&says("Two.")),
    ];
    let script =
        "local a = rondo.agent {}\nprint((pcall(function() return 'x' | a end)))\nprint('y' | a)\n";
    let world = World::new(script, Server::start(Script::from(responses)).await);
    kill_at(&world, 1).await;
    world.run(&["--resume"]).await.check("false\nTwo.\n", "", 0);
    assert_eq!(world.requests().len(), 3);
}

#[tokio::test]
async fn a_script_whose_agent_waits_for_approval_goes_on_with_the_answer() {
    let script = "local a = rondo.agent { tools = { 'exec' } }\nrondo.exec('echo x >> log')\nprint('x' | a)\n";
    let replies = vec![
        calls("exec", &json!({ "command": "touch made" })),
        says("Made."),
    ];
    let world = World::new(script, serve(replies).await);
    let shown = world.run(&["--approval", "park"]).await;
    assert_eq!(shown.code, Some(47), "{shown:?}");
    let session = shown.stderr.split("session `").nth(1).unwrap();
    let session = session.split('`').next().unwrap();
    let url = world.server.url("/v1");
    let answered = world
        .env
        .run(&["answer", "--base-url", &url, session, "y"])
        .await;
    assert_eq!(answered.code, Some(0), "{answered:?}");
    world.run(&["--resume"]).await.check("Made.\n", "", 0);
    let log = std::fs::read_to_string(world.env.project().join("log")).unwrap();
    assert_eq!((log.as_str(), world.requests().len()), ("x\n", 2));
}

#[tokio::test]
async fn a_script_that_keeps_nothing_leaves_nothing() {
    let script = "print('x' | rondo.agent {}, rondo.exec('echo y').stdout)";
    let world = World::new(script, serve(vec![says("One.")]).await);
    world
        .run(&["--ephemeral"])
        .await
        .check("One.\ty\n\n", "", 0);
    let shown = world.run(&["--resume"]).await;
    assert_eq!(shown.code, Some(45), "{shown:?}");
}
