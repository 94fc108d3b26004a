//! Converts values of the wrong type to the type that the schema asks for, if the conversion is unambiguous.

use crate::lenient;
use crate::repair::{Repair, RepairKind, Repairs};
use crate::scalars;
use crate::text::quote;
use crate::validator::Validator;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{JsonType, ValidationError};
use serde_json::Value;
use std::collections::HashSet;

/// The bound on rounds of validating and changing; one round uncovers what the one before hid.
const ROUNDS_MAX: usize = 8;

/// The bound on errors looked at in one round.
const ERRORS_MAX: usize = 256;

/// The bound on alternatives within alternatives.
const ALTERNATIVES_DEPTH_MAX: usize = 8;

/// Converts values until the whole fits the schema, if that is possible unambiguously; returns whether it fits.
///
/// Goes by the validator's own errors: a value is only touched if the schema refuses it, and only
/// in the one way that the refusal leaves open. Every new value is made of the old one.
pub(crate) fn coerce(value: &mut Value, validator: &Validator, repairs: &mut Repairs) -> bool {
    for _ in 0..ROUNDS_MAX {
        let fixes: Vec<Fix> = validator
            .errors(value, ERRORS_MAX)
            .iter()
            .flat_map(|err| fixes(err, 0))
            .collect();
        if fixes.is_empty() {
            break;
        }
        let mut changed = false;
        for fix in fixes {
            changed |= fix.apply(value, repairs);
        }
        if !changed {
            break;
        }
    }
    validator.fits(value)
}

/// One change that an error asks for.
struct Fix {
    path: String,
    change: Change,
}

enum Change {
    /// Puts another value where `from` is.
    Replace {
        from: Value,
        to: Value,
        kind: RepairKind,
    },
    /// Removes a property that is null.
    DropNull,
    /// Removes keys.
    DropKeys(Vec<String>),
}

impl Fix {
    fn apply(self, root: &mut Value, repairs: &mut Repairs) -> bool {
        match self.change {
            Change::Replace { from, to, kind } => {
                replace(root, &self.path, &from, to, kind, repairs)
            }
            Change::DropNull => drop_null(root, &self.path, repairs),
            Change::DropKeys(keys) => drop_keys(root, &self.path, &keys, repairs),
        }
    }
}

fn replace(
    root: &mut Value,
    path: &str,
    from: &Value,
    to: Value,
    kind: RepairKind,
    repairs: &mut Repairs,
) -> bool {
    // Two errors may speak of one value; the second finds it changed and leaves it alone.
    let Some(place) = root.pointer_mut(path).filter(|place| *place == from) else {
        return false;
    };
    repairs.push(Repair::new(path, &quote(from), &quote(&to), kind));
    *place = to;
    true
}

fn drop_null(root: &mut Value, path: &str, repairs: &mut Repairs) -> bool {
    let Some((parent, key)) = path.rsplit_once('/') else {
        return false;
    };
    let key = key.replace("~1", "/").replace("~0", "~");
    let Some(Value::Object(fields)) = root.pointer_mut(parent) else {
        return false;
    };
    if fields.get(&key) != Some(&Value::Null) {
        return false;
    }
    fields.shift_remove(&key);
    repairs.push(Repair::new(path, "null", "", RepairKind::NullDropped));
    true
}

/// Removes all of them in one pass: one at a time is quadratic in keys that the model chooses.
fn drop_keys(root: &mut Value, path: &str, keys: &[String], repairs: &mut Repairs) -> bool {
    let Some(Value::Object(fields)) = root.pointer_mut(path) else {
        return false;
    };
    let unknown: HashSet<&str> = keys.iter().map(String::as_str).collect();
    let before = fields.len();
    fields.retain(|key, value| {
        let keeps = !unknown.contains(key.as_str());
        if !keeps {
            let from = format!("{key:?}: {}", quote(value));
            repairs.push(Repair::new(path, &from, "", RepairKind::KeyDropped));
        }
        keeps
    });
    fields.len() < before
}

fn fixes(err: &ValidationError<'_>, depth: usize) -> Vec<Fix> {
    let path = err.instance_path().as_str();
    if err.instance().is_null() {
        return null_fix(err, path);
    }
    match err.kind() {
        ValidationErrorKind::Type { kind } => type_fix(err.instance(), kind, path),
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => vec![Fix {
            path: path.to_owned(),
            change: Change::DropKeys(unexpected.clone()),
        }],
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            alternatives(context, depth)
        }
        _ => Vec::new(),
    }
}

/// A refused null can only have meant that there is no value.
fn null_fix(err: &ValidationError<'_>, path: &str) -> Vec<Fix> {
    match err.kind() {
        ValidationErrorKind::Type { .. }
        | ValidationErrorKind::Enum { .. }
        | ValidationErrorKind::Constant { .. }
        | ValidationErrorKind::AnyOf { .. }
        | ValidationErrorKind::OneOfNotValid { .. } => vec![Fix {
            path: path.to_owned(),
            change: Change::DropNull,
        }],
        _ => Vec::new(),
    }
}

/// Follows the one alternative beside `null`; between several, nothing is certain.
fn alternatives(context: &[Vec<ValidationError<'static>>], depth: usize) -> Vec<Fix> {
    let mut open = context.iter().filter(|branch| !wants_null(branch));
    match (open.next(), open.next()) {
        (Some(only), None) if depth < ALTERNATIVES_DEPTH_MAX => {
            only.iter().flat_map(|err| fixes(err, depth + 1)).collect()
        }
        _ => Vec::new(),
    }
}

fn wants_null(branch: &[ValidationError<'static>]) -> bool {
    branch.iter().any(|err| {
        matches!(
            err.kind(),
            ValidationErrorKind::Type {
                kind: TypeKind::Single(JsonType::Null)
            }
        )
    })
}

fn type_fix(value: &Value, kind: &TypeKind, path: &str) -> Vec<Fix> {
    let Some((to, kind)) = wanted(kind).and_then(|wanted| converted(value, wanted)) else {
        return Vec::new();
    };
    vec![Fix {
        path: path.to_owned(),
        change: Change::Replace {
            from: value.clone(),
            to,
            kind,
        },
    }]
}

/// Returns the one type that is wanted, `null` aside.
fn wanted(kind: &TypeKind) -> Option<JsonType> {
    let set = match kind {
        TypeKind::Single(single) => return Some(*single),
        TypeKind::Multiple(set) => *set,
    };
    let mut types = set.iter().filter(|one| *one != JsonType::Null);
    match (types.next(), types.next(), types.next()) {
        (Some(only), None, None) => Some(only),
        (Some(JsonType::Integer), Some(JsonType::Number), None)
        | (Some(JsonType::Number), Some(JsonType::Integer), None) => Some(JsonType::Number),
        _ => None,
    }
}

fn converted(value: &Value, wanted: JsonType) -> Option<(Value, RepairKind)> {
    match (value, wanted) {
        (Value::String(text), JsonType::Integer) => scalar(scalars::integer(text)),
        (Value::String(text), JsonType::Number) => scalar(scalars::number(text)),
        (Value::String(text), JsonType::Boolean) => scalar(scalars::boolean(text)),
        (Value::String(text), JsonType::Object) => {
            decoded(text, Value::is_object).map(|value| (value, RepairKind::StringToObject))
        }
        (Value::String(text), JsonType::Array) => Some(decoded(text, Value::is_array).map_or_else(
            || wrapped(value),
            |array| (array, RepairKind::StringToArray),
        )),
        (Value::Number(_) | Value::Bool(_), JsonType::Array) => Some(wrapped(value)),
        (Value::Bool(_), JsonType::String) => Some((text(value), RepairKind::ScalarToString)),
        (Value::Number(number), JsonType::String) => {
            let kind = if number.is_f64() {
                RepairKind::FloatToString
            } else {
                RepairKind::ScalarToString
            };
            Some((text(value), kind))
        }
        _ => None,
    }
}

fn scalar(read: Option<Value>) -> Option<(Value, RepairKind)> {
    read.map(|value| (value, RepairKind::StringToScalar))
}

fn wrapped(value: &Value) -> (Value, RepairKind) {
    (Value::Array(vec![value.clone()]), RepairKind::Wrapped)
}

fn text(value: &Value) -> Value {
    Value::String(value.to_string())
}

fn decoded(text: &str, wanted: impl Fn(&Value) -> bool) -> Option<Value> {
    lenient::strict(text).ok().filter(|value| wanted(value))
}
