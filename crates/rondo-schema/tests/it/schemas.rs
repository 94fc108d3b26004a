use rondo_schema::{SchemaError, VIOLATIONS_MAX, Validator};
use serde_json::{Value, json};

#[test]
fn references_within_the_schema_are_followed() {
    let schema =
        json!({"$defs": {"n": {"type": "integer"}}, "properties": {"a": {"$ref": "#/$defs/n"}}});
    let validator = Validator::new(&schema).unwrap();
    assert_eq!(validator.check(&json!({"a": 1})), Ok(()));
    assert_eq!(
        validator.check(&json!({"a": "x"})).unwrap_err()[0].path,
        "/a"
    );
}

#[test]
fn references_outside_the_schema_are_refused_unread() {
    for reference in [
        "http://127.0.0.1:1/schema.json",
        "https://example.com/s",
        "file:///etc/passwd",
        "other.json",
    ] {
        let err = Validator::new(&json!({"properties": {"a": {"$ref": reference}}})).unwrap_err();
        assert!(
            matches!(err, SchemaError::Invalid { .. }),
            "{reference}: {err}"
        );
    }
}

#[test]
fn references_in_a_circle_are_refused() {
    for schema in [
        json!({"$ref": "#"}),
        json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}),
    ] {
        let err = Validator::new(&schema).unwrap_err();
        assert!(matches!(err, SchemaError::Bound { .. }), "{err}");
    }
}

#[test]
fn recursive_schemas_descend_with_the_value() {
    let schema =
        json!({"type": "object", "properties": {"next": {"$ref": "#"}, "n": {"type": "integer"}}});
    let validator = Validator::new(&schema).unwrap();
    assert!(
        validator
            .check(&json!({"next": {"next": {"n": "x"}}}))
            .is_err()
    );
    assert!(
        validator
            .check(&json!({"next": {"next": {"n": 1}}}))
            .is_ok()
    );
}

fn nested(depth: usize) -> Value {
    (0..depth).fold(json!({}), |inner, _| json!({"not": inner}))
}

#[test]
fn the_depth_of_a_schema_is_bounded() {
    assert!(Validator::new(&nested(63)).is_ok());
    assert!(Validator::new(&nested(64)).is_ok());
    assert!(matches!(
        Validator::new(&nested(65)),
        Err(SchemaError::Bound { .. })
    ));
}

#[test]
fn violations_are_bounded_in_number_and_length() {
    let schema = json!({"items": {"type": "integer"}});
    let validator = Validator::new(&schema).unwrap();
    let long = json!(vec!["x".repeat(10_000); 100]);
    let violations = validator.check(&long).unwrap_err();
    assert_eq!(violations.len(), VIOLATIONS_MAX);
    assert!(violations.iter().all(|one| one.to_string().len() < 1_000));
}

#[test]
fn a_pattern_that_explodes_is_a_violation_and_ends() {
    let schema = json!({"properties": {"a": {"pattern": "^(?=(a+)+$)(a|aa)+$"}}});
    let validator = Validator::new(&schema).unwrap();
    let value = json!({"a": format!("{}b", "a".repeat(5_000))});
    assert!(validator.check(&value).is_err());
}

#[test]
fn other_drafts_are_taken_at_their_word() {
    let schema = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "definitions": {"n": {"type": "integer"}},
        "properties": {"a": {"items": [{"$ref": "#/definitions/n"}]}}
    });
    let validator = Validator::new(&schema).unwrap();
    assert!(validator.check(&json!({"a": ["x"]})).is_err());
}

#[test]
fn validators_are_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Validator>();
}
