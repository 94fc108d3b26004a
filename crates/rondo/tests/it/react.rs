//! Text ReAct: calls in tags over OpenAI Chat Completions, ten steps.

use crate::support::{Bench, FnTool, Ran, bodies, tool};
use rondo::{Endpoint, EventBody, StopReason, ToolErrorCode, ToolOutcome};
use rondo_testkit::{ReplyScript, Response, Server, openai};
use serde_json::{Value, json};

const THOUGHT: &str = "I need to check the files.\n\n";
const LAST_WORDS: &str = "I tried but couldn't finish";

fn execute_command() -> FnTool {
    let parameters = json!({
        "type": "object",
        "properties": {"command": {"type": "string", "description": "The command to run"}},
        "required": ["command"],
    });
    tool("execute_command", parameters, |arguments| {
        match arguments["command"].as_str().unwrap_or_default() {
            "false" => ToolOutcome::error(ToolErrorCode::Failed, "exit status 1"),
            command => ToolOutcome::text(format!("ran {command}")),
        }
    })
}

fn block(command: &str) -> String {
    let arguments = json!({"command": command});
    format!(
        "<tool_code>\n<name>execute_command</name>\n<parameters>\n{arguments}\n</parameters>\n</tool_code>"
    )
}

/// A reply in pieces that cut every tag.
fn says(text: &str) -> Response {
    let chars: Vec<char> = text.chars().collect();
    let pieces = chars
        .chunks(7)
        .map(|piece| piece.iter().collect::<String>());
    openai::streamed(&ReplyScript::text(pieces))
}

async fn ask(replies: &[&str]) -> (Vec<Value>, Ran) {
    let responses: Vec<Response> = replies.iter().map(|text| says(text)).collect();
    let server = Server::start(responses).await;
    let mut bench = Bench::chat("react", &server).tool(execute_command());
    bench.endpoint = Endpoint {
        streaming: true,
        ..Endpoint::new("local", "react", server.url("/v1"))
    };
    let ran = bench.ask("What is here?").await;
    (bodies(&server), ran)
}

fn last_content(body: &Value) -> &str {
    let last = body["messages"].as_array().unwrap().last().unwrap();
    assert_eq!(last["role"], "user");
    last["content"].as_str().unwrap()
}

#[tokio::test]
async fn my_13_the_prompt_and_the_history_are_built_first() {
    let (bodies, _) = ask(&["Nothing."]).await;
    let messages = bodies[0]["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 2);
    let system = messages[0]["content"].as_str().unwrap();
    assert!(system.contains("<tool_definitions>\n<tool>\n    <name>execute_command</name>"));
    assert_eq!(
        messages[1],
        json!({"role": "user", "content": "What is here?"})
    );
    assert_eq!(bodies[0].get("tools"), None);
}

#[tokio::test]
async fn my_14_my_18_ten_steps_bound_the_loop_and_then_comes_a_generic_sentence() {
    for (calls, answered) in [(9, true), (10, false)] {
        let mut replies: Vec<String> = (0..calls).map(|n| block(&format!("step {n}"))).collect();
        replies.push("Done.".to_owned());
        let replies: Vec<&str> = replies.iter().map(String::as_str).collect();
        let (bodies, ran) = ask(&replies).await;
        assert_eq!(bodies.len(), 10);
        if answered {
            assert_eq!(ran.outcome.text, "Done.");
        } else {
            assert_eq!(ran.outcome.stop_reason, StopReason::MaxSteps);
            assert!(
                ran.outcome.text.starts_with(LAST_WORDS),
                "{}",
                ran.outcome.text
            );
        }
    }
}

#[tokio::test]
async fn my_15_a_call_is_announced_run_reported_and_appended() {
    let written = format!("{THOUGHT}{}", block("ls -la"));
    let (bodies, ran) = ask(&[&written, "Files."]).await;
    let places = [
        ran.events.iter().position(|event| {
            matches!(event, EventBody::ToolCallPending { name, arguments, .. }
                if name == "execute_command" && *arguments == json!({"command": "ls -la"}))
        }),
        ran.events
            .iter()
            .position(|event| matches!(event, EventBody::ToolCallStarted { .. })),
        ran.events
            .iter()
            .position(|event| matches!(event, EventBody::ToolCallFinished { .. })),
    ];
    assert!(
        places.iter().all(Option::is_some) && places.is_sorted(),
        "{places:?}"
    );
    let messages = &bodies[1]["messages"];
    assert_eq!(
        messages[2],
        json!({"role": "assistant", "content": written})
    );
    let observation = last_content(&bodies[1]);
    let element = "\n<observation>\nran ls -la\n</observation>\n";
    assert!(observation.contains(element), "{observation}");
    assert_eq!(ran.shown(), format!("{THOUGHT}Files."));
}

#[tokio::test]
async fn my_16_a_reply_without_a_call_ends_the_run() {
    let (bodies, ran) = ask(&["<final_answer>Nothing `<tool_code>`.</final_answer>"]).await;
    assert_eq!(bodies.len(), 1);
    assert_eq!(ran.outcome.stop_reason, StopReason::Complete);
    assert_eq!(ran.outcome.text, "Nothing `<tool_code>`.");
}

#[tokio::test]
async fn my_17_a_tools_failure_becomes_an_observation_and_the_model_can_try_again() {
    let unknown = block("x").replace("execute_command", "fly");
    let broken = block("x").replace("\"x\"", "7 7");
    let cut = block("x").replace("\"}\n</parameters>\n</tool_code>", "");
    for (reply, code, said) in [
        (block("false"), ToolErrorCode::Failed, "exit status 1"),
        (unknown, ToolErrorCode::UnknownTool, "fly"),
        (broken, ToolErrorCode::InvalidArgs, "invalid_args"),
        (cut, ToolErrorCode::InvalidArgs, "invalid_args"),
    ] {
        let (bodies, ran) = ask(&[&reply, &block("true"), "Done."]).await;
        assert_eq!(ran.codes(), [Some(code), None], "{reply}");
        assert!(
            last_content(&bodies[1]).contains(said),
            "{}",
            last_content(&bodies[1])
        );
        assert_eq!(ran.outcome.text, "Done.");
    }
}

#[tokio::test]
async fn only_the_first_of_several_calls_runs_and_the_model_is_told() {
    let invented = format!(
        "{}\n<observation>\nroot\n</observation>\n{}",
        block("id"),
        block("rm x")
    );
    let (bodies, ran) = ask(&[&invented, "Done."]).await;
    assert_eq!(ran.results(), [(None, "ran id".to_owned())]);
    assert!(last_content(&bodies[1]).contains("only the first was run"));
    assert_eq!(bodies[1]["messages"][2]["content"], block("id"));
}
