//! Parts of a conversation that another model of the same provider may read.

use crate::support::{
    assistant, encode, opaque, origin, request, target, tool_call, tool_result, with_messages,
};
use rondo_types::{Message, Origin, Part, ReasoningPart, TextPart, ToolCall, ToolContent};
use rondo_wire::{Target, dialect};
use serde_json::{Value, json};

fn sealed(from: &Origin, text: &str, json: &Value) -> Part {
    Part::Reasoning(ReasoningPart {
        text: text.to_owned(),
        opaque: Some(opaque(from.clone(), &json.to_string())),
    })
}

fn attached(from: &Origin, call: ToolCall, json: &Value) -> ToolCall {
    ToolCall {
        opaque: Some(opaque(from.clone(), &json.to_string())),
        ..call
    }
}

/// Asks with a reply of one call, from the target's own provider.
fn asked(to: &Target, parts: Vec<Part>) -> (Value, Vec<String>) {
    let call = parts.iter().find_map(|part| match part {
        Part::ToolCall(call) => Some(call.clone()),
        _ => None,
    });
    let result = tool_result(&call.unwrap(), ToolContent::Text("ok".to_owned()));
    let mut asked = with_messages(vec![
        Message::user("hi"),
        assistant(parts, Some(origin(&to.origin.dialect))),
        Message::tool_results(vec![result]),
    ]);
    asked.sampling = request().sampling;
    let notes = dialect(&to.origin.dialect)
        .unwrap()
        .encode(&asked, to)
        .notes;
    let notes = notes.iter().map(ToString::to_string).collect();
    (encode(to, &asked), notes)
}

fn other_model(name: &str) -> Target {
    let mut to = target(name);
    to.origin.model = "other-model".to_owned();
    to
}

#[test]
fn thinking_of_another_model_is_left_out_and_server_tools_are_not() {
    let from = origin("anthropic");
    let search = json!({"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}});
    let found = json!({"type": "web_search_tool_result", "tool_use_id": "s1", "content": []});
    let redacted = json!({"type": "redacted_thinking", "data": "SEALED"});
    let parts = || {
        vec![
            sealed(&from, "hm", &json!({"signature": "SEALED"})),
            Part::Opaque(opaque(from.clone(), &redacted.to_string())),
            Part::Opaque(opaque(from.clone(), &search.to_string())),
            Part::Opaque(opaque(from.clone(), &found.to_string())),
            Part::ToolCall(tool_call(Some("toolu_1"), "f", "{}")),
        ]
    };
    let (same, _) = asked(&target("anthropic"), parts());
    assert_eq!(same.to_string().matches("SEALED").count(), 2);
    let (other, notes) = asked(&other_model("anthropic"), parts());
    let call = json!({"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}});
    assert_eq!(
        other["messages"][1]["content"],
        json!([search, found, call])
    );
    assert!(
        notes
            .contains(&"message 1, part 0: reasoning left out: it came from some-model".to_owned())
    );
    assert!(notes.contains(
        &"message 1, part 1: provider data left out: it came from some-model".to_owned()
    ));
}

#[test]
fn items_of_another_model_lose_their_reasoning_and_their_ids() {
    let from = origin("openai-responses");
    let parts = || {
        let text = json!({"type": "message", "id": "msg_1", "role": "assistant",
            "content": [{"type": "output_text", "text": "so", "annotations": []}]});
        let call = json!({"type": "function_call", "id": "fc_1", "call_id": "call_1",
            "name": "f", "arguments": "{}"});
        vec![
            sealed(
                &from,
                "",
                &json!({"type": "reasoning", "id": "rs_1", "summary": [],
                    "encrypted_content": "SEALED"}),
            ),
            Part::Text(TextPart {
                text: "so".to_owned(),
                opaque: Some(opaque(from.clone(), &text.to_string())),
            }),
            Part::ToolCall(attached(&from, tool_call(Some("call_1"), "f", "{}"), &call)),
        ]
    };
    let (same, _) = asked(&target("openai-responses"), parts());
    assert_eq!(same["input"][1]["id"], "rs_1");
    let (other, notes) = asked(&other_model("openai-responses"), parts());
    assert_eq!(
        other["input"],
        json!([
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
            {"type": "message", "role": "assistant",
             "content": [{"type": "output_text", "text": "so"}]},
            {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "call_1", "output": "ok"},
        ])
    );
    assert_eq!(notes.len(), 3, "{notes:?}");
    assert!(notes.iter().all(|note| note.ends_with("from some-model")));
}

#[test]
fn signatures_of_another_model_are_left_out_and_what_they_signed_is_not() {
    let from = origin("gemini");
    let parts = || {
        let call = json!({"functionCall": {"id": "c1", "name": "f", "args": {}, "new": 1},
            "thoughtSignature": "SEALED"});
        let code = json!({"executableCode": {"language": "PYTHON", "code": "1"},
            "thoughtSignature": "SEALED"});
        vec![
            sealed(&from, "hm", &json!({"thoughtSignature": "SEALED"})),
            Part::Opaque(opaque(from.clone(), &code.to_string())),
            Part::ToolCall(attached(&from, tool_call(Some("c1"), "f", "{}"), &call)),
            Part::Text(TextPart {
                text: String::new(),
                opaque: Some(opaque(from.clone(), r#"{"thoughtSignature":"SEALED"}"#)),
            }),
        ]
    };
    let (same, _) = asked(&target("gemini"), parts());
    assert_eq!(same.to_string().matches("SEALED").count(), 4);
    let code = json!({"executableCode": {"language": "PYTHON", "code": "1"}});
    let call = json!({"functionCall": {"id": "c1", "name": "f", "args": {}, "new": 1}});
    let (other, notes) = asked(&other_model("gemini"), parts());
    assert_eq!(other["contents"][1]["parts"], json!([code, call]));
    assert_eq!(
        other["contents"][2]["parts"][0]["functionResponse"]["id"],
        "c1"
    );
    assert_eq!(notes.len(), 4, "{notes:?}");

    let mut marked = other_model("gemini");
    marked.quirks.skip_signature_for_foreign_calls = true;
    let (body, _) = asked(&marked, parts());
    let mark = &body["contents"][1]["parts"][1]["thoughtSignature"];
    assert_eq!(mark, "skip_thought_signature_validator");
}

#[test]
fn fields_that_a_model_attached_do_not_go_to_another_but_plain_reasoning_does() {
    let from = origin("openai-chat");
    let parts = || {
        let extra = json!({"extra_content": {"google": {"thought_signature": "SEALED"}}});
        let details = json!({"reasoning_details": [{"type": "reasoning.encrypted",
            "data": "SEALED"}]});
        vec![
            Part::Reasoning(ReasoningPart {
                text: "hm".to_owned(),
                opaque: None,
            }),
            Part::Opaque(opaque(from.clone(), &details.to_string())),
            Part::ToolCall(attached(&from, tool_call(Some("c1"), "f", "{}"), &extra)),
        ]
    };
    let (same, _) = asked(&target("openai-chat"), parts());
    assert_eq!(same.to_string().matches("SEALED").count(), 2);
    let mut to = other_model("openai-chat");
    to.quirks.echo_reasoning = Some("reasoning_content".to_owned());
    let (other, notes) = asked(&to, parts());
    assert_eq!(other.to_string().matches("SEALED").count(), 0);
    assert_eq!(other["messages"][1]["reasoning_content"], "hm");
    assert_eq!(other["messages"][1]["tool_calls"][0]["id"], "c1");
    assert_eq!(notes.len(), 2, "{notes:?}");
}

#[test]
fn what_came_from_another_provider_of_the_same_wire_is_noted_with_its_name() {
    let mut to = target("openai-chat");
    to.origin.provider = "elsewhere".to_owned();
    let parts = vec![
        Part::Reasoning(ReasoningPart {
            text: "hm".to_owned(),
            opaque: None,
        }),
        Part::ToolCall(tool_call(Some("c1"), "f", "{}")),
    ];
    let (_, notes) = asked(&to, parts);
    assert_eq!(
        notes,
        ["message 1, part 0: reasoning left out: it came from recorded"]
    );
}

#[test]
fn only_the_model_that_was_paused_goes_on_without_a_word() {
    let from = origin("anthropic");
    let search = json!({"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}});
    let paused = Message {
        paused: true,
        ..assistant(
            vec![
                Part::text("a"),
                Part::Opaque(opaque(from.clone(), &search.to_string())),
            ],
            Some(from),
        )
    };
    let asked = with_messages(vec![Message::user("hi"), paused]);
    let same = encode(&target("anthropic"), &asked);
    assert_eq!(same["messages"].as_array().unwrap().len(), 2);
    let other = encode(&other_model("anthropic"), &asked);
    assert_eq!(other["messages"][2]["role"], "user");
    let content = other["messages"][1]["content"].as_array().unwrap();
    assert_eq!(
        content.len(),
        1,
        "no call that nothing answers: {content:?}"
    );
}
