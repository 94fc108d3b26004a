//! The shell's agent: `exec`, ten steps, streaming.

use crate::support::{Bench, FnTool, Ran, bodies, chunks, endless, functions, tool};
use rondo::{EventBody, StopReason, Tool, ToolErrorCode, ToolOutcome};
use rondo_testkit::{
    CallScript, Gate, ReplyScript, Response, Script, Server, Step, faults, openai,
};
use serde_json::{Value, json};
use std::collections::HashMap;

const PROMPT: &str =
    "You are gsh, an AI-powered shell. You can execute commands using the exec tool.";

fn exec() -> FnTool {
    let parameters = json!({
        "type": "object",
        "properties": {"command": {"type": "string", "description": "The shell command to execute"}},
        "required": ["command"],
    });
    tool("exec", parameters, |arguments| {
        let command = arguments["command"].as_str().unwrap_or_default();
        let exit_code = i32::from(command == "false");
        ToolOutcome::json(json!({"stdout": format!("ran {command}\n"), "exitCode": exit_code}))
    })
}

fn run(id: &str, command: &str) -> CallScript {
    CallScript::new(id, "exec", &json!({"command": command}))
}

fn answer(text: &str) -> Response {
    openai::streamed(&ReplyScript::text([text]))
}

fn calls(calls: impl IntoIterator<Item = CallScript>) -> Response {
    openai::streamed(&ReplyScript::calls(calls))
}

fn bench(server: &Server) -> Bench {
    Bench::chat("shell", server)
}

async fn ask(responses: Vec<Response>) -> (Server, Ran) {
    let server = Server::start(responses).await;
    let ran = bench(&server).tool(exec()).ask("go").await;
    (server, ran)
}

fn called(ids_and_commands: &[(&str, &str)]) -> Value {
    let calls: Vec<Value> = ids_and_commands
        .iter()
        .map(|(id, command)| {
            let arguments = json!({"command": command}).to_string();
            json!({"id": id, "type": "function", "function": {"name": "exec", "arguments": arguments}})
        })
        .collect();
    json!({"role": "assistant", "content": null, "tool_calls": calls})
}

fn result(id: &str, command: &str) -> Value {
    let content = json!({"stdout": format!("ran {command}\n"), "exitCode": 0}).to_string();
    json!({"role": "tool", "tool_call_id": id, "content": content})
}

/// The design's own events, made of ours.
fn stream_events(ran: &Ran) -> Vec<Value> {
    let mut tools = HashMap::new();
    let mut out = Vec::new();
    for event in &ran.events {
        match event {
            EventBody::TextDelta { text } => out.push(json!({"Type": "content", "Content": text})),
            EventBody::ToolCallPending {
                id,
                name,
                arguments,
            } => {
                tools.insert(id.clone(), json!({"Name": name, "Arguments": arguments}));
            }
            EventBody::ToolCallStarted { id } => {
                out.push(json!({"Type": "tool_start", "Tool": tools[id]}));
            }
            EventBody::ToolCallFinished { id, result, .. } => {
                let mut tool = tools[id].clone();
                tool["Result"] = match result {
                    Value::String(text) => json!(text),
                    other => json!(other.to_string()),
                };
                out.push(json!({"Type": "tool_end", "Tool": tool}));
            }
            _ => {}
        }
    }
    out
}

#[tokio::test]
async fn gs_5_gs_7_gs_8_the_loop_goes_on_until_there_are_no_calls() {
    let (server, ran) = ask(vec![
        calls([run("a", "ls"), run("b", "pwd")]),
        calls([run("c", "date")]),
        answer("done"),
    ])
    .await;
    assert_eq!(ran.outcome.text, "done");
    let first = [
        json!({"role": "system", "content": PROMPT}),
        json!({"role": "user", "content": "go"}),
    ];
    let second = [
        called(&[("a", "ls"), ("b", "pwd")]),
        result("a", "ls"),
        result("b", "pwd"),
    ];
    let third = [called(&[("c", "date")]), result("c", "date")];
    let sent: Vec<Value> = bodies(&server)
        .into_iter()
        .map(|body| body["messages"].clone())
        .collect();
    assert_eq!(
        sent,
        [
            json!(first),
            json!([&first[..], &second[..]].concat()),
            json!([&first[..], &second[..], &third[..]].concat()),
        ]
    );
    let tracked: Vec<usize> = ran
        .outcome
        .transcript
        .iter()
        .map(|it| it.tool_calls().count())
        .collect();
    assert_eq!(tracked, [0, 2, 0, 1, 0, 0]);
}

#[tokio::test]
async fn gs_6_text_is_shown_while_the_reply_still_comes_and_tools_are_offered() {
    let gate = Gate::new();
    let mut slow = chunks([
        (json!({"role": "assistant", "content": "Let me "}), None),
        (json!({"content": "look."}), None),
    ])
    .body_bytes();
    slow.truncate(slow.len() - "data: [DONE]\n\n".len());
    let rest = openai::frames(&ReplyScript::calls([run("a", "ls")]));
    let mut first = Response::sse([slow]).step(Step::Gate(gate.clone()));
    for frame in rest {
        first = first.send(frame);
    }
    let server = Server::start([first, answer("It is empty.")]).await;
    let ran = bench(&server)
        .tool(exec())
        .ask_beside("go", async |user| {
            user.reads("Let me look.").await;
            gate.open();
        })
        .await;
    assert_eq!(ran.outcome.text, "It is empty.");
    assert_eq!(ran.shown(), "Let me look.It is empty.");
    let sent = bodies(&server);
    assert_eq!(sent[0]["stream"], json!(true));
    assert_eq!(sent[1]["messages"][2]["content"], "Let me look.");
}

#[tokio::test]
async fn gs_8_the_next_question_is_asked_with_all_that_was_said() {
    let server = Server::start([calls([run("a", "ls")]), answer("one"), answer("two")]).await;
    let first = bench(&server).tool(exec()).ask("go").await;
    let second = bench(&server).tool(exec()).after(first.outcome.transcript);
    assert_eq!(second.ask("and then?").await.outcome.text, "two");
    assert_eq!(
        bodies(&server)[2]["messages"],
        json!([
            {"role": "system", "content": PROMPT},
            {"role": "user", "content": "go"},
            called(&[("a", "ls")]),
            result("a", "ls"),
            {"role": "assistant", "content": "one"},
            {"role": "user", "content": "and then?"},
        ])
    );
}

#[tokio::test]
async fn gs_17_the_agents_tools_are_in_every_request() {
    let (server, ran) = ask(vec![calls([run("a", "ls")]), answer("ok")]).await;
    for sent in bodies(&server) {
        assert_eq!(sent["tools"], functions(&[exec().spec()]));
    }
    let Some(EventBody::Init(init)) = ran.events.first() else {
        panic!("the first event is init")
    };
    assert!(init.tools.iter().eq(["exec"]), "{:?}", init.tools);
}

#[tokio::test]
async fn gs_18_the_designs_events_come_out_of_ours() {
    let looking = ReplyScript::calls([run("a", "ls")]).saying("Looking. ");
    let (_server, ran) = ask(vec![openai::streamed(&looking), answer("Empty.")]).await;
    let arguments = json!({"command": "ls"});
    assert_eq!(
        stream_events(&ran),
        [
            json!({"Type": "content", "Content": "Looking. "}),
            json!({"Type": "tool_start", "Tool": {"Name": "exec", "Arguments": arguments}}),
            json!({"Type": "tool_end", "Tool": {
                "Name": "exec",
                "Arguments": arguments,
                "Result": r#"{"stdout":"ran ls\n","exitCode":0}"#,
            }}),
            json!({"Type": "content", "Content": "Empty."}),
        ]
    );
}

#[tokio::test]
async fn gs_4_gs_t_the_tenth_request_is_the_last_and_the_conversation_is_kept() {
    let server = Server::start(Script::repeat(calls([run("a", "ls")]))).await;
    let ran = bench(&server).tool(exec()).ask("go").await;
    assert_eq!(bodies(&server).len(), 10);
    assert_eq!(ran.outcome.stop_reason, StopReason::MaxSteps);
    assert!(ran.outcome.degraded, "a limit is no silent success");
    assert_eq!(ran.outcome.transcript.len(), 1 + 2 * 10);

    let mut responses = vec![calls([run("a", "ls")]); 9];
    responses.push(answer("ok"));
    let (_server, ran) = ask(responses).await;
    assert_eq!(
        (ran.outcome.steps, ran.outcome.stop_reason),
        (10, StopReason::Complete)
    );
}

#[tokio::test]
async fn gs_13_gs_t_a_command_that_fails_is_a_result() {
    let (server, ran) = ask(vec![calls([run("a", "false")]), answer("it failed")]).await;
    assert_eq!(ran.codes(), [None]);
    assert_eq!(
        bodies(&server)[1]["messages"][3]["content"],
        r#"{"stdout":"ran false\n","exitCode":1}"#
    );
    assert_eq!(ran.outcome.text, "it failed");
}

#[tokio::test]
async fn gs_t_a_command_that_takes_too_long_is_ended_and_the_turn_goes_on() {
    let server = Server::start([calls([run("a", "sleep 1h")]), answer("too slow")]).await;
    let ran = bench(&server)
        .tool(endless("exec"))
        .ask_beside("go", async |user| {
            user.skips_the_call(|event| matches!(event, EventBody::ToolOutputDelta { .. }))
                .await;
        })
        .await;
    assert_eq!(ran.codes(), [Some(ToolErrorCode::Timeout)]);
    assert_eq!(ran.outcome.text, "too slow");
    assert!((59_000..70_000).contains(&ran.outcome.elapsed_ms));
}

#[tokio::test]
async fn gs_t_a_cancel_ends_the_request_or_the_command_and_keeps_the_conversation() {
    let server = Server::start(faults::zero_byte_stall()).await;
    let ran = bench(&server)
        .ask_beside("go", async |user| {
            server.request(0).await;
            user.handle.cancel();
        })
        .await;
    assert_eq!(ran.outcome.stop_reason, StopReason::Cancelled);
    server.disconnected(0).await;

    let server = Server::start([calls([run("a", "top")])]).await;
    let ran = bench(&server)
        .tool(endless("exec"))
        .ask_beside("go", async |user| {
            user.sees(|event| matches!(event, EventBody::ToolOutputDelta { .. }))
                .await;
            user.handle.cancel();
        })
        .await;
    assert_eq!(ran.outcome.stop_reason, StopReason::Cancelled);
    assert_eq!(ran.codes(), [Some(ToolErrorCode::Cancelled)]);
    assert_eq!(ran.outcome.transcript.len(), 3);
}

#[tokio::test]
async fn output_of_any_bytes_is_json_for_the_model() {
    let bytes = "\u{1b}[31mred\u{1b}[0m \u{0}\u{7f}\"\\ \u{2028}";
    let noisy = tool("exec", json!({"type": "object"}), move |_| {
        ToolOutcome::json(json!({"stdout": bytes, "exitCode": 0}))
    });
    let server = Server::start([calls([run("a", "ls --color")]), answer("ok")]).await;
    bench(&server).tool(noisy).ask("go").await;
    let sent = bodies(&server).remove(1);
    let content = sent["messages"][3]["content"].as_str().unwrap();
    let read: Value = serde_json::from_str(content).unwrap();
    assert_eq!(read, json!({"stdout": bytes, "exitCode": 0}));
}

#[tokio::test]
async fn a_failed_request_keeps_the_commands_that_ran() {
    let failed = openai::error(500, "server_error", "down");
    let (_server, ran) = ask(vec![calls([run("a", "ls")]), failed]).await;
    assert_eq!(ran.outcome.stop_reason, StopReason::Error);
    assert_eq!(ran.outcome.transcript.len(), 3);
    assert!(ran.outcome.text.contains("ran ls"), "{}", ran.outcome.text);
}
