//! The state of the screen: keys and updates go in, frames and effects come out.
//!
//! # Layout
//! - `story`: what happens in the session; `activity`: what goes on at the moment.
//! - `keys`: the table of keys; `act`: what they do; `effect`: what the screen wants done.
//! - `draw`, `draw_panels`, `draw_review`, `status`: the frame.
//! - `asking`: when questions open; `review`: questions that wait for an answer; `proposal`: the change that one is about; `help`: the panel of keys; `find`: words in the whole session.
//! - `language`: what is typed and what becomes of it; `menu`: completions; `panels`: sessions and the history.
//! - `pane`: the shell beside the conversation; `python_pane`: the live Python session there; `pane_prompt`: their input;
//!   `pane_complete`: Tab there; `pasted`: images by their path.
//! - `earlier`: turns that are read once somebody looks for them.
//! - `notice`: what a person is told who looks elsewhere; `select`: selecting and copying; `queue`: messages that wait; `preparing`: the time until the turn of one begins.

mod act;
mod activity;
mod asking;
mod draw;
mod draw_panels;
mod draw_review;
mod earlier;
mod effect;
mod find;
mod help;
mod keys;
mod language;
mod menu;
mod notice;
mod pane;
mod pane_complete;
mod pane_prompt;
mod panels;
mod pasted;
mod preparing;
mod proposal;
mod python_pane;
mod queue;
mod review;
mod select;
mod status;
mod story;

#[cfg(test)]
mod tests;

pub(crate) use effect::Effect;
pub(crate) use notice::Notice;
pub(crate) use pane_complete::PaneWord;
pub(crate) use panels::LISTED_MAX;
pub(crate) use queue::PendingMessage;
pub(crate) use story::Story;

use crate::options::Options;
use crate::prompt::Editor;
use crate::prompt::history::TypedLines;
use crate::prompt::mode::Mode;
use crate::prompt::run_mode::RunMode;
use crate::prompt::vi::Vi;
use crate::run::UserAdditions;
use crate::theme::Theme;
use crate::transcript::{Frame, RowPosition, Tone, Viewport};
use asking::Asking;
use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use earlier::Earlier;
use find::Find;
use menu::{Files, Menu};
use pane::{Preview, ShellPane};
use panels::{Recall, Sessions};
use preparing::Preparing;
use python_pane::PythonPane;
use queue::Queue;
use ratatui_core::layout::{Position, Rect};
use review::Review;
use rondo_core::redact::Secrets;
use rondo_core::session::{Delivery, SessionEvent};
use rondo_runtime::service::UpdateBody;
use rondo_runtime::target::ModelTarget;
use rondo_types::TimeMs;
use select::DraggedRows;
use std::path::Path;

/// Rows that a notch of the wheel scrolls, however many events a terminal sends for it: one, three or nine.
const NOTCH_ROWS: isize = 3;
/// Events of one notch come within this time, in milliseconds.
const NOTCH_MS: u64 = 12;
/// Events of one notch at most.
const NOTCH_EVENTS: usize = 9;

/// The screen.
pub(crate) struct App {
    pub(crate) options: Options,
    theme: Theme,
    story: Story,
    earlier: Earlier,
    viewport: Viewport,
    editor: Editor,
    /// Where the keys are those of vi.
    vi: Option<Vi>,
    /// Whether Ctrl-X was pressed, which begins a key of two.
    is_prefixed: bool,
    queue: Queue,
    preparing: Preparing,
    asking: Asking,
    pane: ShellPane,
    python: PythonPane,
    /// What goes along with the next message.
    attached: Vec<String>,
    /// Commands and keys of the user's own.
    added: UserAdditions,
    /// What was typed before, and the line of it that is recalled.
    history: TypedLines,
    recalled: Option<usize>,
    secrets: Secrets,
    /// What is typed, and what runs without asking.
    language: Mode,
    run_mode: RunMode,
    menu: Option<Menu>,
    files: Files,
    layer: Layer,
    now: TimeMs,
    /// How often the spinner turned.
    turn: usize,
    has_focus: bool,
    /// Why a person is wanted who looks elsewhere.
    notice: Option<Notice>,
    /// Where the session works, as the status line shows it.
    place: String,
    /// Who answers the next turn: the model and the profile.
    answers: (String, String),
    /// When that was chosen, or the session opened.
    answers_since: TimeMs,
    /// What the model's context holds, in tokens.
    context_max: Option<u64>,
    /// Who answers questions here.
    actor: String,
    /// Shown once in the status line's place.
    flash: Option<String>,
    /// When Ctrl-C or Esc was pressed that does more when it is pressed again.
    pressed: Option<(keys::Action, TimeMs)>,
    /// The selected entry.
    selected: Option<usize>,
    /// Where the mouse was pressed, and what was dragged over since.
    pressed_at: Option<RowPosition>,
    dragged: Option<DraggedRows>,
    /// When the wheel was turned last, and by how many events since.
    wheel: (TimeMs, usize),
    /// Where the conversation was drawn last, and what stood there.
    drawn: DrawnPlaces,
    screen: Rect,
}

#[derive(Debug, Default)]
struct DrawnPlaces {
    area: Rect,
    /// What stands in its rows, the last of them at its foot.
    places: Vec<RowPosition>,
}

impl DrawnPlaces {
    /// Returns what stands in a row of the screen.
    fn place_at(&self, y: u16) -> Option<RowPosition> {
        let from_foot = usize::from(self.area.bottom().checked_sub(y + 1)?);
        let at = self.places.len().checked_sub(from_foot + 1)?;
        self.places.get(at).copied()
    }
}

/// What lies over the conversation and has the keys.
#[derive(Debug, Default)]
enum Layer {
    /// Nothing: the input has the keys.
    #[default]
    None,
    /// The keys and what they do, from a row on.
    Help(usize),
    /// Words that are looked for.
    Find(Box<Find>),
    /// Sessions.
    Sessions(Box<Sessions>),
    /// What was typed before.
    Recall(Box<Recall>),
    /// The agent's to-do list.
    Todo,
    /// What would go along with the next message.
    Preview(Box<Preview>),
    /// Questions that wait.
    Review(Box<Review>),
}

/// What the screen is told at its beginning.
pub(crate) struct AppOptions {
    pub(crate) options: Options,
    /// `provider/model`, or why there is none.
    pub(crate) model: String,
    pub(crate) profile: String,
    pub(crate) context_max: Option<u64>,
    /// Who answers questions here.
    pub(crate) actor: String,
    /// What was typed before.
    pub(crate) history: TypedLines,
    /// What is kept out of it.
    pub(crate) secrets: Secrets,
    pub(crate) run_mode: RunMode,
    pub(crate) added: UserAdditions,
    pub(crate) now: TimeMs,
}

impl App {
    pub(crate) fn new(beginning: AppOptions) -> Self {
        let AppOptions {
            options,
            model,
            profile,
            context_max,
            actor,
            history,
            secrets,
            run_mode,
            added,
            now,
        } = beginning;
        Self {
            theme: Theme::of(options.colours),
            vi: options.has_vi_keys.then(Vi::default),
            is_prefixed: false,
            options,
            story: Story::default(),
            earlier: Earlier::default(),
            viewport: Viewport::default(),
            editor: Editor::default(),
            queue: Queue::default(),
            preparing: Preparing::default(),
            asking: Asking::default(),
            pane: ShellPane::default(),
            python: PythonPane::default(),
            attached: Vec::new(),
            added,
            screen: Rect::default(),
            history,
            recalled: None,
            secrets,
            language: Mode::Agent,
            run_mode,
            menu: None,
            files: Files::default(),
            layer: Layer::None,
            now,
            turn: 0,
            has_focus: true,
            notice: None,
            place: String::new(),
            answers: (model, profile),
            answers_since: now,
            context_max,
            actor,
            flash: None,
            pressed: None,
            selected: None,
            pressed_at: None,
            dragged: None,
            wheel: (TimeMs(0), 0),
            drawn: DrawnPlaces::default(),
        }
    }

    /// Takes other colours. Returns whether they are others.
    pub(crate) fn set_colours(&mut self, colours: crate::options::Colours) -> bool {
        let before = std::mem::replace(&mut self.options.colours, colours);
        self.theme = Theme::of(colours);
        before != colours
    }

    /// Shows another session from its beginning on.
    pub(crate) fn show_session(&mut self) {
        self.answers_since = self.now;
        self.story = Story::default();
        self.earlier = Earlier::default();
        self.viewport = Viewport::default();
        // What was taken back and not sent again is not lost.
        for held in self.queue.release() {
            self.editor.insert(&format!("\n\n{}", held.text));
        }
        self.queue = Queue::default();
        self.preparing = Preparing::default();
        self.asking = Asking::default();
        (self.selected, self.dragged, self.pressed_at) = (None, None, None);
        self.layer = Layer::None;
    }

    /// Nobody works on the turn that has no end.
    pub(crate) fn cut_off(&mut self) {
        self.story.cut_off();
    }

    /// The session's next turns ask this model, under this profile.
    pub(crate) fn set_answers(&mut self, model: String, profile: String, context: Option<u64>) {
        self.answers = (model, profile);
        self.answers_since = self.now;
        self.context_max = context;
    }

    /// Takes the model of a turn that failed, for hints about its key and address.
    pub(crate) fn set_target(&mut self, target: Option<ModelTarget>) {
        self.story.target = target;
    }

    /// Takes an update of the session.
    pub(crate) fn update(&mut self, mut body: UpdateBody, now: TimeMs) {
        self.now = now;
        if let UpdateBody::Session { event } = &body {
            self.session_event(event);
        }
        if matches!(body, UpdateBody::Failed { .. }) {
            self.pane.forget_asked();
            self.python.forget_asked();
            self.queue.has_failed();
        }
        if matches!(body, UpdateBody::Asked { .. } | UpdateBody::Turn { .. }) {
            self.queue.has_begun();
        }
        if let UpdateBody::Turn { event } = &body {
            self.notice_event(&event.body);
        }
        let is_shown = match &body {
            UpdateBody::Cell { event } => self.pane.takes(event) | self.python.takes(event),
            _ => false,
        };
        if let UpdateBody::Cell { event } = &mut body {
            self.without_screen(event);
        }
        if !is_shown {
            self.story.update(body);
        }
        self.sync_questions();
        self.time_preparation();
    }

    fn session_event(&mut self, event: &SessionEvent) {
        if let SessionEvent::Withdrawn { ticket } = event {
            let question = self.queue.opener_of(ticket).map(str::to_owned);
            if let Some(question) = question {
                self.note("stopped before the turn began");
                if self.editor.is_empty() {
                    self.editor.set(&question);
                }
            }
        }
        self.queue.event(event, self.story.is_in_turn);
        if matches!(event, SessionEvent::Delivered { .. }) {
            // The time of the turn before is over.
            self.preparing.restart();
        }
        if matches!(event, SessionEvent::Lost) {
            let text = "another process works on this session: what you send waits for it";
            self.story.note(Tone::Warn, text);
        }
    }

    /// Says something.
    pub(crate) fn note(&mut self, text: &str) {
        self.story.note(Tone::Plain, text);
    }

    /// Says what failed.
    pub(crate) fn error(&mut self, text: &str, hint: Option<&str>) {
        self.reopen_questions();
        self.pane.forget_asked();
        self.python.forget_asked();
        self.story.note(Tone::Bad, text);
        if let Some(hint) = hint {
            self.story.note(Tone::Plain, hint);
        }
    }

    /// Shows the traceback of an exception.
    pub(crate) fn show_traceback(&mut self, text: &str) {
        self.story.note(Tone::Bad, text);
    }

    /// Says something where the status is, until the next key.
    pub(crate) fn flash(&mut self, text: impl Into<String>) {
        self.flash = Some(text.into());
    }

    /// Returns what the screen does first.
    pub(crate) fn begin(&mut self, first: Option<&str>) -> Vec<Effect> {
        let Some(first) = first else {
            return Vec::new();
        };
        self.enter(first, Delivery::Queue)
    }

    /// A message was submitted, and waits until it is delivered.
    pub(crate) fn waits(&mut self, waiting: PendingMessage) {
        self.queue.add(waiting);
        self.time_preparation();
    }

    /// Returns whether a turn runs or waits.
    pub(crate) fn is_in_turn(&self) -> bool {
        self.story.is_in_turn && !matches!(self.story.activity, activity::Activity::Waiting)
    }

    pub(crate) fn run_mode(&self) -> RunMode {
        self.run_mode
    }

    /// Puts a text into the input.
    pub(crate) fn set_draft(&mut self, text: &str) {
        self.editor.set(text);
    }

    /// Puts a text into the input, at the caret.
    pub(crate) fn type_text(&mut self, text: &str) {
        self.editor.insert(text);
    }

    /// Takes what was said before the screen was opened for printed, where it is.
    fn forget_printed(&mut self) {
        if std::mem::take(&mut self.options.is_continued) {
            self.story.transcript.was_printed();
        }
    }

    /// Returns what the screen has to print to the terminal's own scrollback.
    pub(crate) fn unprinted(&mut self, width: usize, only_last: bool) -> Vec<crate::text::Row> {
        self.forget_printed();
        let theme = self.theme;
        self.story.transcript.unprinted(width, &theme, only_last)
    }

    /// Takes what the terminal sends.
    pub(crate) fn event(&mut self, event: Event, now: TimeMs) -> Vec<Effect> {
        self.now = now;
        match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => {
                self.note_key(&key);
                let (was_free, had_draft) = (self.is_free(), !self.editor.is_empty());
                let effects = self.key(&key);
                let is_over = !had_draft || ends_draft(&key);
                if !was_free && is_over && self.is_free() {
                    self.open_new_questions();
                }
                effects
            }
            Event::Paste(text) => self.paste(&text),
            Event::FocusGained => {
                self.has_focus = true;
                Vec::new()
            }
            Event::FocusLost => {
                self.has_focus = false;
                Vec::new()
            }
            Event::Mouse(mouse) => self.mouse(&mouse),
            Event::Key(_) | Event::Resize(..) => Vec::new(),
        }
    }

    fn key(&mut self, key: &KeyEvent) -> Vec<Effect> {
        self.flash = None;
        match &mut self.layer {
            Layer::None if self.pane.has_keys() => self.pane_key(key),
            Layer::None => self.input_key(key),
            Layer::Preview(_) => self.preview_key(key),
            Layer::Help(_) => self.help_key(key),
            Layer::Find(_) => self.find_key(key),
            Layer::Sessions(_) => self.sessions_key(key),
            Layer::Recall(_) => self.recall_key(key),
            Layer::Todo => {
                self.layer = Layer::None;
                let has_others = key.modifiers.difference(KeyModifiers::SHIFT);
                // A message that is begun while the list is read loses no letter.
                match key.code {
                    KeyCode::Char(_) if has_others.is_empty() => self.input_key(key),
                    _ => Vec::new(),
                }
            }
            Layer::Review(_) => self.answer_key(key),
        }
    }

    fn paste(&mut self, text: &str) -> Vec<Effect> {
        match &mut self.layer {
            Layer::None if self.pane.has_keys() => return self.pane_paste(text),
            Layer::None => match pasted::image_path(text) {
                Some(path) => {
                    let text = text.to_owned();
                    return vec![Effect::PastePath { path, text }];
                }
                None => self.paste_text(text),
            },
            Layer::Sessions(panel) => {
                let line = text.replace('\n', " ");
                panel
                    .title
                    .as_mut()
                    .unwrap_or(&mut panel.words)
                    .insert(&line);
            }
            Layer::Recall(panel) => panel.words.insert(&text.replace('\n', " ")),
            Layer::Review(review) => review.paste(text),
            Layer::Find(find) => {
                find.words.insert(&text.replace('\n', " "));
                self.find_anew();
            }
            Layer::Help(_) | Layer::Todo | Layer::Preview(_) => {}
        }
        Vec::new()
    }

    /// Puts what was pasted into the input.
    pub(crate) fn paste_text(&mut self, text: &str) {
        self.menu = None;
        if self.editor.paste(text) {
            let key = keys::key_of(keys::Action::Unfold);
            self.flash(format!("{key} puts the text in place of its chip"));
        }
    }

    /// Puts a file into the input, as a chip that stands for it. `kind` says what it is, such as an image.
    pub(crate) fn attach_file(&mut self, kind: &str, path: &Path) {
        match pasted::named(path) {
            Some((name, word)) => self.editor.attach(kind, &name, word),
            None => self.error(
                "the path of this file holds characters that cannot be attached",
                Some("copy the file to another name"),
            ),
        }
    }

    /// Time went by: the spinner turns.
    pub(crate) fn tick(&mut self, now: TimeMs) {
        self.now = now;
        self.turn = self.turn.wrapping_add(1);
    }

    /// Returns whether something moves by itself that a person can see.
    pub(crate) fn moves(&self) -> bool {
        let is_working = matches!(self.story.activity, activity::Activity::Working { .. });
        self.has_focus && (is_working || self.preparation().is_some())
    }

    /// Returns whether a question became ready to be answered since it was drawn, and so has to be drawn again.
    pub(crate) fn arms_at(&self) -> Option<TimeMs> {
        match &self.layer {
            Layer::Review(review) => review.arms_at(),
            _ => None,
        }
    }

    /// The frame was written to the terminal.
    pub(crate) fn was_shown(&mut self, now: TimeMs) {
        if let Layer::Review(review) = &mut self.layer {
            review.was_shown(now);
        }
    }

    fn frame(&self) -> Frame<'_> {
        Frame {
            width: usize::from(self.drawn.area.width),
            height: usize::from(self.drawn.area.height),
            theme: &self.theme,
        }
    }

    /// Takes an event of the wheel. The first of a notch scrolls; those that come at once with it do not, and where more
    /// come than a notch has, the wheel is spun.
    fn wheel(&mut self, goes_up: bool, at: Position) -> Vec<Effect> {
        let (last, count) = self.wheel;
        let is_same = self.now.0.saturating_sub(last.0) <= NOTCH_MS && count < NOTCH_EVENTS;
        self.wheel = match is_same {
            true => (last, count + 1),
            false => (self.now, 1),
        };
        match is_same {
            true => return Vec::new(),
            false if self.is_in_pane(at) => return self.scroll_pane(goes_up, NOTCH_ROWS),
            false if goes_up => self.scroll(-NOTCH_ROWS),
            false => self.scroll(NOTCH_ROWS),
        }
        Vec::new()
    }

    fn scroll(&mut self, by: isize) {
        let theme = self.theme;
        let mut frame = Frame {
            theme: &theme,
            ..self.frame()
        };
        // The row that says that there is more below makes room once the end is reached.
        frame.height += usize::from(!self.viewport.follows());
        self.viewport.scroll(by, &mut self.story.transcript, frame);
        if by < 0 {
            self.goes_up();
        }
    }
}

/// Returns whether a key that empties the input sends or drops the draft, rather than deleting its letters.
fn ends_draft(key: &KeyEvent) -> bool {
    let is_ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
    matches!(key.code, KeyCode::Enter | KeyCode::Tab) || (key.code == KeyCode::Char('c') && is_ctrl)
}
