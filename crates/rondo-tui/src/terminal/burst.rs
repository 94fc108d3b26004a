//! Tells pastes from typing if the terminal does not mark them: text that comes at once, with a line end in its midst, was
//! not typed, and sends nothing.

use super::input::Input;
use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use rondo_types::TimeMs;

/// How long a line end waits for what may follow it in a paste, in milliseconds.
pub(super) const LINE_END_WAIT_MS: u64 = 15;
/// How long after a piece of a paste the next one may come, in milliseconds.
const NEXT_PIECE_MS: u64 = 30;

/// Holds input until it is known whether it is a paste.
#[derive(Debug, Default)]
pub(super) struct Bursts {
    held: Vec<Input>,
    /// Set if the held bytes came right after a piece of a paste, and if right after text.
    follows: (bool, bool),
    /// When the latest piece of a paste came.
    pasted_at: Option<TimeMs>,
    /// When the latest text came that no line end followed yet.
    typed_at: Option<TimeMs>,
}

impl Bursts {
    /// Takes the input that came at once, and returns the part that need not wait.
    pub(super) fn take(&mut self, came: Vec<Input>, now: TimeMs) -> Vec<Input> {
        if self.held.is_empty() {
            self.follows = self.followed(now);
        }
        self.held.extend(came);
        match self.waits() {
            true => Vec::new(),
            false => self.release(now),
        }
    }

    /// Returns whether what comes now comes right behind a piece of a paste, and whether right behind text.
    fn followed(&self, now: TimeMs) -> (bool, bool) {
        let is_recent =
            |at: Option<TimeMs>, within| at.is_some_and(|it| now.0.saturating_sub(it.0) < within);
        let goes_on = is_recent(self.pasted_at, NEXT_PIECE_MS);
        (
            goes_on,
            goes_on || is_recent(self.typed_at, LINE_END_WAIT_MS),
        )
    }

    /// Drops what is held.
    pub(super) fn forget(&mut self) {
        self.held.clear();
    }

    /// Returns whether a line end waits behind text that came with it.
    pub(super) fn waits(&self) -> bool {
        match self.held.as_slice() {
            [.., before, last] => is_line_end(last) && letter(before).is_some(),
            _ => false,
        }
    }

    /// Returns the input that waited, pastes as such.
    pub(super) fn release(&mut self, now: TimeMs) -> Vec<Input> {
        let (goes_on, follows_text) = self.follows;
        let held = std::mem::take(&mut self.held);
        let ends_in_text = held.last().and_then(letter).is_some_and(|it| it != '\n');
        self.typed_at = ends_in_text.then_some(now);
        let (inputs, is_paste) = with_pastes(held, goes_on, follows_text);
        if is_paste {
            self.pasted_at = Some(now);
        }
        inputs
    }
}

/// Puts a paste in place of each run of letters with a line end in its midst, or of each run if a paste continues. Text may have
/// come right before.
fn with_pastes(inputs: Vec<Input>, goes_on: bool, follows_text: bool) -> (Vec<Input>, bool) {
    let (mut all, mut is_paste) = (Vec::new(), false);
    let mut inputs = inputs.into_iter().peekable();
    while let Some(input) = inputs.next() {
        // The key that ends a line is not part of what is typed after it, unless it came with what is before it.
        let goes_before = goes_on
            || all.is_empty()
                && follows_text
                && inputs.peek().is_some_and(|it| letter(it).is_some());
        if letter(&input).is_none() || (is_line_end(&input) && !goes_before) {
            all.push(input);
            continue;
        }
        let mut run = vec![input];
        while let Some(next) = inputs.next_if(|it| letter(it).is_some()) {
            run.push(next);
        }
        let inner = run.split_last().map_or(&[][..], |it| it.1);
        if goes_on || inner.iter().any(is_line_end) {
            let text = run.iter().filter_map(letter).collect();
            all.push(Input::Event(Event::Paste(text)));
            is_paste = true;
        } else {
            all.append(&mut run);
        }
    }
    (all, is_paste)
}

fn is_line_end(input: &Input) -> bool {
    letter(input) == Some('\n')
}

/// Returns the character that a key types.
fn letter(input: &Input) -> Option<char> {
    let Input::Event(Event::Key(KeyEvent {
        code,
        modifiers,
        kind: KeyEventKind::Press,
        ..
    })) = input
    else {
        return None;
    };
    match code {
        KeyCode::Char('j') if *modifiers == KeyModifiers::CONTROL => Some('\n'),
        _ if modifiers.intersects(!KeyModifiers::SHIFT) => None,
        KeyCode::Char(c) => Some(*c),
        KeyCode::Enter if modifiers.is_empty() => Some('\n'),
        KeyCode::Tab if modifiers.is_empty() => Some('\t'),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::input::Parser;

    fn read(text: &str) -> Vec<Input> {
        let mut all = Vec::new();
        Parser::default().push(text.as_bytes(), &mut all);
        all
    }

    fn paste(text: &str) -> Input {
        Input::Event(Event::Paste(text.to_owned()))
    }

    #[test]
    fn lines_that_come_at_once_are_a_paste_and_one_that_is_typed_is_not() {
        let mut bursts = Bursts::default();
        let now = TimeMs(1_000);
        assert_eq!(bursts.take(read("\r"), now), read("\r"));
        assert_eq!(bursts.take(read("a\rb"), now), [paste("a\nb")]);
        let later = TimeMs(2_000);
        assert_eq!(bursts.take(read("one\r"), later), []);
        assert!(bursts.waits());
        assert_eq!(bursts.release(later), read("one\r"));
        assert_eq!(bursts.take(read("\rtwo"), TimeMs(2_500)), read("\rtwo"));
        let much_later = TimeMs(3_000);
        assert_eq!(bursts.take(read("x"), much_later), read("x"));
        assert_eq!(bursts.take(read("\r"), much_later), read("\r"));
    }

    #[test]
    fn a_paste_stays_one_however_its_pieces_are_cut() {
        let text = "first line\rsecond\tline\n\nlast line\r";
        for cut in 1..text.len() {
            let (mut bursts, mut all) = (Bursts::default(), Vec::new());
            let (head, tail) = text.split_at(cut);
            all.extend(bursts.take(read(head), TimeMs(1_000)));
            all.extend(bursts.take(read(tail), TimeMs(1_005)));
            all.extend(bursts.release(TimeMs(1_020)));
            let pasted: String = all
                .iter()
                .map(|it| match it {
                    Input::Event(Event::Paste(text)) => text.clone(),
                    other => {
                        assert!(!is_line_end(other), "cut at {cut}: {all:?}");
                        letter(other).into_iter().collect()
                    }
                })
                .collect();
            assert_eq!(pasted, "first line\nsecond\tline\n\nlast line\n", "{cut}");
        }
    }

    #[test]
    fn keys_between_letters_stay_keys() {
        let mut bursts = Bursts::default();
        let keys = "ab\x1b[A\x03c";
        assert_eq!(bursts.take(read(keys), TimeMs(1_000)), read(keys));
    }
}
