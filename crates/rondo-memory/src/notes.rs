//! A file of memories: Markdown in which each list item of the outermost level, or paragraph, is one memory.
//!
//! Rondo always writes one list item whose further lines are indented. So no text, whatever it holds, can end
//! its item and begin another one, or a comment with another origin.

use crate::error::MemoryError;
use crate::origin::{self, Origin};
use crate::scope::Scope;
use data_encoding::HEXLOWER;
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use std::ops::Range;

/// The bound on the text of a memory that is saved, in bytes. Of a longer one that was written by hand, a model reads
/// as much.
pub const MEMORY_BYTES_MAX: usize = 4 << 10;
/// The bytes of the hash that an id is.
const ID_BYTES: usize = 8;
/// The heading below which memories are put in a file that has other ones.
const OWN_HEADING: &str = "Saved";

/// One memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Memory {
    /// Its id, 16 hexadecimal digits: a hash of scope and text. It changes when the text is edited.
    pub id: String,
    /// Whose it is.
    pub scope: Scope,
    /// The name of its file.
    pub file: String,
    /// Its first line in the file, from 1.
    pub line: usize,
    /// The headings above it, the outermost first, with ` > ` between them; empty if there are none.
    pub heading: String,
    /// Its text, without the list's mark.
    pub text: String,
    /// Origin of the memory.
    pub origin: Origin,
    /// Its lines in the file, from 0.
    #[serde(skip)]
    pub(crate) lines: Range<usize>,
}

/// Returns the memories of a file, in order.
pub(crate) fn parse(scope: Scope, file: &str, content: &str) -> Vec<Memory> {
    let mut found = Vec::new();
    let mut headings: Vec<(usize, String)> = Vec::new();
    for block in blocks(content) {
        if let Some((level, title)) = block.heading {
            headings.retain(|(above, _)| *above < level);
            headings.push((level, title));
            continue;
        }
        let (text, origin) = origin::split(&block.text);
        if text.is_empty() || is_ornament(text) {
            continue;
        }
        let titles = headings.iter().map(|(_, title)| title.as_str());
        let titles: Vec<&str> = titles.filter(|it| *it != OWN_HEADING).collect();
        found.push(Memory {
            id: id(scope, text),
            scope,
            file: file.to_owned(),
            line: block.lines.start + 1,
            heading: titles.join(" > "),
            text: text.to_owned(),
            origin,
            lines: block.lines,
        });
    }
    found
}

/// Returns the id of a memory.
pub(crate) fn id(scope: Scope, text: &str) -> String {
    let mut hash = Sha256::new();
    hash.update(scope.as_str());
    hash.update([0]);
    hash.update(text);
    let hash = hash.finalize();
    HEXLOWER.encode(hash.get(..ID_BYTES).unwrap_or_default())
}

/// Returns the content of a file with one more memory at its end.
pub(crate) fn with_memory(content: &str, text: &str, origin: &Origin) -> String {
    let mut whole = content.to_owned();
    if !whole.is_empty() && !whole.ends_with('\n') {
        whole.push('\n');
    }
    let last = blocks(content)
        .into_iter()
        .filter_map(|it| it.heading)
        .next_back();
    if last.is_some_and(|(_, title)| title != OWN_HEADING) {
        whole.push_str(&format!("\n## {OWN_HEADING}\n\n"));
    }
    whole + &item(text, origin)
}

/// Returns a memory as a list item.
fn item(text: &str, origin: &Origin) -> String {
    let mut lines = text.lines();
    let mut item = format!("- {}", lines.next().unwrap_or_default());
    let mut is_long = false;
    for line in lines {
        is_long = true;
        item.push('\n');
        if !line.trim().is_empty() {
            item.push_str("  ");
            item.push_str(line);
        }
    }
    // A line that ends a block of code ends nothing if more follows it.
    item.push_str(if is_long { "\n  " } else { " " });
    item.push_str(&origin.comment());
    item.push('\n');
    item
}

/// Returns the content of a file without these lines, counted from 0.
pub(crate) fn without_lines(content: &str, removed: &[Range<usize>]) -> String {
    let kept = content
        .split_inclusive('\n')
        .enumerate()
        .filter(|(at, _)| !removed.iter().any(|lines| lines.contains(at)));
    kept.map(|(_, line)| line).collect()
}

/// Returns the text of a memory as it is saved: without characters that show nothing, and without the beginning of a
/// comment.
///
/// # Errors
/// When it is empty or too long.
pub(crate) fn cleaned(text: &str) -> Result<String, MemoryError> {
    let shown = text.replace("\r\n", "\n");
    let shown: String = shown.chars().filter(|it| shows(*it)).collect();
    let shown = shown.replace("<!--", "<! --");
    let shown = shown.trim();
    if shown.is_empty() || is_ornament(shown) {
        return Err(MemoryError::Empty);
    }
    if shown.len() > MEMORY_BYTES_MAX {
        return Err(MemoryError::TooLong {
            bytes: shown.len(),
            bytes_max: MEMORY_BYTES_MAX,
        });
    }
    Ok(shown.to_owned())
}

/// Control characters, marks that reverse text and the tags of Unicode hide text from people and not from models.
fn shows(c: char) -> bool {
    let is_hidden = matches!(c,
        '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}');
    matches!(c, '\n' | '\t') || !(c.is_control() || is_hidden)
}

/// Returns whether two texts say the same: white space does not count.
pub(crate) fn says_the_same(one: &str, other: &str) -> bool {
    one.split_whitespace().eq(other.split_whitespace())
}

/// A comment, or a line across the page.
fn is_ornament(text: &str) -> bool {
    let is_comment = text.starts_with("<!--") && text.ends_with("-->");
    is_comment || text.chars().all(|c| "-*_= ".contains(c))
}

/// A heading, an item or a paragraph.
struct Block {
    lines: Range<usize>,
    /// The level and the title, if it is a heading.
    heading: Option<(usize, String)>,
    /// The lines without the item's mark and indentation.
    text: String,
}

/// Item to which the following lines belong.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Open {
    Nothing,
    Item,
    Paragraph,
    Fence,
}

fn blocks(content: &str) -> Vec<Block> {
    let lines: Vec<&str> = content.lines().collect();
    let mut found: Vec<Block> = Vec::new();
    let mut open = Open::Nothing;
    // Blank lines that belong to an item if it continues behind them.
    let mut blanks = 0;
    for (at, line) in lines.iter().copied().enumerate() {
        if open == Open::Fence {
            extend(&mut found, 0, line);
            if is_fence(line) {
                open = Open::Paragraph;
            }
            continue;
        }
        if line.trim().is_empty() {
            match open {
                Open::Item => blanks += 1,
                _ => open = Open::Nothing,
            }
            continue;
        }
        let is_inside = open == Open::Item && line.starts_with([' ', '\t']);
        if is_inside {
            extend(&mut found, blanks, unindented(line));
            blanks = 0;
            continue;
        }
        let goes_on = open != Open::Nothing && blanks == 0;
        blanks = 0;
        if let Some(heading) = heading(line) {
            found.push(block(at, Some(heading), ""));
            open = Open::Nothing;
        } else if let Some(text) = item_text(line) {
            found.push(block(at, None, text));
            open = Open::Item;
        } else if is_fence(line)
            && lines
                .get(at + 1..)
                .is_some_and(|it| it.iter().any(|it| is_fence(it)))
        {
            match goes_on {
                true => extend(&mut found, 0, line),
                false => found.push(block(at, None, line)),
            }
            open = Open::Fence;
        } else if goes_on {
            extend(&mut found, 0, line);
        } else {
            found.push(block(at, None, line));
            open = Open::Paragraph;
        }
    }
    found
}

fn block(at: usize, heading: Option<(usize, String)>, text: &str) -> Block {
    Block {
        lines: at..at + 1,
        heading,
        text: text.to_owned(),
    }
}

fn extend(found: &mut [Block], blanks: usize, line: &str) {
    if let Some(last) = found.last_mut() {
        last.text.extend(std::iter::repeat_n('\n', blanks + 1));
        last.text.push_str(line);
        last.lines.end += blanks + 1;
    }
}

fn heading(line: &str) -> Option<(usize, String)> {
    let title = line.trim_start_matches('#');
    let level = line.len() - title.len();
    let is_heading = (1..=6).contains(&level) && title.starts_with(' ');
    is_heading.then(|| (level, title.trim().to_owned()))
}

/// Returns the text behind the mark of a list's item: `-`, `*`, `+`, `1.` or `1)`.
fn item_text(line: &str) -> Option<&str> {
    let digits = line.find(|c: char| !c.is_ascii_digit())?;
    let rest = match digits {
        0 => line.strip_prefix(['-', '*', '+'])?,
        1..=9 => line.get(digits..)?.strip_prefix(['.', ')'])?,
        _ => return None,
    };
    rest.strip_prefix([' ', '\t']).map(str::trim)
}

/// Only at the beginning of a line, so that what is saved, which is indented, closes nothing.
fn is_fence(line: &str) -> bool {
    line.starts_with("```") || line.starts_with("~~~")
}

fn unindented(line: &str) -> &str {
    let line = line.strip_prefix('\t').unwrap_or(line);
    let line = line.strip_prefix(' ').unwrap_or(line);
    line.strip_prefix(' ').unwrap_or(line)
}

#[cfg(test)]
mod tests;
