//! Tests of portable schemas: one for each thing that some provider refuses.

use super::*;
use proptest::prelude::*;

#[track_caller]
fn check(schema: &Value, expected: &Value) {
    let once = portable(schema).unwrap();
    assert_eq!(&once, expected);
    assert_eq!(portable(&once).unwrap(), once, "a second time");
}

#[test]
fn an_object_without_anything_takes_none() {
    let none = json!({"type": "object", "properties": {}});
    for schema in [
        json!({}),
        json!(null),
        json!(true),
        json!({"type": "object"}),
        json!({"$schema": "x"}),
    ] {
        check(&schema, &none);
    }
    check(&json!({"type": ["object", "null"]}), &none);
    check(
        &json!({"type": "object", "properties": {"a": {"type": "array"}}}),
        &json!({"type": "object", "properties": {"a": {"type": "array", "items": {}}}}),
    );
}

#[test]
fn references_are_followed_and_circles_take_anything() {
    check(
        &json!({
            "type": "object",
            "properties": {"a": {"$ref": "#/$defs/A", "description": "here"}},
            "$defs": {"A": {"type": "object", "title": "A", "description": "there", "properties": {
                "next": {"$ref": "#/$defs/A"},
                "n": {"type": "integer"}
            }, "required": ["n"]}}
        }),
        &json!({"type": "object", "properties": {"a": {
            "type": "object",
            "description": "here",
            "properties": {"next": {}, "n": {"type": "integer"}},
            "required": ["n"]
        }}}),
    );
}

#[test]
fn a_list_of_types_becomes_branches_without_a_type_beside_them() {
    check(
        &json!({"type": "object", "properties": {
            "a": {"type": ["string", "null"], "description": "d", "minLength": 1, "enum": ["x", null]},
            "b": {"type": "string", "anyOf": [{"minLength": 1}, {"type": "null"}]},
            "c": {"anyOf": [{"type": "string"}], "description": "one"}
        }}),
        &json!({"type": "object", "properties": {
            "a": {"description": "d", "anyOf": [
                {"type": "string", "enum": ["x"], "minLength": 1},
                {"type": "null", "enum": [null]}
            ]},
            "b": {"anyOf": [{"type": "string", "minLength": 1}, {"type": "null"}]},
            "c": {"description": "one", "type": "string"}
        }}),
    );
}

#[test]
fn branches_at_the_top_become_one_object() {
    for keyword in ["anyOf", "oneOf"] {
        check(
            &json!({"type": "object", keyword: [
                {"properties": {"path": {"type": "string"}, "n": {"type": "integer"}}, "required": ["path", "n"]},
                {"properties": {"url": {"type": "string"}, "n": {"type": "integer"}}, "required": ["url", "n"]}
            ]}),
            &json!({"type": "object", "properties": {
                "path": {"type": "string"}, "n": {"type": "integer"}, "url": {"type": "string"}
            }, "required": ["n"]}),
        );
    }
    check(
        &json!({"allOf": [
            {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
            {"properties": {"b": {"type": "string"}}, "required": ["b"]}
        ]}),
        &json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "required": ["a", "b"]}),
    );
}

#[test]
fn keywords_that_not_all_providers_know_are_left_out() {
    check(
        &json!({
            "$schema": "http://json-schema.org/draft-07/schema#", "$id": "x", "type": "object", "title": "T",
            "if": {}, "then": {}, "patternProperties": {"x": {}}, "additionalProperties": false,
            "required": ["a", "gone"],
            "properties": {
                "a": {"const": "v", "title": "A", "examples": ["v"]},
                "b": {"type": "integer", "minimum": 0, "exclusiveMinimum": true, "default": 3},
                "c": {"type": "string", "format": "uri"},
                "d": {"type": "array", "items": [{"type": "string"}, {"type": "integer"}]},
                "e": false
            }
        }),
        &json!({
            "type": "object",
            "properties": {
                "a": {"type": "string", "enum": ["v"]},
                "b": {"type": "integer", "minimum": 0, "default": 3},
                "c": {"type": "string"},
                "d": {"type": "array", "items": {}}
            },
            "required": ["a"],
            "additionalProperties": false
        }),
    );
}

#[test]
fn what_no_provider_takes_is_refused() {
    let refused = |schema: Value| portable(&schema).unwrap_err();
    assert_eq!(refused(json!({"type": "string"})), NotPortable::NoObject);
    assert_eq!(
        refused(json!({"anyOf": [{"type": "string"}, {"type": "integer"}]})),
        NotPortable::NoObject
    );
    let key = json!({"type": "object", "properties": {"a b": {}}});
    assert_eq!(refused(key), NotPortable::Key("a b".to_owned()));
    let reference = json!({"type": "object", "properties": {"a": {"$ref": "http://x/y"}}});
    assert_eq!(
        refused(reference),
        NotPortable::Reference("http://x/y".to_owned())
    );
    let pattern =
        json!({"type": "object", "properties": {"a": {"type": "string", "pattern": "("}}});
    assert!(matches!(refused(pattern), NotPortable::Schema(_)));
}

#[test]
fn sizes_are_bounded() {
    let nested = |depth: usize| {
        let inner = (1..depth).fold(
            json!({"type": "string"}),
            |inner, _| json!({"type": "array", "items": inner}),
        );
        json!({"type": "object", "properties": {"a": inner}})
    };
    assert!(portable(&nested(DEPTH_MAX - 1)).is_ok());
    assert!(portable(&nested(DEPTH_MAX)).is_ok());
    assert_eq!(
        portable(&nested(DEPTH_MAX + 1)),
        Err(NotPortable::TooLarge("nested more than 32 deep"))
    );
    let keyed = |bytes: usize| json!({"type": "object", "properties": {"k".repeat(bytes): {}}});
    assert!(portable(&keyed(KEY_BYTES_MAX)).is_ok());
    assert!(matches!(
        portable(&keyed(KEY_BYTES_MAX + 1)),
        Err(NotPortable::Key(_))
    ));
    // Each of these doubles what it refers to.
    let defs: Map<String, Value> = (0..40)
        .map(|at| {
            let next = json!({"$ref": format!("#/$defs/d{}", at + 1)});
            (
                format!("d{at}"),
                json!({"type": "object", "properties": {"a": next, "b": next}}),
            )
        })
        .chain([("d40".to_owned(), json!({}))])
        .collect();
    let bomb =
        json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": defs});
    assert!(matches!(portable(&bomb), Err(NotPortable::TooLarge(_))));
    let many: Map<String, Value> = (0..3000).map(|at| (format!("p{at}"), json!({}))).collect();
    let many = json!({"type": "object", "properties": many});
    assert!(matches!(portable(&many), Err(NotPortable::TooLarge(_))));
}

fn any_schema() -> impl Strategy<Value = Value> {
    let keyword = prop::sample::select(vec![
        "type",
        "properties",
        "items",
        "anyOf",
        "oneOf",
        "allOf",
        "enum",
        "required",
        "$ref",
        "const",
        "minLength",
        "a",
        "b",
        "additionalProperties",
        "description",
        "default",
    ]);
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::Bool),
        any::<i8>().prop_map(|it| json!(it)),
        prop::sample::select(vec![
            "string",
            "object",
            "null",
            "array",
            "a",
            "#",
            "#/a",
            "#/properties/a"
        ])
        .prop_map(|it| json!(it)),
    ];
    leaf.prop_recursive(4, 40, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::vec((keyword.clone(), inner), 0..5).prop_map(|fields| Value::Object(
                fields
                    .into_iter()
                    .map(|(key, value)| (key.to_owned(), value))
                    .collect()
            )),
        ]
    })
}

proptest! {
    #[test]
    fn whatever_comes_is_refused_or_becomes_portable_for_good(schema in any_schema()) {
        if let Ok(once) = portable(&schema) {
            prop_assert_eq!(&once["type"], "object");
            prop_assert!(once.get("anyOf").is_none());
            prop_assert!(!once.to_string().contains("$ref"));
            prop_assert_eq!(portable(&once).unwrap(), once);
        }
    }
}
