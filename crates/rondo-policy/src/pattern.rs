//! Patterns of calls in settings: `tool`, or `tool(words ...)` for commands that begin with these words.

use crate::rules::names_tool;
use std::slice;
use std::sync::Arc;

/// Calls that settings allow or deny. Clones share the patterns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolPatterns(Arc<[Pattern]>);

impl ToolPatterns {
    /// Reads patterns: `tool`, or `tool(words ...)` for commands that begin with these words. A `*` behind the words
    /// changes nothing.
    ///
    /// # Errors
    /// The first one that cannot be read.
    pub fn parse<T: AsRef<str>>(
        patterns: impl IntoIterator<Item = T>,
    ) -> Result<Self, PatternError> {
        let patterns = patterns.into_iter().map(|it| Pattern::parse(it.as_ref()));
        Ok(Self(patterns.collect::<Result<_, _>>()?))
    }

    pub(crate) fn iter(&self) -> slice::Iter<'_, Pattern> {
        self.0.iter()
    }
}

/// A tool pattern that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a tool or `tool(words)`")]
pub struct PatternError(pub String);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pattern {
    tool: String,
    /// First words of a command; `None` for the tool as such.
    pub(crate) words: Option<Vec<String>>,
}

impl Pattern {
    fn parse(text: &str) -> Result<Self, PatternError> {
        let error = || PatternError(text.to_owned());
        let text = text.trim();
        let (tool, rule) = match text.split_once('(') {
            None => (text, None),
            Some((tool, rest)) => (tool, Some(rest.strip_suffix(')').ok_or_else(error)?)),
        };
        let is_name = |c: char| c.is_alphanumeric() || "_-.*".contains(c);
        if tool.is_empty() || !tool.chars().all(is_name) {
            return Err(error());
        }
        let words = rule.map(|rule| {
            let rule = rule.trim().trim_end_matches('*').trim_end_matches(':');
            rule.split_whitespace().map(str::to_owned).collect()
        });
        Ok(Self {
            tool: tool.to_owned(),
            words: words.filter(|words: &Vec<String>| !words.is_empty()),
        })
    }

    pub(crate) fn names(&self, tool: &str) -> bool {
        names_tool(&self.tool, tool)
    }

    pub(crate) fn begins(&self, words: &[&str]) -> bool {
        self.words.as_ref().is_none_or(|prefix| {
            prefix.len() <= words.len() && prefix.iter().zip(words).all(|(one, other)| one == other)
        })
    }

    /// Returns whether a command may be meant: whatever is between its words.
    pub(crate) fn may_mean(&self, words: &[&str]) -> bool {
        let Some((program, rest)) = self.words.as_ref().and_then(|words| words.split_first())
        else {
            return true;
        };
        let mut words = words.iter();
        words.next().is_some_and(|word| base_name(word) == program)
            && rest.iter().all(|wanted| words.any(|word| wanted == word))
    }

    pub(crate) fn program(&self) -> Option<&str> {
        self.words.as_ref()?.first().map(String::as_str)
    }
}

/// However a program is named, it is the same.
fn base_name(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}
