//! Parser for bash's output of `export -p`.
//!
//! A line is `declare -x NAME="VALUE"`, in POSIX mode `export NAME="VALUE"`; the value is in double
//! quotes, or in `$'..'` if it holds control characters, or absent (bash 3.2 to 5.3, `variables.c`
//! and `lib/sh/shquote.c`, `strtrans.c`).

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

/// Reads the variables that have a value. An unreadable one ends the list.
pub(super) fn declarations(text: &[u8]) -> BTreeMap<OsString, OsString> {
    let mut reader = Reader { rest: text };
    let mut found = BTreeMap::new();
    while let Some(declared) = reader.declaration() {
        if let (name, Some(value)) = declared {
            found.insert(OsString::from_vec(name), OsString::from_vec(value));
        }
    }
    found
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl Reader<'_> {
    fn declaration(&mut self) -> Option<(Vec<u8>, Option<Vec<u8>>)> {
        let line = self.rest.split(|b| *b == b'\n').next()?;
        let before_value = line.split(|b| *b == b'=').next()?;
        let name = before_value.split(|b| *b == b' ').next_back()?.to_vec();
        if name.is_empty() {
            return None;
        }
        self.skip(before_value.len());
        if self.next() != Some(b'=') {
            return Some((name, None));
        }
        let value = match self.next()? {
            b'"' => self.double_quoted()?,
            b'$' => self.ansi_quoted()?,
            _ => return None,
        };
        self.skip(1);
        Some((name, Some(value)))
    }

    fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    fn skip(&mut self, bytes: usize) {
        self.rest = self.rest.get(bytes..).unwrap_or_default();
    }

    fn double_quoted(&mut self) -> Option<Vec<u8>> {
        let mut value = Vec::new();
        loop {
            match self.next()? {
                b'"' => return Some(value),
                b'\\' => value.push(self.next()?),
                byte => value.push(byte),
            }
        }
    }

    fn ansi_quoted(&mut self) -> Option<Vec<u8>> {
        let mut value = Vec::new();
        self.skip(1);
        loop {
            match self.next()? {
                b'\'' => return Some(value),
                b'\\' => value.push(self.escaped()?),
                byte => value.push(byte),
            }
        }
    }

    fn escaped(&mut self) -> Option<u8> {
        Some(match self.next()? {
            b'a' => 7,
            b'b' => 8,
            b'e' | b'E' => 0x1b,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'v' => 11,
            digit @ b'0'..=b'7' => self.octal(digit),
            byte => byte,
        })
    }

    fn octal(&mut self, first: u8) -> u8 {
        let mut value = first - b'0';
        for _ in 0..2 {
            let Some(digit @ b'0'..=b'7') = self.rest.first().copied() else {
                break;
            };
            value = value.wrapping_mul(8).wrapping_add(digit - b'0');
            self.skip(1);
        }
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_of_quoting_is_read() {
        let text = b"declare -x A=\"a b\"\ndeclare -x NONE\ndeclare -ix N=\"7\"\n\
            declare -x Q=\"\\\"\\$x\\\\ \\`y\\`\"\ndeclare -x L=\"two\nlines=\"\n\
            declare -x E=$'\\E[1m\\ta\\'b\\\\\\001\\303\\244'\nexport P=\"=\"\ndeclare -x Z=\"\"\n";
        let expected = [
            ("A", "a b"),
            ("N", "7"),
            ("Q", "\"$x\\ `y`"),
            ("L", "two\nlines="),
            ("E", "\x1b[1m\ta'b\\\x01\u{e4}"),
            ("P", "="),
            ("Z", ""),
        ];
        let expected = expected.map(|(name, value)| (name.into(), value.into()));
        assert_eq!(declarations(text), BTreeMap::from(expected));
    }

    #[test]
    fn a_cut_text_gives_what_is_whole() {
        let text = b"declare -x A=\"a\"\ndeclare -x B=\"b\"\n";
        for cut in 0..=text.len() {
            let found = declarations(&text[..cut]);
            assert!(found.values().all(|value| value == "a" || value == "b"));
            assert!(cut < text.len() || found.len() == 2);
        }
    }
}
