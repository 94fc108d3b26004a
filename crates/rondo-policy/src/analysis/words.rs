//! The value of a shell word, if it is known without running the command.

use super::lexer::Token;

/// Meaning of a word before it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    /// This text.
    Text(String),
    /// The files that match this text, or the text itself.
    Pattern(String),
    /// Something made of harmless variables and of what commands print.
    Harmless,
    /// Something that is not known.
    Dynamic,
}

impl Value {
    /// Returns the text, if that is what it is.
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Pattern(_) | Self::Harmless | Self::Dynamic => None,
        }
    }
}

/// A word, and the commands that run to make it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) value: Value,
    /// The text without its quotes, and with `$NAME` for each variable, as far as it is known.
    pub(super) written: String,
    /// Set if nothing in it is quoted, escaped or expanded, so that it may be a reserved word.
    is_bare: bool,
    /// Length of its prefix up to and including `=`, if it has the shape of an assignment.
    assigned: Option<usize>,
    /// The commands that run to make it.
    pub(super) substitutions: Vec<Vec<Token>>,
    /// Set if it names the pipe of a command that runs beside the others.
    pub(super) is_process: bool,
    /// The names of the variables in it.
    pub(super) variables: Vec<String>,
}

impl Word {
    /// Returns whether it is this word, written plainly.
    pub(super) fn is(&self, reserved: &str) -> bool {
        let text = match &self.value {
            Value::Text(text) | Value::Pattern(text) => text,
            Value::Harmless | Value::Dynamic => return false,
        };
        self.is_bare && text == reserved
    }

    /// Returns the plain digits it is made of.
    pub(super) fn is_number(&self) -> bool {
        self.is_bare
            && self.value.text().is_some_and(|text| {
                !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
            })
    }

    /// Returns whether it is before a redirection to say where the descriptor's number goes.
    pub(super) fn may_name_descriptor(&self) -> bool {
        match &self.value {
            Value::Text(text) | Value::Pattern(text) => self.is_bare && text.starts_with('{'),
            Value::Harmless | Value::Dynamic => false,
        }
    }

    /// Returns whether it assigns something.
    pub(super) fn is_assignment(&self) -> bool {
        self.assigned.is_some()
    }

    /// Returns the name that it assigns, as far as it is written plainly.
    pub(super) fn assigned_name(&self) -> Option<&str> {
        let name = self.written.split('=').next()?;
        self.assigned.map(|_| name.trim_end_matches('+'))
    }

    /// Returns the name, and the value, of an assignment of known text that appends nothing.
    pub(super) fn plain_assignment(&self) -> Option<(&str, &str)> {
        let (name, value) = self.value.text()?.split_at_checked(self.assigned?)?;
        let name = name.strip_suffix('=')?;
        (!name.ends_with('+')).then_some((name, value))
    }
}

/// A word that is being read.
#[derive(Debug)]
pub(super) struct Building {
    text: String,
    written: String,
    is_pattern: bool,
    is_shown: bool,
    is_dynamic: bool,
    has_brace: bool,
    is_bare: bool,
    is_begun: bool,
    is_process: bool,
    has_subscript: bool,
    assigned: Option<usize>,
    substitutions: Vec<Vec<Token>>,
    variables: Vec<String>,
}

/// Variables whose values are not secrets and whose names lead nowhere.
const SHOWN: [&str; 12] = [
    "HOME", "PWD", "OLDPWD", "USER", "LOGNAME", "SHELL", "PATH", "LANG", "TERM", "HOSTNAME",
    "RANDOM", "SECONDS",
];

impl Building {
    pub(super) fn new() -> Self {
        Self {
            text: String::new(),
            written: String::new(),
            is_pattern: false,
            is_shown: false,
            is_dynamic: false,
            has_brace: false,
            is_bare: true,
            is_begun: false,
            is_process: false,
            has_subscript: false,
            assigned: None,
            substitutions: Vec::new(),
            variables: Vec::new(),
        }
    }

    pub(super) fn is_begun(&self) -> bool {
        self.is_begun
    }

    /// Takes a character without quotes.
    pub(super) fn push_bare(&mut self, c: char) {
        self.is_begun = true;
        self.has_subscript |= c == '[' && self.is_bare && is_name(&self.text);
        match c {
            '{' | '}' => self.has_brace = true,
            '~' => self.is_dynamic |= self.text.is_empty() || self.text.ends_with(['=', ':']),
            '*' | '?' | '[' => self.is_pattern = true,
            '=' if self.assigned.is_none() && self.is_bare && self.is_variable() => {
                self.assigned = Some(self.text.len() + 1);
            }
            _ => {}
        }
        self.text.push(c);
        self.written.push(c);
    }

    fn is_variable(&self) -> bool {
        is_name(self.text.strip_suffix('+').unwrap_or(&self.text))
    }

    /// Takes text that stands for itself.
    pub(super) fn push_quoted(&mut self, text: &str) {
        self.begin_quoted();
        self.text.push_str(text);
        self.written.push_str(text);
    }

    /// Begins a word, even if its quotes hold nothing.
    pub(super) fn begin_quoted(&mut self) {
        self.is_begun = true;
        self.is_bare = false;
    }

    pub(super) fn push_variable(&mut self, name: &str) {
        self.begin_quoted();
        self.written.push('$');
        self.written.push_str(name);
        self.variables.push(name.to_owned());
        match name {
            "?" | "$" | "#" => self.is_shown = true,
            _ if SHOWN.contains(&name) => self.is_shown = true,
            _ => self.is_dynamic = true,
        }
    }

    /// Notes a variable in an expansion that is not understood.
    pub(super) fn note_variable(&mut self, name: &str) {
        self.variables.push(name.to_owned());
    }

    pub(super) fn push_number(&mut self) {
        self.begin_quoted();
        self.is_shown = true;
    }

    pub(super) fn push_unknown(&mut self) {
        self.begin_quoted();
        self.written.push('$');
        self.is_dynamic = true;
    }

    /// Adds the output of a command; outside of double quotes it is split and matched against
    /// files.
    pub(super) fn push_substitution(&mut self, tokens: Vec<Token>, quoted: bool) {
        self.begin_quoted();
        let is_directory = matches!(
            tokens.as_slice(),
            [Token::Word(word)] if word.is("pwd")
        );
        self.is_dynamic |= !quoted && !is_directory;
        self.is_shown = true;
        self.substitutions.push(tokens);
    }

    pub(super) fn push_process(&mut self, tokens: Vec<Token>) {
        self.push_unknown();
        self.is_process = true;
        self.substitutions.push(tokens);
    }

    /// Returns whether the shell may read on for a subscript where this word ends.
    pub(super) fn may_be_subscript(&self) -> bool {
        let is_closed = self.text.contains(']');
        let is_assigned = self.text.contains("]=") || self.text.contains("]+=");
        self.has_subscript && (!is_closed || is_assigned)
    }

    pub(super) fn is_array(&self) -> bool {
        self.assigned == Some(self.text.len())
    }

    pub(super) fn finish(self) -> Word {
        let is_listed = self.text.contains(',') || self.text.contains("..");
        let expands = self.has_brace && (is_listed || self.is_shown);
        let matches = self.is_pattern && self.text.contains(['*', '?', ']']);
        let value = match (self.is_dynamic || expands, self.is_shown, matches) {
            (true, _, _) | (_, true, true) => Value::Dynamic,
            (_, true, _) => Value::Harmless,
            (_, _, true) => Value::Pattern(self.text),
            (false, false, false) => Value::Text(self.text),
        };
        Word {
            value,
            written: self.written,
            is_bare: self.is_bare,
            assigned: self.assigned,
            substitutions: self.substitutions,
            is_process: self.is_process,
            variables: self.variables,
        }
    }
}

/// Returns whether a variable holds no secret, and its name leads nowhere.
pub(super) fn is_shown(variable: &str) -> bool {
    SHOWN.contains(&variable)
}

/// Returns whether this may name a variable.
pub(super) fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
