//! The line editor's view of what was typed before.

use super::shared::Shared;
use reedline::{
    CommandLineSearch, History, HistoryItem, HistoryItemId, HistorySessionId, ReedlineError,
    ReedlineErrorVariants, Result, SearchDirection, SearchQuery,
};
use rondo_runtime::secrets::KeyNames;
use rondo_tui::prompt::history::TypedLines;
use std::io;
use std::path::PathBuf;

/// The lines that were typed, as they would be typed in the mode of the prompt.
pub(super) struct Lines {
    typed: TypedLines,
    shared: Shared,
}

impl Lines {
    /// Reads what is kept.
    pub(super) fn read(file: Option<PathBuf>, shared: Shared, key_names: KeyNames) -> Self {
        Self {
            typed: TypedLines::read(file, key_names),
            shared,
        }
    }

    fn item(&self, at: usize) -> Option<HistoryItem> {
        let line = self.typed.spelled(at, self.shared.mode())?;
        let id = i64::try_from(at).ok()?;
        Some(HistoryItem {
            id: Some(HistoryItemId::new(id)),
            ..HistoryItem::from_command_line(line)
        })
    }

    /// Returns the places that a query looks at, in its order.
    fn places(&self, query: &SearchQuery) -> Vec<usize> {
        let place = |id: HistoryItemId| usize::try_from(id.0).ok();
        let (start, end) = (query.start_id.and_then(place), query.end_id.and_then(place));
        let all = 0..self.typed.len();
        match query.direction {
            SearchDirection::Forward => all
                .filter(|at| start.is_none_or(|start| *at > start))
                .filter(|at| end.is_none_or(|end| *at <= end))
                .collect(),
            SearchDirection::Backward => all
                .rev()
                .filter(|at| start.is_none_or(|start| *at < start))
                .filter(|at| end.is_none_or(|end| *at >= end))
                .collect(),
        }
    }
}

impl History for Lines {
    fn save(&mut self, item: HistoryItem) -> Result<HistoryItem> {
        let (mode, secrets) = (self.shared.mode(), self.shared.secrets());
        self.typed.push(&item.command_line, mode, &secrets);
        let last = self.typed.len().saturating_sub(1);
        Ok(self.item(last).unwrap_or(item))
    }

    fn load(&self, id: HistoryItemId) -> Result<HistoryItem> {
        let at = usize::try_from(id.0).ok();
        at.and_then(|at| self.item(at)).ok_or(NOT_THERE)
    }

    fn count(&self, query: SearchQuery) -> Result<i64> {
        let found = self.search(query)?.len();
        Ok(i64::try_from(found).unwrap_or(i64::MAX))
    }

    fn search(&self, query: SearchQuery) -> Result<Vec<HistoryItem>> {
        let most = query.limit.and_then(|limit| usize::try_from(limit).ok());
        // Each step through the history must show something else.
        let from = query.start_id.and_then(|id| self.load(id).ok());
        let is_new = |item: &HistoryItem| {
            from.as_ref()
                .is_none_or(|from| from.command_line != item.command_line)
        };
        let fits = |item: &HistoryItem| match &query.filter.command_line {
            Some(CommandLineSearch::Prefix(text)) => item.command_line.starts_with(text),
            Some(CommandLineSearch::Substring(text)) => item.command_line.contains(text),
            Some(CommandLineSearch::Exact(text)) => item.command_line == *text,
            None => true,
        };
        let places = self.places(&query).into_iter();
        let items = places.filter_map(|at| self.item(at));
        let found = items.filter(|item| is_new(item) && fits(item));
        Ok(found.take(most.unwrap_or(usize::MAX)).collect())
    }

    fn update(&mut self, _: HistoryItemId, _: &dyn Fn(HistoryItem) -> HistoryItem) -> Result<()> {
        Err(UNSUPPORTED)
    }

    fn clear(&mut self) -> Result<()> {
        self.typed.clear();
        Ok(())
    }

    fn delete(&mut self, _: HistoryItemId) -> Result<()> {
        Err(UNSUPPORTED)
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn session(&self) -> Option<HistorySessionId> {
        None
    }
}

const NOT_THERE: ReedlineError = ReedlineError(ReedlineErrorVariants::OtherHistoryError(
    "there is no such entry",
));
const UNSUPPORTED: ReedlineError =
    ReedlineError(ReedlineErrorVariants::HistoryFeatureUnsupported {
        history: "rondo",
        feature: "changing an entry",
    });

#[cfg(test)]
mod tests;
