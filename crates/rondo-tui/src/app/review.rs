//! Questions that wait for an answer.
//!
//! Keys that answer count once the frame that shows the question is on the screen, a moment has passed in which nothing was
//! pressed, and the question's end was in view. A key that is held since before the question was shown never answers.
//! Enter allows nothing, and "from now on" takes a second key under the rule itself.

use super::draw_review::asked_rows;
use super::proposal::Proposal;
use super::{App, Effect, Layer};
use crate::prompt::Editor;
use crate::prompt::run_mode::RunMode;
use crate::prompt::spelled;
use crate::question::{
    Choice, Editing, OpenQuestion, Outcome, Remember, Step, remembered, shown_change,
};
use crate::text::Row;
use crate::theme::Theme;
use crossterm::event::{Event, KeyEvent};
use rondo_core::shown;
use rondo_runtime::form::Form;
use rondo_runtime::granting::PolicyChange;
use rondo_types::{Answer, AnswerValue, Grant, Question, QuestionKind, TimeMs};
use serde_json::Value;

/// How long nothing may be pressed before keys answer, in milliseconds.
const ARMS_AFTER_MS: u64 = 250;

/// The hint below a question whose end was not on the screen.
const END_FIRST: &str = "y allows once you have seen the end: PageDown, End";

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
    /// The question that is shown; none before there is one.
    open: Option<OpenQuestion>,
    /// The rules that can be added are listed.
    lists_offers: bool,
    /// The change of the user's rules that is shown in place of the question.
    rule: Option<String>,
    /// The change that it is about, and whether that was looked for.
    proposal: Option<Proposal>,
    was_proposed: bool,
    /// The tool and the arguments of a call whose file has to be read.
    look: Option<(String, Value)>,
    /// What is known of the change in place of a difference.
    told: Option<String>,
    /// Whether the selected hunk has to come into view.
    goes_to_hunk: bool,
    laid: Option<LaidOutQuestion>,
}

/// The question as it was laid out: what for, its rows, and where its hunks begin.
#[derive(Debug)]
struct LaidOutQuestion {
    width: usize,
    theme: Theme,
    rows: Vec<Row>,
    hunks: Vec<usize>,
}

impl Review {
    pub(super) fn new(questions: &[Question]) -> Self {
        let mut review = Self {
            questions: questions.to_vec(),
            at: 0,
            from: 0,
            was_end_seen: false,
            quiet_since: None,
            shown_at: None,
            open: None,
            lists_offers: false,
            rule: None,
            proposal: None,
            was_proposed: false,
            look: None,
            told: None,
            goes_to_hunk: false,
            laid: None,
        };
        review.go(0);
        review
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
        let question = self.questions.get(self.at);
        self.open = question.map(|it| OpenQuestion::new(it, Editing::InBox));
        (self.lists_offers, self.rule) = (false, None);
        (self.proposal, self.look, self.told) = (None, None, None);
        self.was_proposed = false;
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

    /// Shows all of the command below the question.
    fn show_command(&mut self) {
        let arguments = self.open.as_ref().map(OpenQuestion::arguments);
        let command = arguments.map(shown::command_in_full);
        self.tell(command.unwrap_or_default());
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

    /// Takes the arguments of the call that the question is about.
    pub(super) fn is_about(&mut self, arguments: &Value) {
        if let Some(open) = &mut self.open {
            open.leaves_out(shown::command_left_out(arguments));
            open.set_arguments(arguments.clone());
        }
    }

    /// Shows the change of the user's rules that allows calls for ever, before it is written.
    pub(super) fn show_rule(&mut self, change: PolicyChange, grant: Grant) {
        self.rule = Some(shown_change(&change));
        self.lists_offers = false;
        if let Some(open) = &mut self.open {
            open.ask_about_rule(change, grant);
        }
        self.show_anew();
    }

    /// Goes back to the question.
    fn back(&mut self) {
        if let Some(open) = &mut self.open {
            open.back();
        }
        self.lists_offers = false;
        if self.rule.take().is_some() {
            self.show_anew();
        }
    }

    pub(super) fn proposal(&self) -> Option<&Proposal> {
        self.proposal.as_ref()
    }

    /// Returns the rows of the question.
    pub(super) fn rows(&mut self, width: usize, theme: &Theme) -> &[Row] {
        let is_laid = |it: &LaidOutQuestion| it.width == width && it.theme == *theme;
        if !self.laid.as_ref().is_some_and(is_laid) {
            let (rows, hunks) = match &self.rule {
                Some(rule) => asked_rows(rule, None, None, width, theme),
                None => {
                    let prompt = self.question().map_or_else(String::new, asked);
                    let told = self.told.as_deref();
                    asked_rows(&prompt, self.proposal(), told, width, theme)
                }
            };
            self.laid = Some(LaidOutQuestion {
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
        if let Some(open) = &mut self.open {
            open.type_in(&Event::Paste(text.to_owned()));
        }
    }

    /// Returns the draft of words, where they are asked for.
    pub(super) fn words(&self) -> Option<&Editor> {
        let open = self.open.as_ref().filter(|it| it.takes_words());
        open.map(OpenQuestion::typed)
    }

    /// Returns what is asked for by the words, above them.
    pub(super) fn field(&self) -> String {
        match self.open.as_ref().map(OpenQuestion::step) {
            Some(Step::Field(form)) => form.prompt(),
            _ => String::new(),
        }
    }

    fn remembered(&self) -> Vec<(Remember, String)> {
        let offers = self.open.as_ref().map_or(&[][..], OpenQuestion::offers);
        remembered(offers)
    }

    /// Returns what can be pressed now, and why not where it cannot.
    pub(super) fn hints(&self, now: TimeMs) -> Vec<String> {
        let Some(open) = &self.open else {
            return Vec::new();
        };
        let once_armed = |hint: &str| match self.is_armed(now) {
            true => hint.to_owned(),
            false => "…".to_owned(),
        };
        match open.step() {
            Step::Choose if self.lists_offers => {
                let all = self.remembered().into_iter().zip(1..);
                let lines = all.map(|((_, words), number)| format!("{number}  {words}"));
                lines.chain([once_armed("Esc back")]).collect()
            }
            Step::Choose => self
                .hunk_hint()
                .into_iter()
                .chain(self.rest_hint(open))
                .chain([self.choice_hint(open, now)])
                .collect(),
            Step::Rule(..) if !self.was_end_seen => vec![END_FIRST.to_owned()],
            Step::Rule(..) => vec![once_armed("y writes this and runs it · Esc back")],
            Step::Command => {
                vec![
                    "Enter runs the command as it is here · Alt-Enter another line · Esc back"
                        .to_owned(),
                ]
            }
            Step::Field(_) => vec!["Enter takes it · Esc back".to_owned()],
            Step::Reason | Step::Json => vec!["Enter sends it · Esc back".to_owned()],
        }
    }

    fn choice_hint(&self, open: &OpenQuestion, now: TimeMs) -> String {
        if !self.was_end_seen {
            return format!("{END_FIRST} · n no · Esc later");
        }
        if !self.is_armed(now) {
            return "…".to_owned();
        }
        let allows = match self.proposal().and_then(Proposal::kept) {
            Some((0, _)) => "nothing is left of it".to_owned(),
            Some((kept, count)) => format!("y allow {kept} of {count} hunks"),
            None if open.takes_value() => "y fill in".to_owned(),
            None if open.offers().is_empty() => "y allow".to_owned(),
            None => "y allow · a from now on".to_owned(),
        };
        let reason = match open.takes_reason() {
            true => " · b no, because…",
            false => "",
        };
        let edits = match open.can_edit() {
            true => " · e edit",
            false => "",
        };
        format!("{allows} · n no{reason}{edits} · Esc later")
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
    fn rest_hint(&self, open: &OpenQuestion) -> Option<String> {
        let count = open.left_out();
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
    fn approve(&mut self) -> Option<Outcome> {
        match self.proposal().filter(|it| it.kept().is_some()) {
            Some(proposal) => Some(Outcome::Answered(proposal.approved()?, None)),
            None => Some(self.open.as_mut()?.choose(Choice::Yes)),
        }
    }

    fn answer(&self, value: AnswerValue, remember: Option<Grant>, actor: &str) -> Option<Answer> {
        let mut answer = self.question()?.answered(actor, value);
        answer.remember = remember;
        Some(answer)
    }

    /// Returns whether it can be allowed from now on: all of it, once it was read.
    fn may_offer(&self) -> bool {
        let is_whole = self.proposal().and_then(Proposal::kept).is_none();
        self.was_end_seen && is_whole && !self.remembered().is_empty()
    }

    /// Takes a key that chooses, where keys do.
    fn chosen_by(&mut self, spelled: &str) -> Option<Outcome> {
        if self.lists_offers {
            let number = spelled.parse::<usize>().ok()?.checked_sub(1)?;
            let (remember, _) = self.remembered().into_iter().nth(number)?;
            return Some(self.open.as_mut()?.choose(Choice::Remember(remember)));
        }
        let was_end_seen = self.was_end_seen;
        let open = self.open.as_mut()?;
        let is_rule = matches!(open.step(), Step::Rule(..));
        match spelled {
            "y" if open.takes_value() || was_end_seen => self.approve(),
            _ if is_rule => None,
            "n" => Some(open.choose(Choice::No)),
            "b" if open.takes_reason() => Some(open.choose(Choice::Because)),
            "e" if open.can_edit() => Some(open.choose(Choice::Edit)),
            "a" if self.may_offer() => {
                self.lists_offers = true;
                None
            }
            _ => None,
        }
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
        let now = self.now;
        let is_held = self.is_key_held();
        let page = usize::from(self.screen.height / 2).max(1);
        let Layer::Review(review) = &mut self.layer else {
            return Vec::new();
        };
        let is_armed = review.is_armed(now) && !is_held;
        // A held key keeps it from answering, once it is on the screen at all.
        review.quiet_since = review.quiet_since.map(|_| now);
        let spelled = spelled(key).unwrap_or_default();
        if review.words().is_some() {
            return self.words_key(key, &spelled);
        }
        let is_apart = review.lists_offers || review.rule.is_some();
        if !is_apart && review.hunk_key(&spelled) {
            return Vec::new();
        }
        if let Some(from) = scrolled(review.from, page, &spelled) {
            review.from = from;
            return Vec::new();
        }
        let outcome = match spelled.as_str() {
            "Esc" if is_apart => {
                review.back();
                None
            }
            "Esc" | "Ctrl-C" => {
                self.layer = Layer::None;
                None
            }
            "Ctrl-D" => return vec![Effect::Quit],
            "Tab" if !is_apart => {
                let (at, count) = review.count();
                review.go(at % count.max(1));
                None
            }
            "v" if !is_apart => {
                let open = review.open.as_mut().filter(|it| it.left_out() > 0);
                open.map(|it| it.choose(Choice::Rest))
            }
            spelled if is_armed => review.chosen_by(spelled),
            _ => None,
        };
        outcome.map_or_else(Vec::new, |it| self.review_comes_to(it))
    }

    /// Does what an answer comes to.
    fn review_comes_to(&mut self, outcome: Outcome) -> Vec<Effect> {
        let Layer::Review(review) = &mut self.layer else {
            return Vec::new();
        };
        let effect = match outcome {
            Outcome::Open(None) => None,
            Outcome::Open(Some(why)) => {
                self.flash(why);
                None
            }
            Outcome::ShowAll => {
                review.show_command();
                None
            }
            Outcome::ShowRule(grant) => {
                let hash = review.question().map(|it| it.hash.clone());
                hash.map(|hash| Effect::ShowRule(hash, grant))
            }
            Outcome::WriteRule(change, grant) => {
                // If it cannot be written, the question is open again.
                review.back();
                let answer = review.answer(AnswerValue::Approve, Some(grant), &self.actor);
                answer.map(|answer| Effect::WriteRule(change, answer))
            }
            Outcome::Answered(value, remember) => {
                if remember.as_ref().is_some_and(|it| it.scope.is_setting()) {
                    // The turn keeps it in the user's settings, which the next one reads.
                    self.run_mode = RunMode::Auto;
                }
                review
                    .answer(value, remember, &self.actor)
                    .map(Effect::Answer)
            }
        };
        effect.into_iter().collect()
    }

    /// Shows the change of the user's rules that the question in the panel would make.
    pub(crate) fn shows_rule(&mut self, hash: &str, change: PolicyChange, grant: Grant) {
        if let Layer::Review(review) = &mut self.layer
            && review.question().is_some_and(|it| it.hash == hash)
        {
            review.show_rule(change, grant);
        }
    }

    /// Returns whether the key that was pressed last may be held since before the question was shown.
    fn is_key_held(&self) -> bool {
        let Layer::Review(review) = &self.layer else {
            return false;
        };
        let shown_at = review.shown_at;
        shown_at.is_some_and(|it| self.is_held_since_before(it))
    }

    fn words_key(&mut self, key: &KeyEvent, spelled: &str) -> Vec<Effect> {
        let width = self.words_width();
        let Layer::Review(review) = &mut self.layer else {
            return Vec::new();
        };
        let Some(open) = &mut review.open else {
            return Vec::new();
        };
        match spelled {
            "Esc" | "Ctrl-C" => open.back(),
            "Enter" => {
                let outcome = open.enter();
                return self.review_comes_to(outcome);
            }
            "Alt-Enter" | "Shift-Enter" | "Ctrl-Enter" | "Ctrl-J" => open.typed_mut().insert("\n"),
            "Up" => drop(open.typed_mut().up_or_down(true, width)),
            "Down" => drop(open.typed_mut().up_or_down(false, width)),
            _ => open.type_in(&Event::Key(*key)),
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
