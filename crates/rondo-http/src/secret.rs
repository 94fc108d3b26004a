use std::fmt;

/// Shorter secrets are not searched for in texts: they would match by chance.
const SCRUB_BYTES_MIN: usize = 8;
/// What stands where a secret stood.
const REDACTED: &str = "[redacted]";

/// A key or a password: never shown, logged or serialised.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Secret(String);

impl Secret {
    /// Wraps a secret; white space around it, which files and commands leave, is removed.
    pub fn new(text: impl AsRef<str>) -> Self {
        Self(text.as_ref().trim().to_owned())
    }

    /// Returns the secret itself, for the one place that sends it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Returns whether there is nothing in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

/// Removes the secrets from a text that a provider may have echoed them in.
pub(crate) fn scrub(text: &mut String, secrets: &[Secret]) {
    for secret in secrets {
        if secret.0.len() >= SCRUB_BYTES_MIN && text.contains(&secret.0) {
            *text = text.replace(&secret.0, REDACTED);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_never_shown() {
        let secret = Secret::new("sk-123456789\n");
        assert_eq!(format!("{secret} {secret:?}"), "[redacted] [redacted]");
        assert_eq!(secret.expose(), "sk-123456789");
    }

    #[test]
    fn an_echoed_secret_is_removed_but_a_short_one_is_left() {
        let mut text = "key sk-123456789 of abc".to_owned();
        scrub(
            &mut text,
            &[Secret::new("sk-123456789"), Secret::new("abc")],
        );
        assert_eq!(text, "key [redacted] of abc");
    }
}
