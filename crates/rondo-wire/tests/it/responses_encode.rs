//! Encoded requests of OpenAI Responses.

use crate::support::{
    assistant, decode, decode_pieces, encode, lowerings, opaque, origin, request, sessions, target,
    tool_call, tool_result, tool_spec, with_messages,
};
use rondo_types::{
    Effort, Media, MediaKind, MediaSource, Message, ModelRequest, Part, ReasoningPart, Sampling,
    ToolChoice, ToolContent,
};
use rondo_wire::{Lowering, Target, dialect};
use serde_json::{Value, json};
use std::sync::Arc;

const NAME: &str = "openai-responses";

fn responses() -> Target {
    target(NAME)
}

fn input(list: Vec<Message>) -> Value {
    encode(&responses(), &with_messages(list))["input"].clone()
}

#[test]
fn the_whole_request_is_as_documented() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let request = ModelRequest {
        system: vec!["one".to_owned(), "two".to_owned()].into(),
        messages: vec![Arc::new(Message::user("hi"))],
        tools: Arc::new(vec![tool_spec("f", schema.clone())]),
        tool_choice: ToolChoice::None,
        sampling: Sampling {
            temperature: Some(0.5),
            max_output_tokens: Some(100),
            effort: Some(Effort::High),
        },
        response_schema: Some(schema.clone()),
        ..request()
    };
    assert_eq!(
        encode(&responses(), &request),
        json!({
            "model": "some-model",
            "instructions": "one\n\ntwo",
            "input": [{"type": "message", "role": "user",
                "content": [{"type": "input_text", "text": "hi"}]}],
            "tools": [{"type": "function", "name": "f", "description": "does it",
                "parameters": schema, "strict": false}],
            "tool_choice": "none",
            "temperature": 0.5,
            "max_output_tokens": 100,
            "reasoning": {"effort": "high"},
            "text": {"format": {"type": "json_schema", "name": "answer", "schema": schema,
                "strict": false}},
            "store": false,
            "include": ["reasoning.encrypted_content"],
            "stream": true,
        })
    );
    let encoded = dialect(NAME).unwrap().encode(&request, &responses());
    assert_eq!(encoded.path, "/responses");
    assert_eq!(encoded.notes, []);
}

#[test]
fn models_that_do_not_reason_are_not_asked_for_sealed_reasoning() {
    let mut request = with_messages(vec![Message::user("hi")]);
    request.model = "gpt-4.1-nano".to_owned();
    let sent = encode(&responses(), &request);
    assert_eq!(
        (&sent["include"], &sent["store"]),
        (&Value::Null, &json!(false))
    );
}

#[test]
fn decoded_items_go_back_byte_for_byte() {
    let items = [
        r#"{"type":"reasoning", "id":"rs_1","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"e"}"#,
        r#"{"type":"reasoning","id":"rs_2","summary":[],"encrypted_content":"f"}"#,
        r#"{"type":"message","id":"msg_1","role":"assistant","phase":"commentary","content":[{"type":"output_text","text":"a","annotations":[]},{"type":"refusal","refusal":"b"}]}"#,
        r#"{"type":"message","id":"msg_2","role":"assistant","content":[{"type":"output_text","text":"c","annotations":[{"u":1.50}]}]}"#,
        r#"{"type":"program","id":"p","code":[1, 2]}"#,
        r#"{"type":"function_call","id":"fc_1","call_id":"c1","name":"f","arguments":"{\"z\": 1}","caller":{"type":"program"}}"#,
    ];
    let document = format!(
        r#"{{"object":"response","status":"completed","output":[{}]}}"#,
        items.join(",")
    );
    let message = decode(NAME, &document)
        .candidate()
        .into_message(Some(origin(NAME)));
    let encoded = dialect(NAME)
        .unwrap()
        .encode(&with_messages(vec![message]), &responses());
    let body = String::from_utf8(encoded.body).unwrap();
    let sent = format!(r#""input":[{}]"#, items.join(","));
    assert!(body.contains(&sent), "{body}");
    assert_eq!(encoded.notes, []);
}

#[test]
fn recorded_sessions_go_back_as_recorded() {
    let sessions = sessions(NAME);
    assert_eq!(sessions.len(), 2);
    let mut sealed = 0;
    for session in sessions {
        let first = session[0].request.as_ref().unwrap();
        let asked = first["input"][0]["content"][0]["text"].as_str().unwrap();
        let decoded = decode_pieces(&responses(), &[&session[0].body]);
        let message = decoded.candidate().into_message(Some(origin(NAME)));
        let call = message.tool_calls().next().unwrap().clone();
        let recorded = session[1].request.as_ref().unwrap()["input"].clone();
        let recorded = recorded.as_array().unwrap();
        let output = recorded.last().unwrap()["output"].as_str().unwrap();
        let result = tool_result(&call, ToolContent::Text(output.to_owned()));
        let list = vec![
            Message::user(asked),
            message,
            Message::tool_results(vec![result]),
        ];
        let sent = input(list);
        let ours: Vec<_> = sent.as_array().unwrap().iter().map(shape).collect();
        let theirs: Vec<_> = recorded.iter().map(shape).collect();
        assert_eq!(ours, theirs, "{}", session[1].name);
        sealed += sent
            .to_string()
            .matches("encrypted_content_REDACTED_2")
            .count();
    }
    assert_eq!(sealed, 1);
}

/// The recorded client leaves out the empty content of reasoning, and adds a status to results.
fn shape(item: &Value) -> Value {
    let mut item = item.clone();
    let fields = item.as_object_mut().unwrap();
    if fields["type"] == "reasoning" {
        fields.remove("content");
    }
    if fields["type"] == "function_call_output" {
        fields.remove("status");
    }
    item
}

#[test]
fn results_are_matched_by_call_id() {
    let own = tool_call(Some("c1"), "f", "{\"a\": 1}");
    let no_id = tool_call(None, "g", "{}");
    let results = [&own, &no_id].map(|call| tool_result(call, ToolContent::Json(json!([1]))));
    let parts = vec![Part::ToolCall(own), Part::ToolCall(no_id.clone())];
    let list = vec![
        assistant(parts, Some(origin(NAME))),
        Message::tool_results(results.into()),
    ];
    let id = no_id.id.as_str();
    assert_eq!(
        input(list),
        json!([
            {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{\"a\": 1}"},
            {"type": "function_call", "call_id": id, "name": "g", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "[1]"},
            {"type": "function_call_output", "call_id": id, "output": "[1]"},
        ])
    );
}

#[test]
fn reasoning_goes_back_only_with_what_followed_it() {
    let item = r#"{"type":"reasoning","id":"rs","summary":[],"encrypted_content":"e"}"#;
    let reasoning = Part::Opaque(opaque(origin(NAME), item));
    let cut = with_messages(vec![
        assistant(vec![reasoning.clone()], Some(origin(NAME))),
        Message::user("on"),
    ]);
    assert_eq!(
        encode(&responses(), &cut)["input"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    assert!(lowerings(&responses(), &cut).contains(&Lowering::ReasoningDropped));
    let parts = vec![reasoning, Part::text("a")];
    let whole = with_messages(vec![assistant(parts, Some(origin(NAME)))]);
    assert_eq!(encode(&responses(), &whole)["input"][0]["id"], "rs");
}

#[test]
fn a_text_that_was_changed_goes_instead_of_its_item() {
    let item = r#"{"type":"message","id":"m","role":"assistant","content":[{"type":"output_text","text":"secret"}]}"#;
    let mut part = rondo_types::TextPart {
        text: "[left out]".to_owned(),
        opaque: Some(opaque(origin(NAME), item)),
    };
    let message = |part: &rondo_types::TextPart| {
        let request = with_messages(vec![assistant(
            vec![Part::Text(part.clone())],
            Some(origin(NAME)),
        )]);
        encode(&responses(), &request)["input"][0].clone()
    };
    assert_eq!(
        message(&part),
        json!({"type": "message", "role": "assistant",
            "content": [{"type": "output_text", "text": "[left out]"}]})
    );
    part.text = "secret".to_owned();
    assert_eq!(message(&part)["id"], "m");
}

#[test]
fn nothing_opaque_goes_to_another_provider() {
    let mut from = origin(NAME);
    from.provider = "elsewhere".to_owned();
    let mut call = tool_call(Some("c1"), "f", "{\"a\":");
    call.opaque = Some(opaque(from.clone(), r#"{"type":"function_call"}"#));
    let parts = vec![
        Part::Reasoning(ReasoningPart {
            text: "hm".to_owned(),
            opaque: Some(opaque(from.clone(), r#"{"type":"reasoning"}"#)),
        }),
        Part::Refusal(rondo_types::TextPart {
            text: "no".to_owned(),
            opaque: None,
        }),
        Part::ToolCall(call.clone()),
    ];
    let request = with_messages(vec![assistant(parts, Some(from))]);
    assert_eq!(
        encode(&responses(), &request)["input"],
        json!([
            {"type": "message", "role": "assistant",
                "content": [{"type": "output_text", "text": "no"}]},
            {"type": "function_call", "call_id": call.id.as_str(), "name": "f",
                "arguments": "{}"},
        ])
    );
    assert_eq!(
        lowerings(&responses(), &request),
        [
            Lowering::ReasoningDropped,
            Lowering::RefusalAsText,
            Lowering::OpaqueDropped,
            Lowering::ArgumentsReplaced,
        ]
    );
}

#[test]
fn media_are_sent_where_they_belong() {
    let media = |kind, source| Media {
        kind,
        mime: "image/png".to_owned(),
        name: Some("a.png".to_owned()),
        source,
    };
    let bytes = || MediaSource::Base64("QUJD".to_owned());
    let url = || MediaSource::Url("https://x/y".to_owned());
    let call = tool_call(None, "shot", "{}");
    let mut result = tool_result(&call, ToolContent::Text("taken".to_owned()));
    result.blocks = vec![media(MediaKind::Image, bytes()).into()];
    let mut asked = Message::user("see");
    for (kind, source) in [
        (MediaKind::Image, url()),
        (MediaKind::File, url()),
        (MediaKind::File, bytes()),
    ] {
        asked.parts.push(Part::Media(media(kind, source)));
    }
    let data = "data:image/png;base64,QUJD";
    let sent = input(vec![asked, Message::tool_results(vec![result])]);
    assert_eq!(
        sent[0]["content"],
        json!([
            {"type": "input_text", "text": "see"},
            {"type": "input_image", "image_url": "https://x/y"},
            {"type": "input_file", "file_url": "https://x/y"},
            {"type": "input_file", "filename": "a.png", "file_data": data},
        ])
    );
    assert_eq!(
        sent[1]["output"],
        json!([
            {"type": "input_text", "text": "taken"},
            {"type": "input_image", "image_url": data},
        ])
    );
}
