//! The text of a message's deltas as a fingerprint, so that the whole text that a server sends behind them can be
//! compared without keeping the text twice.

use crate::halves::Joiner;

/// A fingerprint of text that arrives in pieces. White space does not count: several servers trim
/// the whole text, or lay it out again.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct DeltaText {
    chars: u64,
    hash: u64,
    ends_blank: bool,
    halves: Joiner,
}

impl DeltaText {
    pub(super) fn add(&mut self, piece: &str) {
        let mut halves = self.halves;
        for it in piece.chars() {
            halves.take(it, |it| self.add_char(it));
        }
        self.halves = halves;
    }

    fn add_char(&mut self, it: char) {
        self.ends_blank = it.is_whitespace();
        if !self.ends_blank {
            self.chars = self.chars.saturating_add(1);
            self.hash = mixed(self.hash, it);
        }
    }

    /// Returns the part of `whole` that no delta had; `None` if `whole` does not begin with their text.
    pub(super) fn rest_of<'t>(&self, whole: &'t str) -> Option<&'t str> {
        let (mut chars, mut hash, mut end) = (0_u64, 0, 0);
        let mut visible = whole.char_indices().filter(|(_, it)| !it.is_whitespace());
        while chars < self.chars {
            let (at, it) = visible.next()?;
            hash = mixed(hash, it);
            chars += 1;
            end = at + it.len_utf8();
        }
        let rest = whole.get(end..).filter(|_| hash == self.hash)?;
        Some(match rest.trim() {
            "" => "",
            _ if self.ends_blank => rest.trim_start(),
            _ => rest,
        })
    }
}

/// FNV-1a, of characters in place of bytes.
fn mixed(hash: u64, it: char) -> u64 {
    (hash ^ u64::from(it)).wrapping_mul(0x0000_0100_0000_01b3)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rest<'t>(pieces: &[&str], whole: &'t str) -> Option<&'t str> {
        let mut text = DeltaText::default();
        pieces.iter().for_each(|piece| text.add(piece));
        text.rest_of(whole)
    }

    #[test]
    fn the_rest_is_the_text_that_no_delta_had() {
        let cases: [(&[&str], &str, Option<&str>); 9] = [
            (&[], "all", Some("all")),
            (&["al", "l"], "all", Some("")),
            (&["a"], "a b", Some(" b")),
            (&["a "], "a b", Some("b")),
            (&["a\n\n"], "a", Some("")),
            (&["\n a"], "a ", Some("")),
            (&["a", "c"], "abc", None),
            (&["abc"], "ab", None),
            (&["é"], "é!", Some("!")),
        ];
        for (pieces, whole, expected) in cases {
            assert_eq!(rest(pieces, whole), expected, "{pieces:?} {whole}");
        }
    }
}
