//! Decides whether a command continues on the next line.

use super::grammar::{self, GrammarError};
use super::lexer::{self, LexError};

/// Returns whether a quote, a bracket, a here-document, a compound command or a line is open.
pub(super) fn is_cut_off(text: &str) -> bool {
    match lexer::lex(text) {
        Err(err) => err == LexError::CutOff,
        Ok(lexed) => matches!(grammar::parse(&lexed.tokens), Err(GrammarError::CutOff)),
    }
}
