//! Lists the simple commands of a command, each with the directory that it runs in.
//!
//! Unlike the analysis, which refuses what not every bash reads in the same way, this reads as much as it can. It may be
//! wrong about odd commands, so it decides only where something else holds: the kernel's sandbox, or a question.

use super::grammar::{
    self, Chain, Command, GrammarError, Item, Kind, List, Pipeline, Redirect, Target,
};
use super::lexer::{self, Token};
use super::words::{Value, Word};
use super::{COMMANDS_MAX, NESTING_MAX};
use crate::unix::without_dots;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// A simple command, and where it runs.
#[derive(Debug, Clone)]
pub(crate) struct Placed {
    /// Words of the command.
    pub(super) words: Vec<Word>,
    /// The directory that it runs in; `None` if that is not known.
    pub(super) directory: Option<PathBuf>,
}

/// A file that a redirection names.
#[derive(Debug, Clone)]
pub(super) struct Redirected {
    pub(super) operator: &'static str,
    pub(super) word: Word,
    pub(super) directory: Option<PathBuf>,
}

/// Parts of a command.
#[derive(Debug, Default)]
pub(crate) struct Survey {
    /// The simple commands, those of substitutions and functions included.
    pub(crate) commands: Vec<Placed>,
    pub(super) redirected: Vec<Redirected>,
    /// The words of assignments.
    pub(super) assignments: Vec<Word>,
    /// The names of its functions.
    pub(super) functions: HashSet<String>,
    /// The names of variables that it gives a value.
    pub(super) assigned: HashSet<String>,
    /// The names of variables that it uses.
    pub(super) used: HashSet<String>,
    /// The text of here-documents.
    pub(super) documents: Vec<String>,
    /// The words of loops, cases and tests.
    pub(super) others: Vec<Placed>,
}

impl Placed {
    /// Returns the words: their values if these are known, and else as they are written.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        self.words.iter().map(text_of)
    }
}

impl Placed {
    /// Returns the directory that it runs in; `None` if that is not known.
    pub(crate) fn directory(&self) -> Option<&Path> {
        self.directory.as_deref()
    }
}

/// Returns the value of a word if it is known, and else how it is written.
pub(super) fn text_of(word: &Word) -> &str {
    match &word.value {
        Value::Text(text) | Value::Pattern(text) => text,
        Value::Harmless | Value::Dynamic => &word.written,
    }
}

impl Survey {
    /// Reads a command that runs in a directory.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(crate) fn new(
        command: &str,
        directory: &Path,
        home: Option<&Path>,
    ) -> Result<Self, &'static str> {
        let mut visit = Visit {
            found: Self::default(),
            home,
            depth: 0,
        };
        visit.text(command, &mut Some(directory.to_owned()))?;
        Ok(visit.found)
    }
}

impl Survey {
    /// Returns the files that redirections name, and the words of loops, each with the directory from which it is read.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, Option<&Path>)> {
        let redirected = self.redirected.iter().filter(|it| it.operator != "<<<");
        let redirected = redirected.map(|it| (text_of(&it.word), it.directory.as_deref()));
        let others = self.others.iter();
        let others = others.flat_map(|it| {
            it.words
                .iter()
                .map(|word| (text_of(word), it.directory.as_deref()))
        });
        redirected.chain(others)
    }
}

struct Visit<'a> {
    found: Survey,
    home: Option<&'a Path>,
    depth: usize,
}

type Visited = Result<(), &'static str>;
/// Directory of the shell; `None` if it is not known.
type At = Option<PathBuf>;

const NOT_READ: &str = "it cannot be read";

impl Visit<'_> {
    fn text(&mut self, text: &str, at: &mut At) -> Visited {
        let lexed = lexer::lex(text).map_err(|_| NOT_READ)?;
        self.tokens(&lexed.tokens, at)?;
        for skipped in &lexed.skipped {
            self.skipped(skipped, at)?;
        }
        Ok(())
    }

    /// Looks for the commands in the text of an expansion.
    fn skipped(&mut self, text: &str, at: &At) -> Visited {
        if !text.contains(['$', '`']) {
            return Ok(());
        }
        self.deeper()?;
        let lexed = lexer::lex(text).map_err(|_| NOT_READ)?;
        for token in &lexed.tokens {
            if let Token::Word(word) = token {
                self.word(word, at)?;
            }
        }
        for skipped in &lexed.skipped {
            self.skipped(skipped, at)?;
        }
        self.depth -= 1;
        Ok(())
    }

    fn deeper(&mut self) -> Visited {
        self.depth += 1;
        match self.depth > NESTING_MAX {
            true => Err(NOT_READ),
            false => Ok(()),
        }
    }

    fn tokens(&mut self, tokens: &[Token], at: &mut At) -> Visited {
        self.deeper()?;
        let list = grammar::parse_with_arithmetic(tokens).map_err(|err| match err {
            GrammarError::CutOff => NOT_READ,
            GrammarError::Wrong(reason) => reason,
        })?;
        self.list(&list, at)?;
        self.depth -= 1;
        Ok(())
    }

    fn list(&mut self, list: &List, at: &mut At) -> Visited {
        list.0.iter().try_for_each(|item: &Item| match item {
            Item {
                chain,
                is_background: true,
            } => self.chain(chain, &mut at.clone()),
            Item { chain, .. } => self.chain(chain, at),
        })
    }

    fn chain(&mut self, chain: &Chain, at: &mut At) -> Visited {
        self.pipeline(&chain.first, at)?;
        chain
            .rest
            .iter()
            .try_for_each(|(_, next)| self.pipeline(next, at))
    }

    fn pipeline(&mut self, pipeline: &Pipeline, at: &mut At) -> Visited {
        match pipeline.commands.as_slice() {
            [command] => self.command(command, at),
            commands => commands
                .iter()
                .try_for_each(|command| self.command(command, &mut at.clone())),
        }
    }

    fn command(&mut self, command: &Command, at: &mut At) -> Visited {
        for redirect in &command.redirects {
            self.redirect(redirect, at)?;
        }
        match &command.kind {
            Kind::Simple { assignments, words } => self.simple(assignments, words, at),
            Kind::Group(list) => self.list(list, at),
            Kind::Subshell(list) => self.list(list, &mut at.clone()),
            Kind::If {
                branches,
                otherwise,
            } => {
                for (condition, body) in branches {
                    self.list(condition, at)?;
                    self.apart(body, at)?;
                }
                otherwise.iter().try_for_each(|list| self.apart(list, at))
            }
            Kind::Loop { condition, body } => {
                self.list(condition, at)?;
                self.repeated(body, at)
            }
            Kind::For { words, body } => {
                let name = words
                    .first()
                    .and_then(|word| word.written.split('=').next());
                self.found.assigned.extend(name.map(str::to_owned));
                self.words(words, at)?;
                self.repeated(body, at)
            }
            Kind::Case { words, bodies } => {
                self.words(words, at)?;
                bodies.iter().try_for_each(|body| self.apart(body, at))
            }
            Kind::Function { name, body } => {
                self.found.functions.insert(name.clone());
                self.command(body, &mut None)
            }
            Kind::Test(words) => self.words(words, at),
        }
    }

    /// Reads commands that may or may not run: if they change the directory, it is not known afterwards.
    fn apart(&mut self, list: &List, at: &mut At) -> Visited {
        let before = at.clone();
        self.list(list, at)?;
        if *at != before {
            *at = None;
        }
        Ok(())
    }

    /// Reads commands that may run more than once.
    fn repeated(&mut self, list: &List, at: &mut At) -> Visited {
        let before = at.clone();
        let commands = self.found.commands.len();
        self.list(list, at)?;
        if *at != before {
            *at = None;
            let again = self.found.commands.iter_mut().skip(commands);
            again.for_each(|placed| placed.directory = None);
        }
        Ok(())
    }

    fn words(&mut self, words: &[Word], at: &At) -> Visited {
        self.found.others.push(Placed {
            words: words.to_vec(),
            directory: at.clone(),
        });
        words.iter().try_for_each(|word| self.word(word, at))
    }

    fn word(&mut self, word: &Word, at: &At) -> Visited {
        self.found.used.extend(word.variables.iter().cloned());
        word.substitutions
            .iter()
            .try_for_each(|tokens| self.tokens(tokens, &mut at.clone()))
    }

    fn simple(&mut self, assignments: &[Word], words: &[Word], at: &mut At) -> Visited {
        for word in assignments {
            self.word(word, at)?;
            let name = word.assigned_name().map(str::to_owned);
            self.found.assigned.extend(name);
            self.found.assignments.push(word.clone());
        }
        for word in words {
            self.word(word, at)?;
        }
        let Some(first) = words.first() else {
            return Ok(());
        };
        if self.found.commands.len() >= COMMANDS_MAX {
            return Err("it has too many commands to be judged");
        }
        self.found.commands.push(Placed {
            words: words.to_vec(),
            directory: at.clone(),
        });
        match first.value.text() {
            Some("cd" | "pushd") => *at = self.entered(words, at),
            Some("popd") => *at = None,
            _ => {}
        }
        Ok(())
    }

    /// Returns the place after `cd`.
    fn entered(&self, words: &[Word], at: &At) -> At {
        let mut operands = words
            .iter()
            .skip(1)
            .filter(|word| !matches!(word.value.text(), Some("-P" | "-L" | "--" | "-e")));
        match operands.next() {
            None => self.home.map(Path::to_owned),
            Some(word) => resolved(&word.value, &word.written, at.as_deref(), self.home),
        }
    }

    fn redirect(&mut self, redirect: &Redirect, at: &At) -> Visited {
        match &redirect.target {
            Target::HereDocument(text) => self.found.documents.push(text.clone()),
            Target::Word(word) => {
                self.word(word, at)?;
                self.found.redirected.push(Redirected {
                    operator: redirect.operator,
                    word: word.clone(),
                    directory: at.clone(),
                });
            }
        }
        Ok(())
    }
}

/// Returns the path that a word stands for in a directory, without looking at links; none if it is not known.
pub(super) fn resolved(
    value: &Value,
    written: &str,
    directory: Option<&Path>,
    home: Option<&Path>,
) -> Option<PathBuf> {
    let in_home = ["~", "$HOME"]
        .iter()
        .find_map(|it| written.strip_prefix(it))
        .filter(|rest| rest.is_empty() || rest.starts_with('/'));
    let path = match (in_home, value) {
        (Some(rest), Value::Dynamic | Value::Harmless | Value::Text(_)) => {
            home?.join(rest.trim_start_matches('/'))
        }
        (_, Value::Text(text) | Value::Pattern(text)) if text.starts_with('/') => text.into(),
        (_, Value::Text(text) | Value::Pattern(text)) => directory?.join(text),
        (_, Value::Harmless | Value::Dynamic) => return None,
    };
    let has_variable = path.to_string_lossy().contains('$');
    (!has_variable).then(|| without_dots(&path))
}

/// Returns the path that a text stands for in a directory, without looking at links; `None` if it is not known.
pub(crate) fn resolve_text(text: &str, directory: &Path, home: Option<&Path>) -> Option<PathBuf> {
    let value = Value::Text(text.to_owned());
    resolved(&value, text, Some(directory), home)
}
