//! Renders tool results as plain text, which a small model reads best.
//!
//! The same result as one line of escaped JSON is often not used: the model answers something that
//! sounds right instead of what is there.

use rondo_types::ToolContent;
use rondo_types::text::in_three;
use serde_json::{Map, Value};
use std::fmt::Write as _;

/// The bound on one tool result, in characters: about 1,500 tokens, of which the beginning and the
/// end are kept.
const OBSERVATION_CHARS_MAX: usize = 4_000;
/// Text for a result without any content, and for a command that printed nothing. A small model takes
/// silence for a failure, and repeats a command that failed.
const NOTHING: &str = "(no output)";
const SILENT_SUCCESS: &str = "(no output; exit code 0: it succeeded)";
const SILENT_NO: &str = "(no output; exit code 1: nothing was found, the answer may be no)";
/// Note after the output of a failed command.
const WRONG: &str = "(The command was wrong. Try a simpler one.)";
/// Output of programs that were given the name of a missing file; some of them exit like those that answer no.
const MISSING: &str = "No such file";
/// The exit code of programs that say no, and the last one that no signal makes.
const NO: i64 = 1;
const FAILURE_MAX: i64 = 127;
/// Names of the number that says how a process ended. Zero goes without saying.
const EXIT_CODES: [&str; 2] = ["exitCode", "exit_code"];

/// Returns a result in the marks that the system prompt speaks of. That of a command that failed names the
/// files there are, if any: a small model invents names.
pub(super) fn observation(content: &ToolContent, files: &str) -> String {
    let text = match content {
        ToolContent::Text(text) => text.clone(),
        ToolContent::Json(Value::Object(fields)) => lines(fields),
        ToolContent::Json(value) => value.to_string(),
    };
    let text = cut(text.trim_end());
    let text = match (text.as_str(), exit_code(content)) {
        ("", Some(0)) => SILENT_SUCCESS.to_owned(),
        ("", _) => NOTHING.to_owned(),
        ("exit code: 1", Some(NO)) => SILENT_NO.to_owned(),
        (text, Some(code)) if code > NO && code <= FAILURE_MAX => {
            format!("{text}\n{WRONG}{}", there_are(files))
        }
        (text, Some(NO)) if text.contains(MISSING) => format!("{text}{}", there_are(files)),
        (text, _) => text.to_owned(),
    };
    format!("<observation>\n{text}\n</observation>")
}

fn there_are(files: &str) -> String {
    if files.is_empty() {
        return String::new();
    }
    format!("\n(The files here: {files})")
}

fn exit_code(content: &ToolContent) -> Option<i64> {
    let ToolContent::Json(Value::Object(fields)) = content else {
        return None;
    };
    EXIT_CODES
        .iter()
        .find_map(|name| fields.get(*name)?.as_i64())
}

/// Texts of whole lines come first and as they are, then `key: value` for all else that says
/// something.
fn lines(fields: &Map<String, Value>) -> String {
    let mut texts = String::new();
    let mut rest = String::new();
    for (key, value) in fields {
        match value {
            Value::Null => {}
            Value::String(text) if text.is_empty() => {}
            Value::String(text) if text.contains('\n') => {
                let _ = writeln!(texts, "{}", text.trim_end_matches('\n'));
            }
            Value::String(text) => {
                let _ = writeln!(rest, "{key}: {text}");
            }
            value if EXIT_CODES.contains(&key.as_str()) => {
                if value.as_i64() != Some(0) {
                    let _ = writeln!(rest, "exit code: {value}");
                }
            }
            value => {
                let _ = writeln!(rest, "{key}: {value}");
            }
        }
    }
    texts + &rest
}

/// Keeps the beginning and the end of what does not fit.
fn cut(text: &str) -> String {
    match in_three(text, OBSERVATION_CHARS_MAX) {
        None => text.to_owned(),
        Some([head, middle, tail]) => {
            let left_out = middle.chars().count();
            format!("{head}\n[{left_out} characters left out]\n{tail}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(value: Value) -> String {
        read_among("", value)
    }

    fn read_among(files: &str, value: Value) -> String {
        let whole = observation(&ToolContent::Json(value), files);
        let inside = whole.strip_prefix("<observation>\n").unwrap();
        inside.strip_suffix("\n</observation>").unwrap().to_owned()
    }

    #[test]
    fn what_a_command_printed_is_shown_as_it_is() {
        assert_eq!(read(json!({"stdout": "a\n  b\n", "exitCode": 0})), "a\n  b");
        assert_eq!(read(json!({"stdout": "", "exitCode": 0})), SILENT_SUCCESS);
        assert_eq!(read(json!({"stdout": "", "exitCode": 1})), SILENT_NO);
        assert_eq!(read(json!({"text": ""})), NOTHING);
        assert_eq!(
            read(json!({"stdout": "usage: grep\n", "exitCode": 2})),
            format!("usage: grep\nexit code: 2\n{WRONG}")
        );
        assert_eq!(
            read(json!({"stdout": "cat: x: No such file\n", "exitCode": 1})),
            "cat: x: No such file\nexit code: 1"
        );
        assert_eq!(
            read(json!({"exit_code": 143, "signal": "SIGTERM", "stdout": "", "truncated": true})),
            "exit code: 143\nsignal: SIGTERM\ntruncated: true"
        );
    }

    #[test]
    fn a_failed_command_is_told_which_files_there_are() {
        let files = "a.txt (2 lines), notes/ has 1 files: b.md (9 lines)";
        assert_eq!(
            read_among(
                files,
                json!({"stdout": "cat: x: No such file\n", "exitCode": 1})
            ),
            format!("cat: x: No such file\nexit code: 1\n(The files here: {files})")
        );
        assert_eq!(
            read_among(files, json!({"stdout": "usage: grep\n", "exitCode": 2})),
            format!("usage: grep\nexit code: 2\n{WRONG}\n(The files here: {files})")
        );
        for fine in [
            json!({"stdout": "a\n", "exitCode": 0}),
            json!({"stdout": "a\n", "exitCode": 137}),
            json!({"stdout": "", "exitCode": 1}),
            // `grep -c` of a word that is not there.
            json!({"stdout": "0\n", "exitCode": 1}),
            json!({"count": 3}),
        ] {
            assert_eq!(read_among(files, fine.clone()), read(fine));
        }
    }

    #[test]
    fn other_results_are_keys_and_values_or_json() {
        assert_eq!(
            read(json!({"count": 0, "exists": false, "names": ["a"], "none": null})),
            "count: 0\nexists: false\nnames: [\"a\"]"
        );
        assert_eq!(read(json!([1, 2])), "[1,2]");
        let text = ToolContent::Text("plain\n".to_owned());
        assert_eq!(
            observation(&text, "a.txt"),
            "<observation>\nplain\n</observation>"
        );
    }

    #[test]
    fn a_long_result_keeps_its_beginning_and_end() {
        assert_eq!(
            cut(&"é".repeat(OBSERVATION_CHARS_MAX)).chars().count(),
            4_000
        );
        let long = format!("begin{}end", "x".repeat(OBSERVATION_CHARS_MAX));
        let shown = cut(&long);
        assert!(shown.starts_with("begin") && shown.ends_with("end"));
        assert!(shown.contains("[8 characters left out]"), "{shown}");
    }
}
