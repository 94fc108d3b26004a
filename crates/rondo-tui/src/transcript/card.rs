//! A tool call, or a person's own cell: what runs, what it writes, and how it ended.

use super::child::Child;
use super::diff::{self, Diff};
use super::entry::MARGIN;
use super::quote::Quote;
use crate::call_line::{about, shortened};
use crate::text::clean::{self, LiveText};
use crate::text::{Piece, Row, Wrap, columns};
use crate::theme::Theme;
use rondo_core::shown;
use rondo_runtime::confined::sandbox_note;
use rondo_runtime::view::command_failure;
use rondo_runtime::words::without_code;
use rondo_types::text::last_lines;
use rondo_types::units::{counted, took};
use rondo_types::{TodoItem, TodoStatus, TurnEvent};
use serde_json::Value;

/// Bytes of output that a card keeps: of more, its end.
const OUTPUT_BYTES_MAX: usize = 256 << 10;
/// Rows of output that are shown while the card is not open.
const ROWS_SHOWN: usize = 5;
/// Rows of an open card.
const OPEN_ROWS_MAX: usize = 2_000;
/// The tool of the agent's to-do list.
const TODO: &str = "todo";

/// How a card's work ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CardEnd {
    /// Set if it succeeded.
    pub(crate) is_ok: bool,
    /// Description of the end, such as an exit code.
    pub(crate) said: String,
    /// How long it took, in milliseconds; `None` if it was not measured.
    pub(crate) took_ms: Option<u64>,
}

/// A card.
#[derive(Debug, Default)]
pub(crate) struct Card {
    /// Title before it: the tool's name, or the prompt of a shell.
    name: String,
    /// Command or arguments, on one line.
    told: String,
    /// Arguments of the call.
    arguments: Value,
    /// Set if it runs; otherwise it waits.
    pub(crate) is_running: bool,
    pub(crate) end: Option<CardEnd>,
    output: String,
    live: LiveText,
    /// Bytes of output that are not kept.
    left_out: usize,
    /// Refusals of the sandbox, as far as they are known.
    sandbox: String,
    /// Change of files, if its result has one: shown in place of the output.
    diff: Option<Diff>,
    /// The subagent that it started.
    child: Option<Child>,
    /// Set if its output is an error in words, and not output of a program.
    is_prose: bool,
    /// Set for an attachment of a person's message, which is folded until it is opened.
    is_quote: bool,
}

impl Card {
    /// Of a tool call.
    pub(crate) fn call(name: &str, arguments: &Value) -> Self {
        Self {
            name: clean::line(name),
            told: about(arguments),
            arguments: arguments.clone(),
            ..Self::default()
        }
    }

    /// Of a person's own command or code, behind what prompts for it.
    pub(crate) fn own(prompt: &str, code: &str) -> Self {
        Self {
            name: prompt.to_owned(),
            told: clean::line(code),
            arguments: Value::String(code.to_owned()),
            is_running: true,
            ..Self::default()
        }
    }

    /// Of what went along with a person's words.
    pub(crate) fn quoted(quote: &Quote) -> Self {
        let lines = match quote.text.trim_end().lines().count() {
            0 => None,
            lines => Some(counted(lines, "line")),
        };
        let facts = quote.facts.iter().map(|it| clean::line(it)).chain(lines);
        let mut card = Self {
            name: quote.name.clone(),
            told: clean::line(&quote.told),
            arguments: match quote.name.as_str() {
                "$" | ">>>" => Value::String(quote.told.clone()),
                _ => Value::Null,
            },
            is_quote: true,
            ..Self::default()
        };
        let end = CardEnd {
            is_ok: true,
            said: facts.collect::<Vec<_>>().join(" · "),
            took_ms: None,
        };
        card.finish(end, &Value::String(quote.text.clone()));
        card
    }

    /// Returns it as one line.
    pub(crate) fn line(&self) -> String {
        format!("{} {}", self.name, self.told).trim_end().to_owned()
    }

    /// Returns the command that it runs, if it runs one.
    pub(crate) fn command(&self) -> Option<&str> {
        match &self.arguments {
            Value::String(code) => Some(code),
            other => other.get("command").and_then(Value::as_str),
        }
    }

    /// Returns the name of its tool.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns its output, as far as it is kept.
    pub(crate) fn output(&self) -> &str {
        &self.output
    }

    /// Returns its arguments.
    pub(crate) fn arguments(&self) -> &Value {
        &self.arguments
    }

    /// Changes its arguments.
    pub(crate) fn set_arguments(&mut self, arguments: &Value) {
        self.told = about(arguments);
        self.arguments = arguments.clone();
    }

    /// Adds live output.
    pub(crate) fn push(&mut self, text: &str) {
        self.live.push(text, &mut self.output);
        let over = self.output.len().saturating_sub(OUTPUT_BYTES_MAX);
        // By large pieces, so that each byte is moved a few times at most.
        if over > OUTPUT_BYTES_MAX / 4 {
            let at = self.output.ceil_char_boundary(over);
            let at = self
                .output
                .get(at..)
                .and_then(|it| it.find('\n'))
                .map_or(at, |it| at + it + 1);
            self.output.drain(..at);
            self.live.forget(at);
            self.left_out += at;
        }
    }

    /// Takes the result, which is shown if nothing was written while it ran.
    pub(crate) fn finish(&mut self, end: CardEnd, result: &Value) {
        self.is_running = false;
        self.sandbox = sandbox_note(result).map_or_else(String::new, |it| clean::line(&it));
        let told = ResultSummary::of(result).filter(|_| end.is_ok);
        if let Some(ResultSummary { is_ok, said, text }) = told {
            self.end = Some(CardEnd { is_ok, said, ..end });
            if self.output.is_empty() {
                self.push(&text);
            }
            return;
        }
        self.end = Some(end);
        if self.output.is_empty() {
            let diff = result.get("diff").and_then(Value::as_str);
            self.diff = diff.and_then(|it| Diff::unified(&clean::file(it)));
            let answer = result.get("answer").and_then(Value::as_str);
            let text = match (result, diff) {
                (_, Some(diff)) if self.diff.is_some() => diff.to_owned(),
                _ if self.child.is_some() && answer.is_some() => {
                    answer.unwrap_or_default().to_owned()
                }
                (Value::String(text), _) => {
                    let prose = without_code(text);
                    self.is_prose = prose.len() < text.len();
                    prose.to_owned()
                }
                (Value::Null, _) => String::new(),
                (other, _) => serde_json::to_string_pretty(other).unwrap_or_default(),
            };
            self.push(&text);
        }
    }

    /// Takes an event of a subagent's session.
    pub(crate) fn take_child(&mut self, event: &TurnEvent) {
        self.child.get_or_insert_default().take(event);
    }

    /// Returns the subagent that it started.
    pub(crate) fn child(&self) -> Option<&Child> {
        self.child.as_ref()
    }

    pub(super) fn source(&self) -> String {
        let mut text = self.line();
        if let Some(child) = &self.child {
            text.push_str(&child.source());
        }
        if let Some(end) = self.end.as_ref().filter(|it| !it.said.is_empty()) {
            text.push_str(&format!(" [{}]", end.said));
        }
        if !self.sandbox.is_empty() {
            text.push_str(&format!("\n[sandbox: {}]", self.sandbox));
        }
        format!("{text}\n{}", self.output.trim_end())
    }

    pub(super) fn rows(&self, width: usize, theme: &Theme, is_open: bool) -> Vec<Row> {
        let mut rows = vec![self.head(width, theme)];
        let bar = Wrap {
            keeps_blanks: true,
            ..Wrap::at(width).behind(Piece::new(format!("{MARGIN}│ "), theme.frame))
        };
        if is_open {
            let arguments = match &self.arguments {
                Value::Null => String::new(),
                Value::String(code) => clean::exact(code),
                other => clean::exact(&shown::call(other)),
            };
            rows.extend(bar.lines(&arguments, theme.text));
        }
        if !self.sandbox.is_empty() {
            let note = format!("sandbox: {}", self.sandbox);
            rows.extend(bar.lines(&note, theme.dim));
        }
        let gutter = Piece::new(format!("{MARGIN}│ "), theme.frame);
        rows.extend(self.branch_rows(&gutter, width, theme, is_open));
        if !self.plan().is_empty() {
            return rows;
        }
        if let Some(diff) = &self.diff {
            let max = if is_open {
                OPEN_ROWS_MAX
            } else {
                diff::ROWS_SHOWN
            };
            rows.extend(diff.barred_rows((width, max), theme, (0, " (Alt-E)")));
            return rows;
        }
        let output = self.output.trim_end();
        if output.is_empty() || (self.is_quote && !is_open) {
            return rows;
        }
        let max = if is_open { OPEN_ROWS_MAX } else { ROWS_SHOWN };
        let shown = tail(output, max, width);
        let hidden = output.lines().count() - shown.lines().count();
        if hidden > 0 || self.left_out > 0 {
            let more = match self.left_out {
                0 => format!("… {hidden} more lines (Alt-E)"),
                bytes => format!("… {hidden} more lines, and {bytes} bytes before them"),
            };
            rows.extend(bar.lines(&more, theme.dim));
        }
        let output = Wrap {
            keeps_blanks: !self.is_prose,
            ..bar
        };
        rows.extend(output.lines(&clean::output(shown), theme.dim));
        rows
    }

    /// Lays out the rows between the head and the output: what a subagent does, or the agent's plan.
    fn branch_rows(&self, bar: &Piece, width: usize, theme: &Theme, is_open: bool) -> Vec<Row> {
        let inner = width.saturating_sub(columns(&bar.text));
        let max = if is_open { usize::MAX } else { ROWS_SHOWN };
        let child = self.child.as_ref();
        let mut rows = child.map_or_else(Vec::new, |it| it.rows(inner, theme, max));
        rows.extend(
            self.plan()
                .iter()
                .flat_map(|it| plan_rows(it, inner, theme)),
        );
        for row in &mut rows {
            row.gutter.insert(0, bar.clone());
        }
        rows
    }

    /// Returns the list that a call of the to-do list writes.
    fn plan(&self) -> Vec<TodoItem> {
        let items = self.arguments.get("items").filter(|_| self.name == TODO);
        let items = items.and_then(|it| serde_json::from_value(it.clone()).ok());
        items.unwrap_or_default()
    }

    fn head(&self, width: usize, theme: &Theme) -> Row {
        let (mark, style) = match (&self.end, self.is_running) {
            _ if self.is_quote => ("+ ", theme.accent),
            (Some(end), _) if end.is_ok => ("✓ ", theme.good),
            (Some(_), _) => ("✗ ", theme.bad),
            (None, true) => ("● ", theme.accent),
            (None, false) => ("○ ", theme.dim),
        };
        let said = self.end.as_ref().map_or_else(String::new, |end| {
            let took = end.took_ms.map_or_else(String::new, took);
            [end.said.as_str(), &took]
                .into_iter()
                .filter(|it| !it.is_empty())
                .collect::<Vec<_>>()
                .join(", ")
        });
        let name = match self.told.is_empty() {
            true => self.name.clone(),
            false => format!("{} ", self.name),
        };
        let taken = columns(mark) + columns(&name) + columns(&said) + 2;
        let room = width.saturating_sub(taken).max(4);
        let told = shortened(&self.told, room);
        Row {
            gutter: vec![Piece::new(mark, style)],
            pieces: vec![
                Piece::new(name, theme.accent),
                Piece::new(told, theme.text),
                Piece::new(format!("  {said}"), theme.dim),
            ],
            ..Row::default()
        }
    }
}

/// Lays out an item of the agent's plan, at most so wide.
pub(crate) fn plan_rows(item: &TodoItem, width: usize, theme: &Theme) -> Vec<Row> {
    let (mark, style) = match item.status {
        TodoStatus::Done => ("✓ ", theme.dim),
        TodoStatus::InProgress => ("● ", theme.accent),
        TodoStatus::Pending => ("○ ", theme.text),
    };
    let wrap = Wrap {
        first: vec![Piece::new(mark, style)],
        rest: vec![Piece::new(MARGIN, style)],
        ..Wrap::at(width)
    };
    wrap.lines(&clean::line(&item.text), style)
}

/// Summary of a result of several fields.
struct ResultSummary {
    /// Set if a person takes it for a success: that of a command is its exit code.
    is_ok: bool,
    said: String,
    text: String,
}

impl ResultSummary {
    fn of(result: &Value) -> Option<Self> {
        Self::of_command(result).or_else(|| Self::of_write(result))
    }

    /// Of a command that ended: its output, its exit code, and further remarks.
    fn of_command(result: &Value) -> Option<Self> {
        let note = result.get("note").and_then(Value::as_str);
        let text = result.get("stdout")?.as_str()?.to_owned();
        let text = note.map_or_else(|| text.clone(), |note| format!("{text}[{note}]\n"));
        let is_over = result.get("exitCode").is_some_and(Value::is_i64)
            || result.get("signal").is_some_and(Value::is_string);
        if !is_over {
            return None;
        }
        let said = command_failure(result).map_or_else(String::new, |it| clean::line(&it));
        Some(Self {
            is_ok: said.is_empty(),
            said,
            text,
        })
    }

    /// Of a file that was written: whether it is new, and how long it is.
    fn of_write(result: &Value) -> Option<Self> {
        let fields = result.as_object().filter(|it| it.len() == 3)?;
        fields.get("path")?.as_str()?;
        let status = clean::line(fields.get("status")?.as_str()?);
        let bytes = counted(fields.get("bytes")?.as_u64()?, "byte");
        let said = format!("{status}, {bytes}");
        Some(Self {
            is_ok: true,
            said,
            text: String::new(),
        })
    }
}

/// Returns the end of a text: so many lines, and no more than fit so many rows of this width twice over.
fn tail(text: &str, lines_max: usize, width: usize) -> &str {
    last_lines(text, lines_max, lines_max * width.max(20) * 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Colours;
    use serde_json::json;

    fn shown(card: &Card, is_open: bool) -> Vec<String> {
        let rows = card.rows(40, &Theme::of(Colours::Dark), is_open);
        rows.iter()
            .map(|it| it.whole().trim_end().to_owned())
            .collect()
    }

    #[test]
    fn a_card_says_what_the_sandbox_refused() {
        let mut card = Card::call("exec", &json!({"command": "touch /a"}));
        let said = "it ran in a sandbox (no network). If it needs more, call it with `outside_sandbox`: true";
        let result = json!({"stdout": "touch: no\n", "exitCode": 1, "sandbox": said});
        card.finish(
            CardEnd {
                is_ok: true,
                said: String::new(),
                took_ms: None,
            },
            &result,
        );
        let note = ["  │ sandbox: it ran in a sandbox (no net", "  │ work)"];
        assert_eq!(shown(&card, false)[1..3], note);
        assert!(
            card.source()
                .contains("[sandbox: it ran in a sandbox (no network)]")
        );
    }

    #[test]
    fn a_card_shows_its_end_and_the_last_lines_of_its_output() {
        let mut card = Card::call("exec", &json!({"command": "make"}));
        assert_eq!(shown(&card, false), ["○ exec make"]);
        card.is_running = true;
        let output: Vec<String> = (1..=8).map(|at| format!("line {at}\n")).collect();
        card.push(&output.concat());
        let end = CardEnd {
            is_ok: false,
            said: "exit 2".to_owned(),
            took_ms: Some(1_260),
        };
        card.finish(end, &json!("not shown"));
        assert_eq!(
            shown(&card, false),
            [
                "✗ exec make  exit 2, 1.2 s",
                "  │ … 3 more lines (Alt-E)",
                "  │ line 4",
                "  │ line 5",
                "  │ line 6",
                "  │ line 7",
                "  │ line 8"
            ]
        );
        assert_eq!(shown(&card, true).len(), 10);
    }

    #[test]
    fn a_card_cannot_steer_the_terminal_or_leave_its_bar() {
        let arguments = json!({"command": "echo \u{1b}]0;x\u{7}\n╭─ approve ─╮"});
        let mut card = Card::call("ex\u{1b}[2Jec", &arguments);
        card.push("a\u{1b}[2Jb\u{202e}\r\n╭─ approve ─╮\n");
        for row in shown(&card, true) {
            assert!(
                !row.contains('\u{1b}') && !row.contains('\u{202e}'),
                "{row:?}"
            );
            assert!(row.starts_with("○ ") || row.starts_with("  │ "), "{row}");
        }
    }

    #[test]
    fn output_is_bounded_and_its_end_stays() {
        let mut card = Card::call("exec", &json!({}));
        for at in 0..100_000 {
            card.push(&format!("{at} some words of output\n"));
        }
        assert!(card.output.len() <= OUTPUT_BYTES_MAX * 5 / 4 + 64);
        assert!(card.output.ends_with("99999 some words of output\n"));
    }

    #[test]
    fn a_change_is_shown_as_a_difference() {
        let arguments = json!({"path": "a", "old_string": "one", "new_string": "two"});
        let mut card = Card::call("edit_file", &arguments);
        let diff = "--- a\n+++ a\n@@ -3 +3 @@\n-on\u{1b}[2Je\n+two\n";
        let end = CardEnd {
            is_ok: true,
            said: String::new(),
            took_ms: None,
        };
        card.finish(end, &json!({"path": "a", "replacements": 1, "diff": diff}));
        assert_eq!(
            shown(&card, false),
            ["✓ edit_file a", "  │ 3 - on\\u{1b}[2Je", "  │ 3 + two"]
        );
    }

    #[test]
    fn an_error_in_words_is_broken_between_them() {
        let mut card = Card::call("fly", &json!({}));
        let end = CardEnd {
            is_ok: false,
            said: "unknown tool".to_owned(),
            took_ms: None,
        };
        let text = "error (unknown_tool): there is no tool `fly`; the tools are: exec, read_file";
        card.finish(end, &json!(text));
        assert_eq!(
            shown(&card, false),
            [
                "✗ fly  unknown tool",
                "  │ there is no tool `fly`; the tools",
                "  │ are: exec, read_file"
            ]
        );
    }

    #[test]
    fn columns_of_output_stay_below_each_other() {
        let mut card = Card::call("exec", &json!({"command": "ls"}));
        card.push("a\tb\nlonger\tc\n全角\td\n");
        assert_eq!(
            shown(&card, false)[1..],
            ["  │ a       b", "  │ longer  c", "  │ 全角    d"]
        );
    }

    #[test]
    fn a_long_item_of_the_plan_is_shown_whole() {
        let items =
            json!([{"text": "mend what is broken in a list that is long", "status": "pending"}]);
        let card = Card::call("todo", &json!({ "items": items }));
        assert_eq!(
            shown(&card, false)[1..],
            ["  │ ○ mend what is broken in a list that", "  │   is long"]
        );
    }

    #[test]
    fn the_agents_plan_is_shown_item_by_item() {
        let items =
            json!([{"text": "look", "status": "done"}, {"text": "mend", "status": "in_progress"}]);
        let mut card = Card::call("todo", &json!({ "items": items }));
        card.push("[x] look\n");
        assert_eq!(
            shown(&card, false),
            ["○ todo (2 items)", "  │ ✓ look", "  │ ● mend"]
        );
    }

    #[test]
    fn of_a_file_that_was_written_it_is_said_how_long_it_is() {
        let mut card = Card::call("write_file", &json!({"path": "a", "content": "x"}));
        let end = CardEnd {
            is_ok: true,
            said: String::new(),
            took_ms: Some(100),
        };
        card.finish(end, &json!({"path": "a", "status": "created", "bytes": 1}));
        assert_eq!(
            shown(&card, false),
            ["✓ write_file a  created, 1 byte, 0.1 s"]
        );
    }

    #[test]
    fn of_a_command_its_exit_code_is_said_and_nothing_where_it_wrote_nothing() {
        let ended = |result: Value| {
            let mut card = Card::call("exec", &json!({"command": "make"}));
            let end = CardEnd {
                is_ok: true,
                said: String::new(),
                took_ms: Some(100),
            };
            card.finish(end, &result);
            shown(&card, false)
        };
        let nothing = json!({"stdout": "", "exitCode": 0});
        assert_eq!(ended(nothing), ["✓ exec make  0.1 s"]);
        let failed = json!({"stdout": "no rule\n", "exitCode": 2});
        assert_eq!(ended(failed), ["✗ exec make  exit 2, 0.1 s", "  │ no rule"]);
        let late = json!({"stdout": "", "signal": "SIGKILL", "timed_out": true});
        assert_eq!(ended(late), ["✗ exec make  timed out, SIGKILL, 0.1 s"]);
    }

    #[test]
    fn why_a_call_was_denied_is_said_without_its_code() {
        let mut card = Card::call("exec", &json!({"command": "rm x"}));
        let end = CardEnd {
            is_ok: false,
            said: "denied".to_owned(),
            took_ms: None,
        };
        card.finish(end, &json!("error (denied): not like this"));
        assert_eq!(
            shown(&card, false),
            ["✗ exec rm x  denied", "  │ not like this"]
        );
    }

    #[test]
    fn what_went_along_is_folded_until_it_is_wanted() {
        let text = "<shell directory=\"/a\" exit_code=\"2\">\n$ ls x\nno x\nat all\n</shell>";
        let card = Card::quoted(&Quote::read(text).unwrap());
        assert_eq!(shown(&card, false), ["+ $ ls x  exit 2 · /a · 2 lines"]);
        assert_eq!(
            shown(&card, true),
            [
                "+ $ ls x  exit 2 · /a · 2 lines",
                "  │ ls x",
                "  │ no x",
                "  │ at all"
            ]
        );
        assert_eq!(
            (card.command(), card.output()),
            (Some("ls x"), "no x\nat all\n")
        );
    }

    #[test]
    fn one_line_without_end_is_cut_to_what_fits() {
        let mut card = Card::call("exec", &json!({}));
        card.push(&"x".repeat(200_000));
        assert!(shown(&card, false).len() < 20);
    }
}
