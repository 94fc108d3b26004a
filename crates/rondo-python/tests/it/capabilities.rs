//! Result of each function.

use crate::fixture::{call, cell, failed, found, look, repr, run, session};
use rondo_python::{Capability, ReadOnlyNames};
use rondo_types::ToolErrorCode;
use serde_json::{Value, json};

#[tokio::test]
async fn py_35_list_globals_names_globals_and_types_and_hides_modules_and_underscores() {
    let session = session();
    let none = found(call(&session, Capability::ListGlobals, json!({})).await);
    assert_eq!(none, json!({ "globals": [] }));
    run(&session, "import os\nx = 1\n_y = 'a'\ndef f(): pass").await;
    let some = found(call(&session, Capability::ListGlobals, json!({})).await);
    let x = json!({"name": "x", "type_name": "int"});
    let f = json!({"name": "f", "type_name": "function"});
    assert_eq!(some, json!({ "globals": [x, f] }));
    let all = found(call(&session, Capability::ListGlobals, json!({"all": true})).await);
    let names: Vec<&str> = all["globals"]
        .as_array()
        .unwrap()
        .iter()
        .map(name)
        .collect();
    for hidden in ["os", "_y", "__name__"] {
        assert!(names.contains(&hidden), "{names:?}");
    }
}

fn name(global: &Value) -> &str {
    global["name"].as_str().unwrap()
}

#[tokio::test]
async fn py_36_get_type_names_type_module_and_qualified_name() {
    let session = session();
    let list = look(&session, Capability::GetType, "[1]").await;
    let expected = json!({"name": "list", "module": "builtins", "qualified": "builtins.list"});
    assert_eq!(list, expected);
    run(&session, "class A:\n    class B: pass\nb = A.B()").await;
    let nested = look(&session, Capability::GetType, "b").await;
    let expected = json!({"name": "B", "module": "__main__", "qualified": "__main__.A.B"});
    assert_eq!(nested, expected);
}

#[tokio::test]
async fn py_37_get_repr_returns_4096_characters_at_the_most() {
    let session = session();
    let whole = look(&session, Capability::GetRepr, "[1, 2]").await;
    assert_eq!(
        whole,
        json!({"repr": "[1, 2]", "truncated": false, "original_len": 6})
    );
    for (length, truncated) in [(4095, false), (4096, false), (4097, true)] {
        // Two of the characters are quotes.
        let expr = format!("'\u{e4}' * {}", length - 2);
        let found = look(&session, Capability::GetRepr, &expr).await;
        let kept = found["repr"].as_str().unwrap().chars().count();
        assert_eq!(kept, length.min(4096));
        assert_eq!(
            (&found["truncated"], &found["original_len"]),
            (&json!(truncated), &json!(length))
        );
    }
}

#[tokio::test]
async fn py_38_get_dir_returns_256_members_at_the_most() {
    let session = session();
    run(&session, "class A:\n    def __init__(self, n): self.n = n\n    def __dir__(self): return [f'm{i:03}' for i in range(self.n)]").await;
    for (count, truncated) in [(255, false), (256, false), (257, true)] {
        let found = look(&session, Capability::GetDir, &format!("A({count})")).await;
        let members = found["members"].as_array().unwrap();
        assert_eq!(members.len(), count.min(256));
        assert_eq!(members[0], "m000");
        assert_eq!(
            (&found["truncated"], &found["original_len"]),
            (&json!(truncated), &json!(count))
        );
    }
    let list = look(&session, Capability::GetDir, "[]").await;
    assert!(
        list["members"]
            .as_array()
            .unwrap()
            .contains(&json!("append"))
    );
}

#[tokio::test]
async fn py_39_get_doc_returns_4096_characters_at_the_most_or_null() {
    let session = session();
    run(
        &session,
        "def f():\n    '''Does f.\n\n    Well.'''\ndef g(): pass\ndef h(): pass",
    )
    .await;
    let doc = look(&session, Capability::GetDoc, "f").await;
    assert_eq!(
        doc,
        json!({"doc": "Does f.\n\nWell.", "truncated": false, "original_len": 14})
    );
    let none = look(&session, Capability::GetDoc, "g").await;
    assert_eq!(
        none,
        json!({"doc": null, "truncated": false, "original_len": 0})
    );
    for (length, truncated) in [(4096, false), (4097, true)] {
        run(&session, &format!("h.__doc__ = 'd' * {length}")).await;
        let found = look(&session, Capability::GetDoc, "h").await;
        assert_eq!(found["doc"].as_str().unwrap().len(), length.min(4096));
        assert_eq!(
            (&found["truncated"], &found["original_len"]),
            (&json!(truncated), &json!(length))
        );
    }
}

#[tokio::test]
async fn py_40_eval_expr_returns_value_stdout_and_stderr() {
    let session = session();
    run(&session, "import sys\ndef f():\n    print('out')\n    print('err', file=sys.stderr)\n    return 6 * 7").await;
    let value = look(&session, Capability::EvalExpr, "f()").await;
    assert_eq!(
        value,
        json!({"value_repr": "42", "stdout": "out\n", "stderr": "err\n"})
    );
    let value = look(&session, Capability::EvalExpr, " 6 * 7\n").await;
    assert_eq!(
        value,
        json!({"value_repr": "42", "stdout": "", "stderr": ""})
    );
    let awaited = "await __import__('asyncio').sleep(0, 'slept')";
    let value = look(&session, Capability::EvalExpr, awaited).await;
    assert_eq!(value["value_repr"], "'slept'");
}

#[tokio::test]
async fn py_34_an_exception_tells_type_message_and_traceback() {
    let session = session();
    let error = failed(call(&session, Capability::EvalExpr, json!({"expr": "1 / 0"})).await);
    assert_eq!(error.code, ToolErrorCode::PythonException);
    assert_eq!(error.message, "ZeroDivisionError: division by zero");
    let keys: Vec<&String> = error.details.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["exc_type", "message", "traceback"]);
    assert_eq!(error.details["exc_type"], "ZeroDivisionError");
    assert_eq!(error.details["message"], "division by zero");
    let traceback = error.details["traceback"].as_str().unwrap();
    assert!(
        traceback
            .starts_with("Traceback (most recent call last):\n  File \"<expression 1>\", line 1")
    );
    assert!(
        traceback.contains("1 / 0") && !traceback.contains("<rondo>"),
        "{traceback}"
    );
    let error = failed(call(&session, Capability::GetType, json!({"expr": "x ="})).await);
    assert!(
        error.message.starts_with("SyntaxError: "),
        "{}",
        error.message
    );
}

#[tokio::test]
async fn py_41_get_last_exception_returns_what_code_raised_last_or_null() {
    let session = session();
    let none = found(call(&session, Capability::GetLastException, json!({})).await);
    assert_eq!(none, json!({ "exception": null }));
    let end = cell(&session, "def f(x):\n    return 1 / x\n\nf(0)")
        .await
        .unwrap();
    let raised = json!(end.exception.unwrap());
    assert_eq!(raised["exc_type"], "ZeroDivisionError");
    assert!(
        raised["traceback"]
            .as_str()
            .unwrap()
            .contains("line 2, in f")
    );
    // A look that fails does not hide what the user asks about.
    failed(call(&session, Capability::GetRepr, json!({"expr": "nowhere"})).await);
    let last = found(call(&session, Capability::GetLastException, json!({})).await);
    assert_eq!(last, json!({ "exception": raised }));
    failed(call(&session, Capability::EvalExpr, json!({"expr": "nowhere"})).await);
    let last = session.last_exception().await.unwrap().unwrap();
    assert_eq!(last.exc_type, "NameError");
}

#[tokio::test]
async fn py_33_bad_arguments_are_results() {
    let session = session();
    for (capability, args) in [
        (Capability::GetRepr, json!({})),
        (Capability::GetRepr, json!({"expr": 5})),
        (Capability::EvalExpr, json!({"expr": " "})),
        (Capability::RunCode, json!({"expr": "x"})),
    ] {
        let error = failed(call(&session, capability, args).await);
        assert_eq!(error.code, ToolErrorCode::InvalidArgs);
    }
}

#[tokio::test]
async fn inspect_tells_everything_at_once() {
    let session = session();
    let code = "class Point:\n    \"\"\"A place.\"\"\"\n\n    def __init__(self, x, y=0):\n        self.x, self.y = x, y\n\ndef norm(p: Point) -> float:\n    return abs(p.x)\n\np = Point(3)";
    run(&session, code).await;
    let point = look(&session, Capability::Inspect, "p").await;
    assert_eq!(point["type"]["qualified"], "__main__.Point");
    assert_eq!(point["doc"]["doc"], "A place.");
    assert_eq!(point["members"]["members"], json!(["x", "y"]));
    let source = point["source"]["source"].as_str().unwrap();
    assert!(
        source.starts_with("class Point:") && source.ends_with("x, y"),
        "{source}"
    );
    let norm = look(&session, Capability::Inspect, "norm").await;
    let source = norm["source"]["source"].as_str().unwrap();
    assert_eq!(
        source,
        "def norm(p: Point) -> float:\n    return abs(p.x)\n"
    );
    assert!(norm["signature"].as_str().unwrap().starts_with("(p:"));
    let number = look(&session, Capability::Inspect, "5").await;
    assert_eq!(number["repr"]["repr"], "5");
    let none = json!({"source": null, "truncated": false, "original_len": 0});
    assert_eq!(
        (&number["source"], &number["signature"]),
        (&none, &Value::Null)
    );
}

#[tokio::test]
async fn run_code_runs_statements_and_keeps_their_variables() {
    let session = session();
    let code = json!({"code": "x = 6\nprint('six')\nx * 7"});
    let value = found(call(&session, Capability::RunCode, code).await);
    assert_eq!(
        value,
        json!({"value_repr": "42", "stdout": "six\n", "stderr": ""})
    );
    let code = json!({"code": "print('before')\nx / 0"});
    let error = failed(call(&session, Capability::RunCode, code).await);
    assert_eq!(error.code, ToolErrorCode::PythonException);
    assert_eq!(error.message, "ZeroDivisionError: division by zero");
    assert_eq!(error.details["stdout"], "before\n");
    assert_eq!(repr(&session, "x").await, "6");
}

#[tokio::test]
async fn descriptions_and_schemas_are_those_that_every_provider_takes() {
    let session = std::sync::Arc::new(session());
    let specs: Vec<_> = rondo_python::tools(&session, ReadOnlyNames::WithoutCalls)
        .iter()
        .map(|it| it.spec())
        .collect();
    let names: Vec<&str> = specs.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, Capability::ALL.map(Capability::name));
    for spec in specs {
        assert!(spec.description.ends_with('.'), "{}", spec.name);
        assert_eq!(spec.parameters["type"], "object");
        assert_eq!(spec.parameters.get("additionalProperties"), None);
    }
}
