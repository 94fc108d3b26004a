//! Reads strings as numbers or booleans.

use serde_json::{Number, Value};

/// The decimal digits that a float keeps whatever they are.
const FLOAT_DIGITS_MAX: usize = 15;

/// Reads `true` and `false`, as JSON or Python writes them.
pub(crate) fn boolean(text: &str) -> Option<Value> {
    match text {
        "true" | "True" => Some(Value::Bool(true)),
        "false" | "False" => Some(Value::Bool(false)),
        _ => None,
    }
}

/// Reads an integer that loses nothing: `5`, `-5` and `5.0`, but not `05`, `+5` or ` 5`.
pub(crate) fn integer(text: &str) -> Option<Value> {
    let digits = match text.split_once('.') {
        Some((whole, zeros)) if !zeros.is_empty() && zeros.bytes().all(|byte| byte == b'0') => {
            whole
        }
        Some(_) => return None,
        None => text,
    };
    let number: Number = serde_json::from_str(digits).ok()?;
    let exact = number.to_string() == digits && !number.is_f64();
    exact.then_some(Value::Number(number))
}

/// Reads a number that loses nothing.
pub(crate) fn number(text: &str) -> Option<Value> {
    if let Some(whole) = integer(text) {
        return Some(whole);
    }
    let starts_well = text.starts_with(|first: char| first == '-' || first.is_ascii_digit());
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    if !starts_well || !text.ends_with(|last: char| last.is_ascii_digit()) {
        return None;
    }
    if digits > FLOAT_DIGITS_MAX || text.contains(['e', 'E']) {
        return None;
    }
    let number: Number = serde_json::from_str(text).ok()?;
    Some(Value::Number(number))
}
