//! Parses tokens into commands, by bash's grammar.
//!
//! Reads each token once and nests no deeper than [`NESTING_MAX`].

use super::NESTING_MAX;
use super::lexer::Token;
use super::words::Word;

/// Commands that are run one after the other.
#[derive(Debug, Default)]
pub(super) struct List(pub(super) Vec<Item>);

/// One of them.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) chain: Chain,
    pub(super) is_background: bool,
}

/// Pipelines of which each hangs on how the one before it ended.
#[derive(Debug)]
pub(super) struct Chain {
    pub(super) first: Pipeline,
    pub(super) rest: Vec<(Link, Pipeline)>,
}

/// How a pipeline hangs on the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Link {
    And,
    Or,
}

/// Commands of which each reads what the one before it writes.
#[derive(Debug)]
pub(super) struct Pipeline {
    pub(super) is_negated: bool,
    pub(super) is_timed: bool,
    pub(super) commands: Vec<Command>,
}

/// One command.
#[derive(Debug)]
pub(super) struct Command {
    pub(super) kind: Kind,
    pub(super) redirects: Vec<Redirect>,
}

#[derive(Debug)]
pub(super) enum Kind {
    Simple {
        assignments: Vec<Word>,
        words: Vec<Word>,
    },
    Group(List),
    Subshell(List),
    If {
        /// Conditions, each with what is run if it holds.
        branches: Vec<(List, List)>,
        otherwise: Option<List>,
    },
    Loop {
        condition: List,
        body: List,
    },
    For {
        words: Vec<Word>,
        body: List,
    },
    Case {
        /// The value and the patterns.
        words: Vec<Word>,
        bodies: Vec<List>,
    },
    Function {
        name: String,
        body: Box<Command>,
    },
    /// Words between `[[` and `]]`.
    Test(Vec<Word>),
}

/// Source of a command's input, or target of its output.
#[derive(Debug)]
pub(super) struct Redirect {
    pub(super) operator: &'static str,
    pub(super) target: Target,
}

#[derive(Debug)]
pub(super) enum Target {
    Word(Word),
    HereDocument(String),
}

/// Why tokens are not a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GrammarError {
    /// They end inside one.
    CutOff,
    /// Nothing that follows could mend it.
    Wrong(&'static str),
}

type Parsed<T> = Result<T, GrammarError>;

const WRONG: GrammarError = GrammarError::Wrong("it cannot be parsed");
const ARITHMETIC: GrammarError = GrammarError::Wrong("its arithmetic is not understood");

/// Words that begin or end something where a command may begin.
const RESERVED: [&str; 22] = [
    "!", "{", "}", "[[", "]]", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for",
    "function", "if", "in", "select", "then", "time", "until", "while",
];

const REDIRECTS: [&str; 10] = ["<", ">", ">>", "<>", "<&", ">&", ">|", "&>", "&>>", "<<<"];

/// Parses a program; nothing at all is one too.
///
/// # Errors
/// When it is none, or what follows would belong to it.
pub(super) fn parse(tokens: &[Token]) -> Parsed<List> {
    parse_with(tokens, false)
}

/// Parses a program as [`parse`] does, with commands of arithmetic, which are taken for tests.
///
/// # Errors
/// When it is none, or what follows would belong to it.
pub(super) fn parse_with_arithmetic(tokens: &[Token]) -> Parsed<List> {
    parse_with(tokens, true)
}

fn parse_with(tokens: &[Token], takes_arithmetic: bool) -> Parsed<List> {
    let mut parser = Parser {
        tokens,
        at: 0,
        depth: 0,
        takes_arithmetic,
    };
    let list = parser.list()?;
    match parser.peek() {
        None => Ok(list),
        Some(_) => Err(WRONG),
    }
}

struct Parser<'t> {
    tokens: &'t [Token],
    at: usize,
    depth: usize,
    takes_arithmetic: bool,
}

impl<'t> Parser<'t> {
    fn peek(&self) -> Option<&'t Token> {
        self.tokens.get(self.at)
    }

    fn operator(&self) -> Option<&'static str> {
        match self.peek() {
            Some(Token::Operator(operator)) => Some(operator),
            _ => None,
        }
    }

    fn take_operator(&mut self, operator: &str) -> bool {
        let is_it = self.operator() == Some(operator);
        self.at += usize::from(is_it);
        is_it
    }

    fn is_word(&self, reserved: &str) -> bool {
        matches!(self.peek(), Some(Token::Word(word)) if word.is(reserved))
    }

    fn take_word(&mut self, reserved: &str) -> bool {
        let is_it = self.is_word(reserved);
        self.at += usize::from(is_it);
        is_it
    }

    fn expect_word(&mut self, reserved: &str) -> Parsed<()> {
        if self.take_word(reserved) {
            Ok(())
        } else {
            Err(self.wrong())
        }
    }

    fn expect_operator(&mut self, operator: &str) -> Parsed<()> {
        if self.take_operator(operator) {
            Ok(())
        } else {
            Err(self.wrong())
        }
    }

    fn any_word(&mut self) -> Parsed<Word> {
        match self.peek() {
            Some(Token::Word(word)) => {
                self.at += 1;
                Ok(word.clone())
            }
            _ => Err(self.wrong()),
        }
    }

    fn wrong(&self) -> GrammarError {
        match self.peek() {
            None => GrammarError::CutOff,
            Some(_) => WRONG,
        }
    }

    fn skip_lines(&mut self) {
        while self.take_operator("\n") {}
    }

    /// `true` if a list ends here.
    fn is_end(&self) -> bool {
        match self.peek() {
            None | Some(Token::Operator(")" | ";;" | ";&" | ";;&")) => true,
            Some(Token::Word(word)) => ["}", "do", "done", "elif", "else", "esac", "fi", "then"]
                .iter()
                .any(|end| word.is(end)),
            Some(_) => false,
        }
    }

    fn list(&mut self) -> Parsed<List> {
        self.depth += 1;
        if self.depth > NESTING_MAX {
            return Err(GrammarError::Wrong(super::TOO_DEEP));
        }
        let mut list = List::default();
        self.skip_lines();
        while !self.is_end() {
            let chain = self.chain()?;
            let is_background = self.take_operator("&");
            let is_separated = is_background || self.take_operator(";");
            list.0.push(Item {
                chain,
                is_background,
            });
            if !is_separated && self.operator() != Some("\n") {
                break;
            }
            self.skip_lines();
        }
        self.depth -= 1;
        Ok(list)
    }

    /// A list of which something has to be there.
    fn full_list(&mut self) -> Parsed<List> {
        let list = self.list()?;
        if list.0.is_empty() {
            return Err(self.wrong());
        }
        Ok(list)
    }

    fn chain(&mut self) -> Parsed<Chain> {
        let first = self.pipeline()?;
        let mut rest = Vec::new();
        loop {
            let link = if self.take_operator("&&") {
                Link::And
            } else if self.take_operator("||") {
                Link::Or
            } else {
                return Ok(Chain { first, rest });
            };
            self.skip_lines();
            rest.push((link, self.pipeline()?));
        }
    }

    fn pipeline(&mut self) -> Parsed<Pipeline> {
        let mut is_negated = false;
        let mut is_timed = false;
        loop {
            if self.take_word("!") {
                is_negated = !is_negated;
            } else if self.take_word("time") {
                is_timed = true;
                self.take_word("-p");
                let is_option = matches!(self.peek(), Some(Token::Word(word))
                    if word.value.text().is_none_or(|text| text.starts_with('-')));
                if is_option {
                    return Err(GrammarError::Wrong(
                        "the command after `time` is not understood",
                    ));
                }
            } else {
                break;
            }
        }
        let mut commands = vec![self.command()?];
        loop {
            let joins_errors = self.take_operator("|&");
            if !joins_errors && !self.take_operator("|") {
                break;
            }
            self.skip_lines();
            commands.push(self.command()?);
        }
        Ok(Pipeline {
            is_negated,
            is_timed,
            commands,
        })
    }

    fn command(&mut self) -> Parsed<Command> {
        let kind = match self.peek() {
            Some(Token::Operator("(")) => self.subshell()?,
            Some(Token::Word(word)) => match RESERVED.iter().find(|name| word.is(name)) {
                Some(name) => {
                    self.at += 1;
                    self.compound(name)?
                }
                None => return self.simple(),
            },
            Some(_) => return self.simple(),
            None => return Err(GrammarError::CutOff),
        };
        let redirects = self.redirects()?;
        Ok(Command { kind, redirects })
    }

    fn compound(&mut self, name: &str) -> Parsed<Kind> {
        match name {
            "{" => {
                let list = self.full_list()?;
                self.expect_word("}")?;
                Ok(Kind::Group(list))
            }
            "if" => self.branches(),
            "while" | "until" => {
                let condition = self.full_list()?;
                let body = self.body()?;
                Ok(Kind::Loop { condition, body })
            }
            "for" => self.for_loop(),
            "case" => self.case(),
            "function" => {
                let name = self.any_word()?.written;
                if self.take_operator("(") {
                    self.expect_operator(")")?;
                }
                self.function(name)
            }
            "[[" => self.test(),
            "select" | "coproc" => Err(GrammarError::Wrong(
                "`select` and `coproc` are not understood",
            )),
            _ => Err(WRONG),
        }
    }

    fn subshell(&mut self) -> Parsed<Kind> {
        self.at += 1;
        if self.operator() == Some("(") {
            return self.arithmetic().map(Kind::Test);
        }
        let list = self.full_list()?;
        self.expect_operator(")")?;
        Ok(Kind::Subshell(list))
    }

    /// Reads arithmetic from its second opening bracket to its second closing one.
    fn arithmetic(&mut self) -> Parsed<Vec<Word>> {
        if !self.takes_arithmetic {
            return Err(ARITHMETIC);
        }
        let (mut words, mut open) = (Vec::new(), 1_usize);
        while open > 0 {
            match self.peek() {
                Some(Token::Word(word)) => words.push(word.clone()),
                Some(Token::Operator("(")) => open += 1,
                Some(Token::Operator(")")) => open -= 1,
                Some(_) => {}
                None => return Err(GrammarError::CutOff),
            }
            self.at += 1;
        }
        Ok(words)
    }

    fn branches(&mut self) -> Parsed<Kind> {
        let mut branches = Vec::new();
        loop {
            let condition = self.full_list()?;
            self.expect_word("then")?;
            branches.push((condition, self.full_list()?));
            if !self.take_word("elif") {
                break;
            }
        }
        let otherwise = match self.take_word("else") {
            true => Some(self.full_list()?),
            false => None,
        };
        self.expect_word("fi")?;
        Ok(Kind::If {
            branches,
            otherwise,
        })
    }

    fn body(&mut self) -> Parsed<List> {
        self.expect_word("do")?;
        let body = self.full_list()?;
        self.expect_word("done")?;
        Ok(body)
    }

    fn for_loop(&mut self) -> Parsed<Kind> {
        let mut words = Vec::new();
        if self.take_operator("(") {
            words = self.arithmetic()?;
            self.take_operator(";");
            self.skip_lines();
            let body = self.body()?;
            return Ok(Kind::For { words, body });
        }
        words.push(self.any_word()?);
        self.skip_lines();
        if self.take_word("in") {
            while let Some(Token::Word(word)) = self.peek() {
                self.at += 1;
                words.push(word.clone());
            }
            if !self.take_operator(";") && self.operator() != Some("\n") {
                return Err(self.wrong());
            }
        } else {
            self.take_operator(";");
        }
        self.skip_lines();
        let body = self.body()?;
        Ok(Kind::For { words, body })
    }

    fn case(&mut self) -> Parsed<Kind> {
        let mut words = vec![self.any_word()?];
        self.skip_lines();
        self.expect_word("in")?;
        self.skip_lines();
        let mut bodies = Vec::new();
        while !self.take_word("esac") {
            self.take_operator("(");
            words.push(self.any_word()?);
            while self.take_operator("|") {
                words.push(self.any_word()?);
            }
            self.expect_operator(")")?;
            bodies.push(self.list()?);
            let goes_on = [";;", ";&", ";;&"]
                .iter()
                .any(|operator| self.take_operator(operator));
            self.skip_lines();
            if !goes_on {
                self.expect_word("esac")?;
                break;
            }
        }
        Ok(Kind::Case { words, bodies })
    }

    fn function(&mut self, name: String) -> Parsed<Kind> {
        self.skip_lines();
        self.depth += 1;
        if self.depth > NESTING_MAX {
            return Err(GrammarError::Wrong(super::TOO_DEEP));
        }
        let body = self.command()?;
        self.depth -= 1;
        if matches!(body.kind, Kind::Simple { .. }) {
            return Err(WRONG);
        }
        let body = Box::new(body);
        Ok(Kind::Function { name, body })
    }

    fn test(&mut self) -> Parsed<Kind> {
        let mut words = Vec::new();
        while !self.take_word("]]") {
            let is_joint = ["&&", "||", "(", ")", "<", ">", "\n"]
                .iter()
                .any(|operator| self.take_operator(operator));
            if !is_joint {
                words.push(self.any_word()?);
            }
        }
        Ok(Kind::Test(words))
    }

    fn simple(&mut self) -> Parsed<Command> {
        let (mut assignments, mut words) = (Vec::new(), Vec::new());
        let mut redirects = Vec::new();
        let from = self.at;
        loop {
            if let Some(redirect) = self.redirect()? {
                redirects.push(redirect);
                continue;
            }
            let Some(Token::Word(word)) = self.peek() else {
                break;
            };
            self.at += 1;
            if words.is_empty() && word.is_assignment() {
                assignments.push(word.clone());
            } else {
                words.push(word.clone());
            }
        }
        if self.operator() == Some("(") {
            return self.named_function(&words, self.at == from + 1);
        }
        if self.at == from {
            return Err(self.wrong());
        }
        Ok(Command {
            kind: Kind::Simple { assignments, words },
            redirects,
        })
    }

    fn named_function(&mut self, words: &[Word], is_alone: bool) -> Parsed<Command> {
        self.at += 1;
        let name = match words {
            [word] if is_alone && word.value.text().is_some() => word.written.clone(),
            _ => return Err(WRONG),
        };
        self.expect_operator(")")?;
        let kind = self.function(name)?;
        Ok(Command {
            kind,
            redirects: Vec::new(),
        })
    }

    fn redirects(&mut self) -> Parsed<Vec<Redirect>> {
        let mut redirects = Vec::new();
        while let Some(redirect) = self.redirect()? {
            redirects.push(redirect);
        }
        Ok(redirects)
    }

    fn redirect(&mut self) -> Parsed<Option<Redirect>> {
        let (operator, target) = match self.peek() {
            Some(Token::HereDocument(text)) => {
                self.at += 1;
                ("<<", Target::HereDocument(text.clone()))
            }
            Some(Token::Operator(operator)) if REDIRECTS.contains(operator) => {
                self.at += 1;
                (*operator, Target::Word(self.any_word()?))
            }
            _ => return Ok(None),
        };
        Ok(Some(Redirect { operator, target }))
    }
}
