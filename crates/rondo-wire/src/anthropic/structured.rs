//! Bounds of structured outputs,
//! <https://platform.claude.com/docs/en/build-with-claude/structured-outputs>.

use serde_json::Value;

/// Models before structured outputs, which began with the 4.5 family.
const UNSTRUCTURED: [&str; 11] = [
    "claude-2",
    "claude-3",
    "claude-instant",
    "sonnet-4-0",
    "sonnet-4-2",
    "opus-4-0",
    "opus-4-1",
    "opus-4-2",
    "claude-sonnet-4.0",
    "claude-opus-4.0",
    "claude-opus-4.1",
];

/// Keywords that are refused, whatever they hold.
const REFUSED: [&str; 22] = [
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
    "patternProperties",
    "propertyNames",
    "not",
    "if",
    "$dynamicRef",
    "prefixItems",
    "contains",
    "dependentRequired",
    "dependentSchemas",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// Levels of a schema that are looked at; deeper ones are refused.
const LEVELS_MAX: usize = 64;

/// Returns whether a model takes a schema. One that is refused would fail every request, so what is
/// not sure to be taken is left out, and the answer is checked here only.
pub(super) fn takes(model: &str, schema: &Value) -> bool {
    let is_old = UNSTRUCTURED.iter().any(|name| model.contains(name));
    !is_old && fits(schema, 0)
}

/// Keywords that say which values a schema takes; a schema without any of them is refused.
const TYPED: [&str; 5] = ["type", "enum", "const", "anyOf", "allOf"];

/// Objects must be closed, and a reference may be a recursion, which is refused.
fn fits(schema: &Value, level: usize) -> bool {
    if level > LEVELS_MAX {
        return false;
    }
    let Value::Object(fields) = schema else {
        return false;
    };
    let is_object =
        fields.get("type").is_some_and(names_object) || fields.contains_key("properties");
    let is_closed = fields.get("additionalProperties") == Some(&Value::Bool(false));
    let is_few = fields
        .get("minItems")
        .is_none_or(|min| min.as_u64() <= Some(1));
    let known = |key: &String| key != "$ref" && !REFUSED.contains(&key.as_str());
    let is_typed = TYPED.iter().any(|key| fields.contains_key(*key));
    is_typed
        && (!is_object || is_closed)
        && is_few
        && fields.keys().all(known)
        && fields
            .iter()
            .all(|(key, value)| inner_fits(key, value, level + 1))
}

fn names_object(kind: &Value) -> bool {
    match kind {
        Value::Array(kinds) => kinds.iter().any(names_object),
        kind => kind == "object",
    }
}

fn inner_fits(key: &str, value: &Value, level: usize) -> bool {
    match (key, value) {
        ("properties" | "$defs" | "definitions", Value::Object(inner)) => {
            inner.values().all(|schema| fits(schema, level))
        }
        ("anyOf" | "allOf", Value::Array(inner)) => inner.iter().all(|schema| fits(schema, level)),
        ("oneOf", _) => false,
        ("items", schema) => fits(schema, level),
        ("enum", Value::Array(values)) => values
            .iter()
            .all(|value| !value.is_object() && !value.is_array()),
        _ => true,
    }
}
