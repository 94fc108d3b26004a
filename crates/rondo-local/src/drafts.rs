//! Guesses of how a reply goes on, from what the context says already: an answer often quotes a tool's result.
//!
//! A guess is computed in one batch with the token before it, which costs little more than that token, since the
//! weights are read once. Tokens that the model picks otherwise are dropped, so a reply is the same, token for
//! token, with guesses and without. The method is from Saxena, "Prompt Lookup Decoding", 2023; here texts are
//! compared, not tokens, since the lines of a listing become other tokens behind `, ` than behind a line break.

use crate::vocabulary::Vocabulary;

/// Bytes of the reply that must stand in the context before it is taken for a quotation.
const MATCH_BYTES: usize = 8;
/// Bytes of a quotation from which on as many tokens are guessed as can be computed together.
const SURE_BYTES: usize = 20;
/// Tokens that are guessed of a shorter one: most words that stand in the context go on otherwise.
const SHORT: usize = 1;
/// Bytes that are guessed at most; they are many more tokens than are computed at once.
const GUESS_BYTES: usize = 64;
/// Bytes that a reply may have instead of what separates two quoted words.
const SEPARATOR_BYTES_MAX: usize = 8;
/// The tokens without a guess after the second failure in a row; each further failure doubles them, at most so often.
const PAUSE: usize = 2;
const DOUBLINGS_MAX: u32 = 5;

/// The context as text, and how a reply quotes it.
#[derive(Debug, Default)]
pub(crate) struct Drafts {
    /// The context as it would stand in a string of JSON, as replies do, and the reply.
    text: Vec<u8>,
    /// Where the context goes on after what the reply quoted last.
    place: Option<usize>,
    /// Bytes that were quoted up to there.
    quoted: usize,
    /// What the reply said since then.
    gap: Vec<u8>,
    /// What separated two quoted words in the context, and in the reply.
    separators: Option<(Vec<u8>, Vec<u8>)>,
    failures: u32,
    /// Tokens before the next guess.
    pause: usize,
}

impl Drafts {
    /// Takes the context of a reply.
    pub(crate) fn new(context: &[u8]) -> Self {
        let mut text = Vec::with_capacity(context.len());
        for byte in context {
            match byte {
                b'\n' => text.extend(b"\\n"),
                b'\t' => text.extend(b"\\t"),
                b'"' | b'\\' => text.extend([b'\\', *byte]),
                _ => text.push(*byte),
            }
        }
        Self {
            text,
            ..Self::default()
        }
    }

    /// Takes more of the reply.
    pub(crate) fn follow(&mut self, reply: &[u8]) {
        for byte in reply {
            self.text.push(*byte);
            self.quote(*byte);
        }
        if self.place.is_none() {
            self.find();
        }
    }

    /// Notes how many tokens of a guess the model picked.
    pub(crate) fn judge(&mut self, guessed: usize, picked: usize) {
        // A guess pays if a third of it is right.
        if picked * 3 >= guessed {
            (self.failures, self.pause) = (0, 0);
            return;
        }
        self.failures += 1;
        self.pause = match self.failures {
            1 => 0,
            failures => PAUSE << (failures - 2).min(DOUBLINGS_MAX),
        };
    }

    /// Guesses at most `max` tokens that the reply goes on with.
    pub(crate) fn guess(&mut self, vocabulary: &Vocabulary, max: usize) -> Vec<u32> {
        if self.pause > 0 {
            self.pause -= 1;
            return Vec::new();
        }
        let bytes = self.next_bytes();
        let is_cut = bytes.len() >= GUESS_BYTES;
        let text = bytes.utf8_chunks().next().map_or("", |it| it.valid());
        let mut tokens = vocabulary.encode(text).unwrap_or_default();
        if is_cut {
            // More of its word would make it another one.
            tokens.pop();
        }
        let most = if self.quoted < SURE_BYTES { SHORT } else { max };
        tokens.truncate(most.min(max));
        tokens
    }

    fn quote(&mut self, byte: u8) {
        let Some(place) = self.place else { return };
        let end = self.text.len() - 1;
        if self.gap.is_empty() && place < end && self.text.get(place) == Some(&byte) {
            (self.place, self.quoted) = (Some(place + 1), self.quoted + 1);
            return;
        }
        let separator = separator(self.text.get(place..end).unwrap_or_default());
        let behind = place + separator.len();
        if !byte.is_ascii_alphanumeric() && self.gap.len() < SEPARATOR_BYTES_MAX {
            return self.gap.push(byte);
        }
        if behind < end && self.text.get(behind) == Some(&byte) {
            let gap = std::mem::take(&mut self.gap);
            self.separators = Some((separator.to_vec(), gap));
            (self.place, self.quoted) = (Some(behind + 1), self.quoted + 1);
            return;
        }
        (self.place, self.quoted) = (None, 0);
        self.gap.clear();
    }

    /// Looks for the latest place in the context that agrees with the end of the reply.
    fn find(&mut self) {
        let Some(start) = self.text.len().checked_sub(MATCH_BYTES) else {
            return;
        };
        let (before, end) = self.text.split_at(start);
        let mut windows = before.windows(MATCH_BYTES).rev();
        let found = windows.position(|window| window == end);
        if let Some(behind) = found {
            self.place = Some(before.len() - behind);
            self.quoted = MATCH_BYTES;
        }
    }

    /// Returns what follows if the reply goes on quoting.
    fn next_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let Some(mut place) = self.place else {
            return bytes;
        };
        if !self.gap.is_empty() {
            let Some((from, to)) = &self.separators else {
                return bytes;
            };
            let Some(rest) = to.strip_prefix(self.gap.as_slice()) else {
                return bytes;
            };
            bytes.extend(rest);
            place += from.len();
        }
        while bytes.len() < GUESS_BYTES {
            let rest = self.text.get(place..).unwrap_or_default();
            if let Some((from, to)) = &self.separators
                && separator(rest) == from.as_slice()
                && !from.is_empty()
            {
                bytes.extend(to);
                place += from.len();
                continue;
            }
            let Some(byte) = rest.first() else { break };
            bytes.push(*byte);
            place += 1;
        }
        bytes
    }
}

/// Returns what separates two words at the beginning of a text: blanks, and line breaks as they stand in JSON.
fn separator(text: &[u8]) -> &[u8] {
    let mut length = 0;
    loop {
        length += match text.get(length..).unwrap_or_default() {
            [b'\\', b'n' | b't', ..] => 2,
            [b' ' | b',' | b';', ..] => 1,
            _ => return text.get(..length).unwrap_or_default(),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(context: &str, replies: &[&str]) -> String {
        let mut drafts = Drafts::new(context.as_bytes());
        for reply in replies {
            drafts.follow(reply.as_bytes());
        }
        String::from_utf8(drafts.next_bytes()).unwrap()
    }

    #[test]
    fn a_quotation_goes_on_as_the_context_does() {
        let context = "fn main() {\n\tprint(\"hello\")\n}\n";
        let guess = next(context, &["It is: fn main("]);
        assert!(
            guess.starts_with(r#") {\n\tprint(\"hello\")\n}\n"#),
            "{guess}"
        );
        assert_eq!(next(context, &["It is a fn"]), "");
        assert_eq!(next("", &["It is a program that prints"]), "");
    }

    #[test]
    fn lines_are_quoted_as_a_list_once_the_first_two_were() {
        let context = "Cargo.toml\nREADME.md\nsrc/lib.rs\nsrc/main.rs\n";
        let guess = next(context, &["Cargo.toml", ",", " READ"]);
        assert!(
            guess.starts_with("ME.md, src/lib.rs, src/main.rs, "),
            "{guess}"
        );
        let guess = next(context, &["Cargo.toml", ", README.md", ","]);
        assert!(guess.starts_with(" src/lib.rs, src/main.rs, "), "{guess}");
        assert_eq!(next(context, &["Cargo.toml", ", nothing"]), "");
    }

    #[test]
    fn the_latest_place_counts() {
        let guess = next("let width = 3; let width = 5;", &["so let width = "]);
        assert!(guess.starts_with("5;"), "{guess}");
    }

    #[test]
    fn after_failures_guesses_become_rare_until_one_is_right() {
        let mut drafts = Drafts::default();
        let pauses: Vec<usize> = (0..8)
            .map(|_| {
                drafts.judge(3, 0);
                drafts.pause
            })
            .collect();
        assert_eq!(pauses, [0, 2, 4, 8, 16, 32, 64, 64]);
        drafts.judge(3, 1);
        assert_eq!((drafts.failures, drafts.pause), (0, 0));
    }
}
