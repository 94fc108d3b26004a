//! The budget of the `default` profile and the answer that it holds back.

use crate::support::{Bench, Ran, bodies, echo, endless, functions};
use rondo::types::ErrorClass;
use rondo::{EventBody, Limits, StopReason, Tool, ToolErrorCode};
use rondo_testkit::{CallScript, ReplyScript, Response, Server, openai};
use serde_json::{Value, json};
use std::time::Duration;

fn bench(server: &Server) -> Bench {
    Bench::chat("default", server).system(&["be brief"])
}

fn answer(text: &str) -> Response {
    openai::streamed(&ReplyScript::text([text]))
}

/// A reply of calls that all differ, so that no loop is seen in them.
fn looks<const N: usize>(at: [u32; N]) -> Response {
    let call = |at: u32| CallScript::new(&format!("c{at}"), "look", &json!({"at": at}));
    openai::streamed(&ReplyScript::calls(at.map(call)))
}

async fn ask(responses: Vec<Response>, change: impl FnOnce(&mut Limits)) -> (Server, Ran) {
    let server = Server::start(responses).await;
    let ran = bench(&server)
        .tool(echo("look"))
        .limits(change)
        .ask("q")
        .await;
    (server, ran)
}

#[tokio::test]
async fn the_last_step_is_a_request_without_tools_for_an_answer() {
    let responses = vec![looks([1]), looks([2]), answer("what I have")];
    let (server, ran) = ask(responses, |limits| limits.max_steps = 3).await;
    assert_eq!(ran.outcome.text, "what I have");
    assert_eq!(ran.outcome.stop_reason, StopReason::MaxSteps);
    assert!(ran.outcome.degraded && ran.outcome.answered);
    assert_eq!((ran.outcome.steps, ran.outcome.tool_calls), (3, 2));
    let sent = bodies(&server);
    assert_eq!(sent.len(), 3);
    assert_eq!(sent[1]["tools"], functions(&[echo("look").spec()]));
    assert_eq!(sent[2].get("tools"), None);
    let asked = sent[2]["messages"].as_array().unwrap().last().unwrap();
    assert_eq!(asked["role"], "user");
    let text = asked["content"].as_str().unwrap();
    assert!(text.contains("the limit of 3 steps was reached"), "{text}");
}

#[tokio::test]
async fn the_tokens_of_the_last_request_are_counted_too() {
    let look = ReplyScript::calls([CallScript::new("c", "look", &json!({"at": 1}))]);
    let responses = vec![
        openai::streamed(&look.usage(100, 10)),
        openai::streamed(&ReplyScript::text(["so far"]).usage(130, 4)),
    ];
    let (_server, ran) = ask(responses, |limits| limits.max_steps = 2).await;
    assert_eq!(ran.outcome.stop_reason, StopReason::MaxSteps);
    let usage = ran.outcome.usage;
    assert_eq!((usage.input, usage.output), (230, 14));
}

#[tokio::test]
async fn an_answer_before_the_last_step_is_complete() {
    let responses = vec![looks([1]), looks([2]), answer("all of it")];
    let (server, ran) = ask(responses, |limits| limits.max_steps = 4).await;
    assert_eq!(ran.outcome.stop_reason, StopReason::Complete);
    assert!(!ran.outcome.degraded);
    assert_eq!(bodies(&server).len(), 3);
}

#[tokio::test]
async fn one_step_is_an_answer_without_tools() {
    let (server, ran) = ask(vec![answer("from memory")], |limits| limits.max_steps = 1).await;
    assert_eq!(ran.outcome.text, "from memory");
    let sent = bodies(&server);
    assert_eq!((sent.len(), sent[0].get("tools")), (1, None));
}

#[tokio::test]
async fn calls_in_the_last_reply_are_not_run_and_the_findings_answer() {
    let responses = vec![looks([1]), looks([2])];
    let (server, ran) = ask(responses, |limits| limits.max_steps = 2).await;
    assert_eq!(ran.codes(), [None, Some(ToolErrorCode::NotRun)]);
    assert_eq!(ran.outcome.stop_reason, StopReason::MaxSteps);
    assert!(!ran.outcome.answered);
    assert!(
        ran.outcome.text.contains(r#"look did {"at":1}"#),
        "{}",
        ran.outcome.text
    );
    assert_eq!(bodies(&server).len(), 2);
}

#[tokio::test]
async fn a_last_request_that_fails_leaves_the_findings_and_the_reason() {
    let refused = openai::error(400, "invalid_request_error", "no");
    let (_server, ran) = ask(vec![looks([1]), refused], |limits| limits.max_steps = 2).await;
    assert_eq!(ran.outcome.stop_reason, StopReason::MaxSteps);
    assert_eq!(ran.error_class(), Some(ErrorClass::BadRequest));
    assert!(ran.outcome.text.contains(r#"look did {"at":1}"#));
}

#[tokio::test]
async fn calls_of_a_turn_are_counted_one_by_one() {
    let replies = || vec![looks([1, 2]), looks([3, 4]), answer("done")];
    for (max, codes, reason) in [
        (
            3,
            vec![None, None, None, Some(ToolErrorCode::NotRun)],
            StopReason::MaxToolCalls,
        ),
        (4, vec![None; 4], StopReason::Complete),
        (5, vec![None; 4], StopReason::Complete),
    ] {
        let (server, ran) = ask(replies(), |limits| limits.max_tool_calls = Some(max)).await;
        assert_eq!(
            (ran.codes(), ran.outcome.stop_reason),
            (codes, reason),
            "{max}"
        );
        assert_eq!(ran.outcome.text, "done", "{max}");
        assert_eq!(bodies(&server).len(), 3, "{max}");
    }
}

#[tokio::test]
async fn calls_past_those_of_one_reply_are_left_out_and_said_so() {
    let responses = vec![looks([1, 2, 3]), answer("done")];
    let (server, ran) = ask(responses, |limits| limits.max_tool_calls_per_step = Some(2)).await;
    assert_eq!(ran.codes(), [None, None, Some(ToolErrorCode::NotRun)]);
    assert_eq!(ran.outcome.stop_reason, StopReason::Complete);
    let told = &bodies(&server)[1]["messages"][5]["content"];
    assert!(
        told.as_str().unwrap().contains("only the first 2 calls"),
        "{told}"
    );
}

#[tokio::test]
async fn a_turn_that_has_no_tokens_for_another_request_makes_none() {
    let call = CallScript::new("c", "look", &json!({}));
    let costly = openai::streamed(&ReplyScript::calls([call]).usage(4_800, 50));
    let (server, ran) = ask(vec![costly], |limits| limits.max_tokens_total = Some(5_000)).await;
    assert_eq!(ran.outcome.stop_reason, StopReason::MaxTokens);
    assert_eq!(bodies(&server).len(), 1);
    assert!(
        ran.outcome.text.contains("look did {}"),
        "{}",
        ran.outcome.text
    );
}

#[tokio::test]
async fn a_deadline_still_leaves_time_for_an_answer() {
    let dig = openai::streamed(&ReplyScript::calls([CallScript::new(
        "c",
        "dig",
        &json!({}),
    )]));
    let server = Server::start([dig, answer("so far")]).await;
    let ran = bench(&server)
        .tool(endless("dig"))
        .limits(|limits| limits.turn_timeout = Some(Duration::from_secs(60)))
        .ask_beside("q", async |user| {
            user.skips_the_call(|event| matches!(event, EventBody::ToolOutputDelta { .. }))
                .await;
        })
        .await;
    assert!(ran.outcome.answered);
    assert_eq!(ran.outcome.text, "so far");
    assert_eq!(ran.codes(), [Some(ToolErrorCode::Timeout)]);
    // A quarter is held back for the answer, and the call is told to end in time for that.
    assert!((39_000..45_000).contains(&ran.outcome.elapsed_ms));
}

#[tokio::test]
async fn a_call_that_keeps_bringing_the_same_is_noticed_withheld_and_ended() {
    let same = || {
        openai::streamed(&ReplyScript::calls([CallScript::new(
            "c",
            "look",
            &json!({}),
        )]))
    };
    let responses = vec![same(), same(), same(), same(), answer("enough")];
    let server = Server::start(responses).await;
    let ran = bench(&server)
        .tools([echo("look"), echo("other")])
        .ask("q")
        .await;
    assert_eq!(ran.outcome.stop_reason, StopReason::NoProgress);
    assert_eq!(ran.outcome.text, "enough");
    let offered: Vec<usize> = bodies(&server)
        .iter()
        .map(|sent| sent["tools"].as_array().map_or(0, Vec::len))
        .collect();
    assert_eq!(offered, [2, 2, 2, 1, 0]);
}

#[tokio::test]
async fn an_answer_that_does_not_fit_its_schema_is_asked_for_again() {
    let schema = json!({
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "required": ["n"],
        "additionalProperties": false,
    });
    let responses = [
        answer("forty-two"),
        answer(r#"{"n": "x"}"#),
        answer(r#"{"n": 42}"#),
    ];
    let server = Server::start(responses).await;
    let mut bench = bench(&server);
    bench.response_schema = Some(schema.clone());
    let ran = bench.ask("q").await;
    assert_eq!(ran.outcome.text, r#"{"n": 42}"#);
    assert_eq!(ran.outcome.stop_reason, StopReason::Complete);
    let sent = bodies(&server);
    assert_eq!(sent.len(), 3);
    for body in &sent {
        assert_eq!(body["response_format"]["json_schema"]["schema"], schema);
    }
    let roles: Vec<&Value> = sent[2]["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| &message["role"])
        .collect();
    assert_eq!(
        roles,
        ["system", "user", "assistant", "user", "assistant", "user"]
    );
}
