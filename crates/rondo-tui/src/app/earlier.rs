//! The turns before those that a long session is opened with: they are read once somebody looks for them.

use super::story::Story;
use super::{App, Effect, Layer};
use crate::transcript::Frame;

/// Entries between the first one and the view at which those before it are read.
const NEAR_ENTRIES: usize = 16;

/// Turns that are not shown yet.
#[derive(Debug, Default)]
pub(super) struct Earlier {
    /// How many there are.
    turns: u32,
    is_reading: bool,
    /// Whether they were read, or could not be.
    is_over: bool,
    /// Whether somebody went up though all that was told is in view.
    is_wanted: bool,
    /// What is done once they are there.
    then: Option<AfterReading>,
}

/// What waits for earlier turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AfterReading {
    /// Show all of the session in the pager.
    Page,
    /// Go to its beginning.
    GoToTop,
}

impl App {
    /// So many turns are before the first one that was told.
    pub(crate) fn passed(&mut self, turns: u32) {
        if !self.earlier.is_over {
            self.earlier.turns = turns;
        }
    }

    /// Returns how many turns are to be read that come before those that are shown, once for each time.
    pub(crate) fn wants_earlier(&mut self) -> Option<u32> {
        let is_wanted = self.earlier.is_wanted
            || self.earlier.then.is_some()
            || matches!(self.layer, Layer::Find(_))
            || self.is_near_beginning();
        let wants = self.earlier.turns > 0 && !self.earlier.is_reading && is_wanted;
        wants.then(|| {
            self.earlier.is_reading = true;
            self.earlier.turns
        })
    }

    /// Where the end is followed, nobody looks for the beginning, though it may be near while turns are told.
    fn is_near_beginning(&self) -> bool {
        let first = self.drawn.places.first().map(|it| it.entry);
        let is_near = first.is_some_and(|it| self.story.transcript.is_within(it, NEAR_ENTRIES));
        is_near && !self.viewport.follows()
    }

    /// Somebody scrolled up.
    pub(super) fn goes_up(&mut self) {
        self.earlier.is_wanted |= self.viewport.follows();
    }

    /// Returns whether earlier turns are being read.
    pub(super) fn reads_earlier(&self) -> bool {
        self.earlier.is_reading
    }

    /// Earlier turns were read; none where that failed.
    pub(crate) fn take_earlier(&mut self, story: Option<Box<Story>>) -> Vec<Effect> {
        let over = Earlier {
            is_over: true,
            ..Earlier::default()
        };
        let was = std::mem::replace(&mut self.earlier, over);
        if let Some(story) = story.filter(|_| was.is_reading) {
            self.story.put_before(*story);
        }
        match was.then {
            Some(AfterReading::Page) => return self.page_all(),
            Some(AfterReading::GoToTop) => self.go_to_top(),
            None => self.find_missed(),
        }
        Vec::new()
    }

    /// Shows all of the session in the pager.
    pub(super) fn page_all(&mut self) -> Vec<Effect> {
        if self.earlier.turns > 0 {
            self.earlier.then = Some(AfterReading::Page);
            return Vec::new();
        }
        vec![Effect::Page(self.story.transcript.text())]
    }

    /// Goes to the beginning of the session.
    pub(super) fn go_to_top(&mut self) {
        if self.earlier.turns > 0 {
            self.earlier.then = Some(AfterReading::GoToTop);
            return;
        }
        let theme = self.theme;
        let frame = Frame {
            theme: &theme,
            ..self.frame()
        };
        self.viewport.go_to_top(&mut self.story.transcript, frame);
    }
}
