//! Selecting entries and rows, and copying them as they were written.

use super::{App, Effect};
use crate::text::row::joined;
use crate::transcript::{Entry, Frame, RowPosition};
use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use ratatui_core::layout::Position;

/// Rows that were dragged over, in the order in which they were.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DraggedRows {
    from: RowPosition,
    to: RowPosition,
}

impl DraggedRows {
    /// Returns whether a row is among them.
    pub(super) fn holds(&self, place: RowPosition) -> bool {
        self.from.min(self.to) <= place && place <= self.from.max(self.to)
    }
}

impl App {
    /// Selects the entry before or after the selected one; the latest where none is.
    pub(super) fn select(&mut self, goes_up: bool) {
        let theme = self.theme;
        let numbers: Vec<usize> = self
            .story
            .transcript
            .latest()
            .filter(|it| !matches!(it.1, Entry::End(_)))
            .map(|it| it.0)
            .collect();
        let at = self
            .selected
            .and_then(|it| numbers.iter().position(|number| *number == it));
        let to = match (at, goes_up) {
            (None, _) => Some(0),
            (Some(at), true) => Some(at + 1),
            (Some(at), false) => at.checked_sub(1),
        };
        let selected = to.and_then(|to| numbers.get(to)).copied();
        if to.is_some() && selected.is_none() {
            return;
        }
        self.selected = selected;
        match selected {
            Some(entry) if !self.drawn.places.iter().any(|it| it.entry == entry) => {
                let frame = Frame {
                    theme: &theme,
                    ..self.frame()
                };
                let place = RowPosition { entry, row: 0 };
                self.viewport
                    .go_to(place, &mut self.story.transcript, frame);
            }
            Some(_) => {}
            None => self.viewport.follow(),
        }
    }

    /// Returns the selected entry, or the latest that fits.
    fn chosen(&self, fits: impl Fn(&Entry) -> bool) -> Option<(usize, &Entry)> {
        match self.selected {
            Some(number) => self.story.transcript.get(number).map(|it| (number, it)),
            None => self.story.transcript.latest().find(|it| fits(it.1)),
        }
    }

    /// Shows the selected entry in full or no more; otherwise the latest that is folded.
    pub(super) fn turn_open(&mut self) {
        let chosen = self.chosen(|it| matches!(it, Entry::Card(_) | Entry::Thought(_)));
        if let Some(number) = chosen.map(|it| it.0) {
            self.story.transcript.turn_open(number);
        }
    }

    /// Copies the selected entry as it was written, or the last answer.
    pub(super) fn copy_entry(&mut self) -> Vec<Effect> {
        let chosen = self.chosen(|it| matches!(it, Entry::Answer(_)));
        match chosen.map(|it| it.1.copied()) {
            Some(text) => vec![Effect::Copy(text)],
            None => {
                self.flash("there is nothing to copy");
                Vec::new()
            }
        }
    }

    /// Copies the rows that were dragged over: lines that were broken are whole, and nothing stands before them.
    pub(super) fn copy_dragged(&mut self) -> Option<Effect> {
        let dragged = self.dragged.take()?;
        let theme = self.theme;
        let frame = Frame {
            theme: &theme,
            ..self.frame()
        };
        let (from, to) = (dragged.from.min(dragged.to), dragged.from.max(dragged.to));
        let rows = self.story.transcript.between(from, to, frame);
        Some(Effect::Copy(joined(&rows)))
    }

    /// Types the command of the selected card again.
    pub(super) fn run_again(&mut self) {
        let is_card = |it: &Entry| matches!(it, Entry::Card(_));
        let command = match self.chosen(is_card) {
            Some((_, Entry::Card(card))) => card.command().map(|it| format!("!{it}")),
            Some((_, Entry::Asked(text))) => Some(text.clone()),
            _ => None,
        };
        match command {
            Some(command) if self.editor.is_empty() => self.editor.set(&command),
            Some(_) => self.flash("the input is not empty"),
            None => self.flash("there is nothing to run again"),
        }
    }

    pub(super) fn mouse(&mut self, mouse: &MouseEvent) -> Vec<Effect> {
        let at = Position::new(mouse.column, mouse.row);
        let place = match self.drawn.area.contains(at) {
            true => self.drawn.place_at(mouse.row),
            false => None,
        };
        match (mouse.kind, place) {
            (MouseEventKind::ScrollUp, _) => return self.wheel(true, at),
            (MouseEventKind::ScrollDown, _) => return self.wheel(false, at),
            (MouseEventKind::Down(MouseButton::Left), _) => {
                // The first click into a window only gives it the focus.
                self.pressed_at = place.filter(|_| self.has_focus);
                self.dragged = None;
            }
            (MouseEventKind::Drag(MouseButton::Left), Some(to)) => {
                self.dragged = self.pressed_at.map(|from| DraggedRows { from, to });
                self.flash("Ctrl-C copies the selection");
            }
            _ => {}
        }
        Vec::new()
    }
}
