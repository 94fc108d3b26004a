//! Markdown as rows of the screen, and as lines of a terminal.
//!
//! # Layout
//! - `stream`: a text that is still being written: what is finished is laid out once; `written`: the same without a
//!   screen, where nothing can be taken back.
//! - `blocks`: lays out what pulldown-cmark reads; `table`: tables; `code`: highlighted code.

mod blocks;
mod code;
mod stream;
mod table;
mod written;

pub(crate) use stream::Stream;
pub use written::MarkdownWriter;

/// Returns the blocks of code of a text, as they were written.
#[must_use]
pub fn code_blocks(source: &str) -> Vec<String> {
    use pulldown_cmark::{Event, Parser, Tag, TagEnd};
    let mut found = Vec::new();
    let mut open: Option<String> = None;
    for event in Parser::new(source) {
        match (event, &mut open) {
            (Event::Start(Tag::CodeBlock(_)), _) => open = Some(String::new()),
            (Event::Text(text), Some(code)) => code.push_str(&text),
            (Event::End(TagEnd::CodeBlock), _) => found.extend(open.take()),
            _ => {}
        }
    }
    found
}
