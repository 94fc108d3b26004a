//! One pass over the syntax tree, down into every substitution.

use super::paths::AllowedDirs;
use super::words::{self, Expansion, Value};
use super::{Judgement, NESTING_MAX, guard, programs};
use brush_parser::Parser;
use brush_parser::ast::{
    AndOr, AndOrList, Assignment, AssignmentName, AssignmentValue, BinaryPredicate, Command,
    CommandPrefixOrSuffixItem, CompoundCommand, CompoundList, ExtendedTestExpr, IoFileRedirectKind,
    IoFileRedirectTarget, IoHereDocument, IoRedirect, Pipeline, SeparatorOperator, SimpleCommand,
    UnaryPredicate, Word,
};

/// What was found in a command, and in everything it runs.
#[derive(Debug, Default)]
pub(crate) struct Analysis {
    simple: Vec<Simple>,
    /// Input of commands: here-documents and here-strings.
    inputs: Vec<String>,
    effect: Option<String>,
    unknown: Option<String>,
    has_dynamic_word: bool,
}

/// One simple command.
#[derive(Debug)]
struct Simple {
    words: Vec<Value>,
    /// Why it is not read-only, if it is not.
    effect: Option<String>,
}

impl Analysis {
    /// Nothing was found because it could not be looked for.
    pub(crate) fn unknown(reason: &str) -> Self {
        Self {
            unknown: Some(reason.to_owned()),
            ..Self::default()
        }
    }

    /// Sums up.
    pub(crate) fn judgement(&self) -> Judgement {
        if let Some(reason) = &self.unknown {
            return Judgement::Unknown {
                reason: reason.clone(),
            };
        }
        let simple = || self.simple.iter().find_map(|simple| simple.effect.as_ref());
        match self.effect.as_ref().or_else(simple) {
            None => Judgement::ReadOnly,
            Some(reason) => Judgement::Effects {
                reason: reason.clone(),
                commands: self.names(),
            },
        }
    }

    /// Returns whether every simple command fits, and nothing else about the command has effects.
    ///
    /// `fits` gets the words of each one up to the first that is not known.
    pub(crate) fn all_fit(&self, fits: impl Fn(&[&str]) -> bool) -> bool {
        self.unknown.is_none()
            && self.effect.is_none()
            && self
                .simple
                .iter()
                .all(|simple| simple.effect.is_none() || fits(&simple.known_words()))
    }

    /// Returns whether one simple command fits; see [`Self::all_fit`].
    pub(crate) fn any_fits(&self, fits: impl Fn(&[&str]) -> bool) -> bool {
        self.simple.iter().any(|simple| fits(&simple.known_words()))
    }

    /// Returns the base names of all programs, those that are named to other programs included.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        let mut add = |name: &str| {
            let base = name.rsplit('/').next().unwrap_or(name);
            if !base.is_empty() && !names.iter().any(|known| known == base) {
                names.push(base.to_owned());
            }
        };
        for simple in &self.simple {
            simple.name().into_iter().for_each(&mut add);
        }
        if self.runs_others() {
            for text in self.texts() {
                programs::tokens(text).for_each(|token| add(&token));
            }
        }
        names
    }

    /// Returns whether the programs that will run are all among [`Self::names`], as far as that
    /// can be told: not where unknown text goes to a program that runs other programs.
    pub(crate) fn has_hidden_names(&self) -> bool {
        self.unknown.is_some()
            || self.simple.iter().any(|simple| simple.name().is_none())
            || self.simple.iter().any(Simple::reads_program_from_stdin)
            || (self.runs_others() && self.has_dynamic_word)
    }

    /// Returns whether a program is named to another one that runs programs.
    pub(crate) fn runs_named(&self, program: &str) -> bool {
        self.runs_others() && self.names().iter().any(|name| name == program)
    }

    fn runs_others(&self) -> bool {
        self.simple
            .iter()
            .filter_map(Simple::name)
            .any(programs::runs_others)
    }

    fn texts(&self) -> impl Iterator<Item = &str> {
        let words = self.simple.iter().flat_map(|simple| &simple.words);
        let words = words.filter_map(|word| match word {
            Value::Text(text) | Value::Pattern(text) => Some(text.as_str()),
            Value::Shown | Value::Dynamic => None,
        });
        words.chain(self.inputs.iter().map(String::as_str))
    }
}

impl Simple {
    fn name(&self) -> Option<&str> {
        self.words.first().and_then(Value::text)
    }

    fn known_words(&self) -> Vec<&str> {
        self.words.iter().map_while(Value::text).collect()
    }

    fn reads_program_from_stdin(&self) -> bool {
        self.name().is_some_and(programs::is_interpreter)
            && self
                .words
                .iter()
                .skip(1)
                .all(|word| word.text().is_some_and(|text| text.starts_with('-')))
    }
}

/// Parses and walks a command that passed the guard.
pub(super) fn analyse(command: &str, dirs: &AllowedDirs) -> Analysis {
    let mut walk = Walk {
        dirs,
        found: Analysis::default(),
        depth: 0,
    };
    if !dirs.contains(dirs.current()) {
        walk.effect("it runs outside the allowed directories");
    }
    if let Err(reason) = walk.source(command) {
        walk.found.unknown = Some(reason.to_owned());
    }
    walk.found
}

struct Walk<'a> {
    dirs: &'a AllowedDirs,
    found: Analysis,
    depth: usize,
}

type Walked = Result<(), &'static str>;

impl Walk<'_> {
    fn source(&mut self, command: &str) -> Walked {
        guard::check(command)?;
        if self.depth >= NESTING_MAX {
            return Err("it is nested too deeply to be judged");
        }
        self.depth += 1;
        let program = Parser::new(command.as_bytes(), &words::parser_options())
            .parse_program()
            .map_err(|_| "it cannot be parsed")?;
        for list in &program.complete_commands {
            self.list(list)?;
        }
        self.depth -= 1;
        Ok(())
    }

    fn effect(&mut self, reason: &str) {
        self.found.effect.get_or_insert_with(|| reason.to_owned());
    }

    fn list(&mut self, list: &CompoundList) -> Walked {
        for item in &list.0 {
            if matches!(item.1, SeparatorOperator::Async) {
                self.effect("it runs something in the background");
            }
            self.and_or(&item.0)?;
        }
        Ok(())
    }

    fn and_or(&mut self, list: &AndOrList) -> Walked {
        self.pipeline(&list.first)?;
        for next in &list.additional {
            let (AndOr::And(pipeline) | AndOr::Or(pipeline)) = next;
            self.pipeline(pipeline)?;
        }
        Ok(())
    }

    fn pipeline(&mut self, pipeline: &Pipeline) -> Walked {
        if pipeline.timed.is_some() {
            return Err("the command after `time` is not understood");
        }
        pipeline
            .seq
            .iter()
            .try_for_each(|command| self.command(command))
    }

    fn command(&mut self, command: &Command) -> Walked {
        match command {
            Command::Simple(simple) => self.simple(simple),
            Command::Compound(compound, redirects) => {
                self.compound(compound)?;
                self.redirects(redirects.iter().flat_map(|list| &list.0))
            }
            Command::Function(function) => {
                self.effect("it defines a function");
                self.compound(&function.body.0)?;
                self.redirects(function.body.1.iter().flat_map(|list| &list.0))
            }
            Command::ExtendedTest(test, redirects) => {
                self.test(&test.expr)?;
                self.redirects(redirects.iter().flat_map(|list| &list.0))
            }
        }
    }

    fn compound(&mut self, compound: &CompoundCommand) -> Walked {
        match compound {
            CompoundCommand::BraceGroup(group) => self.list(&group.list),
            CompoundCommand::Subshell(subshell) => self.list(&subshell.list),
            CompoundCommand::IfClause(clause) => {
                self.list(&clause.condition)?;
                self.list(&clause.then)?;
                for branch in clause.elses.iter().flatten() {
                    branch
                        .condition
                        .iter()
                        .try_for_each(|list| self.list(list))?;
                    self.list(&branch.body)?;
                }
                Ok(())
            }
            CompoundCommand::WhileClause(clause) | CompoundCommand::UntilClause(clause) => {
                self.list(&clause.0)?;
                self.list(&clause.1.list)
            }
            CompoundCommand::ForClause(clause) => {
                self.effect("it assigns a variable");
                for word in clause.values.iter().flatten() {
                    self.word(word)?;
                }
                self.list(&clause.body.list)
            }
            CompoundCommand::CaseClause(clause) => {
                self.effect("it branches on a value");
                self.word(&clause.value)?;
                for case in &clause.cases {
                    for pattern in &case.patterns {
                        self.word(pattern)?;
                    }
                    case.cmd.iter().try_for_each(|list| self.list(list))?;
                }
                Ok(())
            }
            CompoundCommand::Coprocess(process) => {
                self.effect("it runs something in the background");
                self.command(&process.body)
            }
            CompoundCommand::Arithmetic(_) | CompoundCommand::ArithmeticForClause(_) => {
                Err("its arithmetic is not understood")
            }
        }
    }

    fn test(&mut self, test: &ExtendedTestExpr) -> Walked {
        self.effect("it tests a condition");
        match test {
            ExtendedTestExpr::And(one, other) | ExtendedTestExpr::Or(one, other) => {
                self.test(one)?;
                self.test(other)
            }
            ExtendedTestExpr::Not(inner) | ExtendedTestExpr::Parenthesized(inner) => {
                self.test(inner)
            }
            ExtendedTestExpr::UnaryTest(
                UnaryPredicate::ShellVariableIsSetAndAssigned
                | UnaryPredicate::ShellVariableIsSetAndNameRef,
                _,
            )
            | ExtendedTestExpr::BinaryTest(
                BinaryPredicate::ArithmeticEqualTo
                | BinaryPredicate::ArithmeticNotEqualTo
                | BinaryPredicate::ArithmeticLessThan
                | BinaryPredicate::ArithmeticLessThanOrEqualTo
                | BinaryPredicate::ArithmeticGreaterThan
                | BinaryPredicate::ArithmeticGreaterThanOrEqualTo,
                _,
                _,
            ) => Err("its arithmetic is not understood"),
            ExtendedTestExpr::UnaryTest(_, word) => self.word(word).map(drop),
            ExtendedTestExpr::BinaryTest(_, one, other) => {
                self.word(one)?;
                self.word(other).map(drop)
            }
        }
    }

    fn simple(&mut self, command: &SimpleCommand) -> Walked {
        let mut values = Vec::new();
        for item in command.prefix.iter().flat_map(|prefix| &prefix.0) {
            self.item(item, true, &mut values)?;
        }
        if let Some(name) = &command.word_or_name {
            values.push(self.word(name)?);
        }
        for item in command.suffix.iter().flat_map(|suffix| &suffix.0) {
            self.item(item, false, &mut values)?;
        }
        if !values.is_empty() {
            let effect = programs::check(&values, self.dirs).err();
            self.found.simple.push(Simple {
                words: values,
                effect,
            });
        }
        Ok(())
    }

    fn item(
        &mut self,
        item: &CommandPrefixOrSuffixItem,
        is_prefix: bool,
        values: &mut Vec<Value>,
    ) -> Walked {
        match item {
            CommandPrefixOrSuffixItem::IoRedirect(redirect) => self.redirect(redirect)?,
            CommandPrefixOrSuffixItem::Word(word) => values.push(self.word(word)?),
            CommandPrefixOrSuffixItem::AssignmentWord(assignment, _) if is_prefix => {
                self.assignment(assignment)?;
            }
            CommandPrefixOrSuffixItem::AssignmentWord(assignment, word) => {
                if matches!(assignment.value, AssignmentValue::Array(_)) {
                    return Err("its arrays are not understood");
                }
                values.push(self.word(word)?);
            }
            CommandPrefixOrSuffixItem::ProcessSubstitution(_, subshell) => {
                self.effect("it substitutes a process");
                values.push(Value::Dynamic);
                self.found.has_dynamic_word = true;
                self.list(&subshell.list)?;
            }
        }
        Ok(())
    }

    fn assignment(&mut self, assignment: &Assignment) -> Walked {
        let (AssignmentName::VariableName(name), AssignmentValue::Scalar(word)) =
            (&assignment.name, &assignment.value)
        else {
            return Err("its arrays are not understood");
        };
        let value = self.word(word)?;
        let is_locale = matches!(name.as_str(), "LC_ALL" | "LANG");
        let is_plain = value.text().is_some_and(|text| {
            text.chars()
                .all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
        });
        if !(is_locale && is_plain && !assignment.append) {
            self.effect("it assigns a variable");
        }
        Ok(())
    }

    fn redirects<'r>(&mut self, redirects: impl Iterator<Item = &'r IoRedirect>) -> Walked {
        for redirect in redirects {
            self.redirect(redirect)?;
        }
        Ok(())
    }

    fn redirect(&mut self, redirect: &IoRedirect) -> Walked {
        match redirect {
            IoRedirect::File(_, kind, target) => self.file_redirect(kind, target),
            IoRedirect::OutputAndError(word, _) => {
                let value = self.word(word)?;
                self.output_file(&value);
                Ok(())
            }
            IoRedirect::HereString(_, word) => {
                match self.word(word)? {
                    Value::Text(text) | Value::Pattern(text) => self.found.inputs.push(text),
                    Value::Shown => {}
                    Value::Dynamic => self.effect("its input is not known"),
                }
                Ok(())
            }
            IoRedirect::HereDocument(_, document) => self.here_document(document),
        }
    }

    fn here_document(&mut self, document: &IoHereDocument) -> Walked {
        let text = document.doc.value.as_str();
        if document.requires_expansion && text.contains(['$', '`', '\\']) {
            return Err("the expansions of a here-document are not understood");
        }
        self.found.inputs.push(text.to_owned());
        Ok(())
    }

    fn file_redirect(
        &mut self,
        kind: &IoFileRedirectKind,
        target: &IoFileRedirectTarget,
    ) -> Walked {
        let word = match target {
            IoFileRedirectTarget::Fd(_) => return Ok(()),
            IoFileRedirectTarget::ProcessSubstitution(_, subshell) => {
                self.effect("it substitutes a process");
                return self.list(&subshell.list);
            }
            IoFileRedirectTarget::Filename(word) | IoFileRedirectTarget::Duplicate(word) => word,
        };
        let value = self.word(word)?;
        match kind {
            IoFileRedirectKind::Write
            | IoFileRedirectKind::Append
            | IoFileRedirectKind::Clobber
            | IoFileRedirectKind::ReadAndWrite => self.output_file(&value),
            IoFileRedirectKind::Read => {
                let known = value.text().ok_or_else(|| "an unknown file".to_owned());
                if known.and_then(|path| self.dirs.check(path)).is_err() {
                    self.effect("it reads a file that may lie outside the allowed directories");
                }
            }
            IoFileRedirectKind::DuplicateInput | IoFileRedirectKind::DuplicateOutput => {
                let is_number = |text: &str| {
                    text == "-" || (!text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()))
                };
                if !value.text().is_some_and(is_number) {
                    self.effect("it may write to a file");
                }
            }
        }
        Ok(())
    }

    fn output_file(&mut self, value: &Value) {
        if value.text() != Some("/dev/null") {
            self.effect("it writes to a file");
        }
    }

    fn word(&mut self, word: &Word) -> Result<Value, &'static str> {
        let Expansion {
            value,
            substitutions,
        } = words::expand(&word.value)?;
        for command in &substitutions {
            self.source(command)?;
        }
        self.found.has_dynamic_word |= matches!(value, Value::Dynamic | Value::Shown);
        Ok(value)
    }
}
