//! The conversation as it is shown: entries, laid out when they come into view.
//!
//! # Layout
//! - `entry`: one entry; `card`: a tool call or a person's own cell; `diff`: a change of a text; `change`: one
//!   that is proposed; `child`: the work of a subagent.
//! - `quote`: attachments of a person's words.
//! - `viewport`: the part on the screen; `find`: looks for words in all of it.

mod card;
mod change;
mod child;
mod diff;
mod entry;
mod find;
mod quote;
mod viewport;

pub(crate) use card::{Card, CardEnd, plan_rows};
pub(crate) use change::{Change, ShownContext};
pub(crate) use child::Child;
pub use diff::change_lines;
pub(crate) use diff::{Choice, Diff};
pub(crate) use entry::{Answer, Entry, Tone, cut};
pub(crate) use quote::Quote;
pub(crate) use viewport::{Frame, RowPosition, Viewport};

use crate::text::Row;
use crate::theme::Theme;
use entry::LaidOutRows;

/// Entries whose rows are kept; beyond them those out of view are laid out again when they come back.
const LAID_OUT_MAX: usize = 256;
/// Entries of a session that are kept; the oldest ones give way, and are in the journal.
const ENTRIES_MAX: usize = 100_000;

/// An entry and its rows.
#[derive(Debug)]
struct Item {
    entry: Entry,
    /// Set if it is shown in full.
    is_open: bool,
    laid: Option<LaidOutRows>,
    /// How often it changed.
    revision: u64,
    /// Set if it was printed to the terminal's own scrollback.
    is_printed: bool,
}

/// All entries of a session.
#[derive(Debug)]
pub(crate) struct Transcript {
    items: Vec<Item>,
    /// The number of the first one.
    first: usize,
    laid_out: usize,
}

impl Default for Transcript {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            // There are numbers for those that are put before it.
            first: ENTRIES_MAX,
            laid_out: 0,
        }
    }
}

impl Transcript {
    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    fn len(&self) -> usize {
        self.items.len()
    }

    /// Adds an entry, and returns its number, which stays the same.
    pub(crate) fn push(&mut self, entry: Entry) -> usize {
        if self.items.len() >= ENTRIES_MAX {
            let least = ENTRIES_MAX / 10;
            self.items.drain(..least);
            self.first += least;
        }
        self.items.push(Item {
            entry,
            is_open: false,
            laid: None,
            revision: 0,
            is_printed: false,
        });
        self.first + self.items.len() - 1
    }

    /// Puts the latest of earlier entries before those that are there, as many as there is room for. They were printed in
    /// their own time.
    pub(crate) fn put_before(&mut self, earlier: Self) {
        let mut items = earlier.items;
        let room = ENTRIES_MAX.saturating_sub(self.items.len()).min(self.first);
        items.drain(..items.len().saturating_sub(room));
        for item in &mut items {
            item.is_printed = true;
        }
        self.first -= items.len();
        self.laid_out += earlier.laid_out;
        self.items.splice(0..0, items);
    }

    /// Returns whether an entry is among so many first ones.
    pub(crate) fn is_within(&self, number: usize, first: usize) -> bool {
        number < self.first + first
    }

    pub(crate) fn get(&self, number: usize) -> Option<&Entry> {
        let at = number.checked_sub(self.first)?;
        self.items.get(at).map(|it| &it.entry)
    }

    /// Changes an entry.
    pub(crate) fn change(&mut self, number: usize, change: impl FnOnce(&mut Entry)) {
        let at = number.checked_sub(self.first);
        if let Some(item) = at.and_then(|at| self.items.get_mut(at)) {
            change(&mut item.entry);
            item.revision += 1;
        }
    }

    /// Shows an entry in full, or no more.
    pub(crate) fn turn_open(&mut self, number: usize) {
        let at = number.checked_sub(self.first);
        if let Some(item) = at.and_then(|at| self.items.get_mut(at)) {
            item.is_open = !item.is_open;
            item.revision += 1;
        }
    }

    /// Returns the entries with their numbers, the latest first.
    pub(crate) fn latest(&self) -> impl Iterator<Item = (usize, &Entry)> {
        let items = self.items.iter().enumerate().rev();
        items.map(|(at, it)| (self.first + at, &it.entry))
    }

    /// Returns all of it as text, for a pager.
    pub(crate) fn text(&self) -> String {
        let texts = self.items.iter().map(|it| it.entry.source());
        texts.collect::<Vec<_>>().join("\n\n")
    }

    /// Takes all of it for printed.
    pub(crate) fn was_printed(&mut self) {
        for item in &mut self.items {
            item.is_printed = true;
        }
    }

    /// Returns the rows of what was not printed yet, and takes it for printed.
    pub(crate) fn unprinted(&mut self, width: usize, theme: &Theme, only_last: bool) -> Vec<Row> {
        let last_answer = self
            .items
            .iter()
            .rposition(|it| matches!(it.entry, Entry::Answer(_)));
        let mut rows = Vec::new();
        for (at, item) in self.items.iter_mut().enumerate() {
            let is_wanted = !only_last || Some(at) == last_answer;
            if !std::mem::replace(&mut item.is_printed, true) && is_wanted {
                rows.extend(item.entry.rows(width, theme, false));
            }
        }
        rows
    }

    /// Returns the rows of an item, by its place among those that are kept.
    fn rows(&mut self, at: usize, width: usize, theme: &Theme) -> &[Row] {
        let Some(item) = self.items.get_mut(at) else {
            return &[];
        };
        let is_fresh = item.laid.as_ref().is_some_and(|laid| {
            laid.width == width && laid.revision == item.revision && laid.theme == *theme
        });
        if !is_fresh {
            let laid = item.laid.take();
            if laid.is_none() {
                self.laid_out += 1;
            }
            // Rows of another width or theme are not a beginning of these.
            let before = laid.filter(|it| it.width == width && it.theme == *theme);
            let mut rows = match before {
                Some(laid) => laid.rows,
                None => {
                    item.entry.forget_rows();
                    Vec::new()
                }
            };
            item.entry.lay_out(&mut rows, width, theme, item.is_open);
            item.laid = Some(LaidOutRows {
                width,
                theme: *theme,
                revision: item.revision,
                rows,
            });
        }
        item.laid.as_ref().map_or(&[], |it| &it.rows)
    }

    /// Lets go of the rows of what is out of view.
    fn forget_rows(&mut self, keep: std::ops::Range<usize>) {
        if self.laid_out <= LAID_OUT_MAX {
            return;
        }
        for (at, item) in self.items.iter_mut().enumerate() {
            if !keep.contains(&at) && item.laid.take().is_some() {
                self.laid_out -= 1;
                item.entry.forget_rows();
            }
        }
    }
}
