//! The panel of keys, from the table of bindings.

use super::keys::{BINDINGS, spelled};
use super::{App, Effect, Layer};
use crossterm::event::KeyEvent;

impl App {
    pub(super) fn help_key(&mut self, key: &KeyEvent) -> Vec<Effect> {
        let Layer::Help(from) = &mut self.layer else {
            return Vec::new();
        };
        let page = usize::from(self.drawn.area.height.saturating_sub(2)).max(1);
        match spelled(key).as_deref() {
            Some("Down" | "j" | "Ctrl-N") => *from += 1,
            Some("Up" | "k" | "Ctrl-P") => *from = from.saturating_sub(1),
            Some("PageDown" | "Space") => *from += page,
            Some("PageUp") => *from = from.saturating_sub(page),
            _ => self.layer = Layer::None,
        }
        Vec::new()
    }
}

/// Returns all keys with what they do.
pub(super) fn lines() -> Vec<(String, &'static str)> {
    let keys = BINDINGS.iter().map(|it| (it.keys.join(", "), it.does));
    keys.collect()
}
