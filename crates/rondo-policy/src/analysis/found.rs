//! Collects the findings of one command, and derives its judgment.

use super::words::Value;
use super::{Judgement, wrappers};

/// Findings about a command and everything it runs.
#[derive(Debug, Default)]
pub(crate) struct Analysis {
    pub(super) simple: Vec<Simple>,
    /// Input of commands: here-documents and here-strings.
    pub(super) inputs: Vec<String>,
    /// Names and values of assigned variables; some of them name programs.
    pub(super) assigned: Vec<String>,
    /// The files that redirections name, as they are written.
    pub(super) files: Vec<String>,
    pub(super) effect: Option<String>,
    pub(super) unknown: Option<String>,
    pub(super) has_dynamic_word: bool,
}

/// One simple command.
#[derive(Debug, Clone)]
pub(super) struct Simple {
    pub(super) words: Vec<Value>,
    /// The words without their quotes, and with the names of variables.
    pub(super) written: Vec<String>,
    /// Why it is not read-only, if it is not.
    pub(super) effect: Option<String>,
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

    /// Returns the words of the simple commands that do more than look; `None` if anything else about the command does,
    /// or a word is not known.
    pub(crate) fn plain_effects(&self) -> Option<Vec<SimpleWords<'_>>> {
        if self.unknown.is_some() || self.effect.is_some() {
            return None;
        }
        let moves = |simple: &Simple| simple.name() == Some("cd");
        let has_moved = self.simple.iter().any(moves);
        let with_effects = self.simple.iter().filter(|simple| simple.effect.is_some());
        let commands = with_effects.map(|simple| {
            let words = simple.words.iter().map(Value::text);
            Some(SimpleWords {
                words: words.collect::<Option<_>>()?,
                runs_others: wrappers::runs_others(&simple.words),
                has_moved,
            })
        });
        let commands: Vec<_> = commands.collect::<Option<_>>()?;
        (!commands.is_empty()).then_some(commands)
    }

    /// Returns the words of a command that is one simple command with known words and nothing else, so that it does not
    /// matter how they are quoted.
    pub(crate) fn plain_words(&self) -> Option<Vec<&str>> {
        let [simple] = self.simple.as_slice() else {
            return None;
        };
        let is_plain = self.unknown.is_none()
            && self.effect.is_none()
            && self.inputs.is_empty()
            && self.assigned.is_empty()
            && self.files.is_empty();
        let words = simple.words.iter().map(Value::text);
        is_plain.then(|| words.collect::<Option<_>>()).flatten()
    }

    /// Returns the words of the command that may be the path of a file that it runs or reads as code.
    pub(crate) fn code_files(&self) -> impl Iterator<Item = &str> {
        let with_effects = self.simple.iter().filter(|simple| simple.effect.is_some());
        let named = with_effects.flat_map(|simple| {
            let runs_files = wrappers::runs_others(&simple.words)
                || simple.name().is_none_or(wrappers::is_interpreter);
            let words = simple.words.iter().enumerate();
            words.filter_map(move |(at, word)| {
                let text = word.text()?;
                let is_file = match at {
                    0 => text.contains('/'),
                    _ => runs_files && !text.starts_with('-'),
                };
                is_file.then_some(text)
            })
        });
        let from_input = self.simple.iter().any(Simple::reads_program_from_stdin);
        let files = self.files.iter().filter(move |_| from_input);
        named.chain(files.map(String::as_str))
    }

    /// Returns whether one simple command fits; `fits` gets all its words that are known.
    pub(crate) fn any_fits(&self, fits: impl Fn(&[&str]) -> bool) -> bool {
        self.simple.iter().any(|simple| {
            let words: Vec<&str> = simple.words.iter().filter_map(Value::text).collect();
            fits(&words)
        })
    }

    /// Returns the base names of all programs, those that are named to other programs included.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names = Names::default();
        for simple in &self.simple {
            simple.name().into_iter().for_each(|name| names.add(name));
        }
        if self.runs_others() {
            self.add_tokens(&mut names);
        }
        names.0
    }

    /// Returns the base names of what may run because it is named to something else, as a word, in a
    /// string or in a variable; more than what does run.
    pub(crate) fn wrapped_names(&self) -> Vec<String> {
        let mut names = Names::default();
        if self.runs_others() {
            self.add_tokens(&mut names);
        }
        for simple in self.simple.iter().filter(|simple| simple.effect.is_some()) {
            for name in wrappers::candidates(&simple.words) {
                names.add(&name);
            }
        }
        for text in &self.assigned {
            wrappers::tokens(text).for_each(|token| names.add(&token));
        }
        names.0
    }

    /// Returns whether the programs that will run are all among [`Self::names`] and
    /// [`Self::wrapped_names`], as far as they are known: not where unknown text goes to a program
    /// that runs other programs.
    pub(crate) fn has_hidden_names(&self) -> bool {
        self.unknown.is_some()
            || self.simple.iter().any(|simple| simple.name().is_none())
            || self.simple.iter().any(Simple::reads_program_from_stdin)
            || self
                .simple
                .iter()
                .any(|simple| wrappers::substitutes_in_words(&simple.words))
            || (self.runs_others() && (self.has_dynamic_word || self.expands_in_shell()))
    }

    /// Returns whether a command that begins with such a program may get the rest of its words from input, as by `xargs`.
    pub(crate) fn may_be_completed(&self, is_program: impl Fn(&str) -> bool) -> bool {
        let runs_others = |simple: &&Simple| wrappers::runs_others(&simple.words);
        self.simple.iter().filter(runs_others).any(|simple| {
            let words = simple.written.iter();
            let tokens: Vec<String> = words.flat_map(|word| wrappers::tokens(word)).collect();
            let mut behind = tokens
                .iter()
                .skip_while(|word| !wrappers::adds_words(word))
                .skip(1);
            behind.any(|word| is_program(wrappers::base(word)) || wrappers::is_wrapper(word))
        })
    }

    /// A shell in the shell makes names out of what is not a name here.
    fn expands_in_shell(&self) -> bool {
        let is_shell = |name: &String| wrappers::is_shell(name);
        let expands = |text: &str| text.contains(['$', '`', '*', '?', '[', '{', '~']);
        self.names().iter().any(is_shell) && self.texts().any(expands)
    }

    pub(super) fn runs_others(&self) -> bool {
        self.simple
            .iter()
            .filter(|simple| simple.effect.is_some())
            .any(|simple| wrappers::runs_others(&simple.words))
    }

    fn add_tokens(&self, names: &mut Names) {
        for text in self.texts() {
            wrappers::tokens(text).for_each(|token| names.add(&token));
        }
    }

    /// Returns the words of each simple command, as they are written.
    pub(crate) fn written(&self) -> impl Iterator<Item = SimpleCommand<'_>> {
        self.simple.iter().map(|simple| SimpleCommand {
            words: &simple.written,
            runs_others: wrappers::runs_others(&simple.words),
        })
    }

    /// Returns the findings for each simple command by itself, with the input of all.
    pub(crate) fn each(&self) -> impl Iterator<Item = Self> {
        self.simple.iter().map(|simple| Self {
            simple: vec![simple.clone()],
            inputs: self.inputs.clone(),
            has_dynamic_word: simple.words.iter().any(|word| word.text().is_none()),
            ..Self::default()
        })
    }

    /// Returns the files that redirections name, as they are written.
    pub(crate) fn files(&self) -> &[String] {
        &self.files
    }

    /// Returns the input that is written into the command.
    pub(crate) fn inputs(&self) -> &[String] {
        &self.inputs
    }

    /// Returns whether the command was not understood.
    pub(crate) fn is_unknown(&self) -> bool {
        self.unknown.is_some()
    }

    /// Returns the known words of each simple command.
    pub(crate) fn commands(&self) -> impl Iterator<Item = Vec<String>> {
        self.simple.iter().map(|simple| {
            let words = simple.words.iter().filter_map(Value::text);
            words.map(str::to_owned).collect()
        })
    }

    /// Returns the possible words of commands that are passed to other programs.
    pub(crate) fn wrapped_commands(&self) -> impl Iterator<Item = Vec<String>> {
        let runs_others = self.runs_others();
        let wrapped = |simple: &&Simple| simple.effect.is_some();
        let words = self.simple.iter().filter(wrapped).map(|simple| {
            let words = simple.written.iter();
            words.flat_map(|word| wrappers::tokens(word)).collect()
        });
        let inputs = self.inputs.iter().chain(&self.assigned);
        let inputs = inputs.map(|text| wrappers::tokens(text).collect());
        words.chain(inputs).filter(move |_| runs_others)
    }

    /// Returns all words, and the files of redirections, as they are written.
    pub(crate) fn words(&self) -> impl Iterator<Item = &str> {
        let words = self.simple.iter().flat_map(|simple| &simple.written);
        words.chain(&self.files).map(String::as_str)
    }

    fn texts(&self) -> impl Iterator<Item = &str> {
        let words = self.simple.iter().flat_map(|simple| &simple.words);
        let texts = words.filter_map(|word| match word {
            Value::Text(text) | Value::Pattern(text) => Some(text.as_str()),
            Value::Harmless | Value::Dynamic => None,
        });
        texts.chain(self.inputs.iter().map(String::as_str))
    }
}

/// The words of a simple command, all of them known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SimpleWords<'a> {
    /// The words; never empty.
    pub(crate) words: Vec<&'a str>,
    /// Set if its program runs others, which its words name.
    pub(crate) runs_others: bool,
    /// Set if it may run in another directory, by a `cd` in the same command.
    pub(crate) has_moved: bool,
}

/// A simple command as it is written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SimpleCommand<'a> {
    /// Its words without their quotes, and with the names of variables.
    pub(crate) words: &'a [String],
    /// Set if its program runs others, which its words name.
    pub(crate) runs_others: bool,
}

/// Base names, each once.
#[derive(Default)]
struct Names(Vec<String>);

impl Names {
    fn add(&mut self, name: &str) {
        let base = name.rsplit('/').next().unwrap_or(name);
        if !base.is_empty() && !self.0.iter().any(|known| known == base) {
            self.0.push(base.to_owned());
        }
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
        self.effect.is_some()
            && self.name().is_some_and(wrappers::is_interpreter)
            && self
                .words
                .iter()
                .skip(1)
                .all(|word| word.text().is_some_and(|text| text.starts_with('-')))
    }
}
