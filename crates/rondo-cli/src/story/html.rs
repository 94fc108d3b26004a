//! A recorded session as a page of HTML.

use super::Story;
use super::words::{NO_END, ending, of_result, of_step, of_turn, title};
use crate::render::escape::xml;
use rondo_runtime::sanitize::cell;
use rondo_runtime::todo::as_text;
use rondo_runtime::view::{Item, TurnView};
use rondo_types::TodoItem;
use std::fmt::Write as _;

/// The page needs nothing but itself: no script, no font, no address.
const STYLE: &str = "\
:root{color-scheme:light dark;--faint:#666;--bad:#b00020}
@media(prefers-color-scheme:dark){:root{--faint:#a0a0a0;--bad:#ff8a80}}
body{font:16px/1.5 system-ui,sans-serif;max-width:52rem;margin:2rem auto;padding:0 1rem;overflow-wrap:anywhere}
h1{font-size:1.6rem;line-height:1.25;margin:0 0 .5rem}
h2{font-size:1.25rem;border-top:1px solid #8886;padding-top:1rem;margin:2.5rem 0 .25rem}
h3{font-size:1rem;margin:1.5rem 0 .25rem}
.figures{color:var(--faint);font-size:.85rem;margin:0 0 .75rem}
.said{white-space:pre-wrap;margin:.5rem 0}
.user{background:#8882;border-radius:.5rem;padding:.5rem .75rem}
.note,.result summary{color:var(--faint)}
.note{font-style:italic}
.note pre{font-style:normal}
.failed summary{color:var(--bad)}
code{font-size:.9em;font-style:normal}
details{margin:.5rem 0}
summary{cursor:pointer}
pre{background:#8881;border-radius:.5rem;padding:.5rem .75rem;white-space:pre-wrap;font-size:.9em;margin:.25rem 0;max-height:60vh;overflow:auto}
@media print{pre{max-height:none}}
";

/// Renders the beginning of a session's page.
pub(super) fn head(story: &Story) -> String {
    let title = xml(&title(story));
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n<h1>{title}</h1>\n"
    );
    let place = match story.directory.is_empty() {
        true => String::new(),
        false => format!(" in <code>{}</code>", xml(&cell(&story.directory))),
    };
    let session = xml(&story.session);
    let _ = writeln!(
        page,
        "<p class=\"figures\">Session <code>{session}</code>{place}</p>"
    );
    page
}

/// Renders a turn, and the cells behind it.
pub(super) fn turn(turn: &TurnView) -> String {
    let mut page = String::new();
    if turn.number > 0 {
        let _ = writeln!(page, "<h2>Turn {}</h2>", turn.number);
        figures(&mut page, &of_turn(turn));
    }
    let write = |page: &mut String, items: &[Item]| {
        items.iter().for_each(|item| write_item(page, item));
    };
    write(&mut page, &turn.said);
    for step in &turn.steps {
        let _ = writeln!(page, "<h3>Step {}</h3>", step.number);
        figures(&mut page, &of_step(step));
        write(&mut page, &step.items);
    }
    if let Some(answer) = turn.built_answer() {
        said(&mut page, "said", answer);
    }
    if let Some(ending) = ending(turn).filter(|_| turn.number > 0) {
        note(&mut page, &ending);
    }
    for (heading, items) in [("Script", &turn.script), ("Python", &turn.cells)] {
        if !items.is_empty() {
            let _ = writeln!(page, "<h2>{heading}</h2>");
            write(&mut page, items);
        }
    }
    page
}

/// Renders the parts after the turns, and ends the page.
pub(super) fn tail(todo: &[TodoItem], heading: &str, children: &[String]) -> String {
    let mut page = String::new();
    if !todo.is_empty() {
        let _ = writeln!(page, "<h2>To do</h2>\n<pre>{}</pre>", xml(&as_text(todo)));
    }
    if !children.is_empty() {
        let _ = writeln!(page, "<h2>{heading}</h2>\n<ul>");
        for child in children {
            let _ = writeln!(page, "<li><code>{}</code></li>", xml(child));
        }
        let _ = writeln!(page, "</ul>");
    }
    page + "</html>\n"
}

fn figures(page: &mut String, text: &str) {
    let _ = writeln!(page, "<p class=\"figures\">{}</p>", xml(text));
}

fn said(page: &mut String, class: &str, text: &str) {
    let _ = writeln!(page, "<div class=\"{class}\">{}</div>", xml(text));
}

/// A note has its names between backticks.
fn note(page: &mut String, text: &str) {
    let text = xml(text);
    let mut parts = text.split('`');
    let mut marked = parts.next().unwrap_or_default().to_owned();
    while let Some(name) = parts.next() {
        let _ = match parts.next() {
            Some(rest) => write!(marked, "<code>{name}</code>{rest}"),
            None => write!(marked, "`{name}"),
        };
    }
    let _ = writeln!(page, "<div class=\"said note\">{marked}</div>");
}

fn folded(page: &mut String, class: &str, summary: &str, text: &str) {
    let (summary, text) = (xml(summary), xml(text));
    let _ = writeln!(
        page,
        "<details class=\"{class}\"><summary>{summary}</summary><pre>{text}</pre></details>"
    );
}

fn write_item(page: &mut String, item: &Item) {
    match item {
        Item::User { text } => said(page, "said user", text),
        Item::Runtime { text } => folded(page, "note", "Rondo told the model", text),
        Item::Reasoning { text } => folded(page, "note", "Reasoning", text),
        Item::Text { text } => said(page, "said", text),
        Item::Call { tool, arguments } => {
            let call = format!("{tool} {arguments}");
            let _ = writeln!(page, "<pre>{}</pre>", xml(&call));
        }
        Item::Result {
            tool,
            text,
            took_ms,
            ..
        } => {
            let failure = item.failure();
            let class = if failure.is_some() {
                "failed"
            } else {
                "result"
            };
            let ended = of_result(failure.as_deref(), *took_ms);
            let tool = if tool.is_empty() { "the call" } else { tool };
            let summary = format!("{tool} {ended}");
            folded(page, class, &summary, text);
        }
        Item::Cell { code, result, .. } => {
            let result = result.as_deref().unwrap_or(NO_END);
            for text in [code.as_str(), result].iter().filter(|it| !it.is_empty()) {
                let _ = writeln!(page, "<pre>{}</pre>", xml(text));
            }
        }
        Item::Note { text } => note(page, text),
    }
}
