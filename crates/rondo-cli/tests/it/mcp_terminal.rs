//! Servers and a person at the terminal: values that a server asks for, and its prompts.

use crate::harness::{TestEnv, ask_args, calls, says, serve};
use crate::person::{ENTER, Person};
use crate::repl::{leave, messages, said, start};
use crate::screen::open;
use rondo_testkit::Server;
use serde_json::{Value, json};

/// A server whose tool asks for a form before it ends, and says what was answered; and a prompt.
const PYTHON: &str = r#"
import json, sys

def send(message):
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()

FORM = {"type": "object", "required": ["room", "nights"], "properties": {
    "room": {"type": "string", "enum": ["single", "double"], "description": "Which room"},
    "nights": {"type": "integer", "minimum": 1},
    "breakfast": {"type": "boolean", "default": True},
}}

waiting = None
for line in sys.stdin:
    message = json.loads(line)
    method, params = message.get("method"), message.get("params", {})
    result = None
    if method is None:
        text = json.dumps(message["result"], sort_keys=True)
        send({"jsonrpc": "2.0", "id": waiting, "result": {"content": [{"type": "text", "text": text}]}})
        continue
    if method == "initialize":
        result = {"protocolVersion": params["protocolVersion"], "serverInfo": {"name": "x", "version": "1"},
                  "capabilities": {"tools": {}, "prompts": {}}}
    elif method == "tools/list":
        result = {"tools": [{"name": "book", "description": "Books.", "inputSchema": {"type": "object"}}]}
    elif method == "tools/call":
        waiting = message["id"]
        send({"jsonrpc": "2.0", "id": "q-1", "method": "elicitation/create",
              "params": {"message": "How shall I book?\x1b[2J", "requestedSchema": FORM}})
        continue
    elif method == "prompts/list":
        result = {"prompts": [{"name": "greet", "arguments": [{"name": "who", "required": True}]}]}
    elif method == "prompts/get":
        result = {"messages": [{"role": "user", "content": {"type": "text", "text": "Greet " + params["arguments"]["who"] + " warmly"}}]}
    if "id" in message:
        error = {"code": -32601, "message": "no such method"}
        end = {"error": error} if result is None else {"result": result}
        send({"jsonrpc": "2.0", "id": message["id"], **end})
"#;

/// A home with that server, whose tools are known from before.
pub(crate) async fn with_server() -> TestEnv {
    let env = TestEnv::new();
    env.write("server.py", PYTHON);
    let script = env.project().join("server.py");
    env.user_config(&format!(
        "[mcp.servers.inn]\ncommand = 'python3'\nargs = ['{}']\nalways_load = true\n",
        script.display()
    ));
    let tested = env.run(&["mcp", "test"]).await;
    assert_eq!(tested.code, Some(0), "{tested:?}");
    env
}

pub(crate) async fn booking() -> Server {
    serve(vec![calls("mcp__inn__book", &json!({})), says("Booked.")]).await
}

/// Answers the form: once what does not fit, once with a number, and once with Enter alone.
async fn fill(person: &mut Person) {
    person.sees("How shall I book?").await;
    person.sees("room: Which room").await;
    person.types_behind(": no) ").await;
    person.press("2").await;
    person.press(ENTER).await;
    person.sees("nights").await;
    person.types_behind(": no) ").await;
    person.press("0").await;
    person.press(ENTER).await;
    person.sees("less than the minimum").await;
    person.types_behind(": no) ").await;
    person.press("3").await;
    person.press(ENTER).await;
    person.sees("breakfast").await;
    person.types_behind(": no) ").await;
    person.press(ENTER).await;
    person.sees("Booked.").await;
}

/// Returns the answers to the server.
pub(crate) fn answered(server: &Server) -> Value {
    let told = messages(server, 1).pop().unwrap();
    serde_json::from_str(told.1.as_str().unwrap()).unwrap()
}

pub(crate) fn filled() -> Value {
    let content = json!({"room": "double", "nights": 3, "breakfast": true});
    json!({"action": "accept", "content": content})
}

#[tokio::test]
async fn values_that_a_server_asks_for_are_typed_at_the_terminal_of_ask() {
    let (env, server) = (with_server().await, booking().await);
    let url = server.url("/v1");
    let args = ask_args(&url, &["--yolo", "x"]);
    let mut person = Person::start(&env, &args);
    fill(&mut person).await;
    assert_eq!(person.code().await, Some(0));
    assert_eq!(answered(&server), filled());
}

#[tokio::test]
async fn values_that_a_server_asks_for_are_typed_at_the_prompt() {
    let (env, server) = (with_server().await, booking().await);
    let mut person = start(&env, &server, &["--yolo"]);
    person.prompt("agent").await;
    person.enter("book a room").await;
    fill(&mut person).await;
    person.prompt("agent").await;
    leave(person).await;
    assert_eq!(answered(&server), filled());
}

#[tokio::test]
async fn a_person_who_gives_no_value_declines_and_the_call_goes_on() {
    let (env, server) = (with_server().await, booking().await);
    let mut person = start(&env, &server, &["--yolo"]);
    person.prompt("agent").await;
    person.enter("book a room").await;
    person.types_behind(": no) ").await;
    person.press("/no").await;
    person.press(ENTER).await;
    person.sees("Booked.").await;
    person.prompt("agent").await;
    leave(person).await;
    assert_eq!(answered(&server), json!({"action": "decline"}));
}

#[tokio::test]
async fn a_prompt_of_a_server_is_asked_at_the_prompt() {
    let env = with_server().await;
    let server = serve(vec![says("Hello!")]).await;
    let mut person = start(&env, &server, &[]);
    person.prompt("agent").await;
    person.enter("/inn:greet Ada").await;
    person.sees("Hello!").await;
    person.prompt("agent").await;
    person.enter("/inn:greet").await;
    person.sees("who").await;
    person.prompt("agent").await;
    leave(person).await;
    let asked = said(&server, 0);
    assert!(
        asked.iter().any(|it| it.contains("Greet Ada warmly")),
        "{asked:?}"
    );
    assert_eq!(
        server.requests().len(),
        1,
        "a prompt without its argument asks nobody"
    );
}

#[tokio::test]
async fn a_prompt_of_a_server_is_asked_on_the_screen() {
    let env = with_server().await;
    let server = serve(vec![says("Hello!")]).await;
    let mut person = open(&env, &server, &[]).await;
    person.press("/inn:greet Ada\r").await;
    person.shows("› Greet Ada warmly").await;
    person.shows("Hello!").await;
    person.press("/inn:greet\r").await;
    person.shows("it takes: who").await;
    person.press("/nosuch:greet\r").await;
    person.shows("there is no server `nosuch`").await;
    leave(person).await;
    assert_eq!(server.requests().len(), 1);
}
