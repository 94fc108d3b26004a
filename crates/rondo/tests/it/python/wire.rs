//! Requests and responses on the wire.

use super::{
    answer, ask, bench, calls, capability_results, declarations, eval, one_expression, question,
    request,
};
use crate::support::bodies;
use rondo::types::{FinishReason, Part, Role};
use rondo::{EventBody, StopReason, ToolErrorCode};
use rondo_testkit::{CallScript, Framing, ReplyScript, Response, Server, gemini};
use serde_json::{Value, json};

const PROMPT_BEGINS: &str = "You are PyAIChat assistant operating over a live Python runtime";

/// Sends a body exactly as written.
fn raw(body: &str) -> Response {
    Response::new(200)
        .header("content-type", "application/json")
        .framing(Framing::Length)
        .send(body.to_owned())
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

/// Bodies of replies with status 200 that cannot be used.
pub(crate) const MALFORMED: [&str; 26] = [
    "",
    "{}",
    "[]",
    "[1,2]",
    "[{}]",
    "null",
    "true",
    "7",
    "\"x\"",
    "x",
    "<html></html>",
    "{\"candidates\":",
    "{\"candidates\":[]}",
    "{\"candidates\":[],\"usageMetadata\":{\"promptTokenCount\":3}}",
    "{\"candidates\":null}",
    "{\"candidates\":7}",
    "{\"candidates\":[7]}",
    "{\"candidates\":[null]}",
    "{\"candidates\":[{}]}",
    "{\"candidates\":[{\"content\":7,\"finishReason\":\"STOP\"}]}",
    "{\"candidates\":[{\"content\":{\"parts\":\"x\"},\"finishReason\":\"STOP\"}]}",
    "{\"candidates\":[{\"content\":{\"parts\":[7]},\"finishReason\":\"STOP\"}]}",
    "{\"candidates\":[{\"content\":{\"parts\":[{\"functionCall\":7}]},\"finishReason\":\"STOP\"}]}",
    "{\"candidates\":[{\"content\":{\"parts\":[{\"functionCall\":{}}]},\"finishReason\":\"STOP\"}]}",
    "{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"half\"}]}}]}",
    "{\"candidates\":[{\"content\":{\"parts\":[{\"functionCall\":{\"name\":\"list_globals\"}}]}}]}",
];

/// Asserts that the last message of a request asks the model to correct its reply.
fn assert_corrective(body: &Value, case: &str) {
    let last = body["contents"].as_array().unwrap().last().unwrap();
    assert_eq!(last["role"], "user", "{case}");
    let said = last["parts"].as_array().unwrap().last().unwrap();
    let said = said["text"].as_str().unwrap_or_default();
    let begins = "Your last reply could not be used";
    assert!(said.starts_with(begins), "{case}: {said}");
}

#[tokio::test]
async fn py_13_py_48_every_malformed_payload_over_gemini_is_corrected_once() {
    for body in MALFORMED {
        let (server, ran) = ask(vec![raw(body), answer("x is 1")]).await;
        assert_eq!(ran.outcome.text, "x is 1", "{body}");
        assert_eq!(ran.outcome.stop_reason, StopReason::Complete, "{body}");
        assert_eq!((ran.outcome.steps, ran.outcome.tool_calls), (2, 0));
        assert_corrective(&bodies(&server)[1], body);
    }
}

#[tokio::test]
async fn py_13_py_46_py_47_a_second_malformed_payload_ends_the_question_with_what_was_found() {
    for body in MALFORMED {
        let script = vec![calls([eval("x")]), raw(body), raw(body), answer("never")];
        let (server, ran) = ask(script).await;
        let outcome = &ran.outcome;
        assert_eq!(outcome.stop_reason, StopReason::InvalidResponse, "{body}");
        assert!(outcome.degraded && !outcome.answered, "{body}");
        assert!(outcome.text.contains("42"), "{body}: {}", outcome.text);
        assert_eq!(server.requests().len(), 3, "{body}");
    }
}

#[tokio::test]
async fn py_13_malformed_payloads_and_empty_replies_share_one_budget() {
    for pair in [[raw("{}"), answer("")], [answer(""), raw("x")]] {
        let (_server, ran) = ask(Vec::from(pair)).await;
        assert_eq!(ran.outcome.stop_reason, StopReason::InvalidResponse);
        assert_eq!(ran.outcome.steps, 2);
    }
}

/// An endpoint that streams gets the same payloads as events.
#[tokio::test]
async fn py_13_malformed_events_of_a_stream_are_corrected_too() {
    for body in MALFORMED.into_iter().filter(|body| !body.is_empty()) {
        let event = Response::sse([format!("data: {body}\n\n")]);
        let answer = gemini::streamed(&ReplyScript::text(["x is 1"]));
        let server = Server::start(vec![event, answer]).await;
        let ran = bench(&server).streaming().ask("what is x?").await;
        assert_eq!(ran.outcome.text, "x is 1", "{body}");
        assert_corrective(&bodies(&server)[1], body);
    }
}

#[tokio::test]
async fn py_19_py_23_arguments_that_were_left_out_stay_left_out() {
    let calls = [
        json!({"functionCall": {"name": "list_globals"}}),
        json!({"functionCall": {"id": "a", "name": "list_globals"}}),
        json!({"functionCall": {"id": "b", "name": "list_globals", "args": {}}}),
        json!({"functionCall": {"id": "c", "name": "list_globals", "args": null}}),
    ];
    let body = json!({"candidates": [
        {"finishReason": "STOP", "content": {"role": "model", "parts": calls}},
    ]});
    let (server, ran) = ask(vec![Response::json(200, &body), answer("done")]).await;
    assert_eq!(ran.codes(), [None; 4]);
    let sent = bodies(&server).remove(1);
    assert_eq!(sent["contents"][1]["parts"], json!(calls));
}
