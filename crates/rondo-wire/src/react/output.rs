//! Result of a tool as an observation.

use rondo_types::{ToolContent, ToolResult};
use serde_json::{Map, Value};
use std::fmt::Write as _;

/// Returns a tool's output as it is: text, what a command wrote, or compact JSON.
///
/// A command's output is followed by a line for each other thing that is known of it, such as the signal that ended it.
/// An exit code that is not 0 is the last line.
///
/// ```
/// use rondo_wire::output_text;
/// use serde_json::json;
///
/// let result = json!({"stdout": "no such file\n", "exitCode": 2});
/// assert_eq!(output_text(&result), "no such file\nexit code: 2");
/// ```
#[must_use]
pub fn output_text(result: &Value) -> String {
    match result {
        Value::String(text) => text.clone(),
        Value::Object(fields) => {
            of_command(fields).unwrap_or_else(|| Value::Object(fields.clone()).to_string())
        }
        other => other.to_string(),
    }
}

/// Returns a result as its observation says it.
pub(super) fn of_result(result: &ToolResult) -> String {
    match &result.content {
        ToolContent::Json(value) if result.blocks.is_empty() => output_text(value),
        _ => result.to_text(),
    }
}

fn of_command(fields: &Map<String, Value>) -> Option<String> {
    let output = fields.get("stdout")?.as_str()?;
    let code = fields.get("exitCode").map(Value::as_i64);
    let mut text = output.to_owned();
    let known = |key: &str| matches!(key, "stdout" | "exitCode");
    for (key, value) in fields.iter().filter(|(key, _)| !known(key)) {
        match value {
            Value::String(value) => line(&mut text, key, value),
            other => line(&mut text, key, other),
        }
    }
    match code {
        Some(Some(code)) if code != 0 => line(&mut text, "exit code", &code),
        Some(None) => return None,
        _ => {}
    }
    Some(text)
}

/// Adds a line, after the end of the one before.
fn line(text: &mut String, key: &str, value: &dyn std::fmt::Display) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    // Writing to a text cannot fail.
    let _ = write!(text, "{key}: {value}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn my_8_the_output_is_as_it_is_and_an_exit_code_is_the_last_line() {
        for (result, expected) in [
            (json!("plain <b>\n"), "plain <b>\n"),
            (json!({"stdout": "a\n", "exitCode": 0}), "a\n"),
            (json!({"stdout": "", "exitCode": 0}), ""),
            (json!({"stdout": "", "exitCode": 1}), "exit code: 1"),
            (json!({"stdout": "a", "exitCode": 1}), "a\nexit code: 1"),
            (
                json!({"stdout": "a\n", "signal": "SIGKILL", "truncated": true, "exitCode": 137}),
                "a\nsignal: SIGKILL\ntruncated: true\nexit code: 137",
            ),
            (json!({"stdout": "a", "note": "b"}), "a\nnote: b"),
            (
                json!({"stdout": 1, "exitCode": 0}),
                r#"{"stdout":1,"exitCode":0}"#,
            ),
            (json!({"found": []}), r#"{"found":[]}"#),
            (json!([1]), "[1]"),
        ] {
            assert_eq!(output_text(&result), expected, "{result}");
        }
    }
}
