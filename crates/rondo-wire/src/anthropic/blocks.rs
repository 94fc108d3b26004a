//! Blocks of a message while they arrive.

use crate::json::{RawObject, raw_object};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// A block of which more may come.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Block {
    /// Text, with what else it came with.
    Text(Map<String, Value>),
    /// Thinking, with its signature and what else it came with.
    Thinking(Map<String, Value>),
    /// A call, by its place in the list of calls.
    Call(usize),
    /// Anything else.
    Opaque(OpaqueBlock),
    /// One that repeats a known one.
    Ignored,
}

/// A block that goes back as it came: byte for byte if it came at once.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum OpaqueBlock {
    Whole(String),
    Grown {
        fields: Map<String, Value>,
        /// JSON text of its `input` so far.
        input: String,
    },
}

impl OpaqueBlock {
    /// Adds a delta whose type is not known: strings grow, anything else is set.
    pub(super) fn grow(&mut self, delta: &RawValue) {
        let Ok(Value::Object(delta)) = serde_json::from_str(delta.get()) else {
            return;
        };
        if let Self::Whole(json) = self {
            let fields = serde_json::from_str(json).unwrap_or_default();
            let input = String::new();
            *self = Self::Grown { fields, input };
        }
        let Self::Grown { fields, input } = self else {
            return;
        };
        for (key, value) in delta {
            match (key.as_str(), &value) {
                ("type", _) => {}
                ("partial_json", Value::String(piece)) => input.push_str(piece),
                _ => grow_field(fields, &key, value),
            }
        }
    }

    /// Returns the block's JSON.
    pub(super) fn into_json(self) -> String {
        match self {
            Self::Whole(json) => json,
            Self::Grown { mut fields, input } => {
                if let Ok(input @ Value::Object(_)) = serde_json::from_str(&input) {
                    fields.insert("input".to_owned(), input);
                }
                Value::Object(fields).to_string()
            }
        }
    }
}

/// Adds the fields of a delta of text or thinking beside its text: a signature, a citation.
pub(super) fn grow_extra(extra: &mut Map<String, Value>, delta: &RawValue) {
    let Ok(Value::Object(delta)) = serde_json::from_str(delta.get()) else {
        return;
    };
    for (key, value) in delta {
        match key.as_str() {
            "signature" => grow_field(extra, "signature", value),
            "citation" => match extra.get_mut("citations") {
                Some(Value::Array(list)) => list.push(value),
                _ => {
                    extra.insert("citations".to_owned(), Value::Array(vec![value]));
                }
            },
            _ => {}
        }
    }
}

fn grow_field(fields: &mut Map<String, Value>, key: &str, value: Value) {
    match (fields.get_mut(key), value) {
        (Some(Value::String(have)), Value::String(more)) => have.push_str(&more),
        (_, value) => {
            fields.insert(key.to_owned(), value);
        }
    }
}

/// Returns the fields of a block beside `known` ones and empty ones.
pub(super) fn extra_fields(raw: &RawValue, known: &[&str]) -> Map<String, Value> {
    let RawObject(fields) = raw_object(raw.get()).unwrap_or_default();
    fields
        .into_iter()
        .filter(|(key, value)| {
            !known.contains(&key.as_ref()) && !matches!(value.get(), "null" | "\"\"" | "[]")
        })
        .filter_map(|(key, value)| {
            let value = serde_json::from_str(value.get()).ok()?;
            Some((key.into_owned(), value))
        })
        .collect()
}
