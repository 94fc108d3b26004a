//! The shell beside the conversation: its keys, its frame, and what it gives to the agent.

use super::draw::panel;
use super::keys::{self, Action, action, key_of};
use super::pane_prompt::PanePrompt;
use super::{App, Effect, Layer};
use crate::options::Colours;
use crate::pane::Emulator;
use crate::prompt::Editor;
use crate::prompt::mode::Mode;
use crate::prompt::{edit, spelled};
use crate::text::{Row, Wrap, clean, columns};
use crate::transcript::{Card, Quote, cut};
use crossterm::event::{KeyCode, KeyEvent};
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::{Position, Rect};
use ratatui_core::style::Style;
use rondo_runtime::cells::{PtySize, shell_text};
use rondo_runtime::service::{Cell, CellEnd, CellEvent};
use rondo_runtime::terminal::{RECENT_COMMANDS_MAX, TerminalContext};
use rondo_types::units::counted;
use std::collections::VecDeque;

/// From this width on, the pane stands beside the conversation; below it under it, from this height on, and otherwise it
/// has the whole screen.
const BESIDE_COLUMNS_MIN: u16 = 110;
const UNDER_ROWS_MIN: u16 = 16;
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
    pub(super) prompt: PanePrompt,
    /// Whether the live Python session is shown instead.
    pub(super) shows_python: bool,
    is_open: bool,
    has_keys: bool,
    is_zoomed: bool,
    /// Whether a command runs in the shell.
    runs: bool,
    /// Whether the shell ended, which is said once its terminal's last output is there.
    says_ended: bool,
    /// Whether the command took the whole screen, so that its output is no text.
    took_screen: bool,
    /// How the pane was before a program of the conversation got it: whether it was open, and zoomed.
    before_program: Option<(bool, bool)>,
    /// Whether the program was answered, so that what it did not read is not what was typed.
    replied: bool,
    /// What was asked of the shell and did not begin, for its terminal.
    asked: VecDeque<String>,
    /// Whether the same was typed here, for the conversation.
    typed_here: VecDeque<bool>,
    /// The command that runs, as it may be shown.
    command: Option<String>,
    last: Option<PaneCommand>,
    area: Rect,
}

/// The last command, as the agent would read it.
#[derive(Debug)]
struct PaneCommand {
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

    /// Returns whether a command ran or was asked for here.
    pub(super) fn was_used(&self) -> bool {
        self.runs || self.last.is_some() || !self.asked.is_empty()
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
                match (*has_shell_ended, self.runs) {
                    (true, false) => self.emulator.feed_text(SHELL_ENDED),
                    // Its terminal may still be the whole screen of what it ran.
                    (has_ended, _) => self.says_ended = has_ended,
                }
                let command = self.command.take().unwrap_or_default();
                self.last = Some(PaneCommand {
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

    /// Returns the commands that did not begin yet, the next one first.
    pub(super) fn asked(&self) -> impl Iterator<Item = &String> {
        self.asked.iter()
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

    /// Gives the keys back to the conversation.
    pub(super) fn leave(&mut self) {
        self.has_keys = false;
    }

    /// Returns where the shell is, where a command told it.
    pub(super) fn directory(&self) -> Option<&str> {
        self.last.as_ref().map(|it| it.directory.as_str())
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
}

impl App {
    fn pane_runs(&self) -> bool {
        match self.pane.shows_python {
            true => self.python.runs,
            false => self.pane.runs,
        }
    }

    fn pane_emulator(&mut self) -> &mut Emulator {
        match self.pane.shows_python {
            true => &mut self.python.emulator,
            false => &mut self.pane.emulator,
        }
    }

    fn pane_editor(&mut self) -> &mut Editor {
        match self.pane.shows_python {
            true => &mut self.python.prompt.editor,
            false => &mut self.pane.prompt.editor,
        }
    }

    fn pane_hint(&self) -> String {
        let leave = key_of(Action::Pane);
        match (self.pane.has_keys, self.pane_runs()) {
            (false, _) => format!("{leave} enters"),
            (true, true) => format!("{leave} leaves · all other keys are the program's"),
            (true, false) => format!(
                "{leave} leaves · {} zooms · {} hands over · {}",
                key_of(Action::ZoomPane),
                key_of(Action::HandOver),
                self.switch_hint()
            ),
        }
    }

    /// Returns what types bytes into the program that the pane shows.
    fn type_in_pane(&self, bytes: Vec<u8>) -> Effect {
        match self.pane.shows_python {
            true => Effect::TypePython(bytes),
            false => Effect::Type(bytes),
        }
    }

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
    pub(crate) fn shell_command(
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
        pane.before_program = None;
        let echo = format!("\x1b[1m$ {}\x1b[0m\n", clean::typed(&asked));
        pane.emulator.feed_text(&echo);
    }

    /// The shell's terminal got output. Returns what is to be typed in reply.
    pub(crate) fn shell_wrote(&mut self, bytes: &[u8]) -> Vec<u8> {
        let replies = self.pane.emulator.feed(bytes);
        if self.pane.runs && self.pane.emulator.has_whole_screen() {
            self.give_screen();
        }
        // What comes without a command has nobody who would read a reply.
        if !self.pane.runs {
            return Vec::new();
        }
        self.pane.replied |= !replies.is_empty();
        replies
    }

    /// Shows a program of the conversation that takes the whole screen, and gives it the keys.
    fn give_screen(&mut self) {
        let has_pane = self.pane.has_keys() && !self.pane.shows_python;
        let pane = &mut self.pane;
        // Once for each command: a person may have left it.
        if !std::mem::replace(&mut pane.took_screen, true) && !has_pane {
            pane.before_program = Some((pane.is_open, pane.is_zoomed));
            (pane.is_open, pane.is_zoomed, pane.has_keys) = (true, true, true);
            pane.shows_python = false;
        }
    }

    /// Leaves what a program wrote that had the whole screen out of the conversation: it is no text.
    pub(super) fn without_screen(&self, event: &mut CellEvent) {
        if !self.pane.took_screen {
            return;
        }
        match event {
            CellEvent::Output { text } => text.clear(),
            CellEvent::Ended {
                end: CellEnd::Shell { output, .. },
            } => output.clear(),
            _ => {}
        }
    }

    /// The command in the shell's terminal is over, with what was typed and not read.
    pub(crate) fn shell_ended(&mut self, unread: &[u8]) {
        let pane = &mut self.pane;
        pane.runs = false;
        pane.took_screen |= pane.emulator.end_program();
        if let Some((was_open, was_zoomed)) = pane.before_program.take() {
            (pane.is_open, pane.is_zoomed, pane.has_keys) = (was_open, was_zoomed, false);
        }
        if std::mem::take(&mut pane.says_ended) {
            pane.emulator.feed_text(SHELL_ENDED);
        }
        if !pane.replied && pane.prompt.editor.is_empty() {
            let line = String::from_utf8_lossy(unread).replace(['\r', '\n'], " ");
            pane.prompt.editor.set(&clean::typed(&line));
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
        if self.pane_runs() {
            let emulator = self.pane_emulator();
            emulator.scroll_to_bottom();
            let bytes = emulator.key(key);
            return vec![self.type_in_pane(bytes)];
        }
        if action == Some(Action::NextLanguage) {
            return self.switch_pane();
        }
        if let Some(Action::ZoomPane | Action::ClosePane | Action::HandOver | Action::Review) =
            action
        {
            return self.act_of_pane(action);
        }
        if let Some(rows) = self.pane_rows(action) {
            self.pane_emulator().scroll(rows);
            return Vec::new();
        }
        if self.story.is_in_turn {
            self.flash(format!(
                "the agent's calls have the shell until its turn is over · {} leaves",
                key_of(Action::Pane)
            ));
            return Vec::new();
        }
        match self.pane.shows_python {
            true => self.python_prompt_key(key),
            false => self.pane_prompt_key(key),
        }
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
            Some("Enter") if !rondo_policy::is_complete(self.pane.prompt.editor.text()) => {
                self.pane.prompt.editor.insert("\n");
            }
            Some("Enter") => return self.run_pane_line(),
            Some("Tab") => return self.complete_in_pane(),
            Some("Up" | "Ctrl-P") => self.pane.prompt.recall(true),
            Some("Down" | "Ctrl-N") => self.pane.prompt.recall(false),
            Some("Ctrl-C") => drop(self.pane.prompt.editor.take()),
            Some("Ctrl-L") => drop(self.pane.emulator.feed(b"\x1b[2J\x1b[H")),
            Some("Ctrl-Z") => return vec![Effect::Suspend],
            Some("Esc" | "Ctrl-D") if self.pane.prompt.editor.is_empty() => {
                self.pane.has_keys = false
            }
            _ => {
                edit(&mut self.pane.prompt.editor, key);
                self.pane.prompt.is_edited();
            }
        }
        Vec::new()
    }

    fn run_pane_line(&mut self) -> Vec<Effect> {
        let Some(line) = self.pane.prompt.take() else {
            return Vec::new();
        };
        self.history.push(&line, Mode::Shell, &self.secrets);
        vec![self.shell_command(&line, false, true)]
    }

    /// Takes a paste where the pane has the keys.
    pub(super) fn pane_paste(&mut self, text: &str) -> Vec<Effect> {
        if self.pane_runs() {
            let bytes = self.pane_emulator().paste(text);
            return vec![self.type_in_pane(bytes)];
        }
        match self.story.is_in_turn {
            true => self.flash("the agent's calls have the shell until its turn is over"),
            false => drop(self.pane_editor().paste(text)),
        }
        Vec::new()
    }

    /// Returns whether a place is in the pane.
    pub(super) fn is_in_pane(&self, at: Position) -> bool {
        self.pane.is_open && self.pane.area.contains(at)
    }

    /// Scrolls the pane by a notch of the wheel. A program that has the whole screen there reads arrows, as from a terminal
    /// whose wheel it did not ask for.
    pub(super) fn scroll_pane(&mut self, goes_up: bool, rows: isize) -> Vec<Effect> {
        let runs = self.pane_runs();
        let emulator = self.pane_emulator();
        let rows = i32::try_from(rows).unwrap_or(1);
        if !(runs && emulator.has_whole_screen()) {
            emulator.scroll(if goes_up { rows } else { -rows });
            return Vec::new();
        }
        let arrow = if goes_up { KeyCode::Up } else { KeyCode::Down };
        let arrow = emulator.key(&KeyEvent::from(arrow));
        let arrows = arrow.repeat(usize::try_from(rows).unwrap_or(1));
        vec![self.type_in_pane(arrows)]
    }

    /// Shows what the agent would read of the last command.
    pub(super) fn preview_last_command(&mut self) {
        if self.pane.shows_python {
            return self.preview_last_cell();
        }
        let refusal = match &self.pane.last {
            _ if self.pane.runs => "a command runs: it is handed over once it is over",
            None => "no command ran in the shell yet",
            Some(_) if self.pane.took_screen => {
                "the last program had the whole screen: there is no text to hand over"
            }
            Some(_) if self.attached.len() >= ATTACHED_MAX => {
                "enough goes along with the next message"
            }
            Some(last) => return self.preview(last.text.clone()),
        };
        self.flash(refusal);
    }

    fn preview_last_cell(&mut self) {
        match (self.no_python_to_hand_over(), &self.python.last) {
            (Some(refusal), _) => self.flash(refusal),
            (None, Some(_)) if self.attached.len() >= ATTACHED_MAX => {
                self.flash("enough goes along with the next message");
            }
            (None, Some(last)) => self.preview(last.clone()),
            (None, None) => {}
        }
    }

    /// Returns whether a person's own command or cell runs.
    pub(super) fn runs_own(&self) -> bool {
        self.pane.runs || self.python.runs || self.story.runs_cell()
    }

    /// Returns what the agent may be told of the terminal, as far as it is seen here.
    pub(crate) fn terminal_seen(&mut self) -> TerminalContext {
        let commands = self.pane.prompt.latest(RECENT_COMMANDS_MAX);
        // A line that begins with a blank is the user's alone, as in the shell's own history.
        let commands = commands.filter(|it| !it.starts_with(char::is_whitespace));
        let commands = commands.map(|it| clean::line(it)).collect();
        let is_open = self.pane.is_open;
        let output = is_open.then(|| self.pane_emulator().text());
        TerminalContext {
            commands,
            output,
            ..TerminalContext::default()
        }
    }

    /// Shows a text that can be attached to the next message, if there is room for it.
    pub(super) fn preview_text(&mut self, text: String) {
        match self.attached.len() >= ATTACHED_MAX {
            true => self.flash("enough goes along with the next message"),
            false => self.preview(text),
        }
    }

    /// Shows a text before it goes along with the next message.
    fn preview(&mut self, text: String) {
        self.layer = Layer::Preview(Box::new(Preview { text, from: 0 }));
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
            left => format!(" · {}: PageDown", counted(left, "more row")),
        };
        let hint = format!("Enter: goes along with your next message · Esc: does not{more}");
        shown.push(Row::of(hint, theme.accent));
        panel(buffer, area, &theme.focus, "for the agent", &shown);
    }

    /// Has a text go along with the next message.
    pub(crate) fn attach_text(&mut self, text: String) {
        match self.attached.len() >= ATTACHED_MAX {
            true => self.flash("enough goes along with the next message"),
            false => self.attached.push(text),
        }
    }

    /// Says what goes along with the next message.
    pub(super) fn attached_rows(&self, rows: &mut Vec<Row>) {
        for text in &self.attached {
            let Some(quote) = Quote::read(text) else {
                continue;
            };
            let card = Card::quoted(&quote);
            let lines = card.output().trim_end().lines().count();
            let lines = match lines {
                1 => "1 line goes along".to_owned(),
                lines => format!("{lines} lines go along"),
            };
            let row = format!("+ {} · {lines} · Backspace takes it away", card.line());
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
        let title = match self.pane.shows_python {
            true => self.python_title().to_owned(),
            false => self.pane.title(),
        };
        draw_frame(buffer, area, style, &title, &self.pane_hint());
        let inner = Rect::new(
            area.x + 1,
            area.y + 1,
            area.width.saturating_sub(2),
            area.height.saturating_sub(2),
        );
        let rows = inner.height.saturating_sub(1);
        let size = PtySize {
            rows,
            columns: inner.width,
        };
        self.pane.emulator.resize(size);
        self.python.emulator.resize(size);
        let screen = Rect {
            height: rows,
            ..inner
        };
        let has_colours = self.options.colours != Colours::None;
        let caret = self.pane_emulator().draw(buffer, screen, has_colours);
        let line = Rect::new(inner.x, inner.y + rows, inner.width, inner.height - rows);
        let at_prompt = self.draw_pane_prompt(buffer, line);
        let caret = if self.pane_runs() { caret } else { at_prompt };
        caret.filter(|_| self.pane.has_keys)
    }

    /// Draws the row below the terminal: the prompt, or what has the shell.
    fn draw_pane_prompt(&mut self, buffer: &mut Buffer, area: Rect) -> Option<Position> {
        if area.height == 0 {
            return None;
        }
        let width = usize::from(area.width);
        let has_it = match (self.pane_runs(), self.story.is_in_turn) {
            (true, _) if self.pane.shows_python => Some("a cell runs"),
            (true, _) => Some("a command runs"),
            (false, true) => Some("the agent works: this is yours after its turn"),
            (false, false) => None,
        };
        if let Some(who) = has_it {
            buffer.set_stringn(area.x, area.y, cut(who, width), width, self.theme.dim);
            return None;
        }
        let mark = if self.pane.shows_python { ">>> " } else { "$ " };
        let editor = self.pane_editor();
        let text = clean::line(&editor.text().replace('\n', " "));
        let before = clean::line(&editor.before().replace('\n', " "));
        let room = width.saturating_sub(mark.len() + 1).max(1);
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
        buffer.set_stringn(area.x, area.y, mark, mark.len(), self.theme.accent);
        let visible = text.get(from..).unwrap_or_default();
        let after_mark = area.x + u16::try_from(mark.len()).unwrap_or(0);
        buffer.set_stringn(after_mark, area.y, visible, room + 1, self.theme.text);
        let x = columns(&before).saturating_sub(skipped) + mark.len();
        let x = u16::try_from(x).ok()?;
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
