//! JSON Schemas of Rust types, in the form that every dialect accepts.
//!
//! Subschemas are inlined, since not every server follows references; only a recursive type keeps
//! one. The root's title and the formats of numbers, which strict modes reject, are left out.

mod lowered;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

/// The field that holds an answer whose type is not an object.
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
        // The tool's description already says what the arguments are for.
        fields.shift_remove("description");
        // A struct without fields has no `properties`, which some servers require of an object.
        fields.entry("properties").or_insert_with(|| json!({}));
    }
    schema
}

/// The schema of a typed answer.
pub(crate) struct AnswerSchema {
    pub(crate) schema: Value,
    /// The schema of the type, before it was made one that strict modes take.
    derived: Value,
    is_wrapped: bool,
}

impl AnswerSchema {
    /// Derives a closed schema, as strict modes need it: every field is required, and no other is
    /// allowed. A type that is not an object is wrapped in one, as the field `answer`. A map becomes a list of its keys and
    /// values, and a tuple a list: its order is checked when the answer is read.
    pub(crate) fn of<T: JsonSchema>() -> Self {
        let mut schema = derived::<T>();
        let is_closed = |it: &Map<String, Value>| is_plain_object(it) && !lowered::is_map(it);
        let is_wrapped = !schema.as_object().is_some_and(is_closed);
        if is_wrapped {
            schema = wrapped(schema);
        }
        let derived = schema.clone();
        each_schema(&mut schema, &mut close);
        Self {
            schema,
            derived,
            is_wrapped,
        }
    }

    /// Returns the value in an answer that fits the schema, as the type has it.
    pub(crate) fn unwrap(&self, answer: Value) -> Value {
        let mut answer = lowered::raised(&self.derived, &self.derived, answer);
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

/// Returns whether the schema is of an object and lists all its fields, without combinators.
fn is_plain_object(fields: &Map<String, Value>) -> bool {
    is_object(fields) && !COMBINATORS.iter().any(|key| fields.contains_key(*key))
}

/// As [`is_plain_object`], but other types beside the object are allowed, such as `null`.
fn may_be_plain_object(fields: &Map<String, Value>) -> bool {
    let is_object = match fields.get("type") {
        Some(Value::Array(types)) => types.iter().any(|it| it == "object"),
        Some(one) => one == "object",
        None => false,
    };
    is_object && !COMBINATORS.iter().any(|key| fields.contains_key(*key))
}

/// Removes `format: int32` and the like, which are OpenAPI's and no provider enforces.
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

/// Closes the schema of an object, including one that may be `null`. Defaults are removed, since
/// every field is required.
fn close(fields: &mut Map<String, Value>) {
    if let Some(variants) = fields.shift_remove("oneOf") {
        fields.insert("anyOf".to_owned(), variants);
    }
    fields.shift_remove("default");
    lowered::lower(fields);
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

/// Visits a schema and every schema in it. The recursion is as deep as the type is nested.
fn each_schema(schema: &mut Value, visit: &mut dyn FnMut(&mut Map<String, Value>)) {
    let Value::Object(fields) = schema else {
        return;
    };
    visit(fields);
    // The variants of an object with fields of its own must stay open to be combined with them.
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
