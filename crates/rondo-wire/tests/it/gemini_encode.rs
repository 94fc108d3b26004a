//! Encoded requests of Gemini.

use crate::support::{
    assistant, decode, encode, lowerings, opaque, origin, request, sse, target, tool_call,
    tool_result, tool_spec, with_messages,
};
use rondo_types::{
    Effort, Media, MediaKind, MediaSource, Message, ModelRequest, Origin, Part, ReasoningPart,
    Sampling, TextPart, ToolChoice, ToolContent, ToolErrorCode,
};
use rondo_wire::{Lowering, Target, dialect};
use serde_json::{Value, json};
use std::sync::Arc;

const NAME: &str = "gemini";

fn gemini() -> Target {
    target(NAME)
}

fn contents(target: &Target, list: Vec<Message>) -> Value {
    encode(target, &with_messages(list))["contents"].clone()
}

fn foreign() -> Origin {
    Origin {
        provider: "elsewhere".to_owned(),
        ..origin(NAME)
    }
}

#[test]
fn py_14_py_15_py_16_py_17_the_whole_request_is_as_documented() {
    let schema = json!({"type": "object", "properties": {"expr": {"type": "string"}},
        "required": ["expr"], "additionalProperties": false});
    let request = ModelRequest {
        system: vec!["one".to_owned(), "two".to_owned()].into(),
        messages: vec![Arc::new(Message::user("what is x?"))],
        tools: Arc::new(vec![
            tool_spec("eval_expr", schema.clone()),
            tool_spec("list_globals", json!({"type": "object", "properties": {}})),
        ]),
        sampling: Sampling {
            temperature: Some(0.0),
            max_output_tokens: Some(100),
            effort: Some(Effort::High),
        },
        ..request()
    };
    assert_eq!(
        encode(&gemini(), &request),
        json!({
            "contents": [{"role": "user", "parts": [{"text": "what is x?"}]}],
            "systemInstruction": {"parts": [{"text": "one\n\ntwo"}]},
            "tools": [{"functionDeclarations": [
                {"name": "eval_expr", "description": "does it", "parametersJsonSchema": schema},
                {"name": "list_globals", "description": "does it"},
            ]}],
            "toolConfig": {"functionCallingConfig": {"mode": "AUTO"}},
            "generationConfig": {"temperature": 0.0, "maxOutputTokens": 100,
                "thinkingConfig": {"thinkingLevel": "high"}},
        })
    );
}

#[test]
fn the_path_names_model_and_method() {
    let path = |model: &str, streaming| {
        let request = ModelRequest {
            model: model.to_owned(),
            ..request()
        };
        let mut target = gemini();
        target.streaming = streaming;
        dialect(NAME).unwrap().encode(&request, &target).path
    };
    assert_eq!(
        path("gemini-2.5-flash", true),
        "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse"
    );
    assert_eq!(
        path("models/gemini-3", false),
        "/v1beta/models/gemini-3:generateContent"
    );
    assert_eq!(
        path("tunedModels/x", false),
        "/v1beta/tunedModels/x:generateContent"
    );
    assert_eq!(
        path("a?b#c d", false),
        "/v1beta/models/a%3Fb%23c%20d:generateContent"
    );
}

#[test]
fn the_older_family_gets_a_thinking_budget() {
    let mut request = with_messages(vec![Message::user("hi")]);
    request.model = "gemini-2.5-pro".to_owned();
    request.sampling.effort = Some(Effort::Low);
    let body = encode(&gemini(), &request);
    assert_eq!(
        body["generationConfig"]["thinkingConfig"],
        json!({"thinkingBudget": 1024})
    );
}

#[test]
fn py_24_py_25_py_26_results_share_one_user_content_and_echo_ids() {
    let with_id = tool_call(Some("c1"), "f", "{\"a\": 1}");
    let without = tool_call(None, "g", "{}");
    let results = vec![
        tool_result(&with_id, ToolContent::Json(json!({"ok": true}))),
        tool_result(&without, ToolContent::Json(json!([1]))),
    ];
    let list = vec![
        Message::user("hi"),
        assistant(
            vec![Part::ToolCall(with_id), Part::ToolCall(without)],
            Some(origin(NAME)),
        ),
        Message::tool_results(results),
    ];
    assert_eq!(
        contents(&gemini(), list),
        json!([
            {"role": "user", "parts": [{"text": "hi"}]},
            {"role": "model", "parts": [
                {"functionCall": {"id": "c1", "name": "f", "args": {"a": 1}}},
                {"functionCall": {"name": "g", "args": {}}}]},
            {"role": "user", "parts": [
                {"functionResponse": {"id": "c1", "name": "f", "response": {"ok": true}}},
                {"functionResponse": {"name": "g", "response": {"output": [1]}}}]},
        ])
    );
}

#[test]
fn results_of_one_step_in_several_messages_share_a_content() {
    let call = tool_call(None, "f", "{}");
    let results = || Message::tool_results(vec![tool_result(&call, ToolContent::Text("x".into()))]);
    let sent = contents(
        &gemini(),
        vec![results(), results(), Message::user("a"), Message::user("b")],
    );
    let parts: Vec<_> = sent
        .as_array()
        .unwrap()
        .iter()
        .map(|content| content["parts"].as_array().unwrap().len())
        .collect();
    assert_eq!(parts, [2, 2]);
}

#[test]
fn results_that_are_no_object_are_wrapped() {
    let call = tool_call(None, "f", "{}");
    let response = |content, error| {
        let mut result = tool_result(&call, content);
        result.error = error;
        let sent = contents(&gemini(), vec![Message::tool_results(vec![result])]);
        sent[0]["parts"][0]["functionResponse"]["response"].clone()
    };
    let failed = Some(ToolErrorCode::Failed);
    let text = || ToolContent::Text("t".to_owned());
    assert_eq!(response(text(), None), json!({"output": "t"}));
    assert_eq!(response(text(), failed), json!({"error": "t"}));
    assert_eq!(
        response(ToolContent::Json(json!(1)), failed),
        json!({"error": 1})
    );
    let envelope = json!({"ok": false, "error": {"code": "internal"}});
    assert_eq!(
        response(ToolContent::Json(envelope.clone()), failed),
        envelope
    );
}

#[test]
fn py_23_a_decoded_content_goes_back_byte_for_byte() {
    let parts = [
        r#"{"text":"","thought":true,"thoughtSignature":"s0"}"#,
        r#"{"text":"hm","thought":true,"thoughtSignature":"s1"}"#,
        r#"{"text":"a"}"#,
        r#"{"text":"b","thoughtSignature":"s2"}"#,
        r#"{"executableCode":{"code":"1.0",  "language":"PYTHON"},"thoughtSignature":"s3"}"#,
        r#"{"functionCall":{"name":"f","args":{"n":1.50,"m":10000000000000000000000}},"thoughtSignature":"s4"}"#,
        r#"{"functionCall":{"name":"g","args":{"z":1,"a":2}}}"#,
        r#"{"toolCall":{"x":[1, 2]}}"#,
        r#"{"text":"","thoughtSignature":"s5"}"#,
    ];
    let content = format!("{{\"role\":\"model\",\"parts\":[{}]}}", parts.join(","));
    let body = format!("{{\"candidates\":[{{\"content\":{content},\"finishReason\":\"STOP\"}}]}}");
    let message = decode(NAME, &sse(&[&body]))
        .candidate()
        .into_message(Some(origin(NAME)));
    let encoded = dialect(NAME)
        .unwrap()
        .encode(&with_messages(vec![message]), &gemini());
    assert_eq!(
        String::from_utf8(encoded.body).unwrap(),
        format!("{{\"contents\":[{content}]}}")
    );
    assert_eq!(encoded.notes, []);
}

#[test]
fn nothing_opaque_goes_to_another_provider() {
    let mut call = tool_call(Some("c1"), "f", "{\"a\":1}");
    let from = foreign();
    call.opaque = Some(opaque(
        from.clone(),
        r#"{"functionCall":{},"thoughtSignature":"s"}"#,
    ));
    let results = vec![tool_result(&call, ToolContent::Text("ok".to_owned()))];
    let parts = vec![
        Part::Reasoning(ReasoningPart {
            text: "hm".to_owned(),
            opaque: None,
        }),
        Part::Text(TextPart {
            text: "a".to_owned(),
            opaque: Some(opaque(from.clone(), r#"{"thoughtSignature":"s"}"#)),
        }),
        Part::ToolCall(call),
        Part::Opaque(opaque(from.clone(), r#"{"executableCode":{}}"#)),
    ];
    let request = with_messages(vec![
        assistant(parts, Some(from)),
        Message::tool_results(results),
    ]);
    let body = encode(&gemini(), &request);
    assert_eq!(
        body["contents"],
        json!([
            {"role": "model", "parts": [{"text": "a"},
                {"functionCall": {"name": "f", "args": {"a": 1}}}]},
            {"role": "user", "parts": [
                {"functionResponse": {"name": "f", "response": {"output": "ok"}}}]},
        ])
    );
    assert_eq!(
        lowerings(&gemini(), &request),
        [
            Lowering::ReasoningDropped,
            Lowering::OpaqueDropped,
            Lowering::OpaqueDropped,
            Lowering::OpaqueDropped
        ]
    );
}

#[test]
fn foreign_calls_are_marked_only_by_quirk() {
    let mut target = gemini();
    target.quirks.skip_signature_for_foreign_calls = true;
    let calls = || {
        let call = Part::ToolCall(tool_call(None, "f", "{}"));
        vec![call.clone(), call]
    };
    let marks = |target: &Target, origin| {
        let sent = contents(target, vec![assistant(calls(), Some(origin))]);
        let parts = sent[0]["parts"].as_array().unwrap().clone();
        parts
            .iter()
            .map(|part| part["thoughtSignature"] == "skip_thought_signature_validator")
            .collect::<Vec<_>>()
    };
    assert_eq!(marks(&target, foreign()), [true, false]);
    assert_eq!(marks(&target, origin(NAME)), [false, false]);
    assert_eq!(marks(&gemini(), foreign()), [false, false]);
}

#[test]
fn a_schema_is_sent_only_without_tools() {
    let mut request = with_messages(vec![Message::user("hi")]);
    request.response_schema = Some(json!({"type": "object"}));
    let config = encode(&gemini(), &request)["generationConfig"].clone();
    assert_eq!(
        config,
        json!({"responseMimeType": "application/json", "responseJsonSchema": {"type": "object"}})
    );
    request.tools = Arc::new(vec![tool_spec("f", json!({"type": "object"}))]);
    request.tool_choice = ToolChoice::None;
    let body = encode(&gemini(), &request);
    assert_eq!(body["generationConfig"], Value::Null);
    assert_eq!(body["toolConfig"]["functionCallingConfig"]["mode"], "NONE");
    assert_eq!(lowerings(&gemini(), &request), [Lowering::SchemaDropped]);
}

#[test]
fn media_of_results_follow_in_a_content_of_their_own() {
    let call = tool_call(None, "shot", "{}");
    let mut result = tool_result(&call, ToolContent::Text("taken".to_owned()));
    let shot = Media {
        kind: MediaKind::Image,
        mime: "image/png".to_owned(),
        name: None,
        source: MediaSource::Base64("QUJD".to_owned()),
    };
    result.blocks = vec![shot.into()];
    let sent = contents(&gemini(), vec![Message::tool_results(vec![result])]);
    assert_eq!(sent[0]["parts"].as_array().unwrap().len(), 1);
    assert_eq!(
        sent[1]["parts"][1],
        json!({"inlineData": {"mimeType": "image/png", "data": "QUJD"}})
    );
}

#[test]
fn broken_arguments_are_sent_as_an_empty_object() {
    let mut call = tool_call(None, "f", "{\"a\":");
    call.complete = false;
    let request = with_messages(vec![assistant(
        vec![Part::ToolCall(call)],
        Some(origin(NAME)),
    )]);
    let sent = encode(&gemini(), &request);
    assert_eq!(
        sent["contents"][0]["parts"][0]["functionCall"]["args"],
        json!({})
    );
    assert_eq!(
        lowerings(&gemini(), &request),
        [Lowering::ArgumentsReplaced]
    );
}

#[test]
fn names_that_the_provider_refuses_are_replaced_on_both_sides() {
    for (name, sent) in [
        ("mcp.a:b", "mcp.a:b"),
        ("9a", "_9a"),
        ("a b", "a_b"),
        ("", "unnamed"),
    ] {
        let call = tool_call(None, name, "{}");
        let result = tool_result(&call, ToolContent::Text("x".to_owned()));
        let list = vec![
            assistant(vec![Part::ToolCall(call)], None),
            Message::tool_results(vec![result]),
        ];
        let sent_contents = contents(&gemini(), list);
        assert_eq!(sent_contents[0]["parts"][0]["functionCall"]["name"], sent);
        assert_eq!(
            sent_contents[1]["parts"][0]["functionResponse"]["name"],
            sent
        );
    }
}

#[test]
fn what_a_model_said_in_two_messages_is_one_content() {
    let call = tool_call(Some("c1"), "f", "{}");
    let result = tool_result(&call, ToolContent::Text("ok".to_owned()));
    let from = || Some(origin("anthropic"));
    let paused = Message {
        paused: true,
        ..assistant(vec![Part::text("first")], from())
    };
    let list = contents(
        &gemini(),
        vec![
            Message::user("hi"),
            paused,
            assistant(vec![Part::ToolCall(call)], from()),
            Message::tool_results(vec![result]),
        ],
    );
    assert_eq!(list.as_array().map(Vec::len), Some(3));
    let called = json!({"functionCall": {"name": "f", "args": {}}});
    assert_eq!(
        list[1],
        json!({"role": "model", "parts": [{"text": "first"}, called]})
    );
}
