//! Here-documents.
//!
//! Parsers and shells disagree most about their delimiters, so only a plain word, bare or in single quotes, is
//! accepted.

use super::lexer::{LexError, Lexer, Lexing};

/// A here-document whose text is not read yet.
pub(super) struct Pending {
    /// Which token it is.
    pub(super) index: usize,
    delimiter: String,
    expands: bool,
    strips_tabs: bool,
}

impl Lexer {
    /// Reads the delimiter after `<<`, or `<<-`.
    pub(super) fn delimiter(&mut self, strips_tabs: bool, index: usize) -> Lexing<Pending> {
        while matches!(self.peek(0), Some(' ' | '\t')) {
            self.at += 1;
        }
        let from = self.at;
        let word = self.word()?;
        let source: String = self.source(from).iter().collect();
        let inner = source
            .strip_prefix('\'')
            .and_then(|rest| rest.strip_suffix('\''));
        let plain = inner.unwrap_or(&source);
        let is_plain = !plain.is_empty()
            && plain.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            && self.is_at_word_end_or_redirection();
        if !is_plain {
            self.odd("the delimiter of a here-document is not understood");
        }
        let delimiter = match word.value.text() {
            Some(text) => text.to_owned(),
            None => source.clone(),
        };
        Ok(Pending {
            index,
            delimiter,
            expands: inner.is_none(),
            strips_tabs,
        })
    }

    fn is_at_word_end_or_redirection(&self) -> bool {
        self.is_at_word_end() || matches!(self.peek(0), Some('<' | '>'))
    }

    /// Reads the text of a here-document, which begins here, and the line that ends it.
    pub(super) fn here_document(&mut self, pending: &Pending) -> Lexing<String> {
        let mut text = String::new();
        loop {
            if self.peek(0).is_none() {
                return Err(LexError::CutOff);
            }
            let mut line = String::new();
            while let Some(c) = self.peek(0).filter(|c| *c != '\n') {
                line.push(c);
                self.at += 1;
            }
            let has_end = self.peek(0).is_some();
            self.at += usize::from(has_end);
            let line = if pending.strips_tabs {
                line.trim_start_matches('\t')
            } else {
                &line
            };
            if line == pending.delimiter {
                break;
            }
            text.push_str(line);
            text.push('\n');
        }
        if pending.expands && text.contains(['$', '`', '\\']) {
            self.odd("the expansions of a here-document are not understood");
        }
        Ok(text)
    }
}
