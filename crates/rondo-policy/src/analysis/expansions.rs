//! Lexes expansions: everything that begins with `$` or a backquote.

use super::lexer::{LexError, Lexer, Lexing, Quoting};
use super::words::Building;

impl Lexer {
    /// Reads the expansion that a `$` begins.
    pub(super) fn dollar(&mut self, word: &mut Building, quoting: Quoting) -> Lexing<()> {
        self.at += 1;
        match (self.peek(0), self.peek(1)) {
            (Some('('), Some('(')) => {
                self.at += 2;
                self.arithmetic(word)?;
            }
            (Some('('), _) => {
                self.at += 1;
                let tokens = self.substitution()?;
                word.push_substitution(tokens, quoting == Quoting::Double);
            }
            (Some('{'), _) => {
                self.at += 1;
                self.braced(word)?;
            }
            (Some('['), _) => {
                self.odd("its arithmetic is not understood");
                self.at += 1;
                self.skip_balanced('[', ']')?;
                word.push_unknown();
            }
            (Some('\''), _) if quoting == Quoting::None => {
                self.at += 1;
                self.ansi_quoted(word)?;
            }
            (Some('"'), _) if quoting == Quoting::None => {
                // The quoted text follows.
                self.odd("its quoting is not understood");
            }
            (Some(c), _) if c.is_ascii_alphabetic() || c == '_' => {
                let name = self.name();
                word.push_variable(&name);
            }
            (Some(c), _) if c.is_ascii_digit() || "@*#?-$!".contains(c) => {
                self.at += 1;
                word.push_variable(c.encode_utf8(&mut [0; 4]));
            }
            (next, _) => self.lone_dollar(word, next, quoting),
        }
        Ok(())
    }

    fn lone_dollar(&mut self, word: &mut Building, next: Option<char>, quoting: Quoting) {
        let is_certain = match (next, quoting) {
            (None, _) => true,
            (Some(c), Quoting::None) => " \t\n;&|<>)".contains(c),
            (Some(c), Quoting::Double) => "\" \\|/).,:;%^".contains(c),
        };
        if !is_certain {
            self.odd("its expansions are not understood");
        }
        word.push_quoted("$");
    }

    fn name(&mut self) -> String {
        let mut name = String::new();
        while let Some(c) = self
            .peek(0)
            .filter(|c| c.is_ascii_alphanumeric() || *c == '_')
        {
            name.push(c);
            self.at += 1;
        }
        name
    }

    fn braced(&mut self, word: &mut Building) -> Lexing<()> {
        let name = self.name();
        if self.peek(0) == Some('}') && super::words::is_name(&name) {
            self.at += 1;
            word.push_variable(&name);
            return Ok(());
        }
        self.odd("its parameter expansions are not understood");
        if super::words::is_name(&name) {
            word.note_variable(&name);
        }
        self.skip_balanced('{', '}')?;
        word.push_unknown();
        Ok(())
    }

    fn arithmetic(&mut self, word: &mut Building) -> Lexing<()> {
        let harmless = |c: &char| c.is_ascii_digit() || " +-*/%".contains(*c);
        while self.peek(0).as_ref().is_some_and(harmless) {
            self.at += 1;
        }
        if self.peek(0) == Some(')') && self.peek(1) == Some(')') {
            self.at += 2;
            word.push_number();
            return Ok(());
        }
        self.odd("its arithmetic is not understood");
        self.skip_balanced('(', ')')?;
        self.skip_balanced('(', ')')?;
        word.push_unknown();
        Ok(())
    }

    fn ansi_quoted(&mut self, word: &mut Building) -> Lexing<()> {
        word.begin_quoted();
        loop {
            match self.next()? {
                '\'' => return Ok(()),
                '\\' => {
                    let plain = match self.next()? {
                        'n' => "\n",
                        't' => "\t",
                        '\\' => "\\",
                        '\'' => "'",
                        '"' => "\"",
                        _ => {
                            // Others differ between versions and languages.
                            word.push_unknown();
                            ""
                        }
                    };
                    word.push_quoted(plain);
                }
                c => word.push_quoted(c.encode_utf8(&mut [0; 4])),
            }
        }
    }

    /// Reads a command in backquotes; what is quoted in it is read once more than elsewhere.
    pub(super) fn backquoted(&mut self, word: &mut Building, quoting: Quoting) -> Lexing<()> {
        self.at += 1;
        let mut text = String::new();
        loop {
            match self.next()? {
                '`' => break,
                '\\' => {
                    text.push('\\');
                    text.push(self.next()?);
                }
                c => text.push(c),
            }
        }
        if text.contains(['\\', '\'', '"', '#']) {
            self.skipped.push(text);
            self.odd("its quoting is not understood");
            word.push_unknown();
            return Ok(());
        }
        self.deeper()?;
        let mut inner = Self::new(&text, self.depth);
        inner.begun = self.begun;
        let tokens = inner.tokens(super::lexer::End::OfText);
        self.skipped.append(&mut inner.skipped);
        self.begun = inner.begun;
        self.depth -= 1;
        if let Some(reason) = inner.odd {
            self.odd(reason);
        }
        match tokens {
            Ok(tokens) => word.push_substitution(tokens, quoting == Quoting::Double),
            Err(err @ (LexError::TooDeep | LexError::TooMany)) => return Err(err),
            Err(LexError::CutOff) => {
                self.odd("its quoting is not understood");
                word.push_unknown();
            }
        }
        Ok(())
    }

    /// Skips to the closing bracket, past quotes and nested brackets; what is skipped is odd.
    pub(super) fn skip_balanced(&mut self, open: char, close: char) -> Lexing<()> {
        let from = self.at;
        self.find_closing(open, close)?;
        let skipped = self.source(from).iter().collect();
        self.skipped.push(skipped);
        Ok(())
    }

    fn find_closing(&mut self, open: char, close: char) -> Lexing<()> {
        let mut depth = 1_usize;
        loop {
            match self.next()? {
                '\\' => {
                    self.next()?;
                }
                quote @ ('\'' | '"' | '`') => while self.next()? != quote {},
                c if c == open => depth += 1,
                c if c == close => {
                    depth -= 1;
                    if depth == 0 {
                        return Ok(());
                    }
                }
                _ => {}
            }
        }
    }
}
