//! Names of arguments that providers refuse, such as `$filter`, and the names that stand for them.

use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The bound on a name, as providers have it.
const NAME_CHARS_MAX: usize = 64;

/// The names of a tool's arguments that stand for others: the server's own, by the model's.
pub(crate) type ArgumentNames = BTreeMap<String, String>;

/// Returns a schema whose arguments all have names that providers take, and which of them stand for others.
pub(crate) fn renamed(schema: &Value) -> (Value, ArgumentNames) {
    let mut names = ArgumentNames::new();
    let properties = schema.get("properties").and_then(Value::as_object);
    let Some(properties) = properties.filter(|it| !it.keys().all(|key| is_taken(key))) else {
        return (schema.clone(), names);
    };
    let mut renamed = Map::new();
    for (own, property) in properties {
        if is_taken(own) {
            renamed.insert(own.clone(), property.clone());
            continue;
        }
        let is_free = |name: &String| !properties.contains_key(name) && !names.contains_key(name);
        let name = stand_ins(own).find(is_free).unwrap_or_default();
        renamed.insert(name.clone(), described(property, own));
        names.insert(name, own.clone());
    }
    let mut schema = schema.clone();
    if let Some(properties) = schema.get_mut("properties") {
        *properties = Value::Object(renamed);
    }
    let required = schema.get_mut("required").and_then(Value::as_array_mut);
    for own in required.into_iter().flatten() {
        let name = names.iter().find(|(_, it)| own == it.as_str());
        if let Some((name, _)) = name {
            *own = Value::String(name.clone());
        }
    }
    (schema, names)
}

/// Gives arguments the names that their server knows.
pub(crate) fn restored(names: &ArgumentNames, arguments: Value) -> Value {
    match arguments {
        Value::Object(map) if !names.is_empty() => {
            let own = |(name, value)| (names.get(&name).cloned().unwrap_or(name), value);
            Value::Object(map.into_iter().map(own).collect())
        }
        other => other,
    }
}

fn is_taken(name: &str) -> bool {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | '.' | '-');
    !name.is_empty() && name.len() <= NAME_CHARS_MAX && name.chars().all(is_plain)
}

/// Returns names that may stand for another one, the nearest first.
fn stand_ins(own: &str) -> impl Iterator<Item = String> {
    let plain = |it: char| if it.is_ascii_alphanumeric() { it } else { '_' };
    let name: String = own.chars().map(plain).take(NAME_CHARS_MAX - 8).collect();
    let name = match name.trim_matches('_') {
        "" => "argument".to_owned(),
        name => name.to_owned(),
    };
    let numbered = name.clone();
    std::iter::once(name).chain((2_u32..).map(move |it| format!("{numbered}_{it}")))
}

/// Tells in an argument's description what it is called at the server.
fn described(property: &Value, own: &str) -> Value {
    let mut property = property.clone();
    if let Value::Object(map) = &mut property {
        let own = rondo_core::shown::line(&own.chars().take(NAME_CHARS_MAX).collect::<String>());
        let text = match map.get("description").and_then(Value::as_str) {
            Some(text) => format!("`{own}`: {text}"),
            None => format!("`{own}`"),
        };
        map.insert("description".to_owned(), Value::String(text));
    }
    property
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_that_providers_refuse_are_replaced_and_given_back() {
        let schema = json!({
            "type": "object",
            "properties": {
                "$filter": {"type": "string", "description": "which"},
                "filter": {"type": "string"},
                "größe": {"type": "integer"},
                "": {"type": "string"},
                "a.b-c_d": {"type": "string"},
            },
            "required": ["$filter", "a.b-c_d"],
        });
        let (renamed, names) = renamed(&schema);
        let keys: Vec<&str> = renamed["properties"]
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        for name in ["filter_2", "filter", "gr__e", "argument", "a.b-c_d"] {
            assert!(keys.contains(&name), "{name} in {keys:?}");
        }
        assert_eq!(renamed["required"], json!(["filter_2", "a.b-c_d"]));
        assert_eq!(
            renamed["properties"]["filter_2"]["description"],
            "`$filter`: which"
        );
        let arguments =
            json!({"filter_2": "x", "filter": "y", "gr__e": 1, "more": {"filter_2": 1}});
        assert_eq!(
            restored(&names, arguments),
            json!({"$filter": "x", "filter": "y", "größe": 1, "more": {"filter_2": 1}})
        );
    }

    #[test]
    fn a_schema_whose_names_are_taken_stays_as_it_is() {
        for schema in [
            json!({"type": "object", "properties": {"a": {}}}),
            json!(null),
            json!(true),
        ] {
            let (same, names) = renamed(&schema);
            assert_eq!((same, names.is_empty()), (schema, true));
        }
    }
}
