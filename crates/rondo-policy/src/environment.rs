//! The environment variables that commands get.

use std::borrow::Cow;
use std::collections::BTreeMap;

/// The rules by which a command's environment is made from the agent's.
///
/// Keys of providers, and variables that change how the shell reads a command, are withheld; pagers and
/// prompts are switched off, and the locale is a fixed one with UTF-8.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandEnvironment {
    /// Suffixes of names that are withheld, such as `_API_KEY`.
    pub withheld_suffixes: Vec<Cow<'static, str>>,
    /// Names that are withheld.
    pub withheld: Vec<Cow<'static, str>>,
    /// Names that are passed on although they would be withheld.
    pub passed: Vec<String>,
    /// Variables that are set.
    pub set: BTreeMap<String, String>,
}

/// Ends of names that usually hold secrets.
const SECRET_SUFFIXES: [&str; 13] = [
    "_API_KEY",
    "_APIKEY",
    "_API_TOKEN",
    "_ACCESS_TOKEN",
    "_AUTH_TOKEN",
    "_TOKEN",
    "_SECRET",
    "_SECRET_KEY",
    "_SECRET_ACCESS_KEY",
    "_PRIVATE_KEY",
    "PASSWORD",
    "PASSPHRASE",
    // `OTEL_EXPORTER_OTLP_HEADERS` and similar ones, which carry a collector's key.
    "_HEADERS",
];

/// Variables that change how bash reads a command, what it runs before it, or where it finds what the command names: with
/// them, what was judged would not be what runs. Those that say where locales come from can do the same.
const WITHHELD: [&str; 17] = [
    "BASHOPTS",
    "BASH_COMPAT",
    "BASH_ENV",
    "BASH_LOADABLES_PATH",
    "BASH_XTRACEFD",
    "CDPATH",
    "ENV",
    "EXECIGNORE",
    "GLOBIGNORE",
    "GREP_OPTIONS",
    "LANGUAGE",
    "LOCPATH",
    "NLSPATH",
    "POSIXLY_CORRECT",
    "PROMPT_COMMAND",
    "PS4",
    "SHELLOPTS",
];

/// Where a shell reads the characters that were judged.
const LOCALE: &str = if cfg!(target_os = "macos") {
    "en_US.UTF-8"
} else {
    "C.UTF-8"
};

const SET: [(&str, &str); 9] = [
    // Over all others, such as `LC_CTYPE`: in some encodings a character ends with a backslash.
    ("LC_ALL", LOCALE),
    ("LANG", LOCALE),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("MANPAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("DEBIAN_FRONTEND", "noninteractive"),
    ("TERM", "xterm-256color"),
];

impl Default for CommandEnvironment {
    fn default() -> Self {
        Self {
            withheld_suffixes: SECRET_SUFFIXES.map(Cow::Borrowed).into(),
            withheld: WITHHELD.map(Cow::Borrowed).into(),
            passed: Vec::new(),
            set: SET
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
        }
    }
}

/// `_TOKEN` stands for `X_TOKEN` and for a bare `TOKEN`.
fn is_or_ends_with(name: &str, suffix: &str) -> bool {
    name.ends_with(suffix) || suffix.strip_prefix('_') == Some(name)
}

impl CommandEnvironment {
    /// Returns whether a variable of the agent is withheld from commands.
    #[must_use]
    pub fn is_withheld(&self, name: &str) -> bool {
        let upper = name.to_ascii_uppercase();
        !self.passed.iter().any(|passed| passed == name)
            && (self.withheld.iter().any(|withheld| withheld == name)
                || self
                    .withheld_suffixes
                    .iter()
                    .any(|suffix| is_or_ends_with(&upper, suffix)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_withheld_unless_asked_for() {
        let mut environment = CommandEnvironment::default();
        for name in [
            "OPENAI_API_KEY",
            "GITHUB_TOKEN",
            "my_api_key",
            "OTEL_EXPORTER_OTLP_HEADERS",
        ] {
            assert!(environment.is_withheld(name), "{name}");
        }
        for name in ["HOME", "PATH", "TOKENIZERS_PARALLELISM", "LANG"] {
            assert!(!environment.is_withheld(name), "{name}");
        }
        environment.passed.push("GITHUB_TOKEN".to_owned());
        assert!(!environment.is_withheld("GITHUB_TOKEN"));
        assert!(environment.is_withheld("OPENAI_API_KEY"));
    }

    #[test]
    fn what_makes_a_command_another_than_was_judged_is_withheld() {
        let environment = CommandEnvironment::default();
        for name in [
            "BASHOPTS",
            "BASH_COMPAT",
            "BASH_ENV",
            "BASH_LOADABLES_PATH",
            "BASH_XTRACEFD",
            "CDPATH",
            "ENV",
            "EXECIGNORE",
            "GLOBIGNORE",
            "GREP_OPTIONS",
            "LANGUAGE",
            "LOCPATH",
            "NLSPATH",
            "POSIXLY_CORRECT",
            "PROMPT_COMMAND",
            "PS4",
            "SHELLOPTS",
        ] {
            assert!(environment.is_withheld(name), "{name}");
        }
    }
}
