//! Writes whole floats, such as `3.0`, as integers if the schema says `integer`.

use crate::repair::{Repair, RepairKind, Repairs};
use crate::validator::referred;
use serde_json::{Number, Value};

/// The bound on schema nodes visited for one value: references may branch without end.
const VISITS_MAX: usize = 10_000;

/// The bound on references followed below one another without descending into the value.
const DEPTH_MAX: usize = 128;

/// The largest whole number up to which a float holds every integer exactly.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// Writes whole floats as integers if the schema says `integer`.
///
/// JSON Schema calls `5.0` an integer, and a tool that reads an integer does not. The value is the
/// same number, so nothing that fitted stops fitting.
pub(crate) fn write_whole_floats(value: &mut Value, schema: &Value, repairs: &mut Repairs) {
    let mut walk = Walk {
        root: schema,
        visits: 0,
        repairs,
    };
    walk.node(value, schema, "", 0);
}

struct Walk<'a> {
    root: &'a Value,
    visits: usize,
    repairs: &'a mut Repairs,
}

impl<'a> Walk<'a> {
    fn node(&mut self, value: &mut Value, schema: &'a Value, path: &str, depth: usize) {
        self.visits += 1;
        if self.visits > VISITS_MAX || depth > DEPTH_MAX {
            return;
        }
        if let Some(target) = referred(self.root, schema) {
            self.node(value, target, path, depth + 1);
        }
        for combinator in ["allOf", "anyOf", "oneOf"] {
            for branch in schemas(schema, combinator) {
                self.node(value, branch, path, depth + 1);
            }
        }
        match value {
            Value::Number(number) => {
                if says_integer(schema)
                    && let Some(whole) = whole(number)
                {
                    self.replace(number, whole, path);
                }
            }
            Value::Array(items) => self.items(items, schema, path, depth),
            Value::Object(fields) => self.fields(fields, schema, path, depth),
            Value::Null | Value::Bool(_) | Value::String(_) => {}
        }
    }

    fn replace(&mut self, number: &mut Number, whole: i64, path: &str) {
        let repair = Repair::new(
            path,
            &number.to_string(),
            &whole.to_string(),
            RepairKind::FloatToInteger,
        );
        self.repairs.push(repair);
        *number = whole.into();
    }

    fn items(&mut self, items: &mut [Value], schema: &'a Value, path: &str, depth: usize) {
        let Some(of_items) = schema.get("items") else {
            return;
        };
        for (index, item) in items.iter_mut().enumerate() {
            self.node(item, of_items, &format!("{path}/{index}"), depth + 1);
        }
    }

    fn fields(
        &mut self,
        fields: &mut serde_json::Map<String, Value>,
        schema: &'a Value,
        path: &str,
        depth: usize,
    ) {
        let properties = schema.get("properties");
        let additional = schema.get("additionalProperties");
        for (key, field) in fields {
            let Some(of_field) = properties.and_then(|all| all.get(key)).or(additional) else {
                continue;
            };
            self.node(field, of_field, &child(path, key), depth + 1);
        }
    }
}

fn child(path: &str, key: &str) -> String {
    format!("{path}/{}", key.replace('~', "~0").replace('/', "~1"))
}

fn schemas<'a>(schema: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    schema
        .get(key)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

fn says_integer(schema: &Value) -> bool {
    match schema.get("type") {
        Some(Value::String(name)) => name == "integer",
        Some(Value::Array(names)) => {
            names.iter().any(|name| name == "integer") && names.iter().all(|name| name != "number")
        }
        _ => false,
    }
}

/// Returns the integer that a float equals, if it is one and exact.
pub(crate) fn whole(number: &Number) -> Option<i64> {
    if !number.is_f64() {
        return None;
    }
    let float = number.as_f64()?;
    if float.fract() != 0.0 || float.abs() > EXACT_MAX {
        return None;
    }
    format!("{float:.0}").parse().ok()
}
