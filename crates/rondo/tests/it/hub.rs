//! The chat gateway's loop: two hundred steps, parallel tools, three transport retries.

use crate::log::logged;
use crate::support::{Bench, FnTool, Ran, bodies, echo, endless, functions};
use rondo::types::{ErrorClass, Role};
use rondo::{Auth, EventBody, Secret, StopReason, Tool, ToolErrorCode, ToolOutcome};
use rondo_testkit::{CallScript, ReplyScript, Response, Script, Server, faults, openai};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Barrier;

const MAX_ITERATIONS: usize = 200;

fn bench(server: &Server) -> Bench {
    Bench::chat("hub", server)
}

pub(crate) fn answer(text: &str) -> Response {
    openai::whole(&ReplyScript::text([text]))
}

pub(crate) fn calls(calls: impl IntoIterator<Item = CallScript>) -> Response {
    openai::whole(&ReplyScript::calls(calls))
}

pub(crate) fn call(id: &str, name: &str) -> CallScript {
    CallScript::new(id, name, &json!({}))
}

async fn ask(responses: Vec<Response>, tools: Vec<FnTool>) -> (Server, Ran) {
    let server = Server::start(responses).await;
    let ran = bench(&server).tools(tools).ask("hi").await;
    (server, ran)
}

/// The numbers of the iterations, as a listener sees them.
fn steps(ran: &Ran) -> Vec<u32> {
    let steps = ran.events.iter().filter_map(|event| match event {
        EventBody::StepStarted { step } => Some(*step),
        _ => None,
    });
    steps.collect()
}

#[tokio::test]
async fn hub_1_the_count_begins_anew_with_each_message() {
    let server = Server::start([
        calls([call("a", "look")]),
        answer("one"),
        calls([call("b", "look")]),
        answer("two"),
    ])
    .await;
    let first = bench(&server).tool(echo("look")).ask("hi").await;
    let second = bench(&server)
        .tool(echo("look"))
        .after(first.outcome.transcript.clone());
    let second = second.ask("again").await;
    for ran in [&first, &second] {
        assert_eq!((steps(ran), ran.outcome.steps), (vec![1, 2], 2));
    }
}

#[tokio::test]
async fn hub_3_the_model_gets_the_context_in_order_and_the_tools() {
    let layers = ["soul", "agents", "memory", "skills", "tools"];
    let server = Server::start([answer("one"), answer("two")]).await;
    let first = bench(&server)
        .system(&layers)
        .tool(echo("look"))
        .ask("hi")
        .await;
    let second = bench(&server).system(&layers).tool(echo("look"));
    second.after(first.outcome.transcript).ask("again").await;
    let sent = |messages: &[Value]| {
        json!({
            "model": "m",
            "messages": messages,
            "tools": functions(&[echo("look").spec()]),
        })
    };
    let system =
        json!({"role": "system", "content": "soul\n\nagents\n\nmemory\n\nskills\n\ntools"});
    let said = |role: &str, content: &str| json!({"role": role, "content": content});
    assert_eq!(
        bodies(&server),
        [
            sent(&[system.clone(), said("user", "hi")]),
            sent(&[
                system,
                said("user", "hi"),
                said("assistant", "one"),
                said("user", "again")
            ]),
        ]
    );
}

#[tokio::test]
async fn hub_4_hub_t_a_text_reply_ends_the_turn_and_is_the_answer() {
    let (server, ran) = ask(vec![answer("hello")], vec![echo("look")]).await;
    assert_eq!(ran.shown(), "hello");
    let outcome = &ran.outcome;
    assert_eq!(outcome.text, "hello");
    assert_eq!(outcome.stop_reason, StopReason::Complete);
    assert!(outcome.answered && !outcome.degraded);
    assert_eq!((outcome.steps, outcome.tool_calls), (1, 0));
    assert_eq!(bodies(&server).len(), 1);
    let said: Vec<(Role, String)> = outcome
        .transcript
        .iter()
        .map(|message| (message.role, message.text()))
        .collect();
    let expected = [(Role::User, "hi"), (Role::Assistant, "hello")];
    assert_eq!(said, expected.map(|(role, text)| (role, text.to_owned())));
}

#[tokio::test]
async fn hub_5_hub_14_calls_of_one_reply_overlap_and_results_keep_their_order() {
    let both = Arc::new(Barrier::new(2));
    let meets = |name: &'static str, yields: usize| {
        let both = Arc::clone(&both);
        FnTool::running(name, json!({"type": "object"}), move |_| {
            let both = Arc::clone(&both);
            Box::pin(async move {
                // Neither call can end unless the other runs too.
                both.wait().await;
                for _ in 0..yields {
                    tokio::task::yield_now().await;
                }
                ToolOutcome::text(name)
            })
        })
        .shared()
    };
    let tools = vec![meets("slow", 50), meets("quick", 0)];
    let batch = calls([call("s", "slow"), call("q", "quick")]);
    let (server, ran) = ask(vec![batch, answer("met")], tools).await;
    assert_eq!(ran.outcome.text, "met");
    let sent = bodies(&server).remove(1);
    let results: Vec<(&Value, &Value)> = (2..4)
        .map(|at| &sent["messages"][at])
        .map(|message| (&message["tool_call_id"], &message["content"]))
        .collect();
    assert_eq!(
        results,
        [
            (&json!("s"), &json!("slow")),
            (&json!("q"), &json!("quick"))
        ]
    );
}

#[tokio::test]
async fn hub_5_a_batch_counts_once_and_eight_of_its_calls_run_at_once() {
    let all = Arc::new(Barrier::new(8));
    let shared = Arc::clone(&all);
    let meet = FnTool::running("meet", json!({"type": "object"}), move |_| {
        let all = Arc::clone(&shared);
        Box::pin(async move {
            // No call can end unless all eight run.
            all.wait().await;
            ToolOutcome::text("met")
        })
    });
    let batch = calls((0..8).map(|at| call(&at.to_string(), "meet")));
    let again = calls([call("x", "look"), call("y", "look")]);
    let tools = vec![meet.shared(), echo("look")];
    let server = Server::start([batch, again, answer("done")]).await;
    let ran = bench(&server)
        .tools(tools)
        .limits(|limits| limits.tool_timeout = Some(Duration::from_secs(10)))
        .ask("hi")
        .await;
    assert_eq!(ran.codes(), [None; 10]);
    assert_eq!(ran.outcome.text, "done");
    assert_eq!(steps(&ran), [1, 2, 3]);
    assert_eq!((ran.outcome.steps, ran.outcome.tool_calls), (3, 10));
    assert_eq!(bodies(&server).len(), 3);
}

#[tokio::test]
async fn hub_6_hub_15_hub_t_results_follow_their_calls_and_the_loop_goes_on() {
    let responses = vec![
        calls([call("a", "look"), call("b", "look")]),
        openai::whole(&ReplyScript::calls([call("c", "look")]).saying("One more.")),
        answer("done"),
    ];
    let (server, ran) = ask(responses, vec![echo("look")]).await;
    assert_eq!(ran.outcome.text, "done");
    let called = |content: Value, ids: &[&str]| {
        let calls: Vec<Value> = ids
            .iter()
            .map(|id| json!({"id": id, "type": "function", "function": {"name": "look", "arguments": "{}"}}))
            .collect();
        json!({"role": "assistant", "content": content, "tool_calls": calls})
    };
    let result = |id: &str| json!({"role": "tool", "tool_call_id": id, "content": "look did {}"});
    assert_eq!(
        bodies(&server)[2]["messages"],
        json!([
            {"role": "user", "content": "hi"},
            called(Value::Null, &["a", "b"]),
            result("a"),
            result("b"),
            called(json!("One more."), &["c"]),
            result("c"),
        ])
    );
}

#[tokio::test]
async fn hub_7_hub_9_hub_t_the_guard_stops_at_two_hundred_and_hands_over_what_there_is() {
    let server = Server::start(Script::repeat(calls([call("a", "look")]))).await;
    let ran = bench(&server).tool(echo("look")).ask("loop").await;
    assert_eq!(server.requests().len(), MAX_ITERATIONS);
    assert_eq!(ran.outcome.stop_reason, StopReason::MaxSteps);
    let text = &ran.outcome.text;
    assert!(
        text.starts_with("Max iterations reached\n\nPartial results:\n"),
        "{text}"
    );
    assert!(text.contains("look did {}"));
    assert_eq!(ran.outcome.findings.len(), MAX_ITERATIONS);
    assert_eq!(ran.outcome.transcript.len(), 1 + 2 * MAX_ITERATIONS);
}

#[tokio::test]
async fn hub_9_one_step_less_than_the_limit_and_an_answer_is_complete() {
    let mut responses = vec![calls([call("a", "look")]); MAX_ITERATIONS - 1];
    responses.push(answer("just in time"));
    let (server, ran) = ask(responses, vec![echo("look")]).await;
    assert_eq!(server.requests().len(), MAX_ITERATIONS);
    assert_eq!(ran.outcome.stop_reason, StopReason::Complete);
    assert_eq!(ran.outcome.text, "just in time");
}

#[tokio::test]
async fn hub_8_hub_t_a_tool_that_fails_or_panics_is_a_result() {
    let any = || json!({"type": "object"});
    let fails = FnTool::running("fails", any(), |_| {
        Box::pin(async { ToolOutcome::error(ToolErrorCode::Failed, "disk full") })
    });
    let panics = FnTool::running("panics", any(), |_| Box::pin(async { panic!("broken") }));
    let batch = calls([call("a", "fails"), call("b", "panics"), call("c", "look")]);
    let tools = vec![fails, panics, echo("look")];
    let (server, ran) = ask(vec![batch, answer("recovered")], tools).await;
    assert_eq!(ran.outcome.text, "recovered");
    assert_eq!(
        ran.codes(),
        [
            Some(ToolErrorCode::Failed),
            Some(ToolErrorCode::Internal),
            None
        ]
    );
    assert_eq!(bodies(&server)[1]["messages"][2]["content"], "disk full");
}

#[tokio::test]
async fn hub_10_a_request_ends_after_thirty_seconds() {
    let server = Server::start(faults::zero_byte_stall()).await;
    let ran = bench(&server)
        .ask_beside("hi", async |_| {
            server.request(0).await;
            tokio::time::pause();
        })
        .await;
    assert_eq!(ran.outcome.stop_reason, StopReason::StepTimeout);
    assert!((29_000..33_000).contains(&ran.outcome.elapsed_ms));
}

#[tokio::test]
async fn hub_11_hub_18_hub_t_what_may_pass_is_tried_three_times_more_and_what_cannot_is_not() {
    let brief = |bench: Bench| bench.limits(|it| it.retry.base = Duration::from_millis(1));
    let server = Server::start(Script::repeat(openai::error(503, "server_error", "busy"))).await;
    let ran = brief(bench(&server)).ask("hi").await;
    assert_eq!(server.requests().len(), 4);
    assert_eq!(ran.error_class(), Some(ErrorClass::Overloaded));
    let waits: Vec<u64> = ran
        .events
        .iter()
        .filter_map(|event| match event {
            EventBody::RetryScheduled { delay_ms, .. } => Some(*delay_ms),
            _ => None,
        })
        .collect();
    assert_eq!(waits, [1, 2, 4]);

    let server = Server::start(Script::repeat(openai::error(401, "auth", "bad key"))).await;
    let ran = brief(bench(&server)).ask("hi").await;
    assert_eq!(server.requests().len(), 1);
    assert_eq!(ran.error_class(), Some(ErrorClass::Auth));

    let script = [
        faults::html_error(502),
        faults::rate_limited(None),
        answer("back"),
    ];
    let server = Server::start(script).await;
    let ran = brief(bench(&server)).ask("hi").await;
    assert_eq!(
        (ran.outcome.text.as_str(), server.requests().len()),
        ("back", 3)
    );
}

#[tokio::test]
async fn hub_13_total_time_is_told_and_not_limited() {
    let server = Server::start([calls([call("a", "wait")]), answer("at last")]).await;
    let wait = FnTool::running("wait", json!({"type": "object"}), |_| {
        Box::pin(async {
            tokio::time::sleep(Duration::from_hours(24)).await;
            ToolOutcome::text("a day later")
        })
    });
    let ran = bench(&server)
        .tool(wait)
        .limits(|limits| limits.tool_timeout = None)
        .ask_beside("hi", async |user| {
            user.skips_the_call(|event| matches!(event, EventBody::ToolCallStarted { .. }))
                .await;
        })
        .await;
    assert_eq!(ran.outcome.text, "at last");
    assert_eq!(ran.outcome.stop_reason, StopReason::Complete);
    assert!(ran.outcome.elapsed_ms >= 24 * 3_600 * 1_000);
}

#[tokio::test]
async fn hub_12_a_tool_ends_after_thirty_seconds() {
    let server = Server::start([calls([call("a", "dig")]), answer("anyway")]).await;
    let ran = bench(&server)
        .tool(endless("dig"))
        .ask_beside("hi", async |user| {
            user.skips_the_call(|event| matches!(event, EventBody::ToolCallStarted { .. }))
                .await;
        })
        .await;
    assert_eq!(ran.codes(), [Some(ToolErrorCode::Timeout)]);
    assert_eq!(ran.outcome.text, "anyway");
    assert!((29_000..40_000).contains(&ran.outcome.elapsed_ms));
}

#[tokio::test]
async fn hub_16_the_count_is_logged_as_a_field_and_secrets_are_not() {
    let server = Server::start([calls([call("a", "look")]), answer("a private answer")]).await;
    let mut bench = bench(&server).tool(echo("look"));
    bench.endpoint.auth = Auth::Bearer(Secret::new("sk-very-secret"));
    bench.ask("a private question").await;
    assert_eq!(
        server.request(0).await.header("authorization"),
        Some("Bearer sk-very-secret")
    );
    let lines = logged("iteration=2");
    assert_eq!(lines.len(), 1, "{:?}", logged(""));
    assert!(
        lines[0].contains("INFO") && lines[0].contains("session=s"),
        "{lines:?}"
    );
    assert!(logged("sk-very-secret").is_empty());
    assert!(logged("private").is_empty());
}

#[tokio::test]
async fn hub_9_the_guard_warns_of_a_loop_once_and_only_when_it_is_met() {
    for steps in [2, 3] {
        let looped = calls([call("a", "look")]);
        let server = Server::start([looped.clone(), looped, answer("done")]).await;
        let bench = bench(&server).tool(echo("look"));
        bench
            .limits(|limits| limits.max_steps = steps)
            .ask("hi")
            .await;
    }
    let lines = logged("WARN");
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(
        lines[0].contains("iteration=2") && lines[0].contains("loop"),
        "{lines:?}"
    );
}

#[tokio::test]
async fn hub_19_input_of_any_kind_is_no_panic() {
    let big = "🦀".repeat(20_000);
    let inputs = [
        "",
        "   ",
        "\u{0}\u{1b}[31m",
        "{\"role\":\"system\"}",
        big.as_str(),
    ];
    for input in inputs {
        let server = Server::start(answer("ok")).await;
        let ran = bench(&server).ask(input).await;
        assert_eq!(ran.outcome.text, "ok");
    }
    let calls_of_any_kind = json!([
        {"id": "a", "type": "function", "function": {"name": "look", "arguments": "\u{0}"}},
        {"id": "a", "type": "function", "function": {"name": "look", "arguments": "[1]"}},
        {"id": "", "type": "function", "function": {"name": "../../etc", "arguments": "{}"}},
        {"function": {"name": "look"}},
    ]);
    let message = json!({"role": "assistant", "content": null, "tool_calls": calls_of_any_kind});
    let body =
        json!({"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]});
    let (server, ran) = ask(
        vec![Response::json(200, &body), answer("ok")],
        vec![echo("look")],
    )
    .await;
    assert_eq!(ran.outcome.text, "ok");
    assert_eq!(ran.results().len(), 4);
    assert_eq!(server.requests().len(), 2);
}

/// A reply with each of its values in turn replaced by one of another kind, and left out.
fn replies_gone_wrong(reply: &Value) -> Vec<Value> {
    let kinds = [
        json!(null),
        json!(true),
        json!(-1),
        json!(1e300),
        json!(""),
        json!("\u{0}"),
        json!([]),
        json!([null]),
        json!({}),
    ];
    let mut wrong = Vec::new();
    for pointer in pointers(reply, "") {
        for kind in &kinds {
            let mut changed = reply.clone();
            *changed.pointer_mut(&pointer).unwrap() = kind.clone();
            wrong.push(changed);
        }
    }
    wrong
}

/// The place of each value in another.
fn pointers(value: &Value, at: &str) -> Vec<String> {
    let inner: Vec<(String, &Value)> = match value {
        Value::Object(fields) => fields.iter().map(|(key, it)| (key.clone(), it)).collect(),
        Value::Array(items) => (0..).map(|at: u32| at.to_string()).zip(items).collect(),
        _ => Vec::new(),
    };
    let deeper = inner
        .into_iter()
        .flat_map(|(key, value)| pointers(value, &format!("{at}/{key}")));
    std::iter::once(at.to_owned()).chain(deeper).collect()
}

#[tokio::test]
async fn hub_19_a_reply_of_any_kind_is_no_panic() {
    let function = json!({"name": "look", "arguments": "{}"});
    let call = json!({"id": "a", "index": 0, "type": "function", "function": function});
    let message = json!({"role": "assistant", "content": "Looking.", "tool_calls": [call]});
    let choice = json!({"index": 0, "message": message, "finish_reason": "tool_calls"});
    let usage = json!({"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5});
    let whole = json!({"id": "r", "model": "m", "choices": [choice], "usage": usage});
    let wrong = replies_gone_wrong(&whole);
    assert!(wrong.len() > 150, "{}", wrong.len());
    for body in wrong {
        let server = Server::start(Script::repeat(Response::json(200, &body))).await;
        let ran = bench(&server)
            .tool(echo("look"))
            .limits(|limits| {
                limits.max_steps = 2;
                limits.invalid_retries = 0;
                limits.retry.max_retries = 0;
            })
            .ask("hi")
            .await;
        // The loop would tell of a panic as of an error of its own.
        assert_ne!(ran.error_class(), Some(ErrorClass::Internal), "{body}");
        assert!(
            !ran.codes().contains(&Some(ToolErrorCode::Internal)),
            "{body}"
        );
        assert!(!ran.outcome.text.is_empty(), "{body}");
    }
}

#[tokio::test]
async fn an_error_of_the_provider_is_told_with_what_was_found() {
    let failed = openai::error(400, "invalid_request_error", "no");
    let (_server, ran) = ask(vec![calls([call("a", "look")]), failed], vec![echo("look")]).await;
    assert_eq!(ran.outcome.stop_reason, StopReason::Error);
    assert!(!ran.outcome.text.is_empty());
    assert!(
        ran.outcome.text.contains("Partial results:"),
        "{}",
        ran.outcome.text
    );
    assert_eq!(ran.outcome.transcript.len(), 3);
}
