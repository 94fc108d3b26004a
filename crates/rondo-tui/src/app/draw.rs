//! The frame: the conversation above, what waits and the input below.

use super::{App, DrawnPlaces, Layer, help, keys};
use crate::prompt::vi::Vi;
use crate::terminal::painter::MovedRows;
use crate::text::{Piece, Row, clean, columns};
use crate::transcript::{Frame, RowPosition};
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::{Position, Rect};
use ratatui_core::style::Style;
use rondo_core::session::Delivery;
use rondo_types::units::counted;

/// Rows of the draft that are shown at most.
const DRAFT_ROWS_MAX: usize = 10;
/// Messages that wait and are shown.
const WAITING_ROWS_MAX: usize = 3;
/// The smallest terminal that is drawn on.
const COLUMNS_MIN: u16 = 20;
const ROWS_MIN: u16 = 6;

/// A frame, and where its caret is.
pub(crate) struct Drawing {
    pub(crate) buffer: Buffer,
    pub(crate) caret: Option<Position>,
    /// Rows that moved up since the frame before.
    pub(crate) moved: Option<MovedRows>,
}

impl App {
    /// Draws a frame.
    pub(crate) fn draw(&mut self, area: Rect) -> Drawing {
        let mut buffer = Buffer::empty(area);
        if area.width < COLUMNS_MIN || area.height < ROWS_MIN {
            buffer.set_stringn(0, 0, "too small", usize::from(area.width), Style::new());
            return Drawing {
                buffer,
                caret: None,
                moved: None,
            };
        }
        let below = self.below(usize::from(area.width));
        let max = area.height.saturating_sub(2);
        let height = u16::try_from(below.rows.len()).unwrap_or(max).min(max);
        let top = area.height - height;
        let above = Rect::new(0, 0, area.width, top);
        self.screen = area;
        let review = self.lay_out_review(above);
        // What the model said before it asks stays in sight.
        let has_pane = self.pane.split(above).1.is_some();
        let in_sight = match &review {
            Some(review) if !has_pane => review.above(above),
            _ => above,
        };
        let (conversation, pane) = self.pane.split(in_sight);
        let moved = match conversation {
            Some(area) => self.draw_conversation(&mut buffer, area),
            None => {
                self.drawn.places.clear();
                None
            }
        };
        let in_pane = pane.and_then(|area| self.draw_pane(&mut buffer, area));
        let skip = below.rows.len().saturating_sub(usize::from(height));
        for (row, y) in below.rows.iter().skip(skip).zip(top..) {
            row.draw(&mut buffer, 0, y, area.width);
        }
        let mut caret = below.caret.and_then(|(x, y)| {
            let y = u16::try_from(y.checked_sub(skip)?).ok()?;
            Some(Position::new(u16::try_from(x).ok()?, top + y))
        });
        if self.pane.has_keys() {
            caret = in_pane;
        }
        if let Some(over) = self.draw_layer(&mut buffer, above) {
            caret = over;
        }
        if let Some(review) = review {
            caret = self.draw_review(&mut buffer, above, &review);
        }
        Drawing {
            buffer,
            caret,
            // Rows are moved by the terminal as a whole, and a pane beside them would be too.
            moved: moved.filter(|_| pane.is_none() && matches!(self.layer, Layer::None)),
        }
    }

    fn draw_conversation(&mut self, buffer: &mut Buffer, area: Rect) -> Option<MovedRows> {
        let theme = self.theme;
        let frame = Frame {
            width: usize::from(area.width),
            height: usize::from(area.height),
            theme: &theme,
        };
        let rows = self.viewport.rows(&mut self.story.transcript, frame);
        // A conversation that does not fill the screen stands at its foot, beside the input.
        let rows_shown = u16::try_from(rows.len()).unwrap_or(area.height);
        let first = area.height.saturating_sub(rows_shown);
        for ((place, row), y) in rows.iter().zip(first..) {
            row.draw(buffer, 0, y, area.width);
            let is_found = matches!(&self.layer, Layer::Find(find) if find.at == Some(*place));
            if is_found || self.dragged.is_some_and(|it| it.holds(*place)) {
                buffer.set_style(Rect::new(0, y, area.width, 1), theme.selected);
            }
            if Some(place.entry) == self.selected {
                let mark = if place.row == 0 { " " } else { "▌" };
                buffer.set_stringn(0, y, mark, 1, theme.focus);
            }
        }
        let places: Vec<RowPosition> = rows.into_iter().map(|it| it.0).collect();
        let moved = moved(&self.drawn.places, &places, area, self.drawn.area);
        self.drawn = DrawnPlaces { area, places };
        moved
    }

    /// Draws what lies over the conversation. Returns where the caret is then.
    fn draw_layer(&mut self, buffer: &mut Buffer, area: Rect) -> Option<Option<Position>> {
        match &mut self.layer {
            Layer::None | Layer::Find(_) | Layer::Review(_) => None,
            Layer::Help(from) => {
                let inner = usize::from(area.width).saturating_sub(4);
                let rows = help::rows(&self.added.keys, inner, &self.theme);
                *from = (*from).min(rows.len().saturating_sub(1));
                let rows = rows.get(*from..).unwrap_or_default();
                let room = usize::from(area.height.saturating_sub(2));
                let title = match rows.len().saturating_sub(room) {
                    0 => "keys · Esc closes".to_owned(),
                    below => format!(
                        "keys · Esc closes · {}: PageDown",
                        counted(below, "more row")
                    ),
                };
                panel(buffer, area, &self.theme.focus, &title, rows);
                Some(None)
            }
            Layer::Sessions(_) => Some(self.draw_sessions(buffer, area)),
            Layer::Recall(_) => Some(self.draw_recall(buffer, area)),
            Layer::Todo => {
                self.draw_todo(buffer, area);
                Some(None)
            }
            Layer::Preview(_) => {
                self.draw_preview(buffer, area);
                Some(None)
            }
        }
    }

    pub(super) fn draft_width(&self) -> usize {
        usize::from(self.screen.width).saturating_sub(4).max(2)
    }

    /// Returns what stands below the conversation.
    fn below(&mut self, width: usize) -> LowerRows {
        let theme = self.theme;
        let mut rows = self.opener_rows(width);
        if let Some(line) = self.activity_line(width) {
            rows.push(Row::of(line, theme.dim));
        } else if self.story.runs_cell() && !self.pane.has_keys() {
            let pane = keys::key_of(keys::Action::Pane);
            let text = format!("  Esc stops what runs · {pane} types into it");
            rows.push(Row::of(text, theme.dim));
        }
        if self.reads_earlier() {
            rows.push(Row::of("  ↑ earlier turns are read …", theme.dim));
        }
        if !self.viewport.follows() {
            let text = format!(
                "  ↓ more below · {} goes there",
                keys::key_of(keys::Action::Bottom)
            );
            rows.push(Row::of(text, theme.accent));
        }
        self.waiting_rows(&mut rows);
        self.attached_rows(&mut rows);
        if let Some(asks) = self
            .asks()
            .filter(|_| !matches!(self.layer, Layer::Review(_)))
        {
            rows.push(Row::of(format!("▲ {asks}"), theme.warn));
        }
        rows.extend(self.menu_rows(width));
        let caret = self.draft_rows(width, &mut rows);
        let caret = match self.find_line() {
            Some((line, x)) => {
                rows.push(Row::of(line, theme.accent));
                Some((x, rows.len() - 1))
            }
            None => {
                rows.push(self.status_row(width));
                caret
            }
        };
        LowerRows { rows, caret }
    }

    fn waiting_rows(&self, rows: &mut Vec<Row>) {
        // The shell and the agent take turns.
        let is_in_turn = self.is_busy();
        let messages = self.queue.behind_opener(self.is_preparing()).map(|it| {
            let how = match it.delivery {
                _ if !is_in_turn => "after what runs",
                Delivery::Steer | Delivery::SteerOwn => "steers",
                _ => "queued",
            };
            format!("⧗ {how}: {}", clean::line(&it.text))
        });
        let commands = self.pane.asked().filter(|_| is_in_turn);
        let commands = commands.map(|it| format!("⧗ after this turn: $ {}", clean::line(it)));
        let all: Vec<String> = messages.chain(commands).collect();
        let hidden = all.len().saturating_sub(WAITING_ROWS_MAX);
        let shown = all.into_iter().skip(hidden);
        rows.extend(shown.map(|it| Row::of(it, self.theme.dim)));
        if hidden > 0 {
            rows.push(Row::of(format!("⧗ and {hidden} more wait"), self.theme.dim));
        }
        if self.queue.may_take() && self.editor.is_empty() {
            let key = keys::key_of(keys::Action::Previous);
            let text = match !is_in_turn || self.queue.takes_queued() {
                true => format!("  {key} edits it"),
                // It is in the conversation from then on.
                false => format!("  {key} edits it, until the agent reads it before its next step"),
            };
            rows.push(Row::of(text, self.theme.dim));
        }
    }

    /// Draws the input, and returns where its caret is.
    fn draft_rows(&self, width: usize, rows: &mut Vec<Row>) -> Option<(usize, usize)> {
        let theme = self.theme;
        let inner = width.saturating_sub(4).max(2);
        let title = format!("─ {} ", self.input_title());
        let line = width.saturating_sub(columns(&title) + 2);
        rows.push(Row::of(
            format!("╭{title}{}╮", "─".repeat(line)),
            theme.frame,
        ));
        let all = self.editor.rows(inner);
        let (x, y) = self.editor.caret_at(inner);
        let from = (y + 1).saturating_sub(DRAFT_ROWS_MAX);
        let shown = all.iter().skip(from).take(DRAFT_ROWS_MAX);
        let first = rows.len();
        let selected = self.vi.as_ref().and_then(Vi::selection).unwrap_or_default();
        for row in shown {
            let [before, within, behind] = self.editor.shown(row, selected);
            let used = columns(&before) + columns(&within) + columns(&behind);
            let blank = " ".repeat(inner.saturating_sub(used));
            rows.push(Row {
                gutter: vec![Piece::new("│ ", theme.frame)],
                pieces: vec![
                    Piece::new(before, theme.text),
                    Piece::new(within, theme.selected),
                    Piece::new(behind + &blank, theme.text),
                    Piece::new(" │", theme.frame),
                ],
                ..Row::default()
            });
        }
        let line = "─".repeat(width.saturating_sub(2));
        rows.push(Row::of(format!("╰{line}╯"), theme.frame));
        Some((x + 2, first + y - from))
    }
}

struct LowerRows {
    rows: Vec<Row>,
    caret: Option<(usize, usize)>,
}

/// Draws a panel at the foot of an area, as high as its rows need. Returns its first row.
pub(super) fn panel(
    buffer: &mut Buffer,
    area: Rect,
    style: &Style,
    title: &str,
    rows: &[Row],
) -> u16 {
    let needed = u16::try_from(rows.len())
        .unwrap_or(u16::MAX)
        .saturating_add(2);
    let height = needed.min(area.height);
    let top = area.bottom() - height;
    let inner = usize::from(area.width).saturating_sub(2);
    // Nothing of what lies below shows through, colours included.
    for y in top..area.bottom() {
        for x in 0..area.width {
            if let Some(cell) = buffer.cell_mut(Position::new(x, y)) {
                cell.reset();
            }
        }
    }
    let line = inner.saturating_sub(columns(title) + 3);
    let head = format!("┏━ {title} {}┓", "━".repeat(line));
    buffer.set_stringn(0, top, head, usize::from(area.width), *style);
    let bottom = area.bottom().saturating_sub(1);
    for (row, y) in rows.iter().zip(top + 1..bottom) {
        row.draw(buffer, 2, y, area.width.saturating_sub(2));
    }
    for y in top + 1..bottom {
        buffer.set_stringn(0, y, "┃", 1, *style);
        buffer.set_stringn(area.width.saturating_sub(1), y, "┃", 1, *style);
    }
    let foot = format!("┗{}┛", "━".repeat(inner));
    buffer.set_stringn(0, bottom, foot, usize::from(area.width), *style);
    top
}

/// Returns by how much rows moved up between two frames of one size.
fn moved(
    before: &[RowPosition],
    now: &[RowPosition],
    area: Rect,
    drawn: Rect,
) -> Option<MovedRows> {
    let first = now.first()?;
    let is_full = before.len() == now.len() && now.len() == usize::from(area.height);
    if area != drawn || !is_full || before.first() == Some(first) {
        return None;
    }
    let by = before.iter().position(|it| it == first)?;
    let is_same = before
        .iter()
        .skip(by)
        .eq(now.iter().take(before.len() - by));
    is_same.then(|| MovedRows {
        top: area.top(),
        bottom: area.bottom(),
        by: u16::try_from(by).unwrap_or(0),
    })
}
