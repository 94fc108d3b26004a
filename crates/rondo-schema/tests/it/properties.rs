use proptest::prelude::*;
use rondo_schema::{PreparedArguments, Validator, prepare};
use serde_json::{Value, json};

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "a": {"type": "string"},
            "b": {"type": "integer"},
            "c": {"type": "array", "items": {"type": "integer"}},
            "d": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": false},
            "e": {"anyOf": [{"type": "boolean"}, {"type": "null"}]}
        },
        "required": ["a"],
        "additionalProperties": false
    })
}

fn leaf() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        any::<i16>().prop_map(|n| json!(f64::from(n) / 4.0)),
        any::<i16>().prop_map(|n| json!(n.to_string())),
        "[a-z\"'\\\\\n]{0,6}".prop_map(Value::from),
        Just(json!("true")),
        Just(json!("[1,\"2\"]")),
        Just(json!("{\"a\":\"k\"}")),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    leaf().prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec(("[a-f]", inner), 0..5)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn object() -> impl Strategy<Value = Value> {
    proptest::collection::vec(("[a-f]", value()), 0..5)
        .prop_map(|fields| Value::Object(fields.into_iter().collect()))
}

/// Text that is nearly JSON: a value with one piece cut out and another put in.
fn nearly_json() -> impl Strategy<Value = String> {
    (object(), any::<(u8, u8)>(), "[\\[\\]{}:,'\" a1]{0,3}").prop_map(|(value, (at, cut), put)| {
        let chars: Vec<char> = value.to_string().chars().collect();
        let at = usize::from(at) % chars.len();
        let end = (at + usize::from(cut % 3)).min(chars.len());
        let (head, tail) = (&chars[..at], &chars[end..]);
        head.iter()
            .copied()
            .chain(put.chars())
            .chain(tail.iter().copied())
            .collect()
    })
}

/// Every string and number of the output must have been written in the input.
fn made_of(value: &Value, raw: &str) -> bool {
    match value {
        Value::Null | Value::Bool(_) => true,
        Value::Number(number) => raw.contains(&number.to_string()),
        Value::String(text) => {
            let once = Value::String(text.clone()).to_string();
            let twice = Value::String(once.clone()).to_string();
            raw.contains(text.as_str())
                || raw.contains(once.trim_matches('"'))
                || raw.contains(twice.trim_matches('"'))
        }
        Value::Array(items) => items.iter().all(|item| made_of(item, raw)),
        Value::Object(fields) => fields
            .iter()
            .all(|(key, field)| raw.contains(key.as_str()) && made_of(field, raw)),
    }
}

fn check(raw: &str) -> Result<(), TestCaseError> {
    let schema = schema();
    let validator = Validator::new(&schema).unwrap();
    let first = prepare(raw, &schema, &validator);
    prop_assert_eq!(&first, &prepare(raw, &schema, &validator));
    match first {
        PreparedArguments::Invalid { message, .. } => prop_assert!(!message.is_empty()),
        PreparedArguments::Ready {
            arguments,
            repairs,
            meaning_changed,
        } => {
            prop_assert!(validator.check(&arguments).is_ok());
            prop_assert!(made_of(&arguments, raw), "{raw} -> {arguments}");
            prop_assert!(repairs.iter().all(|one| !one.to_string().contains('\n')));
            prop_assert_eq!(
                meaning_changed,
                repairs.iter().any(|one| one.kind.changes_meaning())
            );
            let again = prepare(&arguments.to_string(), &schema, &validator);
            prop_assert_eq!(
                again,
                PreparedArguments::Ready {
                    arguments,
                    repairs: vec![],
                    meaning_changed: false
                }
            );
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_ready_and_stable_or_invalid(raw in "\\PC{0,80}") {
        check(&raw)?;
    }

    #[test]
    fn any_value_is_ready_and_stable_or_invalid(value in object()) {
        check(&value.to_string())?;
    }

    #[test]
    fn any_near_json_is_ready_and_stable_or_invalid(raw in nearly_json()) {
        check(&raw)?;
    }

    #[test]
    fn no_prefix_of_an_object_is_ever_ready(value in object(), cut in any::<prop::sample::Index>()) {
        let raw = value.to_string();
        let ends: Vec<usize> = raw.char_indices().map(|(at, _)| at).skip(1).collect();
        let head = &raw[..ends[cut.index(ends.len())]];
        let open = json!({});
        let result = prepare(head, &open, &Validator::new(&open).unwrap());
        let is_invalid = matches!(result, PreparedArguments::Invalid { .. });
        prop_assert!(is_invalid, "{head}");
    }
}
