//! Turns the raw arguments of a call into those that its tool gets: parsed, repaired, validated.

use crate::coerce::coerce;
use crate::describe::expected;
use crate::integers::write_whole_floats;
use crate::lenient::{TextError, lenient};
use crate::repair::{Repair, RepairKind, Repairs};
use crate::text::clip;
use crate::validator::{Validator, Violation};
use serde_json::{Map, Value, json};

/// The bound on the raw arguments of one call.
pub const RAW_BYTES_MAX: usize = 4 << 20;

/// The bound on JSON inside strings inside JSON around the whole.
const DOUBLED_MAX: usize = 2;

/// The bound on nesting after values were decoded, so that the result can be read again.
const DEPTH_MAX: usize = 100;

/// Characters shown before and after the place of an error.
const CONTEXT_CHARS: usize = 30;

/// The result of preparing the arguments of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum PreparedArguments {
    /// They can be run.
    Ready {
        /// An object that fits the schema.
        arguments: Value,
        /// Changes, in order; bounded.
        repairs: Vec<Repair>,
        /// Set if a change went beyond syntax and lossless coercion, so that a call with effects
        /// ought to be sent back instead of run.
        meaning_changed: bool,
    },
    /// They cannot.
    Invalid {
        /// Problems with their places and the expected form, for the model; bounded.
        message: String,
        /// The same as data: an object with `violations` (array of `path`, `what`) or `syntax`.
        details: Value,
    },
}

/// Turns the raw arguments of a call into an object that fits the tool's schema, or returns why that is not
/// possible.
///
/// Total, deterministic and idempotent. Never completes a truncated text and never adds a value that is not
/// in it. `validator` must be compiled from `schema`.
#[must_use]
pub fn prepare(raw: &str, schema: &Value, validator: &Validator) -> PreparedArguments {
    if raw.len() > RAW_BYTES_MAX {
        return unreadable(&format!("they are longer than {RAW_BYTES_MAX} bytes"));
    }
    let mut repairs = Repairs::default();
    match read(raw, &mut repairs) {
        Ok(value) if value.is_object() => fit(value, schema, validator, repairs),
        Ok(value) => unreadable(&format!("they are {}, not an object", kind(&value))),
        Err(err) => unreadable(&located(raw, &err)),
    }
}

fn fit(
    mut value: Value,
    schema: &Value,
    validator: &Validator,
    mut repairs: Repairs,
) -> PreparedArguments {
    if let Err(violations) = validator.check(&value) {
        let fits = coerce(&mut value, validator, &mut repairs);
        if !fits || deeper_than(&value, DEPTH_MAX) {
            return misfit(&violations, schema);
        }
    }
    write_whole_floats(&mut value, schema, &mut repairs);
    if let Err(violations) = validator.check(&value) {
        return misfit(&violations, schema);
    }
    let (repairs, meaning_changed) = repairs.finish();
    PreparedArguments::Ready {
        arguments: value,
        repairs,
        meaning_changed,
    }
}

fn read(raw: &str, repairs: &mut Repairs) -> Result<Value, TextError> {
    if raw.trim().is_empty() {
        return Ok(empty("no text", repairs));
    }
    let (mut value, slips) = lenient(raw)?;
    repairs.extend(slips);
    for _ in 0..DOUBLED_MAX {
        let Value::String(inner) = &value else {
            break;
        };
        if inner.trim().is_empty() {
            return Ok(empty("an empty string", repairs));
        }
        let Ok((decoded, slips)) = lenient(inner) else {
            break;
        };
        repairs.push(Repair::syntax("string", "object", RepairKind::Doubled));
        repairs.extend(slips);
        value = decoded;
    }
    if value.is_null() {
        return Ok(empty("null", repairs));
    }
    Ok(value)
}

fn empty(from: &str, repairs: &mut Repairs) -> Value {
    repairs.push(Repair::syntax(from, "{}", RepairKind::Empty));
    Value::Object(Map::new())
}

fn misfit(violations: &[Violation], schema: &Value) -> PreparedArguments {
    let lines: Vec<String> = violations.iter().map(|one| format!("- {one}")).collect();
    PreparedArguments::Invalid {
        message: format!(
            "the arguments do not fit the tool's schema, so it was not run:\n{}\nexpected: {}",
            lines.join("\n"),
            expected(schema)
        ),
        details: json!({ "violations": violations }),
    }
}

fn unreadable(what: &str) -> PreparedArguments {
    PreparedArguments::Invalid {
        message: format!(
            "the arguments cannot be used, so the tool was not run: {what}; send one complete JSON \
             object"
        ),
        details: json!({ "syntax": what }),
    }
}

fn located(raw: &str, err: &TextError) -> String {
    match err {
        TextError::CutOff => "the text is cut off before the object ends".to_owned(),
        TextError::At { offset, what } => {
            let clipped = clip(what, CONTEXT_CHARS * 4);
            format!(
                "not JSON: {clipped} at byte {offset}, near `{}`",
                near(raw, *offset)
            )
        }
    }
}

fn near(raw: &str, offset: usize) -> String {
    let at = raw.floor_char_boundary(offset);
    let (before, after) = raw.split_at_checked(at).unwrap_or((raw, ""));
    let start = before
        .char_indices()
        .rev()
        .nth(CONTEXT_CHARS)
        .map_or(0, |(start, _)| start);
    let end = after
        .char_indices()
        .nth(CONTEXT_CHARS)
        .map_or(after.len(), |(end, _)| end);
    let (before, after) = (before.get(start..), after.get(..end));
    format!("{}{}", before.unwrap_or(""), after.unwrap_or(""))
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

fn deeper_than(value: &Value, max: usize) -> bool {
    let mut pending = vec![(value, 0)];
    while let Some((node, depth)) = pending.pop() {
        if depth > max {
            return true;
        }
        match node {
            Value::Array(items) => pending.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(fields) => pending.extend(fields.values().map(|item| (item, depth + 1))),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    false
}
