//! Replaces tool names that a provider refuses.

use std::borrow::Cow;

/// Rule of a wire for the name of a tool.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NameRule {
    /// Characters beside letters, digits, `_` and `-`.
    pub(crate) more_chars: &'static [char],
    pub(crate) chars_max: usize,
    /// Set if the first character must be a letter or `_`.
    pub(crate) starts_with_letter: bool,
}

/// Name of a call without a name.
const UNNAMED: &str = "unnamed";

impl NameRule {
    /// Returns `name` if the wire accepts it, else the nearest name that it accepts.
    ///
    /// Names of tools are always accepted, but a model may call one that does not exist, and a
    /// provider that refuses its own model's word refuses the whole conversation from then on.
    pub(crate) fn apply<'a>(&self, name: &'a str) -> Cow<'a, str> {
        let allowed = |c: char| {
            c.is_ascii_alphanumeric() || matches!(c, '_' | '-') || self.more_chars.contains(&c)
        };
        let first_is_letter = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        let starts_well = !name.is_empty() && (first_is_letter || !self.starts_with_letter);
        if starts_well && name.len() <= self.chars_max && name.chars().all(allowed) {
            return Cow::Borrowed(name);
        }
        if name.is_empty() {
            return Cow::Borrowed(UNNAMED);
        }
        let prefix = if starts_well { "" } else { "_" };
        let made = name.chars().map(|c| if allowed(c) { c } else { '_' });
        Cow::Owned(prefix.chars().chain(made).take(self.chars_max).collect())
    }
}
