//! Parts of recorded sessions that must be sent back are sent back.

use crate::support::{
    Recorded, decode_pieces, encode, origin, recordings, sessions, target, tool_result,
    with_messages,
};
use rondo_types::{Message, ToolCall, ToolContent};
use serde_json::{Value, json};

/// Decodes an exchange and returns the message and its calls.
fn said(dialect: &str, recorded: &Recorded) -> (Message, Vec<ToolCall>) {
    let decoded = decode_pieces(&target(dialect), &[&recorded.body]);
    let message = decoded.candidate().into_message(Some(origin(dialect)));
    let calls = message.tool_calls().cloned().collect();
    (message, calls)
}

#[test]
fn gs_1_gs_2_openai_chat_sessions_go_back_as_recorded() {
    let sessions = sessions("openai-chat");
    assert_eq!(sessions.len(), 3);
    for session in sessions {
        let mut messages = Vec::new();
        for (before, next) in session.iter().zip(session.iter().skip(1)) {
            let (message, calls) = said("openai-chat", before);
            assert!(!calls.is_empty(), "{}", before.name);
            messages.push(message);
            let recorded = next.request.as_ref().unwrap()["messages"].clone();
            let recorded = recorded.as_array().unwrap();
            let contents = recorded.iter().rev().take(calls.len()).rev();
            let results = calls
                .iter()
                .zip(contents)
                .map(|(call, it)| {
                    tool_result(
                        call,
                        ToolContent::Text(it["content"].as_str().unwrap().into()),
                    )
                })
                .collect();
            messages.push(Message::tool_results(results));

            let encoded = encode(&target("openai-chat"), &with_messages(messages.clone()));
            let encoded = encoded["messages"].as_array().unwrap();
            let tail = recorded.len() - encoded.len();
            for (ours, theirs) in encoded.iter().zip(recorded.iter().skip(tail)) {
                assert_eq!(chat_shape(ours), chat_shape(theirs), "{}", next.name);
            }
        }
    }
}

/// Clients differ in whether they send a null content, the index, and blanks in the arguments.
fn chat_shape(message: &Value) -> Value {
    let calls: Vec<Value> = message["tool_calls"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|call| {
            let arguments = call["function"]["arguments"].as_str().unwrap();
            let arguments: Value = serde_json::from_str(arguments).unwrap();
            json!([
                call["id"],
                call["type"],
                call["function"]["name"],
                arguments
            ])
        })
        .collect();
    json!([
        message["role"],
        message["content"],
        message["tool_call_id"],
        calls
    ])
}

#[test]
fn py_22_py_23_py_24_gemini_sessions_go_back_as_recorded() {
    let sessions = sessions("gemini");
    assert_eq!(sessions.len(), 3);
    let mut signatures = 0;
    for session in sessions {
        let first = &session[0].request.as_ref().unwrap()["contents"][0]["parts"][0]["text"];
        let mut messages = vec![Message::user(first.as_str().unwrap())];
        for (before, next) in session.iter().zip(session.iter().skip(1)) {
            let (message, calls) = said("gemini", before);
            messages.push(message);
            let recorded = next.request.as_ref().unwrap()["contents"].clone();
            let recorded = recorded.as_array().unwrap();
            let parts = recorded.last().unwrap()["parts"].as_array().unwrap();
            assert_eq!(parts.len(), calls.len());
            let results = calls
                .iter()
                .zip(parts)
                .map(|(call, part)| {
                    let response = part["functionResponse"]["response"].clone();
                    tool_result(call, ToolContent::Json(response))
                })
                .collect();
            messages.push(Message::tool_results(results));

            let encoded = encode(&target("gemini"), &with_messages(messages.clone()));
            let encoded = encoded["contents"].as_array().unwrap();
            let ours: Vec<Value> = encoded.iter().map(gemini_shape).collect();
            let theirs: Vec<Value> = recorded.iter().map(gemini_shape).collect();
            assert_eq!(ours, theirs, "{}", next.name);
            signatures += json!(ours).to_string().matches("thoughtSignature").count();
        }
    }
    assert_eq!(signatures, 2);
}

/// One client adds ids of its own and another `"thought": false`.
fn gemini_shape(content: &Value) -> Value {
    let mut content = content.clone();
    for part in content["parts"].as_array_mut().unwrap() {
        let part = part.as_object_mut().unwrap();
        part.retain(|key, value| key != "thought" || value != false);
        for key in ["functionCall", "functionResponse"] {
            if let Some(inner) = part.get_mut(key) {
                inner.as_object_mut().unwrap().remove("id");
            }
        }
    }
    content
}

/// Returns a recorded exchange by a part of its file's name.
fn recorded(dialect: &str, name: &str) -> Recorded {
    let found = recordings(dialect)
        .into_iter()
        .find(|it| it.name.contains(name));
    found.unwrap()
}

#[test]
fn recorded_reasoning_beside_a_call_goes_back_where_it_must() {
    let exchange = recorded("openai-chat", "deepseek-tool-call");
    let (message, calls) = said("openai-chat", &exchange);
    assert_eq!(calls.len(), 1);
    let mut target = target("openai-chat");
    target.quirks.echo_reasoning = Some("reasoning_content".to_owned());
    let encoded = encode(&target, &with_messages(vec![message]));
    let sent = &encoded["messages"][0];
    assert_eq!(sent["reasoning_content"], exchange.expected["reasoning"]);
    let sent_call = &sent["tool_calls"][0];
    let expected = &exchange.expected["tool_calls"][0];
    assert_eq!(sent_call["id"], expected["id"]);
    assert_eq!(sent_call["function"]["arguments"], expected["arguments"]);
}

#[test]
fn a_recorded_signature_on_an_empty_text_goes_back_on_an_empty_text() {
    let exchange = recorded("gemini", "google-reasoning-gemini3");
    let (message, _) = said("gemini", &exchange);
    let encoded = encode(&target("gemini"), &with_messages(vec![message]));
    let parts = encoded["contents"][0]["parts"].as_array().unwrap();
    let [text, signed] = parts.as_slice() else {
        panic!("{parts:?}");
    };
    assert_eq!(*text, json!({"text": exchange.expected["text"]}));
    assert_eq!(signed["text"], "");
    let signature = signed["thoughtSignature"].as_str().unwrap();
    assert!(String::from_utf8_lossy(&exchange.body).contains(signature));
}
