//! Visits every simple command of a command, substitutions included, in one pass.

use super::found::{Analysis, Simple};
use super::grammar::{
    self, Chain, Command, GrammarError, Kind, Link, List, Pipeline, Redirect, Target,
};
use super::lexer::{self, LexError, Token};
use super::paths::AllowedDirs;
use super::places::{Ends, Places};
use super::words::{Value, Word};
use super::{
    COMMANDS_MAX, NESTING_MAX, PATTERNS_MAX, REPOSITORIES_MAX, TOO_DEEP, programs, wrappers,
};

/// Tests in `[[` whose words are evaluated, as numbers or as names.
const EVALUATING_TESTS: [&str; 9] = ["-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-v", "-R", "=~"];

/// Parses and walks a command.
pub(super) fn analyse(command: &str, dirs: &AllowedDirs) -> Analysis {
    let mut walk = Walk {
        found: Analysis::default(),
        depth: 0,
        patterns: 0,
        repositories: 0,
        is_lost: false,
    };
    if !dirs.contains(dirs.current()) {
        walk.effect("it runs outside the allowed directories");
    }
    if let Err(reason) = walk.source(command, &Places::new(dirs)) {
        walk.found.unknown = Some(reason.to_owned());
    }
    walk.found
}

struct Walk {
    found: Analysis,
    depth: usize,
    /// Patterns that were looked for on the disk.
    patterns: usize,
    /// Times that a repository was looked at.
    repositories: usize,
    /// Set if an earlier command may have changed how the shell reads or finds commands.
    is_lost: bool,
}

type Walked<T = ()> = Result<T, &'static str>;

impl Walk {
    fn source(&mut self, command: &str, at: &Places) -> Walked {
        let lexed = lexer::lex(command).map_err(|err| match err {
            LexError::CutOff => "it ends inside a quote or an expansion",
            LexError::TooDeep => TOO_DEEP,
            LexError::TooMany => "it has too many words to be judged",
        })?;
        if let Some(reason) = lexed.odd {
            return Err(reason);
        }
        self.tokens(&lexed.tokens, at)
    }

    fn tokens(&mut self, tokens: &[Token], at: &Places) -> Walked {
        self.depth += 1;
        if self.depth > NESTING_MAX {
            return Err(TOO_DEEP);
        }
        let list = grammar::parse(tokens).map_err(|err| match err {
            GrammarError::CutOff => "it ends inside a command",
            GrammarError::Wrong(reason) => reason,
        })?;
        self.list(&list, at)?;
        self.depth -= 1;
        Ok(())
    }

    fn effect(&mut self, reason: &str) {
        self.found.effect.get_or_insert_with(|| reason.to_owned());
    }

    fn list(&mut self, list: &List, at: &Places) -> Walked<Ends> {
        let mut ends = Ends::at(at);
        for item in &list.0 {
            let at = ends.either()?;
            if item.is_background {
                self.effect("it runs something in the background");
                self.chain(&item.chain, &at)?;
                ends = Ends::at(&at);
            } else {
                ends = self.chain(&item.chain, &at)?;
            }
        }
        Ok(ends)
    }

    fn chain(&mut self, chain: &Chain, at: &Places) -> Walked<Ends> {
        let mut ends = self.pipeline(&chain.first, at)?;
        for (link, pipeline) in &chain.rest {
            ends = match link {
                Link::And => {
                    let next = self.pipeline(pipeline, &ends.good)?;
                    Ends {
                        bad: ends.bad.or(&next.bad)?,
                        good: next.good,
                    }
                }
                Link::Or => {
                    let next = self.pipeline(pipeline, &ends.bad)?;
                    Ends {
                        good: ends.good.or(&next.good)?,
                        bad: next.bad,
                    }
                }
            };
        }
        Ok(ends)
    }

    fn pipeline(&mut self, pipeline: &Pipeline, at: &Places) -> Walked<Ends> {
        if pipeline.is_timed {
            self.effect("it measures time");
        }
        let ends = if let [command] = pipeline.commands.as_slice() {
            self.command(command, at)?
        } else {
            // Each runs in a shell of its own; the last one in this one if that option is set.
            let mut after = at.clone();
            for command in &pipeline.commands {
                after = after.or(&self.command(command, at)?.either()?)?;
            }
            Ends::at(&after)
        };
        Ok(match pipeline.is_negated {
            true => Ends {
                good: ends.bad,
                bad: ends.good,
            },
            false => ends,
        })
    }

    fn command(&mut self, command: &Command, at: &Places) -> Walked<Ends> {
        for redirect in &command.redirects {
            self.redirect(redirect, at)?;
        }
        match &command.kind {
            Kind::Simple { assignments, words } => self.simple(assignments, words, at),
            Kind::Group(list) => self.list(list, at),
            Kind::Subshell(list) => {
                let was_lost = self.is_lost;
                self.list(list, at)?;
                self.is_lost = was_lost;
                Ok(Ends::at(at))
            }
            Kind::If {
                branches,
                otherwise,
            } => self.branches(branches, otherwise.as_ref(), at),
            Kind::Loop { condition, body } => {
                let ends = self.list(condition, at)?;
                let after = self.list(body, &ends.good)?.either()?;
                self.stays(&after.or(&ends.either()?)?, at)
            }
            Kind::For { words, body } => {
                self.effect("it assigns a variable");
                for word in words {
                    self.word(word, at)?;
                }
                let after = self.list(body, at)?.either()?;
                self.stays(&after, at)
            }
            Kind::Case { words, bodies } => {
                self.effect("it branches on a value");
                for word in words {
                    self.word(word, at)?;
                }
                let mut after = at.clone();
                for body in bodies {
                    // One may continue into the next.
                    after = after.or(&self.list(body, &after)?.either()?)?;
                }
                Ok(Ends::at(&after))
            }
            Kind::Function { body, .. } => {
                self.effect("it defines a function");
                let after = self.command(body, at)?.either()?;
                self.is_lost = true;
                self.stays(&after, at)
            }
            Kind::Test(words) => self.test(words, at),
        }
    }

    /// Checks that a body that may run more than once stays in its directory.
    fn stays(&mut self, after: &Places, at: &Places) -> Walked<Ends> {
        if self.is_lost {
            self.effect("it may change the shell in a loop or a function");
        }
        if after == at {
            Ok(Ends::at(at))
        } else {
            Err("it changes its directory in a loop or a function")
        }
    }

    fn branches(
        &mut self,
        branches: &[(List, List)],
        otherwise: Option<&List>,
        at: &Places,
    ) -> Walked<Ends> {
        let mut before = at.clone();
        let mut after: Option<Places> = None;
        let join = |after: &mut Option<Places>, places: Places| -> Walked {
            *after = Some(match after.take() {
                Some(known) => known.or(&places)?,
                None => places,
            });
            Ok(())
        };
        for (condition, body) in branches {
            let ends = self.list(condition, &before)?;
            join(&mut after, self.list(body, &ends.good)?.either()?)?;
            before = ends.bad;
        }
        if let Some(list) = otherwise {
            before = self.list(list, &before)?.either()?;
        }
        join(&mut after, before.clone())?;
        Ok(Ends::at(after.as_ref().unwrap_or(&before)))
    }

    fn test(&mut self, words: &[Word], at: &Places) -> Walked<Ends> {
        self.effect("it tests a condition");
        for word in words {
            let value = self.word(word, at)?;
            if value
                .text()
                .is_some_and(|text| EVALUATING_TESTS.contains(&text))
            {
                return Err("its arithmetic is not understood");
            }
        }
        Ok(Ends::at(at))
    }

    fn simple(&mut self, assignments: &[Word], words: &[Word], at: &Places) -> Walked<Ends> {
        for assignment in assignments {
            self.assignment(assignment, !words.is_empty(), at)?;
        }
        let mut values = Vec::new();
        for word in words {
            values.push(self.word(word, at)?);
        }
        if values.is_empty() {
            return Ok(Ends::at(at));
        }
        if self.found.simple.len() >= COMMANDS_MAX {
            return Err("it has too many commands to be judged");
        }
        let mut ends = Ends::at(at);
        let effect = if self.is_lost {
            Some("an earlier command may have changed the shell".to_owned())
        } else if let Some(directory) = wrappers::directory(&values) {
            match at.enter(directory) {
                Ok(good) => {
                    ends.good = good;
                    None
                }
                Err(reason) => Some(reason),
            }
        } else {
            self.check(&values, at)?
        };
        self.is_lost |= effect.is_some() && wrappers::changes_shell(&values);
        self.found.simple.push(Simple {
            words: values,
            written: words.iter().map(|word| word.written.clone()).collect(),
            effect,
        });
        Ok(ends)
    }

    fn check(&mut self, values: &[Value], at: &Places) -> Walked<Option<String>> {
        let is_pattern = |value: &&Value| matches!(value, Value::Pattern(_));
        self.patterns += values.iter().filter(is_pattern).count();
        self.repositories += usize::from(values.first().and_then(Value::text) == Some("git"));
        if self.patterns > PATTERNS_MAX || self.repositories > REPOSITORIES_MAX {
            return Err("it looks in too many places to be judged");
        }
        Ok(at.refusal(|dirs| programs::check(values, dirs)))
    }

    fn assignment(&mut self, word: &Word, is_prefix: bool, at: &Places) -> Walked {
        match self.word(word, at)? {
            Value::Text(text) | Value::Pattern(text) => self.found.assigned.push(text),
            Value::Harmless | Value::Dynamic => {}
        }
        let is_harmless = is_prefix
            && word
                .plain_assignment()
                .is_some_and(|(name, value)| matches!(name, "LC_ALL" | "LANG") && is_utf8(value));
        if !is_harmless {
            self.effect("it assigns a variable");
        }
        Ok(())
    }

    fn redirect(&mut self, redirect: &Redirect, at: &Places) -> Walked {
        let word = match &redirect.target {
            Target::HereDocument(text) => {
                self.found.inputs.push(text.clone());
                return Ok(());
            }
            Target::Word(word) => word,
        };
        let value = self.word(word, at)?;
        if redirect.operator != "<<<" {
            self.found.files.push(word.written.clone());
        }
        match redirect.operator {
            "<<<" => match value {
                Value::Text(text) | Value::Pattern(text) => self.found.inputs.push(text),
                Value::Harmless => {}
                Value::Dynamic => self.effect("its input is not known"),
            },
            "<" => {
                let refusal = value.text().map_or(Some(String::new()), |path| {
                    at.refusal(|dirs| dirs.check(path))
                });
                if refusal.is_some() || self.is_lost {
                    self.effect("it reads a file that may lie outside the allowed directories");
                }
            }
            // Others may have been left open by what started the shell.
            "<&" | ">&" if matches!(value.text(), Some("-" | "0" | "1" | "2")) => {}
            "<&" | ">&" => self.effect("it may write to a file"),
            _ if value.text() != Some("/dev/null") => self.effect("it writes to a file"),
            _ => {}
        }
        Ok(())
    }

    fn word(&mut self, word: &Word, at: &Places) -> Walked<Value> {
        for tokens in &word.substitutions {
            let was_lost = self.is_lost;
            self.tokens(tokens, at)?;
            self.is_lost = was_lost;
        }
        if word.is_process {
            self.effect("it substitutes a process");
        }
        self.found.has_dynamic_word |= matches!(word.value, Value::Dynamic | Value::Harmless);
        Ok(word.value.clone())
    }
}

/// Returns whether a language is written in characters that hold no quote or bracket as a part.
fn is_utf8(language: &str) -> bool {
    let (name, set) = language.split_once('.').unwrap_or((language, "C"));
    let is_name = name.chars().all(|c| c.is_ascii_alphabetic() || c == '_');
    match set {
        "UTF-8" | "utf8" => is_name,
        _ => matches!(language, "C" | "POSIX"),
    }
}
