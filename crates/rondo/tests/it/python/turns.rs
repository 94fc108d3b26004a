//! How a question continues and how it ends.

use super::{answer, ask, bench, call, calls, corrective, eval, one_expression, question, request};
use crate::support::{Bench, FnTool, bodies, endless, failure, tool};
use rondo::{EventBody, Model, StopReason, ToolErrorCode, ToolOutcome};
use rondo_testkit::{ReplyScript, Response, Script, Server, faults, gemini};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

#[tokio::test]
async fn py_42_nothing_is_kept_between_questions() {
    let server = Server::start(Script::repeat(answer("fine"))).await;
    for _ in 0..2 {
        let ran = bench(&server).ask("what is x?").await;
        assert_eq!((ran.outcome.steps, ran.outcome.transcript.len()), (1, 2));
    }
    assert_eq!(
        bodies(&server),
        [request(&json!([question()])), request(&json!([question()]))]
    );
}

#[tokio::test]
async fn py_51_the_provider_only_transports_and_the_loop_decides() {
    use futures_util::StreamExt;
    use rondo::types::{ModelRequest, Sampling, ToolChoice};
    let empty = gemini::whole(&ReplyScript::default());
    let server = Server::start([empty, gemini::error(503, "UNAVAILABLE", "try later")]).await;
    let model = bench(&server).model();
    let request = Arc::new(ModelRequest {
        model: "m".to_owned(),
        system: Vec::new().into(),
        messages: vec![Arc::new(rondo::Message::user("hi"))],
        tools: Arc::default(),
        tool_choice: ToolChoice::Auto,
        sampling: Sampling::default(),
        response_schema: None,
    });
    let first: Vec<_> = model.stream(Arc::clone(&request)).collect().await;
    assert!(
        first.iter().all(Result::is_ok),
        "an empty reply is handed on, not judged"
    );
    let second: Vec<_> = model.stream(request).collect().await;
    assert!(
        second.last().unwrap().is_err(),
        "a failure is handed on, not repeated"
    );
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn py_t6_a_question_is_answered_over_one_capability() {
    for streamed in [false, true] {
        let server = Server::start(if streamed {
            vec![
                gemini::streamed(&ReplyScript::calls([eval("6 * 7")])),
                gemini::streamed(&ReplyScript::text(["It is ", "42."])),
            ]
        } else {
            vec![calls([eval("6 * 7")]), answer("It is 42.")]
        })
        .await;
        let bench = bench(&server);
        let bench = if streamed { bench.streaming() } else { bench };
        let ran = bench.ask("what is 6 * 7?").await;
        assert_eq!(ran.outcome.text, "It is 42.");
        assert_eq!(ran.outcome.stop_reason, StopReason::Complete);
        assert!(!ran.outcome.degraded);
        assert_eq!((ran.outcome.steps, ran.outcome.tool_calls), (2, 1));
        assert_eq!(ran.shown(), "It is 42.");
    }
}

#[tokio::test]
async fn py_t7_calls_of_one_reply_run_in_order_and_go_back_together() {
    let log = Arc::new(Mutex::new(Vec::new()));
    let server = Server::start([calls([eval("a"), eval("b"), eval("c")]), answer("ok")]).await;
    let shared = Arc::clone(&log);
    let eval = FnTool::running("eval_expr", one_expression(), move |call| {
        let log = Arc::clone(&shared);
        Box::pin(async move {
            log.lock()
                .unwrap()
                .push(format!("{} begins", call.arguments["expr"]));
            tokio::task::yield_now().await;
            log.lock()
                .unwrap()
                .push(format!("{} ends", call.arguments["expr"]));
            ToolOutcome::json(json!({"value_repr": call.arguments["expr"]}))
        })
    });
    let ran = Bench::gemini(&server).tool(eval).ask("all three?").await;
    assert_eq!(
        *log.lock().unwrap(),
        [
            r#""a" begins"#,
            r#""a" ends"#,
            r#""b" begins"#,
            r#""b" ends"#,
            r#""c" begins"#,
            r#""c" ends"#
        ]
    );
    let sent = bodies(&server).remove(1);
    assert_eq!(sent["contents"].as_array().unwrap().len(), 3);
    let order: Vec<&Value> = (0..3)
        .map(|at| &sent["contents"][2]["parts"][at]["functionResponse"]["response"]["result"]["value_repr"])
        .collect();
    assert_eq!(order, ["a", "b", "c"]);
    assert_eq!(ran.outcome.tool_calls, 3);
}

#[tokio::test]
async fn py_t8_an_unsupported_name_is_a_result_and_the_turn_converges() {
    let (server, ran) = ask(vec![calls([call("frobnicate")]), answer("I cannot.")]).await;
    assert_eq!(ran.outcome.text, "I cannot.");
    assert!(!ran.outcome.degraded);
    let sent = bodies(&server).remove(1);
    let response = &sent["contents"][2]["parts"][0]["functionResponse"]["response"];
    assert_eq!(response["ok"], json!(false));
    assert_eq!(response["error"]["code"], "unknown_function");
    assert_eq!(response["error"]["details"], json!({}));
    let message = response["error"]["message"].as_str().unwrap();
    assert!(
        message.starts_with("there is no tool `frobnicate`"),
        "{message}"
    );
}

#[tokio::test]
async fn py_t9_empty_replies_are_corrected_once_then_the_turn_degrades() {
    let empty = gemini::whole(&ReplyScript::default());
    let (server, ran) = ask(vec![empty.clone(), empty]).await;
    let said = json!([{"role": "user", "parts": [
        {"text": "what is x?"},
        {"text": corrective("it was empty")},
    ]}]);
    assert_eq!(
        bodies(&server),
        [request(&json!([question()])), request(&said)]
    );
    assert_eq!(ran.outcome.stop_reason, StopReason::InvalidResponse);
    assert!(ran.outcome.degraded);
    assert_eq!(
        ran.outcome.text,
        "I could not finish the answer: the model's replies could not be used."
    );
}

#[tokio::test]
async fn py_t10_malformed_calls_are_corrected_once_then_the_turn_degrades() {
    let malformed =
        json!({"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL", "index": 0}]});
    let nameless = json!({"candidates": [{"finishReason": "STOP", "content": {"role": "model", "parts": [
        {"functionCall": {"args": {"expr": "x"}}},
    ]}}]});
    for body in [malformed, nameless] {
        let response = Response::json(200, &body);
        let (server, ran) = ask(vec![response.clone(), response.clone()]).await;
        assert_eq!(bodies(&server).len(), 2);
        assert_eq!(ran.outcome.stop_reason, StopReason::InvalidResponse);
        assert_eq!(ran.outcome.tool_calls, 0);

        let (server, ran) = ask(vec![response, answer("x is 1")]).await;
        assert_eq!(bodies(&server).len(), 2);
        assert_eq!(ran.outcome.text, "x is 1");
        assert!(!ran.outcome.degraded);
    }
}

#[tokio::test]
async fn py_t12_the_sixth_request_is_the_last_and_the_findings_are_told() {
    let server = Server::start(Script::repeat(calls([eval("6 * 7")]))).await;
    let ran = bench(&server).ask("for ever?").await;
    assert_eq!(bodies(&server).len(), 6);
    assert_eq!(ran.outcome.stop_reason, StopReason::MaxSteps);
    assert!(ran.outcome.degraded);
    let text = &ran.outcome.text;
    assert!(text.starts_with("I could not finish the answer: the limit of 6 steps was reached."));
    assert!(
        text.contains("Confirmed so far:") && text.contains("42"),
        "{text}"
    );
    assert_eq!(ran.outcome.findings.len(), 6);
}

#[tokio::test]
async fn py_t12_five_steps_and_an_answer_are_within_the_limit() {
    let mut responses = vec![calls([eval("1")]); 5];
    responses.push(answer("done"));
    let (server, ran) = ask(responses).await;
    assert_eq!(bodies(&server).len(), 6);
    assert_eq!(ran.outcome.stop_reason, StopReason::Complete);
    assert!(!ran.outcome.degraded);
}

#[tokio::test]
async fn py_t13_the_total_time_ends_a_request_and_keeps_the_findings() {
    let server = Server::start([calls([eval("6 * 7")]), faults::zero_byte_stall()]).await;
    let bench = bench(&server).limits(|limits| limits.step_timeout = None);
    let ran = bench
        .ask_beside("what is x?", async |_| {
            server.request(1).await;
            tokio::time::pause();
        })
        .await;
    assert_eq!(ran.outcome.stop_reason, StopReason::Deadline);
    assert!(
        ran.outcome
            .text
            .contains("the time limit of 20 s was reached")
    );
    assert!(ran.outcome.text.contains("42"));
    assert!((19_000..22_000).contains(&ran.outcome.elapsed_ms));
}

#[tokio::test]
async fn py_t13_the_total_time_ends_a_capability_too() {
    let server = Server::start([calls([call("spin")])]).await;
    let ran = Bench::gemini(&server)
        .tool(endless("spin"))
        .ask_beside("what is x?", async |user| {
            user.sees(|event| matches!(event, EventBody::ToolCallStarted { .. }))
                .await;
            tokio::time::pause();
        })
        .await;
    assert_eq!(ran.outcome.stop_reason, StopReason::Deadline);
    assert_eq!(ran.codes(), [Some(ToolErrorCode::Timeout)]);
    assert!((19_000..22_000).contains(&ran.outcome.elapsed_ms));
    assert_eq!(bodies(&server).len(), 1);
}

#[tokio::test]
async fn py_t14_a_request_ends_at_the_step_timeout() {
    let server = Server::start(faults::zero_byte_stall()).await;
    let ran = bench(&server)
        .ask_beside("what is x?", async |_| {
            server.request(0).await;
            tokio::time::pause();
        })
        .await;
    assert_eq!(ran.outcome.stop_reason, StopReason::StepTimeout);
    assert_eq!(
        ran.outcome.text.lines().next(),
        Some("I could not finish the answer: the model did not reply within 8 s.")
    );
    assert!((7_000..10_000).contains(&ran.outcome.elapsed_ms));
    server.disconnected(0).await;
}

#[tokio::test]
async fn py_t15_an_exception_in_a_capability_is_a_result_and_the_turn_goes_on() {
    let details = json!({
        "exc_type": "ZeroDivisionError",
        "message": "division by zero",
        "traceback": "Traceback ...",
    });
    let server = Server::start([calls([eval("1/0")]), answer("It divides by zero.")]).await;
    let thrown = details.clone();
    let eval = tool("eval_expr", one_expression(), move |_| {
        let message = "ZeroDivisionError: division by zero";
        failure(ToolErrorCode::PythonException, message, thrown.clone())
    });
    let ran = Bench::gemini(&server).tool(eval).ask("why?").await;
    assert_eq!(ran.outcome.text, "It divides by zero.");
    let sent = bodies(&server).remove(1);
    assert_eq!(
        sent["contents"][2]["parts"][0]["functionResponse"]["response"],
        json!({"ok": false, "error": {
            "code": "python_exception",
            "message": "ZeroDivisionError: division by zero",
            "details": details,
        }})
    );
}

#[tokio::test]
async fn tokens_of_all_requests_are_counted_thoughts_included() {
    let mut first = ReplyScript::calls([eval("x")]).usage(100, 30);
    first.usage.as_mut().unwrap().reasoning = 20;
    let second = ReplyScript::text(["42"]).usage(150, 5);
    let (_server, ran) = ask(vec![gemini::whole(&first), gemini::whole(&second)]).await;
    let usage = ran.outcome.usage;
    assert_eq!((usage.input, usage.output, usage.reasoning), (250, 35, 20));
}

#[tokio::test]
async fn a_provider_error_is_an_outcome_with_the_work_so_far() {
    let failed = gemini::error(503, "UNAVAILABLE", "overloaded");
    let (server, ran) = ask(vec![calls([eval("6 * 7")]), failed]).await;
    assert_eq!(ran.outcome.stop_reason, StopReason::Error);
    assert!(ran.outcome.degraded && ran.outcome.text.contains("42"));
    assert_eq!(ran.outcome.transcript.len(), 3);
    assert_eq!(server.requests().len(), 2);
}
