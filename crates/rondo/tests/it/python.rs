//! The bounded loop over a live Python session, in Gemini's own words.

mod live;
mod turns;
mod wire;

pub(crate) use wire::MALFORMED;

use crate::support::{Bench, FnTool, Ran, tool};
use rondo::ToolOutcome;
use rondo_testkit::{CallScript, ReplyScript, Response, Server, gemini};
use serde_json::{Value, json};

fn no_arguments() -> Value {
    json!({"type": "object", "properties": {}})
}

pub(super) fn one_expression() -> Value {
    json!({
        "type": "object",
        "properties": {"expr": {"type": "string"}},
        "required": ["expr"],
    })
}

/// Result of each capability, in the shape that its design gives.
pub(super) fn capability_results() -> [(&'static str, Value, Value); 7] {
    [
        (
            "list_globals",
            no_arguments(),
            json!({"globals": [{"name": "x", "type_name": "int"}]}),
        ),
        (
            "get_type",
            one_expression(),
            json!({"name": "list", "module": "builtins", "qualified": "builtins.list"}),
        ),
        (
            "get_repr",
            one_expression(),
            json!({"repr": "[1, 2]", "truncated": false, "original_len": 6}),
        ),
        (
            "get_dir",
            one_expression(),
            json!({"members": ["append", "clear"], "truncated": false, "original_len": 2}),
        ),
        (
            "get_doc",
            one_expression(),
            json!({"doc": null, "truncated": false, "original_len": 0}),
        ),
        (
            "eval_expr",
            one_expression(),
            json!({"value_repr": "42", "stdout": "", "stderr": ""}),
        ),
        (
            "get_last_exception",
            no_arguments(),
            json!({"exception": null}),
        ),
    ]
}

fn capabilities() -> Vec<FnTool> {
    capability_results()
        .into_iter()
        .map(|(name, parameters, result)| {
            tool(name, parameters, move |_| ToolOutcome::json(result.clone()))
        })
        .collect()
}

pub(super) fn declarations() -> Value {
    capability_results()
        .into_iter()
        .map(|(name, parameters, _)| {
            let description = format!("Does {name}.");
            if parameters == one_expression() {
                json!({"name": name, "description": description, "parametersJsonSchema": parameters})
            } else {
                json!({"name": name, "description": description})
            }
        })
        .collect()
}

pub(super) fn bench(server: &Server) -> Bench {
    Bench::gemini(server).tools(capabilities())
}

pub(super) fn answer(text: &str) -> Response {
    gemini::whole(&ReplyScript::text([text]))
}

pub(super) fn calls(calls: impl IntoIterator<Item = CallScript>) -> Response {
    gemini::whole(&ReplyScript::calls(calls))
}

pub(super) fn call(name: &str) -> CallScript {
    CallScript::without_id(name, &json!({}))
}

pub(super) fn eval(expr: &str) -> CallScript {
    CallScript::without_id("eval_expr", &json!({"expr": expr}))
}

pub(super) async fn ask(responses: Vec<Response>) -> (Server, Ran) {
    let server = Server::start(responses).await;
    let ran = bench(&server).ask("what is x?").await;
    (server, ran)
}

pub(super) fn request(contents: &Value) -> Value {
    let prompt = rondo::profiles::builtin("python").unwrap().system_prompt;
    json!({
        "contents": contents,
        "systemInstruction": {"parts": [{"text": prompt}]},
        "tools": [{"functionDeclarations": declarations()}],
        "toolConfig": {"functionCallingConfig": {"mode": "AUTO"}},
    })
}

pub(super) fn question() -> Value {
    json!({"role": "user", "parts": [{"text": "what is x?"}]})
}

pub(super) fn corrective(problem: &str) -> String {
    format!(
        "Your last reply could not be used: {problem}. Call one of the declared functions, or \
         answer in plain text."
    )
}
