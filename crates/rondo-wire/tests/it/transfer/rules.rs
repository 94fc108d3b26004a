//! Rules of providers for a conversation that a schema cannot express.

use super::base;
use super::transcripts::Transcript;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use serde_json::Value;

/// A call or a result, by what its wire tells it by.
type Ids = Vec<String>;

/// Checks who speaks when, and that results follow their calls, all of them and in their order.
pub(super) fn check(to: &'static str, body: &Value, transcript: &Transcript) -> TestCaseResult {
    let pairs = match base(to) {
        "openai-chat" => chat(body)?,
        "openai-responses" => responses(body)?,
        "anthropic" => anthropic(body)?,
        _ => gemini(body)?,
    };
    if to == base(to) {
        prop_assert_eq!(pairs, transcript.results, "to {}", to);
        return Ok(());
    }
    prop_assert_eq!(pairs, 0, "to {}", to);
    prop_assert!(body.get("tools").is_none(), "to {}", to);
    let text = body.to_string();
    let observed = text.matches("[end of output, ").count();
    prop_assert_eq!(observed, transcript.results, "to {}", to);
    Ok(())
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn of_type<'a>(blocks: &'a [Value], kind: &'a str) -> impl Iterator<Item = &'a Value> {
    blocks.iter().filter(move |block| block["type"] == kind)
}

fn are_legal(ids: &Ids, chars_max: usize) -> bool {
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    ids.iter()
        .all(|id| !id.is_empty() && id.len() <= chars_max && id.chars().all(legal))
}

fn chat(body: &Value) -> Result<usize, TestCaseError> {
    let messages = list(body, "messages");
    let mut pairs = 0;
    let mut at = 0;
    while let Some(message) = messages.get(at) {
        let asked: Ids = list(message, "tool_calls")
            .iter()
            .map(|call| text(&call["id"]))
            .collect();
        let behind = messages[at + 1..].iter();
        let answered: Ids = behind
            .take_while(|message| message["role"] == "tool")
            .map(|message| text(&message["tool_call_id"]))
            .collect();
        prop_assert!(message["role"] != "tool", "a result without its call");
        prop_assert!(are_legal(&asked, 40), "{:?}", asked);
        prop_assert_eq!(&asked, &answered);
        pairs += asked.len();
        at += 1 + answered.len();
    }
    let last = messages.last().map(|message| text(&message["role"]));
    prop_assert!(matches!(last.as_deref(), Some("user" | "tool")));
    Ok(pairs)
}

fn responses(body: &Value) -> Result<usize, TestCaseError> {
    prop_assert_eq!(&body["store"], false, "items go back, so none are stored");
    let is_strict_said = |tool: &Value| tool["strict"].is_boolean();
    prop_assert!(list(body, "tools").iter().all(is_strict_said));
    let mut pairs = 0;
    let mut open: Ids = Vec::new();
    let mut answered: Ids = Vec::new();
    for item in list(body, "input") {
        match item["type"].as_str().unwrap_or_default() {
            "function_call" => {
                prop_assert!(answered.is_empty(), "a call between results");
                open.push(text(&item["call_id"]));
            }
            "function_call_output" => answered.push(text(&item["call_id"])),
            _ => prop_assert!(answered.is_empty(), "something between results"),
        }
        if answered.len() == open.len() {
            prop_assert_eq!(&open, &answered);
            prop_assert!(are_legal(&open, 64), "{:?}", open);
            pairs += open.len();
            open.clear();
            answered.clear();
        }
        let is_user = item["role"] == "user";
        prop_assert!(!is_user || open.is_empty(), "the user before a result");
    }
    prop_assert!(
        open.is_empty() && answered.is_empty(),
        "a call without its result"
    );
    Ok(pairs)
}

fn anthropic(body: &Value) -> Result<usize, TestCaseError> {
    let messages = list(body, "messages");
    let mut pairs = 0;
    let mut asked: Ids = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        let role = if index % 2 == 0 { "user" } else { "assistant" };
        prop_assert_eq!(&message["role"], role, "they take turns");
        let blocks = list(message, "content");
        let answered: Ids = blocks
            .iter()
            .take_while(|block| block["type"] == "tool_result")
            .map(|block| text(&block["tool_use_id"]))
            .collect();
        prop_assert_eq!(&asked, &answered, "results come first");
        prop_assert_eq!(of_type(blocks, "tool_result").count(), answered.len());
        pairs += answered.len();
        asked = of_type(blocks, "tool_use")
            .map(|block| text(&block["id"]))
            .collect();
        prop_assert!(are_legal(&asked, 64), "{:?}", asked);
    }
    prop_assert!(asked.is_empty(), "a call without its result");
    prop_assert_eq!(messages.len() % 2, 1, "the user is first and last");
    prop_assert!(pairs == 0 || body.get("tools").is_some());
    prop_assert!(body.to_string().matches("cache_control").count() <= 4);
    Ok(pairs)
}

fn gemini(body: &Value) -> Result<usize, TestCaseError> {
    let mut pairs = 0;
    let mut asked: Ids = Vec::new();
    for content in list(body, "contents") {
        let parts = list(content, "parts");
        let names = |key: &str| -> Ids {
            let found = parts.iter().filter_map(|part| part.get(key));
            found.map(|it| text(&it["name"])).collect()
        };
        let answered = names("functionResponse");
        prop_assert_eq!(
            &asked,
            &answered,
            "as many results as calls, in their order"
        );
        if !answered.is_empty() {
            prop_assert_eq!(answered.len(), parts.len(), "results stand alone");
            prop_assert_eq!(&content["role"], "user");
        }
        pairs += answered.len();
        asked = names("functionCall");
        prop_assert!(asked.is_empty() || content["role"] == "model");
    }
    prop_assert!(asked.is_empty(), "a call without its result");
    let last = list(body, "contents").last().map(|it| text(&it["role"]));
    prop_assert_eq!(last.as_deref(), Some("user"));
    Ok(pairs)
}
