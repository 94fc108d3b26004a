use rondo_testkit::check_paired;
use serde_json::{Value, json};

fn openai(messages: &Value) -> Result<(), String> {
    check_paired(&json!({"model": "m", "messages": messages}))
}

fn gemini(contents: &Value) -> Result<(), String> {
    check_paired(&json!({"contents": contents}))
}

fn call(id: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}})
}

fn result(id: &str) -> Value {
    json!({"role": "tool", "tool_call_id": id, "content": "x"})
}

#[test]
fn paired_openai_calls_pass() {
    let messages = json!([
        {"role": "user", "content": "q"},
        {"role": "assistant", "tool_calls": [call("a"), call("b")]},
        result("a"),
        result("b"),
        {"role": "assistant", "content": "done"},
    ]);
    assert_eq!(openai(&messages), Ok(()));
}

#[test]
fn missing_swapped_late_and_stray_openai_results_fail() {
    let calls = json!({"role": "assistant", "tool_calls": [call("a"), call("b")]});
    let user = json!({"role": "user", "content": "q"});
    let broken = [
        json!([user, calls, result("a")]),
        json!([user, calls, result("b"), result("a")]),
        json!([user, calls, user, result("a"), result("b")]),
        json!([user, result("a")]),
        json!([result("a")]),
        json!([user, calls, result("a"), result("b"), result("b")]),
    ];
    for messages in broken {
        assert!(openai(&messages).is_err(), "{messages}");
    }
}

#[test]
fn paired_gemini_calls_pass_with_and_without_ids() {
    let contents = json!([
        {"role": "user", "parts": [{"text": "q"}]},
        {"role": "model", "parts": [
            {"text": "looking"},
            {"functionCall": {"name": "f", "args": {}}},
            {"functionCall": {"name": "g", "id": "1"}},
        ]},
        {"role": "user", "parts": [
            {"functionResponse": {"name": "f", "response": {}}},
            {"functionResponse": {"name": "g", "id": "1", "response": {}}},
        ]},
    ]);
    assert_eq!(gemini(&contents), Ok(()));
}

#[test]
fn interleaved_and_missing_gemini_results_fail() {
    let call = json!({"role": "model", "parts": [{"functionCall": {"name": "f"}}]});
    let other = json!({"role": "user", "parts": [{"functionResponse": {"name": "g"}}]});
    assert!(gemini(&json!([call])).is_err());
    assert!(gemini(&json!([call, other])).is_err());
    assert!(gemini(&json!([other])).is_err());
}

#[test]
fn a_body_of_another_kind_fails() {
    assert!(check_paired(&json!({"input": []})).is_err());
}
