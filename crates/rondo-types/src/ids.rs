use crate::TimeMs;
use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! string_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Wraps an existing id.
            pub fn new(id: impl Into<String>) -> Self {
                Self(id.into())
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
    SessionId
);
string_id!(
    /// Names a turn: one user input to one outcome.
    TurnId
);
string_id!(
    /// Names a tool call within its session.
    ///
    /// Always assigned by the engine, never by the provider: a provider may send no id, the same
    /// id twice, or one that another provider refuses. What the provider sent is kept beside it in
    /// [`ToolCall::wire_id`](crate::ToolCall::wire_id).
    CallId
);

/// Digits of the fixed-width fields of an engine-made call id.
const BASE36: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";

impl SessionId {
    /// Returns the id of a session that begins at `at`, which `unique` tells from all others of
    /// that millisecond: `s-` and both in hexadecimal, so that ids sort by time.
    #[must_use]
    pub fn generated(at: TimeMs, unique: u64) -> Self {
        Self(format!("s-{:x}-{unique:x}", at.0))
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
        let mut id = String::from("r");
        push_base36(&mut id, turn, 3);
        push_base36(&mut id, step, 3);
        push_base36(&mut id, index, 2);
        Self(id)
    }
}

fn push_base36(out: &mut String, value: u32, width: usize) {
    let mut digits = Vec::with_capacity(7);
    let mut rest = value;
    while rest > 0 || digits.len() < width {
        let digit = usize::try_from(rest % 36).unwrap_or(0);
        digits.push(BASE36.get(digit).copied().unwrap_or(b'0'));
        rest /= 36;
    }
    if digits.len() > width {
        // A separator keeps overlong fields from running into their neighbours.
        out.push('-');
    }
    out.extend(digits.iter().rev().map(|digit| char::from(*digit)));
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
    fn overlong_fields_stay_distinct() {
        assert_ne!(CallId::generated(46_656, 0, 0), CallId::generated(1, 0, 0));
        assert_ne!(CallId::generated(0, 46_656, 0), CallId::generated(0, 1, 0));
    }
}
