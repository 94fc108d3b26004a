//! Whether a command goes on after the text there is.

use super::words::parser_options;
use brush_parser::{ParseError, Parser};

/// Returns whether a quote, a bracket, a here-document, a compound command or a line is open.
pub(super) fn is_cut_off(text: &str) -> bool {
    if ends_in_backslash(text) {
        return true;
    }
    let text = format!("{text}\n");
    match Parser::new(text.as_bytes(), &parser_options()).parse_program() {
        Err(ParseError::ParsingAtEndOfInput) => true,
        Err(ParseError::Tokenizing { inner, .. }) => inner.is_incomplete(),
        Ok(_) | Err(ParseError::ParsingNear(_)) => false,
    }
}

fn ends_in_backslash(text: &str) -> bool {
    let line = text.lines().next_back().unwrap_or_default();
    let backslashes = line.bytes().rev().take_while(|b| *b == b'\\').count();
    backslashes % 2 == 1 && !text.ends_with('\n')
}
