//! Renders tool outcomes as the results that the model reads.
//!
//! Tools bound their own output; that of commands is shortened by their supervisor (`rondo-launch`, module
//! `capture`), before it gets here.

use crate::compaction::shorten_text;
use rondo_types::{
    CallId, ContentBlock, ResultRendering, ToolContent, ToolError, ToolErrorCode, ToolOutcome,
    ToolOutput, ToolResult,
};
use serde_json::{Value, json};

/// The bound on one result in the transcript, in bytes, for tools that do not bound their own output.
pub(super) const RESULT_BYTES_MAX: usize = 256 << 10;
/// The bound on the words about what the user left out of a call, in bytes.
const LEFT_OUT_BYTES_MAX: usize = 16 << 10;

/// Renders an outcome as the one result of its call.
pub(crate) fn result(
    rendering: ResultRendering,
    call_id: CallId,
    wire_id: Option<String>,
    name: String,
    outcome: &ToolOutcome,
    synthetic: bool,
) -> ToolResult {
    let content = match rendering {
        ResultRendering::Envelope => ToolContent::Json(envelope(outcome)),
        ResultRendering::Plain => plain(outcome),
    };
    ToolResult {
        call_id,
        wire_id,
        name,
        error: outcome.code(),
        content: bounded(content),
        blocks: blocks(outcome),
        synthetic,
    }
}

/// Tells the model that the user changed the arguments of its call, or what they left out of it. The message with
/// the call still has the original ones.
pub(crate) fn note_edit(content: &mut ToolContent, arguments: &str, left_out: Option<&str>) {
    let told = match left_out {
        Some(left_out) => shorten_text(left_out, LEFT_OUT_BYTES_MAX),
        None => {
            let arguments = bounded_text(arguments);
            format!("the user changed the arguments to {arguments}")
        }
    };
    note(content, told);
}

/// The same for changes of interceptors.
pub(crate) fn note_rewrite(content: &mut ToolContent, by: &[String], arguments: &str) {
    let (by, arguments) = (by.join(", "), bounded_text(arguments));
    note(
        content,
        format!("{by} changed the arguments to {arguments}"),
    );
}

/// Returns the outcome with other words and nothing besides them to read. The call's changes and started sessions stay.
pub(crate) fn with_text(outcome: ToolOutcome, text: String) -> ToolOutcome {
    match outcome {
        ToolOutcome::Ok(output) => ToolOutcome::Ok(ToolOutput {
            value: Value::String(text),
            blocks: Vec::new(),
            truncated: false,
            spill: None,
            ..output
        }),
        ToolOutcome::Error(error) => ToolOutcome::Error(ToolError {
            message: text,
            details: Value::Null,
            ..error
        }),
    }
}

fn note(content: &mut ToolContent, note: String) {
    match content {
        ToolContent::Json(Value::Object(map)) => {
            map.insert("note".to_owned(), Value::String(note));
        }
        ToolContent::Json(value) => {
            *value = json!({ "note": note, "result": value.take() });
        }
        ToolContent::Text(text) => *text = format!("[{note}]\n{text}"),
    }
}

fn blocks(outcome: &ToolOutcome) -> Vec<ContentBlock> {
    match outcome {
        ToolOutcome::Ok(output) => output.blocks.iter().map(bounded_block).collect(),
        ToolOutcome::Error(_) => Vec::new(),
    }
}

fn bounded_block(block: &ContentBlock) -> ContentBlock {
    match block {
        ContentBlock::Text { text } => ContentBlock::text(bounded_text(text)),
        ContentBlock::Media(_) => block.clone(),
    }
}

/// `{"ok":true,"result":{..}}` or `{"ok":false,"error":{code,message,details}}`.
fn envelope(outcome: &ToolOutcome) -> Value {
    match outcome {
        ToolOutcome::Ok(output) => json!({ "ok": true, "result": output.value }),
        ToolOutcome::Error(error) => {
            let (code, details) = envelope_code(error);
            json!({
                "ok": false,
                "error": { "code": code, "message": error.message, "details": details },
            })
        }
    }
}

/// The design knows four codes; what it has no code for reads `internal`, with the real one in
/// the details.
fn envelope_code(error: &ToolError) -> (&'static str, Value) {
    let details = if error.details.is_null() {
        json!({})
    } else {
        error.details.clone()
    };
    let code = match error.code {
        ToolErrorCode::InvalidArgs => "invalid_args",
        ToolErrorCode::UnknownTool => "unknown_function",
        ToolErrorCode::PythonException => "python_exception",
        ToolErrorCode::Internal => "internal",
        ToolErrorCode::Failed
        | ToolErrorCode::Timeout
        | ToolErrorCode::Cancelled
        | ToolErrorCode::Denied
        | ToolErrorCode::NotRun
        | ToolErrorCode::InDoubt => {
            let mut with_code = json!({ "code": error.code.as_str() });
            if let (Some(map), Value::Object(more)) = (with_code.as_object_mut(), details) {
                map.extend(more);
            }
            return ("internal", with_code);
        }
    };
    (code, details)
}

/// The output as it is; an error as text.
pub(super) fn plain(outcome: &ToolOutcome) -> ToolContent {
    match outcome {
        ToolOutcome::Ok(output) => match &output.value {
            Value::String(text) => ToolContent::Text(text.clone()),
            value => ToolContent::Json(value.clone()),
        },
        ToolOutcome::Error(error) => ToolContent::Text(plain_error(error)),
    }
}

fn plain_error(error: &ToolError) -> String {
    let mut text = match error.code {
        // A tool that ran and failed words its own message, which a design may prescribe (GS-15).
        ToolErrorCode::Failed => error.message.clone(),
        code => format!("error ({code}): {}", error.message),
    };
    if error
        .details
        .as_object()
        .is_some_and(|details| !details.is_empty())
    {
        text.push('\n');
        text.push_str(&error.details.to_string());
    }
    text
}

fn bounded(content: ToolContent) -> ToolContent {
    match content {
        ToolContent::Text(text) if text.len() > RESULT_BYTES_MAX => {
            ToolContent::Text(bounded_text(&text))
        }
        ToolContent::Text(text) => ToolContent::Text(text),
        ToolContent::Json(value) => {
            let text = value.to_string();
            if text.len() > RESULT_BYTES_MAX {
                ToolContent::Text(bounded_text(&text))
            } else {
                ToolContent::Json(value)
            }
        }
    }
}

/// Shortens a text to [`RESULT_BYTES_MAX`].
pub(super) fn bounded_text(text: &str) -> String {
    shorten_text(text, RESULT_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render(rendering: ResultRendering, outcome: &ToolOutcome) -> ToolContent {
        result(
            rendering,
            CallId::new("c"),
            None,
            "t".into(),
            outcome,
            false,
        )
        .content
    }

    #[test]
    fn py_31_the_envelope_has_ok_and_result() {
        let outcome = ToolOutcome::json(json!({"globals": []}));
        assert_eq!(
            render(ResultRendering::Envelope, &outcome),
            ToolContent::Json(json!({"ok": true, "result": {"globals": []}}))
        );
    }

    #[test]
    fn py_32_py_33_the_envelope_has_exactly_four_codes() {
        let codes = [
            (ToolErrorCode::InvalidArgs, "invalid_args"),
            (ToolErrorCode::UnknownTool, "unknown_function"),
            (ToolErrorCode::PythonException, "python_exception"),
            (ToolErrorCode::Failed, "internal"),
            (ToolErrorCode::Timeout, "internal"),
            (ToolErrorCode::Cancelled, "internal"),
            (ToolErrorCode::Denied, "internal"),
            (ToolErrorCode::NotRun, "internal"),
            (ToolErrorCode::InDoubt, "internal"),
            (ToolErrorCode::Internal, "internal"),
        ];
        for (code, expected) in codes {
            let ToolContent::Json(value) =
                render(ResultRendering::Envelope, &ToolOutcome::error(code, "m"))
            else {
                panic!("an envelope is JSON")
            };
            assert_eq!(value["error"]["code"], expected);
            assert_eq!(value["error"]["message"], "m");
            if expected == "internal" && code != ToolErrorCode::Internal {
                assert_eq!(value["error"]["details"]["code"], code.as_str());
            }
        }
    }

    #[test]
    fn py_34_a_python_exception_keeps_type_message_and_traceback() {
        let details = json!({
            "exc_type": "ZeroDivisionError", "message": "division by zero", "traceback": "Traceback ..."
        });
        let outcome = ToolOutcome::Error(ToolError {
            code: ToolErrorCode::PythonException,
            message: "ZeroDivisionError: division by zero".into(),
            details: details.clone(),
            used: None,
        });
        assert_eq!(
            render(ResultRendering::Envelope, &outcome),
            ToolContent::Json(json!({"ok": false, "error": {
                "code": "python_exception",
                "message": "ZeroDivisionError: division by zero",
                "details": details,
            }}))
        );
    }

    #[test]
    fn gs_15_json_results_stay_json_and_failures_keep_their_words() {
        let outcome = ToolOutcome::json(json!({"stdout": "a\u{1b}[0m\n", "exitCode": 0}));
        let content = render(ResultRendering::Plain, &outcome);
        assert_eq!(
            content.to_text(),
            r#"{"stdout":"a\u001b[0m\n","exitCode":0}"#
        );
        let failed = ToolOutcome::error(
            ToolErrorCode::Failed,
            "Error executing command: no such shell",
        );
        assert_eq!(
            render(ResultRendering::Plain, &failed).to_text(),
            "Error executing command: no such shell"
        );
    }

    #[test]
    fn oversized_results_keep_head_and_tail_on_character_boundaries() {
        let outcome = ToolOutcome::text(format!("head{}tail", "ä".repeat(RESULT_BYTES_MAX)));
        let text = render(ResultRendering::Plain, &outcome).to_text();
        assert!(text.len() <= RESULT_BYTES_MAX + 64);
        assert!(text.starts_with("head") && text.ends_with("tail"));
        assert!(text.contains("bytes left out"));
    }
}
