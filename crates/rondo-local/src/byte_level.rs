//! GPT-2's mapping of bytes to printable characters, which vocabularies use.
//!
//! Source: `bytes_to_unicode` in <https://github.com/openai/gpt-2/blob/master/src/encoder.py>.

/// Turns a token as the vocabulary stores it into the bytes it stands for; `None` when a character
/// stands for no byte, as in special tokens of other alphabets.
pub(crate) fn token_bytes(token: &str) -> Option<Vec<u8>> {
    token.chars().map(byte_of).collect()
}

fn byte_of(character: char) -> Option<u8> {
    match u32::from(character) {
        code @ (0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff) => u8::try_from(code).ok(),
        // The bytes that are not printable follow one another from U+0100 on.
        code @ 0x100..=0x120 => u8::try_from(code - 0x100).ok(),
        code @ 0x121..=0x142 => u8::try_from(code - 0x121 + 0x7f).ok(),
        0x143 => Some(0xad),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_byte_has_one_character() {
        let all: BTreeSet<u8> = (0..0x200)
            .filter_map(char::from_u32)
            .filter_map(byte_of)
            .collect();
        assert_eq!(all.len(), 256);
        assert_eq!(
            (0..0x200)
                .filter_map(char::from_u32)
                .filter_map(byte_of)
                .count(),
            256
        );
    }

    #[test]
    fn spaces_and_line_ends_have_their_well_known_letters() {
        assert_eq!(token_bytes("\u{120}the").unwrap(), b" the");
        assert_eq!(token_bytes("\u{10a}").unwrap(), b"\n");
        assert_eq!(token_bytes("日"), None);
    }
}
