use rondo_testkit::{CallScript, ReplyScript, gemini, openai};
use serde_json::{Value, json};

fn both() -> ReplyScript {
    ReplyScript::calls([
        CallScript::new("c1", "f", &json!({"a": 1})),
        CallScript::without_id("g", &json!({})).signed("c2ln"),
    ])
    .saying("hm")
    .usage(7, 3)
}

#[test]
fn openai_pieces_of_arguments_join_to_the_whole() {
    let pieces: String = openai::events(&both())
        .iter()
        .filter(|event| event["choices"][0]["delta"]["tool_calls"][0]["index"] == 0)
        .filter_map(|event| {
            event["choices"][0]["delta"]["tool_calls"][0]["function"]["arguments"].as_str()
        })
        .collect();
    assert_eq!(pieces, r#"{"a":1}"#);
}

#[test]
fn openai_stream_ends_with_usage_and_done() {
    let frames = openai::frames(&both());
    assert_eq!(frames.last().unwrap(), "data: [DONE]\n\n");
    let usage = openai::events(&both()).pop().unwrap();
    assert_eq!(usage["usage"]["total_tokens"], 10);
    assert_eq!(usage["choices"], json!([]));
}

#[test]
fn openai_whole_body_holds_the_same_reply() {
    let body = openai::body(&both());
    let message = &body["choices"][0]["message"];
    assert_eq!(message["content"], "hm");
    assert_eq!(message["tool_calls"][0]["id"], "c1");
    assert_eq!(body["choices"][0]["finish_reason"], "tool_calls");
}

#[test]
fn gemini_keeps_ids_and_signatures_where_given() {
    let parts = gemini::body(&both())["candidates"][0]["content"]["parts"].clone();
    let expected = json!([
        {"text": "hm"},
        {"functionCall": {"id": "c1", "name": "f", "args": {"a": 1}}},
        {"functionCall": {"name": "g", "args": {}}, "thoughtSignature": "c2ln"},
    ]);
    assert_eq!(parts, expected);
}

#[test]
fn gemini_stream_names_its_finish_once_at_the_end() {
    let events = gemini::events(&both());
    let reasons: Vec<&Value> = events
        .iter()
        .map(|event| &event["candidates"][0]["finishReason"])
        .collect();
    assert_eq!(reasons, [&Value::Null, &Value::Null, &json!("STOP")]);
    assert!(gemini::frames(&both())[0].ends_with(b"\r\n\r\n"));
}
