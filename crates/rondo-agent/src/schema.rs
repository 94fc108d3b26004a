//! JSON Schemas of Rust types, in the form that every dialect takes.
//!
//! Subschemas stand in place instead of behind references, since not every server follows them;
//! only a type that holds itself keeps one. What no provider reads (the root's title, widths of
//! numbers, which strict modes refuse) is left out.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

/// The field that holds an answer whose type is no object.
const WRAPPED: &str = "answer";
/// Keywords whose values are schemas by name.
const NAMED: [&str; 4] = [
    "properties",
    "$defs",
    "patternProperties",
    "dependentSchemas",
];
/// Keywords whose values are one schema or a list of them.
const NESTED: [&str; 8] = [
    "items",
    "prefixItems",
    "additionalProperties",
    "anyOf",
    "oneOf",
    "allOf",
    "not",
    "contains",
];
const COMBINATORS: [&str; 4] = ["anyOf", "oneOf", "allOf", "$ref"];

/// Returns the schema of a tool's arguments.
pub(crate) fn parameters<A: JsonSchema>() -> Value {
    let mut schema = derived::<A>();
    if let Some(fields) = schema.as_object_mut().filter(|it| is_object(it)) {
        // What the type is for, its tool's description says.
        fields.shift_remove("description");
        // A struct without fields has none, which some servers refuse in an object.
        fields.entry("properties").or_insert_with(|| json!({}));
    }
    schema
}

/// The schema of a typed answer.
pub(crate) struct AnswerSchema {
    pub(crate) schema: Value,
    is_wrapped: bool,
}

impl AnswerSchema {
    /// Derives the schema, closed: every field is asked for and no other allowed, which strict modes
    /// want. A type that is no object is asked for in the field `answer` of one.
    pub(crate) fn of<T: JsonSchema>() -> Self {
        let mut schema = derived::<T>();
        let is_wrapped = !schema.as_object().is_some_and(is_plain_object);
        if is_wrapped {
            schema = wrapped(schema);
        }
        each_schema(&mut schema, &mut close);
        Self { schema, is_wrapped }
    }

    /// Takes the value out of an answer that fits the schema.
    pub(crate) fn unwrap(&self, mut answer: Value) -> Value {
        match answer.get_mut(WRAPPED) {
            Some(value) if self.is_wrapped => value.take(),
            _ => answer,
        }
    }
}

fn derived<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    let mut schema = settings
        .into_generator()
        .into_root_schema_for::<T>()
        .to_value();
    if let Some(root) = schema.as_object_mut() {
        root.shift_remove("title");
    }
    each_schema(&mut schema, &mut without_width);
    schema
}

fn wrapped(mut inner: Value) -> Value {
    let defs = inner
        .as_object_mut()
        .and_then(|it| it.shift_remove("$defs"));
    each_schema(&mut inner, &mut |fields| {
        if fields.get("$ref").is_some_and(|target| target == "#") {
            fields.insert("$ref".to_owned(), json!(format!("#/properties/{WRAPPED}")));
        }
    });
    let mut outer = json!({"type": "object", "properties": {WRAPPED: inner}});
    if let (Some(defs), Some(fields)) = (defs, outer.as_object_mut()) {
        fields.insert("$defs".to_owned(), defs);
    }
    outer
}

fn is_object(fields: &Map<String, Value>) -> bool {
    fields.get("type").is_some_and(|it| it == "object")
}

/// Returns whether the schema lists all of an object's fields itself.
fn is_plain_object(fields: &Map<String, Value>) -> bool {
    is_object(fields) && !COMBINATORS.iter().any(|key| fields.contains_key(*key))
}

/// Returns whether the schema lists all fields of the objects that it takes itself.
fn may_be_plain_object(fields: &Map<String, Value>) -> bool {
    let is_object = match fields.get("type") {
        Some(Value::Array(types)) => types.iter().any(|it| it == "object"),
        Some(one) => one == "object",
        None => false,
    };
    is_object && !COMBINATORS.iter().any(|key| fields.contains_key(*key))
}

/// `format: int32` and the like are OpenAPI's, and no provider enforces them.
fn without_width(fields: &mut Map<String, Value>) {
    let is_number = |it: &Value| it == "integer" || it == "number";
    let is_numeric = match fields.get("type") {
        Some(Value::Array(types)) => types.iter().any(is_number),
        Some(one) => is_number(one),
        None => false,
    };
    if is_numeric {
        fields.shift_remove("format");
    }
}

/// Closes an object, also one in whose place `null` may stand. Every field is asked for, so what
/// stands in for a missing one is left out.
fn close(fields: &mut Map<String, Value>) {
    if let Some(variants) = fields.shift_remove("oneOf") {
        fields.insert("anyOf".to_owned(), variants);
    }
    fields.shift_remove("default");
    if !may_be_plain_object(fields) {
        return;
    }
    let Some(Value::Object(properties)) = fields.get("properties") else {
        return;
    };
    let names: Vec<String> = properties.keys().cloned().collect();
    fields.insert("required".to_owned(), json!(names));
    fields
        .entry("additionalProperties")
        .or_insert(Value::Bool(false));
}

/// Visits every schema within a schema; as deep as the type is nested in its source.
fn each_schema(schema: &mut Value, visit: &mut dyn FnMut(&mut Map<String, Value>)) {
    let Value::Object(fields) = schema else {
        return;
    };
    visit(fields);
    // Variants of an object that has fields of its own are open towards each other.
    let is_mixed = fields.contains_key("properties") && !is_plain_object(fields);
    for (key, value) in fields.iter_mut() {
        let is_variant = COMBINATORS.contains(&key.as_str());
        match value {
            Value::Object(named) if NAMED.contains(&key.as_str()) => {
                named.values_mut().for_each(|it| each_schema(it, visit));
            }
            Value::Array(list) if NESTED.contains(&key.as_str()) && !(is_mixed && is_variant) => {
                list.iter_mut().for_each(|it| each_schema(it, visit));
            }
            Value::Object(_) if NESTED.contains(&key.as_str()) => each_schema(value, visit),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
