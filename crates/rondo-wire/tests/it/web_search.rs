//! The provider's own search of the web, in the dialects that have one.

use crate::support::{decode, encode, origin, request, target};
use rondo_types::{Message, ModelRequest, Part, ToolChoice, ToolSpec};
use rondo_wire::{Lowering, Target, dialect};
use serde_json::{Value, json};
use std::sync::Arc;

fn asking(tools: usize, tool_choice: ToolChoice) -> ModelRequest {
    let tool = |number: usize| ToolSpec {
        name: format!("tool_{number}"),
        ..ToolSpec::default()
    };
    ModelRequest {
        messages: vec![Message::user("hi").into()],
        tools: Arc::new((0..tools).map(tool).collect()),
        tool_choice,
        ..request()
    }
}

fn searching(name: &str) -> Target {
    Target {
        web_search: true,
        ..target(name)
    }
}

fn is_dropped(name: &str, request: &ModelRequest) -> bool {
    let encoded = dialect(name).unwrap().encode(request, &searching(name));
    let mut notes = encoded.notes.iter();
    notes.any(|note| note.lowering == Lowering::SearchDropped)
}

/// Returns the last tool of a request, and how many there are.
fn last(name: &str, request: &ModelRequest) -> (Value, usize) {
    let body = encode(&searching(name), request);
    let tools = body["tools"].as_array().cloned().unwrap_or_default();
    let count = tools.len();
    (tools.into_iter().next_back().unwrap_or_default(), count)
}

#[test]
fn the_search_stands_behind_the_tools() {
    let anthropic = json!({"type": "web_search_20250305", "name": "web_search", "max_uses": 5});
    let responses = json!({"type": "web_search"});
    for (name, mut expected) in [("anthropic", anthropic), ("openai-responses", responses)] {
        for (tools, choice) in [
            (0, ToolChoice::Auto),
            (2, ToolChoice::Auto),
            (2, ToolChoice::None),
        ] {
            let request = asking(tools, choice);
            let (mut found, count) = last(name, &request);
            // The end of the tools is where prompts are cached.
            found.as_object_mut().unwrap().remove("cache_control");
            expected.as_object_mut().unwrap().remove("cache_control");
            assert_eq!((found, count), (expected.clone(), tools + 1), "{name}");
            assert!(!is_dropped(name, &request));
        }
        assert_eq!(last(name, &asking(0, ToolChoice::None)).1, 0, "{name}");
        let plain = encode(&target(name), &asking(1, ToolChoice::Auto));
        assert!(!plain.to_string().contains("web_search"), "{name}");
    }
}

#[test]
fn gemini_searches_only_where_there_are_no_tools() {
    let alone = asking(0, ToolChoice::Auto);
    assert_eq!(last("gemini", &alone), (json!({"google_search": {}}), 1));
    assert!(!is_dropped("gemini", &alone));
    let beside = asking(1, ToolChoice::Auto);
    assert!(is_dropped("gemini", &beside));
    assert!(
        !encode(&searching("gemini"), &beside)
            .to_string()
            .contains("google_search")
    );
}

#[test]
fn a_dialect_without_search_says_that_it_left_it_out() {
    let request = asking(1, ToolChoice::Auto);
    assert!(is_dropped("openai-chat", &request));
    assert_eq!(
        encode(&searching("openai-chat"), &request),
        encode(&target("openai-chat"), &request)
    );
}

#[test]
fn what_a_search_found_goes_back_as_it_came() {
    let found = r#"{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"serde"}},{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","url":"https://serde.rs/","title":"Serde","encrypted_content":"abc","page_age":null}]},{"type":"text","text":"It is a framework.","citations":[{"type":"web_search_result_location","url":"https://serde.rs/","title":"Serde","encrypted_index":"xyz","cited_text":"A framework"}]}"#;
    let document = format!(
        r#"{{"type":"message","role":"assistant","content":[{found}],"stop_reason":"end_turn"}}"#
    );
    let candidate = decode("anthropic", &document).candidate();
    let message = candidate.into_message(Some(origin("anthropic")));
    let texts = message
        .parts
        .iter()
        .filter(|part| matches!(part, Part::Text(_)));
    assert_eq!(texts.count(), 1);
    let request = ModelRequest {
        messages: vec![
            Message::user("hi").into(),
            message.into(),
            Message::user("on").into(),
        ],
        ..asking(1, ToolChoice::Auto)
    };
    let encoded = dialect("anthropic")
        .unwrap()
        .encode(&request, &searching("anthropic"));
    let body = String::from_utf8(encoded.body).unwrap();
    assert!(body.contains(found), "{body}");
}
