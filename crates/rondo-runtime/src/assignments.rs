//! Finds keys in a line for the shell: `export X_TOKEN=value`, `X_TOKEN=value command`, `--token=value`.
//!
//! It need not read every line as a shell does, since exported keys are learned from the shell itself. It is
//! for keys that are only in the line, which is saved to the history before the shell has read it.

use crate::secrets::KeyNames;

/// Replacement of a key.
const MARK: &str = "[redacted]";

/// A line without the keys in it.
#[derive(Debug, PartialEq, Eq)]
pub struct MaskedLine {
    /// The line.
    pub line: String,
    /// The keys.
    pub keys: Vec<String>,
}

/// Takes the keys out of a line of the shell. A value that is not a key by itself, as in `X_TOKEN=$(pass x)`, stays.
pub fn mask(line: &str, names: &KeyNames) -> MaskedLine {
    let mut masked = MaskedLine {
        line: String::with_capacity(line.len()),
        keys: Vec::new(),
    };
    let mut quote = None;
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        if let Some((name, after)) = assignment(rest) {
            let given = word(after, quote);
            let told = rest.len() - after.len();
            masked.line.push_str(rest.get(..told).unwrap_or_default());
            rest = after;
            if names.has(name, &given.key) && !given.key.is_empty() && !is_expanded(after) {
                masked.line.push_str(MARK);
                masked.keys.push(given.key);
                rest = after.get(given.length..).unwrap_or_default();
            }
            continue;
        }
        // The rest of a name is not a name of its own.
        let length = match name_length(rest) {
            0 => c.len_utf8(),
            length => length,
        };
        match c {
            '\'' | '"' if quote.is_none() => quote = Some(c),
            c if quote == Some(c) => quote = None,
            _ => {}
        }
        let (one, others) = rest.split_at(length);
        masked.line.push_str(one);
        rest = others;
        if c == '\\' && quote != Some('\'') {
            let escaped = rest.chars().next().map_or(0, char::len_utf8);
            let (one, others) = rest.split_at(escaped);
            masked.line.push_str(one);
            rest = others;
        }
    }
    masked
}

/// Returns whether each line of a text exports a variable that holds a key: such lines are meant for a
/// shell.
pub fn is_export(text: &str, names: &KeyNames) -> bool {
    let mut lines = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .peekable();
    lines.peek().is_some() && lines.all(|line| exports(line, names))
}

fn exports(line: &str, names: &KeyNames) -> bool {
    let exported = line.trim_start().strip_prefix("export");
    let exported = exported.filter(|rest| rest.starts_with([' ', '\t']));
    let assigned = exported.and_then(|rest| assignment(rest.trim_start()));
    assigned.is_some_and(|(name, after)| names.has(name, &word(after, None).key))
}

/// Returns the name that a text assigns to at its very beginning, and what follows the equals sign.
fn assignment(text: &str) -> Option<(&str, &str)> {
    let (name, rest) = text.split_at(name_length(text));
    let after = rest.strip_prefix("+=").or_else(|| rest.strip_prefix('='))?;
    let is_name = !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit());
    (is_name && !after.starts_with('=')).then_some((name, after))
}

fn name_length(text: &str) -> usize {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.find(|c| !is_of_name(c)).unwrap_or(text.len())
}

/// Returns whether the shell puts something else in the place of a word's beginning.
fn is_expanded(word: &str) -> bool {
    let word = word.strip_prefix('"').unwrap_or(word);
    let is_text = word.starts_with("$'") || word.starts_with("$\"");
    word.starts_with('`') || (word.starts_with('$') && !is_text)
}

/// A word of the shell.
struct Word {
    /// Its bytes in the line.
    length: usize,
    /// Name of the assigned variable.
    key: String,
}

/// Reads the word at the beginning of a text, which is in quotes of that kind itself.
fn word(text: &str, outer: Option<char>) -> Word {
    let mut key = String::new();
    let mut quote = None;
    let mut chars = text.char_indices();
    let mut length = text.len();
    while let Some((at, c)) = chars.next() {
        let ends = c.is_whitespace() || ";&|()<>`".contains(c);
        match quote {
            None if ends || outer == Some(c) => {
                length = at;
                break;
            }
            None if c == '\'' || c == '"' => quote = Some(c),
            Some(open) if open == c => quote = None,
            Some('\'') => key.push(c),
            _ if c == '\\' => key.extend(chars.next().map(|(_, escaped)| escaped)),
            None if c == '$' && key.is_empty() => {}
            _ => key.push(c),
        }
    }
    Word { length, key }
}

#[cfg(test)]
mod tests;
