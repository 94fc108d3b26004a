//! The loop of a script's agents: the requirements on it, each through a script.

use crate::harness::{calls, says, serve};
use crate::world::{World, messages, tools};
use rondo_testkit::{CallScript, ReplyScript, Script, Server, assert_paired, openai};
use serde_json::{Value, json};

const COUNTING: &str = r#"
local seen = 0
local count = rondo.tool {
  name = "count",
  description = "Counts.",
  parameters = { by = "integer" },
  read_only = true,
  run = function(given)
    seen = seen + given.by
    return "now " .. math.tointeger(seen)
  end,
}
local agent = rondo.agent { name = "counter", system = "Count.", tools = { count }, limits = { steps = 10 } }
local c = "Count up." | agent
print(c.text)
print(c.stop_reason, c.steps, c.tool_calls, seen)
"#;

fn count(by: u32) -> ReplyScript {
    calls("count", &json!({ "by": by }))
}

#[tokio::test]
async fn gs_3_a_script_agent_loops_until_no_call_is_left() {
    let replies = vec![count(1), count(2), count(3), says("Six.")];
    let world = World::new(COUNTING, serve(replies).await);
    let shown = world.run(&[]).await;
    shown.check("Six.\ncomplete\t4\t3\t6\n", "", 0);
    assert_eq!(world.requests().len(), 4);
}

#[tokio::test]
async fn gs_4_the_loop_of_a_script_ends_at_its_bound() {
    // The last request that the bound allows has no tools, so its reply is the answer, and no other is asked for.
    for (calls, steps, stop) in [
        (8, 9, "complete"),
        (9, 10, "max_steps"),
        (10, 10, "max_steps"),
    ] {
        let mut replies: Vec<ReplyScript> = (1..=calls).map(count).collect();
        replies.push(says("Done."));
        let world = World::new(COUNTING, serve(replies).await);
        let shown = world.run(&[]).await;
        let last = shown.stdout.lines().last().unwrap();
        assert!(
            last.starts_with(&format!("{stop}\t{steps}\t")),
            "{calls}: {shown:?}"
        );
        assert_eq!(world.requests().len(), steps, "{calls}");
    }
}

/// The script with an agent that is given this instead of its own limit.
fn counting_with(given: &str) -> String {
    COUNTING.replace("limits = { steps = 10 }", given)
}

#[tokio::test]
async fn gs_4_an_agent_that_names_neither_profile_nor_steps_ends_after_ten() {
    for (given, settings, steps) in [
        ("", "", 10),
        ("limits = { tool_calls = 100 }", "", 10),
        ("limits = { steps = 12 }", "", 12),
        ("profile = 'default'", "", 14),
        ("", "max_steps = 3\n", 3),
        ("", "max_steps = 12\n", 12),
    ] {
        let mut replies: Vec<ReplyScript> = (1..14).map(count).collect();
        replies.push(says("Done."));
        let world = World::new(&counting_with(given), serve(replies).await);
        world.env.user_config(settings);
        let shown = world.run(&[]).await;
        assert_eq!(world.requests().len(), steps, "{given} {settings}{shown:?}");
    }
}

#[tokio::test]
async fn gs_4_a_recorded_script_replays_with_the_limit_that_it_was_recorded_with() {
    let mut replies: Vec<ReplyScript> = (1..12).map(count).collect();
    replies.push(says("Done."));
    let world = World::new(&counting_with(""), serve(replies).await);
    world.env.user_config("max_steps = 12\n");
    let shown = world.run(&[]).await;
    assert!(shown.stdout.contains("\t12\t"), "{shown:?}");
    world.env.user_config("");
    let listed = world.env.run(&["session", "list", "--json"]).await;
    let sessions = listed.lines();
    let script = sessions.iter().find(|it| it["title"] == "s.lua").unwrap();
    let id = script["id"].as_str().unwrap();
    let replayed = world.env.run(&["replay", "--strict", id]).await;
    assert_eq!(replayed.code, Some(0), "{replayed:?}");
    assert_eq!(world.requests().len(), 12);
}

#[tokio::test]
async fn gs_5_gs_8_assistant_messages_remember_their_calls_and_the_next_request_is_the_state() {
    let replies = vec![count(1), says("One."), says("Still one.")];
    let script = format!(
        "{COUNTING}\nc = c | 'And now?'\nprint(c)\nfor _, m in ipairs(c.messages) do print(m.role, m.tool_calls and m.tool_calls[1].name, m.name) end"
    );
    let world = World::new(&script, serve(replies).await);
    let shown = world.run(&[]).await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(
        shown.stdout.ends_with(
            "Still one.\nuser\tnil\tnil\nassistant\tcount\tnil\ntool\tnil\tcount\nassistant\tnil\tnil\nuser\tnil\tnil\nassistant\tnil\tnil\n"
        ),
        "{}",
        shown.stdout
    );
    let requests = world.requests();
    let last = messages(&requests[2]);
    let roles: Vec<&str> = last.iter().map(|it| it["role"].as_str().unwrap()).collect();
    assert_eq!(
        roles,
        ["system", "user", "assistant", "tool", "assistant", "user"]
    );
    assert_eq!(last[2]["tool_calls"][0]["function"]["name"], "count");
    // Each request is the one before with what was added.
    assert_eq!(last[..4], messages(&requests[1])[..]);
    requests.iter().for_each(assert_paired);
}

#[tokio::test]
async fn gs_6_an_agent_streams_through_the_whole_loop_to_its_listener() {
    let script = COUNTING.replace(
        "limits = {",
        "on_event = function(e) if e.type == 'text_delta' then io.write('<', e.text, '>') elseif e.type == 'tool_call_started' then io.write('[tool]') end end, limits = {",
    );
    let replies = vec![count(1), ReplyScript::text(["On", "e."]).usage(1, 1)];
    let world = World::new(&script, serve(replies).await);
    let shown = world.run(&[]).await;
    shown.check("[tool]<On><e.>One.\ncomplete\t2\t1\t1\n", "", 0);
}

#[tokio::test]
async fn gs_7_every_call_of_a_reply_runs_in_order_and_has_its_own_message() {
    let both = [1, 20, 300]
        .map(|by| CallScript::new(&format!("call_{by}"), "count", &json!({ "by": by })));
    let replies = vec![ReplyScript::calls(both).usage(1, 1), says("All.")];
    let world = World::new(COUNTING, serve(replies).await);
    world
        .run(&[])
        .await
        .check("All.\ncomplete\t2\t3\t321\n", "", 0);
    let requests = world.requests();
    let results: Vec<(&str, &str)> = messages(&requests[1])
        .iter()
        .filter(|it| it["role"] == "tool")
        .map(|it| {
            let text = |name: &str| it[name].as_str().unwrap();
            (text("tool_call_id"), text("content"))
        })
        .collect();
    let expected = [
        ("call_1", "now 1"),
        ("call_20", "now 21"),
        ("call_300", "now 321"),
    ];
    assert_eq!(results, expected);
}

/// A server with one tool, which adds.
pub(crate) const ADDING: &str = r#"
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    method, params, result = message.get("method"), message.get("params", {}), {}
    if method == "initialize":
        result = {"protocolVersion": params["protocolVersion"], "serverInfo": {"name": "x", "version": "1"}, "capabilities": {"tools": {}}}
    elif method == "tools/list":
        number = {"type": "number"}
        result = {"tools": [{"name": "add", "description": "Adds.", "annotations": {"readOnlyHint": True},
                  "inputSchema": {"type": "object", "properties": {"a": number, "b": number}}}]}
    elif method == "tools/call":
        result = {"content": [{"type": "text", "text": str(params["arguments"]["a"] + params["arguments"]["b"])}]}
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"#;

#[tokio::test]
async fn gs_9_a_script_agent_uses_its_own_tool_and_one_of_a_server() {
    let script = r#"
local adder = rondo.mcp { name = "adder", command = "python3", args = { "add.py" } }
local double = rondo.tool {
  name = "double", description = "Doubles.", parameters = { n = "number" }, read_only = true,
  run = function(given) return { doubled = given.n * 2 } end,
}
local agent = rondo.agent { tools = { double, adder }, allow = { "mcp__adder__add" } }
print("Double 4, and add 1." | agent)
print(adder:call("add", { a = 20, b = 22 }))
print(adder:tools()[1].name)
"#;
    let replies = vec![
        calls("double", &json!({ "n": 4 })),
        calls("mcp__adder__add", &json!({ "a": 8, "b": 1 })),
        says("Nine."),
    ];
    let world = World::new(script, serve(replies).await);
    world.env.write("add.py", ADDING);
    world
        .run(&[])
        .await
        .check("Nine.\n42\nmcp__adder__add\n", "", 0);
    let requests = world.requests();
    assert_eq!(tools(&requests[0]), ["double", "mcp__adder__add"]);
    let results: Vec<&Value> = messages(&requests[2])
        .iter()
        .filter(|it| it["role"] == "tool")
        .map(|it| &it["content"])
        .collect();
    assert_eq!(results, [&json!("{\"doubled\":8}"), &json!("9")]);
}

#[tokio::test]
async fn gs_t_failures_timeouts_and_limits_of_tools_are_results_that_the_model_reads() {
    let script = r#"
local function tool(name, timeout, run)
  return rondo.tool { name = name, parameters = {}, read_only = true, timeout = timeout, run = run }
end
local agent = rondo.agent { tools = {
  tool("fails", 5, function() error("no such city") end),
  tool("spins", 0.2, function() while true do pcall(function() while true do end end) end end),
  tool("fine", 5, function() return { code = rondo.exec("exit 3").exit_code } end),
} }
print("Try them." | agent)
"#;
    let replies = ["fails", "spins", "fine"].map(|it| calls(it, &json!({})));
    let replies = replies.into_iter().chain([says("Tried.")]).collect();
    let world = World::new(script, serve(replies).await);
    world.run(&[]).await.check("Tried.\n", "", 0);
    let requests = world.requests();
    let results: Vec<String> = messages(&requests[3])
        .iter()
        .filter(|it| it["role"] == "tool")
        .map(|it| it["content"].as_str().unwrap().to_owned())
        .collect();
    assert!(results[0].contains("s.lua:6: no such city"), "{results:?}");
    assert!(
        results[1].contains("exceeded its time limit"),
        "{results:?}"
    );
    assert!(results[2].contains("\"code\":3"), "{results:?}");
}

#[tokio::test]
async fn pipes_go_on_in_a_conversation_and_hand_it_to_another_agent() {
    let script = r#"
local writer = rondo.agent { name = "writer", system = "Write." }
local editor = rondo.agent { name = "editor", system = "Edit." }
local c = "A haiku" | writer | "Shorter"
local e = c | editor
print(c.last.content, e.last.content, #c.messages, #e.messages)
print(c.session ~= e.session, e.agent.name)
"#;
    let server = Server::start(Script::repeat(openai::streamed(&says("Words.")))).await;
    let world = World::new(script, server);
    world
        .run(&[])
        .await
        .check("Words.\tWords.\t4\t6\ntrue\teditor\n", "", 0);
    let requests = world.requests();
    let of_editor = messages(&requests[2]);
    assert_eq!(of_editor[0]["content"], "Edit.");
    let said: Vec<&str> = of_editor[1..]
        .iter()
        .map(|it| it["content"].as_str().unwrap())
        .collect();
    assert_eq!(said[..4], ["A haiku", "Words.", "Shorter", "Words."]);
}

#[tokio::test]
async fn agents_name_models_by_tiers_of_the_configuration() {
    let script = "local a = rondo.agent { model = 'lite' }\nlocal b = rondo.agent { model = rondo.model { name = 'premium', temperature = 0.5 } }\nprint('x' | a, 'y' | b)";
    let world = World::new(script, serve(vec![says("One."), says("Two.")]).await);
    world
        .env
        .user_config("[tiers]\nlite = 'openai/small'\npremium = 'openai/large'\n");
    world.run(&[]).await.check("One.\tTwo.\n", "", 0);
    let requests = world.requests();
    let models: Vec<&Value> = requests.iter().map(|it| &it["model"]).collect();
    assert_eq!(models, [&json!("small"), &json!("large")]);
    assert_eq!(requests[1]["temperature"], json!(0.5));
}
