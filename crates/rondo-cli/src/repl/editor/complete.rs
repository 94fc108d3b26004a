//! Completion at the cursor: slash commands, models, programs and paths.

use super::paths::{self, Quoting};
use super::programs::Programs;
use super::shared::Shared;
use crate::repl::mode::Mode;
use reedline::{Completer, CompletionResult, Span, Suggestion};
use rondo_tui::prompt::slash;
use std::path::{Path, PathBuf};

/// The bound on what is offered at once.
const OFFERED_MAX: usize = 500;

/// Names that are known elsewhere, looked up at the first completion.
pub(in crate::repl) struct Names {
    /// Every model that could be asked, `provider/model`.
    pub(in crate::repl) models: Box<dyn Fn() -> Vec<String> + Send>,
    /// Every profile.
    pub(in crate::repl) profiles: Box<dyn Fn() -> Vec<String> + Send>,
    /// The user's home, which `~` stands for.
    pub(in crate::repl) home: Option<PathBuf>,
    /// Where programs are looked for, as in `PATH`.
    pub(in crate::repl) path: Option<String>,
}

/// Completes the word before the cursor.
pub(super) struct Words {
    shared: Shared,
    names: Names,
    programs: Programs,
}

/// A word to complete, and where it begins.
struct Word<'a> {
    text: &'a str,
    start: usize,
    end: usize,
}

impl Words {
    pub(super) fn new(shared: Shared, names: Names) -> Self {
        let programs = Programs::new(names.path.clone());
        Self {
            shared,
            names,
            programs,
        }
    }

    fn offers(&mut self, line: &str, pos: usize) -> Vec<Suggestion> {
        let Some(before) = line.get(..pos) else {
            return Vec::new();
        };
        let kind = WordKind::of(self.shared.mode(), before);
        let word = kind.word(before);
        match kind {
            WordKind::Slash => of_names(slash::names(), &word, "/"),
            WordKind::Argument(name) => self.arguments(name, &word),
            WordKind::Program if !word.text.contains('/') => {
                of_names(self.programs.names(), &word, "")
            }
            WordKind::Program | WordKind::Command => self.of_paths(&word, "", Quoting::Shell),
            WordKind::Code => self.of_python(before),
            WordKind::Text => match word.text.strip_prefix('@') {
                Some(_) => self.of_paths(&word, "@", Quoting::Attachment),
                None => self.of_paths(&word, "", Quoting::None),
            },
        }
    }

    fn arguments(&self, name: &str, word: &Word<'_>) -> Vec<Suggestion> {
        match name {
            "mode" => of_names(Mode::WHEEL.map(Mode::name), word, ""),
            "model" => of_names((self.names.models)(), word, ""),
            "profile" => of_names((self.names.profiles)(), word, ""),
            "memory" | "trace" => of_names(["on", "off"], word, ""),
            "include" | "run" => self.of_paths(word, "", Quoting::None),
            _ => Vec::new(),
        }
    }

    fn of_python(&self, before: &str) -> Vec<Suggestion> {
        let is_inner = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
        let text = before.trim_end_matches(is_inner);
        let word = Word {
            text: before.get(text.len()..).unwrap_or_default(),
            start: text.len(),
            end: before.len(),
        };
        if word.text.is_empty() {
            return Vec::new();
        }
        let names = self.shared.python_names(word.text).into_iter();
        let offers = names.map(|name| suggestion(name, &word));
        offers.take(OFFERED_MAX).collect()
    }

    fn of_paths(&self, word: &Word<'_>, mark: &str, quoting: Quoting) -> Vec<Suggestion> {
        let typed = word.text.strip_prefix(mark).unwrap_or(word.text);
        let home = self.names.home.as_deref().map(Path::to_owned);
        let found = paths::complete(typed, &self.shared.directory(), home.as_deref(), quoting);
        let offers = found.into_iter().map(|path| Suggestion {
            append_whitespace: !path.is_directory,
            ..suggestion(format!("{mark}{}", path.written), word)
        });
        offers.take(OFFERED_MAX).collect()
    }
}

impl Completer for Words {
    fn complete(&mut self, line: &str, pos: usize) -> CompletionResult {
        CompletionResult::fresh(self.offers(line, pos))
    }
}

/// What kind of word is being typed.
enum WordKind<'a> {
    /// The name of a command of the prompt.
    Slash,
    /// An argument of that command.
    Argument(&'a str),
    /// A program.
    Program,
    /// An argument of one.
    Command,
    /// Python.
    Code,
    /// Anything.
    Text,
}

impl<'a> WordKind<'a> {
    fn of(mode: Mode, before: &'a str) -> Self {
        let text = before.trim_start();
        let agent = match mode {
            Mode::Agent => Some(text),
            Mode::Shell | Mode::Python => text.strip_prefix('#').map(str::trim_start),
        };
        let own = agent.unwrap_or(text);
        if let Some(name) = own.strip_prefix('/') {
            match name.split_once(char::is_whitespace) {
                Some((name, _)) if slash::is_name(name) => return Self::Argument(name),
                None if agent.is_some() && !name.contains('/') => return Self::Slash,
                _ => {}
            }
        }
        let command = match (mode, agent) {
            (Mode::Shell, None) => Some(text),
            (_, Some(text)) => text.strip_prefix('!'),
            (Mode::Python, None) => text.strip_prefix('!'),
            (Mode::Agent, None) => None,
        };
        match command.map(|command| command.trim_start_matches('!').trim_start()) {
            Some(command) if is_first_word(command) => Self::Program,
            Some(_) => Self::Command,
            None if mode == Mode::Python && agent.is_none() => Self::Code,
            None if mode == Mode::Agent && text.starts_with('>') => Self::Code,
            None => Self::Text,
        }
    }

    /// Returns the word that ends at the cursor. A blank is part of it behind a backslash, and in the quotes of a file that
    /// is attached.
    fn word<'b>(&self, before: &'b str) -> Word<'b> {
        if let Some((start, text)) =
            quoted_attachment(before).filter(|_| matches!(self, Self::Text))
        {
            return Word {
                text,
                start,
                end: before.len(),
            };
        }
        let mut start = 0;
        let mut is_quoted = false;
        for (at, c) in before.char_indices() {
            let parts = c.is_whitespace() || (matches!(self, Self::Program) && c == '!');
            if parts && !is_quoted {
                start = at + c.len_utf8();
            }
            is_quoted = c == '\\' && !is_quoted;
        }
        let text = before.get(start..).unwrap_or_default();
        Word {
            text,
            start,
            end: before.len(),
        }
    }
}

/// Returns where a word begins that attaches a file by `@"`, and the word, if its quotes are still open.
fn quoted_attachment(before: &str) -> Option<(usize, &str)> {
    let start = before.rfind("@\"")?;
    let (text, word) = before.split_at(start);
    let begins_word = text.chars().next_back().is_none_or(char::is_whitespace);
    let is_open = word.matches('"').count() == 1;
    (begins_word && is_open).then_some((start, word))
}

/// Returns whether the last command of a line has no blank in it yet.
fn is_first_word(command: &str) -> bool {
    let last = command.rsplit(['|', ';', '&', '(']).next();
    !last
        .unwrap_or_default()
        .trim_start()
        .contains(char::is_whitespace)
}

fn of_names<T: AsRef<str>>(
    names: impl IntoIterator<Item = T>,
    word: &Word<'_>,
    mark: &str,
) -> Vec<Suggestion> {
    let typed = word.text.strip_prefix(mark).unwrap_or(word.text);
    let names = names.into_iter().filter_map(|name| {
        let name = name.as_ref();
        name.starts_with(typed)
            .then(|| suggestion(format!("{mark}{name}"), word))
    });
    let offers = names.map(|offer| Suggestion {
        append_whitespace: true,
        ..offer
    });
    offers.take(OFFERED_MAX).collect()
}

fn suggestion(value: String, word: &Word<'_>) -> Suggestion {
    Suggestion {
        value,
        span: Span {
            start: word.start,
            end: word.end,
        },
        ..Suggestion::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offered(mode: Mode, line: &str) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("src")).unwrap();
        for name in ["src/main.rs", "notes.txt", "with space"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let shared = Shared::new(mode);
        shared.set_directory(folder.path().to_owned());
        let names = Names {
            models: Box::new(|| vec!["openai/one".into(), "gemini/two".into()]),
            profiles: Box::new(|| vec!["python".into()]),
            home: None,
            path: Some("/bin".to_owned()),
        };
        let mut words = Words::new(shared, names);
        let mut values: Vec<String> = words
            .offers(line, line.len())
            .into_iter()
            .map(|offer| {
                let head = line.get(..offer.span.start).unwrap();
                format!("{head}{}", offer.value)
            })
            .collect();
        values.sort();
        values
    }

    #[test]
    fn each_place_has_its_own_words() {
        assert_eq!(offered(Mode::Agent, "/hel"), ["/help"]);
        assert_eq!(offered(Mode::Agent, "/model g"), ["/model gemini/two"]);
        assert_eq!(offered(Mode::Agent, "/mode p"), ["/mode python"]);
        assert_eq!(offered(Mode::Shell, "# /prof"), ["# /profile"]);
        assert_eq!(offered(Mode::Agent, "read @no"), ["read @notes.txt"]);
        assert_eq!(offered(Mode::Agent, "@wi"), ["@\"with space\""]);
        assert_eq!(offered(Mode::Agent, "a @\"with s"), ["a @\"with space\""]);
        assert_eq!(
            offered(Mode::Agent, "@\"a b\" @wi"),
            ["@\"a b\" @\"with space\""]
        );
        assert_eq!(offered(Mode::Agent, "in src/m"), ["in src/main.rs"]);
        assert_eq!(offered(Mode::Shell, "cat wi"), ["cat with\\ space"]);
        assert_eq!(offered(Mode::Shell, "cat with\\ s"), ["cat with\\ space"]);
        assert_eq!(offered(Mode::Shell, "ls s"), ["ls src/"]);
        assert!(offered(Mode::Agent, "!l").contains(&"!ls".to_owned()));
        assert!(offered(Mode::Shell, "true | l").contains(&"true | ls".to_owned()));
    }
}
