//! The functions of a live session, called by a model over Gemini's protocol.

use super::{answer, calls, eval};
use crate::support::{Bench, Ran, bodies};
use rondo::design::python::{AgentConfig, LiveSession, ModelProvider, run_question};
use rondo::python::{CellLimits, LiveOutput, ReadOnlyNames, Session, Settings, tools};
use rondo::{Endpoint, HttpModel, ModelCard, StopReason};
use rondo_testkit::{CallScript, Server};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Starting may take long if the machine is busy.
const PATIENCE: Duration = Duration::from_secs(120);

fn session() -> Arc<Session> {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).to_owned();
    let mut settings = Settings::from_env(directory).expect("there is a `python3`");
    settings.start_timeout = PATIENCE;
    Arc::new(Session::new(settings))
}

async fn run(session: &Session, code: &str) {
    let end = session.run_cell(code, LiveOutput::discard(), CellLimits::default());
    assert_eq!(end.await.unwrap().exception, None);
}

/// Makes a model request these calls in one reply, and returns the parts that it is answered with.
async fn answered(session: &Arc<Session>, made: Vec<CallScript>) -> (Vec<Value>, Ran) {
    let server = Server::start([calls(made), answer("ok")]).await;
    let ran = Bench::gemini(&server)
        .real_tools(tools(session, ReadOnlyNames::Anything))
        .limits(|limits| limits.turn_timeout = Some(PATIENCE))
        .ask("what is x?")
        .await;
    let parts = bodies(&server)[1]["contents"][2]["parts"].clone();
    let Value::Array(parts) = parts else {
        panic!("{parts}")
    };
    let responses = parts.iter().map(|part| part["functionResponse"].clone());
    (responses.collect(), ran)
}

fn results(responses: &[Value]) -> Vec<Value> {
    let envelopes = responses.iter().map(|it| &it["response"]);
    envelopes
        .map(|envelope| {
            assert_eq!(envelope["ok"], true, "{envelope}");
            assert_eq!(envelope.as_object().unwrap().len(), 2);
            envelope["result"].clone()
        })
        .collect()
}

fn call(name: &str, expr: &str) -> CallScript {
    CallScript::without_id(name, &json!({ "expr": expr }))
}

#[tokio::test]
async fn py_t1_py_t5_py_31_py_35_py_36_py_37_py_38_py_39_py_40_py_41_each_function_maps_its_arguments_and_returns_its_schema()
 {
    let session = session();
    run(&session, "x = [1, 2]\nclass Few:\n    def __dir__(self): return ['clear', 'append']\nfew = Few()\ndef f():\n    'Does f.'\ndel Few").await;
    let made = vec![
        CallScript::without_id("list_globals", &json!({})),
        call("get_type", "x"),
        call("get_repr", "x"),
        call("get_dir", "few"),
        call("get_doc", "f"),
        call("get_doc", "few"),
        call("eval_expr", "[print('out'), 6 * 7][1]"),
        CallScript::without_id("get_last_exception", &json!({})),
    ];
    let (responses, ran) = answered(&session, made).await;
    assert_eq!(ran.outcome.stop_reason, StopReason::Complete);
    let expected = [
        json!({"globals": [
            {"name": "x", "type_name": "list"},
            {"name": "few", "type_name": "Few"},
            {"name": "f", "type_name": "function"},
        ]}),
        json!({"name": "list", "module": "builtins", "qualified": "builtins.list"}),
        json!({"repr": "[1, 2]", "truncated": false, "original_len": 6}),
        json!({"members": ["append", "clear"], "truncated": false, "original_len": 2}),
        json!({"doc": "Does f.", "truncated": false, "original_len": 7}),
        json!({"doc": null, "truncated": false, "original_len": 0}),
        json!({"value_repr": "42", "stdout": "out\n", "stderr": ""}),
        json!({"exception": null}),
    ];
    assert_eq!(results(&responses), expected);
}

#[tokio::test]
async fn py_t2_py_27_py_28_calls_of_one_reply_run_in_their_order_and_are_answered_together() {
    let session = session();
    run(&session, "order = []").await;
    let made = vec![
        eval("order.append(1)"),
        call("get_repr", "order"),
        eval("order.append(2)"),
        call("get_repr", "order"),
        call("inspect", "order"),
    ];
    let (responses, _) = answered(&session, made).await;
    let names: Vec<&Value> = responses.iter().map(|it| &it["name"]).collect();
    assert_eq!(
        names,
        ["eval_expr", "get_repr", "eval_expr", "get_repr", "inspect"]
    );
    let found = results(&responses);
    assert_eq!(
        (&found[1]["repr"], &found[3]["repr"]),
        (&json!("[1]"), &json!("[1, 2]"))
    );
    assert_eq!(found[4]["type"]["name"], "list");
}

#[tokio::test]
async fn py_t3_py_31_py_32_py_33_py_34_error_envelopes_have_their_shape_and_the_turn_goes_on() {
    let session = session();
    let made = vec![
        CallScript::without_id("frobnicate", &json!({})),
        CallScript::without_id("get_repr", &json!({})),
        eval("1 / 0"),
        eval("__import__('os')._exit(3)"),
        eval("'a new one'"),
    ];
    let (responses, ran) = answered(&session, made).await;
    assert_eq!(ran.outcome.text, "ok");
    let envelopes: Vec<&Value> = responses.iter().map(|it| &it["response"]).collect();
    let codes = [
        "unknown_function",
        "invalid_args",
        "python_exception",
        "internal",
    ];
    for (envelope, code) in envelopes.iter().zip(codes) {
        assert_eq!(envelope["ok"], false);
        let error = &envelope["error"];
        assert_eq!(error["code"], code);
        assert!(
            error["message"].is_string() && error["details"].is_object(),
            "{error}"
        );
        assert_eq!(error.as_object().unwrap().len(), 3);
    }
    let error = &envelopes[2]["error"];
    assert_eq!(error["message"], "ZeroDivisionError: division by zero");
    let details = error["details"].as_object().unwrap();
    let keys: Vec<&String> = details.keys().collect();
    assert_eq!(keys, ["exc_type", "message", "traceback"]);
    assert_eq!(details["exc_type"], "ZeroDivisionError");
    assert_eq!(details["message"], "division by zero");
    let message = envelopes[3]["error"]["message"].as_str().unwrap();
    assert!(message.contains("exit code 3"), "{message}");
    assert_eq!(envelopes[4]["result"]["value_repr"], "'a new one'");
}

#[tokio::test]
async fn py_t4_py_25_a_calls_id_comes_back_with_its_response() {
    let session = session();
    let with_id = CallScript::new("call-7", "get_repr", &json!({"expr": "7"}));
    let (responses, _) = answered(&session, vec![with_id, call("get_repr", "8")]).await;
    assert_eq!(responses[0]["id"], "call-7");
    assert_eq!(responses[1].get("id"), None);
    let found = results(&responses);
    assert_eq!(
        (&found[0]["repr"], &found[1]["repr"]),
        (&json!("7"), &json!("8"))
    );
}

#[tokio::test]
async fn py_9_a_question_is_answered_by_a_live_session() {
    let session = session();
    run(&session, "x = [1, 2]").await;
    let made = [
        CallScript::without_id("list_globals", &json!({})),
        eval("len(x) / 0"),
        call("get_dir", "x"),
        CallScript::without_id("get_last_exception", &json!({})),
        eval(" "),
    ];
    let server = Server::start([calls(made), answer("A list.")]).await;
    let mut endpoint = Endpoint::new("google", "gemini", server.url(""));
    endpoint.streaming = false;
    let model = HttpModel::new(&endpoint, ModelCard::new("m")).unwrap();
    let provider = ModelProvider::new(Arc::new(model));
    let live = LiveSession::new(Arc::clone(&session));
    let config = AgentConfig {
        total_timeout_ms: 120_000,
        ..AgentConfig::default()
    };
    let answer = run_question(&provider, &live, "What is x?", &config).await;
    assert_eq!(answer.unwrap().text, "A list.");
    let parts = &bodies(&server)[1]["contents"][2]["parts"];
    let response = |at: usize| &parts[at]["functionResponse"]["response"];
    assert_eq!(response(0)["result"]["globals"][0]["name"], "x");
    assert_eq!(
        response(1)["error"]["details"]["exc_type"],
        "ZeroDivisionError"
    );
    assert!(response(2)["result"]["original_len"].as_u64() > Some(20));
    assert_eq!(
        response(3)["result"]["exception"]["message"],
        "division by zero"
    );
    assert_eq!(response(4)["error"]["code"], "invalid_args");
}
