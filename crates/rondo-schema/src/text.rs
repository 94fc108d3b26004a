//! Shortens and quotes values for messages.

use rondo_types::text::{first_chars, with_mark};
use serde_json::Value;

/// The bound on a value quoted in a message, in characters.
pub(crate) const QUOTE_CHARS_MAX: usize = 80;

/// Returns at most `max` characters of `text`, with `...` if it was cut.
pub(crate) fn clip(text: &str, max: usize) -> String {
    with_mark(first_chars(text, max), text, "...")
}

/// Returns a value as short JSON; a long string is cut before it is written out.
pub(crate) fn quote(value: &Value) -> String {
    match value {
        Value::String(text) => Value::String(clip(text, QUOTE_CHARS_MAX)).to_string(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::Array(items) => format!("array of {}", items.len()),
        Value::Object(fields) => format!("object of {}", fields.len()),
    }
}
