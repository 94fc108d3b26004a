//! The bot's token, which is part of every address that is asked.

use rondo_http::Secret;
use std::fmt;

/// The fewest characters of the secret part; Telegram's has 35.
const SECRET_CHARS_MIN: usize = 20;

/// A bot's token, such as `123456:ABC-DEF...`: never shown, logged or serialized.
#[derive(Clone, PartialEq, Eq)]
pub struct BotToken(Secret);

/// Why a text is not a token. It does not contain the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "this is not a bot token, which looks like `123456:ABC-DEF1234ghIkl-zyx57W2v1u123ew11`; @BotFather shows it"
)]
pub struct TokenError;

impl BotToken {
    /// Reads a token; white space around it, which files leave, is removed.
    ///
    /// # Errors
    /// When it is none. The shape is checked because the token becomes a part of addresses.
    pub fn parse(text: &str) -> Result<Self, TokenError> {
        let secret = Secret::new(text);
        let (id, rest) = secret.expose().split_once(':').ok_or(TokenError)?;
        let is_secret = |it: char| it.is_ascii_alphanumeric() || it == '-' || it == '_';
        let is_token = !id.is_empty()
            && id.len() <= 20
            && id.chars().all(|it| it.is_ascii_digit())
            && rest.len() >= SECRET_CHARS_MIN
            && rest.chars().all(is_secret);
        match is_token {
            true => Ok(Self(secret)),
            false => Err(TokenError),
        }
    }

    /// Returns the bot's id, which is public.
    #[must_use]
    pub fn bot_id(&self) -> &str {
        self.0.expose().split(':').next().unwrap_or_default()
    }

    /// Returns the token as a secret, to be removed from what others write.
    #[must_use]
    pub fn secret(&self) -> &Secret {
        &self.0
    }

    /// Returns a text without the token, or its secret part alone.
    pub(crate) fn scrubbed(&self, text: &str) -> String {
        let whole = self.0.expose();
        let secret = whole.split(':').nth(1).unwrap_or(whole);
        text.replace(whole, "[redacted]")
            .replace(secret, "[redacted]")
    }
}

impl fmt::Debug for BotToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "4200000001:AAfakefakefakefakefakefakefakefake0";

    #[test]
    fn a_token_is_read_and_never_shown() {
        let token = BotToken::parse(&format!(" {TOKEN}\n")).unwrap();
        assert_eq!(token.bot_id(), "4200000001");
        assert_eq!(format!("{token:?}"), "[redacted]");
        let echoed = format!("no {TOKEN} and no {}.", &TOKEN[11..]);
        assert_eq!(token.scrubbed(&echoed), "no [redacted] and no [redacted].");
    }

    #[test]
    fn what_would_lead_elsewhere_is_no_token() {
        for text in [
            "",
            "x",
            "123",
            "123:short",
            ":AAfakefakefakefakefakefake",
            "12a:AAfakefakefakefakefakefake",
            "123:AAfakefakefakefake/../../x",
            "123:AAfakefakefakefake?a=b#cdef",
            "123:AAfakefake fakefakefakefake",
        ] {
            assert_eq!(BotToken::parse(text), Err(TokenError), "{text}");
        }
    }
}
