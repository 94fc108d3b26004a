//! Asserts that every tool call in a request has its result.

use serde_json::Value;

/// Asserts that every tool call in a request has exactly one result, right after its message and in
/// call order, and that there is no result without a call.
///
/// Knows the bodies of OpenAI Chat Completions (`messages`) and of Gemini (`contents`).
///
/// # Panics
/// When it is not so, which fails the test.
pub fn assert_paired(request: &Value) {
    if let Err(problem) = check_paired(request) {
        panic!("{problem}\n{request:#}");
    }
}

/// Checks what [`assert_paired`] asserts.
///
/// # Errors
/// Description of the first problem and its place.
pub fn check_paired(request: &Value) -> Result<(), String> {
    if let Some(messages) = request.get("messages").and_then(Value::as_array) {
        return check(messages, openai_calls, openai_results);
    }
    if let Some(contents) = request.get("contents").and_then(Value::as_array) {
        return check(contents, gemini_calls, gemini_results);
    }
    Err("the request has neither `messages` nor `contents`".to_owned())
}

/// Id that a call and its result share.
type Key = String;

fn check(
    messages: &[Value],
    calls: fn(&Value) -> Vec<Key>,
    results: fn(&[Value]) -> (Vec<Key>, usize),
) -> Result<(), String> {
    let mut rest = messages;
    let mut at = 0;
    while let Some((message, after)) = rest.split_first() {
        let called = calls(message);
        let (answered, used) = results(after);
        if called != answered {
            return Err(format!(
                "message {at} calls {called:?} but what follows answers {answered:?}"
            ));
        }
        if at == 0 && results(messages).1 > 0 {
            return Err("the conversation begins with a tool result".to_owned());
        }
        let step = 1 + used;
        rest = rest.get(step..).unwrap_or_default();
        at += step;
    }
    Ok(())
}

fn openai_calls(message: &Value) -> Vec<Key> {
    items(message, "tool_calls")
        .map(|call| text(call.get("id")))
        .collect()
}

/// Returns the keys of the results at the beginning of `messages`, and how many messages they take.
fn openai_results(messages: &[Value]) -> (Vec<Key>, usize) {
    let keys: Vec<Key> = messages
        .iter()
        .take_while(|message| text(message.get("role")) == "tool")
        .map(|message| text(message.get("tool_call_id")))
        .collect();
    let used = keys.len();
    (keys, used)
}

fn gemini_calls(content: &Value) -> Vec<Key> {
    gemini_keys(content, "functionCall")
}

fn gemini_results(contents: &[Value]) -> (Vec<Key>, usize) {
    let keys = contents
        .first()
        .map(|content| gemini_keys(content, "functionResponse"))
        .unwrap_or_default();
    let used = usize::from(!keys.is_empty());
    (keys, used)
}

/// The name and the id, if there is one.
fn gemini_keys(content: &Value, kind: &str) -> Vec<Key> {
    items(content, "parts")
        .filter_map(|part| part.get(kind))
        .map(|function| {
            format!(
                "{}#{}",
                text(function.get("name")),
                text(function.get("id"))
            )
        })
        .collect()
}

fn items<'v>(value: &'v Value, key: &str) -> impl Iterator<Item = &'v Value> {
    value
        .get(key)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

fn text(value: Option<&Value>) -> String {
    value.and_then(Value::as_str).unwrap_or_default().to_owned()
}
