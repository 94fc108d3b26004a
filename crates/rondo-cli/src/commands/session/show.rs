use crate::error::Result;
use crate::sessions::{self, failed};
use rondo_core::history::History;
use rondo_journal::Store;
use rondo_types::{Message, Part, Role};
use std::fmt::Write as _;

/// Returns what was said in a session as Markdown.
///
/// # Errors
/// When there is no such session, or it is damaged.
pub(super) fn markdown(store: &Store, session: &str) -> Result<String> {
    let info = sessions::find(store, session)?;
    let records = store.load(&info.id).map_err(failed)?;
    let mut text = format!("# {}\n\nSession `{}`", info.title, info.id);
    if !info.directory.is_empty() {
        let _ = write!(text, " in `{}`", info.directory);
    }
    text.push('\n');
    for message in History::of(&records).transcript() {
        said(&mut text, &message);
    }
    Ok(text)
}

fn said(text: &mut String, message: &Message) {
    let who = match message.role {
        Role::User if message.synthetic => "Rondo",
        Role::User => "User",
        Role::Assistant => "Assistant",
        Role::Tool => "Results",
    };
    let _ = write!(text, "\n## {who}\n");
    for part in &message.parts {
        match part {
            Part::Text(part) | Part::Refusal(part) => {
                let _ = write!(text, "\n{}\n", part.text);
            }
            Part::ToolCall(call) => {
                let _ = write!(text, "\n`{}`\n{}", call.name, fenced(&call.arguments));
            }
            Part::ToolResult(result) => {
                let _ = write!(
                    text,
                    "\n`{}`\n{}",
                    result.name,
                    fenced(&result.content.to_text())
                );
            }
            Part::Reasoning(_) | Part::Media(_) | Part::Opaque(_) => {}
        }
    }
}

/// A fence is longer than any in the text.
fn fenced(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("\n{fence}\n{}\n{fence}\n", text.trim_end())
}
