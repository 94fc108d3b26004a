//! When questions open, and what a person is told who types a message instead of an answer.
//!
//! A question opens by itself where that takes no key from anything: the input is empty and nothing lies over the
//! conversation. It never opens over a draft, and one that was put off stays closed until its key is pressed.

use super::review::Review;
use super::{App, Effect, Layer, Notice, keys};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use rondo_types::{Question, QuestionKind, TimeMs};

/// How long after it is pressed a held key comes again at most, in milliseconds.
const FIRST_REPEAT_MS: u64 = 700;
/// How long it takes at most from one repetition of a held key to the next, in milliseconds.
const REPEAT_MS: u64 = 150;
/// Messages that are answers to a question rather than something for the agent.
const BARE_ANSWERS: [&str; 9] = ["y", "yes", "n", "no", "a", "always", "ok", "allow", "deny"];

/// What a person did about questions, by their hashes.
#[derive(Debug, Default)]
pub(super) struct Asking {
    /// Those that were there at the last update.
    known: Vec<String>,
    /// Those that were answered here, until the session has taken the answer.
    answered: Vec<String>,
    /// Those whose panel was closed.
    put_off: Vec<String>,
    held: HeldKey,
}

/// The key that was pressed last, which may be held.
#[derive(Debug, Default)]
struct HeldKey {
    key: Option<(KeyCode, KeyModifiers)>,
    /// When it was pressed first.
    began: TimeMs,
    /// When it came last, and how often.
    last: TimeMs,
    count: u32,
}

impl HeldKey {
    fn press(&mut self, key: &KeyEvent, now: TimeMs) {
        let pressed = Some((key.code, key.modifiers));
        let gap_max = match self.count {
            1 => FIRST_REPEAT_MS,
            _ => REPEAT_MS,
        };
        let may_repeat = now.0.saturating_sub(self.last.0) < gap_max;
        match self.key == pressed && may_repeat {
            true => self.count = self.count.saturating_add(1),
            false => (self.key, self.began, self.count) = (pressed, now, 1),
        }
        self.last = now;
    }
}

impl App {
    /// Notes that a key was pressed, before anything is done about it.
    pub(super) fn note_key(&mut self, key: &KeyEvent) {
        self.asking.held.press(key, self.now);
        // Esc or Ctrl-C does more when it comes again, with nothing in between.
        let is_ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        if key.code != KeyCode::Esc && !(key.code == KeyCode::Char('c') && is_ctrl) {
            self.pressed = None;
        }
    }

    /// Returns whether the key that was pressed last may be held since before that time.
    pub(super) fn is_held_since_before(&self, time: TimeMs) -> bool {
        self.asking.held.began < time
    }

    /// Returns the questions that nobody answered here.
    pub(super) fn open_questions(&self) -> Vec<Question> {
        let is_open = |it: &&Question| !self.asking.answered.contains(&it.hash);
        let open = self.story.questions().iter().filter(is_open);
        open.cloned().collect()
    }

    /// Takes the questions as they are after an update.
    pub(super) fn sync_questions(&mut self) {
        let asking = &mut self.asking;
        if self.story.questions().is_empty() && asking.known.is_empty() {
            return;
        }
        let hashes = self.story.questions().iter().map(|it| it.hash.clone());
        let known = std::mem::replace(&mut asking.known, hashes.collect());
        for hashes in [&mut asking.answered, &mut asking.put_off] {
            hashes.retain(|it| asking.known.contains(it));
        }
        self.sync_review();
        let is_new = self.asking.known.iter().any(|it| !known.contains(it));
        if is_new {
            self.notice(Notice::Asks);
        }
        if is_new && self.is_free() {
            self.open_new_questions();
        }
    }

    /// Shows what is open in the panel, and closes it if nothing is.
    fn sync_review(&mut self) {
        let open = self.open_questions();
        if let Layer::Review(review) = &mut self.layer
            && !review.sync(&open)
        {
            self.layer = Layer::None;
        }
    }

    /// Returns whether a panel would take no key from anything.
    pub(super) fn is_free(&self) -> bool {
        let is_nothing_over = matches!(self.layer, Layer::None) && self.menu.is_none();
        is_nothing_over && self.editor.is_empty() && !self.pane.has_keys()
    }

    /// Opens the panel at the first question that was not put off, if there is one.
    pub(super) fn open_new_questions(&mut self) {
        let open = self.open_questions();
        let is_new = |it: &Question| !self.asking.put_off.contains(&it.hash);
        if let Some(at) = open.iter().position(is_new) {
            let mut review = Review::new(&open);
            review.go(at);
            self.layer = Layer::Review(Box::new(review));
        }
    }

    /// Opens the panel of questions because a person wants it.
    pub(super) fn review(&mut self) {
        let open = self.open_questions();
        match open.is_empty() {
            true => self.flash("nothing waits for approval"),
            false => self.layer = Layer::Review(Box::new(Review::new(&open))),
        }
    }

    /// Gives a key to the panel of questions, and goes on to the next question once one is answered.
    pub(super) fn answer_key(&mut self, key: &KeyEvent) -> Vec<Effect> {
        let effects = self.review_key(key);
        let answers = effects.iter().filter_map(|it| match it {
            Effect::Answer(answer) | Effect::WriteRule(_, answer) => Some(answer.hash.clone()),
            _ => None,
        });
        self.asking.answered.extend(answers);
        match self.layer {
            Layer::None => self.asking.put_off.clone_from(&self.asking.known),
            _ => self.sync_review(),
        }
        effects
    }

    /// An answer was not taken: its question is open again.
    pub(super) fn reopen_questions(&mut self) {
        self.asking.answered.clear();
    }

    /// Tells a person who types a message while a question waits how to answer. Returns whether the message is kept from the
    /// agent, as it can only be meant as an answer.
    pub(super) fn replies_to(&mut self, message: &str) -> bool {
        let Some(waiting) = self.waiting_questions() else {
            return false;
        };
        let key = keys::key_of(keys::Action::Review);
        let bare = message.trim().trim_end_matches(['.', '!']);
        if BARE_ANSWERS.iter().any(|it| it.eq_ignore_ascii_case(bare)) {
            self.review();
            self.flash("not sent to the agent: answer the question with the keys in its panel");
            return true;
        }
        self.note(&format!(
            "{waiting}: {key} shows it. The agent reads your message after the answer"
        ));
        false
    }

    /// Returns how many questions wait, in words.
    fn waiting_questions(&self) -> Option<String> {
        let open = self.open_questions();
        let is_approval = |it: &Question| {
            let kind = &it.kind;
            matches!(kind, QuestionKind::Approval | QuestionKind::Repeat)
        };
        let noun = match open.iter().all(is_approval) {
            true => "approval",
            false => "question",
        };
        match open.len() {
            0 => None,
            1 => Some(format!("1 {noun} is open")),
            count => Some(format!("{count} {noun}s are open")),
        }
    }

    /// Returns what is said of questions that wait, where there are any.
    pub(super) fn asks(&self) -> Option<String> {
        let key = keys::key_of(keys::Action::Review);
        let waiting = self.waiting_questions()?;
        Some(format!(
            "{waiting} · {key} shows {}",
            if self.open_questions().len() == 1 {
                "it"
            } else {
                "them"
            }
        ))
    }
}
