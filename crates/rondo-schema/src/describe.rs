//! Describes in one line which properties a schema expects, for messages to the model.

use crate::text::clip;
use serde_json::Value;

/// The bound on properties named.
const PROPERTIES_MAX: usize = 40;

/// The bound on the whole description, in characters.
const DESCRIPTION_CHARS_MAX: usize = 1_000;

/// Names the properties that a schema expects, as in `path (string, required), limit (integer)`.
pub(crate) fn expected(schema: &Value) -> String {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return "one JSON object".to_owned();
    };
    let names: Vec<String> = properties
        .iter()
        .take(PROPERTIES_MAX)
        .map(|(name, property)| one(name, property, schema))
        .collect();
    if names.is_empty() {
        return "an empty JSON object".to_owned();
    }
    clip(&names.join(", "), DESCRIPTION_CHARS_MAX)
}

fn one(name: &str, property: &Value, schema: &Value) -> String {
    let required = schema
        .get("required")
        .and_then(Value::as_array)
        .is_some_and(|names| names.iter().any(|required| required == name));
    let kind = kind(property);
    if required {
        format!("{name} ({kind}, required)")
    } else {
        format!("{name} ({kind})")
    }
}

fn kind(property: &Value) -> String {
    match (property.get("type"), property.get("enum")) {
        (_, Some(Value::Array(options))) => options
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(" or "),
        (Some(Value::String(name)), _) => name.clone(),
        (Some(Value::Array(names)), _) => names
            .iter()
            .filter_map(Value::as_str)
            .collect::<Vec<_>>()
            .join(" or "),
        _ => "any".to_owned(),
    }
}
