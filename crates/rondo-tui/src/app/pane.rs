//! The shell beside the conversation: its keys, its frame, and what it gives to the agent.

use super::act::edit;
use super::draw::panel;
use super::keys::{self, Action, action, key_of, spelled};
use super::{App, Effect, Layer};
use crate::options::Colours;
use crate::pane::Emulator;
use crate::prompt::editor::Editor;
use crate::prompt::mode::Mode;
use crate::text::{Row, Wrap, clean, columns};
use crate::transcript::cut;
use crossterm::event::KeyEvent;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::{Position, Rect};
use ratatui_core::style::Style;
use rondo_runtime::cells::{PtySize, shell_text};
use rondo_runtime::service::{Cell, CellEnd, CellEvent};
use std::collections::VecDeque;

/// From this width on, the pane stands beside the conversation; below it under it, from this height on, and otherwise it
/// has the whole screen.
const BESIDE_COLUMNS_MIN: u16 = 110;
const UNDER_ROWS_MIN: u16 = 16;
/// Lines that are recalled.
const LINES_MAX: usize = 500;
/// Commands that were asked for and did not begin.
const ASKED_MAX: usize = 64;
/// Texts that go along with one message.
pub(super) const ATTACHED_MAX: usize = 16;

/// Said in the pane, since the variables of the shell are gone.
const SHELL_ENDED: &str = "[the shell ended: the next command starts another]\n";

/// The pane.
#[derive(Debug, Default)]
pub(super) struct ShellPane {
    emulator: Emulator,
    prompt: Editor,
    lines: Vec<String>,
    recalled: Option<usize>,
    is_open: bool,
    has_keys: bool,
    is_zoomed: bool,
    /// Whether a command runs in the shell.
    runs: bool,
    /// Whether the command took the whole screen, so that its output is no text.
    took_screen: bool,
    /// Whether the program was answered, so that what it did not read is not what was typed.
    replied: bool,
    /// What was asked of the shell and did not begin, for its terminal.
    asked: VecDeque<String>,
    /// Whether the same was typed here, for the conversation.
    typed_here: VecDeque<bool>,
    /// The command that runs, as it may be shown.
    command: Option<String>,
    last: Option<Last>,
    area: Rect,
}

/// The last command, as the agent would read it.
#[derive(Debug)]
struct Last {
    text: String,
    directory: String,
    exit_code: i32,
}

/// A text that is shown before it goes along with the next message.
#[derive(Debug)]
pub(super) struct Preview {
    text: String,
    from: usize,
}

impl ShellPane {
    pub(super) fn has_keys(&self) -> bool {
        self.is_open && self.has_keys
    }

    /// Returns whether what began now was typed in the pane, which shows it already.
    pub(super) fn takes(&mut self, event: &CellEvent) -> bool {
        match event {
            CellEvent::Started {
                cell: Cell::Shell(command),
                ..
            } => {
                self.command = Some(command.clone());
                self.typed_here.pop_front().unwrap_or(false)
            }
            CellEvent::Ended {
                end:
                    CellEnd::Shell {
                        exit_code,
                        directory,
                        output,
                        omitted_bytes,
                        has_shell_ended,
                        ..
                    },
            } => {
                if *has_shell_ended {
                    self.emulator.feed_text(SHELL_ENDED);
                }
                let command = self.command.take().unwrap_or_default();
                self.last = Some(Last {
                    text: shell_text(&command, directory, *exit_code, output, *omitted_bytes),
                    directory: directory.display().to_string(),
                    exit_code: *exit_code,
                });
                false
            }
            _ => false,
        }
    }

    /// What was asked of the shell did not begin.
    pub(super) fn forget_asked(&mut self) {
        self.asked.clear();
        self.typed_here.clear();
    }

    /// Returns the parts of an area: for the conversation, and for the pane.
    pub(super) fn split(&self, area: Rect) -> (Option<Rect>, Option<Rect>) {
        if !self.is_open {
            return (Some(area), None);
        }
        let is_wide = area.width >= BESIDE_COLUMNS_MIN;
        if self.is_zoomed || (!is_wide && area.height < UNDER_ROWS_MIN) {
            return (None, Some(area));
        }
        let (mut above, mut pane) = (area, area);
        if is_wide {
            pane.width = area.width / 2;
            above.width = area.width - pane.width;
            pane.x = above.width;
        } else {
            pane.height = area.height / 2;
            above.height = area.height - pane.height;
            pane.y = above.height;
        }
        (Some(above), Some(pane))
    }

    fn recall(&mut self, goes_back: bool) {
        let all = self.lines.len();
        let at = self.recalled.unwrap_or(all);
        let to = match goes_back {
            true => at.checked_sub(1),
            false => Some(at + 1).filter(|it| *it <= all),
        };
        if let Some(to) = to {
            self.prompt
                .set(self.lines.get(to).map_or("", String::as_str));
            self.recalled = Some(to);
        }
    }

    fn title(&self) -> String {
        let mut title = "shell".to_owned();
        if let Some(last) = &self.last {
            title = format!("{title} · {}", clean::line(&last.directory));
            if last.exit_code != 0 {
                title = format!("{title} · exit {}", last.exit_code);
            }
        }
        title
    }

    fn hint(&self) -> String {
        let leave = key_of(Action::Pane);
        match (self.has_keys, self.runs) {
            (false, _) => format!("{leave} enters"),
            (true, true) => format!("{leave} leaves · all other keys are the program's"),
            (true, false) => format!(
                "{leave} leaves · {} zooms · {} hands over",
                key_of(Action::ZoomPane),
                key_of(Action::HandOver)
            ),
        }
    }
}

impl App {
    /// Gives the keys to the shell, which is opened where it is not.
    pub(super) fn enter_pane(&mut self) -> Vec<Effect> {
        let was_open = self.pane.is_open;
        (self.pane.is_open, self.pane.has_keys) = (true, true);
        match was_open {
            true => Vec::new(),
            false => vec![Effect::OpenShell],
        }
    }

    pub(super) fn zoom_pane(&mut self) {
        match self.pane.is_open {
            true => self.pane.is_zoomed = !self.pane.is_zoomed,
            false => self.flash(format!("{} opens the shell", key_of(Action::Pane))),
        }
    }

    pub(super) fn close_pane(&mut self) {
        (self.pane.is_open, self.pane.has_keys) = (false, false);
    }

    /// Returns what runs a person's command. `is_typed_here` says whether it was typed in the pane.
    pub(super) fn shell_command(
        &mut self,
        command: &str,
        is_shared: bool,
        is_typed_here: bool,
    ) -> Effect {
        if self.pane.asked.len() < ASKED_MAX {
            self.pane.asked.push_back(command.to_owned());
            self.pane.typed_here.push_back(is_typed_here);
        }
        Effect::Own {
            cell: Cell::Shell(command.to_owned()),
            is_shared,
        }
    }

    /// A command began in the shell's terminal.
    pub(crate) fn shell_began(&mut self) {
        let pane = &mut self.pane;
        let asked = pane.asked.pop_front().unwrap_or_default();
        (pane.runs, pane.took_screen, pane.replied) = (true, false, false);
        let echo = format!("\x1b[1m$ {}\x1b[0m\n", clean::typed(&asked));
        pane.emulator.feed_text(&echo);
    }

    /// The shell's terminal got output. Returns what is to be typed in reply.
    pub(crate) fn shell_wrote(&mut self, bytes: &[u8]) -> Vec<u8> {
        let replies = self.pane.emulator.feed(bytes);
        // What comes without a command has nobody who would read a reply.
        if !self.pane.runs {
            return Vec::new();
        }
        self.pane.replied |= !replies.is_empty();
        replies
    }

    /// The command in the shell's terminal is over, with what was typed and not read.
    pub(crate) fn shell_ended(&mut self, unread: &[u8]) {
        let pane = &mut self.pane;
        pane.runs = false;
        pane.took_screen = pane.emulator.end_program();
        if !pane.replied && pane.prompt.is_empty() {
            let line = String::from_utf8_lossy(unread).replace(['\r', '\n'], " ");
            pane.prompt.set(&clean::typed(&line));
        }
    }

    /// Returns the size of the shell's terminal, where it is shown.
    pub(crate) fn shell_size(&self) -> Option<PtySize> {
        self.pane.is_open.then(|| self.pane.emulator.size())
    }

    pub(super) fn pane_key(&mut self, key: &KeyEvent) -> Vec<Effect> {
        let action = action(key);
        if action == Some(Action::Pane) {
            self.pane.has_keys = false;
            return Vec::new();
        }
        if self.pane.runs {
            self.pane.emulator.scroll_to_bottom();
            return vec![Effect::Type(self.pane.emulator.key(key))];
        }
        if let Some(Action::ZoomPane | Action::ClosePane | Action::HandOver | Action::Review) =
            action
        {
            return self.act_of_pane(action);
        }
        if let Some(rows) = self.pane_rows(action) {
            self.pane.emulator.scroll(rows);
            return Vec::new();
        }
        if self.story.is_in_turn {
            self.flash(format!(
                "the agent's calls have the shell until its turn is over · {} leaves",
                key_of(Action::Pane)
            ));
            return Vec::new();
        }
        self.pane_prompt_key(key)
    }

    fn act_of_pane(&mut self, action: Option<Action>) -> Vec<Effect> {
        match action {
            Some(Action::ZoomPane) => self.zoom_pane(),
            Some(Action::ClosePane) => self.close_pane(),
            Some(Action::HandOver) => self.preview_last_command(),
            _ => self.review(),
        }
        Vec::new()
    }

    /// Returns by how many rows a key scrolls the pane, up where they are positive.
    fn pane_rows(&self, action: Option<Action>) -> Option<i32> {
        let page = i32::from(self.pane.area.height.saturating_sub(4).max(1));
        match action? {
            Action::PageUp => Some(page),
            Action::PageDown => Some(-page),
            Action::RowUp => Some(1),
            Action::RowDown => Some(-1),
            _ => None,
        }
    }

    fn pane_prompt_key(&mut self, key: &KeyEvent) -> Vec<Effect> {
        self.pane.emulator.scroll_to_bottom();
        match spelled(key).as_deref() {
            Some("Enter") => return self.run_pane_line(),
            Some("Up" | "Ctrl-P") => self.pane.recall(true),
            Some("Down" | "Ctrl-N") => self.pane.recall(false),
            Some("Ctrl-C") => drop(self.pane.prompt.take()),
            Some("Ctrl-L") => drop(self.pane.emulator.feed(b"\x1b[2J\x1b[H")),
            Some("Ctrl-Z") => return vec![Effect::Suspend],
            Some("Esc" | "Ctrl-D") if self.pane.prompt.is_empty() => self.pane.has_keys = false,
            _ => {
                edit(&mut self.pane.prompt, key);
                self.pane.recalled = None;
            }
        }
        Vec::new()
    }

    fn run_pane_line(&mut self) -> Vec<Effect> {
        let line = self.pane.prompt.take();
        self.pane.recalled = None;
        if line.trim().is_empty() {
            return Vec::new();
        }
        if self.pane.lines.len() == LINES_MAX {
            self.pane.lines.remove(0);
        }
        self.pane.lines.push(line.clone());
        self.history.push(&line, Mode::Shell, &self.secrets);
        vec![self.shell_command(&line, false, true)]
    }

    /// Takes a paste where the pane has the keys.
    pub(super) fn pane_paste(&mut self, text: &str) -> Vec<Effect> {
        if self.pane.runs {
            return vec![Effect::Type(self.pane.emulator.paste(text))];
        }
        match self.story.is_in_turn {
            true => self.flash("the agent's calls have the shell until its turn is over"),
            false => self.pane.prompt.paste(text),
        }
        Vec::new()
    }

    /// Turns the wheel over the pane. Returns whether it was there.
    pub(super) fn scrolls_pane(&mut self, at: Position, rows: i32) -> bool {
        let is_here = self.pane.is_open && self.pane.area.contains(at);
        if is_here {
            self.pane.emulator.scroll(rows);
        }
        is_here
    }

    /// Shows what the agent would read of the last command.
    pub(super) fn preview_last_command(&mut self) {
        let refusal = match &self.pane.last {
            _ if self.pane.runs => "a command runs: it is handed over once it is over",
            None => "no command ran in the shell yet",
            Some(_) if self.pane.took_screen => {
                "the last program had the whole screen: there is no text to hand over"
            }
            Some(_) if self.attached.len() >= ATTACHED_MAX => {
                "enough goes along with the next message"
            }
            Some(last) => {
                let text = last.text.clone();
                self.layer = Layer::Preview(Box::new(Preview { text, from: 0 }));
                return;
            }
        };
        self.flash(refusal);
    }

    pub(super) fn preview_key(&mut self, key: &KeyEvent) -> Vec<Effect> {
        let page = usize::from(self.screen.height / 2).max(1);
        let Layer::Preview(preview) = &mut self.layer else {
            return Vec::new();
        };
        match (spelled(key).as_deref(), keys::action(key)) {
            (Some("Enter"), _) => {
                let text = std::mem::take(&mut preview.text);
                self.attached.push(text);
                self.layer = Layer::None;
                // What is to be said about it is typed next.
                self.pane.has_keys = false;
            }
            (Some("Esc" | "Ctrl-C"), _) => self.layer = Layer::None,
            (_, Some(Action::PageDown)) => preview.from = preview.from.saturating_add(page),
            (_, Some(Action::PageUp)) => preview.from = preview.from.saturating_sub(page),
            _ => {}
        }
        Vec::new()
    }

    pub(super) fn draw_preview(&mut self, buffer: &mut Buffer, area: Rect) {
        let theme = self.theme;
        let Layer::Preview(preview) = &mut self.layer else {
            return;
        };
        let wrap = Wrap {
            keeps_blanks: true,
            ..Wrap::at(usize::from(area.width).saturating_sub(4))
        };
        let rows = wrap.lines(&clean::exact(&preview.text), theme.text);
        let room = usize::from(area.height).saturating_sub(3).max(1);
        preview.from = preview.from.min(rows.len().saturating_sub(room));
        let left = rows.len().saturating_sub(preview.from + room);
        let mut shown: Vec<Row> = rows.into_iter().skip(preview.from).take(room).collect();
        let more = match left {
            0 => String::new(),
            left => format!(" · {left} more rows: PageDown"),
        };
        let hint = format!("Enter: goes along with your next message · Esc: does not{more}");
        shown.push(Row::of(hint, theme.accent));
        panel(buffer, area, &theme.focus, "for the agent", &shown);
    }

    /// Says what goes along with the next message.
    pub(super) fn attached_rows(&self, rows: &mut Vec<Row>) {
        for text in &self.attached {
            let command = text.lines().nth(1).unwrap_or_default();
            let lines = text.lines().count().saturating_sub(3);
            let row = format!(
                "+ {} · {lines} lines go along · Backspace takes it away",
                clean::line(command)
            );
            rows.push(Row::of(row, self.theme.accent));
        }
    }

    /// Draws the pane and returns where its caret is, where it has the keys.
    pub(super) fn draw_pane(&mut self, buffer: &mut Buffer, area: Rect) -> Option<Position> {
        self.pane.area = area;
        let style = match self.pane.has_keys {
            true => self.theme.focus,
            false => self.theme.frame,
        };
        draw_frame(buffer, area, style, &self.pane.title(), &self.pane.hint());
        let inner = Rect::new(
            area.x + 1,
            area.y + 1,
            area.width.saturating_sub(2),
            area.height.saturating_sub(2),
        );
        let rows = inner.height.saturating_sub(1);
        self.pane.emulator.resize(PtySize {
            rows,
            columns: inner.width,
        });
        let screen = Rect {
            height: rows,
            ..inner
        };
        let has_colours = self.options.colours != Colours::None;
        let caret = self.pane.emulator.draw(buffer, screen, has_colours);
        let line = Rect::new(inner.x, inner.y + rows, inner.width, inner.height - rows);
        let at_prompt = self.draw_pane_prompt(buffer, line);
        let caret = if self.pane.runs { caret } else { at_prompt };
        caret.filter(|_| self.pane.has_keys)
    }

    /// Draws the row below the terminal: the prompt, or what has the shell.
    fn draw_pane_prompt(&self, buffer: &mut Buffer, area: Rect) -> Option<Position> {
        if area.height == 0 {
            return None;
        }
        let width = usize::from(area.width);
        let has_it = match (self.pane.runs, self.story.is_in_turn) {
            (true, _) => Some("a command runs"),
            (false, true) => Some("the agent works: the shell is yours after its turn"),
            (false, false) => None,
        };
        if let Some(who) = has_it {
            buffer.set_stringn(area.x, area.y, cut(who, width), width, self.theme.dim);
            return None;
        }
        let text = clean::line(&self.pane.prompt.text().replace('\n', " "));
        let before = clean::line(&self.pane.prompt.before().replace('\n', " "));
        let room = width.saturating_sub(3).max(1);
        // The caret stays in view: what does not fit before it is left out.
        let hidden = columns(&before).saturating_sub(room);
        let (mut skipped, mut from) = (0, 0);
        for (at, c) in text.char_indices() {
            if skipped >= hidden {
                break;
            }
            skipped += columns(c.encode_utf8(&mut [0; 4]));
            from = at + c.len_utf8();
        }
        buffer.set_stringn(area.x, area.y, "$ ", 2, self.theme.accent);
        let visible = text.get(from..).unwrap_or_default();
        buffer.set_stringn(area.x + 2, area.y, visible, room + 1, self.theme.text);
        let x = u16::try_from(columns(&before).saturating_sub(skipped) + 2).ok()?;
        Some(Position::new(
            area.x + x.min(area.width.saturating_sub(1)),
            area.y,
        ))
    }
}

/// Draws a frame, with a title above and a hint below, around blanks.
fn draw_frame(buffer: &mut Buffer, area: Rect, style: Style, title: &str, hint: &str) {
    let width = usize::from(area.width);
    let edge = |left: &str, text: &str, right: &str| {
        let text = cut(text, width.saturating_sub(6));
        let line = width.saturating_sub(columns(&text) + 5);
        format!("{left}─ {text} {}{right}", "─".repeat(line))
    };
    let bottom = area.bottom().saturating_sub(1);
    for y in area.top()..bottom {
        // The frame's colours are not those of what stands in it.
        for x in area.left()..area.right() {
            if let Some(cell) = buffer.cell_mut(Position::new(x, y)) {
                cell.reset();
            }
        }
        buffer.set_stringn(area.x, y, "│", 1, style);
        buffer.set_stringn(area.right().saturating_sub(1), y, "│", 1, style);
    }
    buffer.set_stringn(area.x, area.y, edge("╭", title, "╮"), width, style);
    buffer.set_stringn(area.x, bottom, edge("╰", hint, "╯"), width, style);
}
