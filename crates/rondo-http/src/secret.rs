//! Keys and passwords, whose `Debug` output is hidden.

use std::fmt;

/// Shorter secrets are not searched for in texts: they would match by chance.
const SCRUB_BYTES_MIN: usize = 8;
/// Replacement of a secret.
const REDACTED: &str = "[redacted]";

/// A key or a password: never shown, logged or serialized.
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
        let head = secret.0.get(..SCRUB_BYTES_MIN);
        if let Some(head) = head.filter(|head| text.contains(head)) {
            *text = without(text, head, &secret.0);
        }
    }
}

/// Removes a secret that begins with `head` from a text, also if the text ends within it: a
/// message is bounded before it comes here.
fn without(text: &str, head: &str, secret: &str) -> String {
    let tail = secret.get(head.len()..).unwrap_or_default();
    let mut pieces = text.split(head).peekable();
    let mut out = pieces.next().unwrap_or_default().to_owned();
    while let Some(piece) = pieces.next() {
        let same = tail.chars().zip(piece.chars()).take_while(|(a, b)| a == b);
        let (read, rest) = piece.split_at(same.map(|(c, _)| c.len_utf8()).sum());
        let is_cut = pieces.peek().is_none() && rest.trim_matches('`').is_empty();
        if read == tail || is_cut {
            out.push_str(REDACTED);
        } else {
            out.push_str(head);
            out.push_str(read);
        }
        out.push_str(rest);
    }
    out
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

    #[test]
    fn a_text_that_only_begins_like_a_secret_is_left() {
        let secret = [Secret::new("https://mine.example/x")];
        let scrubbed = |text: &str| {
            let mut text = text.to_owned();
            scrub(&mut text, &secret);
            text
        };
        assert_eq!(scrubbed("see https://a.b/c"), "see https://a.b/c");
        assert_eq!(scrubbed("at https://mine.example/x."), "at [redacted].");
        assert_eq!(scrubbed("at `https://mine.exa`"), "at `[redacted]`");
    }
}
