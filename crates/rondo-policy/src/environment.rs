//! The environment variables that commands get.

use std::borrow::Cow;
use std::collections::BTreeMap;

/// The rules by which a command's environment is made from the agent's.
///
/// Keys of providers, and variables that change how the shell reads a command, are withheld; pagers and
/// prompts are switched off, and the locale is a fixed one with UTF-8.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandEnvironment {
    /// Withholds variables that look like secrets.
    pub withholds_secrets: bool,
    /// Names that are withheld.
    pub withheld: Vec<Cow<'static, str>>,
    /// Names that are passed on although they would be withheld.
    pub passed: Vec<String>,
    /// Variables that are set.
    pub set: BTreeMap<String, String>,
}

/// Ends of names that usually hold secrets.
const SECRET_SUFFIXES: [&str; 20] = [
    "_APIKEY",
    "_AUTH",
    "_AUTHTOKEN",
    "_BEARER",
    "_CONNECTION_STRING",
    "_COOKIE",
    "_DSN",
    // `OTEL_EXPORTER_OTLP_HEADERS` and similar ones, which carry a collector's key.
    "_HEADERS",
    "_JWT",
    "_KEY",
    "_PASS",
    "_PAT",
    "_PWD",
    "_SAS",
    "_TOKEN",
    "AUTHTOKEN",
    "PASSPHRASE",
    "PASSWD",
    "PASSWORD",
    "SECRET",
];

/// Words of names that usually hold secrets, wherever in the name they are.
const SECRET_WORDS: [&str; 9] = [
    "CREDENTIAL",
    "CREDENTIALS",
    "CREDS",
    "PASSPHRASE",
    "PASSWD",
    "PASSWORD",
    "PASSWORDS",
    "SECRET",
    "SECRETS",
];

/// Ends of names of variables that say where a secret is, and do not hold it.
const PLACE_SUFFIXES: [&str; 3] = ["_DIR", "_FILE", "_PATH"];

/// Names that look like those of secrets and hold none: the shell's directory, where Google's libraries find their keys, and
/// what `sort --key=2` assigns to.
const NOT_SECRET: [&str; 3] = ["GOOGLE_APPLICATION_CREDENTIALS", "KEY", "PWD"];

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

/// Locale in which a shell reads the characters as they were judged.
const LOCALE: &str = if cfg!(target_os = "macos") {
    "en_US.UTF-8"
} else {
    "C.UTF-8"
};

const SET: [(&str, &str); 16] = [
    // Over all others, such as `LC_CTYPE`: in some encodings a character ends with a backslash.
    ("LC_ALL", LOCALE),
    ("LANG", LOCALE),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    // To `git` this is an editor that changes nothing. Any other would wait for a person who is not there.
    ("GIT_EDITOR", ":"),
    ("GIT_SEQUENCE_EDITOR", ":"),
    ("MANPAGER", "cat"),
    // Other programs that want an editor fail at once and name it.
    ("EDITOR", "false"),
    ("VISUAL", "false"),
    // These ask for a password in a window, or on the terminal.
    ("GIT_ASKPASS", "false"),
    ("SSH_ASKPASS", "false"),
    ("SSH_ASKPASS_REQUIRE", "force"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("DEBIAN_FRONTEND", "noninteractive"),
    ("TERM", "xterm-256color"),
];

impl Default for CommandEnvironment {
    fn default() -> Self {
        Self {
            withholds_secrets: true,
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

/// Returns whether the name of a variable looks like that of a secret.
fn looks_secret(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    if NOT_SECRET.contains(&upper.as_str()) {
        return false;
    }
    let mut suffixes = SECRET_SUFFIXES.iter();
    let is_place = || PLACE_SUFFIXES.iter().any(|it| upper.ends_with(it));
    let mut words = upper.split(|it: char| !it.is_ascii_alphanumeric());
    suffixes.any(|it| is_or_ends_with(&upper, it))
        || (words.any(|word| SECRET_WORDS.contains(&word)) && !is_place())
}

/// Returns whether the address of a server has a password in it, as in `postgres://person:password@host/name`.
fn has_password(value: &str) -> bool {
    let authorities = value.split("://").skip(1).map(|rest| {
        let end = rest.find(|it: char| matches!(it, '/' | '?' | '#') || it.is_whitespace());
        rest.get(..end.unwrap_or(rest.len())).unwrap_or_default()
    });
    let mut users = authorities.filter_map(|it| it.rsplit_once('@').map(|(user, _)| user));
    users.any(|user| {
        user.split_once(':')
            .is_some_and(|(_, password)| !password.is_empty())
    })
}

impl CommandEnvironment {
    /// Returns whether a variable of the agent is withheld from commands whatever its value is.
    #[must_use]
    pub fn is_withheld(&self, name: &str) -> bool {
        !self.is_named(name)
            && (self.withheld.iter().any(|withheld| withheld == name)
                || (self.withholds_secrets && looks_secret(name)))
    }

    /// Returns whether a variable of the agent is withheld from commands: for its name, or because its value is an address
    /// with a password. A proxy is needed by every program that reaches another machine, and is passed with its password.
    #[must_use]
    pub fn is_withheld_with(&self, name: &str, value: &str) -> bool {
        let is_proxy = || name.to_ascii_lowercase().ends_with("_proxy");
        let is_secret = || self.withholds_secrets && has_password(value) && !is_proxy();
        self.is_withheld(name) || (is_secret() && !self.is_named(name))
    }

    /// Returns whether the user names a variable that commands get.
    #[must_use]
    pub fn is_named(&self, name: &str) -> bool {
        self.passed.iter().any(|passed| passed == name)
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
            "RONDO_HUB_KEY",
            "GITLAB_PAT",
            "STRIPE_KEY",
            "MYSQL_PWD",
            "PGPASSWORD",
            "REDIS_PASS",
            "SECRET_KEY_BASE",
            "DJANGO_SECRET_KEY",
            "NPM_CONFIG__AUTHTOKEN",
            "npm_config_//registry.npmjs.org/:_authToken",
            "AZURE_STORAGE_CONNECTION_STRING",
            "SENTRY_DSN",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_CREDENTIALS",
            "TOKEN",
            "CARGO_REGISTRIES_MINE_TOKEN",
            "SLACK_SIGNING_SECRET",
            "SESSION_COOKIE",
            "VAULT_PASSWORD_OLD",
        ] {
            assert!(environment.is_withheld(name), "{name}");
        }
        for name in [
            "HOME",
            "PATH",
            "PWD",
            "OLDPWD",
            "KEY",
            "TOKENIZERS_PARALLELISM",
            "LANG",
            "SSH_ASKPASS",
            "AWS_SHARED_CREDENTIALS_FILE",
            "POSTGRES_PASSWORD_FILE",
            "GOOGLE_APPLICATION_CREDENTIALS",
            "KEYBOARD",
            "COMPASS",
            "XAUTHORITY",
            "MAX_TOKENS",
        ] {
            assert!(!environment.is_withheld(name), "{name}");
        }
        environment.passed.push("GITHUB_TOKEN".to_owned());
        assert!(!environment.is_withheld("GITHUB_TOKEN"));
        assert!(environment.is_withheld("OPENAI_API_KEY"));
    }

    #[test]
    fn an_address_with_a_password_is_withheld_unless_it_is_a_proxy() {
        let mut environment = CommandEnvironment::default();
        for value in [
            "postgres://person:hunter2@db.example.com/shop",
            "redis://:hunter2@localhost:6379",
            "first=https://example.com second=https://a:b@example.com",
        ] {
            assert!(
                environment.is_withheld_with("DATABASE_URL", value),
                "{value}"
            );
            assert!(!environment.is_withheld_with("https_proxy", value));
        }
        for value in [
            "postgres://localhost/shop",
            "ssh://git@example.com:22/repository",
            "https://example.com/@scope/a:b@c",
            "https://person:@example.com",
            "a:b@c",
            "",
        ] {
            assert!(
                !environment.is_withheld_with("DATABASE_URL", value),
                "{value}"
            );
        }
        environment.passed.push("DATABASE_URL".to_owned());
        assert!(!environment.is_withheld_with("DATABASE_URL", "postgres://a:b@c/d"));
    }

    #[test]
    fn what_makes_a_command_another_than_was_judged_is_withheld() {
        let environment = CommandEnvironment::default();
        for name in ["BASH_ENV", "CDPATH", "ENV", "LOCPATH", "PS4", "SHELLOPTS"] {
            assert!(environment.is_withheld(name), "{name}");
        }
    }
}
