//! A recorded session as Markdown.

use super::Story;
use super::words::{NO_END, ending, of_result, of_step, of_turn, title};
use rondo_runtime::sanitize::cell;
use rondo_runtime::todo::mark;
use rondo_runtime::view::{Item, TurnView};
use rondo_types::TodoItem;
use std::fmt::Write as _;

/// Renders the beginning of a session.
pub(super) fn head(story: &Story) -> String {
    let mut text = format!("# {}\n\nSession `{}`", title(story), story.session);
    if !story.directory.is_empty() {
        let _ = write!(text, " in `{}`", cell(&story.directory));
    }
    text.push('\n');
    text
}

/// Renders the parts after the turns.
pub(super) fn tail(todo: &[TodoItem], heading: &str, children: &[String]) -> String {
    let mut text = String::new();
    if !todo.is_empty() {
        text.push_str("\n## To do\n\n");
        for item in todo {
            let _ = writeln!(text, "- {} {}", mark(item.status), item.text);
        }
    }
    if !children.is_empty() {
        let _ = write!(text, "\n## {heading}\n\n");
        for child in children {
            let _ = writeln!(text, "- `{child}`");
        }
    }
    text
}

/// Renders a turn, and the cells behind it.
pub(super) fn turn(turn: &TurnView) -> String {
    let mut text = match turn.number {
        0 => String::new(),
        number => format!("\n## Turn {number}\n\n{}\n", of_turn(turn)),
    };
    turn.said
        .iter()
        .for_each(|item| write_item(&mut text, item));
    for step in &turn.steps {
        let _ = write!(text, "\n### Step {}\n\n{}\n", step.number, of_step(step));
        step.items
            .iter()
            .for_each(|item| write_item(&mut text, item));
    }
    if let Some(answer) = turn.built_answer() {
        let _ = write!(text, "\n**Answer**\n\n{answer}\n");
    }
    if let Some(ending) = ending(turn).filter(|_| turn.number > 0) {
        let _ = write!(text, "\n*{ending}*\n");
    }
    for (heading, items) in [("Script", &turn.script), ("Python", &turn.cells)] {
        if !items.is_empty() {
            let _ = write!(text, "\n## {heading}\n");
            items.iter().for_each(|item| write_item(&mut text, item));
        }
    }
    text
}

fn write_item(text: &mut String, item: &Item) {
    let _ = match item {
        Item::User { text: said } => write!(text, "\n**User**\n\n{said}\n"),
        Item::Runtime { text: said } => write!(text, "\n**Rondo**\n\n{said}\n"),
        Item::Reasoning { text: said } => write!(text, "\n{}\n", quoted(said)),
        Item::Text { text: said } => write!(text, "\n{said}\n"),
        Item::Call { tool, arguments } => write!(text, "\n`{tool}`\n{}", fenced(arguments)),
        Item::Result {
            tool,
            text: said,
            took_ms,
            ..
        } => {
            let ended = of_result(item.failure().as_deref(), *took_ms);
            let tool = if tool.is_empty() { "the call" } else { tool };
            write!(text, "\n`{tool}` {ended}:\n{}", fenced(said))
        }
        Item::Cell { code, result, .. } => {
            let result = result.as_deref().unwrap_or(NO_END);
            let result = match result {
                "" => String::new(),
                result => fenced(result),
            };
            write!(text, "{}{result}", fenced(code))
        }
        Item::Note { text: said } => write!(text, "\n*{said}*\n"),
    };
}

fn quoted(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(|line| format!("> {line}")).collect();
    lines.join("\n")
}

/// A fence is longer than any in the text.
fn fenced(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("\n{fence}\n{}\n{fence}\n", text.trim_end())
}
