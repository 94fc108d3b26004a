//! What keys of the input do.

use super::keys::{self, Action, action};
use super::{App, Effect, Layer, PendingMessage};
use crate::prompt::slash::Command;
use crate::prompt::vi::ViRequest;
use crate::prompt::{edit, spelled};
use crossterm::event::{KeyCode, KeyEvent};
use rondo_core::session::{Delivery, TicketId};

/// Within this time, a key that was pressed before does more; in milliseconds.
const AGAIN_MS: u64 = 1_500;

impl App {
    pub(super) fn input_key(&mut self, key: &KeyEvent) -> Vec<Effect> {
        if spelled(key).as_deref() == Some("?") && self.editor.is_empty() {
            self.layer = Layer::Help(0);
            return Vec::new();
        }
        if std::mem::take(&mut self.is_prefixed)
            && let Some(action) = keys::prefixed_action(key)
        {
            return self.act(action);
        }
        if let Some(line) = self.added_line(key) {
            return self.enter(&line, Delivery::Steer);
        }
        if let Some(effects) = self.vi_key(key) {
            return effects;
        }
        match action(key) {
            Some(action) => self.act(action),
            None if spelled(key).as_deref() == Some(keys::PREFIX) => {
                self.is_prefixed = true;
                Vec::new()
            }
            None => {
                self.edit(key);
                self.recalled = None;
                self.complete()
            }
        }
    }

    /// Takes a key that is one of vi's.
    fn vi_key(&mut self, key: &KeyEvent) -> Option<Vec<Effect>> {
        let vi = self.vi.as_mut().filter(|it| it.takes(key))?;
        self.menu = None;
        let before = self.editor.text().len();
        let wishes = vi.key(key, &mut self.editor);
        if self.editor.text().len() != before {
            self.recalled = None;
        }
        let mut effects = Vec::new();
        for wish in wishes {
            match wish {
                ViRequest::Up => effects.extend(self.previous()),
                ViRequest::Down => effects.extend(self.next()),
                ViRequest::Search => self.search_history(),
            }
        }
        if let Some(vi) = &mut self.vi {
            vi.settle(&mut self.editor);
        }
        Some(effects)
    }

    /// Has the next draft begin as all do.
    fn begin_draft(&mut self) {
        if let Some(vi) = &mut self.vi {
            vi.insert();
        }
    }

    /// Returns the line that a key of the user's own enters.
    fn added_line(&self, key: &KeyEvent) -> Option<String> {
        let spelled = spelled(key)?;
        let own = self.added.keys.iter();
        let own = own.filter(|it| it.0.chars().count() > 1);
        let mut own = own.filter(|it| it.0.eq_ignore_ascii_case(&spelled));
        own.next().map(|it| it.1.clone())
    }

    /// Returns whether the key was pressed before, a moment ago.
    fn is_again(&mut self, action: Action) -> bool {
        let now = self.now;
        let before = self.pressed.replace((action, now));
        let is_again = before.is_some_and(|(it, at)| it == action && now.0 - at.0 <= AGAIN_MS);
        if is_again {
            self.pressed = None;
        }
        is_again
    }

    fn act(&mut self, action: Action) -> Vec<Effect> {
        match action {
            Action::Send if self.means_menu() => return self.enter_menu(),
            Action::Send => return self.send(Delivery::Steer),
            Action::Newline => self.editor.insert("\n"),
            Action::Queue if self.take_menu() => {}
            Action::Queue if self.is_busy() && !self.editor.is_empty() => {
                return self.send(Delivery::Queue);
            }
            Action::Queue => return self.complete(),
            Action::NextMode => return self.next_run_mode(),
            Action::NextLanguage => return self.next_language(),
            Action::SearchHistory => self.search_history(),
            Action::Plan => self.layer = Layer::Todo,
            Action::Model => return vec![Effect::Models],
            Action::Sessions => return self.sessions(),
            Action::Explain => return vec![Effect::command(Command::Explain)],
            Action::Escape => return self.escape(),
            Action::Interrupt => return self.interrupt(),
            Action::EndOrDelete => match self.editor.is_empty() {
                true => return vec![Effect::Quit],
                false => self.editor.delete(),
            },
            Action::Review if self.story.questions().is_empty() && self.editor.put_earlier() => {}
            Action::Review => self.review(),
            Action::PageUp => self.scroll(-self.page()),
            Action::PageDown => self.scroll(self.page()),
            Action::RowUp => self.scroll(-1),
            Action::RowDown => self.scroll(1),
            Action::Top => self.go_to_top(),
            Action::Bottom => self.viewport.follow(),
            Action::Find => self.layer = Layer::Find(Box::default()),
            Action::SelectUp => self.select(true),
            Action::SelectDown => self.select(false),
            Action::Open => self.turn_open(),
            Action::CopyEntry => return self.copy_entry(),
            Action::RunAgain => self.run_again(),
            Action::Pager => return self.page_all(),
            Action::ExternalEditor => return vec![Effect::Edit(self.editor.whole())],
            Action::Previous => return self.previous(),
            Action::Next => return self.next(),
            Action::Unfold => drop(self.editor.unfold()),
            Action::PasteImage => return vec![Effect::PasteImage],
            Action::Redraw => return vec![Effect::Redraw],
            Action::Suspend => return vec![Effect::Suspend],
            Action::Help => self.layer = Layer::Help(0),
            Action::Pane => return self.enter_pane(),
            Action::ZoomPane => self.zoom_pane(),
            Action::ClosePane => self.close_pane(),
            Action::HandOver => self.preview_last_command(),
        }
        Vec::new()
    }

    fn page(&self) -> isize {
        let height = isize::try_from(self.drawn.area.height).unwrap_or(1);
        (height - 2).max(1)
    }

    pub(super) fn send(&mut self, delivery: Delivery) -> Vec<Effect> {
        if self.editor.before().ends_with('\\') {
            self.editor.backspace();
            self.editor.insert("\n");
            return Vec::new();
        }
        if self.editor.text().trim().is_empty() {
            return Vec::new();
        }
        if self.goes_on() {
            self.editor.insert("\n");
            return Vec::new();
        }
        self.menu = None;
        self.begin_draft();
        let text = self.editor.take();
        let mut effects = self.enter(&text, delivery);
        let behind = self.queue.release().into_iter().map(submitted);
        match effects.last() {
            Some(Effect::Submit { .. }) => effects.extend(behind),
            // It may be a command that leaves the session.
            _ => drop(effects.splice(0..0, behind)),
        }
        effects
    }

    /// Returns whether the key Esc would stop what runs.
    pub(crate) fn esc_stops(&self) -> bool {
        let is_first = self.selected.is_none() && self.dragged.is_none() && self.menu.is_none();
        let has_keys = matches!(self.layer, Layer::None) && !self.pane.has_keys();
        let runs = self.is_busy() || self.story.runs_cell();
        let esc = KeyEvent::from(KeyCode::Esc);
        let is_of_vi = self.vi.as_ref().is_some_and(|it| it.takes(&esc));
        is_first && has_keys && runs && !is_of_vi
    }

    fn escape(&mut self) -> Vec<Effect> {
        if self.selected.take().is_some() || self.dragged.take().is_some() {
            return Vec::new();
        }
        if self.menu.take().is_some() {
            return Vec::new();
        }
        if self.is_busy() || self.story.runs_cell() {
            return vec![Effect::Cancel];
        }
        if self.editor.is_empty() && !self.story.transcript.is_empty() {
            if self.is_again(Action::Escape) {
                return vec![Effect::command(Command::Undo)];
            }
            self.flash("Esc again goes back before the last turn");
        }
        Vec::new()
    }

    fn interrupt(&mut self) -> Vec<Effect> {
        if let Some(copied) = self.copy_dragged() {
            return vec![copied];
        }
        let is_again = self.is_again(Action::Interrupt);
        if !self.editor.is_empty() {
            self.editor.take();
            self.begin_draft();
            return self.queue.release().into_iter().map(submitted).collect();
        }
        if self.is_busy() || self.story.runs_cell() {
            return vec![Effect::Cancel];
        }
        if is_again {
            return vec![Effect::Quit];
        }
        self.flash("Ctrl-C again quits");
        Vec::new()
    }

    fn previous(&mut self) -> Vec<Effect> {
        let width = self.draft_width();
        if self.move_menu(true) {
            return Vec::new();
        }
        if self.recalled.is_none() && self.editor.up_or_down(true, width) {
            return Vec::new();
        }
        if self.is_off_and_empty() {
            self.scroll(-1);
            return Vec::new();
        }
        let draft = self.editor.whole();
        let is_own = !draft.is_empty() && !self.queue.is_taken(&draft);
        if self.recalled.is_none() && is_own {
            return Vec::new();
        }
        // A message that waits comes back into the input, and is sent anew.
        let waiting = match self.recalled {
            Some(_) => None,
            None => self.queue.take_last(&draft),
        };
        match waiting {
            Some(waiting) => {
                self.edit_waiting(&waiting);
                vec![Effect::Withdraw(waiting.ticket)]
            }
            None if self.recalled.is_some() || draft.is_empty() => {
                self.recall(true);
                Vec::new()
            }
            None => Vec::new(),
        }
    }

    fn edit_waiting(&mut self, waiting: &PendingMessage) {
        self.editor.set(&waiting.text);
        self.attached.clone_from(&waiting.attached);
    }

    /// A message could not be taken back: the agent has it, and it leaves the input, lest it is sent twice.
    pub(crate) fn not_taken_back(&mut self, ticket: &TicketId) {
        if self.queue.stays(ticket, &self.editor.whole()) {
            self.editor.take();
            self.attached.clear();
        }
        self.flash("too late: the agent has read it");
    }

    fn next(&mut self) -> Vec<Effect> {
        let width = self.draft_width();
        if self.move_menu(false) {
            return Vec::new();
        }
        if self.recalled.is_some() {
            self.recall(false);
            return Vec::new();
        }
        if self.is_off_and_empty() {
            self.scroll(1);
            return Vec::new();
        }
        if self.editor.up_or_down(false, width) {
            return Vec::new();
        }
        match self.queue.take_next(&self.editor.whole()) {
            Some((sent, next)) => {
                self.edit_waiting(&next);
                vec![submitted(sent)]
            }
            None => Vec::new(),
        }
    }

    /// Without the mouse, a terminal sends arrows for the wheel: where there is no draft to move in, they scroll.
    fn is_off_and_empty(&self) -> bool {
        self.options.mouse == crate::options::Mouse::Off && self.editor.is_empty()
    }

    fn edit(&mut self, key: &KeyEvent) {
        if key.code == KeyCode::Backspace && self.editor.is_empty() {
            // What would go along with a message goes first.
            self.attached.pop();
        }
        edit(&mut self.editor, key);
    }
}

/// Has a message wait that was taken back.
fn submitted(waiting: PendingMessage) -> Effect {
    Effect::Submit {
        text: waiting.text,
        attached: waiting.attached,
        delivery: waiting.delivery,
    }
}
