//! Acts of scripts themselves: commands, files, questions, branches, streams.

use crate::harness::{TestEnv, calls, says, serve};
use crate::world::World;
use rondo_testkit::{Script, Server, openai};
use serde_json::json;

async fn alone(script: &str) -> World {
    World::new(script, serve(Vec::new()).await)
}

#[tokio::test]
async fn a_script_runs_commands_that_no_gate_judges() {
    let script = r#"
local r = rondo.exec("printf 'one\ntwo'; exit 3")
print(r.stdout, r.exit_code, r.ok, r.timed_out)
print(rondo.exec({ "printf", "%s|", "a b", "it's", "$HOME" }).stdout)
print(rondo.exec("pwd", { cwd = "sub" }).stdout:match("[^/]+$"))
print(rondo.exec("sleep 30", { timeout = 0.2 }).timed_out)
rondo.exec("rm -rf sub")
print(rondo.files.exists("sub"))
"#;
    let world = alone(script).await;
    world.env.write("sub/file", "x");
    let shown = world.run(&[]).await;
    shown.check(
        "one\ntwo\t3\tfalse\tfalse\na b|it's|$HOME|\nsub\n\ntrue\nfalse\n",
        "",
        0,
    );
}

#[tokio::test]
async fn a_script_reads_and_writes_files_json_and_streams() {
    let script = r#"
print(#arg, arg[0], rondo.args[1], rondo.args[2])
print(io.read("l"), io.read("a"))
rondo.files.write("out.txt", "one\n")
rondo.files.append("out.txt", "two\n")
io.write(rondo.files.read("out.txt"))
print(table.concat(rondo.files.list("."), " "))
local ok, why = pcall(rondo.files.read, "gone")
print(ok, why)
local data = rondo.json.decode('{"a":[1,2,{"b":null}],"c":"\\u00e9"}')
print(data.a[2], data.a[3].b, data.c, rondo.json.encode({ list = rondo.json.array(), map = {}, n = 1.5 }))
print(rondo.env("FROM_OUTSIDE"), os.getenv("GONE"))
io.stderr:write("to stderr\n")
rondo.log("a", 1)
print(require("lib.util").name)
"#;
    let world = World {
        env: TestEnv::new()
            .var("FROM_OUTSIDE", "yes")
            .stdin("first\nsecond\nthird"),
        server: serve(Vec::new()).await,
    };
    world.env.write("s.lua", script);
    world.env.write("lib/util.lua", "return { name = ... }");
    let shown = world.run_with(&[], &["--flag", "-x"]).await;
    let stdout = "2\ts.lua\t--flag\t-x\nfirst\tsecond\nthird\none\ntwo\nlib out.txt s.lua\nfalse\ts.lua:8: rondo.files.read: `gone`: No such file or directory (os error 2)\n2\tnil\té\t{\"list\":[],\"map\":{},\"n\":1.5}\nyes\tnil\nlib.util\n";
    shown.check(stdout, "to stderr\na\t1\n", 0);
}

#[tokio::test]
async fn branches_run_at_once_and_their_results_have_their_keys() {
    // Each waits for the file of the other, so one after the other they would never end.
    let script = r#"
local function meet(own, other)
  return function()
    rondo.exec("touch " .. own)
    return rondo.exec("until [ -e " .. other .. " ]; do sleep 0.01; done; echo " .. own, { timeout = 20 }).stdout
  end
end
local r = rondo.parallel { x = meet("a", "b"), y = meet("b", "a") }
io.write(r.x, r.y)
local list = rondo.parallel({ function() return 1 end, function() return nil end, function() return 3 end }, { limit = 1 })
print(list[1], list[2], list[3])
print(pcall(rondo.parallel, { function() error("of a branch", 0) end }))
"#;
    let shown = alone(script).await.run(&[]).await;
    shown.check("a\nb\n1\tnil\t3\nfalse\tof a branch\n", "", 0);
}

#[tokio::test]
async fn questions_have_a_default_where_nobody_is_there() {
    let script = r#"
print(rondo.ask("Sure?", { choices = { "y", "n" }, default = "n" }))
print(pcall(rondo.ask, "And now?"))
"#;
    let shown = alone(script).await.run(&[]).await;
    shown.check(
        "n\nfalse\ts.lua:3: rondo.ask: there is no terminal to ask on\n",
        "",
        0,
    );
}

#[tokio::test]
async fn pages_are_read_through_the_guard() {
    let server = serve(Vec::new()).await;
    let script = format!("print(pcall(rondo.http.get, '{}'))", server.url("/secret"));
    let shown = World::new(&script, server).run(&[]).await;
    assert!(shown.stdout.starts_with("false\t"), "{shown:?}");
    assert!(shown.stdout.contains("127.0.0.1"), "{shown:?}");
}

#[tokio::test]
async fn what_a_model_asks_for_is_judged_and_allowed_by_the_agent() {
    let script = r#"
local function agent(allow)
  return rondo.agent { tools = { "exec" }, allow = allow }
end
print(("Touch it." | agent()).text, rondo.files.exists("made"))
print(("Touch it." | agent { "exec(touch *)" }).text, rondo.files.exists("made"))
"#;
    let touch = || calls("exec", &json!({ "command": "touch made" }));
    let replies = vec![touch(), says("Denied."), touch(), says("Done.")];
    let world = World::new(script, serve(replies).await);
    let shown = world.run(&[]).await;
    assert_eq!(shown.stdout, "Denied.\tfalse\nDone.\ttrue\n", "{shown:?}");
    assert!(shown.stderr.contains("needed approval"), "{shown:?}");
    assert_eq!(shown.code, Some(0));
}

#[tokio::test]
async fn keys_do_not_reach_records_or_models() {
    let script = r#"
print(rondo.exec("echo $MY_API_KEY").stdout)
print(("The key is " .. rondo.env("MY_API_KEY")) | rondo.agent {})
"#;
    let server = Server::start(Script::repeat(openai::streamed(&says("I see.")))).await;
    let env = TestEnv::new().var("MY_API_KEY", "sk-0123456789abcdef0123");
    env.write("s.lua", script);
    let world = World { env, server };
    let shown = world.run(&[]).await;
    assert!(!shown.stdout.contains("0123456789abcdef"), "{shown:?}");
    assert!(!world.requests()[0].to_string().contains("0123456789abcdef"));
    let journal = world.env.home().join(".local/share/rondo/sessions");
    let mut files = 0;
    for file in std::fs::read_dir(journal).unwrap() {
        let file = file.unwrap();
        if !file.file_type().unwrap().is_file() {
            continue;
        }
        files += 1;
        let bytes = std::fs::read(file.path()).unwrap();
        assert!(
            !bytes.windows(16).any(|it| it == b"0123456789abcdef"),
            "{file:?}"
        );
    }
    assert!(files > 0);
}
