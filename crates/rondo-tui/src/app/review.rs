//! Questions that wait for an answer.
//!
//! Keys that answer count once the frame that shows the question is on the screen, a moment has passed in which nothing was
//! pressed, and the question's end was in view. A key that is held since before the question was shown never answers.
//! Enter allows nothing, and "from now on" takes a second key under the rule itself.

use super::draw_review::asked_rows;
use super::proposal::Proposal;
use super::{App, Effect, Layer};
use crate::prompt::Editor;
use crate::prompt::edit;
use crate::prompt::run_mode::RunMode;
use crate::prompt::spelled;
use crate::text::{Row, clean};
use crate::theme::Theme;
use crossterm::event::KeyEvent;
use rondo_core::shown;
use rondo_runtime::form::Form;
use rondo_types::{AnswerValue, Grant, Question, QuestionKind, TimeMs};
use serde_json::Value;

/// How long nothing may be pressed before keys answer, in milliseconds.
const ARMS_AFTER_MS: u64 = 250;
/// The argument that is the command of a call.
const COMMAND: &str = "command";
/// The most grants that are offered by number.
const OFFERS_MAX: usize = 9;

/// The panel.
#[derive(Debug)]
pub(crate) struct Review {
    questions: Vec<Question>,
    at: usize,
    /// The first row of the question that is shown.
    from: usize,
    /// Whether its last row was on the screen.
    was_end_seen: bool,
    /// When the question was shown, or a key came since.
    quiet_since: Option<TimeMs>,
    /// When the question was shown.
    shown_at: Option<TimeMs>,
    step: Step,
    /// The change that it is about, and whether that was looked for.
    proposal: Option<Proposal>,
    was_proposed: bool,
    /// The tool and the arguments of a call whose file has to be read.
    look: Option<(String, Value)>,
    /// What is known of the change in place of a difference.
    told: Option<String>,
    /// Characters of the call's command that the question leaves out.
    left_out: usize,
    /// Whether the selected hunk has to come into view.
    goes_to_hunk: bool,
    laid: Option<Laid>,
}

/// The question as it was laid out: what for, its rows, and where its hunks begin.
#[derive(Debug)]
struct Laid {
    width: usize,
    theme: Theme,
    rows: Vec<Row>,
    hunks: Vec<usize>,
}

/// What is being answered.
#[derive(Debug)]
enum Step {
    /// Whether it may run.
    Choose,
    /// Which rule holds from now on.
    Offers,
    /// Why not.
    Words(Editor),
    /// A value: the arguments to run it with, or what was asked for.
    Value(Editor),
    /// The command to run in place of the one in these arguments.
    Command(Editor, Value),
}

impl Review {
    pub(super) fn new(questions: &[Question]) -> Self {
        Self {
            questions: questions.to_vec(),
            at: 0,
            from: 0,
            was_end_seen: false,
            quiet_since: None,
            shown_at: None,
            step: Step::Choose,
            proposal: None,
            was_proposed: false,
            look: None,
            told: None,
            left_out: 0,
            goes_to_hunk: false,
            laid: None,
        }
    }

    /// Takes the questions as they are now. Returns whether there are any.
    pub(super) fn sync(&mut self, questions: &[Question]) -> bool {
        let before = self.question().map(|it| it.hash.clone());
        self.questions = questions.to_vec();
        let same = self
            .questions
            .iter()
            .position(|it| Some(&it.hash) == before.as_ref());
        match same {
            Some(at) => self.at = at,
            None => self.go(0),
        }
        !self.questions.is_empty()
    }

    /// Goes to another question.
    pub(super) fn go(&mut self, at: usize) {
        self.at = at.min(self.questions.len().saturating_sub(1));
        self.step = Step::Choose;
        (self.proposal, self.look, self.told) = (None, None, None);
        (self.was_proposed, self.left_out) = (false, 0);
        self.show_anew();
    }

    /// The question is another one, or is shown otherwise: it has to be read before it is answered.
    fn show_anew(&mut self) {
        (self.from, self.was_end_seen) = (0, false);
        (self.quiet_since, self.shown_at) = (None, None);
        self.laid = None;
    }

    /// Returns the question once, where it may be about a change of a file.
    pub(super) fn wants_proposal(&mut self) -> Option<&Question> {
        if std::mem::replace(&mut self.was_proposed, true) {
            return None;
        }
        let is_about_call =
            |it: &&Question| matches!(it.kind, QuestionKind::Approval | QuestionKind::Repeat);
        self.questions.get(self.at).filter(is_about_call)
    }

    /// Has the file of the call of a tool read.
    pub(super) fn look(&mut self, tool: String, arguments: Value) {
        self.look = Some((tool, arguments));
    }

    /// Returns the question and the call whose file has to be read, once.
    pub(super) fn wants_look(&mut self) -> Option<(String, String, Value)> {
        let (tool, arguments) = self.look.take()?;
        Some((self.question()?.hash.clone(), tool, arguments))
    }

    /// Shows the change that the question is about.
    pub(super) fn propose(&mut self, proposal: Option<Proposal>) {
        let is_repeat = self.question().map(|it| &it.kind) == Some(&QuestionKind::Repeat);
        self.proposal = match is_repeat {
            true => proposal.map(Proposal::undivided),
            false => proposal,
        };
        self.told = None;
        self.show_anew();
    }

    /// Says what is known of the change in place of a difference.
    pub(super) fn tell(&mut self, told: String) {
        (self.proposal, self.told) = (None, Some(told));
        self.show_anew();
    }

    /// Says how many characters of the call's command the question leaves out.
    pub(super) fn leaves_out(&mut self, chars: usize) {
        self.left_out = chars;
    }

    /// Shows all of the command below the question.
    fn show_command(&mut self, arguments: &Value) {
        self.left_out = 0;
        self.tell(shown::command_in_full(arguments));
    }

    pub(super) fn proposal(&self) -> Option<&Proposal> {
        self.proposal.as_ref()
    }

    /// Returns the rows of the question.
    pub(super) fn rows(&mut self, width: usize, theme: &Theme) -> &[Row] {
        let is_laid = |it: &Laid| it.width == width && it.theme == *theme;
        if !self.laid.as_ref().is_some_and(is_laid) {
            let prompt = self.question().map_or_else(String::new, asked);
            let told = self.told.as_deref();
            let (rows, hunks) = asked_rows(&prompt, self.proposal(), told, width, theme);
            self.laid = Some(Laid {
                width,
                theme: *theme,
                rows,
                hunks,
            });
        }
        let laid = self.laid.as_ref();
        if std::mem::take(&mut self.goes_to_hunk)
            && let Some(selected) = self.proposal.as_ref().and_then(|it| it.choice())
            && let Some(at) = laid.and_then(|it| it.hunks.get(selected.selected))
        {
            self.from = at.saturating_sub(1);
        }
        laid.map_or(&[], |it| &it.rows)
    }

    pub(super) fn question(&self) -> Option<&Question> {
        self.questions.get(self.at)
    }

    pub(super) fn count(&self) -> (usize, usize) {
        (self.at + 1, self.questions.len())
    }

    pub(super) fn from(&self) -> usize {
        self.from
    }

    /// Says how much of the question was drawn.
    pub(super) fn drew(&mut self, rows: usize, room: usize) {
        self.from = self.from.min(rows.saturating_sub(room));
        self.was_end_seen |= self.from + room >= rows;
    }

    /// The frame with the question is on the screen.
    pub(super) fn was_shown(&mut self, now: TimeMs) {
        self.quiet_since.get_or_insert(now);
        self.shown_at.get_or_insert(now);
    }

    /// Returns when keys answer, unless one is pressed before.
    pub(super) fn arms_at(&self) -> Option<TimeMs> {
        self.quiet_since.map(|it| TimeMs(it.0 + ARMS_AFTER_MS))
    }

    pub(super) fn is_armed(&self, now: TimeMs) -> bool {
        self.arms_at().is_some_and(|it| now >= it)
    }

    /// A paste answers nothing; words may be pasted where words are asked for.
    pub(super) fn paste(&mut self, text: &str) {
        if let Step::Words(editor) | Step::Value(editor) | Step::Command(editor, _) = &mut self.step
        {
            editor.paste(text);
        }
    }

    /// Returns the draft of words, where they are asked for.
    pub(super) fn words(&self) -> Option<&Editor> {
        match &self.step {
            Step::Words(editor) | Step::Value(editor) | Step::Command(editor, _) => Some(editor),
            Step::Choose | Step::Offers => None,
        }
    }

    pub(super) fn offers(&self) -> &[Grant] {
        let all = self.question().map_or(&[][..], |it| &it.offers);
        all.get(..all.len().min(OFFERS_MAX)).unwrap_or(all)
    }

    /// Returns what can be pressed now, and why not where it cannot.
    pub(super) fn hints(&self, now: TimeMs) -> Vec<String> {
        match &self.step {
            Step::Words(_) | Step::Value(_) => vec!["Enter sends it · Esc back".to_owned()],
            Step::Command(..) => {
                vec![
                    "Enter runs the command as it is here · Alt-Enter another line · Esc back"
                        .to_owned(),
                ]
            }
            Step::Offers => {
                let offers = self.offers().iter().zip(1..);
                let lines = offers
                    .map(|(it, number)| format!("{number}  {}", clean::exact(&it.to_string())));
                let back = match self.is_armed(now) {
                    true => "Esc back",
                    false => "…",
                };
                lines.chain([back.to_owned()]).collect()
            }
            Step::Choose => self
                .hunk_hint()
                .into_iter()
                .chain(self.rest_hint())
                .chain([self.choice_hint(now)])
                .collect(),
        }
    }

    fn choice_hint(&self, now: TimeMs) -> String {
        if !self.was_end_seen {
            return "y allows once you have seen the end: PageDown, End · n no · Esc later"
                .to_owned();
        }
        if !self.is_armed(now) {
            return "…".to_owned();
        }
        let kind = self.question().map(|it| &it.kind);
        if let Some(QuestionKind::Input { .. }) = kind {
            return "y fill in, as JSON · n no · b no, because… · Esc later".to_owned();
        }
        let edits = match kind {
            Some(QuestionKind::Approval) | None => " · e edit",
            Some(_) => "",
        };
        let allows = match self.proposal().and_then(Proposal::kept) {
            Some((0, _)) => "nothing is left of it".to_owned(),
            Some((kept, count)) => format!("y allow {kept} of {count} hunks"),
            None if self.offers().is_empty() => "y allow".to_owned(),
            None => "y allow · a from now on".to_owned(),
        };
        format!("{allows} · n no · b no, because…{edits} · Esc later")
    }

    /// Returns what is asked, in short.
    pub(super) fn title(&self) -> String {
        let question = self.question();
        let asks = match question.map(|it| &it.kind) {
            Some(QuestionKind::Input { .. }) => "a tool asks",
            Some(QuestionKind::Permission) => "may it do this?",
            Some(QuestionKind::Budget) => "may the turn go on?",
            Some(QuestionKind::Trust) => "may this be used?",
            _ => "may this run?",
        };
        match question.is_some_and(|it| it.child.is_some()) {
            true => format!("a subagent asks: {asks}"),
            false => asks.to_owned(),
        }
    }

    /// Returns what can be done with the hunks, where there are several.
    fn hunk_hint(&self) -> Option<String> {
        let choice = self.proposal()?.choice()?;
        let does = match choice.is_kept.get(choice.selected) {
            Some(false) => "takes it in again",
            _ => "leaves it out",
        };
        Some(format!("← → selects a hunk · x {does}"))
    }

    /// Returns what shows the rest of a command that is too long for the question.
    fn rest_hint(&self) -> Option<String> {
        let count = self.left_out;
        (count > 0).then(|| format!("v shows the {count} characters that are left out"))
    }

    /// Selects a hunk, or leaves it out. Returns whether the key did that.
    fn hunk_key(&mut self, spelled: &str) -> bool {
        let Some(proposal) = &mut self.proposal else {
            return false;
        };
        let did = match spelled {
            "Left" => proposal.select(true),
            "Right" => proposal.select(false),
            // What is left out is what was seen, and has to be on the screen before it is answered.
            "x" if self.quiet_since.is_some() && proposal.toggle() => {
                self.quiet_since = None;
                true
            }
            _ => false,
        };
        if did {
            self.goes_to_hunk = true;
            self.laid = None;
        }
        did
    }

    /// Says yes to what is shown and not left out.
    fn approve(&self, actor: &str) -> Vec<Effect> {
        let Some(proposal) = self.proposal() else {
            return self.answer(AnswerValue::Approve, None, actor);
        };
        match proposal.approved() {
            Some(value) => self.answer(value, None, actor),
            None => Vec::new(),
        }
    }

    fn answer(&self, value: AnswerValue, remember: Option<Grant>, actor: &str) -> Vec<Effect> {
        let answer = self.question().map(|it| it.answered(actor, value));
        let effect = answer.map(|mut answer| {
            answer.remember = remember;
            Effect::Answer(answer)
        });
        effect.into_iter().collect()
    }

    /// Returns whether it can be allowed from now on: all of it, once it was read.
    fn may_offer(&self) -> bool {
        let is_whole = self.proposal().and_then(Proposal::kept).is_none();
        self.was_end_seen && is_whole && !self.offers().is_empty()
    }

    fn takes_value(&self) -> bool {
        let kind = self.question().map(|it| &it.kind);
        matches!(kind, Some(QuestionKind::Input { .. }))
    }
}

/// Returns the words of a question, with the fields of a value that it asks for.
fn asked(question: &Question) -> String {
    let fields = match &question.kind {
        QuestionKind::Input { schema } => Form::of(schema).map(|it| it.fields()),
        _ => None,
    };
    let fields = fields.map_or_else(String::new, |it| format!("\n{it}"));
    format!("{}{fields}", question.prompt)
}

impl App {
    pub(super) fn review_key(&mut self, key: &KeyEvent) -> Vec<Effect> {
        let (now, actor) = (self.now, self.actor.clone());
        let is_held = self.is_key_held();
        let page = usize::from(self.screen.height / 2).max(1);
        let Layer::Review(review) = &mut self.layer else {
            return Vec::new();
        };
        let is_armed = review.is_armed(now) && !is_held;
        let arguments = review.question().and_then(|it| self.story.asked_about(it));
        let can_edit = review
            .question()
            .is_some_and(|it| it.kind == QuestionKind::Approval);
        // A held key keeps it from answering, once it is on the screen at all.
        review.quiet_since = review.quiet_since.map(|_| now);
        let spelled = spelled(key).unwrap_or_default();
        if review.words().is_some() {
            return self.words_key(key, &spelled, &actor);
        }
        if matches!(review.step, Step::Choose) && review.hunk_key(&spelled) {
            return Vec::new();
        }
        if let Some(from) = scrolled(review.from, page, &spelled) {
            review.from = from;
            return Vec::new();
        }
        match (spelled.as_str(), &review.step) {
            ("Esc", Step::Offers) => review.step = Step::Choose,
            ("Esc" | "Ctrl-C", _) => self.layer = Layer::None,
            ("Ctrl-D", _) => return vec![Effect::Quit],
            ("Tab", Step::Choose) => {
                let (at, count) = review.count();
                review.go(at % count.max(1));
            }
            ("n", Step::Choose) if is_armed => {
                let reason = "denied by the user".to_owned();
                return review.answer(AnswerValue::Deny { reason }, None, &actor);
            }
            ("b", Step::Choose) if is_armed => review.step = Step::Words(Editor::default()),
            ("v", Step::Choose) if review.left_out > 0 => {
                if let Some(arguments) = &arguments {
                    review.show_command(arguments);
                }
            }
            ("e", Step::Choose) if is_armed && can_edit && arguments.is_some() => {
                review.step = edited(arguments.as_ref());
            }
            ("y", Step::Choose) if is_armed && review.takes_value() => {
                review.step = edited(None);
            }
            ("y", Step::Choose) if is_armed && review.was_end_seen => {
                return review.approve(&actor);
            }
            ("a", Step::Choose) if is_armed && review.may_offer() => review.step = Step::Offers,
            (digit, Step::Offers) if is_armed => {
                let number = digit.parse::<usize>().ok().and_then(|it| it.checked_sub(1));
                if let Some(grant) = number.and_then(|it| review.offers().get(it)).cloned() {
                    let is_setting = grant.scope.is_setting();
                    let effects = review.answer(AnswerValue::Approve, Some(grant), &actor);
                    if is_setting {
                        // The turn keeps it in the user's settings, which the next one reads.
                        self.run_mode = RunMode::Auto;
                    }
                    return effects;
                }
            }
            _ => {}
        }
        Vec::new()
    }

    /// Returns whether the key that was pressed last may be held since before the question was shown.
    fn is_key_held(&self) -> bool {
        let Layer::Review(review) = &self.layer else {
            return false;
        };
        let shown_at = review.shown_at;
        shown_at.is_some_and(|it| self.is_held_since_before(it))
    }

    fn words_key(&mut self, key: &KeyEvent, spelled: &str, actor: &str) -> Vec<Effect> {
        let width = self.words_width();
        let Layer::Review(review) = &mut self.layer else {
            return Vec::new();
        };
        let takes_any = review.takes_value();
        let (Step::Words(editor) | Step::Value(editor) | Step::Command(editor, _)) =
            &mut review.step
        else {
            return Vec::new();
        };
        match spelled {
            "Esc" | "Ctrl-C" => review.step = Step::Choose,
            "Enter" => match given(&review.step, takes_any) {
                Ok(value) => {
                    review.step = Step::Choose;
                    return review.answer(value, None, actor);
                }
                Err(why) => self.flash(why),
            },
            "Alt-Enter" | "Shift-Enter" | "Ctrl-Enter" | "Ctrl-J" => editor.insert("\n"),
            "Up" => drop(editor.up_or_down(true, width)),
            "Down" => drop(editor.up_or_down(false, width)),
            _ => edit(editor, key),
        }
        Vec::new()
    }
}

/// Returns the first row that is shown after a key that scrolls. Drawing it keeps it within the question.
fn scrolled(from: usize, page: usize, spelled: &str) -> Option<usize> {
    Some(match spelled {
        "PageDown" | "Space" => from.saturating_add(page),
        "Down" | "j" => from.saturating_add(1),
        "PageUp" => from.saturating_sub(page),
        "Up" | "k" => from.saturating_sub(1),
        "End" => usize::MAX,
        "Home" => 0,
        _ => return None,
    })
}

/// Returns the answer that was typed.
///
/// # Errors
/// When it is none, in words.
fn given(step: &Step, takes_any: bool) -> Result<AnswerValue, String> {
    match step {
        Step::Value(editor) => match serde_json::from_str::<Value>(editor.text()) {
            Ok(value) if takes_any || value.is_object() => Ok(AnswerValue::value(value)),
            Ok(_) => Err("arguments are a JSON object".to_owned()),
            Err(err) => Err(format!("that is no JSON: {err}")),
        },
        Step::Command(editor, _) if editor.text().trim().is_empty() => {
            Err("there is no command: Esc goes back".to_owned())
        }
        Step::Command(editor, arguments) => {
            let mut arguments = arguments.clone();
            if let Some(command) = arguments.get_mut(COMMAND) {
                *command = Value::String(editor.whole());
            }
            Ok(AnswerValue::value(arguments))
        }
        Step::Words(editor) => Ok(AnswerValue::Deny {
            reason: editor.whole(),
        }),
        Step::Choose | Step::Offers => Err(String::new()),
    }
}

/// Returns a draft of what is changed: the command if there is one, else the arguments as JSON, or an empty object to fill in.
fn edited(arguments: Option<&Value>) -> Step {
    let mut editor = Editor::default();
    let command = arguments.and_then(|it| it.get(COMMAND)?.as_str());
    match (arguments, command) {
        (Some(arguments), Some(command)) => {
            editor.insert(command);
            Step::Command(editor, arguments.clone())
        }
        (arguments, _) => {
            let empty = Value::Object(serde_json::Map::new());
            editor.insert(&format!("{:#}", arguments.unwrap_or(&empty)));
            editor.left();
            Step::Value(editor)
        }
    }
}
