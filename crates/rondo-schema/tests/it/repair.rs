use rondo_schema::{PreparedArguments, REPAIRS_MAX, Validator, prepare};
use serde_json::{Value, json};

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "limit": {"type": "integer"},
            "ratio": {"type": "number"},
            "all": {"type": "boolean"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "lines": {"type": "array", "items": {"type": "integer"}},
            "deep": {"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": false},
            "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            "mode": {"enum": ["fast", "slow"]},
            "nullable": {"type": ["integer", "null"]},
            "either": {"type": ["integer", "boolean"]},
            "choice": {"oneOf": [{"type": "integer"}, {"type": "boolean"}]}
        },
        "required": ["path"],
        "additionalProperties": false
    })
}

fn prepared(raw: &str, schema: &Value) -> PreparedArguments {
    prepare(raw, schema, &Validator::new(schema).unwrap())
}

fn ready(raw: &str, schema: &Value) -> (Value, Vec<String>, bool) {
    match prepared(raw, schema) {
        PreparedArguments::Ready {
            arguments,
            repairs,
            meaning_changed,
        } => (
            arguments,
            repairs.iter().map(ToString::to_string).collect(),
            meaning_changed,
        ),
        PreparedArguments::Invalid { message, .. } => panic!("{raw}: {message}"),
    }
}

fn invalid(raw: &str, schema: &Value) -> (String, Value) {
    match prepared(raw, schema) {
        PreparedArguments::Invalid { message, details } => (message, details),
        ready @ PreparedArguments::Ready { .. } => panic!("{raw}: {ready:?}"),
    }
}

#[test]
fn fitting_arguments_are_left_alone() {
    let raw = r#"{"path":"a","limit":5,"nullable":null,"maybe":null}"#;
    assert_eq!(
        ready(raw, &schema()),
        (serde_json::from_str(raw).unwrap(), vec![], false)
    );
}

#[test]
fn slips_of_syntax_are_undone_and_said() {
    let table = [
        (
            "\u{feff}{\"path\":\"a\"}",
            "/: blanks -> nothing (blanks around the text removed)",
        ),
        (
            "\u{a0}{\"path\":\"a\"}\u{a0}",
            "/: blanks -> nothing (blanks around the text removed)",
        ),
        (
            "```json\n{\"path\":\"a\"}\n```",
            "/: ``` -> nothing (code fence removed)",
        ),
        (
            "```\n{\"path\":\"a\"}\n```\n",
            "/: ``` -> nothing (code fence removed)",
        ),
        (
            "{\"path\":\"a\",}",
            "/: ,} -> nothing (trailing comma removed)",
        ),
        (
            "{'path':'a'}",
            "/: ' -> \" (single quotes to double quotes)",
        ),
        ("{path:\"a\"}", "/: path -> \"path\" (key quoted)"),
        (
            "\"{\\\"path\\\":\\\"a\\\"}\"",
            "/: string -> object (doubled json decoded)",
        ),
    ];
    for (raw, line) in table {
        assert_eq!(
            ready(raw, &schema()),
            (json!({"path": "a"}), vec![line.to_owned()], false),
            "{raw}"
        );
    }
}

#[test]
fn python_words_and_raw_breaks_are_undone() {
    let (value, repairs, changed) = ready(
        "{'path': 'it\\'s\n\there', 'all': True, 'limit': None}",
        &schema(),
    );
    assert_eq!(value, json!({"path": "it's\n\there", "all": true}));
    assert_eq!(
        repairs,
        [
            "/: ' -> \" (single quotes to double quotes)",
            "/: \\n -> \\n (raw line break or tab escaped)",
            "/: True -> true (python word to json)",
            "/limit: null -> nothing (null for an optional property dropped)",
        ]
    );
    assert!(!changed);
}

#[test]
fn unambiguous_types_are_coerced_without_loss() {
    let table = [
        (
            r#"{"path":"a","limit":"5"}"#,
            json!({"path":"a","limit":5}),
            r#"/limit: "5" -> 5 (string to scalar)"#,
        ),
        (
            r#"{"path":"a","limit":"-5.0"}"#,
            json!({"path":"a","limit":-5}),
            r#"/limit: "-5.0" -> -5 (string to scalar)"#,
        ),
        (
            r#"{"path":"a","limit":5.0}"#,
            json!({"path":"a","limit":5}),
            "/limit: 5.0 -> 5 (float to integer)",
        ),
        (
            r#"{"path":"a","ratio":"2.50"}"#,
            json!({"path":"a","ratio":2.5}),
            r#"/ratio: "2.50" -> 2.5 (string to scalar)"#,
        ),
        (
            r#"{"path":"a","all":"true"}"#,
            json!({"path":"a","all":true}),
            r#"/all: "true" -> true (string to scalar)"#,
        ),
        (
            r#"{"path":"a","all":"False"}"#,
            json!({"path":"a","all":false}),
            r#"/all: "False" -> false (string to scalar)"#,
        ),
        (
            r#"{"path":7}"#,
            json!({"path":"7"}),
            r#"/path: 7 -> "7" (scalar to string)"#,
        ),
        (
            r#"{"path":true}"#,
            json!({"path":"true"}),
            r#"/path: true -> "true" (scalar to string)"#,
        ),
        (
            r#"{"path":"a","maybe":"5"}"#,
            json!({"path":"a","maybe":5}),
            r#"/maybe: "5" -> 5 (string to scalar)"#,
        ),
        (
            r#"{"path":"a","nullable":"5"}"#,
            json!({"path":"a","nullable":5}),
            r#"/nullable: "5" -> 5 (string to scalar)"#,
        ),
        (
            r#"{"path":"a","mode":null}"#,
            json!({"path":"a"}),
            "/mode: null -> nothing (null for an optional property dropped)",
        ),
        (
            r#"{"path":"a","deep":"{\"n\":1}"}"#,
            json!({"path":"a","deep":{"n":1}}),
            r#"/deep: "{\"n\":1}" -> object of 1 (string to object)"#,
        ),
    ];
    for (raw, value, line) in table {
        assert_eq!(
            ready(raw, &schema()),
            (value, vec![line.to_owned()], false),
            "{raw}"
        );
    }
}

#[test]
fn changes_of_meaning_are_marked() {
    let table = [
        (
            r#"{"path":1.50}"#,
            json!({"path":"1.5"}),
            r#"/path: 1.5 -> "1.5" (float to string)"#,
        ),
        (
            r#"{"path":"a","tags":"x"}"#,
            json!({"path":"a","tags":["x"]}),
            r#"/tags: "x" -> array of 1 (single value to array)"#,
        ),
        (
            r#"{"path":"a","tags":"[\"x\"]"}"#,
            json!({"path":"a","tags":["x"]}),
            r#"/tags: "[\"x\"]" -> array of 1 (string to array)"#,
        ),
        (
            r#"{"path":"a","more":1}"#,
            json!({"path":"a"}),
            r#"/: "more": 1 -> nothing (unknown key dropped)"#,
        ),
        (
            r#"{"path":"a","deep":{"n":1,"m":2}}"#,
            json!({"path":"a","deep":{"n":1}}),
            r#"/deep: "m": 2 -> nothing (unknown key dropped)"#,
        ),
    ];
    for (raw, value, line) in table {
        assert_eq!(
            ready(raw, &schema()),
            (value, vec![line.to_owned()], true),
            "{raw}"
        );
    }
}

#[test]
fn a_wrapped_value_is_coerced_in_turn() {
    let (value, repairs, changed) = ready(r#"{"path":"a","lines":"4"}"#, &schema());
    assert_eq!(value, json!({"path": "a", "lines": [4]}));
    assert_eq!(repairs.len(), 2);
    assert!(changed);
}

#[test]
fn cut_off_arguments_never_run() {
    let whole = r#"{"path":"a\"b","limit":12,"tags":["x",{"y":null}],"all":true}"#;
    let open = json!({});
    for cut in 1..whole.len() {
        let (message, _) = invalid(&whole[..cut], &open);
        assert!(message.contains("cut off"), "{}: {message}", &whole[..cut]);
    }
    let python = "{'path':'a','all':True,'limit':None,}";
    for cut in 1..python.len() {
        let (message, _) = invalid(&python[..cut], &open);
        assert!(message.contains("cut off"), "{}: {message}", &python[..cut]);
    }
}

#[test]
fn what_is_not_certain_is_sent_back() {
    for raw in [
        r#"{"path":"a"}}"#,
        r#"{"path":"a"}{"path":"b"}"#,
        r#"{"path":"a"} and then some"#,
        r#"Here you go: {"path":"a"}"#,
        r#"{"path": a}"#,
        r#"{"path":"a" "limit":1}"#,
        r#"{"path":"a",,}"#,
        r#"{"path":"\d"}"#,
        r#"{"path":"\ud800"}"#,
        r#"{'path':'it's'}"#,
        r#"{"path":"a","limit":+5}"#,
        r#"{"path":"a","limit":0x5}"#,
        r#"{"path":"a","limit":NaN}"#,
        "{\"path\":\"a\u{1}\"}",
        "```json\n{\"path\":\"a\"}",
        r#"["a"]"#,
        "5",
        "true",
        r#""just text""#,
        r#"[{"path":"a"}]"#,
    ] {
        let (message, details) = invalid(raw, &schema());
        assert!(message.contains("was not run"), "{raw}: {message}");
        assert!(details["syntax"].is_string(), "{raw}: {details}");
    }
}

#[test]
fn doubtful_values_are_sent_back() {
    for raw in [
        r#"{}"#,
        r#"{"path":null}"#,
        r#"{"Path":"a"}"#,
        r#"{"path":"a","limit":"05"}"#,
        r#"{"path":"a","limit":"5 lines"}"#,
        r#"{"path":"a","limit":5.5}"#,
        r#"{"path":"a","limit":""}"#,
        r#"{"path":"a","limit":true}"#,
        r#"{"path":"a","ratio":"1e400"}"#,
        r#"{"path":"a","ratio":"0.12345678901234567890"}"#,
        r#"{"path":"a","all":1}"#,
        r#"{"path":"a","all":"yes"}"#,
        r#"{"path":"a","mode":"FAST"}"#,
        r#"{"path":"a","either":"5"}"#,
        r#"{"path":"a","choice":"5"}"#,
        r#"{"path":["a"]}"#,
        r#"{"path":{}}"#,
        r#"{"path":"a","tags":{"x":1}}"#,
        r#"{"path":"a","deep":"x"}"#,
        "",
        "null",
    ] {
        let (_, details) = invalid(raw, &schema());
        assert!(details["violations"].is_array(), "{raw}: {details}");
    }
}

#[test]
fn the_model_reads_what_is_wrong_where_and_what_is_expected() {
    let schema = json!({
        "properties": {"path": {"type": "string"}, "limit": {"type": "integer"}, "mode": {"enum": ["a", "b"]}},
        "required": ["path"]
    });
    let (message, details) = invalid(r#"{"limit":"soon"}"#, &schema);
    assert_eq!(
        message,
        "the arguments do not fit the tool's schema, so it was not run:\n\
         - /: \"path\" is a required property (got object of 1)\n\
         - /limit: the value is not of type \"integer\" (got \"soon\")\n\
         expected: path (string, required), limit (integer), mode (\"a\" or \"b\")"
    );
    assert_eq!(details["violations"][1]["path"], "/limit");
}

#[test]
fn a_syntax_error_shows_its_surroundings() {
    let (message, _) = invalid(r#"{"path": "a", "limit": five}"#, &schema());
    assert_eq!(
        message,
        "the arguments cannot be used, so the tool was not run: not JSON: a text without quotes at \
         byte 23, near `{\"path\": \"a\", \"limit\": five}`; send one complete JSON object"
    );
}

#[test]
fn no_arguments_are_an_empty_object_where_none_are_needed() {
    for raw in ["", "  \n", "null", "None", "\"\"", "{}"] {
        assert_eq!(ready(raw, &json!({"type": "object"})).0, json!({}), "{raw}");
    }
}

#[test]
fn deep_and_long_texts_end_in_a_message() {
    let open = json!({});
    for depth in [99, 1_000, 100_000] {
        let raw = format!("{{'a':{}{}}}", "[".repeat(depth), "]".repeat(depth));
        let fits = matches!(prepared(&raw, &open), PreparedArguments::Ready { .. });
        assert_eq!(fits, depth < 100, "{depth}");
    }
    let long = format!(r#"{{"a":"{}"}}"#, "x".repeat(rondo_schema::RAW_BYTES_MAX));
    assert!(invalid(&long, &open).0.len() < 300);
    let wrong = format!(r#"{{"path":"a","limit":"{}"}}"#, "é".repeat(100_000));
    assert!(invalid(&wrong, &schema()).0.len() < 4_000);
}

#[test]
fn reported_repairs_are_bounded() {
    let schema = json!({"properties": {"n": {"items": {"type": "integer"}}}});
    for (count, reported) in [
        (REPAIRS_MAX - 1, REPAIRS_MAX - 1),
        (REPAIRS_MAX, REPAIRS_MAX),
        (REPAIRS_MAX + 1, REPAIRS_MAX + 1),
        (REPAIRS_MAX + 90, REPAIRS_MAX + 1),
    ] {
        let raw = json!({"n": vec!["1"; count]}).to_string();
        let (value, repairs, _) = ready(&raw, &schema);
        assert_eq!(value["n"], json!(vec![1; count]));
        assert_eq!(repairs.len(), reported, "{count}");
    }
}

#[test]
fn keys_and_nulls_beneath_references_and_odd_names_are_found() {
    let schema = json!({
        "$defs": {"item": {"type": "object", "properties": {"a/b~c": {"type": "string"}}, "additionalProperties": false}},
        "properties": {"items": {"type": "array", "items": {"$ref": "#/$defs/item"}}}
    });
    let (value, repairs, changed) = ready(
        r#"{"items":[{"a/b~c":null},{"x y":1,"a/b~c":"k"}]}"#,
        &schema,
    );
    assert_eq!(value, json!({"items": [{}, {"a/b~c": "k"}]}));
    assert_eq!(repairs.len(), 2);
    assert!(changed);
}

#[test]
fn schemas_that_contradict_themselves_end() {
    let schema = json!({"properties": {"a": {"allOf": [{"type": "string"}, {"type": "integer"}]}}});
    invalid(r#"{"a":"5"}"#, &schema);
    invalid(r#"{"a":5}"#, &schema);
}

/// The machine prepares arguments between two awaits: while it does, no deadline and no cancel is
/// seen.
#[test]
fn very_many_unknown_keys_are_dropped_at_once() {
    let unknown: Vec<String> = (0..100_000).map(|n| format!(r#""k{n}": 1"#)).collect();
    let raw = format!(r#"{{"path": "a", {}}}"#, unknown.join(", "));
    let started = std::time::Instant::now();
    let (arguments, repairs, _) = ready(&raw, &schema());
    assert!(started.elapsed() < std::time::Duration::from_secs(60));
    assert_eq!(arguments, json!({"path": "a"}));
    assert_eq!(
        repairs.first().map(String::as_str),
        Some(r#"/: "k0": 1 -> nothing (unknown key dropped)"#)
    );
}
