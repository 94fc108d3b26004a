//! One line for a call: the same on the screen, at the line prompt and in `rondo ask`.

use crate::text::{clean, columns};
use crate::transcript::cut;
use rondo_core::shown;
use serde_json::Value;

/// Columns of a line that its mark and what follows the call take.
const FRAME_COLUMNS: usize = 4;

/// Returns a call as one line of at most so many columns, with room for a mark before it.
#[must_use]
pub fn call_line(tool: &str, arguments: &Value, columns: usize) -> String {
    let line = format!("{} {}", clean::line(tool), about(arguments));
    shortened(line.trim(), columns.saturating_sub(FRAME_COLUMNS))
}

/// Returns the subject of a call: its most telling argument, on one line.
pub(crate) fn about(arguments: &Value) -> String {
    clean::line(&shown::summary(arguments))
}

/// Returns a line of at most so many columns. `…` stands for the end of a longer one.
pub(crate) fn shortened(line: &str, columns_max: usize) -> String {
    if columns(line) <= columns_max {
        return line.to_owned();
    }
    cut(line, columns_max.saturating_sub(1)) + "…"
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_telling_argument_is_shown_and_cut() {
        let line = |arguments: Value| call_line("exec", &arguments, 20);
        assert_eq!(
            line(json!({"command": "ls -la", "timeout": 3})),
            "exec ls -la"
        );
        assert_eq!(
            line(json!({"command": "ls -la /a/very/long/path"})),
            "exec ls -la /a/…"
        );
        assert_eq!(line(json!({"command": "a\nb"})), "exec a b");
        assert_eq!(line(json!({"n": 1})), "exec {\"n\":1}");
        assert_eq!(line(json!({})), "exec");
        assert_eq!(line(json!({"task": "look"})), "exec look");
    }

    #[test]
    fn wide_characters_take_their_columns() {
        let arguments = json!({"command": "四つの日本語の題です"});
        let line = call_line("exec", &arguments, 20);
        assert_eq!(line, "exec 四つの日本…");
        assert_eq!(columns(&line), 16);
    }

    #[test]
    fn a_call_cannot_steer_the_terminal() {
        let arguments = json!({"command": "echo \u{1b}]0;x\u{7}\u{1b}[2Jhi"});
        assert_eq!(call_line("exec", &arguments, 80), "exec echo hi");
    }
}
