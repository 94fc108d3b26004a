//! Encoded requests of openai-chat.

use crate::support::{
    assistant, encode, lowerings, opaque, origin, request, target, tool_call, tool_result,
    tool_spec, with_messages,
};
use rondo_types::{
    Effort, Media, MediaKind, MediaSource, Message, ModelRequest, Origin, Part, ReasoningPart,
    Role, Sampling, TextPart, ToolChoice, ToolContent,
};
use rondo_wire::{Lowering, MaxTokensField, Quirks, Target, dialect};
use serde_json::{Value, json};
use std::sync::Arc;

const NAME: &str = "openai-chat";

fn chat() -> Target {
    target(NAME)
}

fn messages(target: &Target, list: Vec<Message>) -> Value {
    encode(target, &with_messages(list))["messages"].clone()
}

fn foreign() -> Origin {
    Origin {
        provider: "elsewhere".to_owned(),
        ..origin(NAME)
    }
}

fn png() -> Media {
    Media {
        kind: MediaKind::Image,
        mime: "image/png".to_owned(),
        name: None,
        source: MediaSource::Base64("QUJD".to_owned()),
    }
}

#[test]
fn user_messages_in_a_row_are_one_message() {
    let mut seen = Message::user("three");
    seen.parts.push(Part::Media(png()));
    let list = vec![
        Message::user("one"),
        assistant(Vec::new(), Some(origin(NAME))),
        Message::synthetic_user("two"),
        Message::user("and two"),
        assistant(vec![Part::text("ok")], Some(origin(NAME))),
        seen,
        Message::synthetic_user("four"),
        Message::user("five"),
    ];
    let image = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}});
    assert_eq!(
        messages(&chat(), list),
        json!([
            {"role": "user", "content": "one\n\ntwo\n\nand two"},
            {"role": "assistant", "content": "ok"},
            {"role": "user", "content": [
                {"type": "text", "text": "three"}, image,
                {"type": "text", "text": "four"}, {"type": "text", "text": "five"},
            ]},
        ])
    );
}

/// A request in the middle of a turn repeats the text of the one before it, also if what was added joins its last message.
#[test]
fn a_joined_message_begins_with_what_the_request_before_said() {
    let mut list = vec![Message::user("one"), Message::user("two")];
    let before = messages(&chat(), list.clone());
    list.push(assistant(Vec::new(), Some(origin(NAME))));
    list.push(Message::synthetic_user("Answer."));
    list.push(Message::user("three"));
    let after = messages(&chat(), list);
    assert_eq!(before, json!([{"role": "user", "content": "one\n\ntwo"}]));
    assert_eq!(
        after,
        json!([{"role": "user", "content": "one\n\ntwo\n\nAnswer.\n\nthree"}])
    );
}

#[test]
fn gs_1_gs_2_a_call_and_its_result_have_the_exact_shape() {
    let call = tool_call(Some("call_abc123"), "exec", "{\"command\": \"ls -la\"}");
    let content = ToolContent::Text("{\"stdout\": \"...\", \"exitCode\": 0}".to_owned());
    let result = tool_result(&call, content);
    let list = vec![
        Message::user("..."),
        assistant(vec![Part::ToolCall(call)], Some(origin(NAME))),
        Message::tool_results(vec![result]),
    ];
    assert_eq!(
        messages(&chat(), list),
        json!([
            {"role": "user", "content": "..."},
            {"role": "assistant", "content": null, "tool_calls": [{"id": "call_abc123",
                "type": "function",
                "function": {"name": "exec", "arguments": "{\"command\": \"ls -la\"}"}}]},
            {"role": "tool", "tool_call_id": "call_abc123",
                "content": "{\"stdout\": \"...\", \"exitCode\": 0}"},
        ])
    );
}

#[test]
fn the_whole_request_is_as_documented() {
    let request = ModelRequest {
        system: vec!["one".to_owned(), "two".to_owned()].into(),
        messages: vec![Arc::new(Message::user("hi"))],
        tools: Arc::new(vec![tool_spec("f", json!({"type": "object"}))]),
        sampling: Sampling {
            temperature: Some(0.5),
            max_output_tokens: Some(10),
            effort: Some(Effort::Low),
        },
        ..request()
    };
    let expected = json!({
        "model": "some-model",
        "messages": [{"role": "system", "content": "one\n\ntwo"}, {"role": "user", "content": "hi"}],
        "tools": [{"type": "function", "function":
            {"name": "f", "description": "does it", "parameters": {"type": "object"}}}],
        "temperature": 0.5, "max_tokens": 10, "reasoning_effort": "low",
        "stream": true, "stream_options": {"include_usage": true}
    });
    assert_eq!(encode(&chat(), &request), expected);
    let encoded = dialect(NAME).unwrap().encode(&request, &chat());
    assert_eq!(
        (encoded.path.as_str(), encoded.notes),
        ("/chat/completions", Vec::new())
    );
}

#[test]
fn no_tools_means_no_tool_fields_and_none_keeps_the_tools() {
    let mut request = with_messages(vec![Message::user("hi")]);
    request.tool_choice = ToolChoice::None;
    let body = encode(&chat(), &request);
    assert_eq!(
        (&body["tools"], &body["tool_choice"]),
        (&Value::Null, &Value::Null)
    );
    request.tools = Arc::new(vec![tool_spec("f", json!({"type": "object"}))]);
    let body = encode(&chat(), &request);
    assert_eq!(
        (body["tools"].is_array(), &body["tool_choice"]),
        (true, &json!("none"))
    );
}

#[test]
fn quirks_change_their_field_and_nothing_else() {
    let mut request = with_messages(vec![Message::user("hi")]);
    request.tools = Arc::new(vec![tool_spec("f", json!({"type": "object"}))]);
    request.sampling.max_output_tokens = Some(5);
    request.sampling.temperature = Some(1.0);
    let mut quirky = chat();
    quirky.quirks = Quirks {
        max_tokens_field: MaxTokensField::MaxCompletionTokens,
        omit_stream_usage: true,
        omit_temperature: true,
        parallel_tool_calls: Some(false),
        ..Quirks::default()
    };
    let mut expected = encode(&chat(), &request);
    let fields = expected.as_object_mut().unwrap();
    for gone in ["max_tokens", "stream_options", "temperature"] {
        assert!(fields.remove(gone).is_some(), "{gone}");
    }
    fields.insert("max_completion_tokens".to_owned(), json!(5));
    fields.insert("parallel_tool_calls".to_owned(), json!(false));
    assert_eq!(encode(&quirky, &request), expected);
}

#[test]
fn an_unstreamed_request_asks_for_no_stream() {
    let mut target = chat();
    target.streaming = false;
    let body = encode(&target, &with_messages(vec![Message::user("hi")]));
    assert_eq!(
        (&body["stream"], &body["stream_options"]),
        (&Value::Null, &Value::Null)
    );
}

#[test]
fn extra_fields_are_merged_into_objects_and_replace_the_rest() {
    let mut target = chat();
    let extra = json!({"stream_options": {"more": 1}, "model": "other", "new": [1]});
    target.extra_body = extra.as_object().unwrap().clone();
    let body = encode(&target, &with_messages(vec![Message::user("hi")]));
    assert_eq!(
        body["stream_options"],
        json!({"include_usage": true, "more": 1})
    );
    assert_eq!(
        (&body["model"], &body["new"]),
        (&json!("other"), &json!([1]))
    );
}

#[test]
fn ids_of_another_provider_are_replaced_by_ours_on_both_sides() {
    let call = tool_call(Some("toolu_1"), "f", "{}");
    let result = tool_result(&call, ToolContent::Text("ok".to_owned()));
    let ours = call.id.as_str().to_owned();
    let list = vec![
        assistant(vec![Part::ToolCall(call)], Some(foreign())),
        Message::tool_results(vec![result]),
    ];
    let sent = messages(&chat(), list);
    assert_eq!(sent[0]["tool_calls"][0]["id"], json!(ours));
    assert_eq!(sent[1]["tool_call_id"], json!(ours));
}

#[test]
fn ids_of_nine_characters_are_made_where_they_must_be() {
    let mut target = chat();
    target.quirks.nine_char_ids = true;
    let call = |id| tool_call(Some(id), "f", "{}");
    let list = vec![
        assistant(
            vec![
                Part::ToolCall(call("call_long_1")),
                Part::ToolCall(call("abcdefGH9")),
            ],
            Some(origin(NAME)),
        ),
        Message::tool_results(vec![tool_result(
            &call("call_long_1"),
            ToolContent::Json(json!(1)),
        )]),
    ];
    let sent = messages(&target, list);
    let made = sent[0]["tool_calls"][0]["id"].as_str().unwrap();
    assert_eq!(made.len(), 9);
    assert!(made.bytes().all(|byte| byte.is_ascii_alphanumeric()));
    assert_eq!(sent[0]["tool_calls"][1]["id"], "abcdefGH9");
    assert_eq!(sent[1]["tool_call_id"], made);
}

#[test]
fn arguments_that_are_no_object_are_sent_as_an_empty_one() {
    for broken in ["{\"a\":", "", "[1]", "null", "{} {}"] {
        let part = Part::ToolCall(tool_call(None, "f", broken));
        let request = with_messages(vec![assistant(vec![part], None)]);
        let body = encode(&chat(), &request);
        let sent = &body["messages"][0]["tool_calls"][0]["function"]["arguments"];
        assert_eq!(sent, "{}", "{broken}");
        assert_eq!(lowerings(&chat(), &request), [Lowering::ArgumentsReplaced]);
    }
}

#[test]
fn reasoning_goes_back_only_by_quirk_and_only_to_its_provider() {
    let reasoning = Part::Reasoning(ReasoningPart {
        text: "hm".to_owned(),
        opaque: None,
    });
    let call = Part::ToolCall(tool_call(None, "f", "{}"));
    let mut echoing = chat();
    echoing.quirks.echo_reasoning = Some("reasoning_content".to_owned());
    let sent = |target: &Target, parts: Vec<Part>, origin| {
        let request = with_messages(vec![assistant(parts, Some(origin))]);
        let body = encode(target, &request);
        let field = body["messages"][0]["reasoning_content"].clone();
        (field, lowerings(target, &request))
    };
    let dropped = vec![Lowering::ReasoningDropped];
    let both = || vec![reasoning.clone(), call.clone()];
    assert_eq!(
        sent(&chat(), both(), origin(NAME)),
        (Value::Null, dropped.clone())
    );
    // The field is asked for on every message with calls, wherever it came from.
    assert_eq!(sent(&echoing, both(), foreign()), (json!(""), dropped));
    assert_eq!(sent(&echoing, both(), origin(NAME)), (json!("hm"), vec![]));
    assert_eq!(
        sent(&echoing, vec![call.clone()], origin(NAME)),
        (json!(""), vec![])
    );
}

#[test]
fn opaque_fields_go_back_unchanged_to_their_provider_only() {
    let details = r#"{"reasoning_details":[{"type":"reasoning.encrypted", "data":"x","n":1.0}]}"#;
    let extra = r#"{"extra_content":{"google":{"thought_signature":"s"}}}"#;
    let with_opaque = |from: &Origin| {
        let mut call = tool_call(None, "f", "{}");
        call.opaque = Some(opaque(from.clone(), extra));
        let parts = vec![
            Part::ToolCall(call),
            Part::Opaque(opaque(from.clone(), details)),
        ];
        with_messages(vec![assistant(parts, Some(from.clone()))])
    };
    let own = dialect(NAME)
        .unwrap()
        .encode(&with_opaque(&origin(NAME)), &chat());
    let body = String::from_utf8(own.body).unwrap();
    assert!(body.contains(&details[1..details.len() - 1]), "{body}");
    assert!(body.contains(&extra[1..extra.len() - 1]), "{body}");
    let other = dialect(NAME)
        .unwrap()
        .encode(&with_opaque(&foreign()), &chat());
    let body = String::from_utf8(other.body).unwrap();
    assert!(
        !body.contains("signature") && !body.contains("details"),
        "{body}"
    );
    assert_eq!(other.notes.len(), 2, "one for each part");
}

#[test]
fn a_refusal_is_sent_as_text() {
    let refusal = Part::Refusal(TextPart {
        text: "no".to_owned(),
        opaque: None,
    });
    let request = with_messages(vec![assistant(vec![refusal], Some(origin(NAME)))]);
    assert_eq!(
        encode(&chat(), &request)["messages"],
        json!([{"role": "assistant", "content": "no"}])
    );
    assert_eq!(lowerings(&chat(), &request), [Lowering::RefusalAsText]);
}

#[test]
fn an_empty_assistant_message_is_left_out() {
    let request = with_messages(vec![assistant(vec![], None), Message::user("hi")]);
    assert_eq!(
        encode(&chat(), &request)["messages"],
        json!([{"role": "user", "content": "hi"}])
    );
    assert_eq!(lowerings(&chat(), &request), [Lowering::MessageDropped]);
}

#[test]
fn some_servers_get_an_empty_content_beside_calls() {
    let mut target = chat();
    target.quirks.empty_content_instead_of_null = true;
    let part = Part::ToolCall(tool_call(None, "f", "{}"));
    let sent = messages(&target, vec![assistant(vec![part], None)]);
    assert_eq!(sent[0]["content"], "");
}

#[test]
fn images_and_files_are_parts_of_the_user() {
    let file = Media {
        kind: MediaKind::File,
        mime: "text/plain".to_owned(),
        name: Some("a.txt".to_owned()),
        source: MediaSource::Base64("QQ==".to_owned()),
    };
    let parts = vec![Part::text("look"), Part::Media(png()), Part::Media(file)];
    let user = Message {
        role: Role::User,
        parts,
        origin: None,
        synthetic: false,
        paused: false,
        from_outside: false,
    };
    assert_eq!(
        messages(&chat(), vec![user])[0]["content"],
        json!([
            {"type": "text", "text": "look"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}},
            {"type": "file", "file":
                {"filename": "a.txt", "file_data": "data:text/plain;base64,QQ=="}},
        ])
    );
}

#[test]
fn images_of_results_follow_the_last_result() {
    let call = tool_call(None, "shot", "{}");
    let mut with_image = tool_result(&call, ToolContent::Text("taken".to_owned()));
    with_image.blocks = vec![png().into()];
    let plain = tool_result(&call, ToolContent::Text("ok".to_owned()));
    let sent = messages(
        &chat(),
        vec![Message::tool_results(vec![with_image, plain])],
    );
    let roles: Vec<_> = sent
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["role"])
        .collect();
    assert_eq!(roles, ["tool", "tool", "user"]);
    assert_eq!(sent[2]["content"][1]["type"], "image_url");
}

#[test]
fn a_schema_is_strict_only_where_strict_mode_takes_it() {
    let open = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let closed = json!({"type": "object", "properties": {"a": {"type": "string"}},
        "required": ["a"], "additionalProperties": false});
    for (schema, strict) in [(open, false), (closed, true)] {
        let mut request = with_messages(vec![Message::user("hi")]);
        request.response_schema = Some(schema.clone());
        assert_eq!(
            encode(&chat(), &request)["response_format"],
            json!({"type": "json_schema",
                "json_schema": {"name": "answer", "schema": schema, "strict": strict}})
        );
    }
}

#[test]
fn names_that_the_provider_refuses_are_replaced() {
    let long = "x".repeat(70);
    for (name, sent) in [
        ("functions.exec", "functions_exec"),
        ("a b\u{e9}", "a_b_"),
        ("", "unnamed"),
        ("9-lives_", "9-lives_"),
        (long.as_str(), &long[..64]),
    ] {
        let part = Part::ToolCall(tool_call(None, name, "{}"));
        let request = with_messages(vec![assistant(vec![part], None)]);
        let body = encode(&chat(), &request);
        assert_eq!(
            body["messages"][0]["tool_calls"][0]["function"]["name"],
            sent
        );
        assert_eq!(
            lowerings(&chat(), &request).len(),
            usize::from(name != sent)
        );
    }
}

#[test]
fn lists_of_the_extra_body_stand_behind_ours_in_every_dialect() {
    let cases = [
        (
            "openai-chat",
            json!({"tools": [{"type": "web_search"}], "messages": [{"role": "system", "content": "x"}]}),
            "/tools",
            "/messages",
        ),
        (
            "openai-responses",
            json!({"tools": [{"type": "web_search"}], "input": [{"role": "system", "content": "x"}]}),
            "/tools",
            "/input",
        ),
        (
            "anthropic",
            json!({"tools": [{"type": "web_search_20250305", "name": "web_search"}], "messages": [{"role": "user", "content": "x"}]}),
            "/tools",
            "/messages",
        ),
        (
            "gemini",
            json!({"tools": [{"codeExecution": {}}], "contents": [{"role": "user", "parts": []}]}),
            "/tools",
            "/contents",
        ),
    ];
    for (dialect, extra, tools, messages) in cases {
        let request = ModelRequest {
            tools: Arc::new(vec![tool_spec(
                "f",
                json!({"type": "object", "properties": {}}),
            )]),
            ..with_messages(vec![Message::user("hi")])
        };
        let mut target = target(dialect);
        let plain = encode(&target, &request);
        target.extra_body = extra.as_object().unwrap().clone();
        let sent = encode(&target, &request);
        for place in [tools, messages] {
            let mut expected = plain.pointer(place).unwrap().as_array().unwrap().clone();
            expected.extend(extra.pointer(place).unwrap().as_array().unwrap().clone());
            assert_eq!(
                sent.pointer(place),
                Some(&json!(expected)),
                "{dialect} {place}"
            );
        }
    }
}
