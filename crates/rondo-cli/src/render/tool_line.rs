//! One line for each tool call.

use rondo_core::shown::{readable, summary};
use rondo_runtime::sanitize::plain;
use rondo_types::text::first_line;
use serde_json::Value;

/// What stands around the arguments, in columns.
const FRAME_COLUMNS: usize = 4;

/// Returns a call as one line of at most so many columns.
pub(crate) fn tool_line(name: &str, arguments: &Value, columns: usize) -> String {
    let line = readable(&plain(&format!("{name} {}", summary(arguments))));
    first_line(line.trim(), columns.saturating_sub(FRAME_COLUMNS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_telling_argument_is_shown_and_cut() {
        let line = |arguments: Value| tool_line("exec", &arguments, 20);
        assert_eq!(
            line(json!({"command": "ls -la", "timeout": 3})),
            "exec ls -la"
        );
        assert_eq!(
            line(json!({"command": "ls -la /a/very/long/path"})),
            "exec ls -la /a/…"
        );
        assert_eq!(line(json!({"command": "a\nb"})), "exec a…");
        assert_eq!(line(json!({"n": 1})), "exec {\"n\":1}");
        assert_eq!(line(json!({})), "exec");
        assert_eq!(line(json!({"task": "look"})), "exec look");
    }

    #[test]
    fn a_call_cannot_steer_the_terminal() {
        let arguments = json!({"command": "echo \u{1b}]0;x\u{7}\u{1b}[2Jhi"});
        assert_eq!(tool_line("exec", &arguments, 80), "exec echo hi");
    }
}
