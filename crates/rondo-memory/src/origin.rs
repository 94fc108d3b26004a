//! Origin of a memory, and its form in the file: a comment behind the text that Markdown does not show.
//!
//! `<!-- rondo: saved 2026-03-01T09:30:00Z by model; session s-1; turn t-2; call 0123456789abcdef; from outside -->`
//!
//! A file can be edited by hand, so an origin is what the file claims. Only a memory without the mark `from outside`
//! gains anything by a false claim, and a writer of the file could as well write the memory again.

use crate::calendar;
use rondo_types::TimeMs;
use serde::{Serialize, Serializer};
use std::fmt::Write as _;

/// The beginning of the comment.
const OPENING: &str = "<!-- rondo: ";
/// End of the comment.
const CLOSING: &str = "-->";
/// The bound on a session's or turn's id in the comment, in bytes; longer ones are left out.
const ID_BYTES_MAX: usize = 160;

/// Author of a memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Author {
    /// The user, by a command.
    User,
    /// A model, by `save_memory`.
    Model,
    /// An edit of the file by hand.
    #[default]
    Hand,
}

impl Author {
    /// Returns the word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Model => "model",
            Self::Hand => "hand",
        }
    }
}

/// Origin of a memory, as its file says.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Origin {
    /// Author of the memory.
    pub by: Author,
    /// When it was saved; `None` if it was written by hand. As JSON, it is the text of RFC 3339 in UTC.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "in_words")]
    pub saved: Option<TimeMs>,
    /// The session in which it was saved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<String>,
    /// The call that saved it: a hash of its key, by which a repeated call finds what it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// Set if the turn had read text from outside, such as a web page.
    pub from_outside: bool,
}

impl Origin {
    /// Returns the origin of a memory that is saved now.
    #[must_use]
    pub fn new(by: Author, at: TimeMs) -> Self {
        Self {
            by,
            saved: Some(at),
            ..Self::default()
        }
    }

    /// Returns the comment.
    pub(crate) fn comment(&self) -> String {
        let saved = written(self.saved.unwrap_or_default());
        let mut comment = format!("{OPENING}saved {saved} by {}", self.by.as_str());
        let ids = [
            ("session", &self.session),
            ("turn", &self.turn),
            ("call", &self.call),
        ];
        for (name, id) in ids {
            if let Some(id) = id.as_deref().filter(|id| is_plain(id)) {
                let _ = write!(comment, "; {name} {id}");
            }
        }
        if self.from_outside {
            comment.push_str("; from outside");
        }
        comment + " " + CLOSING
    }
}

fn written(time: TimeMs) -> String {
    match time.0 % 1000 {
        0 => calendar::utc(time).to_string(),
        _ => format!("{:.3}", calendar::utc(time)),
    }
}

fn in_words<S: Serializer>(time: &Option<TimeMs>, to: S) -> Result<S::Ok, S::Error> {
    time.map(written).serialize(to)
}

/// Splits the text of a block into the memory and its origin.
pub(crate) fn split(text: &str) -> (&str, Origin) {
    let text = text.trim_end();
    let found = text
        .strip_suffix(CLOSING)
        .and_then(|rest| Some((rest.rfind(OPENING)?, rest)));
    let Some((at, rest)) = found else {
        return (text, Origin::default());
    };
    let (memory, comment) = rest.split_at(at);
    let fields = comment.strip_prefix(OPENING).unwrap_or_default();
    (memory.trim_end(), read(fields))
}

/// Fields of later versions, and those that make no sense, are passed over.
fn read(fields: &str) -> Origin {
    let mut origin = Origin::default();
    for field in fields.split(';').map(str::trim) {
        let (name, value) = field.split_once(' ').unwrap_or((field, ""));
        let id = || Some(value.to_owned()).filter(|id| is_plain(id));
        match name {
            "saved" => {
                let (at, by) = value.split_once(" by ").unwrap_or((value, ""));
                origin.saved = calendar::parse(at);
                origin.by = match by {
                    "user" => Author::User,
                    "model" => Author::Model,
                    _ => Author::Hand,
                };
            }
            "session" => origin.session = id(),
            "turn" => origin.turn = id(),
            "call" => origin.call = id(),
            "from" => origin.from_outside |= value == "outside",
            _ => {}
        }
    }
    origin
}

/// An id that could end the comment or its field is not written, nor believed.
fn is_plain(id: &str) -> bool {
    let is_plain = |c: char| c.is_alphanumeric() || "-_.:@+".contains(c);
    (1..=ID_BYTES_MAX).contains(&id.len()) && id.chars().all(is_plain) && !id.contains("--")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin() -> Origin {
        Origin {
            session: Some("s-1".to_owned()),
            turn: Some("t-2".to_owned()),
            call: Some("0123456789abcdef".to_owned()),
            from_outside: true,
            ..Origin::new(Author::Model, TimeMs(1_772_357_400_000))
        }
    }

    #[test]
    fn a_comment_is_read_as_it_was_written() {
        let comment = origin().comment();
        assert_eq!(
            comment,
            "<!-- rondo: saved 2026-03-01T09:30:00Z by model; session s-1; turn t-2; call 0123456789abcdef; from outside -->"
        );
        assert_eq!(split(&format!("Tabs. {comment}\n")), ("Tabs.", origin()));
        assert_eq!(split(&format!("Tabs.\n{comment}")), ("Tabs.", origin()));
    }

    #[test]
    fn an_id_that_would_end_the_comment_is_left_out() {
        let session = Some("s--> by user".to_owned());
        let comment = Origin {
            session,
            ..origin()
        }
        .comment();
        assert!(!comment.contains("session"), "{comment}");
        let session = Some("a--b".to_owned());
        assert!(
            !Origin {
                session,
                ..origin()
            }
            .comment()
            .contains("session")
        );
    }

    #[test]
    fn a_text_without_a_comment_at_its_end_was_written_by_hand() {
        for text in [
            "Tabs.",
            "<!-- rondo: saved x --> Tabs.",
            "Tabs. <!-- todo -->",
        ] {
            assert_eq!(split(text), (text, Origin::default()));
        }
        let (text, origin) = split("Tabs. <!-- rondo: saved never by model; session a;b -->");
        assert_eq!(text, "Tabs.");
        assert_eq!((origin.saved, origin.by), (None, Author::Model));
    }
}
