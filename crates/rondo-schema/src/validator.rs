//! A compiled JSON Schema, and the ways in which a value does not fit it.

use crate::plain::is_plain;
use crate::text::{clip, quote};
use jsonschema::{Draft, PatternOptions, ValidationError};
use serde::Serialize;
use serde_json::Value;
use std::fmt;

/// The bound on violations reported of one call.
pub const VIOLATIONS_MAX: usize = 8;

/// The bound on one violation's text, in characters.
const WHAT_CHARS_MAX: usize = 300;

/// The bound on a violation's path, in characters.
const PATH_CHARS_MAX: usize = 160;

/// The bound on the nesting of a schema: past it, compiling could exhaust the stack.
const SCHEMA_DEPTH_MAX: usize = 64;

/// The bound on values in a schema.
const SCHEMA_NODES_MAX: usize = 20_000;

/// The bound on references followed in a row before they count as a circle.
const REF_HOPS_MAX: usize = 64;

/// The bound on steps back of one `pattern` match.
const BACKTRACK_MAX: usize = 100_000;

/// The bound on one compiled `pattern`, in bytes.
const PATTERN_BYTES_MAX: usize = 1 << 20;

/// A tool's schema, compiled.
///
/// Draft 2020-12 unless the schema names another. References are followed within the schema only:
/// nothing is ever fetched or read.
pub struct Validator {
    inner: jsonschema::Validator,
}

/// Why a schema cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// It is nested too deeply, too large, or refers to itself without end.
    #[error("the schema exceeds a bound: {what}")]
    Bound {
        /// Which bound.
        what: &'static str,
    },
    /// It is no JSON Schema, or refers to something outside itself.
    #[error("not a usable JSON Schema: {message}")]
    Invalid {
        /// Description of the problem, bounded.
        message: String,
    },
}

/// One way in which arguments do not fit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// The JSON pointer of the value; empty for the whole.
    pub path: String,
    /// Problem and expectation at that place, bounded.
    pub what: String,
}

impl Validator {
    /// Compiles a schema. `null`, and `null` for `properties` or `required`, mean no constraint.
    ///
    /// # Errors
    /// When it is no JSON Schema, exceeds a bound, or refers to something outside itself.
    pub fn new(schema: &Value) -> Result<Self, SchemaError> {
        let schema = without_nulls(schema);
        check_bounds(&schema)?;
        let patterns = PatternOptions::fancy_regex()
            .backtrack_limit(BACKTRACK_MAX)
            .size_limit(PATTERN_BYTES_MAX);
        let mut options = jsonschema::options()
            .offline()
            .with_pattern_options(patterns);
        if is_plain(&schema) {
            options = options.with_draft(Draft::Draft7);
        }
        let inner = options.build(&schema).map_err(|err| SchemaError::Invalid {
            message: clip(&err.to_string(), WHAT_CHARS_MAX),
        })?;
        Ok(Self { inner })
    }

    /// Checks a value.
    ///
    /// # Errors
    /// The first [`VIOLATIONS_MAX`] ways in which it does not fit.
    pub fn check(&self, value: &Value) -> Result<(), Vec<Violation>> {
        if self.fits(value) {
            return Ok(());
        }
        Err(self
            .inner
            .iter_errors(value)
            .take(VIOLATIONS_MAX)
            .map(|err| violation(&err))
            .collect())
    }

    pub(crate) fn fits(&self, value: &Value) -> bool {
        self.inner.is_valid(value)
    }

    /// Returns at most `max` errors in the library's own terms, which repair goes by.
    pub(crate) fn errors<'a>(&'a self, value: &'a Value, max: usize) -> Vec<ValidationError<'a>> {
        self.inner.iter_errors(value).take(max).collect()
    }
}

impl fmt::Debug for Validator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Validator")
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.path.is_empty() {
            "/"
        } else {
            self.path.as_str()
        };
        write!(f, "{path}: {}", self.what)
    }
}

fn violation(err: &ValidationError<'_>) -> Violation {
    let what = err.masked_with("the value").to_string();
    let got = quote(err.instance());
    Violation {
        path: clip(err.instance_path().as_str(), PATH_CHARS_MAX),
        what: format!("{} (got {got})", clip(&what, WHAT_CHARS_MAX)),
    }
}

fn without_nulls(schema: &Value) -> Value {
    match schema {
        Value::Null => Value::Object(serde_json::Map::new()),
        Value::Object(fields) => fields
            .iter()
            .filter(|(key, value)| {
                !(value.is_null() && matches!(key.as_str(), "properties" | "required"))
            })
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => schema.clone(),
    }
}

fn check_bounds(schema: &Value) -> Result<(), SchemaError> {
    let mut pending = vec![(schema, 0)];
    let mut nodes = 0;
    while let Some((value, depth)) = pending.pop() {
        nodes += 1;
        if nodes > SCHEMA_NODES_MAX {
            return bound("too large");
        }
        if depth > SCHEMA_DEPTH_MAX {
            return bound("nested too deeply");
        }
        if refers_in_a_circle(schema, value) {
            return bound("a reference leads back to itself");
        }
        match value {
            Value::Array(items) => pending.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(fields) => pending.extend(fields.values().map(|item| (item, depth + 1))),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    Ok(())
}

fn bound(what: &'static str) -> Result<(), SchemaError> {
    Err(SchemaError::Bound { what })
}

/// A chain of bare references would be followed forever without descending into the value.
fn refers_in_a_circle(root: &Value, start: &Value) -> bool {
    let mut node = start;
    for _ in 0..REF_HOPS_MAX {
        let Some(next) = referred(root, node) else {
            return false;
        };
        node = next;
    }
    true
}

/// Returns the target of a `$ref` within the schema.
pub(crate) fn referred<'a>(root: &'a Value, node: &Value) -> Option<&'a Value> {
    let pointer = node.get("$ref")?.as_str()?.strip_prefix('#')?;
    root.pointer(pointer)
}
