//! The value of a shell word, where it has one before it is run.

use brush_parser::ParserOptions;
use brush_parser::word::{
    Parameter, ParameterExpr, SpecialParameter, WordPiece, WordPieceWithSource,
};

/// What a word is before it is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    /// This text.
    Text(String),
    /// The files that match this text, or the text itself.
    Pattern(String),
    /// Something made of harmless variables and of what commands print.
    Shown,
    /// Something that is not known.
    Dynamic,
}

impl Value {
    /// Returns the text, if that is what it is.
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Pattern(_) | Self::Shown | Self::Dynamic => None,
        }
    }
}

/// A word, and the commands that run to make it.
#[derive(Debug)]
pub(super) struct Expansion {
    pub(super) value: Value,
    pub(super) substitutions: Vec<String>,
}

/// Variables whose values are no secrets and whose names lead nowhere.
const SHOWN: [&str; 12] = [
    "HOME", "PWD", "OLDPWD", "USER", "LOGNAME", "SHELL", "PATH", "LANG", "TERM", "HOSTNAME",
    "RANDOM", "SECONDS",
];

/// The options bash itself has with `-c`.
pub(super) fn parser_options() -> ParserOptions {
    ParserOptions {
        enable_extended_globbing: false,
        ..ParserOptions::default()
    }
}

/// Takes a word apart.
pub(super) fn expand(word: &str) -> Result<Expansion, &'static str> {
    let pieces = brush_parser::word::parse(word, &parser_options())
        .map_err(|_| "a word cannot be parsed")?;
    let mut reading = Reading::default();
    reading.take_pieces(&pieces, Quoting::None)?;
    Ok(reading.finish())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Quoting {
    None,
    Double,
}

#[derive(Default)]
struct Reading {
    text: String,
    is_pattern: bool,
    is_shown: bool,
    is_dynamic: bool,
    substitutions: Vec<String>,
}

impl Reading {
    fn finish(self) -> Expansion {
        let matches = self.text.contains(['*', '?', ']']);
        let value = match (self.is_dynamic, self.is_shown, self.is_pattern && matches) {
            (true, _, _) | (_, true, true) => Value::Dynamic,
            (_, true, _) => Value::Shown,
            (_, _, true) => Value::Pattern(self.text),
            (false, false, false) => Value::Text(self.text),
        };
        Expansion {
            value,
            substitutions: self.substitutions,
        }
    }

    fn take_pieces(
        &mut self,
        pieces: &[WordPieceWithSource],
        quoting: Quoting,
    ) -> Result<(), &'static str> {
        let count = pieces.len();
        for (index, piece) in pieces.iter().enumerate() {
            self.take(&piece.piece, quoting, index + 1 == count)?;
        }
        Ok(())
    }

    fn take(
        &mut self,
        piece: &WordPiece,
        quoting: Quoting,
        last: bool,
    ) -> Result<(), &'static str> {
        match piece {
            WordPiece::Text(text) if quoting == Quoting::Double => self.take_quoted(text, last),
            WordPiece::Text(text) => self.take_bare(text),
            WordPiece::SingleQuotedText(text) if quoting == Quoting::None => {
                self.text.push_str(text);
                Ok(())
            }
            WordPiece::DoubleQuotedSequence(pieces) if quoting == Quoting::None => {
                self.take_pieces(pieces, Quoting::Double)
            }
            WordPiece::EscapeSequence(escape) => self.take_escape(escape),
            WordPiece::AnsiCQuotedText(_) | WordPiece::TildeExpansion(_) => {
                self.is_dynamic = true;
                Ok(())
            }
            WordPiece::ParameterExpansion(expr) => self.take_parameter(expr),
            WordPiece::CommandSubstitution(command) => self.take_substitution(command, quoting),
            WordPiece::BackquotedCommandSubstitution(command) if !command.contains('\\') => {
                self.take_substitution(command, quoting)
            }
            WordPiece::ArithmeticExpression(expr) => self.take_arithmetic(&expr.value),
            WordPiece::SingleQuotedText(_)
            | WordPiece::DoubleQuotedSequence(_)
            | WordPiece::GettextDoubleQuotedSequence(_)
            | WordPiece::BackquotedCommandSubstitution(_) => Err("its quoting is not understood"),
        }
    }

    fn take_quoted(&mut self, text: &str, last: bool) -> Result<(), &'static str> {
        let before_end = text.strip_suffix('$').filter(|_| last).unwrap_or(text);
        if text.contains('`') || before_end.contains('$') {
            return Err("its expansions are not understood");
        }
        self.text.push_str(text);
        Ok(())
    }

    fn take_bare(&mut self, text: &str) -> Result<(), &'static str> {
        let odd = ['`', '$', '\\', '\'', '"', '(', ')', '<', '>', '|', '&', ';'];
        if text.contains(odd) || text.contains(char::is_whitespace) {
            return Err("its expansions are not understood");
        }
        let mut before = None;
        for c in text.chars() {
            let expands = match c {
                '{' | '}' => true,
                '~' => matches!(before, None | Some('=' | ':')),
                _ => false,
            };
            self.is_dynamic |= expands;
            self.is_pattern |= matches!(c, '*' | '?' | '[');
            before = Some(c);
        }
        self.text.push_str(text);
        Ok(())
    }

    fn take_escape(&mut self, escape: &str) -> Result<(), &'static str> {
        let mut chars = escape.chars();
        match (chars.next(), chars.next(), chars.next()) {
            (Some('\\'), Some(c), None) if c != '\n' => {
                self.text.push(c);
                Ok(())
            }
            _ => Err("an escape is not understood"),
        }
    }

    fn take_parameter(&mut self, expr: &ParameterExpr) -> Result<(), &'static str> {
        let ParameterExpr::Parameter {
            parameter,
            indirect: false,
        } = expr
        else {
            return Err("its parameter expansions are not understood");
        };
        match parameter {
            Parameter::Named(name) if SHOWN.contains(&name.as_str()) => self.is_shown = true,
            Parameter::Special(
                SpecialParameter::LastExitStatus
                | SpecialParameter::ProcessId
                | SpecialParameter::PositionalParameterCount,
            ) => self.is_shown = true,
            Parameter::Named(_) | Parameter::Special(_) | Parameter::Positional(_) => {
                self.is_dynamic = true;
            }
            Parameter::NamedWithIndex { .. } | Parameter::NamedWithAllIndices { .. } => {
                return Err("its parameter expansions are not understood");
            }
        }
        Ok(())
    }

    fn take_substitution(&mut self, command: &str, quoting: Quoting) -> Result<(), &'static str> {
        // Outside of double quotes the output is split and matched against files.
        self.is_dynamic |= quoting == Quoting::None && command.trim() != "pwd";
        self.is_shown = true;
        self.substitutions.push(command.to_owned());
        Ok(())
    }

    fn take_arithmetic(&mut self, expr: &str) -> Result<(), &'static str> {
        let harmless = |c: char| c.is_ascii_digit() || " +-*/%".contains(c);
        if !expr.chars().all(harmless) {
            return Err("its arithmetic is not understood");
        }
        self.is_shown = true;
        Ok(())
    }
}
