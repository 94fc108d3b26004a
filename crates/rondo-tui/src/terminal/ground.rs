//! Asks the terminal which color its ground has, and how wide it draws signs whose width is ambiguous: before anything else
//! reads what it sends. For its ground it is asked again when it is looked at again; that answer comes as [input](super::input).

use rondo_core::clock::Clock;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, Write as _};
use std::time::Duration;

/// The question for its ground.
pub(crate) const GROUND: &[u8] = b"\x1b]11;?\x1b\\";
/// A sign that is one column wide in most fonts and two in some, and the question where the cursor is behind it.
const WIDTH: &[u8] = b"\r\xe2\x94\x80\x1b[6n\r\x1b[K";
/// The column behind the sign if it is two columns wide.
const WIDE_COLUMN: &str = "3";
/// A question that every terminal answers: after its answer there is none to the others.
const FENCE: &[u8] = b"\x1b[c";
/// How long the answers may take.
const WAIT_MAX: Duration = Duration::from_millis(100);
/// Bytes that are read at most: more is not an answer.
const BYTES_MAX: usize = 4 << 10;

/// Answers of the terminal.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct TerminalReply {
    /// `true` if its background is light; `None` if it did not say.
    pub(crate) is_light: Option<bool>,
    /// Set if signs of ambiguous width are two columns wide.
    pub(crate) has_wide_signs: bool,
    /// Text that a person typed meanwhile.
    pub(crate) typed: String,
    /// The beginning of a sequence, whose rest is on its way.
    pub(crate) rest: Vec<u8>,
    /// Set while an answer is still due.
    is_due: bool,
}

/// Asks. The terminal has to be in raw mode.
///
/// # Errors
/// When it cannot be written to or read from.
pub(crate) fn ask(asks_ground: bool) -> io::Result<TerminalReply> {
    let mut out = io::stdout().lock();
    if asks_ground {
        out.write_all(GROUND)?;
    }
    out.write_all(WIDTH)?;
    out.write_all(FENCE)?;
    out.flush()?;
    let clock = Clock::system();
    let until = clock.now().after(WAIT_MAX);
    let input = rustix::stdio::stdin();
    let (mut bytes, mut heard) = (Vec::new(), read(&[]));
    while heard.is_due && bytes.len() < BYTES_MAX {
        let left = until.since(clock.now());
        let wait = Timespec::try_from(left).map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(&input, PollFlags::IN)], Some(&wait)) {
            Ok(0) => break,
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(err) => return Err(err.into()),
        }
        let mut piece = [0; 512];
        match rustix::io::read(input, &mut piece)? {
            0 => break,
            count => bytes.extend_from_slice(piece.get(..count).unwrap_or_default()),
        }
        heard = read(&bytes);
    }
    Ok(heard)
}

/// Tells the answers from what was typed.
fn read(bytes: &[u8]) -> TerminalReply {
    let text = String::from_utf8_lossy(bytes);
    let mut heard = TerminalReply {
        is_due: true,
        ..TerminalReply::default()
    };
    let mut rest = text.as_ref();
    while let Some((before, sequence)) = rest.split_once('\x1b') {
        heard.typed.push_str(before);
        rest = match sequence.chars().next() {
            Some(']') => {
                let ends = ["\x1b\\", "\x07"];
                let end = ends
                    .iter()
                    .filter_map(|it| Some((sequence.find(it)?, it.len())));
                let Some((at, length)) = end.min() else {
                    return heard.before_rest(sequence);
                };
                heard.is_light = sequence.get(1..at).and_then(is_light).or(heard.is_light);
                sequence.get(at + length..).unwrap_or_default()
            }
            Some('[') => {
                let is_final = |c: char| ('\x40'..='\x7e').contains(&c);
                let parameters = sequence.get(1..).unwrap_or_default();
                let Some(at) = parameters.find(is_final) else {
                    return heard.before_rest(sequence);
                };
                let (answer, behind) = parameters.split_at(at);
                let column = answer.split_once(';').map(|it| it.1);
                heard.has_wide_signs |= behind.starts_with('R') && column == Some(WIDE_COLUMN);
                heard.is_due &= !(answer.starts_with('?') && behind.starts_with('c'));
                behind.get(1..).unwrap_or_default()
            }
            None => return heard.before_rest(sequence),
            Some(_) => sequence,
        };
    }
    heard.typed.push_str(rest);
    heard
}

impl TerminalReply {
    /// Adds the beginning of a sequence, from behind its escape on.
    fn before_rest(mut self, sequence: &str) -> Self {
        self.rest = format!("\x1b{sequence}").into_bytes();
        self
    }
}

/// Reads `11;rgb:RRRR/GGGG/BBBB`, of one to four hexadecimal digits each.
pub(super) fn is_light(answer: &str) -> Option<bool> {
    let colour = answer.strip_prefix("11;")?;
    let colour = colour
        .strip_prefix("rgb:")
        .or_else(|| colour.strip_prefix("rgba:"))?;
    let mut parts = colour.split('/').map(|digits| {
        let max = 16_u32
            .checked_pow(u32::try_from(digits.len()).ok()?)?
            .checked_sub(1)?;
        let value = u32::from_str_radix(digits, 16).ok()?;
        (digits.len() <= 4 && max > 0).then(|| f64::from(value) / f64::from(max))
    });
    let (red, green, blue) = (parts.next()??, parts.next()??, parts.next()??);
    Some(0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ground_is_told_by_its_luminance() {
        for (answer, expected) in [
            ("11;rgb:ffff/ffff/ffff", Some(true)),
            ("11;rgb:1e1e/1e1e/2e2e", Some(false)),
            ("11;rgb:f/f/e", Some(true)),
            ("11;rgba:00/00/00/ff", Some(false)),
            ("11;rgb:fffff/0/0", None),
            ("11;rgb:/0/0", None),
            ("11;?", None),
            ("10;rgb:ff/ff/ff", None),
        ] {
            assert_eq!(is_light(answer), expected, "{answer}");
        }
    }

    #[test]
    fn what_was_typed_meanwhile_is_kept_and_answers_are_taken_out_wherever_they_are_cut() {
        let bytes = b"ab\x1b]11;rgb:ff/ff/ff\x1b\\c\x1b[?62;22cd\x1b[Ae";
        let heard = read(bytes);
        assert_eq!((heard.is_light, heard.is_due), (Some(true), false));
        assert_eq!(heard.typed, "abcde");
        for cut in 0..bytes.len() {
            let typed = read(&bytes[..cut]).typed;
            assert!("abcde".starts_with(&typed), "{typed}");
        }
        assert_eq!(read(b"\x1b]11;rgb:0/0/0\x07").is_light, Some(false));
        assert_eq!(read(b"typed").typed, "typed");
        assert_eq!(read(b"a\x1b[?6").rest, b"\x1b[?6");
    }

    #[test]
    fn the_width_of_ambiguous_signs_is_told_by_where_the_cursor_is() {
        assert!(read(b"\x1b[1;3R\x1b[?62c").has_wide_signs);
        assert!(!read(b"\x1b[3;2R\x1b[?62c").has_wide_signs);
    }
}
