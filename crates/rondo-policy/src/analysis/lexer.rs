//! Splits a command into tokens as bash does.
//!
//! Only what every bash from 3.2 on reads in the same way is certain. Anything else is marked as odd, and a
//! command with an odd token is asked about; it is still read to its end as well as possible, to decide
//! whether it continues on the next line. Each character is read a bounded number of times, and the result is
//! never longer than the text, so neither time nor memory depends on the nesting.

use super::here::Pending;
use super::words::{Building, Word};
use super::{NESTING_MAX, TOKENS_MAX};

/// The longest number of a file descriptor; a longer one is a word.
const DESCRIPTOR_DIGITS_MAX: usize = 3;

/// Longer ones first.
const OPERATORS: [&str; 26] = [
    "&>>", ";;&", "<<<", "<<-", "&&", "||", "|&", ";;", ";&", "&>", "<<", ">>", "<>", "<&", ">&",
    ">|", "<(", ">(", "&", "|", ";", "<", ">", "(", ")", "\n",
];

/// A part of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    Word(Word),
    /// Separator of words, including a new line and the beginning of a redirection.
    Operator(&'static str),
    /// The text of a here-document.
    HereDocument(String),
}

/// Why a text has no tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LexError {
    /// It ends inside something.
    CutOff,
    /// It is nested too deeply.
    TooDeep,
    /// It has too many words.
    TooMany,
}

/// The tokens of a text, and what of it is not certain to be read as bash reads it.
#[derive(Debug)]
pub(super) struct Lexed {
    pub(super) tokens: Vec<Token>,
    pub(super) odd: Option<&'static str>,
    /// The texts within odd expansions, which no token has.
    pub(super) skipped: Vec<String>,
}

/// Cuts a text into tokens.
///
/// # Errors
/// When it ends inside a quote, an expansion or a here-document, is nested too deeply, or has too many words.
pub(super) fn lex(text: &str) -> Result<Lexed, LexError> {
    let mut lexer = Lexer::new(text, 0);
    let tokens = lexer.tokens(End::OfText)?;
    Ok(Lexed {
        tokens,
        odd: lexer.odd,
        skipped: lexer.skipped,
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    OfText,
    /// The bracket that closes a substitution.
    Bracket,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Quoting {
    None,
    Double,
}

pub(super) struct Lexer {
    chars: Vec<char>,
    pub(super) at: usize,
    pub(super) depth: usize,
    pub(super) odd: Option<&'static str>,
    pub(super) skipped: Vec<String>,
    pending: Vec<Pending>,
    /// How many tokens were begun, those of substitutions included.
    pub(super) begun: usize,
}

pub(super) type Lexing<T> = Result<T, LexError>;

impl Lexer {
    pub(super) fn new(text: &str, depth: usize) -> Self {
        Self {
            chars: text.chars().collect(),
            at: 0,
            depth,
            odd: None,
            skipped: Vec::new(),
            pending: Vec::new(),
            begun: 0,
        }
    }

    pub(super) fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    pub(super) fn next(&mut self) -> Lexing<char> {
        let c = self.peek(0).ok_or(LexError::CutOff)?;
        self.at += 1;
        Ok(c)
    }

    /// Returns the characters read since.
    pub(super) fn source(&self, from: usize) -> &[char] {
        self.chars.get(from..self.at).unwrap_or_default()
    }

    pub(super) fn odd(&mut self, reason: &'static str) {
        self.odd.get_or_insert(reason);
    }

    pub(super) fn deeper(&mut self) -> Lexing<()> {
        self.depth += 1;
        if self.depth > NESTING_MAX {
            return Err(LexError::TooDeep);
        }
        Ok(())
    }

    /// Reads up to the end, which is taken too.
    pub(super) fn tokens(&mut self, end: End) -> Lexing<Vec<Token>> {
        let mut tokens = Vec::new();
        let mut open = 0_usize;
        loop {
            self.skip_blanks(end)?;
            let Some(c) = self.peek(0) else {
                if end == End::Bracket || !self.pending.is_empty() {
                    return Err(LexError::CutOff);
                }
                return Ok(tokens);
            };
            if c == ')' && open == 0 && end == End::Bracket {
                self.at += 1;
                return Ok(tokens);
            }
            self.begun += 1;
            if self.begun > TOKENS_MAX {
                return Err(LexError::TooMany);
            }
            match self.operator() {
                Some(operator @ ("<(" | ">(")) => {
                    self.at += operator.len();
                    tokens.push(self.process()?);
                }
                Some(operator) => {
                    self.at += operator.len();
                    match operator {
                        "(" => open += 1,
                        ")" => open = open.saturating_sub(1),
                        _ => {}
                    }
                    self.push_operator(operator, end, &mut tokens)?;
                }
                None => self.push_word(end, &mut tokens)?,
            }
        }
    }

    fn operator(&self) -> Option<&'static str> {
        let begins = |operator: &&&str| {
            let mut chars = operator.chars().enumerate();
            chars.all(|(ahead, c)| self.peek(ahead) == Some(c))
        };
        OPERATORS.iter().find(begins).copied()
    }

    /// Skips blanks, comments and continued lines between tokens.
    fn skip_blanks(&mut self, end: End) -> Lexing<()> {
        loop {
            match (self.peek(0), self.peek(1)) {
                (Some(' ' | '\t'), _) => self.at += 1,
                (Some('\\'), Some('\n')) => {
                    // Anywhere else it may join what is before and behind it.
                    let before = self.at.checked_sub(1).and_then(|at| self.chars.get(at));
                    if !matches!(before, Some(' ' | '\t')) || !self.pending.is_empty() {
                        self.odd("it continues a line inside a word");
                    }
                    self.at += 2;
                    if self.peek(0).is_none() {
                        return Err(LexError::CutOff);
                    }
                }
                (Some('#'), _) => {
                    if end == End::Bracket || self.depth > 0 {
                        self.odd("it has a comment in a substitution");
                    }
                    while self.peek(0).is_some_and(|c| c != '\n') {
                        self.at += 1;
                    }
                }
                _ => return Ok(()),
            }
        }
    }

    fn push_word(&mut self, end: End, tokens: &mut Vec<Token>) -> Lexing<()> {
        let from = self.at;
        let word = self.word()?;
        let length = self.at - from;
        if self.source(from).contains(&'\n') && !self.pending.is_empty() {
            self.odd("it has a new line in a word before a here-document");
        }
        if matches!(self.peek(0), Some('<' | '>')) {
            if word.may_name_descriptor() || self.peek(1) == Some('(') {
                self.odd("one of its redirections is not understood");
            }
            if word.is_number() {
                if length <= DESCRIPTOR_DIGITS_MAX {
                    return Ok(());
                }
                self.odd("one of its redirections is not understood");
            }
        }
        if end == End::Bracket && (word.is("case") || word.is("esac")) {
            self.odd("it has a `case` in a substitution");
        }
        tokens.push(Token::Word(word));
        Ok(())
    }

    fn push_operator(
        &mut self,
        operator: &'static str,
        end: End,
        tokens: &mut Vec<Token>,
    ) -> Lexing<()> {
        match operator {
            "<<" | "<<-" => {
                if end == End::Bracket || self.depth > 0 {
                    self.odd("it has a here-document in a substitution");
                }
                let pending = self.delimiter(operator == "<<-", tokens.len())?;
                self.pending.push(pending);
                tokens.push(Token::HereDocument(String::new()));
            }
            "\n" => {
                tokens.push(Token::Operator(operator));
                for pending in std::mem::take(&mut self.pending) {
                    let text = self.here_document(&pending)?;
                    if let Some(token) = tokens.get_mut(pending.index) {
                        *token = Token::HereDocument(text);
                    }
                }
            }
            _ => tokens.push(Token::Operator(operator)),
        }
        Ok(())
    }

    fn process(&mut self) -> Lexing<Token> {
        let mut word = Building::new();
        word.push_process(self.substitution()?);
        if !self.is_at_word_end() {
            self.odd("its process substitution is not understood");
        }
        Ok(Token::Word(word.finish()))
    }

    pub(super) fn is_at_word_end(&self) -> bool {
        matches!(
            self.peek(0),
            None | Some(' ' | '\t' | '\n' | ';' | '&' | '|' | ')')
        )
    }

    /// Reads a substitution, whose opening bracket was taken.
    pub(super) fn substitution(&mut self) -> Lexing<Vec<Token>> {
        self.deeper()?;
        let outer = std::mem::take(&mut self.pending);
        if !outer.is_empty() {
            self.odd("it has a substitution behind a here-document");
        }
        let tokens = self.tokens(End::Bracket)?;
        self.pending = outer;
        self.depth -= 1;
        Ok(tokens)
    }

    pub(super) fn word(&mut self) -> Lexing<Word> {
        let mut word = Building::new();
        while let Some(c) = self.peek(0) {
            match c {
                ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | ')' => break,
                '(' if !word.is_begun() || self.peek(1) == Some(')') => break,
                '(' => {
                    self.odd(if word.is_array() {
                        "its arrays are not understood"
                    } else {
                        "its pattern is not understood"
                    });
                    self.at += 1;
                    self.skip_balanced('(', ')')?;
                    word.push_unknown();
                }
                '\\' => self.escape(&mut word)?,
                '\'' => {
                    self.at += 1;
                    word.push_quoted(&self.up_to('\'')?);
                }
                '"' => {
                    self.at += 1;
                    self.double_quoted(&mut word)?;
                }
                '$' => self.dollar(&mut word, Quoting::None)?,
                '`' => self.backquoted(&mut word, Quoting::None)?,
                _ => {
                    self.at += 1;
                    if may_hold_blank(c) {
                        self.odd("some systems take one of its characters for a blank");
                    }
                    word.push_bare(c);
                }
            }
        }
        if word.may_be_subscript() {
            self.odd("its arrays are not understood");
        }
        Ok(word.finish())
    }

    fn escape(&mut self, word: &mut Building) -> Lexing<()> {
        self.at += 1;
        match self.next()? {
            '\n' => self.odd("it continues a line inside a word"),
            c => word.push_quoted(c.encode_utf8(&mut [0; 4])),
        }
        Ok(())
    }

    fn up_to(&mut self, end: char) -> Lexing<String> {
        let mut text = String::new();
        loop {
            match self.next()? {
                c if c == end => return Ok(text),
                c => text.push(c),
            }
        }
    }

    fn double_quoted(&mut self, word: &mut Building) -> Lexing<()> {
        word.begin_quoted();
        loop {
            match self.peek(0).ok_or(LexError::CutOff)? {
                '"' => {
                    self.at += 1;
                    return Ok(());
                }
                '$' => self.dollar(word, Quoting::Double)?,
                '`' => self.backquoted(word, Quoting::Double)?,
                '\\' => {
                    self.at += 1;
                    match self.next()? {
                        '\n' => self.odd("it continues a line inside a word"),
                        c @ ('$' | '`' | '"' | '\\') => {
                            word.push_quoted(c.encode_utf8(&mut [0; 4]));
                        }
                        c => {
                            word.push_quoted("\\");
                            word.push_quoted(c.encode_utf8(&mut [0; 4]));
                        }
                    }
                }
                c => {
                    self.at += 1;
                    word.push_quoted(c.encode_utf8(&mut [0; 4]));
                }
            }
        }
    }
}

/// Returns `true` for a character with a byte that old versions on some systems take for a blank.
fn may_hold_blank(c: char) -> bool {
    !c.is_ascii()
        && c.encode_utf8(&mut [0; 4])
            .bytes()
            .any(|byte| matches!(byte, 0x85 | 0xa0))
}
