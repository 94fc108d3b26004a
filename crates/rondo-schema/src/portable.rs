//! Schemas that others wrote for their tools, in the form that every provider takes.
//!
//! A provider refuses the whole request over one schema that it does not like, so that one bad tool ends the turn.
//! Schemas that providers refuse, by their own errors: Anthropic `anyOf`, `oneOf` and `allOf` at the top and keys with
//! other characters than `[a-zA-Z0-9_.-]`; OpenAI objects without `properties` and arrays without `items`; Gemini
//! references, lists of types such as `["object", "null"]`, and required keys that are not properties; Moonshot a
//! `type` beside `anyOf`. The portable form has none of these. It may take more than the original, never less: the
//! server that wrote the schema checks the arguments anyway.

use crate::validator::{SchemaError, Validator};
use rondo_types::text::first_bytes;
use serde_json::{Map, Value, json};

/// The bound on a portable schema, as JSON, in bytes.
pub const PORTABLE_BYTES_MAX: usize = 32 << 10;
/// The bound on its nesting, references followed.
const DEPTH_MAX: usize = 32;
/// The bound on schemas in it, references followed.
const SCHEMAS_MAX: usize = 2_000;
/// The bound on a key, as Anthropic has it.
const KEY_BYTES_MAX: usize = 64;
/// The bound on a description within it, in bytes.
const DESCRIPTION_BYTES_MAX: usize = 2_000;
/// The bound on a `pattern`, in bytes.
const PATTERN_BYTES_MAX: usize = 500;

/// Keywords whose numbers are kept.
const NUMBERS: [&str; 9] = [
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
];
/// The formats that every provider knows.
const FORMATS: [&str; 3] = ["date-time", "date", "time"];
/// The types of JSON Schema.
const TYPES: [&str; 7] = [
    "string", "number", "integer", "boolean", "array", "object", "null",
];

/// Why a schema has no portable form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotPortable {
    /// It describes no object, and arguments are one.
    #[error("the schema of its arguments describes no object")]
    NoObject,
    /// A key that providers refuse.
    #[error("providers refuse the name `{0}` of an argument")]
    Key(String),
    /// It is too large, or nested too deeply.
    #[error("the schema of its arguments is too large: {0}")]
    TooLarge(&'static str),
    /// It refers to what it does not hold.
    #[error("the schema of its arguments refers to `{0}`, which is not in it")]
    Reference(String),
    /// It is no JSON Schema.
    #[error(transparent)]
    Schema(#[from] SchemaError),
}

/// Returns the portable form of the schema of a tool's arguments; that of a portable one is itself.
///
/// # Errors
/// When it has none. A tool with such a schema must not be offered.
pub fn portable(schema: &Value) -> Result<Value, NotPortable> {
    let mut walk = Walk {
        root: schema,
        following: Vec::new(),
        left: SCHEMAS_MAX,
    };
    let mut top = match schema {
        Value::Null => Map::new(),
        schema => walk.schema(schema, 0)?,
    };
    let mut top = match top.remove("anyOf") {
        Some(Value::Array(branches)) => merged(top, &branches),
        _ => top,
    };
    match top.get("type").and_then(Value::as_str) {
        Some("object") => {}
        None if !top.contains_key("enum") => {
            top = sound(top, Some("object"));
        }
        Some(_) | None => return Err(NotPortable::NoObject),
    }
    top.entry("properties").or_insert_with(|| json!({}));
    let portable = Value::Object(top);
    if portable.to_string().len() > PORTABLE_BYTES_MAX {
        return Err(NotPortable::TooLarge("more than 32 KiB"));
    }
    Validator::new(&portable)?;
    Ok(portable)
}

/// One walk through a schema.
struct Walk<'a> {
    root: &'a Value,
    /// The references that are being followed.
    following: Vec<&'a str>,
    /// How many schemas may still come.
    left: usize,
}

impl<'a> Walk<'a> {
    fn schema(
        &mut self,
        schema: &'a Value,
        depth: usize,
    ) -> Result<Map<String, Value>, NotPortable> {
        if depth > DEPTH_MAX {
            return Err(NotPortable::TooLarge("nested more than 32 deep"));
        }
        self.left = self
            .left
            .checked_sub(1)
            .ok_or(NotPortable::TooLarge("more than 2000 parts"))?;
        // `true` takes everything, and so does what is not a schema.
        let Value::Object(from) = schema else {
            return Ok(Map::new());
        };
        let mut out = match from.get("$ref").and_then(Value::as_str) {
            Some(reference) => self.referred(reference, depth)?,
            None => Map::new(),
        };
        for part in array(from, "allOf") {
            let part = self.schema(part, depth + 1)?;
            add_all(&mut out, part);
        }
        let own = self.own(from, depth)?;
        add_all(&mut out, own);
        let kinds = kinds(from);
        let branches: Vec<&Value> = array(from, "anyOf").chain(array(from, "oneOf")).collect();
        // An object that names its properties says enough; its branches say which of them go together.
        if !branches.is_empty() && !out.contains_key("properties") {
            return self.either(out, &branches, &kinds, depth);
        }
        if branches.is_empty() {
            return Ok(typed(out, &kinds));
        }
        let mut out = out;
        for branch in branches {
            let branch = self.schema(branch, depth + 1)?;
            add_properties(&mut out, branch);
        }
        Ok(typed(out, &kinds))
    }

    fn referred(
        &mut self,
        reference: &'a str,
        depth: usize,
    ) -> Result<Map<String, Value>, NotPortable> {
        if self.following.contains(&reference) {
            // A schema that refers to itself takes anything from the second time on.
            return Ok(Map::new());
        }
        let missing = || NotPortable::Reference(reference.chars().take(100).collect());
        let pointer = reference.strip_prefix('#').ok_or_else(missing)?;
        let found = self.root.pointer(pointer).ok_or_else(missing)?;
        self.following.push(reference);
        let schema = self.schema(found, depth + 1);
        self.following.pop();
        schema
    }

    /// Returns the schema's own keywords, without its type, references and branches.
    fn own(
        &mut self,
        from: &'a Map<String, Value>,
        depth: usize,
    ) -> Result<Map<String, Value>, NotPortable> {
        let mut out = Map::new();
        if let Some(text) = from.get("description").and_then(Value::as_str) {
            let text = first_bytes(text, DESCRIPTION_BYTES_MAX);
            out.insert("description".to_owned(), json!(text));
        }
        let constant = from.get("const").map(std::slice::from_ref);
        let values = from.get("enum").and_then(Value::as_array);
        if let Some(values) = constant
            .or(values.map(Vec::as_slice))
            .filter(|it| !it.is_empty())
        {
            out.insert("enum".to_owned(), json!(values));
        }
        for name in NUMBERS {
            if let Some(number) = from.get(name).filter(|it| it.is_number()) {
                out.insert(name.to_owned(), number.clone());
            }
        }
        if let Some(pattern) = from.get("pattern").and_then(Value::as_str)
            && pattern.len() <= PATTERN_BYTES_MAX
        {
            out.insert("pattern".to_owned(), json!(pattern));
        }
        if let Some(format) = from.get("format").and_then(Value::as_str)
            && FORMATS.contains(&format)
        {
            out.insert("format".to_owned(), json!(format));
        }
        if let Some(default) = from.get("default")
            && (default.is_string() || default.is_number() || default.is_boolean())
        {
            out.insert("default".to_owned(), default.clone());
        }
        if let Some(Value::Object(properties)) = from.get("properties") {
            out.insert("properties".to_owned(), self.properties(properties, depth)?);
        }
        let required = array(from, "required").filter(|it| it.is_string());
        let required: Vec<Value> = required.cloned().collect();
        if !required.is_empty() {
            out.insert("required".to_owned(), Value::Array(required));
        }
        match from.get("additionalProperties") {
            Some(Value::Bool(may)) => {
                drop(out.insert("additionalProperties".to_owned(), json!(may)))
            }
            Some(schema @ Value::Object(_)) => {
                let schema = self.schema(schema, depth + 1)?;
                out.insert("additionalProperties".to_owned(), Value::Object(schema));
            }
            _ => {}
        }
        if let Some(items @ Value::Object(_)) = from.get("items") {
            let items = self.schema(items, depth + 1)?;
            out.insert("items".to_owned(), Value::Object(items));
        }
        Ok(out)
    }

    fn properties(
        &mut self,
        from: &'a Map<String, Value>,
        depth: usize,
    ) -> Result<Value, NotPortable> {
        let mut out = Map::new();
        for (key, schema) in from {
            if schema == &Value::Bool(false) {
                continue;
            }
            if !is_key(key) {
                // Deep in the arguments one name that cannot be offered is not worth the tool.
                if depth > 0 {
                    continue;
                }
                return Err(NotPortable::Key(key.chars().take(KEY_BYTES_MAX).collect()));
            }
            out.insert(key.clone(), Value::Object(self.schema(schema, depth + 1)?));
        }
        Ok(Value::Object(out))
    }

    /// Returns a schema of branches, each of which has what they share.
    fn either(
        &mut self,
        mut out: Map<String, Value>,
        branches: &[&'a Value],
        kinds: &[&str],
        depth: usize,
    ) -> Result<Map<String, Value>, NotPortable> {
        let mut all = Vec::new();
        for branch in branches {
            let mut branch = self.schema(branch, depth + 1)?;
            // Branches within a branch are one list.
            match branch.remove("anyOf") {
                Some(Value::Array(inner)) => all.extend(inner),
                _ if branch.contains_key("type") => all.push(Value::Object(branch)),
                _ => match typed(branch, kinds) {
                    mut branch if branch.contains_key("anyOf") => {
                        all.extend(branch.remove("anyOf").into_iter().flat_map(into_array));
                    }
                    branch => all.push(Value::Object(branch)),
                },
            }
        }
        all.dedup();
        if let [Value::Object(only)] = all.as_mut_slice() {
            let only = std::mem::take(only);
            add_all(&mut out, only);
            return Ok(out);
        }
        let mut either = Map::new();
        for shared in ["description", "default"] {
            if let Some(value) = out.remove(shared) {
                either.insert(shared.to_owned(), value);
            }
        }
        for branch in all.iter_mut().filter_map(Value::as_object_mut) {
            for (key, value) in &out {
                branch.entry(key.clone()).or_insert_with(|| value.clone());
            }
        }
        either.insert("anyOf".to_owned(), Value::Array(all));
        Ok(either)
    }
}

/// Gives a schema its type; if there are several, each is a branch.
fn typed(mut schema: Map<String, Value>, kinds: &[&str]) -> Map<String, Value> {
    let known = schema
        .get("type")
        .and_then(Value::as_str)
        .map(str::to_owned);
    let kinds: Vec<&str> = match (&known, kinds) {
        (Some(_), []) => return sound(schema, None),
        (_, []) => return sound(schema, None),
        (_, kinds) => kinds.to_vec(),
    };
    if let [kind] = kinds.as_slice() {
        return sound(schema, Some(kind));
    }
    let mut either = Map::new();
    for shared in ["description", "default"] {
        if let Some(value) = schema.remove(shared) {
            either.insert(shared.to_owned(), value);
        }
    }
    let branch = |kind: &&str| Value::Object(sound(schema.clone(), Some(kind)));
    either.insert("anyOf".to_owned(), kinds.iter().map(branch).collect());
    either
}

/// Puts the type first, infers it if it can, and leaves out what only other types have.
fn sound(mut schema: Map<String, Value>, kind: Option<&str>) -> Map<String, Value> {
    if schema.contains_key("anyOf") {
        return schema;
    }
    let known = schema.remove("type");
    let kind = kind.map(str::to_owned);
    let kind = kind.or_else(|| known?.as_str().map(str::to_owned));
    let kind = kind.or_else(|| inferred(&schema).map(str::to_owned));
    let Some(kind) = kind else {
        return schema;
    };
    let only_of = |key: &str| match key {
        "properties" | "required" | "additionalProperties" => Some("object"),
        "items" | "minItems" | "maxItems" => Some("array"),
        "pattern" | "format" | "minLength" | "maxLength" => Some("string"),
        _ => None,
    };
    let mut out = Map::new();
    out.insert("type".to_owned(), json!(kind));
    for (key, value) in schema {
        let fits = only_of(&key).is_none_or(|of| of == kind);
        let value = match key.as_str() {
            "enum" => of_kind(value, &kind),
            _ => Some(value),
        };
        if let Some(value) = value.filter(|_| fits) {
            out.insert(key, value);
        }
    }
    if kind == "array" {
        out.entry("items").or_insert_with(|| json!({}));
    }
    if kind == "object" {
        keep_known_required(&mut out);
    }
    out
}

/// Returns the values of an enumeration that have a type; nothing if none has.
fn of_kind(values: Value, kind: &str) -> Option<Value> {
    let is_of = |value: &Value| match kind {
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "array" => value.is_array(),
        _ => value.is_object(),
    };
    let kept: Vec<Value> = into_array(values).into_iter().filter(is_of).collect();
    (!kept.is_empty()).then_some(Value::Array(kept))
}

fn keep_known_required(schema: &mut Map<String, Value>) {
    let known: Vec<String> = match schema.get("properties") {
        Some(Value::Object(properties)) => properties.keys().cloned().collect(),
        _ => Vec::new(),
    };
    let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) else {
        return;
    };
    required.retain(|it| {
        it.as_str()
            .is_some_and(|it| known.iter().any(|key| key == it))
    });
    if required.is_empty() {
        schema.shift_remove("required");
    }
}

fn inferred(schema: &Map<String, Value>) -> Option<&'static str> {
    if schema.contains_key("properties") {
        return Some("object");
    }
    if schema.contains_key("items") {
        return Some("array");
    }
    let values = schema.get("enum")?.as_array()?;
    values.iter().all(Value::is_string).then_some("string")
}

/// Adds the keywords of another schema; those of both stay, but for properties and required keys, which are joined.
fn add_all(out: &mut Map<String, Value>, more: Map<String, Value>) {
    for (key, value) in more {
        match (out.get_mut(&key), value) {
            (Some(Value::Object(known)), Value::Object(value)) if key == "properties" => {
                for (name, schema) in value {
                    known.entry(name).or_insert(schema);
                }
            }
            (Some(Value::Array(known)), Value::Array(value)) if key == "required" => {
                for name in value {
                    if !known.contains(&name) {
                        known.push(name);
                    }
                }
            }
            // The words next to a reference are about this use of it.
            (Some(known), value) if key == "description" => *known = value,
            (Some(_), _) => {}
            (None, value) => drop(out.insert(key, value)),
        }
    }
}

/// Adds the properties of a branch, none of which is required.
fn add_properties(out: &mut Map<String, Value>, mut branch: Map<String, Value>) {
    if let Some(properties) = branch.remove("properties") {
        let mut more = Map::new();
        more.insert("properties".to_owned(), properties);
        add_all(out, more);
    }
}

/// Makes one object of the branches of the arguments: required is what all of them require.
fn merged(mut top: Map<String, Value>, branches: &[Value]) -> Map<String, Value> {
    let objects: Vec<&Map<String, Value>> = branches
        .iter()
        .filter_map(Value::as_object)
        .filter(|it| it.get("type").is_none_or(|kind| kind == "object"))
        .collect();
    if objects.is_empty() {
        top.insert("type".to_owned(), json!("string"));
        return top;
    }
    let requires =
        |object: &&Map<String, Value>, name: &Value| array(object, "required").any(|it| it == name);
    let first = objects.first().copied();
    let required = first.into_iter().flat_map(|it| array(it, "required"));
    let required = required.filter(|name| objects.iter().all(|it| requires(it, name)));
    let required: Vec<Value> = required.cloned().collect();
    top.insert("type".to_owned(), json!("object"));
    for object in &objects {
        add_properties(&mut top, (*object).clone());
    }
    if !required.is_empty() {
        top.insert("required".to_owned(), Value::Array(required));
    }
    top
}

/// Returns the types that a schema names.
fn kinds(schema: &Map<String, Value>) -> Vec<&str> {
    let named: Vec<&str> = match schema.get("type") {
        Some(Value::String(kind)) => vec![kind.as_str()],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let mut kinds: Vec<&str> = Vec::new();
    for kind in named {
        if TYPES.contains(&kind) && !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    kinds
}

fn array<'a>(schema: &'a Map<String, Value>, key: &str) -> impl Iterator<Item = &'a Value> {
    schema
        .get(key)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

fn into_array(value: Value) -> Vec<Value> {
    match value {
        Value::Array(values) => values,
        _ => Vec::new(),
    }
}

fn is_key(key: &str) -> bool {
    let is_plain = |it: u8| it.is_ascii_alphanumeric() || b"_.-".contains(&it);
    (1..=KEY_BYTES_MAX).contains(&key.len()) && key.bytes().all(is_plain)
}

#[cfg(test)]
mod tests;
