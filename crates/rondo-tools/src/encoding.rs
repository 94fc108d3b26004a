//! Tells in which encoding a text is that is not UTF-8.

/// The bound on bytes that are looked at.
const LOOKED_AT_MAX: usize = 64 << 10;

/// The encoding of a text that is not UTF-8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// Two bytes a character, the lower one first.
    Utf16Le,
    /// Two bytes a character, the higher one first.
    Utf16Be,
    /// One byte a character: Latin-1, or what Windows made of it.
    Latin1,
}

impl Encoding {
    /// Returns the encoding of a text that is not UTF-8; nothing for what seems to be no text.
    pub(crate) fn of(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.get(..LOOKED_AT_MAX).unwrap_or(bytes);
        if bytes.starts_with(b"\xff\xfe") {
            return Some(Self::Utf16Le);
        }
        if bytes.starts_with(b"\xfe\xff") {
            return Some(Self::Utf16Be);
        }
        let zeros = |offset: usize| bytes.iter().skip(offset).step_by(2).filter(|it| **it == 0);
        let (even, odd) = (zeros(0).count(), zeros(1).count());
        // Most of what is written in Latin letters has a zero in each pair.
        let most = bytes.len() * 2 / 5;
        match (even, odd) {
            (0, 0) => {}
            (0, odd) if odd >= most => return Some(Self::Utf16Le),
            (even, 0) if even >= most => return Some(Self::Utf16Be),
            _ => return None,
        }
        let is_text = |byte: &u8| *byte >= b' ' || b"\t\n\r\x0c".contains(byte);
        bytes.iter().all(is_text).then_some(Self::Latin1)
    }

    /// Describes the encoding of a file's text, and how it becomes UTF-8.
    pub(crate) fn described(self, shown: &str) -> String {
        let (what, name) = match self {
            Self::Utf16Le => ("UTF-16 text (little-endian)", "UTF-16LE"),
            Self::Utf16Be => ("UTF-16 text (big-endian)", "UTF-16BE"),
            Self::Latin1 => (
                "text in Latin-1, Windows-1252 or another encoding of one byte a character",
                "WINDOWS-1252",
            ),
        };
        let file = shlex::try_quote(shown).unwrap_or(shown.into());
        format!(
            "`{shown}` is {what}, not UTF-8. To edit it, convert it by a command and back afterwards: \
             `iconv -f {name} -t UTF-8 {file}` prints it as UTF-8"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utf_16(text: &str, bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
        text.encode_utf16().flat_map(bytes).collect()
    }

    #[test]
    fn encodings_are_told_by_marks_and_by_zeros() {
        let text = "Gr\u{fc}\u{df}e\r\n";
        let (little, big) = (u16::to_le_bytes, u16::to_be_bytes);
        for (bytes, encoding) in [
            (utf_16(text, little), Some(Encoding::Utf16Le)),
            (utf_16(text, big), Some(Encoding::Utf16Be)),
            (utf_16("\u{feff}\u{4f60}", little), Some(Encoding::Utf16Le)),
            (utf_16("\u{feff}\u{4f60}", big), Some(Encoding::Utf16Be)),
            (b"Gr\xfc\xdfe\r\n".to_vec(), Some(Encoding::Latin1)),
            (b"\x7fELF\x02\x01\x01\0\0\0".to_vec(), None),
            (b"\x01\x02\xff".to_vec(), None),
        ] {
            assert_eq!(Encoding::of(&bytes), encoding, "{bytes:?}");
        }
    }
}
