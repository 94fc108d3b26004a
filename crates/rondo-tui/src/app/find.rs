//! Finding words in the whole session.

use super::{App, Effect, Layer};
use crate::prompt::Editor;
use crate::prompt::spelled;
use crate::transcript::{Frame, RowPosition};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// What is looked for, and where it was found.
#[derive(Debug, Default)]
pub(crate) struct Find {
    pub(super) words: Editor,
    pub(super) at: Option<RowPosition>,
    /// Whether nothing was found.
    pub(super) is_missed: bool,
}

impl App {
    pub(super) fn find_key(&mut self, key: &KeyEvent) -> Vec<Effect> {
        let Layer::Find(find) = &mut self.layer else {
            return Vec::new();
        };
        let spelled = spelled(key).unwrap_or_default();
        let has_others = key
            .modifiers
            .intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
        match (spelled.as_str(), key.code) {
            ("Esc" | "Ctrl-C", _) => self.layer = Layer::None,
            ("Enter" | "Up" | "Ctrl-F" | "Ctrl-R", _) => self.find_again(true),
            ("Down" | "Ctrl-S", _) => self.find_again(false),
            ("Backspace", _) => {
                find.words.backspace();
                self.find_anew();
            }
            (_, KeyCode::Char(c)) if !has_others => {
                find.words.insert(c.encode_utf8(&mut [0; 4]));
                self.find_anew();
            }
            _ => {}
        }
        Vec::new()
    }

    pub(super) fn find_anew(&mut self) {
        if let Layer::Find(find) = &mut self.layer {
            find.at = None;
        }
        self.find_again(true);
    }

    /// Looks again where nothing was found.
    pub(super) fn find_missed(&mut self) {
        if matches!(&self.layer, Layer::Find(find) if find.is_missed) {
            self.find_again(true);
        }
    }

    fn find_again(&mut self, goes_up: bool) {
        let theme = self.theme;
        let frame = Frame {
            theme: &theme,
            ..self.frame()
        };
        let Layer::Find(find) = &mut self.layer else {
            return;
        };
        let transcript = &mut self.story.transcript;
        let found = transcript.find(find.words.text(), find.at, goes_up, frame);
        find.is_missed = found.is_none() && !find.words.is_empty();
        if let Some(place) = found {
            find.at = Some(place);
            self.viewport.go_to(place, transcript, frame);
        }
    }

    /// Returns the line that shows what is looked for, where something is.
    pub(super) fn find_line(&self) -> Option<(String, usize)> {
        let Layer::Find(find) = &self.layer else {
            return None;
        };
        let what = match (find.is_missed, find.words.is_empty()) {
            (true, _) => "nothing further",
            (false, true) => "words to find",
            (false, false) => "Enter: before · Down: after · Esc closes",
        };
        let begin = format!(" find: {}", find.words.text());
        let caret = crate::text::columns(&begin);
        Some((format!("{begin}   {what}"), caret))
    }
}
