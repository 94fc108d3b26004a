//! Maps and tuples in a form that strict modes take, and back.

use serde_json::{Map, Value, json};

/// The field of an entry that holds the key.
const KEY: &str = "key";
/// The field of an entry that holds the value.
const VALUE: &str = "value";
/// How deep an answer is looked through; more is not read as JSON either.
const DEPTH_MAX: usize = 128;

/// Returns whether a schema is one of an object with any keys.
pub(super) fn is_map(fields: &Map<String, Value>) -> bool {
    let has_fields = fields
        .get("properties")
        .and_then(Value::as_object)
        .is_some_and(|it| !it.is_empty());
    let is_object = match fields.get("type") {
        Some(Value::Array(types)) => types.iter().any(|it| it == "object"),
        Some(one) => one == "object",
        None => false,
    };
    is_object
        && !has_fields
        && fields
            .get("additionalProperties")
            .is_some_and(Value::is_object)
}

/// Makes of a map a list of its entries, and of a tuple a list of what its places may hold.
pub(super) fn lower(fields: &mut Map<String, Value>) {
    if let Some(Value::Array(places)) = fields.shift_remove("prefixItems") {
        let mut kinds: Vec<Value> = Vec::new();
        for place in places {
            if !kinds.contains(&place) {
                kinds.push(place);
            }
        }
        let items = match kinds.len() {
            1 => kinds.pop().unwrap_or_default(),
            _ => json!({ "anyOf": kinds }),
        };
        fields.insert("items".to_owned(), items);
    }
    if !is_map(fields) {
        return;
    }
    let value = fields.shift_remove("additionalProperties");
    fields.shift_remove("properties");
    fields.shift_remove("required");
    match fields.get_mut("type") {
        Some(Value::Array(types)) => {
            for it in types.iter_mut().filter(|it| **it == "object") {
                *it = json!("array");
            }
        }
        other => {
            if let Some(one) = other {
                *one = json!("array");
            }
        }
    }
    let entry = json!({
        "type": "object",
        "properties": {KEY: {"type": "string"}, VALUE: value},
        "required": [KEY, VALUE],
    });
    fields.insert("items".to_owned(), entry);
}

/// Returns an answer as the type has it: `schema` is a part of the type's own schema `root`.
pub(super) fn raised(root: &Value, schema: &Value, value: Value) -> Value {
    raised_at(root, schema, value, 0)
}

fn raised_at(root: &Value, schema: &Value, value: Value, depth: usize) -> Value {
    let Some(fields) = schema.as_object().filter(|_| depth < DEPTH_MAX) else {
        return value;
    };
    if let Some(target) = fields.get("$ref").and_then(Value::as_str) {
        let target = target.strip_prefix('#').and_then(|it| root.pointer(it));
        return match target {
            Some(target) => raised_at(root, target, value, depth + 1),
            None => value,
        };
    }
    let below = |schema: Option<&Value>, value: Value| match schema {
        Some(schema) => raised_at(root, schema, value, depth + 1),
        None => value,
    };
    let value = match value {
        Value::Array(entries) if is_map(fields) => {
            let inner = fields.get("additionalProperties");
            map_of(entries, |value| below(inner, value))
        }
        Value::Array(values) => {
            let places = fields.get("prefixItems").and_then(Value::as_array);
            let schema = |at: usize| {
                let place = places.and_then(|it| it.get(at));
                place.or_else(|| fields.get("items"))
            };
            let values = values.into_iter().enumerate();
            Value::Array(values.map(|(at, it)| below(schema(at), it)).collect())
        }
        Value::Object(values) => {
            let named = fields.get("properties").and_then(Value::as_object);
            let schema = |name: &str| {
                let own = named.and_then(|it| it.get(name));
                own.or_else(|| fields.get("additionalProperties"))
            };
            let values = values.into_iter();
            Value::Object(
                values
                    .map(|(name, it)| (name.clone(), below(schema(&name), it)))
                    .collect(),
            )
        }
        other => return other,
    };
    // The first variant that says something about the value.
    let variants = ["anyOf", "oneOf", "allOf"]
        .into_iter()
        .filter_map(|key| fields.get(key));
    let variants = variants.filter_map(Value::as_array).flatten();
    for variant in variants {
        let raised = raised_at(root, variant, value.clone(), depth + 1);
        if raised != value {
            return raised;
        }
    }
    value
}

/// Returns a map of entries; anything else stays as it is.
fn map_of(entries: Vec<Value>, raise: impl Fn(Value) -> Value) -> Value {
    let is_entry = |it: &Value| {
        it.as_object().is_some_and(|it| {
            it.len() == 2 && it.get(KEY).is_some_and(Value::is_string) && it.contains_key(VALUE)
        })
    };
    if !entries.iter().all(is_entry) {
        return Value::Array(entries);
    }
    let mut map = Map::new();
    for mut entry in entries {
        let key = entry
            .get(KEY)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        let value = entry.get_mut(VALUE).map(Value::take).unwrap_or_default();
        map.insert(key, raise(value));
    }
    Value::Object(map)
}
