use rondo_schema::{ArgsError, RAW_BYTES_MAX, validate_tool_args};
use serde_json::{Value, json};

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "limit": {"type": "integer"},
            "ratio": {"type": "number"},
            "deep": {"type": "object", "properties": {"flag": {"type": "boolean"}}, "required": ["flag"]},
            "tags": {"type": "array", "items": {"type": "string"}}
        },
        "required": ["path"]
    })
}

fn violated(args: &str) -> Vec<String> {
    match validate_tool_args("t", args, &schema()) {
        Err(ArgsError::Invalid { violations, .. }) => {
            violations.into_iter().map(|one| one.path).collect()
        }
        other => panic!("expected violations, got {other:?}"),
    }
}

#[test]
fn fa_14_fa_19_valid_arguments_come_back_parsed() {
    let value = validate_tool_args("t", r#"{"path":"a","limit":3}"#, &schema()).unwrap();
    assert_eq!(value, json!({"path": "a", "limit": 3}));
}

#[test]
fn fa_15_fa_19_bad_json_is_an_error_that_says_where() {
    let err = validate_tool_args("t", r#"{"path": oops}"#, &schema()).unwrap_err();
    assert!(matches!(err, ArgsError::NotJson { .. }));
    assert_eq!(
        err.to_string(),
        "arguments of `t` are not JSON: expected value at byte 9"
    );
}

#[test]
fn fa_15_cut_off_json_says_so() {
    let err = validate_tool_args("t", r#"{"path": "a"#, &schema()).unwrap_err();
    assert!(err.to_string().contains("ends before"), "{err}");
}

#[test]
fn fa_16_fa_19_a_missing_required_field_is_named() {
    let err = validate_tool_args("t", "{}", &schema()).unwrap_err();
    assert!(
        err.to_string().contains("\"path\" is a required property"),
        "{err}"
    );
}

#[test]
fn fa_17_fa_19_each_type_is_checked() {
    for (args, path) in [
        (r#"{"path":1}"#, "/path"),
        (r#"{"path":"a","limit":1.5}"#, "/limit"),
        (r#"{"path":"a","ratio":"x"}"#, "/ratio"),
        (r#"{"path":"a","deep":[]}"#, "/deep"),
        (r#"{"path":"a","deep":{"flag":"true"}}"#, "/deep/flag"),
        (r#"{"path":"a","tags":{}}"#, "/tags"),
        (r#"{"path":"a","tags":["x",2]}"#, "/tags/1"),
    ] {
        assert_eq!(violated(args), [path], "{args}");
    }
}

#[test]
fn fa_18_missing_or_null_required_and_properties_are_tolerated() {
    for schema in [
        json!({"type": "object"}),
        json!({"type": "object", "properties": {"a": {"type": "string"}}}),
        json!({"type": "object", "required": ["a"]}),
        json!({"type": "object", "properties": null, "required": null}),
        json!({}),
        Value::Null,
    ] {
        let value = validate_tool_args("t", r#"{"a":"x"}"#, &schema).unwrap();
        assert_eq!(value, json!({"a": "x"}));
    }
}

#[test]
fn fa_19_extra_fields_pass_unless_forbidden() {
    validate_tool_args("t", r#"{"path":"a","more":1}"#, &schema()).unwrap();
    let strict = json!({"type": "object", "properties": {}, "additionalProperties": false});
    let err = validate_tool_args("t", r#"{"more":1}"#, &strict).unwrap_err();
    assert!(err.to_string().contains("more"), "{err}");
}

#[test]
fn fa_19_nested_objects_are_checked() {
    assert_eq!(violated(r#"{"path":"a","deep":{}}"#), ["/deep"]);
    validate_tool_args("t", r#"{"path":"a","deep":{"flag":true}}"#, &schema()).unwrap();
}

#[test]
fn an_unusable_schema_names_the_tool() {
    let err = validate_tool_args("t", "{}", &json!({"type": 5})).unwrap_err();
    assert_eq!(err.to_string(), "the schema of `t` cannot be used");
}

#[test]
fn the_length_of_arguments_is_bounded() {
    let of_length = |length: usize| format!(r#"{{"path":"{}"}}"#, "x".repeat(length - 11));
    assert!(validate_tool_args("t", &of_length(RAW_BYTES_MAX - 1), &schema()).is_ok());
    assert!(validate_tool_args("t", &of_length(RAW_BYTES_MAX), &schema()).is_ok());
    assert!(matches!(
        validate_tool_args("t", &of_length(RAW_BYTES_MAX + 1), &schema()),
        Err(ArgsError::TooLong { .. })
    ));
}
