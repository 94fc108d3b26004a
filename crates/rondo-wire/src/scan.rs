//! Search for the end of a JSON value, in pieces of any size.

/// Finds the end of a JSON value by its brackets, over any number of pieces.
///
/// Works on text that is not valid JSON too: brackets are only counted, not matched by kind.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct JsonScan {
    depth: u32,
    in_string: bool,
    escaped: bool,
    opened: bool,
}

impl JsonScan {
    /// Reads on and returns how many bytes belong to the value when it closes within `bytes`.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            at += if self.in_string {
                self.string(rest)
            } else {
                self.structure(rest)
            };
            if self.closed() {
                return Some(at);
            }
        }
        None
    }

    /// Returns whether a bracket was opened and all are closed again.
    pub(crate) fn closed(&self) -> bool {
        self.opened && self.depth == 0 && !self.in_string
    }

    /// Returns whether a bracket or a string is still open.
    pub(crate) fn open(&self) -> bool {
        self.depth > 0 || self.in_string
    }

    fn string(&mut self, rest: &[u8]) -> usize {
        if self.escaped {
            self.escaped = false;
            return 1;
        }
        let Some(at) = memchr::memchr2(b'"', b'\\', rest) else {
            return rest.len();
        };
        if rest.get(at) == Some(&b'"') {
            self.in_string = false;
        } else {
            self.escaped = true;
        }
        at + 1
    }

    fn structure(&mut self, rest: &[u8]) -> usize {
        let mut read = 0;
        for byte in rest {
            read += 1;
            match byte {
                b'{' | b'[' => {
                    self.depth = self.depth.saturating_add(1);
                    self.opened = true;
                }
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 && self.opened {
                        return read;
                    }
                }
                b'"' => {
                    self.in_string = true;
                    return read;
                }
                _ => {}
            }
        }
        read
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end_of(pieces: &[&str]) -> Option<usize> {
        let mut scan = JsonScan::default();
        let mut before = 0;
        for piece in pieces {
            if let Some(end) = scan.feed(piece.as_bytes()) {
                return Some(before + end);
            }
            before += piece.len();
        }
        None
    }

    #[test]
    fn brackets_in_strings_do_not_count() {
        let text = r#"{"a":"}\"]","b":[{}]} tail"#;
        for cut in 0..=text.len() {
            let (head, tail) = text.split_at(cut);
            assert_eq!(end_of(&[head, tail]), Some(text.len() - 5), "cut at {cut}");
        }
    }

    #[test]
    fn a_cut_value_never_closes() {
        let text = r#"{"a":"}\"]","b":[{}]}"#;
        for cut in 0..text.len() {
            assert_eq!(end_of(&[&text[..cut]]), None, "cut at {cut}");
        }
    }
}
