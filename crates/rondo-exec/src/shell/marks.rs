//! The marks that the shell's hooks write between the output of commands.
//!
//! A mark is an OSC 133 sequence that names the session's nonce, so that a program that prints such
//! sequences of its own is passed on unchanged. It is looked for byte by byte, whatever sequence a
//! killed program may have left open before it.

/// The longest text of a mark after its nonce, in bytes.
const TEXT_BYTES_MAX: usize = 48;
const BEL: u8 = 7;

/// Meaning of a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MarkKind {
    /// The shell is about to print its prompt and to read.
    Prompt,
    /// The shell was made to read, and waits for the command.
    Reads,
    /// The command has been read and begins.
    Began,
    /// The command is over, and the shell waits for the acknowledgement.
    Over,
}

/// A mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) kind: MarkKind,
    /// The number of the command; 0 stands for the start files.
    pub(super) seq: u64,
    /// The exit code, if the command is over.
    pub(super) status: i32,
}

/// A part of the bytes that the terminal received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    /// Output, never empty.
    Output(Vec<u8>),
    /// A mark.
    Mark(Mark),
}

/// Parts marks from output; both may be cut anywhere.
pub(super) struct Scanner {
    prefix: Vec<u8>,
    held: Vec<u8>,
}

enum MarkMatch {
    No,
    Partly,
    Whole { length: usize, mark: Mark },
}

impl Scanner {
    /// Looks for the marks of one nonce.
    pub(super) fn new(nonce: &str) -> Self {
        Self {
            prefix: format!("\x1b]133;rondo;{nonce};").into_bytes(),
            held: Vec::new(),
        }
    }

    /// Splits the bytes read into parts; the possible beginning of a mark is held back.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Vec<Piece> {
        self.held.extend_from_slice(bytes);
        let held = std::mem::take(&mut self.held);
        let mut pieces = Vec::new();
        let (mut begin, mut at) = (0, 0);
        while let Some(next) = find_escape(&held, at) {
            match self.look(held.get(next..).unwrap_or_default()) {
                MarkMatch::No => at = next + 1,
                MarkMatch::Partly => {
                    push_output(&mut pieces, held.get(begin..next));
                    self.held = held.get(next..).unwrap_or_default().to_vec();
                    return pieces;
                }
                MarkMatch::Whole { length, mark } => {
                    push_output(&mut pieces, held.get(begin..next));
                    pieces.push(Piece::Mark(mark));
                    at = next + length;
                    begin = at;
                }
            }
        }
        push_output(&mut pieces, held.get(begin..));
        pieces
    }

    /// Returns the bytes that were held back, at the end of the output.
    pub(super) fn finish(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.held)
    }

    fn look(&self, bytes: &[u8]) -> MarkMatch {
        let Some(rest) = bytes.strip_prefix(self.prefix.as_slice()) else {
            return match self.prefix.starts_with(bytes) {
                true => MarkMatch::Partly,
                false => MarkMatch::No,
            };
        };
        let text = rest.iter().take(TEXT_BYTES_MAX).position(|b| *b == BEL);
        let Some(end) = text else {
            return match rest.len() < TEXT_BYTES_MAX {
                true => MarkMatch::Partly,
                false => MarkMatch::No,
            };
        };
        let mark = rest.get(..end).and_then(parse);
        mark.map_or(MarkMatch::No, |mark| MarkMatch::Whole {
            length: self.prefix.len() + end + 1,
            mark,
        })
    }
}

fn find_escape(bytes: &[u8], from: usize) -> Option<usize> {
    let rest = bytes.get(from..)?;
    rest.iter().position(|b| *b == 0x1b).map(|at| from + at)
}

fn push_output(pieces: &mut Vec<Piece>, bytes: Option<&[u8]>) {
    if let Some(bytes) = bytes.filter(|bytes| !bytes.is_empty()) {
        pieces.push(Piece::Output(bytes.to_vec()));
    }
}

fn parse(text: &[u8]) -> Option<Mark> {
    let mut words = std::str::from_utf8(text).ok()?.split(';');
    let kind = match words.next()? {
        "B" => MarkKind::Prompt,
        "R" => MarkKind::Reads,
        "C" => MarkKind::Began,
        "D" => MarkKind::Over,
        _ => return None,
    };
    Some(Mark {
        kind,
        seq: words.next()?.parse().ok()?,
        status: words.next()?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &str = "a\x1b]133;rondo;n1;C;7;0\x07out\x1b[1m\x1b]133;D;0\x07\x1b]133;rondo;n2;D;7;0\x07\
        \x1b]0;open\x1b]133;rondo;n1;D;7;130\x07note\x1b]133;rondo;n1;B;7;0\x07\x1b]133;rondo;n1;X;7;0\x07z";

    fn joined(pieces: Vec<Piece>) -> Vec<Piece> {
        let mut all: Vec<Piece> = Vec::new();
        for piece in pieces {
            match (all.last_mut(), piece) {
                (Some(Piece::Output(before)), Piece::Output(more)) => before.extend(more),
                (_, piece) => all.push(piece),
            }
        }
        all
    }

    fn output(text: &str) -> Piece {
        Piece::Output(text.as_bytes().to_vec())
    }

    fn mark(kind: MarkKind, status: i32) -> Piece {
        let seq = 7;
        Piece::Mark(Mark { kind, seq, status })
    }

    #[test]
    fn marks_of_the_nonce_are_taken_out_wherever_the_stream_is_cut() {
        let expected = vec![
            output("a"),
            mark(MarkKind::Began, 0),
            output("out\x1b[1m\x1b]133;D;0\x07\x1b]133;rondo;n2;D;7;0\x07\x1b]0;open"),
            mark(MarkKind::Over, 130),
            output("note"),
            mark(MarkKind::Prompt, 0),
            output("\x1b]133;rondo;n1;X;7;0\x07z"),
        ];
        for cut in 0..=STREAM.len() {
            let mut scanner = Scanner::new("n1");
            let mut pieces = scanner.feed(&STREAM.as_bytes()[..cut]);
            pieces.extend(scanner.feed(&STREAM.as_bytes()[cut..]));
            assert_eq!(joined(pieces), expected, "cut at {cut}");
            assert_eq!(scanner.finish(), b"");
        }
    }

    #[test]
    fn what_only_looks_like_a_mark_is_output() {
        let endless = format!("\x1b]133;rondo;n1;{}", "D".repeat(TEXT_BYTES_MAX));
        let mut scanner = Scanner::new("n1");
        assert_eq!(scanner.feed(endless.as_bytes()), [output(&endless)]);
        assert_eq!(scanner.feed(b"\x1b]133;rond"), []);
        assert_eq!(scanner.finish(), b"\x1b]133;rond");
    }
}
