//! The ids of sessions, turns and calls.

use crate::TimeMs;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

macro_rules! string_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Wraps an id without checking it.
            pub fn new(id: impl Into<String>) -> Self {
                Self(id.into().into())
            }

            /// Returns the id as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

string_id!(
    /// Names a session: a durable conversation.
    ///
    /// An id may become part of a path, so [`FromStr`], [`TryFrom`] and [`Deserialize`] check it with
    /// [`SessionId::parse`]; [`SessionId::new`] does not. An id made with `new` that `parse` rejects can
    /// be serialized but not deserialized.
    SessionId
);
string_id!(
    /// Names a turn: one user input to one outcome.
    #[derive(Deserialize)]
    TurnId
);
string_id!(
    /// Names a job: work that continues after the call that started it.
    #[derive(Deserialize)]
    JobId
);
string_id!(
    /// Names a tool call within its session.
    ///
    /// Always assigned by the engine, never by the provider: a provider may send no id, the same
    /// id twice, or one that another provider refuses. The provider's own id is kept beside it in
    /// [`ToolCall::wire_id`](crate::ToolCall::wire_id).
    #[derive(Deserialize)]
    CallId
);

/// Digits of the fixed-width fields of an engine-made call id.
const BASE36: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";

/// Characters of the shortest engine-made call id after its first one.
const CALL_DIGITS_MIN: usize = 8;

/// The longest session id that is accepted, in bytes.
const SESSION_ID_BYTES_MAX: usize = 128;

/// Why a text is not a valid session id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct BadSessionId {
    reason: &'static str,
}

impl SessionId {
    /// Parses an id that comes from outside, such as a file or a command line. A valid id can be
    /// typed, displayed and used in a file name.
    ///
    /// # Errors
    /// When it is empty, is longer than 128 bytes, contains anything but letters, digits and
    /// `-_.:@+`, starts with `-` or `.`, ends with `.jsonl`, or is the keyword `latest`.
    pub fn parse(id: &str) -> Result<Self, BadSessionId> {
        let is_plain = |c: char| c.is_alphanumeric() || "-_.:@+".contains(c);
        let reason = match id {
            "" => "it is empty",
            "latest" => "it names the session that was written last",
            _ if id.len() > SESSION_ID_BYTES_MAX => "it is longer than 128 bytes",
            _ if id.starts_with('-') => "it begins like an option",
            _ if id.starts_with('.') => "it begins like a hidden file",
            _ if id.ends_with(".jsonl") => "it looks like the file of an exported session",
            _ if !id.chars().all(is_plain) => "only letters, digits and -_.:@+ are allowed",
            _ => return Ok(Self::new(id)),
        };
        Err(BadSessionId { reason })
    }

    /// Returns the id of a session that begins at `at`: `s-`, the time and `unique`, both in
    /// hexadecimal, so that ids sort by time. `unique` distinguishes sessions of one millisecond.
    #[must_use]
    pub fn generated(at: TimeMs, unique: u64) -> Self {
        Self::new(format!("s-{:x}-{unique:x}", at.0))
    }

    /// Returns the id of the session that a call of this session starts: this id, a dot, and the call's. The same call
    /// has the same child, whichever process makes it. `None` if that would be longer than an id may be.
    #[must_use]
    pub fn child(&self, call: &CallId) -> Option<Self> {
        Self::parse(&format!("{self}.{call}")).ok()
    }

    /// Returns the session whose call started this one, by the shape of its id.
    #[must_use]
    pub fn parent(&self) -> Option<Self> {
        let (parent, call) = self.0.rsplit_once('.')?;
        let is_call = call.strip_prefix('r').is_some_and(|digits| {
            digits.len() >= CALL_DIGITS_MIN
                && digits
                    .bytes()
                    .all(|it| it.is_ascii_digit() || it.is_ascii_lowercase() || it == b'-')
        });
        (is_call && !parent.is_empty()).then(|| Self::new(parent))
    }
}

impl FromStr for SessionId {
    type Err = BadSessionId;

    fn from_str(id: &str) -> Result<Self, BadSessionId> {
        Self::parse(id)
    }
}

impl TryFrom<&str> for SessionId {
    type Error = BadSessionId;

    fn try_from(id: &str) -> Result<Self, BadSessionId> {
        Self::parse(id)
    }
}

impl TryFrom<String> for SessionId {
    type Error = BadSessionId;

    fn try_from(id: String) -> Result<Self, BadSessionId> {
        Self::parse(&id)
    }
}

impl<'de> Deserialize<'de> for SessionId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let id = String::deserialize(deserializer)?;
        Self::parse(&id).map_err(|bad| D::Error::custom(format_args!("a session's id: {bad}")))
    }
}

impl CallId {
    /// Returns the id of call `index` (from 0) in step `step` of turn number `turn`.
    ///
    /// Nine characters of `[a-z0-9]` for turns and steps below 46,656 and indexes below 1,296,
    /// because Mistral refuses anything but `[A-Za-z0-9]{9}` in a history; longer past that, which
    /// stays unique.
    #[must_use]
    pub fn generated(turn: u32, step: u32, index: u32) -> Self {
        let mut id = String::with_capacity(9);
        id.push('r');
        push_base36(&mut id, turn, 3);
        push_base36(&mut id, step, 3);
        push_base36(&mut id, index, 2);
        Self::new(id)
    }
}

fn push_base36(out: &mut String, value: u32, width: usize) {
    let digits = value.checked_ilog(36).map_or(0, |last| last as usize + 1);
    if digits > width {
        // A separator keeps overlong fields from running into their neighbors.
        out.push('-');
    }
    for place in (0..digits.max(width)).rev() {
        let place = u32::try_from(place).unwrap_or(u32::MAX);
        let rest = 36_u32.checked_pow(place).map_or(0, |unit| value / unit);
        let digit = usize::try_from(rest % 36).unwrap_or(0);
        out.push(char::from(BASE36.get(digit).copied().unwrap_or(b'0')));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_ids_have_nine_alphanumeric_characters() {
        assert_eq!(CallId::generated(1, 2, 3).as_str(), "r00100203");
        assert_eq!(
            CallId::generated(46_655, 46_655, 1_295).as_str(),
            "rzzzzzzzz"
        );
    }

    #[test]
    fn a_child_is_named_by_its_parent_and_its_call() {
        let parent = SessionId::new("s-1-2");
        let child = parent.child(&CallId::generated(1, 2, 3)).unwrap();
        assert_eq!(child.as_str(), "s-1-2.r00100203");
        assert_eq!(child.parent(), Some(parent.clone()));
        let long = child
            .child(&CallId::generated(46_656, 46_656, 1_296))
            .unwrap();
        assert_eq!(long.parent(), Some(child));
        for other in [
            "s-1-2",
            "a.b",
            "a.r0010020",
            "a.R00100203",
            ".r00100203",
            "a.jsonl",
        ] {
            assert_eq!(SessionId::new(other).parent(), None, "{other}");
        }
        let longest = SessionId::new("x".repeat(SESSION_ID_BYTES_MAX - 10));
        assert!(longest.child(&CallId::generated(1, 2, 3)).is_some());
        let longer = SessionId::new("x".repeat(SESSION_ID_BYTES_MAX - 9));
        assert_eq!(longer.child(&CallId::generated(1, 2, 3)), None);
    }

    #[test]
    fn an_id_from_outside_is_a_name_and_no_path() {
        let long = "x".repeat(129);
        let odd = [
            "",
            "latest",
            "-c",
            ".",
            "..",
            "../../x",
            "/tmp/x",
            "a/b",
            "a b",
            "a\n",
            "a\u{1b}[2J",
            "x.jsonl",
            &long,
        ];
        for id in odd {
            let bad = SessionId::parse(id).unwrap_err();
            assert_eq!(id.parse::<SessionId>(), Err(bad), "{id:?}");
            assert_eq!(SessionId::try_from(id), Err(bad), "{id:?}");
            assert_eq!(SessionId::try_from(id.to_owned()), Err(bad), "{id:?}");
            let json = serde_json::to_string(id).unwrap();
            let read = serde_json::from_str::<SessionId>(&json).unwrap_err();
            assert!(read.to_string().contains(&bad.to_string()), "{read}");
        }
        for id in ["s-19a-b", "a.b", "me@host:1", "\u{e4}rger"] {
            let known = SessionId::new(id);
            assert_eq!(SessionId::parse(id), Ok(known.clone()));
            assert_eq!(id.parse(), Ok(known.clone()));
            assert_eq!(SessionId::try_from(id), Ok(known.clone()));
            assert_eq!(SessionId::try_from(id.to_owned()), Ok(known.clone()));
            let json = serde_json::to_string(&known).unwrap();
            assert_eq!(json, serde_json::to_string(id).unwrap());
            assert_eq!(serde_json::from_str::<SessionId>(&json).unwrap(), known);
        }
    }

    #[test]
    fn overlong_fields_stay_distinct() {
        assert_ne!(CallId::generated(46_656, 0, 0), CallId::generated(1, 0, 0));
        assert_ne!(CallId::generated(0, 46_656, 0), CallId::generated(0, 1, 0));
    }
}
