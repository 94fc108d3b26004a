//! The bounded loop over a live Python session, in Gemini's own words.

use crate::support::{Bench, FnTool, Ran, bodies, endless, failure, tool};
use rondo::types::{FinishReason, Part, Role};
use rondo::{EventBody, Model, StopReason, ToolErrorCode, ToolOutcome};
use rondo_testkit::{CallScript, Framing, ReplyScript, Response, Script, Server, faults, gemini};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

const PROMPT_BEGINS: &str = "You are PyAIChat assistant operating over a live Python runtime";

fn no_arguments() -> Value {
    json!({"type": "object", "properties": {}})
}

fn one_expression() -> Value {
    json!({
        "type": "object",
        "properties": {"expr": {"type": "string"}},
        "required": ["expr"],
    })
}

/// What each capability returns, in the shape that its design gives.
fn capability_results() -> [(&'static str, Value, Value); 7] {
    [
        (
            "list_globals",
            no_arguments(),
            json!({"globals": [{"name": "x", "type_name": "int"}]}),
        ),
        (
            "get_type",
            one_expression(),
            json!({"name": "list", "module": "builtins", "qualified": "builtins.list"}),
        ),
        (
            "get_repr",
            one_expression(),
            json!({"repr": "[1, 2]", "truncated": false, "original_len": 6}),
        ),
        (
            "get_dir",
            one_expression(),
            json!({"members": ["append", "clear"], "truncated": false, "original_len": 2}),
        ),
        (
            "get_doc",
            one_expression(),
            json!({"doc": null, "truncated": false, "original_len": 0}),
        ),
        (
            "eval_expr",
            one_expression(),
            json!({"value_repr": "42", "stdout": "", "stderr": ""}),
        ),
        (
            "get_last_exception",
            no_arguments(),
            json!({"exception": null}),
        ),
    ]
}

fn capabilities() -> Vec<FnTool> {
    capability_results()
        .into_iter()
        .map(|(name, parameters, result)| {
            tool(name, parameters, move |_| ToolOutcome::json(result.clone()))
        })
        .collect()
}

fn declarations() -> Value {
    capability_results()
        .into_iter()
        .map(|(name, parameters, _)| {
            let mut declared = json!({"name": name, "description": format!("Does {name}.")});
            if parameters == one_expression() {
                declared["parametersJsonSchema"] = parameters;
            }
            declared
        })
        .collect()
}

fn bench(server: &Server) -> Bench {
    Bench::gemini(server).tools(capabilities())
}

fn answer(text: &str) -> Response {
    gemini::whole(&ReplyScript::text([text]))
}

fn calls(calls: impl IntoIterator<Item = CallScript>) -> Response {
    gemini::whole(&ReplyScript::calls(calls))
}

fn call(name: &str) -> CallScript {
    CallScript::without_id(name, &json!({}))
}

fn eval(expr: &str) -> CallScript {
    CallScript::without_id("eval_expr", &json!({"expr": expr}))
}

/// Sends a body exactly as written.
fn raw(body: &str) -> Response {
    Response::new(200)
        .header("content-type", "application/json")
        .framing(Framing::Length)
        .send(body.to_owned())
}

async fn ask(responses: Vec<Response>) -> (Server, Ran) {
    let server = Server::start(responses).await;
    let ran = bench(&server).ask("what is x?").await;
    (server, ran)
}

fn request(contents: &Value) -> Value {
    let prompt = rondo::profiles::builtin("python").unwrap().system_prompt;
    json!({
        "contents": contents,
        "systemInstruction": {"parts": [{"text": prompt}]},
        "tools": [{"functionDeclarations": declarations()}],
        "toolConfig": {"functionCallingConfig": {"mode": "AUTO"}},
    })
}

fn question() -> Value {
    json!({"role": "user", "parts": [{"text": "what is x?"}]})
}

fn corrective(problem: &str) -> String {
    format!(
        "Your last reply could not be used: {problem}. Call one of the declared functions, or \
         answer in plain text."
    )
}

#[tokio::test]
async fn py_14_py_15_py_16_py_17_py_26_requests_are_whole_in_both_steps() {
    let reply = ReplyScript::calls([
        CallScript::new("fc-1", "get_type", &json!({"expr": "x"})),
        CallScript::new("fc-2", "list_globals", &json!({})),
    ]);
    let (server, ran) = ask(vec![gemini::whole(&reply), answer("A list.")]).await;
    assert_eq!(ran.outcome.text, "A list.");
    let asked = json!({"role": "model", "parts": [
        {"functionCall": {"id": "fc-1", "name": "get_type", "args": {"expr": "x"}}},
        {"functionCall": {"id": "fc-2", "name": "list_globals", "args": {}}},
    ]});
    let answered = json!({"role": "user", "parts": [
        {"functionResponse": {"id": "fc-1", "name": "get_type", "response": {
            "ok": true,
            "result": {"name": "list", "module": "builtins", "qualified": "builtins.list"},
        }}},
        {"functionResponse": {"id": "fc-2", "name": "list_globals", "response": {
            "ok": true,
            "result": {"globals": [{"name": "x", "type_name": "int"}]},
        }}},
    ]});
    assert_eq!(
        bodies(&server),
        [
            request(&json!([question()])),
            request(&json!([question(), asked, answered])),
        ]
    );
    let sent = server.request(0).await;
    assert_eq!(
        (sent.method.as_str(), sent.path.as_str()),
        ("POST", "/v1beta/models/m:generateContent")
    );
}

#[tokio::test]
async fn py_15_py_18_nothing_but_the_prompt_tells_the_model_how_to_call() {
    let (server, ran) = ask(vec![answer(
        r#"{"tool": "eval_expr", "args": {"expr": "x"}}"#,
    )])
    .await;
    // A call that is written as text is text: there is no protocol within the answer.
    assert_eq!(
        ran.outcome.text,
        r#"{"tool": "eval_expr", "args": {"expr": "x"}}"#
    );
    assert_eq!((ran.outcome.steps, ran.outcome.tool_calls), (1, 0));
    let sent = bodies(&server).remove(0);
    let prompt = sent["systemInstruction"]["parts"][0]["text"]
        .as_str()
        .unwrap();
    assert!(prompt.starts_with(PROMPT_BEGINS));
    assert!(!prompt.contains('{') && !prompt.contains('<'), "{prompt}");
}

#[tokio::test]
async fn py_19_py_t19_calls_are_read_with_and_without_id_and_arguments() {
    let body = json!({"candidates": [{"finishReason": "STOP", "content": {"role": "model", "parts": [
        {"functionCall": {"name": "list_globals"}},
        {"functionCall": {"id": "a", "name": "get_type", "args": {"expr": "[]"}}},
        {"functionCall": {"name": "get_type", "args": "not an object"}},
    ]}}]});
    let (server, ran) = ask(vec![Response::json(200, &body), answer("done")]).await;
    assert_eq!(
        ran.codes(),
        [None, None, Some(ToolErrorCode::InvalidArgs)],
        "{:?}",
        ran.results()
    );
    let sent = bodies(&server).remove(1);
    let ids: Vec<&Value> = (0..3)
        .map(|at| &sent["contents"][2]["parts"][at]["functionResponse"]["id"])
        .collect();
    assert_eq!(ids, [&Value::Null, &json!("a"), &Value::Null]);
}

#[tokio::test]
async fn py_20_finish_reasons_and_safety_metadata_are_read() {
    let blocked = json!({"promptFeedback": {
        "blockReason": "PROHIBITED_CONTENT",
        "safetyRatings": [{"category": "HARM", "probability": "HIGH", "blocked": true}],
    }});
    let (_server, ran) = ask(vec![Response::json(200, &blocked); 2]).await;
    assert_eq!(ran.outcome.stop_reason, StopReason::Refused);
    let rejected = |event: &EventBody| matches!(event, EventBody::ReplyRejected { reason } if reason.contains("PROHIBITED_CONTENT"));
    assert_eq!(ran.count(rejected), 2);

    for (raw, ours) in [
        ("STOP", FinishReason::Stop),
        ("MAX_TOKENS", FinishReason::Length),
    ] {
        let reply = ReplyScript::text(["x is 1"]).finish(raw);
        let (_server, ran) = ask(vec![gemini::whole(&reply)]).await;
        assert_eq!(ran.outcome.finish_reason, Some(ours));
        assert_eq!(ran.outcome.text, "x is 1");
        assert_eq!(ran.outcome.degraded, ours == FinishReason::Length);
    }
}

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
        system: Vec::new(),
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
async fn py_t11_py_t18_a_later_good_candidate_is_taken() {
    let good = json!({"role": "model", "parts": [{"text": "x is 1"}]});
    let body = json!({"candidates": [
        {"index": 0, "finishReason": "SAFETY", "safetyRatings": [{"category": "HARM", "probability": "HIGH", "blocked": true}]},
        {"index": 1, "finishReason": "STOP", "content": good},
    ]});
    let (server, ran) = ask(vec![Response::json(200, &body)]).await;
    assert_eq!(ran.outcome.text, "x is 1");
    assert_eq!(ran.outcome.finish_reason, Some(FinishReason::Stop));
    assert_eq!(bodies(&server).len(), 1);
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
async fn py_t16_py_t17_tools_and_the_auto_mode_are_serialised() {
    let (server, _ran) = ask(vec![answer("ok")]).await;
    let sent = bodies(&server).remove(0);
    assert_eq!(
        sent["tools"],
        json!([{"functionDeclarations": declarations()}])
    );
    assert_eq!(
        sent["toolConfig"],
        json!({"functionCallingConfig": {"mode": "AUTO"}})
    );
}

#[tokio::test]
async fn py_t18_candidates_finish_reason_and_safety_are_parsed() {
    let safety = json!({"candidates": [{"index": 0, "finishReason": "SAFETY", "content": {"parts": [{"text": "no"}], "role": "model"}}]});
    let (server, ran) = ask(vec![Response::json(200, &safety), answer("better")]).await;
    assert_eq!(ran.outcome.text, "better");
    let sent = bodies(&server).remove(1);
    let said = sent["contents"][0]["parts"][1]["text"].as_str().unwrap();
    assert!(said.contains("SAFETY"), "{said}");
    assert_eq!(
        sent["contents"].as_array().unwrap().len(),
        1,
        "what was blocked is not repeated"
    );
}

#[tokio::test]
async fn py_t20_results_are_serialised_in_one_content_of_the_users_role() {
    let all: Vec<CallScript> = capability_results()
        .iter()
        .map(|(name, parameters, _)| {
            let arguments = if *parameters == one_expression() {
                json!({"expr": "x"})
            } else {
                json!({})
            };
            CallScript::without_id(name, &arguments)
        })
        .collect();
    let (server, ran) = ask(vec![calls(all), answer("that is all")]).await;
    let parts: Vec<Value> = capability_results()
        .into_iter()
        .map(|(name, _, result)| {
            json!({"functionResponse": {"name": name, "response": {"ok": true, "result": result}}})
        })
        .collect();
    let sent = bodies(&server).remove(1);
    assert_eq!(sent["contents"][2], json!({"role": "user", "parts": parts}));
    assert_eq!(ran.outcome.transcript[2].role, Role::Tool);
}

#[tokio::test]
async fn a_thought_signature_goes_back_byte_by_byte_in_its_part() {
    let signed = r#"{"functionCall": {"name" : "list_globals","args":{ }}, "thoughtSignature": "Eo\/8+A=="}"#;
    let thought = r#"{"text":"","thoughtSignature":"c2lnbmVk"}"#;
    let body = format!(
        r#"{{"candidates":[{{"content":{{"role":"model","parts":[{signed},{{"functionCall":{{"name":"get_last_exception"}}}},{thought}]}},"finishReason":"STOP"}}]}}"#
    );
    let (server, ran) = ask(vec![raw(&body), answer("fine")]).await;
    assert_eq!(ran.outcome.text, "fine");
    let sent = server.request(1).await;
    let text = std::str::from_utf8(&sent.body).unwrap();
    assert!(text.contains(signed), "{text}");
    let parts = &sent.json()["contents"][1]["parts"];
    assert_eq!(parts.as_array().unwrap().len(), 3, "{parts}");
    assert_eq!(parts[2], serde_json::from_str::<Value>(thought).unwrap());
}

#[tokio::test]
async fn text_beside_a_call_is_kept_in_its_place() {
    let reply = ReplyScript::calls([eval("x")]).saying("Let me look.");
    let (server, ran) = ask(vec![gemini::whole(&reply), answer("42")]).await;
    assert_eq!(ran.outcome.tool_calls, 1);
    let sent = bodies(&server).remove(1);
    assert_eq!(
        sent["contents"][1]["parts"][0],
        json!({"text": "Let me look."})
    );
    assert!(matches!(ran.outcome.transcript[1].parts[0], Part::Text(_)));
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
