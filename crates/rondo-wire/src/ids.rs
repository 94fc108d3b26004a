//! Replaces call ids that a provider refuses.
//!
//! A wire id goes back where it came from, whatever it looks like. Elsewhere the call's own id takes
//! its place, and that may be anything in a transcript that was imported.

use std::borrow::Cow;

/// Characters of an id that every provider takes, Mistral included.
const ID_CHARS: usize = 9;

/// The alphabet of such an id.
const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Rule of a wire for the id of a call, in characters of `[A-Za-z0-9_-]`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IdRule {
    pub(crate) chars_max: usize,
}

impl IdRule {
    /// Returns `id` if the wire accepts it, else one made from it.
    pub(crate) fn apply<'a>(&self, id: &'a str) -> Cow<'a, str> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        if !id.is_empty() && id.len() <= self.chars_max && id.bytes().all(allowed) {
            return Cow::Borrowed(id);
        }
        nine_chars(id)
    }
}

/// Returns `id` if it is nine characters of `[A-Za-z0-9]`, else one made from it: the same for the
/// same id, and different for different ones but for a collision of 53 bits.
pub(crate) fn nine_chars(id: &str) -> Cow<'_, str> {
    let fits = id.len() == ID_CHARS && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if fits {
        return Cow::Borrowed(id);
    }
    let mut rest = fnv1a(id.as_bytes());
    let mut made = String::with_capacity(ID_CHARS);
    for _ in 0..ID_CHARS {
        let digit = usize::try_from(rest % 62).unwrap_or(0);
        made.push(char::from(ALPHABET.get(digit).copied().unwrap_or(b'0')));
        rest /= 62;
    }
    Cow::Owned(made)
}

/// The 64-bit FNV-1a hash, http://www.isthe.com/chongo/tech/comp/fnv/.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: IdRule = IdRule { chars_max: 12 };

    #[test]
    fn an_id_is_kept_up_to_the_bound_and_within_the_alphabet() {
        for id in ["a", "r00100203", "call_A-1_xyz"] {
            assert_eq!(RULE.apply(id), id);
        }
        for id in ["", "call_A-1_xyz0", "a.b", "a b", "é"] {
            let made = RULE.apply(id).into_owned();
            assert_eq!(made.len(), ID_CHARS, "{id}");
            assert!(made.bytes().all(|byte| byte.is_ascii_alphanumeric()));
            assert_eq!(RULE.apply(id), made, "the same each time");
        }
        assert_ne!(RULE.apply("a.b"), RULE.apply("a b"));
    }
}
