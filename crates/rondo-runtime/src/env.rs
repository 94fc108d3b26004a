//! The environment, read once.

use crate::error::SetupErrorKind;
use crate::error::{Result, SetupError};
use crate::values::Word;
use std::collections::HashMap;
use std::fmt::Display;
use std::str::FromStr;
use std::sync::Arc;

/// The process's environment at its start, with the keys that the user has exported since. As in most tools,
/// an empty value counts as unset.
#[derive(Debug, Default, Clone)]
pub struct Env {
    /// Shared: each session and each turn of it has an environment.
    inherited: Arc<HashMap<String, String>>,
    exported: Arc<HashMap<String, String>>,
}

impl Env {
    /// Reads the process's environment; variables that are not UTF-8 are ignored.
    pub fn from_env() -> Self {
        std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect()
    }

    /// Returns a variable that is set and not empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        let exported = self.exported.get(name);
        exported
            .or_else(|| self.inherited.get(name))
            .map(String::as_str)
            .filter(|value| !value.is_empty())
    }

    /// Returns every variable and its value.
    pub fn iter(&self) -> impl Iterator<Item = (&String, &String)> {
        let is_as_inherited = |name: &&String| !self.exported.contains_key(*name);
        let inherited = self.inherited.iter();
        let inherited = inherited.filter(move |(name, _)| is_as_inherited(name));
        inherited.chain(&*self.exported)
    }

    /// Returns the environment at the start of the process, which child processes inherit.
    pub fn inherited(&self) -> Self {
        Self {
            inherited: Arc::clone(&self.inherited),
            exported: Arc::default(),
        }
    }

    /// Sets a variable.
    pub fn export(&mut self, name: &str, value: &str) {
        Arc::make_mut(&mut self.exported).insert(name.to_owned(), value.to_owned());
    }

    /// Returns a variable as owned text.
    pub fn text(&self, name: &str) -> Option<String> {
        self.get(name).map(str::to_owned)
    }

    /// Returns a variable, parsed.
    pub fn parsed<T>(&self, name: &str) -> Result<Option<T>>
    where
        T: FromStr,
        T::Err: Display,
    {
        self.get(name)
            .map(|value| value.parse().map_err(|err| invalid(name, value, &err)))
            .transpose()
    }

    /// Returns a variable that holds one of a few words.
    ///
    /// # Errors
    /// When it holds something else.
    pub fn word<T: Word>(&self, name: &str) -> Result<Option<T>> {
        self.get(name)
            .map(|value| T::read(value).map_err(|err| invalid(name, value, &err)))
            .transpose()
    }

    /// Returns a switch: `1`, `true`, `yes`, `on`, or their opposites.
    pub fn switch(&self, name: &str) -> Result<Option<bool>> {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        match value.to_ascii_lowercase().as_str() {
            "1" | "true" | "yes" | "on" => Ok(Some(true)),
            "0" | "false" | "no" | "off" => Ok(Some(false)),
            _ => Err(invalid(name, value, &"expected `true` or `false`")),
        }
    }

    /// Returns a list whose items are separated by `separator`.
    pub fn list(&self, name: &str, separator: char) -> Option<Vec<String>> {
        let items = self.get(name)?.split(separator).map(str::trim);
        Some(
            items
                .filter(|item| !item.is_empty())
                .map(str::to_owned)
                .collect(),
        )
    }
}

impl FromIterator<(String, String)> for Env {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(variables: I) -> Self {
        Self {
            inherited: Arc::new(variables.into_iter().collect()),
            exported: Arc::default(),
        }
    }
}

fn invalid(name: &str, value: &str, reason: &dyn Display) -> SetupError {
    SetupError::new(
        SetupErrorKind::Config,
        format_args!("the variable `{name}` is invalid: `{value}`: {reason}"),
    )
}

impl Env {
    /// Builds an environment of these variables alone.
    #[must_use]
    pub fn of(variables: &[(&str, &str)]) -> Self {
        variables
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_exported_counts_and_what_was_inherited_is_known() {
        let mut env = Env::of(&[("A_KEY", "one"), ("HOME", "/")]);
        env.export("A_KEY", "two");
        env.export("B_KEY", "three");
        let mut all: Vec<_> = env.iter().collect();
        all.sort();
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let expected = [
            pair("A_KEY", "two"),
            pair("B_KEY", "three"),
            pair("HOME", "/"),
        ];
        assert_eq!(all, expected.each_ref().map(|(name, value)| (name, value)));
        assert_eq!(env.get("A_KEY"), Some("two"));
        assert_eq!(env.inherited().get("A_KEY"), Some("one"));
        assert_eq!(env.inherited().get("B_KEY"), None);
    }
}
