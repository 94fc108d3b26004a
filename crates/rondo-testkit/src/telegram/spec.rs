//! Checks requests against the published description of the Bot API.

use super::form::{Form, Value as FormValue};
use serde_json::{Map, Value};
use std::sync::LazyLock;

/// The part of the Bot API's description that is used; see `fixtures/telegram/SOURCES.md`.
const DESCRIPTION: &str = include_str!("../../../../fixtures/telegram/api.json");

static SPEC: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(DESCRIPTION).expect("the fixture is JSON"));

/// Returns the parts of a request that the description does not allow.
pub(super) fn violations(method: &str, form: &Form) -> Vec<String> {
    let Some(fields) = SPEC["methods"][method].as_object() else {
        return vec![format!("there is no method `{method}`")];
    };
    let mut found = missing(method, fields, |name| form.fields.contains_key(name));
    for (name, value) in &form.fields {
        let Some(field) = fields.get(name) else {
            if !form.is_attached(name) {
                found.push(format!("`{method}` has no parameter `{name}`"));
            }
            continue;
        };
        if let Err(reason) = check_field(value, field, form) {
            found.push(format!("`{name}` of `{method}`: {reason}"));
        }
    }
    found
}

fn missing(
    owner: &str,
    fields: &Map<String, Value>,
    is_there: impl Fn(&str) -> bool,
) -> Vec<String> {
    let required = fields
        .iter()
        .filter(|(_, field)| field["required"] == Value::Bool(true));
    required
        .filter(|(name, _)| !is_there(name))
        .map(|(name, _)| format!("`{owner}` lacks `{name}`"))
        .collect()
}

fn check_field(value: &FormValue, field: &Value, form: &Form) -> Result<(), String> {
    let types = types(field);
    match value {
        FormValue::File(_) if types.contains(&"InputFile") => Ok(()),
        FormValue::File(_) => Err("no file is expected".to_owned()),
        FormValue::Json(value) => check_any(value, &types, form),
        FormValue::Text(text) => check_text(text, &types, form),
    }
}

/// Checks a parameter of a form, where numbers, booleans and objects are written as text.
fn check_text(text: &str, types: &[&str], form: &Form) -> Result<(), String> {
    let as_text = check_any(&Value::String(text.to_owned()), types, form);
    if as_text.is_ok() {
        return as_text;
    }
    match serde_json::from_str::<Value>(text) {
        Ok(value) if !value.is_string() => check_any(&value, types, form),
        _ => as_text,
    }
}

fn types(field: &Value) -> Vec<&str> {
    let types = field["types"].as_array();
    types
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

fn check_any(value: &Value, types: &[&str], form: &Form) -> Result<(), String> {
    let mut reason = "no type is expected".to_owned();
    for name in types {
        match check(value, name, form) {
            Ok(()) => return Ok(()),
            Err(other) => reason = other,
        }
    }
    Err(reason)
}

fn check(value: &Value, name: &str, form: &Form) -> Result<(), String> {
    if let Some(item) = name.strip_prefix("Array of ") {
        let items = value.as_array().ok_or("an array is expected")?;
        return items.iter().try_for_each(|it| check(it, item, form));
    }
    let fits = match name {
        "String" => value.is_string(),
        "Integer" => value.is_i64() || value.is_u64(),
        "Float" => value.is_number(),
        "Boolean" => value.is_boolean(),
        "True" => value == &Value::Bool(true),
        "InputFile" => return check_attached(value, form),
        _ => return check_object(value, name, form),
    };
    fits.then_some(())
        .ok_or_else(|| format!("{value} is not of type {name}"))
}

fn check_attached(value: &Value, form: &Form) -> Result<(), String> {
    let name = value.as_str().and_then(|it| it.strip_prefix("attach://"));
    let is_there =
        name.is_some_and(|name| matches!(form.fields.get(name), Some(FormValue::File(_))));
    is_there
        .then_some(())
        .ok_or_else(|| format!("{value} is not an attached file"))
}

fn check_object(value: &Value, name: &str, form: &Form) -> Result<(), String> {
    let known = &SPEC["types"][name];
    if let Some(kinds) = known["one_of"].as_array() {
        let kinds: Vec<&str> = kinds.iter().filter_map(Value::as_str).collect();
        return check_any(value, &kinds, form);
    }
    let fields = known["fields"]
        .as_object()
        .ok_or_else(|| format!("there is no type {name}"))?;
    let object = value
        .as_object()
        .ok_or_else(|| format!("{value} is not of type {name}"))?;
    if let Some(reason) = missing(name, fields, |it| object.contains_key(it)).pop() {
        return Err(reason);
    }
    for (key, value) in object {
        let field = fields
            .get(key)
            .ok_or_else(|| format!("{name} has no field `{key}`"))?;
        check_any(value, &types(field), form).map_err(|it| format!("`{key}` of {name}: {it}"))?;
    }
    Ok(())
}
