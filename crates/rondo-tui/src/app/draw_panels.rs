//! Draws panels of lists over the conversation, and completions above the input.

use super::draw::panel;
use super::menu::SHOWN_MAX;
use super::{App, Layer};
use crate::call_line::shortened;
use crate::text::{Piece, Row, Wrap, clean, columns};
use crate::transcript::plan_rows;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::{Position, Rect};
use rondo_types::units::{counted, rough};
use rondo_types::{TimeMs, TodoStatus};

/// Rows of a list that are shown at most.
const LIST_ROWS_MAX: usize = 12;

impl App {
    /// Returns the completions of the input, where there are any.
    pub(super) fn menu_rows(&self, width: usize) -> Vec<Row> {
        let Some(menu) = &self.menu else {
            return Vec::new();
        };
        let from = (menu.at + 1).saturating_sub(SHOWN_MAX);
        let shown = menu.items.iter().enumerate().skip(from).take(SHOWN_MAX);
        let wide = shown.clone().map(|it| columns(&it.1.0)).max().unwrap_or(0);
        let row = |(at, (text, does)): (usize, &(String, String))| {
            let style = match at == menu.at {
                true => self.theme.selected,
                false => self.theme.dim,
            };
            let mark = if at == menu.at { "▸ " } else { "  " };
            let line = format!("{:wide$} {does}", clean::line(text));
            Row {
                gutter: vec![Piece::new(mark, self.theme.accent)],
                ..Row::of(shortened(&line, width.saturating_sub(2)), style)
            }
        };
        let count = menu.items.len();
        let more = (count > SHOWN_MAX).then(|| {
            let text = format!("  {} of {count} · Down: the next", menu.at + 1);
            Row::of(text, self.theme.dim)
        });
        shown.map(row).chain(more).collect()
    }

    pub(super) fn draw_sessions(&self, buffer: &mut Buffer, area: Rect) -> Option<Position> {
        let Layer::Sessions(list) = &self.layer else {
            return None;
        };
        let theme = self.theme;
        let inner = usize::from(area.width).saturating_sub(4);
        let (label, typed) = match &list.title {
            Some(title) => ("title: ", title),
            None => ("find: ", &list.words),
        };
        let mut rows = vec![Row {
            gutter: vec![Piece::new(label, theme.accent)],
            ..Row::of(typed.text(), theme.text)
        }];
        let caret = columns(label) + columns(typed.before()) + 2;
        let from = (list.at + 1).saturating_sub(LIST_ROWS_MAX);
        for (at, it) in list.found.iter().enumerate().skip(from).take(LIST_ROWS_MAX) {
            let is_gone = list.removed.contains(&it.info.id);
            let mark = match (at == list.at, is_gone) {
                (_, true) => "✗ ",
                (true, _) => "▸ ",
                _ => "  ",
            };
            let title = match it.info.title.is_empty() {
                true => "(no title)".to_owned(),
                false => clean::line(&it.info.title),
            };
            let turns = counted(it.info.turns, "turn");
            let age = age(self.now, it.info.updated);
            let excerpt = it.excerpt.as_deref().map(clean::line);
            let beside = excerpt.unwrap_or_else(|| clean::line(&it.info.directory));
            let line = format!("{age:>6} · {title} · {turns} · {beside}");
            let style = if at == list.at {
                theme.selected
            } else {
                theme.text
            };
            rows.push(Row {
                gutter: vec![Piece::new(mark, theme.accent)],
                ..Row::of(shortened(&line, inner.saturating_sub(2)), style)
            });
        }
        if list.found.is_empty() {
            rows.push(Row::of("nothing was found", theme.dim));
        }
        if let Some((_, lines)) = list
            .preview
            .as_ref()
            .filter(|(id, _)| list.chosen().is_some_and(|it| it.info.id == *id))
        {
            rows.push(Row::of("─".repeat(inner), theme.frame));
            let lines = lines
                .iter()
                .map(|it| Row::of(shortened(it, inner), theme.dim));
            rows.extend(lines);
        }
        let hints = "Enter goes on · Ctrl-B copies · F2 title · Ctrl-D removes, or takes that back · Esc closes";
        rows.extend(Wrap::at(inner).lines(hints, theme.accent));
        let top = panel(buffer, area, &theme.focus, "sessions", &rows);
        let x = u16::try_from(caret)
            .unwrap_or(0)
            .min(area.width.saturating_sub(2));
        Some(Position::new(x, top + 1))
    }

    pub(super) fn draw_recall(&self, buffer: &mut Buffer, area: Rect) -> Option<Position> {
        let Layer::Recall(list) = &self.layer else {
            return None;
        };
        let theme = self.theme;
        let inner = usize::from(area.width).saturating_sub(6);
        let mut rows = vec![Row {
            gutter: vec![Piece::new("find: ", theme.accent)],
            ..Row::of(list.words.text(), theme.text)
        }];
        let from = (list.at + 1).saturating_sub(LIST_ROWS_MAX);
        for (at, line) in list.found.iter().enumerate().skip(from).take(LIST_ROWS_MAX) {
            let style = if at == list.at {
                theme.selected
            } else {
                theme.text
            };
            let mark = if at == list.at { "▸ " } else { "  " };
            rows.push(Row {
                gutter: vec![Piece::new(mark, theme.accent)],
                ..Row::of(shortened(&clean::line(line), inner), style)
            });
        }
        if list.found.is_empty() {
            rows.push(Row::of("nothing was found", theme.dim));
        }
        let top = panel(buffer, area, &theme.focus, list.title(), &rows);
        let x = columns("find: ") + columns(list.words.before()) + 2;
        let x = u16::try_from(x)
            .unwrap_or(0)
            .min(area.width.saturating_sub(2));
        Some(Position::new(x, top + 1))
    }

    pub(super) fn draw_todo(&self, buffer: &mut Buffer, area: Rect) {
        let theme = self.theme;
        let inner = usize::from(area.width).saturating_sub(4);
        let mut rows: Vec<Row> = Vec::new();
        let mut subagents = self.subagent_rows(inner);
        for item in &self.story.todo {
            rows.extend(plan_rows(item, inner, &theme));
            if item.status == TodoStatus::InProgress {
                rows.append(&mut subagents);
            }
        }
        rows.append(&mut subagents);
        if rows.is_empty() {
            rows.push(Row::of("nothing is on it", theme.dim));
        }
        panel(buffer, area, &theme.focus, "to do · any key closes", &rows);
    }

    /// Returns a branch for each subagent of the turn: what it is to do, and how far it is.
    fn subagent_rows(&self, width: usize) -> Vec<Row> {
        let theme = self.theme;
        let mut rows: Vec<Row> = Vec::new();
        for (line, child) in self.story.subagents() {
            let text = format!("{line} · {}", child.state());
            rows.push(Row {
                gutter: vec![Piece::new("  ├ ", theme.frame)],
                ..Row::of(shortened(&text, width.saturating_sub(4)), theme.text)
            });
        }
        if let Some(last) = rows.last_mut() {
            last.gutter = vec![Piece::new("  └ ", theme.frame)];
        }
        rows
    }
}

/// Returns how long ago something was, in at most six columns.
fn age(now: TimeMs, then: TimeMs) -> String {
    match now.since(then).as_secs() {
        0..60 => "now".to_owned(),
        seconds => rough(seconds),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_told_in_the_unit_that_people_would_use() {
        const MINUTE: u64 = 60_000;
        for (ago, told) in [
            (MINUTE - 1, "now"),
            (59 * MINUTE, "59 min"),
            (60 * MINUTE, "1 h"),
            (23 * 60 * MINUTE, "23 h"),
            (48 * 60 * MINUTE, "2 d"),
        ] {
            assert_eq!(age(TimeMs(10 * ago), TimeMs(9 * ago)), told);
        }
        // Clocks that disagree are not a reason to say nothing.
        assert_eq!(age(TimeMs(0), TimeMs(MINUTE)), "now");
    }
}
