//! Removes escape sequences from the output of models, tools and servers, so that it cannot control the terminal.
//!
//! An escape sequence can overwrite earlier output, set the title, write the clipboard, or make the terminal
//! send input as if the user had typed it. Text keeps no sequences; live output keeps only colors and "erase to
//! the end of the line", which progress lines need.

use rondo_core::shown::{is_hidden, is_ordinary};
pub use rondo_launch::Cleaner;

/// The bound on the parameters of a sequence that is kept, in characters.
const PARAMETERS_MAX: usize = 64;
/// Characters after which an unended string sequence is taken for text again.
const STRING_MAX: usize = 4096;

/// Returns text without control characters but line breaks and tabs.
pub fn plain(text: &str) -> String {
    Sanitizer::new(Keep::Text).push(text)
}

/// Returns text as one cell of a table: a blank for each line break and tab, and no other hidden
/// characters, which would move its neighbors, but those that ordinary text needs.
pub fn cell(text: &str) -> String {
    let blank = |c: char| {
        if matches!(c, '\n' | '\t' | '\r') {
            ' '
        } else {
            c
        }
    };
    let text: String = text.chars().map(blank).collect();
    let stays = |c: &char| !is_hidden(*c) || is_ordinary(*c);
    plain(&text).chars().filter(stays).collect()
}

/// Characters that pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// Characters, line breaks and tabs.
    Text,
    /// Colors, carriage returns and erasing to the end of the line too.
    LiveOutput,
}

/// Takes sequences out of text that arrives in pieces, wherever it is cut.
#[derive(Debug)]
pub struct Sanitizer {
    keep: Keep,
    state: State,
}

#[derive(Debug)]
enum State {
    Text,
    Escape,
    /// An escape with intermediates, which ends at its first other character.
    Intermediate,
    Control(String),
    String {
        left: usize,
        escaped: bool,
    },
}

impl Sanitizer {
    /// Starts at the beginning of a text.
    pub fn new(keep: Keep) -> Self {
        Self {
            keep,
            state: State::Text,
        }
    }

    /// Returns the part of the next piece that may pass.
    pub fn push(&mut self, piece: &str) -> String {
        let mut out = String::with_capacity(piece.len());
        for c in piece.chars() {
            self.take(c, &mut out);
        }
        out
    }

    fn take(&mut self, c: char, out: &mut String) {
        let state = std::mem::replace(&mut self.state, State::Text);
        self.state = match state {
            State::Text => self.text(c, out),
            State::Escape => self.escape(c, out),
            State::Intermediate => match c {
                ' '..='/' => State::Intermediate,
                _ => State::Text,
            },
            State::Control(parameters) => self.control(parameters, c, out),
            State::String { left, escaped } => self.string(left, escaped, c, out),
        };
    }

    fn text(&self, c: char, out: &mut String) -> State {
        match c {
            '\x1b' => return State::Escape,
            '\u{9b}' => return State::Control(String::new()),
            '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => return string_state(),
            '\n' | '\t' => out.push(c),
            '\r' if self.keep == Keep::LiveOutput => out.push(c),
            _ if c.is_control() => {}
            _ => out.push(c),
        }
        State::Text
    }

    fn escape(&self, c: char, out: &mut String) -> State {
        match c {
            '[' => State::Control(String::new()),
            ']' | 'P' | 'X' | '^' | '_' => string_state(),
            ' '..='/' => State::Intermediate,
            '\x1b' => State::Escape,
            _ if c.is_control() => self.text(c, out),
            _ => State::Text,
        }
    }

    fn control(&self, mut parameters: String, c: char, out: &mut String) -> State {
        match c {
            ' '..='?' => {
                if parameters.len() <= PARAMETERS_MAX {
                    parameters.push(c);
                }
                State::Control(parameters)
            }
            '@'..='~' => {
                if self.passes(&parameters, c) {
                    out.push_str("\x1b[");
                    out.push_str(&parameters);
                    out.push(c);
                }
                State::Text
            }
            _ => self.text(c, out),
        }
    }

    fn passes(&self, parameters: &str, last: char) -> bool {
        let simple = parameters.len() <= PARAMETERS_MAX
            && parameters
                .bytes()
                .all(|byte| byte.is_ascii_digit() || byte == b';' || byte == b':');
        self.keep == Keep::LiveOutput && simple && matches!(last, 'm' | 'K')
    }

    fn string(&self, left: usize, escaped: bool, c: char, out: &mut String) -> State {
        match c {
            '\x07' | '\u{9c}' => State::Text,
            '\\' if escaped => State::Text,
            // A line break ends it here: what follows an unended sequence is text to be seen.
            '\n' => self.text(c, out),
            _ if left == 0 => self.text(c, out),
            _ => State::String {
                left: left - 1,
                escaped: c == '\x1b',
            },
        }
    }
}

fn string_state() -> State {
    State::String {
        left: STRING_MAX,
        escaped: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str = "a\x1b[2Jb\x1b]0;title\x07c\x1b]52;c;ZXZpbA==\x1b\\d\x1bce\u{9b}31mf\x1bP1$r\x1b\\g\x08\rh\x1b(Bi\x1b[6nj\n\tk";

    #[test]
    fn text_keeps_no_sequence_and_all_characters() {
        assert_eq!(plain(HOSTILE), "abcdefghij\n\tk");
        assert_eq!(plain("héllo → 世界 🦀"), "héllo → 世界 🦀");
    }

    #[test]
    fn live_output_keeps_colours_and_progress_lines_only() {
        let mut live = Sanitizer::new(Keep::LiveOutput);
        let shown =
            live.push("\x1b[1;31mred\x1b[0m\r\x1b[K50%\x1b[5A\x1b]8;;http://x\x07link\x1b[?25l");
        assert_eq!(shown, "\x1b[1;31mred\x1b[0m\r\x1b[K50%link");
    }

    #[test]
    fn where_the_text_is_cut_makes_no_difference() {
        let whole = Sanitizer::new(Keep::LiveOutput).push(HOSTILE);
        for cut in (0..HOSTILE.len()).filter(|cut| HOSTILE.is_char_boundary(*cut)) {
            let mut sanitizer = Sanitizer::new(Keep::LiveOutput);
            let mut pieces = sanitizer.push(&HOSTILE[..cut]);
            pieces += &sanitizer.push(&HOSTILE[cut..]);
            assert_eq!(pieces, whole, "cut at {cut}");
        }
    }

    #[test]
    fn an_unended_sequence_hides_at_most_its_line() {
        assert_eq!(plain("\x1b]0;never ends\nseen"), "\nseen");
        let long = format!("\x1b]0;{}seen", "x".repeat(STRING_MAX));
        assert!(plain(&long).ends_with("seen"));
    }
}
