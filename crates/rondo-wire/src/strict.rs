//! Which schemas the strict mode of OpenAI and of providers with its protocols takes,
//! <https://platform.openai.com/docs/guides/structured-outputs#supported-schemas>.
//!
//! A schema that is refused fails every request, and one that is sent without the mode is still
//! checked here. So only what is known to be taken is strict.

use crate::json::Json;
use rondo_types::Origin;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// Keywords of any schema.
const KNOWN: [&str; 13] = [
    "type",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "anyOf",
    "enum",
    "const",
    "$ref",
    "$defs",
    "definitions",
    "title",
    "description",
];

/// Keywords that bound a value. `default` is not one: some versions of the mode refuse it.
const CONSTRAINTS: [&str; 11] = [
    "pattern",
    "format",
    "minLength",
    "maxLength",
    "multipleOf",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minItems",
    "maxItems",
];

/// Formats of texts; another one is refused.
const FORMATS: [&str; 9] = [
    "date-time",
    "time",
    "date",
    "duration",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "uuid",
];

/// The bounds of Rust's small and unsigned integers. They say what the reader of an answer checks anyway, so a mode that
/// refuses all bounds is asked without them.
const BOUNDS_OF_TYPES: [(&str, &[i64]); 2] = [
    ("minimum", &[0, -128, -32_768]),
    ("maximum", &[127, 255, 32_767, 65_535]),
];

/// Alternatives of all enumerations together.
const ALTERNATIVES_MAX: usize = 1000;

/// Rules of a provider's strict mode.
struct Rules {
    constraints: bool,
    properties_max: usize,
    levels_max: usize,
}

impl Rules {
    fn of(origin: &Origin) -> Self {
        let provider = origin.provider.to_ascii_lowercase();
        // https://learn.microsoft.com/azure/ai-services/openai/how-to/structured-outputs
        let is_small = provider.contains("azure");
        // https://inference-docs.cerebras.ai/capabilities/structured-outputs
        let is_bare = provider.contains("cerebras") || origin.model.starts_with("ft:");
        Self {
            constraints: !is_bare,
            properties_max: if is_small { 100 } else { 5000 },
            levels_max: if is_small { 5 } else { 10 },
        }
    }
}

/// Counts of the parts of a schema.
#[derive(Default)]
struct Counts {
    properties: usize,
    alternatives: usize,
}

/// Returns whether a provider's strict mode takes a schema.
fn is_strict(schema: &Value, origin: &Origin) -> bool {
    let rules = Rules::of(origin);
    let mut counts = Counts::default();
    let is_object = schema.get("type").is_some_and(|kind| kind == "object");
    is_object
        && schema.get("anyOf").is_none()
        && fits(schema, 0, &rules, &mut counts)
        && counts.properties <= rules.properties_max
        && counts.alternatives <= ALTERNATIVES_MAX
}

/// Returns a schema as it is sent, and whether in the provider's strict mode.
pub(crate) fn sent<'a>(schema: &'a Value, origin: &Origin) -> (Json<'a>, bool) {
    let is_strict = is_strict(schema, origin);
    let is_bare = !Rules::of(origin).constraints;
    let sent = match is_strict && is_bare {
        true => without_bounds_of_types(schema),
        false => Json::Value(schema),
    };
    (sent, is_strict)
}

fn without_bounds_of_types(schema: &Value) -> Json<'_> {
    match schema {
        Value::Object(fields) => {
            let fields = fields
                .iter()
                .filter(|(key, value)| !is_bound_of_type(key, value));
            let fields = fields.map(|(key, value)| {
                let value = match key.as_str() {
                    "enum" | "const" => Json::Value(value),
                    _ => without_bounds_of_types(value),
                };
                (Cow::Borrowed(key.as_str()), value)
            });
            Json::Object(fields.collect())
        }
        Value::Array(list) => Json::List(list.iter().map(without_bounds_of_types).collect()),
        other => Json::Value(other),
    }
}

fn is_bound_of_type(key: &str, value: &Value) -> bool {
    let is_one = |bounds: &&[i64]| value.as_i64().is_some_and(|it| bounds.contains(&it));
    let mut known = BOUNDS_OF_TYPES.iter();
    known.any(|(name, bounds)| *name == key && is_one(bounds))
}

/// Every schema says what it is, and every object is closed and asks for all of its fields.
///
/// Recursion ends with the levels of objects or with the schema, which its own parser bounds to 128
/// levels.
fn fits(schema: &Value, level: usize, rules: &Rules, counts: &mut Counts) -> bool {
    let Value::Object(fields) = schema else {
        return false;
    };
    if fields.contains_key("$ref") {
        return fields.len() == 1;
    }
    let is_object = fields.get("type").is_some_and(names_object);
    let is_typed = fields.contains_key("type") || fields.contains_key("anyOf");
    let level = level + usize::from(is_object);
    let has_object_keys = ["properties", "required", "additionalProperties"]
        .iter()
        .any(|key| fields.contains_key(*key));
    is_typed
        && level <= rules.levels_max
        && if is_object {
            is_closed(fields)
        } else {
            !has_object_keys
        }
        && fields
            .iter()
            .all(|(key, value)| is_known(key, value, rules))
        && fields
            .iter()
            .all(|(key, value)| inner_fits(key, value, level, rules, counts))
}

fn names_object(kind: &Value) -> bool {
    match kind {
        Value::Array(kinds) => kinds.iter().any(names_object),
        kind => kind == "object",
    }
}

fn is_closed(fields: &Map<String, Value>) -> bool {
    let Some(Value::Object(properties)) = fields.get("properties") else {
        return false;
    };
    let required = fields.get("required").and_then(Value::as_array);
    let required = required.map(Vec::as_slice).unwrap_or_default();
    let named = |name: &String| required.iter().any(|it| it == name);
    fields.get("additionalProperties") == Some(&Value::Bool(false))
        && required.len() == properties.len()
        && properties.keys().all(named)
}

fn is_known(key: &str, value: &Value, rules: &Rules) -> bool {
    let is_format = |it: &str| FORMATS.contains(&it);
    match key {
        "format" => rules.constraints && value.as_str().is_some_and(is_format),
        key => {
            KNOWN.contains(&key)
                || (rules.constraints && CONSTRAINTS.contains(&key))
                || is_bound_of_type(key, value)
        }
    }
}

fn inner_fits(key: &str, value: &Value, level: usize, rules: &Rules, counts: &mut Counts) -> bool {
    match (key, value) {
        ("properties" | "$defs" | "definitions", Value::Object(inner)) => {
            counts.properties += if key == "properties" { inner.len() } else { 0 };
            inner.values().all(|it| fits(it, level, rules, counts))
        }
        ("anyOf", Value::Array(inner)) => {
            !inner.is_empty() && inner.iter().all(|it| fits(it, level, rules, counts))
        }
        ("enum", Value::Array(values)) => {
            counts.alternatives += values.len();
            !values.is_empty()
        }
        ("items", schema) => fits(schema, level, rules, counts),
        ("properties" | "$defs" | "definitions" | "anyOf" | "enum", _) => false,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn origin(provider: &str, model: &str) -> Origin {
        Origin {
            dialect: "openai-chat".to_owned(),
            provider: provider.to_owned(),
            model: model.to_owned(),
        }
    }

    fn field(schema: &Value) -> Value {
        json!({"type": "object", "properties": {"a": schema}, "required": ["a"],
            "additionalProperties": false})
    }

    fn strict(schema: &Value) -> bool {
        is_strict(&field(schema), &origin("openai", "gpt-5"))
    }

    #[test]
    fn what_the_mode_takes_is_strict() {
        let inner = field(&json!({"type": "string"}));
        let mut nullable = inner.clone();
        nullable["type"] = json!(["object", "null"]);
        for schema in [
            json!({"type": "string", "description": "d", "title": "t"}),
            json!({"type": ["string", "null"], "enum": ["a", null]}),
            json!({"type": "string", "const": "a"}),
            json!({"type": "integer", "minimum": 0}),
            json!({"type": "string", "format": "date-time", "pattern": "^a"}),
            json!({"type": "array", "items": {"type": "number"}, "maxItems": 3}),
            json!({"anyOf": [{"type": "null"}, inner]}),
            json!({"$ref": "#"}),
            inner.clone(),
            nullable,
            // Names of properties are not keywords.
            json!({"type": "object", "properties": {"prefixItems": {"type": "string"}},
                "required": ["prefixItems"], "additionalProperties": false}),
        ] {
            assert!(strict(&schema), "{schema}");
        }
    }

    #[test]
    fn what_the_mode_refuses_is_not_strict() {
        let open = json!({"type": "object", "properties": {"b": {"type": "string"}},
            "required": ["b"]});
        for schema in [
            json!({}),
            json!(true),
            json!({"description": "anything"}),
            json!({"enum": ["a"]}),
            json!({"type": "string", "default": "a"}),
            json!({"type": "string", "format": "uri"}),
            json!({"type": "array", "items": {}}),
            json!({"type": "array", "prefixItems": [{"type": "string"}], "minItems": 1}),
            json!({"type": "array", "items": {"type": "string"}, "uniqueItems": true}),
            json!({"type": "array", "items": [{"type": "string"}]}),
            json!({"oneOf": [{"type": "string"}]}),
            json!({"allOf": [{"type": "string"}]}),
            json!({"not": {"type": "string"}}),
            json!({"$ref": "#", "description": "itself"}),
            json!({"type": "object"}),
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            json!({"type": ["object", "null"], "properties": {}}),
            json!({"properties": {"b": {"type": "string"}}, "required": ["b"],
                "additionalProperties": false}),
            json!({"type": "object", "properties": {"b": {"type": "string"}},
                "required": ["c"], "additionalProperties": false}),
            json!({"anyOf": [open]}),
            open,
        ] {
            assert!(!strict(&schema), "{schema}");
        }
        let origin = origin("openai", "gpt-5");
        for root in [
            json!({}),
            json!({"type": ["object", "null"], "properties": {}, "required": [],
                "additionalProperties": false}),
            json!({"anyOf": [field(&json!({"type": "string"}))]}),
            json!({"type": "string"}),
        ] {
            assert!(!is_strict(&root, &origin), "{root}");
        }
    }

    #[test]
    fn each_provider_has_its_own_bounds() {
        let bounded = field(&json!({"type": "integer", "minimum": 1}));
        let mut deep = json!({"type": "string"});
        for _ in 0..6 {
            deep = field(&deep);
        }
        for (provider, model, constraints, six_levels) in [
            ("openai", "gpt-5", true, true),
            ("openai", "ft:gpt-4.1:org", false, true),
            ("my-azure", "gpt-5", true, false),
            ("cerebras", "gpt-oss-120b", false, true),
        ] {
            let origin = origin(provider, model);
            assert_eq!(
                is_strict(&bounded, &origin),
                constraints,
                "{provider} {model}"
            );
            assert_eq!(is_strict(&deep, &origin), six_levels, "{provider} {model}");
        }
    }

    /// `u8` is asked for in strict mode where bounds are refused; a property that is named `minimum` stays.
    #[test]
    fn unsigned_numbers_keep_the_mode_of_providers_that_refuse_bounds() {
        let schema = |number: Value| {
            json!({"type": "object", "additionalProperties": false, "required": ["minimum"],
                "properties": {"minimum": {"anyOf": [number, {"type": "null"}]}}})
        };
        let small = schema(json!({"type": "integer", "minimum": 0, "maximum": 255}));
        let without = schema(json!({"type": "integer"}));
        for (provider, model, expected) in [
            ("openai", "gpt-5", &small),
            ("openai", "ft:gpt-4.1:org", &without),
            ("cerebras", "gpt-oss-120b", &without),
        ] {
            let (json, strict) = sent(&small, &origin(provider, model));
            let json = serde_json::to_value(&json).unwrap();
            assert!(strict, "{provider} {model}");
            assert_eq!(json, *expected, "{provider} {model}");
        }
    }

    #[test]
    fn levels_properties_and_alternatives_are_bounded() {
        let origin = origin("openai", "gpt-5");
        for (levels, expected) in [(9, true), (10, true), (11, false)] {
            let mut schema = json!({"type": "string"});
            for _ in 0..levels {
                schema = field(&schema);
            }
            assert_eq!(is_strict(&schema, &origin), expected, "{levels}");
        }
        for (count, expected) in [(4999, true), (5000, true), (5001, false)] {
            let names: Vec<String> = (0..count).map(|it| format!("p{it}")).collect();
            let properties: Map<String, Value> = names
                .iter()
                .map(|name| (name.clone(), json!({"type": "string"})))
                .collect();
            let schema = json!({"type": "object", "properties": properties, "required": names,
                "additionalProperties": false});
            assert_eq!(is_strict(&schema, &origin), expected, "{count}");
        }
        for (count, expected) in [(999, true), (1000, true), (1001, false)] {
            let values: Vec<usize> = (0..count).collect();
            assert_eq!(
                strict(&json!({"type": "integer", "enum": values})),
                expected,
                "{count}"
            );
        }
    }
}
