//! Tests: JSON Schemas of Rust types, for tools and answers.

use super::*;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A place.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is looked at")]
struct Place {
    /// The city.
    city: String,
    population: Option<u32>,
    kind: Kind,
    near: Vec<Spot>,
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is looked at")]
struct Spot {
    height: f64,
}

#[derive(JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "only its schema is looked at")]
enum Kind {
    /// By the sea.
    Coast,
    Inland,
}

#[derive(JsonSchema)]
#[serde(tag = "shape", rename_all = "snake_case")]
#[expect(dead_code, reason = "only its schema is looked at")]
enum Shape {
    Leaf { size: u8 },
    Group { parts: Vec<Shape> },
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is looked at")]
struct Mixed {
    id: u8,
    #[serde(flatten)]
    shape: Flat,
}

#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is looked at")]
enum Flat {
    One { one: u8 },
    Two { two: u8 },
}

#[test]
fn arguments_are_one_schema_without_references_titles_or_widths() {
    assert_eq!(
        parameters::<Place>(),
        json!({
            "type": "object",
            "properties": {
                "city": {"description": "The city.", "type": "string"},
                "population": {"type": ["integer", "null"], "minimum": 0},
                "kind": {"oneOf": [
                    {"type": "string", "enum": ["inland"]},
                    {"description": "By the sea.", "type": "string", "const": "coast"},
                ]},
                "near": {"type": "array", "items": {
                    "type": "object",
                    "properties": {"height": {"type": "number"}},
                    "required": ["height"],
                }},
            },
            "required": ["city", "kind", "near"],
        })
    );
}

#[test]
fn a_tool_without_arguments_takes_an_object_without_fields() {
    let empty = json!({"type": "object", "properties": {}});
    assert_eq!(parameters::<crate::NoArgs>(), empty);
}

#[test]
fn an_answer_asks_for_every_field_and_allows_no_other() {
    let answer = AnswerSchema::of::<Place>();
    let schema = &answer.schema;
    assert_eq!(
        schema["required"],
        json!(["city", "population", "kind", "near"])
    );
    assert_eq!(schema["additionalProperties"], json!(false));
    let spot = &schema["properties"]["near"]["items"];
    assert_eq!(spot["additionalProperties"], json!(false));
    assert!(schema["properties"]["kind"]["anyOf"].is_array());
    let value = json!({"answer": 1});
    assert_eq!(answer.unwrap(value.clone()), value);
}

#[test]
fn an_answer_that_is_no_object_is_asked_for_in_one() {
    let answer = AnswerSchema::of::<Vec<u32>>();
    assert_eq!(
        answer.schema,
        json!({
            "type": "object",
            "properties": {"answer": {"type": "array", "items": {"type": "integer", "minimum": 0}}},
            "required": ["answer"],
            "additionalProperties": false,
        })
    );
    assert_eq!(answer.unwrap(json!({"answer": [1]})), json!([1]));
}

#[test]
fn a_type_that_holds_itself_keeps_references_that_lead_somewhere() {
    let answer = AnswerSchema::of::<Shape>();
    let valid = json!({"answer": {"shape": "group", "parts": [{"shape": "leaf", "size": 1}]}});
    let wrong = json!({"answer": {"shape": "group", "parts": [{"shape": "leaf", "size": "x"}]}});
    assert!(rondo_core::catalog::Catalog::new(Arc::default(), Some(&answer.schema)).is_ok());
    assert!(fits(&answer.schema, &valid));
    assert!(!fits(&answer.schema, &wrong));
}

#[test]
fn variants_beside_fields_stay_open() {
    let answer = AnswerSchema::of::<Mixed>();
    assert!(fits(
        &answer.schema,
        &inside(&answer, json!({"id": 1, "two": 2}))
    ));
    assert!(!fits(&answer.schema, &inside(&answer, json!({"id": 1}))));
}

#[test]
fn a_map_is_asked_for_as_a_list_of_entries_and_read_as_a_map() {
    let answer = AnswerSchema::of::<BTreeMap<String, Vec<BTreeMap<String, u8>>>>();
    let asked = json!({"answer": [{"key": "any", "value": [[{"key": "one", "value": 1}]]}]});
    assert!(fits(&answer.schema, &asked));
    assert_eq!(answer.unwrap(asked), json!({"any": [{"one": 1}]}));
    let wrong = json!({"answer": [{"key": "any", "value": "x"}]});
    assert!(!fits(&answer.schema, &wrong));
}

#[test]
fn maps_and_tuples_keep_what_strict_modes_take() {
    #[derive(schemars::JsonSchema, serde::Deserialize, PartialEq, Debug)]
    struct All {
        pair: (u8, String),
        same: (f64, f64),
        prices: BTreeMap<String, u32>,
        maybe: Option<BTreeMap<String, (bool, i64)>>,
    }
    let answer = AnswerSchema::of::<All>();
    let entries = |value: Value, kind: Value| {
        json!({
            "type": kind,
            "items": {
                "type": "object",
                "properties": {"key": {"type": "string"}, "value": value},
                "required": ["key", "value"],
                "additionalProperties": false,
            },
        })
    };
    let of = |name: &str| &answer.schema["properties"][name];
    let byte = json!({"type": "integer", "minimum": 0, "maximum": 255});
    let pair = json!({"type": "array", "minItems": 2, "maxItems": 2, "items": {"anyOf": [byte, {"type": "string"}]}});
    assert_eq!(*of("pair"), pair);
    let same = json!({"type": "array", "minItems": 2, "maxItems": 2, "items": {"type": "number"}});
    assert_eq!(*of("same"), same);
    let price = json!({"type": "integer", "minimum": 0});
    assert_eq!(*of("prices"), entries(price, json!("array")));
    let inner = json!({"type": "array", "minItems": 2, "maxItems": 2, "items": {"anyOf": [{"type": "boolean"}, {"type": "integer"}]}});
    assert_eq!(*of("maybe"), entries(inner, json!(["array", "null"])));
    let given = json!({
        "pair": [1, "a"],
        "same": [1.0, 2.0],
        "prices": [{"key": "tea", "value": 3}],
        "maybe": [{"key": "x", "value": [true, -1]}],
    });
    assert!(fits(&answer.schema, &given));
    let read: All = serde_json::from_value(answer.unwrap(given)).unwrap();
    let expected = All {
        pair: (1, "a".to_owned()),
        same: (1.0, 2.0),
        prices: BTreeMap::from([("tea".to_owned(), 3)]),
        maybe: Some(BTreeMap::from([("x".to_owned(), (true, -1))])),
    };
    assert_eq!(read, expected);
}

fn inside(answer: &AnswerSchema, value: Value) -> Value {
    if answer.is_wrapped {
        json!({ WRAPPED: value })
    } else {
        value
    }
}

/// Asks the check that a turn makes.
fn fits(schema: &Value, value: &Value) -> bool {
    use rondo_core::machine::Arguments as _;
    let catalog = rondo_core::catalog::Catalog::new(Arc::default(), Some(schema)).unwrap();
    catalog.check_answer(value.to_string()).is_ok()
}

#[test]
fn an_object_that_may_be_null_is_closed_too() {
    #[derive(schemars::JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Outer {
        inner: Option<Inner>,
        #[schemars(default)]
        count: u32,
    }
    #[derive(schemars::JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Inner {
        name: Option<String>,
    }
    let answer = AnswerSchema::of::<Outer>();
    assert_eq!(
        answer.schema,
        json!({
            "type": "object",
            "properties": {
                "inner": {
                    "type": ["object", "null"],
                    "properties": {"name": {"type": ["string", "null"]}},
                    "required": ["name"],
                    "additionalProperties": false,
                },
                "count": {"type": "integer", "minimum": 0},
            },
            "required": ["inner", "count"],
            "additionalProperties": false,
        })
    );
}
