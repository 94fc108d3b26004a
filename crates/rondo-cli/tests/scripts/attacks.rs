//! Scripts that try what they should not: to reach out of Lua, to wait where nothing can, to spoil their records.

use crate::harness::{TestEnv, calls, says, serve};
use crate::world::{World, messages};
use serde_json::json;

async fn alone(script: &str) -> World {
    World::new(script, serve(Vec::new()).await)
}

fn read(world: &World, name: &str) -> String {
    std::fs::read_to_string(world.env.project().join(name)).unwrap()
}

#[tokio::test]
async fn nothing_of_lua_reaches_files_processes_or_native_code() {
    let script = r#"
for _, name in ipairs { "debug", "package", "dofile", "loadfile", "collectgarbage" } do
  if _G[name] ~= nil then print(name) end
end
print(string.dump, io.open, io.popen, os.execute, os.remove, os.rename, os.tmpname)
print(load("\27Lua", "x", "b"))
print(pcall(load, function() return "\27Lua" end))
print((pcall(setmetatable, {}, { __gc = print })))
print(getmetatable((rawget(rondo.agent {}, "handle"))))
print((pcall(require, "../secret")), (pcall(require, "/etc/passwd")))
"#;
    alone(script).await.run(&[]).await.check(
        "nil\tnil\tnil\tnil\tnil\tnil\tnil\n\
         nil\tattempt to load a binary chunk (mode is 't')\n\
         false\ts.lua:7: `load` takes a text\n\
         false\nfalse\nfalse\tfalse\n",
        "",
        0,
    );
}

#[tokio::test]
async fn a_call_where_nothing_can_wait_is_refused_and_not_begun() {
    let script = r#"
local agent = rondo.agent {}
local function act() rondo.exec("echo begun >> log") end
local function speak() return "x" | agent end
for _, act in ipairs { act, speak, function() rondo.parallel { act } end } do
  for _, inside in ipairs {
    function() table.sort({ 2, 1 }, function() act() return false end) end,
    function() ("a"):gsub(".", act) end,
    function() tostring(setmetatable({}, { __tostring = act })) end,
  } do
    local ok, why = pcall(inside)
    print(ok, why:match("nothing can wait here"))
  end
end
rondo.exec("echo end >> log")
print(("y" | agent).text)
"#;
    let world = World::new(script, serve(vec![says("Yes.")]).await);
    let shown = world.run(&["--deadline", "60s"]).await;
    let expected = "false\tnothing can wait here\n".repeat(9) + "Yes.\n";
    shown.check(&expected, "", 0);
    assert_eq!(
        (read(&world, "log").as_str(), world.requests().len()),
        ("end\n", 1)
    );
}

#[tokio::test]
async fn a_branch_that_fails_spoils_no_record_of_the_others() {
    let script = r#"
for i = 1, 30 do
  local ok = pcall(rondo.parallel, {
    function() rondo.files.append("f", "x") end,
    function() rondo.files.append("g", "x") end,
    function() if i % 2 == 0 then rondo.files.exists("f") end error("now") end,
  })
  assert(not ok)
end
rondo.files.append("end", "x")
print("whole")
"#;
    let world = alone(script).await;
    world
        .run(&["--deadline", "60s"])
        .await
        .check("whole\n", "", 0);
    world.run(&["--resume"]).await.check("whole\n", "", 0);
    assert_eq!(read(&world, "end"), "x");
}

#[tokio::test]
async fn what_a_script_catches_is_a_text_or_what_was_raised() {
    let script = r#"
for _, call in ipairs {
  function() rondo.env({}) end,
  function() rondo.env() end,
  function() rondo.files.write("x", {}) end,
  function() rondo.files.append("x") end,
  function() rondo.exec("true", { timeout = {} }) end,
  function() os.date("%J") end,
  function() os.date("*t", 1e300) end,
  function() os.time { year = 2020, month = 13, day = 1 } end,
  function() os.time { year = 2020, month = 1.5, day = 1 } end,
  function() os.exit("x") end,
  function() rondo.parallel { function() error("plain", 0) end } end,
} do
  local ok, why = pcall(call)
  assert(not ok)
  assert(type(why) == "string" and not why:find("traceback"), why)
end
local ok, why = pcall(rondo.parallel, { function() error({ code = 5 }) end })
print(ok, why.code)
"#;
    alone(script)
        .await
        .run(&[])
        .await
        .check("false\t5\n", "", 0);
}

#[tokio::test]
async fn a_table_that_json_has_not_is_refused() {
    let script = r#"
print(pcall(rondo.json.encode, { a = { 1, 2, x = 3 } }))
print(pcall(rondo.json.encode, { [1] = "a", [3] = "c" }))
print(rondo.json.encode { { 1, 2 }, {}, rondo.json.array() })
print(pcall(rondo.json.decode, ("["):rep(100000)))
local deep = {}
for _ = 1, 100000 do deep = { deep } end
print(pcall(rondo.json.encode, deep))
"#;
    alone(script).await.run(&[]).await.check(
        "false\ts.lua:2: rondo.json.encode: a table with keys 1, 2, ... and others is neither an array nor an object\n\
         false\ts.lua:3: rondo.json.encode: a table with keys 1, 2, ... and others is neither an array nor an object\n\
         [[1,2],{},[]]\n\
         false\ts.lua:5: rondo.json.decode: recursion limit exceeded at line 1 column 128\n\
         false\ts.lua:8: rondo.json.encode: deserialize error: recursion limit exceeded\n",
        "",
        0,
    );
}

#[tokio::test]
async fn another_script_does_not_go_on_over_the_records_of_one() {
    let world = alone("rondo.exec('echo one >> log')\nerror('stop')").await;
    assert_eq!(world.run(&[]).await.code, Some(1));
    world
        .env
        .write("other.lua", "rondo.files.append('log', 'two')");
    let listed = world.env.run(&["session", "list", "--json"]).await;
    let resume = format!("--resume={}", listed.lines()[0]["id"].as_str().unwrap());
    let shown = world.env.run(&["run", &resume, "other.lua"]).await;
    assert_eq!(shown.code, Some(4), "{shown:?}");
    assert!(
        shown.stderr.contains("`other.lua` changed since"),
        "{shown:?}"
    );
    assert!(
        shown.stderr.contains("other.lua:1: `rondo.files.append` is called, but the records have `rondo.exec` of line 1"),
        "{shown:?}"
    );
    assert_eq!(read(&world, "log"), "one\n");
}

#[tokio::test]
async fn an_error_shows_no_secret_also_where_a_recorded_script_runs_again() {
    let key = "sk-0123456789abcdef0123";
    let script = "rondo.exec('true')\nerror('the key is ' .. rondo.env('MY_API_KEY'))";
    let world = World {
        env: TestEnv::new().var("MY_API_KEY", key),
        server: serve(Vec::new()).await,
    };
    world.env.write("s.lua", script);
    let shown = world.run(&[]).await;
    assert!(shown.stderr.contains("s.lua:2: the key is "), "{shown:?}");
    assert!(!shown.stderr.contains("0123456789abcdef"), "{shown:?}");
    world
        .env
        .write("told.lua", script.replace("error(", "error(1 .. "));
    let changed = ["replay", "latest", "--script", "told.lua", "--json"];
    let told = world.env.run(&changed).await;
    assert!(!told.stdout.contains("0123456789abcdef"), "{told:?}");
}

/// A command that brings text from another machine: nothing listens there, but its words count.
const FETCHES: &str = "curl -s http://127.0.0.1:1/";

#[tokio::test]
async fn text_from_outside_that_a_script_has_read_counts_in_all_its_later_agents() {
    let own = format!("rondo.exec('{FETCHES}')");
    let of_tool = format!(
        "local t = rondo.tool {{ name = 'look', read_only = true, run = function() {own} return 'x' end }}\n\
         _ = 'Look.' | rondo.agent {{ tools = {{ t }} }}"
    );
    let of_agent =
        "_ = 'Look.' | rondo.agent { tools = { 'exec' }, allow = { 'exec(*)' } }".to_owned();
    let looks = || calls("look", &json!({}));
    let fetches = || calls("exec", &json!({ "command": FETCHES }));
    let last =
        "io.write(('Go.' | rondo.agent { tools = { 'exec' }, allow = { 'exec(*)' } }).text)\n";
    for (what, first, before) in [
        ("nothing", String::new(), vec![]),
        ("a command", own, vec![]),
        ("a tool", of_tool, vec![looks(), says("Seen.")]),
        ("an agent", of_agent, vec![fetches(), says("Seen.")]),
    ] {
        let count = before.len();
        let agent = || [fetches(), says("Done.")];
        let replies = before.into_iter().chain(agent()).chain(agent());
        let script = format!("{first}\n{last}");
        let world = World::new(&script, serve(replies.collect()).await);
        let is_denied = |request: usize| {
            let result = messages(&world.requests()[request])
                .last()
                .unwrap()
                .to_string();
            result.contains("denied")
        };
        let shown = world.run(&["--sandbox", "off"]).await;
        assert_eq!(shown.stdout, "Done.", "{what}: {shown:?}");
        assert_eq!(is_denied(count + 1), what != "nothing", "{what}");
        // The records say so, too: what the script does after it was resumed is judged in the same way.
        world.env.write("s.lua", format!("{script}{last}"));
        let shown = world.run(&["--resume", "--sandbox", "off"]).await;
        assert_eq!(shown.stdout, "Done.Done.", "{what}: {shown:?}");
        assert!(is_denied(count + 3), "{what}");
    }
}
