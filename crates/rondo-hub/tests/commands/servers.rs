//! Servers of the Model Context Protocol, which chats use side by side.

use crate::messenger::LONG;
use crate::world::{World, calls, last_said, text};
use rondo_runtime::values::SandboxChoice;
use serde_json::json;
use std::fs;
use std::path::Path;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// A server with a tool that notes that it was called, and waits for a file.
const SERVER: &str = r#"
import json, os, sys, time

home = os.path.dirname(os.path.abspath(sys.argv[0]))

def wait():
    open(os.path.join(home, "called"), "w").close()
    while not os.path.exists(os.path.join(home, "go-on")):
        time.sleep(0.02)
    return "it went on"

for line in sys.stdin:
    message = json.loads(line)
    method, result = message.get("method"), {}
    if method == "initialize":
        version = message["params"]["protocolVersion"]
        result = {"protocolVersion": version, "serverInfo": {"name": "x", "version": "1"}, "capabilities": {"tools": {}}}
    elif method == "tools/list":
        result = {"tools": [{"name": "wait", "description": "Waits.", "inputSchema": {"type": "object"}}]}
    elif method == "tools/call":
        result = {"content": [{"type": "text", "text": wait()}]}
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"#;

pub(crate) async fn a_call_of_a_server_in_one_chat_goes_on_while_other_chats_start_theirs() {
    let find = calls(&[("f", "find_tools", json!({"query": "waits"}))]);
    let mut replies = vec![find, calls(&[("a", "mcp__slow__wait", json!({}))])];
    replies.extend((0..6).map(|_| text(&["Hello."])));
    replies.push(text(&["Waited."]));
    let mut world = World::new(replies).await;
    world.flags.yolo = Some(true);
    world.flags.sandbox = Some(SandboxChoice::Off);
    let guests = (0..6).map(|it| format!("[users.m{it}]\nrole = 'member'\nids = ['wire:m{it}']\n"));
    world.config.extend(guests);
    let server = world.home.path().join("server.py");
    fs::write(&server, SERVER).unwrap();
    let config = world.home.path().join("config.toml");
    // The hub of the test has no `PATH`.
    let python = ["/usr/bin/python3", "/usr/local/bin/python3"];
    let python = python.iter().find(|it| Path::new(it).exists()).unwrap();
    let table = format!(
        "[mcp.servers.slow]\ncommand = '{python}'\nargs = ['{}']\n",
        server.display()
    );
    fs::write(config, table).unwrap();
    let hub = world.start();
    world.messenger.say("ann", "Wait.");
    let called = async {
        while !world.home.path().join("called").exists() {
            sleep(Duration::from_millis(10)).await;
        }
    };
    let called = timeout(LONG, called).await;
    assert!(called.is_ok(), "{:?}", world.messenger.all_seen());
    for member in 0..6 {
        let member = format!("m{member}");
        world.messenger.say(&member, "Hello.");
        world.messenger.until(&member, 1).await;
    }
    fs::write(world.home.path().join("go-on"), "").unwrap();
    let seen = world.messenger.until("ann", 1).await;
    hub.stop().await;
    assert_eq!(seen[0].text, "Waited.");
    let requests = world.requests();
    assert!(last_said(requests.last().unwrap()).contains("it went on"));
}
