//! Encoded requests of Anthropic Messages.

use crate::support::{
    assistant, decode, decode_pieces, encode, lowerings, opaque, origin, request, sessions, sse,
    target, tool_call, tool_result, tool_spec, with_messages,
};
use rondo_types::{
    Effort, Media, MediaKind, MediaSource, Message, ModelRequest, Part, ReasoningPart, Sampling,
    ToolChoice, ToolContent, ToolErrorCode,
};
use rondo_wire::{Lowering, Target, dialect};
use serde_json::{Value, json};
use std::sync::Arc;

const NAME: &str = "anthropic";

fn anthropic() -> Target {
    target(NAME)
}

fn messages(list: Vec<Message>) -> Value {
    let mut sent = encode(&anthropic(), &with_messages(list))["messages"].clone();
    for message in sent.as_array_mut().unwrap() {
        for block in message["content"].as_array_mut().unwrap() {
            block.as_object_mut().unwrap().remove("cache_control");
        }
    }
    sent
}

fn image(mime: &str) -> Media {
    Media {
        kind: MediaKind::Image,
        mime: mime.to_owned(),
        name: None,
        source: MediaSource::Base64("QUJD".to_owned()),
    }
}

fn ephemeral() -> Value {
    json!({"type": "ephemeral"})
}

#[test]
fn the_whole_request_is_as_documented() {
    let schema = json!({"type": "object"});
    let request = ModelRequest {
        system: vec!["one".to_owned(), "two".to_owned()].into(),
        messages: vec![Arc::new(Message::user("hi"))],
        tools: Arc::new(vec![
            tool_spec("f", schema.clone()),
            tool_spec("g", schema.clone()),
        ]),
        sampling: Sampling {
            temperature: Some(0.5),
            max_output_tokens: Some(100),
            effort: None,
        },
        ..request()
    };
    assert_eq!(
        encode(&anthropic(), &request),
        json!({
            "model": "some-model",
            "max_tokens": 100,
            "temperature": 0.5,
            "tools": [
                {"name": "f", "description": "does it", "input_schema": schema},
                {"name": "g", "description": "does it", "input_schema": schema,
                    "cache_control": ephemeral()}],
            "system": [
                {"type": "text", "text": "one"},
                {"type": "text", "text": "two", "cache_control": ephemeral()}],
            "messages": [{"role": "user", "content": [
                {"type": "text", "text": "hi", "cache_control": ephemeral()}]}],
            "stream": true,
        })
    );
    let encoded = dialect(NAME).unwrap().encode(&request, &anthropic());
    assert_eq!(encoded.path, "/v1/messages");
    assert_eq!(encoded.notes, []);
}

#[test]
fn an_output_bound_is_added_where_none_is_given() {
    let request = with_messages(vec![Message::user("hi")]);
    assert_eq!(encode(&anthropic(), &request)["max_tokens"], 8192);
    assert_eq!(
        lowerings(&anthropic(), &request),
        [Lowering::OutputBoundAdded]
    );
}

#[test]
fn at_most_four_marks_are_set_and_none_on_thinking() {
    let call = tool_call(Some("c1"), "f", "{}");
    let thinking = Part::Reasoning(ReasoningPart {
        text: "hm".to_owned(),
        opaque: Some(opaque(origin(NAME), r#"{"signature":"s"}"#)),
    });
    let mut list = vec![Message::user("a")];
    for _ in 0..3 {
        let parts = vec![thinking.clone(), Part::ToolCall(call.clone())];
        list.push(assistant(parts, Some(origin(NAME))));
        let result = tool_result(&call, ToolContent::Text("ok".to_owned()));
        list.push(Message::tool_results(vec![result]));
    }
    let mut request = with_messages(list);
    request.system = vec!["s".to_owned()].into();
    request.tools = Arc::new(vec![tool_spec("f", json!({"type": "object"}))]);
    let sent = encode(&anthropic(), &request);
    assert_eq!(sent.to_string().matches("cache_control").count(), 4);
    let list = sent["messages"].as_array().unwrap();
    let marked: Vec<_> = list
        .iter()
        .map(|message| message.to_string().contains("cache_control"))
        .collect();
    assert_eq!(marked, [false, false, false, false, true, false, true]);
}

#[test]
fn results_come_first_in_one_user_message() {
    let calls = [
        tool_call(Some("c1"), "f", "{}"),
        tool_call(Some("c2"), "g", "{\"a\": 1}"),
    ];
    let mut results: Vec<_> = calls
        .iter()
        .map(|call| tool_result(call, ToolContent::Text("x".to_owned())))
        .collect();
    results[1].error = Some(ToolErrorCode::Failed);
    let list = vec![
        Message::user("hi"),
        assistant(calls.map(Part::ToolCall).into(), Some(origin(NAME))),
        Message::tool_results(vec![results[0].clone()]),
        Message::user("and"),
        Message::tool_results(vec![results[1].clone()]),
    ];
    assert_eq!(
        messages(list),
        json!([
            {"role": "user", "content": [{"type": "text", "text": "hi"}]},
            {"role": "assistant", "content": [
                {"type": "tool_use", "id": "c1", "name": "f", "input": {}},
                {"type": "tool_use", "id": "c2", "name": "g", "input": {"a": 1}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": "x"},
                {"type": "tool_result", "tool_use_id": "c2", "content": "x", "is_error": true},
                {"type": "text", "text": "and"}]},
        ])
    );
}

#[test]
fn a_decoded_message_goes_back_as_it_came() {
    let blocks = [
        r#"{"type":"thinking","thinking":"hm","signature":"s1"}"#,
        r#"{"type":"redacted_thinking", "data":"abc","n":1.50}"#,
        r#"{"type":"thinking","thinking":"","signature":"s2"}"#,
        r#"{"type":"text","text":"a"}"#,
        r#"{"type":"text","text":"b","citations":[{"url":"u"}]}"#,
        r#"{"type":"server_tool_use","id":"x","name":"web_search","input":{"q":"z"}}"#,
        r#"{"type":"tool_use","id":"c1","name":"f","input":{"z":1.50,"a":2},"caller":{"type":"direct"}}"#,
    ];
    let document = format!(
        r#"{{"type":"message","content":[{}],"stop_reason":"tool_use"}}"#,
        blocks.join(",")
    );
    let message = decode(NAME, &document)
        .candidate()
        .into_message(Some(origin(NAME)));
    let list = vec![Message::user("hi"), message, Message::user("on")];
    let encoded = dialect(NAME)
        .unwrap()
        .encode(&with_messages(list), &anthropic());
    let body = String::from_utf8(encoded.body).unwrap();
    let sent = format!(r#"{{"role":"assistant","content":[{}]}}"#, blocks.join(","));
    assert!(body.contains(&sent), "{body}");
    let notes: Vec<_> = encoded.notes.iter().map(|note| note.lowering).collect();
    assert_eq!(notes, [Lowering::ToolsDeclared, Lowering::OutputBoundAdded]);
}

#[test]
fn recorded_sessions_go_back_as_recorded() {
    let sessions = sessions(NAME);
    assert_eq!(sessions.len(), 2);
    let mut signatures = 0;
    for session in sessions {
        let first = &session[0].request.as_ref().unwrap()["messages"][0]["content"][0]["text"];
        let mut list = vec![Message::user(first.as_str().unwrap())];
        for (before, next) in session.iter().zip(session.iter().skip(1)) {
            let decoded = decode_pieces(&anthropic(), &[&before.body]);
            let message = decoded.candidate().into_message(Some(origin(NAME)));
            let calls: Vec<_> = message.tool_calls().cloned().collect();
            list.push(message);
            let recorded = next.request.as_ref().unwrap()["messages"].clone();
            let recorded = recorded.as_array().unwrap();
            let answer = &recorded.last().unwrap()["content"][0];
            list.push(match calls.first() {
                Some(call) => {
                    let text = answer["content"][0]["text"].as_str().unwrap();
                    let result = tool_result(call, ToolContent::Text(text.to_owned()));
                    Message::tool_results(vec![result])
                }
                None => Message::user(answer["text"].as_str().unwrap()),
            });
            let sent = messages(list.clone());
            let ours: Vec<_> = sent.as_array().unwrap().iter().map(shape).collect();
            let theirs: Vec<_> = recorded.iter().map(shape).collect();
            assert_eq!(ours, theirs, "{}", next.name);
            signatures += sent.to_string().matches("signature_REDACTED").count();
        }
    }
    assert_eq!(signatures, 1);
}

/// The recorded client sends results as blocks, and leaves out who called.
fn shape(message: &Value) -> Value {
    let mut message = message.clone();
    for block in message["content"].as_array_mut().unwrap() {
        block.as_object_mut().unwrap().remove("caller");
        if let Some(text) = block["content"][0]["text"].as_str().map(str::to_owned) {
            block["content"] = json!(text);
        }
    }
    message
}

#[test]
fn a_history_with_calls_declares_its_tools() {
    let call = tool_call(None, "f", "{}");
    let result = tool_result(&call, ToolContent::Text(String::new()));
    let mut request = with_messages(vec![
        Message::user("hi"),
        assistant(
            vec![Part::ToolCall(call.clone()), Part::ToolCall(call)],
            None,
        ),
        Message::tool_results(vec![result]),
    ]);
    let sent = encode(&anthropic(), &request);
    assert_eq!(sent["tools"].as_array().unwrap().len(), 1);
    assert_eq!(sent["tools"][0]["name"], "f");
    assert_eq!(sent["tool_choice"], json!({"type": "none"}));
    assert!(lowerings(&anthropic(), &request).contains(&Lowering::ToolsDeclared));
    request.tools = Arc::new(vec![tool_spec("g", json!({"type": "object"}))]);
    request.tool_choice = ToolChoice::None;
    let sent = encode(&anthropic(), &request);
    assert_eq!(sent["tools"].as_array().unwrap().len(), 1);
    assert_eq!(sent["tools"][0]["name"], "g");
    assert_eq!(sent["tool_choice"], json!({"type": "none"}));
}

#[test]
fn the_user_speaks_first_and_last() {
    let said = || Message::assistant("a");
    let sent = messages(vec![said()]);
    let roles: Vec<_> = sent
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["role"].clone())
        .collect();
    assert_eq!(roles, ["user", "assistant", "user"]);
    let request = with_messages(vec![said()]);
    assert!(lowerings(&anthropic(), &request).contains(&Lowering::UserMessageAdded));
}

#[test]
fn texts_without_anything_to_see_are_left_out() {
    let list = vec![
        Message::user("hi"),
        Message::assistant(" \n"),
        Message::user("on"),
    ];
    assert_eq!(
        messages(list.clone()),
        json!([{"role": "user", "content": [
            {"type": "text", "text": "hi"}, {"type": "text", "text": "on"}]}])
    );
    assert!(lowerings(&anthropic(), &with_messages(list)).contains(&Lowering::MessageDropped));
}

#[test]
fn nothing_opaque_goes_to_another_provider() {
    let mut from = origin(NAME);
    from.provider = "elsewhere".to_owned();
    let mut call = tool_call(Some("c1"), "f", "{\"a\":1}");
    call.opaque = Some(opaque(from.clone(), r#"{"caller":{}}"#));
    let result = tool_result(&call, ToolContent::Text("ok".to_owned()));
    let parts = vec![
        Part::Reasoning(ReasoningPart {
            text: "hm".to_owned(),
            opaque: Some(opaque(from.clone(), r#"{"signature":"s"}"#)),
        }),
        Part::Opaque(opaque(from.clone(), r#"{"type":"redacted_thinking"}"#)),
        Part::ToolCall(call.clone()),
    ];
    let request = with_messages(vec![
        Message::user("hi"),
        assistant(parts, Some(from)),
        Message::tool_results(vec![result]),
    ]);
    let sent = encode(&anthropic(), &request);
    let expected = json!([{"type": "tool_use", "id": call.id.as_str(), "name": "f",
        "input": {"a": 1}}]);
    assert_eq!(sent["messages"][1]["content"], expected);
    assert_eq!(
        sent["messages"][2]["content"][0]["tool_use_id"],
        call.id.as_str()
    );
    assert_eq!(
        lowerings(&anthropic(), &request)[..2],
        [Lowering::ReasoningDropped, Lowering::OpaqueDropped]
    );
}

#[test]
fn an_effort_becomes_what_the_model_knows() {
    let sent = |model: &str, max: Option<u32>| {
        let mut request = with_messages(vec![Message::user("hi")]);
        request.model = model.to_owned();
        request.sampling = Sampling {
            temperature: Some(0.0),
            max_output_tokens: max,
            effort: Some(Effort::Medium),
        };
        encode(&anthropic(), &request)
    };
    let adaptive = sent("claude-opus-4-7", None);
    assert_eq!(adaptive["thinking"], json!({"type": "adaptive"}));
    assert_eq!(adaptive["output_config"], json!({"effort": "medium"}));
    assert_eq!(
        (&adaptive["temperature"], &adaptive["max_tokens"]),
        (&Value::Null, &json!(16_384))
    );
    let budget = |max| sent("claude-sonnet-4-5-20250929", max);
    let enabled = |tokens: u32| json!({"type": "enabled", "budget_tokens": tokens});
    assert_eq!(budget(None)["thinking"], enabled(8192));
    assert_eq!(budget(None)["max_tokens"], 16_384);
    assert_eq!(budget(Some(8192))["thinking"], enabled(4096));
    assert_eq!(budget(Some(2000))["thinking"], Value::Null);
    assert_eq!(budget(Some(2000))["temperature"], 0.0);
    assert_eq!(
        sent("claude-3-5-haiku-latest", None)["thinking"],
        Value::Null
    );
}

#[test]
fn thinking_is_not_switched_on_before_calls_of_another_model_are_answered() {
    let call = tool_call(None, "f", "{}");
    let result = tool_result(&call, ToolContent::Text("x".to_owned()));
    let mut list = vec![
        Message::user("hi"),
        assistant(vec![Part::ToolCall(call)], Some(origin("gemini"))),
        Message::tool_results(vec![result]),
    ];
    let thinking = |list: Vec<Message>| {
        let mut request = with_messages(list);
        request.model = "claude-sonnet-4-5".to_owned();
        request.sampling.effort = Some(Effort::Low);
        encode(&anthropic(), &request)["thinking"].is_object()
    };
    assert!(!thinking(list.clone()));
    list.push(Message::user("next"));
    assert!(thinking(list));
}

#[test]
fn a_temperature_is_kept_within_the_range() {
    let mut request = with_messages(vec![Message::user("hi")]);
    request.sampling.temperature = Some(1.5);
    assert_eq!(encode(&anthropic(), &request)["temperature"], 1.0);
    assert!(lowerings(&anthropic(), &request).contains(&Lowering::SamplingDropped));
}

#[test]
fn media_stay_with_their_result_unless_it_failed() {
    let call = tool_call(Some("c1"), "shot", "{}");
    let mut result = tool_result(&call, ToolContent::Text("taken".to_owned()));
    result.blocks = vec![image("image/png").into(), image("image/tiff").into()];
    let source = json!({"type": "base64", "media_type": "image/png", "data": "QUJD"});
    let block = json!({"type": "image", "source": source});
    let sent = messages(vec![Message::tool_results(vec![result.clone()])]);
    let id = call.id.as_str();
    let text = json!({"type": "text", "text": "taken"});
    let unread = "[image (image/tiff, 3 bytes) cannot be read by this model]";
    let unread = json!({"type": "text", "text": unread});
    assert_eq!(
        sent[0]["content"],
        json!([{"type": "tool_result", "tool_use_id": id, "content": [text, block, unread]}])
    );
    result.error = Some(ToolErrorCode::Failed);
    let request = with_messages(vec![Message::tool_results(vec![result.clone()])]);
    let sent = messages(vec![Message::tool_results(vec![result])]);
    assert_eq!(sent[0]["content"][0]["content"], "taken");
    assert_eq!(sent[0]["content"][2], block);
    assert_eq!(
        lowerings(&anthropic(), &request)[..2],
        [Lowering::MediaAsText, Lowering::MediaMoved]
    );
}

#[test]
fn a_stream_that_was_cut_goes_back_paired() {
    let body = sse(&[
        r#"{"type":"message_start","message":{"id":"m1"}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"c1","name":"f","input":{}}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"a\":"}}"#,
    ]);
    let message = decode(NAME, &body)
        .candidate()
        .into_message(Some(origin(NAME)));
    let call = message.tool_calls().next().unwrap().clone();
    let result = tool_result(&call, ToolContent::Text("cut".to_owned()));
    let sent = messages(vec![
        Message::user("hi"),
        message,
        Message::tool_results(vec![result]),
    ]);
    assert_eq!(sent[1]["content"][0]["input"], json!({}));
    assert_eq!(sent[2]["content"][0]["tool_use_id"], "c1");
}

const SEARCH: &str = r#"{"type":"server_tool_use","id":"srv_1","name":"web_search","input":{}}"#;
const FOUND: &str = r#"{"type":"web_search_tool_result","tool_use_id":"srv_1","content":[]}"#;

/// Reply that was paused in the middle of a search.
fn paused() -> Message {
    let origin = origin(NAME);
    let search = Part::Opaque(opaque(origin.clone(), SEARCH));
    Message {
        paused: true,
        ..assistant(vec![Part::text("I look."), search], Some(origin))
    }
}

#[test]
fn a_paused_reply_goes_back_last_and_unchanged() {
    let body = json!({"type": "message", "stop_reason": "pause_turn", "content": [
        {"type": "text", "text": "I look."},
        serde_json::from_str::<Value>(SEARCH).unwrap()]})
    .to_string();
    let decoded = decode(NAME, &body);
    let said = decoded.candidate().into_message(Some(origin(NAME)));
    assert!(said.paused);
    let sent = messages(vec![Message::user("q"), said]);
    let sent = sent.as_array().unwrap();
    assert_eq!(sent.len(), 2, "nothing is said behind it");
    assert_eq!(sent[1]["role"], "assistant");
    assert_eq!(sent[1]["content"][1].to_string(), {
        let search: Value = serde_json::from_str(SEARCH).unwrap();
        search.to_string()
    });
}

#[test]
fn a_paused_reply_and_what_it_went_on_with_stand_together() {
    let found = Part::Opaque(opaque(origin(NAME), FOUND));
    let went_on = assistant(vec![found, Part::text("42")], Some(origin(NAME)));
    let list = vec![Message::user("q"), paused(), went_on, Message::user("why?")];
    let sent = messages(list);
    assert_eq!(sent[1]["content"][1]["id"], "srv_1");
    assert_eq!(sent[2]["content"][0]["tool_use_id"], "srv_1");
    assert_eq!(sent[3]["content"][0]["text"], "why?");
}

#[test]
fn a_search_that_was_never_answered_is_left_out_once_somebody_else_speaks() {
    let list = vec![Message::user("q"), paused(), Message::user("sum up")];
    let sent = messages(list.clone());
    assert_eq!(
        sent[1]["content"],
        json!([{"type": "text", "text": "I look."}])
    );
    let notes = lowerings(&anthropic(), &with_messages(list));
    assert!(notes.contains(&Lowering::OpaqueDropped));
}

#[test]
fn a_reply_that_another_provider_paused_is_not_gone_on_with() {
    let mut other = paused();
    other.origin.as_mut().unwrap().provider = "other".to_owned();
    let sent = messages(vec![Message::user("q"), other]);
    assert_eq!(sent[2]["content"][0]["text"], "Continue.");
}

fn with_schema(model: &str, schema: &Value) -> ModelRequest {
    ModelRequest {
        model: model.to_owned(),
        messages: vec![Arc::new(Message::user("hi"))],
        response_schema: Some(schema.clone()),
        ..request()
    }
}

#[test]
fn an_answer_is_held_to_its_schema_where_the_model_can() {
    let closed = json!({"type": "object", "additionalProperties": false,
        "properties": {"a": {"type": "array", "minItems": 1, "items": {"type": ["string", "null"]}}}});
    let sent = encode(&anthropic(), &with_schema("claude-sonnet-4-5", &closed));
    let format = json!({"type": "json_schema", "schema": closed});
    assert_eq!(sent["output_config"], json!({"format": format}));

    let mut request = with_schema("claude-opus-4-6", &closed);
    request.sampling.effort = Some(Effort::High);
    let sent = encode(&anthropic(), &request);
    let config = json!({"effort": "high", "format": format});
    assert_eq!(sent["output_config"], config);
}

#[test]
fn a_schema_that_would_be_refused_is_left_out() {
    let closed = json!({"type": "object", "additionalProperties": false, "properties": {}});
    let refused = [
        ("claude-3-7-sonnet-latest", closed.clone()),
        ("claude-opus-4-1", closed.clone()),
        ("claude-sonnet-4-20250514", closed),
        ("claude-sonnet-4-5", json!({"type": "object"})),
        (
            "claude-sonnet-4-5",
            json!({"properties": {"a": {"type": "string"}}}),
        ),
        (
            "claude-sonnet-4-5",
            json!({"type": "integer", "minimum": 1}),
        ),
        (
            "claude-sonnet-4-5",
            json!({"type": "array", "minItems": 2, "items": {"type": "null"}}),
        ),
        ("claude-sonnet-4-5", json!({"anyOf": [{"type": "object"}]})),
        ("claude-sonnet-4-5", json!({"$ref": "#"})),
        ("claude-sonnet-4-5", json!({"enum": [{}]})),
        ("claude-sonnet-4-5", json!({})),
        (
            "claude-sonnet-4-5",
            json!({"type": "array", "items": {"description": "any"}}),
        ),
        (
            "claude-sonnet-4-5",
            json!({"type": "array", "prefixItems": [{"type": "null"}]}),
        ),
        (
            "claude-sonnet-4-5",
            json!({"type": ["object", "null"], "properties": {"a": {"type": "null"}}}),
        ),
    ];
    for (model, schema) in refused {
        let request = with_schema(model, &schema);
        let sent = encode(&anthropic(), &request);
        assert!(sent.get("output_config").is_none(), "{model} {schema}");
        let notes = lowerings(&anthropic(), &request);
        assert!(notes.contains(&Lowering::SchemaDropped), "{model} {schema}");
    }
}
