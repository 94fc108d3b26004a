//! The table `[hub.channels.telegram]` of the user's configuration.

use crate::settings::{Streaming, TelegramSettings};
use crate::{Api, BotToken, TELEGRAM_URL, Telegram};
use rondo_http::Transport;
use rondo_runtime::Env;
use rondo_runtime::error::{Result, SetupError, SetupErrorKind};
use rondo_runtime::files::read_text;
use serde::Deserialize;
use std::path::PathBuf;

/// The variable that has the token if the table names none.
const TOKEN_VARIABLE: &str = "TELEGRAM_BOT_TOKEN";
/// The bound on a file with a token, in bytes.
const TOKEN_FILE_BYTES_MAX: u64 = 4 << 10;

/// Configuration of the channel.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Config {
    /// The environment variable that has the token.
    token_env: Option<String>,
    /// The file that has the token.
    token_file: Option<PathBuf>,
    /// The address of a Bot API server of one's own.
    base_url: Option<String>,
    /// As [`TelegramSettings::rich`].
    rich: bool,
    /// As [`TelegramSettings::streaming`].
    streaming: Stream,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Stream {
    #[default]
    Drafts,
    Edits,
    Off,
}

impl Telegram {
    /// Builds the channel by its table of the configuration; `commands` are those that clients list.
    ///
    /// # Errors
    /// When the table is malformed or no token is found. No error has the token.
    pub fn configured(
        table: &toml::Table,
        env: &Env,
        transport: Transport,
        commands: &[(&str, &str)],
    ) -> Result<Self> {
        let config = Config::of(table)?;
        let commands = commands.iter();
        let commands = commands.map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
        let settings = TelegramSettings {
            rich: config.rich,
            streaming: match config.streaming {
                Stream::Drafts => Streaming::Drafts,
                Stream::Edits => Streaming::Edits,
                Stream::Off => Streaming::Off,
            },
            commands: commands.collect(),
        };
        Ok(Self::new(config.api(env, transport)?, settings))
    }
}

impl Api {
    /// Builds access for the bot of the channel's table.
    ///
    /// # Errors
    /// As [`Telegram::configured`].
    pub fn configured(table: &toml::Table, env: &Env, transport: Transport) -> Result<Self> {
        Config::of(table)?.api(env, transport)
    }
}

impl Config {
    fn of(table: &toml::Table) -> Result<Self> {
        if table.contains_key("token") {
            let message = "`[hub.channels.telegram]` contains the token, and configuration files are often shared by mistake";
            let hint = format!(
                "put it into the variable `{TOKEN_VARIABLE}`, or into a file and name that in `token_file`"
            );
            return Err(SetupError::new(SetupErrorKind::Config, message).hint(hint));
        }
        toml::Value::Table(table.clone())
            .try_into()
            .map_err(|err: toml::de::Error| {
                let context =
                    "the table `[hub.channels.telegram]` of the configuration is malformed";
                SetupError::because(SetupErrorKind::Config, context, err.to_string().trim_end())
            })
    }

    fn api(&self, env: &Env, transport: Transport) -> Result<Api> {
        let token = BotToken::parse(&self.token(env)?).map_err(|err| {
            let context = format!("{} is wrong", self.source());
            SetupError::because(SetupErrorKind::Config, context, err)
        })?;
        let base_url = self.base_url.as_deref().unwrap_or(TELEGRAM_URL);
        let is_address = base_url.starts_with("https://") || base_url.starts_with("http://");
        if !is_address {
            let message = "`base_url` of `[hub.channels.telegram]` is not an http or https address";
            return Err(SetupError::new(SetupErrorKind::Config, message));
        }
        Ok(Api::new(transport, base_url, token))
    }

    fn token(&self, env: &Env) -> Result<String> {
        if let Some(path) = &self.token_file {
            return read_text(path, TOKEN_FILE_BYTES_MAX).map_err(|err| {
                let context = format!("the bot's token cannot be read from `{}`", path.display());
                SetupError::because(SetupErrorKind::Config, context, err)
            });
        }
        let variable = self.token_env.as_deref().unwrap_or(TOKEN_VARIABLE);
        env.text(variable).ok_or_else(|| {
            let message = format!("the channel `telegram` has no token: `{variable}` is not set");
            let hint = "make a bot with @BotFather in Telegram, and export the token that it shows";
            SetupError::new(SetupErrorKind::Config, message).hint(hint)
        })
    }

    /// Names where the token is from.
    fn source(&self) -> String {
        match (&self.token_file, &self.token_env) {
            (Some(path), _) => format!("the bot's token in `{}`", path.display()),
            (None, Some(variable)) => format!("the bot's token in `{variable}`"),
            (None, None) => format!("the bot's token in `{TOKEN_VARIABLE}`"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rondo_http::Network;

    const TOKEN: &str = "4200000001:AAfakefakefakefakefakefakefakefake0";

    fn built(table: &str, variables: &[(&str, &str)]) -> std::result::Result<Telegram, String> {
        let table: toml::Table = table.parse().unwrap();
        let transport = Transport::new(Network::default()).unwrap();
        let built = Telegram::configured(&table, &Env::of(variables), transport, &[]);
        built.map_err(|err| format!("{err} {err:?}"))
    }

    #[test]
    fn a_token_is_found_in_a_variable_or_a_file() {
        built("", &[("TELEGRAM_BOT_TOKEN", TOKEN)]).unwrap();
        let telegram = built(
            "token_env = \"T\"\nrich = true\nstreaming = \"edits\"",
            &[("T", TOKEN)],
        );
        let settings = telegram.unwrap().settings;
        assert!(settings.rich);
        assert_eq!(settings.streaming, Streaming::Edits);
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("token");
        std::fs::write(&file, format!("{TOKEN}\n")).unwrap();
        built(&format!("token_file = {file:?}"), &[]).unwrap();
    }

    #[test]
    fn what_is_wrong_is_said_without_the_token() {
        let key = [("TELEGRAM_BOT_TOKEN", TOKEN)];
        for (table, variables, expected) in [
            ("", &[][..], "`TELEGRAM_BOT_TOKEN` is not set"),
            (
                "",
                &[("TELEGRAM_BOT_TOKEN", "AAfake")][..],
                "not a bot token",
            ),
            ("token = \"AAfake\"", &key[..], "`token_file`"),
            ("token_file = \"/nowhere/AA\"", &key[..], "cannot be read"),
            ("colour = \"red\"", &key[..], "unknown field `colour`"),
            ("base_url = \"ftp://h\"", &key[..], "not an http"),
        ] {
            let said = built(table, variables).unwrap_err();
            assert!(said.contains(expected), "{said}");
            assert!(!said.contains("AAfake"), "{said}");
        }
    }
}
