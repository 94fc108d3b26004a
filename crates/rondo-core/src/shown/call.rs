//! A call as text for the user: its most telling argument, or all of them within bounds.

use super::{BAR, line, visible};
use rondo_types::text::in_three;
use rondo_types::units::counted;
use serde_json::{Map, Value};

/// Arguments that say most about a call, the best first.
const TELLING: [&str; 18] = [
    "command",
    "path",
    "file_path",
    "file",
    "filename",
    "pattern",
    "query",
    "url",
    "name",
    "task",
    "code",
    "program",
    "args",
    "working_directory",
    "cwd",
    "host",
    "method",
    "to",
];
/// The first of [`TELLING`], each of which stands for the whole call in one line.
const ALONE: usize = 11;
/// The longest text that follows its name, in characters.
const INLINE_CHARS_MAX: usize = 200;
/// The longest name that is shown whole, in characters.
const NAME_CHARS_MAX: usize = 80;
/// The arguments that hold what a call runs: a person who allows it can see every character of them.
const RUN: [&str; 3] = ["command", "argv", "code"];
/// The bounds of values.
const BOUNDS: Bounds = Bounds {
    text_chars: 4_000,
    parts: 400,
};
/// The bounds of a call's command. The rules judge no command that is longer either.
const RUN_BOUNDS: Bounds = Bounds {
    text_chars: 64 << 10,
    parts: usize::MAX,
};
/// No bounds.
const IN_FULL: Bounds = Bounds {
    text_chars: usize::MAX,
    parts: usize::MAX,
};
/// How deep values are taken apart; what lies deeper is shown as JSON.
const DEPTH_MAX: usize = 6;
/// The bound on all of it, in lines; of more, half of them from each end.
const LINES_MAX: usize = 1_000;

/// Bounds on the display of one value; of a longer one, half comes from each end.
#[derive(Clone, Copy)]
struct Bounds {
    /// The longest text that is shown whole, in characters.
    text_chars: usize,
    /// The arguments, elements or lines.
    parts: usize,
}

/// Returns a call in one line: its most telling argument, the length of a list if there is nothing else,
/// or all arguments as JSON. The text is as the model wrote it, with line breaks and hidden characters.
#[must_use]
pub fn summary(arguments: &Value) -> String {
    let mut telling = TELLING.iter().take(ALONE);
    if let Some(text) = telling.find_map(|name| arguments.get(name)?.as_str()) {
        return text.to_owned();
    }
    match arguments {
        Value::Null => String::new(),
        Value::Object(fields) if fields.is_empty() => String::new(),
        // Items of a list are shown if they have an effect.
        Value::Object(fields) => only_list(fields).unwrap_or_else(|| arguments.to_string()),
        Value::String(raw) => raw.clone(),
        other => other.to_string(),
    }
}

/// Returns the length of a list that is the only argument.
fn only_list(fields: &Map<String, Value>) -> Option<String> {
    let mut values = fields.values();
    let (first, None) = (values.next()?, values.next()) else {
        return None;
    };
    let items = counted(first.as_array()?.len(), "item");
    Some(format!("({items})"))
}

/// Returns the arguments of a call for the user to decide about, indented by two blanks, without a line break
/// at the end.
///
/// Short arguments come first, the most telling ones before the others; texts of several lines follow as
/// blocks, each with the number of its lines. Long texts are shortened in the middle, with a note; commands and code only
/// if they are longer than any that the rules judge ([`command_left_out`]).
#[must_use]
pub fn call(arguments: &Value) -> String {
    let mut lines = Vec::new();
    let Value::Object(fields) = arguments else {
        value("", arguments, 1, BOUNDS, &mut lines);
        return without_middle(lines, LINES_MAX, 1).join("\n");
    };
    let of_run = |name: &str| RUN.contains(&name);
    let is_short = |it: &Value| inline(it).is_some();
    let some = |wanted: &dyn Fn(&str, &Value) -> bool| -> Map<String, Value> {
        let some = fields.iter().filter(|(name, it)| wanted(name, it));
        some.map(|(name, it)| (name.clone(), it.clone())).collect()
    };
    object(&some(&|_, it| is_short(it)), 1, BOUNDS, &mut lines);
    let run = some(&|name, it| !is_short(it) && of_run(name));
    object(&run, 1, RUN_BOUNDS, &mut lines);
    let mut others = Vec::new();
    let rest = some(&|name, it| !is_short(it) && !of_run(name));
    object(&rest, 1, BOUNDS, &mut others);
    lines.extend(without_middle(others, LINES_MAX, 1));
    lines.join("\n")
}

/// Returns how many characters of what a call runs are left out by [`call`].
#[must_use]
pub fn command_left_out(arguments: &Value) -> usize {
    run_of(arguments).map(|(_, it)| left_out(it)).sum()
}

/// Returns the command of a call as [`call`] shows it, with nothing left out.
#[must_use]
pub fn command_in_full(arguments: &Value) -> String {
    let mut lines = Vec::new();
    for (name, it) in run_of(arguments) {
        value(name, it, 1, IN_FULL, &mut lines);
    }
    lines.join("\n")
}

fn run_of(arguments: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let named = |name: &'static str| Some((name, arguments.get(name)?));
    RUN.into_iter().filter_map(named)
}

fn left_out(value: &Value) -> usize {
    let text = |it: &str| ends(it.chars().count(), RUN_BOUNDS.text_chars).1;
    match value {
        Value::String(it) => text(it),
        Value::Array(elements) => elements.iter().map(left_out).sum(),
        other => text(&other.to_string()),
    }
}

fn object(fields: &Map<String, Value>, depth: usize, bounds: Bounds, lines: &mut Vec<String>) {
    let mut fields: Vec<_> = fields.iter().collect();
    fields.sort_by_key(|(name, value)| {
        let place = TELLING.iter().position(|telling| telling == name);
        let is_block = inline(value).is_none();
        (is_block, place.unwrap_or(TELLING.len()))
    });
    let count = fields.len();
    let (first, left_out, last) = ends(count, bounds.parts);
    for (at, (name, it)) in fields.into_iter().enumerate() {
        if at < first || at >= count - last {
            value(&short_name(name), it, depth, bounds, lines);
        } else if at == first {
            lines.push(format!("{}[{left_out} more arguments]", indent(depth)));
        }
    }
}

fn value(name: &str, value: &Value, depth: usize, bounds: Bounds, lines: &mut Vec<String>) {
    let indent = indent(depth);
    let colon = if name.is_empty() { "" } else { ": " };
    if let Some(text) = inline(value) {
        return lines.push(format!("{indent}{name}{colon}{text}"));
    }
    match value {
        Value::Object(fields) if depth < DEPTH_MAX => {
            lines.push(format!("{indent}{name}:"));
            object(fields, depth + 1, bounds, lines);
        }
        Value::Array(elements) if depth < DEPTH_MAX => {
            lines.push(format!("{indent}{name}: ({} elements)", elements.len()));
            array(elements, depth + 1, bounds, lines);
        }
        Value::String(text) => block(name, text, &indent, bounds, lines),
        other => block(name, &other.to_string(), &indent, bounds, lines),
    }
}

fn array(elements: &[Value], depth: usize, bounds: Bounds, lines: &mut Vec<String>) {
    let count = elements.len();
    let (first, left_out, last) = ends(count, bounds.parts);
    for (at, it) in elements.iter().enumerate() {
        if at < first || at >= count - last {
            value(&format!("[{at}]"), it, depth, bounds, lines);
        } else if at == first {
            lines.push(format!("{}[{left_out} more elements]", indent(depth)));
        }
    }
}

/// Returns a value that is shown behind its name.
fn inline(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) if text.contains('\n') => return None,
        // Quotes show where it ends, and that it is there.
        Value::String(text) if text.trim() != text || text.is_empty() => value.to_string(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let is_short = text.len() <= 4 * INLINE_CHARS_MAX && text.chars().count() <= INLINE_CHARS_MAX;
    is_short.then(|| line(&text))
}

fn block(name: &str, text: &str, indent: &str, bounds: Bounds, lines: &mut Vec<String>) {
    let chars = text.chars().count();
    let count = text.lines().count();
    let colon = if name.is_empty() { "" } else { ": " };
    lines.push(format!(
        "{indent}{name}{colon}({}, {chars} characters)",
        counted(count, "line")
    ));
    let mut shown = Vec::new();
    match in_three(text, bounds.text_chars) {
        None => barred(text, indent, &mut shown),
        Some([before, middle, after]) => {
            barred(before, indent, &mut shown);
            shown.push(format!(
                "{indent}[{} characters with {} line breaks are left out here]",
                middle.chars().count(),
                middle.matches('\n').count()
            ));
            barred(after, indent, &mut shown);
        }
    }
    lines.extend(without_middle(shown, bounds.parts, indent.len() / 2));
}

fn barred(text: &str, indent: &str, lines: &mut Vec<String>) {
    lines.extend(
        text.lines()
            .map(|line| format!("{indent}{BAR}{}", visible(line))),
    );
}

fn short_name(name: &str) -> String {
    match in_three(name, NAME_CHARS_MAX) {
        None => line(name),
        Some([begin, middle, end]) => {
            let left_out = middle.chars().count();
            format!("{}[{left_out} more]{}", line(begin), line(end))
        }
    }
}

fn without_middle(mut lines: Vec<String>, max: usize, depth: usize) -> Vec<String> {
    let (first, left_out, _) = ends(lines.len(), max);
    if left_out > 0 {
        let note = format!("{}[{left_out} lines are left out here]", indent(depth));
        lines.splice(first..first + left_out, [note]);
    }
    lines
}

/// Returns how many of so many are shown from the beginning, are left out, and are shown at the end.
fn ends(count: usize, max: usize) -> (usize, usize, usize) {
    if count <= max {
        return (count, 0, 0);
    }
    let last = max / 2;
    (max - last, count - max, last)
}

fn indent(depth: usize) -> String {
    "  ".repeat(depth)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_says_most_stands_first_whatever_order_it_came_in() {
        let arguments = json!({"content": "a\nb\n", "mode": 7, "path": "x.txt"});
        assert_eq!(
            call(&arguments),
            "  path: x.txt\n  mode: 7\n  content: (2 lines, 4 characters)\n  │ a\n  │ b"
        );
    }

    #[test]
    fn a_call_is_summed_up_by_its_most_telling_argument() {
        for (arguments, line) in [
            (json!({"timeout": 3, "path": "a", "command": "ls"}), "ls"),
            (json!({"line": 3, "file_path": "a"}), "a"),
            (json!({"code": "1 + 1"}), "1 + 1"),
            // These help to order arguments, and say too little alone.
            (
                json!({"to": "x", "text": "y"}),
                "{\"to\":\"x\",\"text\":\"y\"}",
            ),
            (json!({"n": 1}), "{\"n\":1}"),
            (json!({"items": [{"a": 1}, 2]}), "(2 items)"),
            (json!({"items": [1]}), "(1 item)"),
            (json!("raw"), "raw"),
            (json!({}), ""),
            (Value::Null, ""),
        ] {
            assert_eq!(summary(&arguments), line, "{arguments}");
        }
    }

    #[test]
    fn a_long_text_loses_its_middle_and_never_its_end() {
        let text = format!("{}; the end", "x".repeat(9_000));
        let shown = call(&json!({ "text": text }));
        assert!(shown.starts_with("  text: (1 line, 9009 characters)\n  │ xxx"));
        assert!(shown.ends_with("xxx; the end"), "{shown}");
        let said = "\n  [5009 characters with 0 line breaks are left out here]\n";
        assert!(shown.contains(said), "{shown}");
    }

    #[test]
    fn a_command_is_shown_whole_whatever_else_the_call_has() {
        let command = format!(
            "echo {}\n{}rm -rf notes",
            "x".repeat(60_000),
            "true\n".repeat(1_050)
        );
        let shown = call(&json!({"text": "z\n".repeat(9_000), "command": command}));
        let whole: String = command.lines().map(|it| format!("\n  │ {it}")).collect();
        assert!(shown.contains(&whole), "{shown}");
        let words = json!({"argv": ["sh", "-c", "y".repeat(9_000)]});
        assert!(call(&words).contains(&"y".repeat(9_000)));
        assert_eq!(command_left_out(&words), 0);
    }

    #[test]
    fn what_is_left_out_of_a_command_is_counted_and_can_be_shown() {
        for (chars, left_out) in [(65_535, 0), (65_536, 0), (65_537, 1)] {
            let arguments = json!({ "command": "x".repeat(chars) });
            assert_eq!(command_left_out(&arguments), left_out, "{chars}");
            assert_eq!(call(&arguments).contains("left out"), left_out > 0);
            let whole = command_in_full(&arguments);
            assert_eq!(
                whole,
                format!(
                    "  command: (1 line, {chars} characters)\n  │ {}",
                    "x".repeat(chars)
                )
            );
        }
        assert_eq!(command_in_full(&json!({"path": "x"})), "");
    }

    #[test]
    fn a_text_may_be_exactly_as_long_as_its_bound() {
        let max = BOUNDS.text_chars;
        for (chars, is_whole) in [(max - 1, true), (max, true), (max + 1, false)] {
            let shown = call(&json!({ "text": "x".repeat(chars) }));
            assert_eq!(!shown.contains("left out"), is_whole, "{chars}");
        }
    }

    #[test]
    fn sixty_line_breaks_and_the_end_behind_them_are_lines_of_a_block() {
        let shown = call(&json!({"command": format!("ls{}rm x", "\n".repeat(60))}));
        assert!(shown.starts_with("  command: (61 lines, 66 characters)\n  │ ls\n  │ \n"));
        assert!(shown.ends_with("\n  │ rm x"), "{shown}");
    }

    #[test]
    fn arguments_of_any_shape_are_taken_apart() {
        let long = "y".repeat(300);
        let edits = json!([{"text": "1\n2", "path": "deep.txt"}, {"text": long, "path": "b"}]);
        let shown = call(&json!({"edits": edits, "dry": false, "none": null, "empty": ""}));
        let expected = format!(
            "  dry: false\n  none: null\n  empty: \"\"\n  edits: (2 elements)\n    [0]: \
             {{\"text\":\"1\\n2\",\"path\":\"deep.txt\"}}\n    [1]:\n      path: b\n      text: (1 line, \
             300 characters)\n      │ {long}"
        );
        assert_eq!(shown, expected);
        assert_eq!(call(&json!("rm x")), "  rm x");
        assert_eq!(call(&json!({})), "");
    }

    #[test]
    fn no_argument_looks_like_another() {
        let arguments =
            json!({"note": "x\n  path: safe", "a\nb: c": "\u{202e}\u{2028}d", "s": " "});
        assert_eq!(
            call(&arguments),
            "  a\\nb: c: \\u{202e}\\u{2028}d\n  s: \" \"\n  note: (2 lines, 14 characters)\n  │ x\n  \
             │   path: safe"
        );
    }

    #[test]
    fn many_arguments_and_deep_ones_are_bounded() {
        let mut fields = Map::new();
        for at in 0..5_000 {
            fields.insert(format!("field{at}"), json!(at));
        }
        fields.insert("path".to_owned(), json!("/etc/passwd"));
        let shown = call(&Value::Object(fields));
        assert_eq!(shown.lines().count(), BOUNDS.parts + 1);
        assert!(shown.starts_with("  path: /etc/passwd\n  field0: 0\n"));
        assert!(shown.ends_with("\n  field4999: 4999") && shown.contains("[4601 more arguments]"));
        let mut deep = json!("x".repeat(300));
        for _ in 0..100 {
            deep = json!([deep]);
        }
        assert!(call(&deep).lines().count() < 2 * DEPTH_MAX);
        let wide = json!({"rows": vec![json!({"text": "z\n".repeat(300)}); 100]});
        assert_eq!(call(&wide).lines().count(), LINES_MAX + 1);
    }
}
